/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* JingZhao HCA: direct verbs, but for the work requests of QPs, which are in wr.c. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <infiniband/cmd_write.h>

#include "hghca.h"
#include "hghca_abi.h"

#define HGHCA_PARTITION_REGIONS	(1U << HGHCA_PARTITION_LOG_MAX_REGIONS)

/* What hghcadv_partition is a part of. */
struct hghca_dv_partition {
	struct hghcadv_partition dv;
	uint32_t handle;
	struct hghca_pd *parent;	/* the parent domain that counts it as a user, or NULL */
};

static struct hghca_dv_partition *to_hpartition(struct hghcadv_partition *partition)
{
	return container_of(partition, struct hghca_dv_partition, dv);
}

/* ------------------------------------------------------------------ */
/* Devices                                                              */

bool hghcadv_is_supported(struct ibv_device *device)
{
	return hghca_is_device(device);
}

int hghcadv_query_device(struct ibv_context *context, struct hghcadv_device_attr *attr)
{
	if (!hghca_is_device(context->device))
		return hghca_errno(EOPNOTSUPP);

	/* A bit that is set asks for a field that this version does not know. */
	*attr = (struct hghcadv_device_attr) {};
	if (to_hctx(context)->has_vendor_ops) {
		attr->flags = HGHCADV_DEVICE_VENDOR_OPS;
		attr->max_partitions = HGHCA_PARTITIONS;
		attr->max_regions = HGHCA_PARTITION_REGIONS;
	}
	return 0;
}

/* ------------------------------------------------------------------ */
/* Partitions                                                           */

static bool hghca_is_pow2(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* What the description cannot say is refused here, everything else by the kernel. */
static int hghca_partition_check(struct ibv_pd *pd,
				 const struct hghcadv_partition_attr *attr)
{
	if (!hghca_is_device(pd->context->device) ||
	    !to_hctx(pd->context)->has_vendor_ops)
		return EOPNOTSUPP;
	if (!check_comp_mask(attr->comp_mask, 0))
		return EOPNOTSUPP;
	if (!hghca_is_pow2(attr->record_size) || !hghca_is_pow2(attr->num_regions) ||
	    attr->num_regions > HGHCA_PARTITION_REGIONS || !attr->regions)
		return EINVAL;
	return 0;
}

static int hghca_partition_register(struct hghca_dv_partition *partition,
				    const struct hghcadv_partition_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmdb, HGHCA_OBJECT_PARTITION,
			       HGHCA_METHOD_PARTITION_CREATE, 5);
	struct hghca_partition_range ranges[HGHCA_PARTITION_REGIONS];
	struct hghca_partition_desc desc = {
		.log_record = ilog32(attr->record_size) - 1,
		.log_regions = ilog32(attr->num_regions) - 1,
		.key_offset = attr->key_offset,
		.key_size = attr->key_size,
		.key_shift = attr->key_shift,
	};
	struct ib_uverbs_attr *handle;
	uint32_t i;
	int err;

	for (i = 0; i < attr->num_regions; i++)
		ranges[i] = (struct hghca_partition_range) {
			.addr = attr->regions[i].addr,
			.rkey = attr->regions[i].rkey,
			.length = attr->regions[i].length,
		};

	handle = fill_attr_out_obj(cmdb, HGHCA_ATTR_PARTITION_CREATE_HANDLE);
	fill_attr_in_obj(cmdb, HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE,
			 partition->dv.pd->handle);
	fill_attr_in_ptr(cmdb, HGHCA_ATTR_PARTITION_CREATE_DESC, &desc);
	fill_attr_in_ptr_array(cmdb, HGHCA_ATTR_PARTITION_CREATE_RANGES, ranges,
			       attr->num_regions);
	fill_attr_out_ptr(cmdb, HGHCA_ATTR_PARTITION_CREATE_RESP_KEY,
			  &partition->dv.key);
	err = execute_ioctl(partition->dv.context, cmdb);
	if (err)
		return err;
	partition->handle = read_attr_obj(HGHCA_ATTR_PARTITION_CREATE_HANDLE, handle);
	return 0;
}

struct hghcadv_partition *
hghcadv_create_partition(struct ibv_pd *pd, const struct hghcadv_partition_attr *attr)
{
	struct hghca_dv_partition *partition;
	int err;

	err = hghca_partition_check(pd, attr);
	if (err)
		goto err_errno;

	partition = calloc(1, sizeof(*partition));
	if (!partition) {
		err = ENOMEM;
		goto err_errno;
	}
	partition->dv.context = pd->context;
	partition->dv.pd = pd;
	partition->dv.num_regions = attr->num_regions;
	err = hghca_partition_register(partition, attr);
	if (err)
		goto err_free;

	/* The kernel does not know parent domains. */
	if (to_hpd(pd)->parent_of) {
		partition->parent = to_hpd(pd);
		atomic_fetch_add(&partition->parent->users, 1);
	}
	return &partition->dv;

err_free:
	free(partition);
err_errno:
	errno = err;
	return NULL;
}

/* The regions beyond those of the partition are left as they are. */
int hghcadv_query_partition(struct hghcadv_partition *dv, uint32_t *filled,
			    uint32_t count)
{
	DECLARE_COMMAND_BUFFER(cmdb, HGHCA_OBJECT_PARTITION,
			       HGHCA_METHOD_PARTITION_QUERY, 2);

	if (count < dv->num_regions)
		return hghca_errno(EINVAL);

	fill_attr_in_obj(cmdb, HGHCA_ATTR_PARTITION_QUERY_HANDLE,
			 to_hpartition(dv)->handle);
	fill_attr_out_ptr_array(cmdb, HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED, filled,
				dv->num_regions);
	return hghca_errno(execute_ioctl(dv->context, cmdb));
}

int hghcadv_destroy_partition(struct hghcadv_partition *dv)
{
	DECLARE_COMMAND_BUFFER(cmdb, HGHCA_OBJECT_PARTITION,
			       HGHCA_METHOD_PARTITION_DESTROY, 1);
	struct hghca_dv_partition *partition = to_hpartition(dv);
	int err;

	fill_attr_in_obj(cmdb, HGHCA_ATTR_PARTITION_DESTROY_HANDLE, partition->handle);
	err = execute_ioctl(dv->context, cmdb);
	/* As for all objects, EIO of a device that is gone is success if the program asks. */
	verbs_is_destroy_err(&err);
	if (err)
		return hghca_errno(err);

	if (partition->parent)
		atomic_fetch_sub(&partition->parent->users, 1);
	free(partition);
	return 0;
}

/* ------------------------------------------------------------------ */
/* QPs                                                                  */

struct ibv_qp *hghcadv_create_qp(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr,
				 struct hghcadv_qp_init_attr *dv_attr)
{
	if (!hghca_is_device(context->device) ||
	    !check_comp_mask(dv_attr->comp_mask, 0) ||
	    (dv_attr->flags & ~HGHCADV_QP_VENDOR_OPS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return hghca_create_qp_with(context, attr,
				    dv_attr->flags & HGHCADV_QP_VENDOR_OPS);
}

struct hghcadv_qp_ex *hghcadv_qp_ex_from_ibv_qp_ex(struct ibv_qp_ex *qp)
{
	/* ibv_qp_to_qp_ex() gives NULL for a QP without extended posting. */
	if (!qp || !hghca_is_device(qp->qp_base.context->device) ||
	    !to_hqp_ex(qp)->has_vendor_ops) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return &to_hqp_ex(qp)->dv;
}

/* ------------------------------------------------------------------ */
/* CRC-64/XZ: polynomial 42F0E1EBA9EA3693h, reflected                   */

/* What four bits that leave the register add to it. */
static const uint64_t hghca_crc64_table[16] = {
	0x0000000000000000, 0x7d9ba13851336649, 0xfb374270a266cc92, 0x86ace348f355aadb,
	0x64b62bcaebc387a1, 0x192d8af2baf0e1e8, 0x9f8169ba49a54b33, 0xe21ac88218962d7a,
	0xc96c5795d7870f42, 0xb4f7f6ad86b4690b, 0x325b15e575e1c3d0, 0x4fc0b4dd24d2a599,
	0xadda7c5f3c4488e3, 0xd041dd676d77eeaa, 0x56ed3e2f9e224471, 0x2b769f17cf112238,
};

uint64_t hghcadv_crc64(const void *data, size_t length)
{
	const uint8_t *byte = data;
	uint64_t crc = UINT64_MAX;

	while (length--) {
		crc ^= *byte++;
		crc = crc >> 4 ^ hghca_crc64_table[crc & 15];
		crc = crc >> 4 ^ hghca_crc64_table[crc & 15];
	}
	return ~crc;
}
