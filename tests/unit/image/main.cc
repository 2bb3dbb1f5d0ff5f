// SPDX-License-Identifier: GPL-2.0-or-later
// What the device writes must not depend on what stood in its memory before. This program makes devices use each
// service, with so small a cache that contexts go to ICM and come back all the time, and prints what is in guest memory
// and in each frame afterwards. Two builds that fill fresh memory with different bytes must print the same:
// -ftrivial-auto-var-init fills the stack, and HGHCA_IMAGE_FILL the heap.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "jingzhao/multicast.h"
#include "jingzhao/srq.h"
#include "page_fault.h"
#include "raw_frames.h"
#include "shared_queue.h"
#include "verbs.h"

#ifndef HGHCA_IMAGE_FILL
#error HGHCA_IMAGE_FILL is the byte of fresh memory on the heap
#endif

static void *filled(void *p, size_t bytes)
{
    if (!p)
        throw std::bad_alloc();
    return std::memset(p, HGHCA_IMAGE_FILL, bytes);
}

void *operator new(size_t bytes) { return filled(std::malloc(bytes ? bytes : 1), bytes); }
void *operator new(size_t bytes, std::align_val_t alignment)
{
    const auto step = size_t(alignment), whole = std::max<size_t>(bytes + step - 1, step) / step * step;
    return filled(std::aligned_alloc(step, whole), whole);
}
void operator delete(void *p) noexcept { std::free(p); }
void operator delete(void *p, size_t) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace hghca::test {
namespace {

using Options = Endpoint::Options;

constexpr size_t kMemory = 16u << 20;
constexpr uint32_t kAll = TestDriver::kRw | HGHCA_ACCESS_MW_BIND;

constexpr uint32_t kDomain = 5;   // of XRC

struct Scenario {
    explicit Scenario(uint32_t cache_entries) : net(cache_entries, kFullCaps, {}, kMemory, buffers())
    {
        net.keep_log = true;
    }
    // Frames other than RoCE wait at node b.
    static ReceiveBuffers buffers()
    {
        ReceiveBuffers buffers{};
        buffers[kOther] = {10, 64 << 10};
        return buffers;
    }
    static Options small(uint8_t service = HGHCA_QP_ST_RC)
    {
        Options options;
        options.service = service;
        options.sq_wqes = options.rq_wqes = 16;
        options.stride_log = 7;
        options.cq_log = 6;
        options.buffer_bytes = 64 << 10;
        return options;
    }

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
    }

    void extended()
    {
        Options target = small(HGHCA_QP_ST_XRC);
        target.xrcd = kDomain;
        SharedQueue srq(net.b, 4, 7, TestDriver::kPd, kDomain, net.b.driver.create_cq(5).cqn);
        Pair p(net.a, net.b, small(HGHCA_QP_ST_XRC), target);
        const uint32_t flags = HGHCA_WQE_CQ_UPDATE | field_put(HGHCA_WQE_XRC_SRQN_MASK, srq.srq.srqn);
        for (uint32_t i = 0; i < 3; i++) {
            srq.post(p.b.sge(4096 * i, 4096));
            p.a.post({Wqe(HGHCA_OPCODE_SEND_IMM, flags, be32(i)).data(p.a.sge(0, 1500)),
                      read_from(p.a.sge(0x8000, 1500), p.b.va(0x8000), p.b.buffer.key)});
            settle();
        }
    }

    // Frames for rules and for a group, and the pauses that they lead to.
    void raw_frames()
    {
        TestDriver &d = net.b.driver;
        for (Node *node : {&net.a, &net.b})
            node->driver.turn_flow_control(HGHCA_FLOW_PAUSE_RX | HGHCA_FLOW_PAUSE_TX);
        hghca_flow_control control = d.flow_control();
        control.other_xoff = be32(400);
        control.other_xon = be32(100);
        TestDriver::must(d.set_flow_control(control), "SET_FLOW_CONTROL");
        const Options raw = small(HGHCA_QP_ST_RAW);
        Endpoint sender(net.a, raw), one(net.b, raw), left(net.b, raw), right(net.b, raw), nic(net.b, raw);
        TestDriver::must(d.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, nic.qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status,
                         "CONF_SPECIAL_QP");
        for (Endpoint *e : {&one, &left, &right, &nic})
            for (unsigned i = 0; i < 12; i++)
                e->post_recv(e->sge(2048u * i, 2048));
        hghca_rss group{};
        group.fields = be32(HGHCA_RSS_FIELDS);
        group.function = HGHCA_RSS_TOEPLITZ;
        group.log_size = 1;
        for (size_t i = 0; i < sizeof(group.key); i++)
            group.key[i] = uint8_t(37 * i + 1);
        group.qpn[0] = be32(left.qp.qpn);
        group.qpn[1] = be32(right.qp.qpn);
        TestDriver::must(d.post(HGHCA_CMD_CREATE_RSS, group, 2), "CREATE_RSS");
        TestDriver::must(d.post(HGHCA_CMD_FLOW_ATTACH, Rule(HGHCA_FLOW_RSS | 2).kinds(HGHCA_FLOW_UDP), 0), "FLOW_ATTACH");
        TestDriver::must(d.post(HGHCA_CMD_FLOW_ATTACH, Rule(one.qp.qpn).ether_type(0x88b5), 1), "FLOW_ATTACH");
        for (uint16_t i = 0; i < 12; i++) {
            Packet packet;
            packet.sport = uint16_t(1000 + i);
            packet.ether_type = i % 3 == 0 ? 0x88b5 : i % 3 == 1 ? 0x0800 : 0x86dd;
            packet.protocol = i > 8 ? 6 : 17;
            const Frame frame = make(packet);
            std::memcpy(sender.at(2048u * i), frame.data(), frame.size());
            sender.post(send(sender.sge(2048u * i, uint32_t(frame.size()))));
        }
        settle();
        for (Node *node : {&net.a, &net.b})
            node->driver.turn_flow_control(0);
    }

    void registration()
    {
        TestDriver &d = net.b.driver;
        Options trusted = small();
        trusted.trusted = true;
        Pair p(net.a, net.b, trusted);
        const auto fast = d.create_fast_mr(4);
        const auto region = d.create_mr(0x100000, 65536, kAll);
        const uint64_t memory = net.b.host.alloc(4 * 4096), list = net.b.host.alloc(64, 8);
        for (unsigned i = 0; i < 4; i++)
            net.b.host.as<uint64_t>(list)[i] = le64(memory + 4096ull * i);
        const uint32_t key = (fast.key & HGHCA_KEY_INDEX_MASK) | 0x17;
        const uint32_t window = (d.create_window(true) & HGHCA_KEY_INDEX_MASK) | 0x21;
        p.b.post({Wqe(HGHCA_OPCODE_REG_MR)
                      .put(hghca_reg_unit{le32(key), le32(TestDriver::kRw), le64(0x1000), le64(8000), le64(list), le32(4),
                                          0, 0, {}}),
                  Wqe(HGHCA_OPCODE_BIND_MW)
                      .put(hghca_bind_unit{le32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ), 0, le32(window),
                                           le32(region.key), le64(region.va + 100), le64(5000)})});
        settle();
        p.a.post({write_to(p.a.sge(0, 3000), 0x1000, key), write_to(p.a.sge(0, 3000), region.va + 200, window),
                  read_from(p.a.sge(0x4000, 3000), region.va + 200, window)});
        settle();
        p.b.post_recv(p.b.sge(0x1000, 4096));
        p.a.post(Wqe(HGHCA_OPCODE_SEND_INV, HGHCA_WQE_CQ_UPDATE, be32(key)).data(p.a.sge(0, 100)));
        p.b.post(Wqe(HGHCA_OPCODE_LOCAL_INV).put(hghca_inv_unit{le32(window), {}}));
        settle();
    }

    // Both ends have pages on demand, which come when they are asked for.
    void paging()
    {
        struct Side {
            Node &node;
            uint64_t dma;
            TestDriver::Mr mr;
        } sides[] = {{net.a, net.a.host.alloc(8192), {}}, {net.b, net.b.host.alloc(8192), {}}};
        for (Side &s : sides) {
            TestDriver &d = s.node.driver;
            s.mr = d.create_mr_without_pages(0x5000, 8192);
            TestDriver::must(d.destroy_mr(s.mr), "HW2SW_MPT");
            s.mr.key = d.new_key();
            TestDriver::must(d.post(HGHCA_CMD_SW2HW_MPT,
                                    d.mpt_mailbox(s.mr.key, 0x5000, 8192, s.mr.first_mtt,
                                                  TestDriver::kRw | HGHCA_ACCESS_ON_DEMAND),
                                    d.mpt_index(s.mr.key)),
                             "SW2HW_MPT");
        }
        Pair p(net.a, net.b, small());
        p.b.post_recv(p.b.sge(0, 8192));
        p.a.post({send({3000, sides[0].mr.key, 0x5000}), write_to(p.a.sge(0, 6000), 0x5000, sides[1].mr.key),
                  read_from({6000, sides[0].mr.key, 0x5000}, 0x5000, sides[1].mr.key)});
        for (unsigned round = 0; round < 16; round++) {
            net.settle(10'000'000);
            for (Side &s : sides) {
                while (const auto fault = next_fault(s.node)) {
                    const uint64_t page = (fault->va - 0x5000) / 4096, entry = s.dma + page * 4096;
                    TestDriver::must(s.node.driver.write_mtt(s.mr.first_mtt + page, &entry, 1), "WRITE_MTT");
                    resume(s.node, *fault);
                }
            }
        }
        settle();
    }

    // Requests are marked on the way: notifications come back.
    void congestion()
    {
        for (Node *node : {&net.a, &net.b})
            node->driver.turn_congestion(HGHCA_CONGESTION_REACT | HGHCA_CONGESTION_NOTIFY);
        Pair p(net.a, net.b, small());
        net.filter = [](const Node &from, Frame &frame) {
            const View view(frame);
            if (from.number == 1 && view.opcode != HGHCA_BTH_CNP) {
                frame[view.ip + 1] |= HGHCA_ECN_CE;
                seal(frame);
            }
            return Fate{};
        };
        for (unsigned i = 0; i < 3; i++)
            p.a.post(write_to(p.a.sge(0, 5000), p.b.va(0), p.b.buffer.key));
        settle();
        net.filter = nullptr;
    }

    void multicast()
    {
        const Gid gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
        const Options ud = small(HGHCA_QP_ST_UD);
        Endpoint from(net.a, ud), near(net.a, ud), to(net.b, ud);
        hghca_mgid mgid;
        hghca_mgm entry{};
        std::copy(gid.begin(), gid.end(), mgid.gid);
        std::copy(gid.begin(), gid.end(), entry.gid);
        for (Endpoint *e : {&near, &to}) {
            TestDriver &d = e->node.driver;
            e->post_recv(e->sge(0, 4096));
            entry.qp[0] = be32(HGHCA_MGM_QP_VALID | e->qp.qpn);
            TestDriver::must(d.post(HGHCA_CMD_MGID_HASH, mgid), "MGID_HASH");
            TestDriver::must(d.post(HGHCA_CMD_WRITE_MGM, entry, d.hcr(HGHCA_HCR_OUT_PARAM_L)), "WRITE_MGM");
        }
        Wqe wqe(HGHCA_OPCODE_SEND);
        wqe.ud(HGHCA_QPN_MULTICAST, 0x11111111, 2);
        auto *unit = reinterpret_cast<hghca_ud_gid_unit *>(&wqe.bytes[16]);
        std::copy(gid.begin(), gid.end(), unit->dgid);
        unit->dmac_h = le32(0x01005e01);
        unit->dmac_l = le32(0x02030000);
        from.post(wqe.data(from.sge(0, 700)));
        settle();
    }

    // Entries with the time, in a CQ of node b.
    void timestamps()
    {
        TestDriver &d = net.b.driver;
        constexpr unsigned kLog = 4;
        constexpr uint32_t kCqn = 200;
        const auto buffer = d.create_mr(0, uint64_t(64) << kLog, HGHCA_ACCESS_LOCAL_WRITE);
        for (unsigned i = 0; i < 1u << kLog; i++)
            net.b.host.as<hghca_timed_cqe>(buffer.dma)[i].cqe.owner = HGHCA_CQ_ENTRY_OWNER_HW;
        hghca_cqc cqc = d.cqc_mailbox(kCqn, kLog, buffer.key, d.async.eqn, net.b.host.alloc(64, 64));
        cqc.flags = be32(HGHCA_CQ_FLAG_TIMESTAMP);
        TestDriver::must(d.post(HGHCA_CMD_SW2HW_CQ, cqc, kCqn), "SW2HW_CQ");
        for (uint32_t i = 0; i < 3; i++) {
            hghca_cqe cqe{};
            cqe.my_qpn = le32(i);
            (void)net.b.device.cqs->post(Cqn(kCqn), cqe, true);
        }
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
                        {HGHCA_CMD_READ_ERROR_BUFFER, 0},     {HGHCA_CMD_QUERY_COUNTER_SET, 1},
                        {HGHCA_CMD_QUERY_SRQ, 1},             {HGHCA_CMD_QUERY_CQ, 200},
                        {HGHCA_CMD_QUERY_EQ, d.async.eqn}};
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
        check_services();
        for (Node *node : {&net.a, &net.b}) {
            Device &d = node->device;
            d.qps->trim(0);
            d.srqs->trim(0);
            d.groups->trim(0);
            d.cqs->trim(0);
            d.eqs->trim(0);
            d.memory->trim(0);
            static const uint8_t kZeros[4096] = {};
            for (uint64_t at = FakeHost::kBase; at < node->host.end(); at += sizeof(kZeros))
                if (std::memcmp(node->host.at(at), kZeros, sizeof(kZeros)) != 0)
                    std::printf("node %u memory %llx %08x\n", node->number, static_cast<unsigned long long>(at),
                                digest(node->host.at(at), sizeof(kZeros)));
        }
        for (size_t i = 0; i < net.log.size(); i++)
            std::printf("frame %zu %08x\n", i, digest(net.log[i].data(), net.log[i].size()));
    }

    // The scenario has used each of these.
    void check_services() const
    {
        const struct {
            const char *name;
            uint64_t Counters::*value;
        } kServices[] = {{"evictions", &Counters::context_evictions},   {"flow rules", &Counters::flow_rx_packets},
                         {"pauses", &Counters::tx_pause},               {"pauses obeyed", &Counters::rx_pause},
                         {"REG_MR", &Counters::regions_registered},     {"LOCAL_INV", &Counters::keys_invalidated},
                         {"page faults", &Counters::page_faults},       {"multicast", &Counters::multicast_copies},
                         {"notifications", &Counters::np_cnp_sent},     {"their effect", &Counters::rp_cnp_handled}};
        for (const auto &service : kServices) {
            if (net.a.counters().*service.value + net.b.counters().*service.value)
                continue;
            std::fprintf(stderr, "not used: %s\n", service.name);
            std::exit(1);
        }
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
        s.extended();
        s.raw_frames();
        s.registration();
        s.paging();
        s.multicast();
        s.timestamps();
        s.congestion();
        s.commands();
        s.print();
    }
    return 0;
}
