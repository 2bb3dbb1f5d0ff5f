// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/send_queues.h"

#include <cstring>

#include "byte_order.h"
#include "ernic/adapter.h"

namespace hghca::ernic {

namespace {

struct OpcodeRow {
    uint8_t opcode;
    uint8_t personalities;
    Operation operation;
};

constexpr Operation operation_of(ernic_opcode opcode)
{
    switch (opcode) {
    case ERNIC_OPCODE_WRITE:
        return Operation::Write;
    case ERNIC_OPCODE_WRITE_IMM:
        return Operation::WriteImm;
    case ERNIC_OPCODE_SEND:
        return Operation::Send;
    case ERNIC_OPCODE_SEND_IMM:
        return Operation::SendImm;
    case ERNIC_OPCODE_READ:
        return Operation::Read;
    case ERNIC_OPCODE_SEND_INV:
        return Operation::SendInvalidate;
    }
    return Operation::Nop;
}

constexpr OpcodeRow kOpcodeRows[] = {
#define ERNIC_OPCODE_ROW(name, value, personality) \
    {value, ERNIC_PERSONALITY_##personality, operation_of(ERNIC_OPCODE_##name)},
    ERNIC_OPCODES(ERNIC_OPCODE_ROW)
#undef ERNIC_OPCODE_ROW
};

uint64_t address(const __le32 (&words)[2]) { return uint64_t(le32(words[1])) << 32 | le32(words[0]); }

constexpr bool is_send(Operation operation)
{
    return operation == Operation::Send || operation == Operation::SendImm || operation == Operation::SendInvalidate;
}

// Nop: the WQE is illegal.
Operation legal_operation(const ernic_wqe &wqe, Personality personality, uint64_t most)
{
    const uint32_t length = le32(wqe.length);
    for (const OpcodeRow &row : kOpcodeRows) {
        if (row.opcode != wqe.opcode || !(row.personalities & uint8_t(personality)))
            continue;
        // An empty SEND is not supported (000:191).
        return length > most || (is_send(row.operation) && !length) ? Operation::Nop : row.operation;
    }
    return Operation::Nop;
}

}  // namespace

Following SendQueues::at(const Qp &qp, uint16_t index, WqeRef &out)
{
    const QueuePair &pair = device_.pair(qp);
    out = {};
    out.index = index;
    // At most so many are under way: the one behind them waits.
    const bool in_window = uint16_t(index - pair.sq.index) < ERNIC_OUTSTANDING;
    // Under recovery, nothing new begins.
    const bool begins = !device_.is_recovering(pair) || index_before(index, qp.req.started_index);
    out.valid = index_before(index, pair.sq_end) && in_window && begins;
    return out.valid ? Following::Posted : Following::None;
}

Following SendQueues::peek(Qp &qp, uint16_t index, WqeRef &out)
{
    WqeRef wqe;
    const Following what = at(qp, index, wqe);
    if (what == Following::Posted)
        out = wqe;
    return what;
}

Following SendQueues::follow(const Qp &qp, uint16_t index, WqeRef &out) { return at(qp, uint16_t(index + 1), out); }

WqeFault SendQueues::load(const Qp &qp, SendWqe &out) { return read_wqe(qp, qp.req.next.index, out); }
WqeFault SendQueues::reload(const Qp &qp, SendWqe &out) { return read_wqe(qp, qp.req.oldest.index, out); }

bool SendQueues::read(const QueuePair &pair, uint16_t index, ernic_wqe &out) const
{
    const uint64_t base = device_.registers.qp_address(number(pair.qp.a.qpn), ERNIC_SQBA, ERNIC_SQBAMSB);
    return device_.host.read(base + uint64_t(pair.sq.slot_of(index)) * sizeof(out), &out, sizeof(out));
}

WqeFault SendQueues::read_wqe(const Qp &qp, uint16_t index, SendWqe &out)
{
    ernic_wqe wqe;
    if (!read(device_.pair(qp), index, wqe))
        return WqeFault::Unreadable;
    std::memcpy(out.bytes.data(), &wqe, sizeof(wqe));
    out.operation = legal_operation(wqe, device_.registers.personality(),
                                    device_.config.strict ? ERNIC_STRICT_MESSAGE_BYTES : kMaxMessage);
    out.token = token_of(wqe);
    out.solicited = false;
    out.completes = true;
    out.imm = out.operation == Operation::SendInvalidate ? be32(le32(wqe.rtag)) : wqe.imm;
    out.srqn = kNoSrqn;
    out.raddr = address(wqe.roffset);
    out.rkey = Key(le32(wqe.rtag));
    out.list.count = 0;
    out.list.length = 0;
    out.length = 0;
    const uint32_t length = le32(wqe.length);
    if (out.operation == Operation::Nop || !length)
        return WqeFault::None;
    const bool is_inline = is_send(out.operation) && length <= sizeof(wqe.sdata);
    out.list.count = 1;
    out.list.length = length;
    out.length = length;
    out.list.entries[0] = {length, {}, address(wqe.laddr),
                           is_inline ? out.bytes.data() + offsetof(ernic_wqe, sdata) : nullptr};
    return WqeFault::None;
}

uint32_t SendQueues::token_of(const ernic_wqe &wqe)
{
    return field_put(ERNIC_CQE_WRID, le16(wqe.wrid)) | field_put(ERNIC_CQE_OPCODE, wqe.opcode);
}

void SendQueues::complete_next(QueuePair &pair, uint32_t token, bool failed)
{
    const uint32_t qpn = number(pair.qp.a.qpn);
    const uint32_t conf = device_.registers.qp(qpn, ERNIC_QPCONF);
    const uint16_t slot = pair.sq.slot;
    pair.sq.advance();
    if (conf & ERNIC_QPCONF_CQE) {
        const uint32_t cqe = le32(token | field_put(ERNIC_CQE_ERROR, failed));
        const uint64_t base = device_.registers.qp_address(qpn, ERNIC_CQBA, ERNIC_CQBAMSB);
        device_.stats.dma_errors += !device_.host.write(base + uint64_t(slot) * sizeof(cqe), &cqe, sizeof(cqe));
    }
    device_.registers.qp(qpn, ERNIC_CQHEAD) = index_behind(slot);
    device_.ring(qpn, ERNIC_CQDBADD, ERNIC_CQDBADDMSB, index_behind(slot));
    if (conf & ERNIC_QPCONF_CQ_INTERRUPT)
        device_.interrupts.raise_completion(qpn);
}

Completed SendQueues::complete(const Qp &qp, uint16_t index, const SentWqe &wqe, uint32_t)
{
    QueuePair &pair = device_.pair(qp);
    device_.transport->require(index == pair.sq.index, "WQEs complete in order");
    const bool illegal = wqe.operation == Operation::Nop;
    if (illegal)
        device_.discard_wqe(pair, uint8_t(field_get(ERNIC_CQE_OPCODE, wqe.token)));
    complete_next(pair, wqe.token, illegal);
    return Completed::Yes;
}

Completed SendQueues::fail(const Qp &qp, uint16_t index, Status status)
{
    QueuePair &pair = device_.pair(qp);
    if (status == Status::Flushed || pair.fatal)
        return Completed::Yes;
    ernic_wqe wqe{};
    const bool readable = index == pair.sq.index && pair.posted() && read(pair, index, wqe);
    if (!readable)
        wqe.opcode = ERNIC_OPCODE_SEND;
    device_.become_fatal(pair, device_.fatal_of(pair, status, wqe));
    if (readable)
        complete_next(pair, wqe, true);
    return Completed::Yes;
}

}  // namespace hghca::ernic
