// SPDX-License-Identifier: GPL-2.0-or-later
// Completion and event queues, and the table of QPs (interface document, 4.7 to 4.9, 5.3, 5.4).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hghca_hw.h"
#include "qp.h"

namespace hghca {

class Device;

class EventQueues {
public:
    explicit EventQueues(Device &device) : device_(device) {}
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t sw2hw(uint32_t eqn, const hghca_eqc &context);
    uint8_t hw2sw(uint32_t eqn);
    uint8_t map(uint32_t eqn, uint64_t mask, bool unmap);
    void doorbell(uint32_t uar_page, uint32_t low, uint32_t high);

    // A completion event of CQ `cqn` on EQ `eqn`; waits in the device when the EQ is full.
    void post_completion(uint32_t eqn, uint32_t cqn);
    // An asynchronous event, to the EQ its type is mapped to. eqe.type and event are filled in.
    void post_async(const hghca_eqe &eqe);
    bool takes(hghca_event_type type) const;  // some EQ is mapped for it

    void post_qp(hghca_event_type type, uint32_t qpn);
    void post_cq_error(uint32_t cqn, uint8_t syndrome);
    void post_port_change(bool up);
    void trim(size_t capacity);

private:
    Device &device_;
    // ... the owner of this file adds what it needs
};

class CompletionQueues {
public:
    explicit CompletionQueues(Device &device) : device_(device) {}
    void configure(uint64_t base, unsigned log_count);
    void clear();
    uint8_t sw2hw(uint32_t cqn, const hghca_cqc &context);
    uint8_t hw2sw(uint32_t cqn);
    uint8_t resize(uint32_t cqn, uint8_t logsize, uint32_t lkey);
    void doorbell(uint32_t uar_page, uint32_t low, uint32_t high);

    // Writes a CQE (owner is set here, last) and sends the event it is armed for.
    // `solicited`: a solicited event or an error. False: no such CQ, it has
    // failed, or it is full now (CQ_ERROR was sent): the caller moves the QP to ERR.
    bool post(uint32_t cqn, const hghca_cqe &cqe, bool solicited);
    bool exists(uint32_t cqn);
    void trim(size_t capacity);

private:
    Device &device_;
};

// QPs by number, with their ICM entries behind. References are stable until
// trim(), which Device calls only between entries.
class QpTable {
public:
    explicit QpTable(Device &device) : device_(device) {}
    void configure(uint64_t base, unsigned log_count);
    void clear();
    // nullptr: number out of range, ICM not mapped, or state RST.
    Qp *find(uint32_t qpn);
    uint32_t count() const;

    uint8_t transition(uint16_t op, uint32_t qpn, uint8_t op_modifier, const hghca_qpc *context);
    uint8_t query(uint32_t qpn, hghca_qpc &out);
    uint8_t configure_special(uint32_t qpn, uint8_t type);
    void trim(size_t capacity);

private:
    Device &device_;
};

}  // namespace hghca
