// SPDX-License-Identifier: GPL-2.0-or-later
// A guest that writes what it wants to its queues and doorbells. The other guest, and memory that no key gives, are
// to stay as they are.
#include "device.h"
#include "world.h"

namespace hghca::fuzz {
namespace {

class Script {
public:
    explicit Script(World &world) : world_(world) { world_.any_frame = true; }   // an address is the WQE's
    void step(Record r)
    {
        switch (r.u8() % 12) {
        case 0:
        case 1:
        case 2:
            post(r);
            break;
        case 3:
            world_.receive(r);
            break;
        case 4:
        case 5:
            scribble(r);
            break;
        case 6:
            ring(r);
            break;
        case 7:
            write_uar(r);
            break;
        case 8:
            world_.pass_time(r);
            break;
        case 9:
            world_.poll();
            break;
        case 10:
            record(r);
            break;
        default:
            control(r);
        }
    }

private:
    // A work request with some of it changed, or a doorbell that says something else of it.
    void post(Record &r)
    {
        Endpoint *e = world_.endpoint(r.u8());
        if (!e || !e->qp.sq_wqes)
            return;
        Wqe wqe = world_.work(*e, r);
        wqe.bytes.resize(std::min<size_t>(wqe.bytes.size(), 256));
        for (unsigned i = 0; i < 2; i++) {
            const uint8_t at = r.u8(), bits = r.u8();
            wqe.bytes[at % wqe.bytes.size()] ^= bits;
        }
        const uint16_t head = e->sq_head;
        const uint8_t how = r.u8();
        wqe.opcode ^= how & 0x10 ? r.u8() : uint8_t(0);
        e->write(wqe);
        if (!(how & 1))   // or later, with the next
            e->ring(head, wqe, how & 2 ? 1 + how / 4 : 1);
        world_.settle_now();
    }
    // Anything anywhere in a queue, of the software's own side too.
    void scribble(Record &r)
    {
        const unsigned which = r.u8();
        Endpoint *e = world_.endpoint(which);
        if (!e)
            return;
        const uint8_t where = r.u8();
        const uint16_t at = r.u16();
        const uint8_t count = uint8_t(1 + r.below(12));
        const bool whole = r.u8() & 1;
        TestDriver::Mr mr = where % 4 == 0 ? e->qp.sq : where % 4 == 1 ? e->qp.rq : where % 4 == 2 ? e->cq.buffer
                                                                                     : e->node.driver.async.buffer;
        if (where % 16 == 13 && world_.srqs[which & 1])
            mr = world_.srqs[which & 1]->queue.srq.buffer;
        Node &node = where % 16 == 13 ? world_.net.b : e->node;
        if (!mr.length)
            return;
        for (unsigned i = 0; i < count; i++) {
            uint8_t &byte = *node.host.at(mr.dma + (whole ? (at & ~15u) + i : at + 16 * i) % mr.length);
            byte = r.u8();
        }
    }
    void ring(Record &r)
    {
        Endpoint *e = world_.endpoint(r.u8());
        if (!e)
            return;
        const auto off = r.i8();
        const uint8_t opcode = r.u8(), units = r.u8(), count = r.u8();
        e->node.driver.ring_sq(e->qp, uint16_t(e->sq_head + off), opcode, units, count, r.u8() & 1);
        world_.settle_now();
    }
    void write_uar(Record &r)
    {
        Node &node = r.u8() & 1 ? world_.net.a : world_.net.b;
        static constexpr unsigned kSizes[] = {8, 4, 4, 8, 2, 1, 8, 4};
        const unsigned size = kSizes[r.u8() % 8];
        const uint8_t where = r.u8();
        const uint64_t page = where & 1 ? r.u16() : TestDriver::kUarPage;
        const uint64_t offset = where & 2 ? r.u16() % 4096 : (where >> 2) % 3 * 0x10 + (where & 0x80 ? 4 : 0);
        const uint32_t high = uint32_t(r.u8() % 8) << 24 | r.u8() % 40u, low = r.u32();
        node.driver.ring_doorbell(page * 4096 + offset, uint64_t(where & 0x40 ? r.u32() : high) << 32 | low, size);
        node.device.uar_read(page * 4096 + offset, size);
        world_.settle_now();
    }
    // Doorbell records: of receive queues, CQs and SRQs.
    void record(Record &r)
    {
        const unsigned which = r.u8();
        Endpoint *e = world_.endpoint(which);
        if (!e)
            return;
        const uint8_t what = r.u8();
        const uint32_t value = what & 0x80 ? r.u32() : r.u16();
        if (what % 3 == 0 && e->qp.dbr)
            e->node.host.as<hghca_qp_dbr>(e->qp.dbr)->rq_head = le32(value);
        else if (what % 3 == 1)
            e->node.host.as<hghca_cq_dbr>(e->cq.dbr)->consumer_index = le32(value);
        else if (world_.srqs[which & 1])
            world_.srqs[which & 1]->queue.announce(value);
        world_.settle_now();
    }
    void control(Record &r)
    {
        const uint8_t what = r.u8();
        Endpoint *e = world_.endpoint(r.u8());
        if (!e)
            return;
        TestDriver &d = e->node.driver;
        static constexpr uint32_t kTransitions[] = {HGHCA_CMD_RTS2SQD_QPEE, HGHCA_CMD_SQD2RTS_QPEE,
                                                    HGHCA_CMD_SQERR2RTS_QPEE, HGHCA_CMD_RTS2RTS_QPEE,
                                                    HGHCA_CMD_SQD2SQD_QPEE};
        switch (what % 8) {
        case 0:
            d.modify(kTransitions[r.u8() % 5], e->qp.qpn, hghca_qpc{});
            break;
        case 1:
            d.to_error(e->qp.qpn);
            break;
        case 2:
            d.to_error(e->qp.qpn);
            d.to_reset(e->qp.qpn);
            reopen(*e);
            break;
        case 3:
            e->node.host.copy_only = r.u8() & 1;
            e->node.device.dma_changed();
            break;
        case 4:
            world_.serve_faults(r.u8() & 1);
            return;
        case 5:
            d.command(HGHCA_CMD_MODERATE_CQ, r.u64(), e->cq.cqn);
            break;
        case 6:
            if (auto &s = world_.srqs[r.u8() & 1])
                world_.net.b.driver.command(HGHCA_CMD_ARM_SRQ, r.u16(), s->queue.srq.srqn);
            break;
        default:
            e->node.host.bus_master = r.u8() & 3;
        }
        world_.settle_now();
    }
    // The QP from the start, with what stands in its queues.
    void reopen(Endpoint &e)
    {
        TestDriver &d = e.node.driver;
        hghca_qpc c = d.init_qpc(e.qp, e.options.service, e.cq, e.cq);
        c.srqn = be32(e.options.srqn);
        c.xrcd = be32(e.options.xrcd);
        if (e.options.xrcd)
            c.snd_wqe_len = 0;
        c.trust = be32(e.options.trusted ? HGHCA_QPC_TRUST_REG_MR : 0);
        if (d.modify(HGHCA_CMD_RST2INIT_QPEE, e.qp.qpn, c))
            return;
        e.sq_head = e.rq_head = 0;
        if (TestDriver::is_connected(e.options.service)) {
            Pair *line = nullptr;
            for (auto &l : world_.lines)
                if (l && (&l->a == &e || &l->b == &e))
                    line = l.get();
            Endpoint &other = &line->a == &e ? line->b : line->a;
            const Gid gid = Node::gid_of(other.node.number, e.options.sgid_index);
            const bool limits = world_.caps & HGHCA_CAP_QP_LIMITS;
            hghca_qpc rtr = d.rtr_qpc(Endpoint::peer_of(e, other, gid), e.options.rq_psn, e.options.mtu_code);
            if (!limits)
                rtr.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC);
            if (e.options.service == HGHCA_QP_ST_UC)
                rtr.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HGHCA_QP_ATTR_MIN_RNR_TIMER);
            d.modify(HGHCA_CMD_INIT2RTR_QPEE, e.qp.qpn, rtr);
            hghca_qpc rts = d.rts_qpc(e.options.sq_psn, 8, 3, 3);
            if (!limits)
                rts.opt_param_mask &= ~be32(HGHCA_QP_ATTR_MAX_QP_RD_ATOMIC);
            if (e.options.service == HGHCA_QP_ST_UC)
                rts.opt_param_mask = be32(HGHCA_QP_ATTR_SQ_PSN);
            d.modify(HGHCA_CMD_RTR2RTS_QPEE, e.qp.qpn, rts);
        } else {
            d.modify(HGHCA_CMD_INIT2RTR_QPEE, e.qp.qpn, {});
            d.modify(HGHCA_CMD_RTR2RTS_QPEE, e.qp.qpn, {});
        }
    }

    World &world_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Record first = first_record(data, size);
    const uint8_t mask = first.u8(), how = first.u8();
    World &world = world_of(how);
    // Who may post REG_MR may have any memory of his device.
    world.trusted = how & 2;
    world.owns_memory = {world.trusted, world.trusted};
    world.begin(mask);
    Script script(world);
    play_rest(data, size, script);
    world.finish();
    world.require_rest();
    return 0;
}

}  // namespace hghca::fuzz
