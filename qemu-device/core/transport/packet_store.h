// SPDX-License-Identifier: GPL-2.0-or-later
// The retransmission buffer: payload of packets that are not acknowledged, in memory of the host.
#pragma once

#include <cstdint>
#include <vector>

#include "host.h"
#include "transport/segment.h"
#include "wire/number.h"
#include "wire/psn.h"

namespace hghca {

// A packet is copied when it goes for the first time, and goes again from its copy: what software writes meanwhile to the
// memory that it sends from does not reach the peer. A place for a packet is 4096 bytes. Everything but the payload is on
// chip.
class PacketStore {
public:
    enum class [[nodiscard]] Kept : uint8_t {
        Yes,
        Full,        // the QP waits, and is woken when there is room
        Unreadable,  // DMA failed
    };
    static constexpr uint32_t kPlaceBytes = 4096;
    static constexpr uint32_t kMaxPlaces = 1 << 16;
    // Of a QP: as many as may be under way (interface document, section 9).
    static constexpr uint32_t kMaxPackets = 256;

    explicit PacketStore(Host &host) : host_(host) {}

    // Places at `base`, a multiple of kPlaceBytes; 0: packets go from the memory of software each time. It allocates all
    // that it will need. With as many places as QPs, one is kept free for each QP that has no packet in the buffer:
    // connections whose peers do not answer do not stop the others.
    void configure(uint64_t base, uint32_t places, uint32_t qps);
    void clear() { configure(0, 0, 0); }
    bool active() const { return places_ != 0; }
    // For a QP that has a packet there already.
    bool full() const { return free_.size() <= kept_free(); }

    // The copy of the packet.
    enum class [[nodiscard]] Copy : uint8_t {
        Here,        // in `out`
        Differs,     // it had another length
        Absent,      // it is new
        Forgotten,   // it was acknowledged
    };
    Copy find(Qpn qpn, Psn psn, uint32_t bytes, PacketSegments &out) const;
    // Of a new packet. With Yes, `out` is its copy. Only software that rewrites its WQEs has more than kMaxPackets under
    // way: `out` stays as it is then, and the packet goes from the memory of software.
    Kept keep(Qpn qpn, Psn psn, const uint8_t *payload, uint32_t bytes, PacketSegments &out);
    // The packets of the QP before `unacked` are acknowledged. `wake` as in wake_next().
    template <class Wake>
    void release(Qpn qpn, Psn unacked, Wake &&wake)
    {
        free_before(qpn, unacked);
        wake_next(wake);
    }
    // The QP sends none of its packets again, or is gone.
    template <class Wake>
    void release_all(Qpn qpn, Wake &&wake)
    {
        free_all(qpn);
        wake_next(wake);
    }
    // Calls wake(Qpn) for the QP that has waited longest, if there is room. That QP may have no use for it: its rate or a
    // timer holds it back, or it is gone. So this is called again behind each turn, and as many wake as there is room for.
    // Those who wait have packets in the buffer, or no place is kept free for anybody: there is room for all or for none.
    // One whose packets have all been acknowledged meanwhile has its turn without this.
    template <class Wake>
    void wake_next(Wake &&wake)
    {
        if (!waiting_count_ || full())
            return;
        const Qpn qpn = waiting_[waiting_first_];
        waiting_first_ = (waiting_first_ + 1) % uint32_t(waiting_.size());
        waiting_count_--;
        queues_[number(qpn)].waits = false;
        wake(qpn);
    }

private:
    struct Packet {
        Psn psn;
        uint16_t place, bytes;
    };
    static_assert(kMaxPlaces - 1 <= UINT16_MAX && kPlaceBytes <= UINT16_MAX);
    // Of a QP, in the order of their PSNs: kMaxPackets of packets_, of which `count` are used from `first` on.
    struct Queue {
        uint32_t first = 0, count = 0;
        bool waits = false;
    };

    uint32_t kept_free() const { return places_ >= queues_.size() ? empty_queues_ : 0; }
    bool has_room(const Queue &queue) const { return queue.count ? !full() : !free_.empty(); }
    size_t slot(Qpn qpn, uint32_t index) const
    {
        return size_t(number(qpn)) * kMaxPackets + (queues_[number(qpn)].first + index) % kMaxPackets;
    }
    // The packet of the QP behind `index` older ones.
    const Packet &packet(Qpn qpn, uint32_t index) const { return packets_[slot(qpn, index)]; }
    uint64_t address(uint32_t place) const { return base_ + uint64_t(place) * kPlaceBytes; }
    Segment segment(uint32_t place, uint32_t bytes, bool write) const;
    Copy copy_of(const Packet &packet, uint32_t bytes, PacketSegments &out) const;
    uint32_t index_of(Qpn qpn, uint32_t distance) const;
    void wait(Qpn qpn);
    void free_oldest(Qpn qpn);
    void free_before(Qpn qpn, Psn unacked);
    void free_all(Qpn qpn);

    Host &host_;
    uint64_t base_ = 0;
    uint32_t places_ = 0;
    std::vector<uint16_t> free_;     // places
    std::vector<Packet> packets_;
    std::vector<Queue> queues_;      // by QPN
    std::vector<Qpn> waiting_;       // a ring; each QP once
    uint32_t waiting_first_ = 0, waiting_count_ = 0;
    uint32_t empty_queues_ = 0;
};

}  // namespace hghca
