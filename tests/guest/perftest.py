# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: all its verbs on every transport, plain and with -a, -b, -R, -e, -q 16 and -q 128 where a program has them.

perftest looks at completions and times, never at the data. Multicast is in mcast.py, --use-srq in srq.py, frames in
rawpacket.py. What perftest cannot do is in README.md, and what it says then is in REFUSED. What is together with
something else (options at IPv6 GIDs, -m with another option) each has one program of its own, not all of them.
"""

import math
import re

from framework import expect, tail, test
from rdmacm import ipv6_addresses

# The options that the programs of perftest 25.01 have; `options of the programs` checks it against --help.
OPTIONS = {
    "ib_write_bw": "aRqb",
    "ib_write_lat": "aR",
    "ib_read_bw": "aReqb",
    "ib_read_lat": "aRe",
    "ib_send_bw": "aReqb",
    "ib_send_lat": "aRe",
    "ib_atomic_bw": "Reqb",
    "ib_atomic_lat": "Re",
}
UD = {"ib_send_bw": "aReqb", "ib_send_lat": "aRe"}
# What RC has shown of -e is not shown again.
UC = {"ib_write_bw": "aqb", "ib_write_lat": "a", "ib_send_bw": "aeqb", "ib_send_lat": "ae"}
# An SRQ of each end takes what XRC sends.
XRC = {program: "qb" if program == "ib_send_bw" else "" for program in OPTIONS}
TRANSPORTS = {"RC": OPTIONS, "UC": UC, "UD": UD, "XRC": XRC}
KNOWN_BY = {transport: ("hghca",) if transport == "XRC" else ("hghca", "rxe") for transport in TRANSPORTS}
VALUES = {"q": (" 16", " 128")}
ALL_SIZES = [1 << power for power in range(1, 24)]
UD_SIZES = [1 << power for power in range(1, 13)]
# Iterations: with -a the large sizes decide how long it takes. With -q it is those of each QP, and never less than QPs:
# an SRQ has as many receives as there are iterations.
COUNT, COUNT_ALL = 1000, 100
COUNT_QPS = {16: 200, 128: 150}
MTUS = (256, 512, 1024, 2048, 4096)


def is_bandwidth(program):
    return program.endswith("_bw")


def figure_column(program):
    """Where a row has its figure: the average in MiB/s, or the typical latency in us."""
    return 3 if is_bandwidth(program) else 4


NUMBER = r"(?:-?nan|-?inf|[\d.]+)"


def rows(output):
    """The result rows of a program: lists of numbers that start with bytes and iterations."""
    found = re.findall(rf"^ (\d+)\s+(\d+)\s+({NUMBER}(?:[ \t]+-?{NUMBER})*)[ \t]*$", output, re.MULTILINE)
    return [[float(number) for number in (size, count, *rest.split())] for size, count, rest in found]


# perftest asks how fast the processor's clock goes for each row anew, by 200 waits of 0.1 to 2.1 ms. One interruption
# of some ms between its two clocks' readings spoils that: it says so, and takes the clock to stand still. A bandwidth
# is 0 then, and a latency infinite. (A latency program asks once more before each row, for pauses that none asks for.)
CLOCK_UNKNOWN = "Correlation coefficient r^2: "


def without_figures(found, column, stderr):
    """The rows without a figure, but for those that perftest had no clock for, as it said on stderr.

    found: as rows() has them; column: where the figure is.
    """
    still = [row for row in found if not 0 < row[column] < math.inf]
    return still if len(still) > stderr.count(CLOCK_UNKNOWN) else []


def command(side, program, port, options, cm=False, gid="ipv4"):
    """The command line of a program on a side. The CM finds the GID by itself."""
    path = "" if cm else f"-x {side.gid(gid)}"
    return f"{program} -d {side.device} {path} -F -p {port} {options}"


def run(rig, program, options, server=None, client=None, address=None, **how):
    """One run between two sides; (server's Result, client's Result), both successes.

    address: the server's, when the ends are to meet over IPv6; how: as command() has it.
    """
    server, client = server or rig.server, client or rig.client
    port = rig.next_port()
    if address:
        options += " --ipv6-addr"
    commands = [command(side, program, port, options, **how) for side in (server, client)]
    return rig.pair(commands[0], f"{commands[1]} {address or server.address}", port, server, client)


def figures(program, ends, column=None):
    """The client's result rows, each with a figure but for what without_figures() says."""
    server, client = ends
    found = rows(client.stdout)
    unknown = without_figures(found, column or figure_column(program), client.stderr)
    said = f"client: {tail(client.output)}\nserver: {tail(server.output)}"
    expect(not unknown, f"rows without a figure: {unknown}\n{said}")
    return found


def perftest(rig, program, options, count, server=None, client=None, **how):
    """As run(), with a number of iterations; the rows of figures()."""
    return figures(program, run(rig, program, f"-n {count} {options}", server, client, **how))


def check(rig, program, connection, option="", **how):
    """The rows must be those asked for, with figures in a sensible order.

    option: one of the program's, with its value; "" for none. how: as run() has it.
    """
    options, sizes, count, qps = option, None, COUNT, 1
    if option == "-a":
        sizes, count = (UD_SIZES if connection == "UD" else ALL_SIZES), COUNT_ALL
    if option.startswith("-q"):
        qps = int(option.split()[1])
        count = COUNT_QPS[qps]
    if connection == "UD" and option != "-a":
        options += " -s 2048"
    elif qps == 128 and not program.startswith("ib_atomic"):
        options += " -s 4096"
    found = perftest(rig, program, f"-c {connection} {options}", count, cm=option == "-R", **how)
    if sizes:
        expect([row[0] for row in found] == sizes, f"sizes {[int(row[0]) for row in found]}, expected {sizes}")
    expect(len(found) == (len(sizes) if sizes else 1), f"{len(found)} result rows")
    for row in found:
        expect(row[1] == count * qps, f"{row[1]:.0f} iterations at {row[0]:.0f} bytes, expected {count * qps}")
        if not is_bandwidth(program):
            expect(row[2] <= row[4] <= row[3], f"min {row[2]}, typical {row[4]}, max {row[3]} us")
    unit = "MiB/s" if is_bandwidth(program) else "us typical"
    rig.note(", ".join(f"{row[0]:.0f} B: {row[figure_column(program)]:g}" for row in found) + f" {unit}")


def enter(program, connection, flags):
    """A test without an option, and one with each of the flags, with each of its values."""
    for option in ["", *(f"-{flag}{value}" for flag in flags for value in VALUES.get(flag, ("",)))]:
        test(f"perftest: {program} {connection} {option}".rstrip(),
             lambda rig, option=option: check(rig, program, connection, option), subjects=KNOWN_BY[connection])


for transport, tools in TRANSPORTS.items():
    for tool, tool_flags in tools.items():
        enter(tool, transport, tool_flags)


@test("perftest: options of the programs are those tested")
def options_match(rig):
    for program, flags in OPTIONS.items():
        text = rig.try_run(f"{program} --help").output
        offered = "".join(flag for flag in "aReqb" if re.search(rf"^\s+-{flag}, --", text, re.MULTILINE))
        expect(offered == flags, f"{program} offers -{' -'.join(offered)}, tested are -{' -'.join(flags)}")
        connections = re.search(r"--connection=<(.*?)>", text).group(1).split("/")
        tested = [name for name, programs in TRANSPORTS.items() if program in programs]
        # Those two are not of the InfiniBand specification.
        expect({*connections} - {"DC", "SRD"} == {*tested}, f"{program} offers {connections}, tested are {tested}")


for transport, tools in TRANSPORTS.items():
    for tool in tools:
        test(f"perftest: {tool} {transport}, IPv6",
             lambda rig, run=(tool, transport): check(rig, *run, gid="link-local"), subjects=KNOWN_BY[transport])

IPV6_OPTIONS = [
    ("ib_read_bw", "RC", "-a"), ("ib_send_bw", "UD", "-a"),
    ("ib_read_bw", "RC", "-b"), ("ib_send_bw", "UD", "-b"),
    ("ib_atomic_bw", "RC", "-e"), ("ib_send_bw", "UC", "-e"), ("ib_send_lat", "UD", "-e"),
    ("ib_send_bw", "XRC", "-q 16"), ("ib_send_bw", "UC", "-q 128"),
]
for tool, transport, tool_option in IPV6_OPTIONS:
    test(f"perftest: {tool} {transport} {tool_option}, IPv6",
         lambda rig, run=(tool, transport, tool_option): check(rig, *run, gid="link-local"),
         subjects=KNOWN_BY[transport])


def by_the_cm_over_ipv6(rig, program, connection):
    with ipv6_addresses(rig) as address:
        check(rig, program, connection, "-R", address=address)


for tool, transport in (("ib_read_bw", "RC"), ("ib_write_lat", "RC"), ("ib_send_bw", "UD"), ("ib_send_lat", "UD")):
    test(f"perftest: {tool} {transport} -R, IPv6",
         lambda rig, run=(tool, transport): by_the_cm_over_ipv6(rig, *run))

for transport in ("RC", "UC", "XRC"):
    for tool in ("ib_write_bw", "ib_write_lat"):
        test(f"perftest: {tool} {transport} --write_with_imm",
             lambda rig, run=(tool, transport): check(rig, *run, "--write_with_imm"), subjects=KNOWN_BY[transport])


MTU_BYTES, MTU_COUNT = 65536, 200
ATOMIC_BYTES = 8


def data_counter(rig, program):
    """Where the packets with data can be counted, as (side, counter): all else that this end sends is acknowledgements.

    They are counted where they leave, or, when that device has no such counter, where they come in; None when neither.
    """
    ends = [rig.client, rig.server]
    sender, receiver = ends[::-1] if program.startswith(("ib_read", "ib_atomic")) else ends
    if sender.counters:
        return sender, "tx_packets"
    return (receiver, "rx_packets") if receiver.counters else None


def with_mtu(rig, program, connection, mtu, more="", count=MTU_COUNT, **how):
    """A run with a path MTU, and that the data went in packets of that size.

    What an atomic moves has room in any packet, and a datagram is one. more: another option; how: as run() has it.
    """
    option, size = f"-s {MTU_BYTES}", MTU_BYTES
    if program.startswith("ib_atomic"):
        option, size = "", ATOMIC_BYTES
    elif connection == "UD":
        option, size = f"-s {mtu}", mtu
    counter = data_counter(rig, program)
    before = rig.counter(*counter) if counter else 0
    found = perftest(rig, program, f"-c {connection} -m {mtu} {option} {more}", count, cm=more == "-R", **how)
    expect(len(found) == 1 and found[0][0] == size, f"rows {found}, expected one of {size} bytes")
    rig.note(f"{program}: {found[0][figure_column(program)]:g} {'MiB/s' if is_bandwidth(program) else 'us typical'}")
    if counter:
        moved = rig.counter(*counter) - before
        least = count * math.ceil(size / mtu)
        expect(least <= moved < least * 3 // 2, f"{moved} packets for what fills {least}")


for transport, tools in TRANSPORTS.items():
    # What RC has shown of a latency and of atomics is not shown again.
    for tool in tools if transport != "XRC" else ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        for path_mtu in MTUS:
            test(f"perftest: {tool} {transport} -m {path_mtu}",
                 lambda rig, run=(tool, transport, path_mtu): with_mtu(rig, *run), subjects=KNOWN_BY[transport])


# With SRQs perftest makes receives longer, to a number of whole packets.
MTU_MORE = [
    ("ib_send_bw", "RC", 256, "--use-srq"), ("ib_send_lat", "UC", 512, "--use-srq"),
    ("ib_send_bw", "UD", 1024, "--use-srq"), ("ib_send_lat", "RC", 2048, "--use-srq"),
    ("ib_send_bw", "UC", 4096, "--use-srq"),
    ("ib_send_bw", "UD", 512, "-R"), ("ib_send_lat", "UD", 2048, "-R"),
]
for tool, transport, path_mtu, tool_option in MTU_MORE:
    test(f"perftest: {tool} {transport} -m {path_mtu} {tool_option}",
         lambda rig, run=(tool, transport, path_mtu, tool_option): with_mtu(rig, *run))

for tool, transport, path_mtu in [("ib_read_bw", "RC", 256), ("ib_send_bw", "XRC", 1024), ("ib_send_bw", "UC", 4096)]:
    test(f"perftest: {tool} {transport} -m {path_mtu}, IPv6",
         lambda rig, run=(tool, transport, path_mtu): with_mtu(rig, *run, gid="link-local"),
         subjects=KNOWN_BY[transport])

for tool, path_mtu in zip(("ib_write_lat", "ib_read_lat", "ib_send_lat", "ib_atomic_bw", "ib_atomic_lat"), MTUS):
    test(f"perftest: {tool} XRC -m {path_mtu}",
         lambda rig, run=(tool, "XRC", path_mtu): with_mtu(rig, *run), subjects=KNOWN_BY["XRC"])


@test("perftest: the CM chooses the path MTU", subjects=("hghca",))
def mtu_of_the_cm(rig):
    """So that -m with -R is tested with UD alone; this fails when perftest learns it."""
    before = rig.counter(rig.client, "tx_packets")
    perftest(rig, "ib_send_bw", f"-R -m {MTUS[0]} -s {MTU_BYTES}", MTU_COUNT, cm=True)
    sent = rig.counter(rig.client, "tx_packets") - before
    least = MTU_COUNT * MTU_BYTES // MTUS[-1]
    expect(least <= sent < least * 3 // 2, f"{sent} packets for what fills {least} of {MTUS[-1]} bytes")


@test("perftest: ib_write_bw RC, an HCA to itself")
def write_to_itself(rig):
    for side in rig.sides:
        expect(len(perftest(rig, "ib_write_bw", "", COUNT, side, side)) == 1, "no result")


def ipv4_group(last):
    """The option that names the group 239.9.8.`last`."""
    return "-M " + ":".join(["0"] * 10 + ["255", "255", "239", "9", "8", str(last)])


# For a time and not for a number of iterations: many programs share these seconds. Those that the CM connects begin,
# while the others leave it time.
DURATION_S = 10
FOR_A_TIME = {
    "bandwidth": [("ib_write_bw", "-c RC"), ("ib_read_bw", "-c RC"), ("ib_send_bw", "-c RC"), ("ib_atomic_bw", "-c RC"),
                  ("ib_write_bw", "-c UC"), ("ib_send_bw", "-c UC"), ("ib_send_bw", "-c UD -s 2048")],
    "latency": [("ib_write_lat", "-c RC"), ("ib_read_lat", "-c RC"), ("ib_send_lat", "-c RC"),
                ("ib_atomic_lat", "-c RC"), ("ib_write_lat", "-c UC"), ("ib_send_lat", "-c UC"),
                ("ib_send_lat", "-c UD -s 2048")],
    "XRC": [(program, "-c XRC") for program in OPTIONS],
    "-R, --use-srq and -g": [("ib_read_bw", "-R"), ("ib_atomic_lat", "-R"), ("ib_send_bw", "-c UD -s 2048 -R"),
                             ("ib_send_bw", "--use-srq"), ("ib_send_lat", "-c UC --use-srq"),
                             ("ib_send_lat", "-c UD -s 2048 --use-srq"),
                             ("ib_send_bw", f"-c UD -s 2048 -g {ipv4_group(7)}"),
                             ("ib_send_lat", f"-c UD -s 2048 -g {ipv4_group(8)}")],
}


def duration_column(program):
    """Where a row of -D has its figure. Of a latency program: the average in us, then transactions a second."""
    return 3 if is_bandwidth(program) else 2


def for_a_time(rig, kind):
    """All programs of a kind at once, each for DURATION_S."""
    started = []
    for program, options in FOR_A_TIME[kind]:
        port = rig.next_port()

        def on(side, program=program, options=options, port=port):
            return command(side, program, port, f"-D {DURATION_S} {options}", cm="-R" in options)

        started.append((program, options, port, on, rig.start(on(rig.server), rig.server)))
    clients = []
    for _, _, port, on, server in started:
        rig.wait_listening(port, rig.server, server)
        clients.append(rig.start(f"{on(rig.client)} {rig.server.address}"))
    for (program, options, _, _, server), client in zip(started, clients):
        ends = server.wait(rig.left()), client.wait(rig.left())
        for end in ends:
            expect(end.status == 0, f"{program} {options}: status {end.status}: {tail(end.output)}")
        column = duration_column(program)
        found = figures(program, ends, column)
        expect(len(found) == 1 and found[0][1] > 0, f"{program} {options}: rows {found}")
        rig.note(f"{program} {options}: {found[0][1]:.0f} iterations, {found[0][column]:g}")


for time_kind in FOR_A_TIME:
    test(f"perftest: -D {DURATION_S}, {time_kind}, all programs at once",
         lambda rig, kind=time_kind: for_a_time(rig, kind), limit_s=90,
         subjects=("hghca", "rxe") if time_kind in ("bandwidth", "latency") else ("hghca",))


# What README.md says that perftest refuses: how, and by which words. The day it takes one, that is to be tested too.
REFUSED = [
    ("ib_read_bw -c UC", "UC connection not possible in READ/ATOMIC verbs"),
    ("ib_write_bw -c UD", "UD connection only possible in SEND verb"),
    ("ib_send_lat -b", "Bidirectional is only available in BW test"),
    ("ib_send_lat -q 2", "Multiple QPs only available on bw tests"),
    ("ib_atomic_bw -a", "Message size cannot be changed for Atomic tests"),
    ("ib_write_bw -e", "Events feature not available on WRITE verb"),
    ("ib_write_bw -c UC -R", "UC is not supported in librdmacm"),
    ("ib_write_bw -c XRC -R", "XRC does not support RDMA_CM"),
    ("ib_send_bw -D 10 -a", "Duration mode currently doesn't support running on all sizes"),
    ("ib_send_bw -D 10 -e", "Duration mode doesn't work with events"),
    ("ib_send_bw -c UD -g -b", "Bidirectional mode not supported in multicast"),
    ("ib_send_bw -c UD -g -R", "Perftest still doesn't support Multicast with rdma_cm"),
    ("ib_write_bw --use-srq", "Using SRQ only"),
    ("ib_send_bw -c UD --use-srq -q 128 -n 100", "Using SRQ depth should be greater than number of QPs"),
    ("raw_ethernet_bw -a", "Raw Ethernet tests do not support -a"),
    ("raw_ethernet_bw -R", "RDMA CM isn't supported for Raw Ethernet tests"),
    ("raw_ethernet_bw -x 0", "GID index isn't supported for Raw Ethernet tests"),
    ("raw_ethernet_bw -G", "invalid option -- 'G'"),
]


@test("perftest: what it refuses")
def refused(rig):
    for line, words in REFUSED:
        result = rig.try_run(line)
        expect(result.status not in (0, 124) and words in result.output,
               f"{line}: status {result.status}: {tail(result.output)}")


# Where run_perftest_multi_devices has the first of its devices meet.
MULTI_DEVICES_PORT = 15000


@test("perftest: run_perftest_multi_devices")
def multi_devices(rig):
    def on(side, cpu):
        return (f"run_perftest_multi_devices --devices {side.device} --gid_indexes {side.gid('ipv4')} --cores {cpu} "
                f"--cmd 'ib_read_bw -F -n {COUNT}'")

    ends = rig.pair(on(rig.server, 0), f"{on(rig.client, 1)} --remote {rig.server.address}", MULTI_DEVICES_PORT)
    found = figures("ib_read_bw", ends)
    expect(len(found) == 1 and found[0][1] == COUNT, f"rows {found}")
