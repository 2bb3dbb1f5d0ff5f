// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The attributes of the method, and not only its udata, as an argument of create_cq. */
#include <rdma/ib_verbs.h>

typedef int create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs);
typedef typeof(((const struct ib_device_ops *)0)->create_cq) operation;

/* A failed static_assert() would be one of the header that defines it. */
enum {
	HAS_ATTRS = 1 / __builtin_types_compatible_p(operation, create_cq *)
};
