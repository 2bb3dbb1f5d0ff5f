// SPDX-License-Identifier: GPL-2.0-or-later
// A hostile peer and a bad link: any frame at any time to live QPs of every service.
#include "device.h"
#include "port/roce_v2.h"
#include "jingzhao/translate.h"
#include "wire/packet.h"
#include "world.h"

namespace hghca::fuzz {
namespace {

// A frame from one end of a line to the other, each field near to what is expected there.
class Forger {
public:
    Forger(World &world, Record &r) : world_(world), r_(r) {}

    void forge()
    {
        const unsigned which = r_.u8();
        Endpoint *to = world_.endpoint(which);
        Endpoint *from = world_.endpoint(which ^ 1);
        if (!to)
            return;
        const uint8_t how = r_.u8();
        const bool group = how & 1 && to->options.service == HGHCA_QP_ST_UD;
        TransportHeader h{};
        h.opcode = opcode(to->options);
        h.psn = psn(*to);
        h.pkey = how & 2 && how & 4 ? 0x7fff : 0xffff;
        h.qpn = Qpn(group ? HGHCA_QPN_MULTICAST : to->qp.qpn);
        h.ack_request = how & 8;
        h.solicited = how & 16;
        h.qkey = World::kQkey;
        h.src_qpn = Qpn(from->qp.qpn);
        const uint32_t key = world_.key_of(to->node, r_.u8());
        h.rkey = Key(key);
        h.va = world_.base_of(to->node, key) + r_.u16() % (World::kBuffer + 64);
        h.length = r_.u16() % (World::kBuffer + 64);
        h.flush = how;
        h.imm = le32(key);
        h.swap_add = h.compare = how;
        h.syndrome = r_.u8();
        h.msn = Msn(r_.u8());
        if (kOpcodes[h.opcode] & kVendor && how & 128) {
            h.rkey = Key(kOpcodes[h.opcode] & kPart ? World::kPartition : key);
            h.length = h.length % 256 & ~7u;
            h.pointer_key = how & 1;
            h.search = World::search_of(r_.u8(), r_.u16());
        }
        h.srqn = Srqn(world_.srqs[1] ? world_.srqs[1]->queue.srq.srqn : 0);
        Frame f = build(*from, *to, h, group, payload_bytes(*to, h));
        if (f.empty())
            return;
        if (how & 32)
            change(f);
        if (!(how & 64))
            seal(f);
        Network::deliver(to->node, f);
        world_.settle_now();
    }
    // Some bytes behind the Ethernet header: mostly of the BTH and what follows it.
    void change(Frame &f)
    {
        for (unsigned i = 0; i < 2; i++) {
            const uint8_t at = r_.u8(), bits = r_.u8();
            if (!bits || f.size() < 20)
                continue;
            const size_t from = at & 0x80 ? 12 : std::min<size_t>(42, f.size() - 1);
            f[from + (at & 0x7f) % (f.size() - from)] ^= bits;
        }
    }

private:
    uint8_t opcode(const Endpoint::Options &options)
    {
        const uint8_t service = options.service, code = r_.u8();
        if (options.vendor_ops && code >= 0xc0 && code < 0xe0)
            return uint8_t(HGHCA_BTH_VENDOR | code % 6);
        if (service == HGHCA_QP_ST_UD)
            return code < 200 ? uint8_t(HGHCA_BTH_UD | (HGHCA_BTH_OP_SEND_ONLY + code % 2)) : code;
        // The upper bits choose another service now and then.
        return uint8_t((code < 0xe0 ? bth_service(service_of(service)) : code << 5) | (code & 0x1f));
    }
    Psn psn(Endpoint &to)
    {
        const uint8_t base = r_.u8();
        const int8_t off = r_.i8();
        Qp *qp = to.node.device.qps->find(Qpn(to.qp.qpn));
        if (!qp)
            return Psn{};
        const Psn bases[] = {qp->resp.expected_psn, qp->req.unacked_psn, qp->req.next_psn, qp->req.highest_psn};
        return psn_add(bases[base % 4], uint32_t(base & 0x80 ? int(off) << 16 : int(off)));
    }
    size_t payload_bytes(Endpoint &to, const TransportHeader &h)
    {
        const uint8_t how = r_.u8();
        const Qp *qp = to.node.device.qps->find(Qpn(to.qp.qpn));
        const uint32_t mtu = qp ? qp->a.mtu : 256;
        switch (how % 6) {
        case 0:
            return 0;
        case 1:
            return std::min(h.length, mtu);
        case 2:
        case 3:
            return mtu;
        case 4:
            return how;
        default:
            return how * 20;
        }
    }
    static Frame build(Endpoint &from, Endpoint &to, TransportHeader h, bool group, size_t bytes)
    {
        const unsigned index = to.options.sgid_index;
        Path path{};
        path.by_gid = from.options.by_gid;
        path.sgid_index = uint8_t(index);
        path.smac = Node::mac_of(from.node.number);
        path.sip = World::ipv4_of(from.node);
        path.dip = group ? World::kGroupIpv4 : World::ipv4_of(to.node);
        path.dgid = group ? World::kGroup : Node::gid_of(to.node.number, index);
        path.dmac = group ? World::kGroupMac : Node::mac_of(to.node.number);
        const RoceV2 &link = *from.node.device.link;
        Route route{};
        if (!link.route(path, 1, route))
            return {};
        uint8_t transport[kMaxTransportHeader];
        h.pad = uint8_t(-bytes & 3);
        const size_t header = put_transport_header(h, transport);
        link.finish(route, uint32_t(header + bytes + h.pad + HGHCA_ICRC_SIZE));
        Frame f(route.header.begin(), route.header.begin() + route.layout.transport_offset);
        f.insert(f.end(), transport, transport + header);
        for (size_t i = 0; i < bytes; i++)
            f.push_back(Endpoint::pattern(number(h.psn), i));
        f.resize(f.size() + h.pad + HGHCA_ICRC_SIZE);
        return f;
    }

    World &world_;
    Record &r_;
};

// What happens to the frames of the lines themselves, from the next but `skip` on.
struct Impairment {
    unsigned skip = 0, count = 0;
    uint8_t how = 0, at = 0, bits = 0;

    Fate operator()(Frame &f)
    {
        if (skip) {
            skip--;
            return {};
        }
        if (!count)
            return {};
        count--;
        if (how & 4 && f.size() > 60) {
            f[42 + at % (f.size() - 42)] ^= bits;
            if (!(how & 8))
                seal(f);
        }
        if (how & 16)
            f.resize(f.size() - std::min<size_t>(f.size() / 2, at));
        return {how & 1 ? 0u : how & 2 ? 2u : 1u, how >> 5 & 7u};
    }
};

class Script {
public:
    explicit Script(World &world) : world_(world)
    {
        world_.rule = [this](const Node &, Frame &f) { return impairment_(f); };
    }
    void step(Record r)
    {
        Forger forger(world_, r);
        switch (r.u8() % 12) {
        case 0:
        case 1:
            world_.post(r);
            break;
        case 2:
        case 3:
            world_.receive(r);
            break;
        case 4:
        case 5:
        case 6:
            forger.forge();
            break;
        case 7:
            impairment_ = {r.below(16), r.below(16), r.u8(), r.u8(), r.u8()};
            break;
        case 8:
            again(r, forger);
            break;
        case 9:
            world_.pass_time(r);
            break;
        case 10:
            world_.poll();
            break;
        default:
            control(r);
        }
#ifdef HGHCA_FUZZ_PLANT
        require(!world_.net.b.counters().rnr_nak_sent, "planted: a receiver is always ready");
#endif
    }

private:
    // A frame of a while ago, as it was or changed or cut or longer.
    void again(Record &r, Forger &forger)
    {
        if (world_.recent.empty())
            return;
        Frame f = world_.recent[world_.recent.size() - 1 - r.u8() % world_.recent.size()];
        const uint8_t how = r.u8();
        if (how & 1)
            forger.change(f);
        if (how & 2)
            f.resize(r.u16() % (f.size() + 1));
        if (how & 4)
            f.resize(f.size() + r.u16() % 9300, how);
        if (!(how & 8))
            seal(f);
        if (f.empty())
            return;
        Network::deliver(how & 16 ? world_.net.a : world_.net.b, f);
        world_.settle_now();
    }
    void control(Record &r)
    {
        const uint8_t what = r.u8();
        Endpoint *e = world_.endpoint(r.u8());
        Network &net = world_.net;
        Node &node = what & 0x80 ? net.a : net.b;
        switch (what % 9) {
        case 0:
            node.host.link_full = r.u8() & 1;
            if (!node.host.link_full)
                bounded(node.device, [&node] { node.device.link_ready(); });
            break;
        case 1:
            node.device.set_link(r.u8() & 1);
            break;
        case 2:
            node.host.copy_only = r.u8() & 1;
            node.device.dma_changed();
            break;
        case 3:
            world_.serve_faults(r.u8() & 1);
            return;
        case 4:
            if (e && !r.u8())
                e->node.driver.to_error(e->qp.qpn);
            break;
        case 5:
            if (e)
                e->node.driver.modify(r.u8() & 1 ? HGHCA_CMD_RTS2SQD_QPEE : HGHCA_CMD_SQD2RTS_QPEE, e->qp.qpn, {});
            break;
        case 6:
            if (e)
                e->node.driver.arm(e->cq);
            break;
        case 7:
            if (e && !r.u8()) {
                e->node.driver.to_error(e->qp.qpn);
                e->node.driver.to_reset(e->qp.qpn);
            }
            break;
        default:
            if (e)
                e->node.driver.ring_sq(e->qp, r.u16(), r.u8(), r.u8(), r.u8(), r.u8() & 1);
        }
        world_.settle_now();
    }

    World &world_;
    Impairment impairment_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Record first = first_record(data, size);
    const uint8_t mask = first.u8();
    World &world = world_of(first.u8());
    world.begin(mask);
    Script script(world);
    play_rest(data, size, script);
    world.rule = nullptr;
    world.finish();
    world.require_rest();
    for (const Node *node : {&world.net.a, &world.net.b})
        require(!node->device.failed(), "neither a peer nor a link makes a device fail");
    return 0;
}

}  // namespace hghca::fuzz
