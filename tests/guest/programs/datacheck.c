// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compares every byte of every operation, at the sizes, offsets and list lengths that
 * are critical for segmentation, padding, page boundaries and gather lists.
 *
 * datacheck DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device the pair is on this device; with two, the requester is on
 * the first and the responder on the second.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BUF_BYTES	(4 << 20)
#define GUARD		0xa5
#define IMM		0x12345678
#define HUGE_PAGE	(2 << 20)
#define ALIAS_BYTES	(1 << 20)

static struct tb_side side_a, side_b;
static struct tb_side *peer_side;

/* A pair with additional buffers beside those of the testbed. */
static struct tb_pair pair;
static uint8_t *src, *dst;
static struct ibv_mr *src_mr, *dst_mr;
static uint32_t noise_state = 1;

static uint32_t noise(void)
{
	noise_state ^= noise_state << 13;
	noise_state ^= noise_state >> 17;
	noise_state ^= noise_state << 5;
	return noise_state;
}

static void fill(uint8_t *to, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		to[i] = noise() >> 11;
}

static void *map(size_t bytes, int flags)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (pages == MAP_FAILED)
		tb_die("mmap of %zu bytes", bytes);
	return pages;
}

static void setup(size_t bytes, int map_flags, int max_send_wr, int max_send_sge, int max_inline)
{
	struct tb_opts opts = tb_pair_defaults();

	opts.max_send_wr = max_send_wr;
	opts.max_send_sge = max_send_sge;
	opts.max_inline = max_inline;
	tb_pair_create(&pair, &side_a, peer_side, &opts);
	src = map(bytes, map_flags);
	dst = map(bytes, map_flags);
	src_mr = ibv_reg_mr(side_a.pd, src, bytes, TB_ACCESS_ALL);
	dst_mr = ibv_reg_mr(peer_side->pd, dst, bytes, TB_ACCESS_ALL);
	if (!src_mr || !dst_mr)
		tb_die("ibv_reg_mr");
}

static void teardown(size_t bytes)
{
	if (ibv_dereg_mr(src_mr) || ibv_dereg_mr(dst_mr))
		tb_die("ibv_dereg_mr");
	munmap(src, bytes);
	munmap(dst, bytes);
	tb_pair_destroy(&pair);
}

/* One operation from `from` to `to` bytes into the buffers; src is the requester's side. */
struct op {
	enum ibv_wr_opcode opcode;
	size_t from, to, size;
};

static bool post(struct op op)
{
	bool read = op.opcode == IBV_WR_RDMA_READ;
	struct ibv_sge sge = { (uintptr_t)src + op.from, op.size, src_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = op.size, .sg_list = &sge, .num_sge = 1, .opcode = op.opcode,
				  .imm_data = htonl(IMM) }, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)dst + op.to;
	wr.wr.rdma.rkey = dst_mr->rkey;
	if (ibv_post_send(pair.a.qp, &wr, &bad)) {
		tb_fail("ibv_post_send of %zu bytes", op.size);
		return false;
	}
	return tb_expect(pair.a.scq, op.size, IBV_WC_SUCCESS, read ? "a READ" : "a request");
}

static bool has_receive(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool check_receive(struct op op)
{
	bool imm = op.opcode != IBV_WR_SEND;
	struct ibv_wc wc;

	if (!tb_poll(pair.b.rcq, &wc, "the receive"))
		return false;
	if (wc.status == IBV_WC_SUCCESS && wc.byte_len == op.size && wc.qp_num == pair.b.qp->qp_num &&
	    !!(wc.wc_flags & IBV_WC_WITH_IMM) == imm && (!imm || ntohl(wc.imm_data) == IMM) &&
	    wc.opcode == (op.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return true;
	tb_fail("receive of %zu bytes: status \"%s\", %u bytes, opcode %d, flags 0x%x, immediate 0x%x", op.size,
		ibv_wc_status_str(wc.status), wc.byte_len, wc.opcode, wc.wc_flags, ntohl(wc.imm_data));
	return false;
}

static bool post_receive(struct op op)
{
	struct ibv_sge sge = { (uintptr_t)dst + op.to, op.size, dst_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = op.opcode != IBV_WR_RDMA_WRITE_WITH_IMM },
			   *bad;

	if (!ibv_post_recv(pair.b.qp, &wr, &bad))
		return true;
	tb_fail("ibv_post_recv");
	return false;
}

static bool guards_hold(const uint8_t *buf, size_t offset, size_t size, size_t total)
{
	size_t i, span = 256;

	for (i = offset > span ? offset - span : 0; i < offset; i++)
		if (buf[i] != GUARD)
			return false;
	for (i = offset + size; i < offset + size + span && i < total; i++)
		if (buf[i] != GUARD)
			return false;
	return true;
}

/* Runs the operation with new data, and checks every byte that it must write and must not write. */
static bool run_op(struct op op)
{
	bool read = op.opcode == IBV_WR_RDMA_READ;
	uint8_t *data = read ? dst + op.to : src + op.from, *target = read ? src : dst;
	size_t offset = read ? op.from : op.to, low = offset > 256 ? offset - 256 : 0;

	memset(target + low, GUARD, op.size + 512 < BUF_BYTES - low ? op.size + 512 : BUF_BYTES - low);
	fill(data, op.size);
	if (has_receive(op.opcode) && !post_receive(op))
		return false;
	if (!post(op) || (has_receive(op.opcode) && !check_receive(op)))
		return false;
	if (memcmp(data, target + offset, op.size))
		tb_fail("opcode %d, %zu bytes from +%zu to +%zu: wrong data", op.opcode, op.size, op.from, op.to);
	else if (!guards_hold(target, offset, op.size, BUF_BYTES))
		tb_fail("opcode %d, %zu bytes from +%zu to +%zu: wrote beside the target", op.opcode, op.size,
			op.from, op.to);
	return !tb_failed();
}

/* Whether the devices have SENDs of this size; there is no bound of other operations. */
static bool fits(enum ibv_wr_opcode opcode, size_t size)
{
	if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM)
		return true;
	return size <= peer_side->max_send && (size || (!side_a.is_ernic && !peer_side->is_ernic));
}

/* All sizes around the boundaries of packets and pages, at aligned and unaligned addresses. */
static void sizes(enum ibv_wr_opcode opcode)
{
	static const size_t offsets[][2] = { { 4096, 4096 }, { 4097, 8191 }, { 8190, 4099 }, { 12287, 12288 } };
	size_t mtu = 128UL << side_a.mtu, i, k;
	size_t list[] = { 0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, mtu - 1, mtu, mtu + 1,
			  2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 3 * mtu + 3, 64 * mtu, 65 * mtu - 1, 1000003, 2097152 };

	setup(BUF_BYTES, 0, 32, 2, 0);
	for (i = 0; i < ARRAY_SIZE(list) && !tb_failed(); i++)
		for (k = 0; k < ARRAY_SIZE(offsets) && !tb_failed(); k++)
			if (fits(opcode, list[i]))
				run_op((struct op) { opcode, offsets[k][0], offsets[k][1], list[i] });
	teardown(BUF_BYTES);
}

static void sizes_send(void)		{ sizes(IBV_WR_SEND); }
static void sizes_send_imm(void)	{ sizes(IBV_WR_SEND_WITH_IMM); }
static void sizes_write(void)		{ sizes(IBV_WR_RDMA_WRITE); }
static void sizes_write_imm(void)	{ sizes(IBV_WR_RDMA_WRITE_WITH_IMM); }
static void sizes_read(void)		{ sizes(IBV_WR_RDMA_READ); }

#define SWEPT_BYTES	(1UL << 20)

/*
 * Each power of two, one byte less and one more, from 1 byte on.  Neither side has rights that the operation does not
 * need: a device without atomics, or whose memory no peer may reach, can ask.
 */
static void swept(enum ibv_wr_opcode opcode, size_t longest)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	struct tb_opts opts = tb_pair_defaults();
	size_t power;
	int more;

	opts.qp_access = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	opts.mr_access = opts.own_access = IBV_ACCESS_LOCAL_WRITE;
	opts.rnr_retry = 7;
	/* 0.3 s, eight times: the threads of rxe in this guest wait for a CPU. */
	opts.timeout = 16;
	tb_pair_create(&pair, &side_a, peer_side, &opts);
	src = map(BUF_BYTES, 0);
	dst = map(BUF_BYTES, 0);
	src_mr = ibv_reg_mr(side_a.pd, src, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	dst_mr = ibv_reg_mr(peer_side->pd, dst, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE | opts.qp_access);
	if (!src_mr || !dst_mr)
		tb_die("ibv_reg_mr");
	for (power = 1; power <= longest; power *= 2)
		for (more = -1; more <= 1 && !tb_failed(); more++)
			if (power + more > 0 && power + more <= longest)
				run_op((struct op) { opcode, 4097, 8191, power + more });
	teardown(BUF_BYTES);
}

static void swept_write(void)	{ swept(IBV_WR_RDMA_WRITE, SWEPT_BYTES); }
static void swept_read(void)	{ swept(IBV_WR_RDMA_READ, SWEPT_BYTES); }
static void packet_write(void)	{ swept(IBV_WR_RDMA_WRITE, 128UL << side_a.mtu); }
static void packet_read(void)	{ swept(IBV_WR_RDMA_READ, 128UL << side_a.mtu); }

static void sizes_random(void)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						      IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM };
	int i;

	setup(BUF_BYTES, 0, 32, 2, 0);
	for (i = 0; i < 200 && !tb_failed(); i++) {
		struct op op = { opcodes[noise() % ARRAY_SIZE(opcodes)], noise() % 20000, noise() % 20000,
				 noise() % (1U << noise() % 18) };

		if (!fits(op.opcode, op.size))
			op.size = op.size % peer_side->max_send + 1;
		run_op(op);
	}
	teardown(BUF_BYTES);
}

/* Parts of a request, of which both devices have as many. */
static int most_sges(void)
{
	struct ibv_device_attr a, b;

	if (ibv_query_device(side_a.ctx, &a) || ibv_query_device(peer_side->ctx, &b))
		tb_die("ibv_query_device");
	return a.max_sge < b.max_sge ? a.max_sge : b.max_sge;
}

/* Gather and scatter lists with the maximum number of entries, of odd lengths, some of them 0. */
static void gather(void)
{
	enum { STEP = 3000 };
	const int most = most_sges();
	struct ibv_sge *sge;
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
	size_t total, at;
	int round, i;

	setup(BUF_BYTES, 0, 8, most, 0);
	sge = calloc(most, sizeof(*sge));
	for (round = 0; round < 100 && !tb_failed(); round++) {
		for (i = 0, total = 0; i < most; i++) {
			sge[i] = (struct ibv_sge) { (uintptr_t)src + i * 2 * STEP + noise() % STEP,
						    noise() % 5 ? noise() % STEP : 0, src_mr->lkey };
			total += sge[i].length;
		}
		wr.opcode = round % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		fill(src, most * 2 * STEP);
		fill(dst, total);
		wr.sg_list = sge;
		wr.num_sge = most;
		wr.wr.rdma.remote_addr = (uintptr_t)dst;
		wr.wr.rdma.rkey = dst_mr->rkey;
		if (ibv_post_send(pair.a.qp, &wr, &bad))
			tb_fail("ibv_post_send with %d SGEs", most);
		else if (tb_expect(pair.a.scq, 1, IBV_WC_SUCCESS, "a request with many SGEs"))
			for (i = 0, at = 0; i < most; at += sge[i++].length)
				if (memcmp((void *)(uintptr_t)sge[i].addr, dst + at, sge[i].length))
					tb_fail("round %d, SGE %d: wrong data", round, i);
	}
	free(sge);
	teardown(BUF_BYTES);
}

/* Inline data of all lengths from two pieces; the program may reuse the pieces after posting. */
static void inline_data(void)
{
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 2, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_INLINE }, *bad;
	uint8_t bytes[2048], image[2048];
	struct ibv_sge sge[2];
	uint32_t size;

	setup(BUF_BYTES, 0, 8, 2, 200);
	if (pair.a.max_inline < 200 || pair.a.max_inline >= sizeof(bytes))
		tb_fail("%u bytes of inline data for 200 asked for", pair.a.max_inline);
	wr.sg_list = sge;
	wr.wr.rdma.remote_addr = (uintptr_t)dst;
	wr.wr.rdma.rkey = dst_mr->rkey;
	for (size = 0; size <= pair.a.max_inline && !tb_failed(); size++) {
		fill(bytes, size);
		memcpy(image, bytes, size);
		memset(dst, GUARD, size + 64);
		sge[0] = (struct ibv_sge) { (uintptr_t)bytes, size / 3, 0 };
		sge[1] = (struct ibv_sge) { (uintptr_t)bytes + size / 3, size - size / 3, 0 };
		if (ibv_post_send(pair.a.qp, &wr, &bad))
			tb_fail("ibv_post_send of %u inline bytes", size);
		memset(bytes, 0, size);
		if (!tb_failed() && tb_expect(pair.a.scq, 1, IBV_WC_SUCCESS, "an inline request") &&
		    (memcmp(dst, image, size) || dst[size] != GUARD))
			tb_fail("%u inline bytes: wrong data", size);
	}
	sge[0] = (struct ibv_sge) { (uintptr_t)bytes, pair.a.max_inline + 1, 0 };
	wr.num_sge = 1;
	if (!ibv_post_send(pair.a.qp, &wr, &bad))
		tb_fail("more inline data than the QP has room for was taken");
	teardown(BUF_BYTES);
}

/* Long lists posted at once: all complete, in order, and all data arrives. */
static void lists(void)
{
	enum { LIST = 60, STEP = 5000 };
	struct ibv_send_wr wr[LIST] = {}, *bad;
	struct ibv_sge sge[LIST];
	int round, i;

	setup(BUF_BYTES, 0, LIST, 1, 0);
	for (round = 0; round < 50 && !tb_failed(); round++) {
		fill(src, LIST * STEP);
		for (i = 0; i < LIST; i++) {
			sge[i] = (struct ibv_sge) { (uintptr_t)src + i * STEP, STEP, src_mr->lkey };
			wr[i] = (struct ibv_send_wr) { .wr_id = i, .next = i + 1 < LIST ? &wr[i + 1] : NULL,
						       .sg_list = &sge[i], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
			wr[i].wr.rdma.remote_addr = (uintptr_t)dst + i * STEP;
			wr[i].wr.rdma.rkey = dst_mr->rkey;
		}
		if (ibv_post_send(pair.a.qp, wr, &bad))
			tb_fail("a list of %d was refused at number %td", LIST, bad - wr);
		for (i = 0; i < LIST && !tb_failed(); i++)
			tb_expect(pair.a.scq, i, IBV_WC_SUCCESS, "a request of a list");
		if (memcmp(src, dst, LIST * STEP))
			tb_fail("round %d: wrong data", round);
	}
	teardown(BUF_BYTES);
}

static void atomics(void)
{
	uint64_t *cell, *old, value, expected, compare, operand;
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 1 }, *bad;
	struct ibv_sge sge;
	int i;

	setup(BUF_BYTES, 0, 8, 1, 0);
	cell = (uint64_t *)(dst + 4088);	/* the last 8 bytes of a page */
	old = (uint64_t *)(src + 4096);
	sge = (struct ibv_sge) { (uintptr_t)old, 8, src_mr->lkey };
	wr.sg_list = &sge;
	wr.wr.atomic.remote_addr = (uintptr_t)cell;
	wr.wr.atomic.rkey = dst_mr->rkey;
	for (i = 0; i < 200 && !tb_failed(); i++) {
		value = (uint64_t)noise() << 32 | noise();
		compare = noise() % 2 ? value : value ^ 1ULL << noise() % 64;
		operand = (uint64_t)noise() << 32 | noise();
		*cell = value;
		*old = 0;
		wr.opcode = noise() % 2 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.compare_add = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? compare : operand;
		wr.wr.atomic.swap = operand;
		if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
			expected = compare == value ? operand : value;
		else
			expected = value + operand;
		if (ibv_post_send(pair.a.qp, &wr, &bad))
			tb_fail("ibv_post_send of an atomic");
		else if (tb_expect(pair.a.scq, 1, IBV_WC_SUCCESS, "an atomic") &&
			 (*old != value || *cell != expected))
			tb_fail("atomic %d on %llx gave %llx, left %llx, expected %llx", wr.opcode,
				(unsigned long long)value, (unsigned long long)*old, (unsigned long long)*cell,
				(unsigned long long)expected);
	}
	teardown(BUF_BYTES);
}

static void zero_based(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
	uint64_t iova = 0x123456000;
	uint8_t *elsewhere = map(1 << 20, 0);
	struct ibv_mr *mr;

	setup(BUF_BYTES, 0, 8, 1, 0);
	mr = ibv_reg_mr_iova(peer_side->pd, elsewhere, 1 << 20, iova, TB_ACCESS_ALL);
	if (!mr)
		tb_die("ibv_reg_mr_iova");
	fill(src, 100000);
	sge = (struct ibv_sge) { (uintptr_t)src, 100000, src_mr->lkey };
	wr.wr.rdma.remote_addr = iova + 12345;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(pair.a.qp, &wr, &bad))
		tb_fail("ibv_post_send");
	else if (tb_expect(pair.a.scq, 1, IBV_WC_SUCCESS, "a write by another address") &&
		 memcmp(src, elsewhere + 12345, 100000))
		tb_fail("wrong data");
	if (ibv_dereg_mr(mr))
		tb_die("ibv_dereg_mr");
	munmap(elsewhere, 1 << 20);
	teardown(BUF_BYTES);
}

static void huge_pages(void)
{
	size_t bytes = 2 * HUGE_PAGE;
	int i;

	setup(bytes, MAP_HUGETLB, 8, 1, 0);
	for (i = 0; i < 50 && !tb_failed(); i++)
		run_op((struct op) { i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, noise() % 100000,
				     HUGE_PAGE - 50000 + noise() % 100000, noise() % 1000000 });
	teardown(bytes);
}

/* `bytes` of addresses, at which one small piece of memory is mapped repeatedly. */
static uint8_t *alias(size_t bytes)
{
	int fd = memfd_create("alias", MFD_CLOEXEC);
	uint8_t *area = map(bytes, MAP_NORESERVE);
	size_t at;

	if (fd < 0 || ftruncate(fd, ALIAS_BYTES))
		tb_die("memfd_create");
	for (at = 0; at < bytes; at += ALIAS_BYTES)
		if (mmap(area + at, ALIAS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
			tb_die("mmap");
	close(fd);
	return area;
}

/* One message of 2 GiB, the maximum, between areas that map the same memory repeatedly. */
static void longest_message(enum ibv_wr_opcode opcode)
{
	size_t bytes = 1UL << 31;
	struct ibv_send_wr wr = { .wr_id = 1, .num_sge = 2, .opcode = opcode }, *bad;
	struct ibv_sge sge[2];
	uint8_t *from = alias(bytes), *to = alias(bytes);
	struct ibv_mr *from_mr, *to_mr;
	struct ibv_wc wc;
	struct tb_opts opts = tb_pair_defaults();
	int64_t limit;

	tb_pair_create(&pair, &side_a, peer_side, &opts);
	from_mr = ibv_reg_mr(side_a.pd, from, bytes, TB_ACCESS_ALL);
	to_mr = ibv_reg_mr(peer_side->pd, to, bytes, TB_ACCESS_ALL);
	if (!from_mr || !to_mr)
		tb_die("ibv_reg_mr of 2 GiB");
	fill(opcode == IBV_WR_RDMA_READ ? to : from, ALIAS_BYTES);
	sge[0] = (struct ibv_sge) { (uintptr_t)from, bytes / 2, from_mr->lkey };
	sge[1] = (struct ibv_sge) { (uintptr_t)from + bytes / 2, bytes / 2, from_mr->lkey };
	wr.sg_list = sge;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = to_mr->rkey;
	if (ibv_post_send(pair.a.qp, &wr, &bad))
		tb_fail("ibv_post_send of 2 GiB");
	limit = tb_now_ms() + 60000;
	while (!tb_failed() && !ibv_poll_cq(pair.a.scq, 1, &wc))
		if (tb_now_ms() > limit)
			tb_fail("2 GiB: no completion within 60 s");
	if (!tb_failed() && wc.status != IBV_WC_SUCCESS)
		tb_fail("2 GiB: status \"%s\"", ibv_wc_status_str(wc.status));
	if (!tb_failed() && memcmp(from, to, ALIAS_BYTES))
		tb_fail("2 GiB: wrong data");
	tb_check_traffic(&pair, "the same QP");
	if (ibv_dereg_mr(from_mr) || ibv_dereg_mr(to_mr))
		tb_die("ibv_dereg_mr");
	munmap(from, bytes);
	munmap(to, bytes);
	tb_pair_destroy(&pair);
}

static void longest_write(void)	{ longest_message(IBV_WR_RDMA_WRITE); }
static void longest_read(void)	{ longest_message(IBV_WR_RDMA_READ); }

/* An event of a CQ of each completion vector; one event each time the CQ is armed. */
static void vectors(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(side_a.ctx);
	struct ibv_cq *cq, *event_cq;
	struct pollfd pfd;
	void *context;
	int vector, i;

	if (!channel)
		tb_die("ibv_create_comp_channel");
	pfd = (struct pollfd) { .fd = channel->fd, .events = POLLIN };
	for (vector = 0; vector < side_a.ctx->num_comp_vectors && !tb_failed(); vector++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
		struct tb_qp a = { .side = &side_a };
		struct ibv_sge sge;
		struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
		struct tb_qp b;

		cq = ibv_create_cq(side_a.ctx, 16, NULL, channel, vector);
		if (!cq)
			tb_die("ibv_create_cq on vector %d", vector);
		init.send_cq = init.recv_cq = cq;
		init.cap = (struct ibv_qp_cap) { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1,
						 .max_recv_sge = 1 };
		a.qp = ibv_create_qp(side_a.pd, &init);
		if (!a.qp)
			tb_die("ibv_create_qp");
		tb_qp_create(&b, peer_side, IBV_QPT_RC, &opts);
		tb_qp_connect(&a, &b, &opts, opts.qp_access, 0);
		tb_qp_connect(&b, &a, &opts, opts.qp_access, 0);
		sge = (struct ibv_sge) { 0, 0, 0 };
		wr.num_sge = 0;
		wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
		wr.wr.rdma.rkey = b.mr->rkey;
		for (i = 0; i < 20 && !tb_failed(); i++) {
			if (ibv_req_notify_cq(cq, 0) || ibv_post_send(a.qp, &wr, &bad))
				tb_fail("arming or posting on vector %d", vector);
			else if (poll(&pfd, 1, TB_WAIT_MS) != 1 || ibv_get_cq_event(channel, &event_cq, &context))
				tb_fail("no event on vector %d", vector);
			else if (event_cq != cq)
				tb_fail("the event on vector %d is of another CQ", vector);
			else {
				ibv_ack_cq_events(cq, 1);
				tb_expect(cq, 1, IBV_WC_SUCCESS, "the completion behind an event");
			}
		}
		/* Not armed: the completion comes without an event. */
		if (!tb_failed() && !ibv_post_send(a.qp, &wr, &bad))
			tb_expect(cq, 1, IBV_WC_SUCCESS, "a completion on a CQ that is not armed");
		if (poll(&pfd, 1, 0))
			tb_fail("an event on vector %d that was not asked for", vector);
		if (ibv_destroy_qp(a.qp) || ibv_destroy_cq(cq))
			tb_die("ibv_destroy_cq");
		tb_qp_destroy(&b);
	}
	if (ibv_destroy_comp_channel(channel))
		tb_die("ibv_destroy_comp_channel");
	printf("# %d vectors\n", side_a.ctx->num_comp_vectors);
}

/* ------------------------------------------------------------------ */
/* A CQ that is resized while it is in use                              */

#define RESIZES		80
#define RESIZED_WRITES	200
#define RESIZED_LIMIT_MS	(60000 * tb_slowness())

static atomic_int resizes;
static atomic_bool resized_enough;

/* No size is too small for all that may be outstanding. */
static void *resize_on_and_on(void *arg)
{
	static const int entries[] = { 500, 40, 1000, 33, 64, 4000 };
	struct ibv_cq *cq = arg;
	int round, want;

	for (round = 0; !resized_enough; round++) {
		want = entries[round % ARRAY_SIZE(entries)];
		if (ibv_resize_cq(cq, want) || cq->cqe < want) {
			tb_fail("resizing to %d left %d entries", want, cq->cqe);
			break;
		}
		resizes++;
	}
	return NULL;
}

/* Some WRITEs are always outstanding: each completes once and in order, from either buffer. */
static void cq_resized(void)
{
	enum { UNDER_WAY = 32, STEP = 5000 };
	int64_t limit = tb_now_ms() + RESIZED_LIMIT_MS;
	uint64_t posted = 0, done = 0, at;
	pthread_t thread;

	setup(BUF_BYTES, 0, UNDER_WAY, 1, 0);
	fill(src, UNDER_WAY * STEP);
	resizes = 0;
	resized_enough = false;
	if (pthread_create(&thread, NULL, resize_on_and_on, pair.a.scq))
		tb_die("pthread_create");
	/* One thread can be far ahead of the other: each does its share at least. */
	for (bool more = true; !tb_failed() && (more || done < posted);) {
		more = resizes < RESIZES || posted < RESIZED_WRITES;
		while (more && posted < done + UNDER_WAY && !tb_failed()) {
			struct ibv_send_wr wr = { .wr_id = posted, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE }, *bad;
			struct ibv_sge sge;

			at = posted % UNDER_WAY * STEP;
			sge = (struct ibv_sge) { (uintptr_t)src + at, STEP, src_mr->lkey };
			wr.sg_list = &sge;
			wr.wr.rdma.remote_addr = (uintptr_t)dst + at;
			wr.wr.rdma.rkey = dst_mr->rkey;
			if (ibv_post_send(pair.a.qp, &wr, &bad))
				tb_fail("ibv_post_send of number %llu", (unsigned long long)posted);
			posted++;
		}
		if (!tb_failed() && done < posted)
			tb_expect(pair.a.scq, done++, IBV_WC_SUCCESS, "a WRITE");
		if (tb_now_ms() > limit)
			tb_fail("the CQ was resized %d times only, during %llu WRITEs", resizes, (unsigned long long)done);
	}
	resized_enough = true;
	pthread_join(thread, NULL);
	if (!tb_failed() && memcmp(src, dst, UNDER_WAY * STEP))
		tb_fail("wrong data");
	tb_expect_none(pair.a.scq, "all of them");
	tb_check_traffic(&pair, "the same QP");
	printf("# %llu WRITEs, %d sizes\n", (unsigned long long)done, resizes);
	teardown(BUF_BYTES);
}

/* ------------------------------------------------------------------ */
/* Memory that changes while it is sent                                 */

#define CHANGING_ROUNDS	1000
#define CHANGING_WORDS	128
#define CHANGING_LIMIT_MS	(10000 * tb_slowness())

static atomic_bool changed_enough;

/* Increments all words in order: the first is equal to the others, or ahead by one. */
static void *count_on_and_on(void *arg)
{
	_Atomic uint64_t *words = arg;
	uint64_t n;
	int i;

	for (n = 1; !changed_enough; n++)
		for (i = 0; i < CHANGING_WORDS; i++)
			atomic_store_explicit(&words[i], n, memory_order_relaxed);
	return NULL;
}

/* The data are those of some time, not older than the previous data; returns the first word. */
static uint64_t newer(const uint64_t *words, uint64_t before, const char *what)
{
	int i;

	for (i = 0; i < CHANGING_WORDS; i++)
		if (words[i] < before)
			tb_fail("%s: word %d is %llu, after %llu", what, i, (unsigned long long)words[i],
				(unsigned long long)before);
	/* Other words may be lower by one. */
	return words[0] ? words[0] - 1 : 0;
}

/*
 * As with all DMA, the bytes may be of different times; the packets are valid. The rounds may be over before both threads
 * have had a CPU: then there are more.
 */
static void changing(void)
{
	int64_t end = tb_now_ms() + CHANGING_LIMIT_MS;
	struct op write = { IBV_WR_RDMA_WRITE, 0, 0, CHANGING_WORDS * 8 }, read = write;
	uint64_t *sent, written = 0, got = 0;
	pthread_t threads[2];
	int round;

	setup(BUF_BYTES, 0, 1, 1, 0);
	read.opcode = IBV_WR_RDMA_READ;
	read.from = read.to = BUF_BYTES / 2;
	sent = (uint64_t *)(dst + BUF_BYTES / 2);
	changed_enough = false;
	if (pthread_create(&threads[0], NULL, count_on_and_on, src) ||
	    pthread_create(&threads[1], NULL, count_on_and_on, sent))
		tb_die("pthread_create");
	for (round = 0; !tb_failed() && (round < CHANGING_ROUNDS || ((!written || !got) && tb_now_ms() < end)); round++) {
		if (post(write))
			written = newer((uint64_t *)dst, written, "WRITE");
		if (post(read))
			got = newer((uint64_t *)(src + BUF_BYTES / 2), got, "READ");
	}
	changed_enough = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	if (!tb_failed() && (!written || !got))
		tb_fail("nothing changed: %llu, %llu", (unsigned long long)written, (unsigned long long)got);
	tb_check_traffic(&pair, "the same QP");
	teardown(BUF_BYTES);
}

static const struct tb_case cases[] = {
	{ "send", sizes_send },
	{ "send with immediate", sizes_send_imm },
	{ "write", sizes_write },
	{ "write with immediate", sizes_write_imm },
	{ "read", sizes_read },
	{ "WRITE of 1 byte to 1 MiB", swept_write },
	{ "READ of 1 byte to 1 MiB", swept_read },
	{ "WRITE of 1 byte to a packet", packet_write },
	{ "READ of 1 byte to a packet", packet_read },
	{ "random operations", sizes_random },
	{ "gather lists", gather },
	{ "inline", inline_data },
	{ "lists of requests", lists },
	{ "atomics", atomics },
	{ "MR by another address", zero_based },
	{ "huge pages", huge_pages },
	{ "longest write", longest_write },
	{ "longest read", longest_read },
	{ "completion vectors", vectors },
	{ "CQ resized under traffic", cq_resized },
	{ "memory that changes meanwhile", changing },
};

int main(int argc, char **argv)
{
	int first = tb_open_sides(&side_a, &side_b, &peer_side, argc, argv);

	return tb_run(cases, ARRAY_SIZE(cases), argc - first, argv + first, NULL);
}
