// SPDX-License-Identifier: GPL-2.0-or-later
// What each command does (interface document, 4).
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/command_table.h"
#include "jingzhao/congestion_fields.h"
#include "jingzhao/cq.h"
#include "jingzhao/eq.h"
#include "jingzhao/flow.h"
#include "jingzhao/icm.h"
#include "jingzhao/multicast.h"
#include "jingzhao/qp_table.h"
#include "jingzhao/rss.h"
#include "jingzhao/smp.h"
#include "jingzhao/srq.h"
#include "jingzhao/translate.h"
#include "rsnic/caps.h"
#include "rsnic/partition.h"
#include "transport/transport.h"

namespace hghca {

namespace {

constexpr unsigned kLogMaxMpts = 19;
constexpr unsigned kLogMaxMtts = 27;
constexpr uint64_t kBoardId = 0x4847484341000001;  // "HGHCA", 1
constexpr uint32_t kFirmware = kFirmwareMajor << 16 | kFirmwareMinor;
constexpr uint32_t kMinMtu = 68;
constexpr unsigned kLogMaxPackets = 16;            // of the retransmission buffer
static_assert(1u << kLogMaxPackets <= PacketStore::kMaxPlaces);
// What the RSNIC document has not: it names RC, QP 1, and Ethernet frames for the host, and its commands end by event.
constexpr uint32_t kRsnicLacks = HGHCA_CAP_SRQ | HGHCA_CAP_UC | HGHCA_CAP_MEM_MGT | HGHCA_CAP_XRC | HGHCA_CAP_MULTICAST |
                                 HGHCA_CAP_PLACEMENT | HGHCA_CAP_ODP | HGHCA_CAP_DEVICE_MEMORY | HGHCA_CAP_RSS |
                                 HGHCA_CAP_SYNC_COMMANDS | HGHCA_CAP_STATUS_RECORD;
// What RSNIC alone has.
constexpr uint32_t kRsnicAlone = HGHCA_CAP_VENDOR_OPS;

IcmSpace space_of(uint8_t op_modifier)
{
    return op_modifier == HGHCA_ICM_CONTEXT ? IcmSpace::Context : IcmSpace::Tpt;
}

}  // namespace

const CommandInterface::Row *CommandInterface::find(uint16_t op)
{
    constexpr uint32_t ANY = Row::kAnyModifier;
    static constexpr Row kRows[] = {
#define HGHCA_COMMAND_ROW(name, function, op, in, out, when, in_modifier, op_modifiers, capability)               \
    {op, #name, &CommandInterface::function, HGHCA_CMD_PARAM_##in, HGHCA_CMD_PARAM_##out, HGHCA_CMD_WHEN_##when, \
     in_modifier, op_modifiers, HGHCA_CAP_##capability, std::string_view(#capability) != "BASE"},
        HGHCA_COMMANDS(HGHCA_COMMAND_ROW)
#undef HGHCA_COMMAND_ROW
    };
    for (const Row &row : kRows)
        if (row.op == op)
            return &row;
    return nullptr;
}

// ---- 4.1 limits and identity

uint32_t CommandInterface::capabilities() const
{
    if (device_.config.profile == Profile::Base)
        return 0;
    uint32_t absent = device_.config.profile == Profile::Rsnic ? kRsnicLacks : kRsnicAlone;
    if (!device_.config.device_memory.bytes)
        absent |= HGHCA_CAP_DEVICE_MEMORY;
    return HGHCA_CAP_ALL & ~absent & allowed_;
}

// Number 0 is no QP: RSNIC has 255.
unsigned CommandInterface::log_max_qps() const
{
    static_assert(kRsnicQps == (1u << kRsnicLogQps) - 1);
    return device_.config.profile == Profile::Rsnic ? kRsnicLogQps : kLogMaxQps;
}

hghca_dev_lim CommandInterface::limits() const
{
    hghca_dev_lim lim{};
    lim.log_reserved_qps = device_.config.profile == Profile::Rsnic ? 0 : 3;
    lim.log_max_qp_sz = be16(14);
    lim.log_max_cq_sz = be16(kLogMaxCqSize);
    lim.log_max_qps = uint8_t(log_max_qps());
    lim.log_max_cqs = kLogMaxCqs;
    lim.log_max_eqs = kLogMaxEqs;
    lim.log_max_mpts = kLogMaxMpts;
    lim.log_max_pds = 20;
    lim.log_max_gids = 7;
    lim.log_max_pkeys = 0;
    lim.mtt_entry_sz = kMttSize;
    lim.qpc_entry_sz = be16(kQpcEntrySize);
    lim.cqc_entry_sz = be16(128);
    lim.eqc_entry_sz = be16(64);
    lim.mpt_entry_sz = be16(64);
    lim.mtu_width = 5 << 4 | 2;  // 4096 bytes; 4X, as RoCE ports say
    lim.vl_ports = 1 << 4 | 1;
    lim.log_min_page_sz = 12;
    lim.max_sg = 32;
    lim.max_desc_sz = be16(1008);
    lim.max_sg_rq = 32;
    lim.max_desc_sz_rq = be16(1008);
    lim.max_icm_sz = be64(Icm::kSize);
    if (device_.config.profile != Profile::Base)
        add_extensions(lim);
    return lim;
}

uint8_t CommandInterface::query_dev_lim(const Command &)
{
    out(limits());
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::query_caps(const Command &)
{
    if (device_.config.profile != Profile::Rsnic)
        return HGHCA_CMD_STAT_BAD_OP;
    out(rsnic_caps(device_, limits()));
    return HGHCA_CMD_STAT_OK;
}

// What the document reserves.
void CommandInterface::add_extensions(hghca_dev_lim &lim) const
{
    lim.revision = be32(HGHCA_INTERFACE_REVISION);
    lim.caps = be32(capabilities());
    lim.log_max_mtts = kLogMaxMtts;
    lim.max_rd_atomic = 16;
    lim.max_dest_rd_atomic = 16;
    lim.log_max_uars = 11;
    lim.log_max_msg = 31;
    lim.log_max_page_sz = 30;
    lim.num_vectors = be16(kVectors);
    lim.log_max_srqs = kLogMaxSrqs;
    lim.log_max_xrcds = kLogMaxXrcds;
    lim.log_max_srq_sz = kLogMaxSrqSize;
    lim.max_sg_srq = 32;
    lim.srqc_entry_sz = be16(kSrqcEntrySize);
    lim.num_counter_sets = be16(kCounterSets);
    lim.clock_khz = be32(kClockKhz);
    if (device_.config.device_memory.bytes)
        lim.log_device_memory = uint8_t(std::countr_zero(device_.config.device_memory.bytes));
    lim.log_max_mcgs = kLogMaxMcgs;
    lim.qps_per_mcg = HGHCA_MGM_QPS;
    lim.mcg_entry_sz = be16(kMcgEntrySize);
    lim.log_max_flows = kLogMaxFlows;
    lim.max_flow_masks = kMaxFlowMasks;
    lim.qps_per_flow = kQpsPerFlow;
    lim.log_max_rss = kLogMaxRss;
    lim.log_max_rss_size = kLogMaxRssSize;
    lim.moderation_scale = device_.config.moderation_scale;
}

// EUI-64 of the MAC address.
uint64_t CommandInterface::port_guid() const
{
    const auto &m = device_.port.permanent_mac;
    const uint8_t eui[8] = {uint8_t(m[0] ^ 2), m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
    uint64_t guid = 0;
    for (uint8_t byte : eui)
        guid = guid << 8 | byte;
    return guid;
}

uint64_t CommandInterface::node_guid() const
{
    return device_.config.node_guid ? device_.config.node_guid : port_guid();
}

uint8_t CommandInterface::query_adapter(const Command &)
{
    hghca_adapter adapter{};
    adapter.board_id = be64(kBoardId);
    if (device_.config.profile != Profile::Base) {
        adapter.node_guid = be64(node_guid());
        adapter.fw_version = be32(kFirmware);
    }
    out(adapter);
    return HGHCA_CMD_STAT_OK;
}

// ---- 4.2, 4.3 the table layout

namespace {

struct Region {
    uint64_t from, to;
    unsigned log;
    bool overlaps(const Region &r) const { return from < r.to && r.from < to; }
};

// False: too many entries, or beyond the end of ICM.
bool region_of(uint64_t base, unsigned log_max, uint64_t entry_size, Region &r)
{
    r.log = unsigned(base & HGHCA_INIT_HCA_LOG_MASK);
    r.from = base & ~HGHCA_INIT_HCA_LOG_MASK;
    if (r.log > log_max || r.from >= Icm::kSize || entry_size << r.log > Icm::kSize - r.from)
        return false;
    r.to = r.from + (entry_size << r.log);
    return true;
}

}  // namespace

// The retransmission buffer of RSNIC, in packets. False: there cannot be one there.
bool CommandInterface::packets_of(const hghca_init_hca &init, uint32_t &packets) const
{
    const uint64_t where = be64(init.packet_base), log = where & HGHCA_INIT_HCA_LOG_MASK;
    packets = 0;
    if (!where || device_.config.profile != Profile::Rsnic)
        return true;
    if (where & (PacketStore::kPlaceBytes - 1) & ~HGHCA_INIT_HCA_LOG_MASK || log > kLogMaxPackets)
        return false;
    packets = 1u << log;
    return true;
}

uint8_t CommandInterface::init_hca(const Command &)
{
    if (device_.initialized)
        return HGHCA_CMD_STAT_BAD_SYS_STATE;
    auto init = in<hghca_init_hca>();
    uint32_t caps = be32(init.caps);
    uint64_t mtt_base = be64(init.mtt_base);
    Region qpc, cqc, eqc, mpt, srqc{}, mcg{};
    if (caps & ~capabilities() || !region_of(be64(init.qpc_base), log_max_qps(), kQpcEntrySize, qpc) ||
        !region_of(be64(init.cqc_base), kLogMaxCqs, 128, cqc) ||
        !region_of(be64(init.eqc_base), kLogMaxEqs, 64, eqc) ||
        (caps & HGHCA_CAP_SRQ && !region_of(be64(init.srqc_base), kLogMaxSrqs, kSrqcEntrySize, srqc)) ||
        (caps & HGHCA_CAP_XRC && !(caps & HGHCA_CAP_SRQ)) ||
        (caps & HGHCA_CAP_STATUS_RECORD && !(caps & HGHCA_CAP_SYNC_COMMANDS)) ||
        (caps & HGHCA_CAP_MULTICAST &&
         (!region_of(be64(init.mcg_base), kLogMaxMcgs, kMcgEntrySize, mcg) || !mcg.log)) ||
        !region_of(be64(init.mpt_base), kLogMaxMpts, 64, mpt) || mtt_base & HGHCA_INIT_HCA_LOG_MASK ||
        mtt_base >= Icm::kSize)
        return HGHCA_CMD_STAT_BAD_PARAM;
    // The MTTs go on to the MPTs or the end of ICM, as no number is given for them.
    uint64_t mtt_end = mtt_base < mpt.from ? mpt.from : Icm::kSize;
    if (qpc.overlaps(cqc) || qpc.overlaps(eqc) || cqc.overlaps(eqc) || srqc.overlaps(qpc) ||
        srqc.overlaps(cqc) || srqc.overlaps(eqc) || mcg.overlaps(qpc) || mcg.overlaps(cqc) || mcg.overlaps(eqc) ||
        mcg.overlaps(srqc) ||
        (mtt_base >= mpt.from && mtt_base < mpt.to))
        return HGHCA_CMD_STAT_BAD_PARAM;

    uint32_t packets;
    if (!packets_of(init, packets))
        return HGHCA_CMD_STAT_BAD_PARAM;

    // What is allocated here is all that the contexts will need.
    device_.initialized = true;
    device_.caps = caps;
    device_.features = features_of(caps);
    device_.features.atomics = device_.config.profile != Profile::Rsnic;
    device_.port.addresses.use_gids(caps & HGHCA_CAP_GID_TABLE);
    device_.port.multicast = caps & HGHCA_CAP_MULTICAST;
    device_.transport->store.configure(be64(init.packet_base) & ~HGHCA_INIT_HCA_LOG_MASK, packets, 1u << qpc.log);
    device_.qps->configure(qpc.from, qpc.log);
    device_.cqs->configure(cqc.from, cqc.log);
    device_.eqs->configure(eqc.from, eqc.log);
    if (caps & HGHCA_CAP_SRQ)
        device_.srqs->configure(srqc.from, srqc.log);
    if (caps & HGHCA_CAP_MULTICAST)
        device_.groups->configure(mcg.from, mcg.log);
    if (caps & HGHCA_CAP_RAW_PACKET)
        device_.flows->configure();
    if (caps & HGHCA_CAP_VENDOR_OPS)
        device_.partitions->configure();
    device_.memory->configure(mpt.from, mpt.log, mtt_base,
                              std::min<uint64_t>((mtt_end - mtt_base) / kMttSize, 1ull << kLogMaxMtts),
                              caps & HGHCA_CAP_MEM_MGT, caps & HGHCA_CAP_DEVICE_MEMORY, caps & HGHCA_CAP_ODP,
                              caps & HGHCA_CAP_FIRST_BYTE);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::close_hca(const Command &)
{
    device_.close();
    return HGHCA_CMD_STAT_OK;
}

// ---- 4.4 ICM

uint8_t CommandInterface::map_icm(const Command &command)
{
    uint32_t count = command.in_modifier;
    if (!count || count > HGHCA_ICM_CHUNKS_MAX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    auto mailbox = in<std::array<hghca_icm_chunk, HGHCA_ICM_CHUNKS_MAX>>();
    std::array<Icm::Chunk, HGHCA_ICM_CHUNKS_MAX> chunks;
    for (uint32_t i = 0; i < count; i++) {
        const hghca_icm_chunk &c = mailbox[HGHCA_ICM_CHUNK_SLOT(i)];
        uint64_t page = be64(c.page);
        chunks[i] = {be64(c.virt), page & ~HGHCA_ICM_CHUNK_PAGES_MASK, uint32_t(page & HGHCA_ICM_CHUNK_PAGES_MASK)};
        device_.work.add(chunks[i].pages);
    }
    return device_.icm->map(space_of(command.op_modifier), chunks.data(), count);
}

uint8_t CommandInterface::unmap_icm(const Command &command)
{
    IcmSpace space = space_of(command.op_modifier);
    uint64_t address = command.in_param, pages = command.in_modifier;
    if (uint8_t status = device_.icm->check_unmap(space, address, pages))
        return status;
    device_.work.add(pages);
    // What the device holds of it goes back first; afterwards nothing is written there.
    uint64_t length = pages * Icm::kPage;
    auto leave = [&](auto &...tables) {
        if (!(tables.write_back(address, length) && ...))
            return false;
        (tables.forget(address, length), ...);
        return true;
    };
    const bool written =
        space == IcmSpace::Context
            ? leave(*device_.qps, *device_.cqs, *device_.srqs, *device_.groups, *device_.eqs)
            : leave(*device_.memory);
    if (!written)
        return HGHCA_CMD_STAT_INTERNAL_ERR;
    device_.icm->unmap(space, address, pages);
    return HGHCA_CMD_STAT_OK;
}

// ---- 4.5, 4.6 memory regions

uint8_t CommandInterface::sw2hw_mpt(const Command &command)
{
    if (command.op_modifier == HGHCA_MPT_ALONE)
        return device_.memory->sw2hw_mpt(command.in_modifier, in<hghca_mpt>());
    constexpr uint32_t kWithoutMtts =
        HGHCA_MPT_FLAG_PHYSICAL | HGHCA_MPT_FLAG_DEVICE | HGHCA_MPT_FLAG_FAST_REG | HGHCA_MPT_FLAG_TREE;
    const auto mailbox = in<hghca_mpt_mtts>();
    const uint32_t flags = be32(mailbox.mpt.flags), count = be32(mailbox.mpt.mtt_sz);
    if (!(device_.caps & HGHCA_CAP_INLINE_MTTS) || !(flags & HGHCA_MPT_FLAG_REGION) || flags & kWithoutMtts || !count ||
        count > HGHCA_MPT_MTTS_MAX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    std::array<uint64_t, HGHCA_MPT_MTTS_MAX> entries;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = be64(mailbox.entry[i]);
    return device_.memory->sw2hw_mpt(command.in_modifier, mailbox.mpt, {entries.data(), count});
}

uint8_t CommandInterface::hw2sw_mpt(const Command &command) { return device_.memory->hw2sw_mpt(command.in_modifier); }

uint8_t CommandInterface::query_mpt(const Command &command)
{
    hghca_mpt mpt;
    uint8_t status = device_.memory->query_mpt(command.in_modifier, mpt);
    if (!status)
        out(mpt);
    return status;
}

uint8_t CommandInterface::write_mtt(const Command &command)
{
    uint32_t count = command.in_modifier;
    if (!count || count > HGHCA_MTT_PER_MAILBOX)
        return HGHCA_CMD_STAT_BAD_PARAM;
    auto mailbox = in<hghca_mtt_mailbox>();
    std::array<uint64_t, HGHCA_MTT_PER_MAILBOX> entries;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = be64(mailbox.entry[HGHCA_MTT_SLOT(i)]);
    return device_.memory->write_mtt(be64(mailbox.start_index), entries.data(), count);
}

uint8_t CommandInterface::clear_mtt(const Command &command)
{
    return device_.memory->clear_mtt(command.in_param, command.in_modifier);
}

// ---- 4.7 event queues

uint8_t CommandInterface::map_eq(const Command &command)
{
    return device_.eqs->map(command.in_modifier & ~HGHCA_MAP_EQ_UNMAP, command.in_param,
                            command.in_modifier & HGHCA_MAP_EQ_UNMAP);
}

uint8_t CommandInterface::sw2hw_eq(const Command &command)
{
    return device_.eqs->sw2hw(command.in_modifier, in<hghca_eqc>());
}

uint8_t CommandInterface::hw2sw_eq(const Command &command) { return device_.eqs->hw2sw(command.in_modifier); }

uint8_t CommandInterface::query_eq(const Command &command)
{
    return query_context<hghca_eqc>(*device_.eqs, command.in_modifier);
}

// ---- 4.8 completion queues

uint8_t CommandInterface::sw2hw_cq(const Command &command)
{
    return device_.cqs->sw2hw(Cqn(command.in_modifier), in<hghca_cqc>());
}

uint8_t CommandInterface::hw2sw_cq(const Command &command) { return device_.cqs->hw2sw(Cqn(command.in_modifier)); }

uint8_t CommandInterface::query_cq(const Command &command)
{
    return query_context<hghca_cqc>(*device_.cqs, Cqn(command.in_modifier));
}

uint8_t CommandInterface::resize_cq(const Command &command)
{
    auto mailbox = in<hghca_resize_cq>();
    return device_.cqs->resize(Cqn(command.in_modifier), uint8_t(be32(mailbox.logsize) >> 24), Key(be32(mailbox.lkey)));
}

uint8_t CommandInterface::moderate_cq(const Command &command)
{
    if (command.in_param >> 32)
        return HGHCA_CMD_STAT_BAD_PARAM;
    const auto moderation = uint32_t(command.in_param);
    return device_.cqs->moderate(Cqn(command.in_modifier),
                                 uint16_t(field_get(HGHCA_CQ_MODERATION_COUNT_MASK, moderation)),
                                 uint16_t(field_get(HGHCA_CQ_MODERATION_PERIOD_MASK, moderation)));
}

// ---- 4.9, 4.10, 4.11 queue pairs

uint8_t CommandInterface::modify_qp(const Command &command)
{
    auto context = in<hghca_qpc>();
    return device_.qps->transition(command.op, Qpn(command.in_modifier), command.op_modifier,
                                   command.op_modifier == HGHCA_QP_OPMOD_INBOX ? &context : nullptr);
}

uint8_t CommandInterface::query_qp(const Command &command)
{
    return query_context<hghca_qpc>(*device_.qps, Qpn(command.in_modifier));
}

uint8_t CommandInterface::resume_qp(const Command &command)
{
    constexpr uint64_t kKnown = HGHCA_RESUME_TOKEN_MASK | HGHCA_RESUME_RESPONDER | HGHCA_RESUME_FAILED;
    if (command.in_param & ~kKnown)
        return HGHCA_CMD_STAT_BAD_PARAM;
    return device_.qps->resume(Qpn(command.in_modifier), uint32_t(command.in_param));
}

uint8_t CommandInterface::conf_special_qp(const Command &command)
{
    return device_.qps->configure_special(Qpn(command.in_modifier), command.op_modifier);
}

// ---- 4.15 shared receive queues

uint8_t CommandInterface::sw2hw_srq(const Command &command)
{
    return device_.srqs->sw2hw(Srqn(command.in_modifier), in<hghca_srqc>());
}

uint8_t CommandInterface::hw2sw_srq(const Command &command) { return device_.srqs->hw2sw(Srqn(command.in_modifier)); }

uint8_t CommandInterface::query_srq(const Command &command)
{
    return query_context<hghca_srqc>(*device_.srqs, Srqn(command.in_modifier));
}

uint8_t CommandInterface::arm_srq(const Command &command)
{
    return device_.srqs->arm(Srqn(command.in_modifier), command.in_param);
}

uint8_t CommandInterface::resize_srq(const Command &command)
{
    return device_.srqs->resize(Srqn(command.in_modifier), in<hghca_resize_srq>());
}

// ---- 4.18 multicast groups

uint8_t CommandInterface::read_mgm(const Command &command)
{
    hghca_mgm entry;
    uint8_t status = device_.groups->read(command.in_modifier, entry);
    if (!status)
        out(entry);
    return status;
}

uint8_t CommandInterface::write_mgm(const Command &command)
{
    return device_.groups->write(command.in_modifier, in<hghca_mgm>());
}

uint8_t CommandInterface::mgid_hash(const Command &)
{
    uint32_t bucket;
    uint8_t status = device_.groups->hash(in<hghca_mgid>(), bucket);
    if (!status)
        out_immediate(bucket);
    return status;
}

// ---- 4.20 flow rules

uint8_t CommandInterface::flow_attach(const Command &command)
{
    return device_.flows->attach(command.in_modifier, in<hghca_flow>());
}

uint8_t CommandInterface::flow_detach(const Command &command) { return device_.flows->detach(command.in_modifier); }

// ---- 4.25 RSS groups

uint8_t CommandInterface::create_rss(const Command &command)
{
    return device_.rss->create(command.in_modifier, in<hghca_rss>());
}

uint8_t CommandInterface::destroy_rss(const Command &command) { return device_.rss->destroy(command.in_modifier); }

// in_modifier has the port in its lower half, and the LID that the packet came from in the upper one. The device checks
// no keys, so op_modifier, which turns these checks off, has no effect.
uint8_t CommandInterface::mad_ifc(const Command &command)
{
    constexpr uint32_t kPortMask = 0xffff;
    if ((command.in_modifier & kPortMask) != 1)
        return HGHCA_CMD_STAT_BAD_PARAM;
    Mad mad = in<Mad>();
    if (!answer_smp(mad, {node_guid(), port_guid(), HGHCA_PCI_DEVICE_ID, device_.port.pkey, device_.port.link_up}))
        return HGHCA_CMD_STAT_BAD_PARAM;
    out(mad);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::nop(const Command &) { return HGHCA_CMD_STAT_OK; }

// ---- 4.12 to 4.14, 4.19 port and statistics

namespace {

std::array<uint8_t, 6> mac_of(uint32_t high, uint16_t low)
{
    return {uint8_t(high >> 24), uint8_t(high >> 16), uint8_t(high >> 8),
            uint8_t(high),       uint8_t(low >> 8),   uint8_t(low)};
}

}  // namespace

uint8_t CommandInterface::set_gid(const Command &command)
{
    if (command.in_modifier >= Port::kGids)
        return HGHCA_CMD_STAT_BAD_INDEX;
    Addresses &addresses = device_.port.addresses;
    if (command.op_modifier == HGHCA_GID_CLEAR) {
        addresses.set_gid(command.in_modifier, {});
        return HGHCA_CMD_STAT_OK;
    }
    GidEntry entry{};
    auto mailbox = in<hghca_gid_entry>();
    uint32_t vlan = be32(mailbox.vlan);
    entry.valid = true;
    entry.tagged = vlan & HGHCA_GID_VLAN_VALID;
    entry.vlan = entry.tagged ? uint16_t(field_get(HGHCA_GID_VLAN_ID_MASK, vlan)) : 0;
    std::copy(std::begin(mailbox.gid), std::end(mailbox.gid), entry.gid.begin());
    entry.mac = mac_of(be32(mailbox.mac_h), be16(mailbox.mac_l));
    addresses.set_gid(command.in_modifier, entry);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::set_port(const Command &)
{
    auto mailbox = in<hghca_port>();
    Port &port = device_.port;
    uint32_t mtu = be32(mailbox.mtu), flags = be32(mailbox.flags);
    auto mac = mac_of(be32(mailbox.mac_h), be16(mailbox.mac_l));
    constexpr uint8_t kMulticast = 1;
    if (mtu < kMinMtu || mtu > port.max_mtu || mac[0] & kMulticast)
        return HGHCA_CMD_STAT_BAD_PARAM;
    port.addresses.set_mac(mac);
    port.mtu = mtu;
    port.promisc = flags & HGHCA_PORT_PROMISC;
    port.allmulti = flags & HGHCA_PORT_ALLMULTI;
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::query_port(const Command &)
{
    const Port &port = device_.port;
    const auto &m = port.addresses.mac();
    hghca_port answer{};
    answer.flags = be32((port.link_up ? HGHCA_PORT_LINK_UP : 0) | (port.promisc ? HGHCA_PORT_PROMISC : 0) |
                        (port.allmulti ? HGHCA_PORT_ALLMULTI : 0));
    answer.mac_h = be32(uint32_t(m[0]) << 24 | uint32_t(m[1]) << 16 | uint32_t(m[2]) << 8 | m[3]);
    answer.mac_l = be16(uint16_t(m[4] << 8 | m[5]));
    answer.mtu = be32(port.mtu);
    answer.speed = be32(port.speed_mbps);
    answer.max_mtu = be32(port.max_mtu);
    out(answer);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::set_congestion(const Command &)
{
    return decode_congestion(in<hghca_congestion>(), device_.port.speed_mbps, device_.congestion)
               ? HGHCA_CMD_STAT_OK
               : HGHCA_CMD_STAT_BAD_PARAM;
}

uint8_t CommandInterface::query_congestion(const Command &)
{
    out(encode_congestion(device_.congestion));
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::set_flow_control(const Command &)
{
    if (!device_.port.flow_control.decode(in<hghca_flow_control>(), device_.config.receive_buffers))
        return HGHCA_CMD_STAT_BAD_PARAM;
    device_.transport->restart_flow_control();
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::query_flow_control(const Command &)
{
    hghca_flow_control answer;
    device_.port.flow_control.encode(answer, device_.config.receive_buffers);
    out(answer);
    return HGHCA_CMD_STAT_OK;
}

// ---- partitions (docs/reference/rsnic.rst, 9.6)

uint8_t CommandInterface::sw2hw_part(const Command &command)
{
    return device_.partitions->create(command.in_modifier, in<hghca_partition>());
}

uint8_t CommandInterface::hw2sw_part(const Command &command)
{
    return device_.partitions->destroy(command.in_modifier);
}

uint8_t CommandInterface::query_part(const Command &command)
{
    return query_context<hghca_partition>(*device_.partitions, command.in_modifier);
}

// ---- the status record (3.1)

uint8_t CommandInterface::set_status_record(const Command &command)
{
    if (command.op_modifier == HGHCA_STATUS_RECORD_CLEAR) {
        if (command.in_param)
            return HGHCA_CMD_STAT_BAD_PARAM;
        forget_record();
        return HGHCA_CMD_STAT_OK;
    }
    // 0, as before each command: it shows that the memory can be written.
    if (command.in_param % sizeof(uint32_t) || !write_record(command.in_param, 0))
        return HGHCA_CMD_STAT_BAD_PARAM;
    record_ = command.in_param;
    return HGHCA_CMD_STAT_OK;
}

// ---- statistics

uint8_t CommandInterface::query_stats(const Command &command)
{
    Counters c = device_.counters_;
    if (command.op_modifier == HGHCA_STATS_OUTSIDE_SETS) {
        if (!(device_.caps & HGHCA_CAP_QP_COUNTERS))
            return HGHCA_CMD_STAT_BAD_PARAM;
        const CounterSet &outside = device_.counter_sets.set(0);
#define HGHCA_COUNTER_REPLACE(name) c.name = outside.name;
        HGHCA_QP_COUNTERS(HGHCA_COUNTER_REPLACE)
#undef HGHCA_COUNTER_REPLACE
    }
    const uint64_t counters[] = {
#define HGHCA_COUNTER_VALUE(name, text) c.name,
        HGHCA_COUNTERS(HGHCA_COUNTER_VALUE)
#undef HGHCA_COUNTER_VALUE
    };
    std::array<uint64_t, HGHCA_MAILBOX_SIZE / 8> answer{};
    for (size_t i = 0; i < answer.size() && command.in_modifier + i < std::size(counters); i++)
        answer[i] = be64(counters[command.in_modifier + i]);
    out(answer);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::read_error_buffer(const Command &command)
{
    const ErrorBuffer &errors = device_.errors;
    hghca_error_buffer answer{};
    const uint64_t first = std::clamp<uint64_t>(command.in_modifier, errors.first(), errors.total());
    const uint64_t count = std::min<uint64_t>(errors.total() - first, HGHCA_ERRORS_PER_MAILBOX);
    answer.total = be64(errors.total());
    answer.first = be64(first);
    answer.count = be32(uint32_t(count));
    for (uint64_t i = 0; i < count; i++) {
        const PacketError &e = errors.at(first + i);
        hghca_packet_error &to = answer.entries[i];
        to.time = be64(e.time_ns);
        to.length = be32(e.frame_bytes);
        to.qpn = be32(number(e.qpn));
        to.why = uint8_t(drop_number(e.why));
        to.header_len = e.header_bytes;
        std::copy_n(e.header.begin(), e.header_bytes, to.header);
    }
    out(answer);
    return HGHCA_CMD_STAT_OK;
}

uint8_t CommandInterface::set_qp_counter(const Command &command)
{
    return device_.qps->set_counter(Qpn(command.in_modifier), command.in_param);
}

uint8_t CommandInterface::query_counter_set(const Command &command)
{
    const uint32_t set = command.in_modifier;
    if (!set || set >= kCounterSets)
        return HGHCA_CMD_STAT_BAD_INDEX;
    const CounterSet &counted = device_.counter_sets.set(set);
    const std::array<uint64_t, HGHCA_QP_COUNTER_NUM> answer = {
#define HGHCA_COUNTER_VALUE(name) be64(counted.name),
        HGHCA_QP_COUNTERS(HGHCA_COUNTER_VALUE)
#undef HGHCA_COUNTER_VALUE
    };
    out(answer);
    return HGHCA_CMD_STAT_OK;
}

void CommandInterface::clear_counter_set(const Command &command)
{
    if (command.op_modifier == HGHCA_COUNTER_SET_CLEAR)
        device_.counter_sets.clear(command.in_modifier);
}

}  // namespace hghca
