# SPDX-License-Identifier: GPL-2.0-or-later
"""HCAs of the RSNIC document: commands by the command queue, RC and QP 1 alone, health, the retransmission buffer.

Alone, and with a base HCA, a full HCA and rxe as the peer. UC and UD are not here: the document lacks both. base.py and
interop.py have them between the others.
"""

import contextlib
import re

import badinput
import base
import congestion
import framework
from hghca_lib.tiers import ALL

from data import over_link, run_program, take_cases, to_itself
from framework import BASE_RXE, LINK, MIXED, RSNIC, SETTLE_S, Side, expect
from hardware import FAILED, bring_back, expect_no_qp
from impairment import HCA, impairment
from interop import turned
from kernel_users import WITHOUT_HOST, no_host
from observability import TRACING, traced
from perftest import perftest
from pingpong import check, command, pingpong
from rdmacm import ipv6_addresses, rping, ucmatose

LINK_CHANGES = (r"link (becomes ready|is (down|up))",)
# 255, of which the driver has QP 1 for the CM and QP 2 for its Ethernet device; docs/reference/rsnic.rst, 6.
QPS, ON_CHIP = 253, 16
# RST2INIT, INIT2RTR and RTR2RTS, as the trace shows them.
TO_RTS = ["0x19", "0x1a", "0x1b"]


def test(name, **options):
    return framework.test(f"rsnic: {name}", **{"machine": RSNIC, "subjects": ("hghca",), **options})


@test("pingpong of RC, polling and by events")
def pingpongs(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 100)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 1024", 100003, 100)
    pingpong(testbed, "ibv_rc_pingpong", "link-local", "-m 4096", 65536, 100)


@test("the CM: rping -V, ucmatose, IPv4 and IPv6, both ways")
def connections(testbed):
    rping(testbed, "-S 20000", 200)
    ucmatose(testbed, testbed.server.address)
    with turned(testbed), ipv6_addresses(testbed) as address:
        rping(testbed, "-S 4097", 50, address=address)
        ucmatose(testbed, address)


@test("no NVMe host", tier=ALL, **WITHOUT_HOST)
def never_host(testbed):
    no_host(testbed, testbed.client, testbed.server.address)


@test("perftest: bandwidths and latencies", limit_s=150, tier=ALL)
def figures(testbed):
    for program, options, count in (("ib_write_bw", "-s 65536", 500), ("ib_read_bw", "-s 65536", 300),
                                    ("ib_send_bw", "-s 65536", 500), ("ib_write_bw", "-q 16 -s 4096", 200),
                                    ("ib_write_lat", "-s 8", 500), ("ib_send_lat", "-s 8", 500)):
        found = perftest(testbed, program, options, count)
        expect(len(found) == 1, f"{program} {options}: {found}")
        testbed.note(f"{program} {options}: {found[0][3:]}")


@test("data: operations of RC that the document names", limit_s=150, aliases=True)
def data(testbed):
    run_program(testbed, "datacheck", to_itself(testbed), "-- send immediate =write =read gather inline", timeout=140)


@test("what the document lacks is refused")
def lacking(testbed):
    side, peer = testbed.client, testbed.server
    # A program that had what it wants would wait for its peer, for ever.
    for program, said in (("ibv_srq_pingpong", "SRQ"), ("ibv_xsrq_pingpong", "XRC"), ("ibv_uc_pingpong", "INIT")):
        done = testbed.try_run(f"{program} -d {side.device} -g {side.gid('ipv4')} -p {testbed.next_port()}", timeout=10)
        expect(done.status not in (0, 124) and said in done.output, f"{program}: {done.status} {done.output[-300:]}")
    # A UD QP comes to INIT, as QP 1 does. The server takes its QP to RTR when it knows the client.
    port = testbed.next_port()
    server = testbed.start(f"ibv_ud_pingpong -d {peer.device} -g {peer.gid('ipv4')} -p {port}", peer)
    testbed.wait_listening(port, peer, server)
    done = testbed.try_run(f"ibv_ud_pingpong -d {side.device} -g {side.gid('ipv4')} -p {port} {peer.address}",
                           timeout=10)
    said = server.wait(testbed.left(20))
    expect(done.status not in (0, 124) and said.status not in (0, 124) and "RTR" in said.output,
           f"ibv_ud_pingpong: {done.status} {done.output[-300:]}, {said.status} {said.output[-300:]}")
    run_program(testbed, "rsnic", over_link(testbed), "-- =atomics")
    base.check_lost(testbed, base.OF_RSNIC)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


# Without atomics and datagrams, as in base.py.
BAD_VERBS = ("send, ", "write, ", "write of", "write one", "read ", "read, ", "receive", "request", "flush", "transitions")
BAD_CALLS = ("posted in RESET", "receive queue", "requests of the most", "QPs of unknown", "CQs of", "regions",
             "QP attributes", "invalid addresses", "ports", "ECE")


@test("bad input: work requests that must fail, and calls that must be refused", limit_s=120)
def bad_input(testbed):
    base.bad_input(testbed, BAD_VERBS, BAD_CALLS)


# ---- with HCAs of other kinds

@contextlib.contextmanager
def ends(testbed, client, server):
    """As long as the block, these are client and server."""
    usual = testbed.client, testbed.server
    testbed.client, testbed.server = client, server
    try:
        yield
    finally:
        testbed.client, testbed.server = usual


@contextlib.contextmanager
def second_hca(testbed):
    """The HCA of the RSNIC document, the second of the first guest. No side of the testbed has it."""
    side = Side("hghca1", "10.10.0.3", testbed.guest, netns="b")
    testbed.await_gids(side)

    def resources():
        return testbed.resources([testbed.question(side, "look", testbed.left())])

    before = resources()
    yield side
    testbed.wait_until(lambda: resources() == before, "the RDMA resources of before", timeout=SETTLE_S)


def exchange(testbed, option="", gids=("ipv4", "link-local")):
    """RC and the CM, from the client to the server: ibv_rc_pingpong looks at each page, rping at each byte."""
    for gid in gids:
        pingpong(testbed, "ibv_rc_pingpong", gid, f"{option} -m 4096", 300003, 20)
    rping(testbed, "-S 20000", 20)


# The gate has each of the three and rxe in two machines; the suite qtest has a base and a full HCA on one link.
@test("with a base and a full HCA, both ways", machine=MIXED, limit_s=120, tier=ALL)
def mixed(testbed):
    """The base HCA is in the same guest, and has no IPv6; the full one is in the other guest."""
    with second_hca(testbed) as rsnic:
        for peer, gids in ((testbed.client, ("ipv4",)), (testbed.server, ("ipv4", "link-local"))):
            for client, server in ((rsnic, peer), (peer, rsnic)):
                with ends(testbed, client, server):
                    exchange(testbed, gids=gids)


@test("with rxe in another machine, both ways", machine=BASE_RXE, kernels=("stock",))
def with_rxe(testbed):
    """rxe works in threads of the kernel, so the programs wait for events."""
    rxe = testbed.server
    with second_hca(testbed) as rsnic:
        for client, server in ((rsnic, rxe), (rxe, rsnic)):
            with ends(testbed, client, server):
                exchange(testbed, "-e")


# ---- the retransmission buffer

def lose(testbed, case, rules, count):
    """Run a case of programs/rsnic.c in which the rules lose so many packets, each of which is sent again once."""
    before = testbed.counter(testbed.client, "retransmitted")
    with impairment(testbed, rules) as done:
        run_program(testbed, "rsnic", over_link(testbed), f"-- '={case}'")
    again = testbed.counter(testbed.client, "retransmitted") - before
    expect((done.get("dropped"), again) == (count, count), f"{count} packets lost and sent again: {done}, {again}")


EACH_LOST = "drop,dir=tx,frames=roce,every=2"


@test("memory that changes between loss and retransmission: the peer gets what was sent first")
def kept(testbed):
    lose(testbed, "each packet lost once, sent again as it was", EACH_LOST, 4)
    lose(testbed, "a message lost as a whole, sent again as it was", "drop,dir=tx,frames=roce,count=8", 8)


# Shows that the test above can fail. The threads of a kernel with checkers may be late.
@test("memory that changes between loss and retransmission, of a full HCA: the peer gets what is there then",
      machine=LINK, kernels=("stock",))
def read_again(testbed):
    lose(testbed, "each packet lost once, read again", EACH_LOST, 4)


@test("lost packets and lost acknowledgements", limit_s=120)
def losses(testbed):
    for rules in ("drop,rate=1%,count=30,frames=roce", "drop,opcode=ack,rate=20%,count=20"):
        with impairment(testbed, rules) as done:
            pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 100)
        expect(done.get("dropped", 0) > 0, f"`{rules}` did nothing: {done}")


@test("more packets under way than the retransmission buffer has places", limit_s=120, tier=ALL)
def full_buffer(testbed):
    """16 QPs with up to 256 packets each, and 256 places; with and without losses."""
    for rules in ("delay,us=300,frames=roce,dir=rx", "drop,rate=1%,count=60,frames=roce"):
        with impairment(testbed, rules):
            found = perftest(testbed, "ib_write_bw", "-q 16 -s 65536 -m 1024", 40)
        expect(len(found) == 1 and found[0][1] == 16 * 40, f"`{rules}`: {found}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


# ---- QPs

@test("253 QPs at once, each with its data, and not one more", limit_s=120)
def all_qps(testbed):
    """The first HCA has them all on chip. The second has 16 of them there: the others come from memory each time."""
    misses = []
    for side in testbed.sides:
        before = testbed.counter(side, "context_misses")
        with ends(testbed, side, side):
            run_program(testbed, "rsnic", to_itself(testbed), "-- '=as many QPs as there are'")
        misses.append(testbed.counter(side, "context_misses") - before)
    testbed.note(f"contexts that were not on chip: {misses}")
    expect(misses[0] == 0 and misses[1] >= QPS - ON_CHIP, f"contexts that were not on chip: {misses}")


def started_at_once(testbed, count):
    """So many pingpongs, whose programs start together and create and connect their QPs at the same time."""
    ports = [testbed.next_port() for _ in range(count)]
    size, messages = 8192, 100
    servers = [testbed.start(command("ibv_rc_pingpong", testbed.server, "ipv4", "-m 1024", size, messages, port),
                             testbed.server) for port in ports]
    for port, server in zip(ports, servers):
        testbed.wait_listening(port, testbed.server, server, "tcp")
    clients = [testbed.start(f"{command('ibv_rc_pingpong', testbed.client, 'ipv4', '-m 1024', size, messages, port)} "
                             f"{testbed.server.address}") for port in ports]
    for program in (*clients, *servers):
        result = program.wait(testbed.left())
        expect(result.status == 0, f"status {result.status}: {result.output[-400:]}")
        check(result, size, messages)


@test("4 pairs of programs started at once")
def few_at_once(testbed):
    started_at_once(testbed, 4)


@test("40 pairs of programs started at once", limit_s=240, tier=ALL)
def many_at_once(testbed):
    started_at_once(testbed, 40)


@test("QPs come and go in threads: commands are under way together")
def commands_together(testbed):
    side = testbed.client
    with traced(testbed, ["cmd_post", "cmd_done"]):
        run_program(testbed, "rsnic", to_itself(testbed), "-- '=QPs come and go in threads'")
        said = testbed.run(f"awk '/hghca_cmd_post: {side.pci} /{{ n++; if (n > most) most = n }} "
                           f"/hghca_cmd_done: {side.pci} /{{ n-- }} END {{ print most + 0 }}' {TRACING}/trace")
    testbed.note(f"{said.strip()} commands under way at most")
    expect(int(said) > 1, f"{said.strip()} commands under way at most")


def start_threads(testbed, case):
    """Start a case of programs/rsnic.c that gives commands in threads; the program, once it does."""
    commands = testbed.guest.qmp("qom-get", path=HCA, property="commands")
    program = testbed.start(f"SLOWNESS={testbed.slowness} /share/rsnic {to_itself(testbed)} -- '={case}'")
    testbed.wait_until(lambda: not program.running() or
                       testbed.guest.qmp("qom-get", path=HCA, property="commands") > commands + 200, "commands")
    expect(program.running(), f"it has ended early: {program.output[-500:]}")
    return program


@test("the Ethernet device's QP starts by one doorbell, also while QPs come and go", expected_log=LINK_CHANGES)
def ethernet(testbed):
    side = testbed.client

    def settle():
        testbed.wait_until(lambda: "state ACTIVE" in testbed.run(f"rdma link show {side.device}/1"), "the port up")
        testbed.await_gids(side)

    turn = f"ip link set {side.netdev} down; ip link set {side.netdev} up"
    with traced(testbed, ["cmd_post", "cmd_done"]) as read:
        testbed.run(turn)
        found = [(event, fields["op"]) for event, fields in read()
                 if fields["dev"] == side.pci and fields["in_modifier"] == "0x2" and fields["op"] in TO_RTS]
    expect(found == [(event, op) for event in ("cmd_post", "cmd_done") for op in TO_RTS], f"commands for QP 2: {found}")
    settle()
    program = start_threads(testbed, "QPs in INIT come and go in threads")
    testbed.run(f"for turn in 1 2 3 4 5; do {turn}; done")
    take_cases(testbed, "rsnic", program.wait(testbed.left(20)))
    settle()
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


# ---- congestion

test("congestion control: marked packets slow their QP down", limit_s=120, tier=ALL)(congestion.marked)


@test("congestion control is of each QP: one of two is slowed down")
def each_qp(testbed):
    """The least rate is 40 Mbit/s, and increases are next to none. The PSNs are those of the program's second QP."""
    before = testbed.counter(testbed.client, "rp_cnp_handled")
    with congestion.controlled(testbed, min_rate=40, increase_period=1000000, increase_bytes=1 << 31,
                               alpha_period=1000000), \
            impairment(testbed, "mark,rate=50%,dir=tx,psn=0x800000-0x80ffff") as done:
        run_program(testbed, "rsnic", over_link(testbed), "-- '=congestion control of each QP'")
    heeded = testbed.counter(testbed.client, "rp_cnp_handled") - before
    expect(done.get("marked", 0) > 100 and heeded > 0, f"marks made: {done}, notifications heeded: {heeded}")


# ---- failures, and the driver that goes

def syndromes(testbed, seen=0):
    """The syndromes that the kernel log has, behind so many records."""
    return [match[1] for record in testbed.guest.kmsg()[seen:]
            if (match := re.search(r"health syndrome (\S+ \(0x\w+\))$", record.text))]


@test("a failure tells its health syndrome", expected_log=(r"health syndrome HW_FATAL_ERR \(0x8\)", FAILED))
def health(testbed):
    seen = len(testbed.guest.kmsg())
    testbed.guest.qmp("qom-set", path=HCA, property="fail", value="now")
    testbed.wait_until(lambda: syndromes(testbed, seen), "the syndrome in the log")
    bring_back(testbed, testbed.client)
    expect(syndromes(testbed, seen) == ["HW_FATAL_ERR (0x8)"], f"syndromes: {syndromes(testbed, seen)}")


@test("a failure while commands are under way", limit_s=90,
      expected_log=(r"health syndrome ICM_FETCH_PCI_ERR \(0xa\)$", FAILED,
                    r"command \w+ \(0x\w+\), modifiers \w+ \w+: INTERNAL_ERR \(0x1\)$"))
def failure_under_commands(testbed):
    """Each command ends with an error, nothing hangs, and the driver's next start brings the device back."""
    side = testbed.client
    seen = len(testbed.guest.kmsg())
    program = start_threads(testbed, "QPs come and go until the device fails")
    testbed.guest.qmp("qom-set", path=HCA, property="fail", value="ICM_FETCH_PCI_ERR")
    take_cases(testbed, "rsnic", program.wait(testbed.left(20)))
    expect_no_qp(testbed, side)
    said = [record.text for record in testbed.guest.kmsg()[seen:] if "fatal error" in record.text]
    expect(len(said) == 1 and syndromes(testbed, seen) == ["ICM_FETCH_PCI_ERR (0xa)"],
           f"the log: {said}, {syndromes(testbed, seen)}")
    bring_back(testbed, side)
    expect(testbed.guest.qmp("qom-get", path=HCA, property="fail") == "ok", "the device is still silent")


# As in badinput.py.
test("driver unbound under traffic, and bound", limit_s=120, ends_lockdep=True)(badinput.unbind_under_traffic)
test("rmmod under traffic", limit_s=120, expected_log=badinput.RELOADED, ends_lockdep=True,
     tier=ALL)(badinput.rmmod_under_traffic)
