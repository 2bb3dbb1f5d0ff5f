// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/packet_store.h"

#include <cstring>

namespace hghca {

void PacketStore::configure(uint64_t base, uint32_t places, uint32_t qps)
{
    base_ = base;
    places_.assign(places, Place{});
    chains_.assign(qps, Chain{});
    waiting_.clear();
    waiting_.reserve(qps);
    free_ = kNone;
    free_places_ = places;
    empty_chains_ = qps;
    for (uint32_t i = places; i-- > 0;) {
        places_[i].next = free_;
        free_ = i;
    }
}

Segment PacketStore::segment(uint32_t place, uint32_t bytes, bool write) const
{
    return {host_.map(address(place), bytes, write), address(place), bytes};
}

PacketStore::Copy PacketStore::copy_at(uint32_t place, uint32_t bytes, PacketSegments &out) const
{
    if (places_[place].bytes != bytes)
        return Copy::Differs;
    out.clear();
    return out.push(segment(place, bytes, false)) ? Copy::Here : Copy::Differs;
}

PacketStore::Copy PacketStore::find(Qpn qpn, Psn psn, uint32_t bytes, PacketSegments &out) const
{
    const Chain &chain = chains_[number(qpn)];
    if (chain.tail == kNone)
        return Copy::Absent;
    const uint32_t beyond = psn_distance(psn, places_[chain.tail].psn);
    if (!beyond)
        return copy_at(chain.tail, bytes, out);
    if (beyond < kPsnHalf)
        return Copy::Absent;
    for (uint32_t place = chain.head; place != kNone; place = places_[place].next)
        if (places_[place].psn == psn)
            return copy_at(place, bytes, out);
    return Copy::Forgotten;
}

PacketStore::Kept PacketStore::keep(Qpn qpn, Psn psn, const uint8_t *payload, uint32_t bytes, PacketSegments &out)
{
    Chain &chain = chains_[number(qpn)];
    if (!has_room(chain)) {
        if (!chain.waits)
            waiting_.push_back(qpn);
        chain.waits = true;
        return Kept::Full;
    }
    const Segment to = segment(free_, bytes, true);
    if (to.pointer) {
        std::memcpy(to.pointer, payload, bytes);
        host_.dirty(to.dma, bytes);
    } else if (!host_.write(to.dma, payload, bytes)) {
        return Kept::Unreadable;
    }
    const uint32_t place = free_;
    free_ = places_[place].next;
    free_places_--;
    empty_chains_ -= chain.head == kNone;
    places_[place] = {psn, bytes, kNone};
    (chain.tail == kNone ? chain.head : places_[chain.tail].next) = place;
    chain.tail = place;
    return copy_at(place, bytes, out) == Copy::Here ? Kept::Yes : Kept::Unreadable;
}

void PacketStore::free_head(Chain &chain)
{
    const uint32_t place = chain.head;
    chain.head = places_[place].next;
    if (chain.head == kNone) {
        chain.tail = kNone;
        empty_chains_++;
    }
    places_[place].next = free_;
    free_ = place;
    free_places_++;
}

bool PacketStore::free_before(Qpn qpn, Psn unacked)
{
    Chain &chain = chains_[number(qpn)];
    bool freed = false;
    while (chain.head != kNone) {
        const uint32_t ahead = psn_distance(unacked, places_[chain.head].psn);
        if (!ahead || ahead > kPsnHalf)
            break;
        free_head(chain);
        freed = true;
    }
    return freed;
}

bool PacketStore::free_all(Qpn qpn)
{
    Chain &chain = chains_[number(qpn)];
    bool freed = false;
    for (; chain.head != kNone; freed = true)
        free_head(chain);
    return freed;
}

}  // namespace hghca
