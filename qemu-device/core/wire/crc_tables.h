// SPDX-License-Identifier: GPL-2.0-or-later
// A bit-reflected CRC of 32 or 64 bits, eight bytes at a time by tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "byte_order.h"

namespace hghca {

// kPolynomial is bit-reflected too: the most significant bit stands for x^0.
template <typename Crc, Crc kPolynomial>
class CrcTables {
public:
    static constexpr Crc times_x(Crc r) { return r >> 1 ^ (r & 1 ? kPolynomial : 0); }

    // The register after these bytes; neither inverted before nor after.
    static Crc update(Crc crc, const uint8_t *data, size_t length)
    {
        for (; length >= 8; data += 8, length -= 8) {
            uint64_t word;
            std::memcpy(&word, data, 8);
            word = le64(word) ^ crc;
            crc = 0;
            for (size_t k = 0; k < 8; k++)
                crc ^= kTables[7 - k][word >> (8 * k) & 0xff];
        }
        for (; length; data++, length--)
            crc = crc >> 8 ^ kTables[0][(crc ^ *data) & 0xff];
        return crc;
    }

private:
    // [k][b]: byte b followed by k zero bytes.
    using Tables = std::array<std::array<Crc, 256>, 8>;

    static constexpr Tables make()
    {
        Tables t{};
        for (uint32_t b = 0; b < 256; b++) {
            t[0][b] = b;
            for (int bit = 0; bit < 8; bit++)
                t[0][b] = times_x(t[0][b]);
        }
        for (size_t k = 1; k < 8; k++)
            for (size_t b = 0; b < 256; b++)
                t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
        return t;
    }

    static constexpr Tables kTables = make();
};

}  // namespace hghca
