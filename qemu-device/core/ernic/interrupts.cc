// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/interrupts.h"

namespace hghca::ernic {

void Interrupts::raise(ernic_interrupt source)
{
    registers_.global(ERNIC_INTSTS) |= 1u << source;
    if (asserted_ || !pending())
        return;
    asserted_ = true;
    host_.raise_vector(0);
}

void Interrupts::raise_bank(uint32_t first, uint32_t qpn, ernic_interrupt source)
{
    registers_.global(first + qpn / 32 * 4) |= 1u << qpn % 32;
    raise(source);
}

bool Interrupts::any(uint32_t first) const
{
    uint32_t bits = 0;
    for (uint32_t n = 0; n < ERNIC_INTERRUPT_BANKS; n++)
        bits |= registers_.global(first + 4 * n);
    return bits;
}

void Interrupts::write_one_to_clear(uint32_t offset, uint32_t bits)
{
    registers_.global(offset) &= ~bits;
    uint32_t &status = registers_.global(ERNIC_INTSTS);
    status &= ~(1u << ERNIC_INT_RECEIVE | 1u << ERNIC_INT_COMPLETION);
    status |= uint32_t(any(ERNIC_RQINTSTS1)) << ERNIC_INT_RECEIVE;
    status |= uint32_t(any(ERNIC_CQINTSTS1)) << ERNIC_INT_COMPLETION;
    update();
}

void Interrupts::update()
{
    const bool wanted = pending();
    if (wanted)
        host_.raise_vector(0);
    else if (asserted_)
        host_.lower_interrupt();
    asserted_ = wanted;
}

}  // namespace hghca::ernic
