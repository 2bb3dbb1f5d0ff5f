// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/qp_transition.h"

namespace hghca {

namespace {

constexpr QpTransition kTransitions[] = {
#define HGHCA_TRANSITION_ROW(name, from, to) {HGHCA_CMD_##name##_QPEE, HGHCA_QP_STATES_##from, HGHCA_QP_STATE_##to},
    HGHCA_QP_TRANSITIONS(HGHCA_TRANSITION_ROW)
#undef HGHCA_TRANSITION_ROW
};

constexpr uint32_t kExtensions = HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC | HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC;  // of QP_LIMITS

struct AttributeRule {
    uint16_t op;
    uint8_t service;
    uint32_t required;
    uint32_t optional;
};

constexpr AttributeRule kRules[] = {
#define HGHCA_RULE_ROW(transition, service, required, optional) \
    {HGHCA_CMD_##transition##_QPEE, HGHCA_QP_ST_##service, required, optional},
    HGHCA_QP_RULES(HGHCA_RULE_ROW, HGHCA_QP_ATTR_OF)
#undef HGHCA_RULE_ROW
};

}  // namespace

const QpTransition *find_transition(uint16_t op)
{
    for (const QpTransition &t : kTransitions)
        if (t.op == op)
            return &t;
    return nullptr;
}

bool attributes_allowed(uint16_t op, uint8_t service, uint32_t mask, uint32_t caps)
{
    uint32_t required = 0, optional = 0;
    for (const AttributeRule &rule : kRules) {
        if (rule.op == op && rule.service == service) {
            required = rule.required;
            optional = rule.optional;
        }
    }
    if (!(caps & HGHCA_CAP_QP_LIMITS))
        optional &= ~kExtensions;
    mask &= ~uint32_t(HGHCA_QP_ATTR_STATE);
    return (mask & required) == required && !(mask & ~(required | optional));
}

}  // namespace hghca
