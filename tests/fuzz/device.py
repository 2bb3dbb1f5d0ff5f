# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's generic fuzzer on the whole device: how it is started, and seeds for it.

An input is a list of operations with the word FUZZ between them; an operation is a number and its arguments, in the
byte order of the host (tests/qtest/fuzz/generic_fuzz.c of QEMU). Memory that the device reads is filled with patterns,
one a read, in turn.
"""

import struct

# Two HCAs on one link with a base HCA, one of the RSNIC document and an ERNIC, which has an HCA behind it, and a loopback
# controller. The first HCA's registers are region 0, its doorbells region 1.
ARGS = ("-M q35 -nodefaults -L /usr/share/seabios -L /usr/share/qemu "
        "-netdev hubport,hubid=0,id=n0 -device hghca,netdev=n0,cache-entries=2 "
        "-netdev hubport,hubid=0,id=n1 -device hghca,netdev=n1 -device rdma-loopback "
        "-netdev hubport,hubid=0,id=n2 -device hghca,netdev=n2,profile=base "
        "-netdev hubport,hubid=0,id=n3 -device hghca,netdev=n3,profile=rsnic "
        "-netdev hubport,hubid=1,id=n5 -device hghca,netdev=n5 -netdev hubport,hubid=1,id=e4 "
        "-netdev hubport,hubid=0,id=n4 -device ernic,netdev=n4,ethernet=e4")
ENV = {"QEMU_FUZZ_ARGS": ARGS, "QEMU_FUZZ_OBJECTS": "hghca* rdma-loopback* ernic*", "QEMU_AVOID_DOUBLE_FETCH": "1"}
OPTIONS = ["--fuzz-target=generic-fuzz", "-rss_limit_mb=3000", "-max_len=8192"]
# What QEMU itself has not freed when it ends is not looked for.
ASAN_OPTIONS = "detect_leaks=0"
SEPARATOR = b"FUZZ"
WRITE, ADD_PATTERN, CLEAR_PATTERNS, CLOCK_STEP = 3, 7, 8, 9
LONG, QUAD = 2, 3
HCR, DOORBELLS = 0, 1
HCR_BASE, GO = 0x80000, 1 << 23
CAPS = 0x3ffff


def write(region, offset, value, size=LONG):
    return struct.pack("<BBBxxIQ", WRITE, size, region, offset, value)


def command(op, modifier=0, op_modifier=0, mailbox=b""):
    """The operations of one command; its mailbox is at 1 MiB, and what it answers at 2 MiB."""
    fill = [bytes([CLEAR_PATTERNS])] + ([bytes([ADD_PATTERN, 0, 0]) + mailbox] if mailbox else [])
    words = [0, 1 << 20, modifier, 0, 2 << 20, 0xffff0000, GO | op_modifier << 12 | op]
    return fill + [write(HCR, HCR_BASE + 4 * i, word) for i, word in enumerate(words)]


def init():
    """INIT_HCA with small tables, and memory for all of them."""
    tables = struct.pack(">QQQQIIQQQ", 5 << 20 | 4, 5, 1 << 20 | 5, 2 << 20 | 3, CAPS, 0, 3 << 20 | 3, 8, 1 << 20)
    operations = command(0x7, mailbox=tables)
    for space, address, pages in ((1, 0, 16), (1, 1 << 20, 1), (1, 2 << 20, 1), (1, 3 << 20, 1), (1, 5 << 20, 1),
                                  (2, 0, 4), (2, 1 << 20, 4)):
        chunk = struct.pack(">QQQQ", 0, 0, address, (16 << 20) + (space << 24) + address | pages)
        operations += command(0xffa, 1, space, chunk)
    return operations


def region(index):
    """A region of 64 KiB at 32 MiB."""
    pages = [(32 << 20) + page * 4096 for page in range(16)]
    mtts = bytes(24) + struct.pack(">Q16Q", index * 16, *pages)
    mpt = struct.pack(">IIIIQQIIIIIIQ", 0x10f, 0, index << 8 | 0xab, 1, 0, 65536, 0, 0, 0, 0, index * 16, 0, 0)
    return command(0x11, 16, mailbox=mtts) + command(0xd, index, mailbox=mpt)


def seeds():
    queries = [command(op) for op in (0x3, 0x6, 0xe01, 0xe02)]
    bells = [write(DOORBELLS, 3 * 4096 + 0x10 * n, 0x0000080100000001, QUAD) for n in range(3)]
    whole = init() + region(1)
    for name, operations in (("queries", sum(queries, [])), ("init", init()), ("region", whole),
                             ("doorbells", whole + bells + [bytes([CLOCK_STEP])]),
                             ("reset", init() + [write(HCR, 0xf0010, 1)] + init())):
        yield name, SEPARATOR.join(operations)
