// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/packet.h"

#include "byte_order.h"
#include "wire/icrc.h"
#include "wire/wire_object.h"

namespace hghca {

namespace {

constexpr std::array<uint32_t, 256> make_opcodes() noexcept
{
    std::array<uint32_t, 256> t{};
    // IBA vol 1, A14.3: XRC is RC with a header more in each request.
    auto rc = [&t](hghca_bth_op op, unsigned flags) {
        t[HGHCA_BTH_RC | op] = uint32_t(kKnown | flags);
        t[HGHCA_BTH_XRC | op] = uint32_t(kKnown | flags | (flags & kResponse ? 0u : unsigned(kXrceth)));
    };
    auto ud = [&t](hghca_bth_op op, unsigned flags) { t[HGHCA_BTH_UD | op] = uint32_t(kKnown | kDeth | flags); };
    // What all connected services have.
    auto connected = [&t, &rc](hghca_bth_op op, unsigned flags) {
        rc(op, flags);
        t[HGHCA_BTH_UC | op] = uint32_t(kKnown | flags);
    };
    constexpr unsigned kOnly = kFirst | kLast;

    connected(HGHCA_BTH_OP_SEND_FIRST, kSend | kFirst);
    connected(HGHCA_BTH_OP_SEND_MIDDLE, kSend);
    connected(HGHCA_BTH_OP_SEND_LAST, kSend | kLast);
    connected(HGHCA_BTH_OP_SEND_LAST_IMM, kSend | kLast | kImmDt);
    connected(HGHCA_BTH_OP_SEND_ONLY, kSend | kOnly);
    connected(HGHCA_BTH_OP_SEND_ONLY_IMM, kSend | kOnly | kImmDt);
    connected(HGHCA_BTH_OP_WRITE_FIRST, kWrite | kFirst | kReth);
    connected(HGHCA_BTH_OP_WRITE_MIDDLE, kWrite);
    connected(HGHCA_BTH_OP_WRITE_LAST, kWrite | kLast);
    connected(HGHCA_BTH_OP_WRITE_LAST_IMM, kWrite | kLast | kImmDt);
    connected(HGHCA_BTH_OP_WRITE_ONLY, kWrite | kOnly | kReth);
    connected(HGHCA_BTH_OP_WRITE_ONLY_IMM, kWrite | kOnly | kReth | kImmDt);
    rc(HGHCA_BTH_OP_READ_REQUEST, kRead | kOnly | kReth);
    rc(HGHCA_BTH_OP_READ_RESPONSE_FIRST, kResponse | kFirst | kAeth);
    rc(HGHCA_BTH_OP_READ_RESPONSE_MIDDLE, kResponse);
    rc(HGHCA_BTH_OP_READ_RESPONSE_LAST, kResponse | kLast | kAeth);
    rc(HGHCA_BTH_OP_READ_RESPONSE_ONLY, kResponse | kOnly | kAeth);
    rc(HGHCA_BTH_OP_ACK, kResponse | kOnly | kAeth);
    rc(HGHCA_BTH_OP_ATOMIC_ACK, kResponse | kOnly | kAeth | kAtomicAckEth);
    rc(HGHCA_BTH_OP_COMPARE_SWAP, kAtomic | kOnly | kAtomicEth);
    rc(HGHCA_BTH_OP_FETCH_ADD, kAtomic | kOnly | kAtomicEth);
    rc(HGHCA_BTH_OP_ATOMIC_WRITE, kAtomicWrite | kOnly | kReth);
    rc(HGHCA_BTH_OP_FLUSH, kFlush | kOnly | kFeth | kReth);
    rc(HGHCA_BTH_OP_SEND_LAST_INV, kSend | kLast | kIeth);
    rc(HGHCA_BTH_OP_SEND_ONLY_INV, kSend | kOnly | kIeth);
    ud(HGHCA_BTH_OP_SEND_ONLY, kSend | kOnly);
    ud(HGHCA_BTH_OP_SEND_ONLY_IMM, kSend | kOnly | kImmDt);
    t[HGHCA_BTH_CNP] = kKnown | kCnp;
    t[HGHCA_BTH_PART_FIRST] = kKnown | kPart | kFirst | kReth;
    t[HGHCA_BTH_PART_MIDDLE] = kKnown | kPart;
    t[HGHCA_BTH_PART_LAST] = kKnown | kPart | kLast;
    t[HGHCA_BTH_PART_ONLY] = kKnown | kPart | kOnly | kReth;
    t[HGHCA_BTH_READ_POINTER_REQUEST] = kKnown | kPointer | kOnly | kReth | kPointerEth;
    t[HGHCA_BTH_READ_CONSISTENT_REQUEST] = kKnown | kConsistent | kOnly | kReth;
    return t;
}

using Chunk = uint8_t __attribute__((vector_size(16)));

template <class T>
const uint8_t *take(const uint8_t *at, T &header)
{
    std::memcpy(&header, at, sizeof(header));
    return at + sizeof(header);
}

}  // namespace

constinit const std::array<uint32_t, 256> kOpcodes = make_opcodes();

size_t extension_bytes(uint32_t flags)
{
    return (flags & kDeth ? sizeof(hghca_deth) : 0) + (flags & kXrceth ? sizeof(hghca_xrceth) : 0) +
           (flags & kFeth ? sizeof(hghca_feth) : 0) + (flags & kReth ? sizeof(hghca_reth) : 0) +
           (flags & kAtomicEth ? sizeof(hghca_atomic_eth) : 0) + (flags & kAeth ? sizeof(hghca_aeth) : 0) +
           (flags & kAtomicAckEth ? sizeof(hghca_atomic_ack_eth) : 0) +
           (flags & kImmDt ? sizeof(hghca_immdt) : 0) + (flags & kIeth ? sizeof(hghca_ieth) : 0) +
           (flags & kCnp ? HGHCA_CNP_RESERVED : 0) + (flags & kPointerEth ? sizeof(hghca_pointer_eth) : 0);
}

size_t put_transport_header(const TransportHeader &h, uint8_t *out)
{
    const uint32_t flags = kOpcodes[h.opcode];
    hghca_bth bth{};
    bth.opcode = h.opcode;
    bth.flags = uint8_t((h.solicited ? HGHCA_BTH_SOLICITED : 0) | (flags & kCnp ? 0 : HGHCA_BTH_MIGREQ) |
                        field_put(HGHCA_BTH_PAD_MASK, h.pad));
    bth.pkey = be16(h.pkey);
    bth.qpn = be32((h.becn ? HGHCA_BTH_BECN : 0) | (number(h.qpn) & HGHCA_BTH_QPN_MASK));
    bth.psn = be32((h.ack_request ? HGHCA_BTH_ACKREQ : 0) | number(h.psn));
    uint8_t *at = append(out, bth);
    if (flags & kDeth)
        at = append(at, hghca_deth{be32(h.qkey), be32(number(h.src_qpn) & HGHCA_BTH_QPN_MASK)});
    if (flags & kXrceth)
        at = append(at, hghca_xrceth{be32(number(h.srqn) & HGHCA_XRCETH_SRQN_MASK)});
    if (flags & kFeth)
        at = append(at, hghca_feth{be32(h.flush)});
    if (flags & kReth)
        at = append(at, hghca_reth{be64(h.va), be32(number(h.rkey)), be32(h.length)});
    if (flags & kAtomicEth)
        at = append(at, hghca_atomic_eth{be64(h.va), be32(number(h.rkey)), be64(h.swap_add), be64(h.compare)});
    if (flags & kAeth)
        at = append(at, hghca_aeth{be32(field_put(HGHCA_AETH_SYNDROME_MASK, h.syndrome) |
                                        number(h.msn))});
    if (flags & kAtomicAckEth)
        at = append(at, hghca_atomic_ack_eth{be64(h.original)});
    if (flags & kImmDt)
        at = append(at, hghca_immdt{h.imm});
    if (flags & kIeth)
        at = append(at, hghca_ieth{h.imm});
    if (flags & kCnp)
        at = append(at, std::array<uint8_t, HGHCA_CNP_RESERVED>{});
    if (flags & kPointerEth)
        at = append(at, hghca_pointer_eth{be64(h.pointer_key), be32(h.search)});
    return size_t(at - out);
}

void get_transport_header(const uint8_t *at, TransportHeader &h)
{
    h = {};   // what this packet lacks may be kept too, in a QP and so in ICM
    hghca_bth bth;
    at = take(at, bth);
    h.opcode = bth.opcode;
    h.solicited = bth.flags & HGHCA_BTH_SOLICITED;
    h.pad = uint8_t(field_get(HGHCA_BTH_PAD_MASK, bth.flags));
    h.pkey = be16(bth.pkey);
    h.qpn = Qpn(be32(bth.qpn) & HGHCA_BTH_QPN_MASK);
    h.becn = be32(bth.qpn) & HGHCA_BTH_BECN;
    h.psn = psn_of(be32(bth.psn));
    h.ack_request = be32(bth.psn) & HGHCA_BTH_ACKREQ;
    const uint32_t flags = kOpcodes[h.opcode];
    if (flags & kDeth) {
        hghca_deth deth;
        at = take(at, deth);
        h.qkey = be32(deth.qkey);
        h.src_qpn = Qpn(be32(deth.src_qpn) & HGHCA_BTH_QPN_MASK);
    }
    if (flags & kXrceth) {
        hghca_xrceth xrceth;
        at = take(at, xrceth);
        h.srqn = Srqn(be32(xrceth.srqn) & HGHCA_XRCETH_SRQN_MASK);
    }
    if (flags & kFeth) {
        hghca_feth feth;
        at = take(at, feth);
        h.flush = be32(feth.what);
    }
    if (flags & kReth) {
        hghca_reth reth;
        at = take(at, reth);
        h.va = be64(reth.va);
        h.rkey = Key(be32(reth.rkey));
        h.length = be32(reth.length);
    }
    if (flags & kAtomicEth) {
        hghca_atomic_eth atomic;
        at = take(at, atomic);
        h.va = be64(atomic.va);
        h.rkey = Key(be32(atomic.rkey));
        h.swap_add = be64(atomic.swap_add);
        h.compare = be64(atomic.compare);
    }
    if (flags & kAeth) {
        hghca_aeth aeth;
        at = take(at, aeth);
        h.syndrome = uint8_t(field_get(HGHCA_AETH_SYNDROME_MASK, be32(aeth.syndrome_msn)));
        h.msn = msn_of(be32(aeth.syndrome_msn));
    }
    if (flags & kAtomicAckEth) {
        hghca_atomic_ack_eth ack;
        at = take(at, ack);
        h.original = be64(ack.original);
    }
    if (flags & kImmDt) {
        hghca_immdt immdt;
        take(at, immdt);
        h.imm = immdt.imm;
    }
    if (flags & kIeth) {
        hghca_ieth ieth;
        take(at, ieth);
        h.imm = ieth.rkey;
    }
    if (flags & kPointerEth) {
        hghca_pointer_eth pointer;
        take(at, pointer);
        h.pointer_key = be64(pointer.key);
        h.search = be32(pointer.search);
    }
}

namespace {

constexpr size_t kJoint = 16 - sizeof(hghca_bth);   // of the link header, before the BTH

// The register `crc` behind bytes [from, from + bytes) of the network header and what follows. Headers are whole words.
uint32_t icrc_of_part(uint32_t crc, const uint8_t *ones, const uint8_t *network, size_t from, size_t bytes)
{
    // Stored as it is loaded afterwards: a load from several stores waits for all of them.
    alignas(16) uint8_t masked[kMaxHeader];
    size_t at = 0;
    auto mask = [&](auto word) {
        decltype(word) more;
        std::memcpy(&word, network + from + at, sizeof(word));
        std::memcpy(&more, ones + from + at, sizeof(more));
        word |= more;
        std::memcpy(masked + at, &word, sizeof(word));
        at += sizeof(word);
    };
    while (at + 16 <= bytes)
        mask(Chunk{});
    if (bytes & 8)
        mask(uint64_t{});
    while (at < bytes)
        mask(uint32_t{});
    return crc32_update(crc, masked, bytes);
}

}  // namespace

uint32_t icrc_of_link_header(const uint8_t *variant_bits, const uint8_t *link_header, const NetworkLayout &layout)
{
    // RoCE v2 (annex A17.3.3): eight bytes of ones in the place of the LRH. The register behind them.
    constexpr uint32_t kBehindOnes = 0xdebb20e3;
    return icrc_of_part(kBehindOnes, variant_bits, link_header + layout.network_offset, 0,
                        size_t(layout.transport_offset) - layout.network_offset - kJoint);
}

uint32_t icrc_of_headers(uint32_t icrc, const Link &link, const uint8_t *link_header, const NetworkLayout &layout,
                         size_t transport_bytes)
{
    return icrc_of_part(icrc, link.variant_bits(layout), link_header + layout.network_offset,
                        size_t(layout.transport_offset) - layout.network_offset - kJoint, kJoint + transport_bytes);
}

Drop parse_packet(const FrameView &frame, bool trusted, bool vendor_ops, const Link &link, Packet &packet)
{
    const NetworkLayout &layout = packet.arrival.layout;
    const uint8_t *bth = packet.head.data() + layout.transport_offset;
    const size_t packet_bytes = layout.frame_bytes - layout.transport_offset;
    if (packet_bytes < sizeof(hghca_bth) + HGHCA_ICRC_SIZE)
        return Drop::Headers;
    packet.flags = kOpcodes[bth[0]];
    if (packet.flags & kVendor && !vendor_ops)
        packet.flags = 0;
    const size_t header_bytes = sizeof(hghca_bth) + extension_bytes(packet.flags);
    if (packet_bytes < header_bytes + HGHCA_ICRC_SIZE)
        return Drop::Headers;
    packet.header_bytes = uint8_t(layout.transport_offset + header_bytes);
    get_transport_header(bth, packet.h);
    const size_t padded_bytes = packet_bytes - header_bytes - HGHCA_ICRC_SIZE;
    if (padded_bytes < packet.h.pad)
        return Drop::Headers;
    packet.payload = frame;
    packet.payload.offset += layout.transport_offset + header_bytes;
    packet.payload.length = padded_bytes - packet.h.pad;
    packet.frame_bytes = layout.frame_bytes;
    if (trusted)
        return Drop::None;

    // All of the packet is believed or none of it: the ICRC comes first, then
    // anything that has an effect.
    uint32_t crc = icrc_of_headers(packet.arrival.icrc, link, packet.head.data(), layout, header_bytes);
    packet.payload.for_each(0, padded_bytes, [&crc](const uint8_t *p, size_t n) { crc = crc32_update(crc, p, n); });
    uint32_t sent = 0;
    packet.payload.copy(padded_bytes, &sent, sizeof(sent));
    if (le32(sent) != ~crc)
        return Drop::Icrc;
    return bth[offsetof(hghca_bth, flags)] & HGHCA_BTH_VERSION_MASK ? Drop::BthVersion : Drop::None;
}

}  // namespace hghca
