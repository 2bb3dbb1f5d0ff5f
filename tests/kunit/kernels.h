/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the suites ask of Linux 6.12 and 7.3 in different ways. */
#ifndef KUNIT_KERNELS_H
#define KUNIT_KERNELS_H

#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/mutex.h>
#include <linux/rtnetlink.h>

/*
 * NAME_gen_params() from NAME_next(), which has the parameter before and the place for a
 * description.  Newer kernels give the generator the test, too.
 */
#ifdef KUNIT_CASE_PARAM_WITH_INIT
#define KERNELS_PARAMS(name) \
	static const void *name##_gen_params(struct kunit *test, const void *prev, char *desc) \
	{ \
		return name##_next(prev, desc); \
	}
#else
#define KERNELS_PARAMS(name) \
	static const void *name##_gen_params(const void *prev, char *desc) \
	{ \
		return name##_next(prev, desc); \
	}
#endif

/* The address is a struct sockaddr in 6.12, and a longer one later. */
static inline int kernels_set_mac(struct net_device *netdev, const u8 *mac)
{
	struct sockaddr_storage address = { .ss_family = netdev->type };
	void *either = &address;
	int err;

	ether_addr_copy(address.__data, mac);
	rtnl_lock();
	err = dev_set_mac_address(netdev, either, NULL);
	rtnl_unlock();
	return err;
}

/* Whether somebody waits for it: bit MUTEX_FLAG_WAITERS, while the list has many forms. */
static inline bool kernels_mutex_is_wanted(const struct mutex *lock)
{
	return atomic_long_read(&lock->owner) & 1;
}

#endif /* KUNIT_KERNELS_H */
