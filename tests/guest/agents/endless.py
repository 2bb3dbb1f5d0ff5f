# SPDX-License-Identifier: GPL-2.0-or-later
"""Leaves an RDMA loopback controller running without an end, through sysfs, while no driver is bound to it.

usage: endless.py PCI-ADDRESS

Its SQ has one entry and therefore never becomes empty. The controller may not read it, and takes it as zeros.
"""

import mmap
import os
import sys
import time

CONTROL, SQ_SIZE, SQ_TAIL, CQ_SIZE, CQ_TAIL = 0x00, 0x28, 0x30, 0x48, 0x50
WAIT_S = 20

fd = os.open(f"/sys/bus/pci/devices/{sys.argv[1]}/resource0", os.O_RDWR | os.O_SYNC)
registers = memoryview(mmap.mmap(fd, 4096)).cast("I")
registers[SQ_SIZE // 4] = 1
registers[CQ_SIZE // 4] = 16
registers[CONTROL // 4] = 1
registers[SQ_TAIL // 4] = 1
before, end = registers[CQ_TAIL // 4], time.monotonic() + WAIT_S
while registers[CQ_TAIL // 4] == before:
    if time.monotonic() > end:
        sys.exit("it does not run")
