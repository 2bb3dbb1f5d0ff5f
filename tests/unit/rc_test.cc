// SPDX-License-Identifier: GPL-2.0-or-later
// Reliable connections between two devices on a link that works.
#include <gtest/gtest.h>

#include "verbs.h"

namespace hghca::test {
namespace {

class Rc : public ::testing::Test {
protected:
    Network net;
};

TEST_F(Rc, SendArrives)
{
    Pair p(net.a, net.b, {});
    p.a.fill(0, 100, 7);
    p.b.post_recv(p.b.sge(4096, 200));
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    auto sent = p.a.poll();
    ASSERT_TRUE(sent);
    EXPECT_FALSE(sent->error) << int(sent->syndrome);
    EXPECT_EQ(sent->opcode, HGHCA_OPCODE_SEND);
    EXPECT_EQ(sent->bytes, 100u);
    auto got = p.b.poll();
    ASSERT_TRUE(got);
    EXPECT_FALSE(got->error);
    EXPECT_EQ(got->bytes, 100u);
    EXPECT_EQ(got->opcode, HGHCA_BTH_OP_SEND_ONLY);
    EXPECT_TRUE(p.b.holds(4096, 100, 7));
    EXPECT_EQ(net.a.host.deadline_ns == UINT64_MAX || true, true);
}

}  // namespace
}  // namespace hghca::test
