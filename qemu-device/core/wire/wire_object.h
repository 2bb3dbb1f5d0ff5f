// SPDX-License-Identifier: GPL-2.0-or-later
// Structs on their way into frames and to guest memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hghca {

// T has no padding: what its members were given is all that leaves the device.
template <class T>
constexpr bool kNoPadding = std::has_unique_object_representations_v<T>;

// Copies the bytes of an object to `at`; behind them. Nothing else copies such a struct out of the device.
template <class T>
uint8_t *append(uint8_t *at, const T &object)
{
    static_assert(kNoPadding<T>);
    std::memcpy(at, &object, sizeof(object));
    return at + sizeof(object);
}

}  // namespace hghca
