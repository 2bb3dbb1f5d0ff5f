# SPDX-License-Identifier: GPL-2.0-or-later
"""The kselftests of RDMA that a kernel's tree has itself, under its kernel. They make software devices of their own.

kselftest's own program that runs tests needs an installed copy of them, and that needs rsync; the shell functions
under it need the sources only.
"""

import re
import shlex
import shutil
import tempfile
from pathlib import Path

from .. import accel, cache, guest, machine
from ..errors import ToolError
from . import results

FOLDER = "tools/testing/selftests"
TARGET = "rdma"
RUNNER = "kselftest"
LIMIT_S = 1800
# The guest begins with a namespace for each RDMA device; the tests expect Linux's default.
RUN = """
rdma system set netns shared
export BASE_DIR=/share
cd /share/{target}
. /share/{runner}/runner.sh
run_many {programs}
"""
LIST = ["make", "-s", "-C", f"/mnt/tree/{FOLDER}/{TARGET}", f"COLLECTION={TARGET}", "emit_tests"]
# Of a test's end, after what it has printed.
LINE = re.compile(r"^(?P<verdict>ok|not ok) \d+ selftests: (?P<name>\S+ \S+?)(?: # (?P<more>.*))?$")
SKIP = "SKIP"
CURE = "give a tree that has them, as Linux 7.3 does, or leave --kselftests out"


def check(path):
    """ToolError for a tree without these tests."""
    lacks = [name for name in (TARGET, RUNNER) if not (Path(path) / FOLDER / name).is_dir()]
    if lacks:
        raise ToolError(f"{path} has no kselftests of RDMA: {FOLDER} lacks {', '.join(lacks)}", CURE)


def programs(made, source):
    """The names of the tests, as the Makefile of the tree lists them."""
    done = made.buildroot.output(LIST, {"tree": source})
    names = [line.partition(":")[2] for line in done.stdout.splitlines() if line.startswith(f"{TARGET}:")]
    if not names:
        raise ToolError(f"the Makefile in {source / FOLDER / TARGET} lists no tests: {done.stderr.strip()}", CURE)
    return names


def run(made, built, folder):
    """The Results of the tests in a guest of the tree's kernel; those that do not run there are notes of the last."""
    names = programs(made, built.source)
    with tempfile.TemporaryDirectory(prefix="hghca-kselftests-", dir=cache.root()) as name:
        for each in (TARGET, RUNNER):
            shutil.copytree(built.source / FOLDER / each, Path(name) / each)
        config = machine.Config(hcas=0, share=name, accel=accel.choose(made), serial=str(folder / "kernel-kselftests.log"))
        with guest.boot(made, config) as guests:
            done = guests[0].run(RUN.format(target=TARGET, runner=RUNNER, programs=shlex.join(names)), timeout=LIMIT_S)
    (folder / "kselftests.log").write_text(done.output)
    return read(done.output, len(names))


def read(said, count):
    """The Results of what kselftest has printed; count: of the tests that were asked for."""
    found, left_out, notes = [], [], []
    for line in said.splitlines():
        match = LINE.match(line)
        if not match:
            notes.append(line.removeprefix("# "))
            continue
        name, more = match["name"], match["more"] or ""
        if more.startswith(SKIP):
            left_out.append(f"{name}: not run, {notes[-1] if notes else more}")
        else:
            found.append(results.Result(f"kselftests: {name}", match["verdict"] == "ok",
                                        notes=[*notes, more] if match["verdict"] != "ok" else []))
        notes = []
    complete = len(found) + len(left_out) == count
    verdict = results.Result("kselftests: tests have run", bool(found) and complete, notes=[*left_out, *notes[-20:]])
    return [*found, verdict]
