// SPDX-License-Identifier: GPL-2.0-or-later
// The command register (interface document, 3.1).
#pragma once

#include <array>
#include <cstdint>

#include "hghca_hw.h"
#include "jingzhao/commands.h"

namespace hghca {

class Hcr {
public:
    explicit Hcr(CommandInterface &commands) : commands_(commands) {}

    void reset() { regs_.fill(0); }
    // `reg` is an offset in the HCR, a multiple of 4. A write that sets go runs
    // the command: go is never seen set.
    uint32_t read(unsigned reg) const { return regs_[reg / 4]; }
    void write(unsigned reg, uint32_t value);
    // While it is closed, commands end with RESOURCE_BUSY: they come another way.
    void close(bool closed) { closed_ = closed; }

private:
    void run(uint32_t word);

    CommandInterface &commands_;
    std::array<uint32_t, HGHCA_HCR_SIZE / 4> regs_{};
    bool closed_ = false;
};

}  // namespace hghca
