# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs provider: what verbs return."""

from data import run_program as run
from data import to_itself
from framework import test

OURS = {"subjects": ("hghca",)}


@test("provider: errno is what verbs return", **OURS)
def errnos(rig):
    run(rig, "errnos", to_itself(rig))
