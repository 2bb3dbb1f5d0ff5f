// SPDX-License-Identifier: GPL-2.0-or-later
// The RDMA loopback controller (docs/reference/loopback.rst): one send queue and one completion queue, whose
// transfers go through a header, a FIFO and a receiver back to memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <loopback_hw.h>

namespace loopback {

using Header = std::array<uint8_t, size_t(4) * LOOPBACK_HEADER_BEATS>;

// What the controller needs of the machine. No method may throw.
class Host {
public:
    virtual ~Host() = default;
    // False: no memory there, or not all of it; a part may have been read or written.
    virtual bool read(uint64_t address, std::span<uint8_t> bytes) = 0;
    virtual bool write(uint64_t address, std::span<const uint8_t> bytes) = 0;
    virtual void set_interrupt(bool asserted) = 0;
    // A fragment on its way, with its header.
    virtual void trace(const Header &header) = 0;
};

struct Config {
    uint32_t extensions = 0;   // LOOPBACK_EXT_* that the device has
    // The receiver writes a fragment only after the completion of its transfer, as it may do without PLACED.
    bool late_receiver = false;
};

// Counters since the start of the device: name, meaning. They outlive a reset.
#define LOOPBACK_COUNTERS(X)                                                          \
    X(doorbells, "writes to SQ_TAIL and SQ_DOORBELL")                                 \
    X(descriptors, "descriptors read")                                                \
    X(fragments, "fragments sent")                                                    \
    X(bytes, "bytes of payload sent")                                                 \
    X(empty, "transfers of 0 bytes")                                                  \
    X(discarded, "fragments whose opcode is no RDMA WRITE")                           \
    X(dma_errors, "reads and writes of memory that is not there")                     \
    X(cq_overruns, "completions written over one that CQ_HEAD had not passed")        \
    X(bad_sizes, "starts with a size below 2, or with SQ_TAIL at SQ_SIZE or above")   \
    X(timeouts, "transfers that ended by time-out")

struct Counters {
#define LOOPBACK_COUNTER_FIELD(name, text) uint64_t name = 0;
    LOOPBACK_COUNTERS(LOOPBACK_COUNTER_FIELD)
#undef LOOPBACK_COUNTER_FIELD
};

// It allocates nothing after its construction, and no method throws.
class Controller {
public:
    Controller(Host &host, const Config &config) : host_(host), config_(config) {}

    uint32_t read(uint32_t offset) const;
    void write(uint32_t offset, uint32_t value);
    // Goes on with what there is to do, at most `steps` steps; each moves at most LOOPBACK_BLOCK_SIZE bytes. True: there
    // is more to do.
    bool run(unsigned steps);
    void reset();
    bool has_work() const;
    // A fault for tests: while the data mover stalls, no payload is moved. A reset does not end that.
    void stall(bool stalled) { stalled_ = stalled; }
    // The transfer in hand waits, and ends with time_out(). Who calls it has a clock; the controller has none.
    bool awaits_time_out() const { return is_stuck() && has(LOOPBACK_EXT_CHECKS); }
    void time_out();
    const Counters &counters() const { return counters_; }

private:
    // The states that 001 names and that are visible between two steps.
    enum class State : uint8_t { Idle = 0, Send = 5, WriteCompletion = 7 };

    struct Transfer {
        uint32_t id, length, remaining, offset;
        uint8_t opcode, status;
        uint64_t source, destination;
        std::array<uint32_t, 4> btt;
        uint64_t local, remote;   // as the descriptor has them
    };
    struct Fragment {
        Header header;
        uint32_t length;
        std::array<uint8_t, LOOPBACK_BLOCK_SIZE> bytes;

        std::span<uint8_t> payload() { return std::span(bytes).first(length); }
        std::span<const uint8_t> payload() const { return std::span(bytes).first(length); }
    };
    // A late receiver holds so many fragments; with more, the FIFO passes the oldest on.
    static constexpr size_t kFifoFragments = 16;

    uint32_t &at(uint32_t offset) { return registers_[offset / 4]; }
    uint32_t at(uint32_t offset) const { return registers_[offset / 4]; }
    bool has(loopback_extension extension) const { return enabled_ & extension; }
    bool enabled() const { return at(LOOPBACK_CONTROL) & LOOPBACK_CONTROL_ENABLE; }
    bool is_stuck() const { return stalled_ && state_ == State::Send; }
    bool is_ready() const;
    bool cq_is_full() const;
    bool is_asked_to_start() const { return enabled() && at(LOOPBACK_SQ_HEAD) != at(LOOPBACK_SQ_TAIL); }
    bool sizes_are_good() const;
    bool refuses_sizes() const;
    uint64_t address(uint64_t base, uint64_t offset) const;
    void step();
    void fetch();
    void send_fragment();
    void make_header(Header &header, uint32_t length) const;
    Fragment &free_slot();
    void receive(const Fragment &fragment);
    void receive_oldest();
    void receive_all();
    void complete();
    void count_unread();
    void move_cq_head(uint32_t head);
    void update_interrupt();
    static uint32_t next(uint32_t index, uint32_t size) { return index + 1 == size ? 0 : (index + 1) & 0xffff; }
    // The entries from one index of a queue up to another one; by next(), a size of 0 is one of 65,536.
    static uint32_t distance(uint32_t from, uint32_t to, uint32_t size)
    {
        const uint32_t entries = size ? size : 0x10000;
        return (to % entries + entries - from % entries) % entries;
    }

    Host &host_;
    const Config config_;
    std::array<uint32_t, LOOPBACK_APERTURE / 4> registers_{};
    uint32_t enabled_ = 0;   // extensions
    State state_ = State::Idle;
    Transfer transfer_{};
    std::array<Fragment, kFifoFragments> fifo_{};
    size_t oldest_ = 0, waiting_ = 0;   // fragments in the FIFO
    uint32_t unread_ = 0;   // entries of the CQ from CQ_HEAD on whose completions software has not passed
    bool stalled_ = false;
    Counters counters_;
};

}  // namespace loopback
