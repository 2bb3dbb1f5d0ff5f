# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver of the JingZhao HCA, written from its document alone, for machines without a guest.

Each number is the document's, whose table is named beside it. Of what the document leaves open, the EQE and the form of
the packets, the form is Tavor's.
"""

import struct

from pci import PAGE, Function

# Tables 3-1-2 and 3-1-3
RESET, HCR = 0xf0010, 0x80000
STATUS_WORD = 0x18
GO, BY_EVENT = 1 << 23, 1 << 22
POLLED = 0xffff
# Table 3-1-5
OK, BAD_OP, BAD_PARAM, BAD_SYS_STATE, BAD_SIZE = 0x00, 0x02, 0x03, 0x04, 0x40
# Table 3-2-1
QUERY_DEV_LIM, QUERY_ADAPTER, INIT_HCA, CLOSE_HCA = 0x3, 0x6, 0x7, 0x8
MAP_ICM, UNMAP_ICM, SW2HW_MPT, HW2SW_MPT, WRITE_MTT = 0xffa, 0xff9, 0xd, 0xf, 0x11
MAP_EQ, SW2HW_EQ, HW2SW_EQ, SW2HW_CQ, HW2SW_CQ = 0x12, 0x13, 0x14, 0x16, 0x17
RESIZE_CQ = 0x2c
RST2INIT, INIT2RTR, RTR2RTS, RTS2RTS, SQERR2RTS, TO_ERR, TO_RESET = 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x21
RTS2SQD, SQD2SQD, SQD2RTS, INIT2INIT, QUERY_QP, CONF_SPECIAL_QP, MAD_IFC = 0x1f, 0x38, 0x20, 0x2d, 0x22, 0x23, 0x24
NOP = 0x31
COMMANDS = {0x3, 0x6, 0x7, 0x8, 0xffa, 0xff9, 0xd, 0xf, 0x11, 0x12, 0x13, 0x14, 0x16, 0x17, 0x2c,
            0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x38, 0x20, 0x21, 0x2d, 0x22, 0x23, 0x24, 0x31}
# Table 3-2-24
UNMAP_EVENTS = 1 << 31
# Table 3-2-39: with a mailbox, without one
MAILBOX, NO_MAILBOX = 0, 3
# Table 3-2-12
CONTEXTS, TABLES = 1, 2
# Table 3-2-19
REGION = 1 << 8
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL_RIGHTS = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
# Tables 3-2-29, 3-2-34
OWNER_HW, TRANSLATE, ARMED = 1 << 24, 1 << 18, 1 << 8
# Table 3-2-25, and Tavor's types of the rest
COMPLETION, COMM_EST, CQ_ERROR, QP_CATASTROPHE, DEVICE_CATASTROPHE = 0x00, 0x02, 0x04, 0x05, 0x08
PORT_CHANGE, COMMAND_DONE, INVALID_REQUEST, ACCESS_ERROR = 0x09, 0x0a, 0x10, 0x11
MAPPED = (COMM_EST, CQ_ERROR, QP_CATASTROPHE, DEVICE_CATASTROPHE, PORT_CHANGE, COMMAND_DONE, INVALID_REQUEST,
          ACCESS_ERROR)
# Table 3-2-42
RC, UC, UD = 0, 1, 3
RST, INIT, RTR, RTS, SQE, SQD, ERR = range(7)
# Table A1-3
ACCESS_FLAGS, PKEY_INDEX, PORT, QKEY, AV, PATH_MTU = 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
TIMEOUT, RETRY_CNT, RNR_RETRY, RQ_PSN, MIN_RNR_TIMER, SQ_PSN, DEST_QPN = (1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 15,
                                                                         1 << 16, 1 << 20)
# Table A1-2: what each transition of each service must have
FIRST = {RC: PKEY_INDEX | PORT | ACCESS_FLAGS, UC: PKEY_INDEX | PORT | ACCESS_FLAGS, UD: PKEY_INDEX | PORT | QKEY}
REQUIRED = {
    RST2INIT: FIRST, INIT2INIT: FIRST,
    INIT2RTR: {RC: AV | PATH_MTU | DEST_QPN | RQ_PSN | MIN_RNR_TIMER, UC: AV | PATH_MTU | DEST_QPN | RQ_PSN, UD: 0},
    RTR2RTS: {RC: TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN, UC: SQ_PSN, UD: SQ_PSN},
}
# Table 3-3-3
OP_NOP, OP_WRITE, OP_WRITE_IMM, OP_SEND, OP_SEND_IMM, OP_READ, OP_CAS, OP_FAA = 0, 8, 9, 0xa, 0xb, 0x10, 0x11, 0x12
OP_ERROR = 0xff
# The second table 3-3-3
LOCAL_LENGTH, LOCAL_OP, LOCAL_PROTECTION, FLUSHED, BAD_RESPONSE = 0x1, 0x2, 0x4, 0x5, 0x10
REMOTE_INVALID_REQUEST, REMOTE_ACCESS, REMOTE_OP, RETRY_EXCEEDED, RNR_RETRY_EXCEEDED = 0x12, 0x13, 0x14, 0x15, 0x16
# IBA vol 1, 9.2.1: opcodes of last packets, of RC; those of other services begin at
ENDS_SEND, ENDS_SEND_IMM, SEND_ONLY, SEND_ONLY_IMM, ENDS_WRITE_IMM, WRITE_ONLY_IMM = 0x02, 0x03, 0x04, 0x05, 0x09, 0x0b
PACKETS_OF = {RC: 0x00, UC: 0x20, UD: 0x60}
# Tables 3-3-2
ENTRY, OWNED_BY_HW = 32, 0x80
# Table 3-4-3, 3-4-10
SOLICIT, INLINE = 1 << 1, 1 << 31
SLOT_LOG, SLOTS = 7, 16
MTU_1024 = 3
FENCE_OF_NEXT, FENCE_OF_BELL = 1 << 6, 1 << 5
QKEY_OF_ALL, QKEY_OF_GSI = 0x11111111, 0x80010000      # the latter by IBA vol 1, 3.5.3
GRH = 40


def must(status, what):
    if status != OK:
        raise AssertionError(f"{what}: status {status:#x}")


class Queue:
    """A ring of WQEs in a page of its own, or at `memory`."""

    def __init__(self, adapter, memory=None):
        self.region = adapter.new_region(0, PAGE, LOCAL_WRITE, memory=memory)
        self.begin()

    def begin(self):
        """Nothing is posted, nothing has completed."""
        self.count = self.completed = 0

    @staticmethod
    def offset(index):
        return index % SLOTS << SLOT_LOG

    def slot(self, index):
        return self.region.memory + self.offset(index)

    def complete(self):
        """The offset of the WQE that completes next."""
        self.completed += 1
        return self.offset(self.completed - 1)


class Region:
    """An MR: `length` bytes from address `start` on, at `memory`, by the MTTs from `first` on."""

    def __init__(self, key, start, length, memory, first=0):
        self.key, self.start, self.length, self.memory, self.first = key, start, length, memory, first


class Adapter(Function):
    """An HCA: one EQ for commands and asynchronous events, one for completions, each on a vector of its own."""

    LOG_QPS, LOG_CQS, LOG_EQS, LOG_MPTS = 6, 6, 3, 8
    EVENTS, COMPLETIONS = 1, 2     # EQNs
    PD = 5
    UAR_PAGE = 9

    def __init__(self, m, slot, base, memory, number):
        super().__init__(m, slot, base, memory)
        self.mac = bytes((0x52, 0x54, 0, 0, 0, number))
        self.ip = 0x0a0a0000 | number
        self.inbox, self.outbox = memory + 4 * PAGE, memory + 5 * PAGE
        self.free = memory + 0x400000      # pages below hold ICM
        self.next_key = self.next_mtt = 1
        self.next_qpn, self.next_cqn = 8, 1
        self.consumed = {}
        self.succeeded = set()

    # ---- 3.2, commands

    def status(self, op, modifier=0, op_modifier=0, mailbox=b"", param=0, token=POLLED, flags=GO):
        """Status of a command that was polled. param: what in_param has when it is no mailbox."""
        if mailbox:
            self.m.write(self.inbox, mailbox.ljust(PAGE, b"\0"))
            param = self.inbox
        words = (param >> 32, param & 0xffffffff, modifier, self.outbox >> 32, self.outbox & 0xffffffff, token << 16)
        for i, word in enumerate(words):
            self.m.write32(self.registers + HCR + 4 * i, word)
        self.m.write32(self.registers + HCR + STATUS_WORD, flags | op_modifier << 12 | op)
        word = self.m.read32(self.registers + HCR + STATUS_WORD)
        if word & GO:
            raise AssertionError(f"command {op:#x} has not ended")
        if word >> 24 == OK and not flags & BY_EVENT:
            self.succeeded.add(op)
        return word >> 24

    def command(self, op, *arguments, **named):
        """A command that must succeed; what is in its out_param."""
        must(self.status(op, *arguments, **named), f"command {op:#x}")
        return self.m.read(self.outbox, 256)

    def reset(self):
        self.m.write32(self.registers + RESET, 1)

    @property
    def uar_frame(self):
        """Page frame number of the UAR page, as table 3-2-41 wants it."""
        return self.bells // PAGE + self.UAR_PAGE

    # ---- 3.2.1 to 3.2.3, tables and regions

    def start(self):
        limits = self.command(QUERY_DEV_LIM)
        qpc, cqc, eqc, mpt = struct.unpack_from(">HHHH", limits, 0x18)
        place, at = {}, 0
        for name, log, size in (("qpc", self.LOG_QPS, qpc), ("cqc", self.LOG_CQS, cqc), ("eqc", self.LOG_EQS, eqc)):
            place[name] = at | log
            at += -(-(size << log) // PAGE) * PAGE
        tables = -(-(mpt << self.LOG_MPTS) // PAGE) * PAGE
        self.command(INIT_HCA, mailbox=struct.pack(">8xQQQ16xQQ", place["qpc"], place["cqc"], place["eqc"],
                                                   self.LOG_MPTS, tables))
        # Two entries, the first in the upper half of the pair.
        memory = self.memory + 0x100000
        self.icm = {CONTEXTS: memory, TABLES: memory + at}
        self.command(MAP_ICM, 2, CONTEXTS, struct.pack(">QQQQ", PAGE, memory + PAGE | at // PAGE - 1, 0, memory | 1))
        self.map_icm(TABLES, 0, tables // PAGE + 1)
        for eqn in (self.EVENTS, self.COMPLETIONS):
            self.create_eq(eqn)
        self.map_events(self.EVENTS, *MAPPED)

    def map_icm(self, space, at, pages):
        self.command(MAP_ICM, 1, space, struct.pack(">16xQQ", at, self.icm[space] + at | pages))

    def unmap_icm(self, space, at, pages):
        self.command(UNMAP_ICM, pages, space, param=at)

    def new_page(self):
        """A page of memory that nothing else uses."""
        self.free += PAGE
        return self.free - PAGE

    def write_mtt(self, first, pages):
        """Groups of four, the first in the upper end of its group."""
        entries = pages + [0] * (-len(pages) % 4)
        groups = [struct.pack(">4Q", *entries[i:i + 4][::-1]) for i in range(0, len(entries), 4)]
        self.command(WRITE_MTT, len(pages), mailbox=struct.pack(">24xQ", first) + b"".join(groups))

    def index(self, region):
        """The key modulo the number of MPTs."""
        return region.key % (1 << self.LOG_MPTS)

    def give_region(self, region, rights=ALL_RIGHTS, pd=PD):
        self.command(SW2HW_MPT, self.index(region), mailbox=struct.pack(
            ">IIIIQQIIIQI", REGION | rights, 0, region.key, pd, region.start, region.length, 0, 0, 0, region.first, 0))

    def new_region(self, start, length, rights=ALL_RIGHTS, pd=PD, memory=None):
        """An MR over pages of its own, or over those at `memory`; its address has the same offset in a page as its memory."""
        lead = start % PAGE
        pages = -(-(lead + length) // PAGE)
        if memory is None:
            memory, self.free = self.free, self.free + pages * PAGE
        first, self.next_mtt = self.next_mtt, self.next_mtt + pages
        self.write_mtt(first, [memory + i * PAGE for i in range(pages)])
        key, self.next_key = 0x7700 << self.LOG_MPTS | self.next_key, self.next_key + 1
        region = Region(key, start, length, memory + lead, first)
        self.give_region(region, rights, pd)
        return region

    # ---- 3.2.4, 3.2.5, queues of the device's reports: each begins in the middle of its region

    def new_ring(self, log):
        region = self.new_region(0x7fffff000e00, (ENTRY << log) + 0x1c0)
        ring = Region(region.key, region.start + 0x100, ENTRY << log, region.memory + 0x100)
        self.give_entries(ring, log)
        return ring

    def give_entries(self, ring, log):
        self.m.write(ring.memory, (bytes(ENTRY - 1) + bytes([OWNED_BY_HW])) * (1 << log))

    def try_create_eq(self, eqn, ring, log):
        return self.status(SW2HW_EQ, eqn, mailbox=struct.pack(
            ">IQB10xBII8xII", OWNER_HW | TRANSLATE | ARMED, ring.start, log, eqn - 1, self.PD, ring.key, 0, 0))

    def create_eq(self, eqn, log=6, ring=None):
        ring = ring or self.new_ring(log)
        must(self.try_create_eq(eqn, ring, log), "SW2HW_EQ")
        self.aim_at_memory(eqn - 1)
        self.consumed["eq", eqn] = (ring, log, 0)

    def map_events(self, eqn, *types, unmap=0):
        self.command(MAP_EQ, unmap | eqn, param=sum(1 << each for each in types))

    def try_create_cq(self, cqn, ring, log):
        # The PD and the low half of the UAR page are not used.
        return self.status(SW2HW_CQ, cqn, mailbox=struct.pack(
            ">IQIIII16xI", TRANSLATE, ring.start, log << 24, self.COMPLETIONS, 0, ring.key, cqn))

    def create_cq(self, log=6, ring=None):
        cqn, self.next_cqn = self.next_cqn, self.next_cqn + 1
        self.give_cq(cqn, log, ring)
        return cqn

    def give_cq(self, cqn, log, ring=None):
        ring = ring or self.new_ring(log)
        must(self.try_create_cq(cqn, ring, log), "SW2HW_CQ")
        self.consumed["cq", cqn] = (ring, log, 0)

    def resize_cq(self, cqn, log):
        """All completions have been taken. The new ring begins where its region does; the index goes on."""
        ring = self.new_region(0x7fff00000000, ENTRY << log, LOCAL_WRITE)
        self.give_entries(ring, log)
        self.command(RESIZE_CQ, cqn, mailbox=struct.pack(">B3xI", log, ring.key))
        self.consumed["cq", cqn] = (ring, log, self.consumed["cq", cqn][2])

    def take(self, kind, number):
        """The next entry of an EQ or a CQ, which is the device's again, or None."""
        ring, log, index = self.consumed[kind, number]
        at = ring.memory + index % (1 << log) * ENTRY
        entry = self.m.read(at, ENTRY)
        if entry[ENTRY - 1] == OWNED_BY_HW:
            return None
        self.m.write(at + ENTRY - 1, bytes([OWNED_BY_HW]))
        self.consumed[kind, number] = (ring, log, index + 1)
        return entry

    def events(self, eqn):
        """(type, QPN or CQN or token) of the events in an EQ."""
        found = []
        while entry := self.take("eq", eqn):
            word = struct.unpack_from(">I", entry, 4)[0]
            found.append((entry[1], word & 0xffff if entry[1] == COMMAND_DONE else word & 0xffffff))
        return found

    def completion(self, cqn):
        entry = self.take("cq", cqn)
        return Completion(entry) if entry else None


class Completion:
    """Tables 3-3-1 and 3-3-4."""

    def __init__(self, entry):
        self.qpn, _, self.remote, self.path, self.imm, self.bytes, self.wqe = struct.unpack_from("<7I", entry)
        self.opcode, self.is_send = entry[0x1c], entry[0x1d]
        self.syndrome = entry[0x10] if self.opcode == OP_ERROR else 0


class Qp:
    """A QP with queues of SLOTS WQEs of 128 bytes, and a CQ of its own unless one is given. The queues may have their place."""

    def __init__(self, adapter, service, log_cqes=6, cqn=None, send=None, receive=None):
        self.adapter, self.service = adapter, service
        self.qpn, adapter.next_qpn = adapter.next_qpn, adapter.next_qpn + 1
        self.cqn = adapter.create_cq(log_cqes) if cqn is None else cqn
        self.send, self.receive = Queue(adapter, send), Queue(adapter, receive)
        self.context = bytearray(192)
        self.peer = None

    def modify(self, op, attributes=None):
        struct.pack_into(">I", self.context, 0x00, REQUIRED[op][self.service] if attributes is None else attributes)
        self.adapter.command(op, self.qpn, MAILBOX, mailbox=bytes(self.context))

    def describe(self, peer, own_psn=0x123456, peer_psn=0x654321, longest=31):
        """Table 3-2-41; peer: a Qp. longest: log2 of the bytes of a message."""
        a, c, other = self.adapter, self.context, peer.adapter
        self.peer = peer
        struct.pack_into(">I", c, 0x08, self.service << 16)
        struct.pack_into(">BBBBIII", c, 0x0c, MTU_1024 << 5 | longest, SLOT_LOG, SLOT_LOG, 0, a.uar_frame, self.qpn,
                         peer.qpn)
        struct.pack_into(">I", c, 0x1c, 1 << 24)                     # port 1, P_Key 0
        c[0x20], c[0x24] = 2, 10                                     # RNR retries; 4.2 ms
        c[0x3c:0x40] = other.mac[4:] + a.mac[4:]
        c[0x40:0x48] = a.mac[:4] + other.mac[:4]
        struct.pack_into(">II", c, 0x48, a.ip, other.ip)
        struct.pack_into(">I", c, 0x5c, a.PD)
        struct.pack_into(">IIII", c, 0x6c, own_psn, self.cqn, self.send.region.key, SLOTS << SLOT_LOG)
        struct.pack_into(">I", c, 0x84, 1 << 24 | peer_psn)          # RNR timer 0.01 ms
        struct.pack_into(">IIII", c, 0x8c, self.cqn, self.receive.region.key, SLOTS << SLOT_LOG, QKEY_OF_ALL)

    def connect(self, *arguments, steps=(RST2INIT, INIT2RTR, RTR2RTS), **named):
        """From RESET to RTS, or some of these steps; the other arguments are those of describe()."""
        self.describe(*arguments, **named)
        for op in steps:
            self.modify(op)

    def query(self):
        return self.adapter.command(QUERY_QP, self.qpn)[:192]

    @property
    def state(self):
        return self.query()[0x08] >> 4

    def reset(self):
        """A QP in RESET has indices 0, and its queues are empty."""
        self.adapter.command(TO_RESET, self.qpn, NO_MAILBOX)
        for queue in (self.send, self.receive):
            queue.begin()
            self.adapter.m.write(queue.region.memory, bytes(SLOTS << SLOT_LOG))

    # ---- 3.4, WQEs

    def write_send(self, opcode, *units, imm=0, flags=0, fence=0):
        """A WQE, and the link to it from the one before it; its size in units of 16 bytes."""
        m, q = self.adapter.m, self.send
        wqe = struct.pack("<IIII", 0, 0, flags, imm) + b"".join(units)
        m.write(q.slot(q.count), wqe)
        size = len(wqe) // 16
        before = q.slot(q.count - 1)
        m.write32(before, q.offset(q.count) | opcode)
        m.write32(before + 4, fence | size)
        q.count += 1
        return size

    def ring(self, index, opcode, size, fence=0):
        bell = self.adapter.bells + self.adapter.UAR_PAGE * PAGE
        self.adapter.m.write32(bell, (index & 0xffff) << 8 | fence | opcode)
        self.adapter.m.write32(bell + 4, self.qpn << 8 | size)

    def post(self, opcode, *units, bell_fence=0, **named):
        """One send, and its doorbell."""
        index = self.send.count
        self.ring(index, opcode, self.write_send(opcode, *units, **named), bell_fence)

    def post_chain(self, *requests):
        """Sends (opcode, units, named arguments). The doorbell has the first; links lead to the others."""
        index = self.send.count
        sizes = [self.write_send(opcode, *units, **named) for opcode, units, named in requests]
        self.ring(index, requests[0][0], sizes[0])

    def post_receive(self, *units):
        """Clears the slot behind it first. Its own first 16 bytes are written last, and are not all zero."""
        m, q = self.adapter.m, self.receive
        slot = q.slot(q.count)
        m.write(q.slot(q.count + 1), bytes(16))
        body = b"".join(units).ljust((1 << SLOT_LOG) - 16, b"\0")
        m.write(slot + 16, body)
        m.write(slot, struct.pack("<IIII", (q.count + 1) % SLOTS << SLOT_LOG, 1, 0, 0))
        q.count += 1

    def completion(self):
        return self.adapter.completion(self.cqn)


def remote(region, offset=0):
    return struct.pack("<QII", region.start + offset, region.key, 0)


def atomic(swap_add, compare=0):
    return struct.pack("<QQ", swap_add, compare)


def data(region, offset, length):
    return struct.pack("<IIQ", length, region.key, region.start + offset)


def inline(content):
    return (struct.pack("<I", INLINE | len(content)) + content).ljust(-(-(4 + len(content)) // 16) * 16, b"\0")


def datagram(own, peer, dqpn=None, qkey=QKEY_OF_ALL):
    """Table 3-4-9."""
    a, b = own.adapter, peer.adapter
    lids = int.from_bytes(b.mac[4:], "big") << 16 | int.from_bytes(a.mac[4:], "big")
    macs = int.from_bytes(a.mac[:4], "big"), int.from_bytes(b.mac[:4], "big")
    return struct.pack("<IIIIII8xII8x", 1, lids, *macs, a.ip, b.ip, peer.qpn if dqpn is None else dqpn, qkey)
