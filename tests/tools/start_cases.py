# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites start as their own usage shows, without tools/hghca around them."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tool import same

from hghca_lib import repo, tiers

# What the tool sets for a suite.
SET_BY_TOOL = ("HGHCA_TOOL", "HGHCA_CACHE", tiers.VARIABLE)
# All up to the call of main().
LOAD = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[1] + '/run', run_name='suite')"


def suites():
    return sorted(path.parent for path in repo.path("tests").glob("*/run"))


def start(suite):
    """Load the suite's program, or have it list its tests if it is one of the guest's; what it printed."""
    program = suite / "run"
    listing = suite.name == "guest" or "guest/run" in program.read_text()
    argv = [program, "--list"] if listing else [sys.executable, "-c", LOAD, suite]
    env = {name: value for name, value in os.environ.items() if name not in SET_BY_TOOL}
    done = subprocess.run(argv, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode or (listing and done.stdout.count("\n") < 10):
        return f"{suite.name}: status {done.returncode}, {done.stdout.count(chr(10))} tests: {done.stderr[-500:]}"
    return None


def test_start():
    """Each suite starts by itself, from any folder, without a variable of the environment"""
    same(len(suites()) >= 12, True, "suites were found")
    same([why for why in map(start, suites()) if why], [], "suites that do not start")


def test_dependent():
    """A suite that needs a variable of the tool is found"""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "run").write_text('import os\nos.environ["HGHCA_TOOL"]\n')
        assert "KeyError" in str(start(Path(folder))), "it was not found"
