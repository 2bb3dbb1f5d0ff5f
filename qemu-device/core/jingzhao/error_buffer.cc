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

uint64_t Counters::*drop_counter(hghca_drop why)
{
    switch (why) {
    case HGHCA_DROP_IP_VERSION:
        return &Counters::rx_ip_version;
    case HGHCA_DROP_IP_HEADER_LENGTH:
        return &Counters::rx_ip_header_length;
    case HGHCA_DROP_DESTINATION:
        return &Counters::rx_bad_destination;
    case HGHCA_DROP_IP_CHECKSUM:
        return &Counters::rx_ip_checksum;
    case HGHCA_DROP_IP_LENGTH:
        return &Counters::rx_ip_length;
    case HGHCA_DROP_UDP_LENGTH:
        return &Counters::rx_udp_length;
    case HGHCA_DROP_BTH_VERSION:
        return &Counters::rx_bth_version;
    case HGHCA_DROP_NO_QP:
        return &Counters::rx_no_qp;
    case HGHCA_DROP_QP_STATE:
        return &Counters::rx_qp_state;
    case HGHCA_DROP_SEQUENCE:
        return &Counters::rx_opcode_sequence;
    case HGHCA_DROP_OPCODE:
        return &Counters::rx_unknown_opcode;
    case HGHCA_DROP_PAD:
        return &Counters::rx_bad_pad;
    case HGHCA_DROP_LENGTH:
        return &Counters::rx_bad_length;
    case HGHCA_DROP_SYNDROME:
        return &Counters::rx_bad_syndrome;
    case HGHCA_DROP_RESPONSE:
        return &Counters::rx_bad_response;
    case HGHCA_DROP_SOURCE:
        return &Counters::rx_bad_source;
    case HGHCA_DROP_HEADERS:
        return &Counters::rx_short_headers;
    case HGHCA_DROP_SERVICE:
        return &Counters::rx_wrong_service;
    default:
        return nullptr;
    }
}

uint64_t Counters::*drop_sum(hghca_drop why)
{
    switch (why) {
    case HGHCA_DROP_IP_VERSION:
    case HGHCA_DROP_IP_HEADER_LENGTH:
    case HGHCA_DROP_IP_CHECKSUM:
    case HGHCA_DROP_UDP_LENGTH:
    case HGHCA_DROP_BTH_VERSION:
    case HGHCA_DROP_CNP:
        return &Counters::rx_bad_header;
    case HGHCA_DROP_IP_LENGTH:
    case HGHCA_DROP_HEADERS:
        return &Counters::rx_too_short;
    case HGHCA_DROP_ICRC:
        return &Counters::rx_bad_icrc;
    case HGHCA_DROP_NO_QP:
    case HGHCA_DROP_QP_STATE:
    case HGHCA_DROP_SERVICE:
        return &Counters::rx_unknown_qp;
    default:
        return nullptr;
    }
}

}  // namespace hghca
