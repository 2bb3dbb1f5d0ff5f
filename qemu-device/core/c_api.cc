// SPDX-License-Identifier: GPL-2.0-or-later
// The device core for callers in C: no exception gets past this file.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "device.h"
#include "hghca_core.h"
#include "jingzhao/commands.h"
#include "jingzhao/qp_table.h"
#include "jingzhao/translate.h"
#include "ops_host.h"
#include "port/capture.h"

namespace {

static_assert(hghca::kDeviceMemoryBase == HGHCA_DEVICE_MEMORY_BASE);

hghca::ReceiveBuffer make_buffer(const hghca_receive_buffer &in)
{
    hghca::ReceiveBuffer buffer;
    buffer.drain_mbps = in.drain_mbps;
    if (in.bytes)
        buffer.bytes = in.bytes;
    return buffer;
}

hghca::Profile make_profile(hghca_profile in)
{
    constexpr hghca::Profile kProfiles[] = {hghca::Profile::Full, hghca::Profile::Base, hghca::Profile::Rsnic};
    if (unsigned(in) >= std::size(kProfiles))
        throw std::invalid_argument("no such profile");
    return kProfiles[in];
}

hghca::Config make_config(const hghca_config &in)
{
    hghca::Config config{};
    config.profile = make_profile(in.profile);
    config.init_delay_ns = in.init_delay_ns;
    std::copy(std::begin(in.mac), std::end(in.mac), config.mac.begin());
    config.node_guid = in.node_guid;
    config.moderation_scale = in.moderation_scale;
    config.cache_entries = in.cache_entries;
    if (in.slice_work)
        config.slice_work = in.slice_work;
    config.receive_buffers = {make_buffer(in.roce_buffer), make_buffer(in.other_buffer)};
    config.device_memory = {in.device_memory, in.device_memory_bytes};
    return config;
}

const char *name_of(hghca::Service service)
{
    switch (service) {
    case hghca::Service::Rc:
        return "RC";
    case hghca::Service::Uc:
        return "UC";
    case hghca::Service::Ud:
        return "UD";
    case hghca::Service::Xrc:
        return "XRC";
    case hghca::Service::Raw:
        return "RAW";
    }
    return "?";
}

const char *name_of(hghca::QpState state)
{
    switch (state) {
    case hghca::QpState::Reset:
        return "RESET";
    case hghca::QpState::Init:
        return "INIT";
    case hghca::QpState::Rtr:
        return "RTR";
    case hghca::QpState::Rts:
        return "RTS";
    case hghca::QpState::Sqe:
        return "SQE";
    case hghca::QpState::Sqd:
        return "SQD";
    case hghca::QpState::Error:
        return "ERR";
    }
    return "?";
}

}  // namespace

struct hghca_core {
    hghca_core(const hghca_host_ops *ops, void *opaque, const hghca_config *config)
        : host(ops, opaque), device(host, make_config(*config))
    {
    }

    hghca::OpsHost host;
    hghca::Device device;
};

struct hghca_capture {
    hghca_capture(int fd, const hghca_capture_config &config)
        : file(fd, config.max_bytes), capture(file, config.snap_bytes, config.epoch_ns)
    {
    }

    hghca::CaptureFile file;
    hghca::Capture capture;
};

namespace {

struct CounterRow {
    const char *name;
    uint64_t hghca::Counters::*value;
};

constexpr CounterRow kCounters[] = {
#define HGHCA_COUNTER_ROW(name, text) {#name, &hghca::Counters::name},
    HGHCA_COUNTERS(HGHCA_COUNTER_ROW)
#undef HGHCA_COUNTER_ROW
};

struct FaultCountRow {
    const char *name;
    uint64_t hghca::FaultCounts::*value;
};

constexpr FaultCountRow kFaultCounts[] = {
#define HGHCA_FAULT_COUNT_ROW(name) {#name, &hghca::FaultCounts::name},
    HGHCA_FAULT_COUNTS(HGHCA_FAULT_COUNT_ROW)
#undef HGHCA_FAULT_COUNT_ROW
};

bool set_faults(hghca_core *core, const char *text, std::string &error)
{
    if (core)
        return core->device.impairment.set_rules(text, error);
    std::vector<hghca::FaultRule> unused;
    return hghca::read_fault_rules(text, unused, error);
}

}  // namespace

extern "C" {

struct hghca_core *hghca_core_new(const struct hghca_host_ops *ops, void *opaque,
                                  const struct hghca_config *config)
{
    try {
        return new (std::nothrow) hghca_core(ops, opaque, config);
    } catch (const std::exception &) {
        return nullptr;
    }
}

void hghca_core_free(struct hghca_core *core) { delete core; }

void hghca_core_reset(struct hghca_core *core)
{
    core->device.reset();
}

uint64_t hghca_core_hcr_read(struct hghca_core *core, uint64_t offset, unsigned size)
{
    return core->device.hcr_read(offset, size);
}

bool hghca_core_hcr_write(struct hghca_core *core, uint64_t offset, uint64_t value, unsigned size)
{
    return core->device.hcr_write(offset, value, size);
}

uint64_t hghca_core_uar_read(struct hghca_core *core, uint64_t offset, unsigned size)
{
    return core->device.uar_read(offset, size);
}

void hghca_core_uar_write(struct hghca_core *core, uint64_t offset, uint64_t value, unsigned size)
{
    core->device.uar_write(offset, value, size);
}

void hghca_core_receive(struct hghca_core *core, const struct iovec *parts, int count, bool trusted)
{
    core->device.receive({parts, size_t(count)}, trusted ? hghca::Icrc::Device : hghca::Icrc::Unknown);
}

bool hghca_core_run(struct hghca_core *core)
{
    return core->device.run();
}

bool hghca_core_has_work(const struct hghca_core *core) { return core->device.has_work(); }

bool hghca_core_rung_has_work(const struct hghca_core *core) { return core->device.rung_has_work(); }

void hghca_core_timer(struct hghca_core *core)
{
    core->device.timer();
}

void hghca_core_link_ready(struct hghca_core *core)
{
    core->device.link_ready();
}

void hghca_core_set_link(struct hghca_core *core, bool up)
{
    core->device.set_link(up);
}

void hghca_core_dma_changed(struct hghca_core *core)
{
    core->device.dma_changed();
}

void hghca_core_fail(struct hghca_core *core, const char *reason, unsigned syndrome)
{
    core->device.fail(reason, hghca_health(syndrome));
}

bool hghca_core_failed(const struct hghca_core *core) { return core->device.failed(); }

void hghca_core_set_capabilities(struct hghca_core *core, uint32_t capabilities)
{
    core->device.commands->allow(capabilities);
}

uint32_t hghca_core_capabilities(const struct hghca_core *core) { return core->device.commands->allowed(); }

void hghca_core_fail_command(struct hghca_core *core, uint64_t nth) { core->device.commands->fail(nth); }

uint64_t hghca_core_until_fault(const struct hghca_core *core) { return core->device.commands->until_fault(); }

uint64_t hghca_core_commands(const struct hghca_core *core) { return core->device.commands->executed(); }

struct hghca_capture *hghca_capture_begin(int fd, const struct hghca_capture_config *config, int *error)
{
    auto *begun = new (std::nothrow) hghca_capture(fd, *config);
    if (!begun) {
        close(fd);
        *error = ENOMEM;
        return nullptr;
    }
    *error = begun->file.claim();
    if (!*error)
        *error = begun->capture.begin(config->name);
    if (!*error)
        return begun;
    delete begun;
    return nullptr;
}

int hghca_capture_frame(struct hghca_capture *capture, bool sent, uint64_t now_ns, const struct iovec *parts, int count)
{
    using Way = hghca::Capture::Way;
    try {
        return capture->capture.frame(sent ? Way::Out : Way::In, now_ns, parts, count);
    } catch (const std::exception &) {
        return ENOMEM;
    }
}

void hghca_capture_end(struct hghca_capture *capture) { delete capture; }

bool hghca_core_set_faults(struct hghca_core *core, const char *rules, char *error, size_t error_bytes)
{
    try {
        std::string why;
        if (set_faults(core, rules, why))
            return true;
        error[why.copy(error, error_bytes - 1)] = 0;
    } catch (const std::exception &) {
        *error = 0;
    }
    return false;
}

void hghca_core_set_fault_seed(struct hghca_core *core, uint64_t seed) { core->device.impairment.set_seed(seed); }

unsigned hghca_core_fault_counts(void) { return std::size(kFaultCounts); }

const char *hghca_core_fault_count_name(unsigned i)
{
    return i < std::size(kFaultCounts) ? kFaultCounts[i].name : nullptr;
}

uint64_t hghca_core_fault_count(const struct hghca_core *core, unsigned i)
{
    return i < std::size(kFaultCounts) ? core->device.impairment.counts().*kFaultCounts[i].value : 0;
}

uint64_t hghca_core_held_frames(const struct hghca_core *core) { return core->device.impairment.held_frames(); }

unsigned hghca_core_counters(void) { return HGHCA_COUNTER_NUM; }

const char *hghca_core_counter_name(unsigned i) { return i < HGHCA_COUNTER_NUM ? kCounters[i].name : nullptr; }

uint64_t hghca_core_counter(const struct hghca_core *core, unsigned i)
{
    return i < HGHCA_COUNTER_NUM ? core->device.counters().*kCounters[i].value : 0;
}

uint64_t hghca_core_first_error(const struct hghca_core *core) { return core->device.errors.first(); }

uint64_t hghca_core_next_error(const struct hghca_core *core) { return core->device.errors.total(); }

size_t hghca_core_recent_qps(const struct hghca_core *core, struct hghca_core_qp *out, size_t room)
{
    size_t n = 0;
    core->device.qps->for_each_recent(room, [&](const hghca::Qp &qp) {
        const hghca::RequesterState &r = qp.req;
        const bool connected = hghca::is_connected(qp.a.service);
        out[n++] = {number(qp.a.qpn),
                    connected ? number(qp.a.remote_qpn) : 0,
                    name_of(qp.a.service),
                    name_of(qp.state),
                    number(r.next_psn),
                    number(qp.resp.expected_psn),
                    hghca::is_reliable(qp.a.service) ? hghca::psn_distance(r.highest_psn, r.unacked_psn) : 0};
    });
    return n;
}

bool hghca_core_get_error(const struct hghca_core *core, uint64_t n, struct hghca_core_error *out)
{
    const hghca::ErrorBuffer &errors = core->device.errors;
    if (n < errors.first() || n >= errors.total())
        return false;
    const hghca::PacketError &e = errors.at(n);
    const char *why = hghca::drop_name(hghca::drop_number(e.why));
    *out = {e.time_ns, e.frame_bytes, number(e.qpn), why, e.header.data(), e.header_bytes};
    return true;
}

}  // extern "C"
