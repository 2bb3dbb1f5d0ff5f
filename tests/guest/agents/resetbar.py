# SPDX-License-Identifier: GPL-2.0-or-later
"""Resets a device by its own register, through sysfs, whether or not a driver is bound to it.

usage: resetbar.py PCI-ADDRESS

The kernel lets nobody map what a driver has claimed unless it was booted with iomem=relaxed.
"""

import mmap
import os
import sys

RESET = 0xF0010

fd = os.open(f"/sys/bus/pci/devices/{sys.argv[1]}/resource0", os.O_RDWR | os.O_SYNC)
memoryview(mmap.mmap(fd, 1 << 20)).cast("I")[RESET // 4] = 1
