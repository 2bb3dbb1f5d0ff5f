/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.12: work stays on its CPU only by this flag; before, unless there is WQ_UNBOUND. */
#ifndef COMPAT_HAS_WQ_PERCPU
#define WQ_PERCPU	0
#endif
