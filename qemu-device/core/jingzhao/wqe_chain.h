// SPDX-License-Identifier: GPL-2.0-or-later
// Send queues as the interface has them: chains of WQEs, each of which says what the next one is, and doorbells that
// announce where a chain begins (interface document, 5.1, 7, 8).
#pragma once

#include <cstdint>

#include "jingzhao/wqe_reader.h"
#include "transport/function.h"
#include "transport/qp.h"
#include "wire/number.h"

namespace hghca {

class Device;

// An SQ doorbell, decoded.
struct SendDoorbell {
    uint32_t uar_page;
    Qpn qpn;
    uint16_t head;
    uint8_t count;   // 0: walk
    uint8_t opcode;
    uint8_t units;   // size0; 0: only look at the queues (flush in ERR)
    bool fence;
};

class WqeChain final : public SendSource {
public:
    explicit WqeChain(Device &device);

    void ring(const SendDoorbell &db);

    Following peek(Qp &qp, uint16_t index, WqeRef &out) override;
    Following follow(const Qp &qp, uint16_t index, WqeRef &out) override;
    WqeFault load(const Qp &qp, SendWqe &out) override;
    WqeFault reload(const Qp &qp, SendWqe &out) override;
    Allowed change_keys(const Qp &qp, const SendWqe &wqe) override;
    Completed complete(const Qp &qp, uint16_t index, const SentWqe &wqe, uint32_t byte_count) override;
    Completed fail(const Qp &qp, uint16_t index, Status status) override;

private:
    // A doorbell that may ring for this QP.
    void announce(Qp &qp, const SendDoorbell &db);
    void look_again(Qp &qp);
    bool offered(const Qp &qp, const SendWqe &wqe) const;
    WqeFault read(const Qp &qp, const WqeRef &ref, uint32_t frame_limit, SendWqe &out);

    Device &device_;
    WqeReader reader_;
};

}  // namespace hghca
