// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the capabilities of the device, and the layout of ICM.
 *
 * This file checks all output of QUERY_DEV_LIM.  The rest of the driver uses
 * struct hghca_limits without checks.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/swiotlb.h>

#include "hghca.h"

/* Limits of the fields of the hardware interface. */
#define HGHCA_LOG_MAX_QPS	24
#define HGHCA_LOG_MAX_CQS	24
#define HGHCA_LOG_MAX_EQS	8
#define HGHCA_LOG_MAX_XRCDS		24	/* width of the fields of QPC and SRQ context */
#define HGHCA_LOG_MAX_SRQS	24
#define HGHCA_LOG_MAX_MCGS	16
#define HGHCA_LOG_MAX_FLOWS	24
#define HGHCA_LOG_MAX_RSS	24
#define HGHCA_LOG_MAX_PDS	24
#define HGHCA_LOG_MAX_MTTS	28
#define HGHCA_LOG_MAX_QUEUE	16	/* doorbells and records count modulo 2^16 */
#define HGHCA_LOG_USE_QUEUE	15	/* a full queue of 2^16 would look empty */
#define HGHCA_LOG_MAX_CQ	24

/*
 * Maximum number of MPTs that the driver uses.  The fewer bits the index has, the
 * more remain for the tag of a key.  With HGHCA_CAP_MEM_MGT the index always has 24.
 */
#define HGHCA_LOG_USE_MPTS	18
#define HGHCA_LOG_MAX_MPTS	24
#define HGHCA_LOG_MIN_MTTS	20

/* Limits of a device of revision 0, which has no fields for them. */
#define HGHCA_BASE_LOG_MTTS	27
#define HGHCA_BASE_LOG_UARS	11	/* BAR2 has 8 MB */
#define HGHCA_BASE_LOG_PAGE	30
#define HGHCA_BASE_LOG_MSG	31

/* READs and atomics outstanding in each direction, without HGHCA_CAP_QP_LIMITS. */
#define HGHCA_BASE_RD_ATOMIC	1

#define HGHCA_MIN_EQS		3	/* commands, asynchronous events, completions */
#define HGHCA_FIRST_SRQN	1	/* 0 in a QPC means no SRQ */
/* With HGHCA_CAP_MEM_MGT, the key of index 1 and tag 0 is HGHCA_INVALID_LKEY. */
#define HGHCA_FIRST_MPT		2

static int hghca_profile_bad(struct hghca_dev *hdev, const char *what, u64 value)
{
	dev_err(hdev->bus.dev, "QUERY_DEV_LIM: invalid %s %llu\n", what, value);
	return -EPROTO;
}

/* A table of 1 << @log entries, of which the first 1 << @log_reserved are reserved. */
static int hghca_profile_table(struct hghca_dev *hdev, const char *what, u8 log, u8 log_limit,
			       u8 log_reserved, u32 *num, u32 *first)
{
	if (log > log_limit || log_reserved >= log)
		return hghca_profile_bad(hdev, what, log);
	*num = 1U << log;
	*first = 1U << log_reserved;
	return 0;
}

static bool hghca_profile_entry_is_valid(u32 entry_sz)
{
	return is_power_of_2(entry_sz) && entry_sz >= 8 && entry_sz <= HGHCA_ICM_PAGE_SIZE;
}

static int hghca_profile_mpts(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	bool mem_mgt = limits->caps & HGHCA_CAP_MEM_MGT;
	u8 log_limit = mem_mgt ? HGHCA_LOG_MAX_MPTS : HGHCA_LOG_USE_MPTS;
	u8 log_mpts = min(lim->log_max_mpts, log_limit);
	int err;

	err = hghca_profile_table(hdev, "log_max_mpts", log_mpts, log_limit,
				  lim->log_reserved_lkeys, &limits->num_mpts,
				  &limits->first_mpt);
	if (err || !mem_mgt)
		return err;
	limits->first_mpt = max(limits->first_mpt, HGHCA_FIRST_MPT);
	if (limits->first_mpt >= limits->num_mpts)
		return hghca_profile_bad(hdev, "log_max_mpts", log_mpts);
	return 0;
}

static int hghca_profile_tables(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u8 log_mtts;
	int err;

	err = hghca_profile_table(hdev, "log_max_qps", lim->log_max_qps, HGHCA_LOG_MAX_QPS,
				  lim->log_reserved_qps, &limits->num_qps, &limits->first_qpn);
	if (err)
		return err;
	/* QP 1 and the net device's QP come before those of users. */
	limits->first_qpn = max_t(u32, limits->first_qpn, HGHCA_QPN_RAW_ETH + 1);
	if (limits->first_qpn >= limits->num_qps)
		return hghca_profile_bad(hdev, "log_max_qps", lim->log_max_qps);

	err = hghca_profile_table(hdev, "log_max_cqs", lim->log_max_cqs, HGHCA_LOG_MAX_CQS,
				  lim->log_reserved_cqs, &limits->num_cqs, &limits->first_cqn);
	if (err)
		return err;

	err = hghca_profile_table(hdev, "log_max_eqs", lim->log_max_eqs, HGHCA_LOG_MAX_EQS,
				  lim->log_reserved_eqs, &limits->num_eqs, &limits->first_eqn);
	if (err)
		return err;
	if (limits->num_eqs - limits->first_eqn < HGHCA_MIN_EQS)
		return hghca_profile_bad(hdev, "log_max_eqs", lim->log_max_eqs);

	err = hghca_profile_table(hdev, "log_max_pds", lim->log_max_pds, HGHCA_LOG_MAX_PDS,
				  lim->log_reserved_pds, &limits->num_pds, &limits->first_pdn);
	if (err)
		return err;

	err = hghca_profile_mpts(hdev, lim);
	if (err)
		return err;

	/* Enough to register all memory four times, in small pages. */
	log_mtts = max_t(u8, HGHCA_LOG_MIN_MTTS, order_base_2(totalram_pages()) + 2);
	if (PAGE_SHIFT > 12)
		log_mtts += PAGE_SHIFT - 12;
	log_mtts = min3(log_mtts, lim->log_max_mtts, (u8)HGHCA_LOG_MAX_MTTS);
	return hghca_profile_table(hdev, "log_max_mtts", log_mtts, HGHCA_LOG_MAX_MTTS,
				   lim->log_reserved_mtts, &limits->num_mtts,
				   &limits->first_mtt);
}

static int hghca_profile_queues(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u16 log_qp = be16_to_cpu(lim->log_max_qp_sz);
	u16 log_cq = be16_to_cpu(lim->log_max_cq_sz);

	if (!log_qp || log_qp > HGHCA_LOG_MAX_QUEUE)
		return hghca_profile_bad(hdev, "log_max_qp_sz", log_qp);
	limits->max_qp_wr = 1U << min(log_qp, HGHCA_LOG_USE_QUEUE);
	/* A receive queue without a doorbell record keeps a slot free. */
	if (!(limits->caps & HGHCA_CAP_DBR))
		limits->max_qp_wr--;

	if (!log_cq || log_cq > HGHCA_LOG_MAX_CQ)
		return hghca_profile_bad(hdev, "log_max_cq_sz", log_cq);
	limits->max_cqe = (1U << log_cq) - 1;

	limits->max_sge = lim->max_sg;
	limits->max_desc_sz = be16_to_cpu(lim->max_desc_sz);
	limits->max_sge_rq = lim->max_sg_rq;
	limits->max_desc_sz_rq = be16_to_cpu(lim->max_desc_sz_rq);
	if (!limits->max_sge || limits->max_desc_sz > 1U << HGHCA_WQE_MAX_STRIDE_LOG ||
	    limits->max_desc_sz < 1U << HGHCA_WQE_MIN_STRIDE_LOG)
		return hghca_profile_bad(hdev, "max_desc_sz", limits->max_desc_sz);
	if (!limits->max_sge_rq || limits->max_desc_sz_rq > 1U << HGHCA_WQE_MAX_STRIDE_LOG ||
	    limits->max_desc_sz_rq < 1U << HGHCA_WQE_MIN_STRIDE_LOG)
		return hghca_profile_bad(hdev, "max_desc_sz_rq", limits->max_desc_sz_rq);

	if (!(limits->caps & HGHCA_CAP_QP_LIMITS)) {
		limits->max_rd_atomic = HGHCA_BASE_RD_ATOMIC;
		limits->max_dest_rd_atomic = HGHCA_BASE_RD_ATOMIC;
		return 0;
	}
	limits->max_rd_atomic = lim->max_rd_atomic;
	limits->max_dest_rd_atomic = lim->max_dest_rd_atomic;
	if (!limits->max_rd_atomic || !limits->max_dest_rd_atomic)
		return hghca_profile_bad(hdev, "max_rd_atomic", 0);
	return 0;
}

static int hghca_profile_rest(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u8 mtu = FIELD_GET(HGHCA_DEV_LIM_MTU_MASK, lim->mtu_width);
	u8 ports = FIELD_GET(HGHCA_DEV_LIM_PORTS_MASK, lim->vl_ports);

	if (mtu < IB_MTU_256 || mtu > IB_MTU_4096)
		return hghca_profile_bad(hdev, "max_mtu", mtu);
	limits->max_mtu = mtu;

	if (ports != HGHCA_PORT_NUM)
		return hghca_profile_bad(hdev, "num_ports", ports);

	if (!lim->log_max_gids || lim->log_max_gids > 8)
		return hghca_profile_bad(hdev, "log_max_gids", lim->log_max_gids);
	limits->num_gids = 1U << lim->log_max_gids;

	/* The kernel uses one UAR page, and a user needs one too. */
	if (!lim->log_max_uars || lim->log_max_uars > 23)
		return hghca_profile_bad(hdev, "log_max_uars", lim->log_max_uars);
	/* The BAR has device memory after the UAR pages. */
	limits->num_uars = min3(1ULL << lim->log_max_uars,
				(u64)hdev->bus.uar_size / HGHCA_UAR_PAGE_SIZE,
				(u64)HGHCA_UAR_PAGES);
	if (limits->num_uars * HGHCA_UAR_PAGE_SIZE < 2 * PAGE_SIZE)
		return hghca_profile_bad(hdev, "number of UAR pages", limits->num_uars);

	if (lim->log_min_page_sz != 12 || lim->log_max_page_sz < 12 || lim->log_max_page_sz > 30)
		return hghca_profile_bad(hdev, "log_max_page_sz", lim->log_max_page_sz);
	limits->log_min_page = lim->log_min_page_sz;
	limits->log_max_page = lim->log_max_page_sz;

	if (lim->log_max_msg < 12 || lim->log_max_msg > 31)
		return hghca_profile_bad(hdev, "log_max_msg", lim->log_max_msg);
	limits->log_max_msg = lim->log_max_msg;
	limits->ack_delay = lim->ack_delay & 0xf;
	limits->num_vectors = be16_to_cpu(lim->num_vectors);
	return 0;
}

/* Check the limits of SRQs; -EPROTO for invalid ones. */
static int hghca_profile_check_srqs(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	u32 entry_sz = be16_to_cpu(lim->srqc_entry_sz);

	if (!lim->log_max_srqs || lim->log_max_srqs > HGHCA_LOG_MAX_SRQS)
		return hghca_profile_bad(hdev, "log_max_srqs", lim->log_max_srqs);
	/* One WQE of a queue always stays free. */
	if (!lim->log_max_srq_sz || lim->log_max_srq_sz > HGHCA_LOG_MAX_QUEUE)
		return hghca_profile_bad(hdev, "log_max_srq_sz", lim->log_max_srq_sz);
	if (!lim->max_sg_srq ||
	    hghca_wqe_recv_bytes(lim->max_sg_srq) > hdev->limits.max_desc_sz_rq)
		return hghca_profile_bad(hdev, "max_sg_srq", lim->max_sg_srq);
	if (!hghca_profile_entry_is_valid(entry_sz))
		return hghca_profile_bad(hdev, "srqc_entry_sz", entry_sz);
	return 0;
}

/* XRC needs SRQs. */
static void hghca_profile_xrcds(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;

	if (limits->caps & HGHCA_CAP_XRC &&
	    (!lim->log_max_xrcds || lim->log_max_xrcds > HGHCA_LOG_MAX_XRCDS)) {
		hghca_profile_bad(hdev, "log_max_xrcds", lim->log_max_xrcds);
		limits->caps &= ~HGHCA_CAP_XRC;
	}
	if (!(limits->caps & HGHCA_CAP_SRQ))
		limits->caps &= ~HGHCA_CAP_XRC;
	if (limits->caps & HGHCA_CAP_XRC)
		limits->max_xrcdn = BIT(lim->log_max_xrcds) - 1;
}

/* With invalid limits of SRQs, the device is used without SRQs. */
static void hghca_profile_srqs(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;

	if (limits->caps & HGHCA_CAP_SRQ && hghca_profile_check_srqs(hdev, lim))
		limits->caps &= ~HGHCA_CAP_SRQ;
	hghca_profile_xrcds(hdev, lim);
	if (!(limits->caps & HGHCA_CAP_SRQ))
		return;

	limits->num_srqs = 1U << lim->log_max_srqs;
	limits->first_srqn = HGHCA_FIRST_SRQN;
	limits->max_srq_wr = (1U << min(lim->log_max_srq_sz, HGHCA_LOG_USE_QUEUE)) - 1;
	limits->max_srq_sge = lim->max_sg_srq;
}

/* Counter sets need at least one set besides set 0. */
static void hghca_profile_counter_sets(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u16 sets = be16_to_cpu(lim->num_counter_sets);

	if (limits->caps & HGHCA_CAP_QP_COUNTERS && sets < 2) {
		hghca_profile_bad(hdev, "num_counter_sets", sets);
		limits->caps &= ~HGHCA_CAP_QP_COUNTERS;
	}
	if (limits->caps & HGHCA_CAP_QP_COUNTERS)
		limits->num_counter_sets = sets;
}

/* A clock with frequency 0 is not used. */
static void hghca_profile_clock(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;

	if (!(limits->caps & HGHCA_CAP_CLOCK))
		return;
	limits->clock_khz = be32_to_cpu(lim->clock_khz);
	if (!limits->clock_khz) {
		hghca_profile_bad(hdev, "clock_khz", 0);
		limits->caps &= ~HGHCA_CAP_CLOCK;
	}
}

/* Device memory that the BAR does not contain is not used. */
static void hghca_profile_device_memory(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u64 end;

	if (!(limits->caps & HGHCA_CAP_DEVICE_MEMORY))
		return;
	end = HGHCA_DEVICE_MEMORY_OFFSET + BIT_ULL(min_t(u8, lim->log_device_memory, 32));
	if (lim->log_device_memory < PAGE_SHIFT ||
	    end > HGHCA_DEVICE_MEMORY_OFFSET + HGHCA_DEVICE_MEMORY_MAX ||
	    end > hdev->bus.uar_size) {
		hghca_profile_bad(hdev, "log_device_memory", lim->log_device_memory);
		limits->caps &= ~HGHCA_CAP_DEVICE_MEMORY;
		return;
	}
	limits->device_memory = BIT(lim->log_device_memory);
}

/* Does the device access bounce buffers of some pages?  Then their content becomes stale. */
static bool hghca_profile_is_bounced(struct hghca_dev *hdev)
{
	return dma_addressing_limited(hdev->bus.dev) || is_swiotlb_force_bounce(hdev->bus.dev);
}

/* On-demand regions need the kernel's paging and an additional EQ. */
static void hghca_profile_odp(struct hghca_dev *hdev)
{
	struct hghca_limits *limits = &hdev->limits;

	if (!IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ||
	    limits->num_eqs - limits->first_eqn <= HGHCA_MIN_EQS || hghca_profile_is_bounced(hdev))
		limits->caps &= ~HGHCA_CAP_ODP;
}

/* With invalid limits of multicast groups, the device is used without them. */
static void hghca_profile_mcgs(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;
	u32 entry_sz = be16_to_cpu(lim->mcg_entry_sz);

	if (!(limits->caps & HGHCA_CAP_MULTICAST))
		return;

	if (!lim->log_max_mcgs || lim->log_max_mcgs > HGHCA_LOG_MAX_MCGS) {
		hghca_profile_bad(hdev, "log_max_mcgs", lim->log_max_mcgs);
	} else if (!lim->qps_per_mcg || lim->qps_per_mcg > HGHCA_MGM_QPS) {
		hghca_profile_bad(hdev, "qps_per_mcg", lim->qps_per_mcg);
	} else if (!hghca_profile_entry_is_valid(entry_sz)) {
		hghca_profile_bad(hdev, "mcg_entry_sz", entry_sz);
	} else {
		limits->num_mcgs = 1U << lim->log_max_mcgs;
		limits->max_mcg_qps = lim->qps_per_mcg;
		return;
	}
	limits->caps &= ~HGHCA_CAP_MULTICAST;
}

/* Raw packet QPs of users receive only by flow rules. */
static void hghca_profile_flows(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;

	if (!(limits->caps & HGHCA_CAP_RAW_PACKET))
		return;

	if (lim->log_max_flows > HGHCA_LOG_MAX_FLOWS) {
		hghca_profile_bad(hdev, "log_max_flows", lim->log_max_flows);
	} else if (!lim->max_flow_masks) {
		hghca_profile_bad(hdev, "max_flow_masks", 0);
	} else if (!lim->qps_per_flow) {
		hghca_profile_bad(hdev, "qps_per_flow", 0);
	} else {
		limits->num_flows = 1U << lim->log_max_flows;
		return;
	}
	limits->caps &= ~HGHCA_CAP_RAW_PACKET;
}

/* RSS groups receive only by flow rules. */
static void hghca_profile_rss(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	struct hghca_limits *limits = &hdev->limits;

	if (!(limits->caps & HGHCA_CAP_RAW_PACKET))
		limits->caps &= ~HGHCA_CAP_RSS;
	if (!(limits->caps & HGHCA_CAP_RSS))
		return;

	if (lim->log_max_rss > HGHCA_LOG_MAX_RSS) {
		hghca_profile_bad(hdev, "log_max_rss", lim->log_max_rss);
	} else if (lim->log_max_rss_size > HGHCA_RSS_LOG_MAX_SIZE) {
		hghca_profile_bad(hdev, "log_max_rss_size", lim->log_max_rss_size);
	} else {
		limits->num_rss = 1U << lim->log_max_rss;
		limits->log_max_rss_size = lim->log_max_rss_size;
		return;
	}
	limits->caps &= ~HGHCA_CAP_RSS;
}

/* Clear the undefined bits of the log2 fields. */
static void hghca_profile_trim(struct hghca_dev_lim *lim)
{
	lim->log_reserved_qps &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_reserved_cqs &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_reserved_eqs &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_reserved_mtts &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_reserved_pds &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_reserved_lkeys &= HGHCA_DEV_LIM_RESERVED_MASK;
	lim->log_max_qps &= HGHCA_DEV_LIM_QPS_MASK;
	lim->log_max_cqs &= HGHCA_DEV_LIM_QPS_MASK;
	lim->log_max_eqs &= HGHCA_DEV_LIM_EQS_MASK;
	lim->log_max_mpts &= HGHCA_DEV_LIM_MPTS_MASK;
	lim->log_max_pds &= HGHCA_DEV_LIM_MPTS_MASK;
	lim->log_max_gids &= HGHCA_DEV_LIM_GIDS_MASK;
}

/* Extensions that the driver uses only with others. */
static void hghca_profile_depend(struct hghca_limits *limits)
{
	static const struct {
		u32 caps;
		u32 need;
	} rows[] = {
		/* The rings of the net device. */
		{ HGHCA_CAP_PORT, HGHCA_CAP_DBR | HGHCA_CAP_CQ_ARM | HGHCA_CAP_CQ_UPDATE },
		{ HGHCA_CAP_RAW_PACKET, HGHCA_CAP_PORT },
		/* Without arming, each CQE makes an event. */
		{ HGHCA_CAP_MODERATION, HGHCA_CAP_CQ_ARM },
		/* Counter sets need the counters of the port. */
		{ HGHCA_CAP_QP_COUNTERS, HGHCA_CAP_STATS },
		/* The record is looked at when the write of go has ended. */
		{ HGHCA_CAP_STATUS_RECORD, HGHCA_CAP_SYNC_COMMANDS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		if ((limits->caps & rows[i].need) != rows[i].need)
			limits->caps &= ~rows[i].caps;
}

/* Set the fields that a device of revision 0 reserves. */
static void hghca_profile_set_base(struct hghca_dev_lim *lim)
{
	lim->caps = 0;
	lim->log_max_mtts = HGHCA_BASE_LOG_MTTS;
	lim->log_max_uars = HGHCA_BASE_LOG_UARS;
	lim->log_max_page_sz = HGHCA_BASE_LOG_PAGE;
	lim->log_max_msg = HGHCA_BASE_LOG_MSG;
}

/* Place the tables in their spaces, each at a multiple of its block size. */
static int hghca_profile_place(struct hghca_dev *hdev, const struct hghca_dev_lim *lim)
{
	const struct hghca_limits *limits = &hdev->limits;
	const struct {
		u8 space;
		u32 entry_sz;
		u32 num_entries;
	} tables[HGHCA_ICM_KINDS] = {
		[HGHCA_ICM_QPC] = { HGHCA_ICM_CONTEXT, be16_to_cpu(lim->qpc_entry_sz),
				    limits->num_qps },
		[HGHCA_ICM_CQC] = { HGHCA_ICM_CONTEXT, be16_to_cpu(lim->cqc_entry_sz),
				    limits->num_cqs },
		[HGHCA_ICM_EQC] = { HGHCA_ICM_CONTEXT, be16_to_cpu(lim->eqc_entry_sz),
				    limits->num_eqs },
		[HGHCA_ICM_SRQC] = { HGHCA_ICM_CONTEXT, be16_to_cpu(lim->srqc_entry_sz),
				     limits->num_srqs },
		[HGHCA_ICM_MCG] = { HGHCA_ICM_CONTEXT, be16_to_cpu(lim->mcg_entry_sz),
				    limits->num_mcgs },
		[HGHCA_ICM_MPT] = { HGHCA_ICM_TPT, be16_to_cpu(lim->mpt_entry_sz),
				    limits->num_mpts },
		[HGHCA_ICM_MTT] = { HGHCA_ICM_TPT, lim->mtt_entry_sz, limits->num_mtts },
	};
	u64 end[HGHCA_ICM_TPT + 1] = {};
	u64 icm_size = be64_to_cpu(lim->max_icm_sz);
	unsigned int kind;

	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++) {
		struct hghca_icm_table *table = &hdev->icm[kind];
		u64 *top = &end[tables[kind].space];

		if (tables[kind].num_entries &&
		    !hghca_profile_entry_is_valid(tables[kind].entry_sz))
			return hghca_profile_bad(hdev, "size of a table entry",
						 tables[kind].entry_sz);
		table->space = tables[kind].space;
		table->entry_sz = tables[kind].entry_sz;
		table->num_entries = tables[kind].num_entries;
		table->base = *top;
		*top += round_up((u64)table->num_entries * table->entry_sz, HGHCA_ICM_BLOCK_SIZE);
		if (*top > icm_size)
			return hghca_profile_bad(hdev, "max_icm_sz", icm_size);
	}
	return 0;
}

/**
 * hghca_profile_init - query the capabilities of the device, and lay out ICM
 * @hdev: the device, with its command interface
 *
 * Return: 0, -EPROTO for invalid limits, or an error of a command.
 */
int hghca_profile_init(struct hghca_dev *hdev)
{
	struct hghca_adapter adapter;
	struct hghca_dev_lim lim;
	int err;

	err = hghca_cmd_query_dev_lim(hdev, &lim);
	if (err)
		return err;
	hghca_profile_trim(&lim);
	err = hghca_cmd_query_adapter(hdev, &adapter);
	if (err)
		return err;

	if (!lim.revision)
		hghca_profile_set_base(&lim);
	hdev->limits.caps = be32_to_cpu(lim.caps) & HGHCA_CAP_ALL;
	hghca_profile_depend(&hdev->limits);
	/* Of the JingZhao document, and so without a capability; the RSNIC document has none. */
	hdev->limits.atomics = !hdev->bus.rsnic;

	hdev->board_id = be64_to_cpu(adapter.board_id);
	hdev->node_guid = adapter.node_guid;
	hdev->fw_version = be32_to_cpu(adapter.fw_version);

	err = hghca_profile_tables(hdev, &lim);
	if (err)
		return err;
	err = hghca_profile_queues(hdev, &lim);
	if (err)
		return err;
	err = hghca_profile_rest(hdev, &lim);
	if (err)
		return err;
	hghca_profile_srqs(hdev, &lim);
	hghca_profile_counter_sets(hdev, &lim);
	hghca_profile_clock(hdev, &lim);
	hdev->limits.moderation_scale = lim.moderation_scale ?: 1;
	hghca_profile_device_memory(hdev, &lim);
	hghca_profile_odp(hdev);
	hghca_profile_mcgs(hdev, &lim);
	hghca_profile_flows(hdev, &lim);
	hghca_profile_rss(hdev, &lim);
	return hghca_profile_place(hdev, &lim);
}

static __be64 hghca_profile_base(const struct hghca_icm_table *table)
{
	return cpu_to_be64(table->base | ilog2(table->num_entries));
}

/**
 * hghca_profile_layout - fill in INIT_HCA's input
 * @hdev: the device, after hghca_profile_init()
 * @init: all zeros
 */
void hghca_profile_layout(const struct hghca_dev *hdev, struct hghca_init_hca *init)
{
	init->qpc_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_QPC]);
	init->cqc_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_CQC]);
	init->eqc_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_EQC]);
	if (hdev->limits.caps & HGHCA_CAP_SRQ)
		init->srqc_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_SRQC]);
	if (hdev->limits.caps & HGHCA_CAP_MULTICAST)
		init->mcg_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_MCG]);
	init->mpt_base = hghca_profile_base(&hdev->icm[HGHCA_ICM_MPT]);
	init->mtt_base = cpu_to_be64(hdev->icm[HGHCA_ICM_MTT].base);
	init->caps = cpu_to_be32(hdev->limits.caps);
}
