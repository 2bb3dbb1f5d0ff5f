/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ERNIC and ETRNIC for callers in C. Each function is the Adapter method of its name (ernic/adapter.h). */
#ifndef ERNIC_CORE_H
#define ERNIC_CORE_H

#include "hghca_core.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ernic_core;

struct ernic_config {
	bool etrnic;			/* personality ETRNIC; otherwise ERNIC */
	uint32_t qps;			/* with QP 1; ERNIC_QPS_MIN to what the personality has */
	uint32_t extensions;		/* ERNIC_EXT_* */
	bool strict;			/* the public limits of the real core */
	uint32_t roce_drain_mbps;	/* as hghca_receive_buffer has it */
	uint32_t other_drain_mbps;
	uint32_t clock_mhz;		/* ERNIC_CLOCK_MHZ_MIN to ERNIC_CLOCK_MHZ_MAX */
	/* A frame for the Ethernet adapter behind the device; false: it takes no more. NULL: there is no such adapter. */
	bool (*pass_frame)(void *opaque, const struct iovec *parts, int count);
};

/* NULL: out of memory. Of `ops`, dirty() and update() are not called; map() may give no memory. */
struct ernic_core *ernic_core_new(const struct hghca_host_ops *ops, void *opaque, const struct ernic_config *config);
void ernic_core_free(struct ernic_core *core);

void ernic_core_reset(struct ernic_core *core);
uint32_t ernic_core_read(struct ernic_core *core, uint64_t offset, unsigned size);
void ernic_core_write(struct ernic_core *core, uint64_t offset, uint32_t value, unsigned size);
void ernic_core_receive(struct ernic_core *core, const struct iovec *parts, int count);
bool ernic_core_forward(struct ernic_core *core, const struct iovec *parts, int count);
bool ernic_core_run(struct ernic_core *core);
bool ernic_core_has_work(const struct ernic_core *core);
void ernic_core_timer(struct ernic_core *core);
void ernic_core_link_ready(struct ernic_core *core);
void ernic_core_set_link(struct ernic_core *core, bool up);

/* Counters by index, from 0 to ernic_core_counters() - 1. */
unsigned ernic_core_counters(void);
const char *ernic_core_counter_name(unsigned index);
uint64_t ernic_core_counter(const struct ernic_core *core, unsigned index);

#ifdef __cplusplus
}
#endif

#endif /* ERNIC_CORE_H */
