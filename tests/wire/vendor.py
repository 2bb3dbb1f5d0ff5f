# SPDX-License-Identifier: GPL-2.0-or-later
"""The manufacturer-specific packets of RSNIC in captures, checked by docs/reference/rsnic.rst, 9.1 to 9.4.

No other program knows these packets, so the rules are written here, from that page alone. They hold where packets are
lost, repeated or late, as long as the capture has each request before its response:

- a packet has its headers and its length, and between two packets of PSNs that follow each other a message goes on;
- PART is acknowledged, and a message has been sent as a whole when its last packet is;
- one READ_RESPONSE_ONLY answers READ_POINTER and READ_CONSISTENT, with what was asked for;
- what is acknowledged had no PSN left out.

A response names its requester's QP and no other one. So where several QPs of two ports have requests of one PSN, it
must fit one of these. The ICRC is icrc.py's.
"""

import dataclasses
import struct

import extended
import pcapng

OPCODES = range(0xc0, 0xc6)
PART_FIRST, PART_MIDDLE, PART_LAST, PART_ONLY, READ_POINTER, READ_CONSISTENT = OPCODES
NAMES = dict(zip(OPCODES, ("PART_FIRST", "PART_MIDDLE", "PART_LAST", "PART_ONLY", "READ_POINTER_REQUEST",
                           "READ_CONSISTENT_REQUEST"), strict=True))
PART = OPCODES[:4]
OPEN, GOES_ON = (PART_FIRST, PART_MIDDLE), (PART_MIDDLE, PART_LAST)
# Bytes of the headers behind the BTH.
HEADER_BYTES = dict(zip(OPCODES, (16, 0, 0, 16, 28, 16), strict=True))
MTUS = (256, 512, 1024, 2048, 4096)

# Of RC.
RC = range(0x00, 0x20)
READ_REQUEST, READ_RESPONSE_ONLY, ACKNOWLEDGE = 0x0c, 0x10, 0x11
RC_OPEN = (0x00, 0x01, 0x06, 0x07)      # first and middle packets of SEND and WRITE
ACK, RNR_NAK = 0, 1             # bits 7 to 5 of a syndrome

ROCE_PORT, UDP = 4791, 17
BTH_BYTES, ICRC_BYTES, AETH_BYTES = 12, 4, 4
PSNS = 1 << 24
# PSNs of two packets of one connection, sent one soon after the other, are nearer to each other than this.
NEAR = 4096
LAST_WORD = 14                  # of an element where 64 bits may start
CRC_POLYNOMIAL, CRC_BYTES = 0x42f0e1eba9ea3693, 8


@dataclasses.dataclass(frozen=True)
class Packet:
    """One of RC, or of these: `body` is what stands between BTH and ICRC, the pad included."""
    source: bytes
    target: bytes
    opcode: int
    pad: int
    version: int
    qpn: int
    psn: int
    body: bytes


def packet(data):
    """The Packet in a frame, or None."""
    network = 18 if data[12:14] == b"\x81\x00" else 14
    ip = data[network:]
    kind = data[network - 2:network]
    if kind == b"\x08\x00" and len(ip) >= 20 and ip[9] == UDP:
        udp, end, source = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big"), ip[12:16]
        target = ip[16:20]
    elif kind == b"\x86\xdd" and len(ip) >= 40 and ip[6] == UDP:
        udp, end, source = 40, 40 + int.from_bytes(ip[4:6], "big"), ip[8:24]
        target = ip[24:40]
    else:
        return None
    bth = udp + 8
    if not bth + BTH_BYTES + ICRC_BYTES <= end <= len(ip) or int.from_bytes(ip[udp + 2:udp + 4], "big") != ROCE_PORT:
        return None
    opcode, flags = ip[bth], ip[bth + 1]
    if opcode not in RC and opcode not in OPCODES:
        return None
    return Packet(source, target, opcode, flags >> 4 & 3, flags & 15, int.from_bytes(ip[bth + 5:bth + 8], "big"),
                  int.from_bytes(ip[bth + 9:bth + 12], "big"), ip[bth + BTH_BYTES:end - ICRC_BYTES])


@dataclasses.dataclass
class Request:
    """What a request says. Of one of RC nothing but the opcode and the PSN counts, and a READ's length.

    length: the RETH's. size: bytes of the payload. search: bytes 08 to 0b of the header of READ_POINTER.
    answered: there was a READ response.
    """
    opcode: int
    psn: int
    length: int = 0
    size: int = 0
    address: int = 0
    search: int = 0
    answered: bool = False

    @property
    def name(self):
        return NAMES[self.opcode]

    def is_again(self, other):
        return dataclasses.replace(self, answered=False) == dataclasses.replace(other, answered=False)

    def most_responses(self):
        """How many packets the response to a READ of RC has at the smallest MTU: so many PSNs are the READ's."""
        return max(-(-self.length // MTUS[0]), 1)


def request(found):
    """The Request in a packet, or None if the packet has not all its headers."""
    made = Request(found.opcode, found.psn)
    header = HEADER_BYTES.get(found.opcode, 16 if found.opcode == READ_REQUEST else 0)
    made.size = len(found.body) - found.pad - header
    if made.size < 0:
        return None
    if header:
        made.address, _, made.length = struct.unpack_from(">QII", found.body)
    if found.opcode == READ_POINTER:
        made.search = struct.unpack_from(">I", found.body, 24)[0]
    return made


def wrong_alone(found, made):
    """What is wrong with a packet of these, whatever there is beside it; or None."""
    if found.version:
        return f"{made.name} with version {found.version}"
    if len(found.body) % 4:
        return f"{made.name} with {len(found.body)} bytes between BTH and ICRC"
    sizes = {PART_FIRST: MTUS, PART_MIDDLE: MTUS, PART_LAST: range(1, MTUS[-1] + 1),
             PART_ONLY: range(MTUS[-1] + 1)}.get(made.opcode, (0,))
    if made.size not in sizes:
        return f"{made.name} with a payload of {made.size} bytes, which it cannot have"
    lengths = {PART_FIRST: range(made.size + 1, (1 << 31) + 1), PART_MIDDLE: (0,), PART_LAST: (0,),
               PART_ONLY: (made.size,)}.get(made.opcode, range(MTUS[-1] + 1))
    if made.length not in lengths:
        return f"{made.name} with a payload of {made.size} bytes, of a length of {made.length}"
    if made.opcode in PART and made.address:
        return f"{made.name} with the address {made.address:#x}, which is reserved"
    return None


def wrong_behind(last, made):
    """What is wrong with a request behind that of the PSN before, or None."""
    if last.opcode in RC_OPEN and made.opcode in OPCODES:
        return f"{made.name} in a message of opcode {last.opcode:#04x}"
    if last.opcode not in OPEN:
        return f"{made.name} behind no packet of a message" if made.opcode in GOES_ON else None
    if made.opcode not in GOES_ON:
        return f"opcode {made.opcode:#04x} behind {last.name}"
    if made.size > last.size or made.opcode == PART_MIDDLE and made.size != last.size:
        return f"{made.name} with {made.size} bytes, behind {last.name} with {last.size}"
    return None


def wrong_search(search):
    """What a READ_POINTER must not say, or None. Of a relative pointer the key that matches decides."""
    keys, value, following = search & 0xffff, search >> 18 & 31, search >> 24 & 31
    relative, has_next = search >> 23 & 1, search >> 29 & 1
    for bad, why in ((search >> 30, "reserved bits"), (not keys, "no key"), (keys >> 15, "a key at word 15"),
                     (value > LAST_WORD and not relative, f"its pointer at word {value}"),
                     (following > LAST_WORD and has_next, f"the next element's address at word {following}")):
        if bad:
            return why
    return None


def crc_table():
    reflected = int(f"{CRC_POLYNOMIAL:064b}"[::-1], 2)
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (reflected if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def crc64(data):
    """CRC-64/XZ."""
    register = (1 << 64) - 1
    for byte in data:
        register = register >> 8 ^ CRC_TABLE[(register ^ byte) & 0xff]
    return register ^ (1 << 64) - 1


def wrong_response(made, found):
    """Why a READ_RESPONSE_ONLY is not the response to a READ_POINTER or READ_CONSISTENT; or None."""
    size = len(found.body) - AETH_BYTES - found.pad
    if size < 0 or found.body[0] >> 5 != ACK:
        return f"READ_RESPONSE_ONLY to {made.name} without an AETH of an ACK"
    if made.opcode == READ_POINTER:
        why = wrong_search(made.search) or (None if made.length else "no length")
        if why:
            return f"READ_RESPONSE_ONLY to {made.name} with {why}"
        if not size:
            return None
        # Of its keys the first one leaves a relative pointer the most words.
        first = (made.search & -made.search).bit_length() - 1
        if made.search >> 23 & 1 and first + (made.search >> 18 & 31) > LAST_WORD:
            return f"READ_RESPONSE_ONLY to {made.name} with a relative pointer beyond word {LAST_WORD}"
    elif made.length <= CRC_BYTES:
        return f"READ_RESPONSE_ONLY to {made.name} of {made.length} bytes"
    if size != made.length:
        return f"READ_RESPONSE_ONLY of {size} bytes to {made.name} of {made.length}"
    if made.opcode == READ_CONSISTENT:
        data = found.body[AETH_BYTES:AETH_BYTES + size]
        if crc64(data[:-CRC_BYTES]) != int.from_bytes(data[-CRC_BYTES:], "little"):
            return f"READ_RESPONSE_ONLY to {made.name} with a wrong CRC-64"
    return None


class Flow:
    """The requests from one port to one QP: the latest one of each PSN."""

    def __init__(self):
        self.at = {}
        self.last = None
        self.top = None     # the highest PSN of this connection
        self.left_out = set()

    def take(self, made):
        """What is wrong with a request behind those before it, or None."""
        last, self.last = self.last, made
        self.advance(made.psn)
        # What goes again has been answered if it was before.
        before = self.at.get(made.psn)
        made.answered = before is not None and before.answered and before.is_again(made)
        self.at[made.psn] = made
        if made.opcode == READ_REQUEST:
            self.left_out -= {(made.psn + k) % PSNS for k in range(made.most_responses())} if self.left_out else set()
        if last and (made.psn - last.psn) % PSNS == 1:
            return wrong_behind(last, made)
        return None

    def advance(self, psn):
        self.left_out.discard(psn)
        ahead = 1 if self.top is None else (psn - self.top) % PSNS
        if NEAR < ahead <= PSNS - NEAR:     # another connection
            self.left_out.clear()
            self.top = psn
        elif 0 < ahead <= NEAR:
            # A READ has as many PSNs as responses.
            if self.top is not None and self.at[self.top].opcode != READ_REQUEST:
                self.left_out |= {(self.top + k) % PSNS for k in range(1, ahead)}
            self.top = psn

    def wrong_answer(self, found):
        """Why a response is not one to the request of its PSN, or None."""
        made = self.at[found.psn]
        if made.opcode not in OPCODES:
            return None
        if found.opcode == ACKNOWLEDGE:
            kind = found.body[0] >> 5 if found.body else ACK
            if kind == RNR_NAK:
                return f"an RNR NAK to {made.name}"
            if kind != ACK:
                return None
            why = self.wrong_acknowledgement(made)
        elif found.opcode == READ_RESPONSE_ONLY and made.opcode not in PART:
            why = wrong_response(made, found)
        else:
            why = f"opcode {found.opcode:#04x} to {made.name}"
        if why:
            return why
        missing = [psn for psn in self.left_out if 0 < (found.psn - psn) % PSNS < NEAR]
        if missing:
            return f"PSN {found.psn:#08x} is acknowledged, {min(missing):#08x} was not sent"
        made.answered = made.answered or found.opcode == READ_RESPONSE_ONLY
        return None

    def wrong_acknowledgement(self, made):
        """Why an ACK cannot have the PSN of a request, or None."""
        if made.opcode not in PART:
            # What comes twice makes the responder acknowledge the newest request, whose response has gone.
            return None if made.answered else f"an ACK to {made.name}"
        first, total = made, made.size
        while first.opcode in GOES_ON:
            first = self.at.get((first.psn - 1) % PSNS)
            if not first or first.opcode not in OPEN:
                return f"an ACK to {made.name} without the packets before it"
            total += first.size
        whole = made.opcode in (PART_LAST, PART_ONLY)
        if total != first.length if whole else total >= first.length:
            return f"an ACK to {made.name}, with which {total} bytes were sent of a message of {first.length}"
        return None


class Ports:
    """The requests from one port to another one."""

    def __init__(self):
        self.flows = {}
        self.by_psn = {}    # PSN -> the flows that have it
        self.reads = []     # (PSN, how many it may have) of READs of RC

    def take(self, qpn, made):
        flow = self.flows.setdefault(qpn, Flow())
        self.by_psn.setdefault(made.psn, set()).add(flow)
        if made.opcode == READ_REQUEST:
            self.reads.append((made.psn, made.most_responses()))
        return flow.take(made)

    def wrong_answer(self, found):
        """Why a response answers none of the requests, or None: also if it is of no request of these at all."""
        said = [flow.wrong_answer(found) for flow in self.by_psn.get(found.psn, ())]
        if not said or None in said or any((found.psn - psn) % PSNS < count for psn, count in self.reads):
            return None
        return sorted(said)[0]


class Checker:
    """Checks packet after packet of the ports that have requests of these among themselves."""

    def __init__(self, ports, alone):
        self.ports = {pair: Ports() for pair in ports}
        self.alone = alone

    def take(self, found):
        """What is wrong with a packet, or None."""
        if found.opcode in extended.RESPONSES:
            ports = self.ports.get((found.target, found.source))
            return ports.wrong_answer(found) if ports and not self.alone else None
        ports = self.ports.get((found.source, found.target))
        if not ports:
            return None
        made = request(found)
        if found.opcode in OPCODES:
            if not made:
                return f"{NAMES[found.opcode]} shorter than its headers"
            why = wrong_alone(found, made)
            if why:
                return why
        return ports.take(found.qpn, made) if made and not self.alone else None


def packets(path):
    """(number from 1, Packet) of the frames of a capture that have one."""
    for number, record in enumerate(pcapng.records(path), 1):
        found = packet(record.data)
        if found:
            yield number, found


def check(path, alone=False):
    """How many packets of these are in a capture, and (number of a frame, what is wrong) of its frames.

    alone: each packet by itself, because the capture has several networks with the same addresses, one behind another.
    """
    ports, count = set(), 0
    for _, found in packets(path):
        if found.opcode in OPCODES:
            ports.add((found.source, found.target))
            count += 1
    checker = Checker(ports, alone)
    said = ((number, checker.take(found)) for number, found in packets(path)) if count else ()
    return count, [(number, why) for number, why in said if why]
