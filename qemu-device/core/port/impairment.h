// SPDX-License-Identifier: GPL-2.0-or-later
// Link impairment for tests: faults on frames between a device and its link, in both directions. There are no
// faults until rules are set (fault_rule.h).
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host.h"
#include "port/fault_rule.h"
#include "work.h"

namespace hghca {

// The number of frames that each fault has affected since the start.
#define HGHCA_FAULT_COUNTS(X)                                                                                        \
    X(dropped)                                                                                                       \
    X(duplicated)                                                                                                    \
    X(reordered)                                                                                                     \
    X(delayed)                                                                                                       \
    X(corrupted)                                                                                                     \
    X(marked)                                                                                                        \
    X(truncated)                                                                                                     \
    X(overflowed) /* lost: the limit of held frames or bytes is reached */                                           \
    X(purged)     /* lost: held back when the link went down or the device was reset */

struct FaultCounts {
#define HGHCA_FAULT_COUNT_MEMBER(name) uint64_t name = 0;
    HGHCA_FAULT_COUNTS(HGHCA_FAULT_COUNT_MEMBER)
#undef HGHCA_FAULT_COUNT_MEMBER
};

// Each frame goes through the rules in their order. A copy goes through the rules after the one that made it. A frame
// that is held back is not held back again by another rule.
//
// The faults are deterministic: the fate of a frame depends on the seed, the rule, and the number of frames of its
// direction that the rule has selected before. The other direction and the clock do not influence it. The time at which
// a held frame is released depends on the clock, or on the frames behind it.
class Impairment {
public:
    // The two ends of the impaired link. A call must not lead back to the Impairment that made it.
    class Ends {
    public:
        virtual ~Ends() = default;
        // False: the link accepts no frame now. link_ready() is called when it accepts frames again.
        virtual FrameSent to_link(std::span<const iovec> parts) = 0;
        virtual void to_device(std::span<const iovec> parts) = 0;
        virtual uint64_t now_ns() = 0;
    };

    // The limits of held frames, for both directions together; frames beyond them are lost.
    static constexpr size_t kHeldFrames = 8192;
    static constexpr size_t kHeldBytes = 16u << 20;

    Impairment(Ends &ends, Work &work) : ends_(ends), work_(work) {}
    Impairment(const Impairment &) = delete;
    Impairment &operator=(const Impairment &) = delete;

    // Replaces the rules and restarts their counts; an empty text removes all. Frames held back stay held back.
    // False: `text` is wrong, as `error` says, and nothing has changed.
    bool set_rules(std::string_view text, std::string &error);
    // Restarts the rules with this seed, which is 0 at first.
    void set_seed(uint64_t seed);

    // Whether there are rules or held frames. If not, frames may bypass this class.
    bool active() const { return !rules_.empty() || held_frames_; }
    // A frame from the device to the link. False: the link accepts no frame now, and no rule was applied.
    FrameSent send(std::span<const iovec> parts);
    // A frame from the link to the device.
    void receive(std::span<const iovec> parts);

    // The time of the next call of expire(), on the clock of now_ns(); UINT64_MAX: never.
    uint64_t next_deadline() const;
    // Releases the frames held back until `now_ns`, until the slice is over.
    void expire(uint64_t now_ns);
    // The link accepts frames again. Frames that the slice leaves over are due immediately.
    void link_ready();
    // Drops all held frames.
    void clear();

    const FaultCounts &counts() const { return counts_; }
    size_t held_frames() const { return held_frames_; }
    size_t held_bytes() const { return held_bytes_; }

private:
    using Bytes = std::vector<uint8_t>;

    struct LiveRule {
        FaultRule rule;
        std::array<uint64_t, 2> selected{};   // by direction
        uint64_t done = 0;
    };

    // Random numbers for one frame and one rule.
    class Dice {
    public:
        explicit Dice(uint64_t start = 0) : state_(start) {}
        uint64_t below(uint64_t n);

    private:
        uint64_t state_;
    };

    struct Frame {
        std::span<const iovec> parts;
        Bytes own{};                // the bytes, if they differ from `parts`
        FrameMarks marks{};
        size_t rule = 0;            // the next one
        bool waits = false;
        uint64_t wait_ns = 0;
        uint32_t by = 0;            // or until this number of other frames has been sent
    };

    // The time, or 0 if the frame waits for the link, and a unique number.
    using Place = std::pair<uint64_t, uint64_t>;
    struct Held {
        Bytes bytes;
        uint64_t until = 0;         // or until the lane has seen this number of frames; 0: time only
    };
    // One direction.
    struct Lane {
        explicit Lane(Direction direction) : direction(direction) {}
        Direction direction;
        uint64_t seen = 0;
        bool blocked = false;       // the link accepts no frame
        std::map<Place, Held> held;
        std::set<std::pair<uint64_t, Place>> overtaken;   // the entries of `held` that wait for frames
    };

    void carry(Lane &lane, std::span<const iovec> parts);
    bool apply_rules(const Lane &lane, Frame &frame, std::vector<Frame> &copies);
    bool picks(LiveRule &live, const Frame &frame, Direction direction, Dice &dice) const;
    bool apply(const FaultRule &rule, Frame &frame, std::vector<Frame> &copies, Dice &dice);
    bool duplicate(const FaultRule &rule, Frame &frame, std::vector<Frame> &copies, Dice &dice);
    bool delay(const FaultRule &rule, Frame &frame, Dice &dice);
    bool corrupt(const FaultRule &rule, Frame &frame, Dice &dice);
    bool mark(Frame &frame);
    bool truncate(const FaultRule &rule, Frame &frame, Dice &dice);
    static uint64_t wait_ns(const FaultRule &rule, Dice &dice);
    static Bytes &own(Frame &frame);
    void pass(Lane &lane, Frame &frame);
    bool emit(Lane &lane, const Frame &frame);
    bool emit(Lane &lane, const Bytes &bytes);
    bool emit(Lane &lane, std::span<const iovec> parts);
    void hold(Lane &lane, const Place &place, Bytes &bytes, uint64_t until);
    bool waits_for_link() const;
    void release(Lane &lane, std::map<Place, Held>::iterator which);

    Ends &ends_;
    Work &work_;
    uint64_t seed_ = 0;
    std::vector<LiveRule> rules_;
    Lane tx_{Direction::Tx}, rx_{Direction::Rx};
    FaultCounts counts_;
    size_t held_frames_ = 0, held_bytes_ = 0;
    uint64_t next_place_ = 0;
};

}  // namespace hghca
