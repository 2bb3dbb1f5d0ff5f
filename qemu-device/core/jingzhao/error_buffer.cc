// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/error_buffer.h"

namespace hghca {

const char *drop_name(unsigned why)
{
    switch (why) {
#define HGHCA_DROP_NAME(name, value, text) \
    case value: \
        return #name;
        HGHCA_DROPS(HGHCA_DROP_NAME)
#undef HGHCA_DROP_NAME
    default:
        return nullptr;
    }
}

uint64_t Counters::*drop_counter(Drop why)
{
    switch (why) {
    case Drop::IpVersion:
        return &Counters::rx_ip_version;
    case Drop::IpHeaderLength:
        return &Counters::rx_ip_header_length;
    case Drop::Destination:
        return &Counters::rx_bad_destination;
    case Drop::IpChecksum:
        return &Counters::rx_ip_checksum;
    case Drop::IpLength:
        return &Counters::rx_ip_length;
    case Drop::UdpLength:
        return &Counters::rx_udp_length;
    case Drop::BthVersion:
        return &Counters::rx_bth_version;
    case Drop::NoQp:
        return &Counters::rx_no_qp;
    case Drop::QpState:
        return &Counters::rx_qp_state;
    case Drop::Sequence:
        return &Counters::rx_opcode_sequence;
    case Drop::Opcode:
        return &Counters::rx_unknown_opcode;
    case Drop::Pad:
        return &Counters::rx_bad_pad;
    case Drop::Length:
        return &Counters::rx_bad_length;
    case Drop::Syndrome:
        return &Counters::rx_bad_syndrome;
    case Drop::Response:
        return &Counters::rx_bad_response;
    case Drop::Source:
        return &Counters::rx_bad_source;
    case Drop::Headers:
        return &Counters::rx_short_headers;
    case Drop::Service:
        return &Counters::rx_wrong_service;
    default:
        return nullptr;
    }
}

uint64_t Counters::*drop_sum(Drop why)
{
    switch (why) {
    case Drop::IpVersion:
    case Drop::IpHeaderLength:
    case Drop::IpChecksum:
    case Drop::UdpLength:
    case Drop::BthVersion:
    case Drop::Cnp:
        return &Counters::rx_bad_header;
    case Drop::IpLength:
    case Drop::Headers:
        return &Counters::rx_too_short;
    case Drop::Icrc:
        return &Counters::rx_bad_icrc;
    case Drop::NoQp:
    case Drop::QpState:
    case Drop::Service:
        return &Counters::rx_unknown_qp;
    default:
        return nullptr;
    }
}

}  // namespace hghca
