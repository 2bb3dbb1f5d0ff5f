// SPDX-License-Identifier: GPL-2.0-or-later
// The numbers of QPs, CQs and SRQs, and memory keys. They are types of their own: none of them is another one, an index
// or a length.
#pragma once

#include <cstdint>

#include "hghca_wire.h"

namespace hghca {

enum class Qpn : uint32_t {};
enum class Cqn : uint32_t {};
enum class Srqn : uint32_t {};
// An L_Key or an R_Key: both name what stands in one table.
enum class Key : uint32_t {};

constexpr uint32_t number(Qpn qpn) { return uint32_t(qpn); }
constexpr uint32_t number(Cqn cqn) { return uint32_t(cqn); }
constexpr uint32_t number(Srqn srqn) { return uint32_t(srqn); }
constexpr uint32_t number(Key key) { return uint32_t(key); }

// Where there need not be one, 0 stands for none.
constexpr Qpn kNoQpn{0};
constexpr Cqn kNoCqn{0};
constexpr Srqn kNoSrqn{0};

// What packets for QP number 1, and those for a multicast group, are addressed to.
constexpr Qpn kGsiQpn{HGHCA_QPN_GSI};
constexpr Qpn kMulticastQpn{HGHCA_QPN_MULTICAST};

}  // namespace hghca
