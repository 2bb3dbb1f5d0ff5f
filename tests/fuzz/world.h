// SPDX-License-Identifier: GPL-2.0-or-later
// Two devices with QPs of every service that they have between them, what a script does with them, and what must hold
// whatever it does. Made once and used for every run, since a run is shorter than making it.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "page_fault.h"
#include "script.h"
#include "shared_queue.h"
#include "verbs.h"

namespace hghca::fuzz {

using namespace hghca::test;

// What the devices of a world are: Config::profile, and RSNIC with a retransmission buffer too.
enum Kind : unsigned { kFull, kBase, kRsnic, kRsnicBuffered, kKinds };

enum Service : unsigned { kRc, kRcIpv6, kUc, kUd, kXrc, kRcSrq, kRcVlan, kRaw, kServices };

class World {
public:
    static constexpr size_t kMemory = 1 << 20;
    static constexpr uint32_t kBuffer = 12 << 10;
    static constexpr uint32_t kDomain = 5;
    static constexpr uint32_t kQkey = 0x11111111;
    static constexpr uint32_t kPartition = 0x12340000;   // key, of each node of RSNIC
    static constexpr uint8_t kGuard = 0x5c;
    static constexpr Gid kGroup = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
    static constexpr Mac kGroupMac = {0x01, 0, 0x5e, 1, 2, 3};
    static constexpr uint32_t kGroupIpv4 = 0xef010203;
    // One entry into the devices answers a frame with at most a READ of all of each buffer in packets of 256 bytes,
    // 16 of them at a time, and sends again what is in flight, on each QP.
    static constexpr unsigned kFramesAtOnce = 8192;
    static constexpr unsigned kTimersAtEnd = 20000;
    static constexpr unsigned kLogPackets = 2;   // of a retransmission buffer, so that it is full at times
    static constexpr uint64_t kPacketBytes = 4096ull << kLogPackets;

    // Small, so that a loop which goes on behind the end of its slice shows with the few WQEs that there are.
    static constexpr uint32_t kSliceWork = 16;
    static constexpr uint64_t kStepWork = 256;

    World(Kind kind, uint32_t cache_entries)
        : net(prepared(kind, cache_entries), 0, layout(), kMemory), kind(kind), caps(net.a.driver.offered())
    {
        for (Node *node : {&net.a, &net.b}) {
            if (kind == kRsnicBuffered)
                node->driver.layout.packet_base = node->host.alloc(kPacketBytes) | kLogPackets;
            marks_[node->number - 1] = node->host.mark();
            node->host.record_dirty = true;
            node->driver.queue_access = 0;   // a peer that guesses such a key has no right to it
        }
    }

    // As new, with the lines of `mask` open, as far as the devices have their services.
    void begin(uint8_t mask)
    {
        for (auto &line : lines)
            line.reset();
        for (auto &srq : srqs)
            srq.reset();
        net.filter = nullptr;
        net.clear();
        recent.clear();
        any_frame = false;
        for (Node *node : {&net.a, &net.b}) {
            node->device.set_link(true);
            node->host.rewind(marks_[node->number - 1]);
            node->start(caps);
            begin_memory(*node);
        }
        for (unsigned i = 0; i < kServices; i++)
            if (mask >> i & 1 && offers(Service(i)))
                open(Service(i));
        for (Node *node : {&net.a, &net.b}) {
            guard(*node);
            node->host.dirtied.clear();
        }
        net.filter = [this](const Node &from, Frame &f) { return sent(from, f); };
    }

    // ---- steps

    Endpoint *endpoint(unsigned which)
    {
        Pair *line = lines[which / 2 % kServices].get();
        return !line ? nullptr : which % 2 ? &line->b : &line->a;
    }
    void post(Record &r)
    {
        Endpoint *e = endpoint(r.u8());
        if (!e || !e->qp.sq_wqes)
            return;
        const Wqe wqe = work(*e, r);
        if (wqe.bytes.size() > size_t(1) << e->qp.stride_log)
            return;
        any_frame |= e->options.service == HGHCA_QP_ST_RAW;
        e->post(wqe);
        settle_now();
    }
    void receive(Record &r)
    {
        const unsigned which = r.u8();
        Endpoint *e = endpoint(which);
        if (!e)
            return;
        const uint32_t at = r.u16() % kBuffer, length = std::min(uint32_t(r.u16()) % 6000, kBuffer - at);
        if (e->options.srqn || e->options.xrcd)
            post_shared(which / 2 % kServices == kXrc, e->sge(at, length));
        else if (e->qp.rq_wqes)
            e->post_recv({e->sge(at, length / 2), e->sge(0, length - length / 2)});
    }
    void post_shared(bool xrc, const Sge &sge)
    {
        Shared *s = srqs[xrc].get();
        if (s && s->free > 1) {
            s->queue.post(sge);
            s->free--;
        }
    }
    // To the next timer, by some time, or from timer to timer.
    void pass_time(Record &r)
    {
        const unsigned how = r.u8();
        const uint64_t next = std::min(net.a.host.deadline_ns, net.b.host.deadline_ns);
        if (how % 3 == 0 && next != UINT64_MAX)
            net.at(std::max(next, net.now()));
        else if (how % 3 == 1)
            net.at(net.now() + (uint64_t(r.u16()) << (r.u8() % 16)));
        else
            run_timers(16, 1'000'000'000);
        settle_now();
    }
    void poll()
    {
        for (auto &line : lines)
            if (line) {
                line->a.poll_all();
                line->b.poll_all();
            }
        for (auto &s : srqs)
            if (s) {
                hghca_cqe cqe;
                while (net.b.driver.poll(s->cq, cqe)) {
                }
            }
        // A slot is free when its completion is polled; those of an SRQ are all alike here.
        for (auto &s : srqs)
            if (s)
                s->reclaim();
    }
    // Software brings the pages that are asked for, or says that no such pages exist.
    void serve_faults(bool bring)
    {
        for (Node *node : {&net.a, &net.b}) {
            for (unsigned n = 0; n < 64; n++) {
                auto fault = next_fault(*node);
                if (!fault)
                    break;
                const Demand &d = demand[node->number - 1];
                const uint64_t page = (fault->va - d.mr.va) / 4096;
                if (bring && fault->key == d.mr.key && page < 2) {
                    const uint64_t entry = d.dma + page * 4096;
                    node->driver.write_mtt(d.mr.first_mtt + page, &entry, 1);
                }
                resume(*node, *fault, !bring);
            }
        }
        settle_now();
    }
    // Runs until nothing moves, and looks at what it did. Time stands still.
    void settle_now()
    {
        frames_ = 0;
        net.pump();
        check();
    }
    void run_timers(unsigned count, uint64_t ns)
    {
        const uint64_t end = net.now() + ns;
        for (; count; count--) {
            settle_now();
            const uint64_t next = std::min(net.a.host.deadline_ns, net.b.host.deadline_ns);
            if (next > end)
                return;
            net.at(std::max(next, net.now()));
        }
        settle_now();
    }
    // No fault any more: what was begun ends.
    void finish()
    {
        for (Node *node : {&net.a, &net.b}) {
            node->host.link_full = node->host.copy_only = false;
            node->host.bus_master = true;
            bounded(node->device, [node] { node->device.link_ready(); });
        }
        settle_now();
        for (unsigned round = 0; round < 8; round++) {
            poll();
            serve_faults(false);
            run_timers(kTimersAtEnd, 10'000'000'000);
        }
    }
    // Nothing is under way, and no time-out is to come.
    void require_rest()
    {
        for (Node *node : {&net.a, &net.b})
            require(!node->device.has_work() && node->host.deadline_ns == UINT64_MAX, "the device comes to rest");
    }
    void check()
    {
        for (Node *node : {&net.a, &net.b}) {
            if (owns_memory[node->number - 1])
                continue;
            const auto &granted = granted_[node->number - 1];
            for (const Range &range : node->host.dirtied) {
                if (!range.length || range.dma >= kDeviceMemoryBase)
                    continue;
                const uint64_t first = (range.dma - FakeHost::kBase) / 4096;
                const uint64_t last = (range.dma + range.length - 1 - FakeHost::kBase) / 4096;
                for (uint64_t page = first; page <= last; page++)
                    require(page < granted.size() && granted[page], "only memory is written to that is granted");
            }
            for (const uint64_t dma : guards_[node->number - 1])
                require(is_guard(node->host.at(dma), 4096), "guards stay as they are");
        }
        for (Node *node : {&net.a, &net.b})
            node->host.dirtied.clear();
    }

    // Any bytes, as the guest may have anywhere: plausible ones with some of them changed.
    Wqe work(Endpoint &e, Record &r)
    {
        static constexpr uint8_t kOpcodes[] = {
            HGHCA_OPCODE_SEND,      HGHCA_OPCODE_RDMA_WRITE, HGHCA_OPCODE_RDMA_READ, HGHCA_OPCODE_SEND_IMM,
            HGHCA_OPCODE_RDMA_WRITE_IMM, HGHCA_OPCODE_ATOMIC_CS, HGHCA_OPCODE_ATOMIC_FA, HGHCA_OPCODE_ATOMIC_WRITE,
            HGHCA_OPCODE_FLUSH,     HGHCA_OPCODE_SEND_INV,   HGHCA_OPCODE_BIND_MW,   HGHCA_OPCODE_LOCAL_INV,
            HGHCA_OPCODE_REG_MR,    HGHCA_OPCODE_NOP};
        static constexpr uint8_t kVendorOpcodes[] = {HGHCA_OPCODE_PART, HGHCA_OPCODE_READ_POINTER,
                                                     HGHCA_OPCODE_READ_CONSISTENT};
        const uint8_t which = r.u8(), flags = r.u8();
        const bool vendor = e.options.vendor_ops && flags & 0x80;
        const uint8_t opcode =
            vendor ? kVendorOpcodes[which % sizeof(kVendorOpcodes)] : kOpcodes[which % sizeof(kOpcodes)];
        const uint32_t key = key_of(*peer(e.node), r.u8()), own_key = key_of(e.node, r.u8());
        const uint32_t at = r.u16() % kBuffer, length = std::min(uint32_t(r.u16()) % 6000, kBuffer - at);
        const uint64_t there = r.u16() % (kBuffer + 64);
        const Sge local = flags & 0x40 ? Sge{length, own_key, base_of(e.node, own_key) + at} : e.sge(at, length);
        uint32_t next = (flags & 1 ? 0u : HGHCA_WQE_CQ_UPDATE) | (flags & 2 ? HGHCA_WQE_SOLICIT : 0u);
        if (e.options.service == HGHCA_QP_ST_XRC && srqs[1])
            next |= field_put(HGHCA_WQE_XRC_SRQN_MASK, srqs[1]->queue.srq.srqn);
        if (e.options.service == HGHCA_QP_ST_UD)
            return datagram(e, flags, next, e.sge(at, length % 1100));
        if (e.options.service == HGHCA_QP_ST_RAW) {
            std::memcpy(e.at(at % 4096), Node::mac_of(peer(e.node)->number).data(), 6);
            return Wqe(HGHCA_OPCODE_SEND, next).data(e.sge(at % 4096, length % 1600));
        }
        const uint64_t remote = base_of(*peer(e.node), key) + there;
        Wqe wqe(opcode, next, opcode == HGHCA_OPCODE_SEND_INV ? le32(key) : le32(there));
        wqe.fence = flags & 4;
        switch (opcode) {
        case HGHCA_OPCODE_SEND:
        case HGHCA_OPCODE_SEND_IMM:
        case HGHCA_OPCODE_SEND_INV:
            // Bytes that no guard has.
            return flags & 8 ? wqe.inline_data(Bytes(length % 100, flags % 16)) : wqe.data({local, e.sge(0, flags)});
        case HGHCA_OPCODE_ATOMIC_CS:
        case HGHCA_OPCODE_ATOMIC_FA:
            return wqe.raddr(remote & ~7ull, key).atomic(flags, 0).data({8, local.key, local.va});
        case HGHCA_OPCODE_ATOMIC_WRITE:
            return wqe.raddr(remote & ~7ull, key).data({8, local.key, local.va});
        case HGHCA_OPCODE_FLUSH:
            return wqe.raddr(remote, key).flush(length, flags & 8 ? HGHCA_FLUSH_GLOBAL : HGHCA_FLUSH_PERSISTENT);
        case HGHCA_OPCODE_BIND_MW:
            return wqe.put(hghca_bind_unit{le32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ), 0,
                                           le32(own_key ^ (flags >> 4 & 1)), le32(e.buffer.key), le64(e.va(at)),
                                           le64(length)});
        case HGHCA_OPCODE_LOCAL_INV:
            return wqe.put(hghca_inv_unit{le32(own_key), {}});
        case HGHCA_OPCODE_REG_MR:
            return wqe.put(hghca_reg_unit{le32(own_key ^ (flags >> 4 & 1)), le32(TestDriver::kRw), le64(at),
                                          le64(length), le64(lists[e.node.number - 1]), le32(1 + (flags >> 5)), 0, 0, {}});
        case HGHCA_OPCODE_NOP:
            return wqe;
        case HGHCA_OPCODE_PART:
            return wqe.raddr(remote, flags & 8 ? key : kPartition).data({length & ~7u, local.key, local.va});
        case HGHCA_OPCODE_READ_POINTER:
            return wqe.raddr(remote, key)
                .put(hghca_pointer_unit{le64(flags & 8), le32(search_of(at, uint32_t(there))), 0})
                .data({length % 300, local.key, local.va});
        case HGHCA_OPCODE_READ_CONSISTENT:
            return wqe.raddr(remote, key).data({length % 300, local.key, local.va});
        default:
            return wqe.raddr(remote, key).data(local);
        }
    }
    Wqe datagram(Endpoint &e, uint8_t flags, uint32_t next, const Sge &sge)
    {
        Wqe wqe(flags & 0x20 ? HGHCA_OPCODE_SEND_IMM : HGHCA_OPCODE_SEND, next, flags);
        Node &to = *peer(e.node);
        Endpoint &other = &e == &lines[kUd]->a ? lines[kUd]->b : lines[kUd]->a;
        if (!(caps & HGHCA_CAP_GID_TABLE))
            return wqe.put(base_address(e.node, flags & 0x10 ? nullptr : &other)).data(sge);
        wqe.ud(flags & 0x10 ? HGHCA_QPN_MULTICAST : other.qp.qpn, kQkey, to.number, flags >> 2 & 1);
        if (flags & 0x10) {
            auto *unit = reinterpret_cast<hghca_ud_gid_unit *>(&wqe.bytes[16]);
            std::copy(kGroup.begin(), kGroup.end(), unit->dgid);
            unit->dmac_h = le32(0x01005e01);
            unit->dmac_l = le32(0x02030000);
        }
        return wqe.data(sge);
    }

    // What a READ_POINTER searches for: a key at least, and any of the rest.
    static uint32_t search_of(uint32_t key, uint32_t rest) { return 1u << key % 15 | (rest << 16 & 0x3fff0000); }

    static uint32_t ipv4_of(const Node &node) { return 0x0a0a0000 | node.number; }
    // Of a device without GIDs; `to` nullptr: the group.
    static hghca_ud_unit base_address(const Node &from, const Endpoint *to)
    {
        hghca_ud_unit unit{};
        unit.port = le32(1);
        unit.lids = le32((to ? to->node.number : 0x0203u) << 16 | from.number);
        unit.smac_h = le32(0x02000000);
        unit.dmac_h = le32(to ? 0x02000000 : 0x01005e01);
        unit.sip = le32(ipv4_of(from));
        unit.dip = le32(to ? ipv4_of(to->node) : kGroupIpv4);
        unit.dqpn = le32(to ? to->qp.qpn : HGHCA_QPN_MULTICAST);
        unit.qkey = le32(kQkey);
        return unit;
    }

    Node *peer(const Node &node) { return &node == &net.a ? &net.b : &net.a; }
    uint32_t key_of(const Node &node, uint8_t which) const
    {
        const auto &all = keys[node.number - 1];
        return all.empty() ? 0 : all[which % all.size()].key;
    }
    uint64_t base_of(const Node &node, uint32_t key) const
    {
        for (const TestDriver::Mr &mr : keys[node.number - 1])
            if (mr.key == key)
                return mr.va;
        return 0;
    }

    struct Demand {
        TestDriver::Mr mr;
        uint64_t dma;
    };
    // An SRQ of node b, with the CQ of the XRC one.
    struct Shared {
        Shared(Node &node, uint32_t xrcd)
            : node(node), cq(node.driver.create_cq(5)), queue(node, 4, 7, TestDriver::kPd, xrcd, xrcd ? cq.cqn : 0)
        {
        }
        // All slots that the device has taken; which of them is not told apart.
        void reclaim()
        {
            for (unsigned i = free; i < 15; i++)
                queue.give_back((posted++) % 16);
            free = 15;
        }
        Node &node;
        TestDriver::Cq cq;
        SharedQueue queue;
        unsigned free = 15, posted = 0;
    };

    Network net;
    const Kind kind;
    const uint32_t caps;                                  // all that the devices have
    std::array<std::unique_ptr<Pair>, kServices> lines;
    std::array<std::unique_ptr<Shared>, 2> srqs;          // basic, XRC
    std::array<std::vector<TestDriver::Mr>, 2> keys;      // of every kind, of each node
    std::array<Demand, 2> demand{};
    std::array<uint64_t, 2> lists;                        // of pages, for REG_MR
    std::vector<Frame> recent;                            // the last ones that were sent
    std::array<bool, 2> owns_memory{};                    // the script gives away any memory of that node
    bool trusted = true;                                  // one line may post REG_MR, with pages that its software names
    bool any_frame = false;                               // a QP may send whatever its software wants
    std::function<Fate(const Node &, Frame &)> rule;      // of the script

private:
    // Of the devices that are made now.
    static uint32_t prepared(Kind kind, uint32_t cache_entries)
    {
        Node::profile = kind == kFull ? Profile::Full : kind == kBase ? Profile::Base : Profile::Rsnic;
        Node::slice_work = kSliceWork;
        largest_step = kStepWork;
        return cache_entries;
    }
    static TestDriver::Layout layout()
    {
        TestDriver::Layout l;
        l.log_qps = l.log_cqs = 5;
        l.log_eqs = l.log_srqs = l.log_mcgs = 3;
        l.log_mpts = 8;
        l.mtt_bytes = 16 << 10;
        return l;
    }
    bool offers(Service service) const
    {
        switch (service) {
        case kUc:
        case kUd:   // the only one of RSNIC is QP 1
            return kind == kFull || kind == kBase;
        case kRcSrq:
            return caps & HGHCA_CAP_SRQ;
        case kXrc:
            return caps & HGHCA_CAP_XRC;
        case kRaw:
            return caps & HGHCA_CAP_PORT;
        default:
            return true;
        }
    }
    static bool is_guard(const uint8_t *bytes, size_t length)
    {
        return bytes[0] == kGuard && !std::memcmp(bytes, bytes + 1, length - 1);
    }
    void grant(const Node &node, uint64_t dma, uint64_t bytes)
    {
        auto &granted = granted_[node.number - 1];
        for (uint64_t at = dma & ~4095ull; at < dma + bytes; at += 4096)
            granted[(at - FakeHost::kBase) / 4096] = true;
    }
    void guard(Node &node)
    {
        const uint64_t dma = node.host.alloc(4096);
        std::memset(node.host.at(dma), kGuard, 4096);
        guards_[node.number - 1].push_back(dma);
    }
    void begin_memory(Node &node)
    {
        const unsigned i = node.number - 1;
        TestDriver &d = node.driver;
        granted_[i].assign(kMemory / 4096, false);
        guards_[i].clear();
        keys[i].clear();
        grant(node, d.qpc_dma, 2048ull << d.layout.log_qps);
        grant(node, d.cqc_dma, 128ull << d.layout.log_cqs);
        grant(node, d.eqc_dma, 64ull << d.layout.log_eqs);
        grant(node, d.srqc_dma, 128ull << d.layout.log_srqs);
        grant(node, d.mcg_dma, 256ull << d.layout.log_mcgs);
        grant(node, d.mpt_dma, 64ull << d.layout.log_mpts);
        grant(node, d.mtt_dma, d.layout.mtt_bytes);
        grant(node, d.out_mailbox(), 4096);
        grant(node, d.async.buffer.dma, d.async.buffer.length);
        if (kind == kRsnicBuffered)
            grant(node, d.layout.packet_base & ~HGHCA_INIT_HCA_LOG_MASK, kPacketBytes);
        guard(node);

        // Keys of every kind, each with a page of a guard behind.
        auto region = [&](uint64_t va, uint32_t access, uint32_t pd) {
            const auto mr = d.create_mr(va, 4096, access, pd);
            if (access & HGHCA_ACCESS_LOCAL_WRITE && pd == TestDriver::kPd)
                grant(node, mr.dma, mr.length);
            guard(node);
            keys[i].push_back(mr);
        };
        region(0x1000, TestDriver::kRw | HGHCA_ACCESS_FLUSH_GLOBAL | HGHCA_ACCESS_MW_BIND, TestDriver::kPd);
        region(0x2000, HGHCA_ACCESS_REMOTE_READ, TestDriver::kPd);
        region(0x3000, 0, TestDriver::kPd);
        region(0x4000, TestDriver::kRw, TestDriver::kPd + 1);
        if (caps & HGHCA_CAP_VENDOR_OPS)
            create_partition(node);
        if (caps & HGHCA_CAP_MEM_MGT) {
            keys[i].push_back({d.create_window(true), TestDriver::kPd, 0x7000000000, 0, 0, 0});
            keys[i].push_back({d.create_window(false), TestDriver::kPd, 0x7000000000, 0, 0, 0});
            keys[i].push_back(d.create_fast_mr(4));
        }
        if (caps & HGHCA_CAP_ODP)
            create_on_demand(node);
        if (caps & HGHCA_CAP_DEVICE_MEMORY) {
            hghca_mpt mpt = d.mpt_mailbox(d.new_key(), 0, 8192, 64, TestDriver::kRw);
            mpt.flags |= be32(HGHCA_MPT_FLAG_DEVICE);
            d.must(d.post(HGHCA_CMD_SW2HW_MPT, mpt, d.mpt_index(be32(mpt.key))), "SW2HW_MPT");
            keys[i].push_back({be32(mpt.key), TestDriver::kPd, 0, 8192, 0, 0});
        }
        lists[i] = node.host.alloc(4096);
        const uint64_t pages = node.host.alloc(4 * 4096);
        grant(node, pages, 4 * 4096);
        for (unsigned n = 0; n < 4; n++)
            node.host.as<uint64_t>(lists[i])[n] = le64(pages + n * 4096);
        guard(node);
    }
    // By the lowest two bits of a record, to the regions that there are by now: one may be written to, three may not.
    void create_partition(Node &node)
    {
        hghca_partition partition{};
        partition.key = be32(kPartition);
        partition.pd = be32(TestDriver::kPd);
        partition.log_record = 3;
        partition.log_regions = 2;
        partition.key_size = 1;
        for (unsigned n = 0; n < 4; n++) {
            const TestDriver::Mr &mr = keys[node.number - 1][n];
            partition.region[n] = {be64(mr.va), be32(mr.key), be32(uint32_t(mr.length)), 0, 0};
        }
        TestDriver::must(node.driver.post(HGHCA_CMD_SW2HW_PART, partition, 0), "SW2HW_PART");
    }
    void create_on_demand(Node &node)
    {
        TestDriver &d = node.driver;
        Demand &region = demand[node.number - 1];
        region.dma = node.host.alloc(8192);
        grant(node, region.dma, 8192);
        region.mr = d.create_mr_without_pages(0x5000, 8192);
        d.destroy_mr(region.mr);
        region.mr.key = d.new_key();
        d.must(d.post(HGHCA_CMD_SW2HW_MPT,
                      d.mpt_mailbox(region.mr.key, 0x5000, 8192, region.mr.first_mtt,
                                    TestDriver::kRw | HGHCA_ACCESS_ON_DEMAND),
                      d.mpt_index(region.mr.key)),
               "SW2HW_MPT");
        keys[node.number - 1].push_back(region.mr);
    }
    void open(Service service)
    {
        Endpoint::Options o;
        o.sq_wqes = o.rq_wqes = 16;
        o.cq_log = 5;
        o.buffer_bytes = kBuffer;
        o.mtu_code = 1;
        o.ack_timeout = 8;
        o.retry = o.rnr_retry = 3;
        o.access |= HGHCA_ACCESS_FLUSH_GLOBAL;
        Endpoint::Options left, right;
        switch (service) {
        case kRc:
            o.trusted = trusted;
            o.vendor_ops = caps & HGHCA_CAP_VENDOR_OPS;
            break;
        case kRcIpv6:
            o.vendor_ops = caps & HGHCA_CAP_VENDOR_OPS;
            o.sgid_index = 1;
            o.mtu_code = 3;
            o.sq_psn = o.rq_psn = 0xfffffe;
            break;
        case kUc:
            o.service = HGHCA_QP_ST_UC;
            break;
        case kUd:
            o.service = HGHCA_QP_ST_UD;
            break;
        case kRcVlan:
            o.sgid_index = 2;
            o.static_rate = 2;
            o.dbr = false;
            break;
        case kRaw:
            o.service = HGHCA_QP_ST_RAW;
            break;
        default:
            break;
        }
        o.dbr &= bool(caps & HGHCA_CAP_DBR);
        if (!(caps & HGHCA_CAP_GID_TABLE)) {
            o.by_gid = false;
            o.sgid_index = 0;
        }
        left = right = o;
        if (service == kRcSrq) {
            srqs[0] = std::make_unique<Shared>(net.b, 0);
            right.srqn = srqs[0]->queue.srq.srqn;
        } else if (service == kXrc) {
            srqs[1] = std::make_unique<Shared>(net.b, kDomain);
            left.service = right.service = HGHCA_QP_ST_XRC;
            right.xrcd = kDomain;
        }
        auto &line = lines[service];
        line = std::make_unique<Pair>(net.a, net.b, left, right, TestDriver::is_connected(left.service));
        for (Endpoint *e : {&line->a, &line->b}) {
            grant(e->node, e->buffer.dma, kBuffer);
            grant(e->node, e->cq.buffer.dma, e->cq.buffer.length);
            keys[e->node.number - 1].push_back(e->buffer);
            if (e->qp.sq_wqes)
                keys[e->node.number - 1].push_back(e->qp.sq);
            guard(e->node);
        }
        for (auto &s : srqs)
            if (s)
                grant(net.b, s->cq.buffer.dma, s->cq.buffer.length);
        if (service == kRaw)
            for (Endpoint *e : {&line->a, &line->b}) {
                TestDriver &d = e->node.driver;
                d.must(d.command(HGHCA_CMD_CONF_SPECIAL_QP, 0, e->qp.qpn, HGHCA_SPECIAL_QP_RAW_ETH).status, "RAW");
                d.must(d.set_port(Node::mac_of(e->node.number).data(), 1500, HGHCA_PORT_PROMISC), "SET_PORT");
            }
        if (service == kUd && caps & HGHCA_CAP_MULTICAST)
            for (Endpoint *e : {&line->a, &line->b})
                join(*e);
    }
    static void join(Endpoint &e)
    {
        TestDriver &d = e.node.driver;
        hghca_mgid mgid;
        std::copy(kGroup.begin(), kGroup.end(), mgid.gid);
        d.must(d.post(HGHCA_CMD_MGID_HASH, mgid), "MGID_HASH");
        hghca_mgm entry{};
        std::copy(kGroup.begin(), kGroup.end(), entry.gid);
        entry.qp[0] = be32(1u << 31 | e.qp.qpn);
        d.must(d.post(HGHCA_CMD_WRITE_MGM, entry, d.hcr(HGHCA_HCR_OUT_PARAM_L)), "WRITE_MGM");
    }
    Fate sent(const Node &from, Frame &f)
    {
        require(++frames_ <= kFramesAtOnce, "frames sent for one that came are bounded");
        if (!any_frame && !owns_memory[from.number - 1])
            check_frame(from, f);
        if (recent.size() == 32)
            recent.erase(recent.begin());
        recent.push_back(f);
        return rule ? rule(from, f) : Fate{};
    }
    void check_frame(const Node &from, const Frame &f) const
    {
        const unsigned to = 3 - from.number;
        require(f.size() >= 58, "a frame has all its headers");
        const Mac dmac = Node::mac_of(to), smac = Node::mac_of(from.number);
        const bool group = std::equal(kGroupMac.begin(), kGroupMac.end(), f.begin());
        require(group || std::equal(dmac.begin(), dmac.end(), f.begin()), "frames go to the peer's MAC");
        require(std::equal(smac.begin(), smac.end(), f.begin() + 6), "frames come from the port's MAC");
        const View view(f);
        const uint8_t *ip = &f[view.ip];
        if (view.ipv6) {
            // A datagram to the IPv4 group from an IPv6 address goes by IPv6.
            const Gid gid = group ? kGroup : Node::gid_of(to, 1);
            require(std::equal(gid.begin(), gid.end(), ip + 24), "frames go to the peer's IPv6 address");
        } else {
            const uint8_t net_of_vlan = view.ip == 18 ? 20 : 10;
            const uint8_t dip[] = {10, net_of_vlan, 0, uint8_t(to)};
            require(!std::memcmp(ip + 16, group ? &kGroup[12] : dip, 4), "frames go to the peer's IPv4 address");
        }
        Frame sealed = f;
        seal(sealed);
        require(sealed == f, "checksum and ICRC of what is sent are right");
        static const std::string_view kLeak("\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c", 16);
        require(std::string_view(reinterpret_cast<const char *>(f.data()), f.size()).find(kLeak) == std::string_view::npos,
                "no guard leaks onto the wire");
    }

    std::array<uint64_t, 2> marks_{};
    std::array<std::vector<uint8_t>, 2> granted_;   // pages
    std::array<std::vector<uint64_t>, 2> guards_;
    unsigned frames_ = 0;
};

// The world that a byte of an input chooses: bit 0, a cache of one context of each kind; bits 3:2, the devices. It is
// made when it is wanted for the first time.
inline World &world_of(uint8_t how)
{
    static std::array<std::array<std::unique_ptr<World>, 2>, kKinds> worlds;
    const auto kind = Kind(how >> 2 & 3);
    const uint32_t cache_entries = how & 1;
    std::unique_ptr<World> &world = worlds[kind][cache_entries];
    if (!world)
        world = std::make_unique<World>(kind, cache_entries);
    return *world;
}

}  // namespace hghca::fuzz
