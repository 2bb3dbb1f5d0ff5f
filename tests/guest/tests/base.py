# SPDX-License-Identifier: GPL-2.0-or-later
"""HCAs that lack extensions: the base device, which has none of them, and HCAs without one of them each.

A virtio network adapter with the same MAC address is the Ethernet half of the port of such an HCA.
"""

import shlex

import badinput
import framework
import hardware
from hghca_lib.tiers import ALL

from data import over_link, run_program, to_itself
from framework import BASE, BASE_RXE, LINK, MIXED, PAIRED, RSNIC_PAIRED, expect
from interop import turned
from kernel_users import WITHOUT_HOST, no_host
from perftest import perftest
from pingpong import pingpong
from rdmacm import rping, ucmatose, udaddy

OURS = {"subjects": ("hghca",)}
# By their bits; interface document, 4.2.
CAPABILITIES = ("GID_TABLE", "DBR", "CQ_ARM", "CQ_UPDATE", "PORT", "QP_LIMITS", "STATS", "SRQ", "UC", "MEM_MGT", "XRC",
                "MULTICAST", "QP_COUNTERS", "RAW_PACKET", "CLOCK", "MODERATION", "PLACEMENT", "ODP", "DEVICE_MEMORY", "RSS",
                "CONGESTION", "FLOW_CONTROL", "FIRST_BYTE", "VENDOR_OPS", "SYNC_COMMANDS",
                "INLINE_MTTS", "RQ_OFFSET", "STATUS_RECORD")
EVERY_CAPABILITY = (1 << 32) - 1
OF_FULL = set(CAPABILITIES) - {"VENDOR_OPS"}
# docs/reference/rsnic.rst, 6.
OF_RSNIC = set(CAPABILITIES) - {"SRQ", "UC", "MEM_MGT", "XRC", "MULTICAST", "PLACEMENT", "ODP", "DEVICE_MEMORY", "RSS",
                               "SYNC_COMMANDS", "STATUS_RECORD"}
# What else users lose; docs/reference/capabilities.md.
NEEDS = {"PORT": {"DBR", "CQ_ARM", "CQ_UPDATE"}, "RAW_PACKET": {"PORT"}, "RSS": {"RAW_PACKET"}, "XRC": {"SRQ"},
         "MODERATION": {"CQ_ARM"}, "QP_COUNTERS": {"STATS"}, "STATUS_RECORD": {"SYNC_COMMANDS"}}


def test(name, **options):
    return framework.test(f"base: {name}", **{"machine": BASE, **OURS, **options})


@test("pingpong of RC, UC and UD, polling and by events")
def pingpongs(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 100)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 1024", 100003, 100)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-N -m 1024", 100003, 50)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-r 1 -m 4096", 65536, 100)
    pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-m 4096", 100003, 100)
    pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-e -m 1024", 1, 300)
    pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 2048, 500)
    pingpong(testbed, "ibv_ud_pingpong", "ipv4", "-e", 2048, 300)


@test("the CM: rping -V, ucmatose, udaddy")
def connections(testbed):
    rping(testbed, "-S 20000", 200)
    ucmatose(testbed, testbed.server.address)
    udaddy(testbed, testbed.server.address)


# Most sends of the bandwidth programs are unsignaled.
@test("perftest: bandwidths and latencies", limit_s=150, tier=ALL)
def figures(testbed):
    for program, options, count in (("ib_write_bw", "-s 65536", 500), ("ib_read_bw", "-s 65536 -o 1", 300),
                                    ("ib_send_bw", "-s 65536", 500), ("ib_send_bw", "-c UD -s 2048", 1000),
                                    ("ib_write_bw", "-q 16 -s 4096", 200), ("ib_send_bw", "-e -s 4096", 500),
                                    ("ib_write_lat", "-s 8", 500), ("ib_read_lat", "-s 8 -o 1", 500),
                                    ("ib_send_lat", "-s 8", 500), ("ib_send_lat", "-c UD -s 8", 500),
                                    ("ib_atomic_lat", "-o 1", 300)):
        found = perftest(testbed, program, options, count)
        expect(len(found) == 1, f"{program} {options}: {found}")
        testbed.note(f"{program} {options}: {found[0][3:]}")


@test("data: operations and shapes that need no extension", limit_s=150, aliases=True)
def data(testbed):
    run_program(testbed, "datacheck", to_itself(testbed), "-- send immediate =write =read gather inline atomics", timeout=140)


def usable(capabilities):
    """Those of the capabilities that the driver uses."""
    found = {name for name in capabilities if NEEDS.get(name, set()) <= capabilities}
    return found if found == capabilities else usable(found)


def check_lost(testbed, capabilities):
    """All that docs/reference/capabilities.md has of HCAs that advertise these."""
    mask = sum(1 << CAPABILITIES.index(name) for name in usable(capabilities))
    run_program(testbed, "lacking", f"{to_itself(testbed)} {mask:#x}")


@test("what the device lacks is refused")
def lacking(testbed):
    """Each with its error, and nothing else is the worse for it."""
    check_lost(testbed, set())
    for command, why in (("ibv_srq_pingpong", "SRQ"), ("ibv_xsrq_pingpong", "XRC domain"),
                         ("ibv_rc_pingpong -o", "on demand")):
        program, *options = command.split()
        done = testbed.try_run(f"{program} {' '.join(options)} -d {testbed.client.device} -g {testbed.client.gid('ipv4')} "
                               f"-p {testbed.next_port()}")
        expect(done.status not in (0, 124), f"{command}: {why}: {done.output[-300:]}")
    # There is no field for an IPv6 address.
    port = testbed.next_port()
    server = testbed.start(f"ibv_rc_pingpong -d {testbed.server.device} -g {testbed.server.gid('link-local')} -p {port}",
                           testbed.server)
    testbed.wait_listening(port, testbed.server, server)
    done = testbed.try_run(f"ibv_rc_pingpong -d {testbed.client.device} -g {testbed.client.gid('link-local')} -p {port} "
                           f"{testbed.server.address}")
    # The server connects its QP first.
    said = server.wait(testbed.left(20))
    expect(done.status not in (0, 124) and "RTR" in said.output, f"IPv6: {done.output[-300:]}{said.output[-300:]}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


# Shows that each case of the test above can fail.
@test("what the device lacks is not refused by a full HCA", machine=LINK)
def full(testbed):
    check_lost(testbed, OF_FULL)


# Parts of the names of the cases of programs/badverbs.c and programs/badcalls.c that need no extension.
BAD_VERBS = ("lkey", "rkey", "SGE", "of the MR", "MR without", "read into", "send", "receive", "request", "flush",
             "transitions", "datagram", "multiple of 8")
BAD_CALLS = ("posted in RESET", "receive queue", "inline data", "requests of the most", "datagrams", "READ", "QPs of unknown",
             "CQs of", "regions", "QP attributes", "invalid addresses", "ports", "ECE")


def bad_input(testbed, verbs, calls):
    for program, arguments, parts in (("badverbs", to_itself(testbed), verbs), ("badcalls", over_link(testbed), calls)):
        run_program(testbed, program, arguments, f"-- {' '.join(map(shlex.quote, parts))}")


@test("bad input: work requests that must fail, and calls that must be refused", limit_s=120)
def bad_input_of_base(testbed):
    bad_input(testbed, BAD_VERBS, BAD_CALLS)


# As in badinput.py.
test("driver unbound under traffic, and bound", limit_s=120, ends_lockdep=True)(badinput.unbind_under_traffic)
test("rmmod under traffic", limit_s=120, expected_log=badinput.RELOADED, ends_lockdep=True)(badinput.rmmod_under_traffic)


@test("the port follows the net device", expected_log=(r"link (becomes ready|is (down|up))",))
def port_follows(testbed):
    """Down and up, another MAC address and the same again, each with its event."""
    side = testbed.client
    watch = testbed.start(f"stdbuf -oL ibv_asyncwatch -d {side.device}", side)
    watch.wait_for("async event FD")

    def state(wanted):
        testbed.wait_until(lambda: f"state {wanted}" in testbed.run(f"rdma link show {side.device}/1"), f"the port {wanted}")

    for change, back in (("down", "up"), ("address 52:54:00:99:99:99", "address $mac")):
        mac = testbed.run(f"cat /sys/class/net/{side.netdev}/address").strip()
        testbed.run(f"ip link set {side.netdev} {change}")
        state("DOWN")
        testbed.run(f"mac={mac}; ip link set {side.netdev} {back}")
        state("ACTIVE")
    testbed.await_gids(side)
    watch.kill()
    said = watch.wait(10).output
    expect(said.count("PORT_ACTIVE") == 2 and said.count("PORT_ERR") == 2, f"events: {said}")
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 50)


@test("the port of a failed HCA is down", limit_s=60, expected_log=(hardware.FAILED,))
def failed_port(testbed):
    """Its net device is another adapter's, and stays up."""
    side = testbed.client
    testbed.guest.qmp("qom-set", path="/machine/peripheral/hca1", property="fail", value="now")
    testbed.wait_until(lambda: "state DOWN" in testbed.run(f"rdma link show {side.device}/1"), "the port down")
    expect("LOWER_UP" in testbed.run(f"ip link show {side.netdev}"), "the net device went down too")
    testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind; echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
    testbed.configure(side)
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 100003, 20)


@test("no NVMe host", tier=ALL, **WITHOUT_HOST)
def never_host(testbed):
    no_host(testbed, testbed.client, testbed.server.address)


# The gate has each of the two and rxe in two machines; the suite qtest has them on one link.
@test("with a full HCA in another machine", machine=MIXED, tier=ALL)
def mixed(testbed):
    def all_services():
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-m 4096", 1000003, 50)
        pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-e -m 1024", 100003, 50)
        pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 2048, 200)
        rping(testbed, "-S 20000", 50)
        found = perftest(testbed, "ib_write_bw", "-s 65536", 300)
        expect(len(found) == 1, f"rows: {found}")

    all_services()
    with turned(testbed):
        all_services()


@test("with rxe in another machine", machine=BASE_RXE, kernels=("stock",))
def with_rxe(testbed):
    def all_services():
        pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 4096", 1000003, 20)
        pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-e -m 1024", 10003, 50)
        pingpong(testbed, "ibv_ud_pingpong", "ipv4", "-e", 2048, 100)
        rping(testbed, "-S 20000", 20)

    all_services()
    with turned(testbed):
        all_services()


def probe_with(testbed, capabilities):
    """Probe both HCAs with these of their capabilities."""
    for number, side in enumerate(testbed.sides, 1):
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/unbind")
        testbed.guest.qmp("qom-set", path=f"/machine/peripheral/hca{number}", property="capabilities", value=capabilities)
        testbed.run(f"echo {side.pci} > /sys/bus/pci/drivers/hghca/bind")
        testbed.configure(side)


def release_adapters(testbed):
    """Adapters that were the Ethernet half of an HCA go back to where they were."""
    for side in testbed.sides:
        if testbed.try_run(f"test -e /sys/bus/pci/devices/{side.pci}/net").status:
            space = f"-n {side.netns}" if side.netns else ""
            testbed.guest.run(f"ip {space} link set {side.netdev} down; ip {space} address flush {side.netdev}; "
                              f"ip {space} link set {side.netdev} netns 1")


def each_absent(testbed, capabilities, short_test):
    """The driver finds each of the device's capabilities absent in turn, says so, and works without it."""
    try:
        for bit, name in enumerate(CAPABILITIES):
            if name not in capabilities:
                continue
            probe_with(testbed, EVERY_CAPABILITY & ~(1 << bit))
            check_lost(testbed, capabilities - {name})
            # One result for all.
            testbed.cases.clear()
            short_test(testbed)
            release_adapters(testbed)
            testbed.note(f"without {name}: good")
    finally:
        release_adapters(testbed)
        probe_with(testbed, EVERY_CAPABILITY)


def every_service(testbed):
    pingpong(testbed, "ibv_rc_pingpong", "ipv4", "-e -m 1024", 100003, 20)
    pingpong(testbed, "ibv_uc_pingpong", "ipv4", "-m 1024", 10003, 20)
    pingpong(testbed, "ibv_ud_pingpong", "ipv4", "", 1000, 50)
    connected(testbed)


def connected(testbed):
    rping(testbed, "-S 2000", 20)
    found = perftest(testbed, "ib_write_bw", "-s 4096", 300)
    expect(len(found) == 1, f"ib_write_bw: {found}")


@test("each extension alone absent", machine=PAIRED, limit_s=900, tier=ALL)
def full_without(testbed):
    each_absent(testbed, OF_FULL, every_service)


@test("each extension of RSNIC alone absent", machine=RSNIC_PAIRED, limit_s=600, tier=ALL)
def rsnic_without(testbed):
    each_absent(testbed, OF_RSNIC, connected)
