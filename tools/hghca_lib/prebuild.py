# SPDX-License-Identifier: GPL-2.0-or-later
"""What the suites compile, compiled before guests boot.

Compilers beside guests make both slower: two programs that poll each other waste their CPUs while one of them waits for
a compiler.
"""

import contextlib
import os
import threading
from concurrent import futures

from . import buildroot, cache, debug_kernel, module, setup, unit


@contextlib.contextmanager
def under_way():
    """Compile during the block; after it, all is compiled. A suite that needs what does not compile reports why."""
    root = buildroot.make()
    works = [setup.in_background(work, root) for work in (kernel, programs, checkers)]
    yield
    futures.wait(works)


def kernel(root):
    """The debug kernel, which takes longest, and the driver for it."""
    module.make(root, debug_kernel.make(root).tree)


def programs(root):
    """The programs of the suites `unit`, `sim` and `fuzz`.

    They wait for the kernel, at whose end one CPU links it: the other then still has work. What a thread starts has its
    nice value.
    """
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    for variant in (unit.ADDRESS, unit.THREAD, *unit.IMAGES, unit.SIMULATION, unit.REPLAY):
        with cache.lock("unit-tree"):
            unit.make(root, variant)


def checkers(_):
    """The root of the programs that check frames: it is fetched meanwhile."""
    buildroot.make(buildroot.FRAME_CHECKERS)
