// SPDX-License-Identifier: GPL-2.0-or-later
// Two functions over one transport: the JingZhao HCA and the beginnings of the ERNIC (ernic.h), on one link.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "ernic.h"
#include "verbs.h"

namespace hghca::test {
namespace {

constexpr uint32_t kErnicQpn = 5;
constexpr uint32_t kErnicPd = 9;
constexpr uint16_t kDepth = 16;
constexpr uint32_t kSlotBytes = 8192;
constexpr uint32_t kMtu = 1024;
constexpr uint32_t kBufferBytes = 1 << 18;

// An ERNIC with one reliable connection: 02:00:00:00:00:n, 10.10.0.n.
struct ErnicEnd {
    explicit ErnicEnd(unsigned n) : number(n), ernic(Node::mac_of(n)), buffer(ernic.host.alloc(kBufferBytes)) {}

    void connect(unsigned peer, uint32_t peer_qpn, uint32_t sq_psn, uint32_t rq_psn)
    {
        QpAttributes a{};
        a.mtu = kMtu;
        a.log_max_msg = 31;
        a.pd = kErnicPd;
        a.sq.length = kDepth;
        a.remote_qpn = peer_qpn;
        a.path.dmac = Node::mac_of(peer);
        a.path.smac = Node::mac_of(number);
        a.path.sip = 0x0a0a0000 | number;
        a.path.dip = 0x0a0a0000 | peer;
        a.ack_timeout = 14;
        a.retry_count = a.rnr_retry = 7;
        a.min_rnr_timer = 1;
        a.max_rd_atomic = a.max_dest_rd_atomic = 16;
        a.access = uint8_t(uint32_t(Access::RemoteWrite) | uint32_t(Access::RemoteRead));
        registers = &ernic.connect(kErnicQpn, a, sq_psn, rq_psn);
        registers->sq_depth = registers->rq_depth = kDepth;
        registers->rq_slot_bytes = kSlotBytes;
        registers->sqba = ernic.host.alloc(kDepth * sizeof(ErnicWqe));
        registers->cqba = ernic.host.alloc(kDepth * 4);
        registers->rqba = ernic.host.alloc(kDepth * kSlotBytes);
        ernic.write_pd(3, {.pd = kErnicPd, .va = 0x10000000, .bytes = kBufferBytes, .base = buffer, .key = 0x5a,
                           .access = 2, .valid = true});
    }
    static uint32_t rkey() { return Ernic::rkey_of(3, 0x5a); }
    static uint64_t va(uint64_t offset) { return 0x10000000 + offset; }

    void write_wqe(ErnicWqe wqe)
    {
        const uint16_t slot = tail % kDepth;
        wqe.wrid = uint16_t(0x4000 + tail);
        std::memcpy(ernic.host.at(registers->sqba + slot * sizeof(wqe)), &wqe, sizeof(wqe));
        tail++;
    }
    void ring() { ernic.write_sqpi(kErnicQpn, uint16_t((tail - 1) % kDepth + 1)); }
    void post(const ErnicWqe &wqe)
    {
        write_wqe(wqe);
        ring();
    }
    ErnicWqe wqe(uint8_t opcode, uint64_t offset, uint32_t length, uint64_t roffset = 0, uint32_t rtag = 0) const
    {
        ErnicWqe w{};
        w.opcode = opcode;
        w.laddr = buffer + offset;
        w.length = length;
        w.roffset = roffset;
        w.rtag = rtag;
        return w;
    }
    uint32_t cqe(uint16_t index)
    {
        uint32_t word;
        std::memcpy(&word, ernic.host.at(registers->cqba + (index % kDepth) * 4u), 4);
        return word;
    }
    void fill(uint64_t offset, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            ernic.host.at(buffer + offset)[i] = Endpoint::pattern(seed, i);
    }
    static bool same(const uint8_t *bytes, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            if (bytes[i] != Endpoint::pattern(seed, i))
                return false;
        return true;
    }
    bool holds(uint64_t offset, size_t length, uint32_t seed)
    {
        return same(ernic.host.at(buffer + offset), length, seed);
    }
    bool slot_holds(uint16_t slot, size_t length, uint32_t seed)
    {
        return same(ernic.host.at(registers->rqba + slot * uint64_t(kSlotBytes)), length, seed);
    }

    unsigned number;
    Ernic ernic;
    uint64_t buffer;
    Ernic::Registers *registers = nullptr;
    uint16_t tail = 0;
};

// Who is at an end of the link, whatever it is.
struct End {
    FakeHost &host;
    std::function<void(const iovec *, int)> receive;
    std::function<void()> run, expire;
    std::function<bool()> has_work;
    std::function<uint64_t()> deadline;
};

End end_of(Node &node)
{
    Device &device = node.device;
    return {node.host, [&](const iovec *parts, int count) { device.receive(parts, count); }, [&] { device.run(); },
            [&] { device.timer(); }, [&] { return device.has_work(); }, [&] { return node.host.deadline_ns; }};
}

End end_of(ErnicEnd &end)
{
    Ernic &e = end.ernic;
    return {e.host, [&](const iovec *parts, int count) { e.receive(parts, count); }, [&] { e.run(); },
            [&] { e.expire(); }, [&] { return e.has_work(); }, [&] { return e.next_deadline(); }};
}

// Two ends, and a link that loses and doubles what `fate` says; time goes from deadline to deadline.
class TwoEnds {
public:
    TwoEnds(End a, End b) : ends_{std::move(a), std::move(b)}
    {
        for (unsigned i = 0; i < 2; i++)
            ends_[i].host.on_frame = [this, i](const Frame &frame) {
                log.push_back({i, frame});
                const unsigned copies = fate ? fate(i, frame) : 1;
                for (unsigned n = 0; n < copies; n++)
                    wire_.push_back({1 - i, frame});
            };
    }
    void settle(uint64_t ns = 10'000'000'000)
    {
        const uint64_t end = now() + ns;
        for (unsigned steps = 0; steps < 2'000'000; steps++) {
            if (step())
                continue;
            const uint64_t next = std::min(ends_[0].deadline(), ends_[1].deadline());
            if (next > end)
                return;
            for (End &e : ends_)
                e.host.clock_ns = std::max(next, now());
            for (End &e : ends_)
                if (e.deadline() <= now())
                    expire(e);
        }
        throw std::runtime_error("the link does not come to rest");
    }
    std::function<unsigned(unsigned from, const Frame &)> fate;
    std::vector<std::pair<unsigned, Frame>> log;

private:
    uint64_t now() const { return ends_[0].host.clock_ns; }
    static void expire(End &e)
    {
        e.host.deadline_ns = UINT64_MAX;
        e.expire();
    }
    bool step()
    {
        bool moved = false;
        for (End &e : ends_)
            if (e.has_work()) {
                e.run();
                moved = true;
            }
        if (wire_.empty())
            return moved;
        auto [to, frame] = std::move(wire_.front());
        wire_.pop_front();
        iovec part{frame.data(), frame.size()};
        ends_[to].receive(&part, 1);
        return true;
    }
    std::array<End, 2> ends_;
    std::deque<std::pair<unsigned, Frame>> wire_;
};

// The ERNIC is number 1, the JingZhao HCA number 2.
class ErnicToHca : public ::testing::Test {
protected:
    ErnicToHca() : node(2), hca(node, options()), link(end_of(ernic), end_of(node))
    {
        ernic.connect(2, hca.qp.qpn, 0xfffffe, 0x200);   // the PSNs wrap under way
        TestDriver &d = node.driver;
        TestDriver::Peer peer{};
        peer.qpn = kErnicQpn;
        std::memcpy(peer.dmac, Node::mac_of(1).data(), 6);
        const Gid gid = Node::gid_of(1, 0);
        peer.dgid = gid.data();
        hghca_qpc c = d.rtr_qpc(peer, 0xfffffe, 3, 16);
        c.rnr_nextrecvpsn = be32(1u << 24 | 0xfffffe);
        TestDriver::must(d.modify(HGHCA_CMD_INIT2RTR_QPEE, hca.qp.qpn, c), "INIT2RTR");
        hca.to_rts();
    }
    static Endpoint::Options options()
    {
        Endpoint::Options o;
        o.sq_psn = 0x200;
        o.rq_psn = 0xfffffe;
        return o;
    }
    // Requests that the ERNIC has sent with this PSN.
    size_t sent(uint32_t psn) const
    {
        return size_t(std::count_if(link.log.begin(), link.log.end(), [&](const auto &f) {
            const View v(f.second);
            return f.first == 0 && v.is_request() && v.psn == psn;
        }));
    }
    void expect_complete(uint16_t messages)
    {
        EXPECT_EQ(ernic.registers->cqhead, messages ? (messages - 1) % kDepth + 1 : 0);
        EXPECT_FALSE(ernic.registers->fatal);
        EXPECT_EQ(ernic.ernic.state(kErnicQpn), QpState::Rts);
    }

    ErnicEnd ernic{1};
    Node node;
    Endpoint hca;
    TwoEnds link;
};

TEST_F(ErnicToHca, SendWriteAndReadOfTheErnic)
{
    ernic.fill(0, 5000, 1);
    hca.fill(100000, 4000, 3);
    hca.post_recv(hca.sge(0, 8192));
    hca.post_recv(hca.sge(8192, 8192));
    ErnicWqe small = ernic.wqe(Ernic::kSend, 0, 16);
    small.laddr = 0;   // nothing is read there
    for (unsigned i = 0; i < 16; i++)
        small.sdata[i] = Endpoint::pattern(7, i);
    ernic.write_wqe(ernic.wqe(Ernic::kSend, 0, 5000));
    ernic.write_wqe(small);
    ernic.write_wqe(ernic.wqe(Ernic::kWrite, 0, 5000, hca.va(50000), hca.buffer.key));
    ernic.write_wqe(ernic.wqe(Ernic::kRead, 10000, 4000, hca.va(100000), hca.buffer.key));
    ernic.ring();
    link.settle();
    expect_complete(4);
    // Seed 000, table 2-2: WRID in bits 15:0, the opcode of the WQE in 23:16, no error in 31:24.
    EXPECT_EQ(ernic.cqe(0), 0x4000u | 2 << 16);
    EXPECT_EQ(ernic.cqe(2), 0x4002u | 0 << 16);
    EXPECT_EQ(ernic.cqe(3), 0x4003u | 4 << 16);
    EXPECT_TRUE(hca.holds(0, 5000, 1));
    EXPECT_TRUE(hca.holds(8192, 16, 7));
    EXPECT_TRUE(hca.holds(50000, 5000, 1));
    EXPECT_TRUE(ernic.holds(10000, 4000, 3));
    const auto received = hca.poll_all();
    ASSERT_EQ(received.size(), 2u);
    EXPECT_EQ(received[0].bytes, 5000u);
    EXPECT_EQ(received[1].bytes, 16u);
}

TEST_F(ErnicToHca, SendWriteAndReadToTheErnic)
{
    hca.fill(0, 5000, 1);
    ernic.fill(100000, 4000, 3);
    hca.post(send(hca.sge(0, 5000)));
    hca.post(write_to(hca.sge(0, 5000), ErnicEnd::va(50000), ErnicEnd::rkey()));
    hca.post(read_from(hca.sge(10000, 4000), ErnicEnd::va(100000), ErnicEnd::rkey()));
    link.settle();
    for (const Completion &c : hca.poll_all())
        EXPECT_FALSE(c.error) << int(c.syndrome);
    EXPECT_EQ(ernic.registers->rq_written, 1);
    EXPECT_TRUE(ernic.slot_holds(0, 5000, 1));
    EXPECT_TRUE(ernic.holds(50000, 5000, 1));
    EXPECT_TRUE(hca.holds(10000, 4000, 3));
}

// Seed 004, 81 to 84: PSN, MSN and the pointer of the send queue go back to where the message began.
TEST_F(ErnicToHca, WholeMessageGoesAgain)
{
    unsigned requests = 0;
    link.fate = [&](unsigned from, const Frame &f) { return from == 0 && View(f).is_request() && ++requests == 4 ? 0u : 1u; };
    ernic.fill(0, 5000, 1);
    ernic.post(ernic.wqe(Ernic::kWrite, 0, 5000, hca.va(0), hca.buffer.key));
    link.settle();
    expect_complete(1);
    EXPECT_TRUE(hca.holds(0, 5000, 1));
    for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u})
        EXPECT_EQ(sent(psn), 2u) << psn;
}

// The HCA sends from the packet that was lost.
TEST_F(ErnicToHca, HcaSendsFromTheLostPacket)
{
    unsigned requests = 0;
    link.fate = [&](unsigned from, const Frame &f) { return from == 1 && View(f).is_request() && ++requests == 4 ? 0u : 1u; };
    hca.fill(0, 5000, 1);
    hca.post(write_to(hca.sge(0, 5000), ErnicEnd::va(0), ErnicEnd::rkey()));
    link.settle();
    EXPECT_TRUE(ernic.holds(0, 5000, 1));
    for (const auto &[psn, times] : {std::pair{0x200u, 1}, {0x202u, 1}, {0x203u, 2}, {0x204u, 2}})
        EXPECT_EQ(std::count_if(link.log.begin(), link.log.end(),
                                [&, p = psn](const auto &f) {
                                    const View v(f.second);
                                    return f.first == 1 && v.is_request() && v.psn == p;
                                }),
                  times)
            << psn;
}

TEST_F(ErnicToHca, ProtectionDomainTableRefuses)
{
    ernic.ernic.write_pd(4, {.pd = kErnicPd + 1, .va = ErnicEnd::va(0), .bytes = kBufferBytes, .base = ernic.buffer,
                             .key = 1, .access = 2, .valid = true});
    ernic.fill(0, 16, 9);
    hca.fill(0, 16, 1);
    hca.post(write_to(hca.sge(0, 16), ErnicEnd::va(0), Ernic::rkey_of(4, 1)));
    link.settle();
    const auto done = hca.poll_all();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].syndrome, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_TRUE(ernic.holds(0, 16, 9));
    EXPECT_EQ(ernic.ernic.events, std::vector<Event>{Event::AccessViolation});
}

TEST_F(ErnicToHca, FullReceiveQueueIsNotReady)
{
    // A ring of `kDepth` slots holds one message less.
    for (unsigned i = 0; i < kDepth; i++) {
        hca.fill(i * 100, 100, i);
        hca.post(send(hca.sge(i * 100, 100)));
    }
    link.settle(5'000'000);
    EXPECT_EQ(hca.poll_all().size(), kDepth - 1u);
    EXPECT_EQ(ernic.registers->rq_written, kDepth - 1);
    EXPECT_GT(std::count(ernic.ernic.drops.begin(), ernic.ernic.drops.end(), Drop::Rnr), 0);
    ernic.ernic.write_rqci(kErnicQpn, 1);
    link.settle(100'000'000);
    EXPECT_EQ(hca.poll_all().size(), 1u);
    EXPECT_TRUE(ernic.slot_holds(kDepth - 1, 100, kDepth - 1));
}

TEST_F(ErnicToHca, WrongOpcodeIsFatal)
{
    ernic.write_wqe(ernic.wqe(0x01, 0, 16));
    ernic.write_wqe(ernic.wqe(Ernic::kSend, 0, 100));
    ernic.ring();
    link.settle();
    EXPECT_TRUE(ernic.registers->fatal);
    EXPECT_EQ(ernic.cqe(0), 0x4000u | 1u << 16 | 1u << 24);
    EXPECT_EQ(ernic.registers->cqhead, 1);
    EXPECT_EQ(ernic.ernic.state(kErnicQpn), QpState::Error);
    EXPECT_TRUE(link.log.empty());
}

TEST_F(ErnicToHca, IndexThatTheQueueCannotHaveIsIgnored)
{
    for (const uint16_t bad : {uint16_t(0), uint16_t(kDepth + 1), uint16_t(0xffff)})
        ernic.ernic.write_sqpi(kErnicQpn, bad);
    link.settle();
    EXPECT_EQ(ernic.registers->sqpi, 0);
    EXPECT_TRUE(link.log.empty());
}

// A promise of the function that does not hold ends its device, and nothing is sent.
TEST_F(ErnicToHca, BrokenPromiseOfTheFunctionIsFound)
{
    ernic.ernic.skips_an_index = true;
    ernic.write_wqe(ernic.wqe(Ernic::kSend, 0, 100));
    EXPECT_THROW(ernic.ring(), std::logic_error);
    EXPECT_TRUE(link.log.empty());
}

// Messages of all kinds both ways at once, on a link that loses and doubles one packet in ten.
TEST_F(ErnicToHca, BothWaysOnAPoorLink)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        link.fate = [&random](unsigned, const Frame &) { return random() % 10 ? 1u : random() % 2 ? 0u : 2u; };
        const unsigned first = ernic.tail;
        for (unsigned i = 0; i < 6; i++) {
            const uint32_t bytes = 1 + random() % 6000;
            ernic.fill(i * 8192, bytes, seed + i);
            hca.fill(100000 + i * 8192, bytes, seed + 100 + i);
            ernic.post(ernic.wqe(i % 2 ? Ernic::kWrite : Ernic::kRead, i % 2 ? i * 8192 : 60000 + i * 8192, bytes,
                                 hca.va(i % 2 ? 200000 + i * 8192 : 100000 + i * 8192), hca.buffer.key));
            hca.post(write_to(hca.sge(100000 + i * 8192, bytes), ErnicEnd::va(120000 + i * 8192), ErnicEnd::rkey()));
            link.settle(2'000'000'000);
            EXPECT_TRUE(ernic.holds(120000 + i * 8192, bytes, seed + 100 + i));
            if (i % 2)
                EXPECT_TRUE(hca.holds(200000 + i * 8192, bytes, seed + i));
            else
                EXPECT_TRUE(ernic.holds(60000 + i * 8192, bytes, seed + 100 + i));
        }
        expect_complete(uint16_t(first + 6));
        for (const Completion &c : hca.poll_all())
            EXPECT_FALSE(c.error) << int(c.syndrome);
        if (HasFailure())
            break;
    }
}

TEST(ErnicToErnic, SendWriteAndRead)
{
    ErnicEnd a{1}, b{2};
    TwoEnds link(end_of(a), end_of(b));
    a.connect(2, kErnicQpn, 100, 200);
    b.connect(1, kErnicQpn, 200, 100);
    a.fill(0, 5000, 1);
    b.fill(100000, 5000, 2);
    a.write_wqe(a.wqe(Ernic::kSend, 0, 5000));
    a.write_wqe(a.wqe(Ernic::kWrite, 0, 5000, ErnicEnd::va(50000), ErnicEnd::rkey()));
    a.write_wqe(a.wqe(Ernic::kRead, 10000, 5000, ErnicEnd::va(100000), ErnicEnd::rkey()));
    a.ring();
    link.settle();
    EXPECT_EQ(a.registers->cqhead, 3);
    EXPECT_TRUE(b.slot_holds(0, 5000, 1));
    EXPECT_TRUE(b.holds(50000, 5000, 1));
    EXPECT_TRUE(a.holds(10000, 5000, 2));
}

}  // namespace
}  // namespace hghca::test
