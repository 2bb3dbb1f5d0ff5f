// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/packet_counts.h"

#include "byte_order.h"

namespace hghca::ernic {

namespace {

constexpr bool is_nak(uint8_t syndrome) { return (syndrome & HGHCA_AETH_TYPE_MASK) != HGHCA_AETH_ACK; }
constexpr bool is_rnr(uint8_t syndrome) { return (syndrome & HGHCA_AETH_TYPE_MASK) == HGHCA_AETH_RNR_NAK; }
constexpr bool is_ack_opcode(uint8_t opcode) { return opcode == (HGHCA_BTH_RC | HGHCA_BTH_OP_ACK); }

}  // namespace

void PacketCounts::add_low(uint32_t offset)
{
    uint32_t &word = registers_.global(offset);
    word = (word & ERNIC_COUNT_HIGH) | ((word + 1) & ERNIC_COUNT_LOW);
}

void PacketCounts::last(uint32_t offset, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
    registers_.global(offset) =
        field_put(ERNIC_LAST_OPCODE, opcode) | field_put(ERNIC_LAST_QP, qpn) | field_put(ERNIC_LAST_PSN, psn);
}

void PacketCounts::received(const Incoming &packet)
{
    add_low(ERNIC_INALLDRPPKTCNT);
    last(ERNIC_LSTINPKT, packet.opcode, packet.qpn, packet.psn);
}

void PacketCounts::accepted(const Incoming &packet)
{
    const uint32_t flags = packet.flags();
    if (packet.qpn == ERNIC_QP1) {
        add_high(ERNIC_INAMPKTCNT);
    } else if (is_ack_opcode(packet.opcode)) {
        add_low(ERNIC_INAMPKTCNT);
        if (is_nak(packet.syndrome)) {
            add_low(ERNIC_INNAKPKTCNT);
            uint32_t &status = registers_.global(ERNIC_INNCKPKTSTS);
            status = ((status & ERNIC_NAK_COUNT) + (1u << 16)) | field_put(ERNIC_NAK_QP, packet.qpn);
        }
    } else if (flags & kResponse) {
        add_high(ERNIC_INSRRPKTCNT);
    } else if (flags & kSend) {
        add_low(ERNIC_INSRRPKTCNT);
    }
}

void PacketCounts::dropped(bool invalid)
{
    add_high(ERNIC_INALLDRPPKTCNT);
    if (invalid)
        add_low(ERNIC_ININVDUPCNT);
}

void PacketCounts::sent(uint32_t qpn, const TransportHeader &h)
{
    const uint32_t flags = kOpcodes[h.opcode];
    last(ERNIC_LSTOUTPKT, h.opcode, qpn, number(h.psn));
    if (is_ack_opcode(h.opcode)) {
        add_low(ERNIC_OUTAMPKTCNT);
        if (is_rnr(h.syndrome)) {
            uint32_t &status = registers_.global(ERNIC_OUTRNRPKTSTS);
            status = ((status & ERNIC_NAK_COUNT) + (1u << 16)) | field_put(ERNIC_NAK_QP, qpn);
        } else if (is_nak(h.syndrome)) {
            add_low(ERNIC_OUTNAKPKTCNT);
        }
    } else if (flags & kResponse) {
        if (registers_.is_ernic())
            registers_.global(ERNIC_OUTRDRSPPKTCNT)++;
    } else if (flags & kSend) {
        add_low(ERNIC_OUTIOPKTCNT);
    } else {
        add_high(ERNIC_OUTIOPKTCNT);
    }
}

void PacketCounts::sent_mad(uint32_t qpn)
{
    last(ERNIC_LSTOUTPKT, HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY, qpn, 0);
    add_high(ERNIC_OUTAMPKTCNT);
}

void PacketCounts::wqe_begun() { registers_.global(ERNIC_QPMSTS) += 1u << 16; }

void PacketCounts::illegal_opcode(uint8_t opcode)
{
    uint32_t &status = registers_.global(ERNIC_WQEPROCSTS);
    status = (status & ~ERNIC_WQEPROCSTS_OPCODE) | field_put(ERNIC_WQEPROCSTS_OPCODE, opcode);
}

}  // namespace hghca::ernic
