# SPDX-License-Identifier: GPL-2.0-or-later
"""src/manyqps.c: ten thousand QPs, and numbers that come round. What the test leaves behind the framework sees."""

from data import run_program, to_itself
from framework import CACHE, test

OURS = {"subjects": ("hghca",), "limit_s": 120}


@test("verbs: ten thousand QPs", **OURS)
def by_itself(rig):
    run_program(rig, "manyqps", to_itself(rig), timeout=115 * rig.slowness)


@test("verbs: ten thousand QPs, four contexts on chip", machine=CACHE, **OURS)
def with_few_contexts(rig):
    run_program(rig, "manyqps", to_itself(rig), timeout=115 * rig.slowness)
