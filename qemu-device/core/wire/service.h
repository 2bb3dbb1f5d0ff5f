// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

namespace hghca {

// What a QP offers: IBA vol 1, 9.1. The opcodes of packets are those of a service.
enum class Service : uint8_t {
    Rc = 0,
    Uc = 1,
    Ud = 3,
    Xrc = 6,
    Raw = 7,   // frames as they are
};

}  // namespace hghca
