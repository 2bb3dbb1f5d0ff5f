# SPDX-License-Identifier: GPL-2.0-or-later
"""Coverage data of the driver: how it is compiled to collect them, and how they are copied from a guest.

While HGHCA_GCOV names a folder, the driver is built with GCOV_PROFILE=y, which
counts in a kernel with CONFIG_GCOV_KERNEL. Every guest that ends leaves its
counts there, one archive for each guest. The compiler's notes of a build (.gcno)
stay beside the module in the cache. A stamp in both matches counts with notes,
because there are several builds of the driver.
"""

import base64
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from . import cache
from .errors import ToolError

VARIABLE = "HGHCA_GCOV"
NOTES = "gcno"
STAMP = slice(8, 12)   # after magic and version, in notes and counts alike
COLLECT_S = 120
# The files of debugfs have size 0: they must be read to be copied.
COLLECT = """
set -e
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
[ -d /sys/kernel/debug/gcov ] || exit 0
copy=$(mktemp -d)
cd /sys/kernel/debug/gcov
find . -name '*.gcda' | while read -r file; do
    mkdir -p "$copy/${file%/*}"
    cat "$file" > "$copy/$file"
done
tar -C "$copy" -cz . | base64
"""


def folder():
    """The folder in which guests leave their counts, or None."""
    return Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def make_arguments():
    """Arguments of make for a build of the driver."""
    return ["GCOV_PROFILE=y"] if folder() else []


def keep_notes(work, entry):
    """Keep the notes of the build in `work` with the finished module in `entry`."""
    for path in work.rglob("*.gcno"):
        target = entry / NOTES / path.relative_to(work)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def collect(guest):
    """Fetch the counts of a guest that is about to end."""
    if not folder() or not guest.alive():
        return
    try:
        done = guest.run(COLLECT, timeout=COLLECT_S)
    except ToolError as error:
        print(f"hghca: coverage of a guest is lost: {error}", file=sys.stderr)
        return
    if done.status:
        print(f"hghca: coverage of a guest is lost: status {done.status}: {done.stderr[-500:]}", file=sys.stderr)
    elif done.stdout:
        with tempfile.NamedTemporaryFile(dir=folder(), suffix=".tar.gz", delete=False) as file:
            file.write(base64.b64decode(done.stdout))


def unpack(archive, target):
    """Put the counts of one guest into the folder `target`, each beside its notes; their number."""
    notes = {(path.name, path.read_bytes()[STAMP]): path
             for path in (cache.root() / "module").glob(f"*/{NOTES}/**/*.gcno")}
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            name = Path(member.name)
            if not member.isfile() or name.suffix != ".gcda":
                continue
            data = tar.extractfile(member).read()
            note = notes.get((name.with_suffix(".gcno").name, data[STAMP]))
            if not note:
                raise ToolError(f"the notes of the build are missing that {name} was counted with",
                                "run the coverage again")
            place = target / str(count)
            place.mkdir(parents=True)
            (place / name.name).write_bytes(data)
            shutil.copy(note, place)
            count += 1
    return count
