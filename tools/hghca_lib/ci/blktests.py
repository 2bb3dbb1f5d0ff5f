# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests of blktests that use RDMA, under the kernel of a tree. The checkout is the user's; a copy of it is run.

blktests adds no software device to a network interface that has an RDMA device, so they run from the HCA to itself.
"""

import re
import shutil
import tempfile
from pathlib import Path

from .. import accel, cache, guest, machine
from ..errors import ToolError
from . import plan, results

GROUPS = ("nvme", "rnbd", "srp")
NEEDED = ("check", "common/rc", *(f"tests/{group}/rc" for group in GROUPS))
LIMIT_S = 3600
RUN = """
modprobe -q configfs
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /share
export USE_RXE=1 NVMET_TRTYPES=rdma NVME_IMG_SIZE=128M NVME_NUM_ITER=10 TIMEOUT=10
./check {groups}
"""
# Of a test's line when it has ended; the line of its start has no verdict.
LINE = re.compile(r"^(?P<name>\w+/\d+)(?P<text>.*?)\[(?P<verdict>passed|failed|not run)\]\s*$")
ELAPSED = re.compile(r"^\s+runtime\s.*?([\d.]+)s\s*$")


def check(path):
    """The path of the checkout; ToolError for another folder."""
    folder = Path(path).resolve()
    lacks = [name for name in NEEDED if not (folder / name).is_file()]
    if lacks:
        raise ToolError(f"{path} is no checkout of blktests: it lacks {', '.join(lacks)}",
                        "give --blktests the folder that has its program `check`")
    return folder


def run(made, built, path, subject, folder):
    """The Results of the tests in a guest of the tree's kernel; those that do not run there are notes of the last."""
    with tempfile.TemporaryDirectory(prefix="hghca-blktests-", dir=cache.root()) as name:
        copy = Path(name) / "blktests"
        shutil.copytree(path, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "results"))
        made.buildroot.run(["make", "-s", "-C", "/mnt/blktests/src"], cache.log_path("blktests"), "programs of blktests",
                           "see the log; the checkout may be broken", {"blktests": copy})
        config = machine.Config(hcas=1 if subject == plan.HGHCA else 0, virtio=0 if subject == plan.HGHCA else 1, share=str(copy),
                                accel=accel.choose(made), serial=str(folder / "kernel-blktests.log"), memory="4G")
        with guest.boot(made, config) as guests:
            done = guests[0].run(RUN.format(groups=" ".join(GROUPS)), timeout=LIMIT_S)
        (folder / "blktests.log").write_text(done.output)
        return read(done.output, copy / "results")


def read(said, reports):
    """The Results of what `check` has printed; reports: its folder with the outputs of tests that failed."""
    found, left_out, reason = [], [], None
    for line in said.splitlines():
        match = LINE.match(line)
        if match and match["verdict"] == "not run":
            left_out.append(f"{match['name']}: not run")
            reason = left_out
        elif match:
            found.append(results.Result(f"blktests: {match['name']}{match['text'].rstrip()}", match["verdict"] == "passed"))
            reason = None
        elif reason is not None and line.strip() and not line.lstrip().startswith("runtime"):
            left_out[-1] += f", {line.strip()}"
        elif found and (elapsed := ELAPSED.match(line)):
            found[-1].seconds = float(elapsed.group(1))
        elif found and not found[-1].passed:
            found[-1].notes.append(line)
    verdict = results.Result("blktests: tests have run", bool(found), notes=left_out or said.splitlines()[-20:])
    for result in found:
        if not result.passed:
            name = result.name.split()[1]
            for file in sorted(reports.glob(f"*/{name}.full")):
                result.notes += file.read_text(errors="replace").splitlines()[-40:]
    return [*found, verdict]
