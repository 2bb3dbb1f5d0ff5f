// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/validation.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "byte_order.h"
#include "hghca_wire.h"
#include "wire/icrc.h"

namespace hghca::ernic {

namespace {

constexpr uint32_t bit(ernic_syndrome which, bool wrong) { return uint32_t(wrong) << which; }

constexpr uint8_t kAckRequest = 0x80;   // in front of the PSN

uint16_t get16(const uint8_t *at) { return uint16_t(at[0] << 8 | at[1]); }
uint32_t get32(const uint8_t *at) { return uint32_t(get16(at)) << 16 | get16(at + 2); }

// RFC 1071: is it wrong?
bool bad_checksum(const uint8_t *ip, size_t bytes)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes; i += 2)
        sum += get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    return uint16_t(sum + (sum >> 16)) != 0xffff;
}

// A MAC address in two registers: aa:bb:cc:dd:ee:ff is 0000aabb and ccddeeff.
bool is_mac(const uint8_t *mac, uint32_t msb, uint32_t lsb) { return get16(mac) == msb && get32(mac + 2) == lsb; }

// An IPv6 address in four registers, the last of which has the first four bytes.
template <class Word>
bool is_ipv6(const uint8_t *address, Word &&word)
{
    bool same = true;
    for (uint32_t i = 0; i < 4; i++)
        same = same && get32(address + size_t(4) * i) == word(3 - i);
    return same;
}

// The checks of a packet, a function for each precedence.
class Checks {
public:
    Checks(const Incoming &packet, const RegisterFile &registers, const QpView &qps, const Link &link)
        : p_(packet), r_(registers), qps_(qps), link_(link)
    {
    }

    uint32_t first_wrong() const
    {
        for (auto check : {&Checks::icrc, &Checks::mac, &Checks::version_and_source, &Checks::checksum, &Checks::header,
                           &Checks::ip, &Checks::udp, &Checks::bth, &Checks::enabled, &Checks::response})
            if (const uint32_t bits = (this->*check)())
                return bits;
        return 0;
    }

private:
    bool is_known() const { return p_.qpn && p_.qpn <= r_.qps(); }
    // A QP that has one peer.
    bool has_peer() const { return is_known() && p_.qpn != ERNIC_QP1; }
    size_t ip_end() const { return p_.layout.network_offset + size_t(p_.ip_length); }
    bool bad_ip_length() const
    {
        return ip_end() > p_.frame.length ||
               p_.ip_length < p_.ip_bytes + sizeof(hghca_udp_header) + sizeof(hghca_bth) + HGHCA_ICRC_SIZE;
    }

    // Where the length of the IP header or of the packet is wrong, there is no ICRC: those checks tell.
    uint32_t icrc() const
    {
        if (bad_ip_length() || (!p_.layout.ipv6 && p_.ip_bytes != sizeof(hghca_ipv4_header)))
            return 0;
        const size_t headers = sizeof(hghca_bth);
        uint32_t crc = icrc_of_headers(link_, p_.head.data(), p_.layout, headers);
        const size_t from = p_.layout.transport_offset + headers;
        const size_t bytes = ip_end() - from - HGHCA_ICRC_SIZE;
        p_.frame.for_each(from, bytes, [&crc](const uint8_t *at, size_t n) { crc = crc32_update(crc, at, n); });
        uint32_t sent = 0;
        p_.frame.copy(from + bytes, &sent, sizeof(sent));
        return bit(ERNIC_SYNDROME_ICRC, le32(sent) != ~crc);
    }
    uint32_t mac() const
    {
        const uint8_t *eth = p_.head.data();
        const bool to_us = is_mac(eth, r_.global(ERNIC_MACXADDMSB), r_.global(ERNIC_MACXADDLSB));
        const bool from_peer =
            !has_peer() || is_mac(eth + 6, r_.qp(p_.qpn, ERNIC_MACDESADDMSB), r_.qp(p_.qpn, ERNIC_MACDESADDLSB));
        return bit(ERNIC_SYNDROME_MAC_DESTINATION, !to_us) | bit(ERNIC_SYNDROME_MAC_SOURCE, !from_peer);
    }
    uint32_t version_and_source() const
    {
        const bool ipv6 = p_.layout.ipv6;
        const uint8_t version = ipv6 ? 6 : 4;
        if (!has_peer())
            return bit(ERNIC_SYNDROME_IP_VERSION, p_.ip()[0] >> 4 != version);
        const bool wanted = r_.qp(p_.qpn, ERNIC_QPCONF) & ERNIC_QPCONF_IPV6;
        auto word = [this](uint32_t i) { return r_.qp(p_.qpn, ERNIC_IPDESADDR1 + 4 * i); };
        const bool from_peer = ipv6 ? is_ipv6(p_.ip() + offsetof(hghca_ipv6_header, src), word)
                                    : get32(p_.ip() + offsetof(hghca_ipv4_header, src)) == word(0);
        return bit(ERNIC_SYNDROME_IP_VERSION, p_.ip()[0] >> 4 != version || ipv6 != wanted) |
               bit(ERNIC_SYNDROME_IP_SOURCE, !from_peer);
    }
    uint32_t checksum() const
    {
        return bit(ERNIC_SYNDROME_IP_CHECKSUM, !p_.layout.ipv6 && bad_checksum(p_.ip(), p_.ip_bytes));
    }
    uint32_t header() const
    {
        return bit(ERNIC_SYNDROME_IP_HEADER, !p_.layout.ipv6 && p_.ip_bytes != sizeof(hghca_ipv4_header));
    }
    uint32_t ip() const
    {
        const uint8_t *ip = p_.ip();
        uint32_t bits = bit(ERNIC_SYNDROME_IP_LENGTH, bad_ip_length());
        uint8_t traffic_class;
        if (p_.layout.ipv6) {
            traffic_class = uint8_t(get16(ip) >> 4);
            auto word = [this](uint32_t i) { return r_.global(ERNIC_IPV6XADD1 + 4 * i); };
            bits |= bit(ERNIC_SYNDROME_IP_DESTINATION, !is_ipv6(ip + offsetof(hghca_ipv6_header, dst), word));
        } else {
            traffic_class = ip[offsetof(hghca_ipv4_header, tos)];
            const uint16_t fragment = get16(ip + offsetof(hghca_ipv4_header, fragment));
            bits |= bit(ERNIC_SYNDROME_IP_FLAGS, fragment >> 13 != 2) |
                    bit(ERNIC_SYNDROME_IP_FRAGMENT, fragment & 0x1fff) |
                    bit(ERNIC_SYNDROME_IP_DESTINATION,
                        get32(ip + offsetof(hghca_ipv4_header, dst)) != r_.global(ERNIC_IPV4XADD));
        }
        // ERNIC takes what is marked: that of the later versions has congestion notification.
        return bits | bit(ERNIC_SYNDROME_ECN, !r_.is_ernic() && (traffic_class & HGHCA_ECN_MASK) == HGHCA_ECN_CE);
    }
    uint32_t udp() const { return bit(ERNIC_SYNDROME_UDP_LENGTH, p_.udp_length != p_.ip_length - p_.ip_bytes); }
    uint32_t bth() const
    {
        const bool supported = is_supported(r_.personality(), p_.opcode, p_.qpn == ERNIC_QP1);
        // Also of a QP that is not enabled: that is told at the next precedence.
        const bool refused_by_nak =
            has_peer() && !(p_.flags() & kResponse) && p_.psn == qps_.expected_psn(p_.qpn);
        return bit(ERNIC_SYNDROME_BTH_VERSION, p_.bth_flags & HGHCA_BTH_VERSION_MASK) |
               bit(ERNIC_SYNDROME_QP, !is_known()) | bit(ERNIC_SYNDROME_OPCODE, !supported && !refused_by_nak);
    }
    uint32_t enabled() const { return bit(ERNIC_SYNDROME_QP_DISABLED, !qps_.is_enabled(p_.qpn)); }
    // The transport checks requests. A response with padding in front of the last one is dropped, and the QP lives.
    uint32_t response() const
    {
        return bit(ERNIC_SYNDROME_PAD, p_.flags() & kResponse && !(p_.flags() & kLast) && p_.bth_flags & HGHCA_BTH_PAD_MASK);
    }

    const Incoming &p_;
    const RegisterFile &r_;
    const QpView &qps_;
    const Link &link_;
};

}  // namespace

bool take_apart(std::span<const iovec> parts, Incoming &out)
{
    out.frame = {parts, 0, std::transform_reduce(parts.begin(), parts.end(), size_t(0), std::plus<>(),
                                                 [](const iovec &part) { return part.iov_len; })};
    out.head_bytes = std::min(out.frame.length, out.head.size());
    out.frame.copy(0, out.head.data(), out.head_bytes);
    const uint8_t *head = out.head.data();
    constexpr size_t at = sizeof(hghca_eth_header);
    const uint16_t type = get16(head + offsetof(hghca_eth_header, type));
    const uint8_t *ip = head + at;
    out.layout.network_offset = at;
    out.layout.ipv6 = type == HGHCA_ETH_TYPE_IPV6;
    uint8_t protocol;
    if (out.layout.ipv6) {
        out.ip_bytes = sizeof(hghca_ipv6_header);
        protocol = ip[offsetof(hghca_ipv6_header, next_header)];
        out.ip_length = out.ip_bytes + get16(ip + offsetof(hghca_ipv6_header, length));
    } else if (type == HGHCA_ETH_TYPE_IPV4) {
        out.ip_bytes = uint16_t(std::max(ip[0] & 0xf, 5) * 4);
        protocol = ip[offsetof(hghca_ipv4_header, protocol)];
        out.ip_length = get16(ip + offsetof(hghca_ipv4_header, length));
    } else {
        return false;
    }
    const size_t udp = at + out.ip_bytes, bth = udp + sizeof(hghca_udp_header);
    // A frame that is shorter has zeros there.
    if (protocol != HGHCA_IP_UDP || bth + sizeof(hghca_bth) + sizeof(hghca_aeth) > out.head.size() ||
        get16(head + udp + offsetof(hghca_udp_header, dst_port)) != HGHCA_ROCE_UDP_PORT)
        return false;
    out.layout.transport_offset = uint8_t(bth);
    out.layout.frame_bytes = uint32_t(at + out.ip_length);
    out.udp_length = get16(head + udp + offsetof(hghca_udp_header, length));
    out.opcode = head[bth];
    out.bth_flags = head[bth + offsetof(hghca_bth, flags)];
    out.qpn = get32(head + bth + offsetof(hghca_bth, qpn)) & HGHCA_BTH_QPN_MASK;
    out.asks_for_ack = head[bth + offsetof(hghca_bth, psn)] & kAckRequest;
    out.psn = get32(head + bth + offsetof(hghca_bth, psn)) & HGHCA_BTH_PSN_MASK;
    if (out.flags() & kAeth)
        out.syndrome = head[bth + sizeof(hghca_bth)];
    return true;
}

bool is_supported(Personality personality, uint8_t opcode, bool is_mad)
{
    if (is_mad)
        return opcode == (HGHCA_BTH_UD | HGHCA_BTH_OP_SEND_ONLY);
    if ((opcode & HGHCA_BTH_SERVICE_MASK) != HGHCA_BTH_RC)
        return false;
    const uint32_t flags = kOpcodes[opcode];
    // Responses to what the device sends, and SENDs.
    if (flags & kResponse)
        return !(flags & kAtomicAckEth);
    if (flags & kSend && !(flags & (kImmDt | kIeth)))
        return true;
    return personality == Personality::Ernic && flags & (kSend | kWrite | kRead);
}

uint32_t validate(const Incoming &packet, const RegisterFile &registers, const QpView &qps, const Link &link)
{
    return Checks(packet, registers, qps, link).first_wrong();
}

}  // namespace hghca::ernic
