// SPDX-License-Identifier: GPL-2.0-or-later
// CRC-64/XZ: polynomial 42F0E1EBA9EA3693h, bits reflected, the register starts with ones and is inverted at the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hghca {

uint64_t crc64(const uint8_t *data, size_t length);

}  // namespace hghca
