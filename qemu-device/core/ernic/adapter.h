// SPDX-License-Identifier: GPL-2.0-or-later
// ERNIC and ETRNIC (docs/reference/ernic.rst): one model, two personalities.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "counters.h"
#include "ernic/acknowledgements.h"
#include "ernic/errors.h"
#include "ernic/header_buffers.h"
#include "ernic/interrupts.h"
#include "ernic/mads.h"
#include "ernic/packet_counts.h"
#include "ernic/protection.h"
#include "ernic/queue_pair.h"
#include "ernic/receive_queues.h"
#include "ernic/register_file.h"
#include "ernic/send_queues.h"
#include "ernic/stats.h"
#include "ernic/validation.h"
#include "host.h"
#include "port/flow_control.h"
#include "port/port.h"
#include "port/roce_v2.h"
#include "transport/congestion.h"
#include "transport/function.h"
#include "transport/transport.h"
#include "work.h"

namespace hghca::ernic {

struct Config {
    Personality personality = Personality::Ernic;
    uint32_t qps = ERNIC_QPS_ERNIC;   // C_NUM_QP, with QP 1
    uint32_t extensions = 0;          // ERNIC_EXT_* that the device has
    std::array<uint32_t, kTrafficClasses> drain_mbps{};   // as ReceiveBuffer has it
    uint32_t clock_mhz = 200;         // of what the base count counts
    bool strict = false;              // the public limits of the real core
    bool ethernet = false;            // an Ethernet adapter is behind the device (port/steering.h)
    uint64_t slice_work = 32;         // what one entry does before Host::schedule(), in units of work.h
};

// Entry points are called by one thread at a time. The device allocates nothing after its construction, but for the
// places of data buffers when it is enabled.
class Adapter final : private QpStore,
                     private QpView,
                     private EventSink,
                     private RawFrames,
                     private Outlet,
                     private Partitions,
                     private PacketObserver,
                     private FrameReceiver,
                     private MulticastStore {
public:
    Adapter(Host &host, const Config &config);

    void reset();
    // Only four aligned bytes are a register; any other access reads 0 or has no effect, and is counted.
    uint32_t read(uint64_t offset, unsigned size);
    void write(uint64_t offset, uint32_t value, unsigned size);

    // A frame from the link, without FCS. Never sends.
    void receive(std::span<const iovec> parts);
    // A frame from the Ethernet adapter behind the device. LinkFull: it is to be offered again when the link takes frames.
    FrameSent forward(std::span<const iovec> parts);
    // One slice of what is due. True: there is more.
    bool run();
    bool has_work() const { return !failed_ && (transport->has_work() || mads.has_work()); }
    void timer();
    void link_ready();
    void set_link(bool up);

    // For the parts.
    QueuePair &pair(uint32_t qpn) { return pairs_[qpn]; }
    QueuePair &pair(const Qp &qp) { return pairs_[number(qp.a.qpn)]; }
    bool is_recovering(const QueuePair &pair) const
    {
        return registers.qp(number(pair.qp.a.qpn), ERNIC_QPCONF) & ERNIC_QPCONF_RECOVERY;
    }
    // A doorbell in memory, unless it goes by pins.
    void ring(uint32_t qpn, uint32_t low, uint32_t high, uint32_t value);
    // A WQE that is illegal: it is not sent.
    void discard_wqe(const QueuePair &pair, uint8_t opcode);
    void become_fatal(QueuePair &pair, ernic_fatal code);
    // Why a QP is fatal whose send WQE of this opcode fails so.
    ernic_fatal fatal_of(const QueuePair &pair, Status status, const ernic_wqe &wqe) const;
    ernic_fatal fatal_of_response(const QueuePair &pair, uint64_t read_bytes) const;
    // The headers go through the memory of the guest, which may change them: the receiver verifies the ICRC.
    FrameSent send_frame(std::span<const iovec> parts, Icrc) override { return headers.send(parts); }
    // A frame of QP 1. One to the device's own MAC address does not get to the link, as no other packet does that a QP sends
    // to a QP of its device.
    FrameSent send_mad(std::span<const iovec> parts);

    Host &host;
    const Config config;
    RegisterFile registers;
    Stats stats;
    Counters counters;
    Work work;
    Interrupts interrupts{registers, host};
    Errors errors{registers, stats, host};
    PacketCounts counts{registers};
    RoceV2 link;
    SendQueues sends{*this};
    ReceiveQueues receives{*this};
    Protection protection{registers, host, config.strict};
    Mads mads{*this};
    HeaderBuffers headers{registers, stats, host};
    Acknowledgements acks{*this};
    std::unique_ptr<Transport> transport;

private:
    Function function();
    template <class Entry>
    void enter(Entry &&entry);
    void fail();
    void begin_slice() { work.begin_slice(config.slice_work); }
    void finish_entry();

    // ---- registers
    uint32_t read_global(uint32_t offset) const;
    uint32_t read_qp(uint32_t qpn, uint32_t offset) const;
    uint32_t status_of(const QueuePair &pair, uint32_t qpn) const;
    void write_global(const RegisterPlace &place, uint32_t value);
    void write_qp(const RegisterPlace &place, uint32_t value);
    bool may_write(const RegisterPlace &place) const;
    void configure_port();
    void configure_timeouts();
    void configure_flow_control();
    void configure_buffers();
    void configure_records();

    // ---- queue pairs
    bool is_enabled(uint32_t qpn) const override { return is_on() && qpn < pairs_.size() && receives_now(pairs_[qpn]); }
    uint32_t expected_psn(uint32_t qpn) const override;
    bool is_on() const { return registers.global(ERNIC_XRNICCONF) & ERNIC_CONF_ENABLE; }
    bool receives_now(const QueuePair &pair) const { return pair.enabled && !is_recovering(pair); }
    void update_enabled();
    void enable(uint32_t qpn);
    void disable(uint32_t qpn);
    void open_rings(QueuePair &pair, uint32_t qpn);
    QpAttributes attributes(uint32_t qpn) const;
    static void write_sqpsn(QueuePair &pair, Psn psn);
    void write_sqpi(uint32_t qpn, uint16_t value);
    void write_rqci(uint32_t qpn, uint16_t value);

    // ---- what is received
    bool is_for_ethernet(const FrameView &frame) const;
    void pass(const FrameView &frame);
    // A frame that is not of MAC control, and does not wait any more.
    void accept(const FrameView &frame);
    void receive_packet(const FrameView &frame);
    void receive_late(const FrameView &frame) override { accept(frame); }
    void drop(uint32_t syndrome);
    static ernic_fatal fatal_of_request(const QueuePair &pair, bool length_fits);

    // ---- what the transport asks for
    Qp *find(Qpn qpn) override;
    Qpn gsi_qpn() const override { return kNoQpn; }
    void post(Event event, const Qp &qp) override;
    void dropped(const Packet &packet, Drop why, uint64_t now_ns) override;
    bool brings_pages() const override { return false; }
    PageAsked ask_for_page(const Qp &, Side, uint16_t, const AbsentPage &) override { return PageAsked::NoRoom; }
    [[noreturn]] void broken(const char *invariant) override;
    void receive(const FrameView &, std::span<const uint8_t>) override {}
    void receive_own(const FrameView &, std::span<const uint8_t>, Qpn) override {}
    Appended append(Key, KeyUser, uint32_t, std::span<const uint8_t>) override { return Appended::Access; }
    void sent(const Qp &qp, const TransportHeader &h) override;
    void went_back(const Qp &qp) override;
    void begun(const Qp &qp) override;
    const GroupMembers *find(const std::array<uint8_t, 16> &) override { return nullptr; }

    CounterSets sets_;
    Port port_{};
    Features features_{};
    CongestionControl congestion_{};
    ReceiveBuffers buffers_{};
    std::vector<QueuePair> pairs_;         // by QPN; there is no QP 0
    const Incoming *incoming_ = nullptr;   // the packet that is being received
    bool failed_ = false;                  // an invariant does not hold: silent until the next reset
};

}  // namespace hghca::ernic
