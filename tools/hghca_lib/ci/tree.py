# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel of a tree that somebody else has changed: configured, built outside the tree, and its modules installed.

The tree is only read. Each tree has folders of its own in the cache, which stay, so that a later build compiles what has
changed.
"""

import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .. import buildroot, cache, debug_kernel, kernel, module, rdma_core, repo, series
from ..errors import ToolError
from . import ccache

KIND = "ci-tree"
SIZE_BYTES = 4 * cache.GIB
FRAGMENTS = ["debug.config", "ci.config"]
PLAIN = "plain.config"
# How the note of a build's fragments begins if it has checkers.
DEBUG = "debug\n"
# What a guest needs to boot and to reach the RDMA core: a tree that lacks one of these is refused. Of the other options,
# one kernel has some and another one others.
REQUIRED = """
    64BIT SMP MODULES PRINTK PCI PCI_MSI ACPI TTY SERIAL_8250_CONSOLE VIRTIO_PCI VIRTIO_BLK VIRTIO_CONSOLE VIRTIO_NET
    BLK_DEV_INITRD BINFMT_ELF BINFMT_SCRIPT DEVTMPFS PROC_FS SYSFS TMPFS EXT4_FS 9P_FS NET_9P_VIRTIO
    NET INET IPV6 NET_NS INFINIBAND INFINIBAND_USER_ACCESS INFINIBAND_USER_MAD INFINIBAND_ADDR_TRANS
""".split()
# Where a build sees the folders of a Tree.
SOURCE, BUILD, INSTALLED = "/mnt/tree", "/mnt/build", "/mnt/installed"
# Files that every kernel's tree has.
TREE_FILES = ("Makefile", "Kconfig", "Kbuild", "init/main.c", "scripts/kconfig/merge_config.sh")
# What a build in the tree itself leaves there; Kbuild refuses to build outside of such a tree.
BUILT_IN_PLACE = (".config", "include/config", "arch/x86/include/generated")
OPTION = re.compile(r"CONFIG_\w+")
CORE = "drivers/infiniband/core/device.c"
OURS = {"hghca.ko": "drivers/infiniband/hw/hghca", "ernic.ko": "drivers/infiniband/hw/ernic",
        "rdma-loopback.ko": "drivers/dma/rdma-loopback"}
IN_TREE = ("CONFIG_INFINIBAND_HGHCA=m", "CONFIG_INFINIBAND_ERNIC=m", "CONFIG_RDMA_LOOPBACK_DMA=m")
CONFIGURE = """
set -e
make -s O=/mnt/build tinyconfig
scripts/kconfig/merge_config.sh -m -O /mnt/build /mnt/build/.config "$@"
make -s O=/mnt/build olddefconfig
"""
# The tree's Kconfig may have changed since.
AGAIN = "make -s O=/mnt/build olddefconfig"
# The release stays the same from commit to commit: otherwise each would link all modules again.
MAKE = ["make", "LOCALVERSION=", "O=/mnt/build"]
INSTALL = """
set -e
rm -rf /mnt/installed/lib
make -s LOCALVERSION= O=/mnt/build INSTALL_MOD_PATH=/mnt/installed INSTALL_MOD_STRIP=1 modules_install
"""
# A line of a build's output that says what is wrong.
WRONG = re.compile(r"\berror\b:|\*\*\* |undefined reference|ERROR: modpost|^ERROR:|fatal error|No such file", re.IGNORECASE)
COMMIT = ["git", "-c", "safe.directory=*", "-C"]


@dataclasses.dataclass(frozen=True)
class Tree:
    """A tree and its build.

    source: the folder that the user gave; folder: of the build, in the cache; checkers: with KASAN, lockdep and the rest.
    """
    source: Path
    folder: Path
    checkers: bool = False

    @property
    def build(self):
        return self.folder / "build"

    @property
    def image(self):
        return self.build / debug_kernel.IMAGE

    @property
    def installed(self):
        return self.folder / "installed"

    @property
    def release(self):
        return (self.build / "include/config/kernel.release").read_text().strip()

    @property
    def modules(self):
        """The folder of its modules, as --modules takes it."""
        return self.installed / "lib/modules" / self.release

    @property
    def disk(self):
        """A disk image with its modules."""
        return self.folder / "modules.ext4"

    def tree(self):
        """The folder in which make runs for a module, as a build sees it."""
        return BUILD

    def path(self):
        """The same folder of the host."""
        return self.build

    def binds(self):
        return {"tree": self.source, "build": self.build, "installed": self.installed}


def folder_of(source, checkers):
    """The folder of a tree's build; it may not exist."""
    return cache.root() / KIND / cache.key(str(source), DEBUG if checkers else "")


def of_image(image):
    """The Tree whose build has this image, None if it is of no build of ours."""
    folder = Path(image).resolve()
    folder = folder.parents[4] if len(folder.parents) > 4 else folder
    noted = folder / "source"
    if folder.parent != (cache.root() / KIND).resolve() or not noted.is_file():
        return None
    return Tree(Path(noted.read_text()), folder, checkers=(folder / "fragments").read_text().startswith(DEBUG))


def find(path):
    """The absolute path of a kernel's tree; ToolError for a folder without one, or for one that cannot be built outside of itself."""
    source = Path(path).resolve()
    if not source.is_dir():
        raise ToolError(f"there is no folder {path}", "give the folder of a Linux tree, or a range of its commits")
    lacks = [name for name in TREE_FILES if not (source / name).is_file()]
    if lacks:
        raise ToolError(f"{path} is no tree of Linux: it lacks {', '.join(lacks)}",
                        "give the folder that has the kernel's MAINTAINERS file")
    if not (source / CORE).is_file():
        raise ToolError(f"{path} has no RDMA core: it lacks {CORE}", "give a tree that has drivers/infiniband")
    built = [name for name in BUILT_IN_PLACE if (source / name).exists()]
    if built:
        raise ToolError(f"{path} has been built in place: it has {', '.join(built)}",
                        f"run `make -C {path} mrproper` first (it removes .config: keep a copy), "
                        "or give a `git worktree` of it")
    return source


def make(path, checkers, progress):
    """Build a tree, what is missing or has changed; a Tree."""
    source = find(path)
    folder = folder_of(source, checkers)
    if not folder.is_dir():
        cache.need_space("build of the tree", SIZE_BYTES)
    made = Tree(source, folder, checkers)
    for each in (made.build, made.installed):
        each.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    (folder / "source").write_text(str(source))
    root = buildroot.make()
    log = cache.log_path("ci-tree")
    log.unlink(missing_ok=True)
    with cache.lock(folder.name):
        with progress.step("configuration", False):
            configure(root, made, log)
        with progress.step("kernel", False):
            compile_(root, made, log)
        with progress.step("modules", is_installed(made)):
            install(root, made, log)
    return made


def fragments(made):
    names = FRAGMENTS if made.checkers else [*FRAGMENTS, PLAIN]
    return [repo.path(f"tools/kernel/{name}") for name in names]


def has_ours(source):
    """Whether the tree has the drivers itself."""
    return all((source / folder / "Kconfig").is_file() for folder in OURS.values())


def wanted(made):
    """The text of all fragments, which decides whether a configuration is still the right one."""
    own = "".join(f"{line}\n" for line in IN_TREE) if has_ours(made.source) else ""
    return (DEBUG if made.checkers else "plain\n") + "".join(path.read_text() for path in fragments(made)) + own


def is_configured(made):
    noted = made.folder / "fragments"
    return noted.is_file() and noted.read_text() == wanted(made)


def configure(root, made, log):
    """Configure the build, or take over what the tree's Kconfig has changed; each option that is missing is named."""
    own = made.build / "in-tree.config"
    own.write_text("".join(f"{line}\n" for line in IN_TREE) if has_ours(made.source) else "")
    asked = {}
    for fragment in (*fragments(made), own):
        asked.update(debug_kernel.options(fragment))
    missing = apply(root, made, log, AGAIN, asked) if is_configured(made) else asked.values()
    # An option that the tree has again is not set by itself.
    missing = apply(root, made, log, CONFIGURE, asked) if missing else []
    required = needed(missing)
    if required:
        raise ToolError(f"the tree {made.source} does not take {', '.join(required)}",
                        "the tree lacks the option, or what it depends on; a guest needs each of them", log)
    if missing:
        print(f"hghca: the tree does not take {', '.join(missing)}: a test that needs it will fail", file=sys.stderr)
    (made.folder / "fragments").write_text(wanted(made))


def needed(missing):
    """Those of the lines of a configuration without which there is no guest."""
    return [line for line in missing if OPTION.search(line).group().removeprefix("CONFIG_") in REQUIRED]


def apply(root, made, log, script, asked):
    """Run a script of configuration; the lines of `asked`, option -> line, that Kconfig did not take."""
    files = [*(f"/mnt/fragments/{path.name}" for path in fragments(made)), "/mnt/build/in-tree.config"]
    root.run(["sh", "-c", script, "sh", *files], log, "configuration", "see the log; the tree's Kconfig may be wrong",
             {**made.binds(), "fragments": repo.path("tools/kernel")}, SOURCE)
    return lacking(asked.values(), debug_kernel.options(made.build / ".config"))


def lacking(asked, got):
    """The lines of a configuration that Kconfig did not take. got: option -> its line."""
    return [line for line in asked if got.get(OPTION.search(line).group(), f"# {OPTION.search(line).group()} is not set") != line]


def compile_(root, made, log):
    before = log.stat().st_size if log.exists() else 0
    jobs = f"-j{os.cpu_count()}"
    binds, env = ccache.settings(root, made.folder / "ccache")
    try:
        root.run([*MAKE, jobs, "bzImage", "modules"], log, "kernel", None, {**made.binds(), **binds}, SOURCE, env)
    except ToolError:
        said = log.read_bytes()[before:].decode(errors="replace").splitlines()
        raise ToolError(f"the tree {made.source} does not build: {first_error(said)}", "correct the tree", log) from None


def first_error(lines):
    """The first line of a build's output that says what is wrong."""
    return next((line.strip() for line in lines if WRONG.search(line)), "make failed")


def is_installed(made):
    """Whether no module is newer than those installed, and what is a module, or built in, has not changed."""
    order = made.build / "modules.order"
    if not order.is_file() or not (made.build / "include/config/kernel.release").is_file():
        return False
    if not made.disk.is_file() or not made.modules.is_dir():
        return False
    # An installation that was interrupted lacks the second.
    built, installed = (folder / "modules.builtin" for folder in (made.build, made.modules))
    if not installed.is_file() or installed.read_bytes() != built.read_bytes():
        return False
    files = [order, *((made.build / line).with_suffix(".ko") for line in order.read_text().split())]
    return max(file.stat().st_mtime for file in files) < made.disk.stat().st_mtime


def install(root, made, log):
    if is_installed(made):
        return
    root.run(["sh", "-c", INSTALL], log, "modules", "see the log", made.binds(), SOURCE)
    for link in ("build", "source"):
        (made.modules / link).unlink(missing_ok=True)
    made.disk.unlink(missing_ok=True)
    kernel.make_disk(made.modules, made.disk, log, "disk of the modules")


def is_driver_made(root, tree):
    return not is_own(tree) and module.is_made(root, tree)


def is_own(tree):
    """Whether it is a Tree that has the drivers itself."""
    return isinstance(tree, Tree) and has_ours(tree.source)


def provider_ids(tree):
    """The numbers of the drivers' ids that the providers must have; None for those of a driver outside of the tree."""
    return {name: series.DRIVER_IDS[f"RDMA_DRIVER_{name.upper()}"] for name in rdma_core.PROVIDERS} if is_own(tree) else None


def driver(root, tree=None):
    """The path of hghca.ko for a kernel, as module.make(): the tree's own, if it has the drivers."""
    if not is_own(tree):
        return module.make(root, tree)
    files = {name: tree.build / folder / name for name, folder in OURS.items()}

    def copy(folder):
        for name, file in files.items():
            shutil.copy(file, folder / name)

    return cache.make("module", cache.key("in tree", *files.values()), copy, what="the tree's drivers") / "hghca.ko"


def symbol(made, address):
    """The kernel's symbol at an address, as far as the build's map tells."""
    found = f"0x{address:x}"
    with contextlib.suppress(OSError), open(made.build / "System.map", encoding="ascii") as lines:
        for line in lines:
            at, _, name = line.split()
            if int(at, 16) > address:
                break
            found = f"{name}+0x{address - int(at, 16):x}"
    return found


def commit(source):
    """What `git describe` says of the tree, "" without git."""
    try:
        done = subprocess.run([*COMMIT, str(source), "log", "-1", "--format=%h %s"], capture_output=True, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
