// SPDX-License-Identifier: GPL-2.0-or-later
// Whether the address sanitizer is compiled in: GCC defines a macro for it, Clang has a feature.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HGHCA_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HGHCA_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef HGHCA_ADDRESS_SANITIZER
#define HGHCA_ADDRESS_SANITIZER 0
#endif
