// SPDX-License-Identifier: GPL-2.0-or-later
// What the transport tells states, operations, rights and outcomes apart by. The function translates them into the
// numbers of its interface (jingzhao/translate.h).
#pragma once

#include <cstdint>

#include "wire/service.h"

namespace hghca {

// How a work request ends: IBA vol 1, 11.6.2, completion return status.
enum class Status : uint8_t {
    Success = 0,
    LocalLength = 0x01,
    LocalOperation = 0x02,
    LocalProtection = 0x04,
    Flushed = 0x05,
    Bind = 0x06,
    BadResponse = 0x10,
    LocalAccess = 0x11,
    RemoteInvalidRequest = 0x12,
    RemoteAccess = 0x13,
    RemoteOperation = 0x14,
    RetryExceeded = 0x15,
    RnrRetryExceeded = 0x16,
};

// What a send work request asks for.
enum class Operation : uint8_t {
    Nop = 0x00,
    Write = 0x08,
    WriteImm = 0x09,
    Send = 0x0a,
    SendImm = 0x0b,
    SendInvalidate = 0x0c,
    Part = 0x0d,
    Read = 0x10,
    CompareSwap = 0x11,
    FetchAdd = 0x12,
    AtomicWrite = 0x13,
    Flush = 0x14,
    ReadPointer = 0x15,
    ReadConsistent = 0x16,
    BindWindow = 0x18,
    RegisterRegion = 0x19,
    LocalInvalidate = 0x1a,
};

// Of the manufacturer: a QP has them or has them not, and a device too.
constexpr bool is_vendor(Operation operation)
{
    return operation == Operation::Part || operation == Operation::ReadPointer ||
           operation == Operation::ReadConsistent;
}

// What the user of a key does with its memory, and what a QP lets its peer do. LocalRead takes no right.
enum class Access : uint32_t {
    LocalRead = 0,
    LocalWrite = 1 << 0,
    RemoteWrite = 1 << 1,
    RemoteRead = 1 << 2,
    RemoteAtomic = 1 << 3,
    Flush = 1 << 7,
};

// What the function has turned on of what the transport does.
struct Features {
    bool multicast = false;
    bool congestion = false;         // CNPs have an effect
    bool memory_management = false;  // SEND with Invalidate
    bool placement = false;          // FLUSH and ATOMIC WRITE
    bool vendor_ops = false;         // PART, READ_POINTER and READ_CONSISTENT
    bool unsignaled = false;         // a send WQE may complete without a CQE
    bool atomics = true;
    bool immediates = true;          // SEND and WRITE with immediate data
    bool empty_sends = true;
    bool pkeys = true;               // P_Keys of packets that are received are checked
};

// What the owner of a QP is told: IBA vol 1, 11.6.3.
enum class Event : uint8_t {
    None = 0,
    Established = 0x02,
    SendQueueDrained = 0x03,
    QueueFailed = 0x05,
    InvalidRequest = 0x10,
    AccessViolation = 0x11,
    LastWqeReached = 0x13,
};

// IBA vol 1, 10.3.1, in the order of a QP's life: what has got to Rtr receives, what has got to Rts may send.
enum class QpState : uint32_t {
    Reset = 0,
    Init = 1,
    Rtr = 2,
    Rts = 3,
    Sqe = 4,
    Sqd = 5,
    Error = 6,
};

// ---- outcomes of calls across the seam (transport/function.h)

// The completion of a WQE.
enum class [[nodiscard]] Completed : uint8_t { Yes, CqFailed };
// The WQEs that are posted.
enum class [[nodiscard]] Flushed : uint8_t { All, Part };
// The use or the change of a key. With No, nothing has changed.
enum class [[nodiscard]] Allowed : uint8_t { Yes, No };
enum class [[nodiscard]] Counted : uint8_t { Yes, Unknown };
enum class [[nodiscard]] XrcTarget : uint8_t { Found, None };
// The records of a PART packet.
enum class [[nodiscard]] Appended : uint8_t {
    Yes,
    Length,   // not whole records
    Access,   // the partition, or the key of a region, is wrong
    Full,     // a region has no room for its records
};
// An event that asks for a page; a command that brings it.
enum class [[nodiscard]] PageAsked : uint8_t { Yes, NoRoom };
enum class [[nodiscard]] Resumed : uint8_t { Yes, NotAsked };

// How the turn of a QP has ended.
enum class [[nodiscard]] Turn {
    Idle,     // nothing it could send now
    More,     // its credit is used up, or the slice is over
    Blocked,  // the link takes nothing now
};

// Do its messages get acknowledged?
constexpr bool is_reliable(Service service) { return service == Service::Rc || service == Service::Xrc; }

// Have they one peer, who is known?
constexpr bool is_connected(Service service) { return is_reliable(service) || service == Service::Uc; }

}  // namespace hghca
