// SPDX-License-Identifier: GPL-2.0-or-later
// The Host of a device whose caller is in C.
#pragma once

#include <cstdint>
#include <span>

#include "hghca_core.h"
#include "host.h"

namespace hghca {

class OpsHost : public Host {
public:
    OpsHost(const hghca_host_ops *ops, void *opaque) : ops_(*ops), opaque_(opaque) {}

    uint8_t *map(uint64_t dma, uint64_t len, bool write) override { return ops_.map(opaque_, dma, len, write); }
    void dirty(uint64_t dma, uint64_t len) override { ops_.dirty(opaque_, dma, len); }
    bool read(uint64_t dma, void *buffer, uint64_t len) override { return ops_.read(opaque_, dma, buffer, len); }
    bool write(uint64_t dma, const void *buffer, uint64_t len) override
    {
        return ops_.write(opaque_, dma, buffer, len);
    }
    bool update(uint64_t dma, Change change, void *context) override
    {
        return ops_.update(opaque_, dma, change, context);
    }
    void raise_vector(unsigned vector) override { ops_.raise_vector(opaque_, vector); }
    void lower_interrupt() override { ops_.lower_interrupt(opaque_); }
    FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) override
    {
        const bool sent = ops_.send_frame(opaque_, parts.data(), int(parts.size()), icrc == Icrc::Device);
        return sent ? FrameSent::Yes : FrameSent::LinkFull;
    }
    void set_timer(uint64_t deadline_ns) override { ops_.set_timer(opaque_, deadline_ns); }
    uint64_t now_ns() override { return ops_.now_ns(opaque_); }
    uint64_t random() override { return ops_.random(opaque_); }
    void schedule() override { ops_.schedule(opaque_); }
    bool tracing() override { return ops_.tracing && ops_.tracing(opaque_); }
    void trace(Trace level, const char *text) override
    {
        constexpr hghca_trace_level kLevels[] = {HGHCA_TRACE_SUCCESS, HGHCA_TRACE_ERROR, HGHCA_TRACE_UNDEFINED};
        if (ops_.trace)
            ops_.trace(opaque_, kLevels[unsigned(level)], text);
    }

private:
    const hghca_host_ops ops_;
    void *const opaque_;
};

}  // namespace hghca
