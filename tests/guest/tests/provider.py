# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs provider: what queues are granted, what verbs return, its tables by number, and its spinlocks."""

import collections
import re

from hghca_lib.tiers import QUICK

from data import over_link, to_itself
from data import run_program as run
from framework import expect, tail, test

OURS = {"subjects": ("hghca",)}
ALONE = "HGHCA_SINGLE_THREADED=1"


@test("provider: what queues are granted", limit_s=120, **OURS)
def grants(testbed):
    run(testbed, "grants", to_itself(testbed))


@test("provider: errno is what verbs return", tier=QUICK, **OURS)
def errnos(testbed):
    run(testbed, "errnos", to_itself(testbed))


@test("provider: QPs that come and go in many threads", limit_s=120, **OURS)
def tables(testbed):
    run(testbed, "tables", to_itself(testbed))


@test("provider: without locks", **OURS)
def without_locks(testbed):
    """In a program of one thread: all that the others do too, and not one spinlock."""
    for program, arguments in (("errnos", to_itself(testbed)),
                               ("srq", f"{over_link(testbed)} -- 'one CQ' 'resize when full'")):
        watch = watched(testbed, program, arguments, ALONE)
        expect(not watch.locks, f"{program}: {watch.locks} spinlocks")
        expect(watch.calls, f"{program}: the watch saw no system call")


# Programs that change queues while others use them, and what destroys what is not polled; the watch ends the first
# that is wrong. Not those that create QPs between ibv_start_poll() and ibv_end_poll(), which is a system call with a
# spinlock held, but the program's own.
WATCHED = [
    ("tables", to_itself, "'number that' 'come and go'"),
    ("srq", over_link, "-- resize 'one CQ' 'not polled' largest"),
    ("datacheck", over_link, "-- resized lists"),
    ("timed", over_link, "-- resized"),
    ("xrc extended", over_link, ""),
    ("mw extended", over_link, ""),
]


# What it saw: how many spinlocks and system calls, and the most page faults with a lock held.
Watch = collections.namedtuple("Watch", "locks calls faults")


def watched(testbed, program, arguments, environment=""):
    """Run a program under programs/spinwatch.c; what the watch saw."""
    said = testbed.try_run(f"{environment} SLOWNESS={testbed.slowness} LD_PRELOAD=/share/spinwatch.so /share/{program} "
                           f"{arguments}", timeout=100)
    found = re.search(r"^spinwatch: (\d+) spinlocks, (\d+) calls, (\d+) faults$", said.stderr, re.MULTILINE)
    expect(said.status == 0 and "not ok" not in said.stdout and found,
           f"{program}: status {said.status}: {tail(said.output, 3000)}")
    return Watch(*(int(number) for number in found.groups()))


@test("provider: what takes long, with a spinlock held", **OURS)
def takes_long(testbed):
    # The provider logs to a file only, and standard error cannot be opened as one.
    log = testbed.run("mktemp").strip()
    watch = watched(testbed, "locks", to_itself(testbed), f"VERBS_LOG_LEVEL=1 VERBS_LOG_FILE={log}")
    logged = testbed.run(f"cat {log}; rm {log}")
    testbed.note(f"{watch.faults} page faults at most with one lock")
    expect(watch.locks and watch.calls, f"the watch saw {watch.locks} spinlocks and {watch.calls} calls")
    # One poll of three has met with two that are wrong.
    cqes = re.findall(r"CQ 0x\w+: CQE 0x(\w+) is for no outstanding WQE \(QP 0x\w+, offset 0xffffff00\)", logged)
    expect(cqes == ["1", "0", "1"] and logged.count("1 more such CQEs in this poll") == 1, f"logged: {logged}")


for watched_program, between, cases in WATCHED:
    @test(f"provider: no system call with a spinlock held, {watched_program.partition(' ')[0]}", limit_s=120, **OURS)
    def spinlocks(testbed, program=watched_program, ends=between, chosen=cases):
        watch = watched(testbed, program, f"{ends(testbed)} {chosen}")
        seen = f"{watch.locks} spinlocks, {watch.calls} calls"
        testbed.note(f"{seen}, {watch.faults} page faults at most with one lock")
        expect(watch.locks > 50 and watch.calls > 50, f"the watch saw {seen}")
