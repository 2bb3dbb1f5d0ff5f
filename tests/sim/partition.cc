// SPDX-License-Identifier: GPL-2.0-or-later
#include "partition.h"

namespace hghca::sim {

namespace {

constexpr uint32_t kAmpleBytes = 64 << 10, kScarceBytes = 8 << 10;   // of all regions

hghca_partition any_shape(uint32_t number, Random &random)
{
    hghca_partition shape{};
    shape.key = be32(uint32_t(random.next()) << 6 | number);
    shape.pd = be32(TestDriver::kPd);
    shape.log_record = uint8_t(random.between(HGHCA_PARTITION_LOG_MIN_RECORD, HGHCA_PARTITION_LOG_MAX_RECORD));
    shape.log_regions = uint8_t(random.between(0, 5));
    shape.key_size = uint8_t(1u << random.below(4));
    shape.key_offset = uint8_t(random.below((1u << shape.log_record) - shape.key_size + 1));
    shape.key_shift = uint8_t(random.below(8u * shape.key_size - shape.log_regions + 1));
    return shape;
}

}  // namespace

Partition::Partition(Machine &machine, uint32_t number, Random &random)
    : machine(machine), made_(any_shape(number, random)), memory_(machine, kAmpleBytes, random.below(4096), 1)
{
    memory_.fill(random);
    memory_.mr = machine.driver.create_mr_at((random.below(1ull << 40) << 12) + (memory_.dma(0) & 4095), kAmpleBytes,
                                             memory_.dma(0), HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_WRITE);
    machine.allow_dma(memory_.dma(0), kAmpleBytes);
    // Now and then there is too little for all.
    const uint32_t most = (random.one_in(6) ? kScarceBytes : kAmpleBytes) / regions();
    for (uint32_t i = 0; i < regions(); i++) {
        const auto bytes = uint32_t(most - random.below(most / 4));
        made_.region[i] = {be64(memory_.mr.va + begin_[i]), be32(memory_.mr.key), be32(bytes), 0, 0};
        begin_[i + 1] = begin_[i] + bytes;
    }
    TestDriver::must(machine.driver.post(HGHCA_CMD_SW2HW_PART, made_, number), "SW2HW_PART");
}

uint32_t Partition::region_of(const uint8_t *record) const
{
    uint32_t region = 0;
    for (unsigned b = 0; b < made_.log_regions; b++) {
        const unsigned bit = made_.key_shift + b;
        region |= uint32_t(record[made_.key_offset + bit / 8] >> bit % 8 & 1) << b;
    }
    return region;
}

void Partition::post(const uint8_t *records, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += record_bytes())
        posted_[region_of(records + at)] += record_bytes();
}

bool Partition::may_be_full(const uint8_t *records, uint32_t bytes) const
{
    for (uint32_t at = 0; at < bytes; at += record_bytes())
        if (const uint32_t region = region_of(records + at); posted_[region] > length(region))
            return true;
    return false;
}

hghca_partition Partition::query()
{
    hghca_partition now;
    TestDriver::must(machine.driver.query(HGHCA_CMD_QUERY_PART, now, key() & HGHCA_PARTITION_INDEX_MASK), "QUERY_PART");
    for (uint32_t i = 0; i < regions(); i++)
        if (const uint32_t filled = be32(now.region[i].filled); filled > length(i) || filled % record_bytes())
            fail("host ", machine.number, ": region ", i, " of ", length(i), " bytes has ", filled, " of records of ",
                 record_bytes());
    return now;
}

void Partition::check_rest()
{
    int64_t at;
    if (memory_.differs(at, [](int64_t, uint8_t) { return false; }))
        fail("host ", machine.number, ": byte ", at, " of a partition has changed, where no record is");
}

}  // namespace hghca::sim
