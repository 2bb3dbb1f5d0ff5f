// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How fast a device makes objects: regions of a size registered and
 * deregistered, or RC QPs created and destroyed, for about 300 ms. Prints the
 * number a second.
 *
 * objects DEVICE mr BYTES
 * objects DEVICE qp
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <infiniband/verbs.h>

#include "device.h"

#define SPAN_NS	300000000
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Ordinary pages, all there before the first of them is registered. */
static void *pages(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE))
		die("mmap");
	memset(memory, 1, bytes);
	return memory;
}

static void one_region(struct ibv_pd *pd, void *memory, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, ACCESS);

	if (!mr || ibv_dereg_mr(mr))
		die("ibv_reg_mr");
}

static void one_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp || ibv_destroy_qp(qp))
		die("ibv_create_qp");
}

int main(int argc, char **argv)
{
	size_t bytes = argc == 4 && !strcmp(argv[2], "mr") ? strtoull(argv[3], NULL, 0) : 0;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int64_t start, spent;
	uint64_t count = 0;
	void *memory;

	if (!bytes && (argc != 3 || strcmp(argv[2], "qp"))) {
		fprintf(stderr, "usage: objects DEVICE mr BYTES | objects DEVICE qp\n");
		return 2;
	}
	ctx = open_device(argv[1]);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 128, NULL, NULL, 0);
	if (!pd || !cq)
		die("making a PD and a CQ");
	memory = bytes ? pages(bytes) : NULL;
	start = now_ns();
	do {
		if (bytes)
			one_region(pd, memory, bytes);
		else
			one_qp(pd, cq);
		count++;
		spent = now_ns() - start;
	} while (spent < SPAN_NS);
	printf("%.6g\n", count * 1e9 / spent);
	return 0;
}
