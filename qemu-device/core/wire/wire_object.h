// SPDX-License-Identifier: GPL-2.0-or-later
// Structs of the interface and of packets, on their way to guest memory and into frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hghca_hw.h"

namespace hghca {

// T has no padding: what its members were given is all that leaves the device.
template <class T>
constexpr bool kNoPadding = std::has_unique_object_representations_v<T>;
// Its events are of different sizes, but the first of them, `raw`, covers the union: `= {}` sets each byte.
template <>
inline constexpr bool kNoPadding<hghca_eqe> =
    offsetof(hghca_eqe, event) == 4 && sizeof(hghca_eqe::event) == sizeof(hghca_eqe::event.raw) &&
    sizeof(hghca_eqe) == 4 + sizeof(hghca_eqe::event) + 4;

// Copies the bytes of an object to `at`; behind them. Nothing else copies such a struct out of the device.
template <class T>
uint8_t *append(uint8_t *at, const T &object)
{
    static_assert(kNoPadding<T>);
    std::memcpy(at, &object, sizeof(object));
    return at + sizeof(object);
}

}  // namespace hghca
