// SPDX-License-Identifier: GPL-2.0-or-later
// Reliable connections: what is refused, by whom, and what is left of the queues then.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "verbs.h"

namespace hghca::test::rc_error_test {
namespace {

using Options = Endpoint::Options;

class RcError : public ::testing::Test {
protected:
    // The first completion of `all` has `syndrome`, the `flushed` others were flushed.
    static void expect_failed(Endpoint &e, uint8_t syndrome, size_t flushed)
    {
        auto all = e.poll_all();
        ASSERT_EQ(all.size(), 1 + flushed);
        EXPECT_TRUE(all[0].error);
        EXPECT_EQ(int(all[0].syndrome), syndrome);
        for (size_t i = 1; i < all.size(); i++) {
            EXPECT_EQ(int(all[i].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
            if (all[i].is_send == all[0].is_send) {
                EXPECT_EQ(all[i].slot, (all[0].slot + i) % e.qp.sq_wqes);
            }
        }
        EXPECT_EQ(e.state(), unsigned(HGHCA_QP_STATE_ERR));
    }
    Network net;
};

// ---- refused by the responder

struct RemoteCase {
    const char *name;
    std::function<Wqe(Pair &)> wqe;
    uint8_t syndrome;
    hghca_event_type event;
};
class RcRemote : public RcError, public ::testing::WithParamInterface<RemoteCase> {};

TEST_P(RcRemote, IsAnsweredByANak)
{
    const RemoteCase &c = GetParam();
    Pair p(net.a, net.b, Options{});
    std::memset(p.b.at(0), 0xee, 8192);
    for (int i = 0; i < 3; i++)
        p.b.post_recv(p.b.sge(4096, 100));
    // One that works before, two that are flushed behind.
    Wqe nothing = write_to(p.a.sge(0, 0), 0, 0);
    p.a.post({nothing, c.wqe(p), nothing, nothing});
    net.pump();
    auto first = p.a.poll();
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->error);
    expect_failed(p.a, c.syndrome, 2);
    // All receives are flushed, for the peer has gone to ERR as well.
    auto received = p.b.poll_all();
    ASSERT_EQ(received.size(), 3u);
    for (const Completion &r : received)
        EXPECT_EQ(int(r.syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(c.event), 1u);
    for (int i = 0; i < 8192; i++)
        ASSERT_EQ(*p.b.at(uint64_t(i)), 0xee) << i;
}

const Wqe atomic_to(Pair &p, uint64_t va, uint32_t key)
{
    return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(va, key).atomic(1, 0).data(p.a.sge(0, 8));
}

constexpr uint8_t kAccess = HGHCA_SYNDROME_REMOTE_ACCESS_ERR;
constexpr uint8_t kInvalid = HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR;
constexpr hghca_event_type kAccessEvent = HGHCA_EVENT_WQ_ACCESS_ERROR;

INSTANTIATE_TEST_SUITE_P(
    All, RcRemote,
    ::testing::Values(
        RemoteCase{"UnknownKey", [](Pair &p) { return write_to(p.a.sge(0, 8), p.b.va(0), 0x123456); }, kAccess,
                   kAccessEvent},
        RemoteCase{"StaleTag", [](Pair &p) { return write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key ^ 0x10000000); },
                   kAccess, kAccessEvent},
        RemoteCase{"OneBytePastTheEnd",
                   [](Pair &p) {
                       return write_to(p.a.sge(0, 8), p.b.va(p.b.buffer.length - 7), p.b.buffer.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"OneByteBeforeTheStart",
                   [](Pair &p) { return write_to(p.a.sge(0, 8), p.b.va(0) - 1, p.b.buffer.key); }, kAccess,
                   kAccessEvent},
        RemoteCase{"PastTheEndInALaterPacket",
                   [](Pair &p) {
                       return write_to(p.a.sge(0, 5000), p.b.va(p.b.buffer.length - 4999), p.b.buffer.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"AddressWraps", [](Pair &p) { return write_to(p.a.sge(0, 5000), ~0ull - 100, p.b.buffer.key); },
                   kAccess, kAccessEvent},
        RemoteCase{"NoWriteRight",
                   [](Pair &p) {
                       auto mr = p.b.node.driver.create_mr_at(0x1000, 4096, p.b.buffer.dma,
                                                              TestDriver::kRw & ~HGHCA_ACCESS_REMOTE_WRITE);
                       return write_to(p.a.sge(0, 8), mr.va, mr.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"NoReadRight",
                   [](Pair &p) {
                       auto mr = p.b.node.driver.create_mr_at(0x1000, 4096, p.b.buffer.dma,
                                                              TestDriver::kRw & ~HGHCA_ACCESS_REMOTE_READ);
                       return read_from(p.a.sge(0, 8), mr.va, mr.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"NoAtomicRight",
                   [](Pair &p) {
                       auto mr = p.b.node.driver.create_mr_at(0x1000, 4096, p.b.buffer.dma,
                                                              TestDriver::kRw & ~HGHCA_ACCESS_REMOTE_ATOMIC);
                       return atomic_to(p, mr.va, mr.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"AnotherPd",
                   [](Pair &p) {
                       auto mr = p.b.node.driver.create_mr_at(0x1000, 4096, p.b.buffer.dma, TestDriver::kRw, 2);
                       return write_to(p.a.sge(0, 8), mr.va, mr.key);
                   },
                   kAccess, kAccessEvent},
        RemoteCase{"AtomicNotAligned", [](Pair &p) { return atomic_to(p, p.b.va(4), p.b.buffer.key); }, kInvalid,
                   HGHCA_EVENT_WQ_INVAL_REQ_ERROR},
        RemoteCase{"AtomicUnknownKey", [](Pair &p) { return atomic_to(p, p.b.va(8), 0x123456); }, kAccess,
                   kAccessEvent},
        RemoteCase{"ReadPastTheEnd",
                   [](Pair &p) {
                       return read_from(p.a.sge(0, 5000), p.b.va(p.b.buffer.length - 4999), p.b.buffer.key);
                   },
                   kAccess, kAccessEvent}),
    [](const auto &param) { return std::string(param.param.name); });

TEST_F(RcError, TheQpsOwnRightsCount)
{
    for (uint32_t right : {HGHCA_ACCESS_REMOTE_WRITE, HGHCA_ACCESS_REMOTE_READ, HGHCA_ACCESS_REMOTE_ATOMIC}) {
        for (bool allowed : {false, true}) {
            SCOPED_TRACE(right * 2 + allowed);
            Options options;
            options.access = allowed ? right : options.access & ~right;
            Pair p(net.a, net.b, Options{}, options);
            p.a.post(right == HGHCA_ACCESS_REMOTE_WRITE  ? write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key)
                     : right == HGHCA_ACCESS_REMOTE_READ ? read_from(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key)
                                                         : atomic_to(p, p.b.va(0), p.b.buffer.key));
            net.pump();
            auto done = p.a.poll();
            ASSERT_TRUE(done);
            EXPECT_EQ(done->error, !allowed);
            if (!allowed) {
                EXPECT_EQ(int(done->syndrome), kInvalid);
            }
        }
    }
}

TEST_F(RcError, NoBytesNeedNoKey)
{
    Pair p(net.a, net.b, Options{});
    p.a.post({write_to(p.a.sge(0, 0), 0xdeadbeef, 0x999), read_from(p.a.sge(0, 0), 0xdeadbeef, 0x999)});
    net.pump();
    for (const Completion &c : p.a.poll_all())
        EXPECT_FALSE(c.error);
    EXPECT_EQ(net.a.counters().tx_packets, 2u);
}

TEST_F(RcError, AMessageLongerThanTheReceive)
{
    // Fails with the first packet that does not fit; what fits exactly is good.
    for (uint32_t room : {999u, 1000u, 3499u, 3500u}) {
        SCOPED_TRACE(room);
        const uint32_t size = room < 3000 ? 1000 : 3500;
        Pair p(net.a, net.b, Options{});
        std::memset(p.b.at(0), 0xee, 8192);
        p.b.post_recv(p.b.sge(0, room));
        p.b.post_recv(p.b.sge(4096, room));
        p.a.post(send(p.a.sge(0, size)));
        net.pump();
        if (room == size) {
            EXPECT_FALSE(p.a.poll()->error);
            EXPECT_FALSE(p.b.poll()->error);
            continue;
        }
        expect_failed(p.a, kInvalid, 0);
        expect_failed(p.b, HGHCA_SYNDROME_LOCAL_LENGTH_ERR, 1);
        EXPECT_EQ(*p.b.at(room), 0xee);
    }
}

TEST_F(RcError, ABadReceiveEntryIsTheReceiversError)
{
    struct {
        const char *name;
        std::function<Sge(Endpoint &)> sge;
    } cases[] = {
        {"key", [](Endpoint &e) { return Sge{100, 0x55555, e.va(0)}; }},
        {"bounds", [](Endpoint &e) { return e.sge(e.buffer.length - 50, 100); }},
        {"pd", [](Endpoint &e) {
             auto mr = e.node.driver.create_mr(0x9000, 4096, TestDriver::kRw, 2);
             return Sge{100, mr.key, mr.va};
         }},
        {"right", [](Endpoint &e) {
             auto mr = e.node.driver.create_mr(0x9000, 4096, HGHCA_ACCESS_REMOTE_WRITE);
             return Sge{100, mr.key, mr.va};
         }},
    };
    for (auto &c : cases) {
        SCOPED_TRACE(c.name);
        Pair p(net.a, net.b, Options{});
        p.b.post_recv(c.sge(p.b));
        p.b.post_recv(p.b.sge(0, 100));
        p.a.post(send(p.a.sge(0, 100)));
        net.pump();
        expect_failed(p.a, HGHCA_SYNDROME_REMOTE_OP_ERR, 0);
        expect_failed(p.b, HGHCA_SYNDROME_LOCAL_PROT_ERR, 1);
    }
}

TEST_F(RcError, AMalformedReceiveIsTheReceiversError)
{
    Pair p(net.a, net.b, Options{});
    p.b.post_recv(Sge{0x80000010, p.b.buffer.key, p.b.va(0)});   // inline in a scatter list
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    expect_failed(p.a, HGHCA_SYNDROME_REMOTE_OP_ERR, 0);
    expect_failed(p.b, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, 0);
}

TEST_F(RcError, AReceiveQueueThatCannotBeRead)
{
    Pair p(net.a, net.b, Options{});
    p.b.post_recv(p.b.sge(0, 100));
    TestDriver::must(net.b.driver.destroy_mr(p.b.qp.rq), "HW2SW_MPT");
    p.a.post(send(p.a.sge(0, 100)));
    net.pump();
    expect_failed(p.a, HGHCA_SYNDROME_REMOTE_OP_ERR, 0);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_GE(net.b.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

TEST_F(RcError, ARegionThatGoesWhileItIsRead)
{
    Options options;
    options.buffer_bytes = 8 << 20;
    Pair p(net.a, net.b, options);
    unsigned n = 0;
    net.filter = [&](const Node &from, Frame &) {
        if (from.number == 2 && ++n == 10)
            net.b.host.link_full = true;   // stops in the middle of the answer
        return Fate{};
    };
    p.a.post(read_from(p.a.sge(0, 100000), p.b.va(0), p.b.buffer.key));
    net.pump();
    TestDriver::must(net.b.driver.destroy_mr(p.b.buffer), "HW2SW_MPT");
    net.b.host.link_full = false;
    net.b.device.link_ready();
    net.pump();
    expect_failed(p.a, kAccess, 0);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(net.b.events(kAccessEvent), 1u);
}

TEST_F(RcError, AReadTooManyIsAnInvalidRequest)
{
    for (uint32_t limit : {1u, 2u}) {
        Options requester, target;
        requester.rd_atomic = 2;
        target.dest_rd_atomic = limit;
        Pair p(net.a, net.b, requester, target);
        // The target cannot answer the first before the second is there.
        net.b.host.link_full = true;
        Wqe read = read_from(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key);
        p.a.post({read, read});
        net.pump();
        net.b.host.link_full = false;
        net.b.device.link_ready();
        net.pump();
        auto done = p.a.poll_all();
        ASSERT_EQ(done.size(), 2u);
        EXPECT_FALSE(done[0].error);
        EXPECT_EQ(done[1].error, limit == 1);
        if (limit == 1) {
            EXPECT_EQ(int(done[1].syndrome), kInvalid);
        }
    }
}

// ---- refused by the requester

struct LocalCase {
    const char *name;
    std::function<Wqe(Pair &)> wqe;
    uint8_t syndrome;
};
class RcLocal : public RcError, public ::testing::WithParamInterface<LocalCase> {};

TEST_P(RcLocal, FailsInItsTurnAndSendsNothing)
{
    const LocalCase &c = GetParam();
    Options options;
    options.stride_log = 10;
    Pair p(net.a, net.b, options);
    Wqe nothing = write_to(p.a.sge(0, 0), 0, 0);
    p.a.post({nothing, c.wqe(p), nothing, nothing});
    net.pump();
    auto first = p.a.poll();
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->error);   // what was sent before completes before
    expect_failed(p.a, c.syndrome, 2);
    EXPECT_EQ(net.a.counters().tx_packets, 1u);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(net.a.counters().wqe_bad, c.syndrome == HGHCA_SYNDROME_LOCAL_PROT_ERR ? 0u : 1u);
    net.settle();   // its timer, if one is left, ends without a word
    EXPECT_FALSE(p.a.poll());
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
}

constexpr uint8_t kOperation = HGHCA_SYNDROME_LOCAL_QP_OP_ERR;
constexpr uint8_t kLength = HGHCA_SYNDROME_LOCAL_LENGTH_ERR;
constexpr uint8_t kProtection = HGHCA_SYNDROME_LOCAL_PROT_ERR;

Wqe fetch_add(Pair &p, std::initializer_list<Sge> to)
{
    return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(1, 0).data(to);
}

Wqe gather(Pair &p, unsigned entries)
{
    Wqe wqe(HGHCA_OPCODE_SEND);
    for (unsigned i = 0; i < entries; i++)
        wqe.data(p.a.sge(0, 1));
    return wqe;
}

INSTANTIATE_TEST_SUITE_P(
    All, RcLocal,
    ::testing::Values(
        LocalCase{"UnknownOpcode", [](Pair &p) { return Wqe(0x1f).data(p.a.sge(0, 8)); }, kOperation},
        LocalCase{"BindMw", [](Pair &p) { return Wqe(HGHCA_OPCODE_BIND_MW).data(p.a.sge(0, 8)); }, kOperation},
        LocalCase{"WriteWithoutAddress", [](Pair &) { return Wqe(HGHCA_OPCODE_RDMA_WRITE); }, kOperation},
        LocalCase{"AtomicWithoutItsUnit",
                  [](Pair &p) { return Wqe(HGHCA_OPCODE_ATOMIC_CS).raddr(p.b.va(0), p.b.buffer.key); }, kOperation},
        LocalCase{"AtomicOfNothing", [](Pair &p) { return fetch_add(p, {}); }, kLength},
        LocalCase{"AtomicOfFourBytes", [](Pair &p) { return fetch_add(p, {p.a.sge(0, 4)}); }, kLength},
        LocalCase{"AtomicOfSixteenBytes", [](Pair &p) { return fetch_add(p, {p.a.sge(0, 16)}); }, kLength},
        LocalCase{"AtomicOfFourBytesUnderAWrongKey",
                  [](Pair &p) { return fetch_add(p, {{4, 0x77777, p.a.va(0)}}); }, kLength},
        LocalCase{"AtomicOfTwoEntries",
                  [](Pair &p) { return fetch_add(p, {p.a.sge(0, 4), p.a.sge(4, 4)}); }, kLength},
        LocalCase{"InlineInARead",
                  [](Pair &p) {
                      return Wqe(HGHCA_OPCODE_RDMA_READ).raddr(p.b.va(0), p.b.buffer.key).inline_data(Bytes(8));
                  },
                  kOperation},
        LocalCase{"InlinePastTheEnd",
                  [](Pair &) {
                      Wqe wqe(HGHCA_OPCODE_SEND);
                      wqe.inline_data(Bytes(12));
                      wqe.bytes[16] = 13;
                      return wqe;
                  },
                  kOperation},
        LocalCase{"InlineOf2GB",
                  [](Pair &) {
                      Wqe wqe(HGHCA_OPCODE_SEND);
                      wqe.inline_data(Bytes(12));
                      for (int i = 16; i < 20; i++)
                          wqe.bytes[size_t(i)] = 0xff;
                      return wqe;
                  },
                  kOperation},
        LocalCase{"ThirtyThreeEntries", [](Pair &p) { return gather(p, 33); }, kOperation},
        LocalCase{"LongerThan2GB",
                  [](Pair &p) {
                      return Wqe(HGHCA_OPCODE_SEND).data({{0x7fffffff, p.a.buffer.key, 0}, {2, p.a.buffer.key, 0}});
                  },
                  kLength},
        LocalCase{"UnknownKey", [](Pair &p) { return send({8, 0x77777, p.a.va(0)}); }, kProtection},
        LocalCase{"PastTheEnd", [](Pair &p) { return send(p.a.sge(p.a.buffer.length - 7, 8)); }, kProtection},
        LocalCase{"PastTheEndInTheLastEntry",
                  [](Pair &p) {
                      return Wqe(HGHCA_OPCODE_SEND).data({p.a.sge(0, 9000), p.a.sge(p.a.buffer.length - 7, 8)});
                  },
                  kProtection},
        LocalCase{"AnotherPd",
                  [](Pair &p) {
                      auto mr = p.a.node.driver.create_mr(0x9000, 4096, TestDriver::kRw, 2);
                      return send({8, mr.key, mr.va});
                  },
                  kProtection}),
    [](const auto &param) { return std::string(param.param.name); });

TEST_F(RcError, ThirtyTwoEntriesAreGood)
{
    Options options;
    options.stride_log = 10;
    Pair p(net.a, net.b, options);
    p.b.post_recv(p.b.sge(0, 100));
    p.a.post(gather(p, 32));
    net.pump();
    EXPECT_FALSE(p.a.poll()->error);
}

TEST_F(RcError, TheLongestMessageOfTheQp)
{
    // 2^10 bytes.
    for (uint32_t size : {1024u, 1025u}) {
        Options options;
        options.mtu_msgmax = 10;
        Pair p(net.a, net.b, options);
        p.a.post(write_to(p.a.sge(0, size), p.b.va(0), p.b.buffer.key));
        net.pump();
        auto done = p.a.poll();
        ASSERT_TRUE(done);
        EXPECT_EQ(int(done->syndrome), size == 1024 ? 0 : kLength);
    }
}

TEST_F(RcError, AWqeLargerThanItsSlot)
{
    Pair p(net.a, net.b, Options{});
    Wqe wqe = send(p.a.sge(0, 8));
    p.a.write(wqe);
    net.a.driver.ring_sq(p.a.qp, 0, HGHCA_OPCODE_SEND, 17);   // of 16 units
    net.pump();
    expect_failed(p.a, kOperation, 0);
}

TEST_F(RcError, ALinkThatLeadsElsewhere)
{
    Pair p(net.a, net.b, Options{});
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    for (int i = 0; i < 3; i++)
        p.a.write(wqe);
    reinterpret_cast<hghca_next_unit *>(p.a.send_slot(0))->nda_nop = le32(2u << 8 | wqe.opcode);
    p.a.ring(0, wqe, 3);
    net.pump();
    auto first = p.a.poll();
    ASSERT_TRUE(first);
    EXPECT_FALSE(first->error);
    auto second = p.a.poll();
    ASSERT_TRUE(second);
    EXPECT_EQ(int(second->syndrome), kOperation);
    EXPECT_EQ(second->slot, 1u);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_ERR));
}

TEST_F(RcError, AChainThatLoopsEndsAfterOneQueue)
{
    Options options;
    options.sq_wqes = 8;
    Pair p(net.a, net.b, options);
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    for (int i = 0; i < 8; i++)
        p.a.write(wqe);
    auto *last = reinterpret_cast<hghca_next_unit *>(p.a.send_slot(7));
    last->nda_nop = le32(wqe.opcode);
    last->nee_nds = le32(uint32_t(wqe.bytes.size() / 16));
    p.a.ring(0, wqe, 8);
    net.pump();
    auto all = p.a.poll_all();
    ASSERT_GE(all.size(), 9u);
    for (size_t i = 0; i < 8; i++)
        EXPECT_FALSE(all[i].error);
    EXPECT_EQ(int(all[8].syndrome), kOperation);
    EXPECT_LE(all.size(), 17u);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_ERR));
}

TEST_F(RcError, ADoorbellAheadOfTheWalk)
{
    Pair p(net.a, net.b, Options{});
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    p.a.ring(2, wqe, 1);
    net.pump();
    auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(int(all[0].syndrome), kOperation);
    EXPECT_EQ(all[0].slot, 0u);
}

TEST_F(RcError, ASendQueueThatCannotBeRead)
{
    Pair p(net.a, net.b, Options{});
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    p.a.write(wqe);
    TestDriver::must(net.a.driver.destroy_mr(p.a.qp.sq), "HW2SW_MPT");
    p.a.ring(0, wqe, 1);
    net.pump();
    expect_failed(p.a, kOperation, 0);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_WQ_CATAS_ERROR), 1u);
}

// The keys are good, and the memory behind them is not there.
TEST_F(RcError, MemoryThatIsNotThere)
{
    for (bool hole : {false, true}) {
        SCOPED_TRACE(hole);
        Pair p(net.a, net.b, Options{});
        Sge here = p.a.sge(8192, 100);
        if (hole) {
            net.a.host.holes.push_back({p.a.buffer.dma + 8192, 4096});
        } else {
            auto no_pages = net.a.driver.create_mr_without_pages(0x10000, 4096);
            here = {100, no_pages.key, no_pages.va};
        }
        p.a.post({write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key), write_to(here, p.b.va(0), p.b.buffer.key),
                  write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key)});
        net.pump();
        auto first = p.a.poll();
        ASSERT_TRUE(first);
        EXPECT_FALSE(first->error);
        expect_failed(p.a, HGHCA_SYNDROME_LOCAL_PROT_ERR, 1);
    }
}

// ---- memory that a response is written to: checked when the response is here, as adapters do

struct PlaceCase {
    const char *name;
    std::function<Sge(Pair &, uint32_t)> place;   // of so many bytes
};
class RcPlace : public RcError, public ::testing::WithParamInterface<PlaceCase> {
protected:
    // A READ or an atomic of the peer's first eight bytes, with the key it ought to have or another one.
    static Wqe request(Pair &p, bool atomic, const Sge &to, uint32_t rkey)
    {
        return atomic ? Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), rkey).atomic(2, 0).data(to)
                      : read_from(to, p.b.va(0), rkey);
    }
    static uint64_t &word(Pair &p) { return *reinterpret_cast<uint64_t *>(p.b.at(0)); }
};

TEST_P(RcPlace, FailsOnceThePeerHasAnswered)
{
    for (const bool atomic : {false, true}) {
        SCOPED_TRACE(atomic);
        Pair p(net.a, net.b, Options{});
        word(p) = 40;
        p.a.fill(100, 8, 7);
        p.a.post({write_to(p.a.sge(0, 0), 0, 0),
                  request(p, atomic, GetParam().place(p, 8), p.b.buffer.key),
                  write_to(p.a.sge(100, 8), p.b.va(64), p.b.buffer.key)});
        net.pump();
        auto first = p.a.poll();
        ASSERT_TRUE(first);
        EXPECT_FALSE(first->error);
        expect_failed(p.a, kProtection, 1);
        EXPECT_EQ(word(p), atomic ? 42u : 40u) << "the peer has carried it out";
        EXPECT_TRUE(p.b.holds(64, 8, 7)) << "what was on its way behind it is flushed, and done there";
        EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
        net.settle();
        EXPECT_FALSE(p.a.poll());
        EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    }
}

TEST_P(RcPlace, ThePeersErrorComesFirst)
{
    for (const bool atomic : {false, true}) {
        SCOPED_TRACE(atomic);
        Pair p(net.a, net.b, Options{});
        p.a.post(request(p, atomic, GetParam().place(p, 8), 0x77777));
        net.pump();
        expect_failed(p.a, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, 0);
    }
}

// The response is lost: it is asked for once more, an atomic is not done twice, and the error is the same.
TEST_P(RcPlace, AfterALostResponse)
{
    for (const bool atomic : {false, true}) {
        SCOPED_TRACE(atomic);
        Pair p(net.a, net.b, Options{});
        word(p) = 40;
        bool lost = false;
        net.filter = [&](const Node &from, Frame &) {
            return &from == &net.b && !std::exchange(lost, true) ? Fate{0} : Fate{};
        };
        p.a.post(request(p, atomic, GetParam().place(p, 8), p.b.buffer.key));
        net.settle(2'000'000'000);
        EXPECT_TRUE(lost);
        expect_failed(p.a, kProtection, 0);
        EXPECT_EQ(word(p), atomic ? 42u : 40u);
        net.filter = nullptr;
    }
}

// Of a long READ what has a place arrives, up to the packet that has none.
TEST_P(RcPlace, BehindAPlaceThatIsGood)
{
    Pair p(net.a, net.b, Options{});
    p.b.fill(0, 8192, 3);
    p.a.post(Wqe(HGHCA_OPCODE_RDMA_READ)
                 .raddr(p.b.va(0), p.b.buffer.key)
                 .data({p.a.sge(0, 3000), GetParam().place(p, 5192)}));
    net.pump();
    expect_failed(p.a, kProtection, 0);
    EXPECT_TRUE(p.a.holds(0, 2048, 3));   // two packets of 1024
    EXPECT_TRUE(std::all_of(p.a.at(3000), p.a.at(8192), [](uint8_t byte) { return byte == 0; }));
}

INSTANTIATE_TEST_SUITE_P(
    All, RcPlace,
    ::testing::Values(
        PlaceCase{"UnknownKey", [](Pair &p, uint32_t bytes) { return Sge{bytes, 0x77777, p.a.va(0)}; }},
        PlaceCase{"PastTheEnd",
                  [](Pair &p, uint32_t bytes) { return p.a.sge(p.a.buffer.length - 7, bytes); }},
        PlaceCase{"ReadOnly",
                  [](Pair &p, uint32_t bytes) {
                      auto mr = p.a.node.driver.create_mr(0x9000, 8192, 0);
                      return Sge{bytes, mr.key, mr.va};
                  }},
        PlaceCase{"AnotherPd",
                  [](Pair &p, uint32_t bytes) {
                      auto mr = p.a.node.driver.create_mr(0x9000, 8192, TestDriver::kRw, 2);
                      return Sge{bytes, mr.key, mr.va};
                  }},
        PlaceCase{"NoPages",
                  [](Pair &p, uint32_t bytes) {
                      auto mr = p.a.node.driver.create_mr_without_pages(0x10000, 8192);
                      return Sge{bytes, mr.key, mr.va};
                  }},
        PlaceCase{"AHoleInMemory",
                  [](Pair &p, uint32_t bytes) {
                      p.a.node.host.holes.push_back({p.a.buffer.dma + 65536, 8192});
                      return p.a.sge(65536, bytes);
                  }}),
    [](const auto &param) { return std::string(param.param.name); });

// A READ of no bytes writes nothing, so no key is looked at, here as there.
TEST_F(RcError, AReadOfNoBytesNeedsNoPlace)
{
    Pair p(net.a, net.b, Options{});
    p.a.post({read_from({0, 0x77777, 0}, 0, 0x88888), Wqe(HGHCA_OPCODE_RDMA_READ).raddr(0, 0)});
    net.pump();
    for (int i = 0; i < 2; i++) {
        auto done = p.a.poll();
        ASSERT_TRUE(done);
        EXPECT_FALSE(done->error);
        EXPECT_EQ(done->bytes, 0u);
    }
}

TEST_F(RcError, ATargetThatIsNotThere)
{
    for (bool atomic : {false, true}) {
        SCOPED_TRACE(atomic);
        Pair p(net.a, net.b, Options{});
        net.b.host.holes.push_back({p.b.buffer.dma + 8192, 4096});
        p.a.post(atomic ? Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(8192), p.b.buffer.key).atomic(1, 0)
                              .data(p.a.sge(0, 8))
                        : write_to(p.a.sge(0, 8), p.b.va(8192), p.b.buffer.key));
        net.pump();
        expect_failed(p.a, HGHCA_SYNDROME_REMOTE_ACCESS_ERR, 0);
        EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
        EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_ACCESS_ERROR), 1u);
    }
}

// The guest rewrites what is in flight: it hurts itself alone.
TEST_F(RcError, WorkRewrittenInFlight)
{
    for (unsigned what = 0; what < 4; what++) {
        SCOPED_TRACE(what);
        Pair p(net.a, net.b, Options{});
        Wqe wqe = write_to(p.a.sge(0, 3000), p.b.va(0), p.b.buffer.key);
        unsigned n = 0;
        net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 2 && n++ == 0 ? 0u : 1u}; };
        p.a.post({wqe, wqe, wqe});
        uint8_t *slot = p.a.send_slot(1);
        if (what == 0)
            std::memset(slot, 0, 64);
        else if (what == 1)
            std::memset(slot, 0xff, 64);
        else if (what == 2)
            slot[33] ^= 0x7f;   // its length
        else
            slot[0] ^= 0x1f;    // the opcode of the next
        net.settle(5'000'000'000);
        EXPECT_LE(p.a.poll_all().size(), 3u);
    }
}

TEST_F(RcError, ASendCqThatIsFull)
{
    Options options;
    options.cq_log = 1;
    Pair p(net.a, net.b, options);
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    p.a.post({wqe, wqe, wqe, wqe});
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 2u);
    EXPECT_EQ(p.a.state(), unsigned(HGHCA_QP_STATE_ERR));
    hghca_eqe eqe;
    unsigned cq_error = 0, wq_catas = 0;
    while (net.a.driver.poll(net.a.driver.async, eqe)) {
        cq_error += eqe.type == HGHCA_EVENT_CQ_ERROR;
        wq_catas += eqe.type == HGHCA_EVENT_WQ_CATAS_ERROR;
    }
    EXPECT_EQ(cq_error, 1u);
    EXPECT_EQ(wq_catas, 1u);
}

TEST_F(RcError, AReceiveCqThatIsFull)
{
    Options options;
    options.cq_log = 1;
    Pair p(net.a, net.b, Options{}, options);
    for (int i = 0; i < 5; i++)
        p.b.post_recv(p.b.sge(0, 10));
    for (int i = 0; i < 4; i++)
        p.a.post(send(p.a.sge(0, 10)));
    net.settle(5'000'000'000);
    EXPECT_EQ(p.b.poll_all().size(), 2u);
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_ERR));
    EXPECT_EQ(p.a.poll_all().size(), 4u);
}

// ---- states

TEST_F(RcError, ErrFlushesBothQueuesInOrderAndWhatIsPostedLater)
{
    Pair p(net.a, net.b, Options{});
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    for (int i = 0; i < 3; i++)
        p.a.post_recv(p.a.sge(0, 10));
    Wqe wqe = write_to(p.a.sge(0, 10), p.b.va(0), p.b.buffer.key, 0);
    p.a.post({wqe, wqe});
    p.a.post(wqe);
    net.pump();
    EXPECT_EQ(net.a.driver.to_error(p.a.qp.qpn), 0);
    auto all = p.a.poll_all();
    ASSERT_EQ(all.size(), 6u);
    unsigned sends = 0, receives = 0;
    for (const Completion &c : all) {
        EXPECT_EQ(int(c.syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(c.slot, c.is_send ? sends++ : receives++);
    }
    EXPECT_EQ(sends, 3u);
    // Later: a send by its own doorbell, a receive by one that sends nothing.
    p.a.post(wqe);
    auto late = p.a.poll_all();
    ASSERT_EQ(late.size(), 1u);
    EXPECT_EQ(late[0].slot, 3u);
    p.a.post_recv(p.a.sge(0, 10));
    EXPECT_FALSE(p.a.poll());
    net.a.driver.ring_sq(p.a.qp, 0, 0, 0);
    late = p.a.poll_all();
    ASSERT_EQ(late.size(), 1u);
    EXPECT_FALSE(late[0].is_send);
    EXPECT_EQ(net.a.counters().cqe_flush, 8u);
    EXPECT_EQ(net.a.counters().cqe_error, 0u);
    // It neither sends nor receives any more.
    net.filter = nullptr;
    net.settle(1'000'000'000);
    EXPECT_FALSE(p.a.poll());
}

TEST_F(RcError, AMessageHalfReceivedIsFlushed)
{
    Pair p(net.a, net.b, Options{});
    p.b.post_recv(p.b.sge(0, 10000));
    unsigned n = 0;
    net.filter = [&](const Node &from, Frame &) { return Fate{from.number == 1 && ++n > 3 ? 0u : 1u}; };
    p.a.post(send(p.a.sge(0, 8000)));
    net.pump();
    EXPECT_EQ(net.b.driver.to_error(p.b.qp.qpn), 0);
    auto all = p.b.poll_all();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(int(all[0].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
}

TEST_F(RcError, DoorbellsBeforeRtsAreIgnoredAndCounted)
{
    Pair p(net.a, net.b, Options{}, false);
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    net.a.driver.ring_sq(p.a.qp, 0, wqe.opcode, 3);
    EXPECT_EQ(net.a.counters().db_bad_state, 1u);
    p.a.to_rtr(p.b);
    net.a.driver.ring_sq(p.a.qp, 0, wqe.opcode, 3);
    EXPECT_EQ(net.a.counters().db_bad_state, 2u);
    EXPECT_FALSE(p.a.poll());
}

TEST_F(RcError, DoorbellsOfStrangersAreIgnoredAndCounted)
{
    Pair p(net.a, net.b, Options{});
    TestDriver::Qp other = p.a.qp;
    other.usr_page++;
    Wqe wqe = write_to(p.a.sge(0, 0), 0, 0);
    net.a.driver.ring_sq(other, 0, wqe.opcode, 3);
    EXPECT_EQ(net.a.counters().db_bad_page, 1u);
    other = p.a.qp;
    other.qpn = 200;
    net.a.driver.ring_sq(other, 0, wqe.opcode, 3);
    other.qpn = 0xffffff;
    net.a.driver.ring_sq(other, 0, wqe.opcode, 3);
    EXPECT_EQ(net.a.counters().db_bad_object, 2u);
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
}

TEST_F(RcError, PacketsToAQpThatDoesNotReceiveAreDropped)
{
    Pair p(net.a, net.b, Options{}, false);
    p.a.to_rtr(p.b);
    p.a.to_rts();
    p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 1u);   // INIT
    EXPECT_EQ(net.b.driver.to_reset(p.b.qp.qpn), 0);
    net.settle(4096ull << 14);
    EXPECT_EQ(net.b.counters().rx_unknown_qp, 2u);   // none at all
}

TEST_F(RcError, SqdFinishesWhatHasBegunAndStartsNothing)
{
    Options options;
    options.mtu_code = 1;
    Pair p(net.a, net.b, options);
    // The first message is under way when the drain is asked for, the others wait behind it.
    net.filter = [](const Node &from, Frame &) { return Fate{from.number == 2 ? 0u : 1u}; };
    Wqe big = write_to(p.a.sge(0, 256 * 300), p.b.va(0), p.b.buffer.key);
    p.a.fill(0, 256 * 300, 1);
    p.a.post({big, big});
    net.pump();
    net.filter = nullptr;
    p.a.to_sqd(true);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 0u);
    hghca_qpc c;
    TestDriver::must(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, p.a.qp.qpn), "QUERY_QP");
    EXPECT_TRUE(be32(c.flags) & 1u << 27);
    net.settle(1'000'000'000);
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(0, 256 * 300, 1));
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 1u);
    TestDriver::must(net.a.driver.query(HGHCA_CMD_QUERY_QP, c, p.a.qp.qpn), "QUERY_QP");
    EXPECT_FALSE(be32(c.flags) & 1u << 27);
    // Doorbells are kept, and receiving goes on.
    p.a.post(big);
    net.settle(1'000'000'000);
    EXPECT_FALSE(p.a.poll());
    p.a.post_recv(p.a.sge(0, 10));
    p.b.post(send(p.b.sge(0, 10)));
    net.pump();
    EXPECT_EQ(p.b.poll_all().size(), 1u);
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    p.a.modify(HGHCA_CMD_SQD2RTS_QPEE);
    net.settle(1'000'000'000);
    EXPECT_EQ(p.a.poll_all().size(), 2u);
}

TEST_F(RcError, AnIdleSendQueueIsDrainedAtOnce)
{
    Pair p(net.a, net.b, Options{});
    p.a.to_sqd(true);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 1u);
    p.a.modify(HGHCA_CMD_SQD2RTS_QPEE);
    p.a.to_sqd(false);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_SQ_DRAINED), 0u);
}

TEST_F(RcError, AQpIsGoodAgainAfterReset)
{
    Pair p(net.a, net.b, Options{});
    p.a.post(write_to(p.a.sge(0, 8), 0, 0x123));
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    Endpoint *both[] = {&p.a, &p.b};
    for (Endpoint *e : both) {
        TestDriver &d = e->node.driver;
        EXPECT_EQ(d.to_reset(e->qp.qpn), 0);
        TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, e->qp.qpn,
                                  d.init_qpc(e->qp, HGHCA_QP_ST_RC, e->cq, e->cq)),
                         "RST2INIT");
        e->sq_head = e->rq_head = 0;
        net.a.host.as<hghca_qp_dbr>(e->qp.dbr)->rq_head = 0;
    }
    p.connect();
    p.a.post(write_to(p.a.sge(0, 8), p.b.va(0), p.b.buffer.key));
    net.pump();
    auto done = p.a.poll();
    ASSERT_TRUE(done);
    EXPECT_FALSE(done->error);
}

TEST_F(RcError, AQpResetUnderWayLeavesNothingBehind)
{
    Pair p(net.a, net.b, Options{});
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    p.a.post(write_to(p.a.sge(0, 100000), p.b.va(0), p.b.buffer.key));
    net.pump();
    EXPECT_EQ(net.a.driver.to_reset(p.a.qp.qpn), 0);
    net.filter = nullptr;
    net.settle(10'000'000'000);
    EXPECT_FALSE(p.a.poll());
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
}

TEST_F(RcError, ADeviceResetUnderWayLeavesNothingBehind)
{
    Pair p(net.a, net.b, Options{});
    p.a.post(read_from(p.a.sge(0, 100000), p.b.va(0), p.b.buffer.key));
    net.a.driver.reset();
    net.settle(10'000'000'000);
    EXPECT_FALSE(net.a.device.has_work());
    EXPECT_EQ(net.a.host.deadline_ns, UINT64_MAX);
    EXPECT_FALSE(p.a.poll());
}

}  // namespace
}  // namespace hghca::test::rc_error_test
