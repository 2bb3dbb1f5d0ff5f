// SPDX-License-Identifier: GPL-2.0-or-later
// The HCA: its parts, and the ways in.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "counters.h"
#include "host.h"
#include "jingzhao/error_buffer.h"
#include "jingzhao/memory.h"
#include "port/flow_control.h"
#include "port/impairment.h"
#include "port/port.h"
#include "transport/congestion.h"
#include "transport/function.h"
#include "transport/qp.h"
#include "wire/number.h"
#include "work.h"

namespace hghca {

class Icm;
class EventQueues;
class CompletionQueues;
class SharedReceiveQueues;
class MulticastGroups;
class FlowTable;
class RssTable;
class QpTable;
class CommandInterface;
class Hcr;
class InitSegment;
class PartitionTable;
class RoceV2;
class WqeChain;
class ReceiveQueue;
class RawEthernet;
class Events;
class Transport;

constexpr uint32_t kClockKhz = 1000000;   // of Host::now_ns()
constexpr uint32_t kFirmwareMajor = 1, kFirmwareMinor = 0;   // version of the model

// Which device this is: Base has nothing beyond the JingZhao document, Rsnic is that of the RSNIC document.
enum class Profile : uint8_t { Full, Base, Rsnic };

struct Config {
    Profile profile = Profile::Full;
    std::array<uint8_t, 6> mac;
    uint64_t node_guid = 0;        // 0: EUI-64 from the MAC
    uint32_t cache_entries = 0;    // contexts of each kind kept on chip; 0: no limit
    uint32_t slice_work = 32;      // what one entry does before schedule(), in units of work.h
    // A QP that its rate holds back waits so long at least: packets go in bursts, not each at the price of a timer.
    uint64_t pace_grain_ns = 20'000;
    ReceiveBuffers receive_buffers{};
    uint8_t moderation_scale = 1;  // as QUERY_DEV_LIM says it
    uint64_t init_delay_ns = 0;    // Rsnic: so long after a reset the device is initializing
    DeviceMemory device_memory;    // outlives the Device
};

// Ends the entry in which the device has failed, from wherever it is. Device lets none out.
class DeviceFailed : public std::exception {
public:
    const char *what() const noexcept override { return "the device has failed"; }
};

// Entry points are called by one thread at a time. Each does about one slice of
// work at most, or one of what is due in time and one of the rest. What is left is
// asked for by Host::schedule(), and done by run().
//
// A device that has failed is silent until it is reset: no frame, no DMA, no command. Reads of registers give all ones,
// as those of a PCI device that is gone, and writes but that of the reset register have no effect. The initialization
// segment of RSNIC can be read and says why.
class Device : private Impairment::Ends, private Outlet {
public:
    Device(Host &host, const Config &config);
    ~Device() override;

    // Reset register, function-level reset, power-on.
    void reset();

    // A catastrophic error (interface document, 10): posts LOCAL_CATAS_ERROR, once, and is silent from then on. The
    // event is lost when its EQ cannot take it, or no memory is left: the reads of registers tell then.
    void fail(const char *reason, hghca_health syndrome = HGHCA_HEALTH_HW_FATAL_ERR) noexcept;
    // The same from within an entry, which ends here unless the device had failed before.
    void fail_entry(const char *reason, hghca_health syndrome)
    {
        if (failed_)
            return;
        fail(reason, syndrome);
        throw DeviceFailed();
    }
    bool failed() const { return failed_; }

    // BAR0. `size` in bytes; what the document does not allow has no effect.
    uint64_t hcr_read(uint64_t offset, unsigned size);
    // True: that was a reset. The vectors raised before it are not to be sent any more.
    bool hcr_write(uint64_t offset, uint64_t value, unsigned size);
    // BAR2. The clock alone answers; all other reads give 0.
    uint64_t uar_read(uint64_t offset, unsigned size);
    void uar_write(uint64_t offset, uint64_t value, unsigned size);

    // A frame from the link, without FCS. Never sends: replies go out in run().
    // `parts` are only valid during the call. Icrc::Device: the ICRC is not verified, unless the link is impaired here.
    void receive(std::span<const iovec> parts, Icrc icrc = Icrc::Unknown);
    // One slice of what is due: replies, sends, what an entry before has left. True: there is more.
    bool run();
    bool has_work() const;
    // Are WQEs outstanding on the send queue that the last doorbell rang? No, if that was one of a CQ or EQ.
    bool rung_has_work() const;
    uint64_t work_done() const { return work.done(); }
    void timer();
    void link_ready();
    void set_link(bool up);
    // The mapping of guest memory has changed.
    void dma_changed();

    const Counters &counters() const { return counters_; }

    // A frame for the link, through its impairment; as Host::send_frame().
    FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) override
    {
        return impairment.active() ? impairment.send(parts) : host.send_frame(parts, icrc);
    }

    // Drops all contexts, the table layout and the ICM mapping (CLOSE_HCA).
    void close();

    // For the parts.
    Host &host;
    const Config config;
    Counters counters_;
    CounterSets counter_sets;
    Work work;
    ErrorBuffer errors;         // since reset
    Port port;
    CongestionControl congestion;
    bool initialized = false;   // between INIT_HCA and CLOSE_HCA
    uint32_t caps = 0;          // HGHCA_CAP_* turned on
    Features features;          // those of them that the transport asks for
    std::unique_ptr<Icm> icm;
    std::unique_ptr<MemoryTable> memory;
    std::unique_ptr<EventQueues> eqs;
    std::unique_ptr<CompletionQueues> cqs;
    std::unique_ptr<SharedReceiveQueues> srqs;
    std::unique_ptr<MulticastGroups> groups;
    std::unique_ptr<FlowTable> flows;
    std::unique_ptr<RssTable> rss;
    std::unique_ptr<PartitionTable> partitions;
    std::unique_ptr<QpTable> qps;
    std::unique_ptr<CommandInterface> commands;
    std::unique_ptr<Hcr> hcr;
    std::unique_ptr<InitSegment> segment;   // of Profile::Rsnic; others have none
    // What the transport takes from this function (transport/function.h); besides them `qps`, `memory` and
    // `partitions`.
    std::unique_ptr<RoceV2> link;
    std::unique_ptr<WqeChain> sends;
    std::unique_ptr<ReceiveQueue> receives;
    std::unique_ptr<RawEthernet> raw;
    std::unique_ptr<Events> events;
    std::unique_ptr<Transport> transport;
    Qpn gsi_qpn = kNoQpn;
    Qpn raw_qpn = kNoQpn;
    Impairment impairment{*this, work};   // the user's: its rules outlive resets

private:
    FrameSent to_link(std::span<const iovec> parts) override;
    void to_device(std::span<const iovec> parts) override;
    uint64_t now_ns() override;

    Function function();
    void send();
    void ring(uint32_t page, uint32_t doorbell, uint32_t low, uint32_t high);
    void begin_slice() { work.begin_slice(config.slice_work); }
    void finish_entry();        // trims caches, arms the timer, schedules
    void expire();
    uint64_t next_deadline() const;
    std::vector<uint32_t> uar_low_;  // latched low halves, one a doorbell a page
    bool expiring_ = false;     // a slice has ended before all that was due in time was done
    Qpn rung_ = kNoQpn;         // whose send queue the last write to a UAR page rang
    uint64_t armed_ns_ = UINT64_MAX;  // what Host::set_timer() was told last
    bool failed_ = false;
};

}  // namespace hghca
