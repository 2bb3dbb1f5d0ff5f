# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: all its verbs, plain and with -a, -R, -e and -q 16 wherever a program has the option.

perftest looks at completions and times, never at the data.
"""

import math
import re

from framework import expect, test

# The options that the programs of perftest 25.01 have; `options of the programs` checks it against --help.
OPTIONS = {
    "ib_write_bw": "aRq",
    "ib_write_lat": "aR",
    "ib_read_bw": "aReq",
    "ib_read_lat": "aRe",
    "ib_send_bw": "aReq",
    "ib_send_lat": "aRe",
    "ib_atomic_bw": "Req",
    "ib_atomic_lat": "Re",
}
UD = {"ib_send_bw": "aReq", "ib_send_lat": "aRe"}
# What RC has shown of -R and -e is not shown again.
UC = {"ib_write_bw": "aq", "ib_write_lat": "", "ib_send_bw": "aeq", "ib_send_lat": ""}
VALUE = {"q": " 16"}
ALL_SIZES = [1 << power for power in range(1, 24)]
UD_SIZES = [1 << power for power in range(1, 13)]
# Iterations: with -a the large sizes decide how long it takes.
COUNT, COUNT_ALL, COUNT_QPS = 1000, 100, 200


def rows(output):
    """The result rows of a program: lists of numbers that start with bytes and iterations."""
    figure = r"(?:[\d.]+|-?inf|-?nan)"
    found = re.findall(rf"^ (\d+)\s+(\d+)\s+({figure}(?:[ \t]+{figure})*)[ \t]*$", output, re.MULTILINE)
    return [[float(number) for number in (size, count, *rest.split())] for size, count, rest in found]


# perftest asks how fast the processor's clock goes for each row anew, by 200 waits of 0.1 to 2.1 ms. One interruption
# of some ms between its two clocks' readings spoils that: it says so, and takes the clock to stand still, for a
# bandwidth of 0 and a time without end.
CLOCK_UNKNOWN = "Correlation coefficient r^2: "


def is_figure(number):
    return math.isfinite(number) and number > 0


def without_figures(found, column, stderr):
    """The rows whose figure is 0 or no number, but for those that perftest had no clock for, as it said on stderr.

    found: as rows() has them; column: where the figure is.
    """
    still = [row for row in found if not is_figure(row[column])]
    return still if len(still) > stderr.count(CLOCK_UNKNOWN) else []


def perftest(rig, program, options, count, server=None, client=None, cm=False, gid="ipv4"):
    """One run between two sides; the client's result rows, each with a figure but for what without_figures() says."""
    server, client = server or rig.server, client or rig.client
    port = rig.next_port()

    def command(side):
        address = "" if cm else f"-x {side.gid(gid)}"
        return f"{program} -d {side.device} {address} -F -n {count} -p {port} {options}"

    _, result = rig.pair(command(server), f"{command(client)} {server.address}", port, server, client)
    found = rows(result.stdout)
    unknown = without_figures(found, 3 if program.endswith("_bw") else 4, result.stderr)
    expect(not unknown, f"rows without a figure: {unknown}; stderr: {result.stderr[-2000:]}")
    return found


def check(rig, program, flag, connection):
    """The rows must be those asked for, with positive figures in a sensible order."""
    options = f"-{flag}{VALUE.get(flag, '')}" if flag else ""
    sizes, count = None, COUNT
    if flag == "a":
        sizes, count = (UD_SIZES if connection == "UD" else ALL_SIZES), COUNT_ALL
    if flag == "q":
        count = COUNT_QPS
    if connection == "UD" and flag != "a":
        options += " -s 2048"
    found = perftest(rig, program, f"-c {connection} {options}", count, cm=flag == "R")
    if sizes:
        expect([row[0] for row in found] == sizes, f"sizes {[int(row[0]) for row in found]}, expected {sizes}")
    expect(len(found) == (len(sizes) if sizes else 1), f"{len(found)} result rows")
    total = count * (16 if flag == "q" else 1)
    for row in found:
        expect(row[1] == total, f"{row[1]:.0f} iterations at {row[0]:.0f} bytes, expected {total}")
        if not program.endswith("_bw") and is_figure(row[4]):
            expect(row[2] <= row[4] <= row[3], f"min {row[2]}, typical {row[4]}, max {row[3]} us")
    unit = "MiB/s" if program.endswith("_bw") else "us typical"
    column = 3 if program.endswith("_bw") else 4
    rig.note(", ".join(f"{row[0]:.0f} B: {row[column]:g}" for row in found) + f" {unit}")


def enter(program, connection, flags):
    for flag in ["", *flags]:
        name = f"perftest: {program} {connection}" + (f" -{flag}{VALUE.get(flag, '')}" if flag else "")
        test(name, lambda rig, flag=flag: check(rig, program, flag, connection))


for tool, tool_flags in OPTIONS.items():
    enter(tool, "RC", tool_flags)
for tool, tool_flags in UC.items():
    enter(tool, "UC", tool_flags)
for tool, tool_flags in UD.items():
    enter(tool, "UD", tool_flags)


@test("perftest: options of the programs are those tested")
def options_match(rig):
    for program, flags in OPTIONS.items():
        text = rig.try_run(f"{program} --help").output
        offered = "".join(flag for flag in "aReq" if re.search(rf"^\s+-{flag}, --", text, re.MULTILINE))
        expect(offered == flags, f"{program} offers -{' -'.join(offered)}, tested are -{' -'.join(flags)}")


@test("perftest: ib_write_bw RC, IPv6")
def write_ipv6(rig):
    expect(len(perftest(rig, "ib_write_bw", "", COUNT, gid="link-local")) == 1, "no result")


@test("perftest: ib_write_bw RC -b")
def write_both_ways(rig):
    expect(len(perftest(rig, "ib_write_bw", "-b", COUNT)) == 1, "no result")


@test("perftest: ib_write_bw RC -q 128")
def write_many_qps(rig):
    found = perftest(rig, "ib_write_bw", "-q 128 -s 4096", 50)
    expect(found and found[0][1] == 50 * 128, f"rows: {found}")


for mtu in (256, 512, 1024, 2048, 4096):
    @test(f"perftest: ib_send_bw RC -m {mtu}")
    def send_with_mtu(rig, mtu=mtu):
        expect(len(perftest(rig, "ib_send_bw", f"-m {mtu}", 500)) == 1, "no result")


@test("perftest: ib_write_bw RC, an HCA to itself")
def write_to_itself(rig):
    for side in rig.sides:
        expect(len(perftest(rig, "ib_write_bw", "", COUNT, side, side)) == 1, "no result")
