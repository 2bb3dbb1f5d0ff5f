/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RDMA loopback controller for callers in C. Each function is the Controller method of its name (controller.h). */
#ifndef LOOPBACK_CORE_H
#define LOOPBACK_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct loopback_core;

/* loopback::Host as function pointers. */
struct loopback_host_ops {
	bool (*read)(void *opaque, uint64_t address, void *buffer, size_t len);
	bool (*write)(void *opaque, uint64_t address, const void *buffer, size_t len);
	void (*set_interrupt)(void *opaque, bool asserted);
	/* The header of a fragment has LOOPBACK_HEADER_BEATS beats of 4 bytes. */
	void (*trace)(void *opaque, const uint8_t *header);
};

struct loopback_config {
	uint32_t extensions;		/* LOOPBACK_EXT_* */
	bool late_receiver;
};

/* NULL: out of memory. */
struct loopback_core *loopback_core_new(const struct loopback_host_ops *ops, void *opaque,
					const struct loopback_config *config);
void loopback_core_free(struct loopback_core *core);

uint32_t loopback_core_read(const struct loopback_core *core, uint32_t offset);
void loopback_core_write(struct loopback_core *core, uint32_t offset, uint32_t value);
bool loopback_core_run(struct loopback_core *core, unsigned steps);
bool loopback_core_has_work(const struct loopback_core *core);
void loopback_core_stall(struct loopback_core *core, bool stalled);
bool loopback_core_awaits_time_out(const struct loopback_core *core);
void loopback_core_time_out(struct loopback_core *core);
void loopback_core_reset(struct loopback_core *core);

/* Counters by index, from 0 to loopback_core_counters() - 1. */
unsigned loopback_core_counters(void);
const char *loopback_core_counter_name(unsigned index);
uint64_t loopback_core_counter(const struct loopback_core *core, unsigned index);

#ifdef __cplusplus
}
#endif

#endif /* LOOPBACK_CORE_H */
