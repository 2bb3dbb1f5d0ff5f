# SPDX-License-Identifier: GPL-2.0-or-later
"""Counting test results: whatever a suite does, no failure is lost."""

import contextlib
import io
import os
import tempfile
import time
from pathlib import Path
from unittest import mock

from tool import same

from hghca_lib import suites


def counted(status, *lines):
    """(passed, failed) of a suite that prints the lines and ends with the status."""
    count = suites.Count("suite")
    with contextlib.redirect_stdout(io.StringIO()):
        for line in lines:
            suites.take(count, "suite", line)
        suites.conclude(count, "suite", status, "log")
    return count.passed, count.failed


def test_counting():
    """Results are counted by their lines"""
    same(counted(0, "1..2", "ok 1 - a", "ok 2 - b"), (2, 0))
    same(counted(1, "ok 1 - a", "not ok 2 - b", "# why", "1..2"), (1, 1))
    same(counted(0, "ok", "1..1"), (1, 0))


def test_skipped():
    """A skipped test has failed"""
    same(counted(0, "ok 1 - a # SKIP no time", "1..1"), (0, 1))
    same(counted(0, "ok 1 - a # todo", "1..1"), (0, 1))


def test_no_plan():
    """A suite that dies without a plan has failed"""
    same(counted(139, "ok 1 - a"), (1, 1))
    same(counted(0), (0, 1))


def test_too_few():
    """Results that differ in number from the plan are a failure"""
    same(counted(0, "1..3", "ok 1 - a"), (1, 1))
    same(counted(0, "1..1", "ok 1 - a", "ok 2 - b"), (2, 1))


def test_empty():
    """A suite without tests has failed"""
    same(counted(0, "1..0"), (0, 1))


def test_bad_status():
    """A suite that ends badly after good results has failed"""
    same(counted(3, "ok 1 - a", "1..1"), (1, 1))
    same(counted(0, "ok 1 - a", "Bail out! no guest", "1..1"), (1, 2))


def test_summary():
    """What failed is said again at the end, with its first notes"""
    count = suites.Count("suite")
    lost = suites.Count("suite")
    with contextlib.redirect_stdout(io.StringIO()):
        for line in ["ok 1 - a", "# quite so", "not ok 2 - b", *["# why"] * 50, "ok 3 - c", "1..3"]:
            suites.take(count, "first", line)
        suites.conclude(lost, "second", 139, "log")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        same(suites.summarize([count, lost], 1), 1, "exit status")
    same(said.getvalue().splitlines(),
         ["== what failed", "not ok first: b", *["    # why"] * suites.NOTES,
          "not ok second: the suite ended with status 139 without a plan; see log", "2 passed, 3 failed"], "summary")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        same(suites.summarize([suites.Count("suite")]), 1, "exit status of nothing")
    same(said.getvalue(), "0 passed, 0 failed\n", "summary of nothing")


@contextlib.contextmanager
def made(**scripts):
    """Suites of these names, those that begin with `beside_compute` in suites.COMPUTE and suites.EARLY, others that begin
    with `beside` in suites.LATE, `sources` in suites.SOURCES; their folder, and what is said.

    What is compiled before them is a file of this name.
    """
    early = [suite for suite in scripts if suite.startswith("beside_compute")]
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()) as said:
        folder = Path(name)
        for suite, script in scripts.items():
            run = folder / "tests" / suite / "run"
            run.parent.mkdir(parents=True)
            run.write_text(f"#!/bin/sh\ncd {folder}\n{script}\n")
            run.chmod(0o755)

        @contextlib.contextmanager
        def under_way():
            yield
            (folder / "compiled").touch()

        with (mock.patch.object(suites.repo, "path", folder.joinpath),
              mock.patch.object(suites.prebuild, "under_way", under_way),
              mock.patch.object(suites, "SOURCES", ["sources"]),
              mock.patch.object(suites.cache, "log_path", lambda name: folder / name),
              mock.patch.object(suites, "COMPUTE", early), mock.patch.object(suites, "EARLY", early),
              mock.patch.object(suites, "LATE", [suite for suite in scripts if suite.startswith("beside") and
                                                 suite not in early])):
            yield folder, said


# A process at the lowest priority begins late where others want the processor.
WAIT = "for i in $(seq 600); do [ -e {0} ] && echo 'ok 1 - {0}' && break; sleep 0.1; done; echo 1..1"


def test_beside():
    """Suites run beside the others, those that only compute at the lowest priority, and all are counted"""
    with made(beside_compute="nice > priority; echo 'not ok 1 - c'; echo 1..1; exit 1",
              beside_boot="nice >> priority; touch booted; echo ok; echo 1..1",
              guest=WAIT.format("booted")) as (folder, said):
        counts = suites.run_all(["beside_boot", "beside_compute", "guest"], "gate")
        # A nice value is relative to that of whoever runs this.
        same((folder / "priority").read_text(), f"19\n{min(19, os.nice(0) + 10)}\n", "priorities")
    same((sum(count.passed for count in counts), sum(count.failed for count in counts)), (2, 1), "results")
    same("not ok beside_compute: c\n" in said.getvalue(), True, said.getvalue())


def test_only_with_all():
    """The gate leaves out the second debug kernel and the other rdma-core, for which it has no minutes, and no other suite"""
    same(suites.of_tier("all"), suites.available(), "all suites")
    same([name for name in suites.available() if name not in suites.of_tier("gate")], ["debug-7.3", "userland"], "suites left out")


def test_taken_over():
    """A suite that would follow those beside the others runs with the others, at their priority, when these end first"""
    with made(beside_compute=WAIT.format("booted"), beside_boot="nice > priority; touch booted; echo ok; echo 1..1",
              guest="echo ok; echo 1..1") as (folder, _):
        counts = suites.run_all(["beside_boot", "beside_compute", "guest"], "gate")
        same((folder / "priority").read_text(), f"{os.nice(0)}\n", "priority")
    same([(count.passed, count.failed) for count in counts], [(1, 0)] * 3, "results")


def test_compiled_first():
    """Sources are read while the compilers run, all is compiled before other suites begin, and rxe comes first"""
    with made(sources="[ -e compiled ] || echo ok; nice > priority; echo 1..1",
              beside_compute="[ -e compiled ] && echo ok; echo 1..1", guest="[ -e compiled ] && echo ok; echo 1..1",
              interop="[ -e compiled ] && echo ok; echo 1..1") as (folder, _):
        counts = suites.run_all(["beside_compute", "guest", "interop", "sources"], "gate")
        same((folder / "priority").read_text(), f"{os.nice(0)}\n", "priority")
    same([count.suite for count in counts], ["sources", "interop", "guest", "beside_compute"], "order")
    same([(count.passed, count.failed) for count in counts], [(1, 0)] * 4, "results")


def test_beside_lost():
    """Suites that should have run beside others, and did not, have failed"""
    with (made(beside_1="", beside_2="", guest="echo ok; echo 1..1"),
          mock.patch.object(suites.Lane, "run", lambda self: None)):
        counts = suites.run_all(["beside_1", "beside_2", "guest"], "gate")
    same((sum(count.passed for count in counts), sum(count.failed for count in counts)), (1, 2), "results")


def test_beside_stopped():
    """Suites that run beside others end when these are interrupted"""
    stopped = []

    def interrupted(names, tier):
        for _ in range(600):
            if (folder / "there").exists():
                break
            time.sleep(0.1)
        stopped.append(time.monotonic())
        raise KeyboardInterrupt

    with (made(beside_1="touch there; sleep 60; touch late", beside_2="touch late", guest="") as (folder, _),
          mock.patch.object(suites, "run_in_turn", interrupted)):
        try:
            suites.run_beside(["beside_1", "beside_2", "guest"], "gate")
        except KeyboardInterrupt:
            pass
        same((folder / "there").exists(), True, "the suite began")
        same((folder / "late").exists(), False, "the next one began")
        assert time.monotonic() - stopped[0] < 30, "the suite was waited for"
