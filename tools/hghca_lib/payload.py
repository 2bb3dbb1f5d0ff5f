# SPDX-License-Identifier: GPL-2.0-or-later
"""The payload disk: all files of this project in the guest. It is built in a second.

It holds guest scripts, drivers and provider, and the user space of RDMA if the guest has another one than its disk; the
guest sees it as /opt/hghca, read-only.
"""

import shutil

from . import cache, host, repo

STEP = "payload disk"
SCRIPTS = ["init", "fstab", "server.py"]
# The folder of the user space; its files are below it as they are in a guest.
USERLAND = "userland"
CURE = "see the log"


def files(module, provider):
    """Name on the disk -> host file."""
    found = {name: repo.path(f"tools/guest/{name}") for name in SCRIPTS}
    found.update({path.name: path for path in sorted(module.parent.glob("*.ko"))})
    found.update({path.name: path for path in sorted(provider.iterdir()) if path.is_file()})
    return found


def payload_key(contents, userland):
    return cache.key(*[part for name, path in contents.items() for part in (name, path)],
                     *([USERLAND, str(userland)] if userland else []))


def is_made(module, provider, userland=None):
    return cache.entry("payload", payload_key(files(module, provider), userland)).is_dir()


def make(module, provider, userland=None):
    """The disk with the drivers beside hghca.ko (`module`) and the files of the provider's folder.

    userland: the folder of userland.make(), or None.
    """
    contents = files(module, provider)

    def build(folder):
        log = cache.log_path("payload")
        log.unlink(missing_ok=True)
        root = folder / "root"
        root.mkdir()
        for name, path in contents.items():
            shutil.copy(path, root / name)
        if userland:
            shutil.copytree(userland, root / USERLAND, symlinks=True)
        size_kib = 1024 + 2 * sum(path.lstat().st_size for path in root.rglob("*")) // 1024
        host.run_logged(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(root),
                         str(folder / "payload.ext4"), f"{size_kib}k"], log, STEP, CURE)
        shutil.rmtree(root)

    return cache.make("payload", payload_key(contents, userland), build, 64 * cache.MIB, STEP) / "payload.ext4"
