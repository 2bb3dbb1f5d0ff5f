// SPDX-License-Identifier: GPL-2.0-or-later
#include "transport/packet_store.h"

#include <algorithm>
#include <cstring>

namespace hghca {

void PacketStore::configure(uint64_t base, uint32_t places, uint32_t qps)
{
    const uint32_t users = places ? qps : 0;
    base_ = base;
    places_ = places;
    packets_.assign(size_t(users) * kMaxPackets, Packet{});
    queues_.assign(users, Queue{});
    waiting_.assign(users, Qpn{});
    waiting_first_ = waiting_count_ = 0;
    empty_queues_ = users;
    free_.clear();
    free_.reserve(places);
    for (uint32_t place = places; place-- > 0;)
        free_.push_back(uint16_t(place));
}

Segment PacketStore::segment(uint32_t place, uint32_t bytes, bool write) const
{
    return {host_.map(address(place), bytes, write), address(place), bytes};
}

PacketStore::Copy PacketStore::copy_of(const Packet &packet, uint32_t bytes, PacketSegments &out) const
{
    if (packet.bytes != bytes)
        return Copy::Differs;
    out.clear();
    return out.push(segment(packet.place, bytes, false)) ? Copy::Here : Copy::Differs;
}

// The index of the packet whose PSN is so far from the oldest one's, or of the first one behind that; the newest one is
// not before it. Without a gap before it, the index is the distance. The PSNs of READs, and of packets without payload,
// are gaps: they make it less.
uint32_t PacketStore::index_of(Qpn qpn, uint32_t distance) const
{
    const Psn oldest = packet(qpn, 0).psn;
    uint32_t low = 0, high = std::min(distance, queues_[number(qpn)].count - 1);
    if (psn_distance(packet(qpn, high).psn, oldest) == distance)
        return high;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (psn_distance(packet(qpn, middle).psn, oldest) < distance)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

PacketStore::Copy PacketStore::find(Qpn qpn, Psn psn, uint32_t bytes, PacketSegments &out) const
{
    const uint32_t count = queues_[number(qpn)].count;
    if (!count)
        return Copy::Absent;
    const uint32_t beyond = psn_distance(psn, packet(qpn, count - 1).psn);
    if (beyond && beyond < kPsnHalf)
        return Copy::Absent;
    const uint32_t distance = psn_distance(psn, packet(qpn, 0).psn);
    if (distance >= kPsnHalf)
        return Copy::Forgotten;
    const Packet &found = packet(qpn, index_of(qpn, distance));
    return found.psn == psn ? copy_of(found, bytes, out) : Copy::Forgotten;
}

void PacketStore::wait(Qpn qpn)
{
    Queue &queue = queues_[number(qpn)];
    if (queue.waits)
        return;
    queue.waits = true;
    waiting_[(waiting_first_ + waiting_count_++) % waiting_.size()] = qpn;
}

PacketStore::Kept PacketStore::keep(Qpn qpn, Psn psn, const uint8_t *payload, uint32_t bytes, PacketSegments &out)
{
    Queue &queue = queues_[number(qpn)];
    if (queue.count == kMaxPackets)
        return Kept::Yes;
    if (!has_room(queue)) {
        wait(qpn);
        return Kept::Full;
    }
    const uint16_t place = free_.back();
    const Segment to = segment(place, bytes, true);
    if (to.pointer) {
        std::memcpy(to.pointer, payload, bytes);
        host_.dirty(to.dma, bytes);
    } else if (!host_.write(to.dma, payload, bytes)) {
        return Kept::Unreadable;
    }
    free_.pop_back();
    empty_queues_ -= !queue.count;
    Packet &kept = packets_[slot(qpn, queue.count++)];
    kept = {psn, place, uint16_t(bytes)};
    return copy_of(kept, bytes, out) == Copy::Here ? Kept::Yes : Kept::Unreadable;
}

void PacketStore::free_oldest(Qpn qpn)
{
    Queue &queue = queues_[number(qpn)];
    free_.push_back(packet(qpn, 0).place);   // no more than there are places, for which memory is reserved
    queue.first = (queue.first + 1) % kMaxPackets;
    empty_queues_ += !--queue.count;
}

void PacketStore::free_before(Qpn qpn, Psn unacked)
{
    while (queues_[number(qpn)].count) {
        const uint32_t ahead = psn_distance(unacked, packet(qpn, 0).psn);
        if (!ahead || ahead > kPsnHalf)
            break;
        free_oldest(qpn);
    }
}

void PacketStore::free_all(Qpn qpn)
{
    if (number(qpn) >= queues_.size())
        return;
    while (queues_[number(qpn)].count)
        free_oldest(qpn);
}

}  // namespace hghca
