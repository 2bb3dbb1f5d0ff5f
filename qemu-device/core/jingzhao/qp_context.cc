// SPDX-License-Identifier: GPL-2.0-or-later
// The QP context mailbox in and out, and what may come back from ICM.
#include <algorithm>
#include <bit>
#include <cstring>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/qp_transition.h"
#include "jingzhao/translate.h"
#include "wire/static_rate.h"

namespace hghca {

namespace {

constexpr uint32_t kPort = 1;
constexpr uint32_t kMtuBase = 128;   // code c: 128 << c bytes
constexpr unsigned kMtuMaxCode = 5;
// What a QP may allow its peer; without QP_LIMITS those of the base.
constexpr uint32_t kBaseRights = HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t kRemoteRights = kBaseRights | HGHCA_ACCESS_FLUSH_GLOBAL;

unsigned mtu_code(const hghca_qpc &in) { return field_get(HGHCA_QPC_MTU_MASK, in.mtu_msgmax); }

void put_mac(std::array<uint8_t, 6> &mac, uint32_t high, uint16_t low)
{
    mac = {uint8_t(high >> 24), uint8_t(high >> 16), uint8_t(high >> 8),
           uint8_t(high),       uint8_t(low >> 8),   uint8_t(low)};
}

uint32_t mac_high(const std::array<uint8_t, 6> &m)
{
    return uint32_t(m[0]) << 24 | uint32_t(m[1]) << 16 | uint32_t(m[2]) << 8 | m[3];
}

uint16_t mac_low(const std::array<uint8_t, 6> &m) { return uint16_t(m[4] << 8 | m[5]); }

uint8_t decode_queue(Key lkey, uint32_t bytes, uint8_t stride_log, WorkQueue &q)
{
    q = {lkey, 0, stride_log, 0};
    if (!bytes)
        return HGHCA_CMD_STAT_OK;
    if (stride_log < HGHCA_WQE_MIN_STRIDE_LOG || stride_log > HGHCA_WQE_MAX_STRIDE_LOG)
        return HGHCA_CMD_STAT_BAD_PARAM;
    q.length = bytes >> stride_log;
    if (q.length << stride_log != bytes || !std::has_single_bit(q.length) || q.length > kMaxWqes)
        return HGHCA_CMD_STAT_BAD_SIZE;
    return HGHCA_CMD_STAT_OK;
}

// Word 60h. The document's queues are at the start of their regions.
uint8_t decode_queue_offset(uint32_t offset, WorkQueue &q)
{
    if (offset % kWorkQueuePage || offset / kWorkQueuePage > UINT16_MAX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    q.first_page = uint16_t(offset / kWorkQueuePage);
    return HGHCA_CMD_STAT_OK;
}

void decode_path(const hghca_qpc &in, uint32_t caps, Path &path)
{
    uint32_t word = be32(in.sl_tclass_flowlabel);
    path.by_gid = caps & HGHCA_CAP_GID_TABLE && in.g_mylmc & HGHCA_QPC_GRH;
    path.sgid_index = in.mgid_index;
    path.hop_limit = in.hop_limit;
    path.tclass = uint8_t(field_get(HGHCA_QPC_TCLASS_MASK, word));
    path.sl = uint8_t(field_get(HGHCA_QPC_SL_MASK, word));
    path.flow_label = field_get(HGHCA_QPC_FLOWLABEL_MASK, word);
    path.static_rate = in.static_rate;
    std::memcpy(path.dgid.data(), in.rgid, sizeof(in.rgid));
    put_mac(path.dmac, be32(in.dmac_h), be16(in.dlid));
    put_mac(path.smac, be32(in.smac_h), be16(in.slid));
    path.sip = be32(in.sip);
    path.dip = be32(in.dip);
}

bool plausible_queue(const WorkQueue &q)
{
    return !q.length || (std::has_single_bit(q.length) && q.stride_log >= HGHCA_WQE_MIN_STRIDE_LOG &&
                         q.stride_log <= HGHCA_WQE_MAX_STRIDE_LOG);
}

bool is_service(Service service)
{
    return service == Service::Rc || service == Service::Uc || service == Service::Ud ||
           service == Service::Xrc || service == Service::Raw;
}

bool plausible_attributes(const QpAttributes &a, Qpn qpn, const QpLimits &limits)
{
    return a.qpn == qpn && is_service(a.service) && std::has_single_bit(a.mtu) && plausible_queue(a.sq) &&
           plausible_queue(a.rq) && number(a.cqn_send) < limits.cqs && number(a.cqn_recv) < limits.cqs &&
           (a.srqn == kNoSrqn || number(a.srqn) < limits.srqs) && (!a.xrcd || a.service == Service::Xrc) &&
           is_static_rate(a.path.static_rate) && !(a.access & ~kRemoteRights) &&
           (!a.vendor_ops || (a.service == Service::Rc && limits.caps & HGHCA_CAP_VENDOR_OPS));
}

bool plausible_congestion(const CongestionState &c)
{
    return c.rate != CongestionState::Rate::Reduced || (c.current_kbps && c.current_kbps <= c.target_kbps);
}

bool plausible_requester(const RequesterState &r, const WorkQueue &sq)
{
    return !r.oldest.valid || uint16_t(r.next_index - r.oldest.index) <= sq.length;
}

// A step does not look again at what its request was refused for.
bool plausible_reply(const Reply &reply, const QpAttributes &a)
{
    switch (reply.kind) {
    case ReplyKind::Pointer:
        return a.vendor_ops && reply.length && reply.length <= a.mtu && reply.steps < kMaxElements &&
               is_search(reply.search);
    case ReplyKind::Consistent:
        return a.vendor_ops && reply.length > kObjectCrcBytes && reply.length <= a.mtu && reply.steps < kMaxTries;
    default:
        return true;
    }
}

bool plausible_responder(const ResponderState &s, const QpAttributes &a)
{
    return std::all_of(s.replies.begin(), s.replies.end(), [&a](const Reply &r) { return plausible_reply(r, a); });
}

}  // namespace

uint8_t decode_new_qp(const hghca_qpc &in, Qpn qpn, const QpLimits &limits, QpAttributes &a)
{
    a = {};
    a.qpn = qpn;
    a.service = service_of(field_get(HGHCA_QPC_ST_MASK, be32(in.flags)));
    const uint32_t needed = a.service == Service::Raw   ? HGHCA_CAP_PORT
                            : a.service == Service::Xrc ? HGHCA_CAP_XRC
                                                           : 0;
    const bool known = is_service(a.service) && !(needed & ~limits.caps);
    a.usr_page = uar_index(be32(in.usr_page));
    a.pd = be32(in.pd);
    a.cqn_send = Cqn(be32(in.cqn_snd));
    a.cqn_recv = Cqn(be32(in.cqn_rcv));
    const bool xrc = a.service == Service::Xrc;
    if (limits.caps & HGHCA_CAP_SRQ && a.service != Service::Raw)
        a.srqn = Srqn(be32(in.srqn));
    if (xrc)
        a.xrcd = be32(in.xrcd);
    a.trusted = limits.caps & HGHCA_CAP_MEM_MGT && be32(in.trust) & HGHCA_QPC_TRUST_REG_MR;
    a.vendor_ops = limits.caps & HGHCA_CAP_VENDOR_OPS && be32(in.trust) & HGHCA_QPC_TRUST_VENDOR_OPS;
    const uint32_t counter_set = limits.caps & HGHCA_CAP_QP_COUNTERS ? be32(in.counter_set) : 0;
    a.counter_set = uint16_t(counter_set);
    uint64_t dbr = be64(in.dbr_addr);
    if (limits.caps & HGHCA_CAP_DBR && dbr & HGHCA_DBR_VALID)
        a.dbr_addr = dbr & ~HGHCA_DBR_VALID;
    unsigned code = mtu_code(in);
    const bool shared = a.srqn != kNoSrqn;
    if (!known || Qpn(be32(in.local_qpn)) != qpn || number(a.cqn_send) >= limits.cqs ||
        number(a.cqn_recv) >= limits.cqs || a.dbr_addr % sizeof(hghca_qp_dbr) || code > kMtuMaxCode ||
        ((shared || xrc) && in.rcv_wqe_len) || (xrc && shared) || a.xrcd > kMaxXrcd || (a.xrcd && in.snd_wqe_len) ||
        counter_set >= kCounterSets || (a.vendor_ops && a.service != Service::Rc))
        return HGHCA_CMD_STAT_BAD_PARAM;
    a.mtu = kMtuBase << (code ? code : kMtuMaxCode);
    a.log_max_msg = in.mtu_msgmax & HGHCA_QPC_MSGMAX_MASK;
    // Until the transitions say otherwise, and for ever without QP_LIMITS.
    a.max_rd_atomic = 1;
    a.max_dest_rd_atomic = 1;
    a.retry_count = 7;
    if (uint8_t status = decode_queue(Key(be32(in.snd_wqe_base_l)), be32(in.snd_wqe_len), in.sq_entry_sz_log, a.sq))
        return status;
    if (uint8_t status = decode_queue(Key(be32(in.rcv_wqe_base_l)), be32(in.rcv_wqe_len), in.rq_entry_sz_log, a.rq))
        return status;
    if (!(limits.caps & HGHCA_CAP_RQ_OFFSET) || !a.rq.length)
        return HGHCA_CMD_STAT_OK;
    return decode_queue_offset(be32(in.wqe_base), a.rq);
}

uint8_t decode_attributes(const hghca_qpc &in, uint32_t mask, const QpLimits &limits, QpAttributes &a)
{
    uint32_t word = be32(in.limits);
    bool live_limits = limits.caps & HGHCA_CAP_QP_LIMITS;
    bool good = true;

    if (mask & HGHCA_QP_ATTR_PORT)
        good = good && field_get(HGHCA_QPC_PORT_MASK, be32(in.port_pkey)) == kPort;
    if (mask & HGHCA_QP_ATTR_PKEY_INDEX) {
        a.pkey_index = uint16_t(field_get(HGHCA_QPC_PKEY_INDEX_MASK, be32(in.port_pkey)));
        good = good && a.pkey_index == 0;
    }
    if (mask & HGHCA_QP_ATTR_ACCESS_FLAGS)
        a.access = live_limits ? uint8_t(field_get(HGHCA_QPC_LIMITS_ACCESS, word) & kRemoteRights) : kBaseRights;
    if (mask & HGHCA_QP_ATTR_QKEY)
        a.qkey = be32(in.qkey);
    if (mask & HGHCA_QP_ATTR_AV) {
        decode_path(in, limits.caps, a.path);
        good = good && a.path.sgid_index < Port::kGids && is_static_rate(a.path.static_rate);
    }
    if (mask & HGHCA_QP_ATTR_PATH_MTU) {
        unsigned code = mtu_code(in);
        good = good && code >= 1 && code <= kMtuMaxCode;
        a.mtu = kMtuBase << code;
    }
    if (mask & HGHCA_QP_ATTR_DEST_QPN) {
        a.remote_qpn = Qpn(be32(in.remote_qpn));
        good = good && number(a.remote_qpn) <= 0xffffff;
    }
    if (mask & HGHCA_QP_ATTR_MIN_RNR_TIMER) {
        a.min_rnr_timer = uint8_t(field_get(HGHCA_QPC_RNR_TIMER_MASK, be32(in.rnr_nextrecvpsn)));
        good = good && a.min_rnr_timer <= 31;
    }
    if (mask & HGHCA_QP_ATTR_TIMEOUT)
        a.ack_timeout = in.ackto & 0x1f;
    if (mask & HGHCA_QP_ATTR_RNR_RETRY)
        a.rnr_retry = in.rnr_retry & 7;
    if (mask & HGHCA_QP_ATTR_RETRY_CNT && live_limits)
        a.retry_count = uint8_t(field_get(HGHCA_QPC_LIMITS_RETRY_CNT, word));
    if (mask & HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC) {
        // 0 would leave a READ that is posted all the same waiting for ever.
        uint32_t n = field_get(HGHCA_QPC_LIMITS_RD_ATOMIC, word);
        good = good && n <= kMaxRdAtomic;
        a.max_rd_atomic = uint8_t(std::max(n, 1u));
    }
    if (mask & HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC) {
        a.max_dest_rd_atomic = uint8_t(field_get(HGHCA_QPC_LIMITS_DEST_RD_ATOMIC, word));
        good = good && a.max_dest_rd_atomic <= kMaxRdAtomic;
    }
    if (mask & HGHCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY)
        a.sqd_notify = live_limits && word & HGHCA_QPC_LIMITS_SQD_NOTIFY;
    return good ? HGHCA_CMD_STAT_OK : HGHCA_CMD_STAT_BAD_PARAM;
}

void encode_context(const Qp &qp, hghca_qpc &out)
{
    const QpAttributes &a = qp.a;
    bool draining = qp.state == QpState::Sqd && !qp.drained_sent;
    unsigned code = unsigned(std::countr_zero(a.mtu / kMtuBase));
    out = {};
    out.flags = be32(field_put(HGHCA_QPC_STATE_MASK, state_number(qp.state)) |
                     field_put(HGHCA_QPC_ST_MASK, service_number(a.service)) |
                     (draining ? HGHCA_QPC_SQ_DRAINING : 0));
    out.mtu_msgmax = uint8_t(field_put(HGHCA_QPC_MTU_MASK, code) | a.log_max_msg);
    out.rq_entry_sz_log = a.rq.stride_log;
    out.sq_entry_sz_log = a.sq.stride_log;
    out.usr_page = be32(a.usr_page);
    out.local_qpn = be32(number(a.qpn));
    out.remote_qpn = be32(number(a.remote_qpn));
    out.port_pkey = be32(field_put(HGHCA_QPC_PORT_MASK, kPort) | a.pkey_index);
    out.rnr_retry = a.rnr_retry;
    out.g_mylmc = a.path.by_gid ? HGHCA_QPC_GRH : 0;
    out.ackto = a.ack_timeout;
    out.mgid_index = a.path.sgid_index;
    out.static_rate = a.path.static_rate;
    out.hop_limit = a.path.hop_limit;
    out.sl_tclass_flowlabel = be32(field_put(HGHCA_QPC_SL_MASK, a.path.sl) |
                                   field_put(HGHCA_QPC_TCLASS_MASK, a.path.tclass) | a.path.flow_label);
    std::memcpy(out.rgid, a.path.dgid.data(), sizeof(out.rgid));
    out.dlid = be16(mac_low(a.path.dmac));
    out.slid = be16(mac_low(a.path.smac));
    out.smac_h = be32(mac_high(a.path.smac));
    out.dmac_h = be32(mac_high(a.path.dmac));
    out.sip = be32(a.path.sip);
    out.dip = be32(a.path.dip);
    out.pd = be32(a.pd);
    out.wqe_base = be32(a.rq.first_page * kWorkQueuePage);
    out.next_send_psn = be32(number(qp.req.next_psn));
    out.cqn_snd = be32(number(a.cqn_send));
    out.snd_wqe_base_l = be32(number(a.sq.lkey));
    out.snd_wqe_len = be32(a.sq.length << a.sq.stride_log);
    out.last_acked_psn = be32(number(psn_before(qp.req.unacked_psn)));
    out.ssn = be32(number(qp.req.messages_sent));
    out.rnr_nextrecvpsn =
        be32(field_put(HGHCA_QPC_RNR_TIMER_MASK, a.min_rnr_timer) | number(qp.resp.expected_psn));
    out.cqn_rcv = be32(number(a.cqn_recv));
    out.rcv_wqe_base_l = be32(number(a.rq.lkey));
    out.rcv_wqe_len = be32(a.rq.length << a.rq.stride_log);
    out.qkey = be32(a.qkey);
    out.rmsn = be32(number(qp.resp.msn));
    out.dbr_addr = be64(a.dbr_addr ? a.dbr_addr | HGHCA_DBR_VALID : 0);
    out.limits = be32(field_put(HGHCA_QPC_LIMITS_RD_ATOMIC, a.max_rd_atomic) |
                      field_put(HGHCA_QPC_LIMITS_DEST_RD_ATOMIC, a.max_dest_rd_atomic) |
                      (a.sqd_notify ? HGHCA_QPC_LIMITS_SQD_NOTIFY : 0) |
                      field_put(HGHCA_QPC_LIMITS_RETRY_CNT, a.retry_count) | a.access);
    out.srqn = be32(number(a.srqn));
    out.xrcd = be32(a.xrcd);
    out.trust = be32((a.trusted ? HGHCA_QPC_TRUST_REG_MR : 0) | (a.vendor_ops ? HGHCA_QPC_TRUST_VENDOR_OPS : 0));
    out.counter_set = be32(a.counter_set);
    out.rq_wqe_counter = be16(qp.resp.rq_index);
    out.sq_wqe_counter = be16(qp.req.next_index);
}

// What no bound of a field says (qp_fields.h): the relations between fields, and the limits of INIT_HCA.
bool plausible(const Qp &qp, Qpn qpn, const QpLimits &limits)
{
    return plausible_attributes(qp.a, qpn, limits) && plausible_congestion(qp.congestion) &&
           plausible_requester(qp.req, qp.a.sq) && plausible_responder(qp.resp, qp.a);
}

}  // namespace hghca
