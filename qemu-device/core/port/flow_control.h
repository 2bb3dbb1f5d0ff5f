// SPDX-License-Identifier: GPL-2.0-or-later
// Flow control of the link (interface document, 4.27 and 9.2), both ways: pause frames (IEEE 802.3, annex 31B) and
// those of single priorities (PFC: annex 31D, and IEEE 802.1Q, clause 36).
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "hghca_hw.h"
#include "host.h"
#include "port/frame_ring.h"

namespace hghca {

class Link;
struct FrameView;
struct Counters;
struct Port;
class Work;

// What is sent and received is of one of two classes, as seed 004's flow control manager has it.
enum TrafficClass : unsigned { kRoce, kOther };
constexpr unsigned kTrafficClasses = 2;

// The device model's receive buffer of a class: where frames wait that come faster than the device takes them.
struct ReceiveBuffer {
    uint32_t drain_mbps = 0;       // the device takes so many Mbit/s; 0: all, and nothing ever waits
    uint32_t bytes = 512u << 10;   // of waiting frames
};
using ReceiveBuffers = std::array<ReceiveBuffer, kTrafficClasses>;

// What SET_FLOW_CONTROL sets.
struct FlowControlSettings {
    struct Class {
        uint8_t priority;      // of its PFC
        uint32_t xoff, xon;    // bytes
        bool pfc;              // PFC is for it
    };
    bool pause_rx = false, pause_tx = false;   // obeyed; sent
    bool pfc_rx = false, pfc_tx = false;
    uint16_t quanta = 0xffff;                  // of what is sent
    std::array<Class, kTrafficClasses> classes{};

    static FlowControlSettings defaults(const ReceiveBuffers &buffers);
    // False: one of the values makes no sense with such buffers, and nothing has changed.
    bool decode(const hghca_flow_control &in, const ReceiveBuffers &buffers);
    void encode(hghca_flow_control &out, const ReceiveBuffers &buffers) const;
};

class FlowControl {
public:
    // Who sends and receives.
    class Ends {
    public:
        // The peer takes frames of the class again.
        virtual void resume(TrafficClass c) = 0;
        // A frame whose wait is over.
        virtual void receive_late(const FrameView &frame) = 0;
        // False: the link takes nothing now.
        virtual FrameSent send_control(const iovec &frame) = 0;

    protected:
        ~Ends() = default;
    };

    // `now_ns`: the time of the entry under way. Allocates the buffers; throws std::bad_alloc.
    FlowControl(Ends &ends, const Port &port, Link &link, Counters &counters, const Work &work,
                const ReceiveBuffers &buffers, const uint64_t &now_ns);

    void clear();
    // The settings are new, or the link has gone down or up: all that went by the old ones is over.
    void restart();

    // A frame from the link that is not to be received now: one of MAC control, one that waits in its buffer, or one
    // that finds it full. Others are to be received at once.
    bool takes(const FrameView &frame);

    // The peer wants nothing of the class now.
    bool paused(TrafficClass c) const { return classes_[c].paused; }

    // Has it a frame to send? It goes before all others, and is not subject to pauses.
    bool due() const { return due_; }
    // False: the link takes nothing now.
    bool send();

    // Ends what is over by now: pauses by the peer, waits of frames, pauses of the peer that are to be repeated.
    void expire();
    uint64_t next_deadline() const { return deadline_ns_; }

private:
    struct Class {
        // out
        bool paused = false;
        uint64_t paused_until_ns = 0;
        // in
        uint64_t fill = 0;          // bytes that wait
        uint64_t busy_until_ns = 0; // the device is with a frame
        bool stopped = false;       // the peer is to stop
        bool notified = true;       // of the last change of `stopped`
        uint64_t repeat_ns = 0;     // then it is notified again
    };

    bool takes_control(const FrameView &frame);
    void pause(TrafficClass c, uint16_t quanta);
    void resume(TrafficClass c);
    bool buffer(TrafficClass c, const FrameView &frame);
    void drain(TrafficClass c);
    void repeat(Class &c) const;
    void watch(TrafficClass c);
    uint64_t quanta_ns(uint16_t quanta) const;
    void settle();

    Ends &ends_;
    const Port &port_;
    Link &link_;
    Counters &counters_;
    const Work &work_;
    const ReceiveBuffers &buffers_;
    const uint64_t &now_ns_;
    std::array<Class, kTrafficClasses> classes_;
    std::array<FrameRing, kTrafficClasses> waiting_;
    bool due_ = false;
    uint64_t deadline_ns_ = UINT64_MAX;
};

}  // namespace hghca
