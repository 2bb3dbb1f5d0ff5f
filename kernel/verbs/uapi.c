// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: additions of the driver to the user verbs: methods, and partitions. */
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

#define UVERBS_MODULE_NAME hghca
#include <rdma/uverbs_named_ioctl.h>

static bool hghca_partition_is_supported(struct ib_device *ibdev)
{
	return to_hdev(ibdev)->limits.caps & HGHCA_CAP_VENDOR_OPS;
}

/* How the user maps the device memory that it has allocated. */
ADD_UVERBS_ATTRIBUTES_SIMPLE(hghca_dm_alloc, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_DM_ALLOC_RESP,
						 UVERBS_ATTR_TYPE(struct hghca_dm_resp),
						 UA_MANDATORY));

/* Returns the same data again, to another process that has the handle. */
static int UVERBS_HANDLER(HGHCA_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, HGHCA_ATTR_DM_QUERY_HANDLE);
	struct hghca_dm_resp resp;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	hghca_dm_describe(to_hdm(ibdm), ibdm->length, &resp);
	return uverbs_copy_to_struct_or_zero(attrs, HGHCA_ATTR_DM_QUERY_RESP, &resp,
					     sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(HGHCA_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(HGHCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct hghca_dm_resp, length),
						UA_MANDATORY));

ADD_UVERBS_METHODS(hghca_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(HGHCA_METHOD_DM_QUERY));

static int UVERBS_HANDLER(HGHCA_METHOD_PARTITION_CREATE)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj = uverbs_attr_get_uobject(attrs,
							  HGHCA_ATTR_PARTITION_CREATE_HANDLE);
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs, HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE);
	const struct hghca_partition_range *ranges;
	struct hghca_user_partition *upart;
	struct hghca_partition_desc desc;
	int num_ranges;
	int err;

	if (IS_ERR(uobj))
		return PTR_ERR(uobj);
	if (IS_ERR(ibpd))
		return PTR_ERR(ibpd);
	err = uverbs_copy_from(&desc, attrs, HGHCA_ATTR_PARTITION_CREATE_DESC);
	if (err)
		return err;
	num_ranges = uverbs_attr_ptr_get_array_size(attrs, HGHCA_ATTR_PARTITION_CREATE_RANGES,
						    sizeof(*ranges));
	if (num_ranges < 0)
		return num_ranges;
	ranges = uverbs_attr_get_alloced_ptr(attrs, HGHCA_ATTR_PARTITION_CREATE_RANGES);
	if (IS_ERR(ranges))
		return PTR_ERR(ranges);

	upart = hghca_create_partition(ibpd, &desc, ranges, num_ranges);
	if (IS_ERR(upart))
		return PTR_ERR(upart);
	uobj->object = upart;
	uverbs_finalize_uobj_create(attrs, HGHCA_ATTR_PARTITION_CREATE_HANDLE);
	/* From here on, the core destroys the partition after an error. */
	return uverbs_copy_to(attrs, HGHCA_ATTR_PARTITION_CREATE_RESP_KEY, &upart->key,
			      sizeof(upart->key));
}

/* One range or more; hghca_create_partition() compares their number with @desc. */
#define HGHCA_PARTITION_RANGES	UVERBS_ATTR_MIN_SIZE(sizeof(struct hghca_partition_range))

DECLARE_UVERBS_NAMED_METHOD(HGHCA_METHOD_PARTITION_CREATE,
			    UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_CREATE_HANDLE,
					    HGHCA_OBJECT_PARTITION, UVERBS_ACCESS_NEW,
					    UA_MANDATORY),
			    UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE,
					    UVERBS_OBJECT_PD, UVERBS_ACCESS_READ,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(HGHCA_ATTR_PARTITION_CREATE_DESC,
					       UVERBS_ATTR_TYPE(struct hghca_partition_desc),
					       UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(HGHCA_ATTR_PARTITION_CREATE_RANGES,
					       HGHCA_PARTITION_RANGES, UA_MANDATORY,
					       UA_ALLOC_AND_COPY),
			    UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_PARTITION_CREATE_RESP_KEY,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

/* DESTROY, and the end of the context: the core calls this for each partition. */
static int hghca_partition_destroy_object(struct ib_uobject *uobj, enum rdma_remove_reason why,
					  struct uverbs_attr_bundle *attrs)
{
	hghca_destroy_partition(uobj->object);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD_DESTROY(HGHCA_METHOD_PARTITION_DESTROY,
				    UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_DESTROY_HANDLE,
						    HGHCA_OBJECT_PARTITION,
						    UVERBS_ACCESS_DESTROY, UA_MANDATORY));

/* The user may have room for more regions than the partition has. */
static int UVERBS_HANDLER(HGHCA_METHOD_PARTITION_QUERY)(struct uverbs_attr_bundle *attrs)
{
	const struct hghca_user_partition *upart =
		uverbs_attr_get_obj(attrs, HGHCA_ATTR_PARTITION_QUERY_HANDLE);
	size_t size;
	u32 *filled;
	int room;
	int err;

	if (IS_ERR(upart))
		return PTR_ERR(upart);
	room = uverbs_attr_ptr_get_array_size(attrs, HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED,
					      sizeof(*filled));
	if (room < 0)
		return room;
	if (room < BIT(upart->log_regions))
		return -EINVAL;

	/* The core frees it with @attrs. */
	size = array_size(BIT(upart->log_regions), sizeof(*filled));
	filled = uverbs_zalloc(attrs, size);
	if (IS_ERR(filled))
		return PTR_ERR(filled);
	err = hghca_query_partition(upart, filled);
	if (err)
		return err;
	return uverbs_copy_to(attrs, HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED, filled, size);
}

DECLARE_UVERBS_NAMED_METHOD(HGHCA_METHOD_PARTITION_QUERY,
			    UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_QUERY_HANDLE,
					    HGHCA_OBJECT_PARTITION, UVERBS_ACCESS_READ,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED,
						UVERBS_ATTR_MIN_SIZE(sizeof(u32)),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(HGHCA_OBJECT_PARTITION,
			    UVERBS_TYPE_ALLOC_IDR(hghca_partition_destroy_object),
			    &UVERBS_METHOD(HGHCA_METHOD_PARTITION_CREATE),
			    &UVERBS_METHOD(HGHCA_METHOD_PARTITION_DESTROY),
			    &UVERBS_METHOD(HGHCA_METHOD_PARTITION_QUERY));

#define HGHCA_CONTEXT_RESP	UVERBS_ATTR_STRUCT(struct hghca_alloc_ucontext_resp, max_srq_sge)

/* The response of the creation of a context, for another process that has the file. */
ADD_UVERBS_ATTRIBUTES_SIMPLE(hghca_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_QUERY_CONTEXT_RESP,
						 HGHCA_CONTEXT_RESP, UA_MANDATORY));

const struct uapi_definition hghca_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &hghca_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &hghca_dm_methods),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &hghca_query_context),
	/* A kernel without user access has no class of objects, and does not read this. */
	UAPI_DEF_CHAIN_OBJ_TREE(HGHCA_OBJECT_PARTITION,
				PTR_IF(IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS),
				       &UVERBS_OBJECT(HGHCA_OBJECT_PARTITION)),
				UAPI_DEF_IS_OBJ_SUPPORTED(hghca_partition_is_supported)),
	{},
};
