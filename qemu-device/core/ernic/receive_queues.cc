// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/receive_queues.h"

#include "byte_order.h"
#include "ernic/adapter.h"
#include "wire/packet.h"

namespace hghca::ernic {

uint32_t ReceiveQueues::slot_bytes(uint32_t qpn) const
{
    return field_get(ERNIC_QPCONF_SLOT, device_.registers.qp(qpn, ERNIC_QPCONF)) * 256;
}

uint64_t ReceiveQueues::slot_address(const QueuePair &pair) const
{
    const uint32_t qpn = number(pair.qp.a.qpn);
    return device_.registers.qp_address(qpn, ERNIC_RQBA, ERNIC_RQBAMSB) + uint64_t(pair.rq.slot) * slot_bytes(qpn);
}

Posted ReceiveQueues::posted(const Qp &qp)
{
    QueuePair &pair = device_.pair(qp);
    if (pair.free_slots())
        return Posted::Yes;
    pair.rq_overflow = true;
    device_.interrupts.raise(ERNIC_INT_RNR_NAK);
    return Posted::No;
}

Counted ReceiveQueues::count(const Qp &qp, uint32_t &out)
{
    out = device_.pair(qp).free_slots();
    return Counted::Yes;
}

WqeFault ReceiveQueues::read(const Qp &qp, RecvWqe &out)
{
    const QueuePair &pair = device_.pair(qp);
    const uint32_t bytes = slot_bytes(number(qp.a.qpn));
    out.pd = qp.a.pd;
    out.list.count = 1;
    out.list.length = bytes;
    out.list.entries[0] = {bytes, {}, slot_address(pair), nullptr};
    return WqeFault::None;
}

template <typename Entry>
void ReceiveQueues::append(const Entry &entry)
{
    const uint32_t entries = device_.registers.global(ERNIC_RECORDSZ);
    if (!entries)
        return;
    uint32_t &pointer = device_.registers.global(ERNIC_RECORDWPTR);
    const uint64_t base = device_.registers.global_address(ERNIC_RECORDBA, ERNIC_RECORDBAMSB);
    device_.stats.dma_errors += !device_.host.write(base + uint64_t(pointer) * sizeof(entry), &entry, sizeof(entry));
    device_.stats.records++;
    pointer = (pointer + 1) % entries;
    phase_ ^= !pointer;
}

void ReceiveQueues::write_record(const QueuePair &pair, const Received &message)
{
    ernic_record record{};
    record.qp = le16(uint16_t(number(pair.qp.a.qpn)));
    record.slot = le16(index_behind(pair.rq.slot));
    record.opcode = message.bth_opcode;
    record.flags = uint8_t(field_put(ERNIC_RECORD_SOLICITED, message.solicited) | field_put(ERNIC_RECORD_PHASE, phase_));
    record.length = le32(message.byte_count);
    record.imm = message.imm;
    append(record);
}

void ReceiveQueues::write_immdt_entry(const QueuePair &pair, const Received &message)
{
    ernic_immdt_entry entry{};
    entry.imm = message.imm;
    entry.type = message.bth_opcode;
    entry.qp = uint8_t(number(pair.qp.a.qpn));
    entry.slot = le16(index_behind(pair.rq.slot));
    append(entry);
}

Completed ReceiveQueues::complete(Qp &qp, const Received &message)
{
    QueuePair &pair = device_.pair(qp);
    if (device_.registers.has(ERNIC_EXT_RECORDS))
        write_record(pair, message);
    else if (device_.registers.is_ernic() && kOpcodes[message.bth_opcode] & (kImmDt | kIeth))
        write_immdt_entry(pair, message);
    complete_next(pair);
    qp.resp.rq_index = pair.rq.index;
    return Completed::Yes;
}

void ReceiveQueues::complete_next(QueuePair &pair)
{
    const uint32_t qpn = number(pair.qp.a.qpn);
    const uint16_t index = index_behind(pair.rq.slot);
    pair.rq.advance();
    device_.registers.qp(qpn, ERNIC_STATRQPIDB) = index;
    device_.ring(qpn, ERNIC_RQWPTRDBADD, ERNIC_RQWPTRDBADDMSB, index);
    if (device_.registers.qp(qpn, ERNIC_QPCONF) & ERNIC_QPCONF_RQ_INTERRUPT)
        device_.interrupts.raise_receive(qpn);
}

}  // namespace hghca::ernic
