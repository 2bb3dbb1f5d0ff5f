# SPDX-License-Identifier: GPL-2.0-or-later
"""The HCA and another implementation of RoCE v2 on one link: the kernel's rxe on a network adapter of virtio's.

What rxe does against the standard is listed in README.md. The kernel's `netem` on rxe's interface impairs the link.
"""

import contextlib
import re

from hghca_lib.tiers import ALL

import framework
from data import run_program
from framework import BESIDE, COMMAND_S, INTEROP, expect, gate_if
from kernel_users import connected, copy_and_compare, target
from netdev import vlan
from perftest import MTUS, check, figure_column, perftest, with_mtu
from pingpong import check as check_pingpong, command as pingpong_command, pingpong
from rdmacm import ipv6_addresses, over_ipv6, refused, rping, udaddy, ucmatose
from recorder import EVERY, SENT
from storage import FIO, fio


def test(name, run=None, machine=INTEROP, **options):
    return framework.test(f"interop: {name}", run, machine=machine, suite="interop", subjects=("hghca",),
                          kernels=("stock",), **options)


@contextlib.contextmanager
def turned(rig):
    """Who was the server is the client."""
    rig.client, rig.server = rig.server, rig.client
    try:
        yield
    finally:
        rig.client, rig.server = rig.server, rig.client


def both_ways(name, run, **options):
    """A test of which each side is the server once."""
    def the_other_way(rig):
        with turned(rig):
            run(rig)

    test(f"{name}, rxe serves", run, **options)
    test(f"{name}, rxe asks", the_other_way, **options)


# name, program, GID, options, message bytes, messages
# Most wait for events: rxe works in threads of the kernel's, which a program that polls keeps from working.
PINGPONGS = [
    ("rc 1000003 bytes", "ibv_rc_pingpong", "ipv4", "-e -m 4096", 1000003, 20),
    ("rc 100003 bytes, IPv6", "ibv_rc_pingpong", "link-local", "-e -m 1024", 100003, 50),
    ("rc 1 byte", "ibv_rc_pingpong", "ipv4", "-e -m 1024", 1, 500),
    ("rc 1 byte, IPv6, polling", "ibv_rc_pingpong", "link-local", "-m 1024", 1, 100),
    ("uc 100003 bytes", "ibv_uc_pingpong", "ipv4", "-e -m 4096", 100003, 50),
    ("uc 100003 bytes, IPv6", "ibv_uc_pingpong", "link-local", "-e -m 1024", 100003, 50),
    ("ud 2048 bytes", "ibv_ud_pingpong", "ipv4", "-e", 2048, 200),
    ("ud 2048 bytes, IPv6", "ibv_ud_pingpong", "link-local", "-e", 2048, 200),
]
for case_name, *case in PINGPONGS:
    both_ways(f"pingpong {case_name}", lambda rig, case=case: pingpong(rig, *case))


def rping_ipv6(rig):
    with ipv6_addresses(rig) as address:
        rping(rig, "-S 4097", 50, address=address)


both_ways("rping -V", lambda rig: rping(rig, "-S 65535", 100))
both_ways("rping -V, IPv6", rping_ipv6)


# WRITE has no events in perftest, and with them the latency programs take one that comes late for a completion. Each
# end asks for as many READs and atomics under way as the other says that it can have, and refuses what it cannot; so it
# is said for both.
OUTSTANDING = "-o 16"
PROGRAMS = {"ib_write_bw": "", "ib_read_bw": f"-e {OUTSTANDING}", "ib_send_bw": "-e",
            "ib_atomic_lat": OUTSTANDING}
FEW = 20


def each_program(rig, mtu):
    for program, option in PROGRAMS.items():
        with_mtu(rig, program, "RC", mtu, option, count=FEW)


for path_mtu in MTUS:
    both_ways(f"perftest, RC, -m {path_mtu}", lambda rig, mtu=path_mtu: each_program(rig, mtu),
              tier=gate_if(path_mtu in (MTUS[0], MTUS[-1])))


def others(rig):
    for program, options in (("ib_write_bw", "-c UC"), ("ib_send_lat", "-c UC"), ("ib_send_lat", "-c UD -s 2048"),
                             ("ib_read_lat", OUTSTANDING), ("ib_atomic_bw", f"{OUTSTANDING} --report_gbits")):
        found = perftest(rig, program, options, 100)
        expect(len(found) == 1 and found[0][1] == 100, f"{program} {options}: {found}")
        rig.note(f"{program} {options}: {found[0][figure_column(program)]:g}")


both_ways("perftest, UC, UD, latencies, atomics", others)
both_ways("perftest, the CM connects", lambda rig: check(rig, "ib_read_bw", "RC", "-R"))
both_ways("VLAN: ping, pingpong, rping", lambda rig: vlan(rig, "-e"))


def connection_manager(rig):
    """Connections rejected by the consumer, accepted, and taken down by each end; what each is told of the other."""
    port = rig.next_port()
    server = f"python3 /share/cm.py serve {rig.server.address} {port}"
    client = f"python3 /share/cm.py connect {rig.server.address} {port}"
    for end in rig.pair(server, client, port):
        expect("not ok" not in end.stdout and "ok 3" in end.stdout, end.output)


both_ways("CM: nobody listens", refused)
both_ways("CM: rejected, accepted, disconnected by each end", connection_manager)
both_ways("CM: ucmatose", lambda rig: ucmatose(rig, rig.server.address), tier=ALL)
both_ways("CM: ucmatose, IPv6", lambda rig: over_ipv6(rig, ucmatose))
both_ways("CM: udaddy", lambda rig: udaddy(rig, rig.server.address))


def nvme(rig):
    copy_and_compare(rig, rig.client, rig.server, ("1M",))


def nvme_fio(rig):
    with target(rig, rig.server), connected(rig, rig.client, rig.server.address, "-i 2 -Q 64") as disk:
        fio(rig, rig.client, disk, FIO["4 KiB, 64 under way"])


both_ways("NVMe over Fabrics, data written, read and compared", nvme, limit_s=120)
both_ways("NVMe over Fabrics, fio", nvme_fio, limit_s=120, tier=ALL)


# All but what takes regions of 2 GiB, of which rxe has none, huge pages, and what is about CQs alone.
CASES = "send immediate =write =read random gather inline lists atomics another"


def data(rig, cases=CASES):
    """The program has both ends; the peer's namespace is told by its name."""
    here, there = [f"{side.device} {side.gid('ipv4')}" for side in (rig.client, rig.server)]
    run_program(rig, "datacheck", f"{here} {there} {rig.server.netns or 'first'}", f"-- {cases}")


both_ways("data: all operations, sizes and shapes", data, machine=BESIDE, limit_s=120)


# What netem does to each packet that rxe sends, and to each that comes, and with which numbers at random.
IMPAIRMENTS = {
    "loss 0.1 %": "loss 0.1%",
    "loss 1 %": "loss 1%",
    "loss 5 %": "loss 5%",
    "reordering": "delay 1ms reorder 75% 25%",
    "duplicates": "duplicate 5%",
    "corruption": "corrupt 2%",
    "delay with jitter": "delay 2ms 1ms",
    "all at once": "delay 1ms 100us loss 1% duplicate 1% corrupt 1%",
}
LOSES = re.compile(r"loss|corrupt")
JITTER = re.compile(r"delay \S+ \S+s\b")
SEEDS = 7, 11
NETEM = """
set -e
modprobe -a sch_netem ifb act_mirred cls_matchall sch_ingress
ip link add ifb0 type ifb
ip link set ifb0 mtu 4200 up
tc qdisc add dev {netdev} root netem {what} seed {seeds[0]} limit 10000
tc qdisc add dev {netdev} ingress
tc filter add dev {netdev} ingress matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root netem {what} seed {seeds[1]} limit 10000
"""
CALM = """
tc qdisc del dev {netdev} root
tc qdisc del dev {netdev} ingress
ip link del ifb0
"""


@contextlib.contextmanager
def bad_link(rig, what):
    """As long as the block, both ways between rxe and its interface."""
    rxe = rig.sides[1]
    try:
        rig.run(NETEM.format(netdev=rxe.netdev, what=what, seeds=SEEDS), rxe)
        yield
        for device in (rxe.netdev, "ifb0"):
            shown = rig.run(f"tc -s qdisc show dev {device} root", rxe)
            rig.note(" ".join(re.findall(r"Sent .*? pkt|dropped \d+", shown)))
    finally:
        rxe.guest.run(CALM.format(netdev=rxe.netdev), timeout=20)


# No end can know that its last acknowledgement has arrived: whoever has all may be gone when the other asks again.
UNANSWERED = "Failed status transport retry counter exceeded (12)"


def pingpong_through(rig, gid, options, size, count):
    """All data come through right at the end that has them first, and at the other but for the last acknowledgement."""
    port = rig.next_port()
    arguments = (gid, options, size, count, port)
    server = rig.start(pingpong_command("ibv_rc_pingpong", rig.server, *arguments), rig.server)
    rig.wait_listening(port, rig.server, server, "tcp")
    client = rig.start(f"{pingpong_command('ibv_rc_pingpong', rig.client, *arguments)} {rig.server.address}")
    rig.wait_until(lambda: 0 in (client.status, server.status) or not (client.running() or server.running()),
                   "a good end of the pingpong", 40)
    first, last, side = (server, client, rig.client) if server.status == 0 else (client, server, rig.server)
    ended = first.wait(1)
    expect(ended.status == 0, f"both ends failed: {ended.output[-500:]}")
    check_pingpong(ended, size, count)
    said = last.wait(rig.left(3))
    if said.status == 0:
        check_pingpong(said, size, count)
    else:
        # rxe with seven retries asks for ever; see README.md.
        expected = said.timed_out if side is rig.sides[1] else UNANSWERED in said.output
        expect(expected and "invalid data" not in said.output, f"status {said.status}: {said.output[-500:]}")
        rig.note(f"{side.device} was not told that all had arrived")


def disconnects(rig, side):
    """The DREQs that the CM of a side has received."""
    return int(rig.run(f"cat /sys/class/infiniband/{side.device}/ports/1/cm_rx_msgs/dreq", side))


def rping_through(rig, size, count):
    """The client gets all of its pings, every byte as it was sent, and the server is told of the end or cannot know.

    Who asks for the end of a connection destroys its ID at once, and the kernel's CM does not send a DREQ that was lost
    again for an ID that is destroyed: the server waits for ever then.
    """
    port, before = rig.next_port(), disconnects(rig, rig.server)
    options = f"-a {rig.server.address} -p {port} -C {count} -V -S {size}"
    server = rig.start(f"rping -s {options}", rig.server)
    rig.wait_listening(port, rig.server, server)
    asked = rig.start(f"rping -c {options}").wait(rig.left(COMMAND_S))
    expect(asked.status == 0, f"rping -c ended with status {asked.status}: {asked.output[-500:]}")
    served = server.wait(rig.left(5))
    if served.timed_out:
        expect(disconnects(rig, rig.server) == before, f"rping -s waits, and its DREQ has come: {served.output[-500:]}")
        rig.note(f"{rig.server.device} was not told that the connection has ended")
    else:
        expect(served.status == 0, f"rping -s ended with status {served.status}: {served.output[-500:]}")
    for end in (asked, served):
        expect(not re.search("error|mismatch|fail", end.output, re.IGNORECASE), f"rping said: {end.output[-500:]}")


def through(rig, what):
    """Where packets get lost rxe asks for nothing of several packets, and reads between no SENDs; see README.md."""
    with bad_link(rig, what):
        pingpong_through(rig, "ipv4", "-e -m 1024", 1024, 100)
        pingpong_through(rig, "link-local", "-e -m 4096", 4096, 50)
        # The server of rping reads.
        if rig.server is rig.sides[0] or not LOSES.search(what):
            rping_through(rig, 4000, 10)
        programs = {"ib_read_bw": f"-e {OUTSTANDING}"}
        if rig.client is rig.sides[0]:
            programs |= {"ib_write_bw": "", "ib_send_bw": "-e"}
        for program, option in programs.items():
            rows = perftest(rig, program, f"-m 1024 -s 16384 {option}", FEW)
            expect(len(rows) == 1, f"{program}: {rows}")


def data_through(rig, what):
    """With delays that differ packets overtake each other, and rxe asks for no long READs; see README.md."""
    cases = "random lists atomics"
    if rig.client is rig.sides[1]:
        cases = "inline atomics" if JITTER.search(what) else "=read inline atomics"
    with bad_link(rig, what):
        data(rig, cases)


for name, netem in IMPAIRMENTS.items():
    # It is rxe's that are damaged on the way.
    impairment_options = {"limit_s": 120, "judged": SENT if "corrupt" in netem else EVERY}
    both_ways(name, lambda rig, what=netem: through(rig, what),
              # Those that are left out of the gate are parts of "all at once".
              tier=gate_if(name in ("loss 5 %", "reordering", "all at once")), **impairment_options)
    both_ways(f"{name}, every byte compared", lambda rig, what=netem: data_through(rig, what), machine=BESIDE,
              tier=ALL, **impairment_options)


@test("delay with jitter, datagrams")
def datagrams(rig):
    with bad_link(rig, IMPAIRMENTS["delay with jitter"]):
        pingpong(rig, "ibv_ud_pingpong", "ipv4", "-e", 2048, 50)


@test("every packet lost, the HCA's requests end with the error")
def silence(rig):
    """Of a program that always has some under way."""
    options = f"-F -D 60 -s 4096 -p {rig.next_port()}"
    server = rig.start(f"ib_write_bw -d rxe0 -x {rig.server.gid('ipv4')} {options}", rig.server)
    rig.wait_listening(rig.port, rig.server, server, "tcp")
    before = rig.counter(rig.client, "tx_packets")
    client = rig.start(f"ib_write_bw -d hghca0 -x {rig.client.gid('ipv4')} {options} {rig.server.address}")
    rig.wait_until(lambda: rig.counter(rig.client, "tx_packets") > before + 100, "traffic")
    with bad_link(rig, "loss 100%"):
        said = client.wait(rig.left(20))
    server.kill()
    server.wait(10)
    expect(said.status == 1 and "Failed status 12" in said.output, f"status {said.status}: {said.output}")
