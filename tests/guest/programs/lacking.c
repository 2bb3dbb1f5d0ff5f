// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is lost without each extension of an HCA: a case for each row of
 * docs/reference/capabilities.md. Without the extension a call is refused with its errno, or
 * the difference that the page states can be seen; ibv_query_device does not report it. With
 * the extension the same calls succeed.
 *
 * lacking DEVICE GID-INDEX EXTENSIONS [-- CASE...]
 *
 * EXTENSIONS: those that the driver uses, a mask of the bits of the interface document, 4.2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <infiniband/hghcadv.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "raw.h"
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define QKEY		0x1234
#define INIT_MASK	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

enum {
	GID_TABLE, DBR, CQ_ARM, CQ_UPDATE, PORT, QP_LIMITS, STATS, SRQ, UC, MEM_MGT, XRC, MULTICAST,
	QP_COUNTERS, RAW_PACKET, CLOCK, MODERATION, PLACEMENT, ODP, DEVICE_MEMORY, RSS, CONGESTION,
	FLOW_CONTROL, FIRST_BYTE, VENDOR_OPS, SYNC_COMMANDS, INLINE_MTTS, RQ_OFFSET,
	STATUS_RECORD,
};

static const char *name;
static struct tb_side side;
static struct ibv_device_attr_ex dev;
static struct ibv_cq *cq;
static uint32_t extensions;
static uint8_t memory[8192] __attribute__((aligned(4096)));

static bool has(unsigned int bit)
{
	return extensions >> bit & 1;
}

/* A call that needs the extension. */
static void needs_or(unsigned int bit, int error, int without, const char *what)
{
	int wanted = has(bit) ? 0 : without;

	if (error != wanted)
		tb_fail("%s: \"%s\", expected \"%s\"", what, strerror(error), strerror(wanted));
}

static void needs(unsigned int bit, int error, const char *what)
{
	needs_or(bit, error, EOPNOTSUPP, what);
}

static void same(unsigned int found, unsigned int wanted, const char *what)
{
	if (found != wanted)
		tb_fail("%s: %u, expected %u", what, found, wanted);
}

/* What ibv_query_device_ex has: nothing without the extension. */
static void reported(unsigned int bit, bool found, const char *what)
{
	same(found, has(bit), what);
}

/* Without an object, the errno of the call that should have made it; else it is destroyed. */
#define ENDED(object, destroy) ({				\
	__typeof__(object) object_ = (errno = 0, (object));	\
								\
	object_ ? destroy(object_) : errno;			\
})

static int try_mr(uint8_t *start, unsigned int access)
{
	return ENDED(ibv_reg_mr(side.pd, start, 4096, access), ibv_dereg_mr);
}

static int try_qp(enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = type, .pd = side.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (operations ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = operations,
	};

	if (type == IBV_QPT_XRC_SEND)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	return ENDED(ibv_create_qp_ex(side.ctx, &init), ibv_destroy_qp);
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(side.pd, &init);

	if (!qp)
		tb_die("ibv_create_qp");
	return qp;
}

static void destroy_qp(struct ibv_qp *qp)
{
	if (ibv_destroy_qp(qp))
		tb_die("ibv_destroy_qp");
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	return ibv_modify_qp(qp, &attr, INIT_MASK);
}

static int to_rtr(struct ibv_qp *qp, struct ibv_ah_attr ah, unsigned int reads)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = reads, .min_rnr_timer = 1, .ah_attr = ah,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static struct ibv_ah_attr address(int gid_index, const union ibv_gid *gid)
{
	return (struct ibv_ah_attr) {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = gid_index, .hop_limit = 64 },
	};
}

/* A folder or file of the device in sysfs. */
static bool is_there(const char *below)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", name, below);
	return !access(path, F_OK);
}

/* ------------------------------------------------------------------ */

static void driver(void)
{
	struct raw_ctx ctx;

	raw_open(&ctx, name);
	if (ctx.caps.caps != extensions)
		tb_fail("the driver uses the extensions 0x%x, expected 0x%x", ctx.caps.caps, extensions);
	raw_close(&ctx);
}

/* The first GID of IPv6. */
static int find_ipv6(union ibv_gid *gid)
{
	int i;

	for (i = 0; i < 128; i++)
		if (!ibv_query_gid(side.ctx, 1, i, gid) && gid->raw[0] == 0xfe)
			return i;
	tb_die("no GID of IPv6");
}

static void gid_table(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct ibv_ah_attr ah;
	union ibv_gid gid;
	int index = find_ipv6(&gid);

	ah = address(index, &gid);
	needs(GID_TABLE, ENDED(ibv_create_ah(side.pd, &ah), ibv_destroy_ah), "an address of IPv6");
	if (to_init(qp))
		tb_die("a QP to INIT");
	needs(GID_TABLE, to_rtr(qp, ah, 1), "a QP with an address of IPv6");
	destroy_qp(qp);
	ah = address(side.gid_index, &side.gid);
	same(ENDED(ibv_create_ah(side.pd, &ah), ibv_destroy_ah), 0, "an address of IPv4");
}

/* A queue has 16384 slots at most. */
static void doorbell_records(void)
{
	same(dev.orig_attr.max_qp_wr, has(DBR) ? 16384 : 16383, "requests of a receive queue");
	reported(PORT, is_there("device/net"), "an Ethernet device");
}

/* A receive whose sender did not ask for an event, with a CQ that waits for one that did. */
static void cq_arm(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(side.ctx);
	struct tb_opts opts = tb_pair_defaults();
	struct pollfd pfd = { .events = POLLIN };
	struct ibv_send_wr send = { .wr_id = 1, .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 2 }, *bad_recv;
	struct ibv_cq *event_cq;
	struct tb_pair p;
	void *context;
	bool found;

	if (!channel)
		tb_die("ibv_create_comp_channel");
	pfd.fd = channel->fd;
	opts.recv_cq = ibv_create_cq(side.ctx, 16, NULL, channel, 0);
	if (!opts.recv_cq)
		tb_die("ibv_create_cq");
	tb_pair_create(&p, &side, &side, &opts);
	if (ibv_req_notify_cq(opts.recv_cq, 1) || ibv_post_recv(p.b.qp, &recv, &bad_recv) ||
	    ibv_post_send(p.a.qp, &send, &bad_send))
		tb_die("posting");
	tb_expect(p.a.scq, 1, IBV_WC_SUCCESS, "the send");
	tb_expect(p.b.rcq, 2, IBV_WC_SUCCESS, "the receive");
	found = poll(&pfd, 1, has(CQ_ARM) ? 0 : TB_WAIT_MS) == 1;
	same(found, !has(CQ_ARM), "events that nobody solicited");
	if (found && !ibv_get_cq_event(channel, &event_cq, &context))
		ibv_ack_cq_events(event_cq, 1);
	tb_pair_destroy(&p);
	if (ibv_destroy_cq(opts.recv_cq) || ibv_destroy_comp_channel(channel))
		tb_die("ibv_destroy_cq");
}

/* With and without the extension, the last of these sends is the only one that has a completion. */
static void cq_update(void)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 4, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(side.pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				    .max_rd_atomic = 1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE }, *bad;

	if (!qp || to_init(qp) || to_rtr(qp, address(side.gid_index, &side.gid), 1) ||
	    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		tb_die("a QP to RTS");
	for (wr.wr_id = 1; wr.wr_id <= 4; wr.wr_id++) {
		wr.send_flags = wr.wr_id == 4 ? IBV_SEND_SIGNALED : 0;
		if (ibv_post_send(qp, &wr, &bad))
			tb_die("ibv_post_send");
	}
	tb_expect(cq, 4, IBV_WC_SUCCESS, "three unsignaled sends and one more");
	tb_expect_none(cq, "unsignaled sends");
	destroy_qp(qp);
}

static void port(void)
{
	reported(PORT, is_there("device/net"), "an Ethernet device");
	if (!has(PORT))
		same(try_qp(IBV_QPT_RAW_PACKET, 0), EOPNOTSUPP, "a raw packet QP");
}

static void qp_limits(void)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct ibv_async_event event;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
	struct tb_pair p;

	same(dev.orig_attr.max_qp_rd_atom, has(QP_LIMITS) ? 16 : 1, "READs from outside that are outstanding");
	same(dev.orig_attr.max_qp_init_rd_atom, has(QP_LIMITS) ? 16 : 1, "READs that are outstanding");
	if (to_init(qp))
		tb_die("a QP to INIT");
	needs_or(QP_LIMITS, to_rtr(qp, address(side.gid_index, &side.gid), 2), EINVAL, "two READs from outside");
	destroy_qp(qp);

	/* The QP takes no WRITE, the region does. */
	opts.qp_access = 0;
	tb_pair_create(&p, &side, &side, &opts);
	sge = (struct ibv_sge) { (uintptr_t)p.a.buf, 8, p.a.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
	wr.wr.rdma.rkey = p.b.mr->rkey;
	if (!has(QP_LIMITS)) {
		if (ibv_modify_qp(p.a.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
			tb_fail("RTS to SQD");
		tb_expect_state(&p.a, IBV_QPS_SQD, "a QP that is drained");
		sqd.qp_state = IBV_QPS_RTS;
		if (ibv_modify_qp(p.a.qp, &sqd, IBV_QP_STATE))
			tb_fail("SQD to RTS");
	}
	if (ibv_post_send(p.a.qp, &wr, &bad))
		tb_die("ibv_post_send");
	tb_expect(p.a.scq, 1, has(QP_LIMITS) ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS,
		  "a WRITE to a QP without the right");
	while (!has(QP_LIMITS) && !ibv_get_async_event(side.ctx, &event)) {
		if (event.event_type == IBV_EVENT_SQ_DRAINED)
			tb_fail("an event of a drained queue");
		ibv_ack_async_event(&event);
	}
	tb_pair_destroy(&p);
}

static void stats(void)
{
	same(is_there("ports/1/hw_counters"), has(STATS), "counters of the port");
}

static void srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	reported(SRQ, dev.orig_attr.max_srq, "SRQs");
	needs(SRQ, ENDED(ibv_create_srq(side.pd, &init), ibv_destroy_srq), "ibv_create_srq");
}

/* Of the devices that have atomics, each has UC. */
static void unreliable(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_UC);

	same(to_init(qp), dev.orig_attr.atomic_cap == IBV_ATOMIC_NONE ? EINVAL : 0, "a UC QP to INIT");
	destroy_qp(qp);
}

static void mem_mgt(void)
{
	static const uint64_t operations[] = {
		IBV_QP_EX_WITH_LOCAL_INV, IBV_QP_EX_WITH_BIND_MW, IBV_QP_EX_WITH_SEND_WITH_INV,
	};
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV };
	struct tb_opts opts = tb_pair_defaults();
	struct tb_pair p;
	size_t i;

	reported(MEM_MGT, dev.orig_attr.max_mw, "memory windows");
	reported(MEM_MGT, dev.orig_attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS, "registration by requests");
	needs(MEM_MGT, ENDED(ibv_alloc_mw(side.pd, IBV_MW_TYPE_1), ibv_dealloc_mw), "a window of type 1");
	needs(MEM_MGT, ENDED(ibv_alloc_mw(side.pd, IBV_MW_TYPE_2), ibv_dealloc_mw), "a window of type 2");
	needs(MEM_MGT, try_mr(memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND), "a region for windows");
	for (i = 0; i < ARRAY_SIZE(operations); i++)
		needs(MEM_MGT, try_qp(IBV_QPT_RC, operations[i]), "a QP for invalidation");
	if (has(MEM_MGT))
		return;
	tb_pair_create(&p, &side, &side, &opts);
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct ibv_send_wr wr = { .opcode = opcodes[i], .invalidate_rkey = p.a.mr->rkey }, *bad;

		needs_or(MEM_MGT, ibv_post_send(p.a.qp, &wr, &bad), EINVAL, "a request that invalidates");
	}
	tb_pair_destroy(&p);
}

static void xrc(void)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
					   .oflags = 0100 /* O_CREAT */ };

	reported(XRC, dev.orig_attr.device_cap_flags & IBV_DEVICE_XRC, "XRC");
	needs(XRC, ENDED(ibv_open_xrcd(side.ctx, &init), ibv_close_xrcd), "ibv_open_xrcd");
	needs(XRC, try_qp(IBV_QPT_XRC_SEND, 0), "an XRC initiator");
}

static void multicast(void)
{
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 4 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };
	struct ibv_qp *qp = make_qp(IBV_QPT_UD);

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		tb_die("a UD QP to INIT");
	reported(MULTICAST, dev.orig_attr.max_mcast_grp, "groups");
	needs(MULTICAST, ibv_attach_mcast(qp, &group, 0), "ibv_attach_mcast");
	if (has(MULTICAST) && ibv_detach_mcast(qp, &group, 0))
		tb_die("ibv_detach_mcast");
	destroy_qp(qp);
}

/*
 * The tool tells the kernel's errno as text.  Where the port has counters, ib_core asks for a
 * counter and says ENOMEM if the driver has none.
 */
static void qp_counters(void)
{
	int without = has(STATS) ? ENOMEM : EOPNOTSUPP;
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	char line[256], said[1024] = "";
	FILE *tool;

	if (to_init(qp))
		tb_die("a QP to INIT");
	snprintf(line, sizeof(line), "rdma statistic qp bind link %s/1 lqpn %u 2>&1", name, qp->qp_num);
	tool = popen(line, "r");
	if (!tool)
		tb_die("popen");
	said[fread(said, 1, sizeof(said) - 1, tool)] = 0;
	same(pclose(tool) == 0, has(QP_COUNTERS), "a counter of a QP");
	if (!has(QP_COUNTERS) && !strstr(said, strerror(without)))
		tb_fail("a counter of a QP: %s", said);
	destroy_qp(qp);
}

static void raw_packet(void)
{
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(flow), .port = 1 };
	struct ibv_qp *qp = make_qp(IBV_QPT_UD);

	reported(RAW_PACKET, dev.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, "flow rules");
	needs(RAW_PACKET, try_qp(IBV_QPT_RAW_PACKET, 0), "a raw packet QP");
	/* No device has flow rules of other QPs. */
	same(ENDED(ibv_create_flow(qp, &flow), ibv_destroy_flow), EOPNOTSUPP, "ibv_create_flow");
	destroy_qp(qp);
}

static void device_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_cq_init_attr_ex init = { .cqe = 4, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_cq_ex *timed = (errno = 0, ibv_create_cq_ex(side.ctx, &init));

	needs(CLOCK, timed ? ibv_destroy_cq(ibv_cq_ex_to_cq(timed)) : errno, "a CQ with timestamps");
	needs(CLOCK, ibv_query_rt_values_ex(side.ctx, &values), "ibv_query_rt_values_ex");
	reported(CLOCK, dev.completion_timestamp_mask, "timestamps");
	reported(CLOCK, dev.hca_core_clock, "a clock");
}

static void moderation(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 1, 0 } };

	reported(MODERATION, dev.cq_mod_caps.max_cq_count, "moderation");
	needs(MODERATION, ibv_modify_cq(cq, &attr), "ibv_modify_cq");
}

static void placement(void)
{
	reported(PLACEMENT, dev.device_cap_flags_ex & IB_UVERBS_DEVICE_FLUSH_GLOBAL, "FLUSH");
	reported(PLACEMENT, dev.device_cap_flags_ex & IB_UVERBS_DEVICE_ATOMIC_WRITE, "ATOMIC WRITE");
	needs(PLACEMENT, try_mr(memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL),
	      "a region for FLUSH");
	needs(PLACEMENT, try_qp(IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH), "a QP for FLUSH");
	needs(PLACEMENT, try_qp(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_WRITE), "a QP for ATOMIC WRITE");
}

static void on_demand(void)
{
	struct ibv_mr *mr = (errno = 0, ibv_reg_mr(side.pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE |
						   IBV_ACCESS_ON_DEMAND));
	struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), mr ? mr->lkey : 0 };

	reported(ODP, dev.odp_caps.general_caps, "paging on demand");
	needs(ODP, mr ? 0 : errno, "a region on demand");
	needs(ODP, ibv_advise_mr(side.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
	      "ibv_advise_mr");
	if (mr && ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	reported(DEVICE_MEMORY, dev.max_dm_size, "device memory");
	needs(DEVICE_MEMORY, ENDED(ibv_alloc_dm(side.ctx, &attr), ibv_free_dm), "ibv_alloc_dm");
}

static void rss(void)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = side.pd, .cq = cq };
	struct ibv_wq *wq = (errno = 0, ibv_create_wq(side.ctx, &init));
	struct ibv_rwq_ind_table_init_attr table = { .log_ind_tbl_size = 0, .ind_tbl = &wq };

	reported(RSS, dev.rss_caps.max_rwq_indirection_tables, "tables");
	reported(RSS, dev.max_wq_type_rq, "receive work queues");
	needs(RSS, wq ? 0 : errno, "ibv_create_wq");
	needs(RSS, ENDED(ibv_create_rwq_ind_table(side.ctx, &table), ibv_destroy_rwq_ind_table),
	      "ibv_create_rwq_ind_table");
	if (wq && ibv_destroy_wq(wq))
		tb_die("ibv_destroy_wq");
}

static void congestion(void)
{
	/* The instance is in the first namespace. */
	static const char show[] = "nsenter --net=/proc/1/ns/net devlink dev param show pci/"
				   "$(basename $(readlink -f /sys/class/infiniband/%s/device)) "
				   "name congestion_notify > /dev/null 2>&1";
	char command[256];

	snprintf(command, sizeof(command), show, name);
	same(!system(command), has(CONGESTION), "parameters of congestion control");
}

/* Of the HCA's own Ethernet device. Pause frames are off, and stay so. */
static void flow_control(void)
{
	struct ethtool_pauseparam pause = { .cmd = ETHTOOL_SPAUSEPARAM };
	struct ifreq request = { .ifr_data = (void *)&pause };
	char path[128];
	FILE *file;
	int fd;

	if (!has(PORT))
		return;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", name);
	file = fopen(path, "r");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!file || fscanf(file, "%15s", request.ifr_name) != 1 || fd < 0)
		tb_die("the Ethernet device");
	fclose(file);
	needs(FLOW_CONTROL, ioctl(fd, SIOCETHTOOL, &request) ? errno : 0, "pause frames");
	close(fd);
}

static void first_byte(void)
{
	same(try_mr(memory, IBV_ACCESS_ZERO_BASED), 0, "a zero-based region from the start of a page on");
	needs_or(FIRST_BYTE, try_mr(memory + 1, IBV_ACCESS_ZERO_BASED), EINVAL, "a zero-based region from byte 1 on");
}

static void vendor_ops(void)
{
	struct hghcadv_region region = { (uintptr_t)memory, sizeof(memory), 1 };
	struct hghcadv_partition_attr attr = { .record_size = 16, .num_regions = 1, .regions = &region, .key_size = 4 };
	struct hghcadv_qp_init_attr operations = { .flags = HGHCADV_QP_VENDOR_OPS };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .pd = side.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct hghcadv_device_attr found;

	needs(VENDOR_OPS, ENDED(hghcadv_create_qp(side.ctx, &init, &operations), ibv_destroy_qp), "hghcadv_create_qp");
	needs(VENDOR_OPS, ENDED(hghcadv_create_partition(side.pd, &attr), hghcadv_destroy_partition),
	      "hghcadv_create_partition");
	same(hghcadv_query_device(side.ctx, &found), 0, "hghcadv_query_device");
	reported(VENDOR_OPS, found.max_partitions, "partitions");
}

#define TRACING		"/sys/kernel/tracing"
#define RECORD_CMD	TRACING "/options/record-cmd"
#define INSTANCE	TRACING "/instances/lacking"
#define ENABLE(event)	INSTANCE "/events/hghca/hghca_cmd_" event "/enable"
#define POSTED		ENABLE("post")
#define DONE		ENABLE("done")

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(text, file) < 0 || fclose(file))
		tb_die("%s", path);
}

/* How many commands of those that make and unmake something are traced with this text. */
static unsigned int traced_of(void (*make)(void), const char *enable, const char *text)
{
	unsigned int count = 0;
	char line[512];
	FILE *file;

	if (mount("none", TRACING, "tracefs", 0, NULL) && errno != EBUSY)
		tb_die(TRACING);
	/* Otherwise the event traces the scheduler's switches too, and the kernel's code is changed while it runs. */
	put(RECORD_CMD, "0");
	if (mkdir(INSTANCE, 0700))
		tb_die(INSTANCE);
	put(RECORD_CMD, "1");
	put(enable, "1");
	make();
	put(enable, "0");
	file = fopen(INSTANCE "/trace", "r");
	if (!file)
		tb_die(INSTANCE "/trace");
	while (fgets(line, sizeof(line), file))
		count += *line != '#' && strstr(line, text);
	fclose(file);
	if (rmdir(INSTANCE))
		tb_die(INSTANCE);
	return count;
}

static void a_region(void)
{
	same(try_mr(memory, IBV_ACCESS_LOCAL_WRITE), 0, "a region");
}

static unsigned int traced(const char *text)
{
	return traced_of(a_region, POSTED, text);
}

static void sync_commands(void)
{
	if (!traced("command=HW2SW_MPT"))
		tb_fail("the command is not traced");
	same(traced(has(SYNC_COMMANDS) ? " event" : " poll"), 0, "commands traced");
}

static void inline_mtts(void)
{
	same(traced("command=WRITE_MTT"), !has(INLINE_MTTS), "WRITE_MTTs of a region");
}

static void a_qp(void)
{
	same(try_qp(IBV_QPT_RC, 0), 0, "a QP");
}

static void rq_offset(void)
{
	same(traced_of(a_qp, POSTED, "command=SW2HW_MPT"), has(RQ_OFFSET) ? 1 : 2, "regions of a QP");
}

static void status_record(void)
{
	if (!traced_of(a_region, DONE, "command=HW2SW_MPT"))
		tb_fail("the end of the command is not traced");
	same(traced_of(a_region, DONE, has(STATUS_RECORD) ? "recorded=0" : "recorded=1"), 0, "commands traced");
}

static const struct tb_case cases[] = {
	{ "the driver uses what the device advertises", driver },
	{ "GID_TABLE", gid_table },
	{ "DBR", doorbell_records },
	{ "CQ_ARM", cq_arm },
	{ "CQ_UPDATE", cq_update },
	{ "PORT", port },
	{ "QP_LIMITS", qp_limits },
	{ "STATS", stats },
	{ "SRQ", srq },
	{ "UC", unreliable },
	{ "MEM_MGT", mem_mgt },
	{ "XRC", xrc },
	{ "MULTICAST", multicast },
	{ "QP_COUNTERS", qp_counters },
	{ "RAW_PACKET", raw_packet },
	{ "CLOCK", device_clock },
	{ "MODERATION", moderation },
	{ "PLACEMENT", placement },
	{ "ODP", on_demand },
	{ "DEVICE_MEMORY", device_memory },
	{ "RSS", rss },
	{ "CONGESTION", congestion },
	{ "FLOW_CONTROL", flow_control },
	{ "FIRST_BYTE", first_byte },
	{ "VENDOR_OPS", vendor_ops },
	{ "SYNC_COMMANDS", sync_commands },
	{ "INLINE_MTTS", inline_mtts },
	{ "RQ_OFFSET", rq_offset },
	{ "STATUS_RECORD", status_record },
};

int main(int argc, char **argv)
{
	int status;

	if (argc < 4 || (argc > 4 && strcmp(argv[4], "--"))) {
		fprintf(stderr, "usage: lacking DEVICE GID-INDEX EXTENSIONS [-- CASE...]\n");
		return 2;
	}
	name = argv[1];
	extensions = strtoul(argv[3], NULL, 16);
	tb_side_open(&side, name, atoi(argv[2]), NULL);
	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	if (!cq || ibv_query_device_ex(side.ctx, NULL, &dev))
		tb_die("ibv_create_cq or ibv_query_device_ex");
	status = tb_run(cases, ARRAY_SIZE(cases), argc > 4 ? argc - 5 : 0, argv + 5, NULL);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
	return status;
}
