/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the measuring programs have in common: errors, the time, and devices by name. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct ibv_context *open_device(const char *name)
{
	int i, count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *ctx = NULL;

	for (i = 0; i < count && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die(name);
	return ctx;
}

#endif
