# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong while setting up: each gives one clear error and leaves the cache as it was."""

import os
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path
from unittest import mock

from tool import fails, hghca, holds, same

from hghca_lib import cache
from hghca_lib.errors import ToolError


def test_setup_again():
    """setup again does nothing, quickly, with a line a step"""
    same(hghca("setup").status, 0, "status")
    ended = hghca("setup")
    same(ended.status, 0, "status")
    same(len(re.findall(r"^\[\d/7\] .* there$", ended.stderr, re.MULTILINE)), 7, "number of steps done before")
    assert ended.seconds < 20, f"{ended.seconds:.0f} s"


def test_two_at_once():
    """Two setups at once both succeed"""
    ended = []
    threads = [threading.Thread(target=lambda: ended.append(hghca("setup"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same([one.status for one in ended], [0, 0], "statuses")


def test_no_root():
    """Without root the error names the cure"""
    fails(hghca("setup", wrap=["unshare", "--user"]), 1, "needs root", "sudo")
    fails(hghca("exec", "--", "true", wrap=["unshare", "--user"]), 125, "needs root", "sudo")


def test_missing_program():
    """A missing program that cannot be installed is named with its package"""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(shutil.which("python3"), Path(folder) / "python3")
        os.symlink(shutil.which("env"), Path(folder) / "env")
        fails(hghca("setup", env={"PATH": folder}), 1, "mmdebstrap", "apt-get", "cure: install these packages")


def test_cache_not_writable():
    """A cache that cannot be made is an error that names HGHCA_CACHE"""
    fails(hghca("setup", env={"HGHCA_CACHE": "/proc/nothing"}), 1, "cannot make the cache folder", "HGHCA_CACHE")


def test_no_disk_space():
    """A full disk is noticed before the work starts"""
    with tempfile.TemporaryDirectory() as folder:
        mount = ["unshare", "--mount", "sh", "-c",
                 f'mount -t tmpfs -o size=16m tmpfs {folder} && exec "$@"', "sh"]
        ended = hghca("setup", env={"HGHCA_CACHE": folder}, wrap=mount)
        fails(ended, 1, "build root: no disk space", "GiB free", "cure:")
        assert ended.seconds < 10, f"{ended.seconds:.0f} s"


def test_failing_download():
    """A mirror that does not answer is an error with step, log and cure, and leaves nothing half-made"""
    with tempfile.TemporaryDirectory() as folder:
        # Each retry happens, but at once.
        apt = Path(folder) / "apt.conf"
        apt.write_text('Acquire::Retries::Delay "false";\n')
        ended = hghca("setup", env={"HGHCA_CACHE": folder, "HGHCA_MIRROR": "http://127.0.0.1:9/debian",
                                    "APT_CONFIG": str(apt)}, timeout=600)
        fails(ended, 1, "build root: mmdebstrap failed", "log:", "cure: check the network", "HGHCA_MIRROR")
        log = re.search(r"log: +(\S+)", ended.stderr).group(1)
        holds(Path(log).read_text(), "127.0.0.1")
        same(list((Path(folder) / "buildroot").iterdir()), [], "entries left in the cache")


def in_own_cache(test):
    """Run a test of the cache module in an empty cache."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, HGHCA_CACHE=folder):
        test()


def test_entry_failing():
    """A cache entry whose making fails leaves nothing, and can be made later"""
    def test():
        def fail(folder):
            (folder / "half").write_text("half")
            raise ToolError("no")

        try:
            cache.make("thing", "key", fail)
            raise AssertionError("the failure was lost")
        except ToolError:
            pass
        same(list((cache.root() / "thing").iterdir()), [], "entries left")
        made = cache.make("thing", "key", lambda folder: (folder / "whole").write_text("whole"))
        same([path.name for path in made.iterdir()], ["whole"], "files of the entry")

    in_own_cache(test)


def test_entry_once():
    """A cache entry wanted by many at once is made once"""
    def test():
        made = []

        def build(folder):
            made.append(folder)
            time.sleep(0.2)

        threads = [threading.Thread(target=cache.make, args=("thing", "key", build)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        same(len(made), 1, "times made")

    in_own_cache(test)


def test_sync():
    """Synchronized sources keep their time when unchanged, and lose what is gone"""
    def test():
        source, target = cache.root() / "source", cache.root() / "target"
        source.mkdir()
        for name in ("same.c", "changed.c", "gone.c", "product.o"):
            (source / name).write_text(name)
        cache.sync_tree(source, [source], target)
        same(sorted(path.name for path in target.iterdir()), ["changed.c", "gone.c", "same.c"], "files")
        os.utime(target / "same.c", (1, 1))
        (source / "gone.c").unlink()
        (source / "changed.c").write_text("new")
        cache.sync_tree(source, [source], target)
        same(sorted(path.name for path in target.iterdir()), ["changed.c", "same.c"], "files")
        same((target / "same.c").stat().st_mtime, 1, "time of the unchanged file")
        same((target / "changed.c").read_text(), "new", "changed file")

    in_own_cache(test)
