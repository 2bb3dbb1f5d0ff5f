# SPDX-License-Identifier: GPL-2.0-or-later
"""The drivers, built through the checkout's Kbuild in the build root."""

import re
import shutil
from pathlib import Path

from . import cache, gcov, lines, repo
from .errors import ToolError

STEP = "kernel module"
SUITES = "tests/kunit"
# The files that identify a kernel, for its modules.
TREE_FILES = ["include/config/kernel.release", "include/generated/autoconf.h", "Module.symvers"]
# For gdb, even if the kernel itself has no debug information.
DEBUG_INFO = "KCFLAGS=-g"
# Debian's headers and the build root's compiler are known to warn of nothing.
WARNINGS = "W=1"
# The headers of an older Debian name its compiler, which the build root lacks.
COMPILER = "CC=gcc"
# The file beside the drivers with what the build said besides its steps.
SAID = "said"
# Steps of a build that say nothing.
BUILD_STEP = re.compile(r"^\s+(CC|PROBE|CHECK|LD|MODPOST|BTF|AR) |^make|^Skipping BTF generation|"
                        r"^warning: the compiler differs|^\s+(The kernel was built by|You are using):")
CURE = "the error is in kernel/, include/, tests/kunit/ or Kbuild of this checkout; correct it there"


def source_paths():
    return [repo.path("Kbuild"), repo.path("kernel"), repo.path("include")]


def kernel_key(buildroot, tree):
    """The key of a kernel: that of the stock kernel is the same for each copy of its tree."""
    folder = tree or buildroot.path / f"usr/src/linux-headers-{buildroot.kernel_version()}"
    if has_place(tree):
        folder = tree.path()
    return cache.key(buildroot.key, *[folder / file for file in TREE_FILES])


def module_key(buildroot, tree=None):
    return cache.key(kernel_key(buildroot, tree), cache.tree_key(repo.ROOT, *source_paths()), *arguments(tree), SAID)


def arguments(tree=None):
    """Arguments of make that say how the drivers are compiled."""
    compiler = [COMPILER] if isinstance(tree, lines.Headers) else []
    return [DEBUG_INFO, *([WARNINGS] if not tree or compiler else []), *compiler, *gcov.make_arguments()]


def has_place(tree):
    """Whether it says itself where a build sees it: lines.Headers, ci.tree.Tree."""
    return hasattr(tree, "binds")


def place(buildroot, tree=None):
    """The folder in which make runs, as a build sees it, and what the build must see for that (name -> host folder)."""
    if has_place(tree):
        return tree.tree(), tree.binds()
    if tree:
        return "/mnt/kernel", {"kernel": tree}
    return f"/usr/lib/modules/{buildroot.kernel_version()}/build", {}


def work_folder(buildroot, tree=None):
    """The folder in which the drivers are built for a kernel."""
    return cache.root() / "module-tree" / cache.key(kernel_key(buildroot, tree), *gcov.make_arguments())


def copy_work(buildroot, target):
    """Copy what has been built for the stock kernel, whatever state of the sources it has; make then compiles the rest."""
    work = work_folder(buildroot)
    with cache.lock("module"):
        if work.is_dir():
            shutil.copytree(work, target, symlinks=True, dirs_exist_ok=True)


def is_made(buildroot, tree=None):
    return cache.entry("module", module_key(buildroot, tree)).is_dir()


def make(buildroot, tree=None):
    """The path of hghca.ko for the stock kernel; the others lie beside it.

    tree: the folder in which another kernel was built, its lines.Headers, or a ci.tree.Tree.
    """
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
        work = work_folder(buildroot, tree)
        work.mkdir(parents=True, exist_ok=True)
        cache.sync_tree(repo.ROOT, [*source_paths(), repo.path(SUITES)], work)
        for other in work.glob("*.ko"):
            other.unlink()
        headers, binds = place(buildroot, tree)
        binds["module"] = work
        try:
            buildroot.run(["make", "-j2", "-C", headers, "M=/mnt/module", *arguments(tree), *variant, "modules"], log,
                          step, CURE, binds)
        finally:
            # The suites static and lines read what the builds for Debian's kernels say.
            if WARNINGS in arguments(tree):
                forget_warned(work, log)
        (made / SAID).write_text("".join(f"{line}\n" for line in warnings(log)))
        if stripped:
            buildroot.run(["sh", "-c", "strip --strip-debug /mnt/module/*.ko"], log, step, CURE, binds)
        for driver in sorted(work.glob("*.ko")):
            shutil.copy(driver, made / driver.name)
        gcov.keep_notes(work, made)

    return cache.make("module", key, build, 128 * cache.MIB, step) / "hghca.ko"


def warnings(log):
    """The lines of a build's log that are no usual steps."""
    said = log.read_text(errors="replace").splitlines()
    return [line for line in said if line and not line.startswith("$ ") and not BUILD_STEP.match(line)]


def forget_warned(work, log):
    """Remove the objects if the compiler has warned, so that the next build warns again."""
    if warnings(log):
        for built in work.rglob("*.o"):
            built.unlink()


def check_release(bzimage, image, modules):
    """The modules are of this image, as far as the tree around the image tells its release."""
    told = image.parents[3] / TREE_FILES[0] if len(image.parents) > 3 else image
    release = told.read_text().strip() if modules and told.is_file() and told != image else None
    if release and Path(modules).resolve().name != release:
        raise ToolError(f"{modules} has the modules of another kernel: {bzimage} is {release}",
                        f"give the folder lib/modules/{release} as --modules")


def kernel_tree(bzimage, modules=None):
    """The build tree of a kernel: the one that contains its bzImage, or the one that its folder of modules links to."""
    image = Path(bzimage).resolve()
    candidates = [image.parents[3] if len(image.parents) > 3 else image.parent]
    if modules:
        candidates.insert(0, (Path(modules) / "build").resolve())
    for tree in candidates:
        if all((tree / file).is_file() for file in TREE_FILES):
            check_release(bzimage, image, modules)
            return tree
    raise ToolError(f"{bzimage} does not lie in the tree it was built in, so no driver can be built for it",
                    "give the path <tree>/arch/x86/boot/bzImage of a tree in which `make bzImage modules` has run, "
                    "or a folder of its modules, with its link `build`, as --modules")
