/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: common definitions of these headers. Include hghca_hw.h, not this file. */
#ifndef HGHCA_INTERFACE_TYPES_H
#define HGHCA_INTERFACE_TYPES_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#include <assert.h>
#endif

/* Mask of the bits high..low of a 32-bit word. */
#define HGHCA_MASK(high, low) ((0xffffffffU >> (31 - (high))) & (0xffffffffU << (low)))

#define HGHCA_ASSERT_SIZE(type, bytes) \
	static_assert(sizeof(struct type) == (bytes), #type ": wrong size")
#define HGHCA_ASSERT_OFFSET(type, field, bytes) \
	static_assert(offsetof(struct type, field) == (bytes), #type "." #field ": wrong offset")

#endif /* HGHCA_INTERFACE_TYPES_H */
