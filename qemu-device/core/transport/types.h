// SPDX-License-Identifier: GPL-2.0-or-later
// What the transport tells services, states, operations and outcomes apart by. The function translates them into the
// numbers of its interface (jingzhao/translate.h).
#pragma once

#include <cstdint>

namespace hghca {

// How a work request ends: IBA vol 1, 11.6.2, completion return status.
enum class Status : uint8_t {
    Success = 0,
    LocalLength = 0x01,
    LocalOperation = 0x02,
    LocalProtection = 0x04,
    Flushed = 0x05,
    Bind = 0x06,
    BadResponse = 0x10,
    LocalAccess = 0x11,
    RemoteInvalidRequest = 0x12,
    RemoteAccess = 0x13,
    RemoteOperation = 0x14,
    RetryExceeded = 0x15,
    RnrRetryExceeded = 0x16,
};

}  // namespace hghca
