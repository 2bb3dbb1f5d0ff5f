// SPDX-License-Identifier: GPL-2.0-or-later
// A guest that means harm to the RDMA loopback controller: any register at any time, and any descriptor.
#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "loopback/controller.h"
#include "script.h"

namespace hghca::fuzz {
namespace {

constexpr uint32_t kMemory = 1 << 20, kSq = 0x1000, kCq = 0x3000;
constexpr unsigned kFifo = 16, kMostSteps = 64;

// Memory from address 0 on. It compares what is written with the headers, and with the registers.
class Machine : public loopback::Host {
public:
    bool read(uint64_t address, std::span<uint8_t> bytes) override
    {
        count(bytes.size());
        if (!is_there(address, bytes.size()))
            return false;
        std::memcpy(bytes.data(), &memory[address], bytes.size());
        return true;
    }
    bool write(uint64_t address, std::span<const uint8_t> bytes) override
    {
        count(bytes.size());
        require(is_completion(address, bytes.size()) || is_payload(address, bytes.size()),
                "only completions and payload are written");
        if (!is_there(address, bytes.size()))
            return false;
        std::memcpy(&memory[address], bytes.data(), bytes.size());
        return true;
    }
    void set_interrupt(bool asserted) override { interrupt = asserted; }
    void trace(const loopback::Header &header) override
    {
        uint32_t beats[LOOPBACK_HEADER_BEATS];
        std::memcpy(beats, header.data(), sizeof(beats));
        require(beats[0] >> 8 == 1 && beats[1] >> 24 == 0 && uint16_t(beats[5]) == 0xffff && beats[6] == 0xababab00,
                "a header has its constants");
        sent.push_back({beats[2] + beats[3], beats[4]});
        if (sent.size() > kFifo)
            sent.pop_front();
    }

    std::vector<uint8_t> memory = std::vector<uint8_t>(kMemory);
    const loopback::Controller *controller = nullptr;
    bool interrupt = false;
    unsigned accesses = 0;

private:
    struct Payload {
        uint32_t address, length;
    };

    static bool is_there(uint64_t address, size_t length) { return address < kMemory && length <= kMemory - address; }
    void count(size_t length)
    {
        accesses++;
        require(length && length <= 4096, "an access has at most a block");
    }
    // Of an address 32 bits are compared: with the extension WIDE there may be more.
    bool is_completion(uint64_t address, size_t length) const
    {
        return length == 32 && uint32_t(address) == controller->read(0x40) + controller->read(0x50) * 32;
    }
    bool is_payload(uint64_t address, size_t length)
    {
        while (!sent.empty()) {
            const Payload first = sent.front();
            sent.pop_front();
            if (first.address == uint32_t(address) && first.length == length)
                return true;
        }
        return false;
    }

    std::deque<Payload> sent;   // behind what was written last
};

class Script {
public:
    explicit Script(Record first)
        : extensions_(first.u8() & 0x3f), controller_(machine_, {extensions_, bool(first.u8() & 1)})
    {
        machine_.controller = &controller_;
        for (uint32_t offset : {0x20u, 0x40u})
            controller_.write(offset, offset == 0x20 ? kSq : kCq);
        for (uint32_t offset : {0x28u, 0x48u})
            controller_.write(offset, 16);
        controller_.write(0x10, uint32_t(first.u8()) << 16);
        controller_.write(0x00, 1);
    }
    void step(Record r)
    {
        switch (r.u8() % 8) {
        case 0:
            controller_.write(r.u8(), r.u32());
            break;
        case 1:   // a word that a driver could write
            controller_.write(r.below(32) * 4, r.u8());
            break;
        case 2:
        case 3:
            post(r);
            break;
        case 4:
            for (uint32_t at = r.u32() % kMemory, n = r.u8() % 16; n && at < kMemory; n--)
                machine_.memory[at++] = r.u8();
            break;
        case 5:
            disable_or_stall(r);
            break;
        case 6:
            reset();
            break;
        default:
            run(1 + r.u8() % kMostSteps);
        }
        for (uint32_t offset = 0; offset < 0x100; offset++)
            controller_.read(offset);
        require(!machine_.interrupt || extensions_ & LOOPBACK_EXT_IRQ, "there is an interrupt with its extension alone");
    }
    void end() { reset(); }
    void reset()
    {
        controller_.reset();
        require(!controller_.has_work() && !machine_.interrupt, "a controller that is reset is idle");
        machine_.accesses = 0;
        controller_.run(kMostSteps);
        require(!machine_.accesses, "and does no DMA");
    }

private:
    // A step is at most a fragment that is read, and one that is written; a completion empties the FIFO.
    void run(unsigned steps)
    {
        machine_.accesses = 0;
        controller_.run(steps);
        require(machine_.accesses <= 2 * steps + kFifo, "a turn is bounded");
    }
    void disable_or_stall(Record &r)
    {
        const unsigned how = r.u8() % 4;
        if (how < 2) {
            disable();
        } else if (how == 2) {
            controller_.stall(r.u8() & 1);
        } else {
            const bool awaited = controller_.awaits_time_out();
            controller_.time_out();
            require(!awaited || controller_.has_work(), "a transfer that has a time-out ends");
            require(!controller_.awaits_time_out(), "there is one time-out of a transfer");
        }
    }
    void disable()
    {
        const uint64_t before = controller_.counters().descriptors;
        controller_.write(0x00, 0);
        run(kMostSteps);
        require(controller_.counters().descriptors == before, "a controller that is disabled takes no descriptor");
    }
    void post(Record &r)
    {
        const uint32_t tail = controller_.read(0x30), size = std::max(controller_.read(0x28), 1u);
        const uint64_t at = controller_.read(0x20) + uint64_t(tail) * 64;
        const uint8_t how = r.u8();
        uint32_t words[16] = {r.u8(), how & 1 ? r.u32() : 1u, r.u32(), how & 2 ? r.u16() : 0u, r.u32(),
                              how & 4 ? r.u16() : 0u, how & 8 ? r.u32() : r.u16()};
        if (how & 16) {
            words[2] %= kMemory;
            words[4] %= kMemory;
        }
        if (at <= kMemory - sizeof(words))
            std::memcpy(&machine_.memory[at], words, sizeof(words));
        controller_.write(0x30, (tail + 1) % size);
    }

    const uint32_t extensions_;
    Machine machine_;
    loopback::Controller controller_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return run_input<Script>(data, size);
}

}  // namespace hghca::fuzz
