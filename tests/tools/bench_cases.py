# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca bench`: where its subjects run, its goals, its picture, `--compare`; the program and the table of `bench core`."""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

from tool import fails, hghca, holds, same

from hghca_lib import bench, bench_compare, bench_core, figures, goals, guest, machine, plot


def test_core_benchmark():
    """Each figure of the core's benchmark ends well, the QPs in turn with all contexts cached and with some"""
    rows = bench_core.Program().run("^(write|read|send)/(64|4096)$|^write_in_turn/(100/0|1000/900)$|^copy_crc/(64|4096)$",
                                    shortest_s=0.001)
    same(sorted(rows), sorted(["copy_crc/4096", "copy_crc/64", "read/4096", "read/64", "send/4096", "send/64",
                               "write/4096", "write/64", "write_in_turn/100/0", "write_in_turn/1000/900"]), "figures")
    same([name for name, found in rows.items() if len(found) != 1 or found[0]["items_per_second"] <= 0], [],
         "figures without a rate")


def test_core_table():
    """A figure has its share of the limit at its own size"""
    rates = {"write/4096": [2e6, 4e6, 3e6], "copy_crc/4096": [6e6], "copy_crc/64": [1e6], "write_in_turn/100/0": [1e6]}
    results = [bench_core.result(name, [{"items_per_second": rate, "bytes_per_second": rate * 4096} for rate in values])
               for name, values in rates.items()]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        bench_core.print_table(results)
    lines = {line.split()[0]: line.split()[1:] for line in said.getvalue().splitlines()[2:]}
    same(lines, {"write/4096": ["3,000", "(2,000", "to", "4,000)", "12.29", "50%"],
                 "copy_crc/4096": ["6,000", "(6,000", "to", "6,000)", "24.58"],
                 "copy_crc/64": ["1,000", "(1,000", "to", "1,000)", "4.10"],
                 "write_in_turn/100/0": ["1,000", "(1,000", "to", "1,000)", "4.10"]}, "rows")


class FakeGuest:
    """A guest that records its commands. Each ends well and prints GIDs, or what perftest and ibv_rc_pingpong do."""
    GIDS = "".join(f"gids/{index}:0000:0000:0000:0000:0000:ffff:{address}\ngid_attrs/types/{index}:RoCE v2\n"
                   for index, address in ((1, "0a0a:0001"), (2, "0a0a:0002"), (3, "0a63:0001")))
    MEASURED = (" 65536      100             3000.00            2000.00              0.03\n"
                "1000 iters in 0.03 seconds = 30.00 usec/iter\n")

    def __init__(self):
        self.commands = []

    def run(self, command, timeout=60, netns=None):
        self.commands.append((command, netns))
        return guest.Result(0, self.MEASURED if "taskset" in command else self.GIDS, "")

    def start(self, command, netns=None):
        result = self.run(command, netns=netns)
        return type("Command", (), {"wait": lambda self, timeout: result})()

    def took(self):
        """The programs that were run on CPUs of their own, without their options, and the namespace of each."""
        taken = [(re.sub(r" -.*? (?=10\.|$)", " ", f"{command} "), netns) for command, netns in self.commands
                 if "taskset" in command]
        self.commands.clear()
        return [(command.strip(), netns) for command, netns in taken]


def test_ends():
    """Each end of a subject runs in its guest and its namespace; the client has the server's address"""
    one, first, second = FakeGuest(), FakeGuest(), FakeGuest()
    measured = bench.Bench(one, None, None, [first, second])
    events = next(figure for figure in figures.FIGURES if figure.name == "event-latency")
    same(events.take(measured, events, 8, figures.VMS), 15, "half of a turn")
    same((first.took(), second.took(), one.took()),
         ([("exec taskset 1 ibv_rc_pingpong 10.10.0.2", None)], [("exec taskset 2 ibv_rc_pingpong", None)], []),
         "two guests")
    writes = figures.FIGURES[0]
    same(writes.take(measured, writes, 65536, "hghca"), 2000, "bandwidth")
    same((first.took(), second.took(), one.took()),
         ([], [], [("exec taskset 2 ib_write_bw", "b"), ("exec taskset 1 ib_write_bw 10.10.0.2", None)]), "one guest")
    same(figures.VMS in bench.Bench(one, None, None).ends, False, "two guests where one is booted")


def test_two_more_guests():
    """Two more guests are booted only for a figure that has them, and not with the subject that takes their place"""
    booted = []
    boot, bench.guest.boot = bench.guest.boot, lambda made, config: booted.append(config)
    try:
        config = machine.Config(share="/tmp", accel="kvm")
        for names, extra in ((["registrations", "fairness"], figures.VMS), (["ib_write_bw"], figures.UNVERIFIED),
                             (["ib_write_bw"], None)):
            with bench.boot_vms(None, config, bench.chosen(names), extra) as vms:
                same(vms, [], f"guests for {names} with {extra}")
        bench.boot_vms(None, config, bench.chosen(["registrations", "event-latency"]), figures.VMS)
    finally:
        bench.guest.boot = boot
    same([(one.guests, one.link, one.can_share(), one.share, one.accel) for one in booted],
         [(2, machine.SHARED, True, None, "kvm")], "guests for event-latency")


def test_boxes():
    """The boxes of a picture are beside each other; each subject has a colour and a point"""
    shown = [one for one in figures.FIGURES if len(one.sizes) <= 2]
    for left_out in (figures.UNVERIFIED, figures.VMS):
        rows = [figure(1, 2, test=one.name, size=size, subject=subject) for one in shown for size in one.sizes
                for subject in one.subjects if subject != left_out]
        with tempfile.TemporaryDirectory() as folder:
            plot.boxes(Path(folder), "all", rows)
            places = sorted(float(line.split()[0]) for file in Path(folder).iterdir()
                            for line in file.read_text().splitlines())
        same(len(places), len([row for row in rows if row["subject"] not in plot.COPIES]), "boxes")
        same([(one, other) for one, other in zip(places, places[1:]) if other - one < 0.2], [], "boxes over each other")
    subjects = {subject for one in figures.FIGURES for subject in one.subjects}
    same((set(plot.COLOURS), set(plot.POINTS)), (subjects, subjects), "colours and points")
    same(len(set(plot.COLOURS.values())), len(subjects), "colours")


def figure(least, most, unit="MiB/s", test="ib_write_bw", size=64, subject="hghca"):
    return {"test": test, "bytes": size, "subject": subject, "value": (least + most) / 2, "unit": unit, "min": least,
            "max": most, "runs": 3}


def test_compare_verdict():
    """A run is better or worse only where no round of one is within those of the other; less is better of times"""
    cases = [((10, 20), (21, 30), "MiB/s", "better"), ((21, 30), (10, 20), "MiB/s", "worse"),
             ((10, 20), (20, 30), "MiB/s", "-"), ((10, 30), (15, 20), "MiB/s", "-"), ((15, 20), (10, 30), "MiB/s", "-"),
             ((10, 20), (21, 30), "us", "worse"), ((21, 30), (10, 20), "us", "better"), ((10, 20), (20, 30), "us", "-"),
             ((10, 20), (21, 30), "a second", "better"), ((10, 20), (21, 30), "%", "worse"),
             ((10, 20), (21, 30), "times", "worse")]
    same([bench_compare.verdict(figure(*old, unit), figure(*new, unit)) for old, new, unit, _ in cases],
         [wanted for *_, wanted in cases], "verdicts")


def test_compare_rows():
    """Compared is what both runs have, each with its own size, subject and unit"""
    old = [figure(1, 2, size=64), figure(3, 4, size=4096), figure(5, 6, subject="rxe"), figure(7, 8, test="ib_read_bw")]
    new = [figure(10, 20, size=4096), figure(30, 40, subject="rxe"), figure(50, 60, "us", "ib_read_bw"),
           figure(70, 80, size=65536)]
    same([(before["min"], after["min"]) for before, after in bench_compare.rows(old, new)], [(3, 10), (5, 30)], "rows")


def test_compare_files():
    """Two files are compared without measuring; an invalid file, or one without a common figure, is refused"""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("old", "new", "other", "wrong", "empty")}
        files["old"].write_text(json.dumps({"results": [figure(100, 200)]}))
        files["new"].write_text(json.dumps({"results": [figure(300, 600)]}))
        files["other"].write_text(json.dumps({"results": [figure(1, 2, test="ib_read_bw")]}))
        files["wrong"].write_text(json.dumps({"results": [{**figure(1, 2), "min": "1"}]}))
        files["empty"].write_text("")
        ended = hghca("bench", "--from", files["new"], "--compare", files["old"])
        same(ended.status, 0, "status")
        row = next(line for line in ended.stdout.splitlines() if line.endswith("better"))
        holds(row, "150 (100 to 200)", "450 (300 to 600)", " 3 better")
        fails(hghca("bench", "--from", files["other"], "--compare", files["old"]), 2, "no figure in common")
        for name in ("wrong", "empty"):
            fails(hghca("bench", "--from", files["new"], "--compare", files[name]), 2, "has no figures of a bench")
        fails(hghca("bench", "--from", files["new"], "ib_write_bw"), 2, "--from has its figures in the file")
        fails(hghca("bench", "core", "--compare", files["old"]), 2, "compares no runs")


def test_goals():
    """A goal is reached or missed by its own measure: a number or a share of the limit, a time, a multiple of rxe's"""
    gib = 1e9 / (1 << 20)
    cases = [(goals.Goal("bw", 4096, gigabytes=8, share=0.4), 8 * gib, 100 * gib, (8, 8, "GB/s", True)),
             (goals.Goal("bw", 4096, gigabytes=8, share=0.4), 7 * gib, 100 * gib, (7, 8, "GB/s", False)),
             (goals.Goal("bw", 4096, gigabytes=8, share=0.4), 4 * gib, 10 * gib, (4, 4, "GB/s", True)),
             (goals.Goal("bw", 4096, of_rxe=2), 30, 10, (3, 2, "of rxe", True)),
             (goals.Goal("bw", 4096, of_rxe=2), 19, 10, (1.9, 2, "of rxe", False)),
             (goals.Goal("bw", 4096, microseconds=3), 3, None, (3, 3, "us", True)),
             (goals.Goal("bw", 4096, microseconds=3), 3.1, None, (3.1, 3, "us", False)),
             (goals.Goal("bw", 4096, percent=5), 5, None, (5, 5, "%", True)),
             (goals.Goal("bw", 4096, times=10), 11, None, (11, 10, "times", False)),
             (goals.Goal("bw", 4096, of_rxe=2), 30, None, None), (goals.Goal("bw", 64, of_rxe=2), 30, 10, None),
             (goals.Goal("bw", 4096, microseconds=3, subject="hghca-vms"), 2, None, None)]
    for goal, ours, beside, wanted in cases:
        value = {("bw", 4096, "hghca"): {"value": ours}}
        if beside:
            value["bw", 4096, "rxe" if goal.of_rxe else "copy-crc"] = {"value": beside}
        found = goal.judge(value)
        same(found and (round(found[0], 6), round(found[1], 6), *found[2:]), wanted, f"{goal} with {ours} beside {beside}")


def test_goal_of_a_subject():
    """A goal is judged by its own subject, whose name is in its line; others by two HCAs, or by one to itself"""
    two, itself, vms = (figure(value, value, "us", "lat", 8, subject)
                        for value, subject in ((5, "hghca"), (2, "hghca-self"), (15, "hghca-vms")))
    listed, goals.GOALS = goals.GOALS, [goals.Goal("lat", 8, microseconds=3),
                                        goals.Goal("lat", 8, microseconds=15, subject="hghca-vms")]
    try:
        same([line.split() for line in goals.lines([two, itself, vms])],
             ["lat 8 5 us goal 3: MISSED".split(), "lat of hghca-vms 8 15 us goal 15: reached".split()], "all")
        same([line.split() for line in goals.lines([itself])], ["lat 8 2 us goal 3: reached".split()], "to itself")
    finally:
        goals.GOALS = listed


def test_goals_are_measured():
    """Each goal is of a figure and a subject that are measured at that size, beside what it is compared with"""
    measured = {(figure.name, size): figure.subjects for figure in figures.FIGURES for size in figure.sizes}
    lacking = [goal for goal in goals.GOALS if not {*goal.subjects()} & {*measured.get((goal.test, goal.bytes), ())} or
               (goal.of_rxe and "rxe" not in measured[goal.test, goal.bytes]) or
               (goal.share and "copy-crc" not in measured[goal.test, goal.bytes])]
    same(lacking, [], "goals without a figure")
    same(len(set((goal.test, goal.bytes, goal.subject) for goal in goals.GOALS)), len(goals.GOALS), "goals")
