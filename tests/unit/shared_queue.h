// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstring>
#include <vector>

#include "verbs.h"

namespace hghca::test {

// The software side of an SRQ: a chain of free slots, in an order of its own.
class SharedQueue {
public:
    SharedQueue(Node &node, unsigned log, unsigned stride_log = 7, uint32_t pd = TestDriver::kPd, uint32_t xrcd = 0,
                uint32_t cqn = 0)
        : node(node), srq(node.driver.create_srq(log, stride_log, pd, xrcd, cqn))
    {
        for (uint32_t i = 0; i < 1u << log; i++)
            free_.push_back(i);
    }
    uint8_t *slot(uint32_t i) { return node.host.at(srq.buffer.dma + (uint64_t(i) << srq.stride_log)); }
    // Posts to the first free slot, which is linked to the second; its number.
    uint32_t post(const Sge &s)
    {
        const uint32_t at = free_.at(0), next = free_.at(1);
        free_.erase(free_.begin());
        uint32_t link = le32(next << srq.stride_log);
        hghca_data_unit units[2] = {{le32(s.length), le32(s.key), le64(s.va)}, {0, le32(HGHCA_INVALID_LKEY), 0}};
        std::memset(slot(at), 0, size_t(1) << srq.stride_log);
        std::memcpy(slot(at), &link, sizeof(link));
        std::memcpy(slot(at) + 16, units, sizeof(units));
        announce(++posted_);
        return at;
    }
    void announce(uint32_t posted)
    {
        store_release(node.host.as<hghca_srq_dbr>(srq.dbr)->posted, le32(posted));
    }
    void give_back(uint32_t i) { free_.push_back(i); }
    hghca_srqc query()
    {
        hghca_srqc c;
        TestDriver::must(node.driver.query(HGHCA_CMD_QUERY_SRQ, c, srq.srqn), "QUERY_SRQ");
        return c;
    }
    uint8_t arm(uint64_t limit) { return node.driver.command(HGHCA_CMD_ARM_SRQ, limit, srq.srqn).status; }

    Node &node;
    TestDriver::Srq srq;

private:
    std::vector<uint32_t> free_;
    uint32_t posted_ = 0;
};

}  // namespace hghca::test
