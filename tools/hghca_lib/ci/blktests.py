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
# Of a group.
LIMIT_S = 3600
# The share refuses to punch holes into files, so the tests' files are in memory. Not each test that uses /dev/loop-control
# loads its module, which udev's static nodes do elsewhere. After a test, blktests deletes all RDMA links, which the kernel
# refuses for those of hardware.
START = """
modprobe -q -a configfs loop
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
mkdir -p /run/blktests
mount -t tmpfs none /run/blktests
mkdir /run/blktests/bin
cat > /run/blktests/bin/rdma <<'END'
#!/bin/sh
case "$*" in "link del hghca"*) ;; *) exec /usr/bin/rdma "$@" ;; esac
END
chmod +x /run/blktests/bin/rdma
export PATH=/run/blktests/bin:$PATH
export NVMET_TRTYPES=rdma NVME_IMG_SIZE=350M NVME_NUM_ITER=10 TIMEOUT=10
pidof systemd-udevd > /dev/null || /usr/lib/systemd/systemd-udevd --daemon
"""
CHECK = """
cd /share
./check -o /run/blktests/results {group}
cp -r /run/blktests/results /share/
"""
# What blktests adds a software device to.
INTERFACE = """
ip link set eth0 up
ip address add 10.10.0.1/24 dev eth0
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


def groups(subject):
    """Those that run on a subject: rnbd takes no siw."""
    return [group for group in GROUPS if subject != plan.SIW or group != "rnbd"]


def run(made, built, path, group, subject, folder):
    """The Results of a group of tests in a guest of the tree's kernel; those that do not run there are notes of the last."""
    hardware = subject == plan.HGHCA
    start = "".join([START, "" if hardware else INTERFACE, "" if subject == plan.SIW else "export USE_RXE=1\n"])
    with tempfile.TemporaryDirectory(prefix="hghca-blktests-", dir=cache.root()) as name:
        copy = Path(name) / "blktests"
        shutil.copytree(path, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "results"))
        made.buildroot.run(["make", "-s", "-C", "/mnt/blktests/src"], cache.log_path("blktests"), "programs of blktests",
                           "see the log; the checkout may be broken", {"blktests": copy})
        config = machine.Config(hcas=int(hardware), virtio=int(not hardware), share=str(copy), memory="4G",
                                accel=accel.choose(made), serial=str(folder / "kernel-blktests.log"))
        with guest.boot(made, config) as guests:
            done = guests[0].run(start + CHECK.format(group=group), timeout=LIMIT_S)
        (folder / "blktests.log").write_text(done.output)
        return read(group, done.output, copy / "results")


def read(group, said, reports):
    """The Results of what `check` has printed of a group; reports: its folder with the outputs of tests that failed."""
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
    verdict = results.Result(f"blktests: {group}: tests have run", bool(found), notes=left_out or said.splitlines()[-20:])
    for result in found:
        if not result.passed:
            name = result.name.split()[1]
            for file in sorted(reports.glob(f"*/{name}.full")):
                result.notes += file.read_text(errors="replace").splitlines()[-40:]
    return [*found, verdict]
