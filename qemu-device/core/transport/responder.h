// SPDX-License-Identifier: GPL-2.0-or-later
// The receiving side of a reliable connection (IBA vol 1, 9.7.4, 9.7.5.1).
#pragma once

#include <array>

#include "transport/wqe.h"
#include "transport/qp.h"
#include "wire/packet.h"

namespace hghca {

class Transport;

class Responder {
public:
    explicit Responder(Transport &transport) : transport_(transport) {}

    // A request packet.
    void receive(Qp &qp, const Packet &packet);
    // Sends replies until `credit` bytes are used up or none is due.
    Turn run(Qp &qp, int32_t &credit);
    // Sends the ACK that is due, if it is due next; the QP sends nothing after that.
    void acknowledge_last(Qp &qp);
    static bool due(const Qp &qp) { return qp.resp.reply_count || qp.resp.ack_due; }
    // The same, and the QP's rate does not hold it back.
    static bool may_reply(const Qp &qp);
    // Is the next reply one that takes steps before it is sent?
    static bool searches(const Qp &qp);

private:
    // How a message fails: the NAK code, the event, and what its receive WQE gets.
    struct Refusal;
    static const Refusal kInvalidRequest, kAccess, kInvalidate, kMemory, kTooLong, kBadWqe, kOperation;

    void receive_send(Qp &qp, const Packet &packet);
    void receive_write(Qp &qp, const Packet &packet);
    void receive_part(Qp &qp, const Packet &packet);
    void receive_read(Qp &qp, const Packet &packet);
    void receive_search(Qp &qp, const Packet &packet);
    void receive_atomic(Qp &qp, const Packet &packet);
    void receive_atomic_write(Qp &qp, const Packet &packet);
    void receive_flush(Qp &qp, const Packet &packet);
    void duplicate(Qp &qp, const Packet &packet);
    void duplicate_read(Qp &qp, const Packet &packet);
    void duplicate_search(Qp &qp, const Packet &packet);
    void answer_again(Qp &qp, const Reply &again);
    void duplicate_atomic(Qp &qp, const Packet &packet);

    // Finds out whose keys the request may use. False: it is for an XRC SRQ that is not the QP's to use.
    bool admit(const Qp &qp, const TransportHeader &h);
    // Is the request itself an invalid one?
    Drop validate(const Qp &qp, const Packet &packet) const;
    bool in_sequence(const Qp &qp, const Packet &packet) const;
    bool function_allowed(const Qp &qp, uint32_t flags) const;
    bool good_length(const Qp &qp, const Packet &packet) const;
    bool room_for_read(const Qp &qp) const;
    // Of a READ_POINTER or READ_CONSISTENT: what the request alone tells.
    static bool good_search(const Qp &qp, const Packet &packet);
    // Is there a receive WQE? Otherwise has answered with an RNR NAK or failed.
    bool has_receive_wqe(Qp &qp, const Packet &packet);
    // A page for the request is absent. True: it is to come again, an RNR NAK says so.
    bool later(Qp &qp, const AbsentPage &absent);
    void push_rnr_nak(Qp &qp);
    // The packet is executed: PSN, message and acknowledgement go on.
    void accept(Qp &qp, const Packet &packet, uint32_t psns);
    void complete(Qp &qp, const Packet &packet, uint64_t byte_count);
    template <class F>
    bool update(const Segment &at, F &change);
    bool execute_atomic(const Packet &packet, const Segment &at, uint64_t &original);
    bool store_atomically(const Packet &packet, const Segment &at);
    // A READ response of no bytes is due for the packet.
    void answer_empty(Qp &qp, const Packet &packet);

    void refuse(Qp &qp, const Packet &packet, const Refusal &refusal);
    // For a reason that is not the refusal's own.
    void refuse(Qp &qp, const Packet &packet, const Refusal &refusal, Drop why);
    void push(Qp &qp, const Reply &reply);
    // Forgets those from place `from` on.
    void drop_replies(Qp &qp, uint8_t from);
    void withdraw_nak(Qp &qp);
    void push_nak(Qp &qp, ReplyKind kind, uint8_t syndrome);
    Turn send_reply(Qp &qp, int32_t &credit);
    Turn send_ack(Qp &qp, int32_t &credit);
    Turn send_read(Qp &qp, int32_t &credit);
    // A step of the reply that is next, a READ_POINTER's or READ_CONSISTENT's.
    Turn search(Qp &qp, int32_t &credit);
    Turn read_consistent(Qp &qp, int32_t &credit);
    static Turn take_step(Reply &reply, int32_t &credit);
    // Copies `bytes` bytes at `va` that the reply may read to copy_. False: a key, a bound, a right or DMA is wrong.
    bool read(const Qp &qp, const Reply &reply, uint64_t va, uint32_t bytes);
    // Ends the reply that is next by its only packet.
    Turn send_only(Qp &qp, const PacketSegments &payload, uint32_t bytes, int32_t &credit);
    // Ends the reply that is next by a NAK in its place, or by nothing if a duplicate asked for it.
    Turn refuse_reply(Qp &qp, const Refusal &refusal);
    void nak_in_place(Qp &qp, Psn psn, Msn msn, const Refusal &refusal);
    void pop(Qp &qp);
    void count_nak(const Qp &qp, uint8_t nak);
    uint8_t credits(const Qp &qp) const;
    TransportHeader reply_header(const Qp &qp, uint8_t opcode, Psn psn) const;

    Transport &transport_;
    RecvWqe wqe_{};
    KeyUser peer_{0};   // of the packet at hand
    // Bytes that are looked at before they are used, out of the reach of others: the records of a packet that has
    // arrived, or an element or object that is to be sent.
    std::array<uint8_t, 4096> copy_{};
};

}  // namespace hghca
