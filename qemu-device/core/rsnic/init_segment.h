// SPDX-License-Identifier: GPL-2.0-or-later
// The initialization segment of RSNIC and its command queue (docs/reference/rsnic.rst, 2 to 4).
#pragma once

#include <cstdint>

#include "hghca_hw.h"

namespace hghca {

class Device;

class InitSegment {
public:
    explicit InitSegment(Device &device) : device_(device) {}

    void reset();
    // CLOSE_HCA: the queue is off once the entry in hand is complete.
    void close() { turn_off(); }
    // `offset` is a multiple of 4, below HGHCA_SEG_SIZE. Reads answer also when the device has failed.
    uint32_t read(uint32_t offset) const;
    void write(uint32_t offset, uint32_t value);
    void clear_interrupt(uint32_t value);
    // Executes entries that were rung, until the slice is over; one at least.
    void run();
    bool has_work() const { return pending_ && !initializing(); }
    // Until then the device takes no command.
    bool initializing() const;
    // The health counter stands still from now on.
    void stop(hghca_health syndrome);
    // What an entry leaves: work for a later turn, or none. Until that turn, the health counter stands still.
    void wait(bool for_turn);
    void turn() { waiting_ns_ = UINT64_MAX; }

private:
    uint32_t health() const;
    void set_queue(uint32_t value);
    void turn_on(uint64_t address);
    void turn_off();
    void ring(uint32_t vector);
    void execute(unsigned index);
    void ignore();

    Device &device_;
    uint32_t high_ = 0;              // as software has written it
    uint64_t given_ = 0;             // the address with which it last wrote the low word
    uint64_t address_ = 0;           // of the queue; 0: it is off
    uint32_t pending_ = 0;           // bit i: entry i was rung
    uint64_t ready_ns_ = 0;          // initializing until then
    uint64_t stopped_ns_ = UINT64_MAX;   // when the device has failed
    uint64_t waiting_ns_ = UINT64_MAX;   // since when work waits for a turn
    hghca_health syndrome_ = HGHCA_HEALTH_NONE;
};

}  // namespace hghca
