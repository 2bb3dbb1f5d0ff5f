// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/impairment.h"

#include <algorithm>
#include <new>
#include <utility>

#include "hghca_wire.h"
#include "wire/packet.h"

namespace hghca {

namespace {

// The limit of copies of one frame, for all rules together.
constexpr size_t kMaxCopies = 16;

// splitmix64: the step between states, and the output function.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

uint64_t scramble(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// The bits that may be inverted: in a RoCE packet those that its ICRC covers, from the BTH on; in other frames all bits
// after the MACs and the type.
struct Corruptible {
    explicit Corruptible(const FrameMarks &marks)
        : first(marks.roce ? marks.bth : std::min(marks.bytes, sizeof(hghca_eth_header))),
          end(marks.roce ? marks.end : marks.bytes), gap(marks.roce ? marks.bth + offsetof(hghca_bth, qpn) : end)
    {
    }
    size_t bits() const { return 8 * (end - first - (gap < end ? 1 : 0)); }
    size_t byte(size_t bit) const
    {
        const size_t at = first + bit / 8;
        return at < gap ? at : at + 1;
    }

    size_t first, end;
    size_t gap;   // a byte that is not covered: annex A17.3.3 replaces the byte of FECN and BECN by ones
};

// RFC 1624: the word that the checksum covers has grown by `growth`.
void update_checksum(uint8_t *checksum, uint16_t growth)
{
    const uint32_t sum = uint32_t(uint16_t(~(checksum[0] << 8 | checksum[1]))) + growth;
    const auto folded = uint16_t(~((sum & 0xffff) + (sum >> 16)));
    checksum[0] = uint8_t(folded >> 8);
    checksum[1] = uint8_t(folded);
}

// The bytes of the frame without the link's padding after a RoCE packet.
size_t whole_bytes(const FrameMarks &marks) { return marks.roce ? marks.end : marks.bytes; }

}  // namespace

uint64_t Impairment::Dice::below(uint64_t n) { return scramble(state_ += kStep) % n; }

// ---- rules

bool Impairment::set_rules(std::string_view text, std::string &error)
{
    std::vector<FaultRule> read;
    if (!read_fault_rules(text, read, error))
        return false;
    rules_.clear();
    for (const FaultRule &rule : read)
        rules_.push_back({rule});
    return true;
}

void Impairment::set_seed(uint64_t seed)
{
    seed_ = seed;
    for (LiveRule &live : rules_)
        live = {live.rule};
}

// ---- a frame

FrameSent Impairment::send(std::span<const iovec> parts)
{
    if (tx_.blocked) {
        link_ready();
        // No frame overtakes the frames that wait for the link, even if the slice ended before they were sent.
        if (tx_.blocked || waits_for_link())
            return FrameSent::LinkFull;
    }
    carry(tx_, parts);
    return FrameSent::Yes;
}

void Impairment::receive(std::span<const iovec> parts) { carry(rx_, parts); }

// Frames that are changed or held back are copied. One for which there is no memory is lost, as when too many are held.
void Impairment::carry(Lane &lane, std::span<const iovec> parts)
try {
    std::vector<Frame> copies;
    Frame frame{parts};
    frame.marks = marks_of(parts);
    if (apply_rules(lane, frame, copies))
        pass(lane, frame);
    for (size_t i = 0; i < copies.size(); i++) {
        Frame copy = std::move(copies[i]);   // apply_rules() may add to `copies`
        if (apply_rules(lane, copy, copies))
            pass(lane, copy);
    }
} catch (const std::bad_alloc &) {
    counts_.overflowed++;
}

// False: the frame is lost.
bool Impairment::apply_rules(const Lane &lane, Frame &frame, std::vector<Frame> &copies)
{
    while (frame.rule < rules_.size()) {
        LiveRule &live = rules_[frame.rule++];
        Dice dice;
        if (!picks(live, frame, lane.direction, dice))
            continue;
        const bool done = apply(live.rule, frame, copies, dice);
        live.done += done;
        if (done && live.rule.fault == Fault::Drop)
            return false;
    }
    return true;
}

// Whether the rule selects the frame. If so, `dice` are the random numbers for the fault.
bool Impairment::picks(LiveRule &live, const Frame &frame, Direction direction, Dice &dice) const
{
    const FaultRule &rule = live.rule;
    if (!rule.concerns(direction) || !rule.selects(frame.marks))
        return false;
    const uint64_t n = ++live.selected[size_t(direction)];
    const uint64_t stream = size_t(&live - rules_.data()) * 2 + size_t(direction);
    dice = Dice(scramble(scramble(seed_ + kStep * (stream + 1)) + n));
    return dice.below(kBillion) < rule.rate_ppb && n % rule.every == 0 && live.done < rule.count;
}

// False: the fault does not apply to such a frame.
bool Impairment::apply(const FaultRule &rule, Frame &frame, std::vector<Frame> &copies, Dice &dice)
{
    switch (rule.fault) {
    case Fault::Drop:
        counts_.dropped++;
        return true;
    case Fault::Duplicate:
        return duplicate(rule, frame, copies, dice);
    case Fault::Reorder:
    case Fault::Delay:
        return delay(rule, frame, dice);
    case Fault::Corrupt:
        return corrupt(rule, frame, dice);
    case Fault::Mark:
        return mark(frame);
    case Fault::Truncate:
        return truncate(rule, frame, dice);
    }
    return false;
}

bool Impairment::duplicate(const FaultRule &rule, Frame &frame, std::vector<Frame> &copies, Dice &dice)
{
    if (copies.size() == kMaxCopies)
        return false;
    Frame copy{};
    copy.own = own(frame);
    copy.marks = frame.marks;
    copy.rule = frame.rule;
    copy.wait_ns = wait_ns(rule, dice);
    copy.waits = copy.wait_ns > 0;
    copies.push_back(std::move(copy));
    counts_.duplicated++;
    return true;
}

bool Impairment::delay(const FaultRule &rule, Frame &frame, Dice &dice)
{
    if (frame.waits)
        return false;
    frame.waits = true;
    frame.wait_ns = wait_ns(rule, dice);
    const bool reorder = rule.fault == Fault::Reorder;
    frame.by = reorder ? rule.by : 0;
    (reorder ? counts_.reordered : counts_.delayed)++;
    return true;
}

bool Impairment::corrupt(const FaultRule &rule, Frame &frame, Dice &dice)
{
    const Corruptible place(frame.marks);
    if (place.bits() < rule.bits)
        return false;
    std::array<size_t, kMaxCorruptBits> bits{};
    Bytes &bytes = own(frame);
    for (auto end = bits.begin(); end != bits.begin() + rule.bits;) {
        const size_t bit = dice.below(place.bits());
        if (std::find(bits.begin(), end, bit) != end)
            continue;   // a second inversion would restore the bit
        *end++ = bit;
        bytes[place.byte(bit)] ^= uint8_t(1u << bit % 8);
    }
    counts_.corrupted++;
    return true;
}

// As a switch with a long queue does (RFC 3168, 5): congestion experienced, if the sender indicates ECN support.
bool Impairment::mark(Frame &frame)
{
    if (!frame.marks.roce)
        return false;
    uint8_t *ip = own(frame).data() + frame.marks.network;
    // Bits 1:0 of the traffic class.
    const unsigned shift = frame.marks.ipv6 ? 4 : 0;
    uint8_t &byte = ip[1];
    const uint8_t before = byte;
    const uint8_t ecn = before >> shift & HGHCA_ECN_MASK;
    if (!ecn || ecn == HGHCA_ECN_CE)
        return false;
    byte = uint8_t(before | HGHCA_ECN_CE << shift);
    if (!frame.marks.ipv6)
        update_checksum(ip + offsetof(hghca_ipv4_header, checksum), uint16_t(byte - before));
    counts_.marked++;
    return true;
}

// The Ethernet header stays.
bool Impairment::truncate(const FaultRule &rule, Frame &frame, Dice &dice)
{
    const size_t whole = whole_bytes(frame.marks);
    if (whole <= sizeof(hghca_eth_header))
        return false;
    const size_t most = whole - sizeof(hghca_eth_header);
    const size_t cut = rule.cut_bytes ? std::min<size_t>(rule.cut_bytes, most) : 1 + dice.below(most);
    Bytes &bytes = own(frame);
    bytes.resize(whole - cut);
    const iovec part{bytes.data(), bytes.size()};
    frame.marks = marks_of({&part, 1});
    counts_.truncated++;
    return true;
}

uint64_t Impairment::wait_ns(const FaultRule &rule, Dice &dice)
{
    return rule.delay_ns + (rule.jitter_ns ? dice.below(rule.jitter_ns + 1) : 0);
}

// The frame's bytes, writable.
Impairment::Bytes &Impairment::own(Frame &frame)
{
    if (frame.own.empty()) {
        frame.own.resize(frame.marks.bytes);
        FrameView{frame.parts, 0, frame.marks.bytes}.copy(0, frame.own.data(), frame.marks.bytes);
    }
    return frame.own;
}

// ---- release to the ends

void Impairment::pass(Lane &lane, Frame &frame)
{
    lane.seen++;
    if (frame.waits) {
        const uint64_t until = frame.by ? lane.seen + frame.by : 0;
        if (held_frames_ < kHeldFrames && held_bytes_ + frame.marks.bytes <= kHeldBytes)
            hold(lane, {std::max<uint64_t>(ends_.now_ns() + frame.wait_ns, 1), next_place_++}, own(frame), until);
        else
            counts_.overflowed++;
    } else if (!emit(lane, frame)) {
        hold(lane, {0, next_place_++}, own(frame), 0);
    }
    while (!lane.overtaken.empty() && lane.overtaken.begin()->first <= lane.seen)
        release(lane, lane.held.find(lane.overtaken.begin()->second));
}

// False: the link did not accept it.
bool Impairment::emit(Lane &lane, const Frame &frame)
{
    if (frame.own.empty())
        return emit(lane, frame.parts);
    return emit(lane, frame.own);
}

bool Impairment::emit(Lane &lane, const Bytes &bytes)
{
    const iovec whole{const_cast<uint8_t *>(bytes.data()), bytes.size()};
    return emit(lane, std::span(&whole, 1));
}

bool Impairment::emit(Lane &lane, std::span<const iovec> parts)
{
    if (lane.direction == Direction::Rx)
        ends_.to_device(parts);
    else
        lane.blocked = lane.blocked || ends_.to_link(parts) == FrameSent::LinkFull;
    return !lane.blocked;
}

// Moves from `bytes`.
void Impairment::hold(Lane &lane, const Place &place, Bytes &bytes, uint64_t until)
{
    const size_t size = bytes.size();
    const auto held = lane.held.emplace(place, Held{std::move(bytes), until}).first;
    try {
        if (until)
            lane.overtaken.insert({until, place});
    } catch (const std::bad_alloc &) {
        lane.held.erase(held);
        throw;
    }
    held_frames_++;
    held_bytes_ += size;
}

void Impairment::release(Lane &lane, std::map<Place, Held>::iterator which)
{
    work_.add();
    auto node = lane.held.extract(which);
    Held &held = node.mapped();
    lane.overtaken.erase({held.until, node.key()});
    held_frames_--;
    held_bytes_ -= held.bytes.size();
    if (emit(lane, held.bytes))
        return;
    // A frame that waited for the link already stays before those that began to wait later.
    const auto [due_ns, number] = node.key();
    node.key() = {0, due_ns ? next_place_++ : number};
    held.until = 0;
    held_frames_++;
    held_bytes_ += held.bytes.size();
    lane.held.insert(std::move(node));
}

// ---- time and the link

uint64_t Impairment::next_deadline() const
{
    uint64_t deadline = UINT64_MAX;
    for (const Lane *lane : {&tx_, &rx_}) {
        if (!lane->blocked && !lane->held.empty())
            deadline = std::min(deadline, lane->held.begin()->first.first);
    }
    return deadline;
}

void Impairment::expire(uint64_t now_ns)
{
    for (Lane *lane : {&tx_, &rx_}) {
        while (!work_.over() && !lane->blocked && !lane->held.empty() && lane->held.begin()->first.first <= now_ns)
            release(*lane, lane->held.begin());
    }
}

bool Impairment::waits_for_link() const { return !tx_.held.empty() && !tx_.held.begin()->first.first; }

// Frames that waited for the link go first; other due frames have a timer.
void Impairment::link_ready()
{
    tx_.blocked = false;
    while (!work_.over() && !tx_.blocked && waits_for_link())
        release(tx_, tx_.held.begin());
}

void Impairment::clear()
{
    counts_.purged += held_frames_;
    held_frames_ = held_bytes_ = 0;
    for (Lane *lane : {&tx_, &rx_}) {
        lane->held.clear();
        lane->overtaken.clear();
        lane->blocked = false;
    }
}

}  // namespace hghca
