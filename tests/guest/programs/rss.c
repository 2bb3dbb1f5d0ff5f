// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receive work queues, tables of them, and QPs that distribute frames over a table:
 * cases of rawpacket.c.
 *
 * a sends frames to b's port. This file computes the expected queue of b from the
 * bytes of the frame.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rawpacket.h"

#define QUEUES		8
#define EACH		8		/* receives of each queue */
#define CQS		2		/* used by the queues in turn */
#define KEY_BYTES	40
#define GROUPS		1024		/* maximum number of tables, and of QPs with a table */
#define ENTRIES		512		/* of the largest table */
#define ALL_FIELDS	0xff
#define VARIATIONS	12

static uint8_t key[KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b,
	0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
	0x01, 0xfa,
};

/* ------------------------------------------------------------------ */
/* The hash                                                             */

static uint32_t bit_of(const uint8_t *bytes, size_t n)
{
	return bytes[n / 8] >> (7 - n % 8) & 1;
}

/* The Toeplitz hash, bit by bit. */
static uint32_t hash_of(const uint8_t *input, size_t bytes)
{
	uint32_t hash = 0;
	size_t n, b;

	for (n = 0; n < bytes * 8; n++)
		for (b = 0; bit_of(input, n) && b < 32; b++)
			hash ^= bit_of(key, n + b) << (31 - b);
	return hash;
}

static size_t append(uint8_t *input, size_t at, const uint8_t *from, size_t bytes, bool wanted)
{
	if (!wanted)
		return at;
	memcpy(input + at, from, bytes);
	return at + bytes;
}

/* Returns the entry of a table for a frame of build(). */
static uint32_t entry_of(const uint8_t *frame, uint64_t fields, uint32_t entries)
{
	const uint8_t *ip = frame + ETH_BYTES, *ports;
	uint8_t input[36], protocol;
	size_t bytes = 0;
	bool ipv6, udp;

	if (frame[12] == 0x81)
		ip += TAG_BYTES;
	if ((ip[-2] << 8 | ip[-1]) == TEST_TYPE)
		return 0;
	ipv6 = ip[-2] == 0x86;
	if (ipv6) {
		bytes = append(input, bytes, ip + 8, 16, fields & IBV_RX_HASH_SRC_IPV6);
		bytes = append(input, bytes, ip + 24, 16, fields & IBV_RX_HASH_DST_IPV6);
	} else {
		bytes = append(input, bytes, ip + 12, 4, fields & IBV_RX_HASH_SRC_IPV4);
		bytes = append(input, bytes, ip + 16, 4, fields & IBV_RX_HASH_DST_IPV4);
	}
	protocol = ipv6 ? ip[6] : ip[9];
	ports = ip + (ipv6 ? 40 : 20);
	udp = protocol == IPPROTO_UDP;
	if (udp || protocol == IPPROTO_TCP) {
		bytes = append(input, bytes, ports, 2,
			       fields & (udp ? IBV_RX_HASH_SRC_PORT_UDP : IBV_RX_HASH_SRC_PORT_TCP));
		bytes = append(input, bytes, ports + 2, 2,
			       fields & (udp ? IBV_RX_HASH_DST_PORT_UDP : IBV_RX_HASH_DST_PORT_TCP));
	}
	return hash_of(input, bytes) % entries;
}

/* ------------------------------------------------------------------ */
/* Queues, a table and its QP                                           */

struct spread {
	struct tb_side *side;
	struct ibv_cq *cqs[CQS];
	struct ibv_wq *wqs[QUEUES];
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	uint64_t fields;
	uint8_t *buf;			/* a slot for each receive of each queue */
	struct ibv_mr *mr;
};

static struct ibv_wq_init_attr wq_attr(struct tb_side *side, struct ibv_cq *cq)
{
	return (struct ibv_wq_init_attr) {
		.wq_type = IBV_WQT_RQ, .max_wr = EACH, .max_sge = 2, .pd = side->pd, .cq = cq,
	};
}

static struct ibv_qp_init_attr_ex rss_attr(const struct spread *s)
{
	return (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = s->side->pd,
		.rwq_ind_tbl = s->table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = KEY_BYTES,
			.rx_hash_key = key,
			.rx_hash_fields_mask = s->fields,
		},
	};
}

static int set_state(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	return ibv_modify_wq(wq, &attr);
}

/* Posts receive `id`, counted over all queues; returns an errno. */
static int try_receive(struct spread *s, uint32_t id, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + id * SLOT, SLOT, lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int error;

	memset(s->buf + id * SLOT, 0, SLOT);
	error = ibv_post_wq_recv(s->wqs[id / EACH], &wr, &bad);
	if (error && bad != &wr)
		tb_fail("a receive that is refused is not bad_wr");
	return error;
}

static void give_receive(struct spread *s, uint32_t id)
{
	link_errno(try_receive(s, id, s->mr->lkey), 0, "ibv_post_wq_recv");
}

static void give_receives(struct spread *s, uint32_t which)
{
	uint32_t i;

	for (i = 0; i < EACH; i++)
		give_receive(s, which * EACH + i);
}

static struct ibv_rwq_ind_table *make_table(struct spread *s, struct ibv_wq **wqs, uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = { .log_ind_tbl_size = log_size, .ind_tbl = wqs };

	errno = 0;
	return ibv_create_rwq_ind_table(s->side->ctx, &attr);
}

static void spread_open(struct spread *s, struct tb_side *side, uint64_t fields)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_wq_init_attr wq;
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->side = side;
	s->fields = fields;
	s->buf = aligned_alloc(4096, QUEUES * EACH * SLOT);
	s->mr = ibv_reg_mr(side->pd, s->buf, QUEUES * EACH * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!s->mr)
		tb_die("ibv_reg_mr");
	for (i = 0; i < CQS; i++) {
		s->cqs[i] = link_make_cq(side, NULL);
		if (!s->cqs[i])
			tb_die("a CQ");
	}
	for (i = 0; i < QUEUES; i++) {
		wq = wq_attr(side, s->cqs[i % CQS]);
		s->wqs[i] = ibv_create_wq(side->ctx, &wq);
		if (!s->wqs[i])
			tb_die("ibv_create_wq");
		if (wq.max_wr < EACH || wq.max_sge < 2)
			tb_fail("a queue of %u receives with %u SGEs", wq.max_wr, wq.max_sge);
		link_errno(set_state(s->wqs[i], IBV_WQS_RDY), 0, "a queue to RDY");
		give_receives(s, i);
	}
	s->table = make_table(s, s->wqs, 3);
	if (!s->table)
		tb_die("ibv_create_rwq_ind_table");
	attr = rss_attr(s);
	s->qp = ibv_create_qp_ex(side->ctx, &attr);
	if (!s->qp)
		tb_die("a QP with a table");
}

static void spread_close(struct spread *s)
{
	uint32_t i;

	link_errno(ibv_destroy_qp(s->qp), 0, "a QP with a table goes");
	link_errno(ibv_destroy_rwq_ind_table(s->table), 0, "a table goes");
	for (i = 0; i < QUEUES; i++)
		link_errno(ibv_destroy_wq(s->wqs[i]), 0, "a queue goes");
	for (i = 0; i < CQS; i++)
		link_errno(ibv_destroy_cq(s->cqs[i]), 0, "its CQ goes");
	ibv_dereg_mr(s->mr);
	free(s->buf);
}

/* All frames to b's own address. */
static struct ibv_flow *own_flow(struct ibv_qp *qp, uint16_t priority)
{
	struct flow_attr flow = new_flow(IBV_FLOW_ATTR_NORMAL, priority);
	uint8_t mac[6];

	find_mac(link_owner, mac);
	add_eth(&flow, mac, 0, -1);
	return make_flow_of(qp, &flow, "a flow to a QP with a table");
}

/* Only frames of usual_packet(), so that other frames do not consume receives. */
static struct ibv_flow *quiet_flow(struct ibv_qp *qp)
{
	struct flow_attr flow = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	uint8_t mac[6];

	find_mac(link_owner, mac);
	add_eth(&flow, mac, 0x0800, -1);
	add_ports(&flow, IBV_FLOW_SPEC_UDP, 0, usual_packet().dport);
	return make_flow_of(qp, &flow, "a flow to a QP with a table");
}

/* Returns the next frame of the test in the CQ of a queue; NULL: none arrives, or a completion in error. */
static const uint8_t *next_frame(struct spread *s, uint32_t which, struct ibv_wc *wc, const char *what)
{
	const uint8_t *data;

	while (link_next_wc(s->cqs[which % CQS], wc, what)) {
		if (wc->status != IBV_WC_SUCCESS || wc->wr_id >= QUEUES * EACH) {
			tb_fail("%s: id %llu, \"%s\"", what, (unsigned long long)wc->wr_id,
				ibv_wc_status_str(wc->status));
			return NULL;
		}
		data = s->buf + wc->wr_id * SLOT;
		if (is_ours(data, wc->byte_len))
			return data;
		give_receive(s, wc->wr_id);
	}
	return NULL;
}

/* Checks that the last frame of `from` is the next one here, in queue `which`, byte for byte. */
static void comes_to(struct spread *s, uint32_t which, const struct raw *from, const struct packet *p,
		     const char *what)
{
	const uint8_t *data;
	struct ibv_wc wc;
	uint32_t i;

	data = next_frame(s, which, &wc, what);
	if (!data)
		return;
	if (wc.wr_id / EACH != which || wc.qp_num != s->wqs[which]->wq_num)
		tb_fail("%s: came to queue %llu, number 0x%x; expected %u, 0x%x", what,
			(unsigned long long)wc.wr_id / EACH, wc.qp_num, which, s->wqs[which]->wq_num);
	if (wc.opcode != IBV_WC_RECV || wc.wc_flags || wc.byte_len != p->bytes)
		tb_fail("%s: opcode %d, flags 0x%x, %u bytes, expected %u", what, wc.opcode, wc.wc_flags,
			wc.byte_len, p->bytes);
	if (memcmp(data, from->q.buf + SEND_AT, p->bytes))
		tb_fail("%s: another frame", what);
	for (i = p->bytes; i < SLOT; i++)
		if (data[i])
			tb_fail("%s: byte %u behind the frame is written", what, i);
	give_receive(s, wc.wr_id);
}

static void send_and_find(struct spread *s, struct raw *from, const struct packet *p, const char *what)
{
	send_packet(from, p, what);
	comes_to(s, entry_of(from->q.buf + SEND_AT, s->fields, QUEUES), from, p, what);
}

/* Checks that no unexpected frame of the test has arrived. */
static void nothing_left(struct spread *s, const char *what)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < CQS; i++) {
		while (ibv_poll_cq(s->cqs[i], 1, &wc)) {
			if (wc.status != IBV_WC_SUCCESS || is_ours(s->buf + wc.wr_id * SLOT, wc.byte_len))
				tb_fail("%s: a receive too many, \"%s\"", what, ibv_wc_status_str(wc.status));
			else
				give_receive(s, wc.wr_id);
		}
	}
}

/* Returns a packet for queue `which`. */
static struct packet packet_for(const struct spread *s, uint32_t which)
{
	static uint8_t frame[SLOT];
	struct packet p = usual_packet();

	for (;; p.sport++) {
		build(frame, &p);
		if (entry_of(frame, s->fields, QUEUES) == which)
			return p;
	}
}

/* ------------------------------------------------------------------ */
/* Cases                                                                */

void rss_capabilities(void)
{
	const struct ibv_rss_caps *rss;
	struct ibv_device_attr_ex device;

	if (ibv_query_device_ex(link_owner->ctx, NULL, &device))
		tb_die("ibv_query_device_ex");
	rss = &device.rss_caps;
	if (rss->supported_qpts != 1U << IBV_QPT_RAW_PACKET)
		tb_fail("types of QPs 0x%x", rss->supported_qpts);
	if (rss->max_rwq_indirection_tables != GROUPS || rss->max_rwq_indirection_table_size != ENTRIES)
		tb_fail("%u tables of %u entries", rss->max_rwq_indirection_tables,
			rss->max_rwq_indirection_table_size);
	if (rss->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ || rss->rx_hash_fields_mask != ALL_FIELDS)
		tb_fail("hash functions 0x%x of fields 0x%llx", rss->rx_hash_function,
			(unsigned long long)rss->rx_hash_fields_mask);
	if (device.max_wq_type_rq != (uint32_t)device.orig_attr.max_qp)
		tb_fail("%u receive work queues, %d QPs", device.max_wq_type_rq, device.orig_attr.max_qp);
}

static void udp(struct packet *p) { (void)p; }
static void tcp(struct packet *p) { p->protocol = IPPROTO_TCP; }
static void icmp(struct packet *p) { p->protocol = IPPROTO_ICMP; }
static void tagged(struct packet *p) { p->tci = 0x602a; }
static void udp6(struct packet *p) { p->type = 0x86dd; }
static void tcp6(struct packet *p) { p->type = 0x86dd, p->protocol = IPPROTO_TCP; }
static void tagged6(struct packet *p) { p->type = 0x86dd, p->tci = 0x602a; }
static void not_ip(struct packet *p) { p->type = TEST_TYPE; }

static const struct {
	const char *what;
	void (*change)(struct packet *p);
} kinds[] = {
	{ "UDP over IPv4", udp }, { "TCP over IPv4", tcp }, { "ICMP", icmp }, { "UDP in a VLAN", tagged },
	{ "UDP over IPv6", udp6 }, { "TCP over IPv6", tcp6 }, { "UDP over IPv6 in a VLAN", tagged6 },
	{ "no IP", not_ip },
};

/* Frames of all kinds; sizes and addresses change. */
static void spread_kinds(struct spread *s, struct raw *a)
{
	struct packet p;
	uint32_t i, n;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (n = 0; n < VARIATIONS; n++) {
			p = usual_packet();
			kinds[i].change(&p);
			p.src += n * 3;
			p.dst += n / 2;
			p.sport += n * 7;
			p.dport += n / 3;
			p.bytes = 100 + n * 117;
			send_and_find(s, a, &p, kinds[i].what);
		}
	}
}

void rss_frames(void)
{
	struct ibv_flow *flow;
	struct spread s;
	struct raw a;

	raw_open(&a, &link_asker);
	spread_open(&s, link_owner, ALL_FIELDS);
	flow = own_flow(s.qp, 0);
	spread_kinds(&s, &a);
	nothing_left(&s, "frames in other queues");
	end_flow(flow, "the flow");
	spread_close(&s);
	raw_close(&a);
}

void rss_fields(void)
{
	static const uint64_t masks[] = {
		IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4,
		IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_PORT_UDP,
		IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_DST_IPV6,
		IBV_RX_HASH_SRC_PORT_UDP,
	};
	struct ibv_flow *flow;
	struct spread s;
	struct raw a;
	size_t i;

	raw_open(&a, &link_asker);
	for (i = 0; i < ARRAY_SIZE(masks); i++) {
		spread_open(&s, link_owner, masks[i]);
		flow = own_flow(s.qp, 0);
		spread_kinds(&s, &a);
		nothing_left(&s, "frames in other queues");
		end_flow(flow, "the flow");
		spread_close(&s);
	}
	raw_close(&a);
}

/* Each QP has its own flow, hash and priority. */
void rss_shared_table(void)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_flow *flows[2];
	struct ibv_qp *second;
	struct packet p;
	struct spread s;
	struct raw a;
	uint32_t n;

	raw_open(&a, &link_asker);
	spread_open(&s, link_owner, IBV_RX_HASH_SRC_PORT_UDP);
	attr = rss_attr(&s);
	attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_DST_IPV4;
	second = ibv_create_qp_ex(s.side->ctx, &attr);
	if (!second)
		tb_die("a second QP of a table");
	if (second->qp_num == s.qp->qp_num)
		tb_fail("two QPs of the number 0x%x", second->qp_num);
	flows[0] = own_flow(s.qp, 1);
	for (n = 0; n < VARIATIONS; n++) {
		p = usual_packet();
		p.sport += n;
		p.dst += n;
		send_and_find(&s, &a, &p, "by the source port");
	}
	flows[1] = own_flow(second, 0);
	s.fields = IBV_RX_HASH_DST_IPV4;
	for (n = 0; n < VARIATIONS; n++) {
		p = usual_packet();
		p.sport += n;
		p.dst += n;
		send_and_find(&s, &a, &p, "by the destination");
	}
	end_flow(flows[1], "the second flow");
	link_errno(ibv_destroy_qp(second), 0, "the second QP goes");
	s.fields = IBV_RX_HASH_SRC_PORT_UDP;
	send_and_find(&s, &a, &p, "by the source port again");
	nothing_left(&s, "frames in other queues");
	end_flow(flows[0], "the first flow");
	spread_close(&s);
	raw_close(&a);
}

static void flushed(struct spread *s, uint32_t which, uint64_t id, const char *what)
{
	struct ibv_wc wc;

	if (!link_next_wc(s->cqs[which % CQS], &wc, what))
		return;
	if (wc.wr_id != id || wc.status != IBV_WC_WR_FLUSH_ERR || wc.qp_num != s->wqs[which]->wq_num)
		tb_fail("%s: id %llu, \"%s\", QP 0x%x", what, (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status), wc.qp_num);
}

void rss_states(void)
{
	struct ibv_wq_attr from = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RDY, .curr_wq_state = IBV_WQS_RDY,
	};
	struct ibv_wq_attr flags = { .attr_mask = IBV_WQ_ATTR_FLAGS, .flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING };
	struct ibv_wq_attr unknown = {
		.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RESET, .curr_wq_state = IBV_WQS_UNKNOWN,
	};
	struct packet to_first, to_other;
	struct ibv_flow *flow;
	struct ibv_wq *wq;
	struct spread s;
	struct raw a;
	uint32_t i;

	raw_open(&a, &link_asker);
	spread_open(&s, link_owner, ALL_FIELDS);
	wq = s.wqs[0];
	to_first = packet_for(&s, 0);
	to_other = packet_for(&s, CQS);		/* it has the same CQ */
	flow = quiet_flow(s.qp);
	send_and_find(&s, &a, &to_first, "to a queue in RDY");
	end_flow(flow, "the flow");
	nothing_left(&s, "before ERR");

	/* ERR: all posted receives are flushed in order, and so are later ones; frames are lost. */
	link_errno(set_state(wq, IBV_WQS_ERR), 0, "RDY to ERR");
	for (i = 0; i < EACH; i++) {
		struct ibv_wc wc;

		if (!link_next_wc(s.cqs[0], &wc, "flushed"))
			break;
		if (wc.wr_id >= EACH || wc.status != IBV_WC_WR_FLUSH_ERR || wc.qp_num != wq->wq_num)
			tb_fail("in ERR: id %llu, \"%s\", QP 0x%x", (unsigned long long)wc.wr_id,
				ibv_wc_status_str(wc.status), wc.qp_num);
	}
	give_receive(&s, 3);
	flushed(&s, 0, 3, "posted in ERR");
	flow = quiet_flow(s.qp);
	send_packet(&a, &to_first, "to a queue in ERR");
	send_and_find(&s, &a, &to_other, "to another queue");
	link_errno(set_state(wq, IBV_WQS_RDY), EINVAL, "ERR to RDY");
	link_errno(ibv_modify_wq(wq, &from), EINVAL, "from RDY, which it is not in");
	link_errno(ibv_modify_wq(wq, &flags), EOPNOTSUPP, "flags");
	link_errno(set_state(wq, IBV_WQS_UNKNOWN), EINVAL, "to a state that there is not");
	link_errno(ibv_modify_wq(wq, &unknown), EINVAL, "from a state that there is not");

	/* RESET: the queue is empty, and refuses receives. */
	link_errno(set_state(wq, IBV_WQS_RESET), 0, "ERR to RESET");
	link_errno(try_receive(&s, 0, s.mr->lkey), EINVAL, "a receive in RESET");
	link_errno(set_state(wq, IBV_WQS_ERR), EINVAL, "RESET to ERR");
	send_packet(&a, &to_first, "to a queue in RESET");
	send_and_find(&s, &a, &to_other, "to another queue, again");
	link_errno(set_state(wq, IBV_WQS_RDY), 0, "RESET to RDY");
	send_packet(&a, &to_first, "to a queue without a receive");
	send_and_find(&s, &a, &to_other, "to another queue, once more");
	give_receives(&s, 0);
	send_and_find(&s, &a, &to_first, "to a queue that is back");

	/* Directly from RDY to RESET: the posted receives are dropped. */
	link_errno(set_state(wq, IBV_WQS_RDY), 0, "RDY to RDY");
	link_errno(set_state(wq, IBV_WQS_RESET), 0, "RDY to RESET");
	link_errno(set_state(wq, IBV_WQS_RDY), 0, "RESET to RDY, again");
	give_receives(&s, 0);
	from.wq_state = IBV_WQS_RDY;
	link_errno(ibv_modify_wq(wq, &from), 0, "from RDY, which it is in");
	send_and_find(&s, &a, &to_first, "to a queue that is back again");
	nothing_left(&s, "what was lost");
	end_flow(flow, "the flow, at last");
	spread_close(&s);
	raw_close(&a);
}

/* A receive with a wrong key: only its queue moves to ERR. */
void rss_failing_queue(void)
{
	struct packet to_first, to_other;
	struct ibv_flow *flow;
	struct spread s;
	struct ibv_wc wc;
	struct raw a;

	raw_open(&a, &link_asker);
	spread_open(&s, link_owner, ALL_FIELDS);
	to_first = packet_for(&s, 0);
	to_other = packet_for(&s, CQS);
	link_errno(set_state(s.wqs[0], IBV_WQS_RESET), 0, "a queue to RESET");
	link_errno(set_state(s.wqs[0], IBV_WQS_RDY), 0, "a queue to RDY");
	link_errno(try_receive(&s, 0, s.mr->lkey ^ 0xff), 0, "a wrong key");
	give_receive(&s, 1);
	flow = quiet_flow(s.qp);
	send_packet(&a, &to_first, "to a receive with a wrong key");
	if (link_next_wc(s.cqs[0], &wc, "a wrong key") &&
	    (wc.wr_id || wc.status != IBV_WC_LOC_PROT_ERR || wc.qp_num != s.wqs[0]->wq_num))
		tb_fail("a wrong key: id %llu, \"%s\"", (unsigned long long)wc.wr_id,
			ibv_wc_status_str(wc.status));
	flushed(&s, 0, 1, "behind a wrong key");
	give_receive(&s, 2);
	flushed(&s, 0, 2, "posted to a queue that has failed");
	send_and_find(&s, &a, &to_other, "to another queue");
	/* The queue can be used again. */
	link_errno(set_state(s.wqs[0], IBV_WQS_RDY), EINVAL, "a queue that has failed to RDY");
	link_errno(set_state(s.wqs[0], IBV_WQS_RESET), 0, "a queue that has failed to RESET");
	link_errno(set_state(s.wqs[0], IBV_WQS_RDY), 0, "a queue that has failed to RDY, by RESET");
	give_receives(&s, 0);
	send_and_find(&s, &a, &to_first, "to a queue that has failed");
	nothing_left(&s, "what was lost");
	end_flow(flow, "the flow");
	spread_close(&s);
	raw_close(&a);
}

static void wq_refused(struct spread *s, struct ibv_wq_init_attr attr, int error, const char *what)
{
	struct ibv_wq *wq;

	errno = 0;
	wq = ibv_create_wq(s->side->ctx, &attr);
	link_errno(wq ? 0 : errno, error, what);
	if (wq)
		ibv_destroy_wq(wq);
}

static void table_refused(struct spread *s, struct ibv_wq **wqs, uint32_t log_size, int error, const char *what)
{
	struct ibv_rwq_ind_table *table = make_table(s, wqs, log_size);

	link_errno(table ? 0 : errno, error, what);
	if (table)
		ibv_destroy_rwq_ind_table(table);
}

void rss_bad_queues(void)
{
	static struct ibv_wq *many[2 * ENTRIES];
	struct ibv_wq_init_attr attr;
	struct ibv_device_attr device;
	struct spread s;
	uint32_t i;

	spread_open(&s, link_owner, ALL_FIELDS);
	if (ibv_query_device(link_owner->ctx, &device))
		tb_die("ibv_query_device");
	attr = wq_attr(s.side, s.cqs[0]);
	attr.wq_type = 1;
	wq_refused(&s, attr, EOPNOTSUPP, "a queue of another type");
	attr = wq_attr(s.side, s.cqs[0]);
	attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	attr.create_flags = IBV_WQ_FLAGS_SCATTER_FCS;
	wq_refused(&s, attr, EOPNOTSUPP, "a queue with the FCS");
	attr.create_flags = 0;
	wq_refused(&s, attr, 0, "a queue with no flags");
	attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED;
	wq_refused(&s, attr, EOPNOTSUPP, "what nobody knows");
	attr = wq_attr(s.side, s.cqs[0]);
	attr.max_wr = 0;
	wq_refused(&s, attr, EINVAL, "a queue without receives");
	attr.max_wr = device.max_qp_wr + 1;
	wq_refused(&s, attr, EINVAL, "a queue of too many receives");
	attr = wq_attr(s.side, s.cqs[0]);
	attr.max_sge = device.max_sge + 1;
	wq_refused(&s, attr, EINVAL, "a queue of too many SGEs");
	attr = wq_attr(s.side, NULL);
	wq_refused(&s, attr, EINVAL, "a queue without a CQ");

	for (i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = s.wqs[i % QUEUES];
	table_refused(&s, many, 9, 0, "the largest table");
	table_refused(&s, many, 0, 0, "the smallest table");
	table_refused(&s, many, 10, EINVAL, "a table that is too large");

	/* In use. */
	link_errno(ibv_destroy_wq(s.wqs[3]), EBUSY, "a queue of a table");
	link_errno(ibv_destroy_rwq_ind_table(s.table), EBUSY, "a table of a QP");
	link_errno(ibv_destroy_cq(s.cqs[0]), EBUSY, "a CQ of a queue");
	spread_close(&s);
}

static void qp_refused(struct spread *s, struct ibv_qp_init_attr_ex *attr, int error, const char *what)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(s->side->ctx, attr);
	link_errno(qp ? 0 : errno, error, what);
	if (qp)
		ibv_destroy_qp(qp);
}

void rss_bad_qps(void)
{
	struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, attr;
	struct ibv_recv_wr recv_wr = {}, *bad_recv = NULL;
	struct ibv_send_wr send_wr = { .opcode = IBV_WR_SEND }, *bad_send = NULL;
	struct ibv_qp_init_attr_ex rss;
	struct ibv_qp_init_attr init;
	struct ibv_flow *flow;
	struct spread s;

	spread_open(&s, link_owner, ALL_FIELDS);
	rss = rss_attr(&s);
	rss.rx_hash_conf.rx_hash_function = 2;
	qp_refused(&s, &rss, EOPNOTSUPP, "another hash function");
	rss = rss_attr(&s);
	rss.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_IPSEC_SPI;
	qp_refused(&s, &rss, EOPNOTSUPP, "a hash of SPIs");
	rss.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_INNER | IBV_RX_HASH_SRC_IPV4;
	qp_refused(&s, &rss, EOPNOTSUPP, "a hash of inner headers");
	rss.rx_hash_conf.rx_hash_fields_mask = 0;
	qp_refused(&s, &rss, EINVAL, "a hash of nothing");
	rss = rss_attr(&s);
	rss.rx_hash_conf.rx_hash_key_len = KEY_BYTES - 1;
	qp_refused(&s, &rss, EINVAL, "a short key");
	rss.rx_hash_conf.rx_hash_key_len = KEY_BYTES + 1;
	qp_refused(&s, &rss, EINVAL, "a long key");
	rss = rss_attr(&s);
	rss.rx_hash_conf.rx_hash_key = NULL;
	qp_refused(&s, &rss, EINVAL, "no key");
	rss = rss_attr(&s);
	rss.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH;
	qp_refused(&s, &rss, EINVAL, "a table without a hash");
	rss = rss_attr(&s);
	rss.comp_mask &= ~IBV_QP_INIT_ATTR_IND_TABLE;
	qp_refused(&s, &rss, EOPNOTSUPP, "a hash without a table");
	rss = rss_attr(&s);
	rss.qp_type = IBV_QPT_UD;
	qp_refused(&s, &rss, EOPNOTSUPP, "a UD QP with a table");
	rss = rss_attr(&s);
	rss.cap.max_send_wr = 1;
	rss.send_cq = s.cqs[0];
	qp_refused(&s, &rss, EOPNOTSUPP, "a table and a send queue");
	rss = rss_attr(&s);
	rss.cap.max_recv_wr = 1;
	rss.recv_cq = s.cqs[0];
	qp_refused(&s, &rss, EINVAL, "a table and a receive queue");
	rss = rss_attr(&s);
	rss.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	rss.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	qp_refused(&s, &rss, EOPNOTSUPP, "without VLAN tags");
	rss.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	qp_refused(&s, &rss, 0, "without what it sends itself");
	rss = rss_attr(&s);
	set_net_raw(false);
	qp_refused(&s, &rss, EPERM, "without CAP_NET_RAW");
	set_net_raw(true);

	/* The QP has no state, and requests cannot be posted to it. */
	link_errno(ibv_modify_qp(s.qp, &to_init, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP, "to INIT");
	link_errno(ibv_post_recv(s.qp, &recv_wr, &bad_recv), EINVAL, "a receive");
	if (bad_recv != &recv_wr)
		tb_fail("a receive that is refused is not bad_wr");
	link_errno(ibv_query_qp(s.qp, &attr, IBV_QP_STATE, &init), 0, "ibv_query_qp");
	if (attr.qp_state != IBV_QPS_RTR || init.cap.max_send_wr || init.cap.max_recv_wr || init.sq_sig_all)
		tb_fail("state %d, %u sends, %u receives, all signaled: %d", attr.qp_state, init.cap.max_send_wr,
			init.cap.max_recv_wr, init.sq_sig_all);
	link_errno(ibv_post_recv(s.qp, &recv_wr, &bad_recv), EINVAL, "a receive, once the state is known");
	link_errno(ibv_post_send(s.qp, &send_wr, &bad_send), EINVAL, "a send");
	if (bad_send != &send_wr)
		tb_fail("a send that is refused is not bad_wr");

	flow = own_flow(s.qp, 0);
	link_errno(ibv_destroy_qp(s.qp), EBUSY, "a QP that has a flow");
	end_flow(flow, "the flow");
	spread_close(&s);
}

/* The objects of a process are destroyed when it exits, even if it had all of them. */
void rss_gone_processes(void)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_flow *flow;
	int round, status, i;
	struct packet p;
	struct spread s;
	struct raw a;
	pid_t child;

	for (round = 0; round < 2; round++) {
		fflush(stdout);
		child = fork();
		if (!child) {
			struct tb_side side;

			link_open_owner_again(&side);
			spread_open(&s, &side, ALL_FIELDS);
			if (!own_flow(s.qp, 0))
				_exit(1);
			for (i = 1; i < GROUPS; i++) {
				attr = rss_attr(&s);
				if (!make_table(&s, s.wqs, 1) || !ibv_create_qp_ex(side.ctx, &attr))
					_exit(2);
			}
			attr = rss_attr(&s);
			if (ibv_create_qp_ex(side.ctx, &attr) || errno != ENOMEM)
				_exit(3);
			_exit(make_table(&s, s.wqs, 1) || errno != ENOMEM ? 4 : 0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			tb_die("a child");
		if (status)
			tb_fail("a process with all tables: status 0x%x", status);
	}
	raw_open(&a, &link_asker);
	spread_open(&s, link_owner, ALL_FIELDS);
	flow = own_flow(s.qp, 0);
	p = usual_packet();
	send_and_find(&s, &a, &p, "a frame after all");
	nothing_left(&s, "frames in other queues");
	end_flow(flow, "the flow after all");
	spread_close(&s);
	raw_close(&a);
}
