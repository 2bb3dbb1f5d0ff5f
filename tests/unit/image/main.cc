// SPDX-License-Identifier: GPL-2.0-or-later
// What the device writes must not depend on what stood in its memory before. This program makes devices use each
// service, with so small a cache that contexts go to ICM and come back all the time, and prints what is in guest memory
// and in each frame afterwards. Two builds that fill fresh memory with different bytes must print the same:
// -ftrivial-auto-var-init fills the stack, and HGHCA_IMAGE_FILL the heap.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "multicast.h"
#include "shared_queue.h"
#include "srq.h"
#include "verbs.h"

#ifndef HGHCA_IMAGE_FILL
#error HGHCA_IMAGE_FILL is the byte of fresh memory on the heap
#endif

void *operator new(size_t bytes)
{
    void *p = std::malloc(bytes ? bytes : 1);
    if (!p)
        throw std::bad_alloc();
    return std::memset(p, HGHCA_IMAGE_FILL, bytes);
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }

namespace hghca::test {
namespace {

using Options = Endpoint::Options;

constexpr size_t kMemory = 16u << 20;
constexpr uint32_t kAll = TestDriver::kRw | HGHCA_ACCESS_MW_BIND;

struct Scenario {
    explicit Scenario(uint32_t cache_entries) : net(cache_entries, HGHCA_CAP_ALL, {}, kMemory) { net.keep_log = true; }

    void reliable()
    {
        Pair p(net.a, net.b, Options{});
        for (uint32_t i = 0; i < 6; i++) {
            const uint32_t bytes = 1 + i * 700;
            p.b.post_recv(p.b.sge(0x1000, 8192));
            p.a.post(send(p.a.sge(0, bytes)));
            p.a.post(write_to(p.a.sge(0x4000, bytes), p.b.va(0x4000), p.b.buffer.key));
            p.a.post(read_from(p.a.sge(0x8000, bytes), p.b.va(0x8000), p.b.buffer.key));
            p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_FA).raddr(p.b.va(0xc000), p.b.buffer.key).atomic(1, 0)
                         .data(p.a.sge(0xc000, 8)));
            settle();
        }
        // Each third frame is lost once in a while: NAKs, READs and atomics again.
        unsigned frames = 0;
        net.filter = [&](const Node &, Frame &) { return Fate{frames++ % 3 == 1 && frames < 40 ? 0u : 1u, 0}; };
        for (uint32_t i = 0; i < 4; i++) {
            p.a.post(read_from(p.a.sge(0x8000, 5000), p.b.va(0x8000), p.b.buffer.key));
            p.a.post(Wqe(HGHCA_OPCODE_ATOMIC_CS).raddr(p.b.va(0xc000), p.b.buffer.key).atomic(1, 0)
                         .data(p.a.sge(0xc000, 8)));
        }
        settle();
        net.filter = nullptr;
        p.a.post(send(p.a.sge(0, 100)));   // no receive WQE: RNR NAKs
        net.settle(2'000'000);
        p.b.post_recv(p.b.sge(0x1000, 8192));
        settle();
        p.a.post(write_to(p.a.sge(0, 64), p.b.va(0), p.b.buffer.key ^ 0x100));   // NAK: remote access error
        settle();
    }

    void unconnected()
    {
        Options uc;
        uc.service = HGHCA_QP_ST_UC;
        Pair p(net.a, net.b, uc);
        p.b.post_recv(p.b.sge(0x1000, 8192));
        p.a.post({send(p.a.sge(0, 3000)), write_to(p.a.sge(0, 3000), p.b.va(0x4000), p.b.buffer.key)});
        settle();

        Options ud;
        ud.service = HGHCA_QP_ST_UD;
        Endpoint from(net.a, ud), to(net.b, ud);
        for (unsigned gid = 0; gid < 3; gid++) {
            to.post_recv(to.sge(0, 4096));
            from.post(Wqe(HGHCA_OPCODE_SEND).ud(to.qp.qpn, 0x11111111, 2, gid).data(from.sge(0, 500 + gid)));
            settle();
        }
    }

    void shared_queue()
    {
        SharedQueue srq(net.b, 4);
        Options options, with_srq;
        with_srq.srqn = srq.srq.srqn;
        Pair p(net.a, net.b, options, with_srq);
        for (uint32_t i = 0; i < 4; i++) {
            srq.post(p.b.sge(4096 * i, 4096));
            p.a.post(send(p.a.sge(0, 2000)));
            settle();
        }
        srq.arm(2);
        p.a.post(send(p.a.sge(0, 2000)));
        settle();
        srq.query();
    }

    // Keys, groups and what commands write to their mailboxes.
    void commands()
    {
        TestDriver &d = net.b.driver;
        const auto region = d.create_mr(0x100000, 65536, kAll);
        hghca_mgm group{};
        const Gid gid = {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
        std::copy(gid.begin(), gid.end(), group.gid);
        group.qp[0] = be32(HGHCA_MGM_QP_VALID | d.first_qpn);
        TestDriver::must(d.post(HGHCA_CMD_WRITE_MGM, group, 3), "WRITE_MGM");
        std::array<uint8_t, HGHCA_MAILBOX_SIZE> mailbox;
        const struct {
            uint32_t op, modifier;
        } kQueries[] = {{HGHCA_CMD_QUERY_DEV_LIM, 0},         {HGHCA_CMD_QUERY_ADAPTER, 0},
                        {HGHCA_CMD_QUERY_MPT, d.mpt_index(region.key)}, {HGHCA_CMD_QUERY_CQ, 1},
                        {HGHCA_CMD_QUERY_QP, d.first_qpn},  {HGHCA_CMD_READ_MGM, 3},
                        {HGHCA_CMD_QUERY_PORT, 1},            {HGHCA_CMD_QUERY_STATS, 0},
                        {HGHCA_CMD_QUERY_CONGESTION, 1},      {HGHCA_CMD_QUERY_FLOW_CONTROL, 1},
                        {HGHCA_CMD_READ_ERROR_BUFFER, 0},     {HGHCA_CMD_QUERY_COUNTER_SET, 1}};
        for (const auto &q : kQueries) {
            TestDriver::must(d.query(q.op, mailbox, q.modifier), "query");
            std::printf("command %03x %08x\n", unsigned(q.op), digest(mailbox.data(), mailbox.size()));
        }
    }

    void settle()
    {
        net.settle(5'000'000'000);
        for (Node *node : {&net.a, &net.b})
            node->events(HGHCA_EVENT_COMP);
    }

    void print()
    {
        for (Node *node : {&net.a, &net.b}) {
            Device &d = node->device;
            d.qps->trim(0);
            d.srqs->trim(0);
            d.groups->trim(0);
            d.cqs->trim(0);
            d.eqs->trim(0);
            d.memory->trim(0);
            std::printf("evictions %llu\n", static_cast<unsigned long long>(d.counters().context_evictions));
            static const uint8_t kZeros[4096] = {};
            for (uint64_t at = FakeHost::kBase; at < node->host.end(); at += sizeof(kZeros))
                if (std::memcmp(node->host.at(at), kZeros, sizeof(kZeros)) != 0)
                    std::printf("node %u memory %llx %08x\n", node->number, static_cast<unsigned long long>(at),
                                digest(node->host.at(at), sizeof(kZeros)));
        }
        for (size_t i = 0; i < net.log.size(); i++)
            std::printf("frame %zu %08x\n", i, digest(net.log[i].data(), net.log[i].size()));
    }

    static uint32_t digest(const uint8_t *bytes, size_t count) { return ~crc32_update(kCrcStart, bytes, count); }

    Network net;
};

}  // namespace
}  // namespace hghca::test

int main()
{
    for (uint32_t cache_entries : {1u, 2u}) {
        hghca::test::Scenario s(cache_entries);
        s.reliable();
        s.unconnected();
        s.shared_queue();
        s.commands();
        s.print();
    }
    return 0;
}
