// SPDX-License-Identifier: GPL-2.0-or-later
#include "jingzhao/events.h"

#include <algorithm>

#include "byte_order.h"
#include "device.h"
#include "jingzhao/eq.h"

namespace hghca {

void Events::post(Event event, const Qp &qp) { device_.eqs->post_qp(event, qp.a.qpn); }

void Events::dropped(const Packet &packet, Drop why, uint64_t now_ns)
{
    static_assert(kMaxHeader <= HGHCA_ERROR_HEADER_MAX);
    for (const auto counter : {drop_counter(why), drop_sum(why)})
        if (counter)
            (device_.counters_.*counter)++;
    hghca_bth bth;
    std::memcpy(&bth, packet.head.data() + packet.arrival.layout.transport_offset, sizeof(bth));
    PacketError error{};
    error.time_ns = now_ns;
    error.frame_bytes = packet.arrived_bytes;
    error.qpn = Qpn(be32(bth.qpn) & HGHCA_BTH_QPN_MASK);
    error.why = why;
    error.header_bytes = packet.header_bytes;
    device_.errors.record(error, packet.head.data());
}

bool Events::brings_pages() const { return device_.eqs->takes(HGHCA_EVENT_PAGE_FAULT); }

PageAsked Events::ask_for_page(const Qp &qp, Side side, uint16_t token, const AbsentPage &absent)
{
    hghca_eqe eqe{};
    eqe.type = HGHCA_EVENT_PAGE_FAULT;
    eqe.event.page_fault.qpn = be32(number(qp.a.qpn));
    eqe.event.page_fault.what =
        be32(field_put(HGHCA_PAGE_FAULT_TOKEN_MASK, token) |
             (side == Side::Responder ? HGHCA_PAGE_FAULT_RESPONDER : 0) | (absent.write ? HGHCA_PAGE_FAULT_WRITE : 0));
    eqe.event.page_fault.key = be32(number(absent.key));
    eqe.event.page_fault.addr_h = be32(uint32_t(absent.va >> 32));
    eqe.event.page_fault.addr_l = be32(uint32_t(absent.va));
    eqe.event.page_fault.length = be32(uint32_t(std::min<uint64_t>(absent.length, UINT32_MAX)));
    return device_.eqs->post_async(eqe) ? PageAsked::Yes : PageAsked::NoRoom;
}

void Events::broken(const char *invariant)
{
    device_.fail(invariant);
    throw DeviceFailed();
}

}  // namespace hghca
