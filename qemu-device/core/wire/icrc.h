// SPDX-License-Identifier: GPL-2.0-or-later
// CRC-32 of Ethernet (IEEE 802.3, 3.2.9), which is also the ICRC of RoCE v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hghca {

// A CRC in the making: `crc` is the register, so a start is kCrcStart and the
// value on the wire the complement of the end. Any split of the bytes into calls
// gives the same.
constexpr uint32_t kCrcStart = 0xffffffff;
uint32_t crc32_update(uint32_t crc, const void *data, size_t length);

// Copies `length` bytes to `to` and takes them in, reading each once.
uint32_t crc32_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length);

// The two ways it is computed, for tests: by tables everywhere, and by
// carry-less multiplication where crc32_has_folding().
uint32_t crc32_by_tables(uint32_t crc, const void *data, size_t length);
uint32_t crc32_by_folding(uint32_t crc, const void *data, size_t length);
bool crc32_has_folding();

}  // namespace hghca
