// SPDX-License-Identifier: GPL-2.0-or-later
// Counts what the device core allocates. The address sanitizer tells of each allocation; other builds count none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sanitizer.h"

#if HGHCA_ADDRESS_SANITIZER
// Of the sanitizers' allocator_interface.h, which g++ does not install. 0: there is no room for another hook.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                                          void (*freed)(const volatile void *));
#endif

namespace hghca::test {

// Of this thread: while it is inside the core.
struct Allocations {
    static inline thread_local bool inside = false;
    static inline thread_local uint64_t count = 0;

    static void allocated(const volatile void *, size_t) { count += inside; }
    static void freed(const volatile void *) {}
    static bool watch()
    {
#if HGHCA_ADDRESS_SANITIZER
        return __sanitizer_install_malloc_and_free_hooks(allocated, freed) != 0;
#else
        return false;
#endif
    }
    static inline const bool watched = watch();
};

// The thread is inside the core, or outside of it again, until this ends.
template <bool kInside>
class Where {
public:
    Where() : before_(Allocations::inside) { Allocations::inside = kInside; }
    ~Where() { Allocations::inside = before_; }
    Where(const Where &) = delete;
    Where &operator=(const Where &) = delete;

private:
    const bool before_;
};
using Inside = Where<true>;
using Outside = Where<false>;

}  // namespace hghca::test
