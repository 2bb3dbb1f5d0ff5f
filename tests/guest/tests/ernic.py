# SPDX-License-Identifier: GPL-2.0-or-later
"""An ERNIC, or an ETRNIC, and a JingZhao HCA on one link.

A virtio network adapter with the same MAC address is the Ethernet half of the port of an ERNIC. A message of a SEND fits
into a slot of its receive queue, which has 4096 bytes.

The kernel's users of storage register memory by work requests, which an ERNIC does not support: it is a target.
"""

import contextlib
import shlex

import framework
import iser
import lio
import nfs

from badinput import OVERRUN
from congestion import ROCE_PRIORITY
from data import huge_pages, over_link, run_program
from framework import ALL, ERNIC, ERNIC_BASE, ERNIC_PAUSES, ERNIC_RXE, ERNIC_VMS, ETRNIC, ETRNIC_VMS, GATE, expect
from interop import turned
from kernel_users import NVME, WITHOUT_HOST, connected, no_host, reconnect, target
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping
from rsnic import ends
from storage import FIO, MIXED, files_on, fio, write_and_compare
from users import check_fast, fast

OURS = {"machine": ERNIC, "subjects": ("hghca",), "kernels": ("stock", "debug")}
SLOT_BYTES = 4096


def test(name, **options):
    return framework.test(f"ernic: {name}", **{**OURS, **options})


@contextlib.contextmanager
def ernic_asks(testbed):
    """As long as the block, the ERNIC is the client. A program that has both ends finds the HCA in a namespace by its name."""
    testbed.guest.run("test -e /run/netns/first || ip netns attach first 1")
    with turned(testbed):
        yield


def program(testbed, name, without=()):
    """All cases of a program with both ends, but for those with these parts of their names."""
    run_program(testbed, name, over_link(testbed), f"-- {' '.join(shlex.quote(f'!{part}') for part in without)}")


def pingpongs(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 1024", SLOT_BYTES, 200)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 4096", 1000, 200)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 256", 1, 200)


@test("pingpong with data, polling and by events", debug_tier=GATE, lines=True)
def serves(testbed):
    pingpongs(testbed)


def refused(testbed, side):
    """(UDP datagrams to ports where nobody listens, ICMP messages about these) in the namespace of a side, over IPv4."""
    lines = [line.split() for line in testbed.run("cat /proc/net/snmp", side).splitlines()]
    counts = {line[0]: dict(zip(line[1:], after[1:])) for line, after in zip(lines[::2], lines[1::2])}
    return int(counts["Udp:"]["NoPorts"]), int(counts["Icmp:"]["OutDestUnreachs"])


def refused_ipv6(testbed, side):
    """The same over IPv6."""
    counts = dict(line.split() for line in testbed.run("cat /proc/net/snmp6", side).splitlines())
    return int(counts["Udp6NoPorts"]), int(counts["Icmp6OutDestUnreachs"])


def link_local(testbed, side):
    line = testbed.run(f"ip -6 -brief address show dev {side.netdev} scope link", side)
    return line.split()[2].split("/")[0]


def not_refused(testbed, gid, counts, address):
    sides = (testbed.client, testbed.server)
    before = [counts(testbed, side) for side in sides]
    pingpong(testbed, "ibv_rc_pingpong", gid, "-m 1024", SLOT_BYTES, 50)
    after = [counts(testbed, side) for side in sides]
    expect(after == before, f"{gid}: (NoPorts, OutDestUnreachs) of both sides: {before} before, {after} after")
    # The port below is another one: the kernel has its datagram.
    testbed.run(f"bash -c 'echo x > /dev/udp/{address}/4790'", testbed.client)
    ports, messages = before[1]
    testbed.wait_until(lambda: counts(testbed, testbed.server) == (ports + 1, messages + 1),
                       f"{gid}: a datagram to another port is refused")


@test("no packet of RoCE v2 gets to the network adapter behind an ERNIC")
def steering(testbed):
    not_refused(testbed, "ipv4", refused, testbed.server.address)
    not_refused(testbed, "link-local", refused_ipv6,
                f"{link_local(testbed, testbed.server)}%{testbed.client.netdev}")


def paused(testbed, counts):
    """What the ERNIC has counted while WRITEs of 64 KiB go to the server."""
    before = counts()
    perftest(testbed, "ib_write_bw", "-m 4096", 200)
    return {name: count - before[name] for name, count in counts().items()}


@test("pause frames, in either direction", machine=ERNIC_PAUSES, tier=ALL, limit_s=120)
def pauses(testbed):
    """Each end takes packets more slowly than the other sends them. Without pause frames, some are lost and sent again."""
    hca, ernic = testbed.sides
    names = ("rx_buffer_overflow", "tx_pause", "rx_pause")

    def of_hca():
        return {name: testbed.counter(hca, name) for name in names}

    def of_ernic():
        stats = testbed.guest.qmp("qom-get", path="/machine/peripheral/hca2", property="stats")
        return {name: stats[name] for name in names}

    lossy = paused(testbed, of_ernic)
    expect(lossy["rx_buffer_overflow"] > 0 and lossy["tx_pause"] == 0, f"without pause frames: {lossy}")
    testbed.run(f"python3 /share/ernicpause.py {ernic.pci} {ROCE_PRIORITY}", ernic)
    testbed.run(f"dcb pfc set dev {hca.netdev} prio-pfc {ROCE_PRIORITY}:on", hca)
    obeyed = of_hca()["rx_pause"]
    calm = paused(testbed, of_ernic)
    expect(calm["rx_buffer_overflow"] == 0 and calm["tx_pause"] > 0, f"with pause frames: {calm}")
    expect(of_hca()["rx_pause"] > obeyed, "the HCA has obeyed no pause frame")
    obeyed = of_ernic()["rx_pause"]
    with ernic_asks(testbed):
        calm = paused(testbed, of_hca)
    expect(calm["rx_buffer_overflow"] == 0 and calm["tx_pause"] > 0, f"the ERNIC sends: {calm}")
    expect(of_ernic()["rx_pause"] > obeyed, "the ERNIC has obeyed no pause frame")


@test("pingpong with data, the ERNIC begins")
def asks(testbed):
    with ernic_asks(testbed):
        pingpongs(testbed)


@test("perftest: WRITE, READ and SEND", limit_s=120)
def figures(testbed):
    for program, options, count in (("ib_write_bw", "-s 65536", 200), ("ib_read_bw", "-s 65536 -o 4", 200),
                                    ("ib_send_bw", "-s 4096 -r 32", 200), ("ib_write_lat", "-s 8", 200),
                                    ("ib_read_lat", "-s 8 -o 4", 200), ("ib_send_lat", "-s 8", 200)):
        found = perftest(testbed, program, options, count)
        expect(len(found) == 1, f"{program} {options}: {found}")
        testbed.note(f"{program} {options}: {found[0][3:]}")
        with turned(testbed):
            found = perftest(testbed, program, options, count)
            expect(len(found) == 1, f"{program} {options}, the ERNIC asks: {found}")
            testbed.note(f"{program} {options}, the ERNIC asks: {found[0][3:]}")


# Atomics; messages for which the driver has no buffer, of two pieces of 1 GiB.
NO_DATA = ("atomics", "longest")


@test("data: all operations, sizes and shapes, over the link", limit_s=150, aliases=True)
def data_to_ernic(testbed):
    with huge_pages(testbed):
        program(testbed, "datacheck", NO_DATA)


@test("data: all operations, sizes and shapes, the ERNIC asks", limit_s=150, aliases=True)
def data_from_ernic(testbed):
    with ernic_asks(testbed), huge_pages(testbed):
        program(testbed, "datacheck", NO_DATA)


# There are no atomics and no UD. An R_Key names one entry, of which the rights are those of a region, and the hardware
# knows no rights of a QP.
NO_CASES = ("atomic", "datagram", "QP without REMOTE_")


# The HCA's driver tells of a CQ that runs over.
@test("bad input: work requests that must fail, over the link", limit_s=120, expected_log=OVERRUN)
def bad_verbs_to_ernic(testbed):
    program(testbed, "badverbs", NO_CASES)


# The driver checks the memory of a READ before the peer does. The kernel's uverbs checks the opcodes of a list before it
# posts the first.
@test("bad input: work requests that must fail, the ERNIC asks", limit_s=120)
def bad_verbs_from_ernic(testbed):
    with ernic_asks(testbed):
        program(testbed, "badverbs", ("atomic", "datagram", "then wrong rkey", "refused when posted"))


@test("isolation, invalidation, and what the hardware lacks", limit_s=120)
def isolation(testbed):
    with ernic_asks(testbed):
        program(testbed, "ernic")


@test("the CM: rping -V", debug_tier=GATE)
def connections(testbed):
    rping(testbed, "-S 4000", 100)
    with turned(testbed):
        rping(testbed, "-S 4000", 100)
    with ends(testbed, testbed.server, testbed.server):
        rping(testbed, "-S 4000", 20)


def endless(testbed, program, server, client):
    """Start traffic that does not end; (server, client) once packets flow."""
    port = testbed.next_port()

    def command(side):
        return f"exec {program} -d {side.device} -x {side.gid('ipv4')} -F -D 600 -p {port}"

    serving = testbed.start(command(server), server)
    testbed.wait_listening(port, server, serving, "tcp")
    hca = testbed.sides[0]
    before = testbed.counter(hca, "tx_packets")
    asking = testbed.start(f"{command(client)} {server.address}", client)
    testbed.wait_until(lambda: testbed.counter(hca, "tx_packets") > before + 500, f"traffic of {program}")
    expect(serving.running() and asking.running(), f"{program} ended early: {serving.output[-400:]}{asking.output[-400:]}")
    return serving, asking


def goes_and_comes(testbed, away, back):
    """The ERNIC goes under traffic, in either direction, and works when it has come back."""
    ernic = testbed.sides[1]
    for program, server, client in (("ib_write_bw -s 4096", *testbed.sides), ("ib_read_bw -s 4096 -o 4", *testbed.sides),
                                    ("ib_write_bw -s 4096", *reversed(testbed.sides)),
                                    ("ib_send_bw -s 1024 -r 32", *reversed(testbed.sides))):
        programs = endless(testbed, program, server, client)
        testbed.run(away.format(pci=ernic.pci))
        for each in programs:
            each.kill()
            each.wait(10)
        testbed.run(back.format(pci=ernic.pci))
        testbed.configure(ernic)
        pingpongs(testbed)


LOADED = (r"ernic: (loading out-of-tree|module verification)",)


@test("rmmod under traffic, and insmod", limit_s=120, expected_log=LOADED)
def module_goes(testbed):
    goes_and_comes(testbed, "rmmod ernic", "insmod /opt/hghca/ernic.ko")


@test("driver unbound under traffic, and bound", limit_s=120, tier=ALL)
def driver_goes(testbed):
    goes_and_comes(testbed, "echo {pci} > /sys/bus/pci/drivers/ernic/unbind", "echo {pci} > /sys/bus/pci/drivers/ernic/bind")


# Without PAGES, the pages of a region must be contiguous on the bus, which the IOMMU makes them. Without RECORDS, the length of
# a message is not known, so programs that compare it do not run on it.
@test("an ERNIC without extensions", machine=ERNIC_BASE, tier=ALL)
def without_extensions(testbed):
    pingpongs(testbed)
    with ernic_asks(testbed):
        pingpongs(testbed)
        run_program(testbed, "ernic", over_link(testbed), "-- 'isolation' 'invalidated' 'immediate'")


# It takes SENDs alone of its peer, so programs that let the peer WRITE or READ do not run on it.
@test("pingpong with an ETRNIC", machine=ETRNIC, tier=ALL)
def etrnic(testbed):
    pingpongs(testbed)
    with turned(testbed):
        pingpongs(testbed)


# ----------------------------------------------------------------------
# Targets of storage

# An NVMe command has 64 bytes, which the data that comes with it follows.
WITH_COMMAND = 2048
# All sizes of data that come with the command, and longer data, which the target reads.
SHORT = "--rw=randwrite --bsrange={sector}-16k --iodepth=32 --io_size=8M"


@contextlib.contextmanager
def loaded(testbed, side, parameters):
    """The ERNIC's driver with other parameters."""
    def load(parameters):
        testbed.run(f"rmmod ernic && insmod /opt/hghca/ernic.ko {parameters}", side)
        testbed.configure(side)

    load(parameters)
    try:
        yield
    finally:
        load("")


@contextlib.contextmanager
def nvme(testbed, inline=WITH_COMMAND):
    """The disk of a target on the ERNIC, at the HCA."""
    host, server = testbed.sides
    with target(testbed, server, inline), connected(testbed, host, server.address, "-i 2 -Q 64") as disk:
        before = fast(testbed, host)
        yield disk
        check_fast(testbed, host, before, 32)


def verify(testbed, *jobs, inline=WITH_COMMAND):
    with nvme(testbed, inline) as disk:
        for job in jobs:
            fio(testbed, testbed.client, disk, job)


TARGET = {**NVME, "machine": ERNIC_VMS}


@test("a target, NVMe over Fabrics, fio", **TARGET)
def mixed(testbed):
    verify(testbed, FIO[MIXED])


@test("a target, NVMe over Fabrics, fio, data with the command", tier=ALL, **TARGET)
def short(testbed):
    verify(testbed, SHORT)


@test("a target, NVMe over Fabrics, ten connections", tier=ALL, **TARGET)
def connections_again(testbed):
    reconnect(testbed, *testbed.sides, WITH_COMMAND)


@test("a target, NVMe over Fabrics, data written, read and compared", tier=ALL, **TARGET)
def compared(testbed):
    with nvme(testbed) as disk:
        write_and_compare(testbed, testbed.client, testbed.server, disk)


@test("a target, NVMe over Fabrics, files", tier=ALL, **{**TARGET, "kernels": ("stock",)})
def files(testbed):
    with nvme(testbed) as disk:
        files_on(testbed, testbed.client, disk)


@test("a target, NVMe over Fabrics, 16 KiB with the command", tier=ALL, **TARGET)
def long_slots(testbed):
    """Slots for as much as nvmet takes with a command where nobody tells it otherwise."""
    with loaded(testbed, testbed.server, f"slot_bytes={(16 << 10) + 256}"):
        verify(testbed, SHORT, FIO[MIXED], inline=16 << 10)


@test("a target, iSER", machine=ERNIC_VMS, tier=ALL, **lio.SCSI)
def scsi(testbed):
    """The initiator sends up to 8192 bytes of data with a command, behind headers of 76.

    The target invalidates no key of the host, which does so before it uses the key again.
    """
    host, server = testbed.sides
    with loaded(testbed, server, f"slot_bytes={(8 << 10) + 256}"), iser.PROTOCOL.disk(testbed, host, server) as disk:
        registered, _ = fast(testbed, host)
        fio(testbed, host, disk, FIO[MIXED])
        files_on(testbed, host, disk)
        expect(fast(testbed, host)[0] - registered >= 32, "the transfers are not registered")


@test("a target, NFS over RDMA", machine=ERNIC_VMS, tier=ALL, **nfs.OURS)
def network_files(testbed):
    nfs.copy_and_compare(testbed, *testbed.sides, "NFSv4.2")


@test("a target with rxe as the host, NVMe over Fabrics, fio", tier=ALL,
      **{**NVME, "machine": ERNIC_RXE, "kernels": ("stock",)})
def rxe_host(testbed):
    verify(testbed, SHORT, FIO[MIXED])


@test("no NVMe host", tier=ALL, **{**WITHOUT_HOST, "machine": ERNIC_VMS})
def never_host(testbed):
    no_host(testbed, testbed.server, testbed.client.address)


@test("a target with an ETRNIC, NVMe over Fabrics, fio", tier=ALL, **{**NVME, "machine": ETRNIC_VMS})
def etrnic_target(testbed):
    """Without SEND with Invalidate: the host invalidates its keys."""
    with loaded(testbed, testbed.server, "plain_send=1"):
        verify(testbed, SHORT, FIO[MIXED])
