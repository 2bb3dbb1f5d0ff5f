// SPDX-License-Identifier: GPL-2.0-or-later
// The RDMA loopback controller: chapter 5 of its document, with literal offsets and formats.
#include <cstring>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "loopback/controller.h"

namespace {

using loopback::Config;
using loopback::Controller;
using loopback::Header;

// Memory from address 0 on; what is beyond is not there.
class Machine : public loopback::Host {
public:
    explicit Machine(size_t bytes = 32 << 20) : memory(bytes) {}
    bool read(uint64_t address, std::span<uint8_t> bytes) override
    {
        if (address >= memory.size() || bytes.size() > memory.size() - address)
            return false;
        std::memcpy(bytes.data(), &memory[address], bytes.size());
        return true;
    }
    bool write(uint64_t address, std::span<const uint8_t> bytes) override
    {
        if (address >= memory.size() || bytes.size() > memory.size() - address)
            return false;
        std::memcpy(&memory[address], bytes.data(), bytes.size());
        return true;
    }
    void set_interrupt(bool asserted) override { interrupt = asserted; }
    void trace(const Header &header) override { headers.push_back(header); }

    void put32(uint64_t address, uint32_t value)
    {
        for (unsigned i = 0; i < 4; i++)
            memory[address + i] = uint8_t(value >> 8 * i);
    }
    uint32_t get32(uint64_t address) const
    {
        uint32_t value = 0;
        for (unsigned i = 4; i-- > 0;)
            value = value << 8 | memory[address + i];
        return value;
    }

    std::vector<uint8_t> memory;
    std::vector<Header> headers;
    bool interrupt = false;
};

constexpr uint32_t kSq = 0x10000, kCq = 0x20000, kSource = 0x100000, kDestination = 0x1000000;
constexpr uint32_t kEntries = 8;

class Loopback : public ::testing::Test {
protected:
    explicit Loopback(Config config = {}) : controller(machine, config)
    {
        std::iota(machine.memory.begin() + kSource, machine.memory.begin() + kSource + (9 << 20), uint8_t(1));
        // A pattern that no 256 bytes repeat.
        for (uint32_t i = 0; i < 9u << 20; i += 256)
            machine.put32(kSource + i, i * 2654435761u);
    }
    // 5.7.9, and then enable.
    void start(uint32_t extensions = 0, uint32_t sq_size = kEntries, uint32_t cq_size = kEntries)
    {
        controller.write(0x10, extensions << 16);
        controller.write(0x20, sq);
        controller.write(0x24, 0);
        controller.write(0x28, sq_size);
        controller.write(0x30, 0);
        controller.write(0x40, cq);
        controller.write(0x44, 0);
        controller.write(0x48, cq_size);
        controller.write(0x4c, 0);
        controller.write(0x00, 1);
    }
    // 5.7.1: a descriptor, and the doorbell.
    void post(uint32_t id, uint8_t opcode, uint64_t source, uint64_t destination, uint32_t length)
    {
        const uint32_t tail = controller.read(0x30), at = sq + tail * 64;
        machine.put32(at + 0x00, id);
        machine.put32(at + 0x04, opcode);
        machine.put32(at + 0x08, uint32_t(source));
        machine.put32(at + 0x0c, uint32_t(source >> 32));
        machine.put32(at + 0x10, uint32_t(destination));
        machine.put32(at + 0x14, uint32_t(destination >> 32));
        machine.put32(at + 0x18, length);
        controller.write(0x30, tail + 1 == controller.read(0x28) ? 0 : tail + 1);
    }
    void run()
    {
        for (unsigned turns = 0; controller.run(64); turns++)
            ASSERT_LT(turns, 1000u);
    }
    // 5.7.2 to 5.7.4: the words of the next completion.
    std::vector<uint32_t> completion()
    {
        const uint32_t head = controller.read(0x4c);
        if (head == controller.read(0x50))
            return {};
        std::vector<uint32_t> words;
        for (unsigned i = 0; i < 8; i++)
            words.push_back(machine.get32(cq + head * 32 + 4 * i));
        controller.write(0x4c, head + 1 == controller.read(0x48) ? 0 : head + 1);
        return words;
    }
    bool copied(uint32_t source, uint32_t destination, uint32_t length) const
    {
        return !std::memcmp(&machine.memory[source], &machine.memory[destination], length);
    }
    // Beats as table 5.3.3 has them, most significant byte first.
    static std::vector<uint32_t> beats(const Header &header)
    {
        std::vector<uint32_t> words;
        for (unsigned i = 0; i < 28; i += 4)
            words.push_back(uint32_t(header[i + 3]) << 24 | header[i + 2] << 16 | header[i + 1] << 8 | header[i]);
        return words;
    }

    Machine machine;
    Controller controller;
    uint32_t sq = kSq, cq = kCq;
};

TEST_F(Loopback, RegistersAfterReset)
{
    for (int i = 0; i < 2; i++) {
        for (uint32_t offset = 0; offset < 0x100; offset++)
            EXPECT_EQ(controller.read(offset), 0u) << offset;
        for (uint32_t offset = 4; offset < 0x100; offset++)
            controller.write(offset, 0xffffffff);
        controller.reset();
    }
}

TEST_F(Loopback, AccessOfEachRegister)
{
    const std::map<uint32_t, uint32_t> stored{
        {0x00, 0xfffffffe}, {0x10, 0xffffffff}, {0x1c, 0xffffffff}, {0x20, 0xffffffff}, {0x24, 0xffffffff},
        {0x28, 0xffff},     {0x30, 0xffff},     {0x40, 0xffffffff}, {0x44, 0xffffffff}, {0x48, 0xffff},
        {0x4c, 0xffff},
    };
    for (uint32_t offset = 0; offset < 0x80; offset += 4) {
        controller.reset();
        controller.write(offset, offset ? 0xffffffff : 0xfffffffe);
        const auto found = stored.find(offset);
        EXPECT_EQ(controller.read(offset), found == stored.end() ? 0 : found->second) << offset;
        for (uint32_t other = 0; other < 0x80; other += 4)
            if (other != offset) {
                EXPECT_EQ(controller.read(other), 0u) << offset << " " << other;
            }
        for (uint32_t byte = 1; byte < 4; byte++)
            EXPECT_EQ(controller.read(offset + byte), 0u);
    }
}

// 5.1.2: work is done only while CONTROL.enable is set and head and tail differ.
TEST_F(Loopback, EnableAndWork)
{
    start();
    controller.write(0x00, 0);
    post(1, 0x01, kSource, kDestination, 100);
    run();
    EXPECT_EQ(controller.read(0x2c), 0u);
    EXPECT_TRUE(machine.headers.empty());
    controller.write(0x00, 1);
    run();
    EXPECT_EQ(controller.read(0x2c), 1u);
    EXPECT_TRUE(copied(kSource, kDestination, 100));
    // The doorbell register moves nothing.
    controller.write(0x34, 1);
    run();
    EXPECT_EQ(controller.read(0x2c), 1u);
    EXPECT_EQ(controller.read(0x30), 1u);
    EXPECT_EQ(controller.counters().doorbells, 3u);
}

// 5.6.5: a descriptor in hand is finished when enable is cleared.
TEST_F(Loopback, DisabledUnderWay)
{
    start();
    post(1, 0x01, kSource, kDestination, 20000);
    post(2, 0x01, kSource, kDestination, 1);
    EXPECT_TRUE(controller.run(2));
    controller.write(0x00, 0);
    run();
    EXPECT_EQ(controller.read(0x2c), 1u);
    EXPECT_TRUE(copied(kSource, kDestination, 20000));
    controller.write(0x00, 1);
    run();
    EXPECT_EQ(controller.read(0x2c), 2u);
}

// 5.3.1, 5.3.3: beat by beat.
TEST_F(Loopback, HeaderOfATransfer)
{
    start();
    post(0x12345678, 0x0a, kSource, kDestination + 3, 0x123);
    run();
    ASSERT_EQ(machine.headers.size(), 1u);
    EXPECT_EQ(beats(machine.headers[0]), (std::vector<uint32_t>{0x0000010a, 0x00345678, kDestination + 3, 0x00000000,
                                                                 0x00000123, 0x0000ffff, 0xababab00}));
    const std::vector<uint8_t> bytes(machine.headers[0].begin(), machine.headers[0].begin() + 4);
    EXPECT_EQ(bytes, (std::vector<uint8_t>{0x0a, 0x01, 0x00, 0x00}));
}

// 5.2.3: of word 1 the flags, and of the length words 7 to 9, do not count; words 10 to 15 are reserved.
TEST_F(Loopback, WordsThatDoNotCount)
{
    start();
    for (uint32_t at = kSq + 0x1c; at < kSq + 0x40; at += 4)
        machine.put32(at, 0xc0000000 + at);
    post(0x11, 0x01, kSource, kDestination, 5000);
    machine.put32(kSq + 0x04, 0xffffff01);
    run();
    ASSERT_EQ(machine.headers.size(), 2u);
    EXPECT_EQ(beats(machine.headers[0]), (std::vector<uint32_t>{0x00000101, 0x00000011, kDestination, 0x00000000,
                                                                 0x00001000, 0x0000ffff, 0xababab00}));
    EXPECT_EQ(completion(), (std::vector<uint32_t>{0, 0, 5000, 0, 0x11, 5000, 0, 0}));
    EXPECT_TRUE(copied(kSource, kDestination, 5000));
    EXPECT_EQ(machine.memory[kDestination + 5000], 0);
    EXPECT_EQ(controller.read(0x70), 5000u);
    EXPECT_EQ(controller.read(0x74), 0xc0000000 + kSq + 0x1c);
    EXPECT_EQ(controller.read(0x78), 0xc0000000 + kSq + 0x20);
    EXPECT_EQ(controller.read(0x7c), 0xc0000000 + kSq + 0x24);
}

// 5.2.1: S_IDLE is 0; the tx_cmd is state 5, and the completion begins with state 7.
TEST_F(Loopback, StatesOfATransfer)
{
    start();
    post(1, 0x01, kSource, kDestination, 4097);
    EXPECT_EQ(controller.read(0x5c), 0u);
    for (uint32_t state : {5u, 5u, 7u, 0u}) {
        controller.run(1);
        EXPECT_EQ(controller.read(0x5c), state);
        EXPECT_EQ(controller.read(0x60), 0u);
        EXPECT_EQ(controller.read(0x50), state == 0);
    }
}

// 5.4.6
TEST_F(Loopback, CompletionOfATransfer)
{
    start();
    for (uint32_t i = 0; i < 3; i++)
        post(0xabcd0000 + i, 0x01, kSource, kDestination, 1000 + i);
    run();
    for (uint32_t i = 0; i < 3; i++)
        EXPECT_EQ(completion(), (std::vector<uint32_t>{i, 0, 1000 + i, i, 0xabcd0000 + i, 1000 + i, 0, 0}));
    EXPECT_TRUE(completion().empty());
    EXPECT_EQ(controller.read(0x2c), 3u);
}

// 5.3.5, 5.4.4: fragments end with the block and with the page of the source, not of the destination.
TEST_F(Loopback, Fragments)
{
    struct Case {
        uint32_t source, length;
        std::vector<uint32_t> fragments;
    };
    const Case cases[] = {
        {0, 1, {1}},
        {0, 4095, {4095}},
        {0, 4096, {4096}},
        {0, 4097, {4096, 1}},
        {1, 4096, {4095, 1}},
        {4095, 2, {1, 1}},
        {0xff0, 8192, {16, 4096, 4080}},
    };
    start();
    for (const Case &c : cases) {
        machine.headers.clear();
        post(7, 0x08, kSource + c.source, kDestination + 0x123, c.length);
        run();
        ASSERT_EQ(machine.headers.size(), c.fragments.size()) << c.length;
        uint32_t offset = 0;
        for (size_t i = 0; i < c.fragments.size(); i++) {
            EXPECT_EQ(beats(machine.headers[i])[3], offset);
            EXPECT_EQ(beats(machine.headers[i])[4], c.fragments[i]);
            offset += c.fragments[i];
        }
        EXPECT_TRUE(copied(kSource + c.source, kDestination + 0x123, c.length)) << c.length;
        EXPECT_EQ(completion()[2], c.length);
    }
}

// 5.3.3: the fragment offset has 16 bits, so a longer transfer overwrites its own beginning.
TEST_F(Loopback, TheFragmentOffsetWrapsAt65536)
{
    start();
    post(1, 0x01, kSource, kDestination, 65535);
    run();
    EXPECT_TRUE(copied(kSource, kDestination, 65535));
    post(2, 0x01, kSource, kDestination, 65536);
    run();
    EXPECT_TRUE(copied(kSource, kDestination, 65536));
    post(3, 0x01, kSource, kDestination, 65537);
    run();
    EXPECT_TRUE(copied(kSource + 65536, kDestination, 1));
    EXPECT_TRUE(copied(kSource + 1, kDestination + 1, 65535));
    // From a source that is not at a page border, the first fragment beyond 65,536 begins later.
    post(4, 0x01, kSource + 1, kDestination, 65536);
    run();
    EXPECT_TRUE(copied(kSource + 1, kDestination, 65536));
    constexpr uint32_t kLong = (8 << 20) - 1;
    post(5, 0x01, kSource, kDestination, kLong);
    run();
    const uint32_t last = kLong / 65536 * 65536;
    EXPECT_TRUE(copied(kSource + last, kDestination, kLong - last));
    EXPECT_TRUE(copied(kSource + last - 1, kDestination + 65535, 1));
}

// 5.5.6: other opcodes are sent and completed, and nothing is written.
TEST_F(Loopback, OnlyWritesArePlaced)
{
    start();
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        const bool placed = opcode == 0x01 || opcode == 0x06 || opcode == 0x07 || opcode == 0x08 || opcode == 0x0a;
        std::fill_n(machine.memory.begin() + kDestination, 64, uint8_t(0));
        post(opcode, uint8_t(opcode), kSource, kDestination, 64);
        run();
        EXPECT_EQ(copied(kSource, kDestination, 64), placed) << opcode;
        const auto words = completion();
        ASSERT_EQ(words.size(), 8u);
        EXPECT_EQ(words[1], 0u);
        EXPECT_EQ(words[2], 64u);
    }
    EXPECT_EQ(controller.counters().discarded, 251u);
}

TEST_F(Loopback, ATransferOfNoBytes)
{
    start();
    post(9, 0x01, kSource, kDestination, 0);
    run();
    ASSERT_EQ(machine.headers.size(), 1u);
    EXPECT_EQ(beats(machine.headers[0])[4], 0u);
    EXPECT_EQ(completion(), (std::vector<uint32_t>{0, 0, 0, 0, 9, 0, 0, 0}));
    EXPECT_EQ(machine.memory[kDestination], 0);
    EXPECT_EQ(controller.counters().empty, 1u);
}

// 5.2.6: pointers wrap at their sizes, each by its own.
TEST_F(Loopback, QueuesWrap)
{
    start(0, 5, 3);
    for (uint32_t i = 0; i < 40; i++) {
        post(i, 0x01, kSource + i, kDestination, 10);
        run();
        const auto words = completion();
        ASSERT_EQ(words.size(), 8u);
        EXPECT_EQ(words[4], i);
        EXPECT_EQ(words[0], i % 5);
        EXPECT_EQ(controller.read(0x2c), (i + 1) % 5);
        EXPECT_EQ(controller.read(0x50), (i + 1) % 3);
    }
    EXPECT_EQ(controller.counters().cq_overruns, 0u);
}

// The alignment of a queue is not told: any byte.
TEST_F(Loopback, QueuesAtOddAddresses)
{
    sq = kSq + 1;
    cq = kCq + 3;
    start(0, 5, 3);
    for (uint32_t i = 0; i < 12; i++) {
        post(0x100 + i, 0x01, kSource + i, kDestination, 100);
        run();
        EXPECT_EQ(completion(), (std::vector<uint32_t>{i % 5, 0, 100, i % 5, 0x100 + i, 100, 0, 0}));
        EXPECT_TRUE(copied(kSource + i, kDestination, 100));
    }
}

// The largest queues that an index of 16 bits can have.
TEST_F(Loopback, TheLargestQueuesWrap)
{
    sq = 0x1400000;
    cq = 0x1a00000;
    start(0, 65535, 65535);
    for (uint32_t i = 0; i < 65540; i++) {
        const uint32_t index = i % 65535, next = (i + 1) % 65535;
        post(i, 0x01, kSource, kDestination, 1);
        run();
        ASSERT_EQ(completion(), (std::vector<uint32_t>{index & 0xff, 0, 1, index & 0xff, i, 1, 0, 0}));
        ASSERT_EQ(controller.read(0x2c), next);
        ASSERT_EQ(controller.read(0x50), next);
    }
    EXPECT_EQ(controller.counters().cq_overruns, 0u);
    EXPECT_EQ(controller.counters().bad_sizes, 0u);
}

// 5.4.6: the index in a completion has 8 bits.
TEST_F(Loopback, TheIndexOfACompletionHas8Bits)
{
    start(0, 600, 600);
    for (uint32_t i = 0; i < 600; i++) {
        post(i, 0x01, kSource, kDestination, 1);
        run();
        const auto words = completion();
        EXPECT_EQ(words[0], i % 256);
        EXPECT_EQ(words[4], i);
    }
}

// 5.6.6: a full CQ is overwritten, and reads as empty after as many completions as it has entries.
TEST_F(Loopback, AFullCqIsOverwritten)
{
    start(0, 16, 4);
    for (uint32_t i = 0; i < 4; i++)
        post(i, 0x01, kSource, kDestination, 1);
    run();
    EXPECT_EQ(controller.read(0x50), controller.read(0x4c));
    EXPECT_EQ(controller.counters().cq_overruns, 0u);
    // Of the fifth on, each takes the place of one that was not read.
    for (uint32_t i = 4; i < 6; i++) {
        post(i, 0x01, kSource, kDestination, 1);
        run();
        EXPECT_EQ(machine.get32(kCq + (i - 4) * 32 + 0x10), i);
        EXPECT_EQ(controller.counters().cq_overruns, i - 3);
    }
    // Software reads what the indices say, 4 and 5; 2 and 3 it has not read yet.
    EXPECT_EQ(completion()[4], 4u);
    EXPECT_EQ(completion()[4], 5u);
    EXPECT_TRUE(completion().empty());
    post(6, 0x01, kSource, kDestination, 1);
    run();
    EXPECT_EQ(controller.counters().cq_overruns, 3u);
}

// As many completions as the CQ has entries lose none if software reads them.
TEST_F(Loopback, ACqThatIsReadLosesNothing)
{
    start(0, 16, 4);
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 3; i++)
            post(i, 0x01, kSource, kDestination, 1);
        run();
        for (uint32_t i = 0; i < 3; i++)
            EXPECT_EQ(completion()[4], i);
    }
    EXPECT_EQ(controller.counters().cq_overruns, 0u);
}

// A size of 1, and a tail beyond the size, keep it busy, each turn for a bounded time, until it is disabled.
TEST_F(Loopback, SizesThatCannotBe)
{
    for (uint32_t size : {1u, 4u}) {
        controller.reset();
        start(0, size, 8);
        const uint64_t before = controller.counters().bad_sizes;
        controller.write(0x30, 9);
        EXPECT_EQ(controller.counters().bad_sizes, before + 1);
        for (int turn = 0; turn < 100; turn++)
            EXPECT_TRUE(controller.run(64)) << size;
        controller.write(0x00, 0);
        run();
        EXPECT_FALSE(controller.has_work());
    }
}

// A step is a descriptor, a fragment or a completion.
TEST_F(Loopback, ATurnIsBounded)
{
    start();
    post(1, 0x01, kSource, kDestination, 0xffffffff);
    for (unsigned turn = 1; turn < 20; turn++) {
        EXPECT_TRUE(controller.run(32));
        EXPECT_EQ(machine.headers.size(), 32 * turn - 1);
    }
}

// A tail that goes back, or beyond what was posted, names descriptors that are there from before, or zeros.
TEST_F(Loopback, TheTailJumps)
{
    start();
    for (uint32_t i = 0; i < 4; i++)
        post(i, 0x01, kSource, kDestination, 8);
    run();
    controller.write(0x30, 2);
    run();
    EXPECT_EQ(controller.read(0x2c), 2u);
    EXPECT_EQ(controller.counters().descriptors, 10u);   // 4, then 4 to 7, 0 and 1
    // 4 to 7 of zeros, then 0 and 1 once more
    EXPECT_EQ(controller.counters().empty, 4u);
    EXPECT_EQ(machine.get32(kCq + 0 * 32 + 0x10), 0u);
    EXPECT_EQ(machine.get32(kCq + 1 * 32 + 0x10), 1u);
}

// No pointer plus 1 is 0, so a size of 0 is one of all that a pointer can be.
TEST_F(Loopback, ASizeOf0)
{
    sq = 0x1400000;   // descriptors of zeros
    cq = 0x1a00000;
    start(0, 0, 0);
    controller.write(0x30, 5);
    run();
    EXPECT_EQ(controller.read(0x2c), 5u);
    EXPECT_EQ(controller.read(0x50), 5u);
    EXPECT_EQ(controller.counters().bad_sizes, 1u);
    // It wraps behind index 65,535.
    controller.write(0x30, 3);
    for (unsigned turns = 0; controller.run(64); turns++)
        ASSERT_LT(turns, 10000u);
    EXPECT_EQ(controller.read(0x2c), 3u);
    EXPECT_EQ(controller.read(0x50), 3u);
    EXPECT_EQ(controller.counters().descriptors, 65536u + 3);
}

// 5.2.1, 5.4.3: bases have 32 bits, and their sums wrap.
TEST_F(Loopback, HighWordsOfBasesAreNotUsed)
{
    start();
    controller.write(0x24, 0xdeadbeef);
    controller.write(0x44, 0xdeadbeef);
    post(1, 0x01, uint64_t(0x77) << 32 | kSource, uint64_t(0x88) << 32 | kDestination, 50);
    run();
    EXPECT_TRUE(copied(kSource, kDestination, 50));
    EXPECT_EQ(completion()[4], 1u);
    EXPECT_EQ(controller.read(0x64), 0x77u);
    EXPECT_EQ(controller.read(0x68), kDestination);
    EXPECT_EQ(controller.read(0x6c), 0x88u);
    EXPECT_EQ(controller.read(0x70), 50u);
    // The descriptor of index 1 from a base 64 below 4 GiB.
    controller.write(0x20, 0xffffffc0);
    std::memcpy(&machine.memory[0], &machine.memory[kSq], 64);
    machine.put32(0, 77);
    controller.write(0x30, 2);
    run();
    EXPECT_EQ(completion()[4], 77u);
}

TEST_F(Loopback, MemoryThatIsNotThere)
{
    start();
    const uint32_t beyond = uint32_t(machine.memory.size());
    post(1, 0x01, beyond, kDestination, 5000);
    post(2, 0x01, kSource, beyond, 5000);
    run();
    for (uint32_t id : {1u, 2u}) {
        const auto words = completion();
        EXPECT_EQ(words[4], id);
        EXPECT_EQ(words[1], 0u);
        EXPECT_EQ(words[2], 5000u);
    }
    EXPECT_EQ(controller.counters().dma_errors, 4u);
    controller.write(0x20, beyond);
    controller.write(0x40, beyond);
    controller.write(0x30, 3);
    run();
    EXPECT_EQ(controller.read(0x2c), 3u);
}

// 5.4.7: a data mover that stalls is not noticed; what waits for it goes on when it does, or ends with a reset.
TEST_F(Loopback, ADataMoverThatStalls)
{
    start();
    post(1, 0x01, kSource, kDestination, 10000);
    controller.run(2);
    controller.stall(true);
    EXPECT_FALSE(controller.run(64));
    EXPECT_FALSE(controller.awaits_time_out());
    controller.time_out();
    controller.write(0x00, 0);
    EXPECT_FALSE(controller.run(64));
    EXPECT_EQ(controller.read(0x5c), 5u);
    EXPECT_EQ(controller.read(0x50), 0u);
    EXPECT_EQ(machine.headers.size(), 1u);
    controller.stall(false);
    run();
    EXPECT_EQ(completion(), (std::vector<uint32_t>{0, 0, 10000, 0, 1, 10000, 0, 0}));
    EXPECT_TRUE(copied(kSource, kDestination, 10000));
    controller.stall(true);
    controller.write(0x00, 1);
    post(2, 0x01, kSource, kDestination, 1);
    EXPECT_FALSE(controller.run(64));
    EXPECT_EQ(controller.read(0x5c), 5u);
    controller.reset();
    EXPECT_EQ(controller.read(0x5c), 0u);
    EXPECT_EQ(controller.counters().timeouts, 0u);
}

// 5.5: the receiver reports to nobody, so data may come after its completion.
class LateLoopback : public Loopback {
protected:
    LateLoopback() : Loopback({LOOPBACK_EXT_ALL, true}) {}
};

TEST_F(LateLoopback, DataAfterTheCompletion)
{
    start();
    post(1, 0x01, kSource, kDestination, 10000);
    while (controller.read(0x50) == 0) {
        EXPECT_EQ(machine.memory[kDestination], 0);
        controller.run(1);
    }
    // It is placed in the next turn, also if software disables the controller.
    EXPECT_EQ(machine.memory[kDestination], 0);
    controller.write(0x00, 0);
    EXPECT_TRUE(controller.has_work());
    EXPECT_FALSE(controller.run(1));
    EXPECT_TRUE(copied(kSource, kDestination, 10000));
    controller.reset();
    start(LOOPBACK_EXT_PLACED);
    post(2, 0x01, kSource, kDestination + 20000, 10000);
    while (controller.read(0x50) == 0)
        controller.run(1);
    EXPECT_TRUE(copied(kSource, kDestination + 20000, 10000));
}

// ---- extensions

class ExtendedLoopback : public Loopback {
protected:
    ExtendedLoopback() : Loopback({LOOPBACK_EXT_ALL, false}) {}
};

TEST_F(ExtendedLoopback, AreToldAndTurnedOn)
{
    EXPECT_EQ(controller.read(0x04), 0x3fu << 16);
    // Not while it is enabled.
    start();
    controller.write(0x10, 0x3f << 16);
    post(1, 0x01, kSource, kDestination, 0);
    run();
    EXPECT_EQ(completion()[1], 0u);
}

TEST_F(ExtendedLoopback, StatusCodes)
{
    const uint32_t beyond = uint32_t(machine.memory.size());
    start(LOOPBACK_EXT_CHECKS);
    struct {
        uint64_t source, destination;
        uint32_t length, status, sent;
    } const cases[] = {
        {kSource, kDestination, 65536, 0, 65536}, {beyond - 4096, kDestination, 8192, 1, 4096},
        {kSource, beyond - 4096, 8192, 2, 8192},  {kSource, kDestination, 0, 3, 0},
        {kSource, kDestination, 65537, 3, 0},
    };
    for (const auto &c : cases) {
        post(1, 0x01, c.source, c.destination, c.length);
        run();
        const auto words = completion();
        ASSERT_EQ(words.size(), 8u);
        EXPECT_EQ(words[1], c.status) << c.length;
        EXPECT_EQ(words[2], c.sent);
        EXPECT_EQ(words[5], c.length);
    }
    // A descriptor that cannot be read, of which the first half is there.
    const uint32_t index = controller.read(0x30);
    controller.write(0x20, beyond - 32 - 64 * index);
    std::fill_n(machine.memory.end() - 32, 32, uint8_t(0xff));
    controller.write(0x30, index + 1);
    run();
    EXPECT_EQ(completion(), (std::vector<uint32_t>{index, 1, 0, index, 0, 0, 0, 0}));
}

// 5.6.8: 04. What was sent before is told, and the next transfer has its own time.
TEST_F(ExtendedLoopback, ATransferThatDoesNotEnd)
{
    start(LOOPBACK_EXT_CHECKS);
    post(1, 0x01, kSource, kDestination, 10000);
    post(2, 0x01, kSource, kDestination, 7);
    controller.time_out();
    controller.run(2);
    EXPECT_FALSE(controller.awaits_time_out());
    controller.stall(true);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT_FALSE(controller.run(64));
        EXPECT_EQ(controller.read(0x50), i);
        EXPECT_TRUE(controller.awaits_time_out());
        controller.time_out();
        EXPECT_FALSE(controller.awaits_time_out());
    }
    run();
    EXPECT_EQ(completion(), (std::vector<uint32_t>{0, 4, 4096, 0, 1, 10000, 0, 0}));
    EXPECT_EQ(completion(), (std::vector<uint32_t>{1, 4, 0, 1, 2, 7, 0, 0}));
    EXPECT_EQ(controller.counters().timeouts, 2u);
    controller.stall(false);
    post(3, 0x01, kSource, kDestination, 10000);
    run();
    EXPECT_EQ(completion(), (std::vector<uint32_t>{2, 0, 10000, 2, 3, 10000, 0, 0}));
    EXPECT_TRUE(copied(kSource, kDestination, 10000));
}

// Sizes and tails that cannot be are not worked on; HW_STATUS says so, until they are corrected.
TEST_F(ExtendedLoopback, SizesAreChecked)
{
    const uint32_t cases[][3] = {{0, 8, 1}, {1, 8, 1}, {8, 0, 1}, {8, 1, 1}, {8, 8, 8}, {8, 8, 0xffff}};
    uint64_t refused = 0;
    for (const auto &[sq_size, cq_size, tail] : cases) {
        controller.reset();
        start(LOOPBACK_EXT_CHECKS, sq_size, cq_size);
        EXPECT_EQ(controller.read(0x04), 0x3fu << 16);
        controller.write(0x30, tail);
        EXPECT_FALSE(controller.run(1)) << sq_size << " " << cq_size << " " << tail;
        EXPECT_EQ(controller.read(0x04), 0x3fu << 16 | 1);
        EXPECT_EQ(controller.counters().bad_sizes, ++refused);
        controller.write(0x28, 8);
        controller.write(0x48, 8);
        controller.write(0x30, 1);
        run();
        EXPECT_EQ(controller.read(0x04), 0x3fu << 16);
        EXPECT_EQ(controller.read(0x2c), 1u);
        EXPECT_EQ(controller.counters().bad_sizes, refused);
    }
}

TEST_F(ExtendedLoopback, AFullCqStalls)
{
    start(LOOPBACK_EXT_CQ_STALL, 16, 4);
    for (uint32_t i = 0; i < 10; i++)
        post(i, 0x01, kSource, kDestination, 1);
    run();
    EXPECT_EQ(controller.read(0x2c), 3u);
    for (uint32_t i = 0; i < 10; i++) {
        EXPECT_EQ(completion()[4], i);
        run();
    }
    EXPECT_EQ(controller.counters().cq_overruns, 0u);
}

TEST_F(ExtendedLoopback, SoftReset)
{
    start(LOOPBACK_EXT_SOFT_RESET);
    post(1, 0x01, kSource, kDestination, 60000);
    controller.run(3);
    controller.write(0x00, 3);
    EXPECT_FALSE(controller.has_work());
    for (uint32_t offset = 0; offset < 0x80; offset += 4) {
        if (offset != 0x04) {
            EXPECT_EQ(controller.read(offset), 0u) << offset;
        }
    }
    start();
    post(2, 0x01, kSource, kDestination, 10);
    run();
    EXPECT_EQ(completion()[4], 2u);
}

TEST_F(ExtendedLoopback, AnInterruptForEachCompletion)
{
    start(LOOPBACK_EXT_IRQ);
    controller.write(0x08, 1);
    post(1, 0x01, kSource, kDestination, 1);
    run();
    EXPECT_FALSE(machine.interrupt);
    controller.write(0x00, 0x101);
    EXPECT_TRUE(machine.interrupt);
    EXPECT_EQ(controller.read(0x0c), 1u);
    controller.write(0x0c, 1);
    EXPECT_FALSE(machine.interrupt);
    post(2, 0x01, kSource, kDestination, 1);
    run();
    EXPECT_TRUE(machine.interrupt);
    controller.write(0x08, 0);
    EXPECT_FALSE(machine.interrupt);
}

TEST_F(ExtendedLoopback, LongTransfers)
{
    start(LOOPBACK_EXT_WIDE);
    constexpr uint32_t kLong = (8 << 20) - 1;
    post(1, 0x01, kSource, kDestination, kLong);
    run();
    EXPECT_TRUE(copied(kSource, kDestination, kLong));
    EXPECT_EQ(beats(machine.headers.back())[3], kLong / 4096 * 4096);
    machine.headers.clear();
    post(2, 0x01, kSource, uint64_t(0xabcd) << 32 | kDestination, 10);
    run();
    EXPECT_EQ(beats(machine.headers[0])[5], 0xabcdffffu);
    EXPECT_EQ(controller.counters().dma_errors, 1u);
    // Bits 63:48 of addresses do not count.
    controller.write(0x24, 0xffff0000);
    controller.write(0x44, 0xffff0000);
    machine.headers.clear();
    post(3, 0x01, uint64_t(0x1234) << 48 | (kSource + 1), uint64_t(0x4321) << 48 | kDestination, 10);
    run();
    EXPECT_EQ(beats(machine.headers[0])[5], 0x0000ffffu);
    EXPECT_TRUE(copied(kSource + 1, kDestination, 10));
    EXPECT_EQ(controller.counters().dma_errors, 1u);
}

}  // namespace
