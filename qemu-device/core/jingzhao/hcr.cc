// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/hcr.h"

#include "byte_order.h"

namespace hghca {

void Hcr::write(unsigned reg, uint32_t value)
{
    switch (reg) {
    case HGHCA_HCR_STATUS:
        regs_[reg / 4] = (regs_[reg / 4] & HGHCA_HCR_STATUS_MASK) |
                         (value & (HGHCA_HCR_EVENT | HGHCA_HCR_OPMOD_MASK | HGHCA_HCR_OP_MASK));
        if (value & HGHCA_HCR_GO)
            run(value);
        break;
    case HGHCA_HCR_TOKEN:
        regs_[reg / 4] = value & HGHCA_HCR_TOKEN_MASK;
        break;
    default:
        regs_[reg / 4] = value;
    }
}

void Hcr::run(uint32_t word)
{
    uint8_t status = HGHCA_CMD_STAT_RESOURCE_BUSY;
    bool reported = false;
    if (!closed_) {
        const CommandInterface::Command command = CommandInterface::read_words(regs_, word);
        const CommandInterface::Result result = commands_.perform(command);
        regs_[HGHCA_HCR_OUT_PARAM_H / 4] = uint32_t(result.out_param >> 32);
        regs_[HGHCA_HCR_OUT_PARAM_L / 4] = uint32_t(result.out_param);
        status = result.status;
        reported = commands_.report(command, result);
    }
    uint32_t &reg = regs_[HGHCA_HCR_STATUS / 4];
    if (!reported) {
        reg = (reg & ~HGHCA_HCR_STATUS_MASK) | field_put(HGHCA_HCR_STATUS_MASK, status);
        commands_.record(reg);
    }
}

}  // namespace hghca
