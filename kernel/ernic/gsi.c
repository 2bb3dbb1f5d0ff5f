// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ERNIC and ETRNIC: QP 1.  Its queues hold whole frames, from the Ethernet header to the
 * MAD; the device adds and checks the ICRC.
 */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pack.h>
#include "ernic.h"

#define ERNIC_ROCE_PORT		4791
#define ERNIC_MAD_SOURCE_PORT	0xc001
#define ERNIC_ICRC_BYTES	4
#define ERNIC_QKEY_OF_QP	BIT(31)
#define ERNIC_IPV4_VERSION_IHL	0x45

/* The transport headers of a MAD: BTH and DETH. */
struct ernic_mad_header {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;
	__be32 psn;
	__be32 qkey;
	__be32 source_qpn;
} __packed;

int ernic_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(init->ah_attr);
	struct ernic_ah *ah = to_eah(ibah);
	u16 vlan = 0xffff;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (!(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	if (rdma_read_gid_l2_fields(grh->sgid_attr, &vlan, ah->smac) || vlan != 0xffff)
		return -EOPNOTSUPP;
	ether_addr_copy(ah->dmac, init->ah_attr->roce.dmac);
	ah->sgid = grh->sgid_attr->gid;
	ah->dgid = grh->dgid;
	ah->hop_limit = grh->hop_limit ?: 64;
	ah->tclass = grh->traffic_class;
	ah->flow_label = grh->flow_label;
	return 0;
}

int ernic_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

static void ernic_write_ipv4(const struct ernic_ah *ah, struct iphdr *ip, u32 udp_bytes)
{
	*ip = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*ip) / 4,
		.tos = ah->tclass,
		.tot_len = cpu_to_be16(sizeof(*ip) + udp_bytes),
		.frag_off = cpu_to_be16(IP_DF),
		.ttl = ah->hop_limit,
		.protocol = IPPROTO_UDP,
	};
	memcpy(&ip->saddr, ah->sgid.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, ah->dgid.raw + 12, sizeof(ip->daddr));
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static void ernic_write_ipv6(const struct ernic_ah *ah, struct ipv6hdr *ip, u32 udp_bytes)
{
	*ip = (struct ipv6hdr) {
		.payload_len = cpu_to_be16(udp_bytes),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = ah->hop_limit,
	};
	ip6_flow_hdr(ip, ah->tclass, cpu_to_be32(ah->flow_label & 0xfffff));
	memcpy(&ip->saddr, ah->sgid.raw, sizeof(ip->saddr));
	memcpy(&ip->daddr, ah->dgid.raw, sizeof(ip->daddr));
}

/**
 * ernic_gsi_frame - make the frame of a MAD
 * @qp: QP 1
 * @wr: the work request, with an address
 * @sge: the memory of the MAD
 * @length: its bytes
 * @frame: output: memory for kfree()
 * @bytes: output: bytes of the frame without ICRC
 *
 * Return: 0 or a negative errno.
 */
int ernic_gsi_frame(struct ernic_qp *qp, const struct ib_send_wr *wr,
		    const struct ernic_sge *sge, u32 length, void **frame, u32 *bytes)
{
	const struct ernic_ah *ah = to_eah(ud_wr(wr)->ah);
	bool ipv4 = ipv6_addr_v4mapped((const struct in6_addr *)ah->sgid.raw);
	u32 ip_bytes = ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	struct ernic_mad_header *header;
	u32 qkey = ud_wr(wr)->remote_qkey;
	u32 pad = -length & 3;
	u32 udp_bytes;
	struct ethhdr *eth;
	struct udphdr *udp;

	if (length > IB_MGMT_MAD_SIZE || wr->send_flags & IB_SEND_INLINE)
		return -EINVAL;
	udp_bytes = sizeof(*udp) + sizeof(*header) + length + pad + ERNIC_ICRC_BYTES;
	eth = kzalloc(sizeof(*eth) + ip_bytes + udp_bytes, GFP_ATOMIC);
	if (!eth)
		return -ENOMEM;
	*frame = eth;
	*bytes = sizeof(*eth) + ip_bytes + udp_bytes - ERNIC_ICRC_BYTES;
	ether_addr_copy(eth->h_dest, ah->dmac);
	ether_addr_copy(eth->h_source, ah->smac);
	eth->h_proto = cpu_to_be16(ipv4 ? ETH_P_IP : ETH_P_IPV6);
	if (ipv4)
		ernic_write_ipv4(ah, (struct iphdr *)(eth + 1), udp_bytes);
	else
		ernic_write_ipv6(ah, (struct ipv6hdr *)(eth + 1), udp_bytes);
	udp = (void *)(eth + 1) + ip_bytes;
	udp->source = cpu_to_be16(ERNIC_MAD_SOURCE_PORT);
	udp->dest = cpu_to_be16(ERNIC_ROCE_PORT);
	udp->len = cpu_to_be16(udp_bytes);
	header = (void *)(udp + 1);
	*header = (struct ernic_mad_header) {
		.opcode = IB_OPCODE_UD_SEND_ONLY,
		.flags = pad << 4,
		.pkey = cpu_to_be16(IB_DEFAULT_PKEY_FULL),
		.qpn = cpu_to_be32(ud_wr(wr)->remote_qpn & 0xffffff),
		.psn = cpu_to_be32(qp->psn++ & 0xffffff),
		/* IBA 10.2.5: then it is the QP's. */
		.qkey = cpu_to_be32(qkey & ERNIC_QKEY_OF_QP ? qp->attr.qkey : qkey),
		.source_qpn = cpu_to_be32(qp->qpn),
	};
	ernic_sges_copy(sge, wr->num_sge, header + 1, length, false);
	return 0;
}

/**
 * ernic_gsi_take - take a frame apart
 * @qp: QP 1
 * @frame: a slot, of ERNIC_GSI_SLOT bytes
 * @wc: its completion
 * @grh: output: the network header, as verbs show it: that of IPv4 in its last bytes
 * @mad: output: the MAD
 *
 * The device has checked the headers up to the BTH.
 *
 * Return: bytes of the MAD, or 0 if the frame has no valid MAD.
 */
u32 ernic_gsi_take(struct ernic_qp *qp, const u8 *frame, struct ib_wc *wc, u8 *grh,
		   const u8 **mad)
{
	const struct ethhdr *eth = (const void *)frame;
	const u8 *ip = frame + sizeof(*eth);
	const struct ernic_mad_header *header;
	const struct udphdr *udp;
	u32 headers, udp_bytes;

	if (eth->h_proto == cpu_to_be16(ETH_P_IP) && *ip == ERNIC_IPV4_VERSION_IHL) {
		udp = (const void *)(ip + sizeof(struct iphdr));
		memcpy(grh + sizeof(struct ib_grh) - sizeof(struct iphdr), ip,
		       sizeof(struct iphdr));
		wc->network_hdr_type = RDMA_NETWORK_IPV4;
	} else if (eth->h_proto == cpu_to_be16(ETH_P_IPV6)) {
		udp = (const void *)(ip + sizeof(struct ipv6hdr));
		memcpy(grh, ip, sizeof(struct ipv6hdr));
		wc->network_hdr_type = RDMA_NETWORK_IPV6;
	} else {
		return 0;
	}
	header = (const void *)(udp + 1);
	headers = sizeof(*udp) + sizeof(*header) + (header->flags >> 4 & 3) + ERNIC_ICRC_BYTES;
	/* Read once: the slot is the device's memory too, so it may change. */
	udp_bytes = be16_to_cpu(READ_ONCE(udp->len));
	if (udp_bytes <= headers || udp_bytes - headers > IB_MGMT_MAD_SIZE ||
	    be32_to_cpu(header->qkey) != IB_QP1_QKEY)
		return 0;
	wc->wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE | IB_WC_WITH_SMAC;
	wc->src_qp = be32_to_cpu(header->source_qpn) & 0xffffff;
	wc->port_num = ERNIC_PORT;
	ether_addr_copy(wc->smac, eth->h_source);
	*mad = (const u8 *)(header + 1);
	return udp_bytes - headers;
}
