// SPDX-License-Identifier: GPL-2.0-or-later
// What the transport reports, as events, counters and entries of the error buffer (interface document, 4.8, 4.23, 4.28).
#pragma once

#include "transport/function.h"

namespace hghca {

class Device;

class Events final : public EventSink {
public:
    explicit Events(Device &device) : device_(device) {}

    void post(Event event, const Qp &qp) override;
    void dropped(const Packet &packet, Drop why, uint64_t now_ns) override;
    bool brings_pages() const override;
    PageAsked ask_for_page(const Qp &qp, Side side, uint16_t token, const AbsentPage &absent) override;
    [[noreturn]] void broken(const char *invariant) override;

private:
    Device &device_;
};

}  // namespace hghca
