/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What an older rdma-core lacks, under the names of the newest one.
 *
 * The providers are written for the newest rdma-core alone.  The compiler reads this file
 * before each of theirs.  A call that has got an argument becomes a macro, which drops the
 * argument: the providers pass NULL.
 */
#ifndef PROVIDERS_COMPAT_H
#define PROVIDERS_COMPAT_H

#include <errno.h>

#include <infiniband/driver.h>

/* File descriptors that the context needs. */
#ifndef COMPAT_HAS_GET_CONTEXT_FDS
#define ibv_cmd_get_context(context, cmd, cmd_size, fds, resp, resp_size) \
	ibv_cmd_get_context(context, cmd, cmd_size, resp, resp_size)
#endif

/* The buffer of a CQ, for a kernel that takes it as an attribute. */
#ifndef COMPAT_HAS_CREATE_CQ_PROV
#define ibv_cmd_create_cq_ex(context, attr, prov, cq, cmd, cmd_size, resp, resp_size, flags) \
	ibv_cmd_create_cq_ex(context, attr, cq, cmd, cmd_size, resp, resp_size, flags)
#endif

/* Attributes of the driver. */
#ifndef COMPAT_HAS_CREATE_QP_DRIVER
#define ibv_cmd_create_qp_ex2(context, qp, attr, cmd, cmd_size, resp, resp_size, driver) \
	ibv_cmd_create_qp_ex2(context, qp, attr, cmd, cmd_size, resp, resp_size)
#endif

/* Buffers that a confidential guest may share with its host: no program can permit them. */
#ifndef COMPAT_HAS_CC_UNPROTECTED
#define IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC	0
#endif

/* The speed of a port: an operation that an older libibverbs does not call. */
#ifndef COMPAT_HAS_QUERY_PORT_SPEED
struct compat_context_ops {
	/* The compiler takes its members for members of this, by -fms-extensions. */
	struct verbs_context_ops;
	int (*query_port_speed)(struct ibv_context *context, uint32_t port, uint64_t *speed);
};

static inline void compat_set_ops(struct verbs_context *vctx, const struct compat_context_ops *ops)
{
	verbs_set_ops(vctx, (const struct verbs_context_ops *)ops);
}

static inline int ibv_cmd_query_port_speed(struct ibv_context *context, uint32_t port,
					   uint64_t *speed)
{
	return EOPNOTSUPP;
}

#define verbs_context_ops	compat_context_ops
#define verbs_set_ops		compat_set_ops
#endif

#endif /* PROVIDERS_COMPAT_H */
