# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: all its verbs on every transport, plain and with -a, -b, -R, -e, -q 16 and -q 128 where a program has them.

perftest looks at completions and times, never at the data. Multicast is in mcast.py, --use-srq in srq.py. What perftest
refuses itself is not here: -R with UC and XRC, -a with atomics, -e with WRITE, more than one QP and -b with -g.
"""

import math
import re

from framework import expect, tail, test

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


def run(rig, program, options, server=None, client=None, cm=False, gid="ipv4"):
    """One run between two sides; (server's Result, client's Result), both successes."""
    server, client = server or rig.server, client or rig.client
    port = rig.next_port()

    def command(side):
        address = "" if cm else f"-x {side.gid(gid)}"
        return f"{program} -d {side.device} {address} -F -p {port} {options}"

    return rig.pair(command(server), f"{command(client)} {server.address}", port, server, client)


def figures(program, ends, column=None):
    """The client's result rows, each with a figure but for what without_figures() says."""
    server, client = ends
    found = rows(client.stdout)
    unknown = without_figures(found, column or figure_column(program), client.stderr)
    said = f"client: {tail(client.output)}\nserver: {tail(server.output)}"
    expect(not unknown, f"rows without a figure: {unknown}\n{said}")
    return found


def perftest(rig, program, options, count, server=None, client=None, cm=False, gid="ipv4"):
    """As run(), with a number of iterations; the rows of figures()."""
    return figures(program, run(rig, program, f"-n {count} {options}", server, client, cm, gid))


def check(rig, program, connection, option="", gid="ipv4"):
    """The rows must be those asked for, with figures in a sensible order.

    option: one of the program's, with its value; "" for none.
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
    found = perftest(rig, program, f"-c {connection} {options}", count, cm=option == "-R", gid=gid)
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

for tool in ("ib_write_bw", "ib_write_lat"):
    test(f"perftest: {tool} RC --write_with_imm",
         lambda rig, tool=tool: check(rig, tool, "RC", "--write_with_imm"))


MTU_BYTES, MTU_COUNT = 65536, 200
ATOMIC_BYTES = 8


def data_sender(rig, program):
    """Who sends data, so that its packets can be counted: all else that this end sends is acknowledgements."""
    return rig.server if program.startswith(("ib_read", "ib_atomic")) else rig.client


def with_mtu(rig, program, connection, mtu):
    """A run with a path MTU, and that the data went in packets of that size.

    What an atomic moves has room in any packet, and a datagram is one.
    """
    option, size = f"-s {MTU_BYTES}", MTU_BYTES
    if program.startswith("ib_atomic"):
        option, size = "", ATOMIC_BYTES
    elif connection == "UD":
        option, size = f"-s {mtu}", mtu
    sender = data_sender(rig, program)
    before = rig.counter(sender, "tx_packets") if sender.counters else 0
    found = perftest(rig, program, f"-c {connection} -m {mtu} {option}", MTU_COUNT)
    expect(len(found) == 1 and found[0][0] == size, f"rows {found}, expected one of {size} bytes")
    rig.note(f"{found[0][figure_column(program)]:g} {'MiB/s' if is_bandwidth(program) else 'us typical'}")
    if sender.counters:
        sent = rig.counter(sender, "tx_packets") - before
        least = MTU_COUNT * math.ceil(size / mtu)
        expect(least <= sent < least * 3 // 2, f"{sent} packets for what fills {least}")


for transport, tools in TRANSPORTS.items():
    # What RC has shown of a latency and of atomics is not shown again.
    for tool in tools if transport != "XRC" else ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        for path_mtu in MTUS:
            test(f"perftest: {tool} {transport} -m {path_mtu}",
                 lambda rig, run=(tool, transport, path_mtu): with_mtu(rig, *run), subjects=KNOWN_BY[transport])


@test("perftest: ib_write_bw RC, an HCA to itself")
def write_to_itself(rig):
    for side in rig.sides:
        expect(len(perftest(rig, "ib_write_bw", "", COUNT, side, side)) == 1, "no result")


# For a time and not for a number of iterations: many programs share these seconds.
DURATION_S = 10
FOR_A_TIME = {
    "bandwidth": [("ib_write_bw", "RC"), ("ib_read_bw", "RC"), ("ib_send_bw", "RC"), ("ib_atomic_bw", "RC"),
                  ("ib_write_bw", "UC"), ("ib_send_bw", "UC"), ("ib_send_bw", "UD")],
    "latency": [("ib_write_lat", "RC"), ("ib_read_lat", "RC"), ("ib_send_lat", "RC"), ("ib_atomic_lat", "RC"),
                ("ib_write_lat", "UC"), ("ib_send_lat", "UC"), ("ib_send_lat", "UD")],
}
# Of a latency program: the average in us, then transactions a second.
DURATION_COLUMN = {"bandwidth": 3, "latency": 2}


def for_a_time(rig, kind):
    """All programs of a kind at once, each for DURATION_S."""
    started = []
    for program, connection in FOR_A_TIME[kind]:
        port = rig.next_port()
        size = "-s 2048" if connection == "UD" else ""
        command = f"{program} -c {connection} -F -D {DURATION_S} -p {port} {size}"
        server = rig.start(f"{command} -d {rig.server.device} -x {rig.server.gid('ipv4')}", rig.server)
        started.append((program, connection, port, command, server))
    clients = []
    for program, connection, port, command, server in started:
        rig.wait_listening(port, rig.server, server, "tcp")
        clients.append(rig.start(f"{command} -d {rig.client.device} -x {rig.client.gid('ipv4')} {rig.server.address}"))
    for (program, connection, _, _, server), client in zip(started, clients):
        ends = server.wait(rig.left()), client.wait(rig.left())
        for end in ends:
            expect(end.status == 0, f"{program} {connection}: status {end.status}: {tail(end.output)}")
        found = figures(program, ends, DURATION_COLUMN[kind])
        expect(len(found) == 1 and found[0][1] > 0, f"{program} {connection}: rows {found}")
        rig.note(f"{program} {connection}: {found[0][1]:.0f} iterations, {found[0][DURATION_COLUMN[kind]]:g}")


for time_kind in FOR_A_TIME:
    test(f"perftest: -D {DURATION_S}, {time_kind}, all programs at once",
         lambda rig, kind=time_kind: for_a_time(rig, kind), limit_s=90)
