// SPDX-License-Identifier: GPL-2.0-or-later
// A host of the simulated network with an ERNIC.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "ernic.h"
#include "machine.h"
#include "network_host.h"

namespace hghca::sim {

using test::Ernic;
using test::ErnicWqe;

// The requests that a connection has sent. What goes again begins with the first packet of a message (seed 004, 81 to
// 84).
class SentMessages {
public:
    SentMessages() = default;
    SentMessages(uint32_t psn, uint32_t mtu) : next_(psn_of(psn)), end_(psn_of(psn)), mtu_(mtu) {}
    // False: it goes back to the middle of a message. `read_bytes`: of a READ request, what it asks for.
    bool add(uint8_t opcode, Psn psn, uint32_t read_bytes);

private:
    std::set<Psn> starts_;         // first PSNs of messages
    Psn next_{};                   // behind the last packet sent
    Psn end_{};                    // behind the highest packet ever sent
    uint32_t mtu_ = 0;
};

class ErnicMachine final : public NetworkHost {
public:
    // Whoever works with the queues of the machine.
    struct Handler {
        virtual ~Handler() = default;
        virtual void interrupt(ErnicMachine &machine) = 0;
    };

    ErnicMachine(World &world, uint32_t number, const MachineConfig &config, uint64_t seed);

    // A connection to a QP of another host.
    void connect(uint32_t qpn, uint32_t host, QpAttributes attributes, const Ernic::Queues &queues, uint32_t sq_psn,
                 uint32_t rq_psn);

private:
    const uint64_t errors_;           // the packet error queues

public:
    Ernic device;
    Handler *handler = nullptr;
    uint32_t next_qpn = 2;            // QP 1 is that of management
    uint8_t next_entry = 0;           // of the protection domain table
    uint32_t lose_completion = 0;     // for tests of the checkers: that many completions from now on

private:
    // ---- NetworkHost
    void sent(const Frame &frame) override;
    void device_receives(const iovec &part) override { device.receive({&part, 1}); }
    void device_runs() override { device.run(); }
    bool device_has_work() const override { return device.has_work(); }
    void device_timer() override { device.expire(); }
    void device_link_ready() override { device.run(); }
    void driver_interrupt() override;

    void check_errors();

    uint32_t errors_seen_ = 0;
    std::map<uint32_t, SentMessages> messages_;                  // by QP number
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> qpns_;     // by the peer's host and QP number
};

}  // namespace hghca::sim
