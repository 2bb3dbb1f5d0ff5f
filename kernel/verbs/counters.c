// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the counters of the device, as hw_counters of device and port, and
 * counter sets, as counters of QPs.
 *
 * A counter set has the same indices as the counters of the port.  ib_core adds the
 * values of all present and former sets to those of the port.  Therefore the driver
 * returns for the port only the counts of QPs without a set.  The counters of the
 * device include all QPs.
 */
#include <rdma/ib_verbs.h>
#include <rdma/rdma_counter.h>

#include "verbs/verbs.h"

#define HGHCA_STATS_LIFESPAN_MS	100

static const struct rdma_stat_desc hghca_stat_descs[HGHCA_COUNTER_NUM] = {
#define HGHCA_STAT_DESC(counter, ...) { .name = #counter },
	HGHCA_COUNTERS(HGHCA_STAT_DESC)
#undef HGHCA_STAT_DESC
};

/* Indices of the counters of a set among all counters. */
static const u16 hghca_set_index[HGHCA_QP_COUNTER_NUM] = {
#define HGHCA_SET_INDEX(counter) HGHCA_COUNTER_##counter,
	HGHCA_QP_COUNTERS(HGHCA_SET_INDEX)
#undef HGHCA_SET_INDEX
};

static struct rdma_hw_stats *hghca_alloc_stats(void)
{
	return rdma_alloc_hw_stats_struct(hghca_stat_descs, HGHCA_COUNTER_NUM,
					  HGHCA_STATS_LIFESPAN_MS);
}

/**
 * hghca_alloc_hw_device_stats - allocate the device's counters
 * @ibdev: the device
 *
 * Return: the counters, or NULL.
 */
struct rdma_hw_stats *hghca_alloc_hw_device_stats(struct ib_device *ibdev)
{
	return hghca_alloc_stats();
}

/**
 * hghca_alloc_hw_port_stats - allocate the port's counters
 * @ibdev: the device
 * @port: port number
 *
 * Return: the counters, or NULL.
 */
struct rdma_hw_stats *hghca_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return hghca_alloc_stats();
}

/**
 * hghca_get_hw_stats - read the counters
 * @ibdev: the device
 * @stats: output
 * @port: port number, or 0 for the device
 * @index: not used: all counters are read
 *
 * Return: the number of counters, or a negative errno.
 */
int hghca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct hghca_dev *hdev = to_hdev(ibdev);
	u8 which = HGHCA_STATS_ALL;
	int err;

	if (port && hdev->limits.caps & HGHCA_CAP_QP_COUNTERS)
		which = HGHCA_STATS_OUTSIDE_SETS;
	err = hghca_cmd_query_stats(hdev, which, stats->value, HGHCA_COUNTER_NUM);
	/* ib_core reads them when it registers a device, and leaks @stats on an error. */
	if (err && READ_ONCE(hdev->registered))
		return err;
	return HGHCA_COUNTER_NUM;
}

/* ------------------------------------------------------------------ */
/* Counter sets                                                         */

/* Allocate a cleared set; returns its number or a negative errno. */
static int hghca_counter_set_get(struct hghca_dev *hdev)
{
	u64 values[HGHCA_QP_COUNTER_NUM];
	int set;
	int err;

	set = ida_alloc_range(&hdev->counter_ida, 1, hdev->limits.num_counter_sets - 1,
			      GFP_KERNEL);
	if (set < 0)
		return set;
	err = hghca_cmd_query_counter_set(hdev, set, values, true);
	if (err) {
		ida_free(&hdev->counter_ida, set);
		return err;
	}
	return set;
}

/* Let the QP count in @set from now on, or in no set if it is 0. */
static int hghca_qp_use_counter_set(struct hghca_qp *hqp, u32 set)
{
	struct hghca_dev *hdev = to_hdev(hqp->ibqp.device);
	int err = 0;

	mutex_lock(&hqp->lock);
	/* In RESET the device does not have the QP: RST2INIT will set it. */
	if (hqp->state != IB_QPS_RESET)
		err = hghca_cmd_set_qp_counter(hdev, hqp->hw.qpn, set);
	if (!err)
		hqp->qpc.counter_set = cpu_to_be32(set);
	mutex_unlock(&hqp->lock);
	return err;
}

/**
 * hghca_counter_init - initialize the driver's part of a counter
 * @counter: the counter, which ib_core has zeroed
 *
 * There is nothing in it, but ib_core calls this for each counter.
 */
void hghca_counter_init(struct rdma_counter *counter)
{
}

/**
 * hghca_counter_bind_qp - bind a QP to a counter
 * @counter: the counter; its set is allocated with the first QP
 * @ibqp: the QP
 * @port: its port, the only one
 *
 * Return: 0, -ENOSPC if all sets are in use, -EOPNOTSUPP for a QP with a table of
 * receive work queues, which is no QP of the device, or an error of the command.
 */
int hghca_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	bool first = !counter->id;
	int ret;

	if (ibqp->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (first) {
		ret = hghca_counter_set_get(hdev);
		if (ret < 0)
			return ret;
		counter->id = ret;
	}

	ret = hghca_qp_use_counter_set(to_hqp(ibqp), counter->id);
	if (ret)
		goto err_free_set;
	ibqp->counter = counter;
	return 0;

err_free_set:
	if (first) {
		ida_free(&hdev->counter_ida, counter->id);
		counter->id = 0;
	}
	return ret;
}

/**
 * hghca_counter_unbind_qp - unbind a QP from its counter
 * @ibqp: the QP
 * @port: its port, the only one
 *
 * Return: 0, or an error of the command.
 */
int hghca_counter_unbind_qp(struct ib_qp *ibqp, u32 port)
{
	int err = hghca_qp_use_counter_set(to_hqp(ibqp), 0);

	if (!err)
		ibqp->counter = NULL;
	return err;
}

/**
 * hghca_counter_dealloc - free the set of a counter
 * @counter: the counter, without QPs
 *
 * Return: 0.
 */
int hghca_counter_dealloc(struct rdma_counter *counter)
{
	ida_free(&to_hdev(counter->device)->counter_ida, counter->id);
	return 0;
}

/**
 * hghca_counter_alloc_stats - allocate the counters of QPs
 * @counter: the counter
 *
 * Counters that a set does not have are disabled.
 *
 * Return: the counters, or NULL.
 */
struct rdma_hw_stats *hghca_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats = hghca_alloc_stats();
	unsigned int i;

	if (!stats)
		return NULL;
	bitmap_fill(stats->is_disabled, HGHCA_COUNTER_NUM);
	for (i = 0; i < HGHCA_QP_COUNTER_NUM; i++)
		__clear_bit(hghca_set_index[i], stats->is_disabled);
	return stats;
}

/**
 * hghca_counter_update_stats - read the counters of QPs
 * @counter: the counter
 *
 * Return: 0, or an error of the command.
 */
int hghca_counter_update_stats(struct rdma_counter *counter)
{
	u64 values[HGHCA_QP_COUNTER_NUM];
	unsigned int i;
	int err;

	err = hghca_cmd_query_counter_set(to_hdev(counter->device), counter->id, values, false);
	if (err)
		return err;
	for (i = 0; i < HGHCA_QP_COUNTER_NUM; i++)
		counter->stats->value[hghca_set_index[i]] = values[i];
	return 0;
}
