/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: protection domains, thread domains and parent domains. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"
#include "hghca_abi.h"

struct ibv_pd *hghca_alloc_pd(struct ibv_context *context)
{
	struct hghca_ucmd_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct hghca_pd *hpd;
	int err;

	hpd = calloc(1, sizeof(*hpd));
	if (!hpd)
		return NULL;

	err = ibv_cmd_alloc_pd(context, &hpd->pd, &cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(hpd);
		errno = err;
		return NULL;
	}
	return &hpd->pd;
}

int hghca_dealloc_pd(struct ibv_pd *pd)
{
	struct hghca_pd *hpd = to_hpd(pd);
	int err;

	if (atomic_load(&hpd->users))
		return hghca_errno(EBUSY);

	if (hpd->parent_of) {
		atomic_fetch_sub(&hpd->parent_of->users, 1);
		if (hpd->td)
			atomic_fetch_sub(&hpd->td->users, 1);
	} else {
		err = ibv_cmd_dealloc_pd(pd);
		if (err)
			return hghca_errno(err);
	}
	free(hpd);
	return 0;
}

/* The kernel checks the handle when the PD is used. */
struct ibv_pd *hghca_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct hghca_pd *hpd;

	hpd = calloc(1, sizeof(*hpd));
	if (!hpd)
		return NULL;
	hpd->pd.context = context;
	hpd->pd.handle = pd_handle;
	hpd->imported = true;
	return &hpd->pd;
}

void hghca_unimport_pd(struct ibv_pd *pd)
{
	free(to_hpd(pd));
}

struct ibv_td *hghca_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr)
{
	struct hghca_td *htd;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	htd = calloc(1, sizeof(*htd));
	if (!htd)
		return NULL;
	htd->td.context = context;
	return &htd->td;
}

int hghca_dealloc_td(struct ibv_td *td)
{
	struct hghca_td *htd = to_htd(td);

	if (atomic_load(&htd->users))
		return hghca_errno(EBUSY);
	free(htd);
	return 0;
}

struct ibv_pd *hghca_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct hghca_pd *hpd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	/* The last one is a permission that is not used: buffers are plain memory in any guest. */
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	/* A parent domain holds a protection domain, not another parent. */
	if (to_hpd(attr->pd)->parent_of) {
		errno = EINVAL;
		return NULL;
	}

	hpd = calloc(1, sizeof(*hpd));
	if (!hpd)
		return NULL;

	hpd->parent_of = to_hpd(attr->pd);
	atomic_fetch_add(&hpd->parent_of->users, 1);
	if (attr->td) {
		hpd->td = to_htd(attr->td);
		atomic_fetch_add(&hpd->td->users, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		hpd->alloc = attr->alloc;
		hpd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		hpd->pd_context = attr->pd_context;

	ibv_initialize_parent_domain(&hpd->pd, attr->pd);
	return &hpd->pd;
}
