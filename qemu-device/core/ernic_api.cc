// SPDX-License-Identifier: GPL-2.0-or-later
// ERNIC and ETRNIC for callers in C: no exception gets past this file.
#include <exception>
#include <iterator>
#include <span>

#include "ernic/adapter.h"
#include "ernic_core.h"
#include "ops_host.h"

namespace {

struct ErnicCounter {
    const char *name;
    uint64_t (*value)(const hghca::ernic::Adapter &device);
};

constexpr ErnicCounter kErnicCounters[] = {
#define ERNIC_COUNTER_ROW(name, text) {#name, [](const hghca::ernic::Adapter &device) { return device.stats.name; }},
    ERNIC_STATS(ERNIC_COUNTER_ROW)
#undef ERNIC_COUNTER_ROW
#define ERNIC_COUNTER_ROW(name, text) \
    {#name, [](const hghca::ernic::Adapter &device) { return uint64_t(device.counters.name); }},
    ERNIC_PORT_COUNTERS(ERNIC_COUNTER_ROW)
#undef ERNIC_COUNTER_ROW
};

hghca::ernic::Config config_of(const ernic_config &config)
{
    hghca::ernic::Config c;
    c.personality = config.etrnic ? hghca::ernic::Personality::Etrnic : hghca::ernic::Personality::Ernic;
    c.qps = config.qps;
    c.extensions = config.extensions;
    c.drain_mbps = {config.roce_drain_mbps, config.other_drain_mbps};
    c.strict = config.strict;
    c.clock_mhz = config.clock_mhz;
    c.ethernet = config.pass_frame;
    return c;
}

// With an Ethernet side.
class ErnicHost final : public hghca::OpsHost {
public:
    ErnicHost(const hghca_host_ops *ops, void *opaque, const ernic_config &config)
        : OpsHost(ops, opaque), pass_frame_(config.pass_frame), opaque_(opaque)
    {
    }
    bool pass_frame(std::span<const iovec> parts) override
    {
        return pass_frame_(opaque_, parts.data(), int(parts.size()));
    }

private:
    bool (*const pass_frame_)(void *opaque, const iovec *parts, int count);
    void *const opaque_;
};

}  // namespace

struct ernic_core {
    ernic_core(const hghca_host_ops *ops, void *opaque, const ernic_config *config)
        : host(ops, opaque, *config), device(host, config_of(*config))
    {
    }

    ErnicHost host;
    hghca::ernic::Adapter device;
};

extern "C" {

struct ernic_core *ernic_core_new(const struct hghca_host_ops *ops, void *opaque, const struct ernic_config *config)
{
    try {
        return new ernic_core(ops, opaque, config);
    } catch (const std::exception &) {
        return nullptr;
    }
}

void ernic_core_free(struct ernic_core *core)
{
    delete core;
}

void ernic_core_reset(struct ernic_core *core)
{
    core->device.reset();
}

uint32_t ernic_core_read(struct ernic_core *core, uint64_t offset, unsigned size)
{
    return core->device.read(offset, size);
}

void ernic_core_write(struct ernic_core *core, uint64_t offset, uint32_t value, unsigned size)
{
    core->device.write(offset, value, size);
}

void ernic_core_receive(struct ernic_core *core, const struct iovec *parts, int count)
{
    core->device.receive({parts, size_t(count)});
}

bool ernic_core_forward(struct ernic_core *core, const struct iovec *parts, int count)
{
    return core->device.forward({parts, size_t(count)}) == hghca::FrameSent::Yes;
}

bool ernic_core_run(struct ernic_core *core)
{
    return core->device.run();
}

bool ernic_core_has_work(const struct ernic_core *core)
{
    return core->device.has_work();
}

void ernic_core_timer(struct ernic_core *core)
{
    core->device.timer();
}

void ernic_core_link_ready(struct ernic_core *core)
{
    core->device.link_ready();
}

void ernic_core_set_link(struct ernic_core *core, bool up)
{
    core->device.set_link(up);
}

unsigned ernic_core_counters(void)
{
    return std::size(kErnicCounters);
}

const char *ernic_core_counter_name(unsigned index)
{
    return kErnicCounters[index].name;
}

uint64_t ernic_core_counter(const struct ernic_core *core, unsigned index)
{
    return kErnicCounters[index].value(core->device);
}

}  // extern "C"
