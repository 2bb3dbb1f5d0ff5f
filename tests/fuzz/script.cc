// SPDX-License-Identifier: GPL-2.0-or-later
#include "script.h"

#include <algorithm>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace {

using hghca::fuzz::kRecord;
using hghca::fuzz::Random;

void open_gap(uint8_t *data, size_t records, size_t at)
{
    std::memmove(data + (at + 1) * kRecord, data + at * kRecord, (records - at) * kRecord);
}

// Bytes beyond what LLVMFuzzerMutate() leaves are 0: the record keeps its size.
void mutate_record(uint8_t *record)
{
    const size_t left = LLVMFuzzerMutate(record, kRecord, kRecord);
    std::memset(record + left, 0, kRecord - left);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    Random random(seed);
    size_t records = size / kRecord;
    const size_t limit = max_size / kRecord;
    if (!limit)
        return LLVMFuzzerMutate(data, size, max_size);
    if (!records) {
        records = 1;
        std::memset(data, 0, kRecord);
    }
    const size_t at = random(records);
    switch (random(10)) {
    case 0:   // one of them once more, anywhere
        if (records < limit) {
            uint8_t copy[kRecord];
            std::memcpy(copy, data + random(records) * kRecord, kRecord);
            open_gap(data, records++, at);
            std::memcpy(data + at * kRecord, copy, kRecord);
        }
        break;
    case 1:   // a new one
        if (records < limit) {
            open_gap(data, records++, at);
            for (size_t i = 0; i < kRecord; i++)
                data[at * kRecord + i] = uint8_t(random(4) ? random(256) : 0);
        }
        break;
    case 2:   // without one
        if (records > 1) {
            std::memmove(data + at * kRecord, data + (at + 1) * kRecord, (records - at - 1) * kRecord);
            records--;
        }
        break;
    case 3:   // two of them change places
        std::swap_ranges(data + at * kRecord, data + (at + 1) * kRecord, data + random(records) * kRecord);
        break;
    case 4:   // one byte of one step
        data[at * kRecord + random(kRecord)] = uint8_t(random(256));
        break;
    default:
        for (size_t n = 1 + random(3); n; n--)
            mutate_record(data + random(records) * kRecord);
    }
    return records * kRecord;
}

// The beginning of one script, the end of the other.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two, size_t two_size,
                                            uint8_t *out, size_t max_size, unsigned seed)
{
    Random random(seed);
    const size_t head = std::min(random(one_size / kRecord + 1) * kRecord, max_size);
    const size_t from = random(two_size / kRecord + 1) * kRecord;
    const size_t tail = std::min(two_size - from, max_size - head);
    std::memcpy(out, one, head);
    std::memcpy(out + head, two + from, tail);
    return head + tail;
}
