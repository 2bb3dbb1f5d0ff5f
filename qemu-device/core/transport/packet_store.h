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

    explicit PacketStore(Host &host) : host_(host) {}

    // Places at `base`, a multiple of kPlaceBytes; 0: packets go from the memory of software each time. It allocates all
    // that it will need. With as many places as QPs, one is kept free for each QP that has no packet in the buffer:
    // connections whose peers do not answer do not stop the others.
    void configure(uint64_t base, uint32_t places, uint32_t qps);
    void clear() { configure(0, 0, 0); }
    bool active() const { return !places_.empty(); }
    // For a QP that has a packet there already.
    bool full() const { return free_places_ <= kept_free(); }

    // The copy of the packet. Of a QP's packets at most as many are looked at as are under way, and one only if the packet
    // goes for the first time.
    enum class [[nodiscard]] Copy : uint8_t {
        Here,        // in `out`
        Differs,     // it had another length
        Absent,      // it is new
        Forgotten,   // it was acknowledged
    };
    Copy find(Qpn qpn, Psn psn, uint32_t bytes, PacketSegments &out) const;
    // Of a new packet. With Yes, `out` is its copy.
    Kept keep(Qpn qpn, Psn psn, const uint8_t *payload, uint32_t bytes, PacketSegments &out);
    // The packets of the QP before `unacked` are acknowledged. Calls wake(Qpn) for each QP that waits, if there is room now.
    template <class Wake>
    void release(Qpn qpn, Psn unacked, Wake &&wake)
    {
        if (free_before(qpn, unacked))
            wake_all(wake);
    }
    // The QP sends none of its packets again.
    template <class Wake>
    void release_all(Qpn qpn, Wake &&wake)
    {
        if (free_all(qpn))
            wake_all(wake);
    }

private:
    static constexpr uint32_t kNone = UINT32_MAX;

    struct Place {
        Psn psn;
        uint32_t bytes;
        uint32_t next;
    };
    // Of a QP, in the order of their PSNs.
    struct Chain {
        uint32_t head = kNone, tail = kNone;
        bool waits = false;
    };

    template <class Wake>
    void wake_all(Wake &&wake)
    {
        for (Qpn qpn : waiting_) {
            chains_[number(qpn)].waits = false;
            wake(qpn);
        }
        waiting_.clear();
    }
    uint32_t kept_free() const { return places_.size() >= chains_.size() ? empty_chains_ : 0; }
    bool has_room(const Chain &chain) const { return chain.head == kNone ? free_places_ : !full(); }
    uint64_t address(uint32_t place) const { return base_ + uint64_t(place) * kPlaceBytes; }
    Segment segment(uint32_t place, uint32_t bytes, bool write) const;
    Copy copy_at(uint32_t place, uint32_t bytes, PacketSegments &out) const;
    void free_head(Chain &chain);
    bool free_before(Qpn qpn, Psn unacked);
    bool free_all(Qpn qpn);

    Host &host_;
    uint64_t base_ = 0;
    std::vector<Place> places_;
    std::vector<Chain> chains_;     // by QPN
    std::vector<Qpn> waiting_;
    uint32_t free_ = kNone;
    uint32_t free_places_ = 0, empty_chains_ = 0;
};

}  // namespace hghca
