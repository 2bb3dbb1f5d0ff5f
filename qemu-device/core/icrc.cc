// SPDX-License-Identifier: GPL-2.0-or-later
#include "icrc.h"

#include <array>
#include <cstring>

#include "byte_order.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hghca {

namespace {

// The polynomial, bit-reflected: bit 31 - n stands for x^n.
constexpr uint32_t kPolynomial = 0xedb88320;

constexpr uint32_t times_x(uint32_t r)
{
    return r >> 1 ^ (r & 1 ? kPolynomial : 0);
}

// kTables[k][b]: byte b followed by k zero bytes.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables make_tables()
{
    Tables t{};
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t r = b;
        for (int bit = 0; bit < 8; bit++)
            r = times_x(r);
        t[0][b] = r;
    }
    for (size_t k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            t[k][b] = t[k - 1][b] >> 8 ^ t[0][t[k - 1][b] & 0xff];
    return t;
}
constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32_by_tables(uint32_t crc, const void *data, size_t length)
{
    const auto *p = static_cast<const uint8_t *>(data);
    for (; length >= 8; p += 8, length -= 8) {
        uint64_t word;
        std::memcpy(&word, p, 8);
        word = le64(word) ^ crc;
        crc = 0;
        for (size_t k = 0; k < 8; k++)
            crc ^= kTables[7 - k][word >> (8 * k) & 0xff];
    }
    for (; length; p++, length--)
        crc = crc >> 8 ^ kTables[0][(crc ^ *p) & 0xff];
    return crc;
}

#if defined(__x86_64__)

namespace {

#define HGHCA_TARGET_128 __attribute__((target("pclmul,sse4.1")))

// x^n modulo the polynomial, as a multiplier for the folding below.
constexpr uint64_t power(unsigned n)
{
    uint32_t r = 0x80000000;
    while (n--)
        r = times_x(r);
    return uint64_t(r) << 32;
}

// To move 16 bytes forward by `bits`: the first eight bytes of them stand 64 bits
// higher. The product of two reflected 64-bit numbers comes out one bit low in
// the 128, hence the - 1.
template <unsigned bits>
HGHCA_TARGET_128 inline __m128i fold_constants()
{
    return _mm_set_epi64x(int64_t(power(bits - 1)), int64_t(power(bits + 63)));
}

HGHCA_TARGET_128 inline __m128i fold(__m128i value, __m128i constants, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(value, constants, 0x00);
    __m128i high = _mm_clmulepi64_si128(value, constants, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

HGHCA_TARGET_128 inline __m128i load_128(const uint8_t *at)
{
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
}

HGHCA_TARGET_128 uint32_t fold_128(uint32_t crc, const uint8_t *p, size_t length)
{
    // Four lanes hide the latency of the multiplication.
    __m128i a = _mm_xor_si128(load_128(p), _mm_cvtsi32_si128(int(crc)));
    __m128i b = load_128(p + 16), c = load_128(p + 32), d = load_128(p + 48);
    p += 64;
    length -= 64;
    const __m128i by_512 = fold_constants<512>();
    for (; length >= 64; p += 64, length -= 64) {
        a = fold(a, by_512, load_128(p));
        b = fold(b, by_512, load_128(p + 16));
        c = fold(c, by_512, load_128(p + 32));
        d = fold(d, by_512, load_128(p + 48));
    }
    const __m128i by_128 = fold_constants<128>();
    a = fold(a, by_128, b);
    a = fold(a, by_128, c);
    a = fold(a, by_128, d);
    for (; length >= 16; p += 16, length -= 16)
        a = fold(a, by_128, load_128(p));
    // What is left has the remainder of all the bytes so far.
    uint8_t rest[16];
    _mm_storeu_si128(reinterpret_cast<__m128i *>(rest), a);
    return crc32_by_tables(crc32_by_tables(0, rest, 16), p, length);
}

#define HGHCA_TARGET_512 __attribute__((target("vpclmulqdq,avx512f,avx512vl,pclmul,sse4.1")))

HGHCA_TARGET_512 inline __m512i fold_512(__m512i value, __m512i constants, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(value, constants, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(value, constants, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

// The same with four lanes of 64 bytes; from kWide bytes on.
constexpr size_t kWide = 512;
HGHCA_TARGET_512 inline __m512i load_512(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}
template <unsigned bits>
HGHCA_TARGET_512 inline __m512i fold_constants_512()
{
    constexpr auto high = int64_t(power(bits - 1)), low = int64_t(power(bits + 63));
    return _mm512_set4_epi64(high, low, high, low);
}
HGHCA_TARGET_512 uint32_t fold_wide(uint32_t crc, const uint8_t *p, size_t length)
{
    __m512i a = _mm512_xor_si512(load_512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128(int(crc))));
    __m512i b = load_512(p + 64), c = load_512(p + 128), d = load_512(p + 192);
    p += 256;
    length -= 256;
    const __m512i by_2048 = fold_constants_512<2048>();
    for (; length >= 256; p += 256, length -= 256) {
        a = fold_512(a, by_2048, load_512(p));
        b = fold_512(b, by_2048, load_512(p + 64));
        c = fold_512(c, by_2048, load_512(p + 128));
        d = fold_512(d, by_2048, load_512(p + 192));
    }
    const __m512i by_512 = fold_constants_512<512>();
    a = fold_512(a, by_512, b);
    a = fold_512(a, by_512, c);
    a = fold_512(a, by_512, d);
    for (; length >= 64; p += 64, length -= 64)
        a = fold_512(a, by_512, load_512(p));
    uint8_t rest[64];
    _mm512_storeu_si512(rest, a);
    return crc32_by_tables(fold_128(0, rest, 64), p, length);
}

struct Cpu {
    bool folding = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    bool wide = folding && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512vl");
};
const Cpu &cpu()
{
    static const Cpu found;
    return found;
}

}  // namespace

bool crc32_has_folding()
{
    return cpu().folding;
}

uint32_t crc32_by_folding(uint32_t crc, const void *data, size_t length)
{
    const auto *p = static_cast<const uint8_t *>(data);
    if (length < 64)
        return crc32_by_tables(crc, p, length);
    return length >= kWide && cpu().wide ? fold_wide(crc, p, length) : fold_128(crc, p, length);
}

#else

bool crc32_has_folding()
{
    return false;
}

uint32_t crc32_by_folding(uint32_t crc, const void *data, size_t length)
{
    return crc32_by_tables(crc, data, length);
}

#endif

uint32_t crc32_update(uint32_t crc, const void *data, size_t length)
{
    return length >= 64 && crc32_has_folding() ? crc32_by_folding(crc, data, length)
                                               : crc32_by_tables(crc, data, length);
}

}  // namespace hghca
