// SPDX-License-Identifier: GPL-2.0-or-later
#include "port/fault_rule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "byte_order.h"
#include "hghca_wire.h"
#include "wire/packet.h"

namespace hghca {

namespace {

constexpr uint32_t kMaxUs = 10'000'000;
constexpr uint32_t kMaxBy = 1000;
constexpr uint32_t kReorderNs = 1'000'000;   // when no later frame comes

constexpr std::string_view kBlanks = ", \t";

constexpr unsigned bit(Fault fault) { return 1u << unsigned(fault); }
constexpr unsigned kAnyFault = (bit(Fault::Truncate) << 1) - 1;

struct FaultName {
    std::string_view name;
    Fault fault;
};

constexpr FaultName kFaults[] = {
    {"drop", Fault::Drop},   {"duplicate", Fault::Duplicate}, {"reorder", Fault::Reorder},
    {"delay", Fault::Delay}, {"corrupt", Fault::Corrupt},     {"mark", Fault::Mark},
    {"truncate", Fault::Truncate},
};

// Of whatever service: IBA vol 1, table 38. Those of the manufacturer have none.
struct OpcodeName {
    std::string_view name;
    uint8_t opcode;
    uint8_t mask = HGHCA_BTH_OP_MASK;
};

constexpr OpcodeName kOpcodeNames[] = {
    {"send_first", HGHCA_BTH_OP_SEND_FIRST},
    {"send_middle", HGHCA_BTH_OP_SEND_MIDDLE},
    {"send_last", HGHCA_BTH_OP_SEND_LAST},
    {"send_last_imm", HGHCA_BTH_OP_SEND_LAST_IMM},
    {"send_only", HGHCA_BTH_OP_SEND_ONLY},
    {"send_only_imm", HGHCA_BTH_OP_SEND_ONLY_IMM},
    {"write_first", HGHCA_BTH_OP_WRITE_FIRST},
    {"write_middle", HGHCA_BTH_OP_WRITE_MIDDLE},
    {"write_last", HGHCA_BTH_OP_WRITE_LAST},
    {"write_last_imm", HGHCA_BTH_OP_WRITE_LAST_IMM},
    {"write_only", HGHCA_BTH_OP_WRITE_ONLY},
    {"write_only_imm", HGHCA_BTH_OP_WRITE_ONLY_IMM},
    {"read_request", HGHCA_BTH_OP_READ_REQUEST},
    {"read_response_first", HGHCA_BTH_OP_READ_RESPONSE_FIRST},
    {"read_response_middle", HGHCA_BTH_OP_READ_RESPONSE_MIDDLE},
    {"read_response_last", HGHCA_BTH_OP_READ_RESPONSE_LAST},
    {"read_response_only", HGHCA_BTH_OP_READ_RESPONSE_ONLY},
    {"ack", HGHCA_BTH_OP_ACK},
    {"atomic_ack", HGHCA_BTH_OP_ATOMIC_ACK},
    {"compare_swap", HGHCA_BTH_OP_COMPARE_SWAP},
    {"fetch_add", HGHCA_BTH_OP_FETCH_ADD},
    {"send_last_inv", HGHCA_BTH_OP_SEND_LAST_INV},
    {"send_only_inv", HGHCA_BTH_OP_SEND_ONLY_INV},
    {"flush", HGHCA_BTH_OP_FLUSH},
    {"atomic_write", HGHCA_BTH_OP_ATOMIC_WRITE},
    {"part_first", HGHCA_BTH_PART_FIRST, 0xff},
    {"part_middle", HGHCA_BTH_PART_MIDDLE, 0xff},
    {"part_last", HGHCA_BTH_PART_LAST, 0xff},
    {"part_only", HGHCA_BTH_PART_ONLY, 0xff},
    {"read_pointer_request", HGHCA_BTH_READ_POINTER_REQUEST, 0xff},
    {"read_consistent_request", HGHCA_BTH_READ_CONSISTENT_REQUEST, 0xff},
};

// ---- values

// All of `text` as a number from `least` to `most`, decimal or hexadecimal.
template <class T>
bool read_number(std::string_view text, uint64_t least, uint64_t most, T &out)
{
    const bool hex = text.starts_with("0x");
    if (hex)
        text.remove_prefix(2);
    uint64_t n = 0;
    const char *end = std::to_address(text.end());
    const auto [at, failed] = std::from_chars(std::to_address(text.begin()), end, n, hex ? 16 : 10);
    if (failed != std::errc() || at != end || n < least || n > most)
        return false;
    out = T(n);
    return true;
}

// A number or two with a `-` between.
bool read_range(std::string_view text, NumberRange &out)
{
    const size_t dash = text.find('-');
    if (!read_number(text.substr(0, dash), 0, 0xffffff, out.first))
        return false;
    out.last = out.first;
    return dash == std::string_view::npos || read_number(text.substr(dash + 1), 0, 0xffffff, out.last);
}

// By hand: what a library makes of a fraction is not the same everywhere.
bool read_rate(std::string_view text, FaultRule &rule)
{
    const bool percent = text.ends_with('%');
    if (percent)
        text.remove_suffix(1);
    const size_t dot = std::min(text.find('.'), text.size());
    uint64_t unit = percent ? kBillion / 100 : kBillion;
    uint64_t whole = 0;
    if (!read_number(text.substr(0, dot), 0, 100, whole))
        return false;
    uint64_t ppb = whole * unit;
    for (const char digit : text.substr(std::min(dot + 1, text.size()))) {
        unit /= 10;
        if (digit < '0' || digit > '9' || (!unit && digit != '0'))
            return false;
        ppb += uint64_t(digit - '0') * unit;
    }
    rule.rate_ppb = uint32_t(std::min<uint64_t>(ppb, kBillion));
    return ppb <= kBillion;
}

bool read_direction(std::string_view text, FaultRule &rule)
{
    rule.tx = text != "rx";
    rule.rx = text != "tx";
    return text == "tx" || text == "rx" || text == "both";
}

bool read_frames(std::string_view text, FaultRule &rule)
{
    rule.roce = text != "other";
    rule.other = text != "roce";
    return text == "roce" || text == "other" || text == "all";
}

bool read_opcode(std::string_view text, FaultRule &rule)
{
    rule.headers = true;
    for (const OpcodeName &known : kOpcodeNames) {
        if (text == known.name) {
            rule.opcode = known.opcode;
            rule.opcode_mask = known.mask;
            return true;
        }
    }
    rule.opcode_mask = 0xff;
    return read_number(text, 0, 0xff, rule.opcode);
}

bool read_qp(std::string_view text, FaultRule &rule)
{
    rule.headers = true;
    return read_range(text, rule.qp);
}

bool read_psn(std::string_view text, FaultRule &rule)
{
    rule.headers = true;
    return read_range(text, rule.psn);
}

bool read_us(std::string_view text, uint64_t &ns)
{
    if (!read_number(text, 0, kMaxUs, ns))
        return false;
    ns *= 1000;
    return true;
}

// ---- words

struct Word {
    std::string_view name;
    unsigned faults;            // that have it
    std::string_view values;
    bool (*read)(std::string_view value, FaultRule &rule);
};

constexpr Word kWords[] = {
    {"dir", kAnyFault, "tx, rx or both", read_direction},
    {"frames", kAnyFault, "roce, other or all", read_frames},
    {"rate", kAnyFault, "0 to 1, such as 0.01, or 0% to 100%", read_rate},
    {"every", kAnyFault, "a number from 1 on",
     [](std::string_view v, FaultRule &r) { return read_number(v, 1, UINT64_MAX, r.every); }},
    {"count", kAnyFault, "a number from 1 on",
     [](std::string_view v, FaultRule &r) { return read_number(v, 1, UINT64_MAX, r.count); }},
    {"qp", kAnyFault, "a number of 24 bits, or two with a - between", read_qp},
    {"opcode", kAnyFault, "a number from 0 to 255, or one of", read_opcode},
    {"psn", kAnyFault, "a number of 24 bits, or two with a - between", read_psn},
    {"us", bit(Fault::Delay) | bit(Fault::Duplicate) | bit(Fault::Reorder), "0 to 10000000",
     [](std::string_view v, FaultRule &r) { return read_us(v, r.delay_ns); }},
    {"jitter", bit(Fault::Delay) | bit(Fault::Duplicate), "0 to 10000000, in microseconds",
     [](std::string_view v, FaultRule &r) { return read_us(v, r.jitter_ns); }},
    {"by", bit(Fault::Reorder), "1 to 1000",
     [](std::string_view v, FaultRule &r) { return read_number(v, 1, kMaxBy, r.by); }},
    {"bits", bit(Fault::Corrupt), "1 to 64",
     [](std::string_view v, FaultRule &r) { return read_number(v, 1, kMaxCorruptBits, r.bits); }},
    {"bytes", bit(Fault::Truncate), "1 to 65535",
     [](std::string_view v, FaultRule &r) { return read_number(v, 1, 0xffff, r.cut_bytes); }},
};

// The names of those in `list` that `wanted` picks, with commas between.
template <class List, class Wanted>
std::string names_of(const List &list, Wanted &&wanted)
{
    std::string names;
    for (const auto &entry : list) {
        if (wanted(entry))
            names.append(names.empty() ? "" : ", ").append(entry.name);
    }
    return names;
}

constexpr auto kAll = [](const auto &) { return true; };

std::string quoted(std::string_view text)
{
    // What a user has mistyped is told, not a whole file.
    constexpr size_t kMost = 40;
    std::string out("'");
    out.append(text.substr(0, kMost));
    return out + (text.size() > kMost ? "...'" : "'");
}

// Takes off `text` what stands before the first of `ends`, and that one.
std::string_view take_until(std::string_view &text, std::string_view ends)
{
    const size_t n = std::min(text.find_first_of(ends), text.size());
    const std::string_view taken = text.substr(0, n);
    text.remove_prefix(std::min(n + 1, text.size()));
    return taken;
}

// The next word of a rule; empty at its end.
std::string_view take_word(std::string_view &rule)
{
    rule.remove_prefix(std::min(rule.find_first_not_of(kBlanks), rule.size()));
    return take_until(rule, kBlanks);
}

bool read_word(std::string_view text, std::string_view fault, FaultRule &rule, unsigned &seen, std::string &error)
{
    const size_t sign = std::min(text.find('='), text.size());
    const std::string_view name = text.substr(0, sign);
    auto fits = [&rule](const Word &word) { return bool(word.faults & bit(rule.fault)); };
    const Word *word = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Word &known) { return known.name == name && fits(known); });
    if (word == std::end(kWords)) {
        error = quoted(fault) + " has no word " + quoted(name) + "; it has " + names_of(kWords, fits);
        return false;
    }
    const unsigned place = 1u << (word - std::begin(kWords));
    if (seen & place) {
        error = quoted(text) + ": '" + std::string(name) + "' was given before in the same rule";
        return false;
    }
    seen |= place;
    if (sign == text.size() || !word->read(text.substr(sign + 1), rule)) {
        error = quoted(text) + ": '" + std::string(name) + "' takes " + std::string(word->values);
        if (name == "opcode")
            error.append(" ").append(names_of(kOpcodeNames, kAll));
        return false;
    }
    return true;
}

bool read_rule(std::string_view text, std::string_view name, FaultRule &rule, std::string &error)
{
    const FaultName *known = std::find_if(std::begin(kFaults), std::end(kFaults),
                                          [name](const FaultName &f) { return f.name == name; });
    if (known == std::end(kFaults)) {
        error = "there is no fault " + quoted(name) + "; there are " + names_of(kFaults, kAll);
        return false;
    }
    rule.fault = known->fault;
    if (rule.fault == Fault::Reorder)
        rule.delay_ns = kReorderNs;
    unsigned seen = 0;
    for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
        if (!read_word(word, name, rule, seen, error))
            return false;
    }
    if (rule.fault == Fault::Delay && !rule.delay_ns && !rule.jitter_ns) {
        error = "'delay' wants a time: us=500, jitter=200 or both";
        return false;
    }
    if (rule.headers && !rule.roce) {
        error = "'frames=other' and a selector of RoCE's headers pick no frame at all";
        return false;
    }
    return true;
}

}  // namespace

bool read_fault_rules(std::string_view text, std::vector<FaultRule> &rules, std::string &error)
{
    std::vector<FaultRule> read;
    while (!text.empty()) {
        std::string_view one = take_until(text, ";\n");
        const std::string_view name = take_word(one);
        if (name.empty())
            continue;
        if (read.size() == kMaxFaultRules) {
            error = "there are more than " + std::to_string(kMaxFaultRules) + " rules";
            return false;
        }
        FaultRule rule{};
        if (!read_rule(one, name, rule, error)) {
            error.insert(0, "rule " + std::to_string(read.size() + 1) + ": ");
            return false;
        }
        read.push_back(rule);
    }
    rules = std::move(read);
    return true;
}

bool FaultRule::selects(const FrameMarks &frame) const
{
    if (!frame.roce)
        return other && !headers;
    // The name of an operation is that of each service, and the manufacturer's are of none.
    const bool of_service = opcode_mask != HGHCA_BTH_OP_MASK || frame.opcode < HGHCA_BTH_VENDOR;
    return roce && qp.has(number(frame.qpn)) && psn.has(number(frame.psn)) && of_service &&
           (frame.opcode & opcode_mask) == (opcode & opcode_mask);
}

// Whose packet it is, and if it is right, is not asked: that is what devices are for.
FrameMarks marks_of(std::span<const iovec> parts)
{
    FrameView frame{parts, 0, 0};
    for (const iovec &part : parts)
        frame.length += part.iov_len;
    // The longest that may stand before the end of a BTH, in an IPv4 header with options.
    constexpr size_t kMaxIpv4 = 60;
    std::array<uint8_t, sizeof(hghca_eth_header) + sizeof(hghca_vlan_tag) + kMaxIpv4 + sizeof(hghca_udp_header) +
                            sizeof(hghca_bth)> head{};
    const size_t head_bytes = std::min(frame.length, head.size());
    frame.copy(0, head.data(), head_bytes);
    auto get16 = [&head](size_t at) { return uint16_t(head[at] << 8 | head[at + 1]); };

    FrameMarks marks{};
    marks.bytes = frame.length;
    size_t at = sizeof(hghca_eth_header);
    uint16_t type = get16(at - 2);
    if (type == HGHCA_ETH_TYPE_VLAN) {
        at += sizeof(hghca_vlan_tag);
        type = get16(at - 2);
    }
    marks.network = at;
    marks.ipv6 = type == HGHCA_ETH_TYPE_IPV6;
    size_t ip_end = at;
    if (type == HGHCA_ETH_TYPE_IPV6 && head[at + offsetof(hghca_ipv6_header, next_header)] == HGHCA_IP_UDP) {
        ip_end += sizeof(hghca_ipv6_header) + get16(at + offsetof(hghca_ipv6_header, length));
        at += sizeof(hghca_ipv6_header);
    } else if (type == HGHCA_ETH_TYPE_IPV4 && head[at + offsetof(hghca_ipv4_header, protocol)] == HGHCA_IP_UDP &&
               size_t(head[at] & 0xf) * 4 >= sizeof(hghca_ipv4_header) &&
               !(get16(at + offsetof(hghca_ipv4_header, fragment)) & HGHCA_IPV4_FRAGMENT_MASK)) {
        ip_end += get16(at + offsetof(hghca_ipv4_header, length));
        at += size_t(head[at] & 0xf) * 4;
    } else {
        return marks;
    }
    marks.bth = at + sizeof(hghca_udp_header);
    marks.end = std::min(ip_end, frame.length);
    if (marks.bth + sizeof(hghca_bth) > marks.end ||
        get16(at + offsetof(hghca_udp_header, dst_port)) != HGHCA_ROCE_UDP_PORT)
        return marks;
    hghca_bth bth;
    std::memcpy(&bth, head.data() + marks.bth, sizeof(bth));
    marks.roce = true;
    marks.opcode = bth.opcode;
    marks.qpn = Qpn(be32(bth.qpn) & HGHCA_BTH_QPN_MASK);
    marks.psn = psn_of(be32(bth.psn));
    return marks;
}

}  // namespace hghca
