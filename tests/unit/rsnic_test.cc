// SPDX-License-Identifier: GPL-2.0-or-later
// RSNIC's initialization segment, command queue and health, with the literal offsets of its document.
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fixture.h"
#include "rsnic/caps.h"
#include "verbs.h"

namespace hghca::test::rsnic_test {
namespace {

Config rsnic_config(FakeHost &host)
{
    Config config = test_config(host);
    config.profile = Profile::Rsnic;
    return config;
}

class Rsnic : public ::testing::Test {
protected:
    Rsnic() : device(host, rsnic_config(host)), driver(host, device)
    {
        queue = host.alloc(4096, 4096);
        out = driver.out_mailbox();
    }

    uint32_t read(uint64_t offset) { return uint32_t(device.hcr_read(offset, 4)); }
    void write(uint64_t offset, uint32_t value) { device.hcr_write(offset, value, 4); }
    void turn_on()
    {
        write(0x10, uint32_t(queue >> 32));
        write(0x14, uint32_t(queue));
    }
    uint32_t &word(unsigned entry, unsigned offset) { return *host.as<uint32_t>(queue + 64 * entry + offset); }
    // An entry that software gives to the device; little-endian words.
    void fill(unsigned entry, uint32_t op, uint64_t in, uint32_t modifier, uint64_t out_param, uint32_t op_modifier = 0)
    {
        const uint32_t words[8] = {uint32_t(in >> 32), uint32_t(in), modifier, uint32_t(out_param >> 32),
                                   uint32_t(out_param), 0xffff0000, op_modifier << 12 | op, 1};
        for (unsigned i = 0; i < 8; i++)
            word(entry, 4 * i) = le32(words[i]);
    }
    uint8_t status(unsigned entry) { return uint8_t(le32(word(entry, 0x18)) >> 24); }
    uint32_t owner(unsigned entry) { return le32(word(entry, 0x1c)); }
    // HCA initialised, and the queue on behind it: its address is given before INIT_HCA.
    void start_with_queue()
    {
        driver.reset();
        write(0x10, uint32_t(queue >> 32));
        write(0x14, uint32_t(queue) | 1 << 8);
        TestDriver::must(driver.init_hca(0), "INIT_HCA");
        driver.map_icm(HGHCA_ICM_CONTEXT, driver.layout.eqc, 4096);
        driver.map_icm(HGHCA_ICM_TPT, driver.layout.mpt, 64 << 10);
        driver.map_icm(HGHCA_ICM_TPT, driver.layout.mtt, 64 << 10);
        write(0x14, uint32_t(queue));
    }
    // `commands` go to the HCR, while the queue is off.
    template <class Commands>
    auto by_hcr(Commands &&commands)
    {
        write(0x14, uint32_t(queue) | 1 << 8);
        const auto result = commands();
        write(0x14, uint32_t(queue));
        return result;
    }
    // Rings, and waits until all entries are complete.
    void ring_all(uint32_t vector)
    {
        write(0x18, vector);
        for (unsigned turns = 0; device.has_work(); turns++) {
            ASSERT_LT(turns, 100u);
            device.run();
        }
    }
    uint64_t ignored() const { return device.counters().cmdq_ignored; }

    FakeHost host;
    Device device;
    TestDriver driver;
    uint64_t queue, out;
};

// Tables 2-1 and 2-2.
TEST_F(Rsnic, TheSegmentAfterReset)
{
    EXPECT_EQ(read(0x0000), 0x00000001u);   // minor 0, major 1
    EXPECT_EQ(read(0x0004), 0x00010000u);
    EXPECT_EQ(read(0x0010), 0u);
    EXPECT_EQ(read(0x0014), 0x56u);         // 32 entries of 64 bytes
    EXPECT_EQ(read(0x0018), 0u);
    EXPECT_EQ(read(0x01fc), 0x03000000u);   // full_driver, disabled; ready
    EXPECT_EQ(read(0x1010) >> 24, 0u);
}

TEST_F(Rsnic, TheRestOfTheSegmentReadsZero)
{
    for (uint64_t offset = 0; offset < 0x2000; offset++) {
        for (unsigned size : {1u, 2u, 4u, 8u}) {
            const bool named = size == 4 && (offset == 0 || offset == 4 || offset == 0x14 || offset == 0x1fc ||
                                             offset == 0x1000 || offset == 0x1004 || offset == 0x1010);
            if (named)
                continue;
            ASSERT_EQ(device.hcr_read(offset, size), 0u) << std::hex << offset << " " << size;
        }
    }
}

TEST_F(Rsnic, OtherDevicesHaveNoSegment)
{
    Device full(host, test_config(host));
    for (uint64_t offset = 0; offset < 0x2000; offset += 4)
        ASSERT_EQ(full.hcr_read(offset, 4), 0u) << offset;
}

TEST_F(Rsnic, TheTimerIsTheClock)
{
    host.clock_ns = 0x123456789abcdef0;
    EXPECT_EQ(read(0x1000), 0x12345678u);
    EXPECT_EQ(read(0x1004), 0x9abcdef0u);
}

TEST_F(Rsnic, ACommandOfTheQueue)
{
    turn_on();
    EXPECT_EQ(read(0x10), uint32_t(queue >> 32));
    EXPECT_EQ(read(0x14), uint32_t(queue) | 0x56);
    fill(3, 0x003, 0, 0, out);
    write(0x18, 1 << 3);
    EXPECT_EQ(owner(3), 0u);
    EXPECT_EQ(status(3), 0u);
    const std::vector<uint8_t> by_queue(host.at(out), host.at(out) + 4096);
    write(0x14, 1 << 8);   // disabled
    ASSERT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0);
    EXPECT_EQ(std::memcmp(by_queue.data(), host.at(out), 4096), 0);
    EXPECT_EQ(ignored(), 0u);
}

TEST_F(Rsnic, StatusOfACommandThatIsRefused)
{
    turn_on();
    fill(0, 0x003, 0, 1, out);
    fill(1, 0xfff, 0, 0, 0);
    write(0x18, 3);
    EXPECT_EQ(status(0), 0x03);
    EXPECT_EQ(status(1), 0x02);
    EXPECT_EQ(owner(0) | owner(1), 0u);
}

// Every entry of one write is executed.
TEST_F(Rsnic, EveryBitIsAnEntry)
{
    turn_on();
    for (unsigned i = 0; i < 32; i++)
        fill(i, 0x031, 0, 0x1f, 0);
    write(0x18, 0xffffffff);
    for (unsigned turns = 0; device.has_work(); turns++) {
        ASSERT_LT(turns, 100u);
        device.run();
    }
    for (unsigned i = 0; i < 32; i++) {
        EXPECT_EQ(owner(i), 0u) << i;
        EXPECT_EQ(status(i), 0) << i;
    }
}

TEST_F(Rsnic, AnEntryOfSoftwareIsNotExecuted)
{
    turn_on();
    fill(0, 0x003, 0, 0, out);
    word(0, 0x1c) = 0;
    host.at(out)[0] = 0xee;
    write(0x18, 1);
    EXPECT_EQ(host.at(out)[0], 0xee);
    EXPECT_EQ(ignored(), 1u);
    EXPECT_EQ(read(0x1010) >> 24, 0u);
}

TEST_F(Rsnic, ADoorbellWithoutAQueue)
{
    write(0x18, 1);
    EXPECT_EQ(ignored(), 1u);
    EXPECT_FALSE(device.has_work());
}

// Either the HCR takes commands or the queue does.
TEST_F(Rsnic, TheHcrIsBusyWhileTheQueueIsOn)
{
    turn_on();
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0x06);
    write(0x14, uint32_t(queue) | 1 << 8);
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0);
    write(0x14, uint32_t(queue));
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0x06);
    driver.reset();
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0);
}

TEST_F(Rsnic, UndefinedModesHaveNoEffect)
{
    write(0x10, uint32_t(queue >> 32));
    write(0x14, uint32_t(queue) | 2 << 8);
    write(0x14, uint32_t(queue) | 3 << 8);
    EXPECT_EQ(ignored(), 2u);
    EXPECT_EQ(read(0x14), 0x56u);
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0);
}

TEST_F(Rsnic, TheQueueIsNotMovedBetweenInitAndClose)
{
    driver.start(0);
    turn_on();
    EXPECT_EQ(ignored(), queue >> 32 ? 2u : 1u);
    EXPECT_EQ(read(0x14), 0x56u);
    ASSERT_EQ(driver.command(HGHCA_CMD_CLOSE_HCA).status, 0);
    turn_on();
    EXPECT_EQ(read(0x14), uint32_t(queue) | 0x56);
}

// A high word that was written before INIT_HCA does not count with a low word after it.
TEST_F(Rsnic, TheHighWordDoesNotMoveTheQueueAfterInit)
{
    driver.reset();
    write(0x10, uint32_t(queue >> 32));
    write(0x14, uint32_t(queue) | 1 << 8);
    write(0x10, 0x12345678);
    TestDriver::must(driver.init_hca(0), "INIT_HCA");
    write(0x14, uint32_t(queue));
    EXPECT_EQ(ignored(), 1u);
    write(0x18, 1);
    EXPECT_EQ(ignored(), 2u);   // the queue is off
    EXPECT_FALSE(device.failed());
}

TEST_F(Rsnic, CloseTurnsTheQueueOff)
{
    driver.reset();
    write(0x10, uint32_t(queue >> 32));
    write(0x14, uint32_t(queue) | 1 << 8);   // the address alone
    ASSERT_EQ(driver.init_hca(0), 0);
    write(0x14, uint32_t(queue));
    fill(0, 0x008, 0, 0, 0);
    write(0x18, 1);
    EXPECT_EQ(owner(0), 0u);
    EXPECT_EQ(status(0), 0);
    EXPECT_EQ(driver.command(0x003, 0, 0, 0, out).status, 0);
}

// In the order of their bits: a region is given to the device and taken back, twice.
TEST_F(Rsnic, EntriesOfOneDoorbellStartInOrder)
{
    start_with_queue();
    const TestDriver::Mr mr = by_hcr([&] { return driver.create_mr(0, 4096); });
    const uint64_t mailbox = host.alloc(4096, 4096);
    const hghca_mpt mpt = driver.mpt_mailbox(mr.key, 0, 4096, mr.first_mtt);
    std::memcpy(host.at(mailbox), &mpt, sizeof(mpt));
    const uint32_t index = driver.mpt_index(mr.key);
    fill(4, 0x00f, 0, index, 0);
    fill(9, 0x00d, mailbox, index, 0);
    fill(10, 0x00f, 0, index, 0);
    fill(31, 0x00f, 0, index, 0);
    ring_all(1u << 4 | 1u << 9 | 1u << 10 | 1u << 31);
    EXPECT_EQ(status(4), 0);
    EXPECT_EQ(status(9), 0);
    EXPECT_EQ(status(10), 0);
    EXPECT_EQ(status(31), 0x09);   // BAD_RES_STATE: it is software's already
}

// Entries of different objects too: after each step, those that have been executed are the first ones. Each changes an
// object of its own, which no other entry names.
TEST_F(Rsnic, EntriesOfDifferentObjectsStartInOrder)
{
    Config config = rsnic_config(host);
    config.slice_work = 1;
    Device slow(host, config);
    TestDriver other(host, slow);
    const auto set_queue = [&](uint32_t mode) {
        slow.hcr_write(0x10, uint32_t(queue >> 32), 4);
        slow.hcr_write(0x14, uint32_t(queue) | mode << 8, 4);
    };
    other.reset();
    set_queue(1);
    TestDriver::must(other.init_hca(0), "INIT_HCA");
    other.map_icm(HGHCA_ICM_TPT, other.layout.mpt, 64 << 10);
    other.map_icm(HGHCA_ICM_TPT, other.layout.mtt, 64 << 10);
    std::vector<TestDriver::Mr> regions;
    for (unsigned i = 0; i < 32; i++)
        regions.push_back(other.create_mr(0, 4096));
    set_queue(0);
    // The larger the entry, the smaller the object; every third is of none.
    for (unsigned i = 0; i < 32; i++) {
        if (i % 3 == 2)
            fill(i, 0x031, 0, 0x1f, 0);
        else
            fill(i, 0x00f, 0, other.mpt_index(regions[31 - i].key), 0);
    }
    const auto exists = [&](unsigned i) { return slow.memory->find(Key(regions[31 - i].key)) != nullptr; };
    unsigned steps = 0, before = 0;
    slow.hcr_write(0x18, 0xffffffff, 4);
    for (;; steps++) {
        unsigned executed = 0;
        while (executed < 32 && !owner(executed))
            executed++;
        EXPECT_GT(executed, before);
        before = executed;
        for (unsigned i = 0; i < 32; i++) {
            EXPECT_EQ(owner(i), i >= executed ? 1u : 0u) << i << " with " << executed;
            EXPECT_EQ(i % 3 != 2 && exists(i), i % 3 != 2 && i >= executed) << i << " with " << executed;
        }
        if (!slow.has_work())
            break;
        ASSERT_LT(steps, 40u);
        slow.run();
    }
    EXPECT_EQ(before, 32u);
    EXPECT_GT(steps, 20u) << "they were not all executed at once";
    for (unsigned i = 0; i < 32; i++)
        EXPECT_EQ(status(i), 0) << i;
}

// INIT_HCA itself, and commands after it, by the queue alone.
TEST_F(Rsnic, InitHcaByTheQueue)
{
    turn_on();
    const uint64_t mailbox = host.alloc(4096, 4096);
    const hghca_init_hca init = driver.init_mailbox(0);
    std::memcpy(host.at(mailbox), &init, sizeof(init));
    fill(0, 0x007, mailbox, 0, 0);
    fill(1, 0x007, mailbox, 0, 0);
    ring_all(3);
    EXPECT_EQ(status(0), 0);
    EXPECT_EQ(status(1), 0x04);   // BAD_SYS_STATE
    EXPECT_TRUE(device.initialized);
}

// E = 1: an EQE of type 0ah too, with the token.
TEST_F(Rsnic, ACommandThatIsToldByAnEqe)
{
    start_with_queue();
    by_hcr([&] {
        driver.async = driver.create_eq(8, 0);
        TestDriver::must(driver.map_eq(driver.async.eqn, ~0ull), "MAP_EQ");
        return 0;
    });
    fill(2, 0x031, 0, 0x1f, 0);
    word(2, 0x14) = le32(0x1234u << 16);
    word(2, 0x18) = le32(1 << 22 | 0x031);
    ring_all(1 << 2);
    EXPECT_EQ(owner(2), 0u);
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(driver.async, eqe));
    EXPECT_EQ(eqe.type, 0x0a);
    EXPECT_EQ(be16(eqe.event.cmd.token), 0x1234);
    EXPECT_EQ(eqe.event.cmd.status, 0);
}

// A bit that is rung again while its entry waits, and the address that is changed meanwhile.
TEST_F(Rsnic, WhatIsIgnoredWhileEntriesAreUnderWay)
{
    Config config = rsnic_config(host);
    config.slice_work = 1;
    Device slow(host, config);
    slow.hcr_write(0x10, uint32_t(queue >> 32), 4);
    slow.hcr_write(0x14, uint32_t(queue), 4);
    for (unsigned i = 0; i < 32; i++)
        fill(i, 0x031, 0, 0x1f, 0);
    slow.hcr_write(0x18, 0xffffffff, 4);
    ASSERT_TRUE(slow.has_work());
    slow.hcr_write(0x18, 0x80000000, 4);
    EXPECT_EQ(slow.counters().cmdq_ignored, 1u);
    slow.hcr_write(0x10, 0xffff, 4);
    slow.hcr_write(0x14, uint32_t(queue) + 0x1000, 4);
    slow.hcr_write(0x14, uint32_t(queue) | 1 << 8, 4);
    EXPECT_EQ(slow.counters().cmdq_ignored, 4u);
    EXPECT_EQ(slow.hcr_read(0x10, 4), queue >> 32);
    for (unsigned turns = 0; slow.has_work(); turns++) {
        ASSERT_LT(turns, 100u);
        slow.run();
    }
    for (unsigned i = 0; i < 32; i++)
        EXPECT_EQ(owner(i), 0u) << i;
}

// The high word counts with the low one: a queue that is on stays where it is.
TEST_F(Rsnic, TheHighWordAloneMovesNothing)
{
    turn_on();
    write(0x10, 0x12345678);
    fill(0, 0x031, 0, 0x1f, 0);
    ring_all(1);
    EXPECT_EQ(owner(0), 0u);
    EXPECT_FALSE(device.failed());
}

TEST_F(Rsnic, RegistersThatAreRead)
{
    const std::vector<uint64_t> offsets{0x0, 0x4, 0x1fc, 0x200, 0x204, 0x208, 0x1000, 0x1004, 0x1010};
    std::vector<uint32_t> before;
    for (uint64_t offset : offsets)
        before.push_back(read(offset));
    for (uint64_t offset = 0; offset < 0x2000; offset += 4)
        if (offset != 0x10 && offset != 0x14 && offset != 0x18)
            write(offset, 0xffffffff);
    for (size_t i = 0; i < offsets.size(); i++)
        EXPECT_EQ(read(offsets[i]), before[i]) << std::hex << offsets[i];
    EXPECT_EQ(ignored(), 0u);
}

TEST_F(Rsnic, ClearInt)
{
    write(0x100c, 0);
    write(0x100c, 0xfffffffe);
    EXPECT_EQ(host.lowered, 0u);
    write(0x100c, 1);
    EXPECT_EQ(host.lowered, 1u);
    device.fail("a test");
    write(0x100c, 1);
    EXPECT_EQ(host.lowered, 2u);
}

// ---- health

// Each syndrome of the document can be injected; the health buffer has it, the counter and the time.
TEST_F(Rsnic, EachSyndrome)
{
    for (uint32_t syndrome : {0x01u, 0x07u, 0x08u, 0x09u, 0x0au, 0x0bu, 0x0cu, 0x0du, 0x0eu, 0x0fu, 0x10u}) {
        driver.reset();
        EXPECT_EQ(read(0x200) | read(0x204) | read(0x208), 0u);
        host.clock_ns = 0x500000000 + syndrome;
        device.fail("a test", hghca_health(syndrome));
        const uint32_t counter = uint32_t(host.clock_ns / 10'000'000) & 0xffffff;
        host.clock_ns += 1'000'000'000;
        EXPECT_EQ(read(0x1010), syndrome << 24 | counter);
        EXPECT_EQ(read(0x200), syndrome << 24 | counter);
        EXPECT_EQ(read(0x204), 5u);
        EXPECT_EQ(read(0x208), syndrome);
    }
}

// Memory that goes away under a context, an MTT that is not mapped, a full EQ, an EQ's buffer, an EQ's context.
class RsnicHealth : public Rsnic {
protected:
    RsnicHealth() { driver.start(HGHCA_CAP_QP_COUNTERS); }
    void take_away(uint64_t dma, uint64_t bytes)
    {
        host.holes.push_back({dma, bytes});
        device.dma_changed();
    }
    uint32_t syndrome() { return read(0x1010) >> 24; }
};

TEST_F(RsnicHealth, AContextThatCannotBeRead)
{
    TestDriver::Cq cq = driver.create_cq(4);
    device.cqs->trim(0);
    take_away(driver.cqc_dma + cq.cqn * 128, 128);
    driver.command(HGHCA_CMD_QUERY_CQ, 0, cq.cqn, 0, out);
    EXPECT_EQ(syndrome(), 0x0au);
}

TEST_F(RsnicHealth, AnMttThatIsNotMapped)
{
    const TestDriver::Mr mr = driver.create_mr(0, 4096);
    ASSERT_EQ(driver.unmap_icm(HGHCA_ICM_TPT, driver.layout.mtt, uint32_t(driver.layout.mtt_bytes / 4096)), 0);
    std::array<uint8_t, 4> bytes{};
    EXPECT_FALSE(device.memory->read(Key(mr.key), TestDriver::kPd, 0, bytes.data(), bytes.size()));
    device.run();
    EXPECT_EQ(syndrome(), 0x0bu);
}

TEST_F(RsnicHealth, AnAsynchronousEventThatIsLost)
{
    TestDriver::Eq small = driver.create_eq(1, 3);
    TestDriver::must(driver.map_eq(small.eqn, ~0ull), "MAP_EQ");
    for (unsigned i = 0; i < 5 && !device.failed(); i++)
        device.set_link(i % 2);
    EXPECT_EQ(syndrome(), 0x0cu);
}

TEST_F(RsnicHealth, AnEqesMemory)
{
    take_away(driver.async.buffer.dma, 4096);
    device.set_link(false);
    EXPECT_EQ(syndrome(), 0x0du);
}

TEST_F(RsnicHealth, AnEqsContext)
{
    device.eqs->trim(0);
    take_away(driver.eqc_dma + driver.async.eqn * 64, 64);
    device.set_link(false);
    EXPECT_EQ(syndrome(), 0x0eu);
}

// ---- what the document has not

TEST_F(Rsnic, WhatItLacks)
{
    const uint32_t offered = driver.offered();
    for (uint32_t cap : {HGHCA_CAP_SRQ, HGHCA_CAP_UC, HGHCA_CAP_MEM_MGT, HGHCA_CAP_XRC, HGHCA_CAP_MULTICAST,
                         HGHCA_CAP_PLACEMENT, HGHCA_CAP_ODP, HGHCA_CAP_DEVICE_MEMORY, HGHCA_CAP_RSS,
                         HGHCA_CAP_SYNC_COMMANDS, HGHCA_CAP_STATUS_RECORD}) {
        EXPECT_FALSE(offered & cap) << std::hex << cap;
        EXPECT_EQ(driver.init_hca(cap), 0x03) << std::hex << cap;
    }
    driver.start(offered);
    TestDriver::Cq cq = driver.create_cq(4);
    for (uint8_t service : {HGHCA_QP_ST_UC, HGHCA_QP_ST_XRC}) {
        const TestDriver::Qp qp = driver.new_qp(4, 4);
        EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, service, cq, cq)), 0x03);
    }
}

// QPNs 1 to 255.
TEST_F(Rsnic, TheLastQp)
{
    driver.start(driver.offered());
    const TestDriver::Cq cq = driver.create_cq(4);
    TestDriver::Qp qp = driver.new_qp(4, 4);
    qp.qpn = 255;
    EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq)), 0);
    qp.qpn = 256;
    EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq)), 0x0a);
}

// UD is the service of QP 1 alone.
TEST_F(Rsnic, UdIsForQp1)
{
    driver.start(driver.offered());
    const TestDriver::Cq cq = driver.create_cq(4);
    const TestDriver::Qp qp = driver.create_qp(HGHCA_QP_ST_UD, cq, cq, 4, 4);
    EXPECT_EQ(driver.modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, hghca_qpc{}), 0x03);
    ASSERT_EQ(driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, qp.qpn, HGHCA_SPECIAL_QP_GSI).status, 0);
    EXPECT_EQ(driver.modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, hghca_qpc{}), 0);
}

// A WQE with an atomic operation is refused at its own end; a request for one, by a NAK of an invalid request.
class RsnicPeers : public ::testing::Test {
protected:
    // With the capabilities of each.
    RsnicPeers() : a(1, Profile::Full), b(2, Profile::Rsnic) {}

    struct Machine {
        Machine(unsigned number, Profile profile)
        {
            Node::profile = profile;
            const uint32_t caps = profile == Profile::Rsnic ? HGHCA_CAP_ALL & ~kLacks : kFullCaps;
            node = std::make_unique<Node>(number, 0, caps);
            Node::profile = Profile::Full;
        }
        static constexpr uint32_t kLacks = HGHCA_CAP_SRQ | HGHCA_CAP_UC | HGHCA_CAP_MEM_MGT | HGHCA_CAP_XRC |
                                           HGHCA_CAP_MULTICAST | HGHCA_CAP_PLACEMENT | HGHCA_CAP_ODP |
                                           HGHCA_CAP_DEVICE_MEMORY | HGHCA_CAP_RSS | HGHCA_CAP_SYNC_COMMANDS |
                                           HGHCA_CAP_STATUS_RECORD;
        std::unique_ptr<Node> node;
    };
    // Frames of one to the other until nothing moves.
    void settle()
    {
        for (unsigned rounds = 0; rounds < 1000; rounds++)
            for (auto [from, to] : {std::pair(a.node.get(), b.node.get()), std::pair(b.node.get(), a.node.get())}) {
                for (auto &frame : std::exchange(from->host.frames, {})) {
                    const iovec part{frame.data(), frame.size()};
                    to->device.receive({&part, 1});
                }
                while (from->device.has_work())
                    from->device.run();
            }
    }
    static Wqe add_to(Endpoint &from, Endpoint &to)
    {
        return Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(to.va(64), to.buffer.key).atomic(1, 0).data(from.sge(0, 8));
    }

    Machine a, b;
};

TEST_F(RsnicPeers, Atomics)
{
    for (const bool to_rsnic : {true, false}) {
        SCOPED_TRACE(to_rsnic);
        Pair p(*a.node, *b.node, Endpoint::Options{});
        Endpoint &from = to_rsnic ? p.a : p.b, &to = to_rsnic ? p.b : p.a;
        from.post(add_to(from, to));
        settle();
        const auto done = from.poll_all();
        ASSERT_EQ(done.size(), 1u);
        // REMOTE_INVAL_REQ_ERR, LOCAL_QP_OP_ERR
        EXPECT_EQ(int(done[0].syndrome), to_rsnic ? 0x12 : 0x02);
    }
}

// Word 40h of INIT_HCA: a page-aligned address, bits 11:8 zero, log2 of at most 2^16 packets.
TEST_F(Rsnic, ThePlaceOfTheRetransmissionBuffer)
{
    const auto try_it = [this](uint64_t packet_base) {
        driver.reset();
        hghca_init_hca init = driver.init_mailbox(0);
        init.packet_base = be64(packet_base);
        return driver.post(0x007, init);
    };
    const uint64_t at = host.alloc(16 * 4096, 4096);
    EXPECT_EQ(try_it(0), 0);
    EXPECT_EQ(try_it(at | 4), 0);
    EXPECT_EQ(try_it(at | 16), 0);
    EXPECT_EQ(try_it(at | 17), 0x03);
    EXPECT_EQ(try_it(at | 0x100 | 4), 0x03);
    EXPECT_EQ(try_it(at | 0x800 | 4), 0x03);
}

// 500 QPs stay on chip, and every context of another kind. 255 QPs never fill it, so a smaller one shows what it does.
TEST_F(Rsnic, TheCacheIsOfQps)
{
    EXPECT_EQ(kRsnicCachedQps, 500u);
    Config config = rsnic_config(host);
    config.cache_entries = 2;
    Device small(host, config);
    TestDriver other(host, small);
    other.start(HGHCA_CAP_QP_COUNTERS);
    std::vector<TestDriver::Cq> cqs;
    for (unsigned i = 0; i < 6; i++) {
        cqs.push_back(other.create_cq(4));
        (void)other.create_qp(HGHCA_QP_ST_RC, cqs.back(), cqs.back(), 4, 4);
    }
    const auto misses = [&](uint32_t op, uint32_t first) {
        const uint64_t before = small.counters().context_misses;
        for (uint32_t number = first; number < first + 6; number++)
            EXPECT_EQ(other.command(op, 0, number, 0, other.out_mailbox()).status, 0);
        return small.counters().context_misses - before;
    };
    EXPECT_EQ(misses(HGHCA_CMD_QUERY_CQ, cqs[0].cqn), 0u);
    EXPECT_GE(misses(HGHCA_CMD_QUERY_QP, other.first_qpn), 4u);
}

// Without a number in the configuration there are 500. The document's 255 QPs never fill them, so the table of QPs is
// made larger than INIT_HCA allows.
TEST_F(Rsnic, TheCacheHas500Qps)
{
    driver.start(HGHCA_CAP_QP_COUNTERS);
    constexpr uint64_t kTable = 16 << 20;
    driver.map_icm(HGHCA_ICM_CONTEXT, kTable, 1024 * 2048);
    device.qps->configure(kTable, 10);
    const TestDriver::Cq cq = driver.create_cq(4);
    TestDriver::Qp qp = driver.new_qp(4, 4);
    const auto create = [&](uint32_t qpn) {
        qp.qpn = qpn;
        EXPECT_EQ(driver.modify(HGHCA_CMD_RST2INIT_QPEE, qpn, driver.init_qpc(qp, HGHCA_QP_ST_RC, cq, cq)), 0) << qpn;
    };
    // Twice in turn.
    const auto misses = [&](uint32_t qps) {
        const uint64_t before = device.counters().context_misses;
        for (uint32_t i = 0; i < 2 * qps; i++)
            EXPECT_EQ(driver.state(1 + i % qps), unsigned(HGHCA_QP_STATE_INIT)) << i;
        return device.counters().context_misses - before;
    };
    for (uint32_t qpn = 1; qpn <= 500; qpn++)
        create(qpn);
    EXPECT_EQ(misses(500), 0u);
    EXPECT_EQ(device.counters().context_evictions, 0u);
    create(501);
    EXPECT_GE(misses(501), 501u);
}

// R16: the HCR's go stays, and nothing is executed.
TEST(RsnicStart, ADeviceThatIsInitializing)
{
    FakeHost host;
    Config config = rsnic_config(host);
    config.init_delay_ns = 1000;
    Device device(host, config);
    const uint64_t hcr = 0x80018;
    EXPECT_EQ(device.hcr_read(0x1fc, 4), 0x83000000u);
    device.hcr_write(hcr, 1 << 23 | 0x031, 4);
    EXPECT_TRUE(device.hcr_read(hcr, 4) >> 23 & 1);
    device.hcr_write(0x18, 1, 4);
    EXPECT_EQ(device.counters().cmdq_ignored, 1u);
    host.clock_ns += 999;
    EXPECT_EQ(device.hcr_read(0x1fc, 4) >> 31, 1u);
    host.clock_ns += 1;
    EXPECT_EQ(device.hcr_read(0x1fc, 4), 0x03000000u);
    EXPECT_FALSE(device.hcr_read(hcr, 4) >> 23 & 1);
}

// The counter runs at 100 Hz, has 24 bits, and stands still when the device has failed.
TEST_F(Rsnic, HealthCounter)
{
    host.clock_ns = 10'000'000ull * 0x1000005;
    EXPECT_EQ(read(0x1010), 5u);
    host.clock_ns += 9'999'999;
    EXPECT_EQ(read(0x1010), 5u);
    host.clock_ns += 1;
    EXPECT_EQ(read(0x1010), 6u);
    device.fail("a test");
    host.clock_ns += 1'000'000'000;
    EXPECT_EQ(read(0x1010), 0x08000006u);
    EXPECT_EQ(device.hcr_read(0x80018, 4), 0xffffffffu);
    driver.reset();
    EXPECT_EQ(read(0x1010), 6u + 100);
}

// It stands still as long as work waits for a turn that does not come, and a turn makes it right again.
TEST_F(Rsnic, HealthCounterWithoutProgress)
{
    constexpr uint64_t kSecond = 1'000'000'000;
    Config config = rsnic_config(host);
    config.slice_work = 1;
    Device slow(host, config);
    const auto counter = [&] { return slow.hcr_read(0x1010, 4); };
    host.clock_ns = 5 * kSecond;
    EXPECT_EQ(counter(), 500u);
    slow.hcr_write(0x10, uint32_t(queue >> 32), 4);
    slow.hcr_write(0x14, uint32_t(queue), 4);
    for (unsigned i = 0; i < 32; i++)
        fill(i, 0x031, 0, 0x1f, 0);
    slow.hcr_write(0x18, 0xffffffff, 4);
    host.clock_ns += kSecond;
    EXPECT_EQ(counter(), 500u);
    slow.hcr_write(0x18, 0x80000000, 4);   // a doorbell is no turn
    host.clock_ns += kSecond;
    EXPECT_EQ(counter(), 500u);
    ASSERT_TRUE(slow.run());
    EXPECT_EQ(counter(), 700u);
    host.clock_ns += kSecond;
    EXPECT_EQ(counter(), 700u);
    while (slow.run())
        ;
    EXPECT_EQ(counter(), 800u);
    host.clock_ns += kSecond;
    EXPECT_EQ(counter(), 900u);
    // A reset ends the wait too.
    slow.hcr_write(0x10, uint32_t(queue >> 32), 4);
    slow.hcr_write(0x14, uint32_t(queue), 4);
    for (unsigned i = 0; i < 32; i++)
        fill(i, 0x031, 0, 0x1f, 0);
    slow.hcr_write(0x18, 0xffffffff, 4);
    slow.hcr_write(0xf0010, 1, 4);
    host.clock_ns += kSecond;
    EXPECT_EQ(counter(), 1000u);
}

TEST_F(Rsnic, AQueueThatIsNotThere)
{
    queue = 1ull << 60;
    write(0x10, uint32_t(queue >> 32));
    write(0x14, uint32_t(queue));
    write(0x18, 1);
    EXPECT_TRUE(device.failed());
    EXPECT_EQ(read(0x1010) >> 24, 0x0au);
}

// The words of section 5, at 8 times the member's number; those that are not here are 0.
TEST_F(Rsnic, Capabilities)
{
    const std::map<unsigned, uint64_t> wanted{
        {0x000, 0x0000000100000000},   // fw_ver
        {0x010, 1},                    // num_ports
        {0x018, 1},                    // vl_cap
        {0x020, 5},                    // ib_mtu_cap
        {0x030, 0x021122334455},       // def_mac
        {0x038, 9216},                 // eth_mtu_cap
        {0x040, 128},                  // gid_table_len
        {0x048, 1},                    // pkey_table_len
        {0x078, 2048},                 // num_uars
        {0x080, 4096},                 // uar_page_size
        {0x098, 32},                   // max_sq_sg
        {0x0a0, 32},                   // max_rq_sg
        {0x0a8, 255},                  // num_qps
        {0x0b0, 16384},                // max_wqes
        {0x0b8, 1008},                 // max_sq_desc_sz
        {0x0c0, 1008},                 // max_rq_desc_sz
        {0x0c8, 16},                   // max_qp_init_rdma
        {0x0d0, 16},                   // max_qp_dest_rdma
        {0x0d8, 8},                    // max_tc_eth
        {0x108, 131072},               // num_cqs
        {0x110, 4194304},              // max_cqes
        {0x118, 1},                    // reserved_cqs
        {0x128, 64},                   // num_eqs
        {0x130, 1},                    // reserved_eqs
        {0x138, 64},                   // num_comp_vectors
        {0x140, 524288},               // num_mpts
        {0x150, 1 << 27},              // num_mtts
        {0x160, 1},                    // reserved_mtts
        {0x168, 1},                    // reserved_mrws
        {0x1b0, 1 << 20},              // num_pds
        {0x1b8, 1},                    // reserved_pds
        {0x1d0, 8},                    // mtt_entry_sz
        {0x1d8, 0x80000000},           // max_msg_sz
        {0x1e0, 0x7ffff000},           // page_size_cap
        {0x210, 2},                    // port_width_cap
        {0x230, 1},                    // reserved_qps
        {0x250, 2},                    // port_type
        {0x258, 2},                    // supported_type
        {0x280, 256},                  // max_counters
        {0x288, 5},                    // port_ib_mtu
        {0x298, 32},                   // eqe_size
        {0x2a0, 32},                   // cqe_size
        {0x2c0, 1000},                 // hca_core_clock
        {0x2c8, 0x021122334455},       // phys_port_id
        {0x318, 0x200},                // health_buffer_addr, the last
    };
    ASSERT_EQ(driver.command(0xe11, 0, 0, 0, out).status, 0);
    for (unsigned offset = 0; offset < 4096; offset += 8) {
        const auto found = wanted.find(offset);
        EXPECT_EQ(be64(*host.as<uint64_t>(out + offset)), found == wanted.end() ? 0 : found->second) << std::hex << offset;
    }
}

TEST_F(Rsnic, OtherDevicesHaveNoCapsStructure)
{
    Device full(host, test_config(host));
    TestDriver other(host, full);
    EXPECT_EQ(other.command(0xe11, 0, 0, 0, other.out_mailbox()).status, 0x02);
}

}  // namespace
}  // namespace hghca::test::rsnic_test
