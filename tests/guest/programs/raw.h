/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device without its provider. Objects are created by uverbs commands of the
 * kernel with the driver's ABI. The test itself writes WQEs and doorbells. So a test
 * can do what a provider never does.
 */
#ifndef RAW_H
#define RAW_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <hghca_hw.h>
#include <uapi/rdma/hghca-abi.h>

#define RAW_WQES	16
#define RAW_LOG_STRIDE	7
#define RAW_STRIDE	(1U << RAW_LOG_STRIDE)
#define RAW_UNITS	(RAW_STRIDE / HGHCA_WQE_UNIT)
#define RAW_BUF_BYTES	65536

struct raw_ctx {
	int fd;
	int async_fd;
	char node[64];			/* path of the device's node */
	struct hghca_alloc_ucontext_resp caps;
	void *uar;
	uint32_t pd_handle;
	uint32_t pdn;
	uint8_t *buf;
	struct ib_uverbs_reg_mr_resp mr;
};

struct raw_cq {
	uint32_t handle;
	uint32_t cqn;
	struct hghca_cqe *cqe;
	uint32_t entries;
	uint32_t consumer;
	struct hghca_cq_dbr *dbr;
};

struct raw_srq {
	struct raw_ctx *ctx;
	uint32_t handle;
	uint32_t srqn;
	uint8_t *queue;
	struct hghca_srq_dbr *dbr;
};

struct raw_qp {
	struct raw_ctx *ctx;
	enum ibv_qp_type type;
	struct raw_srq *srq;		/* NULL: the QP has a receive queue */
	struct raw_cq cq;
	uint32_t handle;
	uint32_t qpn;
	uint8_t *queues;
	struct hghca_qp_dbr *dbr;
};

/* A completion and its syndrome, 0 for success. */
struct raw_wc {
	uint32_t qpn;
	uint32_t slot;		/* index of the WQE's slot */
	bool is_send;
	uint8_t syndrome;
};

/* One write command of the kernel's uverbs interface; 0 or an errno. */
int raw_command(int fd, uint32_t command, void *cmd, size_t cmd_size, void *resp, size_t resp_size);
/* The same; a failure ends the test. */
void raw_must(int fd, uint32_t command, void *cmd, size_t cmd_size, void *resp, size_t resp_size, const char *what);
/*
 * An extended command. cmd and resp have the part of ib_core, then that of the driver,
 * each a multiple of 8 bytes; that of the driver may have 0 bytes. Returns 0 or an errno.
 */
int raw_ex_command(int fd, uint32_t command, const void *cmd, size_t core_size, size_t driver_size, void *resp,
		   size_t resp_core_size, size_t resp_driver_size);

/*
 * A method of the kernel's uverbs interface. The caller has set all of its header but the driver's id, which differs
 * between drivers of a kernel's tree and others. Returns 0 or an errno.
 */
int raw_method(int fd, struct ib_uverbs_ioctl_hdr *hdr);

void *raw_pages(size_t bytes);
/* Returns the present value of a counter of the device, from its folder in sysfs. */
long raw_counter(const char *folder, const char *name);
void raw_open(struct raw_ctx *ctx, const char *device);
void raw_close(struct raw_ctx *ctx);

int raw_try_create_cq(struct raw_ctx *ctx, uint32_t cqe, struct hghca_create_cq *driver, size_t driver_size,
		      uint32_t *handle);
int raw_try_create_qp(struct raw_ctx *ctx, const struct raw_cq *cq, struct hghca_create_qp *driver,
		      size_t driver_size, uint32_t *handle, uint32_t *qpn);
int raw_try_create_qp_of(struct raw_ctx *ctx, const struct ib_uverbs_create_qp *core, const void *driver,
			 size_t driver_size, uint32_t *handle, uint32_t *qpn);
int raw_try_create_srq(struct raw_ctx *ctx, uint32_t pd_handle, const struct hghca_create_srq *driver,
		       uint32_t *handle, uint32_t *srqn);
/* A receive work queue in `pages` of RAW_WQ_BYTES bytes; and a table that contains only this queue. */
#define RAW_WQ_BYTES	65536
int raw_try_create_wq(struct raw_ctx *ctx, uint32_t pd_handle, uint32_t cq_handle, uint8_t *pages, uint32_t *handle);
int raw_try_create_table(struct raw_ctx *ctx, uint32_t wq_handle, uint32_t *handle);
struct hghca_create_qp raw_qp_driver_data(const struct raw_qp *qp);

void raw_cq_create(struct raw_cq *cq, struct raw_ctx *ctx);
void raw_cq_destroy(struct raw_cq *cq, struct raw_ctx *ctx);
void raw_qp_core_data(const struct raw_qp *qp, struct ib_uverbs_create_qp *core);
void raw_srq_create(struct raw_srq *srq, struct raw_ctx *ctx);
void raw_srq_destroy(struct raw_srq *srq);
/* An RC QP; or one of a type RC, UC or UD, with an SRQ unless that is NULL. */
void raw_qp_create(struct raw_qp *qp, struct raw_ctx *ctx);
void raw_qp_create_of(struct raw_qp *qp, struct raw_ctx *ctx, enum ibv_qp_type type, struct raw_srq *srq);
void raw_qp_destroy(struct raw_qp *qp);
void raw_qp_to_init(struct raw_qp *qp);
void raw_qp_to_rtr(struct raw_qp *qp, const uint8_t *gid, int gid_index, enum ibv_mtu mtu, uint32_t dest_qpn);
void raw_qp_to_rts(struct raw_qp *qp);
/* A UD QP, from RESET to RTS. */
void raw_ud_start(struct raw_qp *qp, uint32_t qkey);
int raw_qp_state(struct raw_qp *qp);
int raw_destroy_cq_handle(struct raw_ctx *ctx, uint32_t handle);
int raw_destroy_qp_handle(struct raw_ctx *ctx, uint32_t handle);

void *raw_send_slot(struct raw_qp *qp, unsigned int index);
void *raw_recv_slot(struct raw_qp *qp, unsigned int index);
/* Posts receive number `index` of a new queue, with one scatter entry, in slot `index`. */
void raw_post_recv(struct raw_qp *qp, unsigned int index, const void *addr, uint32_t bytes, uint32_t lkey);

/* The parts of a WQE; `unit` counts 16 bytes from the start of the slot. */
void raw_put_next(void *slot, uint32_t flags);
void raw_put_link(void *slot, uint32_t offset, unsigned int opcode, unsigned int size);
void raw_put_raddr(void *slot, unsigned int unit, uint64_t raddr, uint32_t rkey);
void raw_put_data(void *slot, unsigned int unit, const void *addr, uint32_t bytes, uint32_t lkey);

uint64_t raw_sq_doorbell(uint32_t qpn, uint16_t head, unsigned int opcode, unsigned int size, unsigned int count);
void raw_ring(void *uar, uint64_t doorbell);

bool raw_cq_poll(struct raw_cq *cq, struct raw_wc *wc);
/* Waits for the next completion: it must be of slot `slot` with this syndrome, otherwise the case fails. */
bool raw_expect(struct raw_qp *qp, unsigned int slot, uint8_t syndrome, const char *what);

#endif /* RAW_H */
