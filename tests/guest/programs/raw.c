// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "raw.h"
#include "testbed.h"

#define PAGE_BYTES	4096
#define START_PSN	0xfffffe
#define CQ_BYTES	(64 * 1024)
#define CQ_ENTRIES	128
#define DRIVER_IDS	64		/* more than Linux has */

int raw_command(int fd, uint32_t command, void *cmd, size_t cmd_size, void *resp, size_t resp_size)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command,
		.in_words = (sizeof(hdr) + cmd_size) / 4,
		.out_words = resp_size / 4,
	};
	uint8_t message[512];
	uint64_t answer = (uintptr_t)resp;

	memcpy(message, &hdr, sizeof(hdr));
	memcpy(message + sizeof(hdr), cmd, cmd_size);
	if (resp_size)
		memcpy(message + sizeof(hdr), &answer, sizeof(answer));
	if (write(fd, message, sizeof(hdr) + cmd_size) == (ssize_t)(sizeof(hdr) + cmd_size))
		return 0;
	return errno;
}

void raw_must(int fd, uint32_t command, void *cmd, size_t cmd_size, void *resp, size_t resp_size, const char *what)
{
	errno = raw_command(fd, command, cmd, cmd_size, resp, resp_size);
	if (errno)
		tb_die("%s", what);
}

int raw_ex_command(int fd, uint32_t command, const void *cmd, size_t core_size, size_t driver_size, void *resp,
		   size_t resp_core_size, size_t resp_driver_size)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_ex_cmd_hdr ex;
		uint8_t body[512];
	} message = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_FLAG_EXTENDED | command,
			.in_words = core_size / 8,
			.out_words = resp_core_size / 8,
		},
		.ex = {
			.response = (uintptr_t)resp,
			.provider_in_words = driver_size / 8,
			.provider_out_words = resp_driver_size / 8,
		},
	};
	ssize_t bytes = sizeof(message.hdr) + sizeof(message.ex) + core_size + driver_size;

	memcpy(message.body, cmd, core_size + driver_size);
	return write(fd, &message, bytes) == bytes ? 0 : errno;
}

/* The kernel compares the driver's id before it looks for the method, so one that there is not tells the right id. */
static uint32_t find_driver_id(int fd)
{
	struct ib_uverbs_ioctl_hdr hdr = { .length = sizeof(hdr), .object_id = UINT16_MAX, .method_id = UINT16_MAX };

	for (; hdr.driver_id < DRIVER_IDS; hdr.driver_id++)
		if (ioctl(fd, RDMA_VERBS_IOCTL, &hdr) && errno != EINVAL)
			return hdr.driver_id;
	tb_die("the kernel takes no id of a driver below %u", DRIVER_IDS);
}

int raw_method(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	static uint32_t driver_id = DRIVER_IDS;

	if (driver_id == DRIVER_IDS)
		driver_id = find_driver_id(fd);
	hdr->driver_id = driver_id;
	return ioctl(fd, RDMA_VERBS_IOCTL, hdr) ? errno : 0;
}

void *raw_pages(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		tb_die("mmap");
	return pages;
}

/* The kernel returns cached counters if it has read them in the same tick. */
static void wait_for_tick(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &start);
	do
		clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	while (now.tv_sec == start.tv_sec && now.tv_nsec - start.tv_nsec < 8000000);
}

long raw_counter(const char *folder, const char *name)
{
	char path[512];
	long value = -1;
	FILE *file;

	wait_for_tick();
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%ld", &value) != 1)
		tb_fail("counter %s cannot be read", path);
	if (file)
		fclose(file);
	return value;
}

/* `node` is set to the path, of at most 63 characters. */
static int open_uverbs(const char *device, char *node)
{
	char path[512], name[64];
	struct dirent *entry;
	FILE *file;
	DIR *dir;
	int fd;

	dir = opendir("/sys/class/infiniband_verbs");
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%63s", name) != 1)
			name[0] = 0;
		fclose(file);
		if (strcmp(name, device))
			continue;
		snprintf(node, 64, "/dev/infiniband/%.40s", entry->d_name);
		fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			tb_die("%s", node);
		closedir(dir);
		return fd;
	}
	tb_die("no uverbs device of %s", device);
}

static void get_context(struct raw_ctx *ctx)
{
	struct ib_uverbs_get_context cmd = {};
	struct {
		struct ib_uverbs_get_context_resp core;
		struct hghca_alloc_ucontext_resp driver;
	} resp = {};

	raw_must(ctx->fd, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), &resp, sizeof(resp), "GET_CONTEXT");
	ctx->async_fd = resp.core.async_fd;
	ctx->caps = resp.driver;
	ctx->uar = mmap(NULL, PAGE_BYTES, PROT_WRITE, MAP_SHARED, ctx->fd, ctx->caps.uar_mmap_offset);
	if (ctx->uar == MAP_FAILED)
		tb_die("mapping the UAR page");
}

static void alloc_pd(struct raw_ctx *ctx)
{
	struct ib_uverbs_alloc_pd cmd = {};
	struct {
		struct ib_uverbs_alloc_pd_resp core;
		struct hghca_alloc_pd_resp driver;
	} resp = {};

	raw_must(ctx->fd, IB_USER_VERBS_CMD_ALLOC_PD, &cmd, sizeof(cmd), &resp, sizeof(resp), "ALLOC_PD");
	ctx->pd_handle = resp.core.pd_handle;
	ctx->pdn = resp.driver.pdn;
}

void raw_open(struct raw_ctx *ctx, const char *device)
{
	struct ib_uverbs_reg_mr reg = {
		.length = RAW_BUF_BYTES,
		.access_flags = TB_ACCESS_ALL,
	};

	ctx->fd = open_uverbs(device, ctx->node);
	get_context(ctx);
	alloc_pd(ctx);
	ctx->buf = raw_pages(RAW_BUF_BYTES);
	reg.start = (uintptr_t)ctx->buf;
	reg.hca_va = reg.start;
	reg.pd_handle = ctx->pd_handle;
	raw_must(ctx->fd, IB_USER_VERBS_CMD_REG_MR, &reg, sizeof(reg), &ctx->mr, sizeof(ctx->mr), "REG_MR");
}

/* The kernel destroys the remaining objects when the last descriptor is closed. */
void raw_close(struct raw_ctx *ctx)
{
	munmap(ctx->uar, PAGE_BYTES);
	munmap(ctx->buf, RAW_BUF_BYTES);
	close(ctx->async_fd);
	close(ctx->fd);
}

int raw_try_create_cq(struct raw_ctx *ctx, uint32_t cqe, struct hghca_create_cq *driver, size_t driver_size,
		      uint32_t *handle)
{
	struct {
		struct ib_uverbs_create_cq core;
		uint8_t driver[64];
	} cmd = { .core = { .cqe = cqe, .comp_channel = -1 } };
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct hghca_create_cq_resp driver;
	} resp = {};
	int error;

	memcpy(cmd.driver, driver, driver_size);
	error = raw_command(ctx->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd.core) + driver_size, &resp,
			    sizeof(resp));
	if (!error)
		*handle = resp.core.cq_handle;
	return error;
}

static uint32_t roundup_pow2(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

void raw_cq_create(struct raw_cq *cq, struct raw_ctx *ctx)
{
	struct {
		struct ib_uverbs_create_cq core;
		struct hghca_create_cq driver;
	} cmd = { .core = { .cqe = CQ_ENTRIES - 1, .comp_channel = -1 } };
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct hghca_create_cq_resp driver;
	} resp = {};
	uint32_t i;

	memset(cq, 0, sizeof(*cq));
	cq->cqe = raw_pages(CQ_BYTES);
	cq->dbr = raw_pages(PAGE_BYTES);
	for (i = 0; i < CQ_BYTES / sizeof(*cq->cqe); i++)
		cq->cqe[i].owner = HGHCA_CQ_ENTRY_OWNER_HW;
	cmd.driver.buf_addr = (uintptr_t)cq->cqe;
	cmd.driver.dbr_addr = (uintptr_t)cq->dbr;
	raw_must(ctx->fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp), "CREATE_CQ");
	cq->handle = resp.core.cq_handle;
	cq->cqn = resp.driver.cqn;
	cq->entries = roundup_pow2(resp.core.cqe);
}

int raw_destroy_cq_handle(struct raw_ctx *ctx, uint32_t handle)
{
	struct ib_uverbs_destroy_cq cmd = { .cq_handle = handle };
	struct ib_uverbs_destroy_cq_resp resp;

	return raw_command(ctx->fd, IB_USER_VERBS_CMD_DESTROY_CQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

void raw_cq_destroy(struct raw_cq *cq, struct raw_ctx *ctx)
{
	errno = raw_destroy_cq_handle(ctx, cq->handle);
	if (errno)
		tb_die("DESTROY_CQ");
	munmap(cq->cqe, CQ_BYTES);
	munmap(cq->dbr, PAGE_BYTES);
}

int raw_try_create_qp_of(struct raw_ctx *ctx, const struct ib_uverbs_create_qp *core, const void *driver,
			 size_t driver_size, uint32_t *handle, uint32_t *qpn)
{
	struct {
		struct ib_uverbs_create_qp core;
		uint8_t driver[64];
	} cmd = { .core = *core };
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct hghca_create_qp_resp driver;
	} resp = {};
	int error;

	memcpy(cmd.driver, driver, driver_size);
	error = raw_command(ctx->fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd.core) + driver_size, &resp,
			    sizeof(resp));
	if (error)
		return error;
	*handle = resp.core.qp_handle;
	*qpn = resp.driver.qpn ? resp.driver.qpn : resp.core.qpn;
	return 0;
}

int raw_try_create_qp(struct raw_ctx *ctx, const struct raw_cq *cq, struct hghca_create_qp *driver,
		      size_t driver_size, uint32_t *handle, uint32_t *qpn)
{
	struct raw_qp plain = { .ctx = ctx, .type = IBV_QPT_RC, .cq = *cq };
	struct ib_uverbs_create_qp core;

	raw_qp_core_data(&plain, &core);
	return raw_try_create_qp_of(ctx, &core, driver, driver_size, handle, qpn);
}

static size_t queue_bytes(void)
{
	return (RAW_WQES * RAW_STRIDE + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

void raw_qp_core_data(const struct raw_qp *qp, struct ib_uverbs_create_qp *core)
{
	*core = (struct ib_uverbs_create_qp) {
		.pd_handle = qp->ctx->pd_handle,
		.send_cq_handle = qp->cq.handle,
		.recv_cq_handle = qp->cq.handle,
		.srq_handle = qp->srq ? qp->srq->handle : 0,
		.is_srq = qp->srq != NULL,
		.max_send_wr = RAW_WQES,
		.max_recv_wr = qp->srq ? 0 : RAW_WQES,
		.max_send_sge = 2,
		.max_recv_sge = qp->srq ? 0 : 2,
		.sq_sig_all = 1,
		.qp_type = qp->type,
	};
}

struct hghca_create_qp raw_qp_driver_data(const struct raw_qp *qp)
{
	return (struct hghca_create_qp) {
		.buf_addr = (uintptr_t)qp->queues,
		.dbr_addr = (uintptr_t)qp->dbr,
		.sq_wqe_cnt = RAW_WQES,
		.rq_wqe_cnt = qp->srq ? 0 : RAW_WQES,
		.log_sq_stride = RAW_LOG_STRIDE,
		.log_rq_stride = RAW_LOG_STRIDE,
	};
}

void raw_qp_create_of(struct raw_qp *qp, struct raw_ctx *ctx, enum ibv_qp_type type, struct raw_srq *srq)
{
	struct ib_uverbs_create_qp core;
	struct hghca_create_qp driver;

	memset(qp, 0, sizeof(*qp));
	qp->ctx = ctx;
	qp->type = type;
	qp->srq = srq;
	raw_cq_create(&qp->cq, ctx);
	qp->queues = raw_pages(2 * queue_bytes());
	qp->dbr = raw_pages(PAGE_BYTES);
	raw_qp_core_data(qp, &core);
	driver = raw_qp_driver_data(qp);
	errno = raw_try_create_qp_of(ctx, &core, &driver, sizeof(driver), &qp->handle, &qp->qpn);
	if (errno)
		tb_die("CREATE_QP");
}

void raw_qp_create(struct raw_qp *qp, struct raw_ctx *ctx)
{
	raw_qp_create_of(qp, ctx, IBV_QPT_RC, NULL);
}

int raw_try_create_srq(struct raw_ctx *ctx, uint32_t pd_handle, const struct hghca_create_srq *driver,
		       uint32_t *handle, uint32_t *srqn)
{
	struct {
		struct ib_uverbs_create_srq core;
		struct hghca_create_srq driver;
	} cmd = { .core = { .pd_handle = pd_handle, .max_wr = RAW_WQES - 1, .max_sge = 2 }, .driver = *driver };
	struct {
		struct ib_uverbs_create_srq_resp core;
		struct hghca_create_srq_resp driver;
	} resp = {};
	int error;

	error = raw_command(ctx->fd, IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (error)
		return error;
	*handle = resp.core.srq_handle;
	*srqn = resp.driver.srqn;
	return 0;
}

int raw_try_create_wq(struct raw_ctx *ctx, uint32_t pd_handle, uint32_t cq_handle, uint8_t *pages, uint32_t *handle)
{
	struct {
		struct ib_uverbs_ex_create_wq core;
		struct hghca_create_wq driver;
	} cmd = {
		.core = { .wq_type = IBV_WQT_RQ, .pd_handle = pd_handle, .cq_handle = cq_handle, .max_wr = RAW_WQES,
			  .max_sge = 2 },
		.driver = { .buf_addr = (uintptr_t)pages, .dbr_addr = (uintptr_t)pages + RAW_WQ_BYTES / 2,
			    .wqe_cnt = RAW_WQES, .log_stride = RAW_LOG_STRIDE },
	};
	struct ib_uverbs_ex_create_wq_resp resp = {};
	int error;

	error = raw_ex_command(ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_WQ, &cmd, sizeof(cmd.core), sizeof(cmd.driver),
			       &resp, sizeof(resp), 0);
	*handle = resp.wq_handle;
	return error;
}

int raw_try_create_table(struct raw_ctx *ctx, uint32_t wq_handle, uint32_t *handle)
{
	/* One handle, padded to eight bytes. */
	struct {
		uint32_t comp_mask;
		uint32_t log_ind_tbl_size;
		uint32_t wq_handles[2];
	} cmd = { .wq_handles = { wq_handle } };
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	int error;

	_Static_assert(offsetof(struct ib_uverbs_ex_create_rwq_ind_table, wq_handles) == 8, "the kernel's layout");
	error = raw_ex_command(ctx->fd, IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, &cmd, sizeof(cmd), 0, &resp,
			       sizeof(resp), 0);
	*handle = resp.ind_tbl_handle;
	return error;
}

/* The chain of slots is in the order of the queue. */
void raw_srq_create(struct raw_srq *srq, struct raw_ctx *ctx)
{
	struct hghca_create_srq driver = { .wqe_cnt = RAW_WQES, .log_stride = RAW_LOG_STRIDE };
	unsigned int i;

	memset(srq, 0, sizeof(*srq));
	srq->ctx = ctx;
	srq->queue = raw_pages(queue_bytes());
	srq->dbr = raw_pages(PAGE_BYTES);
	for (i = 0; i < RAW_WQES; i++)
		((struct hghca_next_unit *)(srq->queue + i * RAW_STRIDE))->nda_nop =
			htole32((i + 1) % RAW_WQES * RAW_STRIDE);
	driver.buf_addr = (uintptr_t)srq->queue;
	driver.dbr_addr = (uintptr_t)srq->dbr;
	errno = raw_try_create_srq(ctx, ctx->pd_handle, &driver, &srq->handle, &srq->srqn);
	if (errno)
		tb_die("CREATE_SRQ");
}

void raw_srq_destroy(struct raw_srq *srq)
{
	struct ib_uverbs_destroy_srq cmd = { .srq_handle = srq->handle };
	struct ib_uverbs_destroy_srq_resp resp;

	raw_must(srq->ctx->fd, IB_USER_VERBS_CMD_DESTROY_SRQ, &cmd, sizeof(cmd), &resp, sizeof(resp), "DESTROY_SRQ");
	munmap(srq->queue, queue_bytes());
	munmap(srq->dbr, PAGE_BYTES);
}

int raw_destroy_qp_handle(struct raw_ctx *ctx, uint32_t handle)
{
	struct ib_uverbs_destroy_qp cmd = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp resp;

	return raw_command(ctx->fd, IB_USER_VERBS_CMD_DESTROY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp));
}

void raw_qp_destroy(struct raw_qp *qp)
{
	errno = raw_destroy_qp_handle(qp->ctx, qp->handle);
	if (errno)
		tb_die("DESTROY_QP");
	raw_cq_destroy(&qp->cq, qp->ctx);
	munmap(qp->queues, 2 * queue_bytes());
	munmap(qp->dbr, PAGE_BYTES);
}

static void modify(struct raw_qp *qp, struct ib_uverbs_modify_qp *cmd, const char *what)
{
	cmd->qp_handle = qp->handle;
	raw_must(qp->ctx->fd, IB_USER_VERBS_CMD_MODIFY_QP, cmd, sizeof(*cmd), NULL, 0, what);
}

void raw_qp_to_init(struct raw_qp *qp)
{
	struct ib_uverbs_modify_qp cmd = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = TB_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
	};

	modify(qp, &cmd, "QP to INIT");
}

/* Attributes that an RC QP requires and a UC QP must not set. */
static uint32_t rc_alone(const struct raw_qp *qp, uint32_t mask)
{
	return qp->type == IBV_QPT_RC ? mask : 0;
}

void raw_qp_to_rtr(struct raw_qp *qp, const uint8_t *gid, int gid_index, enum ibv_mtu mtu, uint32_t dest_qpn)
{
	struct ib_uverbs_modify_qp cmd = {
		.attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     rc_alone(qp, IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = START_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.dest = { .is_global = 1, .port_num = 1, .sgid_index = gid_index, .hop_limit = 64 },
	};

	memcpy(cmd.dest.dgid, gid, sizeof(cmd.dest.dgid));
	modify(qp, &cmd, "QP to RTR");
}

void raw_qp_to_rts(struct raw_qp *qp)
{
	struct ib_uverbs_modify_qp cmd = {
		.attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN |
			     rc_alone(qp, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					  IBV_QP_MAX_QP_RD_ATOMIC),
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.sq_psn = START_PSN,
		.max_rd_atomic = 4,
	};

	modify(qp, &cmd, "QP to RTS");
}

void raw_ud_start(struct raw_qp *qp, uint32_t qkey)
{
	struct ib_uverbs_modify_qp init = {
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = qkey,
	};
	struct ib_uverbs_modify_qp rtr = { .attr_mask = IBV_QP_STATE, .qp_state = IBV_QPS_RTR };
	struct ib_uverbs_modify_qp rts = { .attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN, .qp_state = IBV_QPS_RTS };

	modify(qp, &init, "UD QP to INIT");
	modify(qp, &rtr, "UD QP to RTR");
	modify(qp, &rts, "UD QP to RTS");
}

int raw_qp_state(struct raw_qp *qp)
{
	struct ib_uverbs_query_qp cmd = { .qp_handle = qp->handle, .attr_mask = IBV_QP_STATE };
	struct ib_uverbs_query_qp_resp resp = {};

	raw_must(qp->ctx->fd, IB_USER_VERBS_CMD_QUERY_QP, &cmd, sizeof(cmd), &resp, sizeof(resp), "QUERY_QP");
	return resp.qp_state;
}

void *raw_send_slot(struct raw_qp *qp, unsigned int index)
{
	return qp->queues + (size_t)(index % RAW_WQES) * RAW_STRIDE;
}

void *raw_recv_slot(struct raw_qp *qp, unsigned int index)
{
	return qp->queues + queue_bytes() + (size_t)(index % RAW_WQES) * RAW_STRIDE;
}

void raw_post_recv(struct raw_qp *qp, unsigned int index, const void *addr, uint32_t bytes, uint32_t lkey)
{
	uint8_t *slot = qp->srq ? qp->srq->queue + (size_t)(index % RAW_WQES) * RAW_STRIDE : raw_recv_slot(qp, index);

	/* In an SRQ the first unit is the link to the next WQE. */
	memset(slot + sizeof(struct hghca_next_unit), 0, RAW_STRIDE - sizeof(struct hghca_next_unit));
	raw_put_data(slot, 1, addr, bytes, lkey);
	raw_put_data(slot, 2, NULL, 0, HGHCA_INVALID_LKEY);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (qp->srq)
		qp->srq->dbr->posted = htole32(index + 1);
	else
		qp->dbr->rq_head = htole32(index + 1);
}

void raw_put_next(void *slot, uint32_t flags)
{
	struct hghca_next_unit next = { .flags = htole32(flags) };

	memcpy(slot, &next, sizeof(next));
}

void raw_put_link(void *slot, uint32_t offset, unsigned int opcode, unsigned int size)
{
	struct hghca_next_unit *next = slot;

	next->nda_nop = htole32(offset | opcode);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	next->nee_nds = htole32(size);
}

void raw_put_raddr(void *slot, unsigned int unit, uint64_t raddr, uint32_t rkey)
{
	struct hghca_raddr_unit *part = (struct hghca_raddr_unit *)slot + unit;

	*part = (struct hghca_raddr_unit) { .raddr = htole64(raddr), .rkey = htole32(rkey) };
}

void raw_put_data(void *slot, unsigned int unit, const void *addr, uint32_t bytes, uint32_t lkey)
{
	struct hghca_data_unit *part = (struct hghca_data_unit *)slot + unit;

	*part = (struct hghca_data_unit) {
		.byte_cnt = htole32(bytes),
		.lkey = htole32(lkey),
		.addr = htole64((uintptr_t)addr),
	};
}

uint64_t raw_sq_doorbell(uint32_t qpn, uint16_t head, unsigned int opcode, unsigned int size, unsigned int count)
{
	uint32_t low = count << 24 | (uint32_t)head << 8 | opcode;
	uint32_t high = qpn << 8 | size;

	return (uint64_t)high << 32 | low;
}

void raw_ring(void *uar, uint64_t doorbell)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*(volatile uint64_t *)uar = htole64(doorbell);
}

bool raw_cq_poll(struct raw_cq *cq, struct raw_wc *wc)
{
	volatile struct hghca_cqe *cqe = &cq->cqe[cq->consumer % cq->entries];
	struct hghca_err_cqe *error = (struct hghca_err_cqe *)cqe;

	if (cqe->owner != HGHCA_CQ_ENTRY_OWNER_SW)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	wc->qpn = le32toh(cqe->my_qpn) & 0xffffff;
	wc->slot = le32toh(cqe->wqe) / RAW_STRIDE;
	wc->is_send = cqe->is_send;
	wc->syndrome = cqe->opcode == HGHCA_OPCODE_INVALID ? error->syndrome : 0;
	cqe->owner = HGHCA_CQ_ENTRY_OWNER_HW;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	cq->dbr->consumer_index = htole32(++cq->consumer);
	return true;
}

bool raw_expect(struct raw_qp *qp, unsigned int slot, uint8_t syndrome, const char *what)
{
	int64_t limit = tb_now_ms() + TB_WAIT_MS;
	struct raw_wc wc;

	while (!raw_cq_poll(&qp->cq, &wc)) {
		if (tb_now_ms() > limit) {
			tb_fail("%s: no completion within %d ms", what, TB_WAIT_MS);
			return false;
		}
	}
	if (wc.qpn == qp->qpn && wc.slot == slot && wc.syndrome == syndrome)
		return true;
	tb_fail("%s: QP 0x%x slot %u syndrome 0x%02x; expected QP 0x%x slot %u syndrome 0x%02x", what, wc.qpn,
		wc.slot, wc.syndrome, qp->qpn, slot, syndrome);
	return false;
}
