// SPDX-License-Identifier: GPL-2.0-or-later
// Headers built and taken apart, the ICRC of whole packets, and what is dropped on the way in.
#include <gtest/gtest.h>

#include "jingzhao/translate.h"
#include "verbs.h"
#include "wire/icrc.h"
#include "wire/packet.h"

namespace hghca::test::packet_test {
namespace {

using Options = Endpoint::Options;

// ---- transport headers, byte for byte

struct HeaderCase {
    const char *name;
    uint8_t opcode;
    Bytes extension;   // behind the BTH
};
class Headers : public ::testing::TestWithParam<HeaderCase> {};

const Bytes kReth = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x01, 0x02, 0x03};
const Bytes kAtomicEth = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb, 0xcc, 0xdd, 0x01, 0x02,
                          0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98};
const Bytes kAeth = {0x1f, 0x65, 0x43, 0x21};
const Bytes kAtomicAck = {0x1f, 0x65, 0x43, 0x21, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8};
const Bytes kImm = {0xd1, 0xd2, 0xd3, 0xd4};
const Bytes kPointerEthBytes = {0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0x21, 0x22, 0x23, 0x24};
const Bytes kDeth = {0x80, 0x01, 0x00, 0x00, 0x00, 0xfe, 0xdc, 0xba};

Bytes join(const Bytes &x, const Bytes &y)
{
    Bytes all = x;
    all.insert(all.end(), y.begin(), y.end());
    return all;
}

TEST_P(Headers, AreWhatTheSpecificationSays)
{
    const HeaderCase &c = GetParam();
    TransportHeader h{};
    h.opcode = c.opcode;
    h.pad = 2;
    h.solicited = true;
    h.ack_request = true;
    h.pkey = 0xffff;
    h.qpn = Qpn(0x123456);
    h.psn = Psn(0xabcdef);
    h.va = 0x1122334455667788;
    h.rkey = Key(0xaabbccdd);
    h.length = 0x00010203;
    h.swap_add = 0x0102030405060708;
    h.compare = 0x9192939495969798;
    h.syndrome = 0x1f;
    h.msn = Msn(0x654321);
    h.original = 0xc1c2c3c4c5c6c7c8;
    h.imm = be32(0xd1d2d3d4);
    h.qkey = 0x80010000;
    h.src_qpn = Qpn(0xfedcba);
    h.pointer_key = 0xe1e2e3e4e5e6e7e8;
    h.search = 0x21222324;
    uint8_t bytes[kMaxTransportHeader] = {};
    const size_t n = put_transport_header(h, bytes);
    EXPECT_EQ(n, 12 + extension_bytes(kOpcodes[c.opcode]));
    const Bytes bth = {c.opcode, 0x80 | 0x40 | 0x20, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0xab, 0xcd, 0xef};
    EXPECT_EQ(Bytes(bytes, bytes + n), join(bth, c.extension));

    TransportHeader back{};
    get_transport_header(bytes, back);
    uint8_t again[kMaxTransportHeader] = {};
    EXPECT_EQ(put_transport_header(back, again), n);
    EXPECT_EQ(std::memcmp(bytes, again, n), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Headers,
    ::testing::Values(HeaderCase{"SendFirst", 0x00, {}}, HeaderCase{"SendMiddle", 0x01, {}},
                      HeaderCase{"SendLast", 0x02, {}}, HeaderCase{"SendLastImm", 0x03, kImm},
                      HeaderCase{"SendOnly", 0x04, {}}, HeaderCase{"SendOnlyImm", 0x05, kImm},
                      HeaderCase{"WriteFirst", 0x06, kReth}, HeaderCase{"WriteMiddle", 0x07, {}},
                      HeaderCase{"WriteLast", 0x08, {}}, HeaderCase{"WriteLastImm", 0x09, kImm},
                      HeaderCase{"WriteOnly", 0x0a, kReth}, HeaderCase{"WriteOnlyImm", 0x0b, join(kReth, kImm)},
                      HeaderCase{"ReadRequest", 0x0c, kReth}, HeaderCase{"ReadResponseFirst", 0x0d, kAeth},
                      HeaderCase{"ReadResponseMiddle", 0x0e, {}}, HeaderCase{"ReadResponseLast", 0x0f, kAeth},
                      HeaderCase{"ReadResponseOnly", 0x10, kAeth}, HeaderCase{"Acknowledge", 0x11, kAeth},
                      HeaderCase{"AtomicAcknowledge", 0x12, kAtomicAck}, HeaderCase{"CompareSwap", 0x13, kAtomicEth},
                      HeaderCase{"FetchAdd", 0x14, kAtomicEth}, HeaderCase{"UdSendOnly", 0x64, kDeth},
                      HeaderCase{"UdSendOnlyImm", 0x65, join(kDeth, kImm)}, HeaderCase{"PartFirst", 0xc0, kReth},
                      HeaderCase{"PartMiddle", 0xc1, {}}, HeaderCase{"PartLast", 0xc2, {}},
                      HeaderCase{"PartOnly", 0xc3, kReth},
                      HeaderCase{"ReadPointerRequest", 0xc4, join(kReth, kPointerEthBytes)},
                      HeaderCase{"ReadConsistentRequest", 0xc5, kReth}),
    [](const auto &param) { return std::string(param.param.name); });

// ---- tables of codes

// Behind the first codes of both tables each pair is twice the pair before: 4 and 6, 8 and 12, 16 and 24.
constexpr uint32_t doubled_in_pairs(unsigned code)
{
    return code < 4 ? code : (code % 2 ? 6u : 4u) << (code - 4) / 2;
}

TEST(Tables, RnrTimersAreThoseOfTheSpecification)   // table 45, in steps of 10 us
{
    constexpr uint32_t kTimer[] = HGHCA_RNR_TIMER_US;
    ASSERT_EQ(std::size(kTimer), 32u);
    EXPECT_EQ(kTimer[0], 655'360u);
    for (unsigned code = 1; code < 32; code++)
        EXPECT_EQ(kTimer[code], 10 * doubled_in_pairs(code)) << code;
    EXPECT_EQ(kTimer[31], 491'520u);
}

TEST(Tables, CreditsAreThoseOfTheSpecification)   // 9.7.7.2
{
    constexpr uint32_t kCounts[] = HGHCA_AETH_CREDITS;
    ASSERT_EQ(std::size(kCounts), 31u);
    for (unsigned code = 0; code < 31; code++)
        EXPECT_EQ(kCounts[code], doubled_in_pairs(code)) << code;
    EXPECT_EQ(kCounts[30], 32'768u);
}

// ---- the ICRC of whole packets

// A congestion notification as an adapter of another make has sent it (ConnectX-4 Lx).
const Frame kCaptured = {0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45,
                         0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
                         0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff,
                         0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                         0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a};

// The ICRC by the text of annex A17.3.3, bit by bit.
uint32_t icrc_by_definition(const Frame &frame)
{
    View v(frame);
    Frame masked(8, 0xff);
    masked.insert(masked.end(), frame.begin() + ptrdiff_t(v.ip), frame.end() - 4);
    uint8_t *ip = &masked[8];
    if (v.ipv6) {
        ip[0] |= 0x0f;
        ip[1] = ip[2] = ip[3] = 0xff;
        ip[7] = 0xff;
    } else {
        ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
    }
    const size_t udp = v.bth - v.ip - 8;
    ip[udp + 6] = ip[udp + 7] = 0xff;
    ip[udp + 8 + 4] = 0xff;
    uint32_t crc = 0xffffffff;
    for (uint8_t byte : masked) {
        crc ^= byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}
uint32_t icrc_of(const Frame &frame)
{
    const uint8_t *p = &frame[frame.size() - 4];
    return uint32_t(p[0] | p[1] << 8 | p[2] << 16) | uint32_t(p[3]) << 24;
}
void put_icrc(Frame &frame)
{
    const uint32_t crc = icrc_by_definition(frame);
    for (int i = 0; i < 4; i++)
        frame[frame.size() - 4 + size_t(i)] = uint8_t(crc >> 8 * i);
}

TEST(IcrcOfPackets, AgreesWithAnotherMake)
{
    EXPECT_EQ(icrc_by_definition(kCaptured), icrc_of(kCaptured));
    Node node(1);
    const Mac mac = {0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2};
    const Gid gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 18, 1};
    TestDriver::must(node.driver.set_gid(5, gid.data(), mac.data()), "SET_GID");
    Frame copy = kCaptured;
    iovec part{copy.data(), copy.size()};
    node.device.receive({&part, 1});
    EXPECT_EQ(node.counters().rx_unknown_qp, 1u);   // all checks before that have passed
    copy[60] ^= 1;
    node.device.receive({&part, 1});
    EXPECT_EQ(node.counters().rx_bad_icrc, 1u);
}

TEST(IcrcOfPackets, OursAreRightForEveryKindOfPacket)
{
    for (unsigned sgid_index : {0u, 1u, 2u}) {
        Network net;
        Options options;
        options.sgid_index = sgid_index;
        options.mtu_code = 1;
        Pair p(net.a, net.b, options);
        net.keep_log = true;
        for (uint32_t size : {0u, 1u, 2u, 3u, 4u, 255u, 256u, 257u, 900u})
            p.a.post({write_to(p.a.sge(0, size), p.b.va(0), p.b.buffer.key),
                      read_from(p.a.sge(0, size), p.b.va(0), p.b.buffer.key)});
        p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0), p.b.buffer.key).atomic(1, 0).data(p.a.sge(0, 8)));
        net.pump();
        EXPECT_GT(net.log.size(), 30u);
        for (const Frame &f : net.log) {
            EXPECT_EQ(icrc_of(f), icrc_by_definition(f));
            View v(f);
            EXPECT_EQ((f.size() - v.bth) % 4, 0u);   // padded
            const size_t udp = v.bth - 8;
            EXPECT_EQ(f[udp + 2] << 8 | f[udp + 3], 4791);
            EXPECT_GE(f[udp] << 8 | f[udp + 1], 0xc000);
            EXPECT_EQ(size_t(f[udp + 4] << 8 | f[udp + 5]), f.size() - udp);
            EXPECT_EQ(f[v.bth + 1] & 0x4f, 0x40);    // MigReq, version 0
            EXPECT_EQ(v.ip, sgid_index == 2 ? 18u : 14u);
            EXPECT_EQ(v.ipv6, sgid_index == 1);
            if (!v.ipv6) {
                EXPECT_EQ(f[v.ip + 6], 0x40);   // DF
            }
        }
    }
}

// ---- what is dropped, and as what

class Arrivals : public ::testing::Test {
protected:
    Arrivals() : p(net.a, net.b, Options{})
    {
        net.keep_log = true;
        net.filter = [](const Node &, Frame &) { return Fate{0}; };
        p.a.fill(0, 100, 1);
        p.a.post(write_to(p.a.sge(0, 99), p.b.va(0), p.b.buffer.key));
        net.pump();
        good = net.log.at(0);
        net.filter = nullptr;
    }
    void deliver(const Frame &f) { Network::deliver(net.b, f); }
    // With IP header checksum and ICRC made right again.
    void deliver_sealed(Frame f)
    {
        seal(f);
        deliver(f);
    }
    static void seal(Frame &f)
    {
        put_checksum(f);
        put_icrc(f);
    }
    static void put_checksum(Frame &f)
    {
        uint32_t sum = 0;
        f[24] = f[25] = 0;
        for (size_t i = 14; i < 34; i += 2)
            sum += uint32_t(f[i] << 8 | f[i + 1]);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = ~(sum + (sum >> 16));
        f[24] = uint8_t(sum >> 8);
        f[25] = uint8_t(sum);
    }
    const PacketError &last_error() { return net.b.device.errors.at(net.b.device.errors.total() - 1); }
    hghca_drop last_reason() { return drop_number(last_error().why); }
    bool written() { return p.b.holds(0, 99, 1); }
    const Counters &c() { return net.b.counters(); }
    Network net;
    Pair p;
    Frame good;
};

TEST_F(Arrivals, TheGoodPacketIsGood)
{
    deliver_sealed(good);
    EXPECT_TRUE(written());
    EXPECT_EQ(c().rx_packets, 1u);
    EXPECT_EQ(c().rx_bytes, good.size());
    EXPECT_EQ(net.b.device.errors.total(), 0u);
}

TEST_F(Arrivals, PaddingOfTheLinkIsIgnored)
{
    Frame f = good;
    f.resize(f.size() + 30, 0x77);
    deliver(f);
    EXPECT_TRUE(written());
}

// A header that was found good once is known when it comes again. It is good only as long as its addresses are the port's,
// and in a frame that is long enough.
TEST_F(Arrivals, AKnownHeaderIsLookedAtAgainWhenAddressesChange)
{
    deliver(good);
    ASSERT_TRUE(written());
    ASSERT_EQ(c().rx_packets, 1u);
    deliver(Frame(good.begin(), good.end() - 1));
    EXPECT_EQ(c().rx_packets, 1u);
    EXPECT_EQ(last_reason(), HGHCA_DROP_IP_LENGTH);
    const uint64_t dropped = net.b.device.errors.total();

    const Gid gid = Node::gid_of(2, 0);
    TestDriver &driver = net.b.driver;
    ASSERT_EQ(driver.command(HGHCA_CMD_SET_GID, 0, 0, HGHCA_GID_CLEAR).status, 0);
    deliver(good);
    EXPECT_EQ(c().rx_packets, 1u);
    EXPECT_EQ(net.b.device.errors.total(), dropped);   // not for the engine
    ASSERT_EQ(driver.set_gid(0, gid.data(), Node::mac_of(2).data()), 0);
    deliver(good);
    EXPECT_EQ(c().rx_packets, 2u);

    // The MAC it came to is not ours any more: neither the port's nor that of a GID.
    const Mac other = Node::mac_of(9);
    for (unsigned i = 0; i < 3; i++)
        ASSERT_EQ(driver.set_gid(i, Node::gid_of(2, i).data(), other.data(), i == 2 ? 5 : -1), 0);
    ASSERT_EQ(driver.set_port(other.data(), 1500), 0);
    deliver(good);
    EXPECT_EQ(c().rx_packets, 2u);
    ASSERT_EQ(driver.set_port(Node::mac_of(2).data(), 1500), 0);
    deliver(good);
    EXPECT_EQ(c().rx_packets, 3u);
}

// One that differs from a known one in any bit but those of the BTH and the payload is looked at, and dropped.
TEST_F(Arrivals, AHeaderLikeAKnownOneIsNotKnown)
{
    deliver(good);
    ASSERT_EQ(c().rx_packets, 1u);
    for (size_t at = 0; at < 42; at++) {
        if (at >= 6 && at < 12)
            continue;   // the sender's MAC does not count
        if (at == 40 || at == 41)
            continue;   // nor does a UDP checksum
        Frame f = good;
        f[at] ^= 0x10;
        deliver(f);
        EXPECT_EQ(c().rx_packets, 1u) << at;
    }
    deliver(good);
    EXPECT_EQ(c().rx_packets, 2u);
}

TEST_F(Arrivals, ChangesThatRoutersMakeAreAllowed)
{
    Frame f = good;
    f[15] ^= 0xff;   // DSCP and ECN
    f[22] = 3;       // TTL
    uint32_t icrc = icrc_of(f);
    seal(f);
    EXPECT_EQ(icrc_of(f), icrc);   // no change in the ICRC
    f[40] = 0x12;    // UDP checksum
    f[46] = 0xc0;    // FECN, BECN
    deliver(f);
    EXPECT_TRUE(written());
}

TEST_F(Arrivals, AnyCutIsDropped)
{
    for (size_t n = 0; n < good.size(); n++)
        deliver(Frame(good.begin(), good.begin() + ptrdiff_t(n)));
    EXPECT_FALSE(written());
    EXPECT_EQ(c().rx_packets, 0u);
    EXPECT_EQ(c().rx_too_short, good.size() - 42);   // before that nobody can tell that it is RoCE
}

TEST_F(Arrivals, PacketsShorterThanTheirHeadersSay)
{
    // IP and UDP agree on a length that leaves no room for the headers.
    for (size_t transport = 0; transport < 32; transport++) {
        Frame f(good.begin(), good.begin() + ptrdiff_t(42 + transport));
        const size_t ip = 28 + transport, udp = 8 + transport;
        f[16] = uint8_t(ip >> 8);
        f[17] = uint8_t(ip);
        f[38] = uint8_t(udp >> 8);
        f[39] = uint8_t(udp);
        put_checksum(f);
        deliver(f);
    }
    EXPECT_EQ(c().rx_packets, 0u);
    EXPECT_EQ(c().rx_too_short, 32u);
    // A pad that is longer than the payload.
    Frame f = good;
    f.resize(42 + 12 + 16 + 4);
    f[16] = 0;
    f[17] = uint8_t(f.size() - 14);
    f[38] = 0;
    f[39] = uint8_t(f.size() - 34);
    f[43] |= 0x30;
    const uint64_t before = c().rx_too_short;
    deliver_sealed(f);
    EXPECT_EQ(c().rx_too_short, before + 1);
}

TEST_F(Arrivals, WrongHeadersAreCounted)
{
    struct {
        const char *name;
        std::function<void(Frame &)> change;
        bool seal;
        hghca_drop why;
        uint64_t Counters::*counter;
        uint64_t Counters::*own;   // nullptr: `counter` has no other reason
    } cases[] = {
        {"IP version", [](Frame &f) { f[14] = 0x55; }, true, HGHCA_DROP_IP_VERSION, &Counters::rx_bad_header,
         &Counters::rx_ip_version},
        {"IP options",
         [](Frame &f) {
             f[14] = 0x46;
             f[17] += 4;
             f.insert(f.begin() + 34, 4, 0);
         },
         false, HGHCA_DROP_IP_HEADER_LENGTH, &Counters::rx_bad_header, &Counters::rx_ip_header_length},
        {"IP checksum", [](Frame &f) { f[24] ^= 1; }, false, HGHCA_DROP_IP_CHECKSUM, &Counters::rx_bad_header,
         &Counters::rx_ip_checksum},
        {"IP length beyond the frame", [](Frame &f) { f[17]++, put_checksum(f); }, false, HGHCA_DROP_IP_LENGTH,
         &Counters::rx_too_short, &Counters::rx_ip_length},
        {"IP length below its headers", [](Frame &f) { f[16] = 0, f[17] = 27, put_checksum(f); }, false,
         HGHCA_DROP_IP_LENGTH, &Counters::rx_too_short, &Counters::rx_ip_length},
        {"UDP length", [](Frame &f) { f[39]--; }, true, HGHCA_DROP_UDP_LENGTH, &Counters::rx_bad_header,
         &Counters::rx_udp_length},
        {"no room for the BTH", [](Frame &f) { f[16] = 0, f[17] = 39, f[38] = 0, f[39] = 19, put_checksum(f); }, false,
         HGHCA_DROP_HEADERS, &Counters::rx_too_short, &Counters::rx_short_headers},
        {"BTH version", [](Frame &f) { f[43] |= 1; }, true, HGHCA_DROP_BTH_VERSION, &Counters::rx_bad_header,
         &Counters::rx_bth_version},
        {"ICRC", [](Frame &f) { f[100] ^= 1; }, false, HGHCA_DROP_ICRC, &Counters::rx_bad_icrc, nullptr},
        {"QP", [](Frame &f) { f[48] ^= 1; }, true, HGHCA_DROP_NO_QP, &Counters::rx_unknown_qp, &Counters::rx_no_qp},
        {"QP 0", [](Frame &f) { f[47] = f[48] = f[49] = 0; }, true, HGHCA_DROP_NO_QP, &Counters::rx_unknown_qp,
         &Counters::rx_no_qp},
        {"UD opcode to RC", [](Frame &f) { f[42] = 0x64; }, true, HGHCA_DROP_SERVICE, &Counters::rx_unknown_qp,
         &Counters::rx_wrong_service},
        {"UC opcode", [](Frame &f) { f[42] = 0x2a; }, true, HGHCA_DROP_SERVICE, &Counters::rx_unknown_qp,
         &Counters::rx_wrong_service},
        {"source address", [](Frame &f) { f[29] ^= 4; }, true, HGHCA_DROP_SOURCE, &Counters::rx_bad_address,
         &Counters::rx_bad_source},
        {"another address of the port",
         [this](Frame &f) {
             Gid gid = Node::gid_of(2, 0);
             gid[14] = 9;
             TestDriver::must(net.b.driver.set_gid(7, gid.data(), Node::mac_of(2).data()), "SET_GID");
             f[32] = 9;
         },
         true, HGHCA_DROP_DESTINATION, &Counters::rx_bad_address, &Counters::rx_bad_destination},
        {"P_Key", [](Frame &f) { f[45] ^= 1; }, true, HGHCA_DROP_PKEY, &Counters::rx_bad_pkey, nullptr},
    };
    uint64_t errors = 0;
    for (auto &t : cases) {
        SCOPED_TRACE(t.name);
        Frame f = good;
        t.change(f);
        if (t.seal)
            seal(f);
        const Counters before = c();
        deliver(f);
        EXPECT_EQ(c().*t.counter, before.*t.counter + 1);
        if (t.own) {
            EXPECT_EQ(c().*t.own, before.*t.own + 1);
        }
        EXPECT_FALSE(written());
        ASSERT_EQ(net.b.device.errors.total(), ++errors);
        EXPECT_EQ(last_reason(), t.why);
        EXPECT_EQ(last_error().frame_bytes, f.size());
        EXPECT_TRUE(std::equal(f.begin(), f.begin() + last_error().header_bytes, last_error().header.begin()));
    }
    // A limited member's key is good for a full member.
    Frame f = good;
    f[44] &= 0x7f;
    deliver_sealed(f);
    EXPECT_TRUE(written());
}

TEST_F(Arrivals, NotForUsIsNotLookedAt)
{
    auto expect_ignored = [&](const char *what, std::function<void(Frame &)> change) {
        SCOPED_TRACE(what);
        Frame f = good;
        change(f);
        seal(f);
        deliver(f);
        EXPECT_FALSE(written());
    };
    expect_ignored("MAC", [](Frame &f) { f[5] ^= 0x80; });
    expect_ignored("multicast", [](Frame &f) { f[0] = 1; });
    expect_ignored("address", [](Frame &f) { f[33] ^= 0x80; });
    expect_ignored("port", [](Frame &f) { f[37] ^= 1; });
    expect_ignored("TCP", [](Frame &f) { f[23] = 6; });
    expect_ignored("fragment", [](Frame &f) { f[20] |= 0x20; });
    expect_ignored("fragment offset", [](Frame &f) { f[21] |= 1; });
    expect_ignored("VLAN", [](Frame &f) {
        const uint8_t tag[] = {0x81, 0x00, 0x00, 0x05};
        f.insert(f.begin() + 12, tag, tag + 4);
    });
    EXPECT_EQ(c().rx_packets + c().rx_bad_header + c().rx_bad_icrc + c().rx_unknown_qp + c().rx_too_short, 0u);
}

TEST_F(Arrivals, APriorityTagIsNoVlan)
{
    Frame f = good;
    const uint8_t tag[] = {0x81, 0x00, 0x60, 0x00};   // priority 3, VLAN 0
    f.insert(f.begin() + 12, tag, tag + 4);
    deliver(f);
    EXPECT_TRUE(written());
}

TEST_F(Arrivals, NothingIsReceivedBeforeInitialisation)
{
    net.b.driver.reset();
    deliver(good);
    EXPECT_EQ(c().rx_packets + c().rx_unknown_qp, 0u);
}

// ---- responders: opcode sequences and lengths, with packets made here

class ByHand : public Arrivals {
protected:
    // A packet from A to B.
    Frame packet(uint8_t opcode, uint32_t psn, const Bytes &extension, uint32_t payload, bool ack = true)
    {
        Frame f(good.begin(), good.begin() + 54);
        f[42] = opcode;
        f[43] = uint8_t(0x40 | (-payload & 3) << 4);
        f[50] = ack ? 0x80 : 0;
        f[51] = uint8_t(psn >> 16);
        f[52] = uint8_t(psn >> 8);
        f[53] = uint8_t(psn);
        f.insert(f.end(), extension.begin(), extension.end());
        for (uint32_t i = 0; i < payload; i++)
            f.push_back(Endpoint::pattern(1, i));
        f.resize(f.size() + (-payload & 3) + 4);
        const size_t ip = f.size() - 14, udp = f.size() - 34;
        f[16] = uint8_t(ip >> 8);
        f[17] = uint8_t(ip);
        f[38] = uint8_t(udp >> 8);
        f[39] = uint8_t(udp);
        seal(f);
        return f;
    }
    // With three bytes of the payload declared padding.
    static Frame padded(Frame f)
    {
        f[43] |= 0x30;
        put_icrc(f);
        return f;
    }
    // The same for another QP of B.
    static Frame packet_to(const Endpoint &to, Frame f)
    {
        f[47] = uint8_t(to.qp.qpn >> 16);
        f[48] = uint8_t(to.qp.qpn >> 8);
        f[49] = uint8_t(to.qp.qpn);
        put_icrc(f);
        return f;
    }
    // The message sequence number of the last frame.
    uint32_t msn()
    {
        const Frame &f = net.log.back();
        const uint8_t *aeth = &f[View(f).bth + sizeof(hghca_bth)];
        return uint32_t(aeth[1] << 16 | aeth[2] << 8 | aeth[3]);
    }
    Bytes reth(uint64_t va, uint32_t length)
    {
        uint64_t a = be64(va);
        uint32_t w[2] = {be32(p.b.buffer.key), be32(length)};
        Bytes bytes(16);
        std::memcpy(bytes.data(), &a, 8);
        std::memcpy(bytes.data() + 8, w, 8);
        return bytes;
    }
    Bytes reth(uint32_t length) { return reth(p.b.va(0), length); }
    // The syndromes of what B has answered since.
    std::vector<int> answers()
    {
        net.filter = [](const Node &, Frame &) { return Fate{0}; };
        net.pump();
        std::vector<int> all;
        for (size_t i = seen_; i < net.log.size(); i++)
            if (View v(net.log[i]); v.opcode == HGHCA_BTH_OP_ACK || v.opcode == HGHCA_BTH_OP_ATOMIC_ACK)
                all.push_back(v.syndrome);
        seen_ = net.log.size();
        return all;
    }
    using Answers = std::vector<int>;
    using Frames = std::vector<Frame>;
    // An ACK has no credit: no receive WQE is posted.
    static constexpr int kAck = 0x00, kSequence = 0x60, kInvalidRequest = 0x61, kAccessError = 0x62;

private:
    size_t seen_ = 1;
};

TEST_F(ByHand, MessagesOfSeveralPackets)
{
    deliver(packet(0x06, 0x100, reth(2148), 1024, false));
    EXPECT_EQ(answers(), Answers{});
    deliver(packet(0x07, 0x101, {}, 1024, false));
    deliver(packet(0x08, 0x102, {}, 100));
    EXPECT_EQ(answers(), Answers{kAck});
    for (int i = 0; i < 2; i++)
        EXPECT_TRUE(p.b.holds(uint64_t(i) * 1024, 1024, 1));
    EXPECT_TRUE(p.b.holds(2048, 100, 1));
}

// One packet, or one after a good first packet; each is an invalid request.
TEST_F(ByHand, InvalidRequests)
{
    struct {
        const char *name;
        hghca_drop why;
        std::function<Frames()> packets;
    } cases[] = {
        {"middle first", HGHCA_DROP_SEQUENCE, [&] { return Frames{packet(0x01, 0x100, {}, 1024)}; }},
        {"last first", HGHCA_DROP_SEQUENCE, [&] { return Frames{packet(0x02, 0x100, {}, 10)}; }},
        {"write middle first", HGHCA_DROP_SEQUENCE, [&] { return Frames{packet(0x07, 0x100, {}, 1024)}; }},
        {"first after first", HGHCA_DROP_SEQUENCE,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x00, 0x101, {}, 1024)}; }},
        {"only after first", HGHCA_DROP_SEQUENCE,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x04, 0x101, {}, 10)}; }},
        {"write after send", HGHCA_DROP_SEQUENCE,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x08, 0x101, {}, 10)}; }},
        {"send after write", HGHCA_DROP_SEQUENCE,
         [&] { return Frames{packet(0x06, 0x100, reth(2000), 1024), packet(0x02, 0x101, {}, 976)}; }},
        {"read in a message", HGHCA_DROP_SEQUENCE,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x0c, 0x101, reth(10), 0)}; }},
        {"first not full", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x00, 0x100, {}, 1020)}; }},
        {"first not full, and padded", HGHCA_DROP_PAD, [&] { return Frames{packet(0x00, 0x100, {}, 1023)}; }},
        {"first over the MTU", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x00, 0x100, {}, 1028)}; }},
        {"only over the MTU", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x04, 0x100, {}, 1025)}; }},
        {"last over the MTU", HGHCA_DROP_LENGTH,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x02, 0x101, {}, 1025)}; }},
        {"last empty", HGHCA_DROP_LENGTH,
         [&] { return Frames{packet(0x00, 0x100, {}, 1024), packet(0x02, 0x101, {}, 0)}; }},
        {"write shorter than said", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x0a, 0x100, reth(11), 10)}; }},
        {"write longer than said", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x0a, 0x100, reth(9), 10)}; }},
        {"write first alone", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x06, 0x100, reth(1024), 1024)}; }},
        {"write last too long", HGHCA_DROP_LENGTH,
         [&] { return Frames{packet(0x06, 0x100, reth(1034), 1024), packet(0x08, 0x101, {}, 11)}; }},
        {"write middle too many", HGHCA_DROP_LENGTH,
         [&] { return Frames{packet(0x06, 0x100, reth(1034), 1024), packet(0x07, 0x101, {}, 1024)}; }},
        {"padded first", HGHCA_DROP_PAD, [&] { return Frames{padded(packet(0x00, 0x100, {}, 1027))}; }},
        {"write over 2 GB", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x06, 0x100, reth(0x80000001), 1024)}; }},
        {"read over 2 GB", HGHCA_DROP_REQUEST, [&] { return Frames{packet(0x0c, 0x100, reth(0x80000001), 0)}; }},
        {"read with data", HGHCA_DROP_LENGTH, [&] { return Frames{packet(0x0c, 0x100, reth(10), 4)}; }},
        {"unknown opcode", HGHCA_DROP_OPCODE, [&] { return Frames{packet(0x1f, 0x100, {}, 0)}; }},
        {"resync", HGHCA_DROP_OPCODE, [&] { return Frames{packet(0x15, 0x100, {}, 0)}; }},
    };
    for (auto &t : cases) {
        SCOPED_TRACE(t.name);
        Pair fresh(net.a, net.b, Options{});
        fresh.b.post_recv(fresh.b.sge(0, 10000));
        fresh.b.post_recv(fresh.b.sge(0, 10000));
        const uint64_t counted = c().remote_invalid_nak_sent;
        std::swap(p.b.buffer, fresh.b.buffer);
        for (Frame f : t.packets()) {
            f[47] = uint8_t(fresh.b.qp.qpn >> 16);
            f[48] = uint8_t(fresh.b.qp.qpn >> 8);
            f[49] = uint8_t(fresh.b.qp.qpn);
            put_icrc(f);
            deliver(f);
        }
        std::swap(p.b.buffer, fresh.b.buffer);
        EXPECT_EQ(last_reason(), t.why);
        EXPECT_EQ(last_error().qpn, Qpn(fresh.b.qp.qpn));
        auto all = answers();
        ASSERT_FALSE(all.empty());
        EXPECT_EQ(all.back(), kInvalidRequest);
        EXPECT_EQ(c().remote_invalid_nak_sent, counted + 1);
        EXPECT_EQ(fresh.b.state(), unsigned(HGHCA_QP_STATE_ERR));
        auto done = fresh.b.poll_all();
        ASSERT_EQ(done.size(), 2u);
        const bool held = t.packets().size() == 2 && t.packets()[0][42] == 0;
        EXPECT_EQ(int(done[0].syndrome),
                  held ? HGHCA_SYNDROME_REMOTE_INVAL_REQ_ERR : HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(int(done[1].syndrome), HGHCA_SYNDROME_WR_FLUSH_ERR);
        EXPECT_EQ(net.b.events(HGHCA_EVENT_WQ_INVAL_REQ_ERROR), 1u);
    }
}

// Headers are kept, and what cannot be told from them is not.
TEST_F(ByHand, TheErrorBufferKeepsTheLastHeaders)
{
    hghca_error_buffer read;
    auto query = [&](uint32_t first) {
        TestDriver::must(net.b.driver.query(HGHCA_CMD_READ_ERROR_BUFFER, read, first), "READ_ERROR_BUFFER");
    };
    query(0);
    EXPECT_EQ(be64(read.total), 0u);
    EXPECT_EQ(be32(read.count), 0u);
    std::vector<Frame> frames;
    for (uint32_t i = 0; i < 70; i++) {
        net.b.host.clock_ns += 10;
        frames.push_back(packet(i % 2 ? 0x0a : 0x04, 0x100 + i, i % 2 ? reth(i) : Bytes{}, i));
        frames.back().back() ^= 1;
        deliver(frames.back());
    }
    const uint64_t kept = ErrorBuffer::kEntries, oldest = 70 - kept;
    uint64_t next = oldest, last = 0;
    for (query(0); be32(read.count); query(uint32_t(next))) {
        EXPECT_EQ(be64(read.total), 70u);
        ASSERT_EQ(be64(read.first), next);
        ASSERT_LE(be32(read.count), uint32_t(HGHCA_ERRORS_PER_MAILBOX));
        for (uint32_t i = 0; i < be32(read.count); i++, next++) {
            const hghca_packet_error &e = read.entries[i];
            const Frame &f = frames[next];
            EXPECT_EQ(e.why, HGHCA_DROP_ICRC);
            EXPECT_EQ(be32(e.length), f.size());
            EXPECT_EQ(be32(e.qpn), p.b.qp.qpn);
            EXPECT_GT(be64(e.time), last);
            last = be64(e.time);
            ASSERT_EQ(e.header_len, next % 2 ? 70 : 54);
            EXPECT_EQ(std::memcmp(e.header, f.data(), e.header_len), 0);
            for (size_t n = e.header_len; n < sizeof(e.header); n++)
                EXPECT_EQ(e.header[n], 0) << n;   // no payload
        }
    }
    EXPECT_EQ(next, 70u);
    for (uint32_t beyond : {70u, 71u, ~0u}) {
        query(beyond);
        EXPECT_EQ(be64(read.first), 70u);
        EXPECT_EQ(be32(read.count), 0u);
    }
    net.b.driver.reset();
    EXPECT_EQ(net.b.device.errors.total(), 0u);
}

TEST_F(ByHand, WhatIsRefusedIsKeptOnce)
{
    const ErrorBuffer &errors = net.b.device.errors;
    deliver(packet(0x04, 0x101, {}, 10));
    EXPECT_EQ(last_reason(), HGHCA_DROP_PSN);
    deliver(packet(0x04, 0x102, {}, 10));   // behind the NAK
    EXPECT_EQ(errors.total(), 1u);
    deliver(packet(0x04, 0x100, {}, 10));
    EXPECT_EQ(last_reason(), HGHCA_DROP_RNR);
    deliver(packet(0x0a, 0x100, reth(0, 10), 10));
    EXPECT_EQ(last_reason(), HGHCA_DROP_ACCESS);
    EXPECT_EQ(errors.total(), 3u);
    deliver(packet(0x0a, 0x101, reth(10), 10));
    EXPECT_EQ(last_reason(), HGHCA_DROP_QP_STATE);
    EXPECT_EQ(c().rx_qp_state, 1u);
}

TEST(Drops, HaveNamesAndNumbersOfTheirOwn)
{
    constexpr unsigned kAll[] = {
#define HGHCA_DROP_VALUE(name, value, text) value,
        HGHCA_DROPS(HGHCA_DROP_VALUE)
#undef HGHCA_DROP_VALUE
    };
    for (size_t i = 0; i < std::size(kAll); i++) {
        EXPECT_TRUE(i == 0 || kAll[i] > kAll[i - 1]);
        EXPECT_NE(drop_name(kAll[i]), nullptr);
    }
    EXPECT_STREQ(drop_name(HGHCA_DROP_ICRC), "ICRC");
    EXPECT_EQ(drop_name(HGHCA_DROP_NONE), nullptr);
    EXPECT_EQ(drop_name(255), nullptr);
}

TEST_F(ByHand, OneNakForOneGap)
{
    deliver(packet(0x0a, 0x105, reth(10), 10));
    deliver(packet(0x0a, 0x106, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kSequence});
    deliver(packet(0x0a, 0x107, reth(10), 10));
    EXPECT_EQ(answers(), Answers{});
    deliver(packet(0x0a, 0x100, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kAck});
    deliver(packet(0x0a, 0x107, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kSequence});
}

TEST_F(ByHand, HalfOfThePsnsAreAhead)
{
    // Expected: 0x100. The first that is old, the last that is ahead.
    deliver(packet(0x0a, 0x100 + 0x800000, reth(10), 10));
    EXPECT_EQ(c().duplicate_request, 1u);
    EXPECT_EQ(answers(), Answers{kAck});
    deliver(packet(0x0a, 0x100 + 0x7fffff, reth(10), 10));
    EXPECT_EQ(c().out_of_sequence, 1u);
    EXPECT_EQ(answers(), Answers{kSequence});
}

TEST_F(ByHand, AtomicsAreRememberedSixteenDeep)
{
    auto atomic = [&](uint32_t psn) {
        Bytes ext = reth(p.b.va(0), 0);
        ext.resize(12);
        ext.resize(28);
        ext[19] = 1;   // add 1
        return packet(0x14, psn, ext, 0);
    };
    for (uint32_t i = 0; i < 17; i++) {
        deliver(atomic(0x100 + i));
        EXPECT_EQ(answers(), Answers{kAck});
    }
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(0)), 17u);
    // The last sixteen are answered again, none is executed again, the oldest is forgotten.
    for (uint32_t i = 0; i < 17; i++) {
        deliver(atomic(0x100 + i));
        EXPECT_EQ(answers(), i ? Answers{kAck} : Answers{}) << i;
    }
    EXPECT_EQ(*reinterpret_cast<uint64_t *>(p.b.at(0)), 17u);
    const Frame &last = net.log.back();
    EXPECT_EQ(last[View(last).bth + 16 + 7], 16);   // the value before the last
}

// As above, when another atomic had the same PSN before all 2^24 were used.
TEST_F(ByHand, OfAtomicsWithOnePsnTheLastIsRemembered)
{
    hghca::Qp *qp = net.b.device.qps->find(Qpn(p.b.qp.qpn));
    for (uint64_t value : {7u, 8u}) {
        *reinterpret_cast<uint64_t *>(p.b.at(0)) = value;
        qp->resp.expected_psn = Psn(0x100);
        Bytes ext = reth(p.b.va(0), 0);
        ext.resize(12);
        ext.resize(28);
        for (int i = 0; i < 2; i++) {
            deliver(packet(0x14, 0x100, ext, 0));
            EXPECT_EQ(answers(), Answers{kAck});
            const Frame &answer = net.log.back();
            EXPECT_EQ(answer[View(answer).bth + 16 + 7], value);
        }
    }
}

TEST_F(ByHand, AtomicAnswersThatAreNone)
{
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    struct {
        const char *name;
        Bytes extension;
        uint32_t payload;
        int syndrome;
    } cases[] = {
        {"good", {0x1f, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, 0, 0},
        {"with a NAK", {0x62, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, 0, HGHCA_SYNDROME_BAD_RESP_ERR},
        {"with data", {0x1f, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5}, 8, HGHCA_SYNDROME_BAD_RESP_ERR},
    };
    for (auto &t : cases) {
        SCOPED_TRACE(t.name);
        Pair fresh(net.a, net.b, Options{});
        fresh.b.post(Wqe(HGHCA_OPCODE_ATOMIC_FA)
                         .raddr(fresh.a.va(0), fresh.a.buffer.key)
                         .atomic(1, 0)
                         .data(fresh.b.sge(0, 8)));
        net.pump();
        deliver(packet_to(fresh.b, packet(0x12, 0x100, t.extension, t.payload)));
        auto done = fresh.b.poll();
        ASSERT_TRUE(done);
        EXPECT_EQ(int(done->syndrome), t.syndrome);
        EXPECT_EQ(*fresh.b.at(0), t.syndrome ? 0 : 5);
    }
}

TEST_F(ByHand, OneAckForAllThatCameBefore)
{
    for (uint32_t i = 0; i < 3; i++)
        deliver(packet(0x0a, 0x100 + i, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kAck});
    View ack(net.log.back());
    EXPECT_EQ(ack.psn, 0x102u);
    EXPECT_EQ(msn(), 3u);
    // Nobody asks: nobody answers.
    deliver(packet(0x0a, 0x103, reth(10), 10, false));
    EXPECT_EQ(answers(), Answers{});
    deliver(packet(0x0a, 0x104, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kAck});
    EXPECT_EQ(View(net.log.back()).psn, 0x104u);
    EXPECT_EQ(msn(), 5u);
}

TEST_F(ByHand, MessageNumbersCountWholeMessages)
{
    deliver(packet(0x06, 0x100, reth(2048), 1024));
    EXPECT_EQ(answers(), Answers{kAck});
    EXPECT_EQ(msn(), 0u);
    deliver(packet(0x08, 0x101, {}, 1024));
    EXPECT_EQ(answers(), Answers{kAck});
    EXPECT_EQ(msn(), 1u);
    deliver(packet(0x0c, 0x102, reth(3000), 0));
    answers();
    EXPECT_EQ(msn(), 2u);   // a READ counts when it is accepted
    deliver(packet(0x0a, 0x105, reth(10), 10));
    EXPECT_EQ(answers(), Answers{kAck});
    EXPECT_EQ(msn(), 3u);
    // Neither a duplicate counts, nor what is refused.
    deliver(packet(0x0a, 0x105, reth(10), 10));
    deliver(packet(0x0a, 0x107, reth(10), 10));
    answers();
    EXPECT_EQ(msn(), 3u);
    deliver(packet(0x01, 0x106, {}, 1024));
    EXPECT_EQ(answers(), Answers{kInvalidRequest});
    EXPECT_EQ(msn(), 3u);
}

// A NAK that has not gone yet takes no place among the READs that were agreed, and does not go when what it asks for
// has come.
TEST_F(ByHand, ANakThatWaitsIsWithdrawn)
{
    Options one;
    one.dest_rd_atomic = 1;
    Pair fresh(net.a, net.b, Options{}, one);
    std::swap(p.b.buffer, fresh.b.buffer);
    const Frame ahead = packet_to(fresh.b, packet(0x0a, 0x101, reth(10), 10));
    const Frame expected = packet_to(fresh.b, packet(0x0c, 0x100, reth(10), 0));
    std::swap(p.b.buffer, fresh.b.buffer);
    net.b.host.link_full = true;
    deliver(ahead);
    net.pump();
    deliver(expected);
    net.b.host.link_full = false;
    net.b.device.link_ready();
    EXPECT_EQ(answers(), Answers{kAck});   // behind the READ response
    EXPECT_EQ(fresh.b.state(), unsigned(HGHCA_QP_STATE_RTS));
    EXPECT_EQ(c().remote_invalid_nak_sent, 0u);
    EXPECT_EQ(View(net.log[net.log.size() - 2]).opcode, HGHCA_BTH_OP_READ_RESPONSE_ONLY);
    // The next gap has its own.
    deliver(ahead);
    deliver(packet_to(fresh.b, packet(0x0a, 0x103, reth(10), 10)));
    EXPECT_EQ(answers().back(), kSequence);
}

// IBA vol 1, 10.9.3: of two members one at least is a full one.
TEST_F(ByHand, PartitionKeys)
{
    struct {
        uint16_t own, theirs;
        bool match;
    } cases[] = {
        {0xffff, 0xffff, true},  {0xffff, 0x7fff, true},  {0x7fff, 0xffff, true},  {0x7fff, 0x7fff, false},
        {0xffff, 0x8001, false}, {0x8001, 0x8001, true},  {0x8001, 0x0001, true},  {0x0001, 0x0001, false},
        {0x8001, 0x0002, false}, {0xffff, 0x0000, false},
    };
    for (auto &t : cases) {
        SCOPED_TRACE(t.own << 16 | t.theirs);
        Pair fresh(net.a, net.b, Options{});
        Frame f = packet_to(fresh.b, packet(0x0c, 0x100, reth(0), 0));
        f[44] = uint8_t(t.theirs >> 8);
        f[45] = uint8_t(t.theirs);
        seal(f);
        const uint64_t accepted = c().rx_packets, dropped = c().rx_bad_pkey;
        net.b.device.port.pkey = t.own;
        deliver(f);
        net.b.device.port.pkey = HGHCA_PKEY_DEFAULT;
        EXPECT_EQ(c().rx_packets - accepted, t.match ? 1u : 0u);
        EXPECT_EQ(c().rx_bad_pkey - dropped, t.match ? 0u : 1u);
    }
}

TEST_F(ByHand, ResponsesNobodyWaitsForAreIgnored)
{
    for (uint8_t opcode : {0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12})
        for (uint32_t psn : {0x0ffu, 0x100u, 0x101u, 0x800100u})
            deliver(packet(opcode, psn, Bytes(opcode == 0x0e ? 0 : opcode == 0x12 ? 12 : 4), opcode < 0x11 ? 8 : 0));
    EXPECT_FALSE(p.b.poll());
    EXPECT_EQ(p.b.state(), unsigned(HGHCA_QP_STATE_RTS));
}

TEST_F(ByHand, ResponsesThatDoNotFitTheRequest)
{
    struct {
        const char *name;
        bool read;
        Frame frame;
        int syndrome;   // 0: no effect
    } cases[] = {
        {"read response to a write", false, packet(0x10, 0x100, Bytes(4), 8), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"atomic answer to a write", false, packet(0x12, 0x100, Bytes(12), 0), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"atomic answer to a read", true, packet(0x12, 0x100, Bytes(12), 0), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"read response that begins in its middle", true, packet(0x0f, 0x100, Bytes(4), 8),
         HGHCA_SYNDROME_BAD_RESP_ERR},
        {"read response with a NAK", true, packet(0x10, 0x100, {0x62, 0, 0, 1}, 8), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"read response with an RNR NAK", true, packet(0x10, 0x100, {0x21, 0, 0, 1}, 8),
         HGHCA_SYNDROME_BAD_RESP_ERR},
        {"read response with a reserved syndrome", true, packet(0x10, 0x100, {0x9f, 0, 0, 1}, 8),
         HGHCA_SYNDROME_BAD_RESP_ERR},
        {"too short", true, packet(0x10, 0x100, Bytes(4), 7), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"too long", true, packet(0x10, 0x100, Bytes(4), 9), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"not the last", true, packet(0x0d, 0x100, Bytes(4), 1024), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"acknowledge of a read", true, packet(0x11, 0x100, {0x1f, 0, 0, 1}, 0), 0},
        {"reserved syndrome", false, packet(0x11, 0x100, {0x40, 0, 0, 1}, 0), 0},
        {"syndrome with its highest bit", false, packet(0x11, 0x100, {0x9f, 0, 0, 1}, 0), 0},
        {"reserved NAK code", false, packet(0x11, 0x100, {0x65, 0, 0, 1}, 0), HGHCA_SYNDROME_BAD_RESP_ERR},
        {"NAK: operation", false, packet(0x11, 0x100, {0x63, 0, 0, 1}, 0), HGHCA_SYNDROME_REMOTE_OP_ERR},
        {"PSN ahead", false, packet(0x11, 0x101, {0x1f, 0, 0, 1}, 0), 0},
        {"PSN old", false, packet(0x11, 0x0ff, {0x61, 0, 0, 1}, 0), 0},
    };
    net.filter = [](const Node &, Frame &) { return Fate{0}; };
    uint64_t bad_responses = 0;
    for (auto &t : cases) {
        SCOPED_TRACE(t.name);
        Pair fresh(net.a, net.b, Options{});
        fresh.b.post(t.read ? read_from(fresh.b.sge(0, 8), fresh.a.va(0), fresh.a.buffer.key)
                            : write_to(fresh.b.sge(0, 8), fresh.a.va(0), fresh.a.buffer.key));
        net.pump();
        t.frame[49] = uint8_t(fresh.b.qp.qpn);
        t.frame[48] = uint8_t(fresh.b.qp.qpn >> 8);
        put_icrc(t.frame);
        deliver(t.frame);
        auto done = fresh.b.poll();
        EXPECT_EQ(done ? int(done->syndrome) : 0, t.syndrome);
        EXPECT_EQ(bool(done), t.syndrome != 0);
        const bool bad = t.syndrome == HGHCA_SYNDROME_BAD_RESP_ERR && t.frame[42] != 0x11;
        bad_responses += bad;
        EXPECT_EQ(c().rx_bad_response, bad_responses);
        if (bad) {
            EXPECT_EQ(last_reason(), HGHCA_DROP_RESPONSE);
        }
    }
    EXPECT_EQ(c().rx_bad_syndrome, 2u);
}

}  // namespace
}  // namespace hghca::test::packet_test
