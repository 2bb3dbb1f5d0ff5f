// SPDX-License-Identifier: GPL-2.0-or-later
#include "loopback/controller.h"

#include <algorithm>
#include <array>

namespace loopback {

namespace {

constexpr uint32_t kDescriptorBytes = 64, kCompletionBytes = 32;
constexpr uint64_t kWideMask = (uint64_t(1) << 48) - 1;
static_assert(kDescriptorBytes == sizeof(loopback_sqe) && kCompletionBytes == sizeof(loopback_cqe));

enum class Access : uint8_t { Absent, RW, INDEX, RO, WO };

// By offset / 4.
constexpr auto kAccess = [] {
    std::array<Access, LOOPBACK_APERTURE / 4> access{};
#define LOOPBACK_ACCESS(name, offset, rights) access[(offset) / 4] = Access::rights;
    LOOPBACK_REGISTERS(LOOPBACK_ACCESS)
#undef LOOPBACK_ACCESS
    return access;
}();

// Whether the receiver writes the payload of an opcode.
constexpr auto kWritten = [] {
    std::array<bool, 256> written{};
#define LOOPBACK_WRITTEN(name, value) written[value] = true;
    LOOPBACK_OPCODES(LOOPBACK_WRITTEN)
#undef LOOPBACK_WRITTEN
    return written;
}();

uint32_t get32(std::span<const uint8_t> bytes, size_t at)
{
    return uint32_t(bytes[at]) | uint32_t(bytes[at + 1]) << 8 | uint32_t(bytes[at + 2]) << 16 | uint32_t(bytes[at + 3]) << 24;
}

uint64_t get64(std::span<const uint8_t> bytes, size_t at)
{
    return get32(bytes, at) | uint64_t(get32(bytes, at + 4)) << 32;
}

void put32(std::span<uint8_t> bytes, size_t at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[at + i] = uint8_t(value >> 8 * i);
}

}  // namespace

// ---- registers

uint32_t Controller::read(uint32_t offset) const
{
    if (offset >= LOOPBACK_APERTURE || offset % 4)
        return 0;
    const Access access = kAccess[offset / 4];
    if (access == Access::Absent || access == Access::WO)
        return 0;
    switch (offset) {
    case LOOPBACK_HW_STATUS:
        return config_.extensions << 16 | (refuses_sizes() ? LOOPBACK_HW_STATUS_SIZES : 0);
    case LOOPBACK_IRQ_ENABLE:
    case LOOPBACK_IRQ_STATUS:
        return has(LOOPBACK_EXT_IRQ) ? at(offset) : 0;
    case LOOPBACK_RDMA_STATE:
        return uint32_t(state_);
    default:
        return at(offset);
    }
}

void Controller::write(uint32_t offset, uint32_t value)
{
    if (offset >= LOOPBACK_APERTURE || offset % 4)
        return;
    switch (kAccess[offset / 4]) {
    case Access::Absent:
    case Access::RO:
        return;
    case Access::INDEX:
        if (offset == LOOPBACK_CQ_HEAD)
            move_cq_head(value & 0xffff);
        at(offset) = value & 0xffff;
        break;
    case Access::WO:
        break;
    case Access::RW:
        if (offset == LOOPBACK_IRQ_STATUS)
            at(offset) &= ~value;
        else
            at(offset) = value;
        break;
    }
    switch (offset) {
    case LOOPBACK_SQ_TAIL:
    case LOOPBACK_SQ_DOORBELL:
        counters_.doorbells++;
        break;
    case LOOPBACK_GLOBAL_CFG:
        // Under way, a transfer keeps the rules that it began with.
        if (!enabled() && state_ == State::Idle)
            enabled_ = value >> 16 & config_.extensions;
        break;
    case LOOPBACK_CONTROL:
        if (has(LOOPBACK_EXT_SOFT_RESET) && value & LOOPBACK_CONTROL_RESET)
            reset();
        break;
    case LOOPBACK_CQ_SIZE:
        unread_ = 0;   // another queue
        break;
    default:
        break;
    }
    const bool starts = offset == LOOPBACK_CONTROL || offset == LOOPBACK_SQ_TAIL || offset == LOOPBACK_SQ_DOORBELL;
    if (starts && is_asked_to_start() && !sizes_are_good())
        counters_.bad_sizes++;
    update_interrupt();
}

void Controller::reset()
{
    registers_ = {};
    enabled_ = 0;
    state_ = State::Idle;
    transfer_ = {};
    waiting_ = 0;
    unread_ = 0;
    update_interrupt();
}

void Controller::update_interrupt()
{
    host_.set_interrupt(has(LOOPBACK_EXT_IRQ) && at(LOOPBACK_CONTROL) & LOOPBACK_CONTROL_IRQ &&
                        at(LOOPBACK_IRQ_STATUS) & at(LOOPBACK_IRQ_ENABLE));
}

// ---- the controller

bool Controller::cq_is_full() const
{
    return next(at(LOOPBACK_CQ_TAIL), at(LOOPBACK_CQ_SIZE)) == at(LOOPBACK_CQ_HEAD);
}

bool Controller::sizes_are_good() const
{
    return at(LOOPBACK_SQ_SIZE) >= 2 && at(LOOPBACK_CQ_SIZE) >= 2 && at(LOOPBACK_SQ_TAIL) < at(LOOPBACK_SQ_SIZE);
}

// Without CHECKS, an SQ of one entry and a tail beyond the size keep the controller busy until it is disabled.
bool Controller::refuses_sizes() const
{
    return has(LOOPBACK_EXT_CHECKS) && is_asked_to_start() && !sizes_are_good();
}

// For a step.
bool Controller::is_ready() const
{
    if (state_ != State::Idle)
        return !is_stuck();
    if (!is_asked_to_start() || refuses_sizes())
        return false;
    return !has(LOOPBACK_EXT_CQ_STALL) || !cq_is_full();
}

bool Controller::has_work() const
{
    return is_ready() || (state_ == State::Idle && waiting_);
}

bool Controller::run(unsigned steps)
{
    // What a late receiver has kept since the last turn.
    if (state_ == State::Idle)
        receive_all();
    while (steps-- && is_ready())
        step();
    return has_work();
}

void Controller::time_out()
{
    if (!awaits_time_out())
        return;
    counters_.timeouts++;
    transfer_.status = LOOPBACK_STATUS_TIMEOUT;
    state_ = State::WriteCompletion;
}

void Controller::step()
{
    switch (state_) {
    case State::Idle:
        receive_all();   // fragments in the FIFO are of the transfer in hand
        fetch();
        break;
    case State::Send:
        send_fragment();
        break;
    case State::WriteCompletion:
        complete();
        break;
    }
}

// Addresses have 32 bits, and their sums wrap there; 48 with WIDE.
uint64_t Controller::address(uint64_t base, uint64_t offset) const
{
    return (base + offset) & (has(LOOPBACK_EXT_WIDE) ? kWideMask : UINT32_MAX);
}

void Controller::fetch()
{
    std::array<uint8_t, kDescriptorBytes> bytes{};
    const uint64_t base = at(LOOPBACK_SQ_BASE_LO) | uint64_t(at(LOOPBACK_SQ_BASE_HI)) << 32;
    counters_.descriptors++;
    const bool there = host_.read(address(base, uint64_t(at(LOOPBACK_SQ_HEAD)) * kDescriptorBytes), bytes);
    if (!there)
        bytes = {};
    transfer_ = {};
    transfer_.id = get32(bytes, 0x00);
    transfer_.opcode = bytes[0x04];
    transfer_.local = get64(bytes, 0x08);
    transfer_.remote = get64(bytes, 0x10);
    for (unsigned i = 0; i < 4; i++)
        transfer_.btt[i] = get32(bytes, 0x18 + 4 * i);
    transfer_.length = transfer_.btt[0];
    transfer_.source = address(transfer_.local, 0);
    transfer_.destination = address(transfer_.remote, 0);
    transfer_.remaining = transfer_.length;
    at(LOOPBACK_LOCAL_HI) = uint32_t(transfer_.local >> 32);
    at(LOOPBACK_REMOTE_LO) = uint32_t(transfer_.remote);
    at(LOOPBACK_REMOTE_HI) = uint32_t(transfer_.remote >> 32);
    for (unsigned i = 0; i < 4; i++)
        at(LOOPBACK_BTT_0 + 4 * i) = transfer_.btt[i];
    state_ = State::Send;
    const uint32_t limit = has(LOOPBACK_EXT_WIDE) ? LOOPBACK_LENGTH_WIDE_MAX : LOOPBACK_LENGTH_MAX;
    if (!transfer_.length || transfer_.length > limit)
        transfer_.status = LOOPBACK_STATUS_LENGTH;
    if (!transfer_.length)
        counters_.empty++;
    if (!there) {
        counters_.dma_errors++;
        transfer_.status = LOOPBACK_STATUS_LOCAL_ACCESS;
    }
    if (has(LOOPBACK_EXT_CHECKS) && transfer_.status)
        state_ = State::WriteCompletion;
}

void Controller::make_header(Header &header, uint32_t length) const
{
    const bool wide = has(LOOPBACK_EXT_WIDE);
    const uint32_t high = wide ? uint32_t(transfer_.destination >> 32) << 16 : 0;
    put32(header, 0, LOOPBACK_HEADER_PSN << 8 | transfer_.opcode);
    put32(header, 4, transfer_.id & 0xffffff);
    put32(header, 8, uint32_t(transfer_.destination));
    put32(header, 12, wide ? transfer_.offset : transfer_.offset & 0xffff);
    put32(header, 16, length);
    put32(header, 20, high | LOOPBACK_HEADER_PKEY);
    put32(header, 24, LOOPBACK_HEADER_FILL << 8 | LOOPBACK_HEADER_SL);
}

Controller::Fragment &Controller::free_slot()
{
    if (waiting_ == kFifoFragments)
        receive_oldest();
    return fifo_[(oldest_ + waiting_) % kFifoFragments];
}

// One fragment, which ends with the block, the page of the source, or the transfer. A transfer of 0 bytes has a header.
void Controller::send_fragment()
{
    const uint32_t to_border = uint32_t(LOOPBACK_PAGE - transfer_.source % LOOPBACK_PAGE);
    Fragment &fragment = free_slot();
    fragment.length = std::min({transfer_.remaining, uint32_t(LOOPBACK_BLOCK_SIZE), to_border});
    make_header(fragment.header, fragment.length);
    host_.trace(fragment.header);
    counters_.fragments++;

    if (fragment.length && !host_.read(transfer_.source, fragment.payload())) {
        counters_.dma_errors++;
        transfer_.status = LOOPBACK_STATUS_LOCAL_ACCESS;
        if (has(LOOPBACK_EXT_CHECKS)) {
            state_ = State::WriteCompletion;
            return;
        }
        std::ranges::fill(fragment.payload(), 0);   // not what the slot had before
    }
    counters_.bytes += fragment.length;
    transfer_.source = address(transfer_.source, fragment.length);
    transfer_.offset += fragment.length;
    transfer_.remaining -= fragment.length;
    if (config_.late_receiver && !has(LOOPBACK_EXT_PLACED))
        waiting_++;
    else
        receive(fragment);
    if (!transfer_.remaining || (has(LOOPBACK_EXT_CHECKS) && transfer_.status))
        state_ = State::WriteCompletion;
}

// The receiver knows of a fragment what its header says.
void Controller::receive(const Fragment &fragment)
{
    const Header &header = fragment.header;
    if (!kWritten[header[0]]) {
        counters_.discarded++;
        return;
    }
    uint64_t destination = get32(header, 8);
    if (has(LOOPBACK_EXT_WIDE))
        destination |= uint64_t(get32(header, 20) >> 16) << 32;
    if (!fragment.length || host_.write(address(destination, get32(header, 12)), fragment.payload()))
        return;
    counters_.dma_errors++;
    transfer_.status = LOOPBACK_STATUS_REMOTE_ACCESS;
}

void Controller::receive_oldest()
{
    receive(fifo_[oldest_]);
    oldest_ = (oldest_ + 1) % kFifoFragments;
    waiting_--;
}

void Controller::receive_all()
{
    while (waiting_)
        receive_oldest();
}

// Before a completion is written at CQ_TAIL.
void Controller::count_unread()
{
    const uint32_t index = distance(at(LOOPBACK_CQ_HEAD), at(LOOPBACK_CQ_TAIL), at(LOOPBACK_CQ_SIZE));
    if (index < unread_)
        counters_.cq_overruns++;
    else
        unread_ = index + 1;
}

void Controller::move_cq_head(uint32_t head)
{
    unread_ -= std::min(unread_, distance(at(LOOPBACK_CQ_HEAD), head, at(LOOPBACK_CQ_SIZE)));
}

void Controller::complete()
{
    std::array<uint8_t, kCompletionBytes> bytes{};
    const uint32_t index = at(LOOPBACK_SQ_HEAD) & 0xff;
    put32(bytes, 0x00, index);
    put32(bytes, 0x04, has(LOOPBACK_EXT_CHECKS) ? transfer_.status : uint32_t(LOOPBACK_STATUS_SUCCESS));
    put32(bytes, 0x08, transfer_.length - transfer_.remaining);
    put32(bytes, 0x0c, index);
    put32(bytes, 0x10, transfer_.id);
    put32(bytes, 0x14, transfer_.length);
    count_unread();
    const uint64_t base = at(LOOPBACK_CQ_BASE_LO) | uint64_t(at(LOOPBACK_CQ_BASE_HI)) << 32;
    if (!host_.write(address(base, uint64_t(at(LOOPBACK_CQ_TAIL)) * kCompletionBytes), bytes))
        counters_.dma_errors++;
    at(LOOPBACK_CQ_TAIL) = next(at(LOOPBACK_CQ_TAIL), at(LOOPBACK_CQ_SIZE));
    at(LOOPBACK_SQ_HEAD) = next(at(LOOPBACK_SQ_HEAD), at(LOOPBACK_SQ_SIZE));
    state_ = State::Idle;
    at(LOOPBACK_IRQ_STATUS) |= LOOPBACK_IRQ_COMPLETION;
    update_interrupt();
}

}  // namespace loopback
