// SPDX-License-Identifier: GPL-2.0-or-later
// QP transitions as data, and the QP context mailbox (interface document, 4.9).
#pragma once

#include <cstdint>

#include "hghca_hw.h"
#include "transport/qp.h"

namespace hghca {

struct QpTransition {
    uint16_t op;
    uint8_t from;           // bit s: from state s
    hghca_qp_state to;
};

// nullptr: `op` is no transition.
const QpTransition *find_transition(uint16_t op);

// Whether opt_param_mask `mask` carries what `op` requires for `service`, and
// nothing it does not allow.
bool attributes_allowed(uint16_t op, uint8_t service, uint32_t mask, uint32_t caps);

struct QpLimits {
    uint32_t caps;
    uint32_t cqs;
    uint32_t srqs;
};

// What RST2INIT takes beside attributes. An HGHCA_CMD_STAT_*.
uint8_t decode_new_qp(const hghca_qpc &in, Qpn qpn, const QpLimits &limits, QpAttributes &a);
// The attributes that `mask` names.
uint8_t decode_attributes(const hghca_qpc &in, uint32_t mask, const QpLimits &limits, QpAttributes &a);
// The whole context, with the live values.
void encode_context(const Qp &qp, hghca_qpc &out);

// Whether `qp`, which comes from ICM, can be used without fear.
bool plausible(const Qp &qp, Qpn qpn, const QpLimits &limits);

}  // namespace hghca
