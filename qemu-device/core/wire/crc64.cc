// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/crc64.h"

#include "wire/crc_tables.h"

namespace hghca {

uint64_t crc64(const uint8_t *data, size_t length)
{
    return ~CrcTables<uint64_t, 0xc96c5795d7870f42>::update(~uint64_t(0), data, length);
}

}  // namespace hghca
