# SPDX-License-Identifier: GPL-2.0-or-later
"""`tools/hghca test`: run the suites below tests/, count their results, and list the failures at the end.

A suite is a folder with an executable `run`, which prints the Test Anything
Protocol on standard output and finds the tool as $HGHCA_TOOL and the cache as
$HGHCA_CACHE; started without these, it uses its own checkout.
$HGHCA_TIER selects its tests (tiers.py). No test may be skipped: a result that
its suite marks as SKIP or TODO is a failure. A suite has one more failure if it
prints no plan, prints a number of results that differs from the plan, or ends
with a status other than 0 without a failed result.

If all suites run, what they compile is compiled first, and some run beside the
others: at the lowest priority those that only compute, at a low one those with
few guests.
"""

import collections
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

from . import cache, host, junit, prebuild, repo, setup, tiers
from .errors import ToolError, UsageError


# These only compute: beside others they use the CPU time that these leave.
COMPUTE = ("abi", "fuzz", "sim", "unit")
# These read sources with all CPUs: they run beside the compilers, before guests boot.
SOURCES = ("static", "upstream")
# These run beside the others from the start. They take longer than those of FIRST.
EARLY = ("sim", "unit")
# These follow them there, or the other suites: whichever end first. Short ones come last, so that both end together.
LATE = ("debug", "debug-7.3", "lines", "userland", "kunit", "tools", "fuzz", "abi")
# The gate has no minutes for these.
ONLY_ALL = ("debug-7.3", "userland")
# The time limits of rxe are its own, so it runs while those beside it have the lowest priority.
FIRST = ("interop", "peers")
LOW_PRIORITY = host.at_priority(19)
# A guest beside others has about a tenth of a CPU while two programs of the others poll, each on one of two CPUs. With
# equal shares, both would often be left to one CPU, and a round trip between them would take 4 ms, not 10 us. At the
# lowest priority it would get no CPU time.
GUEST_PRIORITY = host.at_priority(10)
# The time limit of a suite in each tier; a suite beside others may end with the last of them.
LIMIT_S = {tiers.QUICK: 600, tiers.GATE: 1800, tiers.ALL: 7200}
LIMIT_BESIDE_S = 5400
# The suites of the quick tier: none takes minutes, and none needs the debug kernel.
QUICK = ("abi", "guest", "static", "unit")
RESULT = re.compile(r"^(ok|not ok)\b\s*(\d+)?\s*(?:- )?(.*?)\s*$")
PLAN = re.compile(r"^1\.\.(\d+)")
SAYING = threading.Lock()
DIRECTIVE = re.compile(r"(?<!\\)#\s*(skip|todo)", re.IGNORECASE)
# The number of notes of a failed result that are repeated at the end.
NOTES = 20


class Count:
    """Results so far; `last_failed`: whether the notes that follow are shown.

    failures: the line and the first notes of each failed result.
    results: (name, seconds since the result before it, its place in failures or None) of each.
    """

    def __init__(self, suite):
        self.suite = suite
        self.results = []
        self.last = time.monotonic()
        self.passed = 0
        self.failed = 0
        self.plan = None
        self.last_failed = True
        self.failures = []


def available():
    return sorted(run.parent.name for run in repo.path("tests").glob("*/run") if os.access(run, os.X_OK))


def of_tier(tier):
    """The suites that run if none is named, in a tier other than the quick one."""
    return [name for name in available() if tier == tiers.ALL or name not in ONLY_ALL]


def main(options):
    for name in options.suites:
        if name not in available():
            raise UsageError(f"there is no test suite {name}", f"choose from: {' '.join(available())}")
    if options.junit and not os.path.isdir(os.path.dirname(os.path.abspath(options.junit))):
        raise UsageError(f"there is no folder for {options.junit}", "make it first")
    tier = options.tier or (tiers.ALL if options.suites else tiers.GATE)
    counts, broken = [], 0
    try:
        setup.make(verbose=True)
        if options.suites or tier == tiers.QUICK:
            counts = run_in_turn(options.suites or QUICK, tier)
        else:
            counts = run_all(of_tier(tier), tier)
    except ToolError as error:
        broken = 1
        print(f"hghca: {error}", file=sys.stderr)
    if options.junit:
        junit.write(options.junit, counts)
    return summarize(counts, broken)


def summarize(counts, broken=0):
    """Print the failures and the number of results of each kind; the exit status.

    broken: failures that are in no Count.
    """
    passed = sum(count.passed for count in counts)
    failed = sum(count.failed for count in counts) + broken
    failures = [lines for count in counts for lines in count.failures]
    if failures:
        say("== what failed")
    for lines in failures:
        say("\n".join(lines))
    say(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def run_in_turn(names, tier):
    return [run_suite(name, tier) for name in names]


def run_all(names, tier):
    """Compile, then run the suites, those of EARLY and LATE at the same time as the others; a Count of each."""
    start = time.monotonic()
    say("== compile: the debug kernel, the programs of unit, sim and fuzz")
    with prebuild.under_way():
        counts = run_in_turn([name for name in SOURCES if name in names], tier)
    say(f"== compile: {time.monotonic() - start:.0f} s")
    return counts + run_beside([name for name in names if name not in SOURCES], tier)


def run_beside(names, tier):
    """Run suites, those of EARLY and LATE at the same time as the others; a Count of each, these two last."""
    early = [name for name in EARLY if name in names]
    late = [name for name in LATE if name in names]
    others = [name for name in names if name not in (*early, *late)]
    left = collections.deque(late)
    beside = Lane(early, left, tier)
    beside.start()
    try:
        counts = run_in_turn(sorted(others, key=lambda name: name not in FIRST), tier)
        for name in taken(left):
            counts.append(run_suite(name, tier))
    except BaseException:
        beside.stop()
        raise
    finally:
        beside.join()
    counts += beside.counts
    done = {count.suite for count in counts}
    return counts + [lost(name, "it was not run") for name in (*early, *late) if name not in done]


def taken(queue):
    """The names of a queue, each taken from it by the one who runs it next."""
    with contextlib.suppress(IndexError):
        while True:
            yield queue.popleft()


class Lane(threading.Thread):
    """Suites one after another, beside others."""

    def __init__(self, early, left, tier):
        super().__init__()
        self.early = early
        self.left = left
        self.tier = tier
        self.counts = []
        self.process = None
        self.stopped = False

    def run(self):
        for name in itertools.chain(self.early, taken(self.left)):
            if not self.stopped:
                self.counts.append(self.run_suite(name))

    def run_suite(self, name):
        try:
            return run_suite(name, self.tier, self)
        except Exception as error:  # noqa: BLE001 - whatever it is, the suite has failed
            return lost(name, f"{type(error).__name__}: {error}")

    def began(self, process):
        self.process = process
        if self.stopped:
            end(process)

    def stop(self):
        self.stopped = True
        if self.process:
            end(self.process)


def run_suite(name, tier, lane=None):
    """Run one suite, printing each result as it comes; its Count.

    lane: the lane of the suite, if others run beside it.
    """
    log = cache.log_path(f"test-{name}")
    start = time.monotonic()
    say(f"== {name} (log: {log})")
    env = {**os.environ, "HGHCA_TOOL": str(repo.path("tools/hghca")), "HGHCA_CACHE": str(cache.root()),
           tiers.VARIABLE: tier}
    count = Count(name)
    priority = [] if not lane else LOW_PRIORITY if name in COMPUTE else GUEST_PRIORITY
    argv = [*priority, repo.path(f"tests/{name}/run")]
    with open(log, "wb") as file, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file,
                                                   env=env, start_new_session=True) as process:
        timer = threading.Timer(LIMIT_BESIDE_S if lane else LIMIT_S[tier], end, [process])
        timer.start()
        try:
            if lane:
                lane.began(process)
            for line in process.stdout:
                file.write(line)
                file.flush()
                take(count, name, line.decode(errors="replace").rstrip("\n"))
            status = process.wait()
        finally:
            timer.cancel()
            end(process)
    conclude(count, name, status, log)
    say(f"== {name}: {count.passed} passed, {count.failed} failed, {time.monotonic() - start:.0f} s")
    return count


def say(line):
    """Print a line as a whole, also while other threads print."""
    with SAYING:
        print(line, flush=True)


def end(process):
    """End the suite and all processes that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def take(count, name, line):
    """Record one line of a suite's output."""
    result, plan = RESULT.match(line), PLAN.match(line)
    if result:
        good = result.group(1) == "ok" and not DIRECTIVE.search(result.group(3))
        if not good:
            fail(count, name, result.group(3))
            return
        count.passed += 1
        count.last_failed = False
        book(count, result.group(3), None)
        say(f"ok {name}: {result.group(3)}")
    elif plan:
        count.plan = int(plan.group(1))
    elif line.startswith("Bail out!"):
        fail(count, name, line)
    elif line.startswith("#") and count.last_failed:
        say(f"    {name}: {line}")
        if count.failures and len(count.failures[-1]) <= NOTES:
            count.failures[-1].append(f"    {line}")


def book(count, result, failure):
    now = time.monotonic()
    count.results.append((result, now - count.last, failure))
    count.last = now


def lost(name, why):
    """The Count of a suite without results."""
    count = Count(name)
    fail(count, name, why)
    return count


def fail(count, name, why):
    count.failed += 1
    count.last_failed = True
    book(count, why, len(count.failures))
    count.failures.append([f"not ok {name}: {why}"])
    say(count.failures[-1][0])


def conclude(count, name, status, log):
    """Check the end of the suite as a whole."""
    results = count.passed + count.failed
    if count.plan is None:
        fail(count, name, f"the suite ended with status {status} without a plan; see {log}")
    elif results != count.plan:
        fail(count, name, f"{count.plan} results were planned, {results} came; see {log}")
    elif status and not count.failed:
        fail(count, name, f"the suite ended with status {status}; see {log}")
    elif not results:
        fail(count, name, "the suite has no tests")
