// SPDX-License-Identifier: GPL-2.0-or-later
// Memory that is allocated once, so that no packet and no doorbell allocates any. The host commits a page of it when
// something there is used first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "sanitizer.h"

#if HGHCA_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace hghca {

// `count` objects whose bytes are zeros.
template <class T>
class ZeroedArray {
    static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>);

public:
    ZeroedArray() = default;
    // Throws std::bad_alloc.
    explicit ZeroedArray(size_t count) : objects_(static_cast<T *>(std::calloc(count, sizeof(T)))), count_(count)
    {
        if (!objects_ && count)
            throw std::bad_alloc();
    }

    size_t size() const { return count_; }
    T &operator[](size_t i) { return objects_.get()[i]; }
    const T &operator[](size_t i) const { return objects_.get()[i]; }

private:
    struct Free {
        void operator()(T *objects) const { std::free(objects); }
    };
    std::unique_ptr<T, Free> objects_;
    size_t count_ = 0;
};

// Memory for `capacity` objects, each of which stays where it is until it is given back.
template <class T>
class Pool {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) >= sizeof(void *));

public:
    Pool() = default;
    // Throws std::bad_alloc.
    explicit Pool(size_t capacity) : places_(std::make_unique_for_overwrite<Place[]>(capacity)) {}

    // At most `capacity` are taken at a time.
    T &take(const T &value)
    {
        Place *place = free_;
        if (place) {
            allow(*place);
            std::memcpy(&free_, place->bytes, sizeof(free_));
        } else {
            place = &places_[used_++];
        }
        return *new (place->bytes) T(value);
    }
    void give(T &object)
    {
        auto *place = reinterpret_cast<Place *>(&object);
        std::memcpy(place->bytes, &free_, sizeof(free_));
        free_ = place;
        forbid(*place);
    }

private:
    struct Place {
        alignas(T) std::byte bytes[sizeof(T)];
    };

    // An object that was given back is not looked at: the address sanitizer tells who does.
#if HGHCA_ADDRESS_SANITIZER
    static void allow(Place &place) { ASAN_UNPOISON_MEMORY_REGION(&place, sizeof(place)); }
    static void forbid(Place &place) { ASAN_POISON_MEMORY_REGION(&place, sizeof(place)); }
#else
    static void allow(Place &) {}
    static void forbid(Place &) {}
#endif

    std::unique_ptr<Place[]> places_;
    Place *free_ = nullptr;   // the last that was given back; each begins with a pointer to the next
    size_t used_ = 0;         // places that have ever been taken
};

}  // namespace hghca
