// SPDX-License-Identifier: GPL-2.0-or-later
// The structure of capabilities of RSNIC (docs/reference/rsnic.rst, 5).
#pragma once

#include <cstdint>

#include "hghca_hw.h"

namespace hghca {

class Device;

// QPs that RSNIC has, QP 1 included.
constexpr uint32_t kRsnicQps = 255;
constexpr unsigned kRsnicLogQps = 8;
// Contexts of QPs that stay on chip unless the configuration has another number.
constexpr size_t kRsnicCachedQps = 500;

// The members that are not set have no meaning here, or are off; the page says why.
hghca_rsnic_caps rsnic_caps(const Device &device, const hghca_dev_lim &lim);

}  // namespace hghca
