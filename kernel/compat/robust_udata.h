/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * After 6.12: the input of processes is checked, and their output filled, by functions of ib_core.
 * Input of a newer user may be longer, with zeros; what it asks for is otherwise not known.
 */
#ifndef COMPAT_HAS_ROBUST_UDATA
#include <rdma/ib_verbs.h>

static inline int compat_copy_udata_in(struct ib_udata *udata, void *req, size_t size,
				       size_t min_size)
{
	int err;

	if (udata->inlen < min_size)
		return -EINVAL;
	err = copy_struct_from_user(req, size, udata->inbuf, udata->inlen);
	return err == -E2BIG ? -EOPNOTSUPP : err;
}

#define ib_copy_validate_udata_in(udata, req, end_member)	\
	compat_copy_udata_in(udata, &(req), sizeof(req),	\
			     offsetofend(typeof(req), end_member))

static inline int ib_is_udata_in_empty(struct ib_udata *udata)
{
	return udata && udata->inlen ? compat_copy_udata_in(udata, NULL, 0, 0) : 0;
}

static inline int compat_respond_udata(struct ib_udata *udata, const void *src, size_t size)
{
	size_t copied = min(size, udata->outlen);

	if (copy_to_user(udata->outbuf, src, copied) ||
	    clear_user(udata->outbuf + copied, udata->outlen - copied))
		return -EFAULT;
	return 0;
}

#define ib_respond_udata(udata, resp)	compat_respond_udata(udata, &(resp), sizeof(resp))

static inline int ib_respond_empty_udata(struct ib_udata *udata)
{
	return udata ? compat_respond_udata(udata, NULL, 0) : 0;
}

static inline int ib_no_udata_io(struct ib_udata *udata)
{
	return ib_is_udata_in_empty(udata) ?: ib_respond_empty_udata(udata);
}
#endif
