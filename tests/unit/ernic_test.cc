// SPDX-License-Identifier: GPL-2.0-or-later
// Two functions over one transport: the JingZhao HCA and the ERNIC, on one link.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ernic.h"
#include "verbs.h"

namespace hghca::test::ernic_test {
namespace {

constexpr uint32_t kErnicQpn = 5;
constexpr uint32_t kErnicPd = 9;
constexpr uint16_t kDepth = 16;
constexpr uint32_t kSlotBytes = 8192;
constexpr uint32_t kMtu = 1024;
constexpr uint8_t kRetries = 7;
constexpr uint32_t kBufferBytes = 1 << 18;

// A reliable connection of an ERNIC: 02:00:00:00:00:n, 10.10.0.n.
struct ErnicEnd {
    explicit ErnicEnd(unsigned n, const ernic::Config &config = {})
        : number(n), host(std::make_unique<FakeHost>(4u << 20)),
          own(std::make_unique<Ernic>(*host, host->alloc(Ernic::kErrorBytes), config)), ernic(*own),
          buffer(ernic.host.alloc(kBufferBytes))
    {
    }
    // Another one of the same ERNIC.
    ErnicEnd(const ErnicEnd &other, uint32_t qpn)
        : number(other.number), ernic(other.ernic), qpn(qpn), entry(uint8_t(qpn)), buffer(ernic.host.alloc(kBufferBytes))
    {
    }

    void connect(unsigned peer, uint32_t peer_qpn, uint32_t sq_psn, uint32_t rq_psn)
    {
        QpAttributes a{};
        a.mtu = kMtu;
        a.log_max_msg = 31;
        a.pd = kErnicPd;
        a.sq.length = kDepth;
        a.remote_qpn = Qpn(peer_qpn);
        a.path.dmac = Node::mac_of(peer);
        a.path.smac = Node::mac_of(number);
        a.path.sip = 0x0a0a0000 | number;
        a.path.dip = 0x0a0a0000 | peer;
        a.ack_timeout = 14;
        a.retry_count = a.rnr_retry = kRetries;
        a.min_rnr_timer = 1;
        a.max_rd_atomic = a.max_dest_rd_atomic = 16;
        a.access = uint8_t(uint32_t(Access::RemoteWrite) | uint32_t(Access::RemoteRead));
        queues.sq_depth = queues.rq_depth = kDepth;
        queues.slot_bytes = kSlotBytes;
        queues.sqba = ernic.host.alloc(kDepth * sizeof(ErnicWqe));
        queues.cqba = ernic.host.alloc(kDepth * 4);
        queues.rqba = ernic.host.alloc(kDepth * kSlotBytes);
        ernic.connect(qpn, a, queues, sq_psn, rq_psn);
        ernic.write_pd(entry, {.pd = kErnicPd, .va = 0x10000000, .bytes = kBufferBytes, .base = buffer, .key = 0x5a,
                               .access = 2});
    }
    uint32_t rkey() const { return Ernic::rkey_of(entry, 0x5a); }
    static uint64_t va(uint64_t offset) { return 0x10000000 + offset; }

    void write_wqe(ErnicWqe wqe)
    {
        const uint16_t slot = tail % kDepth;
        wqe.wrid = uint16_t(0x4000 + tail);
        std::memcpy(ernic.host.at(queues.sqba + slot * sizeof(wqe)), &wqe, sizeof(wqe));
        tail++;
    }
    void ring() { ernic.write_sqpi(qpn, uint16_t((tail - 1) % kDepth + 1)); }
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
        std::memcpy(&word, ernic.host.at(queues.cqba + (index % kDepth) * 4u), 4);
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
        return same(ernic.host.at(queues.rqba + slot * uint64_t(kSlotBytes)), length, seed);
    }

    unsigned number;
    std::unique_ptr<FakeHost> host;
    std::unique_ptr<Ernic> own;
    Ernic &ernic;
    uint32_t qpn = kErnicQpn;
    uint8_t entry = 3;   // of the protection domain table
    uint64_t buffer;
    Ernic::Queues queues{};
    uint16_t tail = 0;

    uint16_t cqhead() { return ernic.cqhead(qpn); }
    uint16_t rq_written() { return ernic.rq_written(qpn); }
    bool is_fatal() { return ernic.is_fatal(qpn); }
    uint16_t fatal_code() { return ernic.fatal_code(qpn); }
    bool is_pending(unsigned line) { return ernic.read(Ernic::kIntStatus) >> line & 1; }
};

// Who is at an end of the link, whatever it is.
struct End {
    FakeHost &host;
    std::function<void(std::span<const iovec>)> receive;
    std::function<void()> run, expire;
    std::function<bool()> has_work;
    std::function<uint64_t()> deadline;
};

End end_of(Node &node)
{
    Device &device = node.device;
    return {node.host, [&](std::span<const iovec> parts) { device.receive(parts); }, [&] { device.run(); },
            [&] { device.timer(); }, [&] { return device.has_work(); }, [&] { return node.host.deadline_ns; }};
}

End end_of(ErnicEnd &end)
{
    Ernic &e = end.ernic;
    return {e.host, [&](std::span<const iovec> parts) { e.receive(parts); }, [&] { e.run(); },
            [&] { e.expire(); }, [&] { return e.has_work(); }, [&] { return e.host.deadline_ns; }};
}

// Ends on a switch that loses, doubles and puts off what `fate` says; time goes from deadline to deadline. End number n
// is the one whose MAC address ends with n + 1.
class Fabric {
public:
    explicit Fabric(std::vector<End> ends) : ends_(std::move(ends))
    {
        for (unsigned i = 0; i < ends_.size(); i++)
            ends_[i].host.on_frame = [this, i](const Frame &frame) {
                log.push_back({i, frame});
                const Fate what = fate ? fate(i, frame) : Fate{};
                for (unsigned n = 0; n < what.copies; n++)
                    wire_.insert(wire_.end() - ptrdiff_t(std::min<size_t>(what.behind, wire_.size())),
                                 {unsigned(frame.at(5) - 1), frame});
            };
    }
    void settle(uint64_t ns = 10'000'000'000)
    {
        const uint64_t end = now() + ns;
        for (unsigned steps = 0; steps < 2'000'000; steps++) {
            if (step())
                continue;
            uint64_t next = UINT64_MAX;
            for (const End &e : ends_)
                next = std::min(next, e.deadline());
            if (next > end)
                return;
            const uint64_t time = std::max(next, now());
            for (End &e : ends_)
                e.host.clock_ns = time;
            for (End &e : ends_)
                if (e.deadline() <= time)
                    expire(e);
        }
        throw std::runtime_error("the fabric does not come to rest");
    }
    std::function<Fate(unsigned from, const Frame &)> fate;
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
        ends_.at(to).receive({&part, 1});
        return true;
    }
    std::vector<End> ends_;
    std::deque<std::pair<unsigned, Frame>> wire_;
};

// The HCA's end of a connection to an ERNIC.
void connect(Endpoint &hca, const ErnicEnd &ernic, uint32_t rq_psn)
{
    TestDriver &d = hca.node.driver;
    TestDriver::Peer peer{};
    peer.qpn = ernic.qpn;
    std::memcpy(peer.dmac, Node::mac_of(ernic.number).data(), 6);
    const Gid gid = Node::gid_of(ernic.number, 0);
    peer.dgid = gid.data();
    hghca_qpc c = d.rtr_qpc(peer, rq_psn, 3, 16);
    c.rnr_nextrecvpsn = be32(1u << 24 | rq_psn);
    TestDriver::must(d.modify(HGHCA_CMD_INIT2RTR_QPEE, hca.qp.qpn, c), "INIT2RTR");
    hca.to_rts();
}

// One frame in ten is lost, doubled or overtaken.
Fate poor(std::mt19937 &random)
{
    const Fate fates[] = {{0, 0}, {2, 0}, {1, 3}};
    return random() % 10 ? Fate{} : fates[random() % 3];
}

// The ERNIC is number 1, the JingZhao HCA number 2.
class ErnicToHca : public ::testing::Test {
protected:
    ErnicToHca() : node(2), hca(node, options()), link({end_of(ernic), end_of(node)})
    {
        ernic.connect(2, hca.qp.qpn, 0xfffffe, 0x200);   // the PSNs wrap under way
        connect(hca, ernic, 0xfffffe);
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
        EXPECT_EQ(ernic.cqhead(), messages ? (messages - 1) % kDepth + 1 : 0);
        EXPECT_FALSE(ernic.is_fatal());
        EXPECT_EQ(ernic.ernic.state(kErnicQpn), QpState::Rts);
    }

    ErnicEnd ernic{1};
    Node node;
    Endpoint hca;
    Fabric link;
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
    EXPECT_TRUE(ernic.is_pending(Ernic::kCompletionLine));
    EXPECT_EQ(ernic.ernic.read(Ernic::kCqBanks), 1u << kErnicQpn);
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
    hca.post(write_to(hca.sge(0, 5000), ErnicEnd::va(50000), ernic.rkey()));
    hca.post(read_from(hca.sge(10000, 4000), ErnicEnd::va(100000), ernic.rkey()));
    link.settle();
    for (const Completion &c : hca.poll_all())
        EXPECT_FALSE(c.error) << int(c.syndrome);
    EXPECT_EQ(ernic.rq_written(), 1);
    EXPECT_TRUE(ernic.is_pending(Ernic::kReceiveLine));
    EXPECT_EQ(ernic.ernic.read(Ernic::kRqBanks), 1u << kErnicQpn);
    EXPECT_TRUE(ernic.slot_holds(0, 5000, 1));
    EXPECT_TRUE(ernic.holds(50000, 5000, 1));
    EXPECT_TRUE(hca.holds(10000, 4000, 3));
}

// Seed 004, 81 to 84: PSN, MSN and the pointer of the send queue go back to where the message began.
TEST_F(ErnicToHca, WholeMessageGoesAgain)
{
    unsigned requests = 0;
    link.fate = [&](unsigned from, const Frame &f) { return from == 0 && View(f).is_request() && ++requests == 4 ? Fate{0} : Fate{}; };
    ernic.fill(0, 5000, 1);
    ernic.post(ernic.wqe(Ernic::kWrite, 0, 5000, hca.va(0), hca.buffer.key));
    link.settle();
    expect_complete(1);
    EXPECT_TRUE(hca.holds(0, 5000, 1));
    for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u, 1u})
        EXPECT_EQ(sent(psn), 2u) << psn;
}

// IBA vol 1, 9.9.2.1.1: what is acknowledged once more is no progress, so the retries run out.
TEST_F(ErnicToHca, RetriesRunOutInTheMiddleOfAMessage)
{
    link.fate = [](unsigned from, const Frame &f) {
        const View v(f);
        return from == 0 && v.is_request() && v.psn == 0 ? Fate{0} : Fate{};
    };
    ernic.post(ernic.wqe(Ernic::kWrite, 0, 5000, hca.va(0), hca.buffer.key));
    link.settle(10'000'000'000);
    EXPECT_TRUE(ernic.is_fatal());
    EXPECT_EQ(ernic.fatal_code(), Ernic::kRetries);
    for (const uint32_t psn : {0xfffffeu, 0xffffffu, 0u})
        EXPECT_EQ(sent(psn), 1u + kRetries) << psn;
}

TEST_F(ErnicToHca, RetriesRunOutInTheMiddleOfAResponse)
{
    link.fate = [](unsigned from, const Frame &f) { return from == 1 && View(f).psn == 0 ? Fate{0} : Fate{}; };
    ernic.post(ernic.wqe(Ernic::kRead, 0, 5000, hca.va(0), hca.buffer.key));
    link.settle(10'000'000'000);
    EXPECT_TRUE(ernic.is_fatal());
    EXPECT_EQ(ernic.fatal_code(), Ernic::kRetries);
    EXPECT_EQ(sent(0xfffffe), 1u + kRetries);
}

// The HCA sends from the packet that was lost.
TEST_F(ErnicToHca, HcaSendsFromTheLostPacket)
{
    unsigned requests = 0;
    link.fate = [&](unsigned from, const Frame &f) { return from == 1 && View(f).is_request() && ++requests == 4 ? Fate{0} : Fate{}; };
    hca.fill(0, 5000, 1);
    hca.post(write_to(hca.sge(0, 5000), ErnicEnd::va(0), ernic.rkey()));
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
                             .key = 1, .access = 2});
    ernic.fill(0, 16, 9);
    hca.fill(0, 16, 1);
    hca.post(write_to(hca.sge(0, 16), ErnicEnd::va(0), Ernic::rkey_of(4, 1)));
    link.settle();
    const auto done = hca.poll_all();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].syndrome, HGHCA_SYNDROME_REMOTE_ACCESS_ERR);
    EXPECT_TRUE(ernic.holds(0, 16, 9));
    EXPECT_EQ(ernic.fatal_code(), Ernic::kAccess);
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
    EXPECT_EQ(ernic.rq_written(), kDepth - 1);
    // The count of RNR NAKs, with the number of the QP; the overflow in the status of the QP.
    EXPECT_GT(ernic.ernic.read(Ernic::kRnrsOut) >> 16, 0u);
    EXPECT_EQ(ernic.ernic.read(Ernic::kRnrsOut) & 0xff, kErnicQpn);
    EXPECT_TRUE(ernic.is_pending(Ernic::kRnrLine));
    EXPECT_TRUE(ernic.ernic.read_qp(kErnicQpn, Ernic::kStatus) & 2);
    ernic.ernic.write_rqci(kErnicQpn, 1);
    link.settle(100'000'000);
    EXPECT_EQ(hca.poll_all().size(), 1u);
    EXPECT_TRUE(ernic.slot_holds(kDepth - 1, 100, kDepth - 1));
}

// Seed 000, 555: an illegal command is discarded, and stands in the queue of outgoing errors.
TEST_F(ErnicToHca, IllegalWqeIsDiscarded)
{
    hca.post_recv(hca.sge(0, 8192));
    ernic.fill(0, 100, 1);
    ernic.write_wqe(ernic.wqe(0x05, 0, 16));
    ernic.write_wqe(ernic.wqe(Ernic::kSend, 0, 100));
    ernic.ring();
    link.settle();
    expect_complete(2);
    EXPECT_TRUE(ernic.is_pending(Ernic::kOpcodeLine));
    EXPECT_EQ(ernic.cqe(0), 0x4000u | 5u << 16 | Ernic::kErrorCqe);
    EXPECT_EQ(ernic.cqe(1), 0x4001u | 2u << 16);
    EXPECT_EQ(ernic.ernic.read(Ernic::kOutErrorsPointer), 1u);
    uint16_t entry[4];
    std::memcpy(entry, ernic.host->at(ernic.ernic.read(Ernic::kOutErrors)), sizeof(entry));
    EXPECT_EQ(entry[0], 5);
    EXPECT_EQ(entry[1], kErnicQpn);
    EXPECT_EQ(ernic.ernic.read(Ernic::kWqeProcessor) >> 3 & 0x1ff, 5u);
    EXPECT_TRUE(hca.holds(0, 100, 1));
}

TEST_F(ErnicToHca, DisabledQpCompletesNothing)
{
    link.fate = [](unsigned, const Frame &) { return Fate{0}; };
    hca.fill(0, 5000, 9);
    ernic.post(ernic.wqe(Ernic::kWrite, 0, 5000, hca.va(0), hca.buffer.key));
    link.settle(1'000'000);
    ernic.ernic.disable(kErnicQpn);
    link.fate = nullptr;
    link.settle();
    EXPECT_EQ(ernic.cqhead(), 0);
    EXPECT_FALSE(ernic.is_fatal());
    EXPECT_EQ(ernic.ernic.state(kErnicQpn), QpState::Reset);
    EXPECT_TRUE(hca.holds(0, 5000, 9));
    EXPECT_EQ(sent(0xfffffe), 1u);
}

// IBA vol 1, 9.7.4.1.6: a message has 2^31 bytes at most. Seed 000, 191: an empty SEND is not supported.
TEST_F(ErnicToHca, LengthThatNoMessageHasIsIllegal)
{
    ernic.write_wqe(ernic.wqe(Ernic::kWrite, 0, 0x80000001, hca.va(0), hca.buffer.key));
    ernic.write_wqe(ernic.wqe(Ernic::kSend, 0, 0));
    ernic.ring();
    link.settle();
    expect_complete(2);
    EXPECT_EQ(ernic.cqe(0), 0x4000u | Ernic::kErrorCqe);
    EXPECT_EQ(ernic.cqe(1), 0x4001u | 2u << 16 | Ernic::kErrorCqe);
    EXPECT_TRUE(link.log.empty());
}

TEST_F(ErnicToHca, IndexThatTheQueueCannotHaveIsIgnored)
{
    for (const uint16_t bad : {uint16_t(0), uint16_t(kDepth + 1), uint16_t(0xffff)})
        ernic.ernic.write_sqpi(kErnicQpn, bad);
    link.settle();
    EXPECT_EQ(ernic.ernic.read_qp(kErnicQpn, Ernic::kSqProducer), 0u);
    EXPECT_EQ(ernic.ernic.device.stats.bad_indices, 3u);
    EXPECT_TRUE(link.log.empty());
}

// A promise of the function that does not hold ends its device, and nothing is sent any more.
TEST_F(ErnicToHca, BrokenPromiseOfTheFunctionIsFound)
{
    ernic.write_wqe(ernic.wqe(Ernic::kWrite, 0, 100, hca.va(0), hca.buffer.key));
    link.fate = [](unsigned, const Frame &) { return Fate{0}; };
    ernic.ring();
    ernic.ernic.device.pair(kErnicQpn).sq.index++;   // of another WQE than the transport has
    link.fate = nullptr;
    link.settle();
    EXPECT_EQ(ernic.ernic.read(Ernic::kConf), UINT32_MAX);
    EXPECT_FALSE(ernic.ernic.has_work());
    ernic.ernic.device.reset();
    EXPECT_EQ(ernic.ernic.read(Ernic::kConf), 0u);
}

// Messages of all kinds both ways at once, on a link that loses and doubles one packet in ten.
TEST_F(ErnicToHca, BothWaysOnAPoorLink)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        link.fate = [&random](unsigned, const Frame &) { return poor(random); };
        const unsigned first = ernic.tail;
        for (unsigned i = 0; i < 6; i++) {
            const uint32_t bytes = 1 + random() % 6000;
            ernic.fill(i * 8192, bytes, seed + i);
            hca.fill(100000 + i * 8192, bytes, seed + 100 + i);
            ernic.post(ernic.wqe(i % 2 ? Ernic::kWrite : Ernic::kRead, i % 2 ? i * 8192 : 60000 + i * 8192, bytes,
                                 hca.va(i % 2 ? 200000 + i * 8192 : 100000 + i * 8192), hca.buffer.key));
            hca.post(write_to(hca.sge(100000 + i * 8192, bytes), ErnicEnd::va(120000 + i * 8192), ernic.rkey()));
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
    Fabric link({end_of(a), end_of(b)});
    a.connect(2, kErnicQpn, 100, 200);
    b.connect(1, kErnicQpn, 200, 100);
    a.fill(0, 5000, 1);
    b.fill(100000, 5000, 2);
    a.write_wqe(a.wqe(Ernic::kSend, 0, 5000));
    a.write_wqe(a.wqe(Ernic::kWrite, 0, 5000, ErnicEnd::va(50000), b.rkey()));
    a.write_wqe(a.wqe(Ernic::kRead, 10000, 5000, ErnicEnd::va(100000), b.rkey()));
    a.ring();
    link.settle();
    EXPECT_EQ(a.cqhead(), 3);
    EXPECT_TRUE(b.slot_holds(0, 5000, 1));
    EXPECT_TRUE(b.holds(50000, 5000, 1));
    EXPECT_TRUE(a.holds(10000, 5000, 2));
}

// Two ERNICs and two HCAs on one switch, each with a connection to each other; all write, read and send at once, and
// the switch loses, doubles and reorders.
class Mixed : public ::testing::TestWithParam<unsigned> {};

TEST_P(Mixed, EveryKindWithEveryKindOnAPoorSwitch)
{
    constexpr unsigned kRounds = 4;
    std::mt19937 random(GetParam());
    ErnicEnd e1{1}, e2{2};
    Node h3(3), h4(4);
    Fabric fabric({end_of(e1), end_of(e2), end_of(h3), end_of(h4)});
    struct Connection {
        ErnicEnd ernic;
        std::unique_ptr<ErnicEnd> other_ernic;
        std::unique_ptr<Endpoint> hca;
    };
    std::vector<Connection> connections;
    uint32_t qpn = 20;
    for (ErnicEnd *e : {&e1, &e2})
        for (Node *h : {&h3, &h4}) {
            Endpoint::Options options;
            options.sq_psn = 0x200;
            options.rq_psn = 0xfffffe;
            connections.push_back({ErnicEnd(*e, qpn++), nullptr, std::make_unique<Endpoint>(*h, options)});
            Connection &c = connections.back();
            c.ernic.connect(h->number, c.hca->qp.qpn, 0xfffffe, 0x200);
            connect(*c.hca, c.ernic, 0xfffffe);
        }
    connections.push_back({ErnicEnd(e1, qpn), std::make_unique<ErnicEnd>(e2, qpn), nullptr});
    connections.back().ernic.connect(2, qpn, 7, 9);
    connections.back().other_ernic->connect(1, qpn, 9, 7);

    fabric.fate = [&random](unsigned, const Frame &) { return poor(random); };
    for (unsigned round = 0; round < kRounds; round++) {
        std::vector<uint32_t> bytes;
        for (unsigned i = 0; i < connections.size(); i++) {
            Connection &c = connections[i];
            bytes.push_back(1 + uint32_t(random() % 6000));
            const uint32_t n = bytes.back(), seed = round * 100 + i;
            c.ernic.fill(0, n, seed);
            if (c.hca) {
                c.hca->fill(0, n, seed + 50);
                c.ernic.write_wqe(c.ernic.wqe(Ernic::kWrite, 0, n, c.hca->va(20000), c.hca->buffer.key));
                c.ernic.write_wqe(c.ernic.wqe(Ernic::kRead, 40000, n, c.hca->va(0), c.hca->buffer.key));
                c.hca->post(write_to(c.hca->sge(0, n), ErnicEnd::va(60000), c.ernic.rkey()));
                c.hca->post(send(c.hca->sge(0, n)));
            } else {
                c.ernic.write_wqe(c.ernic.wqe(Ernic::kWrite, 0, n, ErnicEnd::va(20000), c.other_ernic->rkey()));
                c.ernic.write_wqe(c.ernic.wqe(Ernic::kSend, 0, n));
            }
            c.ernic.ring();
        }
        fabric.settle();
        for (unsigned i = 0; i < connections.size(); i++) {
            SCOPED_TRACE("round " + std::to_string(round) + ", connection " + std::to_string(i));
            Connection &c = connections[i];
            const uint32_t n = bytes[i], seed = round * 100 + i;
            EXPECT_EQ(c.ernic.cqhead(), (round + 1) * 2);
            EXPECT_FALSE(c.ernic.is_fatal());
            if (c.hca) {
                EXPECT_TRUE(c.hca->holds(20000, n, seed));
                EXPECT_TRUE(c.ernic.holds(40000, n, seed + 50));
                EXPECT_TRUE(c.ernic.holds(60000, n, seed + 50));
                EXPECT_TRUE(c.ernic.slot_holds(uint16_t(round), n, seed + 50));
                const auto done = c.hca->poll_all();
                EXPECT_EQ(done.size(), 2u);
                for (const Completion &d : done)
                    EXPECT_FALSE(d.error) << int(d.syndrome);
            } else {
                EXPECT_TRUE(c.other_ernic->holds(20000, n, seed));
                EXPECT_TRUE(c.other_ernic->slot_holds(uint16_t(round), n, seed));
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Mixed, ::testing::Range(1u, 41u));

}  // namespace
}  // namespace hghca::test::ernic_test
