// SPDX-License-Identifier: GPL-2.0-or-later
// BAR0 and BAR2 of each profile: every offset and width (interface document, 3, 5).
#include "profiles.h"

namespace hghca::test::registers_test {
namespace {

class Registers : public ::testing::TestWithParam<Profile> {
protected:
    Registers() : device(host, config()), driver(host, device), caps(driver.offered()) {}
    Config config()
    {
        Config c = test_config(host);
        c.profile = GetParam();
        return c;
    }

    FakeHost host;
    Device device;
    TestDriver driver;
    const uint32_t caps;
};

INSTANTIATE_TEST_SUITE_P(Profiles, Registers, profiles(), name_of_profile);

constexpr uint64_t kBar0Size = HGHCA_BAR_HCR_SIZE;

bool in_hcr(uint64_t offset) { return offset >= 0x80000 && offset < 0x8001c; }

struct HcrRegister {
    unsigned offset;
    uint32_t writable;  // read back as written
};

// Section 3.1. Of 18h status is read-only, go is never left set, 21:20 are nothing.
constexpr HcrRegister kHcr[] = {
    {0x00, 0xffffffff}, {0x04, 0xffffffff}, {0x08, 0xffffffff}, {0x0c, 0xffffffff},
    {0x10, 0xffffffff}, {0x14, 0xffff0000}, {0x18, 0x004fffff},
};

TEST_P(Registers, HcrReadsBackWhatIsWritten)
{
    for (const HcrRegister &r : kHcr) {
        for (uint32_t pattern : {0xff7fffffu, 0xa53aa55au, 0x00000000u, 0x12345678u}) {
            device.hcr_write(0x80000 + r.offset, pattern & ~HGHCA_HCR_GO, 4);
            EXPECT_EQ(device.hcr_read(0x80000 + r.offset, 4), pattern & r.writable & ~HGHCA_HCR_GO)
                << std::hex << r.offset;
        }
    }
}

// Section 3.1: software that leaves out words 00h to 08h of a command uses those of the one before.
TEST_P(Registers, ACommandLeavesItsInParamAndModifier)
{
    constexpr uint32_t kWords[] = {0x01234567, 0x89abcdef, 0x1f};
    for (unsigned i = 0; i < 3; i++)
        device.hcr_write(0x80000 + 4 * i, kWords[i], 4);
    for (const uint32_t op : {0x31u, 0x0du, 0x31u}) {   // NOP, and an SW2HW_MPT that is refused
        device.hcr_write(0x80018, 1u << 23 | op, 4);
        for (unsigned i = 0; i < 3; i++)
            EXPECT_EQ(device.hcr_read(0x80000 + 4 * i, 4), kWords[i]) << op;
    }
    driver.reset();
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQ(device.hcr_read(0x80000 + 4 * i, 4), 0u);
}

TEST_P(Registers, EachHcrRegisterIsItsOwn)
{
    for (const HcrRegister &r : kHcr)
        device.hcr_write(0x80000 + r.offset, 0x01010000u * (r.offset / 4 + 1), 4);
    for (const HcrRegister &r : kHcr)
        EXPECT_EQ(device.hcr_read(0x80000 + r.offset, 4), 0x01010000u * (r.offset / 4 + 1) & r.writable);
}

TEST_P(Registers, OtherWidthsAndMisalignedHaveNoEffectAndReadZero)
{
    for (const HcrRegister &r : kHcr)
        device.hcr_write(0x80000 + r.offset, 0x12345678 & ~HGHCA_HCR_GO, 4);
    for (uint64_t offset = 0x7fff8; offset < 0x80024; offset++) {
        for (unsigned size : {1u, 2u, 4u, 8u}) {
            if (size == 4 && offset % 4 == 0)
                continue;
            device.hcr_write(offset, ~0ull & ~uint64_t(HGHCA_HCR_GO), size);
            EXPECT_EQ(device.hcr_read(offset, size), 0u) << std::hex << offset << " " << size;
        }
    }
    for (const HcrRegister &r : kHcr)
        EXPECT_EQ(device.hcr_read(0x80000 + r.offset, 4), 0x12345678u & r.writable & ~HGHCA_HCR_GO);
}

TEST_P(Registers, AllOtherOffsetsReadZeroAndIgnoreWrites)
{
    driver.start(caps);
    // RSNIC has its initialization segment there (rsnic_test.cc).
    for (uint64_t offset = GetParam() == Profile::Rsnic ? 0x2000 : 0; offset < kBar0Size; offset += 4) {
        if (in_hcr(offset) || offset == HGHCA_RESET)
            continue;
        device.hcr_write(offset, 0xffffffff, 4);
        ASSERT_EQ(device.hcr_read(offset, 4), 0u) << std::hex << offset;
    }
    // Far outside too.
    for (uint64_t offset : {kBar0Size, uint64_t(0x100000000), ~uint64_t(3)}) {
        device.hcr_write(offset, 1, 4);
        EXPECT_EQ(device.hcr_read(offset, 4), 0u);
    }
    EXPECT_TRUE(device.initialized);
}

TEST_P(Registers, ResetTakesOneAndOnly32Bits)
{
    driver.start(caps);
    for (uint32_t value : {0u, 2u, 0x80000000u, 0x10001u})
        device.hcr_write(HGHCA_RESET, value, 4);
    for (unsigned size : {1u, 2u, 8u})
        device.hcr_write(HGHCA_RESET, 1, size);
    for (uint64_t offset : {HGHCA_RESET - 4, HGHCA_RESET + 4, HGHCA_RESET + 1})
        device.hcr_write(offset, 1, 4);
    EXPECT_TRUE(device.initialized);
    EXPECT_EQ(device.hcr_read(HGHCA_RESET, 4), 0u);
    device.hcr_write(HGHCA_RESET, 1, 4);
    EXPECT_FALSE(device.initialized);
    EXPECT_EQ(device.hcr_read(HGHCA_RESET, 4), 0u);
}

TEST_P(Registers, ResetClearsTheHcrAndTheCounters)
{
    driver.start(caps);
    driver.command(0xfff, 1, 2, 3, 4);
    device.counters_.tx_packets = 5;
    driver.reset();
    for (unsigned reg = 0; reg < HGHCA_HCR_SIZE; reg += 4)
        EXPECT_EQ(driver.hcr(reg), 0u) << reg;
    EXPECT_EQ(device.counters().tx_packets, 0u);
    EXPECT_EQ(device.caps, 0u);
}

TEST_P(Registers, StatusIsReadOnly)
{
    driver.reset();
    EXPECT_EQ(driver.command(0xfff).status, HGHCA_CMD_STAT_BAD_OP);
    driver.hcr(HGHCA_HCR_STATUS, 0x7f000000 | HGHCA_CMD_NOP);
    EXPECT_EQ(driver.hcr(HGHCA_HCR_STATUS), uint32_t(HGHCA_CMD_STAT_BAD_OP) << 24 | HGHCA_CMD_NOP);
}

// ---- doorbells, told apart by the counters they move

class Doorbells : public Registers {
protected:
    // Counts any doorbell that was heard: for objects that do not exist, or in a wrong page.
    uint64_t heard() const { return device.counters().db_bad_object + device.counters().db_bad_page; }
    static constexpr uint64_t kNoQp = uint64_t(9 << 8) << 32;
};

// Those by which EQs are armed, which the base does not have.
class EqDoorbells : public Doorbells {};

INSTANTIATE_TEST_SUITE_P(Profiles, Doorbells, profiles(), name_of_profile);
INSTANTIATE_TEST_SUITE_P(Profiles, EqDoorbells, ::testing::Values(Profile::Full, Profile::Rsnic), name_of_profile);

// The document has that of the SQ alone.
TEST_P(Doorbells, OnlyTheThreeOffsetsAndWidths)
{
    const bool base = GetParam() == Profile::Base;
    driver.start(caps);
    for (uint64_t page : {0ull, 1ull, 2047ull}) {
        for (unsigned offset = 0; offset < 4096; offset++) {
            for (unsigned size : {1u, 2u, 4u, 8u}) {
                bool is_doorbell = offset == 0x00 || (!base && (offset == 0x10 || offset == 0x20));
                bool is_high = offset == 0x04 || (!base && (offset == 0x14 || offset == 0x24));
                uint64_t before = heard();
                device.uar_write(page * 4096 + offset, kNoQp, size);
                bool rings = (is_doorbell && size == 8) || (is_high && size == 4);
                ASSERT_EQ(heard() - before, rings ? 1u : 0u) << std::hex << page << " " << offset << " " << size;
            }
        }
    }
    uint64_t before = heard();
    device.uar_write(HGHCA_BAR_UAR_SIZE, kNoQp, 8);
    device.uar_write(~0ull - 7, kNoQp, 8);
    EXPECT_EQ(heard(), before);
}

TEST_P(EqDoorbells, TwoHalvesAreOneDoorbell)
{
    driver.start(caps);
    auto eq = driver.create_eq(4, 1);
    device.eqs->post_completion(eq.eqn, Cqn(1));
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(eq, eqe));
    host.vectors.clear();
    // Consumer index 1 in the low half: had it been lost, the vector were raised at once.
    device.uar_write(HGHCA_UAR_EQ_ARM, eq.consumer, 4);
    EXPECT_TRUE(host.vectors.empty());
    device.uar_write(HGHCA_UAR_EQ_ARM + 4, HGHCA_EQ_ARM_ARM << 24 | eq.eqn, 4);
    EXPECT_TRUE(host.vectors.empty());
    device.eqs->post_completion(eq.eqn, Cqn(2));
    EXPECT_EQ(host.take_vectors(1), 1u);
}

TEST_P(EqDoorbells, HalvesOfOtherPagesAndDoorbellsDoNotMix)
{
    driver.start(caps);
    auto eq = driver.create_eq(4, 1);
    device.eqs->post_completion(eq.eqn, Cqn(1));
    hghca_eqe eqe;
    ASSERT_TRUE(driver.poll(eq, eqe));
    host.vectors.clear();
    device.uar_write(HGHCA_UAR_EQ_ARM, eq.consumer, 4);
    device.uar_write(HGHCA_UAR_CQ_ARM, 0, 4);
    device.uar_write(4096 + HGHCA_UAR_EQ_ARM, 0, 4);
    device.uar_write(HGHCA_UAR_EQ_ARM + 4, HGHCA_EQ_ARM_ARM << 24 | eq.eqn, 4);
    EXPECT_TRUE(host.vectors.empty());
}

// The low half alone sends nothing, nor does a high half with the low one of another page.
TEST_P(Doorbells, TwoHalvesAreOneDoorbellOfAnSq)
{
    NetworkOf net(GetParam());
    Pair p(net.a, net.b, options_of(GetParam()));
    p.a.fill(0, 64, 1);
    const Wqe wqe = write_to(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key);
    p.a.write(wqe);
    const uint64_t bell = (uint64_t(p.a.qp.qpn) << 8 | wqe.bytes.size() / 16) << 32 | 1u << 24 | wqe.opcode;
    const uint64_t page = p.a.qp.usr_page * 4096ull;
    net.a.device.uar_write(page, uint32_t(bell), 4);
    net.pump();
    net.a.device.uar_write(page + 4096 + 4, bell >> 32, 4);
    net.pump();
    EXPECT_EQ(net.a.counters().tx_packets, 0u);
    EXPECT_EQ(net.a.counters().db_bad_page, 1u);
    net.a.device.uar_write(page + 4, bell >> 32, 4);
    net.pump();
    EXPECT_EQ(p.a.poll_all().size(), 1u);
    EXPECT_TRUE(p.b.holds(0, 64, 1));
}

TEST_P(Doorbells, BeforeInitialisationNothingHappens)
{
    driver.reset();
    for (unsigned offset : {0x00u, 0x10u, 0x20u})
        device.uar_write(offset, ~0ull, 8);
    EXPECT_TRUE(host.vectors.empty());
    EXPECT_TRUE(host.frames.empty());
}

}  // namespace
}  // namespace hghca::test::registers_test
