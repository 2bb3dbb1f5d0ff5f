#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two MPI ranks: messages, one-sided operations and collectives, every byte compared. Rank 0 prints TAP.

usage: mpirun -n 2 mpi.py
"""

import array
import hashlib
import struct
import sys

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, PEER = WORLD.rank, 1 - WORLD.rank
SIZES = (0, 1, 8, 1000, 4096, 8191, 65536, 1000003, 4 << 20)
TURNS = 3
MANY = 64
NUMBERS = 10000
STEPS = 200
WINDOW = 2 << 20


def bytes_of(rank, length, turn):
    """What a rank sends: known to both."""
    return bytearray(hashlib.shake_128(struct.pack("<III", rank, length, turn)).digest(length))


def exchanged():
    """Both send at once, all sizes."""
    good = True
    for turn in range(TURNS):
        for length in SIZES:
            received = bytearray(length)
            WORLD.Sendrecv([bytes_of(RANK, length, turn), MPI.BYTE], PEER, turn, [received, MPI.BYTE], PEER, turn)
            good &= received == bytes_of(PEER, length, turn)
    return good


def many():
    """Messages under way at once, received in the reverse order, some before their receive is there."""
    good = True
    for length in (100, 5000, 100003):
        sent = [bytes_of(RANK, length, tag) for tag in range(MANY)]
        received = [bytearray(length) for _ in range(MANY)]
        requests = [WORLD.Isend([data, MPI.BYTE], PEER, tag) for tag, data in enumerate(sent)]
        WORLD.Barrier()
        requests += [WORLD.Irecv([received[tag], MPI.BYTE], PEER, tag) for tag in reversed(range(MANY))]
        MPI.Request.Waitall(requests)
        good &= all(data == bytes_of(PEER, length, tag) for tag, data in enumerate(received))
    return good


def put_and_got(window):
    """Each writes into the other's window, and reads back what it wrote; the owner finds it too."""
    length = WINDOW // 2
    window.tomemory()[:] = bytes(WINDOW)
    data, back = bytes_of(RANK, length, 0), bytearray(length)
    window.Fence()
    window.Put([data, MPI.BYTE], PEER, target=(length // 2, length, MPI.BYTE))
    window.Fence()
    window.Get([back, MPI.BYTE], PEER, target=(length // 2, length, MPI.BYTE))
    window.Fence()
    half = bytes(length // 2)
    return back == data and bytes(window.tomemory()) == half + bytes_of(PEER, length, 0) + half


def counted(window):
    """Both add to a counter of rank 0's at once: each value is fetched once; and swap a word by comparing."""
    window.tomemory()[:16] = bytes(16)
    WORLD.Barrier()
    one, old, zero, new = (array.array("q", [value]) for value in (1, 0, 0, RANK + 1))
    fetched = array.array("q")
    window.Lock_all()
    for _ in range(STEPS):
        window.Fetch_and_op([one, MPI.INT64_T], [old, MPI.INT64_T], 0, 0, MPI.SUM)
        window.Flush(0)
        fetched.append(old[0])
    window.Compare_and_swap([new, MPI.INT64_T], [zero, MPI.INT64_T], [old, MPI.INT64_T], 0, 8)
    window.Flush(0)
    window.Unlock_all()
    everything = sorted(value for values in WORLD.allgather(list(fetched)) for value in values)
    swapped = WORLD.allgather(old[0])
    # One of them found 0, the other what the first one left.
    good = everything == list(range(2 * STEPS)) and sorted(swapped) in ([0, 1], [0, 2])
    if RANK == 0:
        good &= bytes(window.tomemory()[:16]) == struct.pack("=qq", 2 * STEPS, swapped.index(0) + 1)
    return good


def accumulated(window):
    """Both add an array to one of rank 0's."""
    window.tomemory()[:8 * NUMBERS] = bytes(8 * NUMBERS)
    mine = array.array("q", (value * (RANK + 1) for value in range(NUMBERS)))
    window.Fence()
    window.Accumulate([mine, MPI.INT64_T], 0, op=MPI.SUM)
    window.Fence()
    want = array.array("q", (3 * value if RANK == 0 else 0 for value in range(NUMBERS)))
    return bytes(window.tomemory()[:8 * NUMBERS]) == want.tobytes()


def collectives():
    """Sums, a broadcast, everybody's to everybody, and each his own part."""
    mine = array.array("q", (value + RANK for value in range(NUMBERS)))
    total = array.array("q", bytes(8 * NUMBERS))
    WORLD.Allreduce([mine, MPI.INT64_T], [total, MPI.INT64_T], MPI.SUM)
    good = total == array.array("q", (2 * value + 1 for value in range(NUMBERS)))
    length = 1000003
    for root in (0, 1):
        data = bytes_of(root, length, 0) if RANK == root else bytearray(length)
        WORLD.Bcast([data, MPI.BYTE], root)
        good &= data == bytes_of(root, length, 0)
    everybody = bytearray(2 * length)
    WORLD.Allgather([bytes_of(RANK, length, 1), MPI.BYTE], [everybody, MPI.BYTE])
    good &= everybody == bytes_of(0, length, 1) + bytes_of(1, length, 1)
    WORLD.Alltoall([bytes_of(RANK, length, 2) + bytes_of(RANK, length, 3), MPI.BYTE], [everybody, MPI.BYTE])
    return good and everybody == bytes_of(0, length, 2 + RANK) + bytes_of(1, length, 2 + RANK)


TESTS = {"messages both ways": exchanged, "64 messages under way": many, "collectives": collectives}
WINDOW_TESTS = {"put and get": put_and_got, "fetch and add, compare and swap": counted, "accumulate": accumulated}


def verdict(number, name, good):
    """Rank 0 prints what both found; whether it is good."""
    verdicts = WORLD.allgather((bool(good), MPI.Get_processor_name()))
    wrong = [f"rank {rank} on {host}" for rank, (good, host) in enumerate(verdicts) if not good]
    if RANK == 0:
        print(f"{'not ' if wrong else ''}ok {number} - {name}{': wrong at ' if wrong else ''}{', '.join(wrong)}",
              flush=True)
    return not wrong


def main():
    good = all([verdict(number, name, run()) for number, (name, run) in enumerate(TESTS.items(), 1)])
    window = MPI.Win.Allocate(WINDOW, 1, comm=WORLD)
    good &= all([verdict(number, name, run(window))
                 for number, (name, run) in enumerate(WINDOW_TESTS.items(), len(TESTS) + 1)])
    window.Free()
    hosts = WORLD.allgather(MPI.Get_processor_name())
    if RANK == 0:
        print(f"1..{len(TESTS) + len(WINDOW_TESTS)}\n# ranks on {', '.join(hosts)}", flush=True)
    return 0 if good else 1


sys.exit(main())
