// SPDX-License-Identifier: GPL-2.0-or-later
// One run: a scenario and a seed make the world; time passes until all is at rest.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loopback.h"
#include "traffic.h"

namespace hghca::sim {

struct Options {
    std::string scenario;
    uint64_t seed = 1;
    uint32_t hosts = 0;        // 0: as the scenario has it
    std::string broken;        // what is to be broken on purpose; empty: nothing
    Recording *recording = nullptr;   // takes the frames that leave hosts; null: nobody does
    bool congestion_control = false;
    bool verbose = false;
};

// What came of a run that has not failed.
struct Result {
    uint64_t frames = 0, requests = 0, receives = 0, dead = 0, digest = 0, virtual_ns = 0, retransmitted = 0;
    uint64_t lost = 0;         // by faults and full queues
    std::string report;        // figures, a line each
};

class Simulation {
public:
    explicit Simulation(const Options &options);

    // Throws Failure.
    Result run();

    // ---- for scenarios
    // The last `ernics` of its hosts have an ERNIC, the others an HCA.
    void build(const Fabric::Shape &shape, const std::vector<MachineConfig> &configs, uint32_t ernics = 0);
    void at(uint64_t ns, std::function<void()> task);
    // Until nothing is due any more.
    void settle();
    uint64_t now() const { return world.now_ns; }

    const Options options;
    Random random;
    World world;
    Traffic traffic;
    std::vector<std::unique_ptr<LoopbackMachine>> loopbacks;   // which have no link
    uint64_t limit_ns = 20'000'000'000;   // all must be at rest by then
    std::function<void(Result &)> summary;

private:
    void dispatch(const Event &event);
    void break_something();

    std::vector<std::function<void()>> tasks_;
};

struct Scenario {
    const char *name;
    const char *text;
    void (*make)(Simulation &);
    bool sweep;   // one of those that a sweep of seeds takes in turn
};
const std::vector<Scenario> &scenarios();

// The ways to break something on purpose, and what each has to be found as.
struct Breakage {
    const char *name;
    const char *text;
    const char *found_as;   // a part of the failure's text
    const char *scenario = "plain";
};
const std::vector<Breakage> &breakages();

}  // namespace hghca::sim
