# SPDX-License-Identifier: GPL-2.0-or-later
"""All steps of `tools/hghca setup`, in order; each does nothing if its result exists."""

import dataclasses
import threading
from concurrent import futures
from pathlib import Path

from . import buildroot as buildroot_module
from . import debug_kernel, host, image, lines, module, payload, provider, qemu
from . import userland as userland_module
from . import kernel as kernel_module
from .ci import tree as ci_tree
from .progress import Progress


@dataclasses.dataclass
class Setup:
    """Everything that is needed to boot a guest.

    module: the path of hghca.ko, beside which the other drivers lie.
    """
    buildroot: object
    kernel: object
    module: Path
    image: Path
    qemu: object
    payload: Path


def make(verbose=False, kernel=None, modules=None, userland=userland_module.STOCK):
    """Build what is missing; a Setup.

    verbose: also print a line for the steps whose results exist already.
    kernel:  None for the stock kernel, the name of one of debug_kernel.RECIPES, one of lines.choices(), or the path of a
             bzImage; the driver is built for it.
    modules: folder of the modules of a bzImage, or None.
    userland: one of userland.NAMES.
    """
    host.require_root()
    host.require_platform()
    named = kernel in debug_kernel.RECIPES
    other = userland != userland_module.STOCK
    progress = Progress(7 + (named or kernel in lines.choices()) + other, verbose)
    with progress.step("host packages", cached=not host.missing()):
        host.install()
    # One CPU unpacks packages, so the build root and the image are made at the same time, and QEMU, of which one CPU
    # configures the build, beside the image, the driver and the provider.
    root_later = in_background(buildroot_module.make)
    disk_later = in_background(image.make, root_later)
    with progress.step("build root (Debian 13, compilers, sources)", buildroot_module.is_made()):
        root = root_later.result()
    emulator = in_background(qemu.make, root)
    with progress.step("guest image (Debian 13)", image.is_made() and kernel_module.is_made(root)):
        disk = disk_later.result()
        chosen, tree = kernel_module.make(root), None
    if named:
        with progress.step(f"{kernel} kernel (the first time: some 10 minutes)", debug_kernel.is_made(root, kernel)):
            built = debug_kernel.make(root, kernel)
            chosen = dataclasses.replace(chosen, image=built.image, arguments=debug_kernel.RECIPES[kernel].arguments)
            tree = built.tree
    elif kernel in lines.choices():
        with progress.step(f"Linux {kernel} (Debian's packages)", kernel_module.is_line_made(root, kernel)):
            chosen, tree = kernel_module.make_of_line(root, kernel)
    elif kernel:
        built = ci_tree.of_image(kernel)
        chosen = dataclasses.replace(chosen, image=Path(kernel), modules=built.disk if built else None)
        tree = built or module.kernel_tree(kernel, modules)
    with progress.step("kernel module", ci_tree.is_driver_made(root, tree)):
        driver = ci_tree.driver(root, tree)
    ids, files = ci_tree.provider_ids(tree), None
    if other:
        with progress.step(f"rdma-core {userland} (the first time: some minutes)", userland_module.is_made(root, userland)):
            files = userland_module.make(root, userland)
    with progress.step("verbs provider", provider.is_made(root, userland, ids)):
        plugin = provider.make(root, userland, ids)
    with progress.step("QEMU with the device", qemu.is_made(root)):
        emulator = emulator.result()
    with progress.step("payload disk", payload.is_made(driver, plugin, files)):
        extra = payload.make(driver, plugin, files)
    return Setup(root, chosen, driver, disk, emulator, extra)


def in_background(work, *arguments):
    """Run work in a thread; its Future. A thread that is still at work does not keep a program that fails from ending."""
    future = futures.Future()

    def run():
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - result() raises it
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
