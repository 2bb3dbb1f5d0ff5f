// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Creation and destruction of objects by a program or an administrator, with faults.
 *
 *   faults once DEVICE GID-INDEX     creation and destruction of every object,
 *                                    while the test makes one command of the
 *                                    device fail: a failed step is repeated
 *   faults nth DEVICE GID-INDEX      the same, while each allocation of each
 *                                    step fails once in turn
 *   faults bind PCI-ADDRESS FIRST/EACH
 *                                    probe and removal of one device, likewise:
 *                                    the allocation FIRST and each EACH-th after
 *                                    it; 1/1: all allocations
 *   faults insmod MODULE FIRST/EACH  loading and unloading, likewise
 *
 * Prints one result in the Test Anything Protocol for each step. A step that fails
 * must return the right errno, leave nothing allocated, and succeed when it is
 * repeated. "nth", "bind" and "insmod" need a kernel with CONFIG_FAULT_INJECTION.
 * The fail-nth file of the kernel selects the allocation to fail. It counts only
 * the allocations of the calling thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "testbed.h"

#define LONG_BYTES	(8 << 20)
#define LONG_OFFSET	4096
#define NTH_MAX		20000	/* more than the allocations of any step */
#define OTHERS		6
#define DRIVER		"/sys/bus/pci/drivers/hghca/"

/* A step and its reversal; both return 0 or an errno. */
struct step {
	const char *name;
	int (*make)(void);
	const char *back;
	int (*unmake)(void);
	int other_errnos[OTHERS];	/* errnos of other kernel code after its own failed allocation; 0: the same errno */
};

/* How faults are injected, and which errno a step may return after one. */
struct faults {
	int (*attempt)(const char *name, int (*go)(void), int (*undo)(void));
	int errno_of_fault;
};

static const struct faults *faults;
static const int *other_errnos;
static int fail_nth = -1;
static int first_nth = 1, each_nth = 1;	/* the allocations that fail */
static int results, bad;

static int error_of(const void *made)
{
	return made ? 0 : errno ? errno : -1;
}

static void result(bool good, const char *name, int met, int harmless)
{
	bad += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", ++results, name);
	printf("# %s: %d faults told, %d without effect\n", name, met, harmless);
}

static bool right_errno(const char *name, int nth, int error)
{
	int i;

	for (i = 0; i < OTHERS; i++)
		if (error == other_errnos[i])
			return true;
	if (error == faults->errno_of_fault)
		return true;
	tb_fail("%s, fault %d: \"%s\", expected \"%s\"", name, nth, strerror(error), strerror(faults->errno_of_fault));
	return false;
}

/* At most one fault, at a time that the test chooses. */
static int attempt_once(const char *name, int (*go)(void), int (*undo)(void))
{
	int error = go();
	bool good = true;

	(void)undo;
	if (error) {
		good = right_errno(name, 1, error);
		printf("# fault told by: %s\n", name);
		error = go();
		if (error) {
			tb_fail("%s, tried again: \"%s\"", name, strerror(error));
			good = false;
		}
	}
	result(good, name, 0, 0);
	return error;
}

static void arm(int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fail_nth, text, length, 0) != length)
		tb_die("writing fail-nth");
}

/* Number of allocations before the one that fails. */
static int left(void)
{
	char text[16] = "";

	if (pread(fail_nth, text, sizeof(text) - 1, 0) <= 0)
		tb_die("reading fail-nth");
	return atoi(text);
}

/* Returns whether the armed fault has occurred. */
static bool disarm(void)
{
	bool happened = !left();

	arm(0);
	return happened;
}

/* Lets each allocation of the step fail, one after another. */
static int attempt_nth(const char *name, int (*go)(void), int (*undo)(void))
{
	int met = 0, harmless = 0, nth, error = 0;
	bool good = true, happened;

	for (nth = first_nth; nth < NTH_MAX; nth += each_nth) {
		arm(nth);
		error = go();
		happened = disarm();
		if (!error && !happened)
			break;
		if (error) {
			if (!happened) {
				tb_fail("%s: \"%s\" without a fault", name, strerror(error));
				good = false;
				break;
			}
			good &= right_errno(name, nth, error);
			met++;
			continue;
		}
		harmless++;
		error = undo();
		if (error) {
			tb_fail("%s, undone after fault %d: \"%s\"", name, nth, strerror(error));
			good = false;
			break;
		}
	}
	if (nth >= NTH_MAX) {
		tb_fail("%s: no end of allocations", name);
		good = false;
	}
	/* Only programs have steps without allocations, and all of their allocations are tried. */
	if (!met && !harmless && each_nth > 1) {
		tb_fail("%s: no fault happened", name);
		good = false;
	}
	result(good, name, met, harmless);
	printf("# %s: %s%d allocations\n", name, each_nth > 1 ? "about " : "", nth - each_nth);
	return error;
}

static const struct faults once_faults = { attempt_once, EIO };
static const struct faults nth_faults = { attempt_nth, ENOMEM };

/* Executes all steps, `whole` when all objects exist, and all reversals in reverse order. */
static int live(const struct step *steps, size_t count, void (*whole)(void))
{
	size_t i;

	for (i = 0; i < count; i++) {
		other_errnos = steps[i].other_errnos;
		if (faults->attempt(steps[i].name, steps[i].make, steps[i].unmake))
			return 1;
	}
	if (whole)
		whole();
	while (i--) {
		other_errnos = steps[i].other_errnos;
		if (faults->attempt(steps[i].back, steps[i].unmake, steps[i].make))
			return 1;
	}
	return 0;
}

/* ------------------------------------------------------------------ */
/* Steps of a program                                                  */

static struct ibv_device *device;
static int gid_index;
static struct tb_side side;
static struct tb_pair pair;
static struct ibv_comp_channel *channel;
static struct ibv_qp *ud;
static struct ibv_ah *ah;
static struct ibv_mr *long_mr, *dmabuf_mr;
static struct ibv_pd *other_pd;
static struct ibv_mw *type1, *type2;
static struct ibv_srq *srq;
static struct ibv_qp *sharing;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_qp *spreading;
static uint8_t *long_buf;
static int dmabuf;

static int open_device(void)
{
	errno = 0;
	side.ctx = ibv_open_device(device);
	return error_of(side.ctx);
}

static int close_device(void)
{
	return ibv_close_device(side.ctx) ? errno : 0;
}

static int alloc_pd(void)
{
	errno = 0;
	side.pd = ibv_alloc_pd(side.ctx);
	return error_of(side.pd);
}

static int dealloc_pd(void)
{
	return ibv_dealloc_pd(side.pd);
}

static int create_channel(void)
{
	errno = 0;
	channel = ibv_create_comp_channel(side.ctx);
	return error_of(channel);
}

static int destroy_channel(void)
{
	return ibv_destroy_comp_channel(channel) ? errno : 0;
}

static int create_cq(struct ibv_cq **cq)
{
	errno = 0;
	*cq = ibv_create_cq(side.ctx, 64, NULL, channel, 0);
	return error_of(*cq);
}

static int create_cq_a(void)
{
	return create_cq(&pair.a.scq);
}

static int destroy_cq_a(void)
{
	return ibv_destroy_cq(pair.a.scq);
}

static int create_cq_b(void)
{
	return create_cq(&pair.b.scq);
}

static int destroy_cq_b(void)
{
	return ibv_destroy_cq(pair.b.scq);
}

static int resize_cq(void)
{
	return ibv_resize_cq(pair.a.scq, 500);
}

static int resize_cq_back(void)
{
	return ibv_resize_cq(pair.a.scq, 64);
}

static int reg_mr(struct tb_qp *q)
{
	errno = 0;
	q->mr = ibv_reg_mr(side.pd, q->buf, TB_BUF_BYTES, TB_ACCESS_ALL);
	return error_of(q->mr);
}

static int reg_mr_a(void)
{
	return reg_mr(&pair.a);
}

static int dereg_mr_a(void)
{
	return ibv_dereg_mr(pair.a.mr);
}

static int reg_mr_b(void)
{
	return reg_mr(&pair.b);
}

static int dereg_mr_b(void)
{
	return ibv_dereg_mr(pair.b.mr);
}

static int reg_long_mr(void)
{
	errno = 0;
	long_mr = ibv_reg_mr(side.pd, long_buf + LONG_OFFSET, LONG_BYTES - LONG_OFFSET - 1, TB_ACCESS_ALL);
	return error_of(long_mr);
}

static int alloc_other_pd(void)
{
	errno = 0;
	other_pd = ibv_alloc_pd(side.ctx);
	return error_of(other_pd);
}

static int dealloc_other_pd(void)
{
	return ibv_dealloc_pd(other_pd);
}

static int rereg_long(int flags, struct ibv_pd *pd, size_t offset, int access)
{
	errno = 0;
	return ibv_rereg_mr(long_mr, flags, pd, long_buf + offset, LONG_BYTES - offset, access) ? errno : 0;
}

static int rereg_access(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, IBV_ACCESS_REMOTE_READ);
}

static int rereg_access_back(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, TB_ACCESS_ALL);
}

static int rereg_pd(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_PD, other_pd, 0, 0);
}

static int rereg_pd_back(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_PD, side.pd, 0, 0);
}

static int rereg_address(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, LONG_BYTES / 2, 0);
}

static int rereg_address_back(void)
{
	return rereg_long(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, LONG_OFFSET, 0);
}

static int reg_dmabuf(void)
{
	errno = 0;
	dmabuf_mr = ibv_reg_dmabuf_mr(side.pd, 0, TB_BUF_BYTES, 0, dmabuf, TB_ACCESS_ALL);
	return error_of(dmabuf_mr);
}

static int dereg_dmabuf(void)
{
	return ibv_dereg_mr(dmabuf_mr);
}

static int alloc_type1(void)
{
	errno = 0;
	type1 = ibv_alloc_mw(side.pd, IBV_MW_TYPE_1);
	return error_of(type1);
}

static int dealloc_type1(void)
{
	return ibv_dealloc_mw(type1);
}

static int alloc_type2(void)
{
	errno = 0;
	type2 = ibv_alloc_mw(side.pd, IBV_MW_TYPE_2);
	return error_of(type2);
}

static int dealloc_type2(void)
{
	return ibv_dealloc_mw(type2);
}

static int create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 30, .max_sge = 2 } };

	errno = 0;
	srq = ibv_create_srq(side.pd, &init);
	return error_of(srq);
}

static int destroy_srq(void)
{
	return ibv_destroy_srq(srq);
}

static int resize_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = 500 };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

/* An SRQ can only grow. */
static int renew_srq(void)
{
	int error = srq ? destroy_srq() : 0;

	return error ? error : create_srq();
}

static int query_srq(void)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(srq, &attr);
}

static int limit_srq(uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int arm_srq(void)
{
	return limit_srq(1);
}

static int disarm_srq(void)
{
	return limit_srq(0);
}

static int create_sharing(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = pair.a.scq,
		.recv_cq = pair.b.scq,
		.srq = srq,
		.cap = { .max_send_wr = 10, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	errno = 0;
	sharing = ibv_create_qp(side.pd, &init);
	return error_of(sharing);
}

static int destroy_sharing(void)
{
	return ibv_destroy_qp(sharing);
}

static int dereg_long_mr(void)
{
	return ibv_dereg_mr(long_mr);
}

static int create_qp(struct ibv_qp **qp, struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2 },
		.qp_type = type,
		.sq_sig_all = 1,
	};

	errno = 0;
	*qp = ibv_create_qp(side.pd, &init);
	return error_of(*qp);
}

static int create_qp_a(void)
{
	return create_qp(&pair.a.qp, pair.a.scq, IBV_QPT_RC);
}

static int destroy_qp_a(void)
{
	return ibv_destroy_qp(pair.a.qp);
}

static int create_qp_b(void)
{
	return create_qp(&pair.b.qp, pair.b.scq, IBV_QPT_RC);
}

static int destroy_qp_b(void)
{
	return ibv_destroy_qp(pair.b.qp);
}

static int create_ud(void)
{
	return create_qp(&ud, pair.a.scq, IBV_QPT_UD);
}

static int destroy_ud(void)
{
	return ibv_destroy_qp(ud);
}

/* Groups of both kinds: 239.1.2.3 and ff0e::1:2:3. */
static const union ibv_gid ipv4_group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } };
static const union ibv_gid ipv6_group = { .raw = { 0xff, 0x0e, [11] = 1, [13] = 2, [15] = 3 } };

static int attach_ipv4(void)
{
	return ibv_attach_mcast(ud, &ipv4_group, 0);
}

static int detach_ipv4(void)
{
	return ibv_detach_mcast(ud, &ipv4_group, 0);
}

static int attach_ipv6(void)
{
	return ibv_attach_mcast(ud, &ipv6_group, 0);
}

static int detach_ipv6(void)
{
	return ibv_detach_mcast(ud, &ipv6_group, 0);
}

static int create_wq(void)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 32,
		.max_sge = 2,
		.pd = side.pd,
		.cq = pair.a.scq,
	};

	errno = 0;
	wq = ibv_create_wq(side.ctx, &init);
	return error_of(wq);
}

static int destroy_wq(void)
{
	return ibv_destroy_wq(wq);
}

static int wq_to(enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

static int start_wq(void)
{
	return wq_to(IBV_WQS_RDY);
}

static int reset_wq(void)
{
	return wq_to(IBV_WQS_RESET);
}

/*
 * A table of two entries. The command for one entry ends with four bytes of padding. If ib_core has no memory to check
 * that they are 0, it treats them as an unknown extension.
 */
static int create_table(void)
{
	struct ibv_wq *queues[] = { wq, wq };
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = 1, .ind_tbl = queues };

	errno = 0;
	table = ibv_create_rwq_ind_table(side.ctx, &init);
	return error_of(table);
}

static int destroy_table(void)
{
	return ibv_destroy_rwq_ind_table(table);
}

static int create_spreading(void)
{
	static uint8_t key[40] = { 0x6d, 0x5a };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = side.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key),
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4,
		},
	};

	errno = 0;
	spreading = ibv_create_qp_ex(side.ctx, &init);
	return error_of(spreading);
}

static int destroy_spreading(void)
{
	return ibv_destroy_qp(spreading);
}

static struct ibv_ah_attr path(void)
{
	return (struct ibv_ah_attr) {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = side.gid, .sgid_index = gid_index, .hop_limit = 64 },
	};
}

static int create_ah(void)
{
	struct ibv_ah_attr attr = path();

	errno = 0;
	ah = ibv_create_ah(side.pd, &attr);
	return error_of(ah);
}

static int destroy_ah(void)
{
	return ibv_destroy_ah(ah);
}

static int to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = TB_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = path(),
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int init_a(void)
{
	return to_init(pair.a.qp);
}

static int reset_a(void)
{
	return to_reset(pair.a.qp);
}

/* A transition can only be reversed from the start. */
static int rtr_a(void)
{
	return to_rtr(pair.a.qp, pair.b.qp);
}

static int init_a_again(void)
{
	int error = to_reset(pair.a.qp);

	return error ? error : to_init(pair.a.qp);
}

static int rts_a(void)
{
	return to_rts(pair.a.qp);
}

static int rtr_a_again(void)
{
	int error = init_a_again();

	return error ? error : rtr_a();
}

static int connect_b(void)
{
	int error = to_init(pair.b.qp);

	error = error ? error : to_rtr(pair.b.qp, pair.a.qp);
	error = error ? error : to_rts(pair.b.qp);
	if (error)
		to_reset(pair.b.qp);
	return error;
}

static int reset_b(void)
{
	return to_reset(pair.b.qp);
}

static int query_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(pair.a.qp, &attr, IBV_QP_STATE, &init);
}

static const struct step program_life[] = {
	/*
	 * libibverbs treats a node that it cannot open as absent.  ib_core maps a page of registers, and
	 * says EAGAIN if there is no page table for it.
	 */
	{ "open the device", open_device, "close the device", close_device, { ENOENT, EAGAIN } },
	{ "allocate a PD", alloc_pd, "deallocate the PD", dealloc_pd, { 0 } },
	{ "create a completion channel", create_channel, "destroy the completion channel", destroy_channel, { 0 } },
	{ "create a CQ", create_cq_a, "destroy the CQ", destroy_cq_a, { 0 } },
	{ "create a second CQ", create_cq_b, "destroy the second CQ", destroy_cq_b, { 0 } },
	{ "register an MR", reg_mr_a, "deregister the MR", dereg_mr_a, { 0 } },
	{ "register a second MR", reg_mr_b, "deregister the second MR", dereg_mr_b, { 0 } },
	{ "register a long MR", reg_long_mr, "deregister the long MR", dereg_long_mr, { 0 } },
	{ "register a dma-buf", reg_dmabuf, "deregister the dma-buf", dereg_dmabuf, { 0 } },
	{ "allocate another PD", alloc_other_pd, "deallocate the other PD", dealloc_other_pd, { 0 } },
	{ "change the long MR's access", rereg_access, "change it back", rereg_access_back, { 0 } },
	{ "change the long MR's PD", rereg_pd, "change the PD back", rereg_pd_back, { 0 } },
	{ "change the long MR's address", rereg_address, "change the address back", rereg_address_back, { 0 } },
	{ "allocate an MW of type 1", alloc_type1, "deallocate the MW of type 1", dealloc_type1, { 0 } },
	{ "allocate an MW of type 2", alloc_type2, "deallocate the MW of type 2", dealloc_type2, { 0 } },
	{ "create an SRQ", create_srq, "destroy the SRQ", destroy_srq, { 0 } },
	{ "resize the SRQ", resize_srq, "create the SRQ again", renew_srq, { 0 } },
	{ "query the SRQ", query_srq, "query the SRQ again", query_srq, { 0 } },
	{ "arm the SRQ", arm_srq, "disarm the SRQ", disarm_srq, { 0 } },
	{ "create a QP with the SRQ", create_sharing, "destroy the QP with the SRQ", destroy_sharing, { 0 } },
	{ "create an RC QP", create_qp_a, "destroy the RC QP", destroy_qp_a, { 0 } },
	{ "create a second RC QP", create_qp_b, "destroy the second RC QP", destroy_qp_b, { 0 } },
	{ "create a UD QP", create_ud, "destroy the UD QP", destroy_ud, { 0 } },
	{ "attach to a group", attach_ipv4, "detach from the group", detach_ipv4, { 0 } },
	{ "attach to an IPv6 group", attach_ipv6, "detach from the IPv6 group", detach_ipv6, { 0 } },
	{ "create a receive work queue", create_wq, "destroy the receive work queue", destroy_wq, { 0 } },
	{ "RESET to RDY", start_wq, "RDY to RESET", reset_wq, { 0 } },
	{ "create a table of queues", create_table, "destroy the table of queues", destroy_table, { 0 } },
	{ "create a QP with the table", create_spreading, "destroy the QP with the table", destroy_spreading, { 0 } },
	/* Routing has its own errno when an address is resolved. */
	{ "create an AH", create_ah, "destroy the AH", destroy_ah, { ENOBUFS } },
	{ "RESET to INIT", init_a, "to RESET", reset_a, { 0 } },
	{ "INIT to RTR", rtr_a, "RTR to RESET to INIT", init_a_again, { ENOBUFS } },
	{ "RTR to RTS", rts_a, "RTS to RESET to INIT to RTR", rtr_a_again, { ENOBUFS } },
	{ "connect the second QP", connect_b, "reset the second QP", reset_b, { ENOBUFS } },
	{ "query the QP", query_qp, "query the QP again", query_qp, { 0 } },
	{ "resize the CQ", resize_cq, "resize the CQ back", resize_cq_back, { 0 } },
};

static void move_data(void)
{
	pair.a.rcq = pair.a.scq;
	pair.b.rcq = pair.b.scq;
	result(tb_check_traffic(&pair, "the connected QPs"), "data moves", 0, 0);
}

static uint8_t *memory(size_t bytes)
{
	uint8_t *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (area == MAP_FAILED)
		tb_die("mmap");
	return area;
}

static int new_dmabuf(size_t bytes)
{
	struct dma_heap_allocation_data alloc = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);

	if (heap < 0 || ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc))
		tb_die("/dev/dma_heap/system");
	close(heap);
	return alloc.fd;
}

static void live_as_program(const char *name, int index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			device = list[i];
	if (!device)
		tb_die("no device %s", name);
	gid_index = index;
	open_device();
	if (!side.ctx || ibv_query_gid(side.ctx, 1, index, &side.gid) || close_device())
		tb_die("%s has no GID %d", name, index);
	side.gid_index = index;
	side.mtu = IBV_MTU_1024;
	pair.a.side = &side;
	pair.b.side = &side;
	pair.a.buf = memory(TB_BUF_BYTES);
	pair.b.buf = memory(TB_BUF_BYTES);
	long_buf = memory(LONG_BYTES);
	dmabuf = new_dmabuf(TB_BUF_BYTES);
	live(program_life, sizeof(program_life) / sizeof(*program_life), move_data);
}

/* ------------------------------------------------------------------ */
/* Steps of an administrator                                           */

static int bind_file, unbind_file, module_file;
static const char *address;

static int write_address(int file)
{
	return pwrite(file, address, strlen(address), 0) < 0 ? errno : 0;
}

static int probe(void)
{
	return write_address(bind_file);
}

static int remove_device(void)
{
	return write_address(unbind_file);
}

static const struct step device_life[] = {
	/*
	 * ACPI returns EIO when PCI requests power. PCI returns EBUSY for regions, and ENOSPC or ENODEV for vectors. IP
	 * returns ENOBUFS for a new netdev. The driver core returns EINVAL for a netdev whose device has no name, which
	 * netdev_register_kobject() does not check.
	 */
	{ "probe", probe, "removal", remove_device, { EIO, EBUSY, ENOSPC, ENODEV, ENOBUFS, EINVAL } },
};

static int load(void)
{
	return syscall(SYS_finit_module, module_file, "", 0) ? errno : 0;
}

static int unload(void)
{
	return syscall(SYS_delete_module, "hghca", O_NONBLOCK) ? errno : 0;
}

static const struct step module_life[] = {
	/* The driver core returns EINVAL if it has no memory for a folder in sysfs. */
	{ "load the module", load, "unload the module", unload, { EINVAL } },
};

static int open_file(const char *path, int flags)
{
	int file = open(path, flags | O_CLOEXEC);

	if (file < 0)
		tb_die("%s", path);
	return file;
}

/* FIRST/EACH */
static void choose_allocations(const char *text)
{
	char rest;

	if (sscanf(text, "%d/%d%c", &first_nth, &each_nth, &rest) != 2 || first_nth < 1 || each_nth < 1)
		tb_die("not FIRST/EACH: %s", text);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 4)
		tb_die("usage: faults once|nth DEVICE GID-INDEX, "
		       "faults bind PCI-ADDRESS FIRST/EACH, faults insmod MODULE FIRST/EACH");
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		tb_die("mlockall");
	faults = &once_faults;
	if (strcmp(argv[1], "once")) {
		fail_nth = open_file("/proc/thread-self/fail-nth", O_RDWR);
		faults = &nth_faults;
	}
	if (!strcmp(argv[1], "bind")) {
		address = argv[2];
		choose_allocations(argv[3]);
		bind_file = open_file(DRIVER "bind", O_WRONLY);
		unbind_file = open_file(DRIVER "unbind", O_WRONLY);
		live(device_life, 1, NULL);
	} else if (!strcmp(argv[1], "insmod")) {
		choose_allocations(argv[3]);
		module_file = open_file(argv[2], O_RDONLY);
		live(module_life, 1, NULL);
	} else {
		live_as_program(argv[2], atoi(argv[3]));
	}
	printf("1..%d\n", results);
	return bad || !results;
}
