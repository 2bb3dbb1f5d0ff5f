// SPDX-License-Identifier: GPL-2.0-or-later
// An ERNIC or ETRNIC with one connection, whose peer is the test itself.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ernic.h"
#include "network.h"

namespace hghca::test::ernic_rig {

constexpr std::array<uint8_t, 6> kMac = {0x02, 0, 0, 0, 0, 0x01}, kPeerMac = {0x02, 0, 0, 0, 0, 0x02};
constexpr uint32_t kIp = 0xc0a80001, kPeerIp = 0xc0a80002;   // 192.168.0.1 and 192.168.0.2
constexpr uint32_t kQpn = 5, kPeerQpn = 0x123456;
constexpr uint32_t kFirstPsn = 0x300;
constexpr uint16_t kDepth = 8;
constexpr uint32_t kSlotBytes = 1024;

inline ernic::Config etrnic(uint32_t qps = 128)
{
    ernic::Config config;
    config.personality = ernic::Personality::Etrnic;
    config.qps = qps;
    return config;
}

inline void put(Frame &f, size_t at, uint8_t value) { f.at(at) = value; }
inline std::vector<uint8_t> bytes(size_t n) { return std::vector<uint8_t>(n, 0x5a); }
// RETH: address, R_Key, length.
inline std::vector<uint8_t> reth(uint32_t rkey, uint32_t length)
{
    std::vector<uint8_t> r(16);
    r[4] = 0x10;
    for (unsigned i = 0; i < 4; i++) {
        r[8 + i] = uint8_t(rkey >> (24 - 8 * i));
        r[12 + i] = uint8_t(length >> (24 - 8 * i));
    }
    return r;
}

// A device with one QP to a peer, which is the test itself.
class Rig {
public:
    explicit Rig(const ernic::Config &config = {}, uint32_t conf = 0x2c)
        : host(4u << 20), driver(host, host.alloc(Ernic::kErrorBytes), config), buffer(host.alloc(1 << 16))
    {
        QpAttributes a{};
        a.mtu = 1024;
        a.pd = 9;
        a.remote_qpn = Qpn(kPeerQpn);
        a.ack_timeout = 14;
        a.retry_count = a.rnr_retry = 2;
        a.min_rnr_timer = 1;
        a.path.smac = kMac;
        a.path.dmac = kPeerMac;
        a.path.sip = kIp;
        a.path.dip = kPeerIp;
        queues = {host.alloc(kDepth * 64), host.alloc(kDepth * 4), host.alloc(kDepth * kSlotBytes), kDepth, kDepth,
                  kSlotBytes, conf};
        driver.connect(kQpn, a, queues, 0x100, kFirstPsn);
    }

    // A packet of the peer over IPv4, with its ICRC.
    static Frame packet(uint8_t opcode, uint32_t psn, std::vector<uint8_t> payload = std::vector<uint8_t>(64, 0xaa),
                        const std::vector<uint8_t> &extension = {})
    {
        const auto pad = uint8_t(-payload.size() & 3);
        payload.resize(payload.size() + pad);
        const size_t udp = 8 + 12 + extension.size() + payload.size() + 4;
        Frame f(kMac.begin(), kMac.end());
        f.insert(f.end(), kPeerMac.begin(), kPeerMac.end());
        auto put16 = [&f](size_t value) {
            f.push_back(uint8_t(value >> 8));
            f.push_back(uint8_t(value));
        };
        auto put32 = [&](uint32_t value) {
            put16(value >> 16);
            put16(value & 0xffff);
        };
        put16(0x0800);
        put16(0x4500);
        put16(20 + udp);
        put32(0x00004000);   // don't fragment
        put16(0x4011);       // UDP
        put16(0);
        put32(kPeerIp);
        put32(kIp);
        put16(0xc000);
        put16(4791);
        put16(udp);
        put16(0);
        f.push_back(opcode);
        f.push_back(uint8_t(pad << 4));
        put16(0xffff);
        put32(kQpn);
        put32(psn | 1u << 31);
        f.insert(f.end(), extension.begin(), extension.end());
        f.insert(f.end(), payload.begin(), payload.end());
        put32(0);
        seal(f);
        return f;
    }
    // A SEND ONLY.
    static Frame send(uint32_t psn = kFirstPsn) { return packet(0x04, psn); }
    void receive(Frame frame)
    {
        const iovec part{frame.data(), frame.size()};
        driver.receive({&part, 1});
        while (driver.has_work())
            driver.run();
    }
    // Has the peer acknowledge so far.
    void acknowledge(uint32_t psn, uint8_t syndrome = 0x1f)
    {
        receive(packet(0x11, psn, {}, {syndrome, 0, 0, 0}));
    }
    void post(uint8_t opcode, uint64_t laddr, uint32_t length, uint64_t roffset = 0, uint32_t rtag = 0)
    {
        ErnicWqe wqe{};
        wqe.wrid = uint16_t(0x700 + tail);
        wqe.opcode = opcode;
        wqe.laddr = laddr;
        wqe.length = length;
        wqe.roffset = roffset;
        wqe.rtag = rtag;
        for (unsigned i = 0; i < sizeof(wqe.sdata); i++)
            wqe.sdata[i] = uint8_t(0x30 + i);
        std::memcpy(host.at(queues.sqba + tail % kDepth * 64u), &wqe, sizeof(wqe));
        tail++;
        driver.write_sqpi(kQpn, uint16_t((tail - 1) % kDepth + 1));
        while (driver.has_work())
            driver.run();
    }
    // Of the last entry in the error buffer.
    uint32_t syndrome()
    {
        const uint32_t pointer = driver.read(Ernic::kErrorBufferPointer);
        uint32_t word;
        std::memcpy(&word, host.at(error_buffer + (pointer + 7) % 8 * 256), sizeof(word));
        return word;
    }
    // Eight error buffers of 256 bytes each; `all`: for each packet that is invalid.
    void open_error_buffer(bool all = true)
    {
        error_buffer = host.alloc(8 * 256);
        driver.write(Ernic::kErrorBuffer, uint32_t(error_buffer));
        driver.write(Ernic::kErrorBufferSize, 8 | 256 << 16);
        if (all)
            driver.write(Ernic::kConf, driver.read(Ernic::kConf) | 1 << 5);
    }
    std::vector<uint8_t> slot(unsigned n, size_t bytes)
    {
        const uint8_t *at = host.at(queues.rqba + n * kSlotBytes);
        return {at, at + bytes};
    }
    uint32_t status() { return driver.read_qp(kQpn, Ernic::kStatus); }

    FakeHost host;
    Ernic driver;
    uint64_t buffer, error_buffer = 0;
    Ernic::Queues queues{};
    uint16_t tail = 0;
};

}  // namespace hghca::test::ernic_rig
