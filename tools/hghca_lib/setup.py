# SPDX-License-Identifier: GPL-2.0-or-later
"""All steps of `tools/hghca setup`, in order; each does nothing when its result is there."""

import dataclasses
from pathlib import Path

from . import buildroot as buildroot_module
from . import host, image, kernel, module, payload, provider, qemu
from .progress import Progress


@dataclasses.dataclass
class Setup:
    """Everything that booting a guest takes."""
    buildroot: object
    kernel: object
    image: Path
    qemu: object
    payload: Path


def make(verbose=False, kernel_tree=None):
    """Make what is missing; a Setup.

    verbose:     print a line also for the steps that had nothing to do.
    kernel_tree: build the driver for the kernel in this build tree, not for the stock one.
    """
    host.require_root()
    host.require_platform()
    progress = Progress(7, verbose)
    with progress.step("host packages", cached=not host.missing()):
        host.install()
    with progress.step("build root (Debian 13, compilers, sources)", buildroot_module.is_made()):
        root = buildroot_module.make()
    with progress.step("guest image (Debian 13)", image.is_made(root) and kernel.is_made(root)):
        disk = image.make(root)
        stock = kernel.make(root)
    with progress.step("QEMU with the device", qemu.is_made(root)):
        emulator = qemu.make(root)
    with progress.step("kernel module", module.is_made(root, kernel_tree)):
        driver = module.make(root, kernel_tree)
    with progress.step("verbs provider", provider.is_made(root)):
        plugin = provider.make(root)
    with progress.step("payload disk", payload.is_made(driver, plugin)):
        extra = payload.make(driver, plugin)
    return Setup(root, stock, disk, emulator, extra)
