// SPDX-License-Identifier: GPL-2.0-or-later
// Fields of the registers, WQEs and entries of ERNIC and ETRNIC: what each of them does. Offsets, bits and codes are literals
// of seed 000, and of the public register map of PG332 v3 for the ERNIC.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ernic_rig.h"

namespace hghca::test::ernic_fields_test {
namespace {

using namespace ernic_rig;

// Where headers begin in a frame over IPv4.
constexpr size_t kBth = 42, kPayload = 54;
constexpr uint32_t kRkey = 0x305a;   // entry 30, byte 5a

ernic::Config with_records()
{
    ernic::Config config;
    config.extensions = 1;
    return config;
}

void finish(Rig &rig)
{
    while (rig.driver.has_work())
        rig.driver.run();
}

// Time goes to the deadline.
void expire(Rig &rig)
{
    rig.host.clock_ns = rig.host.deadline_ns;
    rig.driver.expire();
    finish(rig);
}

Frame to_qp(Frame frame, uint32_t qpn)
{
    put(frame, kBth + 7, uint8_t(qpn));
    seal(frame);
    return frame;
}

std::vector<uint8_t> big32(uint32_t value)
{
    return {uint8_t(value >> 24), uint8_t(value >> 16), uint8_t(value >> 8), uint8_t(value)};
}

uint32_t word_at(const Frame &f, size_t at)
{
    return uint32_t(f.at(at)) << 24 | uint32_t(f.at(at + 1)) << 16 | uint32_t(f.at(at + 2)) << 8 | f.at(at + 3);
}

// The same over IPv6, from and to addresses of which the last word is given.
Frame over_ipv6(Frame f, uint32_t first, uint32_t from, uint32_t to)
{
    f.erase(f.begin() + 14, f.begin() + 34);
    std::vector<uint8_t> ip(40);
    const size_t bytes = f.size() - 14;
    ip[0] = 0x60;
    ip[4] = uint8_t(bytes >> 8);
    ip[5] = uint8_t(bytes);
    ip[6] = 17;
    ip[7] = 64;
    const auto head = big32(first), source = big32(from), destination = big32(to);
    for (size_t i = 0; i < 4; i++) {
        ip[8 + i] = ip[24 + i] = head[i];
        ip[20 + i] = source[i];
        ip[36 + i] = destination[i];
    }
    f.insert(f.begin() + 14, ip.begin(), ip.end());
    put(f, 12, 0x86);
    put(f, 13, 0xdd);
    seal(f);
    return f;
}

void open_records(Rig &rig, uint64_t ring, uint16_t records)
{
    rig.driver.write(0x1e4, uint32_t(ring));
    rig.driver.write(0x1ec, records);
    rig.driver.write(0x1e0, 1);
}

// The range 10000000 to 1000ffff of the peer, in `buffer`.
void open_region(Rig &rig, uint8_t access = 2)
{
    rig.driver.write_pd(
        0x30, {.pd = 9, .va = 0x10000000, .bytes = 1 << 16, .base = rig.buffer, .key = 0x5a, .access = access});
}

// ---- addresses and headers

// The last of four registers has the first four bytes.
TEST(ErnicFields, OverIpv6)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.open_error_buffer();
        auto send = [](uint32_t psn) { return over_ipv6(Rig::send(psn), 0xfd000000, 2, 1); };
        // The QP is one of IPv4: the address of its peer is the same, as IPv6 ::192.168.0.2.
        rig.receive(over_ipv6(Rig::send(), 0, kPeerIp, kIp));
        EXPECT_EQ(rig.syndrome(), 1u << 2);
        rig.driver.write(0x20, 1);
        rig.driver.write(0x2c, 0xfd000000);
        rig.driver.write_qp(kQpn, 0x60, 2);
        rig.driver.write_qp(kQpn, 0x6c, 0xfd000000);
        rig.driver.write_qp(kQpn, 0x00, rig.driver.read_qp(kQpn, 0x00) | 1 << 7);
        for (uint32_t word = 0; word < 4; word++) {
            const uint32_t own = rig.driver.read(0x20 + 4 * word), peer = rig.driver.read_qp(kQpn, 0x60 + 4 * word);
            rig.driver.write(0x20 + 4 * word, own ^ 8);
            rig.receive(send(kFirstPsn));
            EXPECT_EQ(rig.syndrome(), 1u << 8) << word;
            rig.driver.write(0x20 + 4 * word, own);
            rig.driver.write_qp(kQpn, 0x60 + 4 * word, peer ^ 8);
            rig.receive(send(kFirstPsn));
            EXPECT_EQ(rig.syndrome(), 1u << 27) << word;
            rig.driver.write_qp(kQpn, 0x60 + 4 * word, peer);
        }
        rig.receive(Rig::send());
        EXPECT_TRUE(rig.syndrome() >> 2 & 1);
        EXPECT_TRUE(rig.host.frames.empty());
        rig.receive(send(kFirstPsn));
        EXPECT_EQ(rig.driver.rq_written(kQpn), 1);
        ASSERT_EQ(rig.host.frames.size(), 1u);
        const Frame &ack = rig.host.frames[0];
        EXPECT_EQ(word_at(ack, 22), 0xfd000000u);
        EXPECT_EQ(word_at(ack, 34), 1u);
        EXPECT_EQ(word_at(ack, 38), 0xfd000000u);
        EXPECT_EQ(word_at(ack, 50), 2u);
        EXPECT_EQ(View(ack).opcode, 0x11);
    }
}

TEST(ErnicFields, MadsOfBothVersionsOfIp)
{
    Rig rig;
    rig.driver.write(0x20, 1);
    rig.driver.write(0x2c, 0xfd000000);
    const uint64_t rq = rig.host.alloc(kDepth * 512), doorbell = rig.host.alloc(4);
    QpAttributes a{};
    a.mtu = 1024;
    rig.driver.configure(1, a, {rig.host.alloc(kDepth * 64), 0, rq, kDepth, kDepth, 512, 0x10}, 0, 0);
    rig.driver.write_qp(1, Ernic::kRqDoorbell, uint32_t(doorbell));
    rig.driver.enable(1);
    Frame mad = to_qp(Rig::packet(0x64, 7, bytes(256), {0x80, 1, 0, 0, 0, 0, 0, 1}), 1);
    rig.receive(mad);
    rig.receive(over_ipv6(mad, 0xfd000000, 2, 1));
    EXPECT_EQ(*rig.host.as<uint32_t>(doorbell), 2u);
}

TEST(ErnicFields, HeadersHaveWhatTheRegistersSay)
{
    Rig rig;
    rig.driver.write_qp(kQpn, 0x04, 0x28 | 33 << 8 | 0x8123u << 16);
    rig.post(Ernic::kSend, rig.buffer, 64);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    const Frame &f = rig.host.frames[0];
    EXPECT_TRUE(std::equal(kPeerMac.begin(), kPeerMac.end(), f.begin()));
    EXPECT_TRUE(std::equal(kMac.begin(), kMac.end(), f.begin() + 6));
    EXPECT_EQ(f.at(15), 0x28);   // traffic class
    EXPECT_EQ(f.at(22), 33);     // time to live
    EXPECT_EQ(word_at(f, 26), kIp);
    EXPECT_EQ(word_at(f, 30), kPeerIp);
    EXPECT_EQ(word_at(f, 34), 0xc123u << 16 | 4791);
    EXPECT_EQ(word_at(f, kBth) & 0xffff, 0x8123u);
    EXPECT_EQ(word_at(f, kBth + 4), kPeerQpn);
}

TEST(ErnicFields, PathMtus)
{
    const uint32_t mtus[8] = {256, 512, 1024, 2048, 4096, 4096, 4096, 4096};
    for (const bool is_ernic : {false, true})
        for (uint32_t code = 0; code < 8; code++) {
            Rig rig(is_ernic ? ernic::Config{} : etrnic());
            rig.driver.write_qp(kQpn, 0x00, 0x2d | code << 8 | 4 << 16);
            rig.post(Ernic::kSend, rig.buffer, 10000);
            ASSERT_EQ(rig.host.frames.size(), (10000 + mtus[code] - 1) / mtus[code]) << code;
            EXPECT_EQ(rig.host.frames[0].size(), kPayload + mtus[code] + 4) << code;
        }
}

// All memory stands behind 4 GB, where high words reach alone.
class FarHost : public FakeHost {
public:
    static constexpr uint64_t kFar = 1ull << 32;
    FarHost() : FakeHost(4u << 20) {}
    uint8_t *map(uint64_t dma, uint64_t len, bool write) override
    {
        return dma < kFar ? nullptr : FakeHost::map(dma - kFar, len, write);
    }
    bool read(uint64_t dma, void *to, uint64_t len) override
    {
        return dma >= kFar && FakeHost::read(dma - kFar, to, len);
    }
    bool write(uint64_t dma, const void *from, uint64_t len) override
    {
        return dma >= kFar && FakeHost::write(dma - kFar, from, len);
    }
};

TEST(ErnicFields, HighWordsOfAddresses)
{
    constexpr uint64_t kFar = FarHost::kFar;
    FarHost host;
    const uint64_t in_errors = host.alloc(16), out_errors = host.alloc(16), error_buffer = host.alloc(256),
                   ring = host.alloc(16), kept = host.alloc(4096), cq_doorbell = host.alloc(4), rq_doorbell = host.alloc(4),
                   buffer = host.alloc(4096), sq = host.alloc(kDepth * 64), cq = host.alloc(kDepth * 4),
                   rq = host.alloc(kDepth * kSlotBytes);
    Ernic driver(host, 0, with_records());
    driver.write(Ernic::kConf, 0);
    const std::pair<uint32_t, uint64_t> bases[] = {{0x88, in_errors}, {0x78, out_errors}, {0x60, error_buffer},
                                                   {0xa0, kept}, {0x1e4, ring}};
    for (const auto &[offset, address] : bases) {
        driver.write(offset, uint32_t(address));
        driver.write(offset + 4, 1);
    }
    driver.write(0x68, 1 | 256 << 16);
    driver.write(0xa8, 1 | 4096u << 16);
    driver.write(0x1ec, 1);
    driver.write(0x1e0, 1);
    driver.write(Ernic::kConf, 1 | 1 << 5 | 255 << 8);
    QpAttributes a{};
    a.mtu = 1024;
    a.pd = 9;
    a.ack_timeout = 14;
    a.retry_count = 2;
    a.path.smac = kMac;
    a.path.dmac = kPeerMac;
    a.path.sip = kIp;
    a.path.dip = kPeerIp;
    for (const auto &[offset, address] : {std::pair(0x20u, rq_doorbell), std::pair(0x28u, cq_doorbell)}) {
        driver.write_qp(kQpn, offset, uint32_t(address));
        driver.write_qp(kQpn, offset + 4, 1);
    }
    driver.connect(kQpn, a, {kFar + sq, kFar + cq, kFar + rq, kDepth, kDepth, kSlotBytes, 0x3c}, 0x100, kFirstPsn);
    driver.write_pd(0x30, {.pd = 9, .va = 0x10000000, .bytes = 4096, .base = kFar + buffer, .key = 0x5a, .access = 2});
    auto receive = [&](Frame frame) {
        const iovec part{frame.data(), frame.size()};
        driver.receive({&part, 1});
        while (driver.has_work())
            driver.run();
    };
    auto post = [&](uint16_t index, uint8_t opcode) {
        ErnicWqe wqe{};
        wqe.opcode = opcode;
        wqe.laddr = kFar + buffer;
        wqe.length = 64;
        std::memcpy(host.at(sq + (index - 1) * 64u), &wqe, sizeof(wqe));
        driver.write_sqpi(kQpn, index);
        while (driver.has_work())
            driver.run();
    };
    receive(Rig::packet(0x04, kFirstPsn, {1, 2, 3, 4}));
    EXPECT_EQ(word_at(Frame(host.at(rq), host.at(rq) + 4), 0), 0x01020304u);
    EXPECT_EQ(*host.as<uint32_t>(rq_doorbell), 1u);
    EXPECT_EQ(*host.as<uint16_t>(ring), kQpn);
    EXPECT_EQ(driver.read_qp(kQpn, 0x94), uint32_t(rq + kSlotBytes));
    EXPECT_EQ(driver.read_qp(kQpn, 0xd8), 1u);
    receive(Rig::packet(0x0a, kFirstPsn + 1, bytes(64), reth(kRkey, 64)));
    EXPECT_EQ(host.at(buffer)[63], 0x5a);
    // A WRITE that is sent again is that of the data buffer.
    post(1, Ernic::kWrite);
    std::memset(host.at(buffer), 7, 64);
    host.clock_ns = host.deadline_ns;
    driver.expire();
    while (driver.has_work())
        driver.run();
    EXPECT_EQ(host.frames.back().at(kPayload + 16), 0x5a);
    receive(Rig::packet(0x11, 0x100, {}, {0x1f, 0, 0, 0}));
    EXPECT_EQ(*host.as<uint32_t>(cq_doorbell), 1u);
    EXPECT_EQ(driver.device.stats.dma_errors, 0u);
    post(2, 0x05);
    EXPECT_EQ(*host.as<uint32_t>(out_errors), 5u | kQpn << 16);
    EXPECT_EQ(*host.as<uint32_t>(cq + 4), 5u << 16 | 1u << 24);
    receive(Rig::packet(0x01, kFirstPsn + 2, bytes(1024)));
    EXPECT_EQ(*host.as<uint32_t>(in_errors), 1u | kQpn << 16);
    EXPECT_EQ(*host.as<uint32_t>(error_buffer), 1u << 16);
    EXPECT_EQ(driver.device.stats.dma_errors, 0u);
}

// ---- errors

// Seed 000, 560 to 563: in a circular manner. An entry is the code, the QP, and 4 bytes of 0.
TEST(ErnicFields, QueuesOfErrorsGoRound)
{
    Rig rig;
    const uint64_t in = rig.host.alloc(3 * 8), out = rig.host.alloc(3 * 8);
    std::memset(rig.host.at(in), 0xff, 24);
    std::memset(rig.host.at(out), 0xff, 24);
    rig.driver.write(Ernic::kInErrors, uint32_t(in));
    rig.driver.write(Ernic::kInErrorsSize, 3);
    rig.driver.write(Ernic::kOutErrors, uint32_t(out));
    rig.driver.write(Ernic::kOutErrorsSize, 3);
    for (uint8_t n = 0; n < 4; n++) {
        rig.post(uint8_t(0x80 + n), rig.buffer, 64);
        EXPECT_EQ(*rig.host.as<uint64_t>(out + n % 3 * 8u), 0x80u + n + (kQpn << 16));
        EXPECT_EQ(rig.driver.read(Ernic::kOutErrorsPointer), (n + 1u) % 3);
    }
    for (uint32_t n = 0; n < 4; n++) {
        rig.receive(n % 2 ? Rig::packet(0x13, kFirstPsn, {}, std::vector<uint8_t>(28))
                          : Rig::packet(0x01, kFirstPsn, bytes(1024)));
        EXPECT_EQ(*rig.host.as<uint64_t>(in + n % 3 * 8), (n % 2 ? 4u : 1u) | kQpn << 16) << n;
        EXPECT_EQ(rig.driver.read(Ernic::kInErrorsPointer), (n + 1) % 3);
        rig.driver.disable(kQpn);
        rig.driver.enable(kQpn);
    }
}

// Seed 000, table 2-3, bits 18 and 19, and FATAL code 00010.
TEST(ErnicFields, PaddingAndLength)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.open_error_buffer();
        Frame frame = Rig::packet(0x00, kFirstPsn, bytes(1024));
        put(frame, kBth + 1, 1 << 4);
        seal(frame);
        rig.receive(frame);
        EXPECT_EQ(rig.syndrome(), 1u << 18);
        EXPECT_EQ(rig.driver.fatal_code(kQpn), 2);
        EXPECT_EQ(rig.driver.rq_written(kQpn), 0);
    }
}

// ---- WQEs and CQEs

// Seed 000, table 2-1; of the ERNIC alone are 01, 03 and 0c.
TEST(ErnicFields, OpcodesOfWqes)
{
    for (const bool is_ernic : {false, true})
        for (uint32_t opcode = 0; opcode < 256; opcode++) {
            Rig rig(is_ernic ? ernic::Config{} : etrnic());
            rig.post(uint8_t(opcode), rig.buffer, 64);
            const bool legal = opcode == 0 || opcode == 2 || opcode == 4 ||
                               (is_ernic && (opcode == 1 || opcode == 3 || opcode == 0x0c));
            EXPECT_EQ(rig.host.frames.size(), legal ? 1u : 0) << opcode;
            EXPECT_EQ(rig.driver.device.stats.illegal_wqes, legal ? 0u : 1) << opcode;
            EXPECT_EQ(rig.driver.cqhead(kQpn), legal ? 0 : 1) << opcode;
        }
}

TEST(ErnicFields, ReservedBytesOfAWqe)
{
    std::vector<Frame> sent;
    for (const int fill : {0, 0xff}) {
        Rig rig(etrnic());
        ErnicWqe wqe{};
        std::memset(&wqe.reserved0, fill, sizeof(wqe.reserved0));
        std::memset(wqe.reserved1, fill, sizeof(wqe.reserved1));
        std::memset(wqe.imm, fill, sizeof(wqe.imm) + sizeof(wqe.reserved2));
        wqe.opcode = Ernic::kSend;
        wqe.length = 8;
        std::memcpy(rig.host.at(rig.queues.sqba), &wqe, sizeof(wqe));
        rig.driver.write_sqpi(kQpn, 1);
        finish(rig);
        ASSERT_EQ(rig.host.frames.size(), 1u);
        sent.push_back(rig.host.frames[0]);
    }
    EXPECT_EQ(sent[0], sent[1]);
}

// Seed 000, example sequence: WRITE and READ of 256 bytes.
TEST(ErnicFields, RequestsOfAnEtrnic)
{
    Rig rig(etrnic());
    for (uint32_t i = 0; i < 256; i++)
        rig.host.at(rig.buffer)[i] = uint8_t(i);
    rig.post(Ernic::kWrite, rig.buffer, 256, 0x1122334455667788, 0x99aabbcc);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    const Frame write = rig.host.frames[0];
    EXPECT_EQ(View(write).opcode, 0x0a);
    EXPECT_EQ(View(write).psn, 0x100u);
    EXPECT_EQ(word_at(write, kPayload), 0x11223344u);
    EXPECT_EQ(word_at(write, kPayload + 4), 0x55667788u);
    EXPECT_EQ(word_at(write, kPayload + 8), 0x99aabbccu);
    EXPECT_EQ(word_at(write, kPayload + 12), 256u);
    EXPECT_TRUE(std::equal(write.begin() + kPayload + 16, write.end() - 4, rig.host.at(rig.buffer)));
    rig.acknowledge(0x100);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
    rig.post(Ernic::kRead, rig.buffer + 0x1000, 256, 0x1122334455667788, 0x99aabbcc);
    ASSERT_EQ(rig.host.frames.size(), 2u);
    const Frame read = rig.host.frames[1];
    EXPECT_EQ(View(read).opcode, 0x0c);
    EXPECT_TRUE(std::equal(read.begin() + kPayload, read.begin() + kPayload + 16, write.begin() + kPayload));
    const std::vector<uint8_t> data(rig.host.at(rig.buffer), rig.host.at(rig.buffer) + 256);
    rig.receive(Rig::packet(0x10, 0x101, data, {0x1f, 0, 0, 0}));
    EXPECT_TRUE(std::equal(data.begin(), data.end(), rig.host.at(rig.buffer + 0x1000)));
    EXPECT_EQ(rig.driver.cqhead(kQpn), 2);
    // WRID, and opcodes 0 and 4.
    EXPECT_EQ(*rig.host.as<uint32_t>(rig.queues.cqba), 0x700u);
    EXPECT_EQ(*rig.host.as<uint32_t>(rig.queues.cqba + 4), 0x701u | 4 << 16);
}

// What the ERNIC adds: immediate data and SEND with invalidate, each both ways.
TEST(ErnicFields, EveryOperationOfAnErnic)
{
    Rig rig(with_records());
    const uint64_t ring = rig.host.alloc(8 * 16);
    open_records(rig, ring, 8);
    open_region(rig);
    struct Operation {
        uint8_t wqe, bth;
        size_t extension;   // bytes in front of the last four
    };
    const Operation operations[] = {{0x01, 0x0b, 16}, {0x03, 0x05, 0}, {0x0c, 0x17, 0}};
    uint16_t n = 0;
    for (const Operation &op : operations) {
        for (const uint32_t length : {16u, 64u}) {
            ErnicWqe wqe{};
            wqe.wrid = n;
            wqe.opcode = op.wqe;
            wqe.laddr = rig.buffer;
            wqe.length = length;
            wqe.rtag = 0x01020304;
            std::memset(wqe.sdata, 0x33, sizeof(wqe.sdata));
            std::memset(rig.host.at(rig.buffer), 0x44, 64);
            const uint8_t imm[4] = {5, 6, 7, 8};
            std::memcpy(wqe.imm, imm, sizeof(imm));
            std::memcpy(rig.host.at(rig.queues.sqba + n % kDepth * 64u), &wqe, sizeof(wqe));
            rig.driver.write_sqpi(kQpn, uint16_t(n % kDepth + 1));
            finish(rig);
            ASSERT_EQ(rig.host.frames.size(), 1u);
            const Frame &f = rig.host.frames[0];
            EXPECT_EQ(View(f).opcode, op.bth);
            EXPECT_EQ(word_at(f, kPayload + op.extension), op.wqe == 0x0c ? 0x01020304u : 0x05060708u);
            const bool is_inline = op.wqe != 0x01 && length <= 16;
            EXPECT_EQ(f.at(kPayload + op.extension + 4), is_inline ? 0x33 : 0x44) << int(op.wqe);
            rig.acknowledge(0x100 + n);
            EXPECT_EQ(*rig.host.as<uint32_t>(rig.queues.cqba + n % kDepth * 4u), uint32_t(n) | uint32_t(op.wqe) << 16);
            rig.host.frames.clear();
            n++;
        }
    }
    // The peer does the same.
    for (uint32_t i = 0; i < 3; i++) {
        const Operation &op = operations[i];
        std::vector<uint8_t> extension = op.extension ? reth(kRkey, 64) : std::vector<uint8_t>{};
        const auto last = big32(0x0a0b0c00 + i);
        extension.insert(extension.end(), last.begin(), last.end());
        rig.receive(Rig::packet(op.bth, kFirstPsn + i, bytes(64), extension));
        EXPECT_EQ(rig.driver.rq_written(kQpn), i + 1);
        EXPECT_EQ(rig.host.at(ring + i * 16)[4], op.bth);
        EXPECT_EQ(*rig.host.as<uint32_t>(ring + i * 16 + 8), 64u);
        EXPECT_EQ(std::memcmp(rig.host.at(ring + i * 16 + 12), last.data(), 4), 0);
    }
    EXPECT_EQ(rig.host.at(rig.buffer)[63], 0x5a);
    EXPECT_FALSE(rig.driver.is_fatal(kQpn));
}

TEST(ErnicFields, ASolicitedMessage)
{
    Rig rig(with_records());
    const uint64_t ring = rig.host.alloc(2 * 16);
    open_records(rig, ring, 2);
    Frame frame = Rig::send();
    put(frame, kBth + 1, 0x80);
    seal(frame);
    rig.receive(frame);
    rig.receive(Rig::send(kFirstPsn + 1));
    EXPECT_EQ(rig.host.at(ring)[5], 0x81);
    EXPECT_EQ(rig.host.at(ring + 16)[5], 0x80);
}

TEST(ErnicFields, NoCqesUnlessAsked)
{
    Rig rig({}, 0x0c);
    std::memset(rig.host.at(rig.queues.cqba), 0xff, kDepth * 4);
    rig.post(Ernic::kSend, rig.buffer, 64);
    rig.acknowledge(0x100);
    EXPECT_EQ(rig.driver.cqhead(kQpn), 1);
    EXPECT_EQ(*rig.host.as<uint32_t>(rig.queues.cqba), 0xffffffffu);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 1u << 4);
}

// Seed 000, 191: an empty SEND is not supported. The others are, with no payload.
TEST(ErnicFields, EmptyWritesAndReads)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.post(Ernic::kWrite, rig.buffer, 0, 0x2000, 1);
        rig.post(Ernic::kRead, rig.buffer, 0, 0x2000, 1);
        ASSERT_EQ(rig.host.frames.size(), 2u);
        for (const Frame &frame : rig.host.frames) {
            EXPECT_EQ(frame.size(), kPayload + 16 + 4);
            EXPECT_EQ(word_at(frame, kPayload + 12), 0u);
        }
        rig.acknowledge(0x100);
        rig.receive(Rig::packet(0x10, 0x101, {}, {0x1f, 0, 0, 0}));
        EXPECT_EQ(rig.driver.cqhead(kQpn), 2);
        EXPECT_FALSE(rig.driver.is_fatal(kQpn));
    }
}

// ---- status

TEST(ErnicFields, AFullSendQueue)
{
    Rig rig;
    for (unsigned n = 0; n < kDepth - 1u; n++) {
        EXPECT_FALSE(rig.status() >> 2 & 1);
        rig.post(Ernic::kSend, rig.buffer, 64);
    }
    EXPECT_TRUE(rig.status() >> 2 & 1);
    rig.acknowledge(0x100);
    EXPECT_FALSE(rig.status() >> 2 & 1);
}

TEST(ErnicFields, TheSlotOfTheNextMessage)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        for (uint32_t n = 0; n < 2u * kDepth; n++) {
            EXPECT_EQ(rig.driver.read_qp(kQpn, 0x94), rig.queues.rqba + n % kDepth * kSlotBytes);
            rig.receive(Rig::send(kFirstPsn + n));
            rig.driver.write_rqci(kQpn, uint16_t(n % kDepth + 1));
        }
    }
}

// Bit q of bank n is QP 32 n + q.
TEST(ErnicFields, ABitOfABankForEachQp)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        const uint32_t last = is_ernic ? 255 : 128;
        for (uint32_t qpn = 2; qpn <= last; qpn++) {
            QpAttributes a{};
            a.mtu = 1024;
            a.path.dmac = kPeerMac;
            a.path.dip = kPeerIp;
            rig.driver.disable(qpn);
            rig.driver.configure(qpn, a, rig.queues, 0x100, kFirstPsn);
            rig.driver.enable(qpn);
            ErnicWqe wqe{};
            wqe.opcode = Ernic::kSend;
            wqe.length = 8;
            std::memcpy(rig.host.at(rig.queues.sqba), &wqe, sizeof(wqe));
            rig.driver.write_sqpi(qpn, 1);
            finish(rig);
            rig.receive(to_qp(Rig::send(), qpn));
            rig.receive(to_qp(Rig::packet(0x11, 0x100, {}, {0x1f, 0, 0, 0}), qpn));
            for (const uint32_t first : {0x190u, 0x1b0u}) {
                for (uint32_t bank = 0; bank < 8; bank++)
                    EXPECT_EQ(rig.driver.read(first + 4 * bank), bank == qpn / 32 ? 1u << qpn % 32 : 0) << qpn;
                rig.driver.write(first + qpn / 32 * 4, 1u << qpn % 32);
            }
            EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 0u) << qpn;
        }
    }
}

// ---- time

TEST(ErnicFields, TimersOfAQp)
{
    // IBA vol 1, C9-141: 4.096 us x 2^t; 0: none.
    for (const uint32_t t : {0u, 1u, 10u, 14u}) {
        Rig rig;
        rig.driver.write_qp(kQpn, Ernic::kTimeout, t | 1 << 8);
        rig.post(Ernic::kSend, rig.buffer, 64);
        EXPECT_EQ(rig.host.deadline_ns, t ? rig.host.clock_ns + (4096ull << t) : UINT64_MAX) << t;
    }
    // The RNR NAK has the timer of the register.
    for (const uint32_t timer : {0u, 1u, 21u, 31u}) {
        Rig rig;
        rig.driver.write_qp(kQpn, Ernic::kTimeout, 14 | timer << 16);
        for (uint32_t n = 0; n < kDepth; n++)
            rig.receive(Rig::send(kFirstPsn + n));
        EXPECT_EQ(View(rig.host.frames.back()).syndrome, 0x20 | timer);
    }
    // RNR NAKs beyond the count are fatal, but for 7.
    for (const uint32_t retries : {0u, 2u, 7u}) {
        Rig rig;
        rig.driver.write_qp(kQpn, Ernic::kTimeout, 14 | 7 << 8 | retries << 11);
        rig.driver.disable(kQpn);
        rig.driver.enable(kQpn);
        rig.post(Ernic::kSend, rig.buffer, 64);
        unsigned naks = 0;
        for (; naks < 20 && !rig.driver.is_fatal(kQpn); naks++) {
            rig.acknowledge(0x100, 0x21);
            if (!rig.driver.is_fatal(kQpn))
                expire(rig);
        }
        EXPECT_EQ(naks, retries == 7 ? 20 : retries + 1);
        EXPECT_EQ(rig.driver.fatal_code(kQpn), retries == 7 ? 0 : 0x0d);
    }
}

// ---- memory of the peer and of the device

// One data buffer: the second WRITE waits until the first one is acknowledged.
TEST(ErnicFields, DataBuffersThatRunOut)
{
    for (const bool is_ernic : {false, true}) {
        Rig rig(is_ernic ? ernic::Config{} : etrnic());
        rig.driver.write(Ernic::kConf, 0);
        rig.driver.write(Ernic::kDataBuffers, uint32_t(rig.host.alloc(4096)));
        rig.driver.write(Ernic::kDataBuffersSize, 1 | 4096u << 16);
        rig.driver.write(Ernic::kConf, 1 | (is_ernic ? 255 : 128) << 8);
        rig.post(Ernic::kWrite, rig.buffer, 64, 0x2000, 1);
        rig.post(Ernic::kWrite, rig.buffer, 64, 0x2000, 1);
        EXPECT_EQ(rig.host.frames.size(), 1u);
        EXPECT_FALSE(rig.driver.is_fatal(kQpn));
        rig.acknowledge(0x100);
        EXPECT_EQ(rig.host.frames.size(), 2u);
        rig.acknowledge(0x101);
        EXPECT_EQ(rig.driver.cqhead(kQpn), 2);
    }
}

// A request of a peer, and the entry that it meets. Code 0: it is allowed.
struct Entry {
    const char *name;
    uint8_t opcode;       // 0a: WRITE, 0c: READ
    uint64_t va, bytes;   // of the entry
    uint8_t access;
    uint64_t asked;       // 64 bytes from here on
    uint32_t rkey;
    uint16_t code;
};
const Entry kEntries[] = {
    {"ReadOfRead", 0x0c, 0x10000000, 4096, 0, 0x10000000, kRkey, 0},
    {"WriteOfRead", 0x0a, 0x10000000, 4096, 0, 0x10000000, kRkey, 0x20},
    {"ReadOfWrite", 0x0c, 0x10000000, 4096, 1, 0x10000000, kRkey, 0x20},
    {"WriteOfWrite", 0x0a, 0x10000000, 4096, 1, 0x10000000, kRkey, 0},
    {"ReadOfBoth", 0x0c, 0x10000000, 4096, 2, 0x10000000, kRkey, 0},
    {"WriteOfBoth", 0x0a, 0x10000000, 4096, 2, 0x10000000, kRkey, 0},
    {"ReadOfReserved", 0x0c, 0x10000000, 4096, 3, 0x10000000, kRkey, 0x20},
    {"WriteOfReserved", 0x0a, 0x10000000, 4096, 3, 0x10000000, kRkey, 0x20},
    {"OtherKey", 0x0a, 0x10000000, 4096, 2, 0x10000000, kRkey + 1, 0x20},
    {"OtherEntry", 0x0a, 0x10000000, 4096, 2, 0x10000000, kRkey + 0x100, 0x20},
    {"BeforeTheRange", 0x0a, 0x10000000, 4096, 2, 0x0fffffff, kRkey, 0x20},
    {"EndOfTheRange", 0x0a, 0x10000000, 4096, 2, 0x10000fc0, kRkey, 0},
    {"BehindTheRange", 0x0a, 0x10000000, 4096, 2, 0x10000fc1, kRkey, 0x20},
    {"HighAddress", 0x0a, 0x710000000, 4096, 2, 0x710000000, kRkey, 0},
    {"OtherHighAddress", 0x0a, 0x710000000, 4096, 2, 0x610000000, kRkey, 0x20},
    {"HighLength", 0x0a, 0x10000000, 0x300000000, 2, 0x30fffffc0, kRkey, 0},
    {"BehindAHighLength", 0x0a, 0x10000000, 0x300000000, 2, 0x30fffffc1, kRkey, 0x20},
};

class ErnicEntries : public ::testing::TestWithParam<Entry> {};

TEST_P(ErnicEntries, EntriesOfTheProtectionDomainTable)
{
    const Entry &e = GetParam();
    Rig rig;
    // The last page of the range is in the buffer.
    const uint64_t base = rig.buffer + 4096 - e.bytes;
    rig.driver.write_pd(0x30, {.pd = 9, .va = e.va, .bytes = e.bytes, .base = base, .key = 0x5a, .access = e.access});
    std::vector<uint8_t> extension = big32(uint32_t(e.asked >> 32));
    for (const uint32_t word : {uint32_t(e.asked), e.rkey, 64u}) {
        const auto more = big32(word);
        extension.insert(extension.end(), more.begin(), more.end());
    }
    const bool is_write = e.opcode == 0x0a;
    rig.receive(Rig::packet(e.opcode, kFirstPsn, is_write ? bytes(64) : std::vector<uint8_t>{}, extension));
    EXPECT_EQ(rig.driver.fatal_code(kQpn), e.code);
    if (!e.code && is_write)
        EXPECT_EQ(rig.host.at(base + (e.asked - e.va))[63], 0x5a);
    ASSERT_EQ(rig.host.frames.size(), 1u);
    EXPECT_EQ(View(rig.host.frames[0]).opcode, is_write || e.code ? 0x11 : 0x10);
}

INSTANTIATE_TEST_SUITE_P(Table, ErnicEntries, ::testing::ValuesIn(kEntries),
                         [](const auto &info) { return info.param.name; });

// Seed 004, TX path: a READ more than the queue of requests has places for is refused by a NAK, and the QP is fatal.
TEST(ErnicFields, ReadsOfAPeer)
{
    Rig rig;
    open_region(rig);
    rig.host.link_full = true;
    for (uint32_t n = 0; n < 16; n++) {
        rig.receive(Rig::packet(0x0c, kFirstPsn + n, {}, reth(kRkey, 64)));
        EXPECT_FALSE(rig.driver.is_fatal(kQpn)) << n;
    }
    rig.receive(Rig::packet(0x0c, kFirstPsn + 16, {}, reth(kRkey, 64)));
    EXPECT_TRUE(rig.driver.is_fatal(kQpn));
    rig.host.link_full = false;
    rig.driver.device.link_ready();
    finish(rig);
    ASSERT_FALSE(rig.host.frames.empty());
    EXPECT_EQ(View(rig.host.frames.back()).syndrome, 0x61);
}

// Seed 004, RX PKT Handler: what is not RDMA is not for the device.
TEST(ErnicFields, OtherFramesAreIgnored)
{
    Rig rig;
    Frame arp = Rig::send(), tcp = Rig::send(), port = Rig::send();
    put(arp, 13, 6);
    put(tcp, 23, 6);
    put(port, 37, 0);
    for (const Frame &frame : {arp, tcp, port})
        rig.receive(frame);
    EXPECT_EQ(rig.driver.device.stats.frames_ignored, 3u);
    EXPECT_EQ(rig.driver.read(Ernic::kAllAndDropped), 0u);
    EXPECT_EQ(rig.driver.read(Ernic::kIntStatus), 0u);
}

}  // namespace
}  // namespace hghca::test::ernic_fields_test
