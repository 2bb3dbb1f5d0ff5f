// SPDX-License-Identifier: GPL-2.0-or-later
// Raw Ethernet QPs: that of the net device, which makes the port a NIC (interface
// document, 4.10, 4.13), and those that flow rules name (4.20), by themselves or in groups (4.25).
#pragma once

#include <span>

#include "transport/function.h"
#include "wire/packet.h"

namespace hghca {

class Device;

class RawEthernet final : public RawFrames {
public:
    explicit RawEthernet(Device &device) : device_(device) {}

    // A frame that is not for the RDMA engine. `head` holds the first of its bytes.
    void receive(const FrameView &frame, std::span<const uint8_t> head) override;
    // A multicast frame that QP `sender` has sent: for the QPs of rules, but not for that one.
    void receive_own(const FrameView &frame, std::span<const uint8_t> head, Qpn sender) override;

private:
    bool wanted(const uint8_t *dmac) const;
    bool steer(const FrameView &frame, std::span<const uint8_t> head, Qpn sender);

    Device &device_;
};

}  // namespace hghca
