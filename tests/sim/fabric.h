// SPDX-License-Identifier: GPL-2.0-or-later
// Switches and the links between them and the hosts: queues, ECN marks, and faults.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "events.h"
#include "frame.h"
#include "random.h"

namespace hghca::sim {

// What happens to frames on their way, each in so many of a million cases.
struct Faults {
    uint32_t drop = 0, duplicate = 0, reorder = 0, delay = 0, corrupt = 0, truncate = 0;
    uint32_t mark = 0;                // congestion experienced, where the sender takes part
    uint64_t reorder_ns = 10'000;     // behind those of as long
    uint64_t delay_ns = 1'000'000;    // at most
    bool any() const { return drop || duplicate || reorder || delay || corrupt || truncate; }
};

struct LinkSpeed {
    uint64_t ps_per_byte = 80;        // 100 Gb/s
    uint64_t propagation_ns = 500;
    uint64_t time_ns(uint32_t bytes) const { return (ps_per_byte * (bytes + kOverheadBytes) + 999) / 1000; }
    static constexpr uint32_t kOverheadBytes = 24;   // preamble, FCS, gap
};

// RED's profile: from `low` on some frames are marked, from `high` on all.
struct EcnMarking {
    bool on = true;
    uint64_t low_bytes = 40'000, high_bytes = 160'000;
    uint32_t high_ppm = 200'000;
};

// A queue before a link. Frames leave in turn, so when one will leave is known as it comes.
struct Port {
    uint32_t to = 0;                  // node at the other end
    LinkSpeed speed;
    uint64_t room_bytes = 1 << 20;
    bool up = true;
    uint64_t free_ns = 0;             // when the last frame of the queue has left

    uint64_t queued_bytes(uint64_t now_ns) const
    {
        return free_ns > now_ns ? (free_ns - now_ns) * 1000 / speed.ps_per_byte : 0;
    }
    // Statistics.
    uint64_t frames = 0, bytes = 0, overflows = 0, marks = 0, depth_max = 0, depth_sum = 0;
};

// Nodes are hosts, 0 .. hosts - 1, and behind them switches: one, or leaves and spines.
class Fabric {
public:
    struct Shape {
        uint32_t hosts = 2;
        uint32_t per_leaf = 64;
        uint32_t spines = 4;
        LinkSpeed speed;
        uint64_t room_bytes = 1 << 20;
        EcnMarking ecn;
    };
    Fabric(EventQueue &events, FramePool &pool, const Shape &shape, Random random);

    // From a host to the switch; the frame is the fabric's from here on.
    void send(uint32_t host, Frame *frame, uint64_t now_ns);
    uint64_t queued_bytes(uint32_t host, uint64_t now_ns) const { return out_of_host_[host].queued_bytes(now_ns); }
    // At a switch. Ends with the frame on its way to the next node, or lost.
    void arrive(uint32_t node, Frame *frame, uint64_t now_ns);
    bool is_host(uint32_t node) const { return node < shape_.hosts; }
    void set_link(uint32_t host, bool up);
    bool link_up(uint32_t host) const { return out_of_host_[host].up; }
    Port &into_host(uint32_t host) { return switches_[leaf_of(host)].ports[host % shape_.per_leaf]; }
    uint32_t switches() const { return uint32_t(switches_.size()); }

    Faults faults;
    // For tests of the checkers: what a broken switch does to a frame. False: it is lost.
    std::function<bool(Frame &)> broken;

    uint64_t dropped = 0, duplicated = 0, reordered = 0, delayed = 0, corrupted = 0, truncated = 0;
    uint64_t overflows = 0, unroutable = 0, marks = 0, link_down = 0;

private:
    struct Switch {
        std::vector<Port> ports;   // of a leaf: its hosts, then the spines; of a spine: the leaves
    };
    uint32_t leaf_of(uint32_t host) const { return host / shape_.per_leaf; }
    Port *way_out(uint32_t number, const Frame &frame);
    void forward(Port &port, Frame *frame, uint64_t now_ns, uint64_t late_ns);
    // Is the frame still there? `late_ns`: how much later it comes.
    bool suffer(Frame &frame, uint64_t &late_ns);
    void mark(Port &port, Frame &frame, uint64_t depth);

    EventQueue &events_;
    FramePool &pool_;
    const Shape shape_;
    Random random_;
    uint32_t leaves_;
    std::vector<Port> out_of_host_;
    std::vector<Switch> switches_;
};

// The host that a frame is for, by its destination MAC; none of them: UINT32_MAX.
uint32_t host_of(const uint8_t *mac);

}  // namespace hghca::sim
