/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: the compiler is told which member counts the entries of an array. */
#include <linux/compiler.h>

#ifndef __counted_by
#define __counted_by(member)
#endif
