// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: the port's performance management agent (IBA vol 1, 16.1).
 *
 * It responds to Get of ClassPortInfo, PortCounters and PortCountersExtended.  ib_core
 * shows them as "counters" of the port, and other nodes query them through QP 1.  Set is
 * not supported: the counters count since the reset of the device.  The agents of ib_core
 * handle MADs of other classes.
 */
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "verbs/verbs.h"

#define HGHCA_PMA_ALL_PORTS	0xff
#define HGHCA_PMA_VERSION	1
/* 4.096 us << 18, about a second. */
#define HGHCA_PMA_RESP_TIME	18

static __be16 hghca_pma_16(u64 value)
{
	return cpu_to_be16(min_t(u64, value, U16_MAX));
}

static __be32 hghca_pma_32(u64 value)
{
	return cpu_to_be32(min_t(u64, value, U32_MAX));
}

/* Packets received with an error. */
static u64 hghca_pma_rcv_errors(const u64 *counters)
{
	return counters[HGHCA_COUNTER_rx_too_short] + counters[HGHCA_COUNTER_rx_bad_header] +
	       counters[HGHCA_COUNTER_rx_bad_icrc];
}

/* Packets from the link.  rx_packets counts each copy of a multicast packet. */
static u64 hghca_pma_rcv_packets(const u64 *counters)
{
	return counters[HGHCA_COUNTER_rx_packets] + counters[HGHCA_COUNTER_multicast_received] -
	       counters[HGHCA_COUNTER_multicast_copies];
}

/* In units of four octets. */
static u64 hghca_pma_rcv_data(const u64 *counters)
{
	return (counters[HGHCA_COUNTER_rx_bytes] -
		counters[HGHCA_COUNTER_multicast_extra_bytes]) / 4;
}

static void hghca_pma_class_port_info(struct ib_class_port_info *info)
{
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = HGHCA_PMA_VERSION;
	/* 64-bit counters, without separate ones for unicast and multicast. */
	info->capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT | IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF;
	ib_set_cpi_resp_time(info, HGHCA_PMA_RESP_TIME);
}

/* A counter saturates at its highest value. */
static void hghca_pma_port_counters(struct hghca_dev *hdev, const u64 *counters,
				    struct ib_pma_portcounters *port)
{
	struct net_device *netdev = hghca_netdev_get(hdev);

	if (netdev)
		port->link_downed_counter =
			min_t(u32, atomic_read(&netdev->carrier_down_count), U8_MAX);
	dev_put(netdev);
	port->port_rcv_errors = hghca_pma_16(hghca_pma_rcv_errors(counters));
	/* Octets / 4 */
	port->port_xmit_data = hghca_pma_32(counters[HGHCA_COUNTER_tx_bytes] / 4);
	port->port_rcv_data = hghca_pma_32(hghca_pma_rcv_data(counters));
	port->port_xmit_packets = hghca_pma_32(counters[HGHCA_COUNTER_tx_packets]);
	port->port_rcv_packets = hghca_pma_32(hghca_pma_rcv_packets(counters));
}

static void hghca_pma_port_counters_ext(const u64 *counters, struct ib_pma_portcounters_ext *port)
{
	port->port_xmit_data = cpu_to_be64(counters[HGHCA_COUNTER_tx_bytes] / 4);
	port->port_rcv_data = cpu_to_be64(hghca_pma_rcv_data(counters));
	port->port_xmit_packets = cpu_to_be64(counters[HGHCA_COUNTER_tx_packets]);
	port->port_rcv_packets = cpu_to_be64(hghca_pma_rcv_packets(counters));
}

/* Data of PortCounters or PortCountersExtended, which have the same first fields. */
static int hghca_pma_counters(struct hghca_dev *hdev, const struct ib_pma_mad *in,
			      struct ib_pma_mad *out, __be16 *status)
{
	const struct ib_pma_portcounters *asked = (const void *)in->data;
	struct ib_pma_portcounters *answer = (void *)out->data;
	u64 *counters;
	int err;

	if (asked->port_select != HGHCA_PORT_NUM && asked->port_select != HGHCA_PMA_ALL_PORTS) {
		*status = cpu_to_be16(IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
		return 0;
	}

	counters = kzalloc_objs(*counters, HGHCA_COUNTER_NUM);
	if (!counters)
		return -ENOMEM;
	err = hghca_cmd_query_stats(hdev, HGHCA_STATS_ALL, counters, HGHCA_COUNTER_NUM);
	answer->port_select = asked->port_select;
	if (!err && in->mad_hdr.attr_id == IB_PMA_PORT_COUNTERS)
		hghca_pma_port_counters(hdev, counters, answer);
	else if (!err)
		hghca_pma_port_counters_ext(counters, (void *)out->data);
	kfree(counters);
	return err;
}

static int hghca_pma_get(struct hghca_dev *hdev, const struct ib_pma_mad *in,
			 struct ib_pma_mad *out, __be16 *status)
{
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		hghca_pma_class_port_info((void *)out->data);
		return 0;
	case IB_PMA_PORT_COUNTERS:
	case IB_PMA_PORT_COUNTERS_EXT:
		return hghca_pma_counters(hdev, in, out, status);
	default:
		*status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
		return 0;
	}
}

static int hghca_process_pma(struct hghca_dev *hdev, const struct ib_pma_mad *in,
			     struct ib_pma_mad *out)
{
	__be16 status = 0;

	/* A response is for the requester, and gets no response. */
	if (in->mad_hdr.method & IB_MGMT_METHOD_RESP)
		return IB_MAD_RESULT_SUCCESS;

	switch (in->mad_hdr.method) {
	case IB_MGMT_METHOD_GET:
	case IB_MGMT_METHOD_SET:
		break;
	case IB_MGMT_METHOD_SEND:
	case IB_MGMT_METHOD_TRAP:
	case IB_MGMT_METHOD_TRAP_REPRESS:
		/* These get no response either. */
		return IB_MAD_RESULT_SUCCESS;
	default:
		status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD);
		break;
	}

	memset(out, 0, sizeof(*out));
	if (in->mad_hdr.class_version != HGHCA_PMA_VERSION)
		status = cpu_to_be16(IB_MGMT_MAD_STATUS_BAD_VERSION);
	else if (in->mad_hdr.method == IB_MGMT_METHOD_SET)
		status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	else if (!status && hghca_pma_get(hdev, in, out, &status))
		return IB_MAD_RESULT_FAILURE;

	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->mad_hdr.status = status;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

/**
 * hghca_process_mad - process a MAD for the agents of the port
 * @ibdev: the device
 * @flags: not used: there are no keys
 * @port: port number
 * @in_wc: its completion, or NULL
 * @in_grh: its GRH, or NULL
 * @in: the MAD
 * @out: output
 * @out_size: bytes of @out
 * @out_pkey_index: P_Key index of @out
 *
 * Return: IB_MAD_RESULT_SUCCESS for a MAD that is not for this agent, the same with
 * IB_MAD_RESULT_REPLY for a MAD with a response, or IB_MAD_RESULT_FAILURE.
 */
int hghca_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *in_wc,
		      const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index)
{
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT)
		return IB_MAD_RESULT_SUCCESS;
	return hghca_process_pma(to_hdev(ibdev), (const struct ib_pma_mad *)in,
				 (struct ib_pma_mad *)out);
}
