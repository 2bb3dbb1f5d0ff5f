/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Operations whose arguments have changed.  A driver's operations have the newest kernel's
 * arguments; where ib_core has others, its device gets a function that calls the driver's.
 * All devices of a driver have the same function for such an operation.
 *
 * After 6.1: a kernel CQ is destroyed in two steps; without them by destroy_cq alone.
 * After 6.1: entries of SRQs in rdma netlink; without them the operations are not called.
 * After 6.1: create_cq gets all attributes of the method.
 * After 6.12: a driver may report the changes of a port itself; before, every driver does.
 * After 6.12: a DMA handle for a region.
 * After 6.12: the port of a counter's QP.
 * After 6.12: whether the driver checks all that processes give; ib_core tells them.
 * After 6.12: the speed of a port; without it the operation is not called.
 * After 6.12: operations of their own for the CQs of processes.
 */
#if !defined(COMPAT_HAS_DMAH) || !defined(COMPAT_HAS_COUNTER_PORT) || !defined(COMPAT_HAS_USER_CQ)
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>
#include <rdma/uverbs_ioctl.h>

struct ib_dmah;

/* The operations of which ib_core has another form, under names of their own. */
struct compat_ops {
#ifndef COMPAT_HAS_DMAH
	struct ib_mr *(*compat_reg_user_mr)(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
					    int access, struct ib_dmah *dmah,
					    struct ib_udata *udata);
	struct ib_mr *(*compat_reg_user_mr_dmabuf)(struct ib_pd *pd, u64 offset, u64 length,
						   u64 virt_addr, int fd, int access,
						   struct ib_dmah *dmah,
						   struct uverbs_attr_bundle *attrs);
#endif
#ifndef COMPAT_HAS_COUNTER_PORT
	int (*compat_counter_bind_qp)(struct rdma_counter *counter, struct ib_qp *qp, u32 port);
	int (*compat_counter_unbind_qp)(struct ib_qp *qp, u32 port);
#endif
#ifndef COMPAT_HAS_COUNTER_INIT
	void (*counter_init)(struct rdma_counter *counter);
	size_t size_rdma_counter;
#endif
#ifndef COMPAT_HAS_POST_DESTROY_CQ
	int (*pre_destroy_cq)(struct ib_cq *cq);
	void (*post_destroy_cq)(struct ib_cq *cq);
#endif
#ifndef COMPAT_HAS_FILL_RES_SRQ
	int (*fill_res_srq_entry)(struct sk_buff *msg, struct ib_srq *srq);
	int (*fill_res_srq_entry_raw)(struct sk_buff *msg, struct ib_srq *srq);
#endif
#ifndef COMPAT_HAS_ROBUST_UDATA
	unsigned int uverbs_robust_udata:1;
#endif
#ifndef COMPAT_HAS_REPORT_PORT_EVENT
	void (*report_port_event)(struct ib_device *device, struct net_device *netdev,
				  unsigned long event);
#endif
#ifndef COMPAT_HAS_QUERY_PORT_SPEED
	int (*query_port_speed)(struct ib_device *device, u32 port, u64 *speed);
#endif
#ifndef COMPAT_HAS_USER_CQ
	int (*compat_create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
				struct uverbs_attr_bundle *attrs);
	int (*create_user_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			      struct uverbs_attr_bundle *attrs);
	int (*resize_user_cq)(struct ib_cq *cq, unsigned int cqe, struct ib_udata *udata);
#endif
};

/* The compiler takes the members of both for members of this, by -fms-extensions. */
struct compat_device_ops {
	union {
		struct ib_device_ops;
		struct ib_device_ops kernel;
	};
	union {
		struct compat_ops;
		struct compat_ops driver;
	};
};

/* Those of the driver that the functions below call; a file sets the operations of one driver. */
static struct compat_ops compat_ops __maybe_unused;

#ifndef COMPAT_HAS_DMAH
static inline struct ib_mr *compat_call_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
						    u64 virt_addr, int access,
						    struct ib_udata *udata)
{
	return compat_ops.compat_reg_user_mr(pd, start, length, virt_addr, access, NULL, udata);
}

#ifdef COMPAT_HAS_CREATE_CQ_ATTRS
static inline struct ib_mr *
compat_call_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd,
			       int access, struct uverbs_attr_bundle *attrs)
{
	return compat_ops.compat_reg_user_mr_dmabuf(pd, offset, length, virt_addr, fd, access,
						    NULL, attrs);
}
#else
static inline struct ib_mr *
compat_call_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd,
			       int access, struct ib_udata *udata)
{
	return compat_ops.compat_reg_user_mr_dmabuf(pd, offset, length, virt_addr, fd, access, NULL,
						    rdma_udata_to_uverbs_attr_bundle(udata));
}
#endif
#endif /* COMPAT_HAS_DMAH */

#ifndef COMPAT_HAS_COUNTER_PORT
static inline int compat_call_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *qp)
{
	return compat_ops.compat_counter_bind_qp(counter, qp, counter->port);
}

static inline int compat_call_counter_unbind_qp(struct ib_qp *qp)
{
	return compat_ops.compat_counter_unbind_qp(qp, qp->counter->port);
}
#endif

#ifndef COMPAT_HAS_USER_CQ
static inline int compat_create(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
				struct uverbs_attr_bundle *attrs)
{
	if (attrs && compat_ops.create_user_cq)
		return compat_ops.create_user_cq(cq, attr, attrs);
	return compat_ops.compat_create_cq(cq, attr, attrs);
}

#ifdef COMPAT_HAS_CREATE_CQ_ATTRS
static inline int compat_call_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
					struct uverbs_attr_bundle *attrs)
{
	return compat_create(cq, attr, attrs);
}
#else
static inline int compat_call_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
					struct ib_udata *udata)
{
	return compat_create(cq, attr, udata ? rdma_udata_to_uverbs_attr_bundle(udata) : NULL);
}
#endif

static inline int compat_call_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata)
{
	return compat_ops.resize_user_cq(cq, cqe, udata);
}
#endif /* COMPAT_HAS_USER_CQ */

static inline void compat_set_device_ops(struct ib_device *device,
					 const struct compat_device_ops *ops)
{
	struct ib_device_ops taken = ops->kernel;

#ifndef COMPAT_HAS_DMAH
	if (ops->compat_reg_user_mr) {
		compat_ops.compat_reg_user_mr = ops->compat_reg_user_mr;
		taken.reg_user_mr = compat_call_reg_user_mr;
	}
	if (ops->compat_reg_user_mr_dmabuf) {
		compat_ops.compat_reg_user_mr_dmabuf = ops->compat_reg_user_mr_dmabuf;
		taken.reg_user_mr_dmabuf = compat_call_reg_user_mr_dmabuf;
	}
#endif
#ifndef COMPAT_HAS_COUNTER_PORT
	if (ops->compat_counter_bind_qp) {
		compat_ops.compat_counter_bind_qp = ops->compat_counter_bind_qp;
		taken.counter_bind_qp = compat_call_counter_bind_qp;
	}
	if (ops->compat_counter_unbind_qp) {
		compat_ops.compat_counter_unbind_qp = ops->compat_counter_unbind_qp;
		taken.counter_unbind_qp = compat_call_counter_unbind_qp;
	}
#endif
#ifndef COMPAT_HAS_USER_CQ
	if (ops->compat_create_cq) {
		compat_ops.compat_create_cq = ops->compat_create_cq;
		taken.create_cq = compat_call_create_cq;
	}
	if (ops->create_user_cq)
		compat_ops.create_user_cq = ops->create_user_cq;
	if (ops->resize_user_cq) {
		compat_ops.resize_user_cq = ops->resize_user_cq;
		taken.resize_cq = compat_call_resize_cq;
	}
#endif
	ib_set_device_ops(device, &taken);
}

#define ib_device_ops		compat_device_ops
#define ib_set_device_ops	compat_set_device_ops
#ifndef COMPAT_HAS_DMAH
#define reg_user_mr		compat_reg_user_mr
#define reg_user_mr_dmabuf	compat_reg_user_mr_dmabuf
#endif
#ifndef COMPAT_HAS_COUNTER_PORT
#define counter_bind_qp		compat_counter_bind_qp
#define counter_unbind_qp	compat_counter_unbind_qp
#endif
#ifndef COMPAT_HAS_USER_CQ
#define create_cq		compat_create_cq
#endif
#endif
