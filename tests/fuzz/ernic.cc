// SPDX-License-Identifier: GPL-2.0-or-later
// A guest and a peer that mean harm to the ERNIC and the ETRNIC: any register at any time, any WQE, and any packet with a
// good ICRC.
#include <cstring>
#include <vector>

#include "ernic/adapter.h"
#include "network.h"
#include "script.h"

namespace hghca::fuzz {
namespace {

using test::Frame;

constexpr uint32_t kMemory = 1 << 20, kSq = 0x1000, kCq = 0x3000, kRq = 0x10000, kErrors = 0x4000, kData = 0x80000;
constexpr uint32_t kQps = 8, kQpn = 2, kDepth = 8, kStep = 1'000'000;
// A packet takes as many pages as its MTU at most, and a slice has 32 units.
constexpr unsigned kMostAccesses = 20'000;

// Memory from address 0 on, and a link that takes each second frame at once.
class Machine : public Host {
public:
    uint8_t *map(uint64_t dma, uint64_t len, bool) override { return is_there(dma, len) ? &memory[dma] : nullptr; }
    void dirty(uint64_t, uint64_t) override {}
    bool read(uint64_t dma, void *buffer, uint64_t len) override
    {
        accesses++;
        if (!is_there(dma, len))
            return false;
        std::memcpy(buffer, &memory[dma], len);
        return true;
    }
    bool write(uint64_t dma, const void *buffer, uint64_t len) override
    {
        accesses++;
        if (!is_there(dma, len))
            return false;
        std::memcpy(&memory[dma], buffer, len);
        return true;
    }
    bool update(uint64_t, Change, void *) override { return false; }
    void raise_vector(unsigned vector) override { require(!vector, "there is one interrupt"); }
    void lower_interrupt() override {}
    FrameSent send_frame(std::span<const iovec> parts, Icrc) override
    {
        size_t bytes = 0;
        for (const iovec &part : parts)
            bytes += part.iov_len;
        require(bytes >= 14 && bytes <= 5000, "a frame has a length that frames have");
        sent++;
        return sent % 2 ? FrameSent::Yes : FrameSent::LinkFull;
    }
    void set_timer(uint64_t deadline) override { deadline_ns = deadline; }
    uint64_t now_ns() override { return clock_ns; }
    uint64_t random() override { return 4; }
    void schedule() override {}

    std::vector<uint8_t> memory = std::vector<uint8_t>(kMemory);
    uint64_t clock_ns = 1, deadline_ns = UINT64_MAX;
    unsigned accesses = 0, sent = 0;

private:
    static bool is_there(uint64_t dma, uint64_t len) { return dma < kMemory && len <= kMemory - dma; }
};

class Script {
public:
    explicit Script(Record first) : device_(machine_, config_of(first))
    {
        set_up(first);
    }
    void step(Record r)
    {
        machine_.accesses = 0;
        switch (r.u8() % 9) {
        case 0:
            device_.write(r.u32() % 0x40000 & ~3u, r.u32(), 4);
            break;
        case 1:   // of the QP, or a global one
            device_.write(globals() + (r.u8() & 1 ? 0x300u : 0u) + r.below(128) * 4, r.u32(), 4);
            break;
        case 2:
        case 3:
            post(r);
            break;
        case 4:
        case 5:
            receive(r);
            break;
        case 6:
            for (uint32_t at = r.u32() % kMemory, n = r.u8() % 16; n && at < kMemory; n--)
                machine_.memory[at++] = r.u8();
            break;
        case 7:
            machine_.clock_ns += uint64_t(r.u8()) * kStep;
            device_.timer();
            device_.link_ready();
            break;
        default:
            if (r.one_in(8))
                device_.reset();
            device_.write(r.u32() % 0x40000, r.u32(), 1u << r.below(4));
        }
        device_.run();
        require(machine_.accesses <= kMostAccesses, "an entry is bounded");
        for (uint32_t offset = 0; offset < 0x400; offset += 4)
            require(device_.read(globals() + offset, 4) != UINT32_MAX || offset, "the device has not failed");
        require(device_.read(globals(), 4) != UINT32_MAX, "an invariant holds");
    }
    void end()
    {
        device_.reset();
        require(!device_.has_work(), "a device that is reset is idle");
        machine_.accesses = machine_.sent = 0;
        device_.run();
        device_.timer();
        require(!machine_.accesses && !machine_.sent, "and neither sends nor does DMA");
    }

private:
    static ernic::Config config_of(Record &first)
    {
        const uint8_t how = first.u8();
        return {.personality = how & 1 ? ernic::Personality::Etrnic : ernic::Personality::Ernic,
                .qps = kQps,
                .extensions = how >> 1 & 3u,
                .ethernet = bool(how >> 3 & 1),
                .slice_work = 32};
    }
    uint32_t globals() const { return device_.registers.is_ernic() ? 0x20000 : 0; }
    void set(uint32_t offset, uint32_t value) { device_.write(globals() + offset, value, 4); }
    void set_qp(uint32_t qpn, uint32_t offset, uint32_t value) { set(0x200 + (qpn - 1) * 0x100 + offset, value); }
    void set_up(Record &first)
    {
        const uint32_t global[][2] = {{0x14, 0x0200},     {0x10, 1},        {0x70, 0x0a000001},
                                      {0x60, kErrors},    {0x68, 4 | 256 << 16}, {0x78, kErrors + 0x400},
                                      {0x80, 16},         {0x88, kErrors + 0x800}, {0x90, 16},
                                      {0xa0, kData},      {0xa8, 16 | 4096u << 16}, {0x180, 0xff},
                                      {0x1e4, kErrors + 0xc00}, {0x1ec, 8}, {0x1e0, first.u8()},
                                      {0x00, 1 | 1 << 5 | kQps << 8}};
        for (const auto &[offset, value] : global)
            set(offset, value);
        for (uint32_t qpn = 1; qpn <= 3; qpn++) {
            const uint32_t own[][2] = {{0x04, 64 << 8 | 0xffffu << 16}, {0x08, kRq + qpn * 0x4000}, {0x10, kSq + qpn * 0x200},
                                       {0x18, kCq + qpn * 0x20},        {0x3c, kDepth | kDepth << 16}, {0x40, 0},
                                       {0x44, 0xffffff},                {0x48, 7}, {0x4c, 10 | 1 << 8 | 1 << 11 | 1 << 16},
                                       {0x54, 0x0200},                  {0x50, 2}, {0x60, 0x0a000002}, {0xb0, 9},
                                       {0x00, 0x2d | first.u8() % 5u << 8 | 2 << 16}};
            for (const auto &[offset, value] : own)
                set_qp(qpn, offset, value);
        }
        // A region of the peer: PD 9, address 0, 64 KB.
        for (uint32_t i = 0; const uint32_t word : {9u, 0u, 0u, 0x40000u, 0u, 0x5au, 0x10000u, 2u | (first.u8() & 4u)})
            device_.write(0x300 + 4 * i++, device_.registers.is_ernic() ? word : 0, 4);
    }
    void post(Record &r)
    {
        const uint32_t qpn = 1 + r.below(3), at = globals() + 0x200 + (qpn - 1) * 0x100;
        const uint32_t tail = device_.read(at + 0x38, 4);
        const uint8_t how = r.u8();
        uint32_t words[16] = {r.u8(), how & 1 ? r.u32() % kMemory : 0x40000u, 0, how & 2 ? r.u32() : r.u16() % 5000u,
                              r.below(how & 4 ? 255 : 6), r.u16(), 0, 0x35a};
        const uint64_t slot = device_.read(at + 0x10, 4) + uint64_t(tail % kDepth) * 64;
        if (slot <= kMemory - sizeof(words))
            std::memcpy(&machine_.memory[slot], words, sizeof(words));
        device_.write(at + 0x38, how & 8 ? r.u8() : tail % kDepth + 1, 4);
        device_.write(at + 0x34, r.u8(), 4);
    }
    // From the peer to a QP, over IPv4.
    void receive(Record &r)
    {
        static constexpr uint8_t kHead[54] = {0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0, 0x45, 0, 0, 0,
                                              0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 0xc0, 0, 0x12, 0xb7};
        Frame frame(std::begin(kHead), std::end(kHead));
        const uint8_t how = r.u8();
        const uint32_t qpn = how & 1 ? kQpn : 1 + r.below(4);
        const uint32_t expected = device_.read(globals() + 0x200 + (qpn - 1) * 0x100 + (how & 2 ? 0x44 : 0x90), 4);
        const uint32_t psn = (expected + (how & 2) / 2 + uint32_t(how & 4 ? r.i8() : 0)) & 0xffffff;
        frame[42] = r.u8() % 0x20;
        frame[43] = uint8_t(how & 8 ? r.u8() : 0);
        frame[44] = frame[45] = 0xff;
        frame[49] = uint8_t(qpn);
        for (unsigned i = 0; i < 3; i++)
            frame[51 + i] = uint8_t(psn >> (16 - 8 * i));
        frame[50] = 0x80;
        if (frame[42] == 0x10 || (frame[42] >= 0x0d && frame[42] <= 0x12))
            frame.insert(frame.end(), {uint8_t(how & 16 ? r.u8() : 0x1f), 0, 0, 0});
        const uint8_t reth[16] = {0, 0, 0, 0, 0, 0, r.u8(), r.u8(), 0, 0, 3, 0x5a, 0, 0, r.u8(), r.u8()};
        if ((frame[42] >= 0x06 && frame[42] <= 0x0c && frame[42] != 0x07 && frame[42] != 0x08 && frame[42] != 0x09))
            frame.insert(frame.end(), std::begin(reth), std::end(reth));
        static constexpr uint16_t kLengths[] = {0, 4, 64, 256, 512, 1024, 2048, 4096};
        frame.resize(frame.size() + (how & 32 ? r.u16() % 4200u : kLengths[r.below(8)]), 0x5a);
        frame.resize(frame.size() + 4);
        const size_t ip = frame.size() - 14, udp = ip - 20;
        frame[16] = uint8_t(ip >> 8);
        frame[17] = uint8_t(ip);
        frame[38] = uint8_t(udp >> 8);
        frame[39] = uint8_t(udp);
        if (how & 64)
            frame[r.u8() % frame.size()] ^= uint8_t(1u << r.below(8));
        test::seal(frame);
        const iovec part{frame.data(), frame.size()};
        device_.receive({&part, 1});
    }

    Machine machine_;
    ernic::Adapter device_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return run_input<Script>(data, size);
}

}  // namespace hghca::fuzz
