// SPDX-License-Identifier: GPL-2.0-or-later
// Devices on one Ethernet under virtual time, with a link that loses what it is told to.
#pragma once

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "device.h"
#include "driver.h"
#include "fake_host.h"
#include "hghca_wire.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"
#include "jingzhao/qp_table.h"
#include "wire/icrc.h"

namespace hghca::test {

using Frame = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;
using Gid = std::array<uint8_t, 16>;

// One machine: 02:00:00:00:00:n with GID 0 10.10.0.n, GID 1 fd00::n, GID 2 10.20.0.n in VLAN 5.
struct Node {
    // Of those made from now on.
    static inline uint32_t slice_work = Config{}.slice_work;
    static inline Profile profile = Profile::Full;
    static Config config_of(FakeHost &host, unsigned n, uint32_t cache_entries, const ReceiveBuffers &buffers = {})
    {
        Config config{};
        config.profile = profile;
        config.receive_buffers = buffers;
        config.mac = mac_of(n);
        config.cache_entries = cache_entries;
        config.slice_work = slice_work;
        config.device_memory = host.on_device();
        return config;
    }
    static Mac mac_of(unsigned n) { return {2, 0, 0, 0, 0, uint8_t(n)}; }
    static Gid gid_of(unsigned n, unsigned index)
    {
        if (index == 1)
            return {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, uint8_t(n)};
        return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, uint8_t(index == 2 ? 20 : 10), 0, uint8_t(n)};
    }

    explicit Node(unsigned n, uint32_t cache_entries = 0, uint32_t caps = kFullCaps,
                  const TestDriver::Layout &layout = {}, size_t memory = 64u << 20, const ReceiveBuffers &buffers = {})
        : number(n), host(memory), device(host, config_of(host, n, cache_entries, buffers)), driver(host, device)
    {
        driver.layout = layout;
        start(caps);
    }
    // Another device in the machine that `other` is in.
    Node(unsigned n, const Node &other)
        : number(n), host(other.host, 64 << 10), device(host, config_of(host, n, 0)), driver(host, device)
    {
        start();
    }
    // Also a second time.
    void start(uint32_t caps = kFullCaps)
    {
        driver.start(caps);
        if (caps & HGHCA_CAP_GID_TABLE)
            for (unsigned i = 0; i < 3; i++)
                driver.must(driver.set_gid(i, gid_of(number, i).data(), mac_of(number).data(), i == 2 ? 5 : -1), "SET_GID");
    }
    const Counters &counters() const { return device.counters(); }
    unsigned events(hghca_event_type type)
    {
        unsigned n = 0;
        hghca_eqe eqe;
        while (driver.poll(driver.async, eqe))
            n += eqe.type == type;
        return n;
    }

    unsigned number;
    FakeHost host;
    Device device;
    TestDriver driver;
};

// What happens to a frame on the way.
struct Fate {
    unsigned copies = 1;      // 0: lost
    unsigned behind = 0;      // overtaken by so many later frames
};

class Network {
public:
    explicit Network(uint32_t cache_entries = 0, uint32_t caps = kFullCaps,
                     const TestDriver::Layout &layout = {}, size_t memory = 64u << 20,
                     const ReceiveBuffers &buffers_of_b = {})
        : a(1, cache_entries, caps, layout, memory), b(2, cache_entries, caps, layout, memory, buffers_of_b)
    {
        attach(a, b);
        attach(b, a);
    }

    // Decides about each frame; may change it.
    std::function<Fate(const Node &from, Frame &)> filter;
    std::vector<Frame> log;      // all that was sent
    bool keep_log = false;
    uint64_t sent = 0;

    uint64_t now() const { return a.host.clock_ns; }

    // Delivers and runs until nothing moves; time stands still.
    void pump()
    {
        for (unsigned rounds = 0; rounds < 1000000; rounds++) {
            bool moved = false;
            for (Node *node : {&a, &b}) {
                if (node->device.has_work()) {
                    bounded(node->device, [node] { node->device.run(); });
                    moved = true;
                }
            }
            if (!wire_.empty()) {
                Flight flight = std::move(wire_.front());
                wire_.pop_front();
                deliver(*flight.to, flight.frame);
                moved = true;
            }
            if (!moved)
                return;
        }
        throw std::runtime_error("the network does not come to rest");
    }
    // pump(), and lets time go on from timer to timer, for `ns` at most.
    void settle(uint64_t ns = 10'000'000'000)
    {
        const uint64_t end = now() + ns;
        for (;;) {
            pump();
            const uint64_t next = std::min(a.host.deadline_ns, b.host.deadline_ns);
            if (next > end)
                break;
            at(std::max(next, now()));
        }
        at(end);
        pump();
    }
    // Time jumps to `ns`; timers that end until then end.
    void at(uint64_t ns)
    {
        for (Node *node : {&a, &b}) {
            node->host.clock_ns = ns;
            if (node->host.deadline_ns <= ns) {
                node->host.deadline_ns = UINT64_MAX;
                bounded(node->device, [node] { node->device.timer(); });
            }
        }
    }
    // What is on its way is lost.
    void clear()
    {
        wire_.clear();
        held_.clear();
        log.clear();
    }
    // In two parts, cut somewhere, as a real link may do.
    static void deliver(Node &to, const Frame &frame)
    {
        size_t cut = frame.size() * 7 / 10;
        // On the heap, byte for byte: reading past the end is seen.
        std::unique_ptr<uint8_t[]> first(new uint8_t[cut]), second(new uint8_t[frame.size() - cut]);
        std::copy(frame.begin(), frame.begin() + ptrdiff_t(cut), first.get());
        std::copy(frame.begin() + ptrdiff_t(cut), frame.end(), second.get());
        iovec parts[2] = {{first.get(), cut}, {second.get(), frame.size() - cut}};
        bounded(to.device, [&] { to.device.receive(parts); });
    }

    Node a, b;

private:
    struct Flight {
        Node *to;
        Frame frame;
    };
    void attach(Node &from, Node &to)
    {
        from.host.on_frame = [this, &from, &to](const Frame &sent_frame) {
            Frame frame = sent_frame;
            Fate fate = filter ? filter(from, frame) : Fate{};
            sent++;
            if (keep_log)
                log.push_back(frame);
            for (unsigned i = 0; i < fate.copies; i++)
                held_.push_back({fate.behind, {&to, frame}});
            // What has been overtaken by enough frames goes out.
            for (auto it = held_.begin(); it != held_.end();) {
                if (!it->behind) {
                    wire_.push_back(std::move(it->flight));
                    it = held_.erase(it);
                } else {
                    it->behind--;
                    ++it;
                }
            }
        };
    }
    struct Held {
        unsigned behind;
        Flight flight;
    };
    std::deque<Flight> wire_;
    std::deque<Held> held_;
};

// ---- frames taken apart

struct View {
    explicit View(const Frame &frame)
    {
        size_t at = 12;
        auto type = uint16_t(frame.at(at) << 8 | frame.at(at + 1));
        if (type == HGHCA_ETH_TYPE_VLAN) {
            at += 4;
            type = uint16_t(frame.at(at) << 8 | frame.at(at + 1));
        }
        ip = at + 2;
        ipv6 = type == HGHCA_ETH_TYPE_IPV6;
        bth = ip + (ipv6 ? 40 : 20) + 8;
        opcode = frame.at(bth);
        pad = frame.at(bth + 1) >> 4 & 3;
        psn = uint32_t(frame.at(bth + 9) << 16 | frame.at(bth + 10) << 8 | frame.at(bth + 11));
        ack_request = frame.at(bth + 8) & 0x80;
        bool aeth = opcode == HGHCA_BTH_OP_ACK || opcode == HGHCA_BTH_OP_ATOMIC_ACK;
        syndrome = aeth ? frame.at(bth + 12) : 0;
    }
    size_t ip, bth;
    bool ipv6;
    uint8_t opcode, pad;
    uint32_t psn;
    bool ack_request;
    uint8_t syndrome;
    bool is_request() const { return opcode <= HGHCA_BTH_OP_READ_REQUEST || opcode >= HGHCA_BTH_OP_COMPARE_SWAP; }
};

// Makes the checksum of an IPv4 header right, and the ICRC, so that a change to a RoCE frame is looked at.
inline void seal(Frame &f)
{
    if (f.size() < 14)
        return;
    const bool tagged = f[12] == 0x81 && f[13] == 0;
    const size_t ip = tagged ? 18 : 14;
    const bool ipv6 = f[ip - 2] == 0x86;
    const size_t bth = ip + (ipv6 ? 40 : 20) + 8;
    if (f.size() < bth + 16 || f[ip - 2] != (ipv6 ? 0x86 : 8) || f[ip] >> 4 != (ipv6 ? 6 : 4))
        return;
    if (!ipv6) {
        uint32_t sum = 0;
        f[ip + 10] = f[ip + 11] = 0;
        for (size_t i = ip; i < ip + 20; i += 2)
            sum += uint32_t(f[i] << 8 | f[i + 1]);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = ~(sum + (sum >> 16));
        f[ip + 10] = uint8_t(sum >> 8);
        f[ip + 11] = uint8_t(sum);
    }
    uint8_t ones[8];
    std::memset(ones, 0xff, 8);
    Frame m(f.begin() + ptrdiff_t(ip), f.end() - 4);
    if (ipv6) {
        m[0] |= 0x0f;
        m[1] = m[2] = m[3] = m[7] = 0xff;
    } else {
        m[1] = m[8] = m[10] = m[11] = 0xff;
    }
    const size_t transport = bth - ip;
    m[transport - 2] = m[transport - 1] = m[transport + 4] = 0xff;
    uint32_t crc = ~crc32_update(crc32_update(kCrcStart, ones, 8), m.data(), m.size());
    for (int i = 0; i < 4; i++)
        f[f.size() - 4 + size_t(i)] = uint8_t(crc >> 8 * i);
}

}  // namespace hghca::test
