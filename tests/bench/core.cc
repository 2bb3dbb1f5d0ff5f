// SPDX-License-Identifier: GPL-2.0-or-later
// The device core alone on one CPU: no guest, no QEMU, no link but a call from one device into the other. Each packet is
// made, with its ICRC, and received, with its ICRC checked. Beside it the limit of what copies messages and makes ICRCs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "verbs.h"
#include "wire/icrc.h"

namespace hghca::test {
namespace {

constexpr uint32_t kMtuCode4096 = 5;
constexpr uint32_t kBuffer = 8u << 20;

// Two devices. A frame that one sends is received by the other before send_frame() returns, as QEMU's net layer does it.
class Link {
public:
    explicit Link(const TestDriver::Layout &layout = {}, size_t memory = 96u << 20, uint32_t cache_entries = 0)
        : a(1, cache_entries, kFullCaps, layout, memory), b(2, cache_entries, kFullCaps, layout, memory)
    {
        connect(a, b);
        connect(b, a);
    }
    // Until no device has work; time stands still.
    void run()
    {
        while (a.device.has_work() || b.device.has_work()) {
            a.device.run();
            b.device.run();
        }
    }

    Node a, b;

private:
    static void connect(Node &from, Node &to)
    {
        from.host.record_dirty = false;
        from.host.on_parts = [&to](std::span<const iovec> parts) { to.device.receive(parts); };
    }
};

// Ends the benchmark unless `count` work requests have succeeded.
bool reap(benchmark::State &state, Endpoint &end, uint64_t count)
{
    hghca_cqe cqe;
    for (uint64_t n = 0; n < count; n++) {
        if (!end.node.driver.poll(end.cq, cqe) || cqe.opcode == HGHCA_OPCODE_INVALID) {
            state.SkipWithError("a work request has not succeeded");
            return false;
        }
    }
    return true;
}

Wqe request(uint8_t opcode, Pair &pair, uint32_t bytes)
{
    Wqe wqe(opcode, HGHCA_WQE_CQ_UPDATE);
    if (opcode != HGHCA_OPCODE_SEND)
        wqe.raddr(pair.b.va(0), pair.b.buffer.key);
    return wqe.data(pair.a.sge(0, bytes));
}

// Messages of one size on one connection, kBatch a doorbell.
void messages(benchmark::State &state, uint8_t opcode)
{
    constexpr unsigned kBatch = 16;
    const auto bytes = uint32_t(state.range(0));
    Link link;
    Endpoint::Options options;
    options.mtu_code = kMtuCode4096;
    options.buffer_bytes = kBuffer;
    Pair pair(link.a, link.b, options);
    const std::vector<Wqe> batch(kBatch, request(opcode, pair, bytes));
    for (auto _ : state) {
        if (opcode == HGHCA_OPCODE_SEND)
            for (unsigned i = 0; i < kBatch; i++)
                pair.b.post_recv(pair.b.sge(0, bytes));
        pair.a.post(batch);
        link.run();
        if (!reap(state, pair.a, kBatch) || (opcode == HGHCA_OPCODE_SEND && !reap(state, pair.b, kBatch)))
            return;
    }
    state.SetItemsProcessed(int64_t(state.iterations()) * kBatch);
    state.SetBytesProcessed(int64_t(state.iterations()) * kBatch * bytes);
}

void write(benchmark::State &state) { messages(state, HGHCA_OPCODE_RDMA_WRITE); }
void read(benchmark::State &state) { messages(state, HGHCA_OPCODE_RDMA_READ); }
void send(benchmark::State &state) { messages(state, HGHCA_OPCODE_SEND); }

// What nothing can do without that copies messages and makes their ICRCs: packets are copied out of the message while the
// CRC is computed, and then to where they go.
void copy_crc(benchmark::State &state)
{
    const auto bytes = size_t(state.range(0));
    std::vector<uint8_t> from(bytes, 1), packet(4096), to(bytes);
    for (auto _ : state) {
        for (size_t at = 0; at < bytes; at += packet.size()) {
            const size_t n = std::min(packet.size(), bytes - at);
            benchmark::DoNotOptimize(crc32_copy(kCrcStart, packet.data(), &from[at], n));
            std::memcpy(&to[at], packet.data(), n);
            benchmark::ClobberMemory();
        }
    }
    state.SetItemsProcessed(int64_t(state.iterations()));
    state.SetBytesProcessed(int64_t(state.iterations()) * int64_t(bytes));
}

// ---- many QPs

TestDriver::Layout layout_of(uint32_t qps)
{
    TestDriver::Layout layout;
    layout.log_qps = layout.log_mpts = std::bit_width(qps + 64);
    layout.cqc = 2048ull << layout.log_qps;
    layout.eqc = layout.cqc + (1 << 20);
    layout.srqc = layout.eqc + (1 << 20);
    layout.mcg = layout.srqc + (2 << 20);
    layout.mtt = std::max<uint64_t>(1 << 20, 64ull << layout.log_mpts);
    return layout;
}

// WRITEs of 64 bytes on one QP after the other, a doorbell for each: range(0) QPs, of which the device keeps range(1) in
// its cache; 0: all.
void write_in_turn(benchmark::State &state)
{
    constexpr unsigned kBatch = 64, kWqes = 4, kStrideLog = 7;
    const auto qps = uint32_t(state.range(0)), cached = uint32_t(state.range(1));
    Link link(layout_of(qps), (size_t(16) << 10) * qps + (64u << 20), cached);
    Endpoint::Options options;
    options.mtu_code = kMtuCode4096;
    options.buffer_bytes = 4096;
    Pair pair(link.a, link.b, options);   // for its CQs and buffers
    const Wqe wqe = request(HGHCA_OPCODE_RDMA_WRITE, pair, 64);
    const Gid gid_a = Node::gid_of(1, 0), gid_b = Node::gid_of(2, 0);
    std::vector<TestDriver::Qp> lines;
    for (uint32_t n = 0; n < qps; n++) {
        TestDriver &a = link.a.driver, &b = link.b.driver;
        const TestDriver::Qp from = a.create_qp(HGHCA_QP_ST_RC, pair.a.cq, pair.a.cq, kWqes, 0, kStrideLog);
        const TestDriver::Qp to = b.create_qp(HGHCA_QP_ST_RC, pair.b.cq, pair.b.cq, kWqes, 0, kStrideLog);
        TestDriver::Peer there = Endpoint::peer_of(pair.a, pair.b, gid_b), here = Endpoint::peer_of(pair.b, pair.a, gid_a);
        there.qpn = to.qpn;
        here.qpn = from.qpn;
        a.rc_to_rts(from, there, 0, 0, kMtuCode4096);
        b.rc_to_rts(to, here, 0, 0, kMtuCode4096);
        for (unsigned slot = 0; slot < kWqes; slot++)
            std::memcpy(link.a.host.at(from.sq.dma + (slot << kStrideLog)), wqe.bytes.data(), wqe.bytes.size());
        lines.push_back(from);
    }
    uint64_t posted = 0;
    for (auto _ : state) {
        for (unsigned n = 0; n < kBatch; n++, posted++)
            link.a.driver.ring_sq(lines[posted % qps], uint16_t(posted / qps), wqe.opcode, uint8_t(wqe.bytes.size() / 16), 1);
        link.run();
        if (!reap(state, pair.a, kBatch))
            return;
    }
    state.SetItemsProcessed(int64_t(state.iterations()) * kBatch);
    state.SetBytesProcessed(int64_t(state.iterations()) * kBatch * 64);
}

}  // namespace

#define HGHCA_MESSAGES(figure) BENCHMARK(figure)->Arg(64)->Arg(4096)->Arg(64 << 10)->Arg(1 << 20)
HGHCA_MESSAGES(write);
HGHCA_MESSAGES(read);
HGHCA_MESSAGES(send);
BENCHMARK(write_in_turn)->Args({100, 0})->Args({10000, 0})->Args({65000, 0});
BENCHMARK(write_in_turn)->Args({1000, 900})->Args({1000, 990})->Args({1000, 1000});
BENCHMARK(copy_crc)->RangeMultiplier(4)->Range(64, 4 << 20);

}  // namespace hghca::test

BENCHMARK_MAIN();
