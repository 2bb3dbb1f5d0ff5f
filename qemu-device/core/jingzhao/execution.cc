// SPDX-License-Identifier: GPL-2.0-or-later
#include <atomic>
#include <cstdio>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/command_table.h"
#include "jingzhao/eq.h"

namespace hghca {

// The words of the HCR, and the last of them as it was written.
CommandInterface::Command CommandInterface::read_words(std::span<const uint32_t> words, uint32_t last)
{
    auto pair = [words](unsigned high) { return uint64_t(words[high / 4]) << 32 | words[high / 4 + 1]; };
    return {.op = uint16_t(field_get(HGHCA_HCR_OP_MASK, last)),
            .op_modifier = uint8_t(field_get(HGHCA_HCR_OPMOD_MASK, last)),
            .in_modifier = words[HGHCA_HCR_IN_MODIFIER / 4],
            .in_param = pair(HGHCA_HCR_IN_PARAM_H),
            .out_param = pair(HGHCA_HCR_OUT_PARAM_H),
            .token = uint16_t(field_get(HGHCA_HCR_TOKEN_MASK, words[HGHCA_HCR_TOKEN / 4])),
            .by_event = bool(last & HGHCA_HCR_EVENT)};
}

CommandInterface::Result CommandInterface::perform(const Command &command)
{
    Result result{};
    const bool by_event = command.by_event && device_.eqs->takes(HGHCA_EVENT_CMD);
    immediate_ = command.out_param;
    if (command.by_event && !by_event)
        result.status = HGHCA_CMD_STAT_BAD_SYS_STATE;
    else if (fault_is_due())
        result.status = HGHCA_CMD_STAT_INTERNAL_ERR;
    else
        result.status = execute(command);
    result.out_param = immediate_;
    executed_++;
    trace(command, result.status);
    result.by_event = by_event;
    return result;
}

bool CommandInterface::fault_is_due()
{
    if (!until_fault_)
        return false;
    until_fault_--;
    return !until_fault_;
}

bool CommandInterface::report(const Command &command, const Result &result)
{
    // The command may have been the one that took the EQ away.
    if (!result.by_event || !device_.eqs->takes(HGHCA_EVENT_CMD))
        return false;
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_CMD;
    eqe.event.cmd.token = be16(command.token);
    eqe.event.cmd.status = result.status;
    eqe.event.cmd.out_param_h = be32(uint32_t(result.out_param >> 32));
    eqe.event.cmd.out_param_l = be32(uint32_t(result.out_param));
    device_.eqs->post_async(eqe);
    return true;
}

void CommandInterface::record(uint32_t word)
{
    // Without its memory, software reads the HCR.
    if (record_)
        (void)write_record(*record_, word);
}

bool CommandInterface::write_record(uint64_t dma, uint32_t word)
{
    const uint32_t value = be32(word);
    if (uint8_t *place = device_.host.map(dma, sizeof(value), true)) {
        // Software polls it from another thread: what the command has written must be there before it.
        __atomic_store_n(reinterpret_cast<uint32_t *>(place), value, __ATOMIC_RELEASE);
        device_.host.dirty(dma, sizeof(value));
        return true;
    }
    std::atomic_thread_fence(std::memory_order_release);
    return device_.host.write(dma, &value, sizeof(value));
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
