// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How fast this machine copies memory: for each size, the mean over about
 * 50 ms of copies between the same two buffers, as MiB/s and as microseconds
 * a copy. So small sizes are copied within the caches, as perftest does.
 *
 * memcpy SIZE...
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPAN_NS	50000000

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		size_t bytes = strtoul(argv[i], NULL, 0), count = 0, batch = 1 + (1 << 20) / (bytes + 1), k;
		unsigned char *from = malloc(bytes), *to = malloc(bytes);
		int64_t start, spent;

		if (!from || !to || !bytes)
			return 1;
		memset(from, 1, bytes);
		memset(to, 2, bytes);
		start = now_ns();
		do {
			for (k = 0; k < batch; k++) {
				memcpy(to, from, bytes);
				__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
			}
			count += batch;
			spent = now_ns() - start;
		} while (spent < SPAN_NS);
		printf("%zu %.2f %.6f\n", bytes, (double)bytes * count / spent * 1e9 / (1 << 20),
		       (double)spent / count / 1000);
		free(from);
		free(to);
	}
	return 0;
}
