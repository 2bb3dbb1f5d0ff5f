/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* After 6.12: a timer and its function are set up by one call. */
#ifndef COMPAT_HAS_HRTIMER_SETUP
#include <linux/hrtimer.h>

static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif
