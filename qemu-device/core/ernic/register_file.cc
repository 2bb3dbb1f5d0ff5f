// SPDX-License-Identifier: GPL-2.0-or-later
#include "ernic/register_file.h"

#include <algorithm>

namespace hghca::ernic {

namespace {

struct Row {
    uint32_t offset;
    AccessKind access;
    uint32_t bits;
    uint8_t personalities;
    uint8_t first_qp;
};

constexpr AccessKind RW = AccessKind::Rw, RO = AccessKind::Ro, W1C = AccessKind::W1c,
                     OVERRIDE = AccessKind::Override, STOPPED = AccessKind::Stopped;

constexpr Row kGlobalRows[] = {
#define ERNIC_ROW(name, offset, access, bits, personality) {offset, access, bits, ERNIC_PERSONALITY_##personality, 0},
    ERNIC_GLOBAL_REGISTERS(ERNIC_ROW)
#undef ERNIC_ROW
};

constexpr Row kQpRows[] = {
#define ERNIC_ROW(name, offset, access, bits, personality, first) \
    {offset, access, bits, ERNIC_PERSONALITY_##personality, first},
    ERNIC_QP_REGISTERS(ERNIC_ROW)
#undef ERNIC_ROW
};

constexpr Row kPdRows[] = {
#define ERNIC_ROW(name, offset, bits) {offset, RW, bits, ERNIC_PERSONALITY_ERNIC, 0},
    ERNIC_PD_REGISTERS(ERNIC_ROW)
#undef ERNIC_ROW
};

// By word: the row, or one without access.
template <size_t N, size_t M>
constexpr std::array<Row, N> by_word(const Row (&rows)[M])
{
    std::array<Row, N> words{};
    for (const Row &row : rows)
        words[row.offset / 4] = row;
    return words;
}

constexpr std::array<Row, ERNIC_GLOBALS_SIZE / 4> with_banks(std::array<Row, ERNIC_GLOBALS_SIZE / 4> words)
{
    for (uint32_t first : {ERNIC_RQINTSTS1, ERNIC_CQINTSTS1})
        for (uint32_t n = 0; n < ERNIC_INTERRUPT_BANKS; n++)
            words[first / 4 + n] = {first + 4 * n, W1C, 0xffffffff, ERNIC_PERSONALITY_BOTH, 0};
    return words;
}

constexpr auto kGlobals = with_banks(by_word<ERNIC_GLOBALS_SIZE / 4>(kGlobalRows));
constexpr auto kQps = by_word<ERNIC_QP_SIZE / 4>(kQpRows);
constexpr auto kPds = by_word<ERNIC_PD_SIZE / 4>(kPdRows);

constexpr uint32_t kQpsAt = ERNIC_GLOBALS_SIZE;

// Bits of ETRNIC that only ERNIC has.
constexpr uint32_t kQpconfErnic = ERNIC_QPCONF_RECOVERY, kResphndstsErnic = 1 << 16;

}  // namespace

RegisterFile::RegisterFile(Personality personality, uint32_t qps)
    : personality_(personality), qps_(qps), words_of_qp_(size_t(qps + 1) * kQpWords),
      words_of_pd_(personality == Personality::Ernic ? size_t(ERNIC_PDS) * kPdWords : 0)
{
}

void RegisterFile::reset()
{
    globals_.fill(0);
    std::fill(words_of_qp_.begin(), words_of_qp_.end(), 0);
    std::fill(words_of_pd_.begin(), words_of_pd_.end(), 0);
}

RegisterPlace RegisterFile::place(uint64_t offset) const
{
    const uint32_t globals = is_ernic() ? ERNIC_GLOBALS_ERNIC : ERNIC_GLOBALS_ETRNIC;
    if (offset % 4 || offset >= aperture())
        return {};
    RegisterPlace place;
    const Row *row = nullptr;
    if (offset < globals) {
        if (offset >= uint64_t(ERNIC_PDS) * ERNIC_PD_SIZE)
            return {};
        place.block = RegisterPlace::Block::Pd;
        place.index = uint32_t(offset / ERNIC_PD_SIZE);
        place.offset = uint32_t(offset % ERNIC_PD_SIZE);
        row = &kPds[place.offset / 4];
    } else if (offset < globals + kQpsAt) {
        place.block = RegisterPlace::Block::Global;
        place.offset = uint32_t(offset - globals);
        row = &kGlobals[place.offset / 4];
    } else {
        place.block = RegisterPlace::Block::Qp;
        place.index = uint32_t((offset - globals - kQpsAt) / ERNIC_QP_SIZE + 1);
        place.offset = uint32_t((offset - globals) % ERNIC_QP_SIZE);
        row = &kQps[place.offset / 4];
        if (place.index > qps_ || place.index < row->first_qp)
            return {};
    }
    if (!(row->personalities & uint8_t(personality_)))
        return {};
    place.access = row->access;
    place.bits = row->bits;
    if (!is_ernic() && place.block == RegisterPlace::Block::Qp && place.offset == ERNIC_QPCONF)
        place.bits &= ~kQpconfErnic;
    if (!is_ernic() && place.block == RegisterPlace::Block::Global && place.offset == ERNIC_RESPHNDSTS)
        place.bits &= ~kResphndstsErnic;
    return place;
}

}  // namespace hghca::ernic
