// SPDX-License-Identifier: GPL-2.0-or-later
// Work requests and queues for tests of the transport, by the interface document, 5.1, 5.2, 6.
#pragma once

#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "network.h"

namespace hghca::test {

using Bytes = std::vector<uint8_t>;

struct Sge {
    uint32_t length;
    uint32_t key;
    uint64_t va;
};

// A send WQE being written.
class Wqe {
public:
    explicit Wqe(uint8_t opcode, uint32_t flags = HGHCA_WQE_CQ_UPDATE, uint32_t imm = 0) : opcode(opcode)
    {
        hghca_next_unit next{};
        next.flags = le32(flags);
        next.imm_data = imm;
        put(next);
    }
    Wqe &raddr(uint64_t va, uint32_t rkey)
    {
        hghca_raddr_unit unit{le64(va), le32(rkey), 0};
        return put(unit);
    }
    Wqe &flush(uint32_t length, uint32_t type = HGHCA_FLUSH_GLOBAL, uint32_t selectivity = HGHCA_FLUSH_RANGE)
    {
        hghca_flush_unit unit{};
        unit.length = le32(length);
        unit.what = le32(field_put(HGHCA_FLUSH_TYPE_MASK, type) | field_put(HGHCA_FLUSH_SELECTIVITY_MASK, selectivity));
        return put(unit);
    }
    Wqe &atomic(uint64_t swap_add, uint64_t compare)
    {
        hghca_atomic_unit unit{le64(swap_add), le64(compare)};
        return put(unit);
    }
    Wqe &ud(uint32_t dqpn, uint32_t qkey, unsigned peer, unsigned sgid_index = 0)
    {
        hghca_ud_gid_unit unit{};
        Gid gid = Node::gid_of(peer, sgid_index);
        unit.port = le32(HGHCA_UD_GRH | field_put(HGHCA_UD_HOP_LIMIT_MASK, 64) |
                         field_put(HGHCA_UD_SGID_INDEX_MASK, sgid_index) | 1);
        unit.dmac_h = le32(0x02000000);
        unit.dmac_l = le32(peer << 16);
        std::copy(gid.begin(), gid.end(), unit.dgid);
        unit.dqpn = le32(dqpn);
        unit.qkey = le32(qkey);
        return put(unit);
    }
    // Of the address in the ud unit that was put last.
    Wqe &static_rate(uint8_t code)
    {
        uint8_t *port = &bytes[bytes.size() - sizeof(hghca_ud_gid_unit)];
        port[3] = uint8_t((port[3] & ~0x3f) | code);
        return *this;
    }
    Wqe &data(std::initializer_list<Sge> sges)
    {
        for (const Sge &s : sges)
            data(s);
        return *this;
    }
    Wqe &data(const Sge &s)
    {
        hghca_data_unit unit{le32(s.length), le32(s.key), le64(s.va)};
        return put(unit);
    }
    Wqe &inline_data(const Bytes &payload)
    {
        uint32_t word = le32(HGHCA_INLINE_FLAG | uint32_t(payload.size()));
        const auto *p = reinterpret_cast<const uint8_t *>(&word);
        bytes.insert(bytes.end(), p, p + 4);
        bytes.insert(bytes.end(), payload.begin(), payload.end());
        bytes.resize((bytes.size() + 15) & ~size_t(15));
        return *this;
    }
    Wqe &with_fence()
    {
        fence = true;
        return *this;
    }
    template <class T>
    Wqe &put(const T &unit)
    {
        const auto *p = reinterpret_cast<const uint8_t *>(&unit);
        bytes.insert(bytes.end(), p, p + sizeof(unit));
        return *this;
    }

    uint8_t opcode;
    bool fence = false;
    Bytes bytes;
};

struct Completion {
    bool error;
    uint8_t syndrome;
    uint8_t opcode;
    bool is_send;
    uint32_t bytes;
    uint32_t imm;
    uint32_t slot;      // of the WQE in its queue
    uint32_t src_qpn;
    bool grh;
    uint32_t network;   // HGHCA_CQE_IPV*; 0: none said
    int vlan;           // -1: none
    uint32_t qpn;
};

// A QP with its software side, and a buffer to send from and receive to.
class Endpoint {
public:
    struct Options {
        uint8_t service = HGHCA_QP_ST_RC;
        uint32_t sq_wqes = 64, rq_wqes = 64;
        unsigned stride_log = 8;
        unsigned mtu_code = 3;          // 1024
        uint32_t sq_psn = 0x100, rq_psn = 0x100;
        unsigned sgid_index = 0;
        uint8_t static_rate = 0;
        unsigned ack_timeout = 14, retry = 7, rnr_retry = 7, rnr_timer = 1;
        uint32_t rd_atomic = 16, dest_rd_atomic = 16;
        uint32_t access = HGHCA_ACCESS_REMOTE_WRITE | HGHCA_ACCESS_REMOTE_READ | HGHCA_ACCESS_REMOTE_ATOMIC;
        uint32_t buffer_bytes = 1 << 20;
        unsigned cq_log = 9;
        bool dbr = true;
        bool by_gid = true;
        bool sqd_notify = false;
        uint8_t mtu_msgmax = 31;
        uint32_t srqn = 0;              // then no receive queue
        uint32_t xrcd = 0;              // XRC target of this domain; XRC without one: initiator
        bool trusted = false;           // may post REG_MR
        bool vendor_ops = false;        // of RSNIC
        uint32_t pd = TestDriver::kPd;  // of the QP, its queues and its buffer
    };

    Endpoint(Node &node, const Options &options)
        : node(node), options(options), cq(node.driver.create_cq(options.cq_log)),
          buffer(node.driver.create_mr(0x7000000000, options.buffer_bytes, TestDriver::kRw, options.pd))
    {
        TestDriver &d = node.driver;
        const bool xrc = options.service == HGHCA_QP_ST_XRC;
        qp = d.new_qp(options.sq_wqes, options.srqn || xrc ? 0 : options.rq_wqes, options.stride_log,
                      options.pd);
        if (!options.dbr)
            qp.dbr = 0;
        hghca_qpc c = d.init_qpc(qp, options.service, cq, cq);
        c.pd = be32(options.pd);
        c.limits = be32(options.access);
        c.mtu_msgmax = options.mtu_msgmax;
        c.srqn = be32(options.srqn);
        c.xrcd = be32(options.xrcd);
        if (options.xrcd)
            c.snd_wqe_len = 0;
        c.trust = be32((options.trusted ? HGHCA_QPC_TRUST_REG_MR : 0) |
                       (options.vendor_ops ? HGHCA_QPC_TRUST_VENDOR_OPS : 0));
        TestDriver::must(d.modify(HGHCA_CMD_RST2INIT_QPEE, qp.qpn, c), "RST2INIT");
        if (!TestDriver::is_connected(options.service))
            d.to_rts(qp, options.sq_psn);
    }

    static TestDriver::Peer peer_of(const Endpoint &self, const Endpoint &other, const Gid &gid)
    {
        TestDriver::Peer peer{};
        peer.qpn = other.qp.qpn;
        std::memcpy(peer.dmac, Node::mac_of(other.node.number).data(), 6);
        std::memcpy(peer.smac, Node::mac_of(self.node.number).data(), 6);
        peer.sip = 0x0a0a0000 | self.node.number;
        peer.dip = 0x0a0a0000 | other.node.number;
        peer.dgid = self.options.by_gid ? gid.data() : nullptr;
        peer.sgid_index = uint8_t(self.options.sgid_index);
        return peer;
    }
    void to_rtr(const Endpoint &other)
    {
        Gid gid = Node::gid_of(other.node.number, options.sgid_index);
        hghca_qpc c = node.driver.rtr_qpc(peer_of(*this, other, gid), options.rq_psn, options.mtu_code,
                                          options.dest_rd_atomic);
        c.rnr_nextrecvpsn = be32(options.rnr_timer << 24 | options.rq_psn);
        c.static_rate = options.static_rate;
        if (!(node.device.caps & HGHCA_CAP_QP_LIMITS))
            c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC);
        if (options.service == HGHCA_QP_ST_UC)
            c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HGHCA_QP_ATTR_MIN_RNR_TIMER);
        TestDriver::must(node.driver.modify(HGHCA_CMD_INIT2RTR_QPEE, qp.qpn, c), "INIT2RTR");
    }
    void to_rts()
    {
        hghca_qpc c = node.driver.rts_qpc(options.sq_psn, options.ack_timeout, options.retry, options.rnr_retry,
                                          options.rd_atomic);
        if (!(node.device.caps & HGHCA_CAP_QP_LIMITS))
            c.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC);
        if (options.service == HGHCA_QP_ST_UC)
            c.opt_param_mask = be32(HGHCA_QP_ATTR_SQ_PSN);
        TestDriver::must(node.driver.modify(HGHCA_CMD_RTR2RTS_QPEE, qp.qpn, c), "RTR2RTS");
    }
    void to_sqd(bool notify)
    {
        hghca_qpc c{};
        c.opt_param_mask = be32(notify ? HGHCA_QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0);
        c.limits = be32(notify ? HGHCA_QPC_LIMITS_SQD_NOTIFY : 0);
        TestDriver::must(node.driver.modify(HGHCA_CMD_RTS2SQD_QPEE, qp.qpn, c), "RTS2SQD");
    }
    void modify(uint32_t op)
    {
        TestDriver::must(node.driver.modify(op, qp.qpn, hghca_qpc{}), "modify");
    }
    unsigned state() { return node.driver.state(qp.qpn); }

    uint8_t *send_slot(uint16_t index)
    {
        return node.host.at(qp.sq.dma + ((index & (qp.sq_wqes - 1)) << qp.stride_log));
    }
    uint8_t *recv_slot(uint16_t index)
    {
        return node.host.at(qp.rq.dma + ((index & (qp.rq_wqes - 1)) << qp.stride_log));
    }
    // Steps 1 and 2 of 5.1; the doorbell is step 3.
    void write(const Wqe &wqe)
    {
        std::memcpy(send_slot(sq_head), wqe.bytes.data(), wqe.bytes.size());
        if (qp.sq_wqes > 1) {
            // nda_nop and nee_nds at once.
            const uint64_t low = (sq_head & (qp.sq_wqes - 1)) << qp.stride_log | wqe.opcode;
            const uint64_t high = (wqe.fence ? HGHCA_NEXT_FENCE : 0) | uint32_t(wqe.bytes.size() / 16);
            store_release(*reinterpret_cast<uint64_t *>(send_slot(uint16_t(sq_head - 1))), le64(high << 32 | low));
        }
        sq_head++;
    }
    void ring(uint16_t head, const Wqe &first, size_t count)
    {
        node.driver.ring_sq(qp, head, first.opcode, uint8_t(first.bytes.size() / 16),
                            uint8_t(count < 256 ? count : 0), first.fence);
    }
    void post(const std::vector<Wqe> &list)
    {
        uint16_t head = sq_head;
        for (const Wqe &wqe : list)
            write(wqe);
        ring(head, list.front(), list.size());
    }
    void post(const Wqe &wqe) { post(std::vector<Wqe>{wqe}); }

    void post_recv(const std::vector<Sge> &sges)
    {
        uint8_t *slot = recv_slot(rq_head);
        const size_t slot_bytes = size_t(1) << qp.stride_log;
        std::memset(slot, 0, slot_bytes);
        size_t at = 16;
        for (const Sge &s : sges) {
            hghca_data_unit unit{le32(s.length), le32(s.key), le64(s.va)};
            std::memcpy(slot + at, &unit, 16);
            at += 16;
        }
        if (at < slot_bytes) {
            hghca_data_unit end{0, le32(HGHCA_INVALID_LKEY), 0};
            std::memcpy(slot + at, &end, 16);
        }
        rq_head++;
        if (qp.dbr) {
            store_release(node.host.as<hghca_qp_dbr>(qp.dbr)->rq_head, le32(rq_head));
        } else {
            std::memset(recv_slot(rq_head), 0, 16);
            slot[0] = 1;
        }
    }
    void post_recv(const Sge &s) { post_recv(std::vector<Sge>{s}); }

    std::optional<Completion> poll()
    {
        hghca_cqe cqe;
        if (!node.driver.poll(cq, cqe))
            return std::nullopt;
        Completion c{};
        c.error = cqe.opcode == HGHCA_OPCODE_INVALID;
        c.syndrome = c.error ? reinterpret_cast<hghca_err_cqe *>(&cqe)->syndrome : 0;
        c.opcode = cqe.opcode;
        c.is_send = cqe.is_send;
        c.bytes = le32(cqe.byte_cnt);
        c.imm = cqe.imm;
        c.slot = le32(cqe.wqe) >> qp.stride_log;
        c.src_qpn = le32(cqe.rqpn);
        c.grh = le32(cqe.rlid_path_sl) & HGHCA_CQE_GRH;
        c.network = field_get(HGHCA_CQE_NETWORK_MASK, le32(cqe.rlid_path_sl));
        c.vlan = le32(cqe.rlid_path_sl) & HGHCA_CQE_VLAN_VALID
                     ? int(field_get(HGHCA_CQE_VLAN_ID_MASK, le32(cqe.rlid_path_sl))) : -1;
        c.qpn = le32(cqe.my_qpn);
        return c;
    }
    std::vector<Completion> poll_all()
    {
        std::vector<Completion> all;
        while (auto c = poll())
            all.push_back(*c);
        return all;
    }

    // ---- the buffer
    uint8_t *at(uint64_t offset) { return node.host.at(buffer.dma + offset); }
    Sge sge(uint64_t offset, uint32_t length) const { return {length, buffer.key, buffer.va + offset}; }
    uint64_t va(uint64_t offset) const { return buffer.va + offset; }
    void fill(uint64_t offset, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            at(offset)[i] = pattern(seed, i);
    }
    static uint8_t pattern(uint32_t seed, size_t i) { return uint8_t((seed + i) * 2654435761u >> 13); }
    bool holds(uint64_t offset, size_t length, uint32_t seed)
    {
        for (size_t i = 0; i < length; i++)
            if (at(offset)[i] != pattern(seed, i))
                return false;
        return true;
    }

    Node &node;
    Options options;
    TestDriver::Cq cq;
    TestDriver::Mr buffer;
    TestDriver::Qp qp;
    uint16_t sq_head = 0, rq_head = 0;
};

// Two QPs, connected.
struct Pair {
    Pair(Node &left, Node &right, const Endpoint::Options &options, bool connect_now = true)
        : Pair(left, right, options, options, connect_now)
    {
    }
    Pair(Node &left, Node &right, const Endpoint::Options &la, const Endpoint::Options &lb, bool connect_now = true)
        : a(left, la), b(right, lb)
    {
        if (connect_now)
            connect();
    }
    void connect()
    {
        a.to_rtr(b);
        b.to_rtr(a);
        a.to_rts();
        b.to_rts();
    }
    Endpoint a, b;
};

inline Wqe send(const Sge &s, uint32_t flags = HGHCA_WQE_CQ_UPDATE)
{
    return Wqe(HGHCA_OPCODE_SEND, flags).data(s);
}
inline Wqe write_to(const Sge &s, uint64_t va, uint32_t rkey, uint32_t flags = HGHCA_WQE_CQ_UPDATE)
{
    return Wqe(HGHCA_OPCODE_RDMA_WRITE, flags).raddr(va, rkey).data(s);
}
inline Wqe read_from(const Sge &s, uint64_t va, uint32_t rkey, uint32_t flags = HGHCA_WQE_CQ_UPDATE)
{
    return Wqe(HGHCA_OPCODE_RDMA_READ, flags).raddr(va, rkey).data(s);
}

}  // namespace hghca::test
