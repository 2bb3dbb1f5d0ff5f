// SPDX-License-Identifier: GPL-2.0-or-later
// A world for one device: flat guest memory, a manual clock, and a record of all that comes out.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "allocations.h"
#include "host.h"
#include "jingzhao/memory.h"

namespace hghca::test {

struct Range {
    uint64_t dma;
    uint64_t length;
    bool overlaps(uint64_t at, uint64_t len) const { return at < dma + length && dma < at + len; }
};

// Guest memory is [kBase, kBase + size); nothing else can be reached by DMA.
class FakeHost : public Host {
public:
    static constexpr uint64_t kBase = 0x40000000;
    static constexpr uint64_t kPage = 4096;
    static constexpr uint64_t kStart = 1000000;   // of the clock

    explicit FakeHost(size_t size = 64u << 20, size_t on_device_bytes = 64 << 10)
        : ram_(std::make_shared<Ram>(size)), on_device_(on_device_bytes)
    {
    }
    // Of another device in the same machine.
    FakeHost(const FakeHost &other, size_t on_device_bytes) : ram_(other.ram_), on_device_(on_device_bytes) {}
    ~FakeHost() override = default;
    FakeHost(const FakeHost &) = delete;
    FakeHost &operator=(const FakeHost &) = delete;

    // ---- for tests: memory
    // The next free, zeroed memory. Never given back.
    uint64_t alloc(uint64_t length, uint64_t align = kPage)
    {
        uint64_t &next = ram_->next;
        next = (next + align - 1) & ~(align - 1);
        uint64_t dma = kBase + next;
        if (next + length > ram_->size)
            throw std::bad_alloc();
        next += length;
        return dma;
    }
    // For a world that is used again: all memory is zeros, what was allocated behind `mark`
    // is free, and time, faults and what came out are as at the start.
    uint64_t mark() const { return ram_->next; }
    void rewind(uint64_t mark)
    {
        std::memset(ram_->bytes, 0, ram_->size);
        std::fill(on_device_.begin(), on_device_.end(), uint8_t(0));
        ram_->next = mark;
        copy_only = link_full = false;
        meanwhile = nullptr;
        after_read = nullptr;
        bus_master = true;
        unmappable.clear();
        holes.clear();
        read_only.clear();
        vectors.clear();
        frames.clear();
        dirtied.clear();
        deadline_ns = UINT64_MAX;
        clock_ns = kStart;
        random_state = 1;
    }
    uint8_t *at(uint64_t dma) { return ram_->bytes + (dma - kBase); }
    template <class T>
    T *as(uint64_t dma)
    {
        return reinterpret_cast<T *>(at(dma));
    }
    uint64_t end() const { return kBase + ram_->size; }

    // The memory on the device, to give it in its Config.
    DeviceMemory on_device() { return {on_device_.data(), on_device_.size()}; }

    // ---- for tests: faults
    bool copy_only = false;               // map() refuses everything
    bool bus_master = true;               // false: every DMA fails
    std::vector<Range> unmappable;        // map() refuses these
    std::vector<Range> holes;             // nothing there at all
    std::vector<Range> read_only;         // takes no writes; read by copy
    bool link_full = false;               // send_frame() refuses
    Icrc last_icrc = Icrc::Unknown;       // of the frame that was sent last
    bool adapter_full = false;            // pass_frame() refuses
    std::function<void()> meanwhile;      // what a program does while a frame is about to leave
    std::function<void(uint64_t dma, uint64_t len)> after_read;   // ... when memory has just been read by copy

    // ---- for tests: what came out
    std::vector<unsigned> vectors;        // raised, in order
    unsigned lowered = 0;                 // calls of lower_interrupt()
    std::vector<std::vector<uint8_t>> frames;
    std::function<void(const std::vector<uint8_t> &)> on_frame;  // instead of `frames`
    std::function<void(std::span<const iovec>)> on_parts;        // instead of both: the frame where it is
    uint64_t deadline_ns = UINT64_MAX;
    uint64_t clock_ns = kStart;
    uint64_t random_state = 1;
    std::vector<std::vector<uint8_t>> passed;   // to the Ethernet adapter behind the device
    unsigned scheduled = 0;
    uint64_t writes = 0;                  // by copy
    uint64_t updates = 0;                 // calls of update() that found memory
    uint64_t maps = 0;                    // calls of map()
    std::vector<Range> dirtied;           // only when record_dirty
    bool record_dirty = false;
    bool trace_on = false;
    std::vector<std::string> traces;

    // Number of times `vector` was raised; forgets all vectors.
    size_t take_vectors(unsigned vector)
    {
        size_t n = 0;
        for (unsigned v : vectors)
            n += v == vector;
        vectors.clear();
        return n;
    }

    // ---- Host
    uint8_t *map(uint64_t dma, uint64_t len, bool) override
    {
        maps++;
        if (copy_only || !reachable(dma, len) || in(unmappable, dma, len) || in(read_only, dma, len))
            return nullptr;
        return at(dma);
    }
    void dirty(uint64_t dma, uint64_t len) override
    {
        const Outside outside;
        if (record_dirty)
            dirtied.push_back({dma, len});
    }
    bool read(uint64_t dma, void *buffer, uint64_t len) override
    {
        const Outside outside;
        if (!reachable(dma, len))
            return false;
        std::memcpy(buffer, at(dma), len);
        if (after_read)
            after_read(dma, len);
        return true;
    }
    bool write(uint64_t dma, const void *buffer, uint64_t len) override
    {
        const Outside outside;
        if (!reachable(dma, len) || in(read_only, dma, len))
            return false;
        std::memcpy(at(dma), buffer, len);
        writes++;
        if (record_dirty)
            dirtied.push_back({dma, len});
        return true;
    }
    bool update(uint64_t dma, Change change, void *context) override
    {
        if (!reachable(dma, sizeof(uint64_t)) || dma % sizeof(uint64_t))
            return false;
        change(as<uint64_t>(dma), context);
        const Outside outside;
        updates++;
        if (record_dirty)
            dirtied.push_back({dma, sizeof(uint64_t)});
        return true;
    }
    void raise_vector(unsigned vector) override
    {
        const Outside outside;
        vectors.push_back(vector);
    }
    void lower_interrupt() override { lowered++; }
    FrameSent send_frame(std::span<const iovec> parts, Icrc icrc) override
    {
        const Outside outside;
        if (link_full)
            return FrameSent::LinkFull;
        last_icrc = icrc;
        check_apart(parts);
        if (meanwhile)
            meanwhile();
        if (on_parts) {
            on_parts(parts);
            return FrameSent::Yes;
        }
        size_t length = 0;
        for (const iovec &part : parts)
            length += part.iov_len;
        std::vector<uint8_t> frame(length);
        for (const iovec &part : parts) {
            std::memcpy(frame.data() + frame.size() - length, part.iov_base, part.iov_len);
            length -= part.iov_len;
        }
        if (on_frame)
            on_frame(frame);
        else
            frames.push_back(std::move(frame));
        return FrameSent::Yes;
    }
    bool pass_frame(std::span<const iovec> parts) override
    {
        const Outside outside;
        if (adapter_full)
            return false;
        auto &frame = passed.emplace_back();
        for (const iovec &part : parts) {
            const auto *bytes = static_cast<const uint8_t *>(part.iov_base);
            frame.insert(frame.end(), bytes, bytes + part.iov_len);
        }
        return true;
    }
    void set_timer(uint64_t deadline) override { deadline_ns = deadline; }
    uint64_t now_ns() override { return clock_ns; }
    uint64_t random() override
    {
        uint64_t z = (random_state += 0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    void schedule() override { scheduled++; }
    bool tracing() override { return trace_on; }
    void trace(Trace, const char *text) override
    {
        const Outside outside;
        traces.emplace_back(text);
    }

private:
    struct Ram {
        explicit Ram(size_t size) : size(size)
        {
            void *ram = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (ram == MAP_FAILED)
                throw std::bad_alloc();
            bytes = static_cast<uint8_t *>(ram);
        }
        ~Ram() { munmap(bytes, size); }
        Ram(const Ram &) = delete;
        Ram &operator=(const Ram &) = delete;

        uint8_t *bytes;
        size_t size;
        uint64_t next = 0;
    };
    // What leaves is a copy: who receives it reads it more than once, while programs write to guest memory.
    void check_apart(std::span<const iovec> parts) const
    {
        for (const iovec &part : parts) {
            const auto *bytes = static_cast<const uint8_t *>(part.iov_base);
            if (bytes >= ram_->bytes && bytes < ram_->bytes + ram_->size) {
                std::fputs("broken: a frame that leaves is not in guest memory\n", stderr);
                std::abort();
            }
        }
    }
    bool reachable(uint64_t dma, uint64_t len) const
    {
        return bus_master && dma >= kBase && len <= ram_->size && dma - kBase <= ram_->size - len &&
               !in(holes, dma, len);
    }
    static bool in(const std::vector<Range> &ranges, uint64_t dma, uint64_t len)
    {
        for (const Range &r : ranges)
            if (r.overlaps(dma, len))
                return true;
        return false;
    }

    std::shared_ptr<Ram> ram_;
    std::vector<uint8_t> on_device_;
};

}  // namespace hghca::test
