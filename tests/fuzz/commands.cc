// SPDX-License-Identifier: GPL-2.0-or-later
// A driver that means harm: any word in the HCR, any mailbox, any opcode and modifier, from power-on or from a
// device at work.
#include <vector>

#include "device.h"
#include "world.h"

namespace hghca::fuzz {
namespace {

// As many as the header has.
#define HGHCA_COUNT_COMMAND(...) +1
constexpr size_t kCommands = HGHCA_COMMANDS(HGHCA_COUNT_COMMAND);
#undef HGHCA_COUNT_COMMAND

// The opcodes that the device has, as it says itself: it gives BAD_OP for all others. An op_modifier that no command
// has, before INIT_HCA, keeps those from being carried out.
std::vector<uint16_t> opcodes(Node &node)
{
    std::vector<uint16_t> found;
    node.driver.reset();
    for (uint16_t op = 0; op <= HGHCA_HCR_OP_MASK; op++)
        if (node.driver.command(op, 0, 0, 0xff).status != HGHCA_CMD_STAT_BAD_OP)
            found.push_back(op);
    require(found.size() == kCommands, "the device has other commands than the header");
    return found;
}

class Script {
public:
    Script(World &world, const std::vector<uint16_t> &ops) : world_(world), node_(world.net.a), ops_(ops)
    {
        world_.owns_memory[0] = true;   // MAP_ICM takes any of it
        mailbox_ = node_.driver.in_mailbox();
    }
    void step(Record r)
    {
        switch (r.u8() % 10) {
        case 0:
        case 1:
        case 2:
            command(r);
            break;
        case 3:
            write(r);
            break;
        case 4:
        case 5:
            plausible(r);
            break;
        case 6:
            change_mailbox(r);
            break;
        case 7:
            world_.post(r);
            break;
        case 8:
            world_.pass_time(r);
            break;
        default:
            bell(r);
        }
    }

private:
    // Any command on what stands in the mailbox.
    void command(Record &r)
    {
        const uint8_t which = r.u8(), how = r.u8();
        const uint32_t op = how & 1 ? r.u16() & 0xfff : ops_[which % ops_.size()];
        const uint32_t modifier = how & 2 ? r.u32() : r.u8();
        const uint32_t op_modifier = how & 4 ? r.u8() : how >> 6;
        uint64_t in = how & 8 ? r.u64() : mailbox_, out = how & 0x10 ? r.u32() : node_.driver.out_mailbox();
        if (how & 0x20)   // any page of memory, ICM too
            in = out = FakeHost::kBase + r.u16() % (World::kMemory / 4096) * 4096;
        node_.driver.command(op, in, modifier, op_modifier, out, how & 0x80);
        world_.settle_now();
    }
    void write(Record &r)
    {
        static constexpr unsigned kSizes[] = {4, 4, 4, 8, 2, 1};
        const uint8_t where = r.u8();
        const uint64_t offset = where & 1 ? r.u32() % HGHCA_BAR_HCR_SIZE
                                : where & 2 ? HGHCA_HCR_BASE + where % HGHCA_HCR_SIZE : HGHCA_HCR_BASE + where / 4 % 7 * 4;
        const unsigned size = kSizes[r.u8() % 6];
        if (where == 0xff)
            node_.device.hcr_write(HGHCA_RESET, r.u8() & 1, 4);
        else
            node_.device.hcr_write(offset, r.u32(), size);
        node_.device.hcr_read(offset, size);
        world_.settle_now();
    }
    // What a driver would put into the mailbox; its command then follows at once, or later.
    void plausible(Record &r)
    {
        TestDriver &d = node_.driver;
        const uint8_t what = r.u8(), index = r.u8(), size = r.u8();
        const TestDriver::Mr &mr = world_.keys[0][size % world_.keys[0].size()];
        const uint64_t memory = FakeHost::kBase + (r.u16() % (World::kMemory / 4096)) * 4096;
        TestDriver::Qp qp{};
        qp.qpn = index % 32;
        qp.stride_log = 6 + size % 4;
        qp.sq_wqes = 1u << size % 5;
        qp.rq_wqes = size & 0x80 ? 0 : 1u << size % 4;
        qp.usr_page = TestDriver::kUarPage;
        qp.sq = qp.rq = mr;
        TestDriver::Cq cq{};
        cq.cqn = size % 8;
        const uint8_t services[] = {HGHCA_QP_ST_RC, HGHCA_QP_ST_UC, HGHCA_QP_ST_UD, HGHCA_QP_ST_RAW, HGHCA_QP_ST_XRC};
        uint32_t op = 0, modifier = index;
        switch (what % 17) {
        case 0:
            op = fill(HGHCA_CMD_INIT_HCA, d.init_mailbox(size & 1 ? world_.caps : 1u << size / 8));
            modifier = 0;
            break;
        case 1: {
            hghca_icm_chunk pair[2]{};
            pair[HGHCA_ICM_CHUNK_SLOT(0)] = {be64(uint64_t(index) << 12 | uint64_t(size % 8) << 20), be64(memory | 1)};
            op = fill(HGHCA_CMD_MAP_ICM, pair);
            modifier = 1;
            break;
        }
        case 2:
            op = fill(HGHCA_CMD_SW2HW_MPT, d.mpt_mailbox(key_at(index), 0x1000, uint64_t(size) << 6, index, r.u8(),
                                                         TestDriver::kPd, 12 + (size & 0x40 ? 9 : 0)));
            break;
        case 3: {
            hghca_mtt_mailbox mtts{};
            mtts.start_index = be64(index);
            for (uint32_t i = 0; i < 16; i++)
                mtts.entry[HGHCA_MTT_SLOT(i)] = be64(memory + i * 4096);
            op = fill(HGHCA_CMD_WRITE_MTT, mtts);
            modifier = 1 + size % 16;
            break;
        }
        case 4:
            op = fill(HGHCA_CMD_SW2HW_EQ, d.eqc_mailbox(size % 12, mr.key, index));
            modifier = index % 8;
            break;
        case 5:
            op = fill(HGHCA_CMD_SW2HW_CQ, d.cqc_mailbox(index % 32, size % 9, mr.key, 1, size & 0x80 ? memory : 0));
            modifier = index % 32;
            break;
        case 6: {
            TestDriver::Srq srq{index % 8u, mr, size % 6u, 6 + size % 3u, memory};
            op = fill(HGHCA_CMD_SW2HW_SRQ, d.srqc_mailbox(srq));
            modifier = index % 8;
            break;
        }
        case 7:
        case 8:
            op = fill(HGHCA_CMD_RST2INIT_QPEE, d.init_qpc(qp, services[what / 17 % 5], cq, cq));
            modifier = qp.qpn;
            break;
        case 9:
        case 10:
            op = fill(HGHCA_CMD_INIT2RTR_QPEE, d.rtr_qpc({r.u8(), {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 1}, 0x0a0a0001,
                                                          0x0a0a0002}, size, 1 + size % 5));
            modifier = qp.qpn;
            break;
        case 11:
            op = fill(HGHCA_CMD_RTR2RTS_QPEE, d.rts_qpc(size));
            modifier = qp.qpn;
            break;
        case 12: {
            hghca_mgm entry{};
            entry.next = be32(size % 8);
            std::copy(World::kGroup.begin(), World::kGroup.end(), entry.gid);
            entry.qp[0] = be32(1u << 31 | qp.qpn);
            op = fill(HGHCA_CMD_WRITE_MGM, entry);
            modifier = index % 8;
            break;
        }
        case 13: {
            hghca_flow rule{};
            rule.qpn = be32(size & 0x80 ? HGHCA_FLOW_RSS | index % 4 : qp.qpn);
            rule.priority = be16(size % 4);
            rule.mask.ether_type = 0xffff;
            rule.value.ether_type = be16(0x0800);
            op = fill(HGHCA_CMD_FLOW_ATTACH, rule);
            break;
        }
        case 14: {
            if (world_.caps & HGHCA_CAP_VENDOR_OPS) {   // such a device has no RSS
                hghca_partition partition{};
                partition.key = be32(index % 64);
                partition.pd = be32(TestDriver::kPd);
                partition.log_record = uint8_t(3 + size % 6);
                partition.log_regions = size >> 5;
                partition.key_size = uint8_t(1 << size % 4);
                partition.region[0] = {be64(mr.va), be32(mr.key), be32(uint32_t(mr.length)), 0, 0};
                op = fill(HGHCA_CMD_SW2HW_PART, partition);
                modifier = index % 64;
                break;
            }
            hghca_rss group{};
            group.fields = be32(size);
            group.function = HGHCA_RSS_TOEPLITZ;
            group.log_size = size % 3;
            for (unsigned i = 0; i < 4; i++)
                group.qpn[i] = be32((index + i) % 32);
            op = fill(HGHCA_CMD_CREATE_RSS, group);
            modifier = index % 4;
            break;
        }
        case 15: {
            hghca_port port{};
            port.mac_h = be32(0x02000000);
            port.mac_l = be16(1);
            port.mtu = be32(64 * size);
            port.flags = be32(index);
            op = fill(HGHCA_CMD_SET_PORT, port);
            modifier = 1;
            break;
        }
        default:
            if (size % 4 == 3) {
                hghca_congestion congestion;
                d.query(HGHCA_CMD_QUERY_CONGESTION, congestion, 1);   // which may fail, as it wants INIT_HCA
                reinterpret_cast<uint8_t *>(&congestion)[index % sizeof(congestion)] = r.u8();
                op = fill(HGHCA_CMD_SET_CONGESTION, congestion);
                modifier = 1;
            } else if (size % 4 == 2) {
                hghca_flow_control control;
                d.query(HGHCA_CMD_QUERY_FLOW_CONTROL, control, 1);
                reinterpret_cast<uint8_t *>(&control)[index % sizeof(control)] = r.u8();
                op = fill(HGHCA_CMD_SET_FLOW_CONTROL, control);
                modifier = 1;
            } else if (size & 1) {
                hghca_resize_cq resize{};
                resize.lkey = be32(mr.key);
                op = fill(HGHCA_CMD_RESIZE_CQ, resize);
                modifier = index % 32;
            } else {
                hghca_resize_srq resize{};
                resize.lkey = be32(mr.key);
                op = fill(HGHCA_CMD_RESIZE_SRQ, resize);
                modifier = index % 8;
            }
        }
        for (unsigned i = 0; i < 2; i++) {
            const uint8_t at = r.u8(), bits = r.u8();
            node_.host.at(mailbox_)[at] ^= bits;
        }
        if (!(r.u8() & 1))
            node_.driver.command(op, mailbox_, modifier, what % 17 == 1 ? 1 + size % 2 : 0);
        world_.settle_now();
    }
    uint32_t key_at(uint32_t index) const
    {
        return world_.caps & HGHCA_CAP_MEM_MGT ? index << 8 | 0xab : 0xab000000 | index;
    }
    template <class T>
    uint32_t fill(uint32_t op, const T &mailbox)
    {
        std::memset(node_.host.at(mailbox_), 0, HGHCA_MAILBOX_SIZE);
        std::memcpy(node_.host.at(mailbox_), &mailbox, sizeof(mailbox));
        return op;
    }
    void change_mailbox(Record &r)
    {
        const uint16_t at = r.u16();
        const uint8_t how = r.u8();
        for (unsigned i = 0; i < 1u + how % 16; i++)
            node_.host.at(mailbox_)[(at + i) % HGHCA_MAILBOX_SIZE] = r.u8();
    }
    // Doorbells of objects as they now are, and a frame for them.
    void bell(Record &r)
    {
        const uint8_t what = r.u8(), index = r.u8() % 32;
        const uint32_t low = r.u32();
        const uint64_t page = TestDriver::kUarPage * HGHCA_UAR_PAGE_SIZE;
        if (what % 4 == 0)
            node_.driver.ring_doorbell(page, uint64_t(uint32_t(index) << 8 | r.u8()) << 32 | low);
        else if (what % 4 < 3)
            node_.driver.ring_doorbell(page + what % 4 * 0x10, uint64_t(uint32_t(r.u8()) << 24 | index) << 32 | low);
        else if (!world_.recent.empty())
            Network::deliver(node_, world_.recent[index % world_.recent.size()]);
        world_.settle_now();
    }

    World &world_;
    Node &node_;
    const std::vector<uint16_t> &ops_;
    uint64_t mailbox_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const std::vector<uint16_t> ops = opcodes(world_of(0).net.a);
    Record first = first_record(data, size);
    const uint8_t mask = first.u8(), how = first.u8();
    World &world = world_of(how);
    world.begin(mask);
    Script script(world, ops);
    if (how & 2)
        world.net.a.device.reset();   // from power-on
    play_rest(data, size, script);
    for (unsigned i = 0; i < 16; i++)
        world.run_timers(16, 1'000'000'000);
    return 0;
}

}  // namespace hghca::fuzz
