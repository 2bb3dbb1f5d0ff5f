// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/flow_control.h"

#include <algorithm>
#include <span>

#include "byte_order.h"
#include "counters.h"
#include "port/port.h"
#include "wire/link.h"
#include "wire/packet.h"
#include "work.h"

namespace hghca {

namespace {

constexpr uint8_t kMaxPriority = 7;
constexpr uint64_t kQuantumBits = 512;
// A short pause is not sent again more often: the timer would have nothing else to do.
constexpr uint64_t kLeastRepeatNs = 10'000;
// What a waiting frame counts at least: the shortest frame of Ethernet.
constexpr uint64_t kLeastFrameBytes = 64;
constexpr size_t kPauseBytes = offsetof(hghca_pause_frame, quanta) + sizeof(__be16);
constexpr size_t kPfcBytes = offsetof(hghca_pfc_frame, rsvd);

constexpr uint8_t kControlAddress[6] = HGHCA_MAC_CONTROL_ADDRESS;

uint64_t wait_cost(size_t frame_bytes) { return std::max<uint64_t>(frame_bytes, kLeastFrameBytes); }

uint64_t drain_ns(const ReceiveBuffer &buffer, size_t frame_bytes)
{
    return ((uint64_t(frame_bytes) + kFcsBytes) * 8000 + buffer.drain_mbps - 1) / buffer.drain_mbps;
}

template <class T>
T addressed(const uint8_t *smac, uint16_t opcode)
{
    T frame{};
    std::copy(std::begin(kControlAddress), std::end(kControlAddress), frame.eth.dmac);
    std::copy(smac, smac + 6, frame.eth.smac);
    frame.eth.type = be16(HGHCA_ETH_TYPE_MAC_CONTROL);
    frame.opcode = be16(opcode);
    return frame;
}

}  // namespace

// ---- settings

FlowControlSettings FlowControlSettings::defaults(const ReceiveBuffers &buffers)
{
    FlowControlSettings s;
    s.classes[kRoce] = {3, buffers[kRoce].bytes / 2, buffers[kRoce].bytes / 4, true};
    s.classes[kOther] = {0, buffers[kOther].bytes / 2, buffers[kOther].bytes / 4, true};
    return s;
}

bool FlowControlSettings::decode(const hghca_flow_control &in, const ReceiveBuffers &buffers)
{
    constexpr uint32_t kPause = HGHCA_FLOW_PAUSE_RX | HGHCA_FLOW_PAUSE_TX;
    constexpr uint32_t kPfc = HGHCA_FLOW_PFC_RX | HGHCA_FLOW_PFC_TX;
    constexpr uint8_t kClasses = HGHCA_FLOW_CLASS_ROCE | HGHCA_FLOW_CLASS_OTHER;
    const uint32_t flags = be32(in.flags);
    FlowControlSettings s;
    s.pause_rx = flags & HGHCA_FLOW_PAUSE_RX;
    s.pause_tx = flags & HGHCA_FLOW_PAUSE_TX;
    s.pfc_rx = flags & HGHCA_FLOW_PFC_RX;
    s.pfc_tx = flags & HGHCA_FLOW_PFC_TX;
    s.quanta = be16(in.quanta);
    s.classes[kRoce] = {in.roce_priority, be32(in.roce_xoff), be32(in.roce_xon),
                        bool(in.pfc_classes & HGHCA_FLOW_CLASS_ROCE)};
    s.classes[kOther] = {in.other_priority, be32(in.other_xoff), be32(in.other_xon),
                         bool(in.pfc_classes & HGHCA_FLOW_CLASS_OTHER)};
    // IEEE 802.1Q, 36.1: a port has the one or the other.
    bool good = !(flags & ~(kPause | kPfc)) && !(flags & kPause && flags & kPfc) && s.quanta &&
                !(in.pfc_classes & ~kClasses) &&
                !(flags & kPfc && (!in.pfc_classes || in.roce_priority == in.other_priority));
    for (unsigned c = 0; c < kTrafficClasses; c++)
        good = good && s.classes[c].priority <= kMaxPriority && s.classes[c].xon < s.classes[c].xoff &&
               s.classes[c].xoff <= buffers[c].bytes;
    if (good)
        *this = s;
    return good;
}

void FlowControlSettings::encode(hghca_flow_control &out, const ReceiveBuffers &buffers) const
{
    out = {};
    out.flags = be32((pause_rx ? HGHCA_FLOW_PAUSE_RX : 0) | (pause_tx ? HGHCA_FLOW_PAUSE_TX : 0) |
                     (pfc_rx ? HGHCA_FLOW_PFC_RX : 0) | (pfc_tx ? HGHCA_FLOW_PFC_TX : 0));
    out.quanta = be16(quanta);
    out.roce_priority = classes[kRoce].priority;
    out.other_priority = classes[kOther].priority;
    out.roce_xoff = be32(classes[kRoce].xoff);
    out.roce_xon = be32(classes[kRoce].xon);
    out.other_xoff = be32(classes[kOther].xoff);
    out.other_xon = be32(classes[kOther].xon);
    out.roce_buffer = be32(buffers[kRoce].bytes);
    out.other_buffer = be32(buffers[kOther].bytes);
    out.pfc_classes = uint8_t((classes[kRoce].pfc ? HGHCA_FLOW_CLASS_ROCE : 0) |
                              (classes[kOther].pfc ? HGHCA_FLOW_CLASS_OTHER : 0));
}

// ---- both ways

FlowControl::FlowControl(Ends &ends, const Port &port, Link &link, Counters &counters, const Work &work,
                         const ReceiveBuffers &buffers, const uint64_t &now_ns)
    : ends_(ends), port_(port), link_(link), counters_(counters), work_(work), buffers_(buffers), now_ns_(now_ns)
{
    for (unsigned c = 0; c < kTrafficClasses; c++)
        if (buffers[c].drain_mbps)
            waiting_[c] = FrameRing(buffers[c].bytes / kLeastFrameBytes, buffers[c].bytes);
}

uint64_t FlowControl::quanta_ns(uint16_t quanta) const
{
    const uint64_t mbps = port_.speed_mbps;
    return (quanta * kQuantumBits * 1000 + mbps - 1) / mbps;
}

void FlowControl::clear()
{
    classes_ = {};
    for (FrameRing &frames : waiting_)
        frames.clear();
    settle();
}

void FlowControl::restart()
{
    for (unsigned i = 0; i < kTrafficClasses; i++) {
        resume(TrafficClass(i));
        classes_[i].stopped = false;
        classes_[i].notified = true;
        watch(TrafficClass(i));
    }
    settle();
}

void FlowControl::expire()
{
    for (unsigned i = 0; i < kTrafficClasses; i++) {
        Class &c = classes_[i];
        if (c.paused && c.paused_until_ns <= now_ns_)
            resume(TrafficClass(i));
        drain(TrafficClass(i));
        repeat(c);
    }
    settle();
}

// What there is to do now, and when the next.
void FlowControl::settle()
{
    due_ = false;
    deadline_ns_ = UINT64_MAX;
    for (unsigned i = 0; i < kTrafficClasses; i++) {
        const Class &c = classes_[i];
        due_ = due_ || !c.notified;
        if (c.paused)
            deadline_ns_ = std::min(deadline_ns_, c.paused_until_ns);
        if (!waiting_[i].empty())
            deadline_ns_ = std::min(deadline_ns_, c.busy_until_ns);
        if (c.stopped && c.notified)
            deadline_ns_ = std::min(deadline_ns_, c.repeat_ns);
    }
}

// ---- what the peer wants

bool FlowControl::takes(const FrameView &frame)
{
    hghca_eth_header eth{};
    if (frame.length < sizeof(eth))
        return false;
    frame.copy(0, &eth, sizeof(eth));
    if (be16(eth.type) == HGHCA_ETH_TYPE_MAC_CONTROL || std::equal(eth.dmac, eth.dmac + 6, kControlAddress)) {
        if (!takes_control(frame))
            counters_.rx_mac_control++;
        settle();
        return true;
    }
    if (!buffers_[kRoce].drain_mbps && !buffers_[kOther].drain_mbps)
        return false;
    std::array<uint8_t, kMaxHeader> bytes{};
    const std::span<const uint8_t> head{bytes.data(), std::min(frame.length, bytes.size())};
    frame.copy(0, bytes.data(), head.size());
    Arrival arrival;
    Drop why = Drop::None;
    const bool other = link_.classify(head, frame.length, arrival, why) == Verdict::Other;
    const bool waits = buffer(other ? kOther : kRoce, frame);
    settle();
    return waits;
}

// False: it means nothing to the port.
bool FlowControl::takes_control(const FrameView &frame)
{
    const FlowControlSettings &settings = port_.flow_control;
    hghca_pause_frame pause_frame{};
    frame.copy(0, &pause_frame, std::min(frame.length, sizeof(pause_frame)));
    const uint8_t *dmac = pause_frame.eth.dmac;
    const bool to_group = std::equal(dmac, dmac + 6, kControlAddress);
    if (be16(pause_frame.eth.type) != HGHCA_ETH_TYPE_MAC_CONTROL || !(to_group || link_.own_address(dmac)))
        return false;
    if (be16(pause_frame.opcode) == HGHCA_MAC_CONTROL_PAUSE && settings.pause_rx && frame.length >= kPauseBytes) {
        for (unsigned i = 0; i < kTrafficClasses; i++)
            pause(TrafficClass(i), be16(pause_frame.quanta));
    } else if (be16(pause_frame.opcode) == HGHCA_MAC_CONTROL_PFC && settings.pfc_rx && to_group &&
               frame.length >= kPfcBytes) {
        hghca_pfc_frame pfc{};
        frame.copy(0, &pfc, kPfcBytes);
        for (unsigned i = 0; i < kTrafficClasses; i++) {
            const FlowControlSettings::Class &c = settings.classes[i];
            if (c.pfc && be16(pfc.priorities) >> c.priority & 1)
                pause(TrafficClass(i), be16(pfc.quanta[c.priority]));
        }
    } else {
        return false;
    }
    counters_.rx_pause++;
    return true;
}

// A new pause takes the place of the one under way.
void FlowControl::pause(TrafficClass c, uint16_t quanta)
{
    if (!quanta) {
        resume(c);
        return;
    }
    classes_[c].paused = true;
    classes_[c].paused_until_ns = now_ns_ + quanta_ns(quanta);
}

void FlowControl::resume(TrafficClass c)
{
    classes_[c].paused = false;
    ends_.resume(c);
}

// ---- pauses for the peer

// False: the frame is to be received at once.
bool FlowControl::buffer(TrafficClass class_number, const FrameView &frame)
{
    const ReceiveBuffer &buffer = buffers_[class_number];
    Class &c = classes_[class_number];
    if (!buffer.drain_mbps)
        return false;
    drain(class_number);
    // A timer that is late lets the pause run out, and the peer would fill the buffer before it fires.
    repeat(c);
    if (waiting_[class_number].empty() && c.busy_until_ns <= now_ns_) {
        c.busy_until_ns = now_ns_ + drain_ns(buffer, frame.length);
        return false;
    }
    if (c.fill + wait_cost(frame.length) > buffer.bytes) {
        counters_.rx_buffer_overflow++;
        return true;
    }
    waiting_[class_number].push(frame);
    c.fill += wait_cost(frame.length);
    watch(class_number);
    return true;
}

// Receives what has had its time.
void FlowControl::drain(TrafficClass class_number)
{
    Class &c = classes_[class_number];
    FrameRing &frames = waiting_[class_number];
    while (!frames.empty() && c.busy_until_ns <= now_ns_ && !work_.over()) {
        const FrameRing::Frame frame = frames.pop();
        c.fill -= wait_cost(frame.bytes);
        c.busy_until_ns += drain_ns(buffers_[class_number], frame.bytes);
        ends_.receive_late(frame.view());
        watch(class_number);
    }
}

void FlowControl::repeat(Class &c) const
{
    if (c.stopped && c.repeat_ns <= now_ns_)
        c.notified = false;
}

void FlowControl::watch(TrafficClass class_number)
{
    const FlowControlSettings &settings = port_.flow_control;
    const FlowControlSettings::Class &limits = settings.classes[class_number];
    Class &c = classes_[class_number];
    if (!settings.pause_tx && !(settings.pfc_tx && limits.pfc))
        return;
    if (c.stopped ? c.fill > limits.xon : c.fill <= limits.xoff)
        return;
    c.stopped = !c.stopped;
    c.notified = false;
}

bool FlowControl::send()
{
    const FlowControlSettings &settings = port_.flow_control;
    const uint8_t *smac = port_.addresses.mac().data();
    auto pause_frame = addressed<hghca_pause_frame>(smac, HGHCA_MAC_CONTROL_PAUSE);
    auto pfc = addressed<hghca_pfc_frame>(smac, HGHCA_MAC_CONTROL_PFC);
    for (unsigned i = 0; i < kTrafficClasses; i++) {
        const uint8_t priority = settings.classes[i].priority;
        if (classes_[i].stopped) {
            pause_frame.quanta = be16(settings.quanta);
            pfc.quanta[priority] = be16(settings.quanta);
        }
        if (!classes_[i].notified)
            pfc.priorities |= be16(uint16_t(1 << priority));
    }
    static_assert(sizeof(pause_frame) == sizeof(pfc));
    const iovec part{settings.pfc_tx ? static_cast<void *>(&pfc) : &pause_frame, sizeof(pfc)};
    if (port_.link_up) {
        if (ends_.send_control(part) == FrameSent::LinkFull)
            return false;
        counters_.tx_pause++;
    }
    for (Class &c : classes_) {
        c.notified = true;
        c.repeat_ns = now_ns_ + std::max(quanta_ns(settings.quanta) / 2, kLeastRepeatNs);
    }
    settle();
    return true;
}

}  // namespace hghca
