// SPDX-License-Identifier: GPL-2.0-or-later
// Byte order of what crosses the interface, and the fields of a 32-bit word.
#pragma once

#include <bit>
#include <cstdint>

namespace hghca {

template <class T>
constexpr T swap_bytes(T v)
{
    if constexpr (sizeof(T) == 2)
        return __builtin_bswap16(v);
    else if constexpr (sizeof(T) == 4)
        return __builtin_bswap32(v);
    else
        return __builtin_bswap64(v);
}

constexpr bool kLittle = std::endian::native == std::endian::little;

// Each converts both ways.
constexpr uint16_t be16(uint16_t v) { return kLittle ? swap_bytes(v) : v; }
constexpr uint32_t be32(uint32_t v) { return kLittle ? swap_bytes(v) : v; }
constexpr uint64_t be64(uint64_t v) { return kLittle ? swap_bytes(v) : v; }
constexpr uint16_t le16(uint16_t v) { return kLittle ? v : swap_bytes(v); }
constexpr uint32_t le32(uint32_t v) { return kLittle ? v : swap_bytes(v); }
constexpr uint64_t le64(uint64_t v) { return kLittle ? v : swap_bytes(v); }

// The field under `mask` of a word in host byte order, and a word with just that field.
constexpr uint32_t field_get(uint32_t mask, uint32_t word)
{
    return (word & mask) >> std::countr_zero(mask);
}
constexpr uint32_t field_put(uint32_t mask, uint32_t value)
{
    return (value << std::countr_zero(mask)) & mask;
}

}  // namespace hghca
