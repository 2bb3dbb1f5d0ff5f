# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether an emulated CPU keeps its timer while another one changes the memory map.

usage: decode.py PCI-ADDRESS SECONDS (no driver bound, two CPUs)

CPU 1 enables and disables the device's memory decoding; CPU 0 sleeps for 200 us again and again.
"""

import mmap
import os
import struct
import sys
import time

COMMAND, MEMORY = 4, 2   # PCI configuration space: the register, and its bit Memory Space Enable
STALL_S = 5

sleeps = mmap.mmap(-1, mmap.PAGESIZE)


def sleep_on_cpu_0():
    os.sched_setaffinity(0, {0})
    count = 0
    while True:
        time.sleep(0.0002)
        count += 1
        sleeps[:8] = struct.pack("Q", count)


def slept():
    return struct.unpack("Q", sleeps[:8])[0]


def change_map(config, seconds):
    """The number of changes; exits if CPU 0 stops sleeping meanwhile."""
    os.sched_setaffinity(0, {1})
    end = time.monotonic() + seconds
    changes, last, seen = 0, 0, time.monotonic()
    while time.monotonic() < end:
        for command in (0, MEMORY) * 10:
            os.pwrite(config, struct.pack("<H", command), COMMAND)
        changes += 20
        if slept() != last:
            last, seen = slept(), time.monotonic()
        elif time.monotonic() - seen > STALL_S:
            sys.exit(f"CPU 0 has slept {last} times, and no more after {changes} changes of the memory map")
    return changes


child = os.fork()
if not child:
    sleep_on_cpu_0()
try:
    device = os.open(f"/sys/bus/pci/devices/{sys.argv[1]}/config", os.O_RDWR)
    print(f"changes {change_map(device, int(sys.argv[2]))} sleeps {slept()}")
finally:
    os.kill(child, 9)
