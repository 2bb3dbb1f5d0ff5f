/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: memory regions. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "hghca.h"

/*
 * The address of a region's first byte.  That of a zero-based region is 0, which the
 * kernel sets; but the command needs an address with the same offset in a page as
 * the memory.
 */
static uint64_t hghca_mr_start(uint64_t memory, uint64_t hca_va, int access)
{
	return access & IBV_ACCESS_ZERO_BASED ? memory : hca_va;
}

struct ibv_mr *hghca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(pd, addr, length, hghca_mr_start((uintptr_t)addr, hca_va, access),
			     access, vmr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int hghca_dereg_mr(struct verbs_mr *vmr)
{
	int err;

	err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return hghca_errno(err);
	free(vmr);
	return 0;
}

int hghca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
		   size_t length, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int err;

	err = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, pd,
			       &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (!err && (flags & IBV_REREG_MR_CHANGE_ACCESS))
		vmr->access = access;
	return hghca_errno(err);
}

/* The kernel handles regions paged on demand, and so advice on them. */
int hghca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge)
{
	return hghca_errno(ibv_cmd_advise_mr(pd, advice, flags, sg_list, num_sge));
}

struct ibv_mr *hghca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				   uint64_t iova, int fd, int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dmabuf_mr(pd, offset, length, hghca_mr_start(offset, iova, access), fd,
				    access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

struct ibv_mr *hghca_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_query_mr(pd, vmr, mr_handle);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void hghca_unimport_mr(struct ibv_mr *mr)
{
	free(verbs_get_mr(mr));
}
