// SPDX-License-Identifier: GPL-2.0-or-later
// What a driver does to a device, as short calls for tests. Register accesses and
// commands only: nothing here looks into the device.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>

#include "bounded.h"
#include "byte_order.h"
#include "device.h"
#include "fake_host.h"
#include "hghca_hw.h"

namespace hghca::test {

// Guest memory that the device may look at in the same moment is read and
// written in one access, and in order: what the barriers of a real driver do.
template <class T>
T load_acquire(const T &place)
{
    return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
}
template <class T>
void store_release(T &place, T value)
{
    __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

// The capabilities of Profile::Full.
constexpr uint32_t kFullCaps = HGHCA_CAP_ALL & ~HGHCA_CAP_VENDOR_OPS;

class TestDriver {
public:
    struct Outcome {
        uint8_t status;
        uint64_t out;
    };
    struct Mr {
        uint32_t key;
        uint32_t pd;
        uint64_t va;
        uint64_t length;
        uint64_t dma;    // of va; the memory is contiguous
        uint64_t first_mtt;
    };
    struct Cq {
        uint32_t cqn;
        uint32_t log;
        Mr buffer;
        uint64_t dbr;
        uint32_t consumer = 0;
    };
    struct Eq {
        uint32_t eqn;
        uint32_t log;
        Mr buffer;
        unsigned vector;
        uint32_t consumer = 0;
    };
    struct Qp {
        uint32_t qpn;
        Mr sq, rq;
        uint32_t sq_wqes, rq_wqes;
        unsigned stride_log;
        uint32_t usr_page;
        uint64_t dbr;
        uint32_t rq_offset = 0;  // in the region of its receive queue
    };
    struct Srq {
        uint32_t srqn;
        Mr buffer;
        unsigned log;
        unsigned stride_log;
        uint64_t dbr;
        uint32_t xrcd = 0;   // 0: a basic one
        uint32_t cqn = 0;
    };
    // Log2 of the number of entries, and where they stand.
    struct Layout {
        unsigned log_qps = 8, log_cqs = 8, log_eqs = 4, log_srqs = 4, log_mcgs = 4, log_mpts = 10;
        uint64_t qpc = 0, cqc = 1 << 20, eqc = 2 << 20, srqc = 3 << 20, mcg = 5 << 20;
        uint64_t mpt = 0, mtt = 1 << 20;
        uint64_t mtt_bytes = 1 << 20;  // mapped by start(): 131072 MTTs
        uint64_t packet_base = 0;      // RSNIC's retransmission buffer, as INIT_HCA takes it
    };

    static constexpr uint8_t kGivenUp = 0xff;   // the status of a command that got no answer
    static constexpr uint32_t kPd = 1;
    static constexpr uint32_t kUarPage = 3;
    static constexpr uint32_t kRw = HGHCA_ACCESS_LOCAL_WRITE | HGHCA_ACCESS_REMOTE_WRITE |
                                    HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC;

    TestDriver(FakeHost &host, Device &device) : host(host), device(device)
    {
        in_ = host.alloc(HGHCA_MAILBOX_SIZE);
        out_ = host.alloc(HGHCA_MAILBOX_SIZE);
    }

    // ---- registers
    uint32_t hcr(unsigned reg) { return uint32_t(device.hcr_read(HGHCA_HCR_BASE + reg, 4)); }
    void hcr(unsigned reg, uint32_t value) { device.hcr_write(HGHCA_HCR_BASE + reg, value, 4); }
    void ring_doorbell(uint64_t offset, uint64_t value, unsigned size = 8)
    {
        bounded(device, [&] { device.uar_write(offset, value, size); });
    }
    void reset()
    {
        device.hcr_write(HGHCA_RESET, HGHCA_RESET_START, 4);
        if (queue) {
            device.hcr_write(HGHCA_SEG_CMDQ_H, queue >> 32, 4);
            device.hcr_write(HGHCA_SEG_CMDQ_L, uint32_t(queue), 4);
        }
        next_mpt_ = next_mtt_ = next_cq_ = next_eq_ = next_srq_ = 1;
        next_qp_ = first_qpn;
    }
    Outcome command(uint32_t op, uint64_t in = 0, uint32_t modifier = 0, uint32_t op_modifier = 0,
                    uint64_t out = 0, bool event = false, uint16_t token = HGHCA_CMD_POLL_TOKEN)
    {
        return queue ? command_by_queue(op, in, modifier, op_modifier, out, event, token)
                     : command_by_hcr(op, in, modifier, op_modifier, out, event, token);
    }
    // Writes the HCR as 3.1 says, polled unless `event`.
    Outcome command_by_hcr(uint32_t op, uint64_t in, uint32_t modifier, uint32_t op_modifier, uint64_t out, bool event,
                           uint16_t token)
    {
        hcr(HGHCA_HCR_IN_PARAM_H, uint32_t(in >> 32));
        hcr(HGHCA_HCR_IN_PARAM_L, uint32_t(in));
        hcr(HGHCA_HCR_IN_MODIFIER, modifier);
        hcr(HGHCA_HCR_OUT_PARAM_H, uint32_t(out >> 32));
        hcr(HGHCA_HCR_OUT_PARAM_L, uint32_t(out));
        hcr(HGHCA_HCR_TOKEN, uint32_t(token) << 16);
        hcr(HGHCA_HCR_STATUS, HGHCA_HCR_GO | (event ? HGHCA_HCR_EVENT : 0) | op_modifier << 12 | op);
        uint32_t status = hcr(HGHCA_HCR_STATUS);
        if (status == UINT32_MAX)
            return {kGivenUp, UINT64_MAX};   // as of a device that is gone
        if (status & HGHCA_HCR_GO)
            throw std::runtime_error("go did not fall");
        return {uint8_t(status >> 24), uint64_t(hcr(HGHCA_HCR_OUT_PARAM_H)) << 32 | hcr(HGHCA_HCR_OUT_PARAM_L)};
    }
    // In the next entry of RSNIC's command queue.
    Outcome command_by_queue(uint32_t op, uint64_t in, uint32_t modifier, uint32_t op_modifier, uint64_t out,
                             bool event, uint16_t token)
    {
        const unsigned index = next_entry_++ % HGHCA_CMDQ_ENTRIES;
        auto &entry = host.as<hghca_cmdq_entry>(queue)[index];
        const uint32_t words[] = {uint32_t(in >> 32), uint32_t(in), modifier, uint32_t(out >> 32), uint32_t(out),
                                  uint32_t(token) << 16, (event ? HGHCA_HCR_EVENT : 0) | op_modifier << 12 | op};
        for (unsigned i = 0; i < std::size(words); i++)
            entry.hcr[i] = le32(words[i]);
        store_release(entry.owner, le32(HGHCA_CMDQ_HW));
        device.hcr_write(HGHCA_SEG_CMDQ_DB, 1u << index, 4);
        if (load_acquire(entry.owner))
            throw std::runtime_error("the device keeps an entry of the command queue");
        return {uint8_t(le32(entry.hcr[HGHCA_HCR_STATUS / 4]) >> 24),
                uint64_t(le32(entry.hcr[HGHCA_HCR_OUT_PARAM_H / 4])) << 32 |
                    le32(entry.hcr[HGHCA_HCR_OUT_PARAM_L / 4])};
    }
    // With an input mailbox.
    template <class T>
    uint8_t post(uint32_t op, const T &mailbox, uint32_t modifier = 0, uint32_t op_modifier = 0)
    {
        static_assert(sizeof(T) <= HGHCA_MAILBOX_SIZE);
        std::memset(host.at(in_), 0, HGHCA_MAILBOX_SIZE);
        std::memcpy(host.at(in_), &mailbox, sizeof(T));
        return command(op, in_, modifier, op_modifier).status;
    }
    // With an output mailbox.
    template <class T>
    uint8_t query(uint32_t op, T &out, uint32_t modifier = 0, uint32_t op_modifier = 0)
    {
        std::memset(host.at(out_), 0xa5, HGHCA_MAILBOX_SIZE);
        uint8_t status = command(op, 0, modifier, op_modifier, out_).status;
        std::memcpy(&out, host.at(out_), sizeof(T));
        return status;
    }
    static void must(uint8_t status, const char *what)
    {
        if (status)
            throw std::runtime_error(std::string(what) + ": status " + std::to_string(status));
    }
    uint64_t in_mailbox() const { return in_; }
    uint64_t out_mailbox() const { return out_; }

    // ---- initialisation
    // The capabilities that the device has.
    uint32_t offered()
    {
        hghca_dev_lim lim;
        must(query(HGHCA_CMD_QUERY_DEV_LIM, lim), "QUERY_DEV_LIM");
        return be32(lim.caps);
    }
    hghca_init_hca init_mailbox(uint32_t caps = kFullCaps) const
    {
        hghca_init_hca init{};
        init.qpc_base = be64(layout.qpc | layout.log_qps);
        init.cqc_base = be64(layout.cqc | layout.log_cqs);
        init.eqc_base = be64(layout.eqc | layout.log_eqs);
        init.srqc_base = be64(layout.srqc | layout.log_srqs);
        init.mcg_base = be64(layout.mcg | layout.log_mcgs);
        init.mpt_base = be64(layout.mpt | layout.log_mpts);
        init.mtt_base = be64(layout.mtt);
        init.packet_base = be64(layout.packet_base);
        init.caps = be32(caps);
        return init;
    }
    uint8_t init_hca(uint32_t caps = kFullCaps)
    {
        return post(HGHCA_CMD_INIT_HCA, init_mailbox(caps));
    }
    // Zeroed memory, fresh or what was lent before; its DMA address.
    uint64_t map_icm(unsigned space, uint64_t address, uint64_t bytes, uint64_t before = 0)
    {
        uint64_t pages = (bytes + 4095) / 4096;
        uint64_t dma = before ? before : host.alloc(pages * 4096);
        if (before)
            std::memset(host.at(dma), 0, pages * 4096);
        for (uint64_t done = 0; done < pages;) {
            uint64_t n = pages - done < 4095 ? pages - done : 4095;
            must(map_chunk(space, address + done * 4096, dma + done * 4096, uint32_t(n)), "MAP_ICM");
            done += n;
        }
        return dma;
    }
    uint8_t map_chunk(unsigned space, uint64_t address, uint64_t dma, uint32_t pages)
    {
        hghca_icm_chunk pair[2]{};
        pair[HGHCA_ICM_CHUNK_SLOT(0)] = {be64(address), be64(dma | pages)};
        return post(HGHCA_CMD_MAP_ICM, pair, 1, space);
    }
    uint8_t unmap_icm(unsigned space, uint64_t address, uint32_t pages)
    {
        return command(HGHCA_CMD_UNMAP_ICM, address, pages, space).status;
    }
    // Reset, INIT_HCA, all ICM of `layout`.
    void init(uint32_t caps = kFullCaps)
    {
        reset();
        must(init_hca(caps), "INIT_HCA");
        const uint64_t bytes[] = {2048ull << layout.log_qps, 128ull << layout.log_cqs, 64ull << layout.log_eqs,
                                  128ull << layout.log_srqs, 256ull << layout.log_mcgs, 64ull << layout.log_mpts,
                                  layout.mtt_bytes};
        const uint64_t address[] = {layout.qpc,  layout.cqc, layout.eqc, layout.srqc,
                                    layout.mcg, layout.mpt, layout.mtt};
        uint64_t *dma[] = {&qpc_dma, &cqc_dma, &eqc_dma, &srqc_dma, &mcg_dma, &mpt_dma, &mtt_dma};
        for (unsigned i = 0; i < 7; i++) {
            *dma[i] = map_icm(i < 5 ? HGHCA_ICM_CONTEXT : HGHCA_ICM_TPT, address[i], bytes[i],
                              bytes[i] == icm_bytes_[i] ? *dma[i] : 0);
            icm_bytes_[i] = bytes[i];
        }
    }
    // init(), and `async`: an EQ of 256 EQEs on vector 0 that takes every asynchronous event.
    void start(uint32_t caps = kFullCaps)
    {
        init(caps);
        async = create_eq(8, 0);
        must(map_eq(async.eqn, ~0ull), "MAP_EQ");
    }

    // ---- flow control
    hghca_flow_control flow_control()
    {
        hghca_flow_control c;
        must(query(HGHCA_CMD_QUERY_FLOW_CONTROL, c, 1), "QUERY_FLOW_CONTROL");
        return c;
    }
    uint8_t set_flow_control(const hghca_flow_control &c) { return post(HGHCA_CMD_SET_FLOW_CONTROL, c, 1); }
    void turn_flow_control(uint32_t flags)
    {
        hghca_flow_control c = flow_control();
        c.flags = be32(flags);
        must(set_flow_control(c), "SET_FLOW_CONTROL");
    }

    // ---- congestion control
    hghca_congestion congestion()
    {
        hghca_congestion c;
        must(query(HGHCA_CMD_QUERY_CONGESTION, c, 1), "QUERY_CONGESTION");
        return c;
    }
    uint8_t set_congestion(const hghca_congestion &c) { return post(HGHCA_CMD_SET_CONGESTION, c, 1); }
    // With the parameters that are set already.
    void turn_congestion(uint32_t flags)
    {
        hghca_congestion c = congestion();
        c.flags = be32(flags);
        must(set_congestion(c), "SET_CONGESTION");
    }

    // ---- memory regions
    uint8_t write_mtt(uint64_t first, const uint64_t *dma, uint32_t count)
    {
        hghca_mtt_mailbox mailbox{};
        mailbox.start_index = be64(first);
        for (uint32_t i = 0; i < count; i++)
            mailbox.entry[HGHCA_MTT_SLOT(i)] = be64(dma[i]);
        return post(HGHCA_CMD_WRITE_MTT, mailbox, count);
    }
    hghca_mpt mpt_mailbox(uint32_t key, uint64_t va, uint64_t length, uint64_t first_mtt, uint32_t access = kRw,
                          uint32_t pd = kPd, unsigned page_shift = 12) const
    {
        hghca_mpt mpt{};
        mpt.flags = be32(HGHCA_MPT_FLAG_REGION | access);
        mpt.page_size = be32(page_shift - 12);
        mpt.key = be32(key);
        mpt.pd = be32(pd);
        mpt.start = be64(va);
        mpt.length = be64(length);
        mpt.mtt_seg_h = be32(uint32_t(first_mtt >> 32));
        mpt.mtt_seg_l = be32(uint32_t(first_mtt));
        return mpt;
    }
    bool tags_below() const { return device.caps & HGHCA_CAP_MEM_MGT; }
    uint32_t mpt_index(uint32_t key) const { return tags_below() ? key >> 8 : key & ((1u << layout.log_mpts) - 1); }
    uint32_t new_key()
    {
        const uint32_t index = next_mpt_++;
        return tags_below() ? index << 8 | 0xab : 0xab0000u << 8 | index;
    }
    // A region over fresh, contiguous memory; va and that memory agree modulo 4096.
    Mr create_mr(uint64_t va, uint64_t length, uint32_t access = kRw, uint32_t pd = kPd)
    {
        uint64_t lead = va & 4095;
        uint64_t pages = (lead + length + 4095) / 4096;
        uint64_t memory = host.alloc(pages * 4096);
        return create_mr_at(va, length, memory + lead, access, pd);
    }
    Mr create_mr_at(uint64_t va, uint64_t length, uint64_t dma, uint32_t access = kRw, uint32_t pd = kPd)
    {
        uint64_t pages = ((va & 4095) + length + 4095) / 4096;
        uint64_t first = next_mtt_;
        next_mtt_ += pages;
        uint64_t list[HGHCA_MTT_PER_MAILBOX];
        for (uint64_t done = 0; done < pages;) {
            uint32_t n = 0;
            for (; n < HGHCA_MTT_PER_MAILBOX && done + n < pages; n++)
                list[n] = (dma & ~4095ull) + (done + n) * 4096;
            must(write_mtt(first + done, list, n), "WRITE_MTT");
            done += n;
        }
        uint32_t key = new_key();
        must(post(HGHCA_CMD_SW2HW_MPT, mpt_mailbox(key, va, length, first, access, pd), mpt_index(key)),
             "SW2HW_MPT");
        return {key, pd, va, length, dma, first};
    }
    // A region whose MTTs nobody has written.
    Mr create_mr_without_pages(uint64_t va, uint64_t length)
    {
        uint64_t pages = ((va & 4095) + length + 4095) / 4096;
        uint64_t first = next_mtt_;
        next_mtt_ += pages;
        uint32_t key = new_key();
        must(post(HGHCA_CMD_SW2HW_MPT, mpt_mailbox(key, va, length, first), mpt_index(key)), "SW2HW_MPT");
        return {key, kPd, va, length, 0, first};
    }
    // A FREE region for REG_MR with `pages` MTTs that nobody has written; zero-length till then.
    Mr create_fast_mr(uint32_t pages, uint32_t pd = kPd)
    {
        hghca_mpt mpt{};
        const Mr mr{new_key(), pd, 0, 0, 0, next_mtt_};
        next_mtt_ += pages;
        mpt.flags = be32(HGHCA_MPT_FLAG_REGION | HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_FREE);
        mpt.key = be32(mr.key);
        mpt.pd = be32(pd);
        mpt.mtt_seg_l = be32(uint32_t(mr.first_mtt));
        mpt.mtt_sz = be32(pages);
        must(post(HGHCA_CMD_SW2HW_MPT, mpt, mpt_index(mr.key)), "SW2HW_MPT");
        return mr;
    }
    // A window, not bound; its key.
    uint32_t create_window(bool one_qp, uint32_t pd = kPd)
    {
        hghca_mpt mpt{};
        const uint32_t key = new_key();
        mpt.flags = be32(HGHCA_MPT_FLAG_FREE | (one_qp ? HGHCA_MPT_FLAG_WINDOW_QP : 0));
        mpt.key = be32(key);
        mpt.pd = be32(pd);
        must(post(HGHCA_CMD_SW2HW_MPT, mpt, mpt_index(key)), "SW2HW_MPT");
        return key;
    }
    uint8_t destroy_key(uint32_t key) { return command(HGHCA_CMD_HW2SW_MPT, 0, mpt_index(key)).status; }
    uint8_t destroy_mr(const Mr &mr) { return command(HGHCA_CMD_HW2SW_MPT, 0, mpt_index(mr.key)).status; }

    // ---- event queues
    hghca_eqc eqc_mailbox(unsigned log, uint32_t key, unsigned vector, uint32_t pd = kPd) const
    {
        hghca_eqc eqc{};
        eqc.flags = be32(HGHCA_EQ_OWNER_HW | HGHCA_EQ_STATE_ARMED);
        eqc.logsize = uint8_t(log);
        eqc.intr = uint8_t(vector);
        eqc.pd = be32(pd);
        eqc.lkey = be32(key);
        return eqc;
    }
    // Armed.
    Eq create_eq(unsigned log, unsigned vector)
    {
        Eq eq{next_eq_++, log, create_mr(0, 32ull << log, HGHCA_ACCESS_LOCAL_WRITE), vector};
        for (uint64_t i = 0; i < 1ull << log; i++)
            host.as<hghca_eqe>(eq.buffer.dma)[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
        must(post(HGHCA_CMD_SW2HW_EQ, eqc_mailbox(log, eq.buffer.key, vector), eq.eqn), "SW2HW_EQ");
        return eq;
    }
    uint8_t map_eq(uint32_t eqn, uint64_t mask, bool unmap = false)
    {
        return command(HGHCA_CMD_MAP_EQ, mask, eqn | (unmap ? HGHCA_MAP_EQ_UNMAP : 0)).status;
    }
    // The next EQE, given back to the device. False: none.
    bool poll(Eq &eq, hghca_eqe &out)
    {
        hghca_eqe *eqe = host.as<hghca_eqe>(eq.buffer.dma) + (eq.consumer & ((1u << eq.log) - 1));
        if (load_acquire(eqe->owner))
            return false;
        out = *eqe;
        store_release<uint8_t>(eqe->owner, HGHCA_CQ_ENTRY_OWNER_HW);
        eq.consumer++;
        return true;
    }
    void eq_doorbell(const Eq &eq, uint32_t command)
    {
        ring_doorbell(HGHCA_UAR_EQ_ARM, uint64_t(command << 24 | eq.eqn) << 32 | eq.consumer);
    }
    void arm(const Eq &eq) { eq_doorbell(eq, HGHCA_EQ_ARM_ARM); }

    // ---- completion queues
    hghca_cqc cqc_mailbox(uint32_t cqn, unsigned log, uint32_t key, uint32_t eqn, uint64_t dbr = 0,
                          uint32_t pd = kPd) const
    {
        hghca_cqc cqc{};
        cqc.logsize_usrpage = be32(log << 24 | kUarPage);
        cqc.comp_eqn = be32(eqn);
        cqc.pd = be32(pd);
        cqc.lkey = be32(key);
        cqc.cqn = be32(cqn);
        cqc.dbr_addr = be64(dbr ? dbr | HGHCA_DBR_VALID : 0);
        return cqc;
    }
    Mr cq_buffer(unsigned log)
    {
        Mr mr = create_mr(0, 32ull << log, HGHCA_ACCESS_LOCAL_WRITE);
        for (uint64_t i = 0; i < 1ull << log; i++)
            host.as<hghca_cqe>(mr.dma)[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
        return mr;
    }
    Cq create_cq(unsigned log, uint32_t eqn = 1)
    {
        Cq cq{next_cq_++, log, cq_buffer(log), host.alloc(64, 64)};
        must(post(HGHCA_CMD_SW2HW_CQ, cqc_mailbox(cq.cqn, log, cq.buffer.key, eqn, cq.dbr), cq.cqn), "SW2HW_CQ");
        return cq;
    }
    // The next CQE, given back to the device, and the doorbell record. False: none.
    bool poll(Cq &cq, hghca_cqe &out)
    {
        hghca_cqe *cqe = host.as<hghca_cqe>(cq.buffer.dma) + (cq.consumer & ((1u << cq.log) - 1));
        if (load_acquire(cqe->owner))
            return false;
        out = *cqe;
        store_release<uint8_t>(cqe->owner, HGHCA_CQ_ENTRY_OWNER_HW);
        cq.consumer++;
        store_release(host.as<hghca_cq_dbr>(cq.dbr)->consumer_index, le32(cq.consumer));
        return true;
    }
    void arm(const Cq &cq, uint32_t command = HGHCA_CQ_ARM_NEXT, uint32_t page = kUarPage)
    {
        ring_doorbell(page * 4096ull + HGHCA_UAR_CQ_ARM, uint64_t(command << 24 | cq.cqn) << 32 | cq.consumer);
    }

    // ---- shared receive queues
    hghca_srqc srqc_mailbox(const Srq &srq) const
    {
        hghca_srqc c{};
        c.srqn = be32(srq.srqn);
        c.pd = be32(srq.buffer.pd);
        c.lkey = be32(srq.buffer.key);
        c.logsize = uint8_t(srq.log);
        c.entry_sz_log = uint8_t(srq.stride_log);
        c.dbr_addr = be64(srq.dbr | HGHCA_DBR_VALID);
        c.flags = be32(srq.xrcd ? HGHCA_SRQ_XRC : 0);
        c.xrcd = be32(srq.xrcd);
        c.cqn = be32(srq.cqn);
        return c;
    }
    // The queue of an SRQ with the next number; no command yet.
    Srq new_srq(unsigned log = 4, unsigned stride_log = 7, uint32_t pd = kPd)
    {
        return {next_srq_++, create_mr(0, 1ull << (log + stride_log), 0, pd), log, stride_log, host.alloc(64, 64)};
    }
    Srq create_srq(unsigned log = 4, unsigned stride_log = 7, uint32_t pd = kPd, uint32_t xrcd = 0, uint32_t cqn = 0)
    {
        Srq srq = new_srq(log, stride_log, pd);
        srq.xrcd = xrcd;
        srq.cqn = cqn;
        must(post(HGHCA_CMD_SW2HW_SRQ, srqc_mailbox(srq), srq.srqn), "SW2HW_SRQ");
        return srq;
    }

    // ---- queue pairs
    static bool is_connected(uint8_t service)
    {
        return service == HGHCA_QP_ST_RC || service == HGHCA_QP_ST_UC || service == HGHCA_QP_ST_XRC;
    }
    // What RST2INIT takes; queues of 64-byte (stride_log 6) or larger WQEs.
    hghca_qpc init_qpc(const Qp &qp, uint8_t service, const Cq &send, const Cq &recv) const
    {
        hghca_qpc c{};
        c.opt_param_mask = be32(is_connected(service)       ? HGHCA_QP_ATTR_PKEY_INDEX | HGHCA_QP_ATTR_PORT |
                                                                  HGHCA_QP_ATTR_ACCESS_FLAGS
                                : service == HGHCA_QP_ST_UD ? HGHCA_QP_ATTR_PKEY_INDEX | HGHCA_QP_ATTR_PORT |
                                                                  HGHCA_QP_ATTR_QKEY
                                                            : HGHCA_QP_ATTR_PORT);
        c.flags = be32(field_put(HGHCA_QPC_ST_MASK, service));
        c.mtu_msgmax = 31;
        c.rq_entry_sz_log = c.sq_entry_sz_log = uint8_t(qp.stride_log);
        c.usr_page = be32(qp.usr_page);
        c.local_qpn = be32(qp.qpn);
        c.port_pkey = be32(1u << 24);
        c.pd = be32(kPd);
        c.cqn_snd = be32(send.cqn);
        c.cqn_rcv = be32(recv.cqn);
        c.wqe_base = be32(qp.rq_offset);
        c.snd_wqe_base_l = be32(qp.sq.key);
        c.rcv_wqe_base_l = be32(qp.rq.key);
        c.snd_wqe_len = be32(qp.sq_wqes << qp.stride_log);
        c.rcv_wqe_len = be32(qp.rq_wqes << qp.stride_log);
        c.qkey = be32(0x11111111);
        c.dbr_addr = be64(qp.dbr ? qp.dbr | HGHCA_DBR_VALID : 0);
        c.limits = be32(HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC);
        return c;
    }
    uint8_t modify(uint32_t op, uint32_t qpn, const hghca_qpc &context) { return post(op, context, qpn); }
    // The queues of a QP with the next number; no command yet.
    Qp new_qp(uint32_t sq_wqes = 64, uint32_t rq_wqes = 64, unsigned stride_log = 7, uint32_t pd = kPd)
    {
        Qp qp{};
        qp.qpn = next_qp_++;
        qp.sq_wqes = sq_wqes;
        qp.rq_wqes = rq_wqes;
        qp.stride_log = stride_log;
        qp.usr_page = kUarPage;
        qp.dbr = host.alloc(64, 64);
        if (one_region && sq_wqes && rq_wqes) {
            qp.rq_offset = ((sq_wqes << stride_log) + 4095) & ~4095u;
            qp.sq = create_mr(0, qp.rq_offset + (uint64_t(rq_wqes) << stride_log), queue_access, pd);
            qp.rq = qp.sq;
            qp.rq.dma += qp.rq_offset;
            return qp;
        }
        if (sq_wqes)
            qp.sq = create_mr(0, uint64_t(sq_wqes) << stride_log, queue_access, pd);
        if (rq_wqes)
            qp.rq = create_mr(0, uint64_t(rq_wqes) << stride_log, queue_access, pd);
        return qp;
    }
    // In state INIT.
    Qp create_qp(uint8_t service, const Cq &send, const Cq &recv, uint32_t sq_wqes = 64, uint32_t rq_wqes = 64,
                 unsigned stride_log = 7)
    {
        Qp qp = new_qp(sq_wqes, rq_wqes, stride_log);
        must(modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, init_qpc(qp, service, send, recv)), "RST2INIT");
        return qp;
    }
    // Who an RC QP talks to: by GID index 0 when `dgid`, otherwise by sip and dip.
    struct Peer {
        uint32_t qpn;
        uint8_t dmac[6], smac[6];
        uint32_t sip, dip;         // host order
        const uint8_t *dgid = nullptr;
        uint8_t sgid_index = 0;
    };
    static void put_path(hghca_qpc &c, const Peer &peer)
    {
        auto high = [](const uint8_t *m) { return be32(uint32_t(m[0]) << 24 | m[1] << 16 | m[2] << 8 | m[3]); };
        auto low = [](const uint8_t *m) { return be16(uint16_t(m[4] << 8 | m[5])); };
        c.dmac_h = high(peer.dmac);
        c.dlid = low(peer.dmac);
        c.smac_h = high(peer.smac);
        c.slid = low(peer.smac);
        c.sip = be32(peer.sip);
        c.dip = be32(peer.dip);
        c.hop_limit = 64;
        if (peer.dgid) {
            c.g_mylmc = HGHCA_QPC_GRH;
            c.mgid_index = peer.sgid_index;
            std::memcpy(c.rgid, peer.dgid, 16);
        }
    }
    hghca_qpc rtr_qpc(const Peer &peer, uint32_t rq_psn, unsigned mtu_code = 3, uint32_t dest_rd_atomic = 16) const
    {
        hghca_qpc c{};
        c.opt_param_mask = be32(HGHCA_QP_ATTR_AV | HGHCA_QP_ATTR_PATH_MTU | HGHCA_QP_ATTR_DEST_QPN |
                                HGHCA_QP_ATTR_RQ_PSN | HGHCA_QP_ATTR_MIN_RNR_TIMER |
                                HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC);
        put_path(c, peer);
        c.mtu_msgmax = uint8_t(mtu_code << 5);
        c.remote_qpn = be32(peer.qpn);
        c.rnr_nextrecvpsn = be32(1u << 24 | rq_psn);
        c.limits = be32(field_put(HGHCA_QPC_LIMITS_DEST_RD_ATOMIC, dest_rd_atomic));
        return c;
    }
    hghca_qpc rts_qpc(uint32_t sq_psn, unsigned ack_timeout = 14, unsigned retry = 7, unsigned rnr_retry = 7,
                      uint32_t rd_atomic = 16) const
    {
        hghca_qpc c{};
        c.opt_param_mask = be32(HGHCA_QP_ATTR_TIMEOUT | HGHCA_QP_ATTR_RETRY_CNT | HGHCA_QP_ATTR_RNR_RETRY |
                                HGHCA_QP_ATTR_SQ_PSN | HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC);
        c.ackto = uint8_t(ack_timeout);
        c.rnr_retry = uint8_t(rnr_retry);
        c.next_send_psn = be32(sq_psn);
        c.limits = be32(field_put(HGHCA_QPC_LIMITS_RETRY_CNT, retry) |
                        field_put(HGHCA_QPC_LIMITS_RD_ATOMIC, rd_atomic));
        return c;
    }
    void rc_to_rts(const Qp &qp, const Peer &peer, uint32_t rq_psn = 0, uint32_t sq_psn = 0, unsigned mtu_code = 3)
    {
        must(modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, rtr_qpc(peer, rq_psn, mtu_code)), "INIT2RTR");
        must(modify(HGHCA_CMD_RTR2RTS_QPEE, qp.qpn, rts_qpc(sq_psn)), "RTR2RTS");
    }
    // UD or RAW.
    void to_rts(const Qp &qp, uint32_t sq_psn = 0)
    {
        hghca_qpc c{};
        must(modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, c), "INIT2RTR");
        c.opt_param_mask = be32(HGHCA_QP_ATTR_SQ_PSN);
        c.next_send_psn = be32(sq_psn);
        must(modify(HGHCA_CMD_RTR2RTS_QPEE, qp.qpn, c), "RTR2RTS");
    }
    uint8_t to_error(uint32_t qpn)
    {
        return command(HGHCA_CMD_2ERR_QPEE, 0, qpn, HGHCA_QP_OPMOD_NO_INBOX).status;
    }
    uint8_t to_reset(uint32_t qpn)
    {
        return command(HGHCA_CMD_ERR2RST_QPEE, 0, qpn, HGHCA_QP_OPMOD_NO_INBOX).status;
    }
    unsigned state(uint32_t qpn)
    {
        hghca_qpc c;
        must(query(HGHCA_CMD_QUERY_QP, c, qpn), "QUERY_QP");
        return field_get(HGHCA_QPC_STATE_MASK, be32(c.flags));
    }
    void ring_sq(const Qp &qp, uint16_t head, uint8_t opcode, uint8_t units, uint8_t count = 0, bool fence = false)
    {
        uint32_t low = uint32_t(count) << 24 | uint32_t(head) << 8 | (fence ? HGHCA_SQ_DB_FENCE : 0) | opcode;
        uint32_t high = qp.qpn << 8 | units;
        ring_doorbell(qp.usr_page * 4096ull + HGHCA_UAR_SQ_DB, uint64_t(high) << 32 | low);
    }

    // ---- port
    uint8_t set_gid(uint32_t index, const uint8_t gid[16], const uint8_t mac[6], int vlan = -1)
    {
        hghca_gid_entry e{};
        std::memcpy(e.gid, gid, 16);
        e.mac_h = be32(uint32_t(mac[0]) << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]);
        e.mac_l = be16(uint16_t(mac[4] << 8 | mac[5]));
        e.vlan = be32(vlan < 0 ? 0 : HGHCA_GID_VLAN_VALID | uint32_t(vlan));
        return post(HGHCA_CMD_SET_GID, e, index);
    }
    uint8_t set_port(const uint8_t mac[6], uint32_t mtu, uint32_t flags = 0)
    {
        hghca_port p{};
        p.flags = be32(flags);
        p.mac_h = be32(uint32_t(mac[0]) << 24 | mac[1] << 16 | mac[2] << 8 | mac[3]);
        p.mac_l = be16(uint16_t(mac[4] << 8 | mac[5]));
        p.mtu = be32(mtu);
        return post(HGHCA_CMD_SET_PORT, p, 1);
    }

    FakeHost &host;
    Device &device;
    Layout layout;
    uint32_t first_qpn = 8;   // that a reset begins with again
    uint32_t queue_access = kRw;   // of the regions of new QPs' queues
    bool one_region = false;       // of both queues of a new QP
    uint64_t queue = 0;       // RSNIC's command queue from the next reset on, a page; 0: commands go by the HCR
    Eq async{};
    uint64_t qpc_dma = 0, cqc_dma = 0, eqc_dma = 0, srqc_dma = 0, mcg_dma = 0, mpt_dma = 0, mtt_dma = 0;  // where init() put ICM

private:
    uint64_t in_, out_;
    uint64_t icm_bytes_[7] = {};
    unsigned next_entry_ = 0;   // of the command queue
    uint32_t next_mpt_ = 1, next_cq_ = 1, next_eq_ = 1, next_srq_ = 1, next_qp_ = 8;
    uint64_t next_mtt_ = 1;
};

}  // namespace hghca::test
