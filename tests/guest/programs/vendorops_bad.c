// SPDX-License-Identifier: GPL-2.0-or-later
/* What there is, what is refused when it is asked for, and ends that do not have the operations. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "raw.h"
#include "vendorops.h"

#define MAX_PARTITIONS		64
#define MAX_REGIONS		128

/* ------------------------------------------------------------------ */
/* What there is                                                        */

void abilities(void)
{
	struct hghcadv_device_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	if (!hghcadv_is_supported(vo_asker.ctx->device))
		tb_fail("the device is said to be of another provider");
	vo_errno(hghcadv_query_device(vo_asker.ctx, &attr), 0, "hghcadv_query_device");
	if (attr.comp_mask || attr.flags != HGHCADV_DEVICE_VENDOR_OPS || attr.max_partitions != MAX_PARTITIONS ||
	    attr.max_regions != MAX_REGIONS)
		tb_fail("mask 0x%llx, flags 0x%x, %u partitions of %u regions", (unsigned long long)attr.comp_mask,
			attr.flags, attr.max_partitions, attr.max_regions);
}

/* The check value of CRC-64/XZ, and that of nothing. */
void checksum(void)
{
	if (hghcadv_crc64("123456789", 9) != 0x995dc9bbdf1939fa || hghcadv_crc64(NULL, 0))
		tb_fail("0x%llx and 0x%llx", (unsigned long long)hghcadv_crc64("123456789", 9),
			(unsigned long long)hghcadv_crc64(NULL, 0));
}

/* ------------------------------------------------------------------ */
/* Partitions                                                           */

static struct hghcadv_region regions[2 * MAX_REGIONS];
static uint8_t memory[4096] __attribute__((aligned(4096)));

/* The key of a region is only looked at when records come. */
static struct hghcadv_partition_attr sound(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(regions); i++)
		regions[i] = (struct hghcadv_region) { (uintptr_t)memory, sizeof(memory), 1 };
	return (struct hghcadv_partition_attr) {
		.record_size = 16, .num_regions = 4, .regions = regions, .key_size = 4, .key_shift = 8,
	};
}

static struct hghcadv_partition *try_create(struct ibv_pd *pd, const struct hghcadv_partition_attr *attr)
{
	errno = 0;
	return hghcadv_create_partition(pd, attr);
}

static void refuse_partition(const struct hghcadv_partition_attr *attr, int error, const char *what)
{
	struct hghcadv_partition *partition = try_create(vo_owner->pd, attr);

	vo_errno(partition ? 0 : errno, error, what);
	if (partition)
		vo_errno(hghcadv_destroy_partition(partition), 0, what);
}

static void bad_partition_numbers(void)
{
	struct {
		const char *what;
		struct hghcadv_partition_attr attr;
		int error;
	} tries[] = {
		{ "as it should be", sound(), 0 },
		{ "an unknown field", sound(), EOPNOTSUPP },
		{ "records of no bytes", sound(), EINVAL },
		{ "records of 4 bytes", sound(), EINVAL },
		{ "records of 24 bytes", sound(), EINVAL },
		{ "records of 512 bytes", sound(), EINVAL },
		{ "no regions", sound(), EINVAL },
		{ "3 regions", sound(), EINVAL },
		{ "256 regions", sound(), EINVAL },
		{ "regions that are not there", sound(), EINVAL },
		{ "a key of no bytes", sound(), EINVAL },
		{ "a key of 3 bytes", sound(), EINVAL },
		{ "a key of 16 bytes", sound(), EINVAL },
		{ "a key that just fits", sound(), 0 },
		{ "a key beyond the record", sound(), EINVAL },
		{ "a key far beyond the record", sound(), EINVAL },
		{ "the highest bits", sound(), 0 },
		{ "a bit too high", sound(), EINVAL },
		{ "far too high", sound(), EINVAL },
	};
	size_t i;

	tries[1].attr.comp_mask = 1;
	tries[2].attr.record_size = 0;
	tries[3].attr.record_size = 4;
	tries[4].attr.record_size = 24;
	tries[5].attr.record_size = 512;
	tries[6].attr.num_regions = 0;
	tries[7].attr.num_regions = 3;
	tries[8].attr.num_regions = 2 * MAX_REGIONS;
	tries[9].attr.regions = NULL;
	tries[10].attr.key_size = 0;
	tries[11].attr.key_size = 3;
	tries[12].attr.key_size = 16;
	tries[13].attr.key_offset = 12;
	tries[14].attr.key_offset = 13;
	tries[15].attr.key_offset = 255;
	tries[16].attr.key_shift = 30;
	tries[17].attr.key_shift = 31;
	tries[18].attr.key_shift = 255;
	for (i = 0; i < ARRAY_SIZE(tries); i++)
		refuse_partition(&tries[i].attr, tries[i].error, tries[i].what);
}

/* The most of everything, and a query with fewer numbers than there are regions. */
void bad_partitions(void)
{
	struct hghcadv_partition_attr attr = sound();
	struct hghcadv_partition *partition;
	uint32_t filled[MAX_REGIONS];

	bad_partition_numbers();
	attr.num_regions = MAX_REGIONS;
	attr.record_size = 256;
	attr.key_size = 8;
	attr.key_shift = 57;
	partition = try_create(vo_owner->pd, &attr);
	if (!partition) {
		tb_fail("the largest partition: %s", strerror(errno));
		return;
	}
	vo_errno(hghcadv_query_partition(partition, filled, MAX_REGIONS - 1), EINVAL, "127 numbers of 128");
	vo_errno(hghcadv_query_partition(partition, filled, MAX_REGIONS), 0, "128 numbers of 128");
	vo_errno(hghcadv_destroy_partition(partition), 0, "hghcadv_destroy_partition");
}

void all_partitions(void)
{
	const struct hghcadv_partition_attr attr = sound();
	struct hghcadv_partition *all[MAX_PARTITIONS + 1], *again;
	unsigned int n, i;
	uint32_t key;

	for (n = 0; n < ARRAY_SIZE(all); n++) {
		all[n] = try_create(vo_owner->pd, &attr);
		if (!all[n])
			break;
		for (i = 0; i < n; i++)
			if (all[i]->key == all[n]->key)
				tb_fail("partitions %u and %u have the key 0x%x", i, n, all[n]->key);
	}
	if (n != MAX_PARTITIONS || errno != ENOSPC)
		tb_fail("%u partitions and then \"%s\", expected %d and \"%s\"", n, strerror(errno), MAX_PARTITIONS,
			strerror(ENOSPC));
	if (!n)
		return;
	key = all[--n]->key;
	vo_errno(hghcadv_destroy_partition(all[n]), 0, "hghcadv_destroy_partition");
	again = try_create(vo_owner->pd, &attr);
	if (!again)
		tb_fail("one in the place of another: %s", strerror(errno));
	else if (again->key == key)
		tb_fail("the key 0x%x is used again at once", key);
	if (again)
		vo_errno(hghcadv_destroy_partition(again), 0, "hghcadv_destroy_partition");
	while (n--)
		vo_errno(hghcadv_destroy_partition(all[n]), 0, "hghcadv_destroy_partition");
}

/* Also a parent domain has it as a user. */
void partition_in_use(void)
{
	const struct hghcadv_partition_attr attr = sound();
	struct ibv_pd *pd = ibv_alloc_pd(vo_owner->ctx), *parent;
	struct ibv_parent_domain_init_attr init = { .pd = pd };
	struct hghcadv_partition *plain, *in_parent;

	parent = pd ? ibv_alloc_parent_domain(vo_owner->ctx, &init) : NULL;
	if (!parent)
		tb_die("PDs");
	plain = try_create(pd, &attr);
	in_parent = try_create(parent, &attr);
	if (!plain || !in_parent)
		tb_die("hghcadv_create_partition");
	vo_errno(ibv_dealloc_pd(parent), EBUSY, "a parent domain with a partition");
	vo_errno(hghcadv_destroy_partition(in_parent), 0, "hghcadv_destroy_partition");
	vo_errno(ibv_dealloc_pd(parent), 0, "a parent domain without one");
	vo_errno(ibv_dealloc_pd(pd), EBUSY, "a PD with a partition");
	vo_errno(hghcadv_destroy_partition(plain), 0, "hghcadv_destroy_partition");
	vo_errno(ibv_dealloc_pd(pd), 0, "a PD without one");
}

/* ------------------------------------------------------------------ */
/* Methods, as no provider calls them                                   */

struct method {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[5];
};

static int call(struct ibv_context *ctx, struct method *method, uint16_t id, uint16_t count)
{
	method->hdr = (struct ib_uverbs_ioctl_hdr) {
		.length = sizeof(method->hdr) + count * sizeof(method->attrs[0]),
		.object_id = HGHCA_OBJECT_PARTITION,
		.method_id = id,
		.num_attrs = count,
	};
	return raw_method(ctx->cmd_fd, &method->hdr);
}

static struct ib_uverbs_attr attribute(uint16_t id, uint64_t data, uint16_t length)
{
	return (struct ib_uverbs_attr) {
		.attr_id = id, .len = length, .flags = UVERBS_ATTR_F_MANDATORY, .data = data,
	};
}

/* The attributes of CREATE, and what they point to. */
enum { HANDLE, PD_HANDLE, DESC, RANGES, KEY, CREATE_ATTRS };

struct create {
	struct method method;
	uint8_t desc[2 * sizeof(struct hghca_partition_desc)];
	struct hghca_partition_range ranges[4];
	uint64_t key;
};

/*
 * Four regions; `desc_bytes` of a description, of which the surplus is 0. Up to 8 bytes of it are in the attribute
 * itself.
 */
static void prepare(struct create *c, uint16_t desc_bytes)
{
	const struct hghca_partition_desc desc = { .log_record = 4, .log_regions = 2, .key_size = 4, .key_shift = 8 };
	uint64_t inlined = 0;
	size_t i;

	memset(c, 0, sizeof(*c));
	memcpy(c->desc, &desc, sizeof(desc));
	memcpy(&inlined, c->desc, desc_bytes < sizeof(inlined) ? desc_bytes : sizeof(inlined));
	for (i = 0; i < ARRAY_SIZE(c->ranges); i++)
		c->ranges[i] = (struct hghca_partition_range) { (uintptr_t)memory, 1, sizeof(memory) };
	c->method.attrs[HANDLE] = attribute(HGHCA_ATTR_PARTITION_CREATE_HANDLE, 0, 0);
	c->method.attrs[PD_HANDLE] = attribute(HGHCA_ATTR_PARTITION_CREATE_PD_HANDLE, vo_owner->pd->handle, 0);
	c->method.attrs[DESC] = attribute(HGHCA_ATTR_PARTITION_CREATE_DESC,
					  desc_bytes > sizeof(inlined) ? (uintptr_t)c->desc : inlined, desc_bytes);
	c->method.attrs[RANGES] = attribute(HGHCA_ATTR_PARTITION_CREATE_RANGES, (uintptr_t)c->ranges,
					    sizeof(c->ranges));
	c->method.attrs[KEY] = attribute(HGHCA_ATTR_PARTITION_CREATE_RESP_KEY, (uintptr_t)&c->key, sizeof(uint32_t));
}

static int destroy(struct ibv_context *ctx, uint32_t handle)
{
	struct method method = { .attrs = { attribute(HGHCA_ATTR_PARTITION_DESTROY_HANDLE, handle, 0) } };

	return call(ctx, &method, HGHCA_METHOD_PARTITION_DESTROY, 1);
}

static int query(struct ibv_context *ctx, uint32_t handle, uint16_t bytes)
{
	static uint32_t filled[8];
	struct method method = { .attrs = {
		attribute(HGHCA_ATTR_PARTITION_QUERY_HANDLE, handle, 0),
		attribute(HGHCA_ATTR_PARTITION_QUERY_RESP_FILLED, (uintptr_t)filled, bytes),
	} };

	return call(ctx, &method, HGHCA_METHOD_PARTITION_QUERY, 2);
}

static void expect_create(struct create *c, uint16_t attrs, int error, const char *what)
{
	int found = call(vo_owner->ctx, &c->method, HGHCA_METHOD_PARTITION_CREATE, attrs);

	vo_errno(found, error, what);
	if (!found)
		vo_errno(destroy(vo_owner->ctx, c->method.attrs[HANDLE].data), 0, what);
}

static void bad_creations(void)
{
	static const struct {
		const char *what;
		unsigned int attr;
		uint16_t length;
		int error;
	} lengths[] = {
		{ "a description too short", DESC, sizeof(struct hghca_partition_desc) - 1, EINVAL },
		{ "a description too long", DESC, sizeof(struct hghca_partition_desc) + 1, EINVAL },
		{ "no ranges", RANGES, 0, EINVAL },
		{ "half a range", RANGES, sizeof(struct hghca_partition_range) / 2, EINVAL },
		{ "ranges and a half", RANGES, sizeof(struct hghca_partition_range) * 7 / 2, EINVAL },
		{ "ranges too few", RANGES, sizeof(struct hghca_partition_range) * 3, EINVAL },
		{ "a key too short", KEY, sizeof(uint16_t), EINVAL },
		{ "a key too long", KEY, sizeof(uint64_t), EINVAL },
		{ "as it should be", KEY, sizeof(uint32_t), 0 },
	};
	const size_t desc_bytes = sizeof(struct hghca_partition_desc);
	struct create c;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		prepare(&c, lengths[i].attr == DESC ? lengths[i].length : desc_bytes);
		c.method.attrs[lengths[i].attr].len = lengths[i].length;
		expect_create(&c, CREATE_ATTRS, lengths[i].error, lengths[i].what);
	}
	/* The description is in the attribute: its last bytes are reserved. */
	for (i = offsetof(struct hghca_partition_desc, reserved); i < desc_bytes; i++) {
		prepare(&c, desc_bytes);
		c.method.attrs[DESC].data |= 1ull << 8 * i;
		expect_create(&c, CREATE_ATTRS, EINVAL, "a reserved byte");
	}
	prepare(&c, desc_bytes);
	expect_create(&c, KEY, EINVAL, "no attribute for the key");
	prepare(&c, desc_bytes);
	c.method.attrs[PD_HANDLE].data = 0xffff;
	expect_create(&c, CREATE_ATTRS, ENOENT, "a PD that is not there");
	prepare(&c, desc_bytes);
	c.method.attrs[RANGES].data = 8;
	expect_create(&c, CREATE_ATTRS, EFAULT, "ranges where no memory is");
}

/* Also of a handle of another context. */
void bad_methods(void)
{
	struct ibv_context *other;
	struct create c;
	uint32_t handle;
	int home;

	bad_creations();
	prepare(&c, sizeof(struct hghca_partition_desc));
	vo_errno(call(vo_owner->ctx, &c.method, HGHCA_METHOD_PARTITION_CREATE, CREATE_ATTRS), 0, "CREATE");
	handle = c.method.attrs[HANDLE].data;
	if (!(uint32_t)c.key || c.key >> 32)
		tb_fail("the key is 0x%llx", (unsigned long long)c.key);
	vo_errno(query(vo_owner->ctx, handle, 3 * sizeof(uint32_t)), EINVAL, "QUERY of three numbers");
	vo_errno(query(vo_owner->ctx, handle, 2), EINVAL, "QUERY of half a number");
	vo_errno(query(vo_owner->ctx, handle, 4 * sizeof(uint32_t)), 0, "QUERY");
	home = tb_visit_netns(vo_owner_netns);
	other = ibv_open_device(vo_owner->ctx->device);
	if (!other)
		tb_die("ibv_open_device");
	tb_return_netns(home);
	vo_errno(query(other, handle, 4 * sizeof(uint32_t)), ENOENT, "QUERY by another context");
	vo_errno(destroy(other, handle), ENOENT, "DESTROY by another context");
	if (ibv_close_device(other))
		tb_die("ibv_close_device");
	vo_errno(destroy(vo_owner->ctx, handle), 0, "DESTROY");
	vo_errno(destroy(vo_owner->ctx, handle), ENOENT, "DESTROY again");
	vo_errno(query(vo_owner->ctx, handle, 4 * sizeof(uint32_t)), ENOENT, "QUERY of a partition that is destroyed");
}

/* ------------------------------------------------------------------ */
/* QPs and work requests                                                */

static void refuse_qp(struct ibv_cq *cq, enum ibv_qp_type type, uint32_t flags, uint64_t comp_mask, const char *what)
{
	struct hghcadv_qp_init_attr dv_attr = { .comp_mask = comp_mask, .flags = flags };
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = vo_asker.pd,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = hghcadv_create_qp(vo_asker.ctx, &attr, &dv_attr);
	vo_errno(qp ? 0 : errno, EOPNOTSUPP, what);
	if (qp && ibv_destroy_qp(qp))
		tb_die("ibv_destroy_qp");
}

/* A QP without the flag has no functions of hghcadv.h. */
static void check_plain_qp(struct ibv_cq *cq)
{
	struct ibv_qp *qp = vo_create_qp(&vo_asker, cq, IBV_QPT_RC, 0);
	struct hghcadv_qp_ex *dv;

	if (!qp) {
		tb_fail("a QP without the flag: %s", strerror(errno));
		return;
	}
	errno = 0;
	dv = hghcadv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp));
	vo_errno(dv ? 0 : errno, EOPNOTSUPP, "hghcadv_qp_ex_from_ibv_qp_ex");
	errno = 0;
	dv = hghcadv_qp_ex_from_ibv_qp_ex(NULL);
	vo_errno(dv ? 0 : errno, EOPNOTSUPP, "hghcadv_qp_ex_from_ibv_qp_ex of a QP without ibv_wr_start");
	if (ibv_destroy_qp(qp))
		tb_die("ibv_destroy_qp");
}

void bad_qps(void)
{
	struct ibv_cq *cq = ibv_create_cq(vo_asker.ctx, 16, NULL, NULL, 0);

	if (!cq)
		tb_die("ibv_create_cq");
	refuse_qp(cq, IBV_QPT_UD, HGHCADV_QP_VENDOR_OPS, 0, "a UD QP");
	refuse_qp(cq, IBV_QPT_UC, HGHCADV_QP_VENDOR_OPS, 0, "a UC QP");
	refuse_qp(cq, IBV_QPT_RAW_PACKET, HGHCADV_QP_VENDOR_OPS, 0, "a raw packet QP");
	refuse_qp(cq, IBV_QPT_RC, 1 << 1, 0, "an unknown flag");
	refuse_qp(cq, IBV_QPT_RC, HGHCADV_QP_VENDOR_OPS, 1, "an unknown field");
	check_plain_qp(cq);
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

/* One good request, and then a READ_POINTER: neither is posted if that is refused. */
static void try_pointer(struct vo_pair *t, struct hghcadv_pointer pointer, int error, const char *what)
{
	ibv_wr_start(t->ex);
	vo_next(t, PART_ID);
	hghcadv_wr_part(t->dv, 0);
	vo_next(t, POINTER_ID);
	hghcadv_wr_read_pointer(t->dv, t->b.mr->rkey, (uintptr_t)t->b.buf, &pointer);
	vo_sge(t, 0, 8);
	vo_errno(ibv_wr_complete(t->ex), error, what);
	if (error) {
		tb_expect_none(t->a.scq, what);
		return;
	}
	vo_done(t, PART_ID, IBV_WC_SUCCESS, 0, what);
	vo_done(t, POINTER_ID, IBV_WC_SUCCESS, 0, what);
}

/* Of b's buffer, which is all 0, nothing matches. */
static void bad_pointers(struct vo_pair *t)
{
	static const struct hghcadv_pointer good = { .key = 1, .keys = 1 << 3, .value = 14 };
	static const struct {
		const char *what;
		struct hghcadv_pointer pointer;
	} bad[] = {
		{ "no keys", { .key = 1, .keys = 0 } },
		{ "a key at word 15", { .key = 1, .keys = 1 << 15 | 1 } },
		{ "an unknown predicate", { .key = 1, .keys = 1, .predicate = 4 } },
		{ "a pointer at word 15", { .key = 1, .keys = 1, .value = 15 } },
		{ "a pointer 15 words on", { .key = 1, .keys = 1, .value = 15, .relative = 1 } },
		{ "a next address at word 15", { .key = 1, .keys = 1, .next = 15, .has_next = 1 } },
		{ "a next address at word 255", { .key = 1, .keys = 1, .next = 255, .has_next = 1 } },
	};
	struct hghcadv_pointer pointer = good;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		try_pointer(t, bad[i].pointer, EINVAL, bad[i].what);
	try_pointer(t, good, 0, "a good one");
	pointer.next = 14;
	pointer.has_next = 2;
	try_pointer(t, pointer, 0, "one with a next element");
	pointer.next = 255;
	pointer.has_next = 0;
	try_pointer(t, pointer, 0, "one whose next address does not count");
}

static void start_kind(struct vo_pair *t, uint64_t id)
{
	static const struct hghcadv_pointer pointer = { .key = 1, .keys = 1 };

	ibv_wr_start(t->ex);
	vo_next(t, id);
	if (id == PART_ID)
		hghcadv_wr_part(t->dv, 0);
	else if (id == POINTER_ID)
		hghcadv_wr_read_pointer(t->dv, t->b.mr->rkey, (uintptr_t)t->b.buf, &pointer);
	else
		hghcadv_wr_read_consistent(t->dv, t->b.mr->rkey, (uintptr_t)t->b.buf);
}

/* A list that is too long; and inline data, which PART alone may have. */
static void bad_lists(struct vo_pair *t, uint64_t id)
{
	struct ibv_sge list[3] = {
		{ (uintptr_t)t->a.buf, 8, t->a.mr->lkey },
		{ (uintptr_t)t->a.buf, 8, t->a.mr->lkey },
		{ (uintptr_t)t->a.buf, 8, t->a.mr->lkey },
	};
	uint8_t data[256] = { 0 };

	start_kind(t, id);
	ibv_wr_set_sge_list(t->ex, ARRAY_SIZE(list), list);
	vo_errno(ibv_wr_complete(t->ex), EINVAL, "one SGE too many");
	start_kind(t, id);
	ibv_wr_set_inline_data(t->ex, data, id == PART_ID ? sizeof(data) : 8);
	vo_errno(ibv_wr_complete(t->ex), EINVAL, "inline data");
	start_kind(t, id);
	ibv_wr_abort(t->ex);
	tb_expect_none(t->a.scq, "lists that are refused");
}

static void full_queue(struct vo_pair *t)
{
	unsigned int i;

	ibv_wr_start(t->ex);
	for (i = 0; i < VO_SQ_WRS + 1; i++) {
		vo_next(t, PART_ID);
		hghcadv_wr_part(t->dv, 0);
	}
	vo_errno(ibv_wr_complete(t->ex), ENOMEM, "one request too many");
	ibv_wr_start(t->ex);
	for (i = 0; i < VO_SQ_WRS; i++) {
		vo_next(t, PART_ID);
		hghcadv_wr_part(t->dv, 0);
	}
	vo_errno(ibv_wr_complete(t->ex), 0, "as many as there may be");
	for (i = 0; i < VO_SQ_WRS && !tb_failed(); i++)
		vo_done(t, PART_ID, IBV_WC_SUCCESS, 0, "one of all");
}

void bad_requests(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct vo_pair t;

	vo_open(&t);
	bad_pointers(&t);
	bad_lists(&t, PART_ID);
	bad_lists(&t, POINTER_ID);
	bad_lists(&t, OBJECT_ID);
	full_queue(&t);
	vo_works(&t, "a WRITE after all that");
	if (ibv_modify_qp(t.a.qp, &reset, IBV_QP_STATE))
		tb_die("QP to RESET");
	start_kind(&t, PART_ID);
	vo_errno(ibv_wr_complete(t.ex), EINVAL, "posted in RESET");
	vo_close(&t);
}

/* ------------------------------------------------------------------ */
/* Ends without the operations                                          */

/* The provider has no functions for such a QP, so the WQEs are written here. */
void plain_requester(void)
{
	static const struct {
		const char *what;
		unsigned int opcode, units;
	} operations[] = {
		{ "PART", HGHCA_OPCODE_PART, 3 },
		{ "READ_POINTER", HGHCA_OPCODE_READ_POINTER, 4 },
		{ "READ_CONSISTENT", HGHCA_OPCODE_READ_CONSISTENT, 3 },
	};
	const struct hghca_pointer_unit pointer = { .key = htole64(1), .search = htole32(1) };
	struct raw_ctx ctx;
	struct raw_qp a, b;
	uint8_t *slot;
	size_t i;

	raw_open(&ctx, vo_asker_device);
	for (i = 0; i < ARRAY_SIZE(operations); i++) {
		raw_qp_create(&a, &ctx);
		raw_qp_create(&b, &ctx);
		raw_qp_to_init(&a);
		raw_qp_to_init(&b);
		raw_qp_to_rtr(&a, vo_asker.gid.raw, vo_asker.gid_index, vo_asker.mtu, b.qpn);
		raw_qp_to_rtr(&b, vo_asker.gid.raw, vo_asker.gid_index, vo_asker.mtu, a.qpn);
		raw_qp_to_rts(&a);
		raw_qp_to_rts(&b);
		slot = raw_send_slot(&a, 0);
		memset(slot, 0, RAW_STRIDE);
		raw_put_next(slot, HGHCA_WQE_CQ_UPDATE);
		raw_put_raddr(slot, 1, (uintptr_t)ctx.buf + 4096, ctx.mr.rkey);
		memcpy(slot + 2 * HGHCA_WQE_UNIT, &pointer, sizeof(pointer));
		raw_put_data(slot, operations[i].units - 1, ctx.buf, 64, ctx.mr.lkey);
		raw_ring(ctx.uar, raw_sq_doorbell(a.qpn, 0, operations[i].opcode, operations[i].units, 1));
		raw_expect(&a, 0, HGHCA_SYNDROME_LOCAL_QP_OP_ERR, operations[i].what);
		if (raw_qp_state(&a) != IBV_QPS_ERR || raw_qp_state(&b) != IBV_QPS_RTS)
			tb_fail("%s: the QPs are in states %d and %d", operations[i].what, raw_qp_state(&a),
				raw_qp_state(&b));
		raw_qp_destroy(&a);
		raw_qp_destroy(&b);
	}
	raw_close(&ctx);
}

/* Each operation once on a new pair; the peer's memory is unchanged. */
static void each_fails(const struct vo_opts *opts, enum ibv_wc_status status)
{
	static const uint64_t ids[] = { PART_ID, POINTER_ID, OBJECT_ID };
	struct vo_pair t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids) && !tb_failed(); i++) {
		vo_open_with(&t, opts);
		vo_works(&t, "a WRITE before");
		start_kind(&t, ids[i]);
		vo_sge(&t, 0, 64);
		vo_errno(ibv_wr_complete(t.ex), 0, "posting");
		vo_done(&t, ids[i], status, 0, "an operation");
		vo_is_all(t.b.buf, TB_BUF_BYTES - 64, 0, "the peer's memory");
		vo_close(&t);
	}
}

void plain_responder(void)
{
	const struct vo_opts plain = { .plain_owner = true };

	each_fails(&plain, IBV_WC_REM_INV_REQ_ERR);
}

/* A device that does not know such a packet drops it. */
void foreign_responder(void)
{
	const struct vo_opts foreign = { .foreign_owner = true };

	each_fails(&foreign, IBV_WC_RETRY_EXC_ERR);
}

/* The owner's device: of the provider without the operations, or of another provider. */
void abilities_lacking(void)
{
	bool ours = hghcadv_is_supported(vo_owner->ctx->device);
	const struct hghcadv_partition_attr attr = sound();
	struct hghcadv_device_attr dev;
	struct ibv_cq *cq = ibv_create_cq(vo_owner->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp;

	if (!cq)
		tb_die("ibv_create_cq");
	memset(&dev, 0xff, sizeof(dev));
	vo_errno(hghcadv_query_device(vo_owner->ctx, &dev), ours ? 0 : EOPNOTSUPP, "hghcadv_query_device");
	if (ours && (dev.comp_mask || dev.flags || dev.max_partitions || dev.max_regions))
		tb_fail("flags 0x%x, %u partitions of %u regions", dev.flags, dev.max_partitions, dev.max_regions);
	refuse_partition(&attr, EOPNOTSUPP, "a partition");
	qp = vo_create_qp(vo_owner, cq, IBV_QPT_RC, HGHCADV_QP_VENDOR_OPS);
	vo_errno(qp ? 0 : errno, EOPNOTSUPP, "a QP with the flag");
	if (ours) {
		qp = vo_create_qp(vo_owner, cq, IBV_QPT_RC, 0);
		if (!qp || ibv_destroy_qp(qp))
			tb_fail("a QP without the flag: %s", strerror(errno));
	}
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}
