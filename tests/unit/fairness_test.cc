// SPDX-License-Identifier: GPL-2.0-or-later
// Turns of QPs that always have something to send: each has the same share of the link, whatever its messages.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "verbs.h"

namespace hghca::test::fairness_test {
namespace {

constexpr unsigned kQps = 64, kSizes = 11, kTurns = 24;
constexpr uint64_t kTurnBytes = 64 << 10;   // docs/explanation/architecture.rst
constexpr uint32_t kLongest = 64 << 10;
// Of a packet on the link: Ethernet, IPv4, UDP, BTH, ICRC.
constexpr uint64_t kHeaderBytes = 14 + 20 + 8 + 12 + 4;
constexpr size_t kQpnAt = 14 + 20 + 8 + 5;   // in a frame

Endpoint::Options options_for(uint32_t message_bytes)
{
    Endpoint::Options options;
    options.mtu_code = 5;   // 4096
    options.stride_log = 6;
    options.buffer_bytes = kLongest;
    // Enough for all turns and two more; the queue's length is a power of two.
    options.sq_wqes = 16;
    while (options.sq_wqes * (message_bytes + kHeaderBytes) < (kTurns + 2) * kTurnBytes)
        options.sq_wqes *= 2;
    options.rq_wqes = 1;
    return options;
}

// Two HCAs on a link that hands a frame on within the call, as between two of one process.
class Fairness : public ::testing::Test {
protected:
    Fairness()
    {
        connect(a, b);
        connect(b, a);
    }
    void connect(Node &from, Node &to)
    {
        from.host.record_dirty = false;
        from.host.on_parts = [this, &from, &to](std::span<const iovec> parts) {
            const auto *frame = static_cast<const uint8_t *>(parts[0].iov_base);
            if (&from == &a)
                sent[uint32_t(frame[kQpnAt] << 16 | frame[kQpnAt + 1] << 8 | frame[kQpnAt + 2])] += parts[0].iov_len;
            to.device.receive(parts);
        };
    }

    Node a{1, 0, kFullCaps, {}, 96u << 20}, b{2, 0, kFullCaps, {}, 96u << 20};
    std::map<uint32_t, uint64_t> sent;   // bytes on the link, by the QP that they are for
};

TEST_F(Fairness, MixedMessagesHaveEqualSharesOfTheLink)
{
    std::vector<std::unique_ptr<Pair>> pairs;
    for (unsigned i = 0; i < kQps; i++)
        pairs.push_back(std::make_unique<Pair>(a, b, options_for(64u << i % kSizes)));
    a.host.link_full = true;   // until all have posted
    for (unsigned i = 0; i < kQps; i++) {
        Pair &p = *pairs[i];
        const Wqe write = write_to(p.a.sge(0, 64u << i % kSizes), p.b.va(0), p.b.buffer.key, 0);
        for (uint32_t n = 0; n < p.a.options.sq_wqes; n += 16)
            p.a.post(std::vector<Wqe>(16, write));
    }
    a.host.link_full = false;
    a.device.link_ready();
    auto total = [this] {
        uint64_t bytes = 0;
        for (const auto &[qpn, of_qp] : sent)
            bytes += of_qp;
        return bytes;
    };
    while (total() < kTurns * kQps * kTurnBytes && (a.device.has_work() || b.device.has_work())) {
        a.device.run();
        b.device.run();
    }
    ASSERT_EQ(sent.size(), kQps);
    const double mean = double(total()) / kQps;
    for (unsigned i = 0; i < kQps; i++)
        EXPECT_NEAR(double(sent[pairs[i]->b.qp.qpn]) / mean, 1, 0.05) << (64u << i % kSizes) << " B";
}

}  // namespace
}  // namespace hghca::test::fairness_test
