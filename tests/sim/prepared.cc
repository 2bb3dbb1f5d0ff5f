// SPDX-License-Identifier: GPL-2.0-or-later
#include "prepared.h"

namespace hghca::sim {

namespace {

constexpr uint32_t kElements = 48, kLists = 3;
constexpr uint32_t kValues = kElements * HGHCA_POINTER_ELEMENT, kValueBytes = 1024;
constexpr uint32_t kObjects = kValues + kValueBytes;
constexpr uint32_t kObjectCount = 4;
constexpr uint64_t kKeys = 12;   // different ones
// Words of an element. There is a pointer behind each key, and one more.
constexpr uint32_t kNext = 0, kFirstKey = 2, kPointerBehindKey = 2, kKeyStride = 4, kKeyCount = 3, kLastPointer = 14;

// CRC-64/XZ, bit by bit.
uint64_t crc64_of(const uint8_t *data, uint32_t bytes)
{
    constexpr uint64_t kReflected = 0xc96c5795d7870f42;   // 42F0E1EBA9EA3693h
    uint64_t crc = ~0ull;
    for (uint32_t bit = 0; bit < 8 * bytes; bit++) {
        crc ^= data[bit / 8] >> bit % 8 & 1;
        crc = crc >> 1 ^ (crc & 1 ? kReflected : 0);
    }
    return ~crc;
}

}  // namespace

Prepared::Prepared(Machine &machine, uint32_t object_bytes, Random &random)
    : memory_(machine, kObjects + uint64_t(kObjectCount) * object_bytes, random.below(4096), 1)
{
    memory_.fill(random);
    memory_.mr = machine.driver.create_mr_at((random.between(1, 1ull << 40) << 12) + (memory_.dma(0) & 4095),
                                             memory_.bytes(), memory_.dma(0), HGHCA_ACCESS_REMOTE_READ);
    make_elements(random);
    make_objects(object_bytes, random);
}

// Each kLists-th element is of the same list.
void Prepared::make_elements(Random &random)
{
    const auto any_value = [&] { return memory_.mr.va + kValues + random.below(kValueBytes - kMaxValue + 1); };
    for (uint32_t i = 0; i < kElements; i++) {
        const uint32_t element = i * HGHCA_POINTER_ELEMENT, next = element + kLists * HGHCA_POINTER_ELEMENT;
        put64(element + 4 * kNext, i + kLists < kElements ? memory_.mr.va + next : 0);
        for (uint32_t k = 0; k < kKeyCount; k++) {
            const uint32_t word = kFirstKey + k * kKeyStride;
            put64(element + 4 * word, random.below(kKeys));
            put64(element + 4 * (word + kPointerBehindKey), any_value());
        }
        put64(element + 4 * kLastPointer, any_value());
    }
}

void Prepared::make_objects(uint32_t object_bytes, Random &random)
{
    const bool one_torn = random.one_in(4);
    for (uint32_t i = 0; i < kObjectCount; i++) {
        const auto length = uint32_t(random.between(HGHCA_CONSISTENT_CRC + 1, object_bytes));
        const Object object{kObjects + i * object_bytes, length, one_torn && i == 0};
        const uint32_t crc_at = object.offset + length - HGHCA_CONSISTENT_CRC;
        put64(crc_at, crc64_of(memory_.now(object.offset), length - HGHCA_CONSISTENT_CRC));
        if (object.torn) {
            *memory_.now(object.offset + random.below(length)) ^= uint8_t(1u << random.below(8));
            memory_.accept(object.offset, length);
        }
        objects_.push_back(object);
    }
}

void Prepared::put64(uint64_t offset, uint64_t value)
{
    value = le64(value);
    std::memcpy(memory_.now(offset), &value, sizeof(value));
    memory_.accept(offset, sizeof(value));
}

uint64_t Prepared::get64(uint64_t va, uint32_t word)
{
    uint64_t value;
    std::memcpy(&value, memory_.model(va - memory_.mr.va + 4 * word), sizeof(value));
    return le64(value);
}

Prepared::Search Prepared::any_search(Random &random) const
{
    uint32_t keys = 0;
    for (uint64_t chosen = random.between(1, (1u << kKeyCount) - 1), k = 0; k < kKeyCount; k++)
        keys |= uint32_t(chosen >> k & 1) << (kFirstKey + k * kKeyStride);
    const auto predicate = uint32_t(random.one_in(2) ? HGHCA_PREDICATE_EQUAL : random.below(4));
    const bool relative = random.one_in(2);
    uint32_t value = kPointerBehindKey;
    if (!relative)
        value = random.one_in(4) ? kLastPointer : value + kFirstKey + kKeyStride * uint32_t(random.below(kKeyCount));
    Search search{};
    search.search = field_put(HGHCA_POINTER_KEYS_MASK, keys) | field_put(HGHCA_POINTER_PREDICATE_MASK, predicate) |
                    field_put(HGHCA_POINTER_VALUE_MASK, value) | (relative ? HGHCA_POINTER_RELATIVE : 0);
    if (!random.one_in(4))
        search.search |= HGHCA_POINTER_HAS_NEXT | field_put(HGHCA_POINTER_NEXT_MASK, kNext);
    search.key = random.below(kKeys + 2);
    if (!random.one_in(20))
        search.va = memory_.mr.va + random.below(kElements) * HGHCA_POINTER_ELEMENT;
    return search;
}

const uint8_t *Prepared::find(const Search &s)
{
    const uint32_t keys = field_get(HGHCA_POINTER_KEYS_MASK, s.search);
    for (uint64_t va = s.va; va; va = s.search & HGHCA_POINTER_HAS_NEXT ? get64(va, kNext) : 0) {
        for (uint32_t word = 0; word <= HGHCA_POINTER_LAST_WORD; word++) {
            const uint64_t key = get64(va, word);
            const bool matches[] = {key == s.key, key < s.key, key > s.key, key != s.key};
            if (!(keys >> word & 1) || !matches[field_get(HGHCA_POINTER_PREDICATE_MASK, s.search)])
                continue;
            const uint32_t from = s.search & HGHCA_POINTER_RELATIVE ? word : 0;
            const uint64_t value = get64(va, from + field_get(HGHCA_POINTER_VALUE_MASK, s.search));
            return memory_.model(value - memory_.mr.va);
        }
    }
    return nullptr;
}

// The one that is torn fails the connection: it is rarely read.
const Prepared::Object &Prepared::any_object(Random &random) const
{
    const Object &object = objects_[random.below(objects_.size())];
    return object.torn && random.one_in(2) ? objects_.back() : object;
}

void Prepared::spoil_values()
{
    for (uint32_t i = 0; i < kValueBytes; i++)
        *memory_.now(kValues + i) ^= 1;
}

void Prepared::spoil_objects()
{
    // One that is torn already could become whole by it.
    for (const Object &object : objects_)
        if (!object.torn)
            *memory_.now(object.offset) ^= 1;
}

}  // namespace hghca::sim
