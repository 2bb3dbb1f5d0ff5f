// SPDX-License-Identifier: GPL-2.0-or-later
// The input of a fuzzer is a script: records of one size, each a step. So a change of a
// step leaves the others what they are, and steps can be put in, left out and moved.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace hghca::fuzz {

constexpr size_t kRecord = 24;   // bytes

// The same numbers from the same seed.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    size_t operator()(size_t n)
    {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return size_t(state_ >> 33) % n;
    }

private:
    uint64_t state_;
};

// What must hold: the fuzzer keeps the input that breaks it.
inline void require(bool holds, const char *what)
{
    if (holds)
        return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

// One step. What stands behind its end is 0.
class Record {
public:
    Record(const uint8_t *data, size_t size) : data_(data), size_(size) {}
    uint8_t u8() { return at_ < size_ ? data_[at_++] : 0; }
    uint16_t u16()
    {
        const auto high = uint16_t(u8() << 8);
        return uint16_t(high | u8());
    }
    uint32_t u32()
    {
        const uint32_t high = uint32_t(u16()) << 16;
        return high | u16();
    }
    uint64_t u64()
    {
        const uint64_t high = uint64_t(u32()) << 32;
        return high | u32();
    }
    uint32_t below(uint32_t n) { return u8() % n; }   // n is 256 at most
    bool one_in(unsigned n) { return u8() % n == n - 1; }
    int8_t i8() { return int8_t(u8()); }

private:
    const uint8_t *data_;
    size_t size_;
    size_t at_ = 0;
};

// Calls step(record) for each record of the input, the last of which may be a short one.
template <class Step>
void play(const uint8_t *data, size_t size, Step &&step)
{
    for (size_t at = 0; at < size; at += kRecord)
        step(Record(data + at, size - at < kRecord ? size - at : kRecord));
}

// The first record, which sets up what the others are for.
inline Record first_record(const uint8_t *data, size_t size)
{
    return {data, std::min(size, kRecord)};
}

// Calls step() of the script with each record but the first.
template <class Script>
void play_rest(const uint8_t *data, size_t size, Script &script)
{
    if (size > kRecord)
        play(data + kRecord, size - kRecord, [&](Record r) { script.step(r); });
}

// A whole input, for a script that is made from its first record.
template <class Script>
int run_input(const uint8_t *data, size_t size)
{
    Script script(first_record(data, size));
    play_rest(data, size, script);
    script.end();
    return 0;
}

}  // namespace hghca::fuzz
