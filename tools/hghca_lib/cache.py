# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache outside the checkout: keys, locks, atomic entries, disk space.

An entry is a folder `<cache>/<kind>/<key>`, where the key is a hash of
everything the entry is made from. It is built beside its place and renamed
into it, so an entry that exists is complete. One lock for each kind prevents
two runs from building the same entry.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .errors import ToolError

MIB = 1 << 20
GIB = 1 << 30
# How many entries of a kind are kept, the last used ones: only a few of the large kinds.
KEEP = {"buildroot": 2, "frame-checkers": 2, "debug-kernel": 6, "kernel-line": 4, "kernel-source": 2,
        "upstream-tree": 2, "image": 2, "qemu-tree": 3, "qemu-source": 2, "provider-tree": 4}
KEEP_OTHERS = 8


def root():
    """The cache folder: $HGHCA_CACHE, else $XDG_CACHE_HOME/hghca, else ~/.cache/hghca."""
    if os.environ.get("HGHCA_CACHE"):
        path = Path(os.environ["HGHCA_CACHE"]).absolute()
    elif os.environ.get("XDG_CACHE_HOME"):
        path = Path(os.environ["XDG_CACHE_HOME"]).absolute() / "hghca"
    else:
        path = Path.home() / ".cache" / "hghca"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"cannot make the cache folder {path}: {error.strerror}",
                        "point HGHCA_CACHE at a folder that can be written") from error
    return path


def key(*parts):
    """A short hash of strings, bytes and files (given as Path, by content)."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        if isinstance(data, str):
            data = data.encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:16]


def tree_files(*paths):
    """The source files under the given files and folders, sorted, without build products."""
    found = []
    for path in paths:
        if path.is_file():
            found.append(path)
        elif path.is_dir():
            found += [p for p in path.rglob("*") if p.is_file() and not _is_product(p)]
    return sorted(found)


def _is_product(path):
    return (path.suffix in {".o", ".ko", ".mod", ".cmd", ".pyc", ".orig", ".rej"}
            or path.name.endswith((".mod.c", "~"))
            or path.name.startswith(".")
            or path.name in {"Module.symvers", "modules.order"}
            or "__pycache__" in path.parts)


def tree_key(base, *paths):
    """A hash of the names (relative to base), modes and contents of source files."""
    parts = []
    for path in tree_files(*paths):
        parts += [str(path.relative_to(base)), str(os.access(path, os.X_OK)), path]
    return key(*parts)


def sync_tree(base, paths, target):
    """Make target hold exactly the source files of base/paths; unchanged files keep their time."""
    wanted = set()
    for path in tree_files(*paths):
        relative = path.relative_to(base)
        wanted.add(relative)
        copy = target / relative
        if copy.is_file() and copy.read_bytes() == path.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        shutil.copymode(path, copy)
    for copy in tree_files(target):
        if copy.relative_to(target) not in wanted:
            copy.unlink()


@contextlib.contextmanager
def lock(name):
    """Hold the lock `name`; wait for another run that holds it."""
    folder = root() / "locks"
    folder.mkdir(exist_ok=True)
    with open(folder / name, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def need_space(what, size_bytes):
    """Fail before the work starts if the cache's disk cannot hold the result."""
    folder = root()
    free = shutil.disk_usage(folder).free
    if free < size_bytes:
        raise ToolError(
            f"{what}: no disk space: {folder} needs {size_bytes / GIB:.1f} GiB free, "
            f"has {free / GIB:.1f} GiB",
            "free some space, or point HGHCA_CACHE at a folder on a larger disk")


def remove(folder):
    """Remove a folder and all below it. Mounts that a killed run has left there are unmounted, not emptied."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for mount in reversed([path for path in mounts if f"{path}/".startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", mount], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def log_path(name):
    """The path of the log `name` of a step."""
    folder = root() / "log"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.log"


def entry(kind, entry_key):
    """The path of an entry, which may not exist."""
    return root() / kind / entry_key


def make(kind, entry_key, build, size_bytes=0, what=None):
    """The entry's folder, built first if it is missing.

    build(folder) fills an empty folder. Returns the entry's path.
    """
    place = entry(kind, entry_key)
    if _used(place):
        return place
    with lock(kind):
        if _used(place):
            return place
        need_space(what or kind, size_bytes)
        place.parent.mkdir(parents=True, exist_ok=True)
        for stale in place.parent.glob("new-*"):
            remove(stale)
        folder = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent))
        folder.chmod(0o755)
        try:
            build(folder)
            folder.rename(place)
        except BaseException:
            remove(folder)
            raise
        _prune(kind)
    return place


def _used(place):
    """Whether the entry exists; if so, record its use."""
    try:
        os.utime(place)
    except FileNotFoundError:
        return False
    return True


def _prune(kind):
    """Remove all but the last few used entries of a kind, never one used within the hour."""
    entries = sorted((path for path in (root() / kind).iterdir() if not path.name.startswith("new-")),
                     key=lambda path: path.stat().st_mtime, reverse=True)
    for place in entries[KEEP.get(kind, KEEP_OTHERS):]:
        if time.time() - place.stat().st_mtime > 3600:
            remove(place)
