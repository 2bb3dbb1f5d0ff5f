// SPDX-License-Identifier: GPL-2.0-or-later
// A driver of the ERNIC for tests, written from the documents: its offsets and bits are literals, and not those of
// ernic_hw.h.
//
// Sources: seed 000, tables 2-1 (WQE), 2-2 (CQE), 2-4 (FATAL codes) and 2-7 (registers); for what personality ERNIC adds
// the public register map of PG332 v3 (docs/reference/ernic.rst).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "ernic/adapter.h"
#include "fake_host.h"

namespace hghca::test {

// Seed 000, table 2-1.
struct ErnicWqe {
    uint16_t wrid;
    uint16_t reserved0;
    uint64_t laddr __attribute__((packed));   // bus address, without a key
    uint32_t length;
    uint8_t opcode;
    uint8_t reserved1[3];
    uint64_t roffset __attribute__((packed));
    uint32_t rtag;
    uint8_t sdata[16];   // of a SEND of 1 to 16 bytes
    uint8_t imm[4];      // public: bits 415:384
    uint8_t reserved2[12];
};
static_assert(sizeof(ErnicWqe) == 64);
static_assert(offsetof(ErnicWqe, laddr) == 4 && offsetof(ErnicWqe, length) == 12 && offsetof(ErnicWqe, opcode) == 16);
static_assert(offsetof(ErnicWqe, roffset) == 20 && offsetof(ErnicWqe, rtag) == 28 && offsetof(ErnicWqe, sdata) == 32);
static_assert(offsetof(ErnicWqe, imm) == 48);

class Ernic {
public:
    static constexpr uint8_t kWrite = 0x00, kWriteImm = 0x01, kSend = 0x02, kSendImm = 0x03, kRead = 0x04,
                             kSendInv = 0x0c;
    static constexpr uint32_t kErrorCqe = 1u << 24;
    // Bits of INTSTS.
    static constexpr unsigned kValidationLine = 0, kMadLine = 1, kRnrLine = 3, kCompletionLine = 4, kOpcodeLine = 5,
                              kReceiveLine = 6, kFatalLine = 7;
    // FATAL codes.
    static constexpr uint16_t kNoFatal = 0, kSequence = 1, kLength = 2, kOpcode = 4, kRetries = 6, kNak = 0xa,
                              kAckOpcode = 0xc, kRnrRetries = 0xd, kReadSyndrome = 0x19, kReadLength = 0x1a,
                              kReadOpcode = 0x1c, kAccess = 0x20;
    // Global registers.
    static constexpr uint32_t kConf = 0x00, kAdvancedConf = 0x04, kMacLsb = 0x10, kMacMsb = 0x14, kIpv6 = 0x20,
                              kErrorBuffer = 0x60, kErrorBufferSize = 0x68, kErrorBufferPointer = 0x6c, kIpv4 = 0x70,
                              kOutErrors = 0x78, kOutErrorsSize = 0x80, kOutErrorsPointer = 0x84, kInErrors = 0x88,
                              kInErrorsSize = 0x90, kInErrorsPointer = 0x94, kDataBuffers = 0xa0,
                              kDataBuffersSize = 0xa8, kSendsAndResponses = 0x100, kAcksAndMadsIn = 0x104,
                              kIoOut = 0x108, kAcksAndMadsOut = 0x10c, kLastIn = 0x110, kLastOut = 0x114,
                              kInvalidAndDuplicates = 0x118, kNaksIn = 0x11c, kRnrsOut = 0x120, kWqeProcessor = 0x124,
                              kAllAndDropped = 0x130, kNakCountIn = 0x134, kNakCountOut = 0x138, kRetryCount = 0x140,
                              kIntEnable = 0x180, kIntStatus = 0x184, kRqBanks = 0x190, kCqBanks = 0x1b0;
    // Registers of a QP.
    static constexpr uint32_t kQpConf = 0x00, kQpAdvancedConf = 0x04, kRqBase = 0x08, kSqBase = 0x10, kCqBase = 0x18,
                              kRqDoorbell = 0x20, kCqDoorbell = 0x28, kCqHead = 0x30, kRqConsumer = 0x34,
                              kSqProducer = 0x38, kDepths = 0x3c, kSqPsn = 0x40, kLastRequest = 0x44,
                              kDestination = 0x48, kTimeout = 0x4c, kPeerMacLsb = 0x50, kPeerMacMsb = 0x54,
                              kPeerIp = 0x60, kStatSsn = 0x80, kStatMsn = 0x84, kStatus = 0x88, kCurrentSq = 0x8c,
                              kResponsePsn = 0x90, kRqAddress = 0x94, kStatWqe = 0x98, kRqProducer = 0x9c, kPd = 0xb0;

    // The rings of a QP, and where they stand.
    struct Queues {
        uint64_t sqba, cqba, rqba;
        uint16_t sq_depth, rq_depth;
        uint32_t slot_bytes;        // a multiple of 256
        uint32_t conf = 0x2c;       // bits of QPCONF besides: CQEs, both interrupts; doorbells by pins
    };
    // An entry of the protection domain table: one contiguous range. Access: 0 read, 1 write, 2 both.
    struct PdEntry {
        uint32_t pd;
        uint64_t va, bytes, base;
        uint8_t key;
        uint8_t access;
    };

    // `errors`: bus address of 256 entries of 8 bytes for each of the packet error queues, outgoing ones behind.
    static constexpr uint32_t kErrors = 256, kErrorBytes = 2 * kErrors * 8;
    Ernic(FakeHost &host, uint64_t errors, ernic::Config config = {}) : host(host), errors_(errors), device(host, config)
    {
        set_up();
    }

    // From a reset device to one that is on, with all QPs, and without addresses.
    void set_up()
    {
        write(kInErrors, uint32_t(errors_));
        write(kInErrorsSize, kErrors);
        write(kOutErrors, uint32_t(errors_ + kErrors * 8));
        write(kOutErrorsSize, kErrors);
        write(kIntEnable, 0xff);
        write(kConf, 1u | uint32_t(device.config.qps) << 8 | 0xc123u << 16);
    }
    void set_addresses(const std::array<uint8_t, 6> &mac, uint32_t ipv4)
    {
        write(kMacMsb, uint32_t(mac[0] << 8 | mac[1]));
        write(kMacLsb, low_mac(mac));
        write(kIpv4, ipv4);
    }
    // A reliable connection over IPv4, with the attributes that registers have.
    void connect(uint32_t qpn, const QpAttributes &a, const Queues &queues, uint32_t sq_psn, uint32_t rq_psn)
    {
        set_addresses(a.path.smac, a.path.sip);
        configure(qpn, a, queues, sq_psn, rq_psn);
        enable(qpn);
    }
    void configure(uint32_t qpn, const QpAttributes &a, const Queues &queues, uint32_t sq_psn, uint32_t rq_psn)
    {
        unsigned code = 0;
        while ((256u << code) < a.mtu)
            code++;
        conf_ = queues.conf | code << 8 | queues.slot_bytes / 256 << 16;
        write_qp(qpn, kQpConf, conf_);
        write_qp(qpn, kQpAdvancedConf, 64u << 8 | 0xffffu << 16);
        write_address(qpn, kSqBase, queues.sqba);
        write_address(qpn, kCqBase, queues.cqba);
        write_address(qpn, kRqBase, queues.rqba);
        write_qp(qpn, kDepths, queues.sq_depth | uint32_t(queues.rq_depth) << 16);
        write_qp(qpn, kSqPsn, sq_psn & 0xffffff);
        write_qp(qpn, kLastRequest, (rq_psn - 1) & 0xffffff);
        write_qp(qpn, kDestination, number(a.remote_qpn));
        write_qp(qpn, kTimeout, a.ack_timeout | uint32_t(a.retry_count) << 8 | uint32_t(a.rnr_retry) << 11 |
                                    uint32_t(a.min_rnr_timer) << 16);
        write_qp(qpn, kPeerMacMsb, uint32_t(a.path.dmac[0] << 8 | a.path.dmac[1]));
        write_qp(qpn, kPeerMacLsb, low_mac(a.path.dmac));
        write_qp(qpn, kPeerIp, a.path.dip);
        write_qp(qpn, kPd, a.pd);
    }
    void enable(uint32_t qpn) { write_qp(qpn, kQpConf, read_qp(qpn, kQpConf) | 1); }
    // What is posted does not complete.
    void disable(uint32_t qpn) { write_qp(qpn, kQpConf, read_qp(qpn, kQpConf) & ~1u); }
    void write_sqpi(uint32_t qpn, uint16_t value) { write_qp(qpn, kSqProducer, value); }
    void write_rqci(uint32_t qpn, uint16_t value) { write_qp(qpn, kRqConsumer, value); }
    void write_pd(uint8_t entry, const PdEntry &value)
    {
        const uint32_t words[] = {value.pd,
                                  uint32_t(value.va),
                                  uint32_t(value.va >> 32),
                                  uint32_t(value.base),
                                  uint32_t(value.base >> 32),
                                  value.key,
                                  uint32_t(value.bytes),
                                  value.access | uint32_t(value.bytes >> 32) << 16};
        for (uint32_t i = 0; i < std::size(words); i++)
            device.write(entry * 0x100u + 4 * i, words[i], 4);
    }
    static uint32_t rkey_of(uint8_t entry, uint8_t key) { return uint32_t(entry) << 8 | key; }

    uint16_t cqhead(uint32_t qpn) { return uint16_t(read_qp(qpn, kCqHead)); }
    uint16_t rq_written(uint32_t qpn) { return uint16_t(read_qp(qpn, kRqProducer)); }
    bool is_fatal(uint32_t qpn) { return read_qp(qpn, kStatus) & 1; }
    // Of the last entry for the QP in the incoming packet error queue.
    uint16_t fatal_code(uint32_t qpn)
    {
        uint16_t code = kNoFatal;
        for (uint32_t n = 0; n < read(kInErrorsPointer); n++) {
            uint16_t entry[4];
            std::memcpy(entry, host.at(errors_ + n * 8), sizeof(entry));
            if (entry[1] == qpn)
                code = entry[0];
        }
        return code;
    }
    QpState state(uint32_t qpn) { return device.pair(qpn).qp.state; }

    // ---- registers
    uint32_t globals() const { return device.registers.is_ernic() ? 0x20000 : 0; }
    uint32_t read(uint32_t offset) { return device.read(globals() + offset, 4); }
    void write(uint32_t offset, uint32_t value) { device.write(globals() + offset, value, 4); }
    uint32_t qp_at(uint32_t qpn, uint32_t offset) const { return globals() + 0x200 + (qpn - 1) * 0x100 + offset; }
    uint32_t read_qp(uint32_t qpn, uint32_t offset) { return device.read(qp_at(qpn, offset), 4); }
    void write_qp(uint32_t qpn, uint32_t offset, uint32_t value) { device.write(qp_at(qpn, offset), value, 4); }

    // ---- the link and time
    void receive(std::span<const iovec> parts) { device.receive(parts); }
    void run() { device.run(); }
    bool has_work() const { return device.has_work(); }
    void expire() { device.timer(); }

    // For tests of checkers: another way than its own.
    void set_rewind(Rewind rewind) { device.transport->rewind = rewind; }

    FakeHost &host;

private:
    static uint32_t low_mac(const std::array<uint8_t, 6> &mac)
    {
        return uint32_t(mac[2]) << 24 | uint32_t(mac[3]) << 16 | uint32_t(mac[4]) << 8 | mac[5];
    }
    // The high halves are at 0xc0, 0xc8 and 0xd0.
    void write_address(uint32_t qpn, uint32_t offset, uint64_t address)
    {
        write_qp(qpn, offset, uint32_t(address));
        write_qp(qpn, 0xb8 + offset, uint32_t(address >> 32));
    }

    const uint64_t errors_;
    uint32_t conf_ = 0;

public:
    ernic::Adapter device;
};

}  // namespace hghca::test
