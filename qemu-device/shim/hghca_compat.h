/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What differs between versions of QEMU. The shim is written for the newest one; the
 * preprocessor and the compiler find out what an older one has.
 */
#ifndef HW_HGHCA_COMPAT_H
#define HW_HGHCA_COMPAT_H

/* Headers that have moved. */
#if __has_include("hw/core/qdev-properties.h")
#include "hw/core/qdev-properties.h"
#else
#include "hw/qdev-properties.h"
#endif

#if __has_include("hw/core/resettable.h")
#include "hw/core/resettable.h"
#else
#include "hw/resettable.h"
#endif

#if __has_include("system/memory.h")
#include "system/memory.h"
#else
#include "exec/memory.h"
#endif

#if __has_include("system/tcg.h")
#include "system/tcg.h"
#else
#include "sysemu/tcg.h"
#endif

#if __has_include("system/memory_cached.h")
#include "system/memory_cached.h"
#endif

/*
 * The value of TypeInfo's class_init, whose last argument has become a pointer to const.
 * The shim's functions ignore it.
 */
#define HGHCA_CLASS_INIT(function) ((__typeof__(((TypeInfo *)NULL)->class_init))(function))

#endif
