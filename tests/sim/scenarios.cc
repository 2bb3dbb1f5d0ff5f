// SPDX-License-Identifier: GPL-2.0-or-later
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "simulation.h"

namespace hghca::sim {

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kQpnsBetween = 64;   // the QPs before a reset and those behind it

void turn_on_congestion_control(Simulation &sim)
{
    for (auto &machine : sim.world.machines)
        machine->turn_on_congestion_control();
}

// Of this process, at the moment.
double resident_bytes()
{
    unsigned long long size = 0, resident = 0;
    if (FILE *file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%llu %llu", &size, &resident) != 2)
            resident = 0;
        std::fclose(file);
    }
    return double(resident) * double(sysconf(_SC_PAGESIZE));
}

uint32_t psn_near_wrap(Random &random)
{
    return random.one_in(2) ? uint32_t(0xffffff - random.below(200)) : uint32_t(random.below(1 << 24));
}

// Two or more hosts with a few QPs each, and what each scenario makes different.
struct Mix {
    uint32_t hosts = 2, pairs = 4;
    uint32_t services = 1u << HGHCA_QP_ST_RC;   // to choose from
    uint32_t requests = 60;
    uint32_t max_message = 6000;
    bool small_caches = false;
    bool wrap = false;
    uint32_t shared_queues_ppm = 300'000;
    Faults faults;
    uint64_t faults_ns = 20 * kMs;
    uint32_t receive_late_ppm = 100'000;
    bool finite_rnr = false;
    bool counters = true;
    uint32_t actions = kAllActions;
    bool ipv4_only = false;     // and between two hosts
    uint32_t ernics = 0;        // of the hosts: they have an ERNIC, not an HCA
    Profile profile = Profile::Full;
    bool among_full = false;    // a third of the hosts has a full device all the same
    bool packets = false;       // RSNIC has retransmission buffers
    uint32_t vendor_ops_ppm = 0;   // how often a connection of two RSNICs has their own operations
};

SideConfig side_config(Random &random, const Mix &mix, uint8_t service)
{
    SideConfig c;
    c.service = service;
    c.actions = mix.actions;
    c.mtu_code = unsigned(random.between(1, 5));
    c.sq_wqes = 1u << random.between(1, 6);
    c.rq_wqes = 1u << random.between(0, 5);
    c.max_message = uint32_t(random.between(8, mix.max_message));
    if (service == HGHCA_QP_ST_UD)
        c.max_message = uint32_t(random.between(8, 1024));
    c.target_bytes = c.max_message + uint32_t(random.between(64, 4096));
    c.source_bytes = service == HGHCA_QP_ST_UC ? kActions * c.target_bytes : c.max_message + uint32_t(random.below(4096));
    c.answer_bytes = std::max(c.max_message, 16u) * 2;
    // Without extensions there are IPv4 alone and one READ at a time.
    const bool base = mix.profile == Profile::Base;
    c.gid_index = mix.ipv4_only || base ? 0 : unsigned(random.below(3));
    c.ack_timeout = uint8_t(random.between(7, 9));
    c.rnr_timer = uint8_t(random.between(1, 12));
    c.rnr_retry = mix.finite_rnr && random.one_in(2) ? 6 : 7;
    c.rd_atomic = base ? 1 : uint32_t(random.between(1, 16));
    c.psn = mix.wrap ? uint32_t(0xffffff - random.below(64)) : psn_near_wrap(random);
    c.requests = uint32_t(random.between(mix.requests / 2, mix.requests));
    c.batch = uint32_t(random.between(1, 8));
    c.receive_late_ppm = mix.receive_late_ppm;
    c.signal_ppm = uint32_t(random.below(1'000'001));
    return c;
}

uint8_t choose_service(Random &random, uint32_t services)
{
    for (;;)
        if (const auto service = uint8_t(random.below(8)); services >> service & 1)
            return service;
}

// One connection, or two ends for datagrams.
void add_pair(Simulation &sim, const Mix &mix, Machine &left, Machine &right, uint64_t start_ns)
{
    Random &random = sim.random;
    Traffic &traffic = sim.traffic;
    const uint8_t service = choose_service(random, mix.services);
    SideConfig a = side_config(random, mix, service);
    // Both ends agree on what a message can be.
    SideConfig b = a;
    b.psn = mix.wrap ? uint32_t(0xffffff - random.below(64)) : psn_near_wrap(random);
    b.sq_wqes = 1u << random.between(1, 6);
    b.rq_wqes = 1u << random.between(0, 5);
    b.requests = uint32_t(random.below(mix.requests));
    const bool vendor_ops = left.has(HGHCA_CAP_VENDOR_OPS) && right.has(HGHCA_CAP_VENDOR_OPS);
    a.vendor_ops = b.vendor_ops = vendor_ops && random.chance(mix.vendor_ops_ppm);
    const auto queue_for = [&](Machine &machine, uint32_t xrcd) {
        const uint32_t room = a.max_message + (service == HGHCA_QP_ST_UD ? 40 : 0);
        return &traffic.add_shared_queue(machine, unsigned(random.between(2, 4)), room, xrcd,
                                         uint32_t(random.below(machine.cqs.size())));
    };
    const auto may_share = [](const Machine &machine) { return machine.has(HGHCA_CAP_SRQ); };
    Side *sides[2];
    if (service == HGHCA_QP_ST_XRC) {
        constexpr uint32_t kDomain = 7;
        b.initiates = false;
        sides[0] = &traffic.add_side(left, a);
        sides[1] = &traffic.add_side(right, b, queue_for(right, kDomain), kDomain);
    } else {
        const bool shared = random.chance(mix.shared_queues_ppm);
        sides[0] = &traffic.add_side(left, a, shared && may_share(left) ? queue_for(left, 0) : nullptr);
        const bool both = shared && random.one_in(2);
        sides[1] = &traffic.add_side(right, b, both && may_share(right) ? queue_for(right, 0) : nullptr);
    }
    if (service == HGHCA_QP_ST_UD) {
        traffic.join_datagrams(*sides[0]);
        traffic.join_datagrams(*sides[1]);
    } else {
        traffic.connect(*sides[0], *sides[1]);
    }
    for (Side *side : sides)
        traffic.start(*side, start_ns + random.below(100'000));
}

// What an ERNIC can do, by IPv4 alone.
constexpr uint32_t kErnicActions = mask_of(Action::Send) | mask_of(Action::Write) | mask_of(Action::Read);

// One connection of an ERNIC to another one, or to an HCA.
void add_ernic_pair(Simulation &sim, const Mix &mix, uint32_t left, uint32_t right)
{
    Random &random = sim.random;
    SideConfig a = side_config(random, mix, HGHCA_QP_ST_RC);
    a.actions = kErnicActions;
    a.gid_index = 0;
    a.empty_sends = false;
    SideConfig b = a;
    b.psn = psn_near_wrap(random);
    b.sq_wqes = 1u << random.between(1, 6);
    b.rq_wqes = 1u << random.between(0, 5);
    b.requests = uint32_t(random.below(mix.requests));
    const auto add = [&](uint32_t host, const SideConfig &config) -> Side & {
        const auto hcas = uint32_t(sim.world.machines.size());
        return host < hcas ? sim.traffic.add_side(*sim.world.machines[host], config)
                           : sim.traffic.add_side(*sim.world.ernics[host - hcas], config);
    };
    Side &one = add(left, a), &other = add(right, b);
    sim.traffic.connect(one, other);
    for (Side *side : {&one, &other})
        sim.traffic.start(*side, sim.now() + random.below(100'000));
}

// An HCA to an ERNIC, the other way, and an ERNIC to an ERNIC; then any to any.
void add_family_pair(Simulation &sim, const Mix &mix, uint32_t number)
{
    Random &random = sim.random;
    const uint32_t hcas = mix.hosts - mix.ernics;
    const auto hca = uint32_t(random.below(hcas)), ernic = hcas + uint32_t(random.below(mix.ernics));
    uint32_t left = uint32_t(random.below(mix.hosts)), right = uint32_t(random.below(mix.hosts));
    if (number < 3) {
        left = number == 0 ? hca : ernic;
        right = number == 1 ? hca : hcas + uint32_t(random.below(mix.ernics));
    }
    if (left < hcas && right < hcas)
        add_pair(sim, mix, *sim.world.machines[left], *sim.world.machines[right], sim.now());
    else
        add_ernic_pair(sim, mix, left, right);
}

void add_partitions(Simulation &sim, const Mix &mix, Machine &machine)
{
    if (!mix.vendor_ops_ppm || !machine.has(HGHCA_CAP_VENDOR_OPS))
        return;
    for (uint64_t n = sim.random.between(1, 3); n; n--)
        sim.traffic.add_partition(machine);
}

Machine &any_host(Simulation &sim) { return *sim.world.machines[sim.random.below(sim.world.machines.size())]; }

void set_faults(Simulation &sim, const Mix &mix)
{
    sim.traffic.faulty |= mix.faults.any();
    sim.world.fabric->faults = mix.faults;
    sim.traffic.calm_ns = sim.now();
    if (!mix.faults.any())
        return;
    sim.traffic.calm_ns = sim.now() + mix.faults_ns + mix.faults.delay_ns;
    sim.at(sim.now() + mix.faults_ns, [&sim] { sim.world.fabric->faults = {}; });
}

void make_mix(Simulation &sim, const Mix &mix)
{
    Random &random = sim.random;
    Fabric::Shape shape;
    shape.hosts = mix.hosts;
    shape.per_leaf = random.one_in(2) ? 64 : 2;
    std::vector<MachineConfig> configs(mix.hosts);
    for (MachineConfig &c : configs) {
        c.qps = 2 * mix.pairs + 8 + kQpnsBetween;
        c.mrs = 12 * mix.pairs + 64;
        c.cqs = uint32_t(random.between(1, 4));
        c.memory_bytes = (16u << 20) + mix.pairs * (1u << 20);
        c.copy_only = random.one_in(8);
        if (mix.small_caches || random.one_in(4))
            c.cache_entries = uint32_t(random.between(1, 8));
        if (!mix.among_full || !random.one_in(3))
            c.profile = mix.profile;
        if (mix.packets && c.profile == Profile::Rsnic)
            c.packets = 1u << random.between(2, 5);
        // Drawn from the seed alone: what follows is the same with the queue and without it.
        c.command_queue = c.profile == Profile::Rsnic && (sim.options.seed + uint64_t(&c - configs.data())) % 2;
    }
    sim.build(shape, configs, mix.ernics);
    if (random.one_in(3))
        turn_on_congestion_control(sim);
    if (mix.counters)
        for (auto &machine : sim.world.machines)
            sim.traffic.add_counter(*machine);
    for (auto &machine : sim.world.machines)
        add_partitions(sim, mix, *machine);
    for (uint32_t i = 0; i < mix.pairs; i++) {
        if (mix.ernics) {
            add_family_pair(sim, mix, i);
            continue;
        }
        Machine &left = mix.ipv4_only ? *sim.world.machines[0] : any_host(sim);
        add_pair(sim, mix, left, mix.ipv4_only ? *sim.world.machines[1] : any_host(sim), sim.now());
    }
    set_faults(sim, mix);
}

constexpr uint32_t kEvery = 1u << HGHCA_QP_ST_RC | 1u << HGHCA_QP_ST_UC | 1u << HGHCA_QP_ST_UD | 1u << HGHCA_QP_ST_XRC;

uint32_t up_to(Random &random, uint32_t percent) { return random.one_in(2) ? 0 : uint32_t(random.below(percent * 10'000 + 1)); }

Faults any_faults(Random &random, uint32_t percent)
{
    Faults f;
    f.drop = up_to(random, percent);
    f.duplicate = up_to(random, percent);
    f.reorder = up_to(random, percent);
    f.delay = up_to(random, percent / 4);
    f.corrupt = up_to(random, percent);
    f.truncate = up_to(random, percent);
    f.mark = up_to(random, 50);
    return f;
}

Mix random_mix(Random &random)
{
    Mix mix;
    mix.hosts = uint32_t(random.between(2, 5));
    mix.pairs = uint32_t(random.between(1, 10));
    return mix;
}

void make_calm(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    make_mix(sim, mix);
}

// What the tests of the checkers break: one connection by IPv4 with enough of everything.
void make_plain(Simulation &sim)
{
    Mix mix;
    mix.pairs = 3;
    mix.requests = 400;
    mix.ipv4_only = true;
    mix.shared_queues_ppm = 0;
    make_mix(sim, mix);
}

void make_loss(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = 1u << HGHCA_QP_ST_RC | 1u << HGHCA_QP_ST_XRC;
    mix.faults.drop = uint32_t(sim.random.between(1, 200'000));
    make_mix(sim, mix);
}

void make_impairment(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    mix.faults = any_faults(sim.random, 20);
    mix.faults.drop += 1;
    make_mix(sim, mix);
}

// What a network that works badly does all day: little of everything.
void make_drizzle(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = 1u << HGHCA_QP_ST_RC | 1u << HGHCA_QP_ST_XRC;
    mix.faults = any_faults(sim.random, 2);
    mix.faults.drop += 1;
    mix.requests = 200;
    mix.faults_ns = 100 * kMs;
    make_mix(sim, mix);
}

void make_wrap(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    mix.wrap = true;
    mix.faults = any_faults(sim.random, 5);
    mix.faults.drop += 1;
    make_mix(sim, mix);
}

void make_evict(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    mix.pairs = 12;
    mix.small_caches = true;
    mix.faults = any_faults(sim.random, 5);
    mix.faults.drop += 1;
    make_mix(sim, mix);
}

void make_not_ready(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    mix.receive_late_ppm = 700'000;
    mix.finite_rnr = true;
    mix.faults = any_faults(sim.random, 5);
    mix.faults.drop += 1;
    make_mix(sim, mix);
}

void make_flap(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.services = kEvery;
    mix.requests = 150;
    mix.faults.drop = 1;
    mix.faults_ns = 60 * kMs;
    make_mix(sim, mix);
    uint64_t at = sim.now();
    for (uint64_t n = sim.random.between(1, 6); n; n--) {
        const auto host = uint32_t(sim.random.below(mix.hosts));
        at += sim.random.below(3 * kMs);
        sim.at(at, [&sim, host] {
            sim.world.fabric->set_link(host, false);
            sim.world.machines[host]->device.set_link(false);
        });
        at += sim.random.below(sim.random.one_in(3) ? 8 * kMs : kMs);
        sim.at(at, [&sim, host] {
            sim.world.fabric->set_link(host, true);
            sim.world.machines[host]->device.set_link(true);
        });
    }
}

void reset_some_time(Simulation &sim, const Mix &mix)
{
    sim.at(sim.now() + sim.random.below(kMs), [&sim, mix] {
        Machine &machine = any_host(sim);
        sim.traffic.reset_machine(machine);
        // Others than before: what is still on its way to the old ones finds none.
        machine.driver.first_qpn += kQpnsBetween;
        machine.start();
        add_partitions(sim, mix, machine);
        for (unsigned i = 0; i < 2; i++) {
            Machine &other = *sim.world.machines[(machine.number + 1 + i) % sim.world.machines.size()];
            add_pair(sim, mix, machine, other, sim.now());
        }
    });
}

void make_reset(Simulation &sim)
{
    Mix mix = random_mix(sim.random);
    mix.hosts = uint32_t(sim.random.between(3, 5));
    mix.pairs = 8;
    mix.requests = 150;
    mix.counters = false;
    mix.services = kEvery & ~(1u << HGHCA_QP_ST_UD);
    mix.faults.drop = uint32_t(sim.random.below(10'000)) + 1;
    make_mix(sim, mix);
    reset_some_time(sim, mix);
}

void make_ernic(Simulation &sim)
{
    Mix mix;
    mix.services = kEvery;   // between HCAs
    mix.ernics = uint32_t(sim.random.between(1, 3));
    mix.hosts = mix.ernics + uint32_t(sim.random.between(1, 3));
    mix.pairs = uint32_t(sim.random.between(3, 6));
    mix.requests = 40;
    mix.faults = any_faults(sim.random, 20);
    mix.faults.drop += 1;
    make_mix(sim, mix);
}

// What RSNIC and a device without extensions can do.
constexpr uint32_t kRsnicActions = mask_of(Action::Send) | mask_of(Action::SendImm) | mask_of(Action::Write) |
                                   mask_of(Action::WriteImm) | mask_of(Action::Read);
constexpr uint32_t kBaseActions = kRsnicActions | mask_of(Action::Cas) | mask_of(Action::Faa);

// Of hosts that have devices of this profile, or full ones.
Mix profile_mix(Random &random, Profile profile)
{
    Mix mix;
    mix.hosts = uint32_t(random.between(2, 3));
    mix.pairs = uint32_t(random.between(2, 4));
    mix.requests = 24;
    mix.profile = profile;
    mix.among_full = true;
    mix.faults = any_faults(random, 20);
    mix.faults.drop += 1;
    return mix;
}

// Each retransmission buffer is so small that it is full at times.
void make_rsnic(Simulation &sim)
{
    Mix mix = profile_mix(sim.random, Profile::Rsnic);
    mix.actions = kRsnicActions;
    mix.counters = false;
    mix.packets = sim.random.one_in(2);
    mix.small_caches = sim.random.one_in(2);
    mix.vendor_ops_ppm = 700'000;
    const bool broken = !sim.options.broken.empty();
    if (broken) {
        mix.packets = true;
        mix.among_full = false;
        mix.ipv4_only = true;
        mix.requests = 200;
        mix.vendor_ops_ppm = 1'000'000;
    }
    make_mix(sim, mix);
    if (!broken && sim.random.one_in(4))
        reset_some_time(sim, mix);
}

void make_base(Simulation &sim)
{
    Mix mix = profile_mix(sim.random, Profile::Base);
    mix.services = kEvery & ~(1u << HGHCA_QP_ST_XRC);
    mix.actions = kBaseActions;
    make_mix(sim, mix);
}

void make_many(Simulation &sim)
{
    constexpr uint32_t kHosts = 4, kPairs = 2000;
    Mix mix;
    mix.max_message = 300;
    mix.requests = 8;
    mix.shared_queues_ppm = 0;
    mix.faults = any_faults(sim.random, 2);
    mix.faults.drop += 1;
    Fabric::Shape shape;
    shape.hosts = kHosts;
    MachineConfig c;
    c.qps = kPairs * 2;
    c.mrs = kPairs * 8;
    c.mtts = kPairs * 32;
    c.cqs = 8;
    c.cq_log = 15;
    c.memory_bytes = 768u << 20;
    c.cache_entries = sim.random.one_in(2) ? 64 : 0;
    sim.build(shape, {c});
    for (uint32_t i = 0; i < kPairs; i++) {
        Random &random = sim.random;
        SideConfig a = side_config(random, mix, HGHCA_QP_ST_RC);
        a.sq_wqes = a.rq_wqes = 8;
        a.guard_pages = 0;
        a.ack_timeout = 10;
        SideConfig b = a;
        b.psn = psn_near_wrap(random);
        b.requests = uint32_t(random.below(mix.requests));
        Side &left = sim.traffic.add_side(any_host(sim), a), &right = sim.traffic.add_side(any_host(sim), b);
        sim.traffic.connect(left, right);
        for (Side *side : {&left, &right})
            sim.traffic.start(*side, sim.now() + random.below(kMs));
    }
    set_faults(sim, mix);
}

// A loopback controller has no link; it shares the time with two hosts that have one.
void make_loopback(Simulation &sim)
{
    Mix mix;
    mix.pairs = 1;
    mix.requests = 20;
    make_mix(sim, mix);
    for (uint64_t n = sim.random.between(1, 3); n; n--) {
        sim.loopbacks.push_back(std::make_unique<LoopbackMachine>(sim, sim.random.fork()));
        sim.loopbacks.back()->start();
    }
    sim.summary = [&sim](Result &result) {
        uint64_t descriptors = 0;
        for (const auto &each : sim.loopbacks) {
            if (!each->has_finished())
                fail("the software of a loopback controller has stopped");
            descriptors += each->descriptors();
        }
        result.report = std::to_string(descriptors) + " descriptors of loopback controllers";
    };
}

// ---- figures

SideConfig stream(uint32_t bytes, uint32_t requests)
{
    SideConfig c;
    c.plain = true;
    c.max_message = bytes;
    c.target_bytes = c.source_bytes = bytes;
    c.answer_bytes = 64;
    c.sq_wqes = 16;
    c.rq_wqes = 1;
    c.requests = requests;
    c.batch = 4;
    c.guard_pages = 0;
    c.ack_timeout = 8;
    return c;
}

void make_stream(Simulation &sim)
{
    Fabric::Shape shape;
    shape.hosts = sim.options.hosts ? sim.options.hosts : 2;
    MachineConfig c;
    c.qps = 8;
    sim.build(shape, {c});
    for (uint32_t i = 0; i + 1 < shape.hosts; i += 2) {
        SideConfig a = stream(16384, 40'000), b = a;
        b.initiates = false;
        Side &left = sim.traffic.add_side(*sim.world.machines[i], a);
        Side &right = sim.traffic.add_side(*sim.world.machines[i + 1], b);
        sim.traffic.connect(left, right);
        sim.traffic.start(left, sim.now());
    }
}

void make_incast(Simulation &sim)
{
    const uint32_t senders = sim.options.hosts ? sim.options.hosts - 1 : 64;
    Fabric::Shape shape;
    shape.hosts = senders + 1;
    shape.per_leaf = 128;
    MachineConfig c;
    c.qps = senders + 8;
    c.mrs = senders * 8;
    c.memory_bytes = 64u << 20;
    sim.build(shape, {c});
    if (sim.options.congestion_control)
        turn_on_congestion_control(sim);
    constexpr uint32_t kBytes = 65536, kRequests = 60;
    for (uint32_t i = 0; i < senders; i++) {
        SideConfig a = stream(kBytes, kRequests), b = a;
        b.initiates = false;
        Side &left = sim.traffic.add_side(*sim.world.machines[i + 1], a);
        Side &right = sim.traffic.add_side(*sim.world.machines[0], b);
        sim.traffic.connect(left, right);
        sim.traffic.start(left, sim.now() + sim.random.below(10'000));
    }
    sim.traffic.faulty = true;   // the queue overflows
    const uint64_t start_ns = sim.now();
    sim.summary = [&sim, start_ns](Result &result) {
        double sum = 0, squares = 0, bytes = 0;
        uint64_t end_ns = start_ns;
        unsigned n = 0, failed = 0;
        for (const auto &side : sim.traffic.sides) {
            if (!side->config.initiates)
                continue;
            failed += side->failed != 0;
            const double rate = double(side->bytes_done) / double(side->last_done_ns - start_ns);
            sum += rate;
            squares += rate * rate;
            bytes += double(side->bytes_done);
            end_ns = std::max(end_ns, side->last_done_ns);
            n++;
        }
        const Port &port = sim.world.fabric->into_host(0);
        char line[300];
        std::snprintf(line, sizeof(line),
                      "%u senders: %.1f Gb/s of data, Jain's index %.3f, queue %.0f KB on the average, %.0f KB at most, "
                      "%llu of %llu frames lost to a full queue, %llu marked, %u connections failed",
                      n, bytes * 8 / double(end_ns - start_ns), sum * sum / (n * squares),
                      double(port.depth_sum) / double(port.frames) / 1000, double(port.depth_max) / 1000,
                      static_cast<unsigned long long>(port.overflows),
                      static_cast<unsigned long long>(port.frames + port.overflows),
                      static_cast<unsigned long long>(port.marks), failed);
        result.report = line;
    };
}

// Each host has connections to some others, and all send.
void make_scale(Simulation &sim)
{
    const uint32_t hosts = sim.options.hosts ? sim.options.hosts : 10;
    constexpr uint32_t kPairs = 8;   // that each host begins
    Fabric::Shape shape;
    shape.hosts = hosts;
    shape.per_leaf = 32;
    MachineConfig c;
    c.qps = 4 * kPairs + 16;
    c.mrs = 12 * kPairs + 64;
    c.memory_bytes = 16u << 20;
    const double before = resident_bytes();
    sim.build(shape, {c});
    const double with_hosts = resident_bytes();
    for (uint32_t i = 0; i < hosts; i++)
        for (uint32_t n = 0; n < kPairs; n++) {
            SideConfig a = stream(4096, std::max(4u, 200'000 / (hosts * kPairs))), b = a;
            b.initiates = false;
            Side &left = sim.traffic.add_side(*sim.world.machines[i], a);
            Side &right = sim.traffic.add_side(*sim.world.machines[(i + 1 + sim.random.below(hosts - 1)) % hosts], b);
            sim.traffic.connect(left, right);
            sim.traffic.start(left, sim.now() + sim.random.below(10'000));
        }
    sim.traffic.faulty = true;
    const double with_qps = resident_bytes();
    sim.summary = [=](Result &result) {
        char line[200];
        std::snprintf(line, sizeof(line),
                      "%u hosts, %u QPs: %.0f KB a host, %.1f KB a QP with its queues and memory, %.0f MB at the end",
                      hosts, hosts * kPairs * 2, (with_hosts - before) / hosts / 1000,
                      (with_qps - with_hosts) / (hosts * kPairs * 2) / 1000, resident_bytes() / 1e6);
        result.report = line;
    };
}

}  // namespace

const std::vector<Scenario> &scenarios()
{
    static const std::vector<Scenario> all = {
        {"calm", "all services and operations, nothing lost", make_calm, true},
        {"loss", "RC and XRC, up to 20 % of the frames lost", make_loss, true},
        {"impairment", "all services, all kinds of faults up to 20 %", make_impairment, true},
        {"drizzle", "RC and XRC, all kinds of faults up to 2 %, longer", make_drizzle, true},
        {"wrap", "PSNs that wrap, with faults", make_wrap, true},
        {"evict", "contexts that do not fit on chip, with faults", make_evict, true},
        {"not-ready", "receives that come late, with faults", make_not_ready, true},
        {"flap", "links that go down and up", make_flap, true},
        {"reset", "a device is reset under traffic and comes back", make_reset, true},
        {"ernic", "ERNICs and HCAs side by side, all kinds of faults up to 20 %", make_ernic, true},
        {"rsnic", "RSNIC and its own operations, some with a retransmission buffer, all kinds of faults up to 20 %",
         make_rsnic, true},
        {"base", "devices without extensions, all kinds of faults up to 20 %", make_base, true},
        {"loopback", "RDMA loopback controllers: any descriptors, sizes, indices, resets and stalls", make_loopback,
         true},
        {"plain", "RC by IPv4: what is broken on purpose", make_plain, false},
        {"many", "thousands of QPs", make_many, false},
        {"stream", "WRITEs of 16 KiB: packets a second", make_stream, false},
        {"incast", "64 senders into one port", make_incast, false},
        {"scale", "many hosts: cost of a packet, a host, a QP", make_scale, false},
    };
    return all;
}

}  // namespace hghca::sim
