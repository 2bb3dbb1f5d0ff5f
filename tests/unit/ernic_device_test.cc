// SPDX-License-Identifier: GPL-2.0-or-later
// The ERNIC and the ETRNIC alone, by their registers: what each of them is, and what it does with packets and WQEs that are
// wrong. Offsets, bits and codes are literals of seed 000, and of the public register map of PG332 v3 for the ERNIC.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ernic_rig.h"
#include "wire/packet.h"

namespace hghca::test::ernic_device_test {
namespace {

using namespace ernic_rig;

// ---- the register maps

struct Register {
    uint32_t offset;
    char access;     // w: RW, r: RO, c: W1C, o: RO but for the software override, s: RO while the QP is enabled
    uint32_t bits;
    uint32_t reset = 0;
};

// Seed 000, table 2-7: global registers.
const std::vector<Register> kGlobals = {
    {0x000, 'w', 0xffffff39}, {0x004, 'w', 0xff0f0005}, {0x010, 'w', 0xffffffff}, {0x014, 'w', 0x0000ffff},
    {0x020, 'w', 0xffffffff}, {0x024, 'w', 0xffffffff}, {0x028, 'w', 0xffffffff}, {0x02c, 'w', 0xffffffff},
    {0x060, 'w', 0xffffffff}, {0x068, 'w', 0xffffffff}, {0x06c, 'r', 0x0000ffff}, {0x070, 'w', 0xffffffff},
    {0x078, 'w', 0xffffffff}, {0x080, 'w', 0x0000ffff}, {0x084, 'r', 0x0000ffff}, {0x088, 'w', 0xffffffff},
    {0x090, 'w', 0x0000ffff}, {0x094, 'r', 0x0000ffff}, {0x0a0, 'w', 0xffffffff}, {0x0a8, 'w', 0xffffffff},
    {0x100, 'r', 0xffffffff}, {0x104, 'r', 0xffffffff}, {0x108, 'r', 0xffffffff}, {0x10c, 'r', 0xffffffff},
    {0x110, 'r', 0xffffffff}, {0x114, 'r', 0xffffffff}, {0x118, 'r', 0xffffffff}, {0x11c, 'r', 0xffff00ff},
    {0x120, 'r', 0xffff00ff}, {0x124, 'r', 0xffffefff}, {0x12c, 'r', 0xffff0003, 2}, {0x130, 'r', 0xffffffff},
    {0x134, 'r', 0x0000ffff}, {0x138, 'r', 0x0000ffff}, {0x140, 'r', 0xffffffff}, {0x180, 'w', 0x000000ff},
    {0x184, 'c', 0x000000ff}, {0x190, 'c', 0xffffffff}, {0x194, 'c', 0xffffffff}, {0x198, 'c', 0xffffffff},
    {0x19c, 'c', 0xffffffff}, {0x1a0, 'c', 0xffffffff}, {0x1a4, 'c', 0xffffffff}, {0x1a8, 'c', 0xffffffff},
    {0x1ac, 'c', 0xffffffff}, {0x1b0, 'c', 0xffffffff}, {0x1b4, 'c', 0xffffffff}, {0x1b8, 'c', 0xffffffff},
    {0x1bc, 'c', 0xffffffff}, {0x1c0, 'c', 0xffffffff}, {0x1c4, 'c', 0xffffffff}, {0x1c8, 'c', 0xffffffff},
    {0x1cc, 'c', 0xffffffff},
};
// What only the ETRNIC has.
const std::vector<Register> kEtrnicGlobals = {
    {0x030, 'w', 0xffffffff}, {0x038, 'w', 0xffffffff}, {0x040, 'w', 0xffffffff}, {0x048, 'w', 0xffffffff},
    {0x13c, 'r', 0x00023fff},
};
// What only the ERNIC has.
const std::vector<Register> kErnicGlobals = {
    {0x008, 'w', 0xffffffff}, {0x00c, 'w', 0x00002ff3}, {0x018, 'w', 0xffffffff}, {0x064, 'w', 0xffffffff},
    {0x07c, 'w', 0xffffffff}, {0x08c, 'w', 0xffffffff}, {0x0a4, 'w', 0xffffffff}, {0x0ac, 'w', 0xffffffff},
    {0x0b0, 'w', 0xffffffff}, {0x0b4, 'w', 0xffffffff}, {0x0b8, 'w', 0xffffffff}, {0x13c, 'r', 0x00033fff, 0x10000},
    {0x174, 'r', 0xffffffff}, {0x178, 'r', 0xffffffff}, {0x17c, 'r', 0xffffffff},
};
// Ours: the extensions. Of a device without any, only those that the device has are always 0.
const std::vector<Register> kOurs = {
    {0x1e0, 'w', 0x0000ffff}, {0x1e4, 'w', 0xffffffff}, {0x1ec, 'w', 0x0000ffff}, {0x1f0, 'r', 0x0000ffff},
};
const std::vector<Register> kErnicOurs = {{0x1e8, 'w', 0xffffffff}};

// Seed 000, table 2-7: registers of each QP.
const std::vector<Register> kQpRegisters = {
    {0x08, 'w', 0xffffff00}, {0x10, 'w', 0xffffffe0}, {0x18, 'w', 0xffffffe0}, {0x20, 'w', 0xffffffff},
    {0x28, 'w', 0xffffffff}, {0x30, 'o', 0x0000ffff}, {0x34, 'w', 0x0000ffff}, {0x38, 'w', 0x0000ffff},
    {0x3c, 'w', 0xffffffff}, {0x48, 'w', 0x00ffffff}, {0x50, 'w', 0xffffffff}, {0x54, 'w', 0x0000ffff},
    {0x60, 'w', 0xffffffff}, {0x64, 'w', 0xffffffff}, {0x68, 'w', 0xffffffff}, {0x6c, 'w', 0xffffffff},
    {0x88, 'r', 0x777f0e1f, 0x600},
};
// Of each but QP 1.
const std::vector<Register> kConnectedRegisters = {
    {0x04, 'w', 0xffffff3f}, {0x40, 'w', 0x00ffffff}, {0x44, 's', 0xffffffff}, {0x4c, 'w', 0x001f3f3f},
    {0x80, 'r', 0x00ffffff}, {0x84, 's', 0x00ffffff}, {0x8c, 'o', 0x0000ffff}, {0x90, 'r', 0x00ffffff},
    {0x94, 'r', 0xffffff00}, {0x98, 'r', 0x0000ffff}, {0x9c, 'o', 0x0000ffff},
};
const std::vector<Register> kErnicQpRegisters = {
    {0x00, 'w', 0xffff07fd}, {0x24, 'w', 0xffffffff}, {0x2c, 'w', 0xffffffff}, {0xb0, 'w', 0x00ffffff},
    {0xc0, 'w', 0xffffffff}, {0xc8, 'w', 0xffffffff}, {0xd0, 'w', 0xffffffff},
};
const std::vector<Register> kEtrnicQpRegisters = {{0x00, 'w', 0xffff07bd}};
const std::vector<Register> kErnicConnectedRegisters = {{0xd8, 'r', 0xffffffff}};
const std::vector<Register> kPdRegisters = {
    {0x00, 'w', 0x00ffffff}, {0x04, 'w', 0xffffffff}, {0x08, 'w', 0xffffffff}, {0x0c, 'w', 0xffffffff},
    {0x10, 'w', 0xffffffff}, {0x14, 'w', 0x000000ff}, {0x18, 'w', 0xffffffff}, {0x1c, 'w', 0xffff0007},
};

using Map = std::map<uint32_t, Register>;

void add(Map &map, uint32_t base, std::initializer_list<const std::vector<Register> *> rows)
{
    for (const auto *list : rows)
        for (const Register &row : *list)
            map[base + row.offset] = row;
}

Map map_of(const ernic::Config &config)
{
    const bool is_ernic = config.personality == ernic::Personality::Ernic;
    const uint32_t globals = is_ernic ? 0x20000 : 0;
    Map map;
    add(map, globals, {&kGlobals, &kOurs, is_ernic ? &kErnicGlobals : &kEtrnicGlobals});
    if (is_ernic)
        add(map, globals, {&kErnicOurs});
    for (uint32_t qpn = 1; qpn <= config.qps; qpn++) {
        const uint32_t base = globals + 0x200 + (qpn - 1) * 0x100;
        add(map, base, {&kQpRegisters, is_ernic ? &kErnicQpRegisters : &kEtrnicQpRegisters});
        if (qpn > 1)
            add(map, base, {&kConnectedRegisters});
        if (qpn > 1 && is_ernic)
            add(map, base, {&kErnicConnectedRegisters});
    }
    for (uint32_t entry = 0; is_ernic && entry < 256; entry++)
        add(map, entry * 0x100, {&kPdRegisters});
    return map;
}

class ErnicRegisters : public ::testing::TestWithParam<ernic::Config> {
protected:
    static uint32_t aperture() { return GetParam().personality == ernic::Personality::Ernic ? 0x40000 : 0x10000; }

    FakeHost host{1u << 20};
    ernic::Adapter device{host, GetParam()};
    const Map map = map_of(GetParam());
};

TEST_P(ErnicRegisters, EachOffsetHasItsResetValue)
{
    for (uint32_t offset = 0; offset < aperture(); offset += 4) {
        const auto row = map.find(offset);
        ASSERT_EQ(device.read(offset, 4), row == map.end() ? 0 : row->second.reset) << std::hex << offset;
    }
}

// Last come those that turn something on.
TEST_P(ErnicRegisters, EachOffsetTakesWhatItsAccessAllows)
{
    const uint32_t globals = GetParam().personality == ernic::Personality::Ernic ? 0x20000 : 0;
    auto check = [&](uint32_t offset) {
        const auto row = map.find(offset);
        const uint32_t before = device.read(offset, 4);
        device.write(offset, 0xffffffff, 4);
        const bool writable = row != map.end() && (row->second.access == 'w' || row->second.access == 's');
        const uint32_t wanted = writable ? row->second.bits : row != map.end() && row->second.access == 'c' ? 0 : before;
        ASSERT_EQ(device.read(offset, 4), wanted) << std::hex << offset;
        device.write(offset, 0, 4);
        ASSERT_EQ(device.read(offset, 4), writable ? 0 : wanted) << std::hex << offset;
    };
    for (uint32_t offset = 0; offset < aperture(); offset += 4)
        if (offset != globals && offset != globals + 4)
            check(offset);
    check(globals + 4);
    check(globals);
    EXPECT_EQ(device.stats.bad_accesses, 0u);
}

TEST_P(ErnicRegisters, OnlyFourAlignedBytesAreARegister)
{
    const uint32_t mac = (GetParam().personality == ernic::Personality::Ernic ? 0x20000 : 0) + 0x10;
    device.write(mac, 0x11223344, 4);
    const std::pair<uint32_t, unsigned> wrong[] = {{0, 1}, {0, 2}, {0, 8}, {1, 4}, {2, 4}, {3, 1}};
    for (const auto &[more, size] : wrong) {
        device.write(mac + more, 0x55667788, size);
        EXPECT_EQ(device.read(mac + more, size), 0u) << more << " " << size;
    }
    EXPECT_EQ(device.read(mac, 4), 0x11223344u);
    EXPECT_EQ(device.stats.bad_accesses, 12u);
}

// The override lets software write the pointers of one QP, or with 0 in bits 31:24 those of each.
TEST_P(ErnicRegisters, SoftwareOverride)
{
    Ernic driver(host, host.alloc(Ernic::kErrorBytes), GetParam());
    const std::array<uint32_t, 3> pointers = {Ernic::kCqHead, Ernic::kCurrentSq, Ernic::kRqProducer};
    auto writable = [&](uint32_t qpn, uint32_t offset) {
        driver.write_qp(qpn, offset, 7);
        const bool was = driver.read_qp(qpn, offset) == 7;
        driver.write_qp(qpn, offset, 0);
        return was;
    };
    for (const uint32_t offset : pointers)
        EXPECT_FALSE(writable(kQpn, offset)) << offset;
    driver.write(Ernic::kAdvancedConf, kQpn << 24 | 1);
    for (const uint32_t offset : pointers) {
        EXPECT_TRUE(writable(kQpn, offset)) << offset;
        EXPECT_FALSE(writable(kQpn + 1, offset)) << offset;
    }
    driver.write(Ernic::kAdvancedConf, 1);
    for (const uint32_t offset : pointers)
        EXPECT_TRUE(writable(kQpn + 1, offset)) << offset;
}

INSTANTIATE_TEST_SUITE_P(Personalities, ErnicRegisters,
                         ::testing::Values(ernic::Config{}, ernic::Config{.qps = 8}, etrnic(), etrnic(8)),
                         [](const auto &info) {
                             const bool is_ernic = info.param.personality == ernic::Personality::Ernic;
                             return (is_ernic ? "Ernic" : "Etrnic") + std::to_string(info.param.qps);
                         });

// ---- packets

TEST(ErnicPackets, ASendFillsASlot)
{
    Rig rig;
    rig.receive(Rig::packet(0x04, kFirstPsn, {1, 2, 3, 4, 5}));
    EXPECT_EQ(rig.slot(0, 5), (std::vector<uint8_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
    EXPECT_EQ(rig.driver.read(Ernic::kSendsAndResponses), 1u);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 1u);
    EXPECT_EQ(rig.driver.read(Ernic::kLastIn), 0x04u | kQpn << 8 | kFirstPsn << 16);
    // The ACK: opcode 0x11 to the peer, from the one UDP port of the device.
    ASSERT_EQ(rig.host.frames.size(), 1u);
    const View ack(rig.host.frames[0]);
    EXPECT_EQ(ack.opcode, 0x11);
    EXPECT_EQ(ack.psn, kFirstPsn);
    EXPECT_EQ(rig.host.frames[0].at(34) << 8 | rig.host.frames[0].at(35), 0xc123);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), 1u);
    EXPECT_EQ(rig.driver.read(Ernic::kLastOut), 0x11u | kQpn << 8 | kFirstPsn << 16);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kLastRequest), 0x04u << 24 | kFirstPsn);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kStatMsn), 1u);
}

// Seed 000, table 2-3: bit, precedence, and a packet of which just that is wrong.
struct Wrong {
    const char *name;
    unsigned bit;
    void (*spoil)(Frame &f);
    bool sealed = true;
};
const Wrong kWrongs[] = {
    {"MacDestination", 0, [](Frame &f) { put(f, 5, 9); }},
    {"IpHeader", 3,
     [](Frame &f) {
         // Four bytes of options, and the checksum of 24 bytes.
         f.insert(f.begin() + 34, 4, 1);
         put(f, 14, 0x46);
         put(f, 17, uint8_t(f[17] + 4));
         f[24] = f[25] = 0;
         uint32_t sum = 0;
         for (size_t i = 14; i < 38; i += 2)
             sum += uint32_t(f[i] << 8 | f[i + 1]);
         sum = ~((sum & 0xffff) + (sum >> 16));
         put(f, 24, uint8_t(sum >> 8));
         put(f, 25, uint8_t(sum));
     },
     false},
    {"IpFlags", 5, [](Frame &f) { put(f, 20, 0); }},
    {"IpFragment", 6, [](Frame &f) { put(f, 21, 1); }},
    {"IpDestination", 8, [](Frame &f) { put(f, 33, 9); }},
    {"IpChecksum", 9, [](Frame &f) { put(f, 24, uint8_t(f[24] ^ 1)); }, false},
    {"IpLength", 10, [](Frame &f) { put(f, 16, 0x40); }},
    {"UdpLength", 12, [](Frame &f) { put(f, 39, uint8_t(f[39] - 4)); }},
    {"BthVersion", 13, [](Frame &f) { put(f, 43, 1); }},
    {"Qp", 14, [](Frame &f) { put(f, 48, 1); }},
    {"QpDisabled", 15, [](Frame &f) { put(f, 49, kQpn + 1); put(f, 11, 0); }},
    {"IpSource", 27, [](Frame &f) { put(f, 29, 9); }},
    {"MacSource", 28, [](Frame &f) { put(f, 11, 9); }},
    {"Icrc", 30, [](Frame &f) { put(f, 60, uint8_t(f[60] ^ 1)); }, false},
};

class ErnicInvalid : public ::testing::TestWithParam<Wrong> {};

TEST_P(ErnicInvalid, PacketIsDroppedWithItsSyndrome)
{
    Rig rig;
    rig.open_error_buffer();
    // QP 6 is known and not enabled: its peer has the address 0.
    rig.driver.write_qp(kQpn + 1, Ernic::kPeerMacMsb, 0x0200);
    rig.driver.write_qp(kQpn + 1, Ernic::kPeerMacLsb, 0);
    rig.driver.write_qp(kQpn + 1, Ernic::kPeerIp, kPeerIp);
    Frame frame = Rig::send();
    GetParam().spoil(frame);
    if (GetParam().sealed)
        seal(frame);
    rig.receive(frame);
    EXPECT_EQ(rig.syndrome(), 1u << GetParam().bit);
    EXPECT_EQ(rig.driver.read(Ernic::kErrorBufferPointer), 1u);
    // The headers stand behind the syndrome.
    EXPECT_EQ(std::memcmp(rig.host.at(rig.error_buffer + 4), frame.data(), 54), 0);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 1u << 16 | 1);
    EXPECT_EQ(rig.driver.read(Ernic::kInvalidAndDuplicates), 1u);
    EXPECT_TRUE(rig.driver.read(Ernic::kIntStatus) & 1);
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_TRUE(rig.host.frames.empty());
    // The next one is as good as ever.
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicInvalid, ::testing::ValuesIn(kWrongs), [](const auto &info) { return info.param.name; });

// Of several precedences the lowest number decides, with all bits of its own.
TEST(ErnicPackets, LowestPrecedenceDecides)
{
    Rig rig;
    rig.open_error_buffer();
    Frame frame = Rig::send();
    put(frame, 5, 9);     // MAC destination and source: 4
    put(frame, 11, 9);
    put(frame, 33, 9);    // IP destination: 8
    put(frame, 43, 1);    // BTH version: 10
    seal(frame);
    rig.receive(frame);
    EXPECT_EQ(rig.syndrome(), 1u << 0 | 1u << 28);
    frame = Rig::send();
    put(frame, 20, 0);    // flags, fragment offset, IP destination: 8
    put(frame, 21, 1);
    put(frame, 33, 9);
    put(frame, 43, 1);
    seal(frame);
    rig.receive(frame);
    EXPECT_EQ(rig.syndrome(), 1u << 5 | 1u << 6 | 1u << 8);
    put(frame, 60, uint8_t(frame[60] ^ 1));   // ICRC: 2
    rig.receive(frame);
    EXPECT_EQ(rig.syndrome(), 1u << 30);
}

// Seed 000, table 2-3, bit 4: the ETRNIC drops what is marked.
TEST(ErnicPackets, MarkedPacketsAreDroppedByTheEtrnicAlone)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.open_error_buffer();
        Frame frame = Rig::send();
        put(frame, 15, 3);
        seal(frame);
        rig.receive(frame);
        EXPECT_EQ(rig.driver.rq_written(kQpn), is_ernic ? 1 : 0);
        EXPECT_EQ(rig.syndrome(), is_ernic ? 0 : 1u << 4);
    }
}

// Without XRNICCONF bit 5 only what makes a QP fatal is copied (seed 000, 550).
TEST(ErnicPackets, ErrorBufferHoldsFatalPacketsAlone)
{
    Rig rig;
    rig.open_error_buffer(false);
    Frame frame = Rig::send();
    put(frame, 33, 9);
    seal(frame);
    rig.receive(frame);
    EXPECT_EQ(rig.driver.read(Ernic::kErrorBufferPointer), 0u);
    rig.receive(Rig::packet(0x01, kFirstPsn));   // a SEND MIDDLE, where a message begins
    EXPECT_EQ(rig.driver.read(Ernic::kErrorBufferPointer), 1u);
    EXPECT_EQ(rig.syndrome(), 1u << 16);
}

TEST(ErnicPackets, ErrorBuffersGoRound)
{
    Rig rig;
    rig.open_error_buffer();
    Frame frame = Rig::send();
    put(frame, 33, 9);
    seal(frame);
    for (unsigned n = 1; n <= 9; n++) {
        rig.receive(frame);
        EXPECT_EQ(rig.driver.read(Ernic::kErrorBufferPointer), n % 8);
    }
}

// ---- what makes a QP fatal

// A FATAL code and the bit of the syndrome; code 0: the QP goes on.
struct Outcome {
    uint16_t code;
    unsigned bit;
};
struct Fatal {
    const char *name;
    Outcome ernic, etrnic;
    Frame (*packet)();
};
constexpr Outcome kUnsupported = {4, 17}, kLengthWrong = {2, 19}, kRefused = {0x20, 23}, kTaken = {0, 0};
const Fatal kFatals[] = {
    {"MiddleFirst", {1, 16}, {1, 16}, [] { return Rig::packet(0x01, kFirstPsn, bytes(1024)); }},
    {"MiddleFirstAndShort", {3, 16}, {3, 16}, [] { return Rig::packet(0x01, kFirstPsn, bytes(64)); }},
    {"FirstShort", kLengthWrong, kLengthWrong, [] { return Rig::packet(0x00, kFirstPsn, bytes(64)); }},
    {"OnlyLong", kLengthWrong, kLengthWrong, [] { return Rig::packet(0x04, kFirstPsn, bytes(1028)); }},
    {"Empty", kLengthWrong, kLengthWrong, [] { return Rig::packet(0x04, kFirstPsn, {}); }},
    {"CompareSwap", kUnsupported, kUnsupported,
     [] { return Rig::packet(0x13, kFirstPsn, {}, std::vector<uint8_t>(28)); }},
    {"WriteOfAPeer", kRefused, kUnsupported, [] { return Rig::packet(0x0a, kFirstPsn, bytes(64), reth(0x305a, 64)); }},
    {"WriteToNoEntry", kRefused, kUnsupported,
     [] { return Rig::packet(0x0a, kFirstPsn, bytes(64), reth(0x40000, 64)); }},
    {"ReadOfAPeer", kRefused, kUnsupported, [] { return Rig::packet(0x0c, kFirstPsn, {}, reth(0x305a, 64)); }},
    {"SendImmediate", kTaken, kUnsupported,
     [] { return Rig::packet(0x05, kFirstPsn, bytes(64), std::vector<uint8_t>(4)); }},
    {"SendInvalidate", kTaken, kUnsupported,
     [] { return Rig::packet(0x17, kFirstPsn, bytes(64), std::vector<uint8_t>(4)); }},
};

class ErnicFatal : public ::testing::TestWithParam<std::tuple<Fatal, bool>> {};

TEST_P(ErnicFatal, TheQpIsFatalAndSaysWhy)
{
    const auto &[fatal, is_ernic] = GetParam();
    Rig rig(is_ernic ? ernic::Config{} : etrnic());
    rig.open_error_buffer();
    rig.receive(fatal.packet());
    const Outcome wanted = is_ernic ? fatal.ernic : fatal.etrnic;
    const bool dies = wanted.code;
    EXPECT_EQ(rig.driver.is_fatal(kQpn), dies);
    EXPECT_EQ(rig.driver.fatal_code(kQpn), wanted.code);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus) >> 7 & 1, uint32_t(dies));
    if (!dies)
        return;
    EXPECT_EQ(rig.syndrome(), 1u << wanted.bit);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    const View nak(rig.host.frames[0]);
    EXPECT_EQ(nak.opcode, 0x11);
    // NAK: invalid request, or remote access error.
    EXPECT_EQ(nak.syndrome, wanted.code == 0x20 ? 0x62 : 0x61);
    EXPECT_EQ(rig.driver.read(Ernic::kNakCountOut), 1u);
    // Nothing more is taken or sent.
    rig.host.frames.clear();
    rig.receive(Rig::send());
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
    // Until it is disabled and enabled again.
    rig.driver.disable(kQpn);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    rig.driver.write_qp(kQpn, Ernic::kSqProducer, rig.driver.cqhead(kQpn));
    rig.driver.write_qp(kQpn, Ernic::kLastRequest, kFirstPsn - 1);
    rig.driver.enable(kQpn);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicFatal, ::testing::Combine(::testing::ValuesIn(kFatals), ::testing::Bool()),
                         [](const auto &info) {
                             return std::string(std::get<0>(info.param).name) +
                                    (std::get<1>(info.param) ? "Ernic" : "Etrnic");
                         });

// An opcode that is not supported, with a wrong PSN: dropped, and nobody is fatal.
TEST(ErnicPackets, UnsupportedOpcodeWithAnotherPsnIsDropped)
{
    Rig rig(etrnic());
    rig.open_error_buffer();
    rig.receive(Rig::packet(0x0c, kFirstPsn + 1, {}, reth(0x305a, 64)));
    EXPECT_EQ(rig.syndrome(), 1u << 17);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_TRUE(rig.host.frames.empty());
}

TEST(ErnicPackets, WrongPsnIsAskedForAgain)
{
    Rig rig;
    rig.open_error_buffer();
    rig.receive(Rig::send(kFirstPsn + 1));
    EXPECT_EQ(rig.syndrome(), 1u << 21);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).syndrome, 0x60);
    EXPECT_EQ(View(rig.host.frames[0]).psn, kFirstPsn);
}

TEST(ErnicPackets, DuplicatesAreCounted)
{
    Rig rig;
    rig.receive(Rig::send());
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.read(Ernic::kInvalidAndDuplicates), 1u << 16);
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
    EXPECT_EQ(rig.host.frames.size(), 2u);
}

// A message that is longer than its slot: NAK invalid request, and FATAL 00010.
TEST(ErnicPackets, LongerThanASlot)
{
    Rig rig;
    rig.receive(Rig::packet(0x00, kFirstPsn, bytes(1024)));
    rig.receive(Rig::packet(0x02, kFirstPsn + 1, bytes(4)));
    EXPECT_EQ(rig.driver.fatal_code(kQpn), 2);
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
}

// ---- each bit and each code

// Seed 000, table 2-3: the bits that need more than one wrong packet to a QP that waits.
Frame over_ipv6()
{
    Frame f = Rig::send();
    f.erase(f.begin() + 14, f.begin() + 34);
    f.insert(f.begin() + 14, 40, 0);
    f[12] = 0x86;
    f[13] = 0xdd;
    f[14] = 0x60;
    f[19] = uint8_t(f.size() - 54);
    f[20] = 17;
    // What IPDESADDR1 to IPDESADDR4 have: the source is as it should be.
    const std::array<uint8_t, 4> source = {0xc0, 0xa8, 0, 2};
    std::copy(source.begin(), source.end(), f.begin() + 34);
    seal(f);
    return f;
}

TEST(ErnicPackets, VersionOfTheOtherProtocol)
{
    Rig rig;
    rig.open_error_buffer();
    rig.receive(over_ipv6());
    EXPECT_EQ(rig.syndrome(), 1u << 2);
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
}

TEST(ErnicPackets, PaddingInFrontOfTheLast)
{
    Rig rig;
    rig.open_error_buffer();
    rig.receive(Rig::packet(0x00, kFirstPsn, bytes(1023)));
    EXPECT_EQ(rig.syndrome(), 1u << 18);
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
}

// 000, table 2-3, bit 18: that of a response is dropped, and the READ goes on.
TEST(ErnicPackets, PaddingInFrontOfTheLastResponse)
{
    Rig rig;
    rig.post(Ernic::kRead, rig.buffer, 2048, 0x1000, 0x1234);
    rig.open_error_buffer();
    rig.receive(Rig::packet(0x0d, 0x100, bytes(1023), {0x1f, 0, 0, 0}));
    EXPECT_EQ(rig.syndrome(), 1u << 18);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_EQ(rig.driver.cqhead(kQpn), 0);
    rig.receive(Rig::packet(0x0d, 0x100, bytes(1024), {0x1f, 0, 0, 0}));
    rig.receive(Rig::packet(0x0f, 0x101, bytes(1024), {0x1f, 0, 0, 0}));
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
}

TEST(ErnicPackets, FullReceiveQueue)
{
    Rig rig;
    rig.open_error_buffer();
    // A ring of eight holds seven.
    for (uint32_t n = 0; n < 7; n++)
        rig.receive(Rig::send(kFirstPsn + n));
    EXPECT_EQ(rig.driver.read(Ernic::kErrorBufferPointer), 0u);
    EXPECT_FALSE(rig.status() >> 1 & 1);
    rig.receive(Rig::send(kFirstPsn + 7));
    EXPECT_EQ(rig.syndrome(), 1u << 20);
    EXPECT_TRUE(rig.status() >> 1 & 1);
    EXPECT_EQ(rig.driver.read(Ernic::kRnrsOut), 1u << 16 | kQpn);
    EXPECT_TRUE(rig.driver.read(Ernic::kIntStatus) >> 3 & 1);
    // An RNR NAK with the timer of TIMEOUTCONF 20:16.
    EXPECT_EQ(View(rig.host.frames.back()).syndrome, 0x20 | 1);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    // A slot that is consumed has room for it.
    rig.driver.write_rqci(kQpn, 1);
    rig.receive(Rig::send(kFirstPsn + 7));
    EXPECT_EQ(rig.driver.rq_written(kQpn), 8);
    EXPECT_FALSE(rig.status() >> 1 & 1);
}

// AETH syndromes whose bits 6:5 are 10 are reserved, and so are the NAK codes above 4 (IBA vol 1, 9.7.5.2.8).
TEST(ErnicPackets, ReservedSyndrome)
{
    Rig rig;
    rig.open_error_buffer();
    rig.post(Ernic::kSend, rig.buffer, 64);
    rig.acknowledge(0x100, 0x40);
    EXPECT_EQ(rig.syndrome(), 1u << 22);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_EQ(rig.driver.cqhead(kQpn), 0);
    rig.acknowledge(0x100);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
}

// Seed 000, table 2-4: what the peer's responses make fatal, and what makes it so by itself.
struct FatalResponse {
    const char *name;
    uint16_t code;
    uint8_t opcode;      // of the WQE
    uint32_t length;
    void (*respond)(Rig &rig);
};
const FatalResponse kFatalResponses[] = {
    {"RemoteInvalidRequest", 0x0a, Ernic::kWrite, 64, [](Rig &r) { r.acknowledge(0x100, 0x61); }},
    {"RemoteAccess", 0x0a, Ernic::kWrite, 64, [](Rig &r) { r.acknowledge(0x100, 0x62); }},
    {"RemoteOperation", 0x0a, Ernic::kWrite, 64, [](Rig &r) { r.acknowledge(0x100, 0x63); }},
    {"ResponseToASend", 0x0c, Ernic::kSend, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(64), {0x1f, 0, 0, 0})); }},
    {"ResponseToAWrite", 0x0c, Ernic::kWrite, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(64), {0x1f, 0, 0, 0})); }},
    {"SyndromeOfAReadResponse", 0x19, Ernic::kRead, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(64), {0x62, 0, 0, 0})); }},
    {"ShortReadResponse", 0x1a, Ernic::kRead, 2048,
     [](Rig &r) { r.receive(Rig::packet(0x0d, 0x100, bytes(512), {0x1f, 0, 0, 0})); }},
    {"ShortOnlyReadResponse", 0x1a, Ernic::kRead, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(32), {0x1f, 0, 0, 0})); }},
    {"LongOnlyReadResponse", 0x1a, Ernic::kRead, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(96), {0x1f, 0, 0, 0})); }},
    {"ShortLastReadResponse", 0x1a, Ernic::kRead, 1536,
     [](Rig &r) {
         r.receive(Rig::packet(0x0d, 0x100, bytes(1024), {0x1f, 0, 0, 0}));
         r.receive(Rig::packet(0x0f, 0x101, bytes(256), {0x1f, 0, 0, 0}));
     }},
    {"OnlyReadResponseOfSeveral", 0x1c, Ernic::kRead, 2048,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(1024), {0x1f, 0, 0, 0})); }},
    {"FirstReadResponseOfOne", 0x1c, Ernic::kRead, 1024,
     [](Rig &r) { r.receive(Rig::packet(0x0d, 0x100, bytes(1024), {0x1f, 0, 0, 0})); }},
    {"MiddleOfAReadResponse", 0x1c, Ernic::kRead, 4096,
     [](Rig &r) { r.receive(Rig::packet(0x0e, 0x100, bytes(1024))); }},
    // 11y2y1y0, several bits.
    {"SyndromeAndLengthOfAReadResponse", 0x1b, Ernic::kRead, 64,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(32), {0x62, 0, 0, 0})); }},
    {"OpcodeAndSyndromeOfAReadResponse", 0x1d, Ernic::kRead, 2048,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(1024), {0x62, 0, 0, 0})); }},
    {"OpcodeAndLengthOfAReadResponse", 0x1e, Ernic::kRead, 2048,
     [](Rig &r) { r.receive(Rig::packet(0x10, 0x100, bytes(512), {0x1f, 0, 0, 0})); }},
    {"AllOfAReadResponse", 0x1f, Ernic::kRead, 1536,
     [](Rig &r) {
         r.receive(Rig::packet(0x0d, 0x100, bytes(1024), {0x1f, 0, 0, 0}));
         r.receive(Rig::packet(0x0d, 0x101, bytes(1024), {0x62, 0, 0, 0}));
     }},
    {"RnrRetries", 0x0d, Ernic::kSend, 64,
     [](Rig &r) {
         for (unsigned n = 0; n < 3; n++) {
             r.acknowledge(0x100, 0x21);
             r.host.clock_ns = std::min(r.host.deadline_ns, r.host.clock_ns + 1'000'000'000);
             r.driver.expire();
             while (r.driver.has_work())
                 r.driver.run();
         }
     }},
};

class ErnicFatalResponse : public ::testing::TestWithParam<FatalResponse> {};

TEST_P(ErnicFatalResponse, AResponseMakesTheQpFatal)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.post(GetParam().opcode, rig.buffer, GetParam().length, 0x1000, 0x1234);
        ASSERT_EQ(rig.driver.fatal_code(kQpn), 0);
        rig.open_error_buffer(false);
        GetParam().respond(rig);
        EXPECT_EQ(rig.syndrome(), 1u << 23) << is_ernic;
        EXPECT_TRUE(rig.driver.is_fatal(kQpn)) << is_ernic;
        EXPECT_EQ(rig.driver.fatal_code(kQpn), GetParam().code) << is_ernic;
        EXPECT_TRUE(rig.driver.read(Ernic::kIntStatus) >> 7 & 1);
        // Its WQE fails, and the error flag of the CQE is 1.
        EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
        EXPECT_EQ(*rig.host.as<uint32_t>(rig.queues.cqba), 1u << 24 | uint32_t(GetParam().opcode) << 16 | 0x700);
    }
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicFatalResponse, ::testing::ValuesIn(kFatalResponses),
                         [](const auto &info) { return info.param.name; });

// Ours: memory that is not there, on each way.
TEST(ErnicFatalMemory, NothingIsThere)
{
    constexpr uint64_t kNowhere = 0x10000;
    struct Case {
        const char *what;
        void (*use)(Rig &rig);
    };
    const Case cases[] = {
        {"source", [](Rig &r) { r.post(Ernic::kSend, kNowhere, 64); }},
        {"send queue",
         [](Rig &r) {
             r.driver.write_qp(kQpn, Ernic::kSqBase, kNowhere);
             r.driver.write_sqpi(kQpn, 1);
             while (r.driver.has_work())
                 r.driver.run();
         }},
        {"slot",
         [](Rig &r) {
             r.driver.write_qp(kQpn, Ernic::kRqBase, kNowhere);
             r.receive(Rig::send());
         }},
        {"destination of a READ",
         [](Rig &r) {
             r.post(Ernic::kRead, kNowhere, 64);
             r.receive(Rig::packet(0x10, 0x100, bytes(64), {0x1f, 0, 0, 0}));
         }},
    };
    for (const Case &c : cases) {
        Rig rig;
        c.use(rig);
        EXPECT_EQ(rig.driver.fatal_code(kQpn), 0x21) << c.what;
    }
}

// ---- each counter and each interrupt

// Of what no other test has: halves of registers, by what moves them.
TEST(ErnicCounters, EachMoves)
{
    Rig rig;
    rig.driver.write_pd(0x30, {.pd = 9, .va = 0x10000000, .bytes = 4096, .base = rig.buffer, .key = 0x5a, .access = 2});
    rig.post(Ernic::kRead, rig.buffer, 64, 0x1000, 0x1234);
    rig.post(Ernic::kWrite, rig.buffer, 64, 0x1000, 0x1234);
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_EQ(rig.driver.read(0x108), 2u << 16 | 1);      // READs and WRITEs, SENDs sent
    EXPECT_EQ(rig.driver.read(0x12c) >> 16, 3u);          // WQEs begun
    EXPECT_EQ(rig.driver.read(0x114) & 0xffff, 0x04u | kQpn << 8);
    rig.receive(Rig::packet(0x10, 0x100, bytes(64), {0x1f, 0, 0, 0}));
    EXPECT_EQ(rig.driver.read(0x100), 1u << 16);          // READ responses received
    rig.acknowledge(0x102);
    EXPECT_EQ(rig.driver.read(0x104), 1u);                // acknowledgements received
    rig.receive(Rig::packet(0x0c, kFirstPsn, {}, reth(0x305a, 64)));
    EXPECT_EQ(rig.driver.read(0x17c), 1u);                // READ responses sent
    EXPECT_EQ(rig.driver.read(0x10c), 0u);
    rig.receive(Rig::packet(0x0a, kFirstPsn + 1, bytes(64), reth(0x305a, 64)));
    EXPECT_EQ(rig.driver.read(0x10c), 1u);                // acknowledgements sent
    rig.post(0x77, rig.buffer, 64);
    EXPECT_EQ(rig.driver.read(0x124), 0x77u << 3);        // last illegal opcode
    EXPECT_EQ(rig.driver.read(0x84), 1u);                 // entries in the queue of outgoing errors
    EXPECT_EQ(rig.driver.read(0x130), 4u);                // packets received, none dropped
    // Congestion notification is not implemented.
    EXPECT_EQ(rig.driver.read(0x174) | rig.driver.read(0x178), 0u);
    // A reset clears them all.
    rig.driver.device.reset();
    for (uint32_t offset = 0x100; offset < 0x180; offset += 4)
        EXPECT_EQ(rig.driver.read(offset), offset == 0x12c ? 2u : offset == 0x13c ? 1u << 16 : 0) << offset;
}

// They have 16 bits, and go round.
TEST(ErnicCounters, TheyGoRoundAtSixteenBits)
{
    Rig rig;
    Frame frame = Rig::send();
    put(frame, 33, 9);
    seal(frame);
    for (uint32_t n = 0; n < 0x10001; n++)
        rig.receive(frame);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 1u << 16 | 1);
    EXPECT_EQ(rig.driver.read(Ernic::kInvalidAndDuplicates), 1u);
}

// Seed 000, table 3-3: the seven sources that are not reserved. INTSTS latches each, INTEN gates it, and writing 1 clears
// it; 4 and 6 are cleared in their banks.
struct Source {
    const char *name;
    unsigned bit;
    void (*raise)(Rig &rig);
};
void receive_mad(Rig &r)
{
    QpAttributes a{};
    a.mtu = 1024;
    r.driver.configure(1, a, {0, 0, r.buffer, kDepth, kDepth, 512, 0}, 0, 0);
    r.driver.enable(1);
    Frame mad = Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1});
    put(mad, 49, 1);
    seal(mad);
    r.receive(mad);
}
const Source kSources[] = {
    {"Validation", 0, [](Rig &r) { r.receive(Rig::send(kFirstPsn + 9)); }},
    {"Mad", 1, receive_mad},
    {"RnrNak", 3,
     [](Rig &r) {
         for (uint32_t n = 0; n < 8; n++)
             r.receive(Rig::send(kFirstPsn + n));
     }},
    {"Completion", 4,
     [](Rig &r) {
         r.post(Ernic::kSend, r.buffer, 64);
         r.acknowledge(0x100);
     }},
    {"BadOpcode", 5, [](Rig &r) { r.post(0x77, r.buffer, 64); }},
    {"Receive", 6, [](Rig &r) { r.receive(Rig::send()); }},
    {"Fatal", 7, [](Rig &r) { r.receive(Rig::packet(0x01, kFirstPsn, bytes(1024))); }},
};

class ErnicSource : public ::testing::TestWithParam<Source> {};

TEST_P(ErnicSource, IsLatchedGatedAndCleared)
{
    const uint32_t bit = 1u << GetParam().bit;
    for (const bool enabled : {false, true}) {
        Rig rig;
        rig.driver.write(Ernic::kIntEnable, enabled ? bit : 0xffu & ~bit & ~0x79u);
        GetParam().raise(rig);
        EXPECT_EQ(rig.driver.read(Ernic::kIntStatus) & bit, bit);
        EXPECT_EQ(rig.host.take_vectors(0) > 0, enabled);
        const unsigned lowered = rig.host.lowered;
        for (uint32_t n = 0; n < 8; n++) {
            rig.driver.write(Ernic::kRqBanks + 4 * n, 0xffffffff);
            rig.driver.write(Ernic::kCqBanks + 4 * n, 0xffffffff);
        }
        rig.driver.write(Ernic::kIntStatus, bit);
        EXPECT_EQ(rig.driver.read(Ernic::kIntStatus) & bit, 0u);
        EXPECT_EQ(rig.host.lowered > lowered, enabled);
    }
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicSource, ::testing::ValuesIn(kSources), [](const auto &info) { return info.param.name; });

// Bits 2 and 8 are reserved: nothing sets them.
TEST(ErnicInterrupts, ReservedBitsStayClear)
{
    Rig rig;
    rig.driver.write(Ernic::kIntEnable, 0xffffffff);
    EXPECT_EQ(rig.driver.read(Ernic::kIntEnable), 0xffu);
    for (const Source &source : kSources)
        source.raise(rig);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus) & ~0xfbu, 0u);
}

// ---- what the device sends

// Seed 000, 265-271: 1 to 16 bytes stand in the WQE.
TEST(ErnicSends, UpToSixteenBytesStandInTheWqe)
{
    Rig rig;
    rig.host.as<uint8_t>(rig.buffer)[0] = 0xee;
    rig.post(Ernic::kSend, rig.buffer, 1);
    rig.post(Ernic::kSend, rig.buffer, 16);
    rig.post(Ernic::kSend, rig.buffer, 17);
    ASSERT_EQ(rig.host.frames.size(), 3u);
    EXPECT_EQ(rig.host.frames[0].at(54), 0x30);
    EXPECT_EQ(rig.host.frames[1].at(54), 0x30);
    EXPECT_EQ(rig.host.frames[1].at(69), 0x3f);
    EXPECT_EQ(rig.host.frames[2].at(54), 0xee);
    EXPECT_EQ(rig.driver.read(Ernic::kIoOut), 3u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kStatSsn), 3u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kSqPsn), 0x103u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kResponsePsn), 0x100u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kCurrentSq), 3u);
    rig.acknowledge(0x102);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 3);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kResponsePsn), 0x103u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kCurrentSq), 0u);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kStatWqe), 3u);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsIn), 1u);
}

// The document's own example, at 0x688: QP 5 is fatal, its queues are empty, the NAK is a remote access error, and three
// RNR NAKs came before (seed 000, 1036 to 1042). That is with three RNR retries or more.
TEST(ErnicSends, StatusOfTheDocument)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.driver.write_qp(kQpn, Ernic::kTimeout, 14 | 7 << 8 | 7 << 11 | 1 << 16);
        rig.post(Ernic::kWrite, rig.buffer, 64, 0, 0x1234);
        for (unsigned n = 0; n < 3; n++) {
            rig.acknowledge(0x100, 0x21);
            rig.host.clock_ns = rig.host.deadline_ns;
            rig.driver.expire();
            while (rig.driver.has_work())
                rig.driver.run();
        }
        rig.acknowledge(0x100, 0x62);
        EXPECT_EQ(rig.driver.device.read(is_ernic ? 0x20688 : 0x688, 4) & ~(1u << 11), 0x30620601u);
        EXPECT_EQ(rig.driver.fatal_code(kQpn), Ernic::kNak);
        EXPECT_EQ(rig.driver.read(Ernic::kNakCountIn), 4u);
        EXPECT_EQ(rig.driver.read(Ernic::kNaksIn), 4u << 16 | kQpn);
        uint32_t cqe;
        std::memcpy(&cqe, rig.host.at(rig.queues.cqba), sizeof(cqe));
        EXPECT_EQ(cqe, 0x700u | 1u << 24);
    }
}

TEST(ErnicSends, RetriesRunOut)
{
    Rig rig;
    rig.post(Ernic::kSend, rig.buffer, 64);
    for (unsigned n = 0; n < 10 && rig.host.deadline_ns != UINT64_MAX; n++) {
        rig.host.clock_ns = rig.host.deadline_ns;
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
    }
    EXPECT_EQ(rig.host.frames.size(), 3u);   // once, and two retries
    EXPECT_EQ(rig.driver.fatal_code(kQpn), Ernic::kRetries);
    EXPECT_EQ(rig.driver.read(Ernic::kRetryCount), 2u);
    EXPECT_EQ(rig.status() >> 24 & 7, 2u);
    EXPECT_TRUE(rig.status() >> 11 & 1);
}

// A driver enables a QP before it knows these limits: they hold for the first message too.
TEST(ErnicSends, RetriesOfAnEnabledQp)
{
    Rig rig;
    rig.driver.disable(kQpn);
    rig.driver.write_qp(kQpn, Ernic::kTimeout, 0);
    rig.driver.enable(kQpn);
    rig.driver.write_qp(kQpn, Ernic::kTimeout, 14 | 2 << 8 | 2 << 11);
    rig.post(Ernic::kSend, rig.buffer, 64);
    for (unsigned n = 0; n < 10 && rig.host.deadline_ns != UINT64_MAX; n++) {
        rig.host.clock_ns = rig.host.deadline_ns;
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
    }
    EXPECT_EQ(rig.host.frames.size(), 3u);   // once, and two retries
    EXPECT_EQ(rig.driver.read(Ernic::kRetryCount), 2u);
}

// XRNICADCONF bit 2: they do not make the QP fatal.
TEST(ErnicSends, RetriesThatAreNotFatal)
{
    Rig rig;
    rig.driver.write(Ernic::kAdvancedConf, 1 << 2);
    rig.driver.disable(kQpn);
    rig.driver.enable(kQpn);
    rig.post(Ernic::kSend, rig.buffer, 64);
    for (unsigned n = 0; n < 10; n++) {
        rig.host.clock_ns = rig.host.deadline_ns;
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
    }
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    rig.acknowledge(0x100);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
}

// ---- time

// What the clock has come to when the next frame leaves; 0: none does within a second.
uint64_t next_frame_ns(Rig &rig)
{
    const uint64_t start = rig.host.clock_ns;
    while (rig.host.frames.empty() && rig.host.deadline_ns < start + 1'000'000'000) {
        rig.host.clock_ns = std::max(rig.host.clock_ns, rig.host.deadline_ns);
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
    }
    return rig.host.frames.empty() ? 0 : rig.host.clock_ns - start;
}

// Seed 000, 535: base count width, clock, and the resulting unit; the document asks for w = CLOG2(4.096 N).
struct BaseCount {
    uint32_t width, clock_mhz, unit_ns;
};
constexpr BaseCount kBaseCounts[] = {{11, 400, 5120},  {10, 200, 5120}, {9, 125, 4096},   {9, 100, 5120}, {0, 200, 4096},
                                     {0, 1000, 4096}, {15, 1, 32768000}, {1, 1000, 1000}, {8, 200, 1280}};

TEST(ErnicTime, TheBaseCountIsTheUnitOfTimeouts)
{
    for (const BaseCount &base : kBaseCounts) {
        ernic::Config config;
        config.clock_mhz = base.clock_mhz;
        Rig rig(config);
        rig.driver.write(Ernic::kAdvancedConf, base.width << 16);
        rig.driver.write_qp(kQpn, Ernic::kTimeout, 4 | 1 << 8);
        rig.post(Ernic::kSend, rig.buffer, 64);
        EXPECT_EQ(rig.host.deadline_ns - rig.host.clock_ns, uint64_t(base.unit_ns) << 4) << base.width;
        rig.host.frames.clear();
        EXPECT_EQ(next_frame_ns(rig), uint64_t(base.unit_ns) << 4) << base.width;
    }
}

// Bit 5 is stored and does not count; 0 is no time-out.
TEST(ErnicTime, OnlyFiveBitsOfTheTimeoutCount)
{
    Rig rig;
    rig.driver.write_qp(kQpn, Ernic::kTimeout, 0x24 | 1 << 8);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kTimeout) & 0x3f, 0x24u);
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_EQ(rig.host.deadline_ns - rig.host.clock_ns, 4096u << 4);
    Rig none;
    none.driver.write_qp(kQpn, Ernic::kTimeout, 0x20 | 1 << 8);
    none.post(Ernic::kSend, none.buffer, 64);
    EXPECT_EQ(none.host.deadline_ns, UINT64_MAX);
}

// A SEND ONLY that does not ask for an ACK.
Frame silent_send(uint32_t psn = kFirstPsn)
{
    Frame frame = Rig::send(psn);
    put(frame, 50, 0);
    seal(frame);
    return frame;
}

// Seed 000, 534: XRNICCONF 4:3. When a request is acknowledged that asks for it, and one that does not; the time is a
// quarter of the time-out, which is 4.096 us 2^14.
constexpr uint64_t kAckNs = (4096ull << 14) / 4;
constexpr uint64_t kAtOnce = 1, kNever = 0;
struct AckMode {
    uint32_t mode;
    uint64_t asked, silent;
};
constexpr AckMode kAckModes[] = {{0, kAtOnce, kAckNs}, {1, kAckNs, kAckNs}, {2, kAtOnce, kNever}, {3, kAtOnce, kAckNs}};

TEST(ErnicTime, ModesOfAcknowledgement)
{
    for (const AckMode &mode : kAckModes)
        for (const bool asks : {false, true}) {
            Rig rig;
            rig.driver.write(Ernic::kConf, (rig.driver.read(Ernic::kConf) & ~(3u << 3)) | mode.mode << 3);
            rig.receive(asks ? Rig::send() : silent_send());
            EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
            const uint64_t wanted = asks ? mode.asked : mode.silent;
            EXPECT_EQ(rig.host.frames.empty(), wanted != kAtOnce) << mode.mode << asks;
            const uint64_t found = next_frame_ns(rig);
            EXPECT_EQ(wanted == kAtOnce ? kAtOnce : found, wanted) << mode.mode << asks;
            EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), wanted == kNever ? 0u : 1);
            if (wanted != kNever) {
                EXPECT_EQ(View(rig.host.frames.back()).psn, kFirstPsn);
            }
        }
}

// One ACK is for all that came before it, and its time is that of the first.
TEST(ErnicTime, AnAckIsForAllBeforeIt)
{
    Rig rig;
    rig.receive(silent_send());
    rig.host.clock_ns += kAckNs / 2;
    rig.receive(silent_send(kFirstPsn + 1));
    EXPECT_EQ(next_frame_ns(rig), kAckNs / 2);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).psn, kFirstPsn + 1);
    // What an ACK that is asked for has acknowledged waits for no time.
    rig.host.frames.clear();
    rig.receive(silent_send(kFirstPsn + 2));
    rig.receive(Rig::send(kFirstPsn + 3));
    EXPECT_EQ(rig.host.frames.size(), 1u);
    rig.host.frames.clear();
    EXPECT_EQ(next_frame_ns(rig), 0u);
    // A QP that is disabled sends what it owes.
    rig.receive(silent_send(kFirstPsn + 4));
    rig.driver.disable(kQpn);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).psn, kFirstPsn + 4);
    rig.driver.enable(kQpn);
    // One without a time-out does not wait.
    rig.driver.write_qp(kQpn, Ernic::kTimeout, 0);
    rig.host.frames.clear();
    rig.receive(silent_send(kFirstPsn + 5));
    EXPECT_EQ(rig.host.frames.size(), 1u);
}

// At most 16 are under way (seed 000, 707).
TEST(ErnicSends, TheSeventeenthWaits)
{
    Rig rig;
    rig.driver.disable(kQpn);
    const uint64_t sq = rig.host.alloc(32 * 64);
    rig.driver.write_qp(kQpn, Ernic::kSqBase, uint32_t(sq));
    rig.driver.write_qp(kQpn, Ernic::kDepths, 32 | kDepth << 16);
    rig.driver.enable(kQpn);
    for (unsigned n = 0; n < 20; n++) {
        ErnicWqe wqe{};
        wqe.opcode = Ernic::kSend;
        wqe.length = 8;
        std::memcpy(rig.host.at(sq + n * 64), &wqe, sizeof(wqe));
    }
    rig.driver.write_sqpi(kQpn, 20);
    while (rig.driver.has_work())
        rig.driver.run();
    EXPECT_EQ(rig.host.frames.size(), 16u);
    EXPECT_TRUE(rig.status() >> 3 & 1);    // outstanding queue full
    EXPECT_FALSE(rig.status() >> 9 & 1);   // send queue not empty
    rig.acknowledge(0x101);
    EXPECT_EQ(rig.host.frames.size(), 18u);
    rig.acknowledge(0x10f);
    EXPECT_EQ(rig.host.frames.size(), 20u);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 16);
}

// A retried WRITE sends what it has sent first, a retried SEND what stands there now (seed 000, 564).
TEST(ErnicSends, DataBuffersKeepWrites)
{
    Rig rig;
    rig.driver.write(Ernic::kConf, 0);
    const uint64_t buffers = rig.host.alloc(16 * 4096);
    rig.driver.write(Ernic::kDataBuffers, uint32_t(buffers));
    rig.driver.write(Ernic::kDataBuffersSize, 16 | 4096u << 16);
    rig.driver.write(Ernic::kConf, 1 | 255 << 8);
    std::memset(rig.host.at(rig.buffer), 1, 64);
    rig.post(Ernic::kWrite, rig.buffer, 64, 0x1000, 0x305a);
    rig.post(Ernic::kSend, rig.buffer, 64);
    std::memset(rig.host.at(rig.buffer), 2, 64);
    rig.host.clock_ns = rig.host.deadline_ns;
    rig.driver.expire();
    while (rig.driver.has_work())
        rig.driver.run();
    ASSERT_EQ(rig.host.frames.size(), 4u);
    constexpr size_t kWriteData = 54 + 16, kSendData = 54;
    EXPECT_EQ(rig.host.frames[0].at(kWriteData), 1);
    EXPECT_EQ(rig.host.frames[2].at(kWriteData), 1);
    EXPECT_EQ(rig.host.frames[1].at(kSendData), 1);
    EXPECT_EQ(rig.host.frames[3].at(kSendData), 2);
}

// Seed 000, 546: the headers of each packet are in the next header buffer, and go from there to the link.
TEST(ErnicSends, HeadersGoThroughTheirBuffers)
{
    Rig rig(etrnic());
    const uint64_t buffers = rig.host.alloc(3 * 128);
    rig.driver.write(0x30, uint32_t(buffers));
    rig.driver.write(0x38, 3 | 128 << 16);
    std::memset(rig.host.at(rig.buffer), 0x42, 64);
    const std::array<size_t, 4> header_bytes = {54, 70, 70, 54};   // SEND; WRITE and READ with a RETH; SEND
    const std::array<uint8_t, 4> opcodes = {Ernic::kSend, Ernic::kWrite, Ernic::kRead, Ernic::kSend};
    for (unsigned n = 0; n < 4; n++) {
        rig.post(opcodes[n], rig.buffer, 64, 0x1000, 0x1234);
        ASSERT_EQ(rig.host.frames.size(), n + 1);
        EXPECT_EQ(std::memcmp(rig.host.at(buffers + n % 3 * 128), rig.host.frames[n].data(), header_bytes[n]), 0) << n;
        EXPECT_EQ(rig.host.frames[n].size(), header_bytes[n] + (n == 2 ? 0 : 64) + 4);
    }
    // No payload is there.
    EXPECT_EQ(rig.host.at(buffers + 128)[70], 0);
    // ACKs have headers too. Then it is the turn of the first buffer.
    rig.host.frames.clear();
    rig.receive(Rig::send());
    rig.receive(Rig::send(kFirstPsn + 1));
    ASSERT_EQ(rig.host.frames.size(), 2u);
    EXPECT_EQ(std::memcmp(rig.host.at(buffers + 2 * 128), rig.host.frames[1].data(), 58), 0);
    // A link that is full keeps the packet, and its buffer.
    rig.host.frames.clear();
    const std::vector<uint8_t> before(rig.host.at(buffers), rig.host.at(buffers) + 3 * 128);
    rig.host.link_full = true;
    rig.receive(Rig::send(kFirstPsn + 2));
    rig.host.link_full = false;
    rig.driver.device.link_ready();
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(std::memcmp(rig.host.at(buffers), rig.host.frames[0].data(), 58), 0);
    EXPECT_EQ(std::memcmp(rig.host.at(buffers + 128), &before[128], 256), 0);
}

TEST(ErnicSends, HeaderBuffersThatAreShortAreNotUsed)
{
    for (const uint32_t size : {127u << 16 | 3, 128u << 16}) {
        Rig rig(etrnic());
        const uint64_t buffers = rig.host.alloc(3 * 128);
        rig.driver.write(0x30, uint32_t(buffers));
        rig.driver.write(0x38, size);
        rig.post(Ernic::kSend, rig.buffer, 64);
        EXPECT_EQ(rig.host.frames.size(), 1u);
        EXPECT_EQ(rig.host.at(buffers)[0], 0);
    }
}

TEST(ErnicSends, HeaderBuffersThatAreNotThere)
{
    Rig rig(etrnic());
    rig.driver.write(0x30, 0x1000);
    rig.driver.write(0x38, 3 | 128 << 16);
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(rig.driver.device.stats.dma_errors, 1u);
    // The packet is as one that is lost on the way.
    rig.driver.write(0x38, 0);
    rig.host.clock_ns = rig.host.deadline_ns;
    rig.driver.expire();
    while (rig.driver.has_work())
        rig.driver.run();
    EXPECT_EQ(rig.host.frames.size(), 1u);
}

// Seed 000, 548: SGLs for the internal DMA. The format is ours: address and bytes of the headers, then of the rest.
TEST(ErnicSends, ListsNameTheHeaders)
{
    Rig rig(etrnic());
    const uint64_t buffers = rig.host.alloc(3 * 128), lists = rig.host.alloc(2 * 16);
    rig.driver.write(0x30, uint32_t(buffers));
    rig.driver.write(0x38, 3 | 128 << 16);
    rig.driver.write(0x40, uint32_t(lists));
    rig.driver.write(0x48, 2 | 16 << 16);
    const std::array<uint32_t, 3> header_bytes = {54, 70, 70}, rest = {64 + 4, 64 + 4, 4};   // with the ICRC
    const std::array<uint8_t, 3> opcodes = {Ernic::kSend, Ernic::kWrite, Ernic::kRead};
    for (uint32_t n = 0; n < 3; n++) {
        rig.post(opcodes[n], rig.buffer, 64, 0x1000, 0x1234);
        ASSERT_EQ(rig.host.frames.size(), n + 1);
        const uint32_t *list = rig.host.as<uint32_t>(lists + n % 2 * 16);
        EXPECT_EQ(list[0], uint32_t(buffers) + n * 128) << n;
        EXPECT_EQ(list[1], header_bytes[n]) << n;
        EXPECT_EQ(list[2], 0u) << n;
        EXPECT_EQ(list[3], rest[n]) << n;
        EXPECT_EQ(std::memcmp(rig.host.at(list[0]), rig.host.frames[n].data(), header_bytes[n]), 0) << n;
        // Tail and head are behind it.
        EXPECT_EQ(rig.driver.read(0x124) >> 16, ((n + 1) % 2) * 0x0101u) << n;
    }
    // A link that is full keeps the list: the head is behind it, the tail is not.
    rig.host.link_full = true;
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.read(0x124) >> 16, 0x0001u);
    rig.host.link_full = false;
    rig.driver.device.link_ready();
    EXPECT_EQ(rig.driver.read(0x124) >> 16, 0x0000u);
}

TEST(ErnicSends, ListsThatAreShortAreNotUsed)
{
    for (const uint32_t size : {15u << 16 | 2, 16u << 16}) {
        Rig rig(etrnic());
        const uint64_t buffers = rig.host.alloc(3 * 128), lists = rig.host.alloc(2 * 16);
        rig.driver.write(0x30, uint32_t(buffers));
        rig.driver.write(0x38, 3 | 128 << 16);
        rig.driver.write(0x40, uint32_t(lists));
        rig.driver.write(0x48, size);
        rig.post(Ernic::kSend, rig.buffer, 64);
        EXPECT_EQ(rig.host.frames.size(), 1u);
        EXPECT_EQ(*rig.host.as<uint32_t>(lists), 0u);
        EXPECT_EQ(rig.driver.read(0x124) >> 16, 0u);
    }
}

// A list that is not there, and one in the place of the headers that it names: the frame has what memory has.
TEST(ErnicSends, ListsInBadPlaces)
{
    Rig rig(etrnic());
    const uint64_t buffers = rig.host.alloc(3 * 128);
    rig.driver.write(0x30, uint32_t(buffers));
    rig.driver.write(0x38, 3 | 128 << 16);
    rig.driver.write(0x40, 0x1000);
    rig.driver.write(0x48, 2 | 16 << 16);
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(rig.driver.device.stats.dma_errors, 1u);
    rig.driver.write(0x40, uint32_t(buffers));
    rig.host.clock_ns = rig.host.deadline_ns;
    rig.driver.expire();
    while (rig.driver.has_work())
        rig.driver.run();
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(std::memcmp(rig.host.frames[0].data(), rig.host.at(buffers), 54), 0);
}

// With QPCONF bit 4 doorbells go to memory. Without it they go by pins, which the model lacks.
TEST(ErnicSends, Doorbells)
{
    for (const bool in_memory : {false, true}) {
        Rig rig({}, in_memory ? 0x3c : 0x2c);
        const uint64_t cq = rig.host.alloc(8), rq = rig.host.alloc(8);
        rig.driver.write_qp(kQpn, Ernic::kCqDoorbell, uint32_t(cq));
        rig.driver.write_qp(kQpn, Ernic::kRqDoorbell, uint32_t(rq));
        rig.post(Ernic::kSend, rig.buffer, 64);
        rig.acknowledge(0x100);
        rig.receive(Rig::send());
        EXPECT_EQ(*rig.host.as<uint32_t>(cq), in_memory ? 1u : 0);
        EXPECT_EQ(*rig.host.as<uint32_t>(rq), in_memory ? 1u : 0);
        EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
        EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
        EXPECT_EQ(rig.driver.device.stats.pin_doorbells, in_memory ? 0u : 2u);
    }
}

// ---- interrupts

TEST(ErnicInterrupts, BanksAreWhatBitsFourAndSixShow)
{
    Rig rig;
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 1u << 6);
    EXPECT_EQ(rig.driver.read(Ernic::kRqBanks), 1u << kQpn);
    rig.driver.write(Ernic::kIntStatus, 1u << 6);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 1u << 6);
    rig.driver.write(Ernic::kRqBanks, 1u << kQpn);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 0u);
}

TEST(ErnicInterrupts, TheLineIsALevelThatIntenGates)
{
    Rig rig;
    rig.driver.write(Ernic::kIntEnable, 0);
    rig.receive(Rig::send());
    EXPECT_TRUE(rig.host.vectors.empty());
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 1u << 6);
    rig.driver.write(Ernic::kIntEnable, 1u << 6);
    EXPECT_EQ(rig.host.take_vectors(0), 1u);
    // It is asserted already.
    rig.receive(Rig::send(kFirstPsn + 1));
    EXPECT_EQ(rig.host.take_vectors(0), 0u);
    // A write that leaves a source pending: a message again.
    rig.driver.write(Ernic::kIntStatus, 1);
    EXPECT_EQ(rig.host.take_vectors(0), 1u);
    const unsigned lowered = rig.host.lowered;
    rig.driver.write(Ernic::kRqBanks, 1u << kQpn);
    EXPECT_EQ(rig.host.lowered, lowered + 1);
    EXPECT_EQ(rig.host.take_vectors(0), 0u);
}

TEST(ErnicInterrupts, AQpCanBeQuiet)
{
    Rig rig({}, 0x20);
    rig.receive(Rig::send());
    rig.post(Ernic::kSend, rig.buffer, 64);
    rig.acknowledge(0x100);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 0u);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
}

// ---- QP 1

TEST(ErnicMads, WholeFramesWithoutTheIcrcBothWays)
{
    Rig rig;
    const uint64_t sq = rig.host.alloc(kDepth * 64), rq = rig.host.alloc(kDepth * 512), cq = rig.host.alloc(4);
    // QP 1 has no register for the receive index: its doorbell tells.
    const uint64_t doorbell = rig.host.alloc(4);
    auto written = [&] { return *rig.host.as<uint32_t>(doorbell); };
    QpAttributes a{};
    a.mtu = 1024;
    rig.driver.configure(1, a, {sq, 0, rq, kDepth, kDepth, 512, 0x1c}, 0, 0);
    rig.driver.write_qp(1, Ernic::kRqDoorbell, uint32_t(doorbell));
    rig.driver.write_qp(1, Ernic::kCqDoorbell, uint32_t(cq));
    rig.driver.enable(1);
    Frame mad = Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1});
    put(mad, 49, 1);
    seal(mad);
    rig.receive(mad);
    EXPECT_EQ(written(), 1u);
    EXPECT_EQ(std::memcmp(rig.host.at(rq), mad.data(), mad.size() - 4), 0);
    EXPECT_EQ(rig.host.at(rq)[mad.size() - 4], 0);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsIn), 1u << 16);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 1u << 1 | 1u << 6);
    // Back it goes, and the device adds the ICRC, which does not cover MAC addresses.
    std::swap_ranges(mad.begin(), mad.begin() + 6, mad.begin() + 6);
    std::memcpy(rig.host.at(rig.buffer), mad.data(), mad.size() - 4);
    ErnicWqe wqe{};
    wqe.opcode = Ernic::kSend;
    wqe.laddr = rig.buffer;
    wqe.length = uint32_t(mad.size() - 4);
    std::memcpy(rig.host.at(sq), &wqe, sizeof(wqe));
    rig.driver.write_sqpi(1, 1);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(rig.host.frames[0], mad);
    EXPECT_EQ(rig.driver.cqhead(1), 1);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), 1u << 16);
    // One with as many options as an IP header can have is not sent: 60 bytes of it.
    Frame optional(mad.begin(), mad.end() - 4);
    optional.insert(optional.begin() + 34, 40, 1);
    put(optional, 14, 0x4f);
    std::memcpy(rig.host.at(rig.buffer), optional.data(), optional.size());
    wqe.length = uint32_t(optional.size());
    std::memcpy(rig.host.at(sq + 64), &wqe, sizeof(wqe));
    rig.driver.write_sqpi(1, 2);
    EXPECT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(rig.driver.cqhead(1), 2);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), 1u << 16);
    // A slot is too short.
    Frame longer = Rig::packet(0x64, 7, bytes(512), {0x80, 1, 0, 0, 0, 0, 0, 1});
    put(longer, 49, 1);
    seal(longer);
    rig.receive(longer);
    EXPECT_EQ(written(), 1u);
    EXPECT_EQ(rig.driver.device.stats.mads_dropped, 1u);
}

// The CM connects a device to itself.
TEST(ErnicMads, ToItself)
{
    Rig rig;
    const uint64_t sq = rig.host.alloc(kDepth * 64), rq = rig.host.alloc(kDepth * 512), doorbell = rig.host.alloc(4);
    QpAttributes a{};
    a.mtu = 1024;
    rig.driver.configure(1, a, {sq, 0, rq, kDepth, kDepth, 512, 0x1c}, 0, 0);
    rig.driver.write_qp(1, Ernic::kRqDoorbell, uint32_t(doorbell));
    rig.driver.write_qp(1, Ernic::kCqDoorbell, uint32_t(rig.host.alloc(4)));
    rig.driver.enable(1);
    Frame mad = Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1});
    put(mad, 49, 1);
    std::memcpy(rig.host.at(rig.buffer), mad.data(), mad.size() - 4);
    for (unsigned n = 0; n < kDepth - 1; n++) {
        ErnicWqe wqe{};
        wqe.opcode = Ernic::kSend;
        wqe.laddr = rig.buffer;
        wqe.length = uint32_t(mad.size() - 4);
        std::memcpy(rig.host.at(sq + n * 64), &wqe, sizeof(wqe));
    }
    rig.driver.write_sqpi(1, 1);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(*rig.host.as<uint32_t>(doorbell), 1u);
    EXPECT_EQ(std::memcmp(rig.host.at(rq), mad.data(), mad.size() - 4), 0);
    EXPECT_EQ(rig.driver.cqhead(1), 1);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsIn), 1u << 16);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), 1u << 16);
    // One to another IP address is invalid, wherever it comes from.
    put(mad, 33, 9);
    std::memcpy(rig.host.at(rig.buffer), mad.data(), mad.size() - 4);
    rig.driver.write_sqpi(1, 2);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(*rig.host.as<uint32_t>(doorbell), 1u);
    EXPECT_EQ(rig.driver.cqhead(1), 2);
}

// As all that a guest can make long.
TEST(ErnicMads, TheyEndWithTheSlice)
{
    ernic::Config config;
    config.slice_work = 2;
    Rig rig(config);
    const uint64_t sq = rig.host.alloc(kDepth * 64);
    QpAttributes a{};
    a.mtu = 1024;
    rig.driver.configure(1, a, {sq, 0, 0, kDepth, kDepth, 512, 0}, 0, 0);
    rig.driver.enable(1);
    Frame mad = Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1});
    put(mad, 49, 1);
    std::swap_ranges(mad.begin(), mad.begin() + 6, mad.begin() + 6);
    std::memcpy(rig.host.at(rig.buffer), mad.data(), mad.size() - 4);
    for (unsigned n = 0; n < 5; n++) {
        ErnicWqe wqe{};
        wqe.opcode = Ernic::kSend;
        wqe.laddr = rig.buffer;
        wqe.length = uint32_t(mad.size() - 4);
        std::memcpy(rig.host.at(sq + n * 64), &wqe, sizeof(wqe));
    }
    rig.driver.write_sqpi(1, 5);
    EXPECT_EQ(rig.host.frames.size(), 2u);
    // A link that is full keeps the next one.
    rig.host.link_full = true;
    rig.driver.run();
    EXPECT_EQ(rig.host.frames.size(), 2u);
    EXPECT_FALSE(rig.driver.has_work());
    rig.host.link_full = false;
    rig.driver.device.link_ready();
    EXPECT_EQ(rig.host.frames.size(), 4u);
    EXPECT_TRUE(rig.driver.has_work());
    rig.driver.run();
    EXPECT_EQ(rig.host.frames.size(), 5u);
    EXPECT_EQ(rig.driver.cqhead(1), 5);
}

// ---- the Ethernet adapter behind the device

ernic::Config with_ethernet()
{
    ernic::Config config;
    config.ethernet = true;
    return config;
}

// A frame that differs from a SEND in one thing, and whether the device has it (004:58: RDMA alone).
struct Steered {
    const char *name;
    bool is_rdma;
    void (*change)(Frame &f);
};
// Over IPv6, from a SEND over IPv4.
void make_ipv6(Frame &f)
{
    f.erase(f.begin() + 14, f.begin() + 34);
    f.insert(f.begin() + 14, 40, 0);
    put(f, 12, 0x86);
    put(f, 13, 0xdd);
    put(f, 14, 0x60);
    put(f, 19, uint8_t(f.size() - 54));
    put(f, 20, 17);
}
const Steered kSteered[] = {
    {"RoCE", true, [](Frame &) {}},
    {"RoCEOverIpv6", true, make_ipv6},
    {"OptionsOfIpv4", true, [](Frame &f) { f.insert(f.begin() + 34, 4, 1); put(f, 14, 0x46); }},
    {"FirstFragment", true, [](Frame &f) { put(f, 20, 0x20); }},
    {"WrongIcrc", true, [](Frame &f) { f.back() ^= 1; }},
    {"UdpHeaderAlone", true, [](Frame &f) { f.resize(42); }},
    {"NextFragment", false, [](Frame &f) { put(f, 21, 1); }},
    {"LastFragment", false, [](Frame &f) { put(f, 20, 0x1f); }},
    {"CutOffInUdp", false, [](Frame &f) { f.resize(41); }},
    {"CutOffInEthernet", false, [](Frame &f) { f.resize(13); }},
    {"OtherPort", false, [](Frame &f) { put(f, 37, uint8_t(f[37] + 1)); }},
    {"FromThePort", false, [](Frame &f) { std::swap(f[34], f[36]); std::swap(f[35], f[37]); }},
    {"OtherPortOfIpv6", false, [](Frame &f) { make_ipv6(f); put(f, 57, uint8_t(f[57] + 1)); }},
    {"Tcp", false, [](Frame &f) { put(f, 23, 6); }},
    {"TcpOverIpv6", false, [](Frame &f) { make_ipv6(f); put(f, 20, 6); }},
    {"Arp", false, [](Frame &f) { put(f, 13, 6); }},
    {"OtherMac", false, [](Frame &f) { put(f, 5, 9); }},
    {"Broadcast", false, [](Frame &f) { std::fill_n(f.begin(), 6, uint8_t(0xff)); }},
    {"Multicast", false, [](Frame &f) { put(f, 0, 3); }},
    {"Tagged", false, [](Frame &f) { f.insert(f.begin() + 12, {0x81, 0, 0, 5}); }},
};

class ErnicSteering : public ::testing::TestWithParam<Steered> {};

TEST_P(ErnicSteering, AFrameIsForOneOfTheTwo)
{
    Rig rig(with_ethernet());
    Frame frame = Rig::send();
    GetParam().change(frame);
    rig.receive(frame);
    EXPECT_EQ(rig.host.passed, GetParam().is_rdma ? std::vector<Frame>{} : std::vector<Frame>{frame});
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped) & 0xffff, GetParam().is_rdma ? 1u : 0);
    EXPECT_EQ(rig.driver.device.stats.frames_passed, GetParam().is_rdma ? 0u : 1);
    // Without an adapter, the device has them all.
    Rig alone;
    alone.receive(frame);
    EXPECT_TRUE(alone.host.passed.empty());
    EXPECT_EQ(alone.driver.device.stats.frames_passed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Frames, ErnicSteering, ::testing::ValuesIn(kSteered),
                         [](const auto &info) { return info.param.name; });

// The registers have the address: after a reset, no frame is the device's. One that is disabled takes its own, for its
// peers must not be told that nobody listens there.
TEST(ErnicEthernet, TheAddressIsThatOfTheRegisters)
{
    Rig rig(with_ethernet());
    rig.driver.write(Ernic::kConf, 0);
    rig.receive(Rig::send());
    EXPECT_TRUE(rig.host.passed.empty());
    rig.driver.device.reset();
    rig.receive(Rig::send());
    EXPECT_EQ(rig.host.passed.size(), 1u);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 0u);
}

TEST(ErnicEthernet, WhatTheAdapterDoesNotTakeIsCounted)
{
    Rig rig(with_ethernet());
    Frame frame = Rig::send();
    put(frame, 23, 6);
    rig.host.adapter_full = true;
    rig.receive(frame);
    EXPECT_EQ(rig.driver.device.stats.frames_overrun, 1u);
    // The device is not held up by it.
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
    rig.host.adapter_full = false;
    rig.receive(frame);
    EXPECT_EQ(rig.driver.device.stats.frames_overrun, 1u);
    EXPECT_EQ(rig.host.passed.size(), 1u);
}

TEST(ErnicEthernet, FramesOfTheAdapterGoToTheLink)
{
    Rig rig(with_ethernet());
    Frame frame = Rig::send();
    const iovec parts[2] = {{frame.data(), 20}, {frame.data() + 20, frame.size() - 20}};
    EXPECT_EQ(rig.driver.device.forward(parts), FrameSent::Yes);
    EXPECT_EQ(rig.host.frames, std::vector<Frame>{frame});
    rig.host.link_full = true;
    EXPECT_EQ(rig.driver.device.forward(parts), FrameSent::LinkFull);
    EXPECT_EQ(rig.driver.device.stats.frames_forwarded, 1u);
}

// ---- the public limits of the real core

ernic::Config strict()
{
    ernic::Config config;
    config.strict = true;
    return config;
}

// PG332, unsupported features: WRITEs and READs of a peer.
struct Limit {
    const char *name;
    bool is_read;
    uint32_t offset, length;
    bool is_taken;
};
constexpr Limit kLimits[] = {
    {"Write64", false, 0, 64, true},          {"WriteAt64", false, 64, 128, true},
    {"WriteAt32", false, 32, 64, false},      {"WriteAt1", false, 1, 64, false},
    {"Write65", false, 0, 65, false},         {"Write1", false, 0, 1, false},
    {"Write8Mb", false, 0, 8 << 20, true},    {"WriteOver8Mb", false, 0, (8 << 20) + 64, false},
    {"Read64", true, 0, 64, true},            {"ReadAt64", true, 64, 128, true},
    {"ReadAt32", true, 32, 64, false},        {"Read63", true, 0, 63, false},
    {"Read4", true, 0, 4, false},             {"Read1", true, 0, 1, false},
    {"Read0", true, 0, 0, true},              {"Read8Mb", true, 0, 8 << 20, true},
    {"ReadOver8Mb", true, 0, (8 << 20) + 64, false},
};

class ErnicStrict : public ::testing::TestWithParam<Limit> {};

TEST_P(ErnicStrict, APeerKeepsToTheLimits)
{
    const Limit &limit = GetParam();
    for (const bool is_strict : {false, true}) {
        Rig rig(is_strict ? strict() : ernic::Config{});
        const uint64_t memory = rig.host.alloc(64 << 10);
        rig.driver.write_pd(0x30, {.pd = 9, .va = 0x10000000, .bytes = 16 << 20, .base = memory, .key = 0x5a, .access = 2});
        auto extension = reth(0x305a, limit.length);
        extension[7] = uint8_t(limit.offset);
        const bool several = limit.length > 1024;
        if (limit.is_read)
            rig.receive(Rig::packet(0x0c, kFirstPsn, {}, extension));
        else
            rig.receive(Rig::packet(several ? 0x06 : 0x0a, kFirstPsn, bytes(several ? 1024 : limit.length), extension));
        const bool is_taken = limit.is_taken || !is_strict;
        // Without the limits, memory may end: that is another code.
        EXPECT_EQ(rig.driver.fatal_code(kQpn) == 0x20, !is_taken) << is_strict;
        if (!is_taken) {
            ASSERT_EQ(rig.host.frames.size(), 1u);
            EXPECT_EQ(View(rig.host.frames[0]).syndrome, 0x62);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicStrict, ::testing::ValuesIn(kLimits), [](const auto &info) { return info.param.name; });

TEST(ErnicLimits, AWqeOfMoreThan8Mb)
{
    for (const bool is_strict : {false, true})
        for (const uint8_t opcode : {Ernic::kWrite, Ernic::kSend, Ernic::kRead})
            for (const uint32_t length : {8u << 20, (8u << 20) + 1}) {
                Rig rig(is_strict ? strict() : ernic::Config{});
                rig.post(opcode, rig.buffer, length);
                EXPECT_EQ(rig.driver.device.stats.illegal_wqes, is_strict && length > 8u << 20 ? 1u : 0u);
            }
}

// ---- flow control

// IEEE 802.1Q, clause 36: a frame for one priority; IEEE 802.3, annex 31B: one without.
Frame mac_control(uint16_t opcode, std::vector<uint16_t> words)
{
    Frame f = {0x01, 0x80, 0xc2, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x02, 0x88, 0x08, uint8_t(opcode >> 8), uint8_t(opcode)};
    for (const uint16_t word : words) {
        f.push_back(uint8_t(word >> 8));
        f.push_back(uint8_t(word));
    }
    f.resize(60);
    return f;
}
Frame pfc(unsigned priority, uint16_t quanta)
{
    std::vector<uint16_t> words(9);
    words[0] = uint16_t(1 << priority);
    words[1 + priority] = quanta;
    return mac_control(0x0101, words);
}
constexpr uint32_t kRoceThreshold = 0x08, kPauseConf = 0x0c, kOtherThreshold = 0x18;
// RoCE with priority 3, others with priority 5.
constexpr uint32_t kPauseBoth = 1 | 2 | 3 << 4 | 5 << 8;

bool may_forward(Rig &rig)
{
    Frame frame = Rig::send();
    const iovec part{frame.data(), frame.size()};
    return rig.driver.device.forward({&part, 1}) == FrameSent::Yes;
}

// 004:86: a pause of the peer stops what is sent of its class, and nothing else.
TEST(ErnicFlowControl, APauseStopsItsClass)
{
    struct Case {
        const char *what;
        uint32_t conf;
        Frame frame;
        bool stops_roce, stops_other;
    };
    const Case cases[] = {
        {"RoCE", kPauseBoth, pfc(3, 100), true, false},
        {"others", kPauseBoth, pfc(5, 100), false, true},
        {"another priority", kPauseBoth, pfc(4, 100), false, false},
        {"not enabled", kPauseBoth & ~3u, pfc(3, 100), false, false},
        {"RoCE alone is enabled", kPauseBoth & ~2u, pfc(5, 100), false, false},
        {"priority 8, which there is not", (kPauseBoth & ~0xf0u) | 8 << 4, pfc(7, 100), false, false},
        {"no priority", kPauseBoth, mac_control(1, {100}), false, false},
        {"no priority, with bit 13", kPauseBoth | 1 << 13, mac_control(1, {100}), true, true},
        {"time 0", kPauseBoth, pfc(3, 0), false, false},
    };
    for (const Case &c : cases) {
        Rig rig(with_ethernet());
        rig.driver.write(kPauseConf, c.conf);
        rig.receive(c.frame);
        EXPECT_TRUE(rig.host.passed.empty()) << c.what;
        rig.post(Ernic::kSend, rig.buffer, 64);
        EXPECT_EQ(rig.host.frames.empty(), c.stops_roce) << c.what;
        rig.host.frames.clear();
        EXPECT_EQ(!may_forward(rig), c.stops_other) << c.what;
        rig.host.frames.clear();
        // 100 times 512 bits at 100 Gbit/s are 512 ns.
        rig.host.clock_ns += 512;
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
        EXPECT_EQ(rig.host.frames.size(), c.stops_roce ? 1u : 0) << c.what;
        EXPECT_TRUE(may_forward(rig)) << c.what;
    }
}

TEST(ErnicFlowControl, APauseOfTimeZeroEndsOne)
{
    Rig rig(with_ethernet());
    rig.driver.write(kPauseConf, kPauseBoth);
    rig.receive(pfc(3, 0xffff));
    rig.receive(pfc(5, 0xffff));
    rig.post(Ernic::kSend, rig.buffer, 64);
    rig.receive(pfc(3, 0));
    EXPECT_EQ(rig.host.frames.size(), 1u);
    EXPECT_FALSE(may_forward(rig));
    // So does a reset.
    rig.driver.device.reset();
    EXPECT_TRUE(may_forward(rig));
}

// MADs are of RoCE.
TEST(ErnicFlowControl, MadsArePaused)
{
    Rig rig;
    const uint64_t sq = rig.host.alloc(kDepth * 64);
    QpAttributes a{};
    a.mtu = 1024;
    rig.driver.configure(1, a, {sq, 0, 0, kDepth, kDepth, 512, 0}, 0, 0);
    rig.driver.enable(1);
    rig.driver.write(kPauseConf, kPauseBoth);
    Frame mad = Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1});
    std::swap_ranges(mad.begin(), mad.begin() + 6, mad.begin() + 6);
    std::memcpy(rig.host.at(rig.buffer), mad.data(), mad.size() - 4);
    ErnicWqe wqe{};
    wqe.opcode = Ernic::kSend;
    wqe.laddr = rig.buffer;
    wqe.length = uint32_t(mad.size() - 4);
    std::memcpy(rig.host.at(sq), &wqe, sizeof(wqe));
    rig.receive(pfc(3, 100));
    rig.driver.write_sqpi(1, 1);
    EXPECT_TRUE(rig.host.frames.empty());
    rig.receive(pfc(3, 0));
    EXPECT_EQ(rig.host.frames.size(), 1u);
}

// 004:74: with fewer than XON lines free the peer is paused, with XOFF lines free no more. The buffer has 512 lines of 1024
// bytes; a frame of 1078 bytes is taken in 8.7 us at 1 Gbit/s.
TEST(ErnicFlowControl, ThresholdsCountFreeLines)
{
    for (const bool other : {false, true}) {
        ernic::Config config = with_ethernet();
        config.drain_mbps = {1000, 1000};
        Rig rig(config);
        rig.driver.write(kPauseConf, kPauseBoth);
        // From 500 lines in use on, until 400 are.
        rig.driver.write(other ? kOtherThreshold : kRoceThreshold, 12 | 112 << 16);
        Frame frame = Rig::packet(0x04, kFirstPsn, bytes(1024));
        if (other)
            put(frame, 23, 6);
        ASSERT_EQ(frame.size(), 1082u);
        const unsigned to_pause = 500 * 1024 / 1082 + 1;   // that wait; one more is on its way
        for (unsigned n = 0; n < to_pause; n++)
            rig.receive(frame);
        EXPECT_EQ(rig.driver.device.counters.tx_pause, 0u);
        rig.host.frames.clear();
        rig.receive(frame);
        ASSERT_GE(rig.host.frames.size(), 1u);
        const Frame &pause = rig.host.frames.back();
        EXPECT_EQ(std::memcmp(pause.data(), mac_control(0x0101, {}).data(), 6), 0);
        EXPECT_EQ(std::memcmp(pause.data() + 6, kMac.data(), 6), 0);
        EXPECT_EQ(pause[17], other ? 1u << 5 : 1u << 3);
        EXPECT_EQ(pause[18 + 2 * (other ? 5 : 3)], 0xff);
        // The buffer overflows, if the peer goes on.
        for (unsigned n = 0; n < 100; n++)
            rig.receive(frame);
        EXPECT_GT(rig.driver.device.counters.rx_buffer_overflow, 0u);
        // As it empties, a frame with time 0 comes when 400 lines are in use.
        auto resumed = [&] {
            bool last = false;
            for (const Frame &f : rig.host.frames)
                if (f[12] == 0x88 && f[13] == 0x08)
                    last = f[17] && !f[18 + 2 * (other ? 5 : 3)];
            return last;
        };
        const uint64_t start = rig.host.clock_ns;
        rig.host.clock_ns = start + 90 * (1082 + 4) * 8;
        rig.driver.expire();
        while (rig.driver.has_work())
            rig.driver.run();
        EXPECT_FALSE(resumed());
        rig.host.clock_ns = start + 120 * (1082 + 4) * 8;
        for (unsigned n = 0; n < 20; n++) {
            rig.driver.expire();
            while (rig.driver.has_work())
                rig.driver.run();
        }
        EXPECT_TRUE(resumed());
        // What has waited is received, or passed.
        if (other)
            EXPECT_GE(rig.host.passed.size(), 100u);
        else
            EXPECT_GE(rig.driver.read(Ernic::kAllAndDropped) & 0xffff, 100u);
    }
}

// ---- extensions

TEST(ErnicExtensions, RecordsTellTheLength)
{
    ernic::Config config;
    config.extensions = 3;
    Rig rig(config);
    const uint64_t ring = rig.host.alloc(3 * 16);
    rig.driver.write(0x1e4, uint32_t(ring));
    rig.driver.write(0x1ec, 3);
    rig.driver.write(0x1e0, 1);
    EXPECT_EQ(rig.driver.read(0x1e0), 3u << 16 | 1);
    rig.receive(Rig::packet(0x04, kFirstPsn, bytes(5)));
    rig.receive(Rig::packet(0x05, kFirstPsn + 1, bytes(6), {1, 2, 3, 4}));
    rig.receive(Rig::packet(0x17, kFirstPsn + 2, bytes(7), {0, 0, 0x30, 0x5a}));
    rig.receive(Rig::packet(0x04, kFirstPsn + 3, bytes(8)));
    // QP, slot, opcode, flags: bit 7 is the round; length; immediate data or R_Key.
    const uint8_t fourth[16] = {kQpn, 0, 4, 0, 0x04, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0};
    const uint8_t second[16] = {kQpn, 0, 2, 0, 0x05, 0x80, 0, 0, 6, 0, 0, 0, 1, 2, 3, 4};
    const uint8_t third[16] = {kQpn, 0, 3, 0, 0x17, 0x80, 0, 0, 7, 0, 0, 0, 0, 0, 0x30, 0x5a};
    EXPECT_EQ(std::memcmp(rig.host.at(ring), fourth, 16), 0);
    EXPECT_EQ(std::memcmp(rig.host.at(ring + 16), second, 16), 0);
    EXPECT_EQ(std::memcmp(rig.host.at(ring + 32), third, 16), 0);
    EXPECT_EQ(rig.driver.read(0x1f0), 1u);
}

// The public entry: 31:0 data, 39:32 type, 47:40 QP, 63:48 RQ producer index. A SEND without either has none.
TEST(ErnicExtensions, EntriesOfImmediateDataWithoutThem)
{
    Rig rig;
    const uint64_t ring = rig.host.alloc(2 * 8);
    rig.driver.write(0x1e4, uint32_t(ring));
    rig.driver.write(0x1ec, 2);
    rig.driver.write(0x1e0, 0xffff);
    rig.receive(Rig::packet(0x04, kFirstPsn, bytes(5)));
    EXPECT_EQ(rig.driver.read(0x1f0), 0u);
    EXPECT_EQ(rig.host.at(ring)[5], 0);
    rig.receive(Rig::packet(0x05, kFirstPsn + 1, bytes(6), {1, 2, 3, 4}));
    EXPECT_EQ(rig.driver.read(0x1f0), 1u);
    rig.receive(Rig::packet(0x17, kFirstPsn + 2, bytes(7), {0, 0, 0x30, 0x5a}));
    const uint8_t second[8] = {1, 2, 3, 4, 0x05, kQpn, 2, 0};
    const uint8_t third[8] = {0, 0, 0x30, 0x5a, 0x17, kQpn, 3, 0};
    EXPECT_EQ(std::memcmp(rig.host.at(ring), second, 8), 0);
    EXPECT_EQ(std::memcmp(rig.host.at(ring + 8), third, 8), 0);
    // The ring goes round.
    EXPECT_EQ(rig.driver.read(0x1f0), 0u);
    rig.receive(Rig::packet(0x05, kFirstPsn + 3, bytes(8), {5, 6, 7, 8}));
    const uint8_t fourth[8] = {5, 6, 7, 8, 0x05, kQpn, 4, 0};
    EXPECT_EQ(std::memcmp(rig.host.at(ring), fourth, 8), 0);
    EXPECT_EQ(rig.driver.read(0x1f0), 1u);
    EXPECT_EQ(rig.driver.device.stats.records, 3u);
}

TEST(ErnicExtensions, NoEntriesWithoutARing)
{
    Rig rig;
    const uint64_t ring = rig.host.alloc(2 * 8);
    rig.driver.write(0x1e4, uint32_t(ring));
    rig.receive(Rig::packet(0x05, kFirstPsn, bytes(6), {1, 2, 3, 4}));
    EXPECT_EQ(rig.driver.read(0x1f0), 0u);
    EXPECT_EQ(rig.host.at(ring)[0], 0);
    EXPECT_EQ(rig.driver.device.stats.records, 0u);
}

TEST(ErnicExtensions, AnEtrnicHasNoEntries)
{
    ernic::Config config;
    config.personality = ernic::Personality::Etrnic;
    config.qps = ERNIC_QPS_ETRNIC;
    Rig rig(config);
    const uint64_t ring = rig.host.alloc(2 * 8);
    rig.driver.write(0x1e4, uint32_t(ring));
    rig.driver.write(0x1ec, 2);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.read(0x1f0), 0u);
    EXPECT_EQ(rig.driver.device.stats.records, 0u);
}

TEST(ErnicExtensions, AnEntryNamesPages)
{
    ernic::Config config;
    config.extensions = 3;
    Rig rig(config);
    rig.driver.write(0x1e0, 2);
    const uint64_t list = rig.host.alloc(16), second = rig.host.alloc(4096), first = rig.host.alloc(4096);
    *rig.host.as<uint64_t>(list) = first;
    *rig.host.as<uint64_t>(list + 8) = second;
    // The range begins 64 bytes before the end of its first page.
    rig.driver.write_pd(0x30, {.pd = 9, .va = 0x10000fc0, .bytes = 256, .base = list, .key = 0x5a, .access = 1 | 4});
    std::vector<uint8_t> data(128);
    for (size_t i = 0; i < data.size(); i++)
        data[i] = uint8_t(i);
    auto extension = reth(0x305a, 128);
    extension[6] = 0x0f;   // address 0x10000fc0
    extension[7] = 0xc0;
    rig.receive(Rig::packet(0x0a, kFirstPsn, data, extension));
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    EXPECT_EQ(std::memcmp(rig.host.at(first + 0xfc0), data.data(), 64), 0);
    EXPECT_EQ(std::memcmp(rig.host.at(second), data.data() + 64, 64), 0);
}

// ---- enabling and disabling

// The rings stand where the registers say, whatever the depth: one that is no power of two goes round 2^16 too.
TEST(ErnicQueues, IndicesGoRoundManyTimes)
{
    Rig rig;
    rig.driver.disable(kQpn);
    rig.driver.write_qp(kQpn, Ernic::kDepths, 3 | 3 << 16);
    rig.driver.enable(kQpn);
    for (uint32_t n = 0; n < 66000; n++) {
        rig.receive(Rig::packet(0x04, (kFirstPsn + n) & 0xffffff, {uint8_t(n), uint8_t(n >> 8)}));
        const uint16_t index = uint16_t(n % 3 + 1);
        ASSERT_EQ(rig.driver.rq_written(kQpn), index) << n;
        ASSERT_EQ(rig.slot(n % 3, 2), (std::vector<uint8_t>{uint8_t(n), uint8_t(n >> 8)})) << n;
        rig.driver.write_rqci(kQpn, index);
        ErnicWqe wqe{};
        wqe.opcode = Ernic::kSend;
        wqe.length = 1;
        wqe.sdata[0] = uint8_t(n);
        std::memcpy(rig.host.at(rig.queues.sqba + n % 3 * 64), &wqe, sizeof(wqe));
        rig.host.frames.clear();
        rig.driver.write_sqpi(kQpn, index);
        while (rig.driver.has_work())
            rig.driver.run();
        ASSERT_EQ(rig.host.frames.size(), 1u) << n;
        ASSERT_EQ(rig.host.frames[0].at(54), uint8_t(n)) << n;
        rig.acknowledge((0x100 + n) & 0xffffff);
        ASSERT_EQ(rig.driver.cqhead(kQpn), index) << n;
    }
}

TEST(ErnicQueues, NothingHappensWhileTheDeviceIsOff)
{
    Rig rig;
    rig.driver.write(Ernic::kConf, 0);
    rig.receive(Rig::send());
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 0u);
    rig.driver.write(Ernic::kConf, 1 | 255 << 8);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
}

// XRNICCONF 15:8: the QPs behind that number are off.
TEST(ErnicQueues, NumberOfQpsEnabled)
{
    Rig rig;
    rig.open_error_buffer();
    rig.driver.write(Ernic::kConf, 1 | 1 << 5 | (kQpn - 1) << 8);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.syndrome(), 1u << 15);
    rig.driver.write(Ernic::kConf, 1 | 1 << 5 | kQpn << 8);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
}

// QPCONF bit 6 of the ERNIC: what has begun ends, nothing begins, nothing is received.
TEST(ErnicQueues, Recovery)
{
    Rig rig;
    rig.post(Ernic::kSend, rig.buffer, 64);
    rig.driver.write_qp(kQpn, Ernic::kQpConf, rig.driver.read_qp(kQpn, Ernic::kQpConf) | 1 << 6);
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(rig.status() & 0x600, 0x600u);
    rig.receive(Rig::send());
    EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
    EXPECT_TRUE(rig.driver.read(0x13c) >> 16 & 1);
    rig.driver.disable(kQpn);
    rig.driver.write(Ernic::kAdvancedConf, 1 | kQpn << 24);
    rig.driver.write_qp(kQpn, Ernic::kCqHead, 0);
    rig.driver.write_qp(kQpn, Ernic::kRqProducer, 0);
    rig.driver.write_qp(kQpn, Ernic::kSqProducer, 0);
    rig.driver.write(Ernic::kAdvancedConf, 0);
    rig.driver.write_qp(kQpn, Ernic::kQpConf, (rig.driver.read_qp(kQpn, Ernic::kQpConf) & ~(1u << 6)) | 1);
    rig.tail = 0;
    rig.host.frames.clear();
    rig.post(Ernic::kSend, rig.buffer, 64);
    EXPECT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).psn, 0x101u);
}

// Software knows the PSN of the peer first, and enables the QP to receive; its own it tells before it sends.
TEST(ErnicQueues, StartPsnOfAQpThatHasNotSent)
{
    Rig rig;
    rig.driver.write_qp(kQpn, Ernic::kSqPsn, 0x777);
    rig.post(Ernic::kSend, rig.buffer, 64);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).psn, 0x777u);
    // Not while something is under way.
    rig.driver.write_qp(kQpn, Ernic::kSqPsn, 0x999);
    rig.acknowledge(0x777);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
    EXPECT_EQ(rig.driver.read_qp(kQpn, Ernic::kSqPsn), 0x778u);
}

// What a QP sends to another one of its device never gets to the link, and is refused all the same.
TEST(ErnicQueues, TwoQpsOfOneDevice)
{
    Rig rig;
    const uint64_t sq = rig.host.alloc(kDepth * 64), rq = rig.host.alloc(kDepth * kSlotBytes);
    QpAttributes a{};
    a.mtu = 1024;
    a.pd = 9;
    a.retry_count = a.rnr_retry = 2;
    a.path.dmac = kMac;
    a.path.dip = kIp;
    a.remote_qpn = Qpn(kQpn);
    rig.driver.configure(kQpn + 1, a, {sq, rig.host.alloc(64), rq, kDepth, kDepth, kSlotBytes}, kFirstPsn, 0x100);
    rig.driver.enable(kQpn + 1);
    a.remote_qpn = Qpn(kQpn + 1);
    rig.driver.disable(kQpn);
    rig.driver.configure(kQpn, a, rig.queues, 0x100, kFirstPsn);
    rig.driver.enable(kQpn);
    auto send = [&](uint16_t index, uint32_t length) {
        ErnicWqe wqe{};
        wqe.opcode = Ernic::kSend;
        wqe.laddr = rig.buffer;
        wqe.length = length;
        std::memcpy(rig.host.at(sq + (index - 1) * 64), &wqe, sizeof(wqe));
        rig.driver.write_sqpi(kQpn + 1, index);
        while (rig.driver.has_work())
            rig.driver.run();
    };
    std::memset(rig.host.at(rig.buffer), 0x77, 2000);
    send(1, 64);
    EXPECT_EQ(rig.slot(0, 64), std::vector<uint8_t>(64, 0x77));
    EXPECT_EQ(rig.driver.cqhead(kQpn + 1), 1);
    send(2, 2000);
    EXPECT_TRUE(rig.host.frames.empty());
    EXPECT_EQ(rig.driver.fatal_code(kQpn), Ernic::kLength);
    EXPECT_EQ(rig.driver.fatal_code(kQpn + 1), Ernic::kNak);
}

// The example of the document: eight SENDs of 80 bytes to each of QP 2 to QP 7, eight READs and eight WRITEs of 256 bytes
// from each, with doorbells by pins (seed 000, 813 to 849 and 877 to 894).
TEST(ErnicQueues, ExampleOfTheDocument)
{
    constexpr uint32_t kFirst = 2, kLast = 7, kSends = 8, kBytes = 256;
    Rig rig(etrnic(8));
    std::array<uint64_t, 8> slots{}, sqs{}, cqs{};
    const auto address = [&rig](uint32_t qpn, uint32_t n) { return rig.buffer + (qpn * 8 + n) * kBytes; };
    for (uint32_t qpn = kFirst; qpn <= kLast; qpn++) {
        QpAttributes a{};
        a.mtu = 1024;
        a.path.dmac = kPeerMac;
        a.path.dip = kPeerIp;
        slots[qpn] = rig.host.alloc(16 * 256);
        sqs[qpn] = rig.host.alloc(17 * 64);
        cqs[qpn] = rig.host.alloc(17 * 4);
        rig.driver.disable(qpn);
        rig.driver.configure(qpn, a, {sqs[qpn], cqs[qpn], slots[qpn], 17, 16, 256}, 0, kFirstPsn);
        EXPECT_FALSE(rig.driver.read_qp(qpn, Ernic::kQpConf) >> 4 & 1);
        rig.driver.enable(qpn);
    }
    const auto from_peer = [&](Frame frame, uint32_t qpn) {
        put(frame, 49, uint8_t(qpn));
        seal(frame);
        rig.receive(frame);
    };
    for (uint32_t n = 0; n < kSends; n++)
        for (uint32_t qpn = kFirst; qpn <= kLast; qpn++) {
            std::vector<uint8_t> capsule(80, uint8_t(qpn * 16 + n));
            from_peer(Rig::packet(0x04, kFirstPsn + n, capsule), qpn);
            EXPECT_EQ(std::memcmp(rig.host.at(slots[qpn] + n * 256), capsule.data(), 80), 0);
            EXPECT_EQ(rig.driver.rq_written(qpn), n + 1);
        }
    EXPECT_EQ(rig.driver.read(Ernic::kSendsAndResponses), 48u);
    EXPECT_EQ(rig.driver.read(Ernic::kRqBanks), 0xfcu);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsOut), 48u);
    EXPECT_EQ(rig.driver.device.stats.pin_doorbells, 48u);
    // Eight READs, then eight WRITEs, of each QP.
    for (uint32_t n = 0; n < 2 * kSends; n++)
        for (uint32_t qpn = kFirst; qpn <= kLast; qpn++) {
            const bool is_read = n < kSends;
            ErnicWqe wqe{};
            wqe.wrid = uint16_t(qpn * 100 + n);
            wqe.opcode = is_read ? Ernic::kRead : Ernic::kWrite;
            wqe.laddr = address(qpn, n % kSends);
            wqe.length = kBytes;
            wqe.roffset = 0x12340000 + n * kBytes;
            wqe.rtag = 0xabcd00 + qpn;
            std::memcpy(rig.host.at(sqs[qpn] + n * 64), &wqe, sizeof(wqe));
            rig.host.frames.clear();
            rig.driver.write_sqpi(qpn, uint16_t(n + 1));
            while (rig.driver.has_work())
                rig.driver.run();
            ASSERT_EQ(rig.host.frames.size(), 1u);
            const Frame &request = rig.host.frames[0];
            EXPECT_EQ(View(request).opcode, is_read ? 0x0c : 0x0a);
            EXPECT_EQ(View(request).psn, n);
            // The RETH: address, key and length.
            const auto reth32 = [&request](size_t at) {
                return uint32_t(request[at]) << 24 | uint32_t(request[at + 1]) << 16 | uint32_t(request[at + 2]) << 8 |
                       request[at + 3];
            };
            EXPECT_EQ(reth32(58), 0x12340000 + n * kBytes);
            EXPECT_EQ(reth32(62), 0xabcd00 + qpn);
            EXPECT_EQ(reth32(66), kBytes);
            const std::vector<uint8_t> payload(kBytes, uint8_t(qpn * 16 + n % kSends));
            if (is_read) {
                from_peer(Rig::packet(0x10, n, payload, {0x1f, 0, 0, uint8_t(n + 1)}), qpn);
                EXPECT_EQ(std::memcmp(rig.host.at(address(qpn, n)), payload.data(), kBytes), 0);
            } else {
                // The WRITE has what the READ has brought.
                EXPECT_EQ(std::memcmp(&request[70], payload.data(), kBytes), 0);
                from_peer(Rig::packet(0x11, n, {}, {0x1f, 0, 0, uint8_t(n + 1)}), qpn);
            }
            EXPECT_EQ(rig.driver.cqhead(qpn), n + 1);
            EXPECT_EQ(*rig.host.as<uint32_t>(cqs[qpn] + n * 4), uint32_t(wqe.opcode) << 16 | wqe.wrid);
        }
    EXPECT_EQ(rig.driver.read(Ernic::kIoOut), 96u << 16);
    EXPECT_EQ(rig.driver.read(Ernic::kSendsAndResponses), 48u << 16 | 48);
    EXPECT_EQ(rig.driver.read(Ernic::kAcksAndMadsIn), 48u);
    EXPECT_EQ(rig.driver.read(Ernic::kCqBanks), 0xfcu);
    EXPECT_EQ(rig.driver.device.stats.pin_doorbells, 48u + 96);
    EXPECT_EQ(rig.driver.device.stats.fatal, 0u);
}

// In each state of a QP, whatever its registers, its WQEs and its packets are: the device goes on, and other QPs with it.
TEST(ErnicQueues, HostileInputInEachState)
{
    uint64_t state = 12345;
    const auto draw = [&state] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return uint32_t(state >> 33);
    };
    struct Case {
        const char *what;
        void (*enter)(Rig &rig);
    };
    const Case cases[] = {
        {"disabled", [](Rig &r) { r.driver.disable(kQpn); }},
        {"enabled", [](Rig &) {}},
        {"under recovery",
         [](Rig &r) { r.driver.write_qp(kQpn, Ernic::kQpConf, r.driver.read_qp(kQpn, Ernic::kQpConf) | 1 << 6); }},
        {"fatal", [](Rig &r) { r.receive(Rig::packet(0x01, kFirstPsn, bytes(1024))); }},
        {"waiting", [](Rig &r) { r.post(Ernic::kRead, r.buffer, 4096, 0x1000, 0x1234); }},
    };
    for (const bool is_ernic : {false, true})
        for (const Case &c : cases) {
            Rig rig(is_ernic ? ernic::Config{} : etrnic());
            // Another QP, which the hostile input is not for.
            const uint64_t slots = rig.host.alloc(kDepth * kSlotBytes);
            QpAttributes a{};
            a.mtu = 1024;
            a.path.dmac = kPeerMac;
            a.path.dip = kPeerIp;
            rig.driver.configure(kQpn + 1, a, {0, 0, slots, kDepth, kDepth, kSlotBytes}, 0, kFirstPsn);
            rig.driver.enable(kQpn + 1);
            c.enter(rig);
            for (unsigned n = 0; n < 3000; n++) {
                switch (draw() % 4) {
                case 0: {
                    // Any register of the QP but those that enable it and let it recover.
                    const uint32_t offset = 4 + draw() % 63 * 4;
                    rig.driver.write_qp(kQpn, offset, draw() % 2 ? draw() << 1 : draw() % 20);
                    break;
                }
                case 1: {
                    ErnicWqe wqe{};
                    wqe.opcode = uint8_t(draw() % 16);
                    wqe.length = draw() % 3 ? draw() % 5000 : draw() * 2;
                    wqe.laddr = draw() % 2 ? rig.buffer : draw();
                    std::memcpy(rig.host.at(rig.queues.sqba + draw() % kDepth * 64), &wqe, sizeof(wqe));
                    rig.driver.write_sqpi(kQpn, uint16_t(draw() % (kDepth + 2)));
                    break;
                }
                case 2: {
                    std::vector<uint8_t> extension(draw() % 8 * 4);
                    for (uint8_t &byte : extension)
                        byte = uint8_t(draw());
                    rig.receive(Rig::packet(uint8_t(draw() % 0x18), kFirstPsn + draw() % 4, bytes(draw() % 1100), extension));
                    break;
                }
                default: {
                    Frame frame = Rig::send(kFirstPsn + draw() % 4);
                    for (unsigned changes = 0; changes <= draw() % 4; changes++)
                        frame[draw() % frame.size()] = uint8_t(draw());
                    put(frame, 49, kQpn);
                    if (draw() % 2)
                        frame.resize(draw() % frame.size());
                    else
                        seal(frame);
                    rig.receive(frame);
                }
                }
                rig.host.clock_ns += draw() % 100000;
                rig.driver.expire();
                for (unsigned turns = 0; rig.driver.has_work() && turns < 1000; turns++)
                    rig.driver.run();
                ASSERT_FALSE(rig.driver.has_work()) << c.what;
                rig.host.frames.clear();
            }
            // It has not failed as a whole.
            ASSERT_NE(rig.driver.read(Ernic::kConf), 0xffffffffu) << c.what;
            Frame frame = Rig::send();
            put(frame, 49, kQpn + 1);
            seal(frame);
            rig.receive(frame);
            EXPECT_EQ(rig.driver.rq_written(kQpn + 1), 1) << c.what;
        }
}

}  // namespace
}  // namespace hghca::test::ernic_device_test
