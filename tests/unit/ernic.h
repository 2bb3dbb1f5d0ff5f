// SPDX-License-Identifier: GPL-2.0-or-later
// The beginnings of another function of the family over the same transport: the ERNIC, with send queues of 64-byte
// WQEs and a producer index, whole messages that go again after a loss, receive slots, and a table of protection
// domains in place of keys and pages. It moves SEND, WRITE and READ. Registers stand here as members.
//
// Sources: seed 000, tables 2-1 (WQE) and 2-2 (CQE), and its registers SQPI, CQHEAD, RQCI, QDEPTH and INTSTS; seed 004
// for the protection domain table. Indices of registers are 0 after reset, then 1 to the depth, and 1 again.
//
// Where the ERNIC raises an interrupt line, Host::raise_vector() is called with the line's bit in INTSTS.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "fake_host.h"
#include "port/roce_v2.h"
#include "transport/transport.h"

namespace hghca::test {

// Seed 000, table 2-1.
struct ErnicWqe {
    uint16_t wrid;
    uint16_t reserved0;
    uint64_t laddr __attribute__((packed));   // bus address, without a key
    uint32_t length;
    uint8_t opcode;
    uint8_t reserved1[3];
    uint64_t roffset __attribute__((packed));
    uint32_t rtag;
    uint8_t sdata[16];   // of a SEND of 1 to 16 bytes
    uint8_t reserved2[16];
};
static_assert(sizeof(ErnicWqe) == 64);
static_assert(offsetof(ErnicWqe, laddr) == 4 && offsetof(ErnicWqe, length) == 12 && offsetof(ErnicWqe, opcode) == 16);
static_assert(offsetof(ErnicWqe, roffset) == 20 && offsetof(ErnicWqe, rtag) == 28 && offsetof(ErnicWqe, sdata) == 32);

class Ernic final : private QpStore,
                    private SendSource,
                    private RecvSource,
                    private KeySpace,
                    private Partitions,
                    private EventSink,
                    private RawFrames,
                    private Outlet,
                    private MulticastStore {
public:
    static constexpr uint32_t kQps = 256;
    static constexpr uint8_t kWrite = 0x00, kSend = 0x02, kRead = 0x04;
    static constexpr uint32_t kFatalCqe = 1u << 24;
    // Bits of INTSTS.
    static constexpr unsigned kCompletionLine = 4, kReceiveLine = 6, kFatalLine = 7;

    // The registers of a queue pair.
    struct Registers {
        uint64_t sqba, cqba, rqba;
        uint16_t sq_depth, rq_depth;   // QDEPTH
        uint32_t rq_slot_bytes;        // QPCONF
        uint16_t sqpi, cqhead, rqci, rq_written;
        bool fatal;                    // STATQP
        Status fatal_status;           // why; the hardware has a code for it
    };
    // An entry of the protection domain table: one contiguous range.
    struct PdEntry {
        uint32_t pd;
        uint64_t va, bytes, base;
        uint8_t key;
        uint8_t access;   // 0 read, 1 write, 2 both
        bool valid;
    };

    Ernic(FakeHost &host, const std::array<uint8_t, 6> &mac, uint64_t slice_work = 128)
        : host(host), slice_work_(slice_work)
    {
        port_.mac = port_.permanent_mac = mac;
        transport_ = std::make_unique<Transport>(Function{.host = host,
                                                          .work = work_,
                                                          .counters = counters,
                                                          .counter_sets = sets_,
                                                          .port = port_,
                                                          .features = features_,
                                                          .control = congestion_,
                                                          .receive_buffers = buffers_,
                                                          .link = link_,
                                                          .outlet = *this,
                                                          .qps = *this,
                                                          .sends = *this,
                                                          .receives = *this,
                                                          .keys = *this,
                                                          .partitions = *this,
                                                          .events = *this,
                                                          .raw_frames = *this,
                                                          .qp_count = kQps,
                                                          .pace_grain_ns = 20'000,
                                                          .rewind = Rewind::Message});
    }

    // ---- what software does

    // A reliable connection in RTS.
    Registers &connect(uint32_t qpn, const QpAttributes &attributes, uint32_t sq_psn, uint32_t rq_psn)
    {
        Place &place = places_[qpn];
        place.qp = {};
        Qp &qp = place.qp;
        qp.a = attributes;
        qp.a.qpn = Qpn(qpn);
        qp.a.service = Service::Rc;
        RequesterState &r = qp.req;
        r.next_psn = r.next_wqe_psn = r.unacked_psn = r.highest_psn = r.oldest_psn = psn_of(sq_psn);
        qp.resp.expected_psn = psn_of(rq_psn);
        QpState from = QpState::Reset;
        for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) {
            qp.state = to;
            transport_->state_changed(qp, from);
            from = to;
        }
        return place.r;
    }
    // QPCONF, not enabled any more: what is posted does not complete.
    void disable(uint32_t qpn)
    {
        Qp &qp = places_.at(qpn).qp;
        const QpState from = qp.state;
        begin_slice();
        qp.state = QpState::Error;
        transport_->state_changed(qp, from);
        finish_entry();
    }
    // The register SQPI: 1 to the depth. One that the queue cannot have is ignored.
    void write_sqpi(uint32_t qpn, uint16_t value)
    {
        Place &place = places_.at(qpn);
        uint16_t more;
        if (!advance(place.r.sqpi, value, place.r.sq_depth, more) || in_sq(place) + more >= place.r.sq_depth)
            return;
        place.r.sqpi = value;
        place.sq_end = uint16_t(place.sq_end + more);
        begin_slice();
        transport_->posted(place.qp);
        transport_->run();
        finish_entry();
    }
    // The register RQCI: so far software has emptied the slots.
    void write_rqci(uint32_t qpn, uint16_t value)
    {
        Place &place = places_.at(qpn);
        uint16_t more;
        if (!advance(place.r.rqci, value, place.r.rq_depth, more) || more > uint16_t(place.qp.resp.rq_index - place.rq_read))
            return;
        place.r.rqci = value;
        place.rq_read = uint16_t(place.rq_read + more);
    }
    void write_pd(uint8_t entry, const PdEntry &value) { pds_[entry] = value; }
    static uint32_t rkey_of(uint8_t entry, uint8_t key) { return uint32_t(entry) << 8 | key; }

    QpState state(uint32_t qpn) { return places_.at(qpn).qp.state; }

    // ---- the link and time

    void receive(std::span<const iovec> parts)
    {
        begin_slice();
        transport_->receive(parts);
        finish_entry();
    }
    void run()
    {
        begin_slice();
        transport_->flush();
        transport_->run();
        finish_entry();
    }
    bool has_work() const { return transport_->has_work(); }
    void expire()
    {
        begin_slice();
        transport_->expire(host.now_ns());
        finish_entry();
    }

    FakeHost &host;
    Counters counters;
    std::vector<Event> events;
    std::vector<Drop> drops;
    bool skips_an_index = false;   // the function breaks a promise
    // For tests of checkers: another way than its own.
    void set_rewind(Rewind rewind) { transport_->rewind = rewind; }

private:
    void begin_slice() { work_.begin_slice(slice_work_); }
    void finish_entry()
    {
        host.set_timer(transport_->next_deadline());
        if (has_work())
            host.schedule();
    }

    struct Place {
        Qp qp;
        Registers r{};
        uint16_t sq_end = 0;    // free-running, as all indices of the transport: the WQE behind the last one
        uint16_t rq_read = 0;   // slots that software has emptied
    };

    // From register value `from` to `to`: so many more. False: `to` is no index.
    static bool advance(uint16_t from, uint16_t to, uint16_t depth, uint16_t &more)
    {
        if (!to || to > depth)
            return false;
        const uint16_t last = from ? from : depth;
        more = uint16_t(to > last ? to - last : to + depth - last) % depth;
        return true;
    }
    // From a free-running index to the value of a register.
    static uint16_t register_of(uint16_t index, uint16_t depth) { return uint16_t((index - 1) % depth + 1); }
    static uint16_t in_sq(const Place &place) { return uint16_t(place.sq_end - place.qp.req.oldest.index); }
    Place &place_of(const Qp &qp) { return places_.at(number(qp.a.qpn)); }

    // ---- QpStore

    Qp *find(Qpn qpn) override
    {
        const auto at = places_.find(number(qpn));
        return at == places_.end() ? nullptr : &at->second.qp;
    }
    Qpn gsi_qpn() const override { return kNoQpn; }

    // ---- SendSource

    Following at(const Place &place, uint16_t index, WqeRef &out)
    {
        out = {};
        out.index = uint16_t(index + skips_an_index);
        out.valid = index_before(index, place.sq_end);
        return out.valid ? Following::Posted : Following::None;
    }
    Following peek(Qp &qp, uint16_t index, WqeRef &out) override
    {
        WqeRef wqe;
        const Following what = at(place_of(qp), index, wqe);
        if (what == Following::Posted)
            out = wqe;
        return what;
    }
    Following follow(const Qp &qp, uint16_t index, WqeRef &out) override
    {
        return at(place_of(qp), uint16_t(index + 1), out);
    }
    Following follow(const Qp &qp, uint16_t index, const SendWqe &, WqeRef &out) override
    {
        return follow(qp, index, out);
    }
    WqeFault load(const Qp &qp, SendWqe &out) override { return read_wqe(qp, qp.req.next.index, out); }
    WqeFault reload(const Qp &qp, SendWqe &out) override { return read_wqe(qp, qp.req.oldest.index, out); }
    WqeFault read_wqe(const Qp &qp, uint16_t index, SendWqe &out)
    {
        const Registers &r = place_of(qp).r;
        ErnicWqe wqe;
        if (!host.read(r.sqba + uint64_t(index % r.sq_depth) * sizeof(wqe), out.bytes.data(), sizeof(wqe)))
            return WqeFault::Unreadable;
        std::memcpy(&wqe, out.bytes.data(), sizeof(wqe));
        switch (wqe.opcode) {
        case kWrite:
            out.operation = Operation::Write;
            break;
        case kSend:
            out.operation = Operation::Send;
            break;
        case kRead:
            out.operation = Operation::Read;
            break;
        default:
            return WqeFault::Operation;
        }
        if (wqe.length > kMaxMessage)
            return WqeFault::Length;
        // An empty SEND is not supported (seed 000, 191).
        if (wqe.opcode == kSend && !wqe.length)
            return WqeFault::Operation;
        out.solicited = false;
        out.completes = true;
        out.imm = 0;
        out.srqn = kNoSrqn;
        out.raddr = wqe.roffset;
        out.rkey = Key(wqe.rtag);
        out.list.count = wqe.length ? 1 : 0;
        out.list.length = wqe.length;
        const bool is_inline = wqe.opcode == kSend && wqe.length <= sizeof(wqe.sdata);
        out.list.entries[0] = {wqe.length, {}, wqe.laddr,
                               is_inline ? out.bytes.data() + offsetof(ErnicWqe, sdata) : nullptr};
        return WqeFault::None;
    }
    Allowed change_keys(const Qp &, const SendWqe &) override { return Allowed::No; }
    Completed complete(const Qp &qp, uint16_t index, const SendWqe &wqe, uint32_t) override
    {
        return write_cqe(place_of(qp), index, wqe.bytes.data(), 0);
    }
    Completed fail(const Qp &qp, uint16_t index, Status status) override
    {
        Place &place = place_of(qp);
        if (status == Status::Flushed)
            return Completed::Yes;   // the WQEs behind the one that failed do not complete
        place.r.fatal = true;
        place.r.fatal_status = status;
        host.raise_vector(kFatalLine);
        std::array<uint8_t, sizeof(ErnicWqe)> wqe;
        if (!host.read(place.r.sqba + uint64_t(index % place.r.sq_depth) * wqe.size(), wqe.data(), wqe.size()))
            return Completed::CqFailed;
        return write_cqe(place, index, wqe.data(), kFatalCqe);
    }
    // Seed 000, table 2-2. `bytes` is a copy of the WQE.
    Completed write_cqe(Place &place, uint16_t index, const uint8_t *bytes, uint32_t flags)
    {
        ErnicWqe wqe;
        std::memcpy(&wqe, bytes, sizeof(wqe));
        const uint32_t cqe = wqe.wrid | uint32_t(wqe.opcode) << 16 | flags;
        const uint64_t dma = place.r.cqba + uint64_t(index % place.r.sq_depth) * sizeof(cqe);
        const bool written = host.write(dma, &cqe, sizeof(cqe));
        place.r.cqhead = register_of(uint16_t(index + 1), place.r.sq_depth);
        host.raise_vector(kCompletionLine);
        return written ? Completed::Yes : Completed::CqFailed;
    }

    // ---- RecvSource

    uint16_t free_slots(const Place &place)
    {
        return uint16_t(place.r.rq_depth - 1 - uint16_t(place.qp.resp.rq_index - place.rq_read));
    }
    Posted posted(const Qp &qp) override { return free_slots(place_of(qp)) ? Posted::Yes : Posted::No; }
    Counted count(const Qp &qp, uint32_t &out) override
    {
        out = free_slots(place_of(qp));
        return Counted::Yes;
    }
    WqeFault read(const Qp &qp, RecvWqe &out) override
    {
        const Registers &r = place_of(qp).r;
        out.pd = qp.a.pd;
        out.list.count = 1;
        out.list.length = r.rq_slot_bytes;
        out.list.entries[0] = {r.rq_slot_bytes, {}, r.rqba + uint64_t(qp.resp.rq_index % r.rq_depth) * r.rq_slot_bytes,
                               nullptr};
        return WqeFault::None;
    }
    void hold(Qp &) override {}
    Completed complete(Qp &qp, const Received &) override
    {
        Place &place = place_of(qp);
        place.r.rq_written = register_of(++qp.resp.rq_index, place.r.rq_depth);
        host.raise_vector(kReceiveLine);
        return Completed::Yes;
    }
    Completed fail(Qp &, Status) override { return Completed::Yes; }
    Flushed flush(Qp &) override { return Flushed::All; }
    XrcTarget xrc_target(Srqn, uint32_t, uint32_t &) override { return XrcTarget::None; }

    // ---- KeySpace: what is local has no key, what a peer names is an entry of the protection domain table

    const PdEntry &entry_of(Key key) const { return pds_[number(key) >> 8 & 0xff]; }
    Allowed check(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) override
    {
        return usable(key, user, va, length, access) ? Allowed::Yes : Allowed::No;
    }
    bool usable(Key key, KeyUser user, uint64_t va, uint64_t length, Access access) const
    {
        if (access == Access::LocalRead || access == Access::LocalWrite)
            return true;
        const PdEntry &e = entry_of(key);
        return e.valid && !(number(key) >> 16) && e.key == (number(key) & 0xff) && e.pd == user.pd && va >= e.va &&
               length <= e.bytes && va - e.va <= e.bytes - length &&
               (e.access == 2 || e.access == (access == Access::RemoteWrite));
    }
    Found locate(Key key, KeyUser user, uint64_t va, uint64_t length, Access access, PacketSegments &out,
                 AbsentPage &) override
    {
        if (!usable(key, user, va, length, access))
            return Found::No;
        const bool local = access == Access::LocalRead || access == Access::LocalWrite;
        const PdEntry &e = entry_of(key);
        const uint64_t dma = local ? va : e.base + (va - e.va);
        uint8_t *pointer = host.map(dma, length, access == Access::LocalWrite || access == Access::RemoteWrite);
        return out.push({pointer, dma, uint32_t(length)}) ? Found::Yes : Found::No;
    }
    bool on_demand(Key) override { return false; }
    Allowed invalidate_remotely(KeyUser, Key) override { return Allowed::No; }
    // It has no partitions.
    Appended append(Key, KeyUser, uint32_t, std::span<const uint8_t>) override { return Appended::Access; }

    // ---- EventSink and the rest

    void post(Event event, const Qp &) override { events.push_back(event); }
    void dropped(const Packet &, Drop why, uint64_t) override { drops.push_back(why); }
    bool brings_pages() const override { return false; }
    PageAsked ask_for_page(const Qp &, Side, uint16_t, const AbsentPage &) override { return PageAsked::NoRoom; }
    [[noreturn]] void broken(const char *invariant) override { throw std::logic_error(invariant); }
    void receive(const FrameView &, std::span<const uint8_t>) override {}
    void receive_own(const FrameView &, std::span<const uint8_t>, Qpn) override {}
    FrameSent send_frame(std::span<const iovec> parts) override { return host.send_frame(parts); }
    const GroupMembers *find(const std::array<uint8_t, 16> &) override { return nullptr; }

    const uint64_t slice_work_;
    Work work_;
    CounterSets sets_;
    Port port_{};
    Features features_{};
    CongestionControl congestion_{};
    ReceiveBuffers buffers_{};
    RoceV2 link_{port_, *this};
    std::map<uint32_t, Place> places_;
    std::array<PdEntry, 256> pds_{};
    std::unique_ptr<Transport> transport_;
};

}  // namespace hghca::test
