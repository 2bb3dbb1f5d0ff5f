# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels with the kernel's own checkers, built from Debian's source packages at their first use.

Each is tinyconfig with the fragments of tools/kernel. The cache keeps the files
of a build that are needed to boot it and to build a module against it.
"""

import dataclasses
import re
from pathlib import Path

from . import cache, lines, repo
from .errors import ToolError

SOURCE = f"/usr/src/linux-source-{lines.STOCK}.tar.xz"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What a kernel is built from.

    kind:      the name of the kernel with the same checkers that is of the build root's line.
    fragments: files of tools/kernel, the later ones merged over the earlier ones.
    line:      of the source: that of the build root, or one of lines.SUITES.
    arguments: words of its command line.
    """
    kind: str
    fragments: tuple
    line: str = lines.STOCK
    arguments: str = ""


# In Linux 7.3 (alloc_from_pcs() of mm/slub.c), an array in each cache of slabs keeps the address of an object that it has
# given out, until it gets another one. kmemleak takes that for a reference: of 100 leaks, it reported 28. A cache whose
# objects are checked has no such arrays.
NO_SHEAVES = "slab_debug=F"
# A driver that is unbound and bound again leaves thousands of backtraces in the stack depot, which never forgets one. Linux
# 7.3 stores more of them, and warns when its 128 MiB are full; this is four times as much.
DEPOT = "stack_depot_max_pools=32768"
RECIPES = {
    "debug": Recipe("debug", ("debug.config",)),
    "kcsan": Recipe("kcsan", ("debug.config", "kcsan.config")),
    "debug-7.3": Recipe("debug", ("debug.config", "debug-7.3.config"), "7.3", f"{NO_SHEAVES} {DEPOT}"),
    "kcsan-7.3": Recipe("kcsan", ("debug.config", "debug-7.3.config", "kcsan.config"), "7.3"),
}
# The factor of all time limits in a guest, by the kind of its kernel. Of the tests that take more than 2 s under the stock
# kernel, each took at most 6.2 times as long under the debug kernel, all on the same two emulated CPUs.
SLOWNESS = {"stock": 1, "debug": 6, "kcsan": 10}
SIZE_BYTES = 4 * cache.GIB
IMAGE = "arch/x86/boot/bzImage"
# Both lists hold for Linux 6.12 and 7.3, which have all of these folders.
#
# These folders handle no memory of the driver, of ib_core or of the network. With KASAN and UBSAN, they would take longer
# to compile and to run. Locks, timers, RCU, the scheduler and memory management are checked: what they use lies in the
# driver's structures.
UNCHECKED = """
    arch/x86/events arch/x86/events/amd arch/x86/kernel/cpu arch/x86/pci
    block block/partitions drivers/acpi drivers/acpi/acpica drivers/block drivers/char drivers/char/hw_random
    drivers/iommu drivers/iommu/intel drivers/pnp drivers/pnp/pnpacpi drivers/tty drivers/tty/hvc drivers/tty/serial
    drivers/tty/serial/8250 drivers/virtio
    fs fs/9p fs/exportfs fs/ext4 fs/hugetlbfs fs/iomap fs/jbd2 fs/netfs fs/nls fs/notify fs/notify/inotify fs/proc fs/ramfs
    ipc kernel/bpf kernel/cgroup kernel/events kernel/trace net/9p
"""
# With -O1, a file takes three quarters of the time to compile. In these folders, guests spend much of their time, and
# those of arch/x86 rely on the removal of code that is never executed.
OPTIMIZED = """
    arch/x86/entry arch/x86/kernel arch/x86/kernel/apic arch/x86/kernel/fpu arch/x86/lib arch/x86/mm
    kernel/irq kernel/locking kernel/rcu kernel/sched kernel/time mm mm/kasan
"""
CONFIGURE = f"""
set -e
tar -xJf $1 --strip-components=1 --exclude='*/Documentation/*/*' --exclude='*/tools/testing/*'
shift
for folder in {" ".join(OPTIMIZED.split())}; do
    echo 'ccflags-y += -O2' >> $folder/Makefile
done
for folder in {" ".join(UNCHECKED.split())}; do
    printf 'KASAN_SANITIZE := n\\nUBSAN_SANITIZE := n\\n' >> $folder/Makefile
done
make tinyconfig
scripts/kconfig/merge_config.sh -m .config "$@"
make olddefconfig
"""
BUILD = "make -j$(nproc) KCFLAGS=-O1 bzImage modules"
# The files that a module build needs stay: the configuration, headers, scripts, objtool, the symbols' versions.
# vmlinux stays for gdb, and the only module, dmatest.ko, for tests.
PRUNE = """
set -e
mv drivers/dma/dmatest.ko .
only() {
    folder=$1
    shift
    ls -A $folder | grep -vxF "$(printf '%s\\n' "$@")" | sed "s,^,$folder/," | xargs -d '\\n' rm -rf
}
only . .config Kbuild Makefile Module.symvers System.map arch dmatest.ko include scripts tools vmlinux
only arch x86
only tools objtool
find arch/x86 -name '*.[ao]' -o -name 'vmlinux*' -o -name '.*.cmd' | xargs rm -f
find arch/x86 tools -name '*.c' | xargs rm -f
"""
OPTION = re.compile(r"^(?:# )?(CONFIG_\w+)(?:=| is not set)")


@dataclasses.dataclass
class DebugKernel:
    """A built kernel: its boot image, and the tree to build modules against."""
    image: Path
    tree: Path


def of_kind(kind):
    """The names of the kernels of a kind."""
    return [name for name, recipe in RECIPES.items() if recipe.kind == kind]


def is_of_other_line(name):
    """Whether it is the name of one of these kernels that is not of the build root's line."""
    return name in RECIPES and RECIPES[name].line != lines.STOCK


def fragments(name):
    return [repo.path(f"tools/kernel/{file}") for file in RECIPES[name].fragments]


def tree_key(buildroot, name):
    source = [lines.source_key(buildroot, RECIPES[name].line)] if is_of_other_line(name) else []
    return cache.key(buildroot.key, name, CONFIGURE, BUILD, PRUNE, *fragments(name), *source)


def is_made(buildroot, name="debug"):
    return cache.entry("debug-kernel", tree_key(buildroot, name)).is_dir()


def make(buildroot, name="debug"):
    """The kernel of that name, built first if it is missing."""
    step = f"{name} kernel"

    def build(folder):
        log = cache.log_path(f"{name}-kernel")
        log.unlink(missing_ok=True)
        binds = {"tree": folder, "fragments": repo.path("tools/kernel")}
        cure = "the log has the reason; a fragment in tools/kernel of this checkout may be wrong"
        files = [f"/mnt/fragments/{file}" for file in RECIPES[name].fragments]
        source = SOURCE
        if is_of_other_line(name):
            archive = lines.archive(RECIPES[name].line)
            binds["source"], source = archive.parent, f"/mnt/source/{archive.name}"
        buildroot.run(["sh", "-c", CONFIGURE, "sh", source, *files], log, step, cure, binds, "/mnt/tree")
        check(folder / ".config", fragments(name), step, log)
        buildroot.run(["sh", "-c", BUILD], log, step, cure, binds, "/mnt/tree")
        buildroot.run(["sh", "-c", PRUNE], log, step, cure, binds, "/mnt/tree")

    tree = cache.make("debug-kernel", tree_key(buildroot, name), build, SIZE_BYTES, step)
    return DebugKernel(tree / IMAGE, tree)


def options(path):
    """The lines of a configuration: option -> its whole line."""
    return {match.group(1): line for line in path.read_text().splitlines() if (match := OPTION.match(line))}


def check(config, wanted, step, log=None):
    """Kconfig silently drops an option whose conditions are not met; here that is an error."""
    asked = {}
    for fragment in wanted:
        asked.update(options(fragment))
    got = options(config)
    # If the conditions of an option are not met, Kconfig does not write it, so it is not set.
    dropped = [line for option, line in asked.items()
               if got.get(option, f"# {option} is not set") != line]
    if dropped:
        raise ToolError(f"{step}: Kconfig did not take {', '.join(dropped)}",
                        "a condition of it is not met; look it up in the Kconfig files of the kernel's source", log)
