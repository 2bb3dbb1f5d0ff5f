#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages over RDS, and RDMA into memory of the one who asks: every byte compared. Prints TAP.

usage: rds.py serve ADDRESS
       rds.py ask ADDRESS PEER

The kernel's RDS over InfiniBand registers the memory by a work request of its
own and makes its key invalid when it was used. The structures are those of
<linux/rds.h>.
"""

import ctypes
import hashlib
import os
import socket
import struct
import sys

PORT = 4000
SOL_RDS = 276
CMSG_RDMA_ARGS, CMSG_RDMA_DEST, CMSG_RDMA_MAP = 1, 2, 3
READWRITE, FENCE, INVALIDATE, USE_ONCE = 1, 2, 4, 8
ECHO, WRITE, READ, END = range(4)
HEADER = struct.Struct("<II")  # what is asked, a length
SIZES = (1, 8, 100, 4088, 4096, 65536, 1000003)
TURNS = 5
WAIT_S = 20
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
BUFFER = 8 << 20  # the longest message must fit


def open_at(address):
    end = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    end.settimeout(WAIT_S)
    for option in (SO_SNDBUFFORCE, SO_RCVBUFFORCE):
        end.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    end.bind((address, PORT))
    return end


def receive(end):
    """A message, its sender, and the cookie of memory that came with it, or None."""
    data, controls, _, sender = end.recvmsg(2 << 20, 256)
    cookies = [struct.unpack("<Q", content[:8])[0] for level, kind, content in controls
               if (level, kind) == (SOL_RDS, CMSG_RDMA_DEST)]
    return data, sender, cookies[0] if cookies else None


def bytes_of(length):
    """What the server writes: known to both ends."""
    return hashlib.shake_128(struct.pack("<I", length)).digest(length)


def rdma(end, peer, cookie, memory, flags, message):
    """RDMA between `memory` and what the cookie stands for, and behind it a message."""
    vector = struct.pack("<QQ", ctypes.addressof(memory), len(memory))
    vector = ctypes.create_string_buffer(vector, len(vector))
    arguments = struct.pack("<QQQQQQQ", cookie, 0, len(memory), ctypes.addressof(vector), 1, flags, 0)
    end.sendmsg([message], [(SOL_RDS, CMSG_RDMA_ARGS, arguments)], 0, peer)


def serve(address):
    end = open_at(address)
    print("ready", flush=True)
    while True:
        data, peer, cookie = receive(end)
        what, length = HEADER.unpack_from(data)
        if what == END:
            return
        if what == ECHO:
            end.sendto(data, peer)
        elif what == WRITE:
            memory = ctypes.create_string_buffer(bytes_of(length), length)
            rdma(end, peer, cookie, memory, READWRITE | USE_ONCE, data)
            receive(end)  # the memory must stay until the peer has its message
        elif what == READ:
            memory = ctypes.create_string_buffer(length)
            # The fence holds the message back until the READ is complete, and the peer answers the message.
            rdma(end, peer, cookie, memory, USE_ONCE | FENCE, data)
            receive(end)
            end.sendto(hashlib.sha256(memory.raw).digest(), peer)


def echo(end, peer, length):
    data = HEADER.pack(ECHO, length) + os.urandom(length)
    end.sendto(data, peer)
    return receive(end)[0] == data


def lend(end, peer, what, memory, flags):
    """Ask the peer for an RDMA to or from the memory; its message behind it must be ours."""
    request = HEADER.pack(what, len(memory))
    arguments = struct.pack("<QQQQ", ctypes.addressof(memory), len(memory), 0, flags)
    end.sendmsg([request], [(SOL_RDS, CMSG_RDMA_MAP, arguments)], 0, peer)
    return receive(end)[0] == request


def written(end, peer, length):
    memory = ctypes.create_string_buffer(length)
    told = lend(end, peer, WRITE, memory, READWRITE | USE_ONCE | INVALIDATE)
    end.sendto(b"seen", peer)
    return told and memory.raw == bytes_of(length)


def read(end, peer, length):
    memory = ctypes.create_string_buffer(os.urandom(length), length)
    if not lend(end, peer, READ, memory, USE_ONCE | INVALIDATE):
        return False
    end.sendto(b"seen", peer)
    return receive(end)[0] == hashlib.sha256(memory.raw).digest()


def ask(address, peer_address):
    end, peer = open_at(address), (peer_address, PORT)
    number = failed = 0
    for name, action in (("echo", echo), ("RDMA WRITE by the peer", written), ("RDMA READ by the peer", read)):
        for length in SIZES:
            good = all(action(end, peer, length) for _ in range(TURNS))
            number += 1
            failed += not good
            print(f"{'' if good else 'not '}ok {number} - {name}, {length} bytes", flush=True)
    end.sendto(HEADER.pack(END, 0), peer)
    print(f"1..{number}")
    return 1 if failed else 0


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    sys.exit(ask(sys.argv[2], sys.argv[3]))
