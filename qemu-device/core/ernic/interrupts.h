// SPDX-License-Identifier: GPL-2.0-or-later
// INTEN, INTSTS and the banks of the queues (000, table 3-3).
#pragma once

#include <cstdint>

#include "ernic/register_file.h"
#include "host.h"

namespace hghca::ernic {

// INTSTS latches whatever INTEN says, and INTEN gates the line. Bits COMPLETION and RECEIVE are the OR of their banks.
// The line is a level: Host::raise_vector() asserts it, and Host::lower_interrupt() deasserts it. After each write that
// leaves a source pending, it is raised again: a message of MSI is an edge.
class Interrupts {
public:
    Interrupts(RegisterFile &registers, Host &host) : registers_(registers), host_(host) {}

    void raise(ernic_interrupt source);
    void raise_receive(uint32_t qpn) { raise_bank(ERNIC_RQINTSTS1, qpn, ERNIC_INT_RECEIVE); }
    void raise_completion(uint32_t qpn) { raise_bank(ERNIC_CQINTSTS1, qpn, ERNIC_INT_COMPLETION); }
    // Of INTSTS and of the banks.
    void write_one_to_clear(uint32_t offset, uint32_t bits);
    // INTEN has changed.
    void update();
    void reset() { asserted_ = false; }

private:
    void raise_bank(uint32_t first, uint32_t qpn, ernic_interrupt source);
    bool any(uint32_t first) const;
    uint32_t pending() const { return registers_.global(ERNIC_INTSTS) & registers_.global(ERNIC_INTEN); }

    RegisterFile &registers_;
    Host &host_;
    bool asserted_ = false;
};

}  // namespace hghca::ernic
