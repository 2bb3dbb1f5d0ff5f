// SPDX-License-Identifier: GPL-2.0-or-later
#include "qp_transition.h"

namespace hghca {

namespace {

constexpr uint8_t bit(hghca_qp_state s) { return uint8_t(1u << s); }

constexpr uint8_t kAny = 0x7f;

constexpr QpTransition kTransitions[] = {
    {HGHCA_CMD_RST2INIT_QPEE, bit(HGHCA_QP_STATE_RST), HGHCA_QP_STATE_INIT},
    {HGHCA_CMD_INIT2INIT_QPEE, bit(HGHCA_QP_STATE_INIT), HGHCA_QP_STATE_INIT},
    {HGHCA_CMD_INIT2RTR_QPEE, bit(HGHCA_QP_STATE_INIT), HGHCA_QP_STATE_RTR},
    {HGHCA_CMD_RTR2RTS_QPEE, bit(HGHCA_QP_STATE_RTR), HGHCA_QP_STATE_RTS},
    {HGHCA_CMD_RTS2RTS_QPEE, bit(HGHCA_QP_STATE_RTS), HGHCA_QP_STATE_RTS},
    {HGHCA_CMD_SQERR2RTS_QPEE, bit(HGHCA_QP_STATE_SQE), HGHCA_QP_STATE_RTS},
    {HGHCA_CMD_2ERR_QPEE, uint8_t(kAny & ~bit(HGHCA_QP_STATE_RST)), HGHCA_QP_STATE_ERR},
    {HGHCA_CMD_RTS2SQD_QPEE, bit(HGHCA_QP_STATE_RTS), HGHCA_QP_STATE_SQD},
    {HGHCA_CMD_SQD2SQD_QPEE, bit(HGHCA_QP_STATE_SQD), HGHCA_QP_STATE_SQD},
    {HGHCA_CMD_SQD2RTS_QPEE, bit(HGHCA_QP_STATE_SQD), HGHCA_QP_STATE_RTS},
    {HGHCA_CMD_ERR2RST_QPEE, kAny, HGHCA_QP_STATE_RST},
};

// Names of table A1-2.
constexpr uint32_t CUR_STATE = HGHCA_QP_ATTR_CUR_STATE;
constexpr uint32_t EN_SQD_ASYNC_NOTIFY = HGHCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY;
constexpr uint32_t ACCESS_FLAGS = HGHCA_QP_ATTR_ACCESS_FLAGS;
constexpr uint32_t PKEY_INDEX = HGHCA_QP_ATTR_PKEY_INDEX;
constexpr uint32_t PORT = HGHCA_QP_ATTR_PORT;
constexpr uint32_t QKEY = HGHCA_QP_ATTR_QKEY;
constexpr uint32_t AV = HGHCA_QP_ATTR_AV;
constexpr uint32_t PATH_MTU = HGHCA_QP_ATTR_PATH_MTU;
constexpr uint32_t TIMEOUT = HGHCA_QP_ATTR_TIMEOUT;
constexpr uint32_t RETRY_CNT = HGHCA_QP_ATTR_RETRY_CNT;
constexpr uint32_t RNR_RETRY = HGHCA_QP_ATTR_RNR_RETRY;
constexpr uint32_t RQ_PSN = HGHCA_QP_ATTR_RQ_PSN;
constexpr uint32_t MAX_QP_RD_ATOMIC = HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC;
constexpr uint32_t ALT_PATH = HGHCA_QP_ATTR_ALT_PATH;
constexpr uint32_t MIN_RNR_TIMER = HGHCA_QP_ATTR_MIN_RNR_TIMER;
constexpr uint32_t SQ_PSN = HGHCA_QP_ATTR_SQ_PSN;
constexpr uint32_t MAX_DEST_RD_ATOMIC = HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC;
constexpr uint32_t PATH_MIG_STATE = HGHCA_QP_ATTR_PATH_MIG_STATE;
constexpr uint32_t DEST_QPN = HGHCA_QP_ATTR_DEST_QPN;

constexpr uint32_t kExtensions = MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC;  // of QP_LIMITS

struct AttributeRule {
    uint16_t op;
    uint8_t service;
    uint32_t required;
    uint32_t optional;
};

// A transition and service without a row takes no attributes.
constexpr AttributeRule kRules[] = {
    {HGHCA_CMD_RST2INIT_QPEE, HGHCA_QP_ST_UD, PKEY_INDEX | PORT | QKEY, 0},
    {HGHCA_CMD_RST2INIT_QPEE, HGHCA_QP_ST_RC, PKEY_INDEX | PORT | ACCESS_FLAGS, 0},
    {HGHCA_CMD_RST2INIT_QPEE, HGHCA_QP_ST_RAW, PORT, PKEY_INDEX | QKEY},
    {HGHCA_CMD_INIT2INIT_QPEE, HGHCA_QP_ST_UD, PKEY_INDEX | PORT | QKEY, 0},
    {HGHCA_CMD_INIT2INIT_QPEE, HGHCA_QP_ST_RC, PKEY_INDEX | PORT | ACCESS_FLAGS, 0},
    {HGHCA_CMD_INIT2INIT_QPEE, HGHCA_QP_ST_RAW, PORT, PKEY_INDEX | QKEY},
    {HGHCA_CMD_INIT2RTR_QPEE, HGHCA_QP_ST_UD, 0, PKEY_INDEX | QKEY},
    {HGHCA_CMD_INIT2RTR_QPEE, HGHCA_QP_ST_RC, AV | PATH_MTU | DEST_QPN | RQ_PSN | MIN_RNR_TIMER,
     ALT_PATH | ACCESS_FLAGS | PKEY_INDEX | MAX_DEST_RD_ATOMIC},
    {HGHCA_CMD_RTR2RTS_QPEE, HGHCA_QP_ST_UD, SQ_PSN, CUR_STATE | QKEY},
    {HGHCA_CMD_RTR2RTS_QPEE, HGHCA_QP_ST_RC, TIMEOUT | RETRY_CNT | RNR_RETRY | SQ_PSN,
     CUR_STATE | ALT_PATH | ACCESS_FLAGS | MIN_RNR_TIMER | PATH_MIG_STATE | MAX_QP_RD_ATOMIC},
    {HGHCA_CMD_RTR2RTS_QPEE, HGHCA_QP_ST_RAW, 0, SQ_PSN},
    {HGHCA_CMD_RTS2RTS_QPEE, HGHCA_QP_ST_UD, 0, CUR_STATE | QKEY},
    {HGHCA_CMD_RTS2RTS_QPEE, HGHCA_QP_ST_RC, 0,
     CUR_STATE | ACCESS_FLAGS | ALT_PATH | PATH_MIG_STATE | MIN_RNR_TIMER},
    {HGHCA_CMD_RTS2SQD_QPEE, HGHCA_QP_ST_UD, 0, EN_SQD_ASYNC_NOTIFY},
    {HGHCA_CMD_RTS2SQD_QPEE, HGHCA_QP_ST_RC, 0, EN_SQD_ASYNC_NOTIFY},
    {HGHCA_CMD_RTS2SQD_QPEE, HGHCA_QP_ST_RAW, 0, EN_SQD_ASYNC_NOTIFY},
    {HGHCA_CMD_SQD2RTS_QPEE, HGHCA_QP_ST_UD, 0, CUR_STATE | QKEY},
    {HGHCA_CMD_SQD2RTS_QPEE, HGHCA_QP_ST_RC, 0,
     CUR_STATE | ALT_PATH | ACCESS_FLAGS | MIN_RNR_TIMER | PATH_MIG_STATE},
    {HGHCA_CMD_SQD2SQD_QPEE, HGHCA_QP_ST_UD, 0, PKEY_INDEX | QKEY},
    {HGHCA_CMD_SQD2SQD_QPEE, HGHCA_QP_ST_RC, 0,
     PORT | AV | TIMEOUT | RETRY_CNT | RNR_RETRY | ALT_PATH | ACCESS_FLAGS | PKEY_INDEX | MIN_RNR_TIMER |
         PATH_MIG_STATE | MAX_QP_RD_ATOMIC | MAX_DEST_RD_ATOMIC},
    {HGHCA_CMD_SQERR2RTS_QPEE, HGHCA_QP_ST_UD, 0, CUR_STATE | QKEY},
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
    mask &= ~HGHCA_QP_ATTR_STATE;
    return (mask & required) == required && !(mask & ~(required | optional));
}

}  // namespace hghca
