/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * ERNIC and ETRNIC: the ABI between the verbs provider and the kernel driver.
 *
 * Commands have no data of the driver.  A process maps nothing of the device: it posts,
 * polls and arms by the commands of uverbs.
 */
#ifndef ERNIC_ABI_USER_H
#define ERNIC_ABI_USER_H

enum {
	ERNIC_UVERBS_ABI_VERSION = 1,
};

#endif /* ERNIC_ABI_USER_H */
