// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/hcr.h"

#include <cstdio>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/command_table.h"
#include "jingzhao/eq.h"

namespace hghca {

void CommandInterface::reset() { regs_.fill(0); }

uint32_t CommandInterface::read(unsigned reg) const { return regs_[reg / 4]; }

void CommandInterface::write(unsigned reg, uint32_t value)
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

void CommandInterface::run(uint32_t word)
{
    auto reg = [this](unsigned r) { return regs_[r / 4]; };
    Command command{};
    command.op = uint16_t(field_get(HGHCA_HCR_OP_MASK, word));
    command.op_modifier = uint8_t(field_get(HGHCA_HCR_OPMOD_MASK, word));
    command.in_modifier = reg(HGHCA_HCR_IN_MODIFIER);
    command.in_param = uint64_t(reg(HGHCA_HCR_IN_PARAM_H)) << 32 | reg(HGHCA_HCR_IN_PARAM_L);
    command.out_param = uint64_t(reg(HGHCA_HCR_OUT_PARAM_H)) << 32 | reg(HGHCA_HCR_OUT_PARAM_L);
    auto token = uint16_t(field_get(HGHCA_HCR_TOKEN_MASK, reg(HGHCA_HCR_TOKEN)));

    uint8_t status;
    if (word & HGHCA_HCR_EVENT && !device_.eqs->takes(HGHCA_EVENT_CMD)) {
        status = HGHCA_CMD_STAT_BAD_SYS_STATE;
        word &= ~HGHCA_HCR_EVENT;
    } else if (fault_is_due()) {
        status = HGHCA_CMD_STAT_INTERNAL_ERR;
    } else {
        status = execute(command);
    }
    executed_++;
    trace(command, status);
    report(word, token, status);
}

bool CommandInterface::fault_is_due()
{
    if (!until_fault_)
        return false;
    until_fault_--;
    return !until_fault_;
}

// Tells the end of a command: by an EQE, or in the HCR when it was polled and
// when the command itself took the EQ away.
void CommandInterface::report(uint32_t word, uint16_t token, uint8_t status)
{
    if (word & HGHCA_HCR_EVENT && device_.eqs->takes(HGHCA_EVENT_CMD)) {
        hghca_eqe eqe{};
        eqe.type = HGHCA_EVENT_CMD;
        eqe.event.cmd.token = be16(token);
        eqe.event.cmd.status = status;
        eqe.event.cmd.out_param_h = be32(regs_[HGHCA_HCR_OUT_PARAM_H / 4]);
        eqe.event.cmd.out_param_l = be32(regs_[HGHCA_HCR_OUT_PARAM_L / 4]);
        device_.eqs->post_async(eqe);
        return;
    }
    uint32_t &reg = regs_[HGHCA_HCR_STATUS / 4];
    reg = (reg & ~HGHCA_HCR_STATUS_MASK) | field_put(HGHCA_HCR_STATUS_MASK, status);
}

uint8_t CommandInterface::execute(const Command &command)
{
    const Row *row = find(command.op);
    if (!row || (row->extension && device_.config.profile == Profile::Base))
        return HGHCA_CMD_STAT_BAD_OP;
    if (row->when == HGHCA_CMD_WHEN_INIT && !device_.initialized)
        return HGHCA_CMD_STAT_BAD_SYS_STATE;
    if (row->caps & ~device_.caps)
        return HGHCA_CMD_STAT_BAD_OP;
    if (!row->takes(command))
        return HGHCA_CMD_STAT_BAD_PARAM;

    if (row->has_input(command) && (command.in_param % HGHCA_MAILBOX_SIZE ||
                                    !device_.host.read(command.in_param, in_.data(), in_.size())))
        return HGHCA_CMD_STAT_BAD_PARAM;
    if (row->has_output()) {
        if (command.out_param % HGHCA_MAILBOX_SIZE)
            return HGHCA_CMD_STAT_BAD_PARAM;
        out_.fill(0);
    }
    if (uint8_t status = (this->*row->handler)(command))
        return status;
    // A handler with an output only asks: nothing is to be undone here.
    if (row->has_output() && !device_.host.write(command.out_param, out_.data(), out_.size()))
        return HGHCA_CMD_STAT_BAD_PARAM;
    // Changes what the output tells, so only once that stands in its mailbox.
    if (command.op == HGHCA_CMD_QUERY_COUNTER_SET)
        clear_counter_set(command);
    return HGHCA_CMD_STAT_OK;
}

void CommandInterface::trace(const Command &command, uint8_t status) const
{
    if (!device_.host.tracing())
        return;
    const Row *row = find(command.op);
    char text[128];
    (void)std::snprintf(text, sizeof(text),
                        "command %s op 0x%03x modifier 0x%x op_modifier %u in 0x%llx: status 0x%02x",
                        row ? row->name : "unknown", command.op, command.in_modifier, command.op_modifier,
                        static_cast<unsigned long long>(command.in_param), status);
    device_.host.trace(status ? Host::Trace::Error : Host::Trace::Success, text);
}

}  // namespace hghca
