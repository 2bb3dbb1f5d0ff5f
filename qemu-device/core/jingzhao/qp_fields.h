// SPDX-License-Identifier: GPL-2.0-or-later
// The table of the fields of a QP (context_fields.h).
#pragma once

#include "counters.h"
#include "jingzhao/context_fields.h"
#include "port/port.h"
#include "transport/qp.h"

namespace hghca {

template <>
struct Layout<Path> {
    static constexpr auto kFields =
        fields(field("by_gid", &Path::by_gid, 0x00, FieldAccess::Command),
               field("sgid_index", &Path::sgid_index, 0x01, FieldAccess::Command, up_to(kMaxGids - 1)),
               field("hop_limit", &Path::hop_limit, 0x02, FieldAccess::Command),
               field("tclass", &Path::tclass, 0x03, FieldAccess::Command),
               field("sl", &Path::sl, 0x04, FieldAccess::Command, up_to(15)),
               field("static_rate", &Path::static_rate, 0x05, FieldAccess::Command, up_to(HGHCA_STATIC_RATE_MAX)),
               field("flow_label", &Path::flow_label, 0x08, FieldAccess::Command, up_to(0xfffff)),
               field("dgid", &Path::dgid, 0x0c, FieldAccess::Command),
               field("dmac", &Path::dmac, 0x1c, FieldAccess::Command),
               field("smac", &Path::smac, 0x22, FieldAccess::Command),
               field("sip", &Path::sip, 0x28, FieldAccess::Command),
               field("dip", &Path::dip, 0x2c, FieldAccess::Command));
};

template <>
struct Layout<WorkQueue> {
    static constexpr auto kFields =
        fields(field("lkey", &WorkQueue::lkey, 0x00, FieldAccess::ReadOnly),
               field("length", &WorkQueue::length, 0x04, FieldAccess::ReadOnly, up_to(kMaxWqes)),
               field("stride_log", &WorkQueue::stride_log, 0x08, FieldAccess::ReadOnly),
               field("first_page", &WorkQueue::first_page, 0x0a, FieldAccess::ReadOnly));
};

template <>
struct Layout<QpAttributes> {
    using A = QpAttributes;
    static constexpr auto kFields = fields(
        field("qpn", &A::qpn, 0x00, FieldAccess::ReadOnly, kNumber24),
        field("service", &A::service, 0x04, FieldAccess::ReadOnly, up_to(UINT8_MAX)),
        field("special", &A::special, 0x05, FieldAccess::Command, up_to(uint64_t(Special::RawEthernet))),
        field("log_max_msg", &A::log_max_msg, 0x06, FieldAccess::ReadOnly, up_to(31)),
        field("pkey_index", &A::pkey_index, 0x08, FieldAccess::Command, up_to(0)),
        field("mtu", &A::mtu, 0x0c, FieldAccess::Command, {256, 4096}),
        field("usr_page", &A::usr_page, 0x10, FieldAccess::ReadOnly, up_to(HGHCA_UAR_PAGES - 1)),
        field("pd", &A::pd, 0x14, FieldAccess::ReadOnly), group("sq", &A::sq, 0x18), group("rq", &A::rq, 0x24),
        field("cqn_send", &A::cqn_send, 0x30, FieldAccess::ReadOnly),
        field("cqn_recv", &A::cqn_recv, 0x34, FieldAccess::ReadOnly),
        field("dbr_addr", &A::dbr_addr, 0x38, FieldAccess::ReadOnly),
        field("srqn", &A::srqn, 0x40, FieldAccess::ReadOnly),
        field("xrcd", &A::xrcd, 0x44, FieldAccess::ReadOnly, up_to(kMaxXrcd)),
        field("remote_qpn", &A::remote_qpn, 0x48, FieldAccess::Command, kNumber24),
        field("qkey", &A::qkey, 0x4c, FieldAccess::Command), group("path", &A::path, 0x50),
        field("ack_timeout", &A::ack_timeout, 0x80, FieldAccess::Command, up_to(31)),
        field("retry_count", &A::retry_count, 0x81, FieldAccess::Command, up_to(7)),
        field("rnr_retry", &A::rnr_retry, 0x82, FieldAccess::Command, up_to(7)),
        field("min_rnr_timer", &A::min_rnr_timer, 0x83, FieldAccess::Command, up_to(31)),
        field("max_rd_atomic", &A::max_rd_atomic, 0x84, FieldAccess::Command, {1, kMaxRdAtomic}),
        field("max_dest_rd_atomic", &A::max_dest_rd_atomic, 0x85, FieldAccess::Command, up_to(kMaxRdAtomic)),
        field("access", &A::access, 0x86, FieldAccess::Command),
        field("sqd_notify", &A::sqd_notify, 0x87, FieldAccess::Command),
        field("trusted", &A::trusted, 0x88, FieldAccess::ReadOnly),
        field("vendor_ops", &A::vendor_ops, 0x89, FieldAccess::ReadOnly),
        field("counter_set", &A::counter_set, 0x8a, FieldAccess::Command, up_to(kCounterSets - 1)),
        // This function has the port's P_Key, and retries that end.
        field("pkey", &A::pkey, 0x8c, FieldAccess::ReadOnly, up_to(0)),
        field("retries_forever", &A::retries_forever, 0x8e, FieldAccess::ReadOnly, up_to(0)));
};

template <>
struct Layout<WqeRef> {
    static constexpr auto kFields = fields(field("index", &WqeRef::index, 0x00, FieldAccess::Device),
                                           field("opcode", &WqeRef::opcode, 0x02, FieldAccess::Device),
                                           field("units", &WqeRef::units, 0x03, FieldAccess::Device),
                                           field("fence", &WqeRef::fence, 0x04, FieldAccess::Device),
                                           field("valid", &WqeRef::valid, 0x05, FieldAccess::Device));
};

template <>
struct Layout<PageFault> {
    static constexpr auto kFields = fields(
        field("state", &PageFault::state, 0x00, FieldAccess::Device, up_to(uint64_t(PageFault::State::Failed))),
        field("token", &PageFault::token, 0x02, FieldAccess::Device),
        field("key", &PageFault::key, 0x04, FieldAccess::Device),
        field("va", &PageFault::va, 0x08, FieldAccess::Device));
};

template <>
struct Layout<RequesterState> {
    using R = RequesterState;
    static constexpr auto kFields = fields(
        group("oldest", &R::oldest, 0x00), group("next", &R::next, 0x08), group("announced", &R::announced, 0x10),
        field("oldest_psn", &R::oldest_psn, 0x18, FieldAccess::Device, kNumber24),
        field("next_wqe_psn", &R::next_wqe_psn, 0x1c, FieldAccess::Device, kNumber24),
        field("next_psn", &R::next_psn, 0x20, FieldAccess::Device, kNumber24),
        field("next_index", &R::next_index, 0x24, FieldAccess::Device),
        field("started_index", &R::started_index, 0x26, FieldAccess::Device),
        field("doorbell_limit", &R::doorbell_limit, 0x28, FieldAccess::Device),
        field("since_ack_request", &R::since_ack_request, 0x2a, FieldAccess::Device),
        field("unacked_psn", &R::unacked_psn, 0x2c, FieldAccess::Device, kNumber24),
        field("highest_psn", &R::highest_psn, 0x30, FieldAccess::Device, kNumber24),
        field("requests_in_flight", &R::requests_in_flight, 0x34, FieldAccess::Device),
        field("reads_outstanding", &R::reads_outstanding, 0x38, FieldAccess::Device, up_to(kMaxRdAtomic)),
        field("fault", &R::fault, 0x3c, FieldAccess::Device, up_to(UINT8_MAX)),
        field("retries_left", &R::retries_left, 0x3d, FieldAccess::Device, up_to(7)),
        field("rnr_retries_left", &R::rnr_retries_left, 0x3e, FieldAccess::Device, up_to(7)),
        field("rnr_in_row", &R::rnr_in_row, 0x3f, FieldAccess::Device),
        field("waiting_timer", &R::waiting_timer, 0x40, FieldAccess::Device),
        field("probing", &R::probing, 0x41, FieldAccess::Device),
        field("response_lost", &R::response_lost, 0x42, FieldAccess::Device),
        field("has_limit", &R::has_limit, 0x43, FieldAccess::Device),
        field("messages_done", &R::messages_done, 0x44, FieldAccess::Device, kNumber24),
        field("messages_sent", &R::messages_sent, 0x48, FieldAccess::Device, kNumber24),
        field("message_limit", &R::message_limit, 0x4c, FieldAccess::Device, kNumber24),
        field("deadline_ns", &R::deadline_ns, 0x50, FieldAccess::Device), group("page", &R::page, 0x58));
};

template <>
struct Layout<AtomicResult> {
    static constexpr auto kFields = fields(field("psn", &AtomicResult::psn, 0x00, FieldAccess::Device, kNumber24),
                                           field("valid", &AtomicResult::valid, 0x04, FieldAccess::Device),
                                           field("value", &AtomicResult::value, 0x08, FieldAccess::Device));
};

template <>
struct Layout<Reply> {
    static constexpr auto kFields =
        fields(field("kind", &Reply::kind, 0x00, FieldAccess::Device, up_to(uint64_t(ReplyKind::Consistent))),
               field("syndrome", &Reply::syndrome, 0x01, FieldAccess::Device),
               field("first", &Reply::first, 0x02, FieldAccess::Device),
               field("asked_again", &Reply::asked_again, 0x03, FieldAccess::Device),
               field("psn", &Reply::psn, 0x04, FieldAccess::Device, kNumber24),
               field("msn", &Reply::msn, 0x08, FieldAccess::Device, kNumber24),
               field("rkey", &Reply::rkey, 0x0c, FieldAccess::Device),
               field("va", &Reply::va, 0x10, FieldAccess::Device),
               field("length", &Reply::length, 0x18, FieldAccess::Device, up_to(kMaxMessage)),
               field("pd", &Reply::pd, 0x1c, FieldAccess::Device),
               field("value", &Reply::value, 0x20, FieldAccess::Device),
               field("steps", &Reply::steps, 0x28, FieldAccess::Device),
               field("search", &Reply::search, 0x2c, FieldAccess::Device));
};

template <>
struct Layout<SharedWqe> {
    static constexpr auto kFields = fields(field("offset", &SharedWqe::offset, 0x00, FieldAccess::Device),
                                           field("epoch", &SharedWqe::epoch, 0x04, FieldAccess::Device));
};

template <>
struct Layout<ResponderState> {
    using R = ResponderState;
    static constexpr auto kFields = fields(
        field("expected_psn", &R::expected_psn, 0x00, FieldAccess::Device, kNumber24),
        field("msn", &R::msn, 0x04, FieldAccess::Device, kNumber24),
        field("rq_index", &R::rq_index, 0x08, FieldAccess::Device),
        field("in_message", &R::in_message, 0x0a, FieldAccess::Device),
        field("holds_shared", &R::holds_shared, 0x0b, FieldAccess::Device),
        field("last_wqe_raised", &R::last_wqe_raised, 0x0c, FieldAccess::Device),
        field("message", &R::message, 0x0d, FieldAccess::Device, up_to(uint64_t(MessageKind::Part))),
        field("nak_sent", &R::nak_sent, 0x0e, FieldAccess::Device),
        field("ack_due", &R::ack_due, 0x0f, FieldAccess::Device),
        field("atomic_head", &R::atomic_head, 0x10, FieldAccess::Device, up_to(kMaxRdAtomic - 1)),
        field("reply_head", &R::reply_head, 0x11, FieldAccess::Device, up_to(kMaxReplies - 1)),
        field("reply_count", &R::reply_count, 0x12, FieldAccess::Device, up_to(kMaxReplies)),
        group("shared", &R::shared, 0x14), field("xrc_srqn", &R::xrc_srqn, 0x1c, FieldAccess::Device),
        field("message_offset", &R::message_offset, 0x20, FieldAccess::Device, up_to(kMaxMessage)),
        field("write_va", &R::write_va, 0x28, FieldAccess::Device),
        field("write_rkey", &R::write_rkey, 0x30, FieldAccess::Device),
        field("write_left", &R::write_left, 0x34, FieldAccess::Device, up_to(kMaxMessage)),
        group("page", &R::page, 0x38), group("atomics", &R::atomics, 0x48), group("replies", &R::replies, 0x148));
};

template <>
struct Layout<Pace> {
    static constexpr auto kFields =
        fields(field("phase", &Pace::phase, 0x00, FieldAccess::Device, up_to(uint64_t(Pace::Phase::Late))),
               field("requests_first", &Pace::requests_first, 0x01, FieldAccess::Device),
               field("next_ns", &Pace::next_ns, 0x08, FieldAccess::Device));
};

template <>
struct Layout<CongestionState> {
    using C = CongestionState;
    static constexpr auto kFields = fields(
        field("rate", &C::rate, 0x00, FieldAccess::Device, up_to(uint64_t(C::Rate::Recovered))),
        field("cnp_due", &C::cnp_due, 0x01, FieldAccess::Device),
        field("time_stage", &C::time_stage, 0x02, FieldAccess::Device),
        field("byte_stage", &C::byte_stage, 0x03, FieldAccess::Device),
        field("current_kbps", &C::current_kbps, 0x04, FieldAccess::Device),
        field("target_kbps", &C::target_kbps, 0x08, FieldAccess::Device),
        field("alpha", &C::alpha, 0x0c, FieldAccess::Device, up_to(kAlphaOne)),
        field("bytes", &C::bytes, 0x10, FieldAccess::Device), field("cut_ns", &C::cut_ns, 0x18, FieldAccess::Device),
        field("stage_ns", &C::stage_ns, 0x20, FieldAccess::Device),
        field("next_cnp_ns", &C::next_cnp_ns, 0x28, FieldAccess::Device));
};

template <>
struct Layout<Qp> {
    static constexpr auto kFields =
        fields(field("state", &Qp::state, 0x10, FieldAccess::Command,
                     {uint64_t(QpState::Init), uint64_t(QpState::Error)}),
               field("comm_est_sent", &Qp::comm_est_sent, 0x11, FieldAccess::Device),
               field("drained_sent", &Qp::drained_sent, 0x12, FieldAccess::Device), group("a", &Qp::a, 0x18),
               group("pace", &Qp::pace, 0xc0), group("congestion", &Qp::congestion, 0xd0),
               group("req", &Qp::req, 0x100), group("resp", &Qp::resp, 0x180));
};

}  // namespace hghca
