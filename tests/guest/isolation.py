# SPDX-License-Identifier: GPL-2.0-or-later
"""One process against another: no key, QP, CQ, AH, page or handle of one is of use to another. See src/isolation.h."""

import framework
from badinput import OVERRUN
from data import run_program, to_itself
from framework import CACHE
from pingpong import pingpong

# What each part of src/isolation.c has for cases, and in what machine besides the plain one it is run.
PARTS = {
    "doorbells": ("doorbells and pages", "doorbells: pages:", CACHE),
    "keys": ("keys", "keys:", CACHE),
    "handles": ("handles", "handles:", None),
}


def test(name, **options):
    return framework.test(f"isolation: {name}", subjects=("hghca",), limit_s=150, **options)


def part(rig, cases):
    side = rig.client
    rig.run(f"echo 0 > {side.counters}/lifespan")
    run_program(rig, "isolation", f"{to_itself(rig)} {side.counters} {cases}", timeout=140)
    pingpong(rig, "ibv_rc_pingpong", "ipv4", "-m 1024", 10000, 20)


def enter(title, cases, **options):
    # A CQ may be let run over: the driver tells.
    test(title, expected_log=OVERRUN, **options)(lambda rig: part(rig, cases))


for title, cases, machine in PARTS.values():
    enter(title, cases)
    if machine:
        enter(f"{title}, four contexts on chip", cases, machine=machine)
