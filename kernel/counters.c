// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: the device's counters, as the port's hw_counters. */
#include "hghca.h"

#define HGHCA_STATS_LIFESPAN_MS	100

const struct rdma_stat_desc hghca_stat_descs[HGHCA_COUNTER_NUM] = {
#define HGHCA_STAT_DESC(counter, ...) { .name = #counter },
	HGHCA_COUNTERS(HGHCA_STAT_DESC)
#undef HGHCA_STAT_DESC
};

/**
 * hghca_alloc_hw_port_stats - room for the counters
 * @ibdev: the device
 * @port: port number
 *
 * Return: the room, or NULL.
 */
struct rdma_hw_stats *hghca_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(hghca_stat_descs, HGHCA_COUNTER_NUM,
					  HGHCA_STATS_LIFESPAN_MS);
}

/**
 * hghca_get_hw_stats - read the counters
 * @ibdev: the device
 * @stats: the room
 * @port: port number
 * @index: which; all are read in any case
 *
 * Return: the number of counters, or a negative errno.
 */
int hghca_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	struct hghca_dev *hdev = to_hdev(ibdev);
	int err;

	if (!port)
		return -EINVAL;

	err = hghca_cmd_query_stats(hdev, 0, stats->value, HGHCA_COUNTER_NUM);
	/* ib_core reads them as it registers a device, and leaks @stats when that fails. */
	if (err && READ_ONCE(hdev->registered))
		return err;
	return HGHCA_COUNTER_NUM;
}
