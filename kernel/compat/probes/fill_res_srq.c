// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The entries of SRQs in rdma netlink. */
#include <rdma/ib_verbs.h>

static_assert(sizeof(((const struct ib_device_ops *)0)->fill_res_srq_entry));
static_assert(sizeof(((const struct ib_device_ops *)0)->fill_res_srq_entry_raw));
