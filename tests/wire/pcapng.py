# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures as the device writes them, draft-ietf-opsawg-pcapng in the byte order of this machine: read, and written."""

import collections
import struct
from pathlib import Path

# As epb_flags has it; 0: nobody knows.
IN, OUT = 1, 2
ENHANCED_PACKET = 6
EPB_FLAGS = 2
HEAD_BYTES = 28     # of an enhanced packet block, before the frame

Record = collections.namedtuple("Record", "way time_ns length data at")


def padded(size):
    return (size + 3) // 4 * 4


def blocks(path):
    """Each block as (its type, its offset, its bytes); ValueError: one is not whole."""
    whole = Path(path).read_bytes()
    at = 0
    while at < len(whole):
        kind, size = struct.unpack_from("<II", whole, at) if at + 12 <= len(whole) else (0, 0)
        if size < 12 or size % 4 or at + size > len(whole) or whole[at + size - 4:at + size] != whole[at + 4:at + 8]:
            raise ValueError(f"{path}: no whole block at {at}")
        yield kind, at, whole[at:at + size]
        at += size


def records(path):
    """A Record for each frame: `data` is what was kept of its `length` bytes, `at` its offset in the file."""
    for kind, at, block in blocks(path):
        if kind == ENHANCED_PACKET:
            high, low, kept, length = struct.unpack_from("<4I", block, 12)
            options = HEAD_BYTES + padded(kept)
            code, _, flags = struct.unpack_from("<HHI", block, options) if options + 12 <= len(block) else (0, 0, 0)
            yield Record(flags & 3 if code == EPB_FLAGS else 0, high << 32 | low, length,
                         block[HEAD_BYTES:HEAD_BYTES + kept], at + HEAD_BYTES)


def packet_block(record):
    """The block of a frame, for a file with one interface."""
    options = struct.pack("<HHII", EPB_FLAGS, 4, record.way, 0)
    size = HEAD_BYTES + padded(len(record.data)) + len(options) + 4
    head = struct.pack("<7I", ENHANCED_PACKET, size, 0, record.time_ns >> 32, record.time_ns & 0xffffffff,
                       len(record.data), record.length)
    return head + record.data.ljust(padded(len(record.data)), b"\0") + options + struct.pack("<I", size)
