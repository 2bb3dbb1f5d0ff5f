// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What providers are tempted to do with a spinlock held; src/spinwatch.c, before
 * this program, finds it.
 *
 * locks DEVICE GID-INDEX [CASE...]
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rig.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct rig_side side;

/* A list that fills the largest receive queue is posted with its lock taken once. */
static void long_list(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = { .cap = { 1, 0, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_recv_wr *list, *bad;
	struct ibv_device_attr dev;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	int i;

	if (ibv_query_device(side.ctx, &dev))
		rig_die("ibv_query_device");
	cq = ibv_create_cq(side.ctx, 16, NULL, NULL, 0);
	if (!cq)
		rig_die("ibv_create_cq");
	init.send_cq = init.recv_cq = cq;
	init.cap.max_recv_wr = dev.max_qp_wr;
	qp = ibv_create_qp(side.pd, &init);
	if (!qp)
		rig_die("ibv_create_qp");
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		rig_die("QP to INIT");
	list = calloc(dev.max_qp_wr, sizeof(*list));
	if (!list)
		rig_die("calloc");
	for (i = 0; i < dev.max_qp_wr; i++)
		list[i] = (struct ibv_recv_wr) { .wr_id = i, .next = i + 1 < dev.max_qp_wr ? &list[i + 1] : NULL };
	if (ibv_post_recv(qp, list, &bad))
		rig_fail("a list of %d receives was refused at number %td", dev.max_qp_wr, bad - list);
	free(list);
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq))
		rig_die("taking down a QP");
}

static const struct rig_case cases[] = {
	{ "a list that fills the largest queue", long_list },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: locks DEVICE GID-INDEX [CASE...]\n");
		return 2;
	}
	rig_side_open(&side, argv[1], atoi(argv[2]), NULL);
	return rig_run(cases, ARRAY_SIZE(cases), argc - 3, argv + 3, NULL);
}
