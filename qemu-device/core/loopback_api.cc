// SPDX-License-Identifier: GPL-2.0-or-later
// The RDMA loopback controller for callers in C.
#include <iterator>
#include <new>
#include <span>

#include "loopback/controller.h"
#include "loopback_core.h"

namespace {

class ControllerHost : public loopback::Host {
public:
    ControllerHost(const loopback_host_ops *ops, void *opaque) : ops_(*ops), opaque_(opaque) {}

    bool read(uint64_t address, std::span<uint8_t> bytes) override
    {
        return ops_.read(opaque_, address, bytes.data(), bytes.size());
    }
    bool write(uint64_t address, std::span<const uint8_t> bytes) override
    {
        return ops_.write(opaque_, address, bytes.data(), bytes.size());
    }
    void set_interrupt(bool asserted) override { ops_.set_interrupt(opaque_, asserted); }
    void trace(const loopback::Header &header) override { ops_.trace(opaque_, header.data()); }

private:
    const loopback_host_ops ops_;
    void *const opaque_;
};

struct ControllerCounter {
    const char *name;
    uint64_t loopback::Counters::*value;
};

constexpr ControllerCounter kControllerCounters[] = {
#define LOOPBACK_COUNTER_ROW(name, text) {#name, &loopback::Counters::name},
    LOOPBACK_COUNTERS(LOOPBACK_COUNTER_ROW)
#undef LOOPBACK_COUNTER_ROW
};

}  // namespace

struct loopback_core {
    loopback_core(const loopback_host_ops *ops, void *opaque, const loopback_config *config)
        : host(ops, opaque), controller(host, {config->extensions, config->late_receiver})
    {
    }

    ControllerHost host;
    loopback::Controller controller;
};

extern "C" {

struct loopback_core *loopback_core_new(const struct loopback_host_ops *ops, void *opaque,
                                        const struct loopback_config *config)
{
    return new (std::nothrow) loopback_core(ops, opaque, config);
}

void loopback_core_free(struct loopback_core *core)
{
    delete core;
}

uint32_t loopback_core_read(const struct loopback_core *core, uint32_t offset)
{
    return core->controller.read(offset);
}

void loopback_core_write(struct loopback_core *core, uint32_t offset, uint32_t value)
{
    core->controller.write(offset, value);
}

bool loopback_core_run(struct loopback_core *core, unsigned steps)
{
    return core->controller.run(steps);
}

bool loopback_core_has_work(const struct loopback_core *core)
{
    return core->controller.has_work();
}

void loopback_core_stall(struct loopback_core *core, bool stalled)
{
    core->controller.stall(stalled);
}

bool loopback_core_awaits_time_out(const struct loopback_core *core)
{
    return core->controller.awaits_time_out();
}

void loopback_core_time_out(struct loopback_core *core)
{
    core->controller.time_out();
}

void loopback_core_reset(struct loopback_core *core)
{
    core->controller.reset();
}

unsigned loopback_core_counters(void)
{
    return std::size(kControllerCounters);
}

const char *loopback_core_counter_name(unsigned index)
{
    return kControllerCounters[index].name;
}

uint64_t loopback_core_counter(const struct loopback_core *core, unsigned index)
{
    return core->controller.counters().*kControllerCounters[index].value;
}

}  // extern "C"
