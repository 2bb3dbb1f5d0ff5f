// SPDX-License-Identifier: GPL-2.0-or-later
// The registers of ERNIC and ETRNIC as words: where they stand, which bits they have, and who may write them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ernic_hw.h>

namespace hghca::ernic {

enum class Personality : uint8_t { Etrnic = ERNIC_PERSONALITY_ETRNIC, Ernic = ERNIC_PERSONALITY_ERNIC };

enum class AccessKind : uint8_t { None, Rw, Ro, W1c, Override, Stopped };

// What is at an offset.
struct RegisterPlace {
    enum class Block : uint8_t { None, Global, Qp, Pd } block = Block::None;
    uint32_t index = 0;    // of the QP, or of the entry of the protection domain table
    uint32_t offset = 0;   // in the block
    AccessKind access = AccessKind::None;
    uint32_t bits = 0;     // that exist
};

class RegisterFile {
public:
    // `qps`: C_NUM_QP, with QP 1.
    RegisterFile(Personality personality, uint32_t qps);

    Personality personality() const { return personality_; }
    bool is_ernic() const { return personality_ == Personality::Ernic; }
    uint32_t qps() const { return qps_; }
    uint32_t aperture() const { return is_ernic() ? ERNIC_APERTURE_ERNIC : ERNIC_APERTURE_ETRNIC; }
    RegisterPlace place(uint64_t offset) const;
    void reset();

    // The words as they are stored; `offset` is of the tables in ernic_hw.h.
    uint32_t &global(uint32_t offset) { return globals_[offset / 4]; }
    uint32_t global(uint32_t offset) const { return globals_[offset / 4]; }
    uint32_t &qp(uint32_t qpn, uint32_t offset) { return words_of_qp_[qpn * kQpWords + offset / 4]; }
    uint32_t qp(uint32_t qpn, uint32_t offset) const { return words_of_qp_[qpn * kQpWords + offset / 4]; }
    uint32_t &pd(uint32_t entry, uint32_t offset) { return words_of_pd_[entry * kPdWords + offset / 4]; }
    uint32_t pd(uint32_t entry, uint32_t offset) const { return words_of_pd_[entry * kPdWords + offset / 4]; }

    // An address of two registers; ETRNIC has the low one alone.
    uint64_t global_address(uint32_t low, uint32_t high) const { return uint64_t(global(high)) << 32 | global(low); }
    uint64_t qp_address(uint32_t qpn, uint32_t low, uint32_t high) const
    {
        return uint64_t(qp(qpn, high)) << 32 | qp(qpn, low);
    }
    bool has(ernic_extension extension) const
    {
        const uint32_t word = global(ERNIC_EXTENSIONS);
        return word & (word >> 16) & extension;
    }

private:
    static constexpr uint32_t kQpWords = ERNIC_QP_SIZE / 4, kPdWords = 8;

    const Personality personality_;
    const uint32_t qps_;
    std::array<uint32_t, ERNIC_GLOBALS_SIZE / 4> globals_{};
    std::vector<uint32_t> words_of_qp_, words_of_pd_;
};

}  // namespace hghca::ernic
