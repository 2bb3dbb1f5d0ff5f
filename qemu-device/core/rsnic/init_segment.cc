// SPDX-License-Identifier: GPL-2.0-or-later
#include "rsnic/init_segment.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/commands.h"
#include "jingzhao/hcr.h"

namespace hghca {

namespace {

constexpr uint32_t kModesSupported = 1u << HGHCA_SEG_FULL_DRIVER | 1u << HGHCA_SEG_DISABLED;
constexpr uint64_t kHealthTickNs = 1'000'000'000 / HGHCA_SEG_HEALTH_HZ;
constexpr size_t kHcrWords = HGHCA_HCR_SIZE / 4;
constexpr size_t kOwner = offsetof(hghca_cmdq_entry, owner) / 4, kEntryWords = kOwner + 1;   // of an entry

}  // namespace

void InitSegment::reset()
{
    turn_off();
    high_ = 0;
    given_ = 0;
    ready_ns_ = device_.host.now_ns() + device_.config.init_delay_ns;
    stopped_ns_ = waiting_ns_ = UINT64_MAX;
    syndrome_ = HGHCA_HEALTH_NONE;
}

void InitSegment::stop(hghca_health syndrome)
{
    syndrome_ = syndrome;
    stopped_ns_ = device_.host.now_ns();
}

void InitSegment::wait(bool for_turn)
{
    if (!for_turn)
        waiting_ns_ = UINT64_MAX;
    else if (waiting_ns_ == UINT64_MAX)
        waiting_ns_ = device_.host.now_ns();
}

bool InitSegment::initializing() const { return device_.host.now_ns() < ready_ns_; }

uint32_t InitSegment::health() const
{
    const uint64_t ticks = std::min({device_.host.now_ns(), stopped_ns_, waiting_ns_}) / kHealthTickNs;
    return field_put(HGHCA_SEG_SYNDROME_MASK, syndrome_) | (uint32_t(ticks) & HGHCA_SEG_HEALTH_COUNTER_MASK);
}

uint32_t InitSegment::read(uint32_t offset) const
{
    switch (offset) {
    case HGHCA_SEG_FW_REV:
        return field_put(HGHCA_SEG_FW_MAJOR_MASK, kFirmwareMajor) | field_put(HGHCA_SEG_FW_MINOR_MASK, kFirmwareMinor);
    case HGHCA_SEG_CMD_REV:
        return field_put(HGHCA_SEG_CMD_REV_MASK, HGHCA_SEG_CMD_INTERFACE);
    case HGHCA_SEG_CMDQ_H:
        return high_;
    case HGHCA_SEG_CMDQ_L:
        return uint32_t(given_) | field_put(HGHCA_SEG_LOG_SIZE_MASK, HGHCA_CMDQ_LOG_SIZE) |
               field_put(HGHCA_SEG_LOG_STRIDE_MASK, HGHCA_CMDQ_LOG_STRIDE);
    case HGHCA_SEG_INIT:
        return (initializing() ? HGHCA_SEG_INITIALIZING : 0) |
               field_put(HGHCA_SEG_NIC_SUPPORTED_MASK, kModesSupported);
    case HGHCA_SEG_TIMER_H:
        return uint32_t(device_.host.now_ns() >> 32);
    case HGHCA_SEG_TIMER_L:
        return uint32_t(device_.host.now_ns());
    case HGHCA_SEG_HEALTH:
        return health();
    case HGHCA_SEG_FAILURE:
        return syndrome_ ? health() : 0;
    case HGHCA_SEG_FAILURE_TIME_H:
        return syndrome_ ? uint32_t(stopped_ns_ >> 32) : 0;
    case HGHCA_SEG_FAILURE_TIME_L:
        return syndrome_ ? uint32_t(stopped_ns_) : 0;
    default:
        return 0;
    }
}

void InitSegment::write(uint32_t offset, uint32_t value)
{
    switch (offset) {
    case HGHCA_SEG_CMDQ_H:
        // Not to be modified between INIT_HCA and CLOSE_HCA, nor under way. It counts with the next write of the low word.
        if (!device_.initialized && !pending_)
            high_ = value;
        else if (value != high_)
            ignore();
        break;
    case HGHCA_SEG_CMDQ_L:
        set_queue(value);
        break;
    case HGHCA_SEG_CMDQ_DB:
        ring(value);
        break;
    default:
        break;
    }
}

void InitSegment::clear_interrupt(uint32_t value)
{
    if (value & HGHCA_SEG_CLEAR)
        device_.host.lower_interrupt();
}

// The low word of the address, and the mode of the interface.
void InitSegment::set_queue(uint32_t value)
{
    const uint32_t mode = field_get(HGHCA_SEG_NIC_INTERFACE_MASK, value);
    const uint32_t low = value & HGHCA_SEG_CMDQ_ADDR_MASK;
    if (mode != HGHCA_SEG_FULL_DRIVER && mode != HGHCA_SEG_DISABLED) {
        ignore();
        return;
    }
    const uint64_t address = uint64_t(high_) << 32 | low;
    // A queue is not changed while entries of it are under way, nor moved between INIT_HCA and CLOSE_HCA.
    if (pending_ || (device_.initialized && address != given_)) {
        ignore();
        return;
    }
    given_ = address;
    if (mode == HGHCA_SEG_FULL_DRIVER && address)
        turn_on(address);
    else
        turn_off();
}

void InitSegment::turn_on(uint64_t address)
{
    address_ = address;
    device_.hcr->close(true);
}

void InitSegment::turn_off()
{
    address_ = 0;
    pending_ = 0;
    device_.hcr->close(false);
}

void InitSegment::ignore() { device_.counters_.cmdq_ignored++; }

void InitSegment::ring(uint32_t vector)
{
    static_assert(HGHCA_CMDQ_ENTRIES == 32, "every bit of the vector names an entry");
    if (!address_ || initializing() || vector & pending_)
        ignore();
    if (!address_ || initializing())
        return;
    pending_ |= vector;
    run();
}

void InitSegment::run()
{
    while (has_work()) {
        const unsigned index = unsigned(std::countr_zero(pending_));
        pending_ &= ~(1u << index);
        device_.work.add();
        execute(index);
        if (device_.work.over())
            return;
    }
}

void InitSegment::execute(unsigned index)
{
    const uint64_t at = address_ + (uint64_t(index) << HGHCA_CMDQ_LOG_STRIDE);
    std::array<uint32_t, kEntryWords> words{};
    if (!device_.host.read(at, words.data(), sizeof(words)))
        device_.fail_entry("no memory at the command queue", HGHCA_HEALTH_ICM_FETCH_PCI_ERR);
    for (uint32_t &word : words)
        word = le32(word);
    if (!(words[kOwner] & HGHCA_CMDQ_HW)) {
        ignore();
        return;
    }
    const uint32_t last = words[kHcrWords - 1];
    const CommandInterface::Command command =
        CommandInterface::read_words(std::span(words).first(kHcrWords), last);
    const CommandInterface::Result result = device_.commands->perform(command);

    // The output and the status, then the owner, then the EQE: software that has seen it may use the entry again.
    std::array<uint32_t, 4> output{le32(uint32_t(result.out_param >> 32)), le32(uint32_t(result.out_param)),
                                   le32(words[HGHCA_HCR_TOKEN / 4]),
                                   le32((last & ~(HGHCA_HCR_STATUS_MASK | HGHCA_HCR_GO)) |
                                        field_put(HGHCA_HCR_STATUS_MASK, result.status))};
    const uint32_t software = 0;
    if (!device_.host.write(at + HGHCA_HCR_OUT_PARAM_H, output.data(), sizeof(output)) ||
        !device_.host.write(at + offsetof(hghca_cmdq_entry, owner), &software, sizeof(software)))
        device_.fail_entry("no memory at the command queue", HGHCA_HEALTH_ICM_FETCH_PCI_ERR);
    (void)device_.commands->report(command, result);
}

}  // namespace hghca
