// SPDX-License-Identifier: GPL-2.0-or-later
// End-to-end credits by the value of an AETH (IBA vol 1, 9.7.7.2).
#pragma once

#include <cstdint>

#include "hghca_wire.h"

namespace hghca {

constexpr uint32_t kCredits[] = HGHCA_AETH_CREDITS;

}  // namespace hghca
