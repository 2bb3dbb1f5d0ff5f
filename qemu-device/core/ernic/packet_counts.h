// SPDX-License-Identifier: GPL-2.0-or-later
// The counters of packets among the global status registers. They wrap at 16 bits, and only a reset clears them.
#pragma once

#include <cstdint>

#include "ernic/register_file.h"
#include "ernic/validation.h"
#include "wire/packet.h"

namespace hghca::ernic {

class PacketCounts {
public:
    explicit PacketCounts(RegisterFile &registers) : registers_(registers) {}

    // A frame of RoCE v2 has come, whether it is valid or not.
    void received(const Incoming &packet);
    // It is valid.
    void accepted(const Incoming &packet);
    void dropped(bool invalid);
    void duplicate() { add_high(ERNIC_ININVDUPCNT); }
    // QP `qpn` has sent a packet.
    void sent(uint32_t qpn, const TransportHeader &h);
    void sent_mad(uint32_t qpn);
    void retried() { registers_.global(ERNIC_RETRYCNTSTS)++; }
    void wqe_begun();
    void illegal_opcode(uint8_t opcode);

private:
    void add_low(uint32_t offset);
    void add_high(uint32_t offset) { registers_.global(offset) += 1u << 16; }
    void last(uint32_t offset, uint8_t opcode, uint32_t qpn, uint32_t psn);

    RegisterFile &registers_;
};

}  // namespace hghca::ernic
