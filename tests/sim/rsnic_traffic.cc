// SPDX-License-Identifier: GPL-2.0-or-later
// What Traffic does with the operations of RSNIC alone: PART, READ_POINTER and READ_CONSISTENT.
#include <algorithm>

#include "traffic.h"

namespace hghca::sim {

namespace {

constexpr uint32_t kRecordsBytes = 32 << 10;   // that a side sends, at most
// The first word of a record: the side that sends it, and where it is in the records of that side.
constexpr unsigned kSideShift = 24;
constexpr uint32_t kOffsetMask = (1u << kSideShift) - 1;

}  // namespace

VendorMemory::VendorMemory(Machine &machine, uint32_t object_bytes, Random &random, std::vector<Partition *> partitions)
    : partitions(std::move(partitions)), prepared(machine, object_bytes, random),
      records(machine, kRecordsBytes, random.below(4096), 1)
{
    records.fill(random);
    const uint64_t va = (random.below(1ull << 40) << 12) + (records.dma(0) & 4095);
    records.mr = machine.driver.create_mr_at(va, kRecordsBytes, records.dma(0), 0);
}

void Traffic::add_partition(Machine &machine)
{
    const auto number = uint32_t(partitions_of(machine).size());
    partitions_.push_back(std::make_unique<Partition>(machine, number, random_));
}

std::vector<Partition *> Traffic::partitions_of(const Machine &machine) const
{
    std::vector<Partition *> all;
    for (const auto &partition : partitions_)
        if (&partition->machine == &machine && !partition->gone)
            all.push_back(partition.get());
    return all;
}

// ---- requests

// Whole records, of as many bytes as were drawn or are left.
void Traffic::aim_part(Side &side, Posting &posting)
{
    VendorMemory &own = *side.vendor;
    const std::vector<Partition *> &partitions = posting.peer->vendor->partitions;
    Request &r = posting.request;
    r.partition = partitions[random_.below(partitions.size())];
    const uint32_t record = r.partition->record_bytes();
    r.local = own.posted;
    r.length = std::min(r.length, kRecordsBytes - own.posted) / record * record;
    for (uint32_t at = r.local; at < r.local + r.length; at += record) {
        const uint32_t name = le32(side.number << kSideShift | at);
        std::memcpy(own.records.now(at), &name, sizeof(name));
    }
    own.records.accept(r.local, r.length);
    posting.key = r.partition->key();
    posting.va = random_.next();   // reserved
}

void Traffic::aim_vendor_read(Side &side, Posting &posting)
{
    Prepared &from = posting.peer->vendor->prepared;
    Request &r = posting.request;
    posting.key = from.key();
    if (r.action == Action::ReadConsistent) {
        const Prepared::Object &object = from.any_object(random_);
        posting.va = from.va_of(object);
        r.length = object.length;
        r.torn = object.torn;
        if (!r.torn)
            r.bytes.assign(from.bytes_of(object), from.bytes_of(object) + r.length);
        return;
    }
    const Prepared::Search search = from.any_search(random_);
    posting.va = search.va;
    posting.pointer = {le64(search.key), le32(search.search), 0};
    r.length = uint32_t(random_.between(1, std::min(Prepared::kMaxValue, side.config.answer_bytes)));
    if (const uint8_t *value = from.find(search))
        r.bytes.assign(value, value + r.length);
}

void Traffic::expect_part(Side &side, const Request &r)
{
    VendorMemory &own = *side.vendor;
    r.partition->post(own.records.model(r.local), r.length);
    own.messages.push_back({r.local, r.length, r.partition});
    own.posted = r.local + r.length;
}

// ---- refusals: an object that is never whole, a region that is full

bool Traffic::may_be_refused(const Side &side, const Request &r)
{
    if (r.action == Action::Part)
        return r.partition->may_be_full(side.vendor->records.model(r.local), r.length);
    return r.torn;
}

// May the QP of this side be in ERR because it has refused a request of its peer?
bool Traffic::may_have_refused(const Side &side)
{
    const Side *peer = side.peer;
    return peer && (peer->refused || std::any_of(peer->requests.begin(), peer->requests.end(),
                                                 [&](const Request &r) { return may_be_refused(*peer, r); }));
}

bool Traffic::ends_by_refusal(const Side &side, const Request &request, uint8_t syndrome) const
{
    switch (syndrome) {
    case HGHCA_SYNDROME_REMOTE_OP_ERR:
        return may_be_refused(side, request);
    case HGHCA_SYNDROME_RETRY_EXC_ERR:
        // The NAK was lost, or the object was read for a duplicate, which has no NAK: either needs a loss.
        return faulty && side.peer && may_have_refused(*side.peer);
    case HGHCA_SYNDROME_WR_FLUSH_ERR:
        return may_have_refused(side);
    default:
        return false;
    }
}

// ---- partitions at rest

const Side *Traffic::sender_of(const Partition &partition, const uint8_t *record, uint32_t &offset) const
{
    uint32_t name;
    std::memcpy(&name, record, sizeof(name));
    offset = le32(name) & kOffsetMask;
    const uint32_t number = le32(name) >> kSideShift;
    if (number >= sides.size() || !sides[number]->vendor)
        return nullptr;
    VendorMemory &own = *sides[number]->vendor;
    for (const VendorMemory::Message &m : own.messages)
        if (m.partition == &partition && offset >= m.offset && offset < m.offset + m.length &&
            (offset - m.offset) % partition.record_bytes() == 0 &&
            !std::memcmp(record, own.records.model(offset), partition.record_bytes()))
            return sides[number].get();
    return nullptr;
}

// Each record stands once, and in the order of its sender, in the region of its key.
std::vector<Traffic::Placed> Traffic::placed_records()
{
    std::vector<Placed> placed(sides.size());
    for (auto &partition : partitions_) {
        if (partition->gone)
            continue;
        const uint32_t record_bytes = partition->record_bytes();
        std::vector<std::array<uint32_t, Partition::kMaxRegions>> behind(sides.size());
        partition->each_record([&](uint32_t region, const uint8_t *record) {
            uint32_t at;
            const Side *from = sender_of(*partition, record, at);
            const std::string what = "host " + std::to_string(partition->machine.number) + ": a record in region " +
                                     std::to_string(region);
            if (!from)
                fail(what, " is not what was sent");
            if (const uint32_t right = partition->region_of(record); right != region)
                fail(what, ", from ", name_of(*from), " at ", at, ", belongs to region ", right);
            uint32_t &behind_last = behind[from->number][region];
            if (at < behind_last)
                fail(what, ", from ", name_of(*from), " at ", at, ", comes twice or too late");
            behind_last = at + record_bytes;
            Placed &p = placed[from->number];
            p.bytes += record_bytes;
            p.end = std::max(p.end, behind_last);
        });
    }
    return placed;
}

// Those of a sender are the first that it has sent, without a gap, if their last one ends where all of them do. They
// are all of the messages that have completed, and whole packets of what may have failed.
void Traffic::check_partitions()
{
    const std::vector<Placed> placed = placed_records();
    for (auto &side : sides) {
        if (!side->vendor || side->peer->state == Side::State::Gone)
            continue;
        const VendorMemory &own = *side->vendor;
        const auto [bytes, end] = placed[side->number];
        const uint32_t mtu = 128u << side->config.mtu_code;
        bool whole = end == own.posted;
        for (const VendorMemory::Message &m : own.messages)
            whole |= end >= m.offset && end < m.offset + m.length && (end - m.offset) % mtu == 0;
        if (bytes != end || end < own.done || !whole)
            fail(name_of(*side), ": of its records ", bytes, " bytes are in partitions, up to byte ", end, " of ",
                 own.posted, " sent and ", own.done, " completed");
    }
}

}  // namespace hghca::sim
