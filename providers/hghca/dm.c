/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: device memory. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>

#include "hghca.h"
#include "hghca_abi.h"

/* The memory is accessed in aligned words of this many bytes. */
#define HGHCA_DM_WORD	4

static bool hghca_dm_has(const struct hghca_dm *hdm, uint64_t offset, size_t length)
{
	return !((offset | length) % HGHCA_DM_WORD) && offset <= hdm->length &&
	       length <= hdm->length - offset;
}

/* The host address may be unaligned. */
static int hghca_memcpy_to_dm(struct ibv_dm *dm, uint64_t dm_offset, const void *host_addr,
			      size_t length)
{
	struct hghca_dm *hdm = to_hdm(dm);
	volatile uint32_t *to;
	size_t done;
	uint32_t word;

	if (!hghca_dm_has(hdm, dm_offset, length))
		return hghca_errno(EINVAL);
	to = hdm->mapped + dm_offset;
	for (done = 0; done < length; done += HGHCA_DM_WORD) {
		memcpy(&word, host_addr + done, HGHCA_DM_WORD);
		*to++ = word;
	}
	/* The device has the data before WQEs that are posted next. */
	mmio_flush_writes();
	return 0;
}

static int hghca_memcpy_from_dm(void *host_addr, struct ibv_dm *dm, uint64_t dm_offset,
				size_t length)
{
	struct hghca_dm *hdm = to_hdm(dm);
	const volatile uint32_t *from;
	size_t done;
	uint32_t word;

	if (!hghca_dm_has(hdm, dm_offset, length))
		return hghca_errno(EINVAL);
	from = hdm->mapped + dm_offset;
	for (done = 0; done < length; done += HGHCA_DM_WORD) {
		word = *from++;
		memcpy(host_addr + done, &word, HGHCA_DM_WORD);
	}
	return 0;
}

/* Map the memory that the kernel's response describes.  Returns 0 or an errno. */
static int hghca_dm_map(struct hghca_dm *hdm, struct ibv_context *context,
			const struct hghca_dm_resp *resp)
{
	hdm->length = resp->length;
	hdm->mapped_bytes = align(resp->length, to_hctx(context)->page_size);
	hdm->mapped = mmap(NULL, hdm->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			   context->cmd_fd, resp->mmap_offset);
	if (hdm->mapped == MAP_FAILED)
		return errno;
	hdm->vdm.dm.memcpy_to_dm = hghca_memcpy_to_dm;
	hdm->vdm.dm.memcpy_from_dm = hghca_memcpy_from_dm;
	return 0;
}

struct ibv_dm *hghca_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct hghca_dm_resp resp;
	struct hghca_dm *hdm;
	int err;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EINVAL;
		return NULL;
	}
	/* The kernel would refuse a method that it does not have with EPROTONOSUPPORT. */
	if (!to_hctx(context)->has_device_memory) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	hdm = calloc(1, sizeof(*hdm));
	if (!hdm)
		return NULL;

	fill_attr_out_ptr(cmdb, HGHCA_ATTR_DM_ALLOC_RESP, &resp);
	err = ibv_cmd_alloc_dm(context, attr, &hdm->vdm, cmdb);
	if (err)
		goto err_free;
	err = hghca_dm_map(hdm, context, &resp);
	if (err)
		goto err_dealloc;
	return &hdm->vdm.dm;

err_dealloc:
	ibv_cmd_free_dm(&hdm->vdm);
err_free:
	free(hdm);
	errno = err;
	return NULL;
}

int hghca_free_dm(struct ibv_dm *dm)
{
	struct hghca_dm *hdm = to_hdm(dm);
	int err;

	err = ibv_cmd_free_dm(&hdm->vdm);
	if (err)
		return hghca_errno(err);
	hghca_unimport_dm(dm);
	return 0;
}

struct ibv_dm *hghca_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	DECLARE_COMMAND_BUFFER(cmdb, UVERBS_OBJECT_DM, HGHCA_METHOD_DM_QUERY, 2);
	struct hghca_dm_resp resp;
	struct hghca_dm *hdm;
	int err;

	hdm = calloc(1, sizeof(*hdm));
	if (!hdm)
		return NULL;

	fill_attr_in_obj(cmdb, HGHCA_ATTR_DM_QUERY_HANDLE, dm_handle);
	fill_attr_out_ptr(cmdb, HGHCA_ATTR_DM_QUERY_RESP, &resp);
	err = execute_ioctl(context, cmdb);
	if (err)
		goto err_free;
	hdm->vdm.handle = dm_handle;
	hdm->vdm.dm.handle = dm_handle;
	hdm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	hdm->vdm.dm.context = context;
	err = hghca_dm_map(hdm, context, &resp);
	if (err)
		goto err_free;
	return &hdm->vdm.dm;

err_free:
	free(hdm);
	errno = err;
	return NULL;
}

void hghca_unimport_dm(struct ibv_dm *dm)
{
	struct hghca_dm *hdm = to_hdm(dm);

	munmap(hdm->mapped, hdm->mapped_bytes);
	free(hdm);
}

struct ibv_mr *hghca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dm_mr(pd, &to_hdm(dm)->vdm, dm_offset, length, access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}
