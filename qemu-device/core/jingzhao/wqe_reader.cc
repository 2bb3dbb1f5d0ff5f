// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/wqe_reader.h"

#include <algorithm>
#include <cstring>

#include "byte_order.h"
#include "hghca_wire.h"
#include "jingzhao/translate.h"
#include "wire/static_rate.h"

namespace hghca {

namespace {

template <class T>
T unit_at(const uint8_t *bytes, size_t offset)
{
    T unit;
    std::memcpy(&unit, bytes + offset, sizeof(unit));
    return unit;
}

constexpr size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) & ~(to - 1);
}

bool append(DataList &list, const ListEntry &entry)
{
    if (list.count == kMaxListEntries)
        return false;
    list.entries[list.count++] = entry;
    list.length += entry.length;
    return true;
}

enum class ListKind { Gather, Scatter, Receive };

// Takes the list in bytes [at, end) apart. False: malformed.
bool decode_list(const uint8_t *bytes, size_t at, size_t end, ListKind kind, DataList &list)
{
    list.count = 0;
    list.length = 0;
    while (at + HGHCA_WQE_UNIT <= end) {
        const auto unit = unit_at<hghca_data_unit>(bytes, at);
        const uint32_t word = le32(unit.byte_cnt);
        if (word & HGHCA_INLINE_FLAG) {
            const uint32_t length = word & HGHCA_INLINE_LENGTH_MASK;
            if (kind != ListKind::Gather || length > end - at - 4)
                return false;
            if (length && !append(list, {length, {}, 0, bytes + at + 4}))
                return false;
            at += round_up(4 + size_t(length), HGHCA_WQE_UNIT);
            continue;
        }
        if (kind == ListKind::Receive && !word && le32(unit.lkey) == HGHCA_INVALID_LKEY)
            return true;
        if (word && !append(list, {word, Key(le32(unit.lkey)), le64(unit.addr), nullptr}))
            return false;
        at += HGHCA_WQE_UNIT;
    }
    return true;
}

constexpr bool service_has(Service service, Operation operation)
{
    switch (operation) {
    case Operation::Send:
    case Operation::Nop:
        return true;
    case Operation::SendImm:
        return service != Service::Raw;
    case Operation::Write:
    case Operation::WriteImm:
    case Operation::RegisterRegion:
    case Operation::LocalInvalidate:
    case Operation::BindWindow:
        return is_reliable(service) || service == Service::Uc;
    case Operation::SendInvalidate:
    case Operation::Read:
    case Operation::CompareSwap:
    case Operation::FetchAdd:
    case Operation::AtomicWrite:
    case Operation::Flush:
        return is_reliable(service);
    case Operation::Part:
    case Operation::ReadPointer:
    case Operation::ReadConsistent:
        return service == Service::Rc;
    default:
        return false;
    }
}

std::array<uint8_t, 6> mac_of(uint32_t high, uint32_t low)
{
    return {uint8_t(high >> 24), uint8_t(high >> 16), uint8_t(high >> 8),
            uint8_t(high),       uint8_t(low >> 8),   uint8_t(low)};
}

void decode_ud(const uint8_t *bytes, bool gids, SendWqe &out)
{
    const auto gid = unit_at<hghca_ud_gid_unit>(bytes, sizeof(hghca_next_unit));
    const auto base = unit_at<hghca_ud_unit>(bytes, sizeof(hghca_next_unit));
    const uint32_t port = le32(gid.port);
    Path &path = out.path;
    path = {};
    path.by_gid = gids && port & HGHCA_UD_GRH;
    if (path.by_gid) {
        const uint32_t word = le32(gid.sl_tclass_flowlabel);
        path.sgid_index = uint8_t(field_get(HGHCA_UD_SGID_INDEX_MASK, port));
        path.hop_limit = uint8_t(field_get(HGHCA_UD_HOP_LIMIT_MASK, port));
        path.sl = uint8_t(field_get(HGHCA_QPC_SL_MASK, word));
        path.tclass = uint8_t(field_get(HGHCA_QPC_TCLASS_MASK, word));
        path.flow_label = field_get(HGHCA_QPC_FLOWLABEL_MASK, word);
        path.static_rate = uint8_t(field_get(HGHCA_UD_STATIC_RATE_MASK, port));
        path.dmac = mac_of(le32(gid.dmac_h), field_get(HGHCA_UD_DMAC_L_MASK, le32(gid.dmac_l)));
        std::copy(std::begin(gid.dgid), std::end(gid.dgid), path.dgid.begin());
    } else {
        const uint32_t lids = le32(base.lids);
        path.dmac = mac_of(le32(base.dmac_h), lids >> 16);
        path.smac = mac_of(le32(base.smac_h), lids & 0xffff);
        path.sip = le32(base.sip);
        path.dip = le32(base.dip);
    }
    out.dqpn = Qpn(le32(gid.dqpn) & HGHCA_BTH_QPN_MASK);
    out.qkey = le32(gid.qkey);
}

// What is executed here. False: too short.
bool decode_local(const uint8_t *bytes, size_t end, SendWqe &out)
{
    constexpr size_t at = sizeof(hghca_next_unit);
    switch (out.operation) {
    case Operation::RegisterRegion:
        if (end < at + sizeof(hghca_reg_unit))
            return false;
        out.pages = std::min<uint32_t>(le32(unit_at<hghca_reg_unit>(bytes, at).pages), HGHCA_REG_MR_PAGES_MAX);
        return true;
    case Operation::LocalInvalidate:
        if (end < at + sizeof(hghca_inv_unit))
            return false;
        out.rkey = Key(le32(unit_at<hghca_inv_unit>(bytes, at).key));
        return true;
    case Operation::BindWindow:
        return end >= at + sizeof(hghca_bind_unit);
    default:
        return true;   // NOP
    }
}

}  // namespace

Registration registration_of(const SendWqe &wqe)
{
    const auto unit = unit_at<hghca_reg_unit>(wqe.bytes.data(), sizeof(hghca_next_unit));
    return {Key(le32(unit.key)), le32(unit.access), le64(unit.start),     le64(unit.length),
            le64(unit.list),     le32(unit.pages),  le32(unit.page_size), le32(unit.first_byte)};
}

Binding binding_of(const SendWqe &wqe)
{
    const auto unit = unit_at<hghca_bind_unit>(wqe.bytes.data(), sizeof(hghca_next_unit));
    return {le32(unit.access), Key(le32(unit.rkey)), Key(le32(unit.lkey)), le64(unit.addr), le64(unit.length)};
}

WqeFault WqeReader::read_send(const QpAttributes &a, const WqeRef &ref, const Rules &rules, SendWqe &out)
{
    const size_t end = size_t(ref.units) * HGHCA_WQE_UNIT;
    if (end < sizeof(hghca_next_unit) || end > 1u << a.sq.stride_log ||
        !service_has(a.service, operation_of(ref.opcode)) || (is_vendor(operation_of(ref.opcode)) && !a.vendor_ops))
        return WqeFault::Operation;
    // A WQE lies in one page, as both begin at a multiple of their size.
    Segment at_host;
    uint8_t *bytes = out.bytes.data();
    if (!locate(a, ref.index, uint32_t(end), at_host) || !load_behind_link(at_host, bytes, end))
        return WqeFault::Unreadable;

    const auto next = unit_at<hghca_next_unit>(bytes, 0);
    out.operation = operation_of(ref.opcode);
    out.solicited = le32(next.flags) & HGHCA_WQE_SOLICIT;
    out.completes = !rules.unsignaled || le32(next.flags) & HGHCA_WQE_CQ_UPDATE;
    out.imm = next.imm_data;
    out.srqn = Srqn(field_get(HGHCA_WQE_XRC_SRQN_MASK, le32(next.flags)));
    out.list.count = 0;
    out.list.length = 0;
    out.length = 0;
    out.token = 0;
    if (out.is_local())
        return decode_local(bytes, end, out) ? WqeFault::None : WqeFault::Operation;

    size_t at = sizeof(next);
    const size_t fixed = (out.is_answered() || out.is_write() ? sizeof(hghca_raddr_unit) : 0) +
                         (out.is_atomic() ? sizeof(hghca_atomic_unit) : 0) +
                         (out.is_flush() ? sizeof(hghca_flush_unit) : 0) +
                         (out.is_pointer() ? sizeof(hghca_pointer_unit) : 0) +
                         (a.service == Service::Ud ? sizeof(hghca_ud_unit) : 0);
    if (end < at + fixed)
        return WqeFault::Operation;
    if (a.service == Service::Ud) {
        decode_ud(bytes, rules.gids, out);
        if (!is_static_rate(out.path.static_rate))
            return WqeFault::Operation;
    } else if (fixed) {
        const auto raddr = unit_at<hghca_raddr_unit>(bytes, at);
        out.raddr = le64(raddr.raddr);
        out.rkey = Key(le32(raddr.rkey));
        if (out.is_atomic()) {
            const auto atomic = unit_at<hghca_atomic_unit>(bytes, at + sizeof(raddr));
            out.swap_add = le64(atomic.swap_add);
            out.compare = le64(atomic.cmp);
        } else if (out.is_flush()) {
            const auto flush = unit_at<hghca_flush_unit>(bytes, at + sizeof(raddr));
            out.flush_length = le32(flush.length);
            out.flush = le32(flush.what) & (HGHCA_FLUSH_TYPE_MASK | HGHCA_FLUSH_SELECTIVITY_MASK);
        } else if (out.is_pointer()) {
            const auto pointer = unit_at<hghca_pointer_unit>(bytes, at + sizeof(raddr));
            out.pointer_key = le64(pointer.key);
            out.search = le32(pointer.search);
        }
    }
    at += fixed;
    if (!decode_list(bytes, at, end, out.access() == Access::LocalWrite ? ListKind::Scatter : ListKind::Gather,
                     out.list))
        return WqeFault::Operation;
    out.length = out.list.length;
    if (out.is_flush() && out.list.length)
        return WqeFault::Operation;
    // IBA vol 1, 9.4.5 and A19: eight bytes, of an atomic in one piece.
    if ((out.is_atomic() && out.list.count != 1) ||
        ((out.is_atomic() || out.is_atomic_write()) && out.list.length != sizeof(uint64_t)))
        return WqeFault::Length;

    uint64_t longest = std::min(kMaxMessage, uint64_t(1) << (a.log_max_msg & 31));
    if (out.is_pointer() || out.is_consistent())
        longest = std::min(longest, uint64_t(a.mtu));
    if (a.service == Service::Ud)
        longest = a.mtu;
    else if (a.service == Service::Raw)
        longest = rules.frame_limit;
    const uint64_t shortest = a.service == Service::Raw ? sizeof(hghca_eth_header) : 0;
    if (out.list.length > longest || out.list.length < shortest)
        return WqeFault::Length;
    return WqeFault::None;
}

bool WqeReader::locate(const QpAttributes &a, uint16_t index, uint32_t bytes, Segment &out)
{
    const QueueMemory queue{a.sq.lkey, a.pd, wqe_address(a.sq, 0), uint64_t(a.sq.length) << a.sq.stride_log};
    return page_.locate(memory_, queue, wqe_address(a.sq, index), bytes, Access::LocalRead, out);
}

bool WqeReader::decode_link(const QpAttributes &a, uint16_t index, uint64_t link, WqeRef &following)
{
    const auto word0 = uint32_t(link), word1 = uint32_t(link >> 32);
    following = {};
    following.index = uint16_t(index + 1);
    following.units = uint8_t(field_get(HGHCA_NEXT_NDS_MASK, word1));
    if (!following.units)
        return true;
    following.opcode = uint8_t(field_get(HGHCA_NEXT_NOP_MASK, word0));
    following.fence = word1 & HGHCA_NEXT_FENCE;
    following.valid = true;
    return (word0 & HGHCA_NEXT_NDA_MASK) == wqe_offset(a.sq, following.index);
}

bool WqeReader::read_link(const QpAttributes &a, uint16_t index, WqeRef &following)
{
    Segment at;
    uint64_t link;
    following = {};
    following.index = uint16_t(index + 1);
    return locate(a, index, sizeof(link), at) && load_link(at, link) && decode_link(a, index, link, following);
}

// Software writes nda_nop, then nee_nds, also while the WQE is under way. One
// 64-bit load sees them in that order too; where there is no pointer, a copy of
// eight bytes has to do.
bool WqeReader::load_link(const Segment &wqe, uint64_t &link)
{
    if (wqe.pointer && !(reinterpret_cast<uintptr_t>(wqe.pointer) & 7))
        link = __atomic_load_n(reinterpret_cast<const uint64_t *>(wqe.pointer), __ATOMIC_ACQUIRE);
    else if (!host_.read(wqe.dma, &link, sizeof(link)))
        return false;
    link = le64(link);
    return true;
}

// All but the link, of a WQE of `end` bytes, to where it stands in `bytes`. Software writes the link also while the WQE is
// under way.
bool WqeReader::load_behind_link(const Segment &wqe, uint8_t *bytes, size_t end)
{
    constexpr size_t kLink = sizeof(uint64_t);
    if (!wqe.pointer)
        return host_.read(wqe.dma + kLink, bytes + kLink, end - kLink);
    std::memcpy(bytes + kLink, wqe.pointer + kLink, end - kLink);
    return true;
}

bool read_record(Host &host, uint64_t dma, uint16_t &head)
{
    uint32_t word = 0;
    const uint8_t *pointer = host.map(dma, sizeof(word), false);
    if (pointer && !(reinterpret_cast<uintptr_t>(pointer) & 3))
        word = __atomic_load_n(reinterpret_cast<const uint32_t *>(pointer), __ATOMIC_ACQUIRE);
    else if (!host.read(dma, &word, sizeof(word)))
        return false;
    head = uint16_t(le32(word));
    return true;
}

Posted WqeReader::receive_posted(const QpAttributes &a, uint16_t index)
{
    if (!a.rq.length)
        return Posted::No;
    if (a.dbr_addr) {
        uint32_t posted;
        if (!receives_posted(a, index, posted))
            return Posted::Unreadable;
        return posted ? Posted::Yes : Posted::No;
    }
    uint64_t start[2];
    if (!memory_.read(a.rq.lkey, a.pd, wqe_address(a.rq, index), start, sizeof(start)))
        return Posted::Unreadable;
    return start[0] | start[1] ? Posted::Yes : Posted::No;
}

bool WqeReader::receives_posted(const QpAttributes &a, uint16_t index, uint32_t &out)
{
    uint16_t head;
    if (!a.dbr_addr || !read_record(host_, a.dbr_addr, head))
        return false;
    // More than the queue holds cannot be: no WQE is better than a stale one.
    out = uint16_t(head - index);
    if (out > a.rq.length)
        out = 0;
    return true;
}

WqeFault WqeReader::read_receive(const ReceiveSlot &slot, RecvWqe &out)
{
    if (!memory_.read(slot.lkey, slot.pd, slot.offset, out.bytes.data(), slot.bytes))
        return WqeFault::Unreadable;
    out.pd = slot.pd;
    return decode_list(out.bytes.data(), sizeof(hghca_next_unit), slot.bytes, ListKind::Receive, out.list)
               ? WqeFault::None
               : WqeFault::Operation;
}

}  // namespace hghca
