// SPDX-License-Identifier: GPL-2.0-or-later
// A device that fails: LOCAL_CATAS_ERROR, and silence until it is reset (interface document, 10.1).
#include <gtest/gtest.h>

#include <new>

#include "jingzhao/events.h"
#include "verbs.h"

namespace hghca::test::catastrophic_test {
namespace {

constexpr uint64_t kClock = HGHCA_UAR_CLOCK;

class Catastrophic : public ::testing::Test {
protected:
    Device &device() { return net.a.device; }
    FakeHost &host() { return net.a.host; }

    void expect_failed()
    {
        EXPECT_TRUE(device().failed());
        for (unsigned size : {1u, 2u, 4u, 8u}) {
            const uint64_t ones = ~0ull >> (64 - 8 * size);
            for (uint64_t offset : {uint64_t(0), uint64_t(HGHCA_HCR_BASE), uint64_t(HGHCA_HCR_BASE + HGHCA_HCR_STATUS),
                                    uint64_t(HGHCA_RESET), uint64_t(HGHCA_BAR_HCR_SIZE - size)})
                EXPECT_EQ(device().hcr_read(offset, size), ones) << offset << " " << size;
            for (uint64_t offset : {uint64_t(0), kClock, kClock + 1, uint64_t(HGHCA_BAR_UAR_SIZE - size)})
                EXPECT_EQ(device().uar_read(offset, size), ones) << offset << " " << size;
        }
        EXPECT_FALSE(device().has_work());
        EXPECT_EQ(host().deadline_ns, UINT64_MAX);
        EXPECT_EQ(device().counters().catastrophic_errors, 1u);
    }
    // Whatever comes from outside: nothing leaves the device.
    void expect_silent(Pair &p)
    {
        host().record_dirty = true;
        host().dirtied.clear();
        host().vectors.clear();
        const uint64_t sent = net.sent;
        p.a.post(send(p.a.sge(0, 100)));
        p.b.post(write_to(p.b.sge(0, 100), p.a.va(0), p.a.buffer.key));   // needs no WQE, and would change memory
        net.settle(1'000'000'000);
        net.a.driver.arm(p.a.cq);
        device().timer();
        device().link_ready();
        device().set_link(false);
        device().set_link(true);
        EXPECT_FALSE(device().run());
        const uint64_t out = net.a.driver.out_mailbox();
        net.a.driver.hcr(HGHCA_HCR_IN_MODIFIER, 0);
        net.a.driver.hcr(HGHCA_HCR_OUT_PARAM_H, uint32_t(out >> 32));
        net.a.driver.hcr(HGHCA_HCR_OUT_PARAM_L, uint32_t(out));
        net.a.driver.hcr(HGHCA_HCR_STATUS, HGHCA_HCR_GO | HGHCA_CMD_QUERY_ADAPTER);   // would write its mailbox
        EXPECT_TRUE(host().dirtied.empty());
        EXPECT_TRUE(host().vectors.empty());
        for (size_t i = sent; i < net.log.size(); i++)
            EXPECT_NE(net.log[i][11], 1) << "a frame of the device that has failed";
        host().record_dirty = false;
        expect_failed();
    }
    void expect_good_after_reset()
    {
        net.a.driver.reset();
        EXPECT_FALSE(device().failed());
        net.clear();
        net.a.start();
        net.b.start();
        Pair p(net.a, net.b, Endpoint::Options{});
        p.b.post_recv(p.b.sge(0, 200));
        p.a.post(send(p.a.sge(0, 100)));
        net.pump();
        const auto all = p.a.poll_all();
        ASSERT_EQ(all.size(), 1u);
        EXPECT_FALSE(all[0].error);
    }

    Network net;
};

TEST_F(Catastrophic, TheDeviceReportsItOnceAndIsSilent)
{
    net.keep_log = true;
    Pair p(net.a, net.b, Endpoint::Options{});
    // A packet waits for the link: whatever wakes the device up would send it.
    host().link_full = true;
    p.a.post(send(p.a.sge(0, 100)));
    host().link_full = false;
    host().vectors.clear();
    device().fail("a test");
    EXPECT_EQ(host().take_vectors(0), 1u);
    expect_failed();
    device().fail("another");
    EXPECT_EQ(host().take_vectors(0), 0u);
    hghca_eqe eqe;
    ASSERT_TRUE(net.a.driver.poll(net.a.driver.async, eqe));
    EXPECT_EQ(eqe.type, HGHCA_EVENT_LOCAL_CATAS_ERROR);
    for (uint32_t word : eqe.event.raw)
        EXPECT_EQ(word, 0u);
    EXPECT_FALSE(net.a.driver.poll(net.a.driver.async, eqe));
    expect_silent(p);
    expect_good_after_reset();
}

// Nothing arms an EQ of a device that has failed, so what is not armed is raised too.
TEST_F(Catastrophic, TheVectorOfAnEqThatIsNotArmed)
{
    device().set_link(false);
    EXPECT_EQ(host().take_vectors(0), 1u);   // and now it is not armed
    device().fail("a test");
    EXPECT_EQ(host().take_vectors(0), 1u);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 1u);
}

TEST_F(Catastrophic, NoEqTakesIt)
{
    TestDriver &d = net.a.driver;
    TestDriver::must(d.map_eq(d.async.eqn, 1ull << HGHCA_EVENT_LOCAL_CATAS_ERROR, true), "MAP_EQ");
    host().vectors.clear();
    device().fail("a test");
    EXPECT_TRUE(host().vectors.empty());
    EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 0u);
    expect_failed();
    expect_good_after_reset();
}

TEST_F(Catastrophic, MemoryRunsOut)
{
    net.keep_log = true;
    Pair p(net.a, net.b, Endpoint::Options{});
    host().meanwhile = [] { throw std::bad_alloc(); };
    p.a.post(send(p.a.sge(0, 100)));
    host().meanwhile = nullptr;
    EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 1u);
    expect_silent(p);
    expect_good_after_reset();
}

// The EQ of completions is gone from under the device: the other one tells.
TEST_F(Catastrophic, AnEqeThatCannotBeWritten)
{
    TestDriver &d = net.a.driver;
    auto eq = d.create_eq(4, 3);
    auto cq = d.create_cq(4, eq.eqn);
    d.arm(cq);
    host().holes = {{eq.buffer.dma, 4096}};
    device().dma_changed();
    host().vectors.clear();
    d.arm(cq);
    EXPECT_FALSE(device().failed());
    const hghca_cqe cqe{};
    EXPECT_THROW((void)device().cqs->post(Cqn(cq.cqn), cqe, true), DeviceFailed);   // as an entry ends
    EXPECT_EQ(device().counters().eqe_write_errors, 1u);
    EXPECT_EQ(host().take_vectors(0), 1u);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 1u);
    expect_failed();
    host().holes.clear();
    device().dma_changed();
    expect_good_after_reset();
}

// By DMA, not by a fault of software's tables alone; and the only EQ there is cannot take the event either.
TEST_F(Catastrophic, TheAsynchronousEqItselfIsGone)
{
    host().holes = {{net.a.driver.async.buffer.dma, 8192}};
    device().dma_changed();
    host().vectors.clear();
    device().set_link(false);
    EXPECT_EQ(device().counters().eqe_write_errors, 2u);   // the event, and the attempt to report it
    EXPECT_EQ(host().take_vectors(0), 1u);
    expect_failed();
    host().holes.clear();
    device().dma_changed();
    device().set_link(true);
    expect_good_after_reset();
}

// What an EQ needs and is out of the cache: nobody gives it.
class CatastrophicRead : public Catastrophic {
protected:
    CatastrophicRead() : eq(net.a.driver.create_eq(4, 3)), cq(net.a.driver.create_cq(4, eq.eqn))
    {
        net.a.driver.arm(cq);
        device().eqs->trim(0);
        device().memory->trim(0);
        host().vectors.clear();
    }
    void take_away(uint64_t dma, uint64_t bytes)
    {
        host().holes.push_back({dma, bytes});
        device().dma_changed();
    }
    void expect_reported()
    {
        EXPECT_EQ(host().take_vectors(0), 1u);
        EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 1u);
        expect_failed();
        host().holes.clear();
        device().dma_changed();
        expect_good_after_reset();
    }
    uint64_t context(const TestDriver::Eq &of) { return net.a.driver.eqc_dma + of.eqn * 64ull; }
    uint64_t mpt(const TestDriver::Eq &of) { return net.a.driver.mpt_dma + net.a.driver.mpt_index(of.buffer.key) * 64ull; }
    uint64_t mtt(const TestDriver::Eq &of) { return net.a.driver.mtt_dma + of.buffer.first_mtt * 8; }

    TestDriver::Eq eq;
    TestDriver::Cq cq;
    const hghca_cqe cqe{};
};

TEST_F(CatastrophicRead, AnEqsContext)
{
    take_away(context(eq), 64);
    EXPECT_THROW((void)device().cqs->post(Cqn(cq.cqn), cqe, false), DeviceFailed);
    EXPECT_EQ(device().counters().context_read_errors, 1u);
    expect_reported();
}

TEST_F(CatastrophicRead, AnEqsContextAtItsDoorbell)
{
    take_away(context(eq), 64);
    net.a.driver.arm(eq);
    expect_reported();
}

// There is no place for the event; the vector is known all the same.
TEST_F(CatastrophicRead, TheAsynchronousEqsContext)
{
    take_away(context(net.a.driver.async), 64);
    device().set_link(false);
    EXPECT_EQ(device().counters().context_read_errors, 2u);   // the event, and the attempt to report it
    EXPECT_EQ(host().take_vectors(0), 1u);
    EXPECT_EQ(net.a.events(HGHCA_EVENT_LOCAL_CATAS_ERROR), 0u);
    expect_failed();
    host().holes.clear();
    device().dma_changed();
    device().set_link(true);
    expect_good_after_reset();
}

// The keys are good, for all that is known: it is no full EQ.
TEST_F(CatastrophicRead, AnEqsMpt)
{
    take_away(mpt(eq), 64);
    EXPECT_THROW((void)device().cqs->post(Cqn(cq.cqn), cqe, false), DeviceFailed);
    EXPECT_EQ(device().counters().eqe_write_errors, 1u);
    EXPECT_GT(device().counters().context_read_errors, 0u);
    EXPECT_EQ(device().counters().eq_overrun, 0u);
    expect_reported();
}

TEST_F(CatastrophicRead, AnEqsMtt)
{
    take_away(mtt(eq), 8);
    EXPECT_THROW((void)device().cqs->post(Cqn(cq.cqn), cqe, false), DeviceFailed);
    EXPECT_EQ(device().counters().eqe_write_errors, 1u);
    EXPECT_GT(device().counters().context_read_errors, 0u);
    EXPECT_EQ(device().counters().eq_overrun, 0u);
    expect_reported();
}

// Software has unmapped the MTT itself.
TEST_F(CatastrophicRead, AnMttThatIsNotMappedIsNoFailure)
{
    TestDriver &d = net.a.driver;
    TestDriver::must(d.unmap_icm(HGHCA_ICM_TPT, d.layout.mtt, 1), "UNMAP_ICM");
    device().set_link(false);
    EXPECT_EQ(device().counters().eq_overrun, 1u);
    EXPECT_EQ(device().counters().context_read_errors, 0u);
    EXPECT_FALSE(device().failed());
}

// Software has taken the key away itself: the event is lost, as one that finds its EQ full.
TEST_F(Catastrophic, AnEqWithoutItsKeyIsNoFailure)
{
    TestDriver &d = net.a.driver;
    TestDriver::must(d.destroy_mr(d.async.buffer), "HW2SW_MPT");
    device().set_link(false);
    EXPECT_EQ(device().counters().eq_overrun, 1u);
    EXPECT_EQ(device().counters().eqe_write_errors, 0u);
    EXPECT_FALSE(device().failed());
}

TEST_F(Catastrophic, AFullEqIsNoFailure)
{
    for (unsigned i = 0; i < 600; i++)
        device().set_link(i % 2);
    EXPECT_GT(device().counters().eq_overrun, 0u);
    EXPECT_FALSE(device().failed());
}

// There is no room for the event, but there is the vector: software looks at the registers.
TEST_F(Catastrophic, TheVectorOfAnEqThatIsFull)
{
    for (const bool armed : {false, true}) {
        for (unsigned i = 0; i < 600; i++)
            device().set_link(i % 2);
        if (armed) {
            // As if nothing had come yet: it has all of its entries, and waits.
            net.a.driver.async.consumer = 256;
            net.a.driver.arm(net.a.driver.async);
        }
        host().vectors.clear();
        device().fail("a test");
        EXPECT_EQ(host().take_vectors(0), 1u) << armed;
        expect_failed();
        net.a.driver.reset();
        net.clear();
        net.a.start();
    }
}

// What the transport asserts of itself and of the function: the device fails, and the emulator goes on.
TEST_F(Catastrophic, BrokenInvariantFailsTheDevice)
{
    EXPECT_THROW(device().events->broken("a test"), DeviceFailed);
    expect_failed();
    device().reset();
    EXPECT_FALSE(device().failed());
}

}  // namespace
}  // namespace hghca::test::catastrophic_test
