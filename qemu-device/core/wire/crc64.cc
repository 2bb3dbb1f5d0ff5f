// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/crc64.h"

#include <array>
#include <cstring>

#include "byte_order.h"

namespace hghca {

namespace {

// The polynomial, bit-reflected: bit 63 - n stands for x^n.
constexpr uint64_t kReflected64 = 0xc96c5795d7870f42;

// kTables64[k][b]: byte b followed by k zero bytes.
using Tables64 = std::array<std::array<uint64_t, 256>, 8>;
constexpr Tables64 make_tables64()
{
    Tables64 t{};
    for (uint64_t b = 0; b < 256; b++) {
        uint64_t r = b;
        for (int bit = 0; bit < 8; bit++)
            r = r >> 1 ^ (r & 1 ? kReflected64 : 0);
        t[0][b] = r;
    }
    for (size_t k = 1; k < 8; k++)
        for (size_t b = 0; b < 256; b++)
            t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
    return t;
}
constexpr Tables64 kTables64 = make_tables64();

}  // namespace

uint64_t crc64(const uint8_t *data, size_t length)
{
    uint64_t crc = ~uint64_t(0);
    for (; length >= 8; data += 8, length -= 8) {
        uint64_t word;
        std::memcpy(&word, data, 8);
        word = le64(word) ^ crc;
        crc = 0;
        for (size_t k = 0; k < 8; k++)
            crc ^= kTables64[7 - k][word >> (8 * k) & 0xff];
    }
    for (; length; data++, length--)
        crc = crc >> 8 ^ kTables64[0][(crc ^ *data) & 0xff];
    return ~crc;
}

}  // namespace hghca
