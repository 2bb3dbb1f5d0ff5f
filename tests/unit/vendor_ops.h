// SPDX-License-Identifier: GPL-2.0-or-later
// Two RSNICs whose QPs have PART, READ_POINTER and READ_CONSISTENT (docs/reference/rsnic.rst, 9). Opcodes, offsets,
// bits and statuses are literals from that page.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "verbs.h"

namespace hghca::test {

constexpr uint32_t kVendorOps = 1u << 23;
// What RSNIC has besides: section 6 names what it lacks.
constexpr uint32_t kRsnicCaps =
    HGHCA_CAP_ALL & ~(HGHCA_CAP_SRQ | HGHCA_CAP_UC | HGHCA_CAP_MEM_MGT | HGHCA_CAP_XRC | HGHCA_CAP_MULTICAST |
                      HGHCA_CAP_PLACEMENT | HGHCA_CAP_ODP | HGHCA_CAP_DEVICE_MEMORY | HGHCA_CAP_RSS |
                      HGHCA_CAP_SYNC_COMMANDS | HGHCA_CAP_STATUS_RECORD);

constexpr uint32_t kSw2hwPart = 0xe12, kHw2swPart = 0xe13, kQueryPart = 0xe14;
constexpr uint8_t kPart = 0x0d, kReadPointer = 0x15, kReadConsistent = 0x16;
constexpr uint8_t kPartFirst = 0xc0, kPartLast = 0xc2, kPointerRequest = 0xc4;
constexpr uint8_t kReadResponseOnly = 0x10, kAcknowledge = 0x11;
// Completion statuses.
constexpr unsigned kLocalLength = 0x01, kLocalOperation = 0x02, kRemoteInvalid = 0x12, kRemoteAccess = 0x13,
                   kRemoteOperation = 0x14, kRetryExceeded = 0x15;

// ---- partitions

using Mailbox = std::array<uint8_t, 4096>;

inline void put_be(Mailbox &m, size_t at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        m[at + i] = uint8_t(value >> 8 * (bytes - 1 - i));
}

inline uint32_t be32_at(const uint8_t *p)
{
    return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}

struct Region {
    uint64_t va;
    uint32_t rkey;
    uint32_t length;
};

// One region of records of 8 bytes, unless it says more.
struct Partition {
    uint32_t key = 0xabcd0005;
    uint32_t pd = TestDriver::kPd;
    uint8_t log_record = 3, log_regions = 0, key_offset = 0, key_size = 8, key_shift = 0;
    std::vector<Region> regions{};

    uint32_t index() const { return key & 0x3f; }
    size_t record() const { return size_t(1) << log_record; }
    Mailbox mailbox() const
    {
        Mailbox m{};
        put_be(m, 0x00, key, 4);
        put_be(m, 0x04, pd, 4);
        m[0x08] = log_record;
        m[0x09] = log_regions;
        m[0x0a] = key_offset;
        m[0x0b] = key_size;
        m[0x0c] = key_shift;
        for (size_t i = 0; i < regions.size(); i++) {
            put_be(m, 0x20 + 24 * i, regions[i].va, 8);
            put_be(m, 0x28 + 24 * i, regions[i].rkey, 4);
            put_be(m, 0x2c + 24 * i, regions[i].length, 4);
        }
        return m;
    }
    // Which region a record goes to, bit by bit.
    size_t region_of(const uint8_t *at) const
    {
        size_t region = 0;
        for (unsigned b = 0; b < log_regions; b++) {
            const unsigned bit = key_shift + b;
            region |= size_t(at[key_offset + bit / 8] >> bit % 8 & 1) << b;
        }
        return region;
    }
};

inline uint8_t make(Node &node, const Partition &p) { return node.driver.post(kSw2hwPart, p.mailbox(), p.index()); }

inline uint32_t filled(Node &node, uint32_t index, size_t region)
{
    Mailbox m;
    TestDriver::must(node.driver.query(kQueryPart, m, index), "QUERY_PART");
    return be32_at(&m[0x20 + 24 * region + 0x10]);
}

// ---- elements

struct PointerUnit {
    uint64_t key;
    uint32_t search;
    uint32_t reserved;
};

inline Wqe part(const Sge &s, uint32_t key) { return Wqe(kPart).raddr(0x1234567890, key).data(s); }
inline Wqe read_pointer(const Sge &to, uint64_t va, uint32_t rkey, uint64_t key, uint32_t search)
{
    return Wqe(kReadPointer).raddr(va, rkey).put(PointerUnit{le64(key), le32(search), 0}).data(to);
}
inline Wqe read_consistent(const Sge &to, uint64_t va, uint32_t rkey)
{
    return Wqe(kReadConsistent).raddr(va, rkey).data(to);
}

constexpr uint32_t kEqual = 0, kLess = 1, kGreater = 2, kNotEqual = 3;
// The word `search`: keys are at these words.
constexpr uint32_t search_for(uint32_t keys, uint32_t value, uint32_t predicate = kEqual)
{
    return keys | predicate << 16 | value << 18;
}
constexpr uint32_t kRelative = 1u << 23;
constexpr uint32_t next_at(uint32_t word) { return 1u << 29 | word << 24; }

// ---- the CRC, bit by bit

inline uint64_t slow_crc64(const uint8_t *data, size_t length)
{
    constexpr uint64_t kPolynomial = 0x42f0e1eba9ea3693;
    uint64_t crc = ~0ull;
    for (size_t i = 0; i < 8 * length; i++) {
        const uint64_t in = data[i / 8] >> i % 8 & 1;
        const bool carry = crc >> 63 ^ in;
        crc = crc << 1 ^ (carry ? kPolynomial : 0);
    }
    uint64_t reflected = 0;
    for (unsigned bit = 0; bit < 64; bit++)
        reflected |= (crc >> bit & 1) << (63 - bit);
    return ~reflected;
}

class VendorOps : public ::testing::Test {
protected:
    using Options = Endpoint::Options;

    explicit VendorOps(uint32_t cache_entries = 0, const Options &of_a = options(), const Options &of_b = options())
        : net(prepared(cache_entries), kRsnicCaps), p(net.a, net.b, of_a, of_b)
    {
        Node::profile = Profile::Full;
        net.keep_log = true;
    }
    static Options options()
    {
        Options o;
        o.vendor_ops = true;
        o.buffer_bytes = 256 << 10;
        return o;
    }
    static uint32_t prepared(uint32_t cache_entries)
    {
        Node::profile = Profile::Rsnic;
        return cache_entries;
    }

    // Posts, waits, and gives the only completion.
    static Completion done(Network &net, Endpoint &from, const Wqe &wqe)
    {
        from.post(wqe);
        net.settle();
        const auto all = from.poll_all();
        EXPECT_EQ(all.size(), 1u);
        return all.empty() ? Completion{} : all[0];
    }
    Completion done(const Wqe &wqe) { return done(net, p.a, wqe); }
    void expect_good(const Wqe &wqe, uint32_t bytes)
    {
        const Completion c = done(wqe);
        EXPECT_FALSE(c.error) << unsigned(c.syndrome);
        EXPECT_EQ(c.opcode, wqe.opcode);
        EXPECT_EQ(c.bytes, bytes);
        EXPECT_TRUE(c.is_send);
    }
    unsigned status_of(const Wqe &wqe) { return done(wqe).syndrome; }
    // Both QPs again in RTS, after one has failed.
    void connect_again()
    {
        p.~Pair();
        new (&p) Pair(net.a, net.b, options());
    }
    // Opcodes of what was sent, of both sides.
    std::vector<uint8_t> opcodes() const
    {
        std::vector<uint8_t> all;
        for (const Frame &f : net.log)
            all.push_back(View(f).opcode);
        return all;
    }

    // ---- of node b

    Region region(uint64_t offset, uint32_t length) const { return {p.b.va(offset), p.b.buffer.key, length}; }
    // Number i of a list is at 64 * i of the buffer of b.
    void put64(size_t element, unsigned word, uint64_t value)
    {
        value = le64(value);
        std::memcpy(p.b.at(64 * element + 4 * word), &value, 8);
    }
    // Elements with the keys 1000, 1001, ... at word 0, a pointer at word 2 and the next one's address at word 4.
    void make_list(size_t elements, uint64_t pointer)
    {
        for (size_t i = 0; i < elements; i++) {
            put64(i, 0, 1000 + i);
            put64(i, 2, pointer);
            put64(i, 4, i + 1 < elements ? p.b.va(64 * (i + 1)) : 0);
        }
    }
    static constexpr uint32_t kListSearch = search_for(1, 2) | next_at(4);
    // The list above in a circle.
    void make_circle(size_t elements)
    {
        make_list(elements, 0);
        put64(elements - 1, 4, p.b.va(0));
    }
    // An object of `bytes` bytes, its CRC included.
    void make_object(uint64_t offset, uint32_t bytes, uint32_t seed)
    {
        p.b.fill(offset, bytes - 8, seed);
        const uint64_t crc = le64(slow_crc64(p.b.at(offset), bytes - 8));
        std::memcpy(p.b.at(offset + bytes - 8), &crc, 8);
    }
    // PART_LAST is lost once. When it goes again, b has executed the packets before it, and `then` is called.
    void before_the_last_packet(std::function<void()> then)
    {
        net.filter = [then, sent = 0u](const Node &, Frame &f) mutable {
            if (View(f).opcode != kPartLast)
                return Fate{};
            if (++sent == 2)
                then();
            return Fate{sent > 1, 0};
        };
    }
    // The request leaves a and is brought to b, which has not had its turn yet. What a sends later goes as usual.
    void bring_request(const Wqe &wqe)
    {
        Frame request;
        net.filter = [&](const Node &, Frame &f) {
            request = f;
            return Fate{0, 0};
        };
        p.a.post(wqe);
        net.filter = nullptr;
        net.log.clear();
        Network::deliver(net.b, request);
    }

    Network net;
    Pair p;
};

}  // namespace hghca::test
