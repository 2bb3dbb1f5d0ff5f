// SPDX-License-Identifier: GPL-2.0-or-later
// Pages that a device asks for, as its software has it (interface document, 4.23).
#pragma once

#include <optional>

#include "network.h"

namespace hghca::test {

// A PAGE_FAULT event.
struct Fault {
    uint32_t qpn, what, key;
    uint64_t va;
    uint32_t length;
    uint32_t token() const { return what & HGHCA_PAGE_FAULT_TOKEN_MASK; }
    bool responder() const { return what & HGHCA_PAGE_FAULT_RESPONDER; }
    bool write() const { return what & HGHCA_PAGE_FAULT_WRITE; }
};

// The next one of a node, if there is any; other events before it are lost.
inline std::optional<Fault> next_fault(Node &node)
{
    hghca_eqe eqe;
    while (node.driver.poll(node.driver.async, eqe)) {
        const auto &f = eqe.event.page_fault;
        if (eqe.type == HGHCA_EVENT_PAGE_FAULT)
            return Fault{be32(f.qpn), be32(f.what), be32(f.key), uint64_t(be32(f.addr_h)) << 32 | be32(f.addr_l),
                         be32(f.length)};
    }
    return std::nullopt;
}

inline uint8_t resume(Node &node, const Fault &f, bool failed = false)
{
    const uint32_t what = f.token() | (f.responder() ? HGHCA_RESUME_RESPONDER : 0) | (failed ? HGHCA_RESUME_FAILED : 0);
    return node.driver.command(HGHCA_CMD_RESUME_QP, what, f.qpn).status;
}

}  // namespace hghca::test
