/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * JingZhao HCA: QPs that distribute frames over a table of receive work queues
 * (interface document, section 4.25).
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hghca.h"
#include "hghca_abi.h"

#define HGHCA_RSS_COMP_MASK	(IBV_QP_INIT_ATTR_PD | \
				 IBV_QP_INIT_ATTR_CREATE_FLAGS | \
				 IBV_QP_INIT_ATTR_IND_TABLE | \
				 IBV_QP_INIT_ATTR_RX_HASH)

static_assert(IBV_RX_HASH_FUNC_TOEPLITZ == (int)HGHCA_RSS_TOEPLITZ &&
	      (unsigned int)IBV_RX_HASH_SRC_IPV4 == HGHCA_RSS_SRC_IPV4 &&
	      (unsigned int)IBV_RX_HASH_DST_IPV4 == HGHCA_RSS_DST_IPV4 &&
	      (unsigned int)IBV_RX_HASH_SRC_IPV6 == HGHCA_RSS_SRC_IPV6 &&
	      (unsigned int)IBV_RX_HASH_DST_IPV6 == HGHCA_RSS_DST_IPV6 &&
	      (unsigned int)IBV_RX_HASH_SRC_PORT_TCP == HGHCA_RSS_SRC_PORT_TCP &&
	      (unsigned int)IBV_RX_HASH_DST_PORT_TCP == HGHCA_RSS_DST_PORT_TCP &&
	      (unsigned int)IBV_RX_HASH_SRC_PORT_UDP == HGHCA_RSS_SRC_PORT_UDP &&
	      (unsigned int)IBV_RX_HASH_DST_PORT_UDP == HGHCA_RSS_DST_PORT_UDP,
	      "the hash function and fields need translating");

static int hghca_rss_check_attr(const struct hghca_context *ctx,
				const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;

	/* It sends nothing, so IBV_QP_CREATE_BLOCK_SELF_MCAST_LB has no effect. */
	if (!ctx->has_rss || attr->qp_type != IBV_QPT_RAW_PACKET ||
	    !check_comp_mask(attr->comp_mask, HGHCA_RSS_COMP_MASK) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	     (attr->create_flags & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)) ||
	    attr->cap.max_send_wr || attr->cap.max_send_sge || attr->cap.max_inline_data)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->rwq_ind_tbl ||
	    !(attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) || !hash->rx_hash_key ||
	    hash->rx_hash_key_len != HGHCA_RSS_KEY_BYTES)
		return EINVAL;
	return 0;
}

/* It has no queue and is not mapped: it is only a handle. */
struct ibv_qp *hghca_create_rss_qp(struct ibv_context *context,
				   struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct hghca_ucmd_create_rss_qp_resp resp = {};
	struct hghca_ucmd_create_rss_qp cmd = {};
	struct ibv_qp_init_attr_ex kattr = *attr;
	struct hghca_qp *qp;
	int err;

	err = hghca_rss_check_attr(to_hctx(context), attr);
	if (err) {
		errno = err;
		return NULL;
	}

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->is_handle = true;
	cmd.drv_payload.rx_hash_fields_mask = hash->rx_hash_fields_mask;
	cmd.drv_payload.rx_hash_function = hash->rx_hash_function;
	cmd.drv_payload.rx_hash_key_len = hash->rx_hash_key_len;
	memcpy(cmd.drv_payload.rx_hash_key, hash->rx_hash_key,
	       sizeof(cmd.drv_payload.rx_hash_key));
	/* The kernel does not need the flag. */
	kattr.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	err = ibv_cmd_create_qp_ex2(context, &qp->vqp, &kattr, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp), NULL);
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	attr->cap = qp->cap;
	return &qp->vqp.qp;
}
