// SPDX-License-Identifier: GPL-2.0-or-later
// What an entry into the device may do before it returns.
#pragma once

#include <cstdint>

namespace hghca {

// Counts work in units that cost about the same: a packet made or received, a WQE begun, completed or flushed, an
// event written, an MTT read, a context read from ICM or written there, a timer that ends, and of a command each page of
// ICM and each context. An entry does one slice. The core reads no clock for this: the same calls do the same work each
// time.
//
// A loop that a guest or a peer can make long looks at over() and leaves the rest to the next slice. It does one step
// at least, so each slice gets on, however short it is. A command is not divided.
class Work {
public:
    void begin_slice(uint64_t units) { end_ = done_ + units; }
    void add(uint64_t units = 1) { done_ += units; }
    // Steps of a search by a command, each of which costs little.
    void add_looks(uint64_t steps) { done_ += steps / kLooks; }
    bool over() const { return done_ >= end_; }
    // Since the beginning.
    uint64_t done() const { return done_; }

private:
    static constexpr uint64_t kLooks = 16;   // in a unit

    uint64_t done_ = 0;
    uint64_t end_ = 0;
};

}  // namespace hghca
