/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common functions of the tests of raw packets: frames, QPs that send them, flows. */
#ifndef RAWPACKET_H
#define RAWPACKET_H

#include "link.h"

#define SLOT		2048		/* bytes of a receive */
#define SEND_AT		(48 * 1024)	/* offset of sent frames in the buffer; receives are before it */
#define ETH_BYTES	14
#define TAG_BYTES	4
#define TEST_TYPE	0x88b5		/* for local experiments (IEEE 802) */

/* Fields of a frame, in host order; build() converts them. */
struct packet {
	uint8_t dmac[6], smac[6];
	int tci;			/* -1: no VLAN tag */
	uint16_t type;			/* 0x0800 and 0x86dd: with the headers below */
	uint32_t src, dst;		/* IPv4, or the end of fd00:4217:: */
	uint8_t protocol, tos, ttl;
	uint32_t label;
	uint16_t sport, dport;
	uint32_t bytes;
};

/* A frame to b's port, UDP over IPv4. */
struct packet usual_packet(void);
void find_mac(struct tb_side *side, uint8_t *mac);
void build(uint8_t *frame, const struct packet *p);
bool is_ours(const uint8_t *frame, uint32_t bytes);

/* A raw packet QP, RTS, with receives posted. */
struct raw {
	struct tb_qp q;
	uint32_t posted;
};

void raw_open(struct raw *r, struct tb_side *side);
void raw_close(struct raw *r);
/* Builds the frame at SEND_AT and sends it. */
void send_packet(struct raw *from, const struct packet *p, const char *what);

struct flow_attr {
	struct ibv_flow_attr attr;
	uint8_t specs[256];		/* directly after it */
};
_Static_assert(offsetof(struct flow_attr, specs) == sizeof(struct ibv_flow_attr), "a gap before the specifications");

struct flow_attr new_flow(enum ibv_flow_attr_type type, uint16_t priority);
/* dmac NULL, type 0, vlan below 0: any. */
void add_eth(struct flow_attr *flow, const uint8_t *dmac, uint16_t type, int vlan);
void add_ports(struct flow_attr *flow, enum ibv_flow_spec_type type, uint16_t src, uint16_t dst);
struct ibv_flow *make_flow_of(struct ibv_qp *qp, struct flow_attr *flow, const char *what);
void end_flow(struct ibv_flow *flow, const char *what);

/* Effective capabilities with or without CAP_NET_RAW. */
void set_net_raw(bool on);

/* rss.c: the cases */
void rss_capabilities(void);
void rss_frames(void);
void rss_fields(void);
void rss_shared_table(void);
void rss_states(void);
void rss_failing_queue(void);
void rss_bad_queues(void);
void rss_bad_qps(void);
void rss_gone_processes(void);

#endif /* RAWPACKET_H */
