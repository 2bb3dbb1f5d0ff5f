// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* JingZhao HCA: additions of the driver to the user verbs methods. */
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
	{},
};
