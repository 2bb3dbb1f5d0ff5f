// SPDX-License-Identifier: GPL-2.0-or-later
// The numbers of the interface for what the transport and the packet format name by their own enumerations. Both have
// the same values, so that no translation costs anything; that they do is checked here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hghca_hw.h"
#include "transport/pointer_search.h"
#include "transport/qp.h"
#include "transport/types.h"
#include "wire/drop.h"
#include "wire/packet.h"
#include "wire/static_rate.h"

namespace hghca {

// A UAR page may be named by its index or by its page frame number: BAR2 is aligned to its size.
constexpr uint32_t uar_index(uint32_t page) { return page % HGHCA_UAR_PAGES; }

constexpr uint8_t syndrome_of(Status status) { return uint8_t(status); }
static_assert(syndrome_of(Status::LocalLength) == HGHCA_SYNDROME_LOCAL_LENGTH_ERR);
static_assert(syndrome_of(Status::LocalOperation) == HGHCA_SYNDROME_LOCAL_QP_OP_ERR);
static_assert(syndrome_of(Status::LocalProtection) == HGHCA_SYNDROME_LOCAL_PROT_ERR);
static_assert(syndrome_of(Status::Flushed) == HGHCA_SYNDROME_WR_FLUSH_ERR);
static_assert(syndrome_of(Status::Bind) == HGHCA_SYNDROME_MW_BIND_ERR);
static_assert(syndrome_of(Status::BadResponse) == HGHCA_SYNDROME_BAD_RESP_ERR);
static_assert(syndrome_of(Status::LocalAccess) == HGHCA_SYNDROME_LOCAL_ACCESS_ERR);
static_assert(syndrome_of(Status::RemoteInvalidRequest) == HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR);
static_assert(syndrome_of(Status::RemoteAccess) == HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
static_assert(syndrome_of(Status::RemoteOperation) == HGHCA_SYNDROME_REMOTE_OP_ERR);
static_assert(syndrome_of(Status::RetryExceeded) == HGHCA_SYNDROME_RETRY_EXC_ERR);
static_assert(syndrome_of(Status::RnrRetryExceeded) == HGHCA_SYNDROME_RNR_RETRY_EXC_ERR);

constexpr uint8_t opcode_of(Operation operation) { return uint8_t(operation); }
// Of any opcode: not each of them is an operation.
constexpr Operation operation_of(uint8_t opcode) { return Operation(opcode); }
static_assert(opcode_of(Operation::Nop) == HGHCA_OPCODE_NOP);
static_assert(opcode_of(Operation::Write) == HGHCA_OPCODE_RDMA_WRITE);
static_assert(opcode_of(Operation::WriteImm) == HGHCA_OPCODE_RDMA_WRITE_IMM);
static_assert(opcode_of(Operation::Send) == HGHCA_OPCODE_SEND);
static_assert(opcode_of(Operation::SendImm) == HGHCA_OPCODE_SEND_IMM);
static_assert(opcode_of(Operation::SendInvalidate) == HGHCA_OPCODE_SEND_INV);
static_assert(opcode_of(Operation::Part) == HGHCA_OPCODE_PART);
static_assert(opcode_of(Operation::Read) == HGHCA_OPCODE_RDMA_READ);
static_assert(opcode_of(Operation::CompareSwap) == HGHCA_OPCODE_ATOMIC_CS);
static_assert(opcode_of(Operation::FetchAdd) == HGHCA_OPCODE_ATOMIC_FA);
static_assert(opcode_of(Operation::AtomicWrite) == HGHCA_OPCODE_ATOMIC_WRITE);
static_assert(opcode_of(Operation::Flush) == HGHCA_OPCODE_FLUSH);
static_assert(opcode_of(Operation::ReadPointer) == HGHCA_OPCODE_READ_POINTER);
static_assert(opcode_of(Operation::ReadConsistent) == HGHCA_OPCODE_READ_CONSISTENT);
static_assert(opcode_of(Operation::BindWindow) == HGHCA_OPCODE_BIND_MW);
static_assert(opcode_of(Operation::RegisterRegion) == HGHCA_OPCODE_REG_MR);
static_assert(opcode_of(Operation::LocalInvalidate) == HGHCA_OPCODE_LOCAL_INV);

// Of an event that is one: None has no number.
constexpr hghca_event_type event_number(Event event) { return hghca_event_type(event); }
static_assert(event_number(Event::Established) == HGHCA_EVENT_COMM_EST);
static_assert(event_number(Event::SendQueueDrained) == HGHCA_EVENT_SQ_DRAINED);
static_assert(event_number(Event::QueueFailed) == HGHCA_EVENT_WQ_CATAS_ERROR);
static_assert(event_number(Event::InvalidRequest) == HGHCA_EVENT_WQ_INVAL_REQ_ERROR);
static_assert(event_number(Event::AccessViolation) == HGHCA_EVENT_WQ_ACCESS_ERROR);
static_assert(event_number(Event::LastWqeReached) == HGHCA_EVENT_SRQ_QP_LAST_WQE);

constexpr hghca_qp_state state_number(QpState state) { return hghca_qp_state(state); }
constexpr QpState state_of(hghca_qp_state number) { return QpState(number); }
static_assert(state_number(QpState::Reset) == HGHCA_QP_STATE_RST);
static_assert(state_number(QpState::Init) == HGHCA_QP_STATE_INIT);
static_assert(state_number(QpState::Rtr) == HGHCA_QP_STATE_RTR);
static_assert(state_number(QpState::Rts) == HGHCA_QP_STATE_RTS);
static_assert(state_number(QpState::Sqe) == HGHCA_QP_STATE_SQE);
static_assert(state_number(QpState::Sqd) == HGHCA_QP_STATE_SQD);
static_assert(state_number(QpState::Error) == HGHCA_QP_STATE_ERR);

constexpr uint8_t service_number(Service service) { return uint8_t(service); }
// Of any number: not each of them is a service.
constexpr Service service_of(uint32_t number) { return Service(number); }
static_assert(service_number(Service::Rc) == HGHCA_QP_ST_RC);
static_assert(service_number(Service::Uc) == HGHCA_QP_ST_UC);
static_assert(service_number(Service::Ud) == HGHCA_QP_ST_UD);
static_assert(service_number(Service::Xrc) == HGHCA_QP_ST_XRC);
static_assert(service_number(Service::Raw) == HGHCA_QP_ST_RAW);

constexpr uint32_t right_of(Access access) { return uint32_t(access); }
static_assert(right_of(Access::LocalRead) == 0);
static_assert(right_of(Access::LocalWrite) == HGHCA_ACCESS_LOCAL_WRITE);
static_assert(right_of(Access::RemoteWrite) == HGHCA_ACCESS_REMOTE_WRITE);
static_assert(right_of(Access::RemoteRead) == HGHCA_ACCESS_REMOTE_READ);
static_assert(right_of(Access::RemoteAtomic) == HGHCA_ACCESS_REMOTE_ATOMIC);
static_assert(right_of(Access::Flush) == HGHCA_ACCESS_FLUSH_GLOBAL);

constexpr uint32_t kListedRates[] = HGHCA_STATIC_RATE_MBPS;
static_assert(std::ranges::equal(kListedRates, kStaticRateMbps));
static_assert(kStaticRateMbps.size() == HGHCA_STATIC_RATE_MAX + 1 && !is_static_rate(HGHCA_STATIC_RATE_NONE));

// A WQE asks for a FLUSH as its packet does.
static_assert(kFlushTypeMask == HGHCA_FLUSH_TYPE_MASK);
static_assert(kFlushGlobal == HGHCA_FLUSH_GLOBAL);
static_assert(kFlushSelectivityMask == HGHCA_FLUSH_SELECTIVITY_MASK);
static_assert(kFlushRange == HGHCA_FLUSH_RANGE);
static_assert(kFlushRegion == HGHCA_FLUSH_REGION);

// As does a READ_POINTER for its search.
static_assert(kElementBytes == HGHCA_POINTER_ELEMENT);
static_assert(kLastPosition == HGHCA_POINTER_LAST_WORD);
static_assert(kMaxElements == HGHCA_POINTER_ELEMENTS_MAX);
static_assert(kSearchKeysMask == HGHCA_POINTER_KEYS_MASK);
static_assert(kSearchPredicateMask == HGHCA_POINTER_PREDICATE_MASK);
static_assert(kSearchValueMask == HGHCA_POINTER_VALUE_MASK);
static_assert(kSearchRelative == HGHCA_POINTER_RELATIVE);
static_assert(kSearchNextMask == HGHCA_POINTER_NEXT_MASK);
static_assert(kSearchHasNext == HGHCA_POINTER_HAS_NEXT);
static_assert(uint32_t(Predicate::Equal) == HGHCA_PREDICATE_EQUAL);
static_assert(uint32_t(Predicate::Less) == HGHCA_PREDICATE_LESS);
static_assert(uint32_t(Predicate::Greater) == HGHCA_PREDICATE_GREATER);
static_assert(uint32_t(Predicate::NotEqual) == HGHCA_PREDICATE_NOT_EQUAL);
static_assert(kObjectCrcBytes == HGHCA_CONSISTENT_CRC);
static_assert(kMaxTries == HGHCA_CONSISTENT_TRIES);

constexpr Features features_of(uint32_t caps)
{
    return {.multicast = bool(caps & HGHCA_CAP_MULTICAST),
            .congestion = bool(caps & HGHCA_CAP_CONGESTION),
            .memory_management = bool(caps & HGHCA_CAP_MEM_MGT),
            .placement = bool(caps & HGHCA_CAP_PLACEMENT),
            .vendor_ops = bool(caps & HGHCA_CAP_VENDOR_OPS),
            .unsignaled = bool(caps & HGHCA_CAP_CQ_UPDATE)};
}

constexpr hghca_drop drop_number(Drop why) { return hghca_drop(why); }
// The same from a list, for the check below. The compiler warns of a reason that it lacks.
consteval hghca_drop listed_number(Drop why)
{
    switch (why) {
    case Drop::None:
        return HGHCA_DROP_NONE;
    case Drop::IpVersion:
        return HGHCA_DROP_IP_VERSION;
    case Drop::IpHeaderLength:
        return HGHCA_DROP_IP_HEADER_LENGTH;
    case Drop::Destination:
        return HGHCA_DROP_DESTINATION;
    case Drop::IpChecksum:
        return HGHCA_DROP_IP_CHECKSUM;
    case Drop::IpLength:
        return HGHCA_DROP_IP_LENGTH;
    case Drop::UdpLength:
        return HGHCA_DROP_UDP_LENGTH;
    case Drop::BthVersion:
        return HGHCA_DROP_BTH_VERSION;
    case Drop::NoQp:
        return HGHCA_DROP_NO_QP;
    case Drop::QpState:
        return HGHCA_DROP_QP_STATE;
    case Drop::Sequence:
        return HGHCA_DROP_SEQUENCE;
    case Drop::Opcode:
        return HGHCA_DROP_OPCODE;
    case Drop::Pad:
        return HGHCA_DROP_PAD;
    case Drop::Length:
        return HGHCA_DROP_LENGTH;
    case Drop::Rnr:
        return HGHCA_DROP_RNR;
    case Drop::Psn:
        return HGHCA_DROP_PSN;
    case Drop::Syndrome:
        return HGHCA_DROP_SYNDROME;
    case Drop::Response:
        return HGHCA_DROP_RESPONSE;
    case Drop::Source:
        return HGHCA_DROP_SOURCE;
    case Drop::Icrc:
        return HGHCA_DROP_ICRC;
    case Drop::Headers:
        return HGHCA_DROP_HEADERS;
    case Drop::Service:
        return HGHCA_DROP_SERVICE;
    case Drop::Pkey:
        return HGHCA_DROP_PKEY;
    case Drop::Qkey:
        return HGHCA_DROP_QKEY;
    case Drop::TooLong:
        return HGHCA_DROP_TOO_LONG;
    case Drop::Request:
        return HGHCA_DROP_REQUEST;
    case Drop::Access:
        return HGHCA_DROP_ACCESS;
    case Drop::Operation:
        return HGHCA_DROP_OPERATION;
    case Drop::Cnp:
        return HGHCA_DROP_CNP;
    }
    return HGHCA_DROP_NONE;
}
// A number that no reason has gives HGHCA_DROP_NONE.
#define HGHCA_DROP_SAME(name, value, text) static_assert(listed_number(Drop(value)) == HGHCA_DROP_##name);
HGHCA_DROPS(HGHCA_DROP_SAME)
#undef HGHCA_DROP_SAME
static_assert(drop_number(Drop::None) == HGHCA_DROP_NONE);

}  // namespace hghca
