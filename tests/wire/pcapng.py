# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures as the device writes them, draft-ietf-opsawg-pcapng in the byte order of this machine: read, and written."""

import collections
import os
import struct

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
    with open(path, "rb") as file:
        at = 0
        while head := file.read(8):
            kind, size = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
            block = head + file.read(size - 8) if size >= 12 and size % 4 == 0 else b""
            if not block or len(block) != size or block[-4:] != head[4:]:
                raise ValueError(f"{path}: no whole block at {at}")
            yield kind, at, block
            at += size


def records(path):
    """A Record for each frame: `data` is what was kept of its `length` bytes, `at` its offset in the file."""
    for kind, at, block in blocks(path):
        if kind == ENHANCED_PACKET:
            yield record(at, block)


def record(at, block):
    """The Record of an enhanced packet block."""
    high, low, kept, length = struct.unpack_from("<4I", block, 12)
    options = HEAD_BYTES + padded(kept)
    code, _, flags = struct.unpack_from("<HHI", block, options) if options + 12 <= len(block) else (0, 0, 0)
    return Record(flags & 3 if code == EPB_FLAGS else 0, high << 32 | low, length,
                  block[HEAD_BYTES:HEAD_BYTES + kept], at + HEAD_BYTES)


def keep(path, ways):
    """Leave in a file only the frames that went one of these ways, IN or OUT."""
    kept = path.with_name(f"{path.name}.kept")
    with open(kept, "wb") as out:
        for kind, at, block in blocks(path):
            if kind != ENHANCED_PACKET or record(at, block).way in ways:
                out.write(block)
    kept.replace(path)


def cut(path, size):
    """Leave in a file its first blocks, those that end within `size` bytes; whether there were more."""
    if path.stat().st_size <= size:
        return False
    for _, at, block in blocks(path):
        if at + len(block) > size:
            os.truncate(path, at)
            break
    return True


def packet_block(record):
    """The block of a frame, for a file with one interface."""
    options = struct.pack("<HHII", EPB_FLAGS, 4, record.way, 0)
    size = HEAD_BYTES + padded(len(record.data)) + len(options) + 4
    head = struct.pack("<7I", ENHANCED_PACKET, size, 0, record.time_ns >> 32, record.time_ns & 0xffffffff,
                       len(record.data), record.length)
    return head + record.data.ljust(padded(len(record.data)), b"\0") + options + struct.pack("<I", size)
