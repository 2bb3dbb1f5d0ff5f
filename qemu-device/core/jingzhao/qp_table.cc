// SPDX-License-Identifier: GPL-2.0-or-later
// QPs by number (interface document, 4.9, 4.10).
#include "device.h"
#include "jingzhao/qp_transition.h"
#include "jingzhao/srq.h"
#include "jingzhao/translate.h"
#include "byte_order.h"
#include "jingzhao/cq.h"
#include "jingzhao/qp_table.h"
#include "transport/transport.h"

namespace hghca {

QpTable::QpTable(Device &device) : device_(device), cache_(*device.icm, device.counters_, device.work) {}

void QpTable::configure(uint64_t base, unsigned log_count) { cache_.configure(base, 1ull << log_count); }

void QpTable::clear() { cache_.clear(); }

void QpTable::trim(size_t capacity) { cache_.trim(capacity); }

bool QpTable::write_back(uint64_t from, uint64_t length) { return cache_.write_back(from, length); }

void QpTable::forget(uint64_t from, uint64_t length) { cache_.forget(from, length); }

Qp *QpTable::find(Qpn qpn)
{
    const auto valid = [this](const Qp &q, uint32_t n) { return plausible(q, Qpn(n), limits()); };
    return prepare(cache_.find(number(qpn), valid).context, qpn);
}

uint8_t QpTable::find_for_command(Qpn qpn, Qp *&out)
{
    const auto valid = [this](const Qp &q, uint32_t n) { return plausible(q, Qpn(n), limits()); };
    const uint8_t status = cache_.find_for_command(number(qpn), valid, out);
    prepare(out, qpn);
    return status;
}

Qpn QpTable::gsi_qpn() const { return device_.gsi_qpn; }

// What is found is as the transport needs it.
Qp *QpTable::prepare(Qp *qp, Qpn qpn)
{
    if (!qp)
        return nullptr;
    cache_.mark_dirty(*qp);  // the transport changes what it finds
    // The device knows which QPs are special; what ICM says of it does not count.
    qp->a.special = qpn == device_.gsi_qpn   ? Special::Gsi
                    : qpn == device_.raw_qpn ? Special::RawEthernet
                                             : Special::None;
    return qp;
}

bool QpTable::may_be_raw(Qpn qpn)
{
    if (qpn == kNoQpn || number(qpn) >= count() || qpn == device_.raw_qpn)
        return false;
    // One in RST may become anything; that is seen again with each frame.
    const Qp *qp = find(qpn);
    return !qp || qp->a.service == Service::Raw;
}

QpLimits QpTable::limits() const
{
    return {device_.caps, uint32_t(device_.cqs->count()), uint32_t(device_.srqs->count())};
}

// RST: the QP ceases to exist.
void QpTable::destroy(Qp &qp)
{
    const Qpn qpn = qp.a.qpn;
    QpState from = qp.state;
    qp.state = QpState::Reset;
    device_.transport->state_changed(qp, from);
    if (device_.gsi_qpn == qpn)
        device_.gsi_qpn = kNoQpn;
    if (device_.raw_qpn == qpn)
        device_.raw_qpn = kNoQpn;
    cache_.erase(number(qpn));
}

uint8_t QpTable::transition(uint16_t op, Qpn qpn, uint8_t op_modifier, const hghca_qpc *context)
{
    const QpTransition *t = find_transition(op);
    if (!t)
        return HGHCA_CMD_STAT_BAD_OP;
    const QpState to = state_of(t->to);
    bool closing = to == QpState::Error || to == QpState::Reset;
    if (op_modifier == HGHCA_QP_OPMOD_NO_INBOX ? !closing : !context)
        return HGHCA_CMD_STAT_BAD_PARAM;
    Qp *qp;
    if (uint8_t status = find_for_command(qpn, qp))
        return status;

    QpState from = qp ? qp->state : QpState::Reset;
    if (!(t->from >> state_number(from) & 1))
        return HGHCA_CMD_STAT_BAD_QPEE_STATE;

    uint32_t mask = context ? be32(context->opt_param_mask) : 0;
    QpAttributes a{};
    if (qp) {
        a = qp->a;
    } else if (to == QpState::Init) {
        if (uint8_t status = decode_new_qp(*context, qpn, limits(), a))
            return status;
        if (a.srqn != kNoSrqn && !device_.srqs->is_basic(a.srqn))
            return HGHCA_CMD_STAT_BAD_PARAM;
    }
    if (!offers(a.service, qpn, to) || !attributes_allowed(op, service_number(a.service), mask, device_.caps))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (mask & HGHCA_QP_ATTR_CUR_STATE &&
        field_get(HGHCA_QPC_STATE_MASK, be32(context->flags)) != state_number(from))
        return HGHCA_CMD_STAT_BAD_QPEE_STATE;
    if (to == QpState::Sqd && from == QpState::Rts)
        a.sqd_notify = false;  // each transition asks for it
    if (mask)
        if (uint8_t status = decode_attributes(*context, mask, limits(), a))
            return status;

    if (to == QpState::Reset) {
        if (qp)
            destroy(*qp);
        else
            device_.transport->forget_packets(qpn);   // its context may be lost in ICM
        return HGHCA_CMD_STAT_OK;
    }
    if (!qp) {
        Qp fresh{};
        fresh.req.next_index = fresh.req.doorbell_limit = be16(context->sq_wqe_counter);
        fresh.resp.rq_index = be16(context->rq_wqe_counter);
        qp = &cache_.insert(number(qpn), fresh);
    }
    qp->a = a;
    qp->state = to;
    if (mask & HGHCA_QP_ATTR_SQ_PSN) {
        const Psn psn = psn_of(be32(context->next_send_psn));
        RequesterState &r = qp->req;
        r.next_psn = r.next_wqe_psn = r.unacked_psn = r.highest_psn = r.oldest_psn = psn;
    }
    if (mask & HGHCA_QP_ATTR_RQ_PSN)
        qp->resp.expected_psn = psn_of(be32(context->rnr_nextrecvpsn));
    if (mask & HGHCA_QP_ATTR_AV) {
        qp->pace = {};   // that was of another path
        qp->congestion = {};
    }
    if (to == QpState::Sqd && from == QpState::Rts)
        qp->drained_sent = false;
    device_.transport->state_changed(*qp, from);
    return HGHCA_CMD_STAT_OK;
}

// RSNIC has RC, Ethernet frames and QP 1, which a QP in INIT becomes by CONF_SPECIAL_QP.
bool QpTable::offers(Service service, Qpn qpn, QpState to) const
{
    if (device_.config.profile != Profile::Rsnic || to == QpState::Error || to == QpState::Reset)
        return true;
    if (service == Service::Ud)
        return to == QpState::Init || qpn == device_.gsi_qpn;
    return service == Service::Rc || service == Service::Raw;
}

uint8_t QpTable::query(Qpn qpn, hghca_qpc &out)
{
    Qp *qp;
    if (uint8_t status = find_for_command(qpn, qp))
        return status;
    if (qp) {
        encode_context(*qp, out);
        out.rate = be32(device_.transport->reduced_kbps(*qp));
    } else {
        out = {};
        out.local_qpn = be32(number(qpn));
    }
    return HGHCA_CMD_STAT_OK;
}

uint8_t QpTable::configure_special(Qpn qpn, uint8_t type)
{
    bool raw = type == HGHCA_SPECIAL_QP_RAW_ETH && device_.caps & HGHCA_CAP_PORT;
    if (!raw && type != HGHCA_SPECIAL_QP_GSI)
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (qpn != kNoQpn) {
        Qp *qp;
        if (uint8_t status = find_for_command(qpn, qp))
            return status;
        if (!qp)
            return HGHCA_CMD_STAT_BAD_QPEE_STATE;
        if (qp->a.service != (raw ? Service::Raw : Service::Ud))
            return HGHCA_CMD_STAT_BAD_PARAM;
    }
    (raw ? device_.raw_qpn : device_.gsi_qpn) = qpn;
    return HGHCA_CMD_STAT_OK;
}

uint8_t QpTable::resume(Qpn qpn, uint32_t what)
{
    Qp *qp;
    if (uint8_t status = find_for_command(qpn, qp))
        return status;
    if (!qp)
        return HGHCA_CMD_STAT_BAD_QPEE_STATE;
    const Side side = what & HGHCA_RESUME_RESPONDER ? Side::Responder : Side::Requester;
    const auto token = uint16_t(field_get(HGHCA_RESUME_TOKEN_MASK, what));
    const Resumed resumed = device_.transport->resume(*qp, side, token, what & HGHCA_RESUME_FAILED);
    return resumed == Resumed::Yes ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_RES_STATE;
}

uint8_t QpTable::set_counter(Qpn qpn, uint64_t set)
{
    Qp *qp;
    if (uint8_t status = find_for_command(qpn, qp))
        return status;
    if (set >= kCounterSets)
        return HGHCA_CMD_STAT_BAD_INDEX;
    if (!qp)
        return HGHCA_CMD_STAT_BAD_QPEE_STATE;
    qp->a.counter_set = uint16_t(set);
    return HGHCA_CMD_STAT_OK;
}

}  // namespace hghca
