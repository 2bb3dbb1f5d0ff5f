# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: its programs, transports, options, path MTUs and address families, each with each other one.

perftest looks at completions and times, never at the data. Multicast is in mcast.py, other uses of --use-srq in srq.py,
frames in rawpacket.py. What perftest cannot do is in README.md.
"""

import contextlib
import functools
import json
import math
import re

from hghca_lib.tiers import ALL

import framework
from framework import expect, gate_if, tail
from rdmacm import ipv6_addresses

test = functools.partial(framework.test, suite="perftest")

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
WITH_VALUES = {"-a": "a", "-b": "b", "-R": "R", "-e": "e", "-q 16": "q", "-q 128": "q"}
FACTORS = {
    "program": (*OPTIONS,),
    "connection": ("RC", "UC", "UD", "XRC"),
    "option": ("", *WITH_VALUES, "--use-srq", "--write_with_imm"),
    "mtu": (256, 512, 1024, 2048, 4096),
    "family": ("IPv4", "IPv6"),
}
MTUS = FACTORS["mtu"]
CONNECTIONS = {"write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"), "send": ("RC", "UC", "UD", "XRC"),
               "atomic": ("RC", "XRC")}


def verb_of(program):
    return program.split("_")[1]


def possible(program, connection, option, mtu, _family):
    """Whether perftest can do it in seconds; why not is in README.md. An SRQ of each end takes what XRC sends."""
    verb = verb_of(program)
    if option in WITH_VALUES:
        known = WITH_VALUES[option] in OPTIONS[program]
    else:
        known = not option or verb == {"--use-srq": "send", "--write_with_imm": "write"}[option]
    if connection == "XRC":
        known = known and (not option or verb == "write" and option == "--write_with_imm"
                           or program == "ib_send_bw" and option in ("-b", "-q 16", "-q 128"))
    # The CM connects no UC, and chooses the path MTU of RC.
    by_cm = option != "-R" or connection == "UD" or (connection == "RC" and mtu == MTUS[-1])
    # Up to 8 MiB take long in small packets. With UC perftest waits for ever for a message of which a packet was lost.
    in_time = option != "-a" or connection == "UD" or (connection == "RC" and mtu >= 1024)
    # After an event without a completion, the latency programs of READ and atomics post once more, until the queue is
    # full.
    by_event = option != "-e" or is_bandwidth(program) or verb == "send"
    return known and by_cm and in_time and by_event and connection in CONNECTIONS[verb]


# Each value of a factor occurs with each value of each other factor, where perftest can do that: pairwise testing.
# `tests/tools` checks that no pair is missing.
COMBINATIONS = [
    ("ib_write_bw", "RC", "-a", 2048, "IPv6"),
    ("ib_write_bw", "RC", "-R", 4096, "IPv4"),
    ("ib_write_bw", "UC", "", 4096, "IPv4"),
    ("ib_write_bw", "UC", "-b", 512, "IPv4"),
    ("ib_write_bw", "UC", "-b", 1024, "IPv6"),
    ("ib_write_bw", "UC", "-q 16", 2048, "IPv4"),
    ("ib_write_bw", "UC", "-q 128", 256, "IPv6"),
    ("ib_write_bw", "XRC", "--write_with_imm", 256, "IPv4"),
    ("ib_write_lat", "RC", "-a", 1024, "IPv6"),
    ("ib_write_lat", "RC", "-R", 4096, "IPv4"),
    ("ib_write_lat", "RC", "--write_with_imm", 512, "IPv6"),
    ("ib_write_lat", "UC", "", 256, "IPv6"),
    ("ib_write_lat", "UC", "--write_with_imm", 2048, "IPv6"),
    ("ib_write_lat", "XRC", "--write_with_imm", 1024, "IPv4"),
    ("ib_write_lat", "XRC", "--write_with_imm", 4096, "IPv4"),
    ("ib_read_bw", "RC", "-a", 1024, "IPv4"),
    ("ib_read_bw", "RC", "-b", 512, "IPv4"),
    ("ib_read_bw", "RC", "-R", 4096, "IPv4"),
    ("ib_read_bw", "RC", "-e", 256, "IPv6"),
    ("ib_read_bw", "RC", "-q 16", 4096, "IPv4"),
    ("ib_read_bw", "RC", "-q 128", 2048, "IPv6"),
    ("ib_read_bw", "XRC", "", 2048, "IPv4"),
    ("ib_read_lat", "RC", "", 1024, "IPv6"),
    ("ib_read_lat", "RC", "-a", 2048, "IPv4"),
    ("ib_read_lat", "RC", "-R", 4096, "IPv6"),
    ("ib_read_lat", "RC", "", 256, "IPv6"),
    ("ib_read_lat", "XRC", "", 512, "IPv4"),
    ("ib_send_bw", "RC", "--use-srq", 1024, "IPv6"),
    ("ib_send_bw", "UC", "-e", 512, "IPv6"),
    ("ib_send_bw", "UC", "--use-srq", 512, "IPv4"),
    ("ib_send_bw", "UD", "", 256, "IPv4"),
    ("ib_send_bw", "UD", "-a", 256, "IPv4"),
    ("ib_send_bw", "UD", "-a", 512, "IPv6"),
    ("ib_send_bw", "UD", "-b", 256, "IPv6"),
    ("ib_send_bw", "UD", "-R", 256, "IPv4"),
    ("ib_send_bw", "UD", "-q 16", 1024, "IPv6"),
    ("ib_send_bw", "UD", "-q 128", 1024, "IPv4"),
    ("ib_send_bw", "UD", "--use-srq", 4096, "IPv6"),
    ("ib_send_bw", "XRC", "-b", 2048, "IPv6"),
    ("ib_send_bw", "XRC", "-q 16", 512, "IPv6"),
    ("ib_send_bw", "XRC", "-q 128", 4096, "IPv4"),
    ("ib_send_lat", "RC", "-a", 4096, "IPv6"),
    ("ib_send_lat", "UC", "--use-srq", 256, "IPv4"),
    ("ib_send_lat", "UD", "-R", 512, "IPv4"),
    ("ib_send_lat", "UD", "-R", 1024, "IPv6"),
    ("ib_send_lat", "UD", "-R", 2048, "IPv6"),
    ("ib_send_lat", "UD", "-e", 4096, "IPv6"),
    ("ib_send_lat", "UD", "--use-srq", 2048, "IPv6"),
    ("ib_send_lat", "XRC", "", 256, "IPv4"),
    ("ib_atomic_bw", "RC", "-b", 4096, "IPv6"),
    ("ib_atomic_bw", "RC", "-R", 4096, "IPv6"),
    ("ib_atomic_bw", "RC", "-e", 1024, "IPv4"),
    ("ib_atomic_bw", "RC", "-e", 2048, "IPv6"),
    ("ib_atomic_bw", "RC", "-q 16", 256, "IPv4"),
    ("ib_atomic_bw", "RC", "-q 128", 512, "IPv4"),
    ("ib_atomic_bw", "XRC", "", 2048, "IPv4"),
    ("ib_atomic_lat", "RC", "-R", 4096, "IPv6"),
    ("ib_atomic_lat", "RC", "", 256, "IPv6"),
    ("ib_atomic_lat", "RC", "", 512, "IPv6"),
    ("ib_atomic_lat", "RC", "", 2048, "IPv6"),
    ("ib_atomic_lat", "XRC", "", 1024, "IPv4"),
]
# This stands for the others under the debug kernel.
UNDER_DEBUG = [("ib_send_bw", "-R")]
ALL_SIZES = [1 << power for power in range(1, 24)]
UD_SIZES = [1 << power for power in range(1, 13)]
# Iterations: with -a the large sizes decide how long it takes. With -q it is those of each QP, and never less than QPs:
# an SRQ has as many receives as there are iterations.
COUNT, COUNT_ALL, COUNT_MTU = 1000, 10, 200
COUNT_QPS = {16: 200, 128: 150}
MTU_BYTES = 65536
ATOMIC_BYTES = 8


def is_bandwidth(program):
    return program.endswith("_bw")


def figure_column(program):
    """Where a row has its figure: the average in MiB/s, or the typical latency in us."""
    return 3 if is_bandwidth(program) else 4


# Bytes, iterations, peak and average in MiB/s, million messages a second.
BANDWIDTH_COLUMNS = 5
NUMBER = r"(?:-?nan|-?inf|[\d.]+)"


def rows(output):
    """The result rows of a program: lists of numbers that start with bytes and iterations."""
    found = re.findall(rf"^ (\d+)\s+(\d+)\s+({NUMBER}(?:[ \t]+-?{NUMBER})*)[ \t]*$", output, re.MULTILINE)
    return [[float(number) for number in (size, count, *rest.split())] for size, count, rest in found]


# perftest asks how fast the processor's clock goes for each row, by 200 waits of 0.1 to 2.1 ms. One interruption
# of some ms between its two clocks' readings spoils that: it says so, and takes the clock to stand still. A bandwidth
# is 0 then, and a latency infinite. (A latency program asks once more before each row, for pauses that none asks for.)
CLOCK_UNKNOWN = "Correlation coefficient r^2: "


def without_figures(found, column, stderr):
    """The rows without a figure, but for those that perftest had no clock for, as it said on stderr.

    found: as rows() has them; column: where the figure is. A bandwidth below 0.005 MiB/s is printed as 0.00; the rate
    of messages beside it, to 0.000001 million a second, is the figure then.
    """
    still = [row for row in found if not 0 < row[column] < math.inf and not rounded_to_zero(row)]
    return still if len(still) > stderr.count(CLOCK_UNKNOWN) else []


def rounded_to_zero(row):
    """A bandwidth's row whose average is a 0 by rounding: its message rate, in million a second, is not 0."""
    if len(row) != BANDWIDTH_COLUMNS or row[3] != 0:
        return False
    return 0 < row[4] * 1e6 * row[0] / (1 << 20) < 0.005


def command(side, program, port, options, cm=False, gid="ipv4"):
    """The command line of a program on a side. The CM finds the GID by itself."""
    path = "" if cm else f"-x {side.gid(gid)}"
    return f"{program} -d {side.device} {path} -F -p {port} {options}"


def run(testbed, program, options, server=None, client=None, address=None, **how):
    """One run between two sides; (server's Result, client's Result), both successes.

    address: the server's, when the ends are to meet over IPv6; how: as command() has it.
    """
    server, client = server or testbed.server, client or testbed.client
    port = testbed.next_port()
    if address:
        options += " --ipv6-addr"
    commands = [command(side, program, port, options, **how) for side in (server, client)]
    return testbed.pair(commands[0], f"{commands[1]} {address or server.address}", port, server, client)


def figures(program, ends, column=None):
    """The client's result rows, each with a figure but for what without_figures() says."""
    server, client = ends
    found = rows(client.stdout)
    unknown = without_figures(found, column or figure_column(program), client.stderr)
    said = f"client: {tail(client.output)}\nserver: {tail(server.output)}"
    expect(not unknown, f"rows without a figure: {unknown}\n{said}")
    return found


def perftest(testbed, program, options, count, server=None, client=None, **how):
    """As run(), with a number of iterations; the rows of figures()."""
    return figures(program, run(testbed, program, f"-n {count} {options}", server, client, **how))


def check(testbed, program, connection, option="", **how):
    """A run with one option, or none; its rows must be those asked for. how: as run() has it."""
    count = COUNT
    options = f"-c {connection} {option}" + (" -s 2048" if connection == "UD" else "")
    check_rows(testbed, program, perftest(testbed, program, options, count, cm=option == "-R", **how), None, count)


def check_rows(testbed, program, found, sizes, count):
    """The rows must be those of the sizes, or a single one, with so many iterations and figures in a sensible order."""
    expect(not sizes or [row[0] for row in found] == sizes, f"sizes {[int(row[0]) for row in found]}, expected {sizes}")
    expect(len(found) == len(sizes or [1]), f"{len(found)} result rows")
    for row in found:
        expect(row[1] == count, f"{row[1]:.0f} iterations at {row[0]:.0f} bytes, expected {count}")
        if not is_bandwidth(program):
            expect(row[2] <= row[4] <= row[3], f"min {row[2]}, typical {row[4]}, max {row[3]} us")
    unit = "MiB/s" if is_bandwidth(program) else "us typical"
    testbed.note(", ".join(f"{row[0]:.0f} B: {row[figure_column(program)]:g}" for row in found) + f" {unit}")


def message_bytes(program, connection, option, mtu):
    """The sizes of a combination's messages. With UC and UD a lost message is not sent again, so few are under way."""
    if verb_of(program) == "atomic":
        return [ATOMIC_BYTES]
    if option == "-a":
        return [size for size in UD_SIZES if size <= mtu] if connection == "UD" else ALL_SIZES
    if connection == "UD":
        return [mtu]
    return [4096] if option == "-q 128" else [MTU_BYTES]


def combination(testbed, program, connection, option, mtu, family):
    """One of COMBINATIONS: its rows, and that the data went in packets of that path MTU."""
    sizes = message_bytes(program, connection, option, mtu)
    qps = int(option.split()[1]) if option.startswith("-q") else 1
    count = COUNT_ALL if option == "-a" else COUNT_QPS.get(qps, COUNT_MTU)
    if testbed.slowness > 1 and sizes == [MTU_BYTES] and qps == 1:
        count //= 4
    options = f"-c {connection} {option}"
    if option != "-R" or connection == "UD":
        options += f" -m {mtu}"
    if option != "-a" and verb_of(program) != "atomic":
        options += f" -s {sizes[0]}"
    how = {"cm": option == "-R", "gid": "ipv4" if family == "IPv4" else "link-local"}
    counter = data_counter(testbed, program)
    before = testbed.counter(*counter) if counter else 0
    with contextlib.ExitStack() as stack:
        if option == "-R" and family == "IPv6":
            how["address"] = stack.enter_context(ipv6_addresses(testbed))
        found = perftest(testbed, program, options, count, **how)
    check_rows(testbed, program, found, sizes, count * qps)
    if counter:
        moved = testbed.counter(*counter) - before
        least = count * qps * sum(math.ceil(size / mtu) for size in sizes)
        expect(least <= moved, f"{moved} packets for what fills {least}")
        # Both ends send with -b, and small messages are acknowledged one by one.
        expect(option in ("-a", "-b") or moved < least * 3 // 2, f"{moved} packets for what fills {least}")


def title(program, connection, option, mtu, family):
    shown = "" if option == "-R" and connection == "RC" else f" -m {mtu}"
    return f"perftest: {program} {connection} {option}".rstrip() + shown + (", IPv6" if family == "IPv6" else "")


def of_the_gate():
    """The combinations of each program with each connection and with each option; all have path MTUs and families.

    With -a, a latency program asks twice per size how fast the clock goes: those of bandwidth have all sizes.
    """
    chosen, covered = [], set()
    for row in COMBINATIONS:
        program, connection, option = row[:3]
        if option == "-a" and program.endswith("_lat"):
            continue
        pairs = {(program, connection), (program, option)}
        chosen += [row] if pairs - covered else []
        covered |= pairs
    return chosen


for row_ in COMBINATIONS:
    test(title(*row_), lambda testbed, row=row_: combination(testbed, *row),
         subjects=("hghca",) if row_[1] == "XRC" else ("hghca", "rxe"), tier=gate_if(row_ in of_the_gate()),
         debug_tier=gate_if((row_[0], row_[2]) in UNDER_DEBUG))

# Few packets are lost where nothing else uses the processors.
ALL_SIZES_BY_UC = [(program, "UC", "-a", MTUS[-1], "IPv4") for program in OPTIONS
                   if "UC" in CONNECTIONS[verb_of(program)]]
for row_ in ALL_SIZES_BY_UC:
    test(title(*row_), lambda testbed, row=row_: combination(testbed, *row), tier=ALL)


@test("perftest: options of the programs are those tested")
def options_match(testbed):
    for program, flags in OPTIONS.items():
        text = testbed.try_run(f"{program} --help").output
        offered = "".join(flag for flag in "aReqb" if re.search(rf"^\s+-{flag}, --", text, re.MULTILINE))
        expect(offered == flags, f"{program} offers -{' -'.join(offered)}, tested are -{' -'.join(flags)}")
        connections = re.search(r"--connection=<(.*?)>", text).group(1).split("/")
        tested = CONNECTIONS[verb_of(program)]
        # Those two are not of the InfiniBand specification.
        expect({*connections} - {"DC", "SRD"} == {*tested}, f"{program} offers {connections}, tested are {tested}")


def data_counter(testbed, program):
    """Where the packets with data can be counted, as (side, counter): all else that this end sends is acknowledgements.

    They are counted where they leave, or, when that device has no such counter, where they come in; None when neither.
    """
    ends = [testbed.client, testbed.server]
    sender, receiver = ends[::-1] if program.startswith(("ib_read", "ib_atomic")) else ends
    if sender.counters:
        return sender, "tx_packets"
    return (receiver, "rx_packets") if receiver.counters else None


def with_mtu(testbed, program, connection, mtu, more="", count=COUNT_MTU, **how):
    """A run with a path MTU, and that the data went in packets of that size.

    What an atomic moves has room in any packet, and a datagram is one. more: another option; how: as run() has it.
    """
    option, size = f"-s {MTU_BYTES}", MTU_BYTES
    if program.startswith("ib_atomic"):
        option, size = "", ATOMIC_BYTES
    elif connection == "UD":
        option, size = f"-s {mtu}", mtu
    counter = data_counter(testbed, program)
    before = testbed.counter(*counter) if counter else 0
    found = perftest(testbed, program, f"-c {connection} -m {mtu} {option} {more}", count, cm=more == "-R", **how)
    expect(len(found) == 1 and found[0][0] == size, f"rows {found}, expected one of {size} bytes")
    testbed.note(f"{program}: {found[0][figure_column(program)]:g} "
                 f"{'MiB/s' if is_bandwidth(program) else 'us typical'}")
    if counter:
        moved = testbed.counter(*counter) - before
        least = count * math.ceil(size / mtu)
        expect(least <= moved < least * 3 // 2, f"{moved} packets for what fills {least}")


@test("perftest: the CM chooses the path MTU", subjects=("hghca",))
def mtu_of_the_cm(testbed):
    """So that -m with -R is tested with UD alone; this fails when perftest learns it."""
    before = testbed.counter(testbed.client, "tx_packets")
    perftest(testbed, "ib_send_bw", f"-R -m {MTUS[0]} -s {MTU_BYTES}", COUNT_MTU, cm=True)
    sent = testbed.counter(testbed.client, "tx_packets") - before
    least = COUNT_MTU * MTU_BYTES // MTUS[-1]
    expect(least <= sent < least * 3 // 2, f"{sent} packets for what fills {least} of {MTUS[-1]} bytes")


@test("perftest: ib_write_bw RC, an HCA to itself")
def write_to_itself(testbed):
    for side in testbed.sides:
        check_rows(testbed, "ib_write_bw", perftest(testbed, "ib_write_bw", "", COUNT, side, side), None, COUNT)


def ipv4_group(last):
    """The option that names the group 239.9.8.`last`."""
    return "-M " + ":".join(["0"] * 10 + ["255", "255", "239", "9", "8", str(last)])


# For a time and not for a number of iterations: many programs share these seconds.
DURATION_S = 10
FOR_A_TIME = {
    "bandwidth": [("ib_write_bw", "-c RC"), ("ib_read_bw", "-c RC"), ("ib_send_bw", "-c RC"), ("ib_atomic_bw", "-c RC"),
                  ("ib_write_bw", "-c UC"), ("ib_send_bw", "-c UC"), ("ib_send_bw", "-c UD -s 2048")],
    "latency": [("ib_write_lat", "-c RC"), ("ib_read_lat", "-c RC"), ("ib_send_lat", "-c RC"),
                ("ib_atomic_lat", "-c RC"), ("ib_write_lat", "-c UC"), ("ib_send_lat", "-c UC"),
                ("ib_send_lat", "-c UD -s 2048")],
    "XRC": [(program, "-c XRC") for program in OPTIONS],
    # The CM connects while there is at most one message under way.
    "-R, --use-srq and -g": [("ib_atomic_lat", "-R"), ("ib_send_bw", "-c UD -s 2048 -R"), ("ib_send_bw", "--use-srq"),
                             ("ib_send_lat", "-c UC --use-srq"), ("ib_send_lat", "-c UD -s 2048 --use-srq"),
                             ("ib_send_bw", f"-c UD -s 2048 -g {ipv4_group(7)}"),
                             ("ib_send_lat", f"-c UD -s 2048 -g {ipv4_group(8)}")],
}


def duration_column(program):
    """Where a row of -D has its figure. Of a latency program: the average in us, then transactions a second."""
    return 3 if is_bandwidth(program) else 2


def qps(testbed, side):
    """How many QPs a side's device has."""
    return len(json.loads(testbed.run(f"rdma -j resource show qp link {side.device}", side).strip() or "[]"))


def pair_for_a_time(testbed, program, options):
    """A program's two ends, as (server, client), each for DURATION_S.

    With -R the client can ask for its connection before the server listens, although the two have met over TCP. It is
    refused then, and perftest 25.01 uses a connection's identifier once more after it has destroyed it. So nothing else
    starts until the server has a QP, which it makes when it is asked for the connection.
    """
    port, by_cm = testbed.next_port(), "-R" in options

    def on(side):
        return command(side, program, port, f"-D {DURATION_S} {options}", cm=by_cm)

    before = qps(testbed, testbed.server)
    server = testbed.start(on(testbed.server), testbed.server)
    testbed.wait_listening(port, testbed.server, server)
    client = testbed.start(f"{on(testbed.client)} {testbed.server.address}")
    if by_cm:
        testbed.wait_until(lambda: qps(testbed, testbed.server) > before or not (client.running() and server.running()),
                           f"a QP of {program} {options}")
    return server, client


def for_a_time(testbed, kind):
    """All programs of a kind at once."""
    started = [(program, options, *pair_for_a_time(testbed, program, options)) for program, options in FOR_A_TIME[kind]]
    for program, options, server, client in started:
        ends = server.wait(testbed.left()), client.wait(testbed.left())
        for end in ends:
            expect(end.status == 0, f"{program} {options}: status {end.status}: {tail(end.output)}")
        column = duration_column(program)
        found = figures(program, ends, column)
        expect(len(found) == 1 and found[0][1] > 0, f"{program} {options}: rows {found}")
        testbed.note(f"{program} {options}: {found[0][1]:.0f} iterations, {found[0][column]:g}")


for time_kind in FOR_A_TIME:
    test(f"perftest: -D {DURATION_S}, {time_kind}, all programs at once",
         lambda testbed, kind=time_kind: for_a_time(testbed, kind), limit_s=90,
         subjects=("hghca", "rxe") if time_kind in ("bandwidth", "latency") else ("hghca",),
         tier=ALL)


# Where run_perftest_multi_devices has the first of its devices meet.
MULTI_DEVICES_PORT = 15000


@test("perftest: run_perftest_multi_devices")
def multi_devices(testbed):
    def on(side, cpu):
        return (f"run_perftest_multi_devices --devices {side.device} --gid_indexes {side.gid('ipv4')} --cores {cpu} "
                f"--cmd 'ib_read_bw -F -n {COUNT}'")

    ends = testbed.pair(on(testbed.server, 0), f"{on(testbed.client, 1)} --remote {testbed.server.address}",
                        MULTI_DEVICES_PORT)
    found = figures("ib_read_bw", ends)
    expect(len(found) == 1 and found[0][1] == COUNT, f"rows {found}")
