// SPDX-License-Identifier: GPL-2.0-or-later
// hghca-sim --scenario X --seed N: one run. --seeds N: that many, in each scenario of the sweep or the one named.
// --pcap FILE: their frames, one run's behind another's.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "simulation.h"

namespace hghca::sim {
namespace {

using Clock = std::chrono::steady_clock;

// Of this thread's processor: others do not count.
double cpu_seconds()
{
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    return double(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * double(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

struct Totals {
    uint64_t runs = 0, failed = 0, frames = 0, requests = 0, receives = 0, dead = 0, lost = 0, retransmitted = 0;
    double seconds = 0;
};

// False: it has failed, and why was printed.
bool run_one(const Options &options, Totals &totals, bool report)
{
    const double start = cpu_seconds();
    totals.runs++;
    try {
        Simulation simulation(options);
        const Result r = simulation.run();
        const double seconds = cpu_seconds() - start;
        totals.frames += r.frames;
        totals.requests += r.requests;
        totals.receives += r.receives;
        totals.dead += r.dead;
        totals.lost += r.lost;
        totals.retransmitted += r.retransmitted;
        totals.seconds += seconds;
        if (report) {
            std::printf("%s seed %llu: %llu packets, %llu requests, %llu messages, %llu packets lost, %llu sent again, "
                        "%llu QPs failed, %.3f ms, digest %016llx\n",
                        options.scenario.c_str(), (unsigned long long)options.seed, (unsigned long long)r.frames,
                        (unsigned long long)r.requests, (unsigned long long)r.receives, (unsigned long long)r.lost,
                        (unsigned long long)r.retransmitted, (unsigned long long)r.dead, double(r.virtual_ns) / 1e6,
                        (unsigned long long)r.digest);
            std::printf("%.2f s of CPU time, %.0f packets a second\n", seconds, double(r.frames) / seconds);
            if (!r.report.empty())
                std::printf("%s\n", r.report.c_str());
        }
        return true;
    } catch (const std::exception &failure) {
        totals.failed++;
        totals.seconds += cpu_seconds() - start;
        std::printf("FAILED: --scenario %s --seed %llu%s%s: %s\n", options.scenario.c_str(),
                    (unsigned long long)options.seed, options.broken.empty() ? "" : " --break ", options.broken.c_str(),
                    failure.what());
        std::fflush(stdout);
        return false;
    }
}

void print_totals(const char *name, const Totals &t)
{
    std::printf("%s: %llu seeds, %llu failed, %llu packets, %llu requests, %llu messages, %llu packets lost, %llu sent "
                "again, %llu QPs failed, %.1f s of CPU time, %.0f packets a second\n",
                name, (unsigned long long)t.runs, (unsigned long long)t.failed, (unsigned long long)t.frames,
                (unsigned long long)t.requests, (unsigned long long)t.receives, (unsigned long long)t.lost,
                (unsigned long long)t.retransmitted, (unsigned long long)t.dead, t.seconds,
                t.seconds > 0 ? double(t.frames) / t.seconds : 0);
    std::fflush(stdout);
}

int usage()
{
    std::printf("hghca-sim [--scenario NAME] [--seed N] [--seeds N] [--hosts N] [--break WHAT] [--cc] [--pcap FILE] "
                "[--list]\n");
    return 2;
}

int list()
{
    for (const Scenario &each : scenarios())
        std::printf("scenario %s%s: %s\n", each.name, each.sweep ? " *" : "", each.text);
    for (const Breakage &each : breakages())
        std::printf("break %s in %s: %s: %s\n", each.name, each.scenario, each.found_as, each.text);
    return 0;
}

int main(int argc, char **argv)
{
    Options options;
    std::optional<Recording> recording;
    uint64_t seeds = 0;
    for (int i = 1; i < argc; i++) {
        const std::string name = argv[i];
        if (name == "--list")
            return list();
        if (name == "--cc") {
            options.congestion_control = true;
            continue;
        }
        if (i + 1 >= argc)
            return usage();
        const char *value = argv[++i];
        if (name == "--scenario")
            options.scenario = value;
        else if (name == "--seed")
            options.seed = std::strtoull(value, nullptr, 0);
        else if (name == "--seeds")
            seeds = std::strtoull(value, nullptr, 0);
        else if (name == "--hosts")
            options.hosts = uint32_t(std::strtoul(value, nullptr, 0));
        else if (name == "--break")
            options.broken = value;
        else if (name == "--pcap")
            options.recording = &recording.emplace(value);
        else
            return usage();
    }
    if (!seeds) {
        if (options.scenario.empty())
            return usage();
        Totals totals;
        return run_one(options, totals, true) ? 0 : 1;
    }
    uint64_t failed = 0;
    const std::string only = options.scenario;
    for (const Scenario &each : scenarios()) {
        if (only.empty() ? !each.sweep : only != each.name)
            continue;
        Totals totals;
        options.scenario = each.name;
        const uint64_t first = options.seed;
        for (uint64_t n = 0; n < seeds; n++) {
            Options one = options;
            one.seed = first + n;
            run_one(one, totals, false);
        }
        print_totals(each.name, totals);
        failed += totals.failed;
    }
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace hghca::sim

int main(int argc, char **argv)
{
    try {
        return hghca::sim::main(argc, argv);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "hghca-sim: %s\n", error.what());
        return 2;
    }
}
