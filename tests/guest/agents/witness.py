# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells what the kernel knows, in any network namespace, whenever it is asked. To ask starts no process.

usage: witness.py

Each line of input is a namespace, or - for the first, a word and perhaps a number; each is answered by a line of JSON.

  look        {"resources": {device: {kind: number}}, "counters": {device: {name: value}}, "taint": number}
              `rdma resource show`, without the CQs that wait in the RDMA core's pool for a user; port 1's counters
  listening   {"tcp": [port..], "cm": [port..]}: sockets, and identifiers of the connection manager
  check N     {"said": [text..]}: which of the kernel's checkers look on no more; DMA errors are told N times from now
"""

import json
import os
import re
import socket
import struct
import sys

NETLINK_RDMA = 20
NLDEV = 5                                   # RDMA_NL_NLDEV
REQUEST, DUMP = 0x1, 0x300
ERROR, DONE = 2, 3                          # message types
TYPE_MASK = 0x3fff                          # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
BUFFER = 1 << 18
HEADER = struct.Struct("=IHHII")            # struct nlmsghdr

# enum rdma_nldev_command
RES_GET, RES_CM_ID_GET, RES_CQ_GET, STAT_GET = 9, 11, 12, 17
# enum rdma_nldev_attr
DEV_INDEX, DEV_NAME, PORT_INDEX = 1, 2, 3
SUMMARY, SUMMARY_NAME, SUMMARY_CURR = 15, 17, 18
RES_STATE, KERN_NAME, RES_CM_ID, SRC_ADDR = 27, 29, 30, 33
RES_CQ, USECNT = 35, 38
HWCOUNTERS, HWCOUNTER_NAME, HWCOUNTER_VALUE = 80, 82, 83

CM_LISTEN = 8                               # RDMA_CM_LISTEN
TCP_LISTEN = "0A"
POOL = "ib_core"                            # who has made the CQs of the pool


def attributes(data):
    """The attributes of a message, or those nested in one: (type, bytes) each."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & TYPE_MASK, data[4:length]
        data = data[(length + 3) & ~3:]


def number(data):
    return int.from_bytes(data, sys.byteorder)


def text(data):
    return data.rstrip(b"\0").decode()


class Nldev:
    """Questions to the kernel's RDMA core, by netlink."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_RDMA)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self.asked = 0

    def ask(self, command, flags=0, **options):
        """The answers to a command, each as bytes of attributes; OSError when it is refused."""
        body = b"".join(struct.pack("=HHI", 8, kind, value) for kind, value in
                        ((DEV_INDEX, options.get("device")), (PORT_INDEX, options.get("port"))) if value is not None)
        self.asked += 1
        self.socket.send(HEADER.pack(HEADER.size + len(body), NLDEV << 10 | command, REQUEST | flags, self.asked, 0)
                         + body)
        while True:
            data = self.socket.recv(BUFFER)
            while data:
                length, kind, _, asked, _ = HEADER.unpack_from(data)
                message, data = data[HEADER.size:length], data[(length + 3) & ~3:]
                if asked != self.asked:
                    continue                # of a question that ended with an error
                if kind == DONE:
                    return
                if kind == ERROR:
                    status = -struct.unpack_from("=i", message)[0]
                    raise OSError(status, os.strerror(status))
                yield message
                if not flags & DUMP:
                    return

    def entries(self, command, table, device):
        """The objects of a kind that a device has: {attribute: bytes} each. None of a device that is going."""
        try:
            for message in self.ask(command, DUMP, device=device):
                for kind, data in attributes(message):
                    if kind == table:
                        for _, entry in attributes(data):
                            yield dict(attributes(entry))
        except OSError:
            return

    def resources(self):
        """{name: (index, {kind: number})} of the devices."""
        found = {}
        for message in self.ask(RES_GET, DUMP):
            fields = dict(attributes(message))
            entries = [dict(attributes(entry)) for _, entry in attributes(fields.get(SUMMARY, b""))]
            found[text(fields[DEV_NAME])] = (
                number(fields[DEV_INDEX]),
                {text(entry[SUMMARY_NAME]): number(entry[SUMMARY_CURR]) for entry in entries})
        return found

    def pooled(self, device):
        """How many CQs wait in the pool."""
        return sum(KERN_NAME in cq and text(cq[KERN_NAME]) == POOL and not number(cq.get(USECNT, b""))
                   for cq in self.entries(RES_CQ_GET, RES_CQ, device))

    def counters(self, device):
        """Port 1's counters; none of a device that has no such counters."""
        try:
            return {text(entry[HWCOUNTER_NAME]): number(entry[HWCOUNTER_VALUE])
                    for message in self.ask(STAT_GET, device=device, port=1)
                    for kind, data in attributes(message) if kind == HWCOUNTERS
                    for entry in (dict(attributes(one)) for _, one in attributes(data))}
        except OSError:
            return {}

    def listening(self):
        """Ports of the connection manager's identifiers that listen."""
        return [int.from_bytes(entry[SRC_ADDR][2:4], "big")     # the same place in sockaddr_in and sockaddr_in6
                for device, _ in self.resources().values()
                for entry in self.entries(RES_CM_ID_GET, RES_CM_ID, device)
                if number(entry.get(RES_STATE, b"")) == CM_LISTEN and SRC_ADDR in entry]


def contents(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


class Witness:
    """Its methods do_* are what can be asked for."""

    def __init__(self):
        self.nldev = Nldev()

    def do_look(self):
        resources, counters = {}, {}
        for name, (index, numbers) in self.nldev.resources().items():
            if numbers.get("cq"):
                numbers["cq"] -= self.nldev.pooled(index)
            resources[name] = numbers
            counters[name] = self.nldev.counters(index)
        return {"resources": resources, "counters": counters, "taint": int(contents("/proc/sys/kernel/tainted"))}

    def do_listening(self):
        found = re.findall(rf"^ *\d+: \w+:(\w{{4}}) \w+:0000 {TCP_LISTEN} ",
                           contents("/proc/self/net/tcp") + contents("/proc/self/net/tcp6"), re.MULTILINE)
        return {"tcp": [int(port, 16) for port in found], "cm": self.nldev.listening()}

    @staticmethod
    def do_check(errors):
        folder = "/sys/kernel/debug/dma-api"
        said = []
        if not os.path.isdir(folder):
            return {"said": said}
        if contents(f"{folder}/num_errors").startswith("0"):
            said.append("more DMA-API errors than the log tells")
        if "Y" in contents(f"{folder}/disabled"):
            said.append("the debugging of DMA is off")
        if re.search(r"debug_locks: *0", contents("/proc/lockdep_stats")):
            said.append("lockdep is off")
        with open(f"{folder}/num_errors", "w") as file:
            file.write(errors)
        return {"said": said}


def main():
    spaces, witnesses = {"-": os.open("/proc/self/ns/net", os.O_RDONLY)}, {}
    for line in sys.stdin:
        space, word, *arguments = line.split()
        if space not in spaces:
            spaces[space] = os.open(f"/run/netns/{space}", os.O_RDONLY)
        os.setns(spaces[space], os.CLONE_NEWNET)
        # Its socket belongs to the namespace in which it is made.
        witness = witnesses[space] = witnesses.get(space) or Witness()
        print(json.dumps(getattr(witness, f"do_{word}")(*arguments)), flush=True)


main()
