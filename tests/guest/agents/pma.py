# SPDX-License-Identifier: GPL-2.0-or-later
"""Performance management MADs to another port, through /dev/infiniband/umad*.

usage: pma.py DEVICE GID-INDEX GID, in 32 hexadecimal digits

Each line of input is a JSON object with what differs from a Get of
PortCounters (IBA vol 1, 16.1); each is answered by one with the method, the
status and the data of the response, or with "timeout". The structures are
those of <rdma/ib_user_mad.h>.
"""

import fcntl
import json
import os
import select
import struct
import sys
from pathlib import Path

REGISTER_AGENT, ENABLE_PKEY = 0xC01C1B01, 0x1B03
# id, status, timeout_ms, retries, length, qpn, qkey, lid, sl, path_bits, grh_present, gid_index, hop_limit,
# traffic_class, gid, flow_label, pkey_index
HEADER = struct.Struct("=IIIII4s4s2sBBBBBB16s4sH6x")
QP1_QKEY = 0x80010000
WAIT_MS = 2000
MAD = struct.Struct(">BBBBHHQHHI40x192s")


def open_port(device):
    for folder in Path("/sys/class/infiniband_mad").glob("umad*"):
        if (folder / "ibdev").read_text().strip() == device:
            file = os.open(f"/dev/infiniband/{folder.name}", os.O_RDWR)
            fcntl.ioctl(file, ENABLE_PKEY)
            return file
    sys.exit(f"{device} has no umad device")


def register(file, mgmt_class, class_version):
    request = bytearray(struct.pack("=I16sBBB3sBx", 0, bytes(16), 1, mgmt_class, class_version, bytes(3), 0))
    fcntl.ioctl(file, REGISTER_AGENT, request)
    return struct.unpack_from("=I", request)[0]


def ask(file, agent, gid_index, gid, transaction, what):
    data = bytes.fromhex(what.get("data", "0001")).ljust(192, b"\0")
    mad = MAD.pack(1, 4, what.get("version", 1), what.get("method", 1), 0, 0, transaction, what.get("attr", 0x12), 0, 0,
                   data)
    header = HEADER.pack(agent, 0, WAIT_MS, 3, len(mad), struct.pack(">I", 1), struct.pack(">I", QP1_QKEY), bytes(2), 0, 0,
                         1, gid_index, 64, 0, gid, bytes(4), 0)
    os.write(file, header + mad)
    if not select.select([file], [], [], 4 * WAIT_MS / 1000 + 5)[0]:
        return "nothing came"
    answer = os.read(file, HEADER.size + 256)
    if HEADER.unpack_from(answer)[1]:
        return "timeout"
    _, mgmt_class, _, method, status, _, number, attr, _, _, data = MAD.unpack_from(answer, HEADER.size)
    return {"class": mgmt_class, "method": method, "status": status, "attr": attr, "data": data.hex(),
            "same": number & 0xFFFFFFFF == transaction}


def main():
    device, gid_index, gid = sys.argv[1], int(sys.argv[2]), bytes.fromhex(sys.argv[3])
    file = open_port(device)
    agents = {}
    for number, line in enumerate(sys.stdin, 1):
        what = json.loads(line)
        version = what.get("version", 1)
        if version not in agents:
            agents[version] = register(file, 4, version)
        print(json.dumps(ask(file, agents[version], gid_index, gid, number, what)), flush=True)


main()
