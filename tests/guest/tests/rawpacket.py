# SPDX-License-Identifier: GPL-2.0-or-later
"""Raw packet QPs, flows and RSS: programs/rawpacket.c, programs/rss.c, and the programs of perftest that send frames.

perftest's two ends of this kind do not speak with each other: who receives must be there first, and have
receives for all that comes.
"""

import re
import time

from hghca_lib.tiers import ALL

import perftest
from data import over_link, run_program, to_itself
from framework import CACHE, IOMMU, expect, gate_if, succeeded, tail, test
from perftest import DURATION_S, duration_column, figure_column, figures, is_bandwidth
from recorder import NONE

# The programs make their frames themselves, with UDP checksums that are no matter to them.
OURS = {"subjects": ("hghca",), "limit_s": 120, "checked": NONE}


@test("raw packets: all, an HCA to itself", **OURS)
def by_itself(testbed):
    run_program(testbed, "rawpacket", f"plain {to_itself(testbed)}")


@test("raw packets: all, over the link", **OURS)
def through_the_link(testbed):
    run_program(testbed, "rawpacket", f"plain {over_link(testbed)}")


@test("raw packets: all, over the link, extended", **OURS)
def through_the_link_extended(testbed):
    run_program(testbed, "rawpacket", f"extended {over_link(testbed)}")


@test("raw packets: all, behind an IOMMU", machine=IOMMU, **OURS)
def behind_an_iommu(testbed):
    run_program(testbed, "rawpacket", f"extended {over_link(testbed)}")


@test("raw packets: all, four contexts on chip", machine=CACHE, tier=ALL, **OURS)
def with_few_contexts(testbed):
    run_program(testbed, "rawpacket", f"plain {over_link(testbed)}")


# Program: the options of a run. Bursts are of a limited rate: raw_ethernet_burst_lat asks for the static rate of an
# InfiniBand link, which no Ethernet port gives it, and then keeps to the rate by itself. Its other options:
# -Q 1: of a list of sends that it posts, each -Qth is signaled. Its lists are of one send; with -Q 100, the default,
#   none is ever signaled, and the client, which waits for the completions of all, never ends.
# -t, not less than COUNT: the server leaves out its answer while as many are under way; the client waits for each.
# --wait_destroy: the server ends with the last frame that it receives, and does not wait for its answers to be sent
#   before it destroys their QP.
PERFTEST = {
    "raw_ethernet_bw": "-s 1024",
    "raw_ethernet_lat": "-s 64",
    "raw_ethernet_burst_lat": "-s 64 -t 1024 -Q 1 --rate_limit=10 --rate_units=g --burst_size=100 --wait_destroy=1",
}
COUNT, RECEIVES = 1000, 1024
# Both ends of a latency poll, and so does the device: each answer may wait for a processor of the host.
COUNT_LATENCY = 200
# From the state of its QP, which can be seen, to the receives that it posts next, which cannot.
POSTS_S = 1
# What a client of bursts says that did not learn how fast the processor's clock goes (perftest.CLOCK_UNKNOWN). It ends
# then before its first frame, so the server can wait for another one.
NO_CLOCK, CLOCK_TRIES = "couldn't acquire cpu frequency", 3


def mac(testbed, side):
    found = testbed.run(f"cat /sys/class/infiniband/{side.device}/device/net/*/address", side).strip()
    expect(re.fullmatch(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}", found), f"{side.device} has the address {found}")
    return found


# What frames have besides MAC addresses: those of IPv4 or IPv6, ports of UDP or, with --tcp, of TCP. The server's flow
# names them all, with -T the type of service too; the flow of a client, which has frames with raw_ethernet_lat and with
# -b, names the ports. The tag of a VLAN is in no flow. With IPv6 and ports the payload length in the header is wrong,
# which no flow looks at.
IPV4 = "-J {server} -j {client}"
IPV6 = "--raw_ipv6 -J fd00::2 -j fd00::1"
PORTS = "-K 5001 -k 6001"
# Of as many QPs as -q says each has a copy of each frame, as their flows are the same.
MANY_QPS, MANY_COUNT = 16, 100
SPECIFIED = [
    ("IPv4", "raw_ethernet_bw", f"-s 1024 {IPV4}"),
    ("IPv6, UDP", "raw_ethernet_bw", f"-s 1024 {IPV6} {PORTS}"),
    ("TCP, -T 32", "raw_ethernet_bw", f"-s 1024 {IPV4} {PORTS} --tcp -T 32"),
    ("UDP, 16 flows", "raw_ethernet_bw", f"-s 1024 {IPV4} {PORTS} --flows 16"),
    ("UDP, VLAN", "raw_ethernet_bw", f"-s 1024 {IPV4} {PORTS} --vlan_en"),
    ("UDP, -b", "raw_ethernet_bw", f"-s 1024 {IPV4} {PORTS} -b"),
    ("-m 4000", "raw_ethernet_bw", "-s 4000 -m 4000"),
    ("UDP", "raw_ethernet_lat", f"-s 64 {IPV4} {PORTS}"),
    ("TCP, VLAN", "raw_ethernet_lat", f"-s 1024 {IPV4} {PORTS} --tcp --vlan_pcp=5"),
    ("IPv6, UDP, 4 flows", "raw_ethernet_lat", f"-s 128 {IPV6} {PORTS} --flows 4"),
]


def receiving(testbed, side):
    """How many raw packet QPs of a side are in RTR or RTS."""
    return len(re.findall(r"type RAW_PACKET .*state RT[RS]|state RT[RS] .*type RAW_PACKET",
                          testbed.ask(side, "rdma resource show qp")))


def run_client(testbed, command):
    """A client that must succeed; its Result."""
    for _ in range(CLOCK_TRIES):
        result = testbed.try_run(command)
        if not (result.status and NO_CLOCK in result.stderr):
            break
    return succeeded(command, result)


def raw_command(testbed, role, program, options):
    """The command line of an end: of the server's side for `server`, of the client's for `client`."""
    side, peer = (testbed.server, testbed.client) if role == "server" else (testbed.client, testbed.server)
    options = options.format(server=testbed.server.address, client=testbed.client.address)
    return f"{program} --{role} -d {side.device} -B {mac(testbed, side)} -E {mac(testbed, peer)} -F -r {RECEIVES} " \
        f"{options}"


def start_servers(testbed, commands, qps):
    """Servers that receive, with so many QPs together."""
    serving = [testbed.start(command, testbed.server) for command in commands]
    testbed.wait_until(lambda: receiving(testbed, testbed.server) == qps or
                       not all(server.running() for server in serving), "servers that receive")
    time.sleep(POSTS_S * testbed.slowness)
    for server in serving:
        expect(server.running(), f"a server ended early: {tail(server.output)}")
    return serving


def raw_perftest(testbed, program, options, count=None, qps=1):
    """One run, whose frames the device must have sent here and steered there."""
    count = count or (COUNT if is_bandwidth(program) else COUNT_LATENCY)
    counters = [(testbed.client, "raw_tx_packets"), (testbed.server, "flow_rx_packets")]
    before = [testbed.counter(*counter) for counter in counters]
    options += f" -n {count}" + (f" -q {qps}" if qps > 1 else "")
    command = raw_command(testbed, "server", program, options)
    server, = start_servers(testbed, [command], qps)
    client = run_client(testbed, raw_command(testbed, "client", program, options))
    found = figures(program, (succeeded(command, server.wait(testbed.left(20))), client))
    expect(len(found) == 1 and found[0][1] == count * qps, f"rows {found}: {tail(client.output)}")
    moved = [testbed.counter(*counter) - old for counter, old in zip(counters, before)]
    expect(min(moved) >= count * qps, f"{moved} frames of {count * qps} were sent and steered")
    testbed.note(f"{found[0][0]:.0f} B: {found[0][figure_column(program)]:g}")


for tool, tool_options in PERFTEST.items():
    test(f"raw packets: {tool}", lambda testbed, run=(tool, tool_options): raw_perftest(testbed, *run), **OURS)

# Each of what a flow rule can name once.
OF_THE_GATE = ("IPv6, UDP", "TCP, -T 32", "UDP, VLAN")
for case_name, tool, tool_options in SPECIFIED:
    test(f"raw packets: {tool}, {case_name}", lambda testbed, run=(tool, tool_options): raw_perftest(testbed, *run),
         tier=gate_if(case_name in OF_THE_GATE), **OURS)


@test(f"raw packets: raw_ethernet_bw, -q {MANY_QPS}", tier=ALL, **OURS)
def many_qps(testbed):
    raw_perftest(testbed, "raw_ethernet_bw", PERFTEST["raw_ethernet_bw"], MANY_COUNT, MANY_QPS)


@test(f"raw packets: raw_ethernet_bw and raw_ethernet_lat at once, -D {DURATION_S}", tier=ALL, **OURS)
def raw_for_a_time(testbed):
    """Their frames are told from each other by their ports."""
    runs = [("raw_ethernet_bw", f"-D {DURATION_S} -s 1024 {IPV4} {PORTS}"),
            ("raw_ethernet_lat", f"-D {DURATION_S} -s 64 {IPV4} -K 7001 -k 8001")]
    servers = start_servers(testbed, [raw_command(testbed, "server", *run) for run in runs], len(runs))
    clients = [testbed.start(raw_command(testbed, "client", *run)) for run in runs]
    for (program, options), server, client in zip(runs, servers, clients):
        ends = [succeeded(program, end.wait(testbed.left())) for end in (server, client)]
        found = figures(program, ends, duration_column(program))
        expect(len(found) == 1 and found[0][1] > 0, f"{program} {options}: rows {found}")
        testbed.note(f"{program}: {found[0][1]:.0f} iterations, {found[0][duration_column(program)]:g}")


# So many in so many runs are more than the HCA has room for at a time: each run must leave none behind.
FLOWS, FLOW_RUNS = 1000, 5
# The least time, the most, the typical and the average, and how many in a second.
FLOW_FIGURES = rf"^{FLOWS}[ \t]+({perftest.NUMBER}(?:[ \t]+{perftest.NUMBER}){{4}})[ \t]*$"


@test("raw packets: raw_ethernet_fs_rate", **OURS)
def flow_rate(testbed):
    """Flows of one QP, each for another port of UDP; the figures are how long it takes to make one."""
    side, peer = testbed.server, testbed.client
    command = (f"raw_ethernet_fs_rate --server -d {side.device} -F -n {FLOWS} --local_mac {mac(testbed, side)} "
               f"--local_ip {side.address} --remote_ip {peer.address} --local_port 10000 --remote_port 20000")
    for _ in range(FLOW_RUNS):
        said = succeeded(command, testbed.try_run(command, side))
        expect("Couldn't" not in said.output, f"not all flows were made and destroyed: {tail(said.output)}")
        row = re.search(FLOW_FIGURES, said.stdout, re.MULTILINE)
        expect(row, f"no result: {tail(said.output)}")
        rate = float(row.group(1).split()[-1])
        expect(rate > 0 or perftest.CLOCK_UNKNOWN in said.stderr, f"no rate: {tail(said.output)}")
        testbed.note(f"{rate:.0f} flows a second")
