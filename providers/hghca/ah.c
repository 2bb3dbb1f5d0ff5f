/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: address handles. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "hghca.h"
#include "hghca_abi.h"

#define HGHCA_PORT		1
#define HGHCA_DEFAULT_HOP_LIMIT	64

/*
 * The MAC address that follows from the GID: that of a multicast group (RFC 1112,
 * RFC 2464), or of a link-local address with a modified EUI-64 (RFC 4291,
 * appendix A).  Returns false for all others, which the kernel resolves.
 */
static bool hghca_gid_mac(const union ibv_gid *gid, uint8_t mac[6])
{
	const struct in6_addr *addr = (const struct in6_addr *)gid->raw;
	const uint8_t *raw = gid->raw;

	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		if ((raw[12] & 0xf0) != 0xe0)
			return false;
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = raw[13] & 0x7f;
		mac[4] = raw[14];
		mac[5] = raw[15];
		return true;
	}

	if (IN6_IS_ADDR_MULTICAST(addr)) {
		mac[0] = 0x33;
		mac[1] = 0x33;
		memcpy(&mac[2], &raw[12], 4);
		return true;
	}

	if (IN6_IS_ADDR_LINKLOCAL(addr) && raw[11] == 0xff && raw[12] == 0xfe) {
		mac[0] = raw[8] ^ 0x02;
		mac[1] = raw[9];
		mac[2] = raw[10];
		mac[3] = raw[13];
		mac[4] = raw[14];
		mac[5] = raw[15];
		return true;
	}
	return false;
}

static uint32_t hghca_mac_high(const uint8_t mac[6])
{
	return (uint32_t)mac[0] << 24 | mac[1] << 16 | mac[2] << 8 | mac[3];
}

static uint32_t hghca_mac_low(const uint8_t mac[6])
{
	return mac[4] << 8 | mac[5];
}

static void hghca_ah_fill(struct hghca_ah *ah, const struct ibv_ah_attr *attr,
			  const uint8_t mac[6])
{
	const struct ibv_global_route *grh = &attr->grh;
	uint8_t hop_limit = grh->hop_limit ? grh->hop_limit : HGHCA_DEFAULT_HOP_LIMIT;

	ah->unit.port = htole32(HGHCA_UD_GRH |
				FIELD_PREP(HGHCA_UD_STATIC_RATE_MASK, attr->static_rate) |
				FIELD_PREP(HGHCA_UD_HOP_LIMIT_MASK, hop_limit) |
				FIELD_PREP(HGHCA_UD_SGID_INDEX_MASK, grh->sgid_index) |
				FIELD_PREP(HGHCA_UD_PORT_MASK, attr->port_num));
	ah->unit.dmac_l = htole32(FIELD_PREP(HGHCA_UD_DMAC_L_MASK, hghca_mac_low(mac)));
	ah->unit.dmac_h = htole32(hghca_mac_high(mac));
	ah->unit.sl_tclass_flowlabel =
		htole32(FIELD_PREP(HGHCA_QPC_SL_MASK, attr->sl) |
			FIELD_PREP(HGHCA_QPC_TCLASS_MASK, grh->traffic_class) |
			FIELD_PREP(HGHCA_QPC_FLOWLABEL_MASK, grh->flow_label));
	memcpy(ah->unit.dgid, grh->dgid.raw, sizeof(ah->unit.dgid));
}

/* The form without GIDs: addresses of the kernel, and the IPv4 address of the destination. */
static void hghca_ah_fill_base(struct hghca_ah *ah, const struct ibv_ah_attr *attr,
			       const struct hghca_create_ah_resp *kernel)
{
	__be32 dip;

	memcpy(&dip, &attr->grh.dgid.raw[12], sizeof(dip));
	ah->base.port = htole32(attr->port_num);
	ah->base.lids = htole32(hghca_mac_low(kernel->dmac) << 16 | hghca_mac_low(kernel->smac));
	ah->base.smac_h = htole32(hghca_mac_high(kernel->smac));
	ah->base.dmac_h = htole32(hghca_mac_high(kernel->dmac));
	ah->base.sip = htole32(be32toh(kernel->sip));
	ah->base.dip = htole32(be32toh(dip));
}

/* Create the handle in the kernel too, which resolves the GID. */
static int hghca_ah_resolve(struct ibv_pd *pd, struct hghca_ah *ah,
			    struct ibv_ah_attr *attr, struct hghca_create_ah_resp *kernel)
{
	struct hghca_ucmd_create_ah_resp resp = {};
	int err;

	err = ibv_cmd_create_ah(pd, &ah->ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (err)
		return err;
	ah->in_kernel = true;
	*kernel = resp.drv_payload;
	return 0;
}

/* The kernel knows neither every handle nor parent domains, so the PD counts its users itself. */
static void hghca_ah_hold_pd(struct hghca_ah *ah, struct hghca_pd *hpd)
{
	ah->pd_handle = hpd->pd.handle;
	if (hpd->imported)
		return;
	ah->holds = hpd;
	atomic_fetch_add(&hpd->users, 1);
}

/* Fill in the UD unit; returns 0 or an errno. */
static int hghca_ah_address(struct ibv_pd *pd, struct hghca_ah *ah, struct ibv_ah_attr *attr)
{
	struct hghca_create_ah_resp kernel = {};
	bool has_table = to_hctx(pd->context)->has_gid_table;
	int err;

	if (!has_table || !hghca_gid_mac(&attr->grh.dgid, kernel.dmac)) {
		err = hghca_ah_resolve(pd, ah, attr, &kernel);
		if (err)
			return err;
	}
	if (has_table)
		hghca_ah_fill(ah, attr, kernel.dmac);
	else
		hghca_ah_fill_base(ah, attr, &kernel);
	return 0;
}

struct ibv_ah *hghca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct hghca_ah *ah;
	int err;

	/* RoCE v2 addresses by GID: a handle needs a GRH. */
	if (!attr->is_global || attr->port_num != HGHCA_PORT ||
	    attr->static_rate > HGHCA_STATIC_RATE_MAX ||
	    attr->static_rate == HGHCA_STATIC_RATE_NONE) {
		errno = EINVAL;
		return NULL;
	}

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	err = hghca_ah_address(pd, ah, attr);
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	hghca_ah_hold_pd(ah, to_hpd(pd));
	return &ah->ah;
}

int hghca_destroy_ah(struct ibv_ah *ibah)
{
	struct hghca_ah *ah = to_hah(ibah);
	int err;

	if (ah->in_kernel) {
		err = ibv_cmd_destroy_ah(ibah);
		if (err)
			return hghca_errno(err);
	}
	if (ah->holds)
		atomic_fetch_sub(&ah->holds->users, 1);
	free(ah);
	return 0;
}
