// SPDX-License-Identifier: GPL-2.0-or-later
// Why a packet is dropped or refused. The function translates the reasons into the numbers of its interface
// (jingzhao/translate.h).
#pragma once

#include <cstdint>

namespace hghca {

enum class Drop : uint8_t {
    None = 0,
    IpVersion = 2,       // IP version against the Ethernet type
    IpHeaderLength = 3,  // IPv4 header is not of 20 bytes
    Destination = 8,     // destination address is not the QP's
    IpChecksum = 9,      // IPv4 header checksum
    IpLength = 10,       // IP length beyond the frame, or below the headers
    UdpLength = 12,      // UDP length against IP length
    BthVersion = 13,     // BTH version is not 0
    NoQp = 14,           // no such QP
    QpState = 15,        // QP does not receive in its state
    Sequence = 16,       // opcode does not follow the one before
    Opcode = 17,         // unknown opcode
    Pad = 18,            // pad in a packet that is not the last
    Length = 19,         // payload against path MTU and place in the message
    Rnr = 20,            // no receive WQE
    Psn = 21,            // PSN ahead of the expected
    Syndrome = 22,       // reserved AETH syndrome
    Response = 23,       // response does not fit the request
    Source = 27,         // source address is not the peer's
    Icrc = 30,
    Headers = 32,        // no room for the headers of the opcode
    Service = 33,        // opcode of another service than the QP's
    Pkey = 34,
    Qkey = 35,
    TooLong = 36,        // longer than the receive WQE
    Request = 37,        // request that the QP does not take, or not so many of
    Access = 38,         // remote access error
    Operation = 39,      // receive WQE, or what it names, is at fault
    Cnp = 40,            // CNP without BECN, or of another length
};

}  // namespace hghca
