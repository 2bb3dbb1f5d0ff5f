# SPDX-License-Identifier: GPL-2.0-or-later
"""programs/manyqps.c: ten thousand QPs, and numbers that come round. What a test leaves behind the framework sees."""

from data import run_program, to_itself
from framework import gate_if, test

LIMIT_S = 150
CASES = ["one after the other", "all at once", "until the numbers come round"]

for case_name in CASES:
    test(f"verbs: ten thousand QPs, {case_name}",
         lambda testbed, case_name=case_name: run_program(testbed, "manyqps", to_itself(testbed), f"-- '{case_name}'",
                                                          timeout=(LIMIT_S - 5) * testbed.slowness),
         # The others make and destroy many more of them, one after the other.
         subjects=("hghca",), limit_s=LIMIT_S, tier=gate_if(case_name == "all at once"))
