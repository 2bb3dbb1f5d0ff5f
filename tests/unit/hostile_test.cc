// SPDX-License-Identifier: GPL-2.0-or-later
// A guest and a peer that mean harm: random work requests, doorbells and packets, for devices of each profile.
// The device may refuse all of it; it must not crash, hang, or touch what it
// was not given. Each run repeats exactly, by its seed.
#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "profiles.h"
#include "wire/packet.h"

namespace hghca::test::hostile_test {
namespace {

using Options = Endpoint::Options;

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
    uint32_t operator()(uint32_t n)
    {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return uint32_t(state_ >> 33) % n;
    }

private:
    uint64_t state_;
};

class Hostile : public ::testing::TestWithParam<std::tuple<Profile, unsigned>> {
protected:
    static Profile profile() { return std::get<0>(GetParam()); }
    static unsigned seed() { return std::get<1>(GetParam()); }
    // RSNIC's own operations are looked at too.
    static Options options()
    {
        Options o = options_of(profile());
        o.vendor_ops = profile() == Profile::Rsnic;
        return o;
    }
    // Memory that no key gives: it must stay as it is.
    struct Guard {
        explicit Guard(Node &node) : host(node.host), dma(node.host.alloc(65536))
        {
            std::memset(host.at(dma), 0x5c, 65536);
        }
        bool intact() const
        {
            for (int i = 0; i < 65536; i++)
                if (host.at(dma)[i] != 0x5c)
                    return false;
            return true;
        }
        FakeHost &host;
        uint64_t dma;
    };
    // What each test ends with: none of it was the device's end.
    static void expect_alive(const Network &net)
    {
        EXPECT_FALSE(net.a.device.failed());
        EXPECT_FALSE(net.b.device.failed());
    }
};

// Packets that were good once, changed anywhere behind the UDP header, with all checksums right.
TEST_P(Hostile, PacketsWithEveryChecksumRight)
{
    Random random(seed());
    NetworkOf net(profile());
    Guard before(net.b);
    Options options = Hostile::options();
    options.mtu_code = 1;
    options.ack_timeout = 8;
    auto pair = std::make_unique<Pair>(net.a, net.b, options);
    Guard behind(net.b);
    for (unsigned round = 0; round < 400; round++) {
        for (int i = 0; i < 4; i++)
            if (uint16_t(pair->b.rq_head - 0) < 60)
                pair->b.post_recv(pair->b.sge(random(1000), random(2000)));
        net.filter = [&](const Node &, Frame &f) {
            if (f.size() > 62 && random(2)) {
                const unsigned changes = 1 + random(3);
                for (unsigned i = 0; i < changes; i++) {
                    const size_t at = 42 + random(std::min<uint32_t>(uint32_t(f.size()) - 46, 44));
                    // The destination stays: a packet for nobody proves nothing.
                    if (at < 47 || at > 49)
                        f[at] = uint8_t(random(4) ? f[at] ^ 1 << random(8) : random(256));
                }
                seal(f);
            }
            return Fate{random(10) ? 1u : random(3)};
        };
        const uint32_t size = random(1200);
        Wqe list[] = {
            send(pair->a.sge(0, size)),
            write_to(pair->a.sge(0, size), pair->b.va(random(100000)), pair->b.buffer.key),
            read_from(pair->a.sge(0, size), pair->b.va(random(100000)), pair->b.buffer.key),
            Wqe(HGHCA_OPCODE_ATOMIC_CS).raddr(pair->b.va(8), pair->b.buffer.key).atomic(1, 2).data(pair->a.sge(0, 8)),
        };
        pair->a.post(list[random(profile() == Profile::Rsnic ? 3 : 4)]);   // it has no atomics
        net.settle(20 * (4096ull << 8));
        pair->a.poll_all();
        pair->b.poll_all();
        if (pair->a.state() == HGHCA_QP_STATE_ERR || pair->b.state() == HGHCA_QP_STATE_ERR ||
            pair->a.sq_head > 60000 || pair->b.rq_head >= 60) {
            if (net.a.driver.device.counters().tx_packets > 100000)
                break;
            // Old QPs stay in error; a few hundred fit.
            pair->a.node.driver.to_reset(pair->a.qp.qpn);
            pair->b.node.driver.to_reset(pair->b.qp.qpn);
            if (round > 200)
                break;
            net.filter = nullptr;
            try {
                pair = std::make_unique<Pair>(net.a, net.b, options);
            } catch (const std::exception &) {
                break;   // out of test memory
            }
        }
    }
    EXPECT_TRUE(before.intact());
    EXPECT_TRUE(behind.intact());
    expect_alive(net);
}

// Frames of noise, and good frames with any byte changed and nothing made right again.
TEST_P(Hostile, FramesOfNoise)
{
    Random random(seed());
    NetworkOf net(profile());
    std::optional<Endpoint> raw;
    if (profile() != Profile::Base) {
        Options raw_options;
        raw_options.service = HGHCA_QP_ST_RAW;
        raw.emplace(net.b, raw_options);
        TestDriver::must(
            net.b.driver.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, raw->qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status, "RAW");
        TestDriver::must(net.b.driver.set_port(Node::mac_of(2).data(), 1500, HGHCA_PORT_PROMISC), "SET_PORT");
    }
    Pair p(net.a, net.b, options());
    net.keep_log = true;
    p.a.post({write_to(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key), read_from(p.a.sge(0, 100), p.b.va(0), p.b.buffer.key)});
    net.pump();
    const std::vector<Frame> samples = net.log;
    net.keep_log = false;
    for (unsigned i = 0; i < 3000; i++) {
        Frame f = samples[random(uint32_t(samples.size()))];
        switch (random(4)) {
        case 0:
            for (uint8_t &byte : f)
                byte = uint8_t(random(256));
            break;
        case 1:
            f.resize(random(uint32_t(f.size()) + 1));
            break;
        case 2:
            f.resize(f.size() + random(9300));
            break;
        default:
            break;
        }
        for (unsigned n = random(4); n && !f.empty(); n--)
            f[random(uint32_t(f.size()))] = uint8_t(random(256));
        if (raw && random(3) == 0)
            raw->post_recv(raw->sge(0, random(2000)));
        Network::deliver(net.b, f);
        if (raw)
            raw->poll_all();
        p.b.poll_all();
    }
    net.settle(1'000'000'000);
    expect_alive(net);
}

// WQEs, links and doorbells of noise.
TEST_P(Hostile, WorkRequestsOfNoise)
{
    Random random(seed());
    NetworkOf net(profile());
    const bool full = profile() == Profile::Full, base = profile() == Profile::Base;
    // UD is the service of RSNIC's QP 1 alone.
    const uint8_t services[] = {uint8_t(profile() == Profile::Rsnic ? HGHCA_QP_ST_RC : HGHCA_QP_ST_UD),
                                uint8_t(base ? HGHCA_QP_ST_UC : HGHCA_QP_ST_RAW), HGHCA_QP_ST_RC};
    for (unsigned round = 0; round < 60; round++) {
        Options options = options_of(profile());
        options.sq_wqes = options.rq_wqes = 8;
        options.ack_timeout = 6;
        options.retry = options.rnr_retry = 3;
        options.buffer_bytes = 65536;
        options.service = services[round % 3];
        options.vendor_ops = profile() == Profile::Rsnic && options.service == HGHCA_QP_ST_RC;
        options.cq_log = 10;
        options.trusted = random(2);
        Pair p(net.a, net.b, options, TestDriver::is_connected(options.service));
        Guard guard(net.b);
        TestDriver &d = net.a.driver;
        std::vector<uint32_t> keys;
        if (full)
            keys = {d.create_fast_mr(4).key, d.create_window(false), d.create_window(true)};
        keys.push_back(p.a.buffer.key);
        keys.push_back(d.create_mr(0x5000, 4096, TestDriver::kRw | (full ? HGHCA_ACCESS_MW_BIND : 0)).key);
        const auto any_key = [&] { return keys[random(uint32_t(keys.size()))]; };
        const uint64_t list = net.a.host.alloc(4096);
        const uint8_t opcodes[] = {0, 8, 9, 0xa, 0xb, 0x10, 0x11, 0x12, 0xc, 0x18, 0x19, 0x1a};
        for (unsigned step = 0; step < 40; step++) {
            // A queue of plausible WQEs with some of it changed.
            for (int i = 0; i < 4; i++)
                p.b.post_recv(p.b.sge(random(60000), random(8000)));
            const uint8_t opcode = random(8) ? opcodes[random(12)] : uint8_t(random(32));
            const uint32_t key = random(4) ? any_key() : random(0x10000);
            Wqe wqe(opcode, random(16), random(1000));
            if (options.service == HGHCA_QP_ST_UD)
                put_address(wqe, net.a, random(4) ? p.b.qp.qpn : random(1 << 24), 1 + random(2), random(4));
            else if (opcode == 0x18)
                wqe.put(hghca_bind_unit{le32(random(0x80)), 0, le32(key ^ random(2)), le32(any_key()),
                                        le64(0x5000 + random(5000)), le64(random(5000))});
            else if (opcode == 0x19)
                wqe.put(hghca_reg_unit{le32(key ^ random(2)), le32(random(0x80)), le64(random(0x8000)),
                                       le64(random(20000)), le64(random(8) ? list : random(0x10000)), le32(random(6)),
                                       le32(random(3)), le32(random(3) ? 0 : random(5000)), 0});
            else if (opcode == 0x1a)
                wqe.put(hghca_inv_unit{le32(key ^ random(2)), {}});
            else if (opcode >= 8 && (opcode < 0xa || opcode > 0xc))
                wqe.raddr(p.b.va(random(60000)), p.b.buffer.key);
            if (opcode == 0x11 || opcode == 0x12)
                wqe.atomic(1, 1).data(p.a.sge(random(8000) * 8, 8));
            else
                for (unsigned n = random(4); n; n--)
                    wqe.data(p.a.sge(random(60000), random(5000)));
            if (random(4) == 0)
                wqe.bytes[random(uint32_t(wqe.bytes.size()))] = uint8_t(random(256));
            wqe.fence = !random(4);
            const uint16_t head = p.a.sq_head;
            p.a.write(wqe);
            if (random(6) == 0)
                for (unsigned n = random(40); n; n--)
                    *(p.a.send_slot(0) + random(8u << 8)) = uint8_t(random(256));
            if (random(8) == 0)
                net.a.driver.ring_sq(p.a.qp, uint16_t(head + random(9) - 4), uint8_t(random(32)), uint8_t(random(256)),
                                     uint8_t(random(256)), random(2));
            else
                p.a.ring(head, wqe, 1);
            if (p.a.qp.dbr && random(10) == 0)
                net.a.host.as<hghca_qp_dbr>(p.a.qp.dbr)->rq_head = random(0x10000);
            if (random(20) == 0)
                net.a.driver.to_error(p.a.qp.qpn);
            if (random(20) == 0)
                net.a.driver.modify(HGHCA_CMD_RTS2SQD_QPEE, p.a.qp.qpn, hghca_qpc{});
            if (random(10) == 0)
                net.a.driver.modify(random(2) ? HGHCA_CMD_SQD2RTS_QPEE : HGHCA_CMD_SQERR2RTS_QPEE, p.a.qp.qpn,
                                    hghca_qpc{});
            net.settle(6 * (4096ull << 6));
            p.a.poll_all();
            p.b.poll_all();
        }
        net.a.driver.to_reset(p.a.qp.qpn);
        net.b.driver.to_reset(p.b.qp.qpn);
        EXPECT_TRUE(guard.intact());
    }
    expect_alive(net);
}

// The guest writes into what it has lent the device: contexts come back changed.
TEST_P(Hostile, ContextsOfNoise)
{
    Random random(seed());
    NetworkOf net(profile(), 1);
    Options options = Hostile::options();
    options.ack_timeout = 6;
    options.retry = options.rnr_retry = 3;
    options.mtu_code = 1;
    std::vector<std::unique_ptr<Pair>> pairs;
    for (int i = 0; i < 3; i++)
        pairs.push_back(std::make_unique<Pair>(net.a, net.b, options));
    net.filter = [&](const Node &, Frame &) { return Fate{random(10) ? 1u : 0u}; };
    for (unsigned step = 0; step < 300; step++) {
        Pair &p = *pairs[random(3)];
        p.b.post_recv(p.b.sge(0, 3000));
        Wqe list[] = {send(p.a.sge(0, random(3000))),
                      write_to(p.a.sge(0, random(3000)), p.b.va(0), p.b.buffer.key),
                      read_from(p.a.sge(0, random(3000)), p.b.va(0), p.b.buffer.key)};
        p.a.post(list[random(3)]);
        for (Node *node : {&net.a, &net.b}) {
            const uint32_t qpn = random(2) ? p.a.qp.qpn : p.b.qp.qpn;
            uint8_t *entry = node->host.at(node->driver.qpc_dma + uint64_t(qpn) * 2048);
            for (unsigned n = random(4); n; n--)
                entry[16 + random(1200)] ^= uint8_t(1 << random(8));
        }
        net.settle(4 * (4096ull << 6));
        p.a.poll_all();
        p.b.poll_all();
    }
    expect_alive(net);
}

using ::testing::Combine;
using ::testing::Range;
using ::testing::Values;

INSTANTIATE_TEST_SUITE_P(Full, Hostile, Combine(Values(Profile::Full), Range(0u, 12u)));
INSTANTIATE_TEST_SUITE_P(Others, Hostile, Combine(Values(Profile::Base, Profile::Rsnic), Range(0u, 4u)));

}  // namespace
}  // namespace hghca::test::hostile_test
