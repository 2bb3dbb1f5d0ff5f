// SPDX-License-Identifier: GPL-2.0-or-later
#include "simulation.h"

#include <algorithm>

#include "hghca_wire.h"
#include "wire/icrc.h"

namespace hghca::sim {

namespace {

// The ICRC of a frame by IPv4 without VLAN, as the interface document, section 9, has it.
void seal(Frame &frame)
{
    uint8_t ones[8];
    std::memset(ones, 0xff, sizeof(ones));
    std::vector<uint8_t> masked(frame.data + 14, frame.data + frame.length - HGHCA_ICRC_SIZE);
    for (const size_t at : {1u, 8u, 10u, 11u, 26u, 27u, 32u})
        masked[at] = 0xff;
    const uint32_t crc = ~crc32_update(crc32_update(kCrcStart, ones, sizeof(ones)), masked.data(), masked.size());
    for (unsigned i = 0; i < HGHCA_ICRC_SIZE; i++)
        frame.data[frame.length - HGHCA_ICRC_SIZE + i] = uint8_t(crc >> 8 * i);
}

// By IPv4 without VLAN.
bool is_plain_roce(const Frame &frame)
{
    return frame.length > kBth + sizeof(hghca_bth) + HGHCA_ICRC_SIZE && frame.data[12] == 8 && frame.data[13] == 0 &&
           frame.data[23] == HGHCA_IP_UDP;
}
uint8_t opcode_of(const Frame &frame) { return frame.data[kBth]; }

}  // namespace

const std::vector<Breakage> &breakages()
{
    static const std::vector<Breakage> all = {
        {"payload", "a switch that changes a bit of the payload and makes the ICRC right", "brought something else|is not"},
        {"atomic", "a switch that changes what an atomic answers and makes the ICRC right", "has answered"},
        {"completion-lost", "a driver that loses a completion", "comes before that of request|have not completed|out of turn"},
        {"completion-twice", "a driver that takes a completion twice", "where no request is|out of turn|comes before|where none was posted"},
        {"interrupt-lost", "a host whose interrupts do not arrive any more", "have not completed|were never posted|were not received|not at rest"},
        {"write-outside", "a byte written behind registered memory", "has changed|not what it has to be"},
        {"write-foreign", "a device that writes to memory it was not lent", "nobody has lent it"},
        {"replay", "a switch that gives a WRITE another place and makes the ICRC right", "syndrome|brought something else|not what it has to be"},
        {"acks-lost", "a switch that loses every ACK for ever", "retries ran out|a request ends with syndrome"},
        {"deaf-receiver", "a driver that never posts another receive, to a peer that tries for ever", "not at rest"},
        {"ernic-payload", "a switch that changes a bit of a SEND to an ERNIC and makes the ICRC right",
         "is not what was sent", "ernic"},
        {"ernic-rewind", "an ERNIC that sends again from the packet that was lost", "in the middle of a message",
         "ernic"},
        {"ernic-completion-lost", "an ERNIC's driver that loses a completion",
         "comes before that of request|have not completed", "ernic"},
        {"rsnic-packets", "a program that writes over the retransmission buffers of RSNIC",
         "is not what|brought something else", "rsnic"},
        {"rsnic-record", "a switch that changes a record of a PART and makes the ICRC right", "is not what was sent",
         "rsnic"},
        {"rsnic-values", "a program that changes what READ_POINTER finds", "READ_POINTER .* brought something else",
         "rsnic"},
        {"rsnic-objects", "a program that tears every object that READ_CONSISTENT reads",
         "a request ends with syndrome|a receive is flushed", "rsnic"},
        {"loopback-payload", "a loopback controller that changes a bit of the payload",
         "which is not what the model has", "loopback"},
    };
    return all;
}

Simulation::Simulation(const Options &options)
    : options(options), random(options.seed * 0x9e3779b97f4a7c15 + 1), traffic(world, random.fork())
{
    world.recording = options.recording;
}

void Simulation::build(const Fabric::Shape &shape, const std::vector<MachineConfig> &configs, uint32_t ernics)
{
    world.fabric = std::make_unique<Fabric>(world.events, world.pool, shape, random.fork());
    const uint32_t hcas = shape.hosts - ernics;
    for (uint32_t i = 0; i < hcas; i++) {
        world.machines.push_back(std::make_unique<Machine>(world, i, configs[i % configs.size()], random.next()));
        world.hosts.push_back(world.machines.back().get());
        world.machines.back()->handler = &traffic;
        world.machines.back()->start();
    }
    for (uint32_t i = hcas; i < shape.hosts; i++) {
        world.ernics.push_back(
            std::make_unique<ErnicMachine>(world, i, configs[i % configs.size()], random.next()));
        world.hosts.push_back(world.ernics.back().get());
        world.ernics.back()->handler = &traffic;
    }
}

void Simulation::at(uint64_t ns, std::function<void()> task)
{
    world.events.put(ns, Event::Kind::Call, uint32_t(tasks_.size()));
    tasks_.push_back(std::move(task));
}

void Simulation::dispatch(const Event &event)
{
    switch (event.kind) {
    case Event::Kind::Arrive: {
        auto *frame = static_cast<Frame *>(event.what);
        if (!world.fabric->is_host(event.who))
            world.fabric->arrive(event.who, frame, world.now_ns);
        else
            world.hosts[event.who]->receive(frame);
        break;
    }
    case Event::Kind::Run:
        world.hosts[event.who]->run();
        break;
    case Event::Kind::Timer:
        world.hosts[event.who]->fire_timer();
        break;
    case Event::Kind::LinkReady:
        world.hosts[event.who]->link_ready();
        break;
    case Event::Kind::Interrupt:
        world.hosts[event.who]->interrupt();
        break;
    case Event::Kind::Call:
        if (event.who == UINT32_MAX)
            traffic.call(*static_cast<Side *>(event.what));
        else
            tasks_[event.who]();
        break;
    }
}

void Simulation::settle()
{
    while (!world.events.empty()) {
        const Event event = world.events.take();
        // The next frame, which has long left the CPU's cache, comes back meanwhile.
        if (!world.events.empty() && world.events.next().kind == Event::Kind::Arrive) {
            const auto *frame = static_cast<const Frame *>(world.events.next().what);
            __builtin_prefetch(frame);
            __builtin_prefetch(frame->data + 64);
        }
        world.now_ns = event.at_ns;
        if (event.at_ns > limit_ns) {
            const std::string what = traffic.unfinished();
            fail("not at rest after ", limit_ns / 1'000'000, " ms: ", what.empty() ? "something is sent again and again" : what);
        }
        dispatch(event);
    }
}

// Each of these must be found by a checker; it happens once some traffic is under way.
void Simulation::break_something()
{
    const std::string &what = options.broken;
    Machine &machine = *world.machines[0];
    Fabric &fabric = *world.fabric;
    if (what == "payload" || what == "replay") {
        fabric.broken = [what](Frame &frame) {
            const bool write = is_plain_roce(frame) && opcode_of(frame) == HGHCA_BTH_OP_WRITE_ONLY;
            const size_t data = kBth + sizeof(hghca_bth) + sizeof(hghca_reth);
            if (write && frame.length > data + 64) {
                // The low byte of the address, or the data.
                frame.data[what == "replay" ? kBth + sizeof(hghca_bth) + 7 : data + 20] ^= 1;
                seal(frame);
            }
            return true;
        };
    } else if (what == "atomic") {
        fabric.broken = [left = 1](Frame &frame) mutable {
            if (left && is_plain_roce(frame) && opcode_of(frame) == HGHCA_BTH_OP_ATOMIC_ACK) {
                left--;
                frame.data[kBth + sizeof(hghca_bth) + sizeof(hghca_aeth) + 7] ^= 1;
                seal(frame);
            }
            return true;
        };
    } else if (what == "acks-lost") {
        fabric.broken = [](Frame &frame) { return !is_plain_roce(frame) || opcode_of(frame) != HGHCA_BTH_OP_ACK; };
    } else if (what == "completion-lost") {
        machine.lose_completion = 5;
    } else if (what == "completion-twice") {
        machine.double_completion = 5;
    } else if (what == "interrupt-lost") {
        machine.deaf_interrupts = UINT32_MAX;
    } else if (what == "write-outside") {
        *traffic.sides[0]->target->now(traffic.sides[0]->target->bytes()) ^= 1;
    } else if (what == "write-foreign") {
        const uint64_t zero = 0;
        machine.write(machine.end() - 4096, &zero, sizeof(zero));
    } else if (what == "deaf-receiver") {
        for (auto &side : traffic.sides)
            side->config.deaf = true;
    } else if (what == "ernic-payload") {
        fabric.broken = [hcas = world.machines.size()](Frame &frame) {
            const bool send = is_plain_roce(frame) && opcode_of(frame) == HGHCA_BTH_OP_SEND_ONLY;
            const size_t data = kBth + sizeof(hghca_bth);
            if (send && host_of(frame.data) >= hcas && frame.length > data + 8) {
                frame.data[data] ^= 1;
                seal(frame);
            }
            return true;
        };
    } else if (what == "ernic-rewind") {
        fabric.faults.drop = 100'000;
        for (auto &each : world.ernics)
            each->device.set_rewind(Rewind::Packet);
    } else if (what == "ernic-completion-lost") {
        for (auto &each : world.ernics)
            each->lose_completion = 5;
    } else if (what == "rsnic-packets") {
        fabric.faults.drop = 100'000;
        fabric.broken = [this](Frame &) {
            for (auto &each : world.machines)
                each->spoil_packets();
            return true;
        };
    } else if (what == "rsnic-record") {
        fabric.broken = [](Frame &frame) {
            const size_t data = kBth + sizeof(hghca_bth) + sizeof(hghca_reth);
            const bool begins = is_plain_roce(frame) && (opcode_of(frame) == HGHCA_BTH_PART_FIRST ||
                                                         opcode_of(frame) == HGHCA_BTH_PART_ONLY);
            if (begins && frame.length > data + 8) {
                frame.data[data] ^= 1;
                seal(frame);
            }
            return true;
        };
    } else if (what == "rsnic-values" || what == "rsnic-objects") {
        for (auto &side : traffic.sides)
            if (what == "rsnic-values")
                side->vendor->prepared.spoil_values();
            else
                side->vendor->prepared.spoil_objects();
    } else if (what == "loopback-payload") {
        for (auto &each : loopbacks)
            each->spoiled = true;
    } else {
        fail("there is nothing of the name ", what, " to break");
    }
}

Result Simulation::run()
{
    const Scenario *scenario = nullptr;
    for (const Scenario &each : scenarios())
        if (options.scenario == each.name)
            scenario = &each;
    if (!scenario)
        throw std::runtime_error("there is no scenario " + options.scenario);
    scenario->make(*this);
    if (!options.broken.empty())
        at(now() + 50'000, [this] { break_something(); });
    settle();
    if (const std::string what = traffic.unfinished(); !what.empty())
        fail("at rest, but ", what);
    traffic.check_memory();
    Result result;
    if (summary)
        summary(result);
    traffic.close_all();
    settle();
    traffic.check_closed();
    traffic.check_memory();

    for (const auto &machine : world.machines)
        result.retransmitted += machine->device.counters().retransmitted;
    for (const auto &machine : world.ernics)
        result.retransmitted += machine->device.device.counters.retransmitted;
    const Fabric &fabric = *world.fabric;
    result.frames = world.frames_received;
    result.requests = 0;
    for (const auto &side : traffic.sides) {
        result.requests += side->completed;
        result.receives += side->received;
    }
    result.dead = traffic.dead;
    result.digest = world.digest;
    result.virtual_ns = now();
    result.lost = fabric.dropped + fabric.corrupted + fabric.truncated + fabric.overflows + fabric.link_down;
    return result;
}

}  // namespace hghca::sim
