// SPDX-License-Identifier: GPL-2.0-or-later
// QP 1: its queues hold whole frames, from the Ethernet header to the MAD. The device adds the ICRC and checks it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ernic/queue_pair.h"
#include "ernic/validation.h"

namespace hghca::ernic {

class Adapter;

class Mads {
public:
    explicit Mads(Adapter &device) : device_(device) {}

    // A valid packet. It is dropped if there is no slot, or none that is long enough.
    void receive(const Incoming &packet);
    // Sends what is posted, until the slice is over or the link is full.
    void run();
    bool has_work() const;
    void link_ready() { link_full_ = false; }

private:
    static constexpr size_t kMaxFrame = kMaxHeader + 4096;

    // False: the link is full.
    bool send_next(QueuePair &pair);
    // Appends the ICRC. 0: it is no frame of RoCE v2.
    size_t finish(size_t bytes);

    Adapter &device_;
    bool link_full_ = false;
    std::array<uint8_t, kMaxFrame + HGHCA_ICRC_SIZE> frame_{};
};

}  // namespace hghca::ernic
