/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The device core for callers in C. Each function is the Device method of its name (device.h). */
#ifndef HGHCA_CORE_H
#define HGHCA_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hghca_core;

enum hghca_trace_level {
	HGHCA_TRACE_SUCCESS,
	HGHCA_TRACE_ERROR,
	HGHCA_TRACE_UNDEFINED,
};

/* dirty() has device memory at DMA addresses from here on. */
#define HGHCA_DEVICE_MEMORY_BASE	(1ULL << 63)

/* The Host seam (host.h) as function pointers. */
struct hghca_host_ops {
	uint8_t *(*map)(void *opaque, uint64_t dma, uint64_t len, bool write);
	void (*dirty)(void *opaque, uint64_t dma, uint64_t len);
	bool (*read)(void *opaque, uint64_t dma, void *buffer, uint64_t len);
	bool (*write)(void *opaque, uint64_t dma, const void *buffer, uint64_t len);
	bool (*update)(void *opaque, uint64_t dma, void (*change)(uint64_t *word, void *context), void *context);
	void (*raise_vector)(void *opaque, unsigned vector);
	void (*lower_interrupt)(void *opaque);
	/* `device_icrc`: the core has made the ICRC; false: software has made it, or the frame has no ICRC. */
	bool (*send_frame)(void *opaque, const struct iovec *parts, int count, bool device_icrc);
	void (*set_timer)(void *opaque, uint64_t deadline_ns);
	uint64_t (*now_ns)(void *opaque);
	uint64_t (*random)(void *opaque);
	void (*schedule)(void *opaque);
	bool (*tracing)(void *opaque);
	void (*trace)(void *opaque, enum hghca_trace_level level, const char *text);
};

/* Where frames of a class wait that come faster than the device takes them. */
struct hghca_receive_buffer {
	uint32_t drain_mbps;		/* so fast it takes them; 0: at once, and none ever waits */
	uint32_t bytes;			/* of waiting frames; 0: the default */
};

enum hghca_profile {
	HGHCA_PROFILE_FULL,
	HGHCA_PROFILE_BASE,		/* nothing beyond the JingZhao document */
	HGHCA_PROFILE_RSNIC,		/* the device of the RSNIC document */
};

struct hghca_config {
	enum hghca_profile profile;
	uint8_t mac[6];
	uint64_t node_guid;		/* 0: EUI-64 from the MAC */
	uint32_t cache_entries;		/* 0: no limit */
	uint32_t slice_work;		/* what a call does at most, about, in units of work.h; 0: the default */
	struct hghca_receive_buffer roce_buffer;
	struct hghca_receive_buffer other_buffer;
	uint8_t moderation_scale;	/* as QUERY_DEV_LIM says it */
	uint64_t init_delay_ns;		/* RSNIC: so long after a reset it is initializing */
	uint8_t *device_memory;		/* the caller's, for as long as the core lives */
	uint64_t device_memory_bytes;	/* 0: none; a power of two, 4096 to HGHCA_DEVICE_MEMORY_MAX */
};

/* NULL: out of memory, or there is no such profile. */
struct hghca_core *hghca_core_new(const struct hghca_host_ops *ops, void *opaque,
				  const struct hghca_config *config);
void hghca_core_free(struct hghca_core *core);

void hghca_core_reset(struct hghca_core *core);
uint64_t hghca_core_hcr_read(struct hghca_core *core, uint64_t offset, unsigned size);
/* True: that was a reset, and the vectors raised before it are not to be sent any more. */
bool hghca_core_hcr_write(struct hghca_core *core, uint64_t offset, uint64_t value, unsigned size);
uint64_t hghca_core_uar_read(struct hghca_core *core, uint64_t offset, unsigned size);
void hghca_core_uar_write(struct hghca_core *core, uint64_t offset, uint64_t value, unsigned size);
/*
 * `trusted`: another core of this process has made the ICRC, and sends the frame within this call: the ICRC is not
 * verified, unless there are rules of link impairment on this side.
 */
void hghca_core_receive(struct hghca_core *core, const struct iovec *parts, int count, bool trusted);
bool hghca_core_run(struct hghca_core *core);
bool hghca_core_has_work(const struct hghca_core *core);
/* Whether WQEs are outstanding on the send queue that the last doorbell rang. False for one of a CQ or EQ. */
bool hghca_core_rung_has_work(const struct hghca_core *core);
void hghca_core_timer(struct hghca_core *core);
void hghca_core_link_ready(struct hghca_core *core);
void hghca_core_set_link(struct hghca_core *core, bool up);
void hghca_core_dma_changed(struct hghca_core *core);

/*
 * A catastrophic error with health syndrome `syndrome` (HGHCA_HEALTH_*): LOCAL_CATAS_ERROR is posted, and the device is
 * silent until it is reset. Is it?
 */
void hghca_core_fail(struct hghca_core *core, const char *reason, unsigned syndrome);
bool hghca_core_failed(const struct hghca_core *core);

/*
 * For tests of drivers: the nth command from now on (0: none) does nothing and
 * ends with INTERNAL_ERR; how many are left until then; how many there were.
 */
void hghca_core_fail_command(struct hghca_core *core, uint64_t nth);
uint64_t hghca_core_until_fault(const struct hghca_core *core);
uint64_t hghca_core_commands(const struct hghca_core *core);
/* For tests of drivers: HGHCA_CAP_* that the device advertises, of those that it has. */
void hghca_core_set_capabilities(struct hghca_core *core, uint32_t capabilities);
uint32_t hghca_core_capabilities(const struct hghca_core *core);

/*
 * A capture of frames (capture.h) in the file of descriptor `fd`, which it takes over in any case. NULL: none, and
 * the errno; EWOULDBLOCK: another capture has the file. hghca_capture_frame() returns 0 or an errno, and then the
 * frame is not in the file. EAGAIN: the file is a FIFO that is not read fast enough; the capture continues. EPIPE: its
 * reader is gone, if the caller ignores SIGPIPE.
 */
struct hghca_capture;

struct hghca_capture_config {
	const char *name;		/* of the interface */
	uint32_t snap_bytes;		/* of each frame; 0: all */
	uint64_t max_bytes;		/* of the file, then EFBIG; 0: any length */
	uint64_t epoch_ns;		/* from 1970-01-01 to the 0 of the times of frames */
};

struct hghca_capture *hghca_capture_begin(int fd, const struct hghca_capture_config *config, int *error);
int hghca_capture_frame(struct hghca_capture *capture, bool sent, uint64_t now_ns, const struct iovec *parts,
			int count);
void hghca_capture_end(struct hghca_capture *capture);

/*
 * Frames between two processes, in memory that both have mapped (shared_ring.h). `memory` has
 * hghca_rings_memory_bytes(ring_bytes) bytes, zeros at first; one of the two sides is the first.
 */
struct hghca_rings;

enum hghca_rings_result {
	HGHCA_RINGS_DONE,
	HGHCA_RINGS_NONE,		/* no frame, or no room for one: the peer kicks when there is */
	HGHCA_RINGS_BROKEN,		/* the peer has written what cannot be; it is not used any more */
};

/* 0: a ring cannot have so many bytes. */
uint64_t hghca_rings_memory_bytes(uint64_t ring_bytes);
/* NULL: out of memory. */
struct hghca_rings *hghca_rings_new(void *memory, uint64_t ring_bytes, bool first);
void hghca_rings_free(struct hghca_rings *rings);
enum hghca_rings_result hghca_rings_send(struct hghca_rings *rings, const struct iovec *parts, int count);
/* `frame` is a copy, good until the next call. */
enum hghca_rings_result hghca_rings_receive(struct hghca_rings *rings, struct iovec *frame);
/* Is there a frame to receive, or is hghca_rings_end_burst() to be called? */
bool hghca_rings_pending(const struct hghca_rings *rings);
/* After frames were sent or received: must the peer be kicked? */
bool hghca_rings_end_burst(struct hghca_rings *rings);

/*
 * Link impairment (impairment.h): rules as fault_rule.h has them, their seed.
 * False: the rules are wrong, as `error` says in at most `error_bytes`, or there
 * is no memory; then all is as it was. `core` NULL: only looks at the rules.
 */
#define HGHCA_FAULTS_ERROR_BYTES 1024
bool hghca_core_set_faults(struct hghca_core *core, const char *rules, char *error, size_t error_bytes);
void hghca_core_set_fault_seed(struct hghca_core *core, uint64_t seed);

/* Number of counts of what was done, and the name and value of count i; frames held back now. */
unsigned hghca_core_fault_counts(void);
const char *hghca_core_fault_count_name(unsigned i);
uint64_t hghca_core_fault_count(const struct hghca_core *core, unsigned i);
uint64_t hghca_core_held_frames(const struct hghca_core *core);

/* Number of counters, and the name and value of counter i. */
unsigned hghca_core_counters(void);
const char *hghca_core_counter_name(unsigned i);
uint64_t hghca_core_counter(const struct hghca_core *core, unsigned i);

/* A QP, for people who look at the device. PSNs count packets, of 24 bits. */
struct hghca_core_qp {
	uint32_t qpn;
	uint32_t peer;			/* of a connected QP */
	const char *service;
	const char *state;
	uint32_t sent;			/* PSN of the next request that is sent */
	uint32_t received;		/* PSN of the request that is expected */
	uint32_t outstanding;		/* requests of a reliable QP that are not acknowledged */
};
/* The QPs that were used last, the last first, `room` at most; how many. */
size_t hghca_core_recent_qps(const struct hghca_core *core, struct hghca_core_qp *out, size_t room);

/* The packets dropped or refused last; in its numbers, which count from 0 at reset. */
struct hghca_core_error {
	uint64_t time_ns;
	uint32_t frame_bytes;
	uint32_t qpn;
	const char *why;		/* HGHCA_DROPS */
	const uint8_t *header;		/* until the next call into the core */
	size_t header_bytes;
};
/* Number of the oldest that is kept, and of the one that comes next. */
uint64_t hghca_core_first_error(const struct hghca_core *core);
uint64_t hghca_core_next_error(const struct hghca_core *core);
/* False: packet n is not kept. */
bool hghca_core_get_error(const struct hghca_core *core, uint64_t n, struct hghca_core_error *out);

#ifdef __cplusplus
}
#endif

#endif
