# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver hghca.ko, built through the checkout's Kbuild in the build root."""

import shutil
from pathlib import Path

from . import cache, repo
from .errors import ToolError

STEP = "kernel module"
CURE = "the error is in kernel/, include/ or Kbuild of this checkout; correct it there"


def source_paths():
    return [repo.path("Kbuild"), repo.path("kernel"), repo.path("include")]


def module_key(buildroot, tree=None):
    kernel = cache.key(tree / "include/config/kernel.release", tree / "Module.symvers") if tree else ""
    return cache.key(buildroot.key, kernel, cache.tree_key(repo.ROOT, *source_paths()))


def is_made(buildroot, tree=None):
    return cache.entry("module", module_key(buildroot, tree)).is_dir()


def make(buildroot, tree=None):
    """The path of hghca.ko for the stock kernel, or for the kernel built in the folder `tree`."""
    key = module_key(buildroot, tree)

    def build(folder):
        log = cache.log_path("module")
        log.unlink(missing_ok=True)
        work = cache.root() / "module-tree" / cache.key(buildroot.key, str(tree))
        work.mkdir(parents=True, exist_ok=True)
        cache.sync_tree(repo.ROOT, source_paths(), work)
        binds = {"module": work}
        headers = f"/usr/lib/modules/{buildroot.kernel_version()}/build"
        if tree:
            binds["kernel"] = tree
            headers = "/mnt/kernel"
        buildroot.run(["make", "-j2", "-C", headers, "M=/mnt/module", "modules"], log, STEP, CURE, binds)
        shutil.copy(work / "hghca.ko", folder / "hghca.ko")

    return cache.make("module", key, build, 128 * cache.MIB, STEP) / "hghca.ko"


def kernel_tree(bzimage):
    """The build tree that a bzImage lies in, as <tree>/arch/x86/boot/bzImage."""
    image = Path(bzimage).resolve()
    tree = image.parents[3] if len(image.parents) > 3 else image.parent
    if not (tree / "include/config/kernel.release").is_file() or not (tree / "Module.symvers").is_file():
        raise ToolError(f"{bzimage} does not lie in the tree it was built in, so no driver can be built for it",
                        "give the path <tree>/arch/x86/boot/bzImage of a tree in which "
                        "`make bzImage modules` has run")
    return tree
