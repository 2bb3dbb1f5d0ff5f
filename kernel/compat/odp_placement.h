/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.12: names for FLUSH and atomic WRITE to on-demand memory.  Before, ib_core passes the
 * bits on as they are, unless it has neither operation.
 */
#if !defined(COMPAT_HAS_ODP_PLACEMENT) && defined(COMPAT_HAS_IB_FLUSH)
#define IB_ODP_SUPPORT_FLUSH		BIT(6)
#define IB_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)
#elif !defined(COMPAT_HAS_ODP_PLACEMENT)
#define IB_ODP_SUPPORT_FLUSH		0
#define IB_ODP_SUPPORT_ATOMIC_WRITE	0
#endif
