# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of the tests of storage over RDMA: the target's exported disk, and the host's accesses to it."""

import dataclasses
import re

from framework import expect
from users import carried, check_fast, fast

MIB = 1 << 20


@dataclasses.dataclass
class Disk:
    """The exported disk. The stock kernel's RAM disk has sectors of 512 bytes, a file has blocks of 4 KiB.

    tested_mib: what tests write and read of it from its beginning. A copy of the payload disk needs more.
    """
    path: str
    mib: int
    tested_mib: int
    sector: int


# A RAM disk takes memory for what is written to it.
RAM = Disk("/dev/ram0", 256, 48, 512)
FILE = Disk("/tmp/namespace", 32, 32, 4096)
LOAD_RAM = f"modprobe brd rd_nr=1 rd_size={RAM.mib * 1024}"


def disk_of(testbed):
    """The debug kernels have no RAM disk."""
    return RAM if testbed.kernel == "stock" else FILE


def checksum(testbed, side, disk, block="1M"):
    """The checksum of what tests write, read from the device and not from the page cache."""
    testbed.run("sync; echo 3 > /proc/sys/vm/drop_caches", side)
    return testbed.run(f"dd if={disk} bs={block} count={disk_of(testbed).tested_mib}M iflag=direct,count_bytes "
                       "status=none | sha256sum", side).split()[0]


def write_random(testbed, host, disk, block):
    """Write random bytes to the disk; their checksum, computed before the write."""
    return testbed.run(f"set -e; head -c {disk_of(testbed).tested_mib}M /dev/urandom > /tmp/random; "
                       f"sha256sum /tmp/random; dd if=/tmp/random of={disk} bs={block} oflag=direct status=none; rm /tmp/random",
                       host).split()[0]


# Bytes of one write and read request.
BLOCKS = ("1M", "64k", "4M")


def write_and_compare(testbed, host, server, disk, blocks=BLOCKS):
    """Write and read random data; compare the host's checksum, the data read by the host, and the target's data."""
    size = disk_of(testbed)
    # Not every device has these counters.
    counts = host if host.counters else server
    for block in blocks:
        before = fast(testbed, host)
        with carried(testbed, counts, size.tested_mib * MIB, size.tested_mib * MIB):
            written = write_random(testbed, host, disk, block)
            expect(checksum(testbed, host, disk, block) == written, f"{block}: read back other data than were written")
        expect(checksum(testbed, server, size.path) == written, f"{block}: the target has other data")
        # Written and read, by requests of 4 MiB at most.
        check_fast(testbed, host, before, size.tested_mib // 2)


def fio(testbed, host, disk, options):
    """fio writes, reads and compares its data; its own report."""
    size = disk_of(testbed)
    # Without a disk of this name, fio would write and read a file of its own.
    run_fio(testbed, host, f"--filename={disk} --allow_file_create=0 --size={size.tested_mib}M "
                           f"{options.format(sector=size.sector)}")


def run_fio(testbed, host, options):
    said = testbed.run(f"fio --name=verify --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 "
                       f"--group_reporting {options}", host, timeout=120)
    expect("err= 0" in said and not re.search(r"verify: bad|verify failed", said), said[-2000:])
    rates = re.findall(r"^\s+(read|write): IOPS=([^,]+), BW=(\S+)", said, re.MULTILINE)
    expect({kind for kind, *_ in rates} == {"read", "write"}, f"fio did not both write and read: {said[-1000:]}")
    testbed.note(", ".join(f"{kind}: {iops} IOPS, {bandwidth}" for kind, iops, bandwidth in rates))


# The jobs of fio: sizes from one sector to 1 MiB, many outstanding commands.
MIXED = "a sector to 1 MiB, 64 under way"
FIO = {
    MIXED: "--rw=randwrite --bsrange={sector}-1M --iodepth=64",
    "4 KiB, 64 under way": "--rw=randwrite --bs=4k --iodepth=64 --io_size=16M",
    "256 KiB in sequence, 16 under way": "--rw=write --bs=256k --iodepth=16",
}


def files_on(testbed, host, disk):
    """A file system on the disk: a copy of the guest's payload file system, with further files."""
    numbers = "$(seq 20)"
    testbed.run(f"dd if=$(findmnt -n -o SOURCE /opt/hghca) of={disk} bs=64k oflag=direct conv=fsync status=none", host)
    testbed.run(f"mount -t ext4 {disk} /mnt", host)
    try:
        sums = testbed.run(f"cd /mnt; for i in {numbers}; do head -c $((i * 4321)) /dev/urandom > $i || exit; done; "
                           f"sha256sum {numbers}", host)
    finally:
        testbed.run("umount /mnt", host)
    testbed.run(f"echo 3 > /proc/sys/vm/drop_caches; mount -t ext4 -o ro {disk} /mnt", host)
    try:
        expect(testbed.run(f"cd /mnt; sha256sum {numbers}", host) == sums, "the files are not what was written")
        testbed.run("cd /opt/hghca; for file in *; do [ ! -f $file ] || cmp $file /mnt/$file || exit; done", host)
    finally:
        testbed.run("umount /mnt", host)
