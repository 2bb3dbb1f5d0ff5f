// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/icrc.h"

#include <cstring>

#include "wire/crc_tables.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hghca {

namespace {

constexpr uint32_t kPolynomial = 0xedb88320;
using Crc32 = CrcTables<uint32_t, kPolynomial>;

}  // namespace

uint32_t crc32_by_tables(uint32_t crc, const void *data, size_t length)
{
    return Crc32::update(crc, static_cast<const uint8_t *>(data), length);
}

#if defined(__x86_64__)

namespace {

#define HGHCA_TARGET_128 __attribute__((target("pclmul,sse4.1")))

// x^n modulo the polynomial, as a multiplier for the folding below.
constexpr uint64_t power(unsigned n)
{
    uint32_t r = 0x80000000;
    while (n--)
        r = Crc32::times_x(r);
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

// x^64 divided by the polynomial, without the remainder: 33 bits, reflected, bit 32 - n stands for x^n.
constexpr uint64_t kDivisor = uint64_t(kPolynomial) << 1 | 1;
constexpr uint64_t quotient()
{
    uint64_t rest = 1, result = 0;   // bit n of `rest` stands for x^(64 - n)
    for (unsigned n = 0; n <= 32; n++) {
        if (rest >> n & 1) {
            rest ^= kDivisor << n;
            result |= uint64_t(1) << n;
        }
    }
    return result;
}

// What remains of sixteen bytes and 32 zero bits behind them, divided by the polynomial.
HGHCA_TARGET_128 inline uint32_t remainder(__m128i a)
{
    // The first eight bytes are moved behind the last, the first four of what remains behind those again.
    const __m128i by_96 = _mm_set_epi64x(int64_t(power(63)), int64_t(power(95)));
    a = _mm_xor_si128(_mm_clmulepi64_si128(a, by_96, 0x00), _mm_slli_si128(_mm_srli_si128(a, 8), 4));
    const __m128i rest = _mm_xor_si128(_mm_srli_si128(_mm_clmulepi64_si128(a, by_96, 0x10), 8), _mm_srli_si128(a, 8));
    // Barrett: the quotient of the 64 bits, and what it makes of them.
    const __m128i barrett = _mm_set_epi64x(int64_t(kDivisor), int64_t(quotient()));
    const __m128i mask = _mm_cvtsi64_si128(0xffffffff);
    const __m128i times = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(rest, mask), barrett, 0x00), mask);
    const __m128i product = _mm_xor_si128(_mm_clmulepi64_si128(times, barrett, 0x10), rest);
    return uint32_t(_mm_extract_epi32(product, 1));
}

// The CRC of the bytes that `a` stands for and of those that follow.
HGHCA_TARGET_128 inline uint32_t finish_128(__m128i a, const uint8_t *p, size_t length)
{
    const __m128i by_128 = fold_constants<128>();
    for (; length >= 16; p += 16, length -= 16)
        a = fold(a, by_128, load_128(p));
    return crc32_by_tables(remainder(a), p, length);
}

// From 16 bytes on: headers.
HGHCA_TARGET_128 uint32_t fold_short(uint32_t crc, const uint8_t *p, size_t length)
{
    return finish_128(_mm_xor_si128(load_128(p), _mm_cvtsi32_si128(int(crc))), p + 16, length - 16);
}

// From 64 bytes on.
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
    return finish_128(a, p, length);
}

#define HGHCA_TARGET_256 __attribute__((target("vpclmulqdq,avx2,pclmul,sse4.1")))

HGHCA_TARGET_256 inline __m256i fold(__m256i value, __m256i constants, __m256i next)
{
    __m256i low = _mm256_clmulepi64_epi128(value, constants, 0x00);
    __m256i high = _mm256_clmulepi64_epi128(value, constants, 0x11);
    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

HGHCA_TARGET_256 inline __m256i load_256(const uint8_t *at)
{
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at));
}

template <unsigned bits>
HGHCA_TARGET_256 inline __m256i fold_constants_256()
{
    constexpr auto high = int64_t(power(bits - 1)), low = int64_t(power(bits + 63));
    return _mm256_set_epi64x(high, low, high, low);
}

// The same with four lanes of 32 bytes; from 128 bytes on.
HGHCA_TARGET_256 uint32_t fold_256(uint32_t crc, const uint8_t *p, size_t length)
{
    __m256i a = _mm256_xor_si256(load_256(p), _mm256_zextsi128_si256(_mm_cvtsi32_si128(int(crc))));
    __m256i b = load_256(p + 32), c = load_256(p + 64), d = load_256(p + 96);
    p += 128;
    length -= 128;
    const __m256i by_1024 = fold_constants_256<1024>();
    for (; length >= 128; p += 128, length -= 128) {
        a = fold(a, by_1024, load_256(p));
        b = fold(b, by_1024, load_256(p + 32));
        c = fold(c, by_1024, load_256(p + 64));
        d = fold(d, by_1024, load_256(p + 96));
    }
    const __m256i by_256 = fold_constants_256<256>();
    a = fold(a, by_256, b);
    a = fold(a, by_256, c);
    a = fold(a, by_256, d);
    const __m128i low = _mm256_castsi256_si128(a), high = _mm256_extracti128_si256(a, 1);
    return finish_128(fold(low, fold_constants<128>(), high), p, length);
}

#define HGHCA_TARGET_512 __attribute__((target("vpclmulqdq,avx512f,avx512vl,pclmul,sse4.1")))

HGHCA_TARGET_512 inline __m512i fold(__m512i value, __m512i constants, __m512i next)
{
    __m512i low = _mm512_clmulepi64_epi128(value, constants, 0x00);
    __m512i high = _mm512_clmulepi64_epi128(value, constants, 0x11);
    return _mm512_ternarylogic_epi64(low, high, next, 0x96);
}

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

// The next 64 bytes; with `copies` they go to `to`.
template <bool copies>
HGHCA_TARGET_512 inline __m512i take_512(const uint8_t *from, uint8_t *to)
{
    const __m512i bytes = load_512(from);
    if constexpr (copies)
        _mm512_storeu_si512(to, bytes);
    return bytes;
}

// The same with four lanes of 64 bytes; from 256 bytes on. With `copies` they go to `to`, each read once.
template <bool copies>
HGHCA_TARGET_512 uint32_t fold_512(uint32_t crc, const uint8_t *p, size_t length, uint8_t *to)
{
    __m512i a = _mm512_xor_si512(take_512<copies>(p, to), _mm512_zextsi128_si512(_mm_cvtsi32_si128(int(crc))));
    __m512i b = take_512<copies>(p + 64, to + 64), c = take_512<copies>(p + 128, to + 128),
            d = take_512<copies>(p + 192, to + 192);
    const __m512i by_2048 = fold_constants_512<2048>();
    size_t at = 256;
    for (; at + 256 <= length; at += 256) {
        a = fold(a, by_2048, take_512<copies>(p + at, to + at));
        b = fold(b, by_2048, take_512<copies>(p + at + 64, to + at + 64));
        c = fold(c, by_2048, take_512<copies>(p + at + 128, to + at + 128));
        d = fold(d, by_2048, take_512<copies>(p + at + 192, to + at + 192));
    }
    const __m512i by_512 = fold_constants_512<512>();
    a = fold(a, by_512, b);
    a = fold(a, by_512, c);
    a = fold(a, by_512, d);
    for (; at + 64 <= length; at += 64)
        a = fold(a, by_512, take_512<copies>(p + at, to + at));
    const __m128i by_128 = fold_constants<128>();
    __m128i rest = fold(_mm512_castsi512_si128(a), by_128, _mm512_extracti32x4_epi32(a, 1));
    rest = fold(rest, by_128, _mm512_extracti32x4_epi32(a, 2));
    rest = fold(rest, by_128, _mm512_extracti32x4_epi32(a, 3));
    const uint8_t *tail = p + at;
    if constexpr (copies)
        tail = static_cast<uint8_t *>(std::memcpy(to + at, tail, length - at));
    return crc32_by_tables(remainder(rest), tail, length - at);
}

struct Cpu {
    bool folding = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    bool by_256 = folding && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2");
    bool by_512 = by_256 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
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
    if (length < 16)
        return crc32_by_tables(crc, p, length);
    if (length < 64)
        return fold_short(crc, p, length);
    if (length >= 512 && cpu().by_512)
        return fold_512<false>(crc, p, length, const_cast<uint8_t *>(p));
    return length >= 192 && cpu().by_256 ? fold_256(crc, p, length) : fold_128(crc, p, length);
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

uint32_t crc32_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t length)
{
#if defined(__x86_64__)
    if (length >= 512 && cpu().by_512)
        return fold_512<true>(crc, from, length, to);
#endif
    std::memcpy(to, from, length);
    return crc32_update(crc, to, length);
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t length)
{
    return length >= 16 && crc32_has_folding() ? crc32_by_folding(crc, data, length)
                                               : crc32_by_tables(crc, data, length);
}

}  // namespace hghca
