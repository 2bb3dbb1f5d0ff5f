// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: additions of the driver to the user verbs: methods, and partitions. */
#include <rdma/uverbs_ioctl.h>

#include "verbs/verbs.h"

/* DM_ALLOC: how the user maps the device memory that it has allocated. */
static const struct uverbs_attr_def *const hghca_dm_alloc_attrs[] = {
	UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_DM_ALLOC_RESP, UVERBS_ATTR_TYPE(struct hghca_dm_resp),
			    UA_MANDATORY),
};

static const struct uverbs_method_def hghca_dm_alloc = {
	.id = UVERBS_METHOD_DM_ALLOC,
	.num_attrs = ARRAY_SIZE(hghca_dm_alloc_attrs),
	.attrs = &hghca_dm_alloc_attrs,
};

/* Returns the same data again, to another process that has the handle. */
static int hghca_dm_query_handler(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, HGHCA_ATTR_DM_QUERY_HANDLE);
	struct hghca_dm_resp resp;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	hghca_dm_describe(to_hdm(ibdm), ibdm->length, &resp);
	return uverbs_copy_to_struct_or_zero(attrs, HGHCA_ATTR_DM_QUERY_RESP, &resp,
					     sizeof(resp));
}

static const struct uverbs_attr_def *const hghca_dm_query_attrs[] = {
	UVERBS_ATTR_IDR(HGHCA_ATTR_DM_QUERY_HANDLE, UVERBS_OBJECT_DM, UVERBS_ACCESS_READ,
			UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_DM_QUERY_RESP,
			    UVERBS_ATTR_STRUCT(struct hghca_dm_resp, length), UA_MANDATORY),
};

static const struct uverbs_method_def hghca_dm_query = {
	.id = HGHCA_METHOD_DM_QUERY,
	.handler = hghca_dm_query_handler,
	.num_attrs = ARRAY_SIZE(hghca_dm_query_attrs),
	.attrs = &hghca_dm_query_attrs,
};

static const struct uverbs_method_def *const hghca_dm_methods[] = {
	&hghca_dm_alloc,
	&hghca_dm_query,
};

static const struct uverbs_object_def hghca_dm_object = {
	.id = UVERBS_OBJECT_DM,
	.num_methods = ARRAY_SIZE(hghca_dm_methods),
	.methods = &hghca_dm_methods,
};

static bool hghca_partition_is_supported(struct ib_device *ibdev)
{
	return to_hdev(ibdev)->limits.caps & HGHCA_CAP_VENDOR_OPS;
}

static int hghca_partition_create_handler(struct uverbs_attr_bundle *attrs)
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

static const struct uverbs_attr_def *const hghca_partition_create_attrs[] = {
	UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_CREATE_HANDLE, HGHCA_OBJECT_PARTITION,
			UVERBS_ACCESS_NEW, UA_MANDATORY),
	UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE, UVERBS_OBJECT_PD,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(HGHCA_ATTR_PARTITION_CREATE_DESC,
			   UVERBS_ATTR_TYPE(struct hghca_partition_desc), UA_MANDATORY),
	UVERBS_ATTR_PTR_IN(HGHCA_ATTR_PARTITION_CREATE_RANGES,
			   UVERBS_ATTR_MIN_SIZE(sizeof(struct hghca_partition_range)),
			   UA_MANDATORY, UA_ALLOC_AND_COPY),
	UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_PARTITION_CREATE_RESP_KEY, UVERBS_ATTR_TYPE(u32),
			    UA_MANDATORY),
};

static const struct uverbs_method_def hghca_partition_create = {
	.id = HGHCA_METHOD_PARTITION_CREATE,
	.handler = hghca_partition_create_handler,
	.num_attrs = ARRAY_SIZE(hghca_partition_create_attrs),
	.attrs = &hghca_partition_create_attrs,
};

/* DESTROY, and the end of the context: the core calls this for each partition. */
static int hghca_partition_destroy_object(struct ib_uobject *uobj, enum rdma_remove_reason why,
					  struct uverbs_attr_bundle *attrs)
{
	hghca_destroy_partition(uobj->object);
	return 0;
}

static const struct uverbs_attr_def *const hghca_partition_destroy_attrs[] = {
	UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_DESTROY_HANDLE, HGHCA_OBJECT_PARTITION,
			UVERBS_ACCESS_DESTROY, UA_MANDATORY),
};

static const struct uverbs_method_def hghca_partition_destroy = {
	.id = HGHCA_METHOD_PARTITION_DESTROY,
	.handler = uverbs_destroy_def_handler,
	.num_attrs = ARRAY_SIZE(hghca_partition_destroy_attrs),
	.attrs = &hghca_partition_destroy_attrs,
};

/* The user may have room for more regions than the partition has. */
static int hghca_partition_query_handler(struct uverbs_attr_bundle *attrs)
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

static const struct uverbs_attr_def *const hghca_partition_query_attrs[] = {
	UVERBS_ATTR_IDR(HGHCA_ATTR_PARTITION_QUERY_HANDLE, HGHCA_OBJECT_PARTITION,
			UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED,
			    UVERBS_ATTR_MIN_SIZE(sizeof(u32)), UA_MANDATORY),
};

static const struct uverbs_method_def hghca_partition_query = {
	.id = HGHCA_METHOD_PARTITION_QUERY,
	.handler = hghca_partition_query_handler,
	.num_attrs = ARRAY_SIZE(hghca_partition_query_attrs),
	.attrs = &hghca_partition_query_attrs,
};

static const struct uverbs_method_def *const hghca_partition_methods[] = {
	&hghca_partition_create,
	&hghca_partition_destroy,
	&hghca_partition_query,
};

static const struct uverbs_object_def hghca_partition_object = {
	.id = HGHCA_OBJECT_PARTITION,
	.type_attrs = &UVERBS_TYPE_ALLOC_IDR(hghca_partition_destroy_object),
	.num_methods = ARRAY_SIZE(hghca_partition_methods),
	.methods = &hghca_partition_methods,
};

/* QUERY_CONTEXT: the response of the creation, for another process that has the file. */
static const struct uverbs_attr_def *const hghca_query_context_attrs[] = {
	UVERBS_ATTR_PTR_OUT(HGHCA_ATTR_QUERY_CONTEXT_RESP,
			    UVERBS_ATTR_STRUCT(struct hghca_alloc_ucontext_resp, max_srq_sge),
			    UA_MANDATORY),
};

static const struct uverbs_method_def hghca_query_context = {
	.id = UVERBS_METHOD_QUERY_CONTEXT,
	.num_attrs = ARRAY_SIZE(hghca_query_context_attrs),
	.attrs = &hghca_query_context_attrs,
};

static const struct uverbs_method_def *const hghca_device_methods[] = {
	&hghca_query_context,
};

static const struct uverbs_object_def hghca_device_object = {
	.id = UVERBS_OBJECT_DEVICE,
	.num_methods = ARRAY_SIZE(hghca_device_methods),
	.methods = &hghca_device_methods,
};

const struct uapi_definition hghca_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &hghca_dm_object),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &hghca_device_object),
	/* A kernel without user access has no class of objects, and does not read this. */
	UAPI_DEF_CHAIN_OBJ_TREE(HGHCA_OBJECT_PARTITION,
				PTR_IF(IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS),
				       &hghca_partition_object),
				UAPI_DEF_IS_OBJ_SUPPORTED(hghca_partition_is_supported)),
	{},
};
