# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets the flow control of an ERNIC, which the driver leaves alone, through sysfs.

usage: ernicpause.py PCI-ADDRESS PRIORITY | off

The kernel lets nobody map what a driver has claimed unless it was booted with iomem=relaxed. The registers are those of
PG332; docs/reference/ernic.rst.
"""

import mmap
import os
import sys

BUF_THRESHOLD_ROCE, PAUSE_CONF = 0x20008, 0x2000C
# Free lines of the receive buffer, of 512: the peer is paused at XON, until there are XOFF.
XON, XOFF = 256, 400

fd = os.open(f"/sys/bus/pci/devices/{sys.argv[1]}/resource0", os.O_RDWR | os.O_SYNC)
registers = memoryview(mmap.mmap(fd, 0x40000)).cast("I")
registers[BUF_THRESHOLD_ROCE // 4] = XOFF << 16 | XON
registers[PAUSE_CONF // 4] = 0 if sys.argv[2] == "off" else int(sys.argv[2]) << 4 | 1
