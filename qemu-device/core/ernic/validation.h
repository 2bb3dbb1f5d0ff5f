// SPDX-License-Identifier: GPL-2.0-or-later
// The validation of packets that are received (000, table 2-3): what can be told before the transport sees the packet.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>

#include "ernic/register_file.h"
#include "wire/link.h"
#include "wire/packet.h"

namespace hghca::ernic {

// A frame to the UDP port of RoCE v2. Fields that the frame is too short for are 0.
struct Incoming {
    FrameView frame;
    std::array<uint8_t, kMaxHeader> head{};
    size_t head_bytes = 0;
    NetworkLayout layout{};
    uint16_t ip_bytes = 0;    // of the IP header
    uint32_t ip_length = 0;   // of the IP header and all behind it, as it says
    uint16_t udp_length = 0;
    uint8_t opcode = 0, bth_flags = 0;
    bool asks_for_ack = false;
    uint8_t syndrome = 0;     // of the AETH, if the opcode has one
    uint32_t qpn = 0, psn = 0;

    uint32_t flags() const { return kOpcodes[opcode]; }
    const uint8_t *ip() const { return head.data() + layout.network_offset; }
};

// False: it is no frame of RoCE v2, which is filtered in front of the device (004:58).
bool take_apart(std::span<const iovec> parts, Incoming &out);

// What the validation asks for besides registers.
class QpView {
public:
    virtual bool is_enabled(uint32_t qpn) const = 0;
    // The PSN of the request that comes next.
    virtual uint32_t expected_psn(uint32_t qpn) const = 0;

protected:
    ~QpView() = default;
};

// The bits of the syndrome of the first precedence at which something is wrong; 0: nothing is. An opcode that is not
// supported is no matter of this if its PSN is the expected one: the transport refuses it by a NAK.
uint32_t validate(const Incoming &packet, const RegisterFile &registers, const QpView &qps, const Link &link);

// Is this an opcode that the device takes?
bool is_supported(Personality personality, uint8_t opcode, bool is_mad);

}  // namespace hghca::ernic
