// SPDX-License-Identifier: GPL-2.0-or-later
// The faults of link impairment: one rule, and rules read from text.
//
//   faults = rule { ";" rule }
//   rule   = fault { "," word "=" value }        blanks stand for commas as well
//
// such as "drop,rate=1%,frames=roce; delay,us=500,jitter=200,dir=tx". docs/explanation/testing.rst lists the words.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/number.h"
#include "wire/psn.h"

namespace hghca {

enum class Fault : uint8_t { Drop, Duplicate, Reorder, Delay, Corrupt, Mark, Truncate };

// From the device to the link, and from the link to the device.
enum class Direction : uint8_t { Tx, Rx };

// What rules look at in a frame. A packet of RoCE v2 is an UDP datagram to its port that has a whole BTH; what
// stands behind `roce` is live for such alone.
struct FrameMarks {
    size_t bytes;
    bool roce;
    bool ipv6;
    size_t network;   // offset of the IP header
    size_t bth;       // offset of the BTH
    size_t end;       // offset of what follows the ICRC: padding of the link, or nothing
    uint8_t opcode;
    Qpn qpn;          // the destination
    Psn psn;
};

FrameMarks marks_of(std::span<const iovec> parts);

// From `first` to `last`, around the end of the numbers when the last is the smaller one.
struct NumberRange {
    uint32_t first = 0;
    uint32_t last = 0xffffff;
    bool has(uint32_t n) const { return first <= last ? n >= first && n <= last : n >= first || n <= last; }
};

constexpr uint32_t kBillion = 1'000'000'000;

struct FaultRule {
    Fault fault;
    // Of which frames.
    bool tx = true, rx = true;
    bool roce = true, other = true;   // packets of RoCE, all other frames
    bool headers = false;             // by the three that follow, so packets of RoCE alone
    NumberRange qp, psn;
    uint8_t opcode = 0, opcode_mask = 0;
    // Of these which ones.
    uint32_t rate_ppb = kBillion;
    uint64_t every = 1;               // the Nth, 2Nth ... of each direction
    uint64_t count = UINT64_MAX;      // so many in all
    // How.
    uint64_t delay_ns = 0;            // Delay; Duplicate: the copy; Reorder: at most
    uint64_t jitter_ns = 0;           // up to so much more
    uint32_t by = 1;                  // Reorder: how many later frames go first
    uint32_t bits = 1;                // Corrupt: inverted
    uint32_t cut_bytes = 0;           // Truncate; 0: a number at random

    bool concerns(Direction direction) const { return direction == Direction::Tx ? tx : rx; }
    bool selects(const FrameMarks &frame) const;
};

constexpr size_t kMaxFaultRules = 16;
constexpr uint32_t kMaxCorruptBits = 64;

// Reads `text` into `rules`; empty text is no rule. False: `error` says which word is wrong and what there is
// instead.
bool read_fault_rules(std::string_view text, std::vector<FaultRule> &rules, std::string &error);

}  // namespace hghca
