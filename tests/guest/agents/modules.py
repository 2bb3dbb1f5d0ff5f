# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, a module of them at a time, each in a process of its own that has no Python to start.

usage: modules.py

Each line of input is `run MODULE DEVICE GID-INDEX SECONDS`. Each is answered by
a line of JSON: the status of the tests of test_MODULE and all that they print.
They are ended after so many seconds.
"""

import importlib
import json
import os
import random
import signal
import sys
import tempfile
import traceback
import types
import unittest

FOLDER = "/usr/share/rdma-core-tests/tests"


def name_package():
    """Make the package `tests` known without its __init__, which imports all modules, those of other devices too."""
    sys.path.insert(0, FOLDER)
    package = types.ModuleType("tests")
    package.__path__ = [FOLDER]
    sys.modules["tests"] = package


def run_here(module, device, gid_index):
    """Run the tests of a module; the exit status."""
    from args_parser import parser
    sys.argv = ["run_tests.py", "--dev", device, "--gid", gid_index, "-v"]
    parser.parse_args()
    # Attributes are at random, and so is what a device without some of them can skip.
    random.seed(f"{module} {gid_index}")
    try:
        unittest.main(module=importlib.import_module(f"tests.test_{module}"))
    except SystemExit as end:
        return int(end.code)
    except BaseException:
        traceback.print_exc()
    return 1


def do_run(module, device, gid_index, seconds):
    # What is imported here is not imported again by the next one.
    importlib.import_module(f"tests.test_{module}")
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            signal.alarm(int(seconds))
            status = run_here(module, device, gid_index)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return {"status": status, "output": output.read().decode(errors="replace")}


def main():
    name_package()
    for line in sys.stdin:
        word, *arguments = line.split()
        print(json.dumps({"run": do_run}[word](*arguments)), flush=True)


main()
