/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: attributes of the device and its port. */
#include <config.h>

#include <stdio.h>

#include "hghca.h"

/* The kernel's response has neither hash fields nor hash function. */
static void hghca_describe_rss(struct ibv_rss_caps *caps)
{
	if (!caps->supported_qpts)
		return;
	caps->rx_hash_fields_mask = HGHCA_RSS_FIELDS;
	caps->rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
}

int hghca_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	uint32_t fw;
	int err;

	err = ibv_cmd_query_device_any(context, input, attr, attr_size,
				       &resp, &resp_size);
	if (err)
		return hghca_errno(err);

	fw = (uint32_t)resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u", fw >> 16, fw & 0xffff);
	/* The structure of an older caller has no room for them. */
	if (attr_size >= offsetofend(struct ibv_device_attr_ex, rss_caps))
		hghca_describe_rss(&attr->rss_caps);
	return 0;
}

#if SIZEOF_LONG == 8
static uint64_t hghca_read_clock(const char *clock)
{
	return le64toh(mmio_read64_le(clock));
}
#else
/* Read both halves, until the high one is the same before and after the low one. */
static uint64_t hghca_read_clock(const char *clock)
{
	uint32_t high = le32toh(mmio_read32_le(clock + 4));
	uint32_t before, low;

	do {
		before = high;
		low = le32toh(mmio_read32_le(clock));
		high = le32toh(mmio_read32_le(clock + 4));
	} while (high != before);
	return (uint64_t)high << 32 | low;
}
#endif

/* Read the device clock, which also provides the timestamps of CQEs. */
int hghca_query_rt_values(struct ibv_context *context,
			  struct ibv_values_ex *values)
{
	struct hghca_context *ctx = to_hctx(context);
	uint32_t asked = values->comp_mask;

	values->comp_mask = 0;
	if (!check_comp_mask(asked, IBV_VALUES_MASK_RAW_CLOCK))
		return hghca_errno(EINVAL);
	if (!asked)
		return 0;
	if (!ctx->has_clock)
		return hghca_errno(EOPNOTSUPP);

	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec =
		hghca_read_clock((char *)ctx->uar + HGHCA_UAR_CLOCK);
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	return 0;
}

int hghca_query_port(struct ibv_context *context, uint8_t port,
		     struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return hghca_errno(ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd)));
}

/* In units of 100 Mbit/s. */
int hghca_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
	return hghca_errno(ibv_cmd_query_port_speed(context, port, speed));
}
