// SPDX-License-Identifier: GPL-2.0-or-later
// Transport packets: headers as numbers, the opcode table, and frames taken apart.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "hghca_wire.h"
#include "wire/drop.h"
#include "wire/link.h"
#include "wire/number.h"
#include "wire/psn.h"
#include "wire/service.h"

namespace hghca {

// What an opcode says about its packet. Extension headers stand behind the BTH
// in the order of the bits.
enum OpcodeFlag : uint32_t {
    kDeth = 1 << 0,
    kXrceth = 1 << 1,
    kFeth = 1 << 2,
    kReth = 1 << 3,
    kAtomicEth = 1 << 4,
    kAeth = 1 << 5,
    kAtomicAckEth = 1 << 6,
    kImmDt = 1 << 7,
    kIeth = 1 << 8,
    kSend = 1 << 9,
    kWrite = 1 << 10,
    kRead = 1 << 11,      // request
    kAtomic = 1 << 12,    // request
    kAtomicWrite = 1 << 13,
    kFlush = 1 << 14,     // request
    kResponse = 1 << 15,
    kFirst = 1 << 16,     // begins a message
    kLast = 1 << 17,      // ends it; both: the only packet
    kKnown = 1 << 18,
    kCnp = 1 << 19,       // congestion notification
    kPart = 1 << 20,
    kPointer = 1 << 21,      // request of a READ_POINTER
    kConsistent = 1 << 22,   // request of a READ_CONSISTENT
    kPointerEth = 1 << 23,
};

// Of the manufacturer: of no transport service, and known to a device with Features::vendor_ops alone.
constexpr uint32_t kVendor = kPart | kPointer | kConsistent;
// Requests that may take more than one packet.
constexpr uint32_t kMessage = kSend | kWrite | kPart;

// The service bits of the opcodes a QP of this service type sends and takes; RAW has none.
constexpr uint8_t bth_service(Service service)
{
    switch (service) {
    case Service::Uc:
        return HGHCA_BTH_UC;
    case Service::Ud:
        return HGHCA_BTH_UD;
    case Service::Xrc:
        return HGHCA_BTH_XRC;
    default:
        return HGHCA_BTH_RC;
    }
}

// By BTH opcode; 0 for what this device does not know.
extern const std::array<uint32_t, 256> kOpcodes;
size_t extension_bytes(uint32_t opcode_flags);

// What a FETH asks for (IBA vol 1, A19).
constexpr uint32_t kFlushTypeMask = 0xf;
constexpr uint32_t kFlushGlobal = 1 << 0;        // type: global visibility
constexpr uint32_t kFlushSelectivityMask = 0x30;
constexpr uint32_t kFlushRange = 0;              // selectivity: the range that is named
constexpr uint32_t kFlushRegion = 1;             // all of the region

// BTH and extension headers in host byte order. Which of the latter are live
// follows from the opcode.
struct TransportHeader {
    uint8_t opcode;
    uint8_t pad;
    bool solicited;
    bool ack_request;
    bool becn;
    uint16_t pkey;
    Qpn qpn;
    Psn psn;
    uint64_t va;          // RETH, AtomicETH
    Key rkey;
    uint32_t length;      // RETH
    uint32_t flush;       // FETH
    uint64_t swap_add;    // AtomicETH
    uint64_t compare;
    uint64_t pointer_key; // PointerEth
    uint32_t search;
    uint8_t syndrome;     // AETH
    Msn msn;
    uint64_t original;    // AtomicAckETH
    uint32_t imm;         // ImmDt, or the key of an IETH, in wire order
    uint32_t qkey;        // DETH
    Qpn src_qpn;
    Srqn srqn;            // XRCETH
};

constexpr size_t kMaxTransportHeader = sizeof(hghca_bth) + sizeof(hghca_xrceth) + sizeof(hghca_atomic_eth);
constexpr size_t kMaxHeader = kMaxLinkHeader + kMaxTransportHeader;

// Writes `h`; returns its bytes, at most kMaxTransportHeader.
size_t put_transport_header(const TransportHeader &h, uint8_t *out);
// Reads what put_transport_header writes; `bth` is followed by the extension headers.
void get_transport_header(const uint8_t *bth, TransportHeader &h);

// A piece of a frame that stays where the link left it.
struct FrameView {
    std::span<const iovec> parts;
    size_t offset;   // of the piece, from the start of the parts
    size_t length;

    // Calls f(pointer, bytes) for each contiguous run of [from, from + bytes).
    template <class F>
    void for_each(size_t from, size_t bytes, F &&f) const
    {
        size_t skip = offset + from;
        for (size_t i = 0; i < parts.size() && bytes; i++) {
            if (skip >= parts[i].iov_len) {
                skip -= parts[i].iov_len;
                continue;
            }
            size_t n = std::min(bytes, parts[i].iov_len - skip);
            f(static_cast<const uint8_t *>(parts[i].iov_base) + skip, n);
            skip = 0;
            bytes -= n;
        }
    }
    void copy(size_t from, void *out, size_t bytes) const
    {
        auto *to = static_cast<uint8_t *>(out);
        for_each(from, bytes, [&](const uint8_t *p, size_t n) {
            std::memcpy(to, p, n);
            to += n;
        });
    }
};

// A received packet. Headers were copied out of the frame once, and only the
// copy is looked at: the frame may be in memory that somebody writes to.
struct Packet {
    std::array<uint8_t, kMaxHeader> head;
    Arrival arrival;
    TransportHeader h;
    uint32_t flags;       // kOpcodes[h.opcode], or 0: this device does not know the opcode
    FrameView payload;
    uint32_t frame_bytes;      // without padding of the link
    uint32_t arrived_bytes;    // with it
    uint8_t header_bytes;      // of `head`: up to the payload
};

// Takes the frame apart whose network headers `packet.arrival` describes and
// whose first bytes are in packet.head. Checks lengths, BTH version and, unless
// `trusted`, the ICRC. Without `vendor_ops`, no packet is kVendor.
Drop parse_packet(const FrameView &frame, bool trusted, bool vendor_ops, const Link &link, Packet &packet);

// The register of the ICRC when all of the link header has passed but its last four bytes: network headers as
// `variant_bits`, those of Link::variant_bits(), say. An IPv4 header has no options. What is left begins with 16 bytes,
// the last four and a BTH, which the CRC takes in one step. It is the same for all packets of a flow with one length.
uint32_t icrc_of_link_header(const uint8_t *variant_bits, const uint8_t *link_header, const NetworkLayout &layout);
// The register when all headers have passed, with `transport_bytes` from the BTH on, which are behind the link header.
uint32_t icrc_of_headers(uint32_t icrc, const Link &link, const uint8_t *link_header, const NetworkLayout &layout,
                         size_t transport_bytes);
inline uint32_t icrc_of_headers(const Link &link, const uint8_t *link_header, const NetworkLayout &layout,
                                size_t transport_bytes)
{
    const uint32_t icrc = icrc_of_link_header(link.variant_bits(layout), link_header, layout);
    return icrc_of_headers(icrc, link, link_header, layout, transport_bytes);
}

}  // namespace hghca
