#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SMC-R, the kernel's sockets over RDMA: set up, counted, and used with every byte compared.

usage: smc.py configure [INTERFACE DEVICE]
       smc.py stats
       smc.py serve PROTOCOL ADDRESS PORT
       smc.py ask PROTOCOL ADDRESS PORT

configure: an EID, without which there is no SMC-Rv2, and with two arguments a network ID that an interface and an RDMA
device have in common, where the device's own interface is not the one that TCP takes. stats: what the kernel counts, as
JSON. serve, ask: connections of sockets of that PROTOCOL: 256, IPPROTO_SMC, or 0, which is TCP but for a program that
has smc_preload.so. Prints TAP. The numbers are those of <linux/smc.h>, <linux/smc_diag.h> and <linux/genetlink.h>.
"""

import contextlib
import functools
import hashlib
import json
import os
import socket
import struct
import sys
import threading

EID = b"HGHCA".ljust(32) + b"\0"
NETWORK = b"HGHCA\0"
CONNECTIONS = 4
TURNS = 2
SIZES = (1, 100, 4088, 4096, 65535, 65536, 65537, 1000003)
WAIT_S = 60

NETLINK_SOCK_DIAG, NETLINK_GENERIC, AF_SMC = 4, 16, 43
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_CONTROLLER, GET_FAMILY, FAMILY_ID, FAMILY_NAME = 16, 3, 1, 2
GET_STATS, GET_FALLBACKS, ADD_UEID = 7, 8, 10
PNETID_ADD, PNETID_NAME, PNETID_ETHNAME, PNETID_IBNAME, PNETID_IBPORT = 2, 1, 2, 3, 4
STATS, STATS_R, CLIENT_ERRORS, SERVER_ERRORS = 7, 2, 3, 4
STATS_R_NAMES = {7: "client_v1", 8: "client_v2", 9: "server_v1", 10: "server_v2", 16: "rx_bytes", 17: "tx_bytes"}
FALLBACKS, FALLBACK_SERVER, FALLBACK_CLIENT, FALLBACK_REASON, FALLBACK_COUNT = 8, 2, 3, 4, 5
SOCK_DIAG_BY_FAMILY, DIAG_LGRINFO, DIAG_FALLBACK = 20, 2, 5
MODES = {0: "SMC-R", 1: "TCP", 2: "SMC-D"}
DIAG_MESSAGE = struct.Struct("=BBBB48sIQ")

HEADER = struct.Struct("<I")


# Netlink.

def attribute(kind, data):
    return struct.pack("=HH", len(data) + 4, kind) + data.ljust(-(-len(data) // 4) * 4, b"\0")


def attributes(data):
    """Attributes by their kind; of those that come more than once the last."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[-(-max(length, 4) // 4) * 4:]
    return found


def talk(protocol, kind, flags, body):
    """Send one message; the bodies of the answers. What the kernel refuses is an OSError."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as end:
        end.bind((0, 0))
        end.settimeout(WAIT_S)
        end.send(struct.pack("=IHHII", 16 + len(body), kind, flags | NLM_F_REQUEST, 1, 0) + body)
        answers = []
        while True:
            data = end.recv(1 << 20)
            while data:
                length, answer, told, _, _ = struct.unpack_from("=IHHII", data)
                content, data = data[16:length], data[-(-length // 4) * 4:]
                if answer in (NLMSG_ERROR, NLMSG_DONE):
                    error = struct.unpack_from("=i", content)[0] if content else 0
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    return answers
                answers.append(content)


def generic(family, command, flags, *options):
    """A command of a generic family; the attributes of each answer."""
    question = struct.pack("=BBH", GET_FAMILY, 1, 0) + attribute(FAMILY_NAME, family + b"\0")
    number = attributes(talk(NETLINK_GENERIC, GENL_CONTROLLER, NLM_F_ACK, question)[0][4:])[FAMILY_ID]
    body = struct.pack("=BBH", command, 1, 0) + b"".join(options)
    return [attributes(answer[4:])
            for answer in talk(NETLINK_GENERIC, struct.unpack("=H", number)[0], flags, body)]


def configure(interface=None, device=None):
    generic(b"SMC_GEN_NETLINK", ADD_UEID, NLM_F_ACK, attribute(1, EID))
    if interface:
        generic(b"SMC_PNETID", PNETID_ADD, NLM_F_ACK, attribute(PNETID_NAME, NETWORK),
                attribute(PNETID_ETHNAME, interface.encode() + b"\0"),
                attribute(PNETID_IBNAME, device.encode() + b"\0"), attribute(PNETID_IBPORT, b"\1"))


def number_in(found, kind):
    return int.from_bytes(found.get(kind, b""), sys.byteorder)


def stats():
    """What the kernel has counted since the module came, as a dictionary."""
    found = attributes(generic(b"SMC_GEN_NETLINK", GET_STATS, NLM_F_DUMP)[0][STATS])
    ours = attributes(found[STATS_R])
    counts = {name: number_in(ours, kind) for kind, name in STATS_R_NAMES.items()}
    counts["errors"] = number_in(found, CLIENT_ERRORS) + number_in(found, SERVER_ERRORS)
    counts["fallbacks"], reasons = 0, []
    for answer in generic(b"SMC_GEN_NETLINK", GET_FALLBACKS, NLM_F_DUMP):
        entry = attributes(answer[FALLBACKS])
        counts["fallbacks"] += number_in(entry, FALLBACK_COUNT)
        reasons.append(f"{number_in(entry, FALLBACK_REASON):#010x}")
    counts["reasons"] = ", ".join(reasons)
    return counts


def carriers():
    """What carries each SMC socket, by its inode."""
    request = struct.pack("=BBBB48s", AF_SMC, 0, 0, 1 << (DIAG_LGRINFO - 1), b"")
    found = {}
    for answer in talk(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, request):
        _, _, mode, _, _, _, inode = DIAG_MESSAGE.unpack_from(answer)
        more = attributes(answer[DIAG_MESSAGE.size:])
        text = MODES.get(mode, str(mode))
        if DIAG_LGRINFO in more:
            text += " on " + more[DIAG_LGRINFO][1:65].split(b"\0")[0].decode()
        reason, peer = struct.unpack("=II", more[DIAG_FALLBACK])
        if reason:
            text += f", reason {reason:#010x}, the peer's {peer:#010x}"
        found[inode] = text
    return found


def carrier_of(end):
    return carriers().get(os.fstat(end.fileno()).st_ino, "no SMC socket")


# Data.

@functools.cache
def bytes_of(length, turn):
    """What the server answers: known to both ends."""
    return hashlib.shake_128(struct.pack("<II", length, turn)).digest(length)


def receive(end, length):
    """So many bytes, or None at the end of the connection."""
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = end.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return bytes(data)


def answer(end):
    """Each request is a length and bytes; the answer their digest, and other bytes."""
    with end:
        end.settimeout(WAIT_S)
        turn = 0
        while header := receive(end, HEADER.size):
            length, = HEADER.unpack(header)
            data = receive(end, length)
            if data is None:
                raise ConnectionError("the connection ended in a message")
            end.sendall(hashlib.sha256(data).digest() + bytes_of(length, turn % TURNS))
            turn += 1


def serve(protocol, address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(CONNECTIONS)
        threads = []
        for _ in range(CONNECTIONS):
            end, _ = listener.accept()
            print(f"# accepted: {carrier_of(end)}", flush=True)
            threads.append(threading.Thread(target=answer, args=(end,)))
            threads[-1].start()
        for thread in threads:
            thread.join()


def ask_one(end, results, index):
    """All sizes over one connection; what is wrong, as text."""
    wrong = []
    with contextlib.suppress(OSError), end:
        results[index] = ["the connection failed"]
        for length in SIZES:
            for turn in range(TURNS):
                data = os.urandom(length)
                end.sendall(HEADER.pack(length) + data)
                if receive(end, 32) != hashlib.sha256(data).digest():
                    wrong.append(f"{length} bytes: the server received others")
                if receive(end, length) != bytes_of(length, turn):
                    wrong.append(f"{length} bytes: not what the server has sent")
        results[index] = wrong


def ask(protocol, address, port):
    ends = []
    for _ in range(CONNECTIONS):
        ends.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol))
        ends[-1].connect((address, port))
        ends[-1].settimeout(WAIT_S)
    carried = [carrier_of(end) for end in ends]
    results = [None] * CONNECTIONS
    threads = [threading.Thread(target=ask_one, args=(end, results, index)) for index, end in enumerate(ends)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = 0
    for number, (carrier, wrong) in enumerate(zip(carried, results), 1):
        good = carrier.startswith("SMC-R on ") and not wrong
        failed += not good
        print(f"{'' if good else 'not '}ok {number} - {carrier}: {', '.join(wrong) or 'all compared'}")
    print(f"1..{CONNECTIONS}")
    return 1 if failed else 0


def main(command, *arguments):
    if command == "configure":
        configure(*arguments)
    elif command == "stats":
        print(json.dumps(stats()))
    elif command == "serve":
        serve(int(arguments[0]), arguments[1], int(arguments[2]))
    else:
        return ask(int(arguments[0]), arguments[1], int(arguments[2]))
    return 0


sys.exit(main(*sys.argv[1:]))
