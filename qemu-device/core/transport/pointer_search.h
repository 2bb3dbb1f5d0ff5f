// SPDX-License-Identifier: GPL-2.0-or-later
// The search of a READ_POINTER (docs/reference/rsnic.rst, 9.3): what a request asks for, and what an element says.
#pragma once

#include <array>
#include <cstdint>

namespace hghca {

// An element: words of 32 bits, little-endian. A key, a pointer and the address of the next element take a word and the
// one behind it.
constexpr uint32_t kElementBytes = 64;
constexpr uint32_t kLastPosition = 14;   // word of an element where 64 bits may start
constexpr uint32_t kMaxElements = 256;   // of one search
using Element = std::array<uint8_t, kElementBytes>;

// The word `search` of a request. Positions are words of an element.
constexpr uint32_t kSearchKeysMask = 0xffff;          // bit w: a key is at word w
constexpr uint32_t kSearchPredicateMask = 0x30000;    // a Predicate
constexpr uint32_t kSearchValueMask = 0x7c0000;       // position of the pointer
constexpr uint32_t kSearchRelative = 1u << 23;        // it counts from the key that matches
constexpr uint32_t kSearchNextMask = 0x1f000000;      // position of the next element's address
constexpr uint32_t kSearchHasNext = 1u << 29;

// An element matches if a key of it is so, compared with that of the request.
enum class Predicate : uint8_t { Equal, Less, Greater, NotEqual };

// Is the word good, as far as it can be told before an element is seen?
bool is_search(uint32_t search);

struct SearchStep {
    enum class What : uint8_t {
        Found,     // `va` is the pointer
        Next,      // `va` is the address of the next element
        End,       // the list ends here, and nothing is found
        Invalid,   // the pointer of the key that matches would reach beyond the element
    } what;
    uint64_t va;
};

// What `element` says to a request for `key`, whose word is_search().
SearchStep look_at(const Element &element, uint64_t key, uint32_t search);

}  // namespace hghca
