/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.1: FLUSH and atomic WRITE.  Before, ib_core refuses the rights; no device has them. */
#ifndef COMPAT_HAS_IB_FLUSH
#define IB_ACCESS_FLUSH_GLOBAL		BIT(8)
#define IB_ACCESS_FLUSH_PERSISTENT	BIT(9)
#define IB_DEVICE_FLUSH_GLOBAL		0ULL
#define IB_DEVICE_FLUSH_PERSISTENT	0ULL
#define IB_DEVICE_ATOMIC_WRITE		0ULL
#endif
