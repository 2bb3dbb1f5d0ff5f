# SPDX-License-Identifier: GPL-2.0-or-later
"""Tiers of tests: each test belongs to a tier, and a tier includes the tiers before it.

quick: minutes, for use after an edit; gate: required for each change; all: every test, run manually.
$HGHCA_TIER is the tier that a suite runs; without it a suite runs all of its tests.
"""

import os

QUICK, GATE, ALL = TIERS = ("quick", "gate", "all")
VARIABLE = "HGHCA_TIER"


def current():
    """The tier that $HGHCA_TIER selects."""
    tier = os.environ.get(VARIABLE) or ALL
    if tier not in TIERS:
        raise ValueError(f"{VARIABLE} is {tier}, not one of {', '.join(TIERS)}")
    return tier


def includes(wanted, tier):
    """Whether a run of the tier `wanted` includes a test of `tier`."""
    return TIERS.index(tier) <= TIERS.index(wanted)
