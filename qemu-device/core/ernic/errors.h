// SPDX-License-Identifier: GPL-2.0-or-later
// Where software finds what was wrong: the error buffer and the two packet error queues (000, ETRNIC RX path).
#pragma once

#include <cstdint>
#include <span>

#include "ernic/register_file.h"
#include "ernic/stats.h"
#include "host.h"

namespace hghca::ernic {

class Errors {
public:
    Errors(RegisterFile &registers, Stats &stats, Host &host) : registers_(registers), stats_(stats), host_(host) {}

    // An entry of the error buffer: the syndrome, and as many of the headers as it has room for. `is_fatal`: it is
    // written whatever XRNICCONF says.
    void keep_packet(uint32_t syndrome, std::span<const uint8_t> headers, bool is_fatal);
    // Entries of the packet error queues. They go round without a check of overflow.
    void fatal(uint32_t qpn, ernic_fatal code);
    void illegal_wqe(uint32_t qpn, uint8_t opcode);

private:
    void append(uint64_t base, uint32_t entries, uint32_t &pointer, uint32_t qpn, uint16_t code);

    RegisterFile &registers_;
    Stats &stats_;
    Host &host_;
};

}  // namespace hghca::ernic
