// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Compiles for no kernel. */
static_assert(sizeof(struct compat_of_no_kernel));
