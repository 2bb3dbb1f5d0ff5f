# SPDX-License-Identifier: GPL-2.0-or-later
"""The drivers, built through the checkout's Kbuild in the build root."""

import shutil
from pathlib import Path

from . import cache, gcov, repo
from .errors import ToolError

STEP = "kernel module"
SUITES = "tests/kunit"
# The files that identify a kernel, for its modules.
TREE_FILES = ["include/config/kernel.release", "include/generated/autoconf.h", "Module.symvers"]
# For gdb, even if the kernel itself has no debug information.
DEBUG_INFO = "KCFLAGS=-g"
CURE = "the error is in kernel/, include/, tests/kunit/ or Kbuild of this checkout; correct it there"


def source_paths():
    return [repo.path("Kbuild"), repo.path("kernel"), repo.path("include")]


def kernel_key(buildroot, tree):
    """The key of a kernel: that of the stock kernel is the same for each copy of its tree."""
    tree = tree or buildroot.path / f"usr/src/linux-headers-{buildroot.kernel_version()}"
    return cache.key(buildroot.key, *[tree / file for file in TREE_FILES])


def module_key(buildroot, tree=None):
    return cache.key(kernel_key(buildroot, tree), DEBUG_INFO, cache.tree_key(repo.ROOT, *source_paths()),
                     *gcov.make_arguments())


def is_made(buildroot, tree=None):
    return cache.entry("module", module_key(buildroot, tree)).is_dir()


def make(buildroot, tree=None):
    """The path of hghca.ko for the stock kernel, or for the kernel built in the folder `tree`; the others lie beside it."""
    return _make(module_key(buildroot, tree), buildroot, tree, [], STEP)


def make_with_suites(buildroot, tree):
    """The path of hghca.ko with the KUnit suites, for the kernel built in the folder `tree`."""
    key = cache.key("kunit stripped", module_key(buildroot, tree), cache.tree_key(repo.ROOT, repo.path(SUITES)))
    return _make(key, buildroot, tree, ["HGHCA_KUNIT=1"], f"{STEP} with KUnit suites", stripped=True)


def _make(key, buildroot, tree, variant, step, stripped=False):
    """Both variants for a kernel are built in one folder, so that the driver's objects are compiled once.

    stripped: nobody debugs it with gdb, and a guest loads it in less time without what gdb reads.
    """
    def build(made):
        log = cache.log_path("module")
        log.unlink(missing_ok=True)
        work = cache.root() / "module-tree" / cache.key(kernel_key(buildroot, tree), *gcov.make_arguments())
        work.mkdir(parents=True, exist_ok=True)
        cache.sync_tree(repo.ROOT, [*source_paths(), repo.path(SUITES)], work)
        for other in work.glob("*.ko"):
            other.unlink()
        binds = {"module": work}
        headers = f"/usr/lib/modules/{buildroot.kernel_version()}/build"
        if tree:
            binds["kernel"] = tree
            headers = "/mnt/kernel"
        buildroot.run(["make", "-j2", "-C", headers, "M=/mnt/module", DEBUG_INFO, *variant, *gcov.make_arguments(),
                       "modules"], log, step, CURE, binds)
        if stripped:
            buildroot.run(["sh", "-c", "strip --strip-debug /mnt/module/*.ko"], log, step, CURE, binds)
        for driver in sorted(work.glob("*.ko")):
            shutil.copy(driver, made / driver.name)
        gcov.keep_notes(work, made)

    return cache.make("module", key, build, 128 * cache.MIB, step) / "hghca.ko"


def kernel_tree(bzimage, modules=None):
    """The build tree of a kernel: the one that contains its bzImage, or the one that its folder of modules links to."""
    image = Path(bzimage).resolve()
    candidates = [image.parents[3] if len(image.parents) > 3 else image.parent]
    if modules:
        candidates.insert(0, (Path(modules) / "build").resolve())
    for tree in candidates:
        if all((tree / file).is_file() for file in TREE_FILES):
            return tree
    raise ToolError(f"{bzimage} does not lie in the tree it was built in, so no driver can be built for it",
                    "give the path <tree>/arch/x86/boot/bzImage of a tree in which `make bzImage modules` has run, "
                    "or a folder of its modules, with its link `build`, as --modules")
