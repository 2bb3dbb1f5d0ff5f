// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic_machine.h"

#include <algorithm>

#include "byte_order.h"
#include "hghca_wire.h"

namespace hghca::sim {

bool SentMessages::add(uint8_t opcode, Psn psn, uint32_t read_bytes)
{
    uint32_t packets = 1;
    switch (opcode) {
    case HGHCA_BTH_OP_READ_REQUEST:
        packets = std::max(1u, (read_bytes + mtu_ - 1) / mtu_);   // its responses have PSNs
        [[fallthrough]];
    case HGHCA_BTH_OP_SEND_FIRST:
    case HGHCA_BTH_OP_SEND_ONLY:
    case HGHCA_BTH_OP_WRITE_FIRST:
    case HGHCA_BTH_OP_WRITE_ONLY:
        if (psn == end_)
            starts_.insert(psn);
        break;
    default:
        break;
    }
    const bool back = psn_distance(next_, psn) - 1 < kPsnHalf;
    if (psn == end_)
        end_ = psn_add(psn, packets);
    next_ = psn_add(psn, packets);
    return !back || starts_.count(psn);
}

ErnicMachine::ErnicMachine(World &world, uint32_t number, const MachineConfig &config, uint64_t seed)
    : NetworkHost(world, number, config.memory_bytes, config.tx_queue_bytes, seed), errors_(alloc(Ernic::kErrorBytes)),
      device(*this, errors_)
{
    allow_dma(errors_, Ernic::kErrorBytes);
    copy_only = config.copy_only;
    check_dma_from_now();
}

void ErnicMachine::connect(uint32_t qpn, uint32_t host, QpAttributes attributes, const Ernic::Queues &queues,
                           uint32_t sq_psn, uint32_t rq_psn)
{
    attributes.path.dmac = mac_of(host);
    attributes.path.smac = mac_of(number);
    attributes.path.sip = ipv4_of(number);
    attributes.path.dip = ipv4_of(host);
    qpns_[{host, hghca::number(attributes.remote_qpn)}] = qpn;
    messages_[qpn] = SentMessages(sq_psn, attributes.mtu);
    device.connect(qpn, attributes, queues, sq_psn, rq_psn);
}

// All that it sends is IPv4 without VLAN.
void ErnicMachine::sent(const Frame &frame)
{
    hghca_bth bth;
    hghca_reth reth{};
    std::memcpy(&bth, frame.data + kBth, sizeof(bth));
    if (bth.opcode > HGHCA_BTH_OP_READ_REQUEST)
        return;   // no request
    if (bth.opcode == HGHCA_BTH_OP_READ_REQUEST)
        std::memcpy(&reth, frame.data + kBth + sizeof(bth), sizeof(reth));
    const uint32_t qpn = be32(bth.qpn) & kSequenceMask, psn = be32(bth.psn) & kSequenceMask;
    SentMessages &messages = messages_.at(qpns_.at({host_of(frame.data), qpn}));
    if (!messages.add(bth.opcode, psn_of(psn), be32(reth.length)))
        fail("host ", number, ": to QP ", qpn, " of host ", host_of(frame.data), ", it goes back to PSN ", psn,
             ", in the middle of a message");
}

// Only what the peer does not answer, or refuses, makes a QP fatal here.
void ErnicMachine::check_errors()
{
    for (; errors_seen_ != device.read(Ernic::kInErrorsPointer); errors_seen_ = (errors_seen_ + 1) % Ernic::kErrors) {
        uint16_t entry[4];
        std::memcpy(entry, at(errors_ + errors_seen_ * sizeof(entry)), sizeof(entry));
        if (entry[0] != Ernic::kRetries && entry[0] != Ernic::kRnrRetries && entry[0] != Ernic::kNak)
            fail("host ", number, ": QP ", entry[1], " of the ERNIC is fatal with code ", entry[0]);
    }
}

void ErnicMachine::driver_interrupt()
{
    for (const uint32_t banks : {Ernic::kRqBanks, Ernic::kCqBanks})
        for (uint32_t n = 0; n < 8; n++)
            device.write(banks + 4 * n, UINT32_MAX);
    device.write(Ernic::kIntStatus, UINT32_MAX);
    check_errors();
    handler->interrupt(*this);
}

}  // namespace hghca::sim
