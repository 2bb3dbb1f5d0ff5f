# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's test of DMA engines for Debian's kernels of other lines: Debian builds it for none of its kernels."""

import shutil

from . import buildroot, cache, lines, module

STEP = "dmatest of Linux"
SOURCE = "drivers/dma/dmatest.c"
CURE = f"set HGHCA_MIRROR to a mirror whose sources and headers of this line fit together, or use Linux {lines.STOCK}"


def make(line):
    """The path of dmatest.ko for the kernel of a line, from the line's own sources."""
    root, headers = buildroot.make(), lines.make(line)
    step = f"{STEP} {line}"

    def build(made):
        log = cache.log_path(f"dmatest-{line}")
        log.unlink(missing_ok=True)
        shutil.copy(lines.source(line) / SOURCE, made)
        (made / "Kbuild").write_text("obj-m := dmatest.o\n")
        root.run(["make", "-C", headers.tree(), "M=/mnt/out", module.COMPILER, "modules"], log, step, CURE,
                 {"out": made, **headers.binds()})

    return cache.make("dmatest", cache.key(module.kernel_key(root, headers), SOURCE), build, 8 * cache.MIB, step) / "dmatest.ko"
