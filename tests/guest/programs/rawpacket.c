// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Raw packet QPs, the flows that steer frames to them, and receive work queues over
 * which frames are distributed (rss.c):
 * PROGRAM plain|extended DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * a sends frames, to b's port or to a multicast address; b's QPs receive the frames
 * of their flows. To show that a flow does not match a frame, the test sends another
 * frame that matches: frames stay in order.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rawpacket.h"

#define RECEIVES	16
#define FRAME_BYTES	200
#define ROCE_PORT	4791
#define MASKS		64		/* maximum number of different masks of the HCA */
#define FRAME_ID	100

static const uint8_t group_mac[6] = { 0x01, 0x00, 0x5e, 0x42, 0x17, 0x05 };
static const uint8_t stranger_mac[6] = { 0x02, 0x42, 0x17, 0x05, 0x11, 0x99 };
static const uint8_t all_ones[16] = { [0 ... 15] = 0xff };

/* ------------------------------------------------------------------ */
/* Frames                                                               */

static uint8_t *put16(uint8_t *to, uint16_t value)
{
	value = htons(value);
	memcpy(to, &value, 2);
	return to + 2;
}

static uint8_t *put32(uint8_t *to, uint32_t value)
{
	return put16(put16(to, value >> 16), value);
}

static void ipv6_address(uint8_t *to, uint32_t end)
{
	memset(to, 0, 16);
	put32(to, 0xfd004217);
	put32(to + 12, end);
}

static uint8_t *put_ipv4(uint8_t *to, const struct packet *p, uint16_t payload)
{
	to = put32(to, 0x45000000 | (uint32_t)p->tos << 16 | (20 + payload));
	to = put32(to, 0x00004000);
	to = put32(to, (uint32_t)p->ttl << 24 | (uint32_t)p->protocol << 16);
	return put32(put32(to, p->src), p->dst);
}

static uint8_t *put_ipv6(uint8_t *to, const struct packet *p, uint16_t payload)
{
	to = put32(to, 6u << 28 | (uint32_t)p->tos << 20 | p->label);
	to = put32(to, (uint32_t)payload << 16 | (uint32_t)p->protocol << 8 | p->ttl);
	ipv6_address(to, p->src);
	ipv6_address(to + 16, p->dst);
	return to + 32;
}

/* Builds the frame; the payload identifies it. */
void build(uint8_t *frame, const struct packet *p)
{
	static uint8_t seed;
	uint8_t *at = frame + 12;
	uint32_t i;

	memcpy(frame, p->dmac, 6);
	memcpy(frame + 6, p->smac, 6);
	if (p->tci >= 0)
		at = put32(at, 0x81000000u | p->tci);
	at = put16(at, p->type);
	if (p->type == 0x0800)
		at = put_ipv4(at, p, p->bytes - (at - frame) - 20);
	else if (p->type == 0x86dd)
		at = put_ipv6(at, p, p->bytes - (at - frame) - 40);
	if (p->type != TEST_TYPE)
		at = put16(put16(at, p->sport), p->dport);
	if (p->type != TEST_TYPE && p->protocol == IPPROTO_UDP)
		at = put32(at, (p->bytes - (at - frame) + 4) << 16);
	seed += 41;
	for (i = at - frame; i < p->bytes; i++)
		frame[i] = seed + i * 7 + (i >> 8);
}

/* ------------------------------------------------------------------ */
/* QPs                                                                  */

static uint8_t asker_mac[6], owner_mac[6];

/* Reads the MAC from the link-local GID, which contains it as EUI-64 (RFC 4291, appendix A). */
void find_mac(struct tb_side *side, uint8_t *mac)
{
	union ibv_gid gid;
	int i;

	for (i = 0; !ibv_query_gid(side->ctx, 1, i, &gid); i++) {
		if (gid.raw[0] != 0xfe || gid.raw[1] != 0x80 || gid.raw[11] != 0xff || gid.raw[12] != 0xfe)
			continue;
		memcpy(mac, gid.raw + 8, 3);
		memcpy(mac + 3, gid.raw + 13, 3);
		mac[0] ^= 2;
		return;
	}
	tb_die("no link-local GID");
}

struct packet usual_packet(void)
{
	struct packet p = {
		.tci = -1, .type = 0x0800, .src = 0x0a2a0001, .dst = 0x0a2a0002, .protocol = IPPROTO_UDP,
		.tos = 0x20, .ttl = 61, .label = 0x12345, .sport = 5001, .dport = 5002, .bytes = FRAME_BYTES,
	};

	find_mac(&link_asker, asker_mac);
	find_mac(link_owner, owner_mac);
	memcpy(p.dmac, owner_mac, 6);
	memcpy(p.smac, asker_mac, 6);
	return p;
}

static void post_receive(struct raw *r, uint32_t slot, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)r->q.buf + slot * SLOT, length, r->q.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	memset(r->q.buf + slot * SLOT, 0, SLOT);
	link_errno(ibv_post_recv(r->q.qp, &wr, &bad), 0, "ibv_post_recv");
	r->posted++;
}

static void raw_state(struct raw *r, enum ibv_qp_state state, int mask, const char *what)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1 };

	link_errno(ibv_modify_qp(r->q.qp, &attr, IBV_QP_STATE | mask), 0, what);
}

static void raw_start(struct raw *r)
{
	raw_state(r, IBV_QPS_INIT, IBV_QP_PORT, "raw QP to INIT");
	raw_state(r, IBV_QPS_RTR, 0, "raw QP to RTR");
	raw_state(r, IBV_QPS_RTS, 0, "raw QP to RTS");
}

static struct ibv_qp_init_attr_ex raw_attr(struct tb_side *side, struct ibv_cq *scq, struct ibv_cq *rcq)
{
	return (struct ibv_qp_init_attr_ex) {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (link_extended ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = side->pd,
		.send_cq = scq,
		.recv_cq = rcq,
		.cap = { .max_send_wr = 8, .max_recv_wr = RECEIVES, .max_send_sge = 2, .max_recv_sge = 2,
			 .max_inline_data = 256 },
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
}

void raw_open(struct raw *r, struct tb_side *side)
{
	struct ibv_qp_init_attr_ex attr;
	uint32_t i;

	memset(r, 0, sizeof(*r));
	r->q.side = side;
	r->q.scq = link_make_cq(side, NULL);
	r->q.rcq = link_make_cq(side, NULL);
	attr = raw_attr(side, r->q.scq, r->q.rcq);
	r->q.qp = ibv_create_qp_ex(side->ctx, &attr);
	if (!r->q.qp)
		tb_die("a raw packet QP");
	r->q.buf = aligned_alloc(4096, TB_BUF_BYTES);
	r->q.mr = ibv_reg_mr(side->pd, r->q.buf, TB_BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!r->q.mr)
		tb_die("ibv_reg_mr");
	raw_start(r);
	for (i = 0; i < RECEIVES; i++)
		post_receive(r, i, SLOT);
}

void raw_close(struct raw *r)
{
	tb_qp_destroy(&r->q);
}

static void sent(struct raw *r, const char *what)
{
	const struct ibv_wc want = { .wr_id = FRAME_ID, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND };

	link_expect_wc(&r->q, r->q.scq, &want, what);
}

/* Posts the frame at SEND_AT, in two pieces or inline. */
static int raw_post(struct raw *r, uint32_t bytes, bool inlined)
{
	uint8_t *frame = r->q.buf + SEND_AT;
	struct ibv_sge sges[2] = {
		{ (uintptr_t)frame, 20, r->q.mr->lkey },
		{ (uintptr_t)frame + 20, bytes - 20, r->q.mr->lkey },
	};
	struct ibv_send_wr wr = {
		.wr_id = FRAME_ID, .sg_list = sges, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (inlined ? IBV_SEND_INLINE : 0),
	}, *bad;
	struct ibv_qp_ex *qp;

	if (!link_extended)
		return ibv_post_send(r->q.qp, &wr, &bad);
	qp = ibv_qp_to_qp_ex(r->q.qp);
	ibv_wr_start(qp);
	qp->wr_id = FRAME_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	if (inlined)
		ibv_wr_set_inline_data(qp, frame, bytes);
	else
		ibv_wr_set_sge_list(qp, 2, sges);
	return ibv_wr_complete(qp);
}

void send_packet(struct raw *from, const struct packet *p, const char *what)
{
	build(from->q.buf + SEND_AT, p);
	link_errno(raw_post(from, p->bytes, false), 0, what);
	sent(from, what);
}

/* Is it a frame of build()?  Other frames are those of the net devices, and the tests ignore them. */
bool is_ours(const uint8_t *frame, uint32_t bytes)
{
	uint16_t type = frame[12] << 8 | frame[13];
	uint8_t source[16];

	if (type == 0x8100) {
		frame += TAG_BYTES;
		bytes -= TAG_BYTES;
		type = frame[12] << 8 | frame[13];
	}
	if (type == 0x0800 && bytes >= ETH_BYTES + 20)
		return frame[ETH_BYTES + 12] == 0x0a && frame[ETH_BYTES + 13] == 0x2a;
	ipv6_address(source, 0);
	if (type == 0x86dd && bytes >= ETH_BYTES + 40)
		return !memcmp(frame + ETH_BYTES + 8, source, 12);
	return type == TEST_TYPE;
}

/* Checks that no unexpected frame of the test has arrived. */
static void nothing_left(struct raw *r, const char *what)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->q.rcq, 1, &wc)) {
		if (wc.status != IBV_WC_SUCCESS || is_ours(r->q.buf + wc.wr_id * SLOT, wc.byte_len))
			tb_fail("%s: a receive too many, \"%s\"", what, ibv_wc_status_str(wc.status));
		else
			post_receive(r, wc.wr_id, SLOT);
	}
}

/* Returns the next frame of the test, in its slot; NULL: none arrives, or a completion in error. */
static const uint8_t *next_frame(struct raw *to, struct ibv_wc *wc, const char *what)
{
	const uint8_t *data;

	while (link_next_wc(to->q.rcq, wc, what)) {
		if (wc->status != IBV_WC_SUCCESS || wc->wr_id >= RECEIVES) {
			tb_fail("%s: id %llu, \"%s\"", what, (unsigned long long)wc->wr_id,
				ibv_wc_status_str(wc->status));
			return NULL;
		}
		data = to->q.buf + wc->wr_id * SLOT;
		if (is_ours(data, wc->byte_len))
			return data;
		post_receive(to, wc->wr_id, SLOT);
	}
	return NULL;
}

/* Checks that the last frame of `from` is the next one here, byte for byte. */
static void received(struct raw *to, const struct raw *from, const struct packet *p, const char *what)
{
	const uint8_t *data;
	struct ibv_wc wc;
	uint32_t i;

	data = next_frame(to, &wc, what);
	if (!data)
		return;
	if (wc.opcode != IBV_WC_RECV || wc.wc_flags || wc.byte_len != p->bytes || wc.qp_num != to->q.qp->qp_num)
		tb_fail("%s: opcode %d, flags 0x%x, %u bytes, expected %u", what, wc.opcode, wc.wc_flags,
			wc.byte_len, p->bytes);
	if (memcmp(data, from->q.buf + SEND_AT, p->bytes))
		tb_fail("%s: another frame", what);
	for (i = p->bytes; i < SLOT; i++)
		if (data[i])
			tb_fail("%s: byte %u behind the frame is written", what, i);
	post_receive(to, wc.wr_id, SLOT);
}

/* ------------------------------------------------------------------ */
/* Flows                                                                */

struct flow_attr new_flow(enum ibv_flow_attr_type type, uint16_t priority)
{
	return (struct flow_attr) {
		.attr = { .type = type, .size = sizeof(struct ibv_flow_attr), .priority = priority, .port = 1 },
	};
}

static void add_spec(struct flow_attr *flow, const void *spec, uint16_t size)
{
	memcpy((uint8_t *)flow + flow->attr.size, spec, size);
	flow->attr.size += size;
	flow->attr.num_of_specs++;
}

void add_eth(struct flow_attr *flow, const uint8_t *dmac, uint16_t type, int vlan)
{
	struct ibv_flow_spec_eth spec = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(spec) };

	if (dmac) {
		memcpy(spec.val.dst_mac, dmac, 6);
		memset(spec.mask.dst_mac, 0xff, 6);
	}
	if (type) {
		spec.val.ether_type = htons(type);
		spec.mask.ether_type = 0xffff;
	}
	if (vlan >= 0) {
		spec.val.vlan_tag = htons(vlan);
		spec.mask.vlan_tag = htons(0x0fff);
	}
	add_spec(flow, &spec, sizeof(spec));
}

void add_ports(struct flow_attr *flow, enum ibv_flow_spec_type type, uint16_t src, uint16_t dst)
{
	struct ibv_flow_spec_tcp_udp spec = { .type = type, .size = sizeof(spec) };

	spec.val.src_port = htons(src);
	spec.val.dst_port = htons(dst);
	spec.mask.src_port = src ? 0xffff : 0;
	spec.mask.dst_port = dst ? 0xffff : 0;
	add_spec(flow, &spec, sizeof(spec));
}

static struct ibv_flow *try_flow(struct raw *r, struct flow_attr *flow)
{
	errno = 0;
	return ibv_create_flow(r->q.qp, &flow->attr);
}

struct ibv_flow *make_flow_of(struct ibv_qp *qp, struct flow_attr *flow, const char *what)
{
	struct ibv_flow *made = ibv_create_flow(qp, &flow->attr);

	if (!made)
		tb_fail("%s: %s", what, strerror(errno));
	return made;
}

static struct ibv_flow *make_flow(struct raw *r, struct flow_attr *flow, const char *what)
{
	return make_flow_of(r->q.qp, flow, what);
}

void end_flow(struct ibv_flow *flow, const char *what)
{
	if (flow)
		link_errno(ibv_destroy_flow(flow), 0, what);
}

/* Frames to b's own address. */
static struct ibv_flow *own_flow(struct raw *r, uint16_t priority, const char *what)
{
	struct flow_attr flow = new_flow(IBV_FLOW_ATTR_NORMAL, priority);

	find_mac(link_owner, owner_mac);
	add_eth(&flow, owner_mac, TEST_TYPE, -1);
	return make_flow(r, &flow, what);
}

static void flow_refused(struct raw *r, struct flow_attr *flow, int error, const char *what)
{
	struct ibv_flow *made = try_flow(r, flow);

	link_errno(made ? 0 : errno, error, what);
	end_flow(made, what);
}

/* ------------------------------------------------------------------ */
/* Cases                                                                */

static void frames(void)
{
	static const uint32_t sizes[] = { 60, 61, 64, 255, 256, 1024, 1500, 1514 };
	struct packet p = usual_packet();
	struct ibv_flow *flow;
	struct raw a, b;
	size_t i;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	p.type = TEST_TYPE;
	flow = own_flow(&b, 0, "a flow");
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		p.bytes = sizes[i];
		send_packet(&a, &p, "a frame");
		received(&b, &a, &p, "a frame");
	}
	p.bytes = 256;
	build(a.q.buf + SEND_AT, &p);
	link_errno(raw_post(&a, p.bytes, true), 0, "an inline frame");
	sent(&a, "an inline frame");
	received(&b, &a, &p, "an inline frame");
	/* More frames than the size of the queues, in turns. */
	for (i = 0; i < 10 * RECEIVES; i++) {
		p.bytes = 60 + i * 7;
		send_packet(&a, &p, "one of many");
		received(&b, &a, &p, "one of many");
	}
	end_flow(flow, "ibv_destroy_flow");
	raw_close(&a);
	raw_close(&b);
}

static void eth_flow(struct flow_attr *flow) { add_eth(flow, owner_mac, 0, -1); }
static void type_flow(struct flow_attr *flow) { add_eth(flow, owner_mac, TEST_TYPE, -1); }
static void vlan_flow(struct flow_attr *flow) { add_eth(flow, owner_mac, 0, 42); }

static void source_flow(struct flow_attr *flow)
{
	struct ibv_flow_spec_eth spec = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(spec) };

	memcpy(spec.val.src_mac, stranger_mac, 6);
	memset(spec.mask.src_mac, 0xff, 6);
	add_spec(flow, &spec, sizeof(spec));
}

static void add_ipv4(struct flow_attr *flow, uint32_t dst, uint32_t mask, uint8_t protocol)
{
	struct ibv_flow_spec_ipv4_ext spec = { .type = IBV_FLOW_SPEC_IPV4_EXT, .size = sizeof(spec) };

	add_eth(flow, owner_mac, 0, -1);
	spec.val.dst_ip = htonl(dst);
	spec.mask.dst_ip = htonl(mask);
	spec.val.proto = protocol;
	spec.mask.proto = protocol ? 0xff : 0;
	add_spec(flow, &spec, sizeof(spec));
}

static void ipv4_flow(struct flow_attr *flow) { add_ipv4(flow, 0x0a2a0002, 0xffffffff, 0); }
static void network_flow(struct flow_attr *flow) { add_ipv4(flow, 0x0a2a0000, 0xffff0000, 0); }
static void protocol_flow(struct flow_attr *flow) { add_ipv4(flow, 0, 0, IPPROTO_ICMP); }

static void udp_flow(struct flow_attr *flow)
{
	add_ipv4(flow, 0x0a2a0002, 0xffffffff, 0);
	add_ports(flow, IBV_FLOW_SPEC_UDP, 5001, 5002);
}

static void tcp_flow(struct flow_attr *flow)
{
	add_ipv4(flow, 0, 0, 0);
	add_ports(flow, IBV_FLOW_SPEC_TCP, 0, 5002);
}

static void ipv6_flow(struct flow_attr *flow)
{
	struct ibv_flow_spec_ipv6 spec = { .type = IBV_FLOW_SPEC_IPV6, .size = sizeof(spec) };

	add_eth(flow, owner_mac, 0, -1);
	ipv6_address(spec.val.dst_ip, 0x0a2a0002);
	memcpy(spec.mask.dst_ip, all_ones, 16);
	spec.val.flow_label = htonl(0x12345);
	spec.mask.flow_label = htonl(0xfffff);
	spec.val.hop_limit = 61;
	spec.mask.hop_limit = 0xff;
	add_spec(flow, &spec, sizeof(spec));
}

static void ipv6_udp_flow(struct flow_attr *flow)
{
	ipv6_flow(flow);
	add_ports(flow, IBV_FLOW_SPEC_UDP, 0, 5002);
}

static void as_it_is(struct packet *p) { (void)p; }
static void to_stranger(struct packet *p) { memcpy(p->dmac, stranger_mac, 6); }
static void from_stranger(struct packet *p) { memcpy(p->smac, stranger_mac, 6); }
static void of_test_type(struct packet *p) { p->type = TEST_TYPE; }
static void in_vlan(struct packet *p) { p->tci = 0x602a; }
static void in_other_vlan(struct packet *p) { p->tci = 0x602b; }
static void to_neighbour(struct packet *p) { p->dst = 0x0a2affff; }
static void to_elsewhere(struct packet *p) { p->dst = 0x0a2b0002; }
static void icmp(struct packet *p) { p->protocol = IPPROTO_ICMP; }
static void tcp(struct packet *p) { p->protocol = IPPROTO_TCP; }
static void other_port(struct packet *p) { p->sport = 5003; }
static void ipv6(struct packet *p) { p->type = 0x86dd; }
static void ipv6_other_label(struct packet *p) { p->type = 0x86dd, p->label = 0x12344; }
static void ipv6_other_port(struct packet *p) { p->type = 0x86dd, p->dport = 5003; }

static const struct {
	const char *what;
	void (*flow)(struct flow_attr *flow);
	void (*hit)(struct packet *p);
	void (*miss)(struct packet *p);
} spec_cases[] = {
	{ "source MAC", source_flow, from_stranger, as_it_is },
	{ "destination MAC", eth_flow, as_it_is, to_stranger },
	{ "type", type_flow, of_test_type, as_it_is },
	{ "VLAN", vlan_flow, in_vlan, in_other_vlan },
	{ "VLAN, not untagged", vlan_flow, in_vlan, as_it_is },
	{ "IPv4 address", ipv4_flow, as_it_is, to_neighbour },
	{ "IPv4, not IPv6", ipv4_flow, as_it_is, ipv6 },
	{ "IPv4 network", network_flow, to_neighbour, to_elsewhere },
	{ "protocol", protocol_flow, icmp, as_it_is },
	{ "UDP ports", udp_flow, as_it_is, other_port },
	{ "UDP, not TCP", udp_flow, as_it_is, tcp },
	{ "TCP port", tcp_flow, tcp, as_it_is },
	{ "IPv6 address", ipv6_flow, ipv6, as_it_is },
	{ "flow label", ipv6_flow, ipv6, ipv6_other_label },
	{ "UDP over IPv6", ipv6_udp_flow, ipv6, ipv6_other_port },
};

/* A frame that does not match is followed by one that matches. */
static void specifications(void)
{
	struct packet usual = usual_packet();
	struct raw a, b;
	size_t i;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	for (i = 0; i < ARRAY_SIZE(spec_cases); i++) {
		struct flow_attr attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
		struct packet hit = usual, miss = usual;
		struct ibv_flow *flow;

		spec_cases[i].flow(&attr);
		spec_cases[i].hit(&hit);
		spec_cases[i].miss(&miss);
		flow = make_flow(&b, &attr, spec_cases[i].what);
		send_packet(&a, &miss, spec_cases[i].what);
		send_packet(&a, &hit, spec_cases[i].what);
		received(&b, &a, &hit, spec_cases[i].what);
		end_flow(flow, spec_cases[i].what);
		/* Without its flow, no frame arrives. */
		send_packet(&a, &hit, spec_cases[i].what);
	}
	nothing_left(&b, "without flows");
	raw_close(&a);
	raw_close(&b);
}

static void priorities(void)
{
	struct packet p = usual_packet();
	struct ibv_flow *first, *second;
	struct raw a, b, c;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	raw_open(&c, link_owner);
	p.type = TEST_TYPE;
	second = own_flow(&c, 7, "the second");
	send_packet(&a, &p, "to the second");
	received(&c, &a, &p, "to the second");
	first = own_flow(&b, 6, "the first");
	send_packet(&a, &p, "to the first");
	received(&b, &a, &p, "to the first");
	end_flow(first, "the first ends");
	send_packet(&a, &p, "to the second again");
	received(&c, &a, &p, "to the second again");
	/* The same priority: both. */
	first = own_flow(&b, 7, "an equal");
	send_packet(&a, &p, "to both");
	received(&b, &a, &p, "to one");
	received(&c, &a, &p, "to the other");
	end_flow(first, "the equal ends");
	end_flow(second, "the second ends");
	nothing_left(&b, "the first");
	nothing_left(&c, "the second");
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
}

static void multicast(void)
{
	struct flow_attr attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0), late = new_flow(IBV_FLOW_ATTR_MC_DEFAULT, 0);
	struct packet p = usual_packet();
	struct ibv_flow *flows[4];
	struct raw a, b, c, d;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	raw_open(&c, link_owner);
	raw_open(&d, link_owner);
	p.type = TEST_TYPE;
	memcpy(p.dmac, group_mac, 6);
	add_eth(&attr, group_mac, 0, -1);
	flows[0] = make_flow(&a, &attr, "the sender's flow");
	flows[1] = make_flow(&b, &attr, "a flow of a group");
	flows[2] = make_flow(&c, &attr, "another");
	flows[3] = make_flow(&d, &late, "what no other flow takes");
	send_packet(&a, &p, "to a group");
	received(&b, &a, &p, "of a group");
	received(&c, &a, &p, "of a group, another");
	nothing_left(&a, "what one sends oneself");
	nothing_left(&d, "what other flows have taken");
	end_flow(flows[3], "the flow of what no other takes");
	end_flow(flows[2], "another flow of the group");
	end_flow(flows[1], "a flow of the group");
	end_flow(flows[0], "the sender's flow");
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
	raw_close(&d);
}

static void defaults(void)
{
	struct flow_attr all = new_flow(IBV_FLOW_ATTR_ALL_DEFAULT, 0), groups = new_flow(IBV_FLOW_ATTR_MC_DEFAULT, 0);
	struct packet p = usual_packet();
	struct ibv_flow *flows[3];
	struct raw a, b, c, d;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	raw_open(&c, link_owner);
	raw_open(&d, link_owner);
	p.type = TEST_TYPE;
	flows[0] = make_flow(&b, &all, "everything");
	flows[1] = make_flow(&c, &groups, "all groups");
	flows[2] = own_flow(&d, 65535, "a flow of its own");
	send_packet(&a, &p, "to the one with a flow");
	received(&d, &a, &p, "to the one with a flow");
	end_flow(flows[2], "the flow of its own");
	send_packet(&a, &p, "to nobody else");
	received(&b, &a, &p, "to nobody else");
	memcpy(p.dmac, group_mac, 6);
	send_packet(&a, &p, "to a group that nobody names");
	received(&c, &a, &p, "to a group that nobody names");
	memset(p.dmac, 0xff, 6);
	send_packet(&a, &p, "to everybody");
	received(&c, &a, &p, "to everybody");
	end_flow(flows[1], "all groups");
	send_packet(&a, &p, "to everybody, again");
	received(&b, &a, &p, "to everybody, again");
	end_flow(flows[0], "everything");
	raw_close(&a);
	raw_close(&b);
	raw_close(&c);
	raw_close(&d);
}

/* The RDMA engine receives RoCE frames, regardless of flows. */
static void engine_first(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct flow_attr attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	struct ibv_flow *flow;
	struct tb_pair pair;
	struct raw b;

	find_mac(link_owner, owner_mac);
	raw_open(&b, link_owner);
	add_eth(&attr, owner_mac, 0, -1);
	add_ports(&attr, IBV_FLOW_SPEC_UDP, 0, ROCE_PORT);
	flow = make_flow(&b, &attr, "RoCE for a raw QP");
	tb_pair_create(&pair, &link_asker, link_owner, &opts);
	tb_check_traffic(&pair, "traffic beside a flow for its port");
	tb_pair_destroy(&pair);
	nothing_left(&b, "packets of others");
	end_flow(flow, "the flow");
	raw_close(&b);
}

/* Frames longer than the receive, or without a receive, are dropped; later ones arrive. */
static void dropped(void)
{
	struct packet p = usual_packet();
	struct ibv_flow *flow;
	struct raw a, b;
	uint32_t i;

	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	raw_state(&b, IBV_QPS_RESET, 0, "raw QP to RESET");
	raw_start(&b);
	p.type = TEST_TYPE;
	flow = own_flow(&b, 0, "a flow");
	send_packet(&a, &p, "without a receive");
	post_receive(&b, 0, p.bytes - 1);
	send_packet(&a, &p, "longer than the receive");
	p.bytes--;
	send_packet(&a, &p, "as long as the receive");
	received(&b, &a, &p, "as long as the receive");
	for (i = 1; i < 4; i++)
		post_receive(&b, i, SLOT);
	/* A flow outlives the RESET of its QP. */
	raw_state(&b, IBV_QPS_RESET, 0, "raw QP to RESET, with a flow");
	send_packet(&a, &p, "to a QP in RESET");
	raw_start(&b);
	post_receive(&b, 5, SLOT);
	send_packet(&a, &p, "to a QP that is back");
	received(&b, &a, &p, "to a QP that is back");
	nothing_left(&b, "what was dropped");
	end_flow(flow, "the flow");
	raw_close(&a);
	raw_close(&b);
}

static void bad_sends(void)
{
	struct packet p = usual_packet();
	struct ibv_send_wr wr = { .wr_id = FRAME_ID, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_sge sge;
	struct raw a;

	raw_open(&a, &link_asker);
	build(a.q.buf + SEND_AT, &p);
	sge = (struct ibv_sge) { (uintptr_t)a.q.buf + SEND_AT, p.bytes, a.q.mr->lkey };
	wr.sg_list = &sge;
	wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
	link_errno(ibv_post_send(a.q.qp, &wr, &bad), EINVAL, "a checksum to be made");
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	link_errno(ibv_post_send(a.q.qp, &wr, &bad), EINVAL, "immediate data");
	wr.opcode = IBV_WR_RDMA_WRITE;
	link_errno(ibv_post_send(a.q.qp, &wr, &bad), EINVAL, "a WRITE");
	tb_expect_none(a.q.scq, "what was refused");

	/* Shorter than a header. */
	wr.opcode = IBV_WR_SEND;
	sge.length = ETH_BYTES - 1;
	link_errno(ibv_post_send(a.q.qp, &wr, &bad), 0, "13 bytes");
	tb_expect(a.q.scq, FRAME_ID, IBV_WC_LOC_LEN_ERR, "13 bytes");
	tb_expect_state(&a.q, IBV_QPS_SQE, "after 13 bytes");
	raw_state(&a, IBV_QPS_RTS, 0, "raw QP back to RTS");
	/* Unmapped memory. */
	sge.length = p.bytes;
	sge.lkey ^= 0xff;
	link_errno(ibv_post_send(a.q.qp, &wr, &bad), 0, "a wrong lkey");
	tb_expect(a.q.scq, FRAME_ID, IBV_WC_LOC_PROT_ERR, "a wrong lkey");
	tb_expect_state(&a.q, IBV_QPS_SQE, "after a wrong lkey");
	raw_state(&a, IBV_QPS_RTS, 0, "raw QP back to RTS, again");
	send_packet(&a, &p, "a frame after all that");
	raw_close(&a);
}

static void bad_qps(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex attr;
	struct ibv_device_attr_ex device;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct raw a;

	if (ibv_query_device_ex(link_owner->ctx, NULL, &device))
		tb_die("ibv_query_device_ex");
	if (device.raw_packet_caps)
		tb_fail("the raw packet capabilities are 0x%x, expected 0", device.raw_packet_caps);
	if (!(device.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING))
		tb_fail("no flows, says ibv_query_device_ex");
	if (device.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM)
		tb_fail("checksums, says ibv_query_device_ex");

	cq = link_make_cq(link_owner, NULL);
	srq = ibv_create_srq(link_owner->pd, &srq_attr);
	if (!cq || !srq)
		tb_die("a CQ and an SRQ");
	attr = raw_attr(link_owner, cq, cq);
	attr.srq = srq;
	link_errno(ibv_create_qp_ex(link_owner->ctx, &attr) ? 0 : errno, EOPNOTSUPP, "with an SRQ");
	attr = raw_attr(link_owner, cq, cq);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM;
	link_errno(ibv_create_qp_ex(link_owner->ctx, &attr) ? 0 : errno, EOPNOTSUPP, "with immediate data");
	attr = raw_attr(link_owner, cq, cq);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	link_errno(ibv_create_qp_ex(link_owner->ctx, &attr) ? 0 : errno, EOPNOTSUPP, "with the FCS");
	attr.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	link_errno(ibv_create_qp_ex(link_owner->ctx, &attr) ? 0 : errno, EOPNOTSUPP, "without VLAN tags");
	ibv_destroy_srq(srq);
	ibv_destroy_cq(cq);

	/* A transition with an address, and one without the port. */
	raw_open(&a, link_owner);
	raw_state(&a, IBV_QPS_RESET, 0, "raw QP to RESET");
	link_errno(ibv_modify_qp(a.q.qp, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT }, IBV_QP_STATE), EINVAL,
		   "without a port");
	raw_state(&a, IBV_QPS_INIT, IBV_QP_PORT, "raw QP to INIT");
	link_errno(ibv_modify_qp(a.q.qp, &(struct ibv_qp_attr) { .qp_state = IBV_QPS_RTR, .qkey = 1 },
				 IBV_QP_STATE | IBV_QP_QKEY), EINVAL, "with a Q_Key");
	raw_close(&a);
}

static void bad_flows(void)
{
	struct ibv_flow_spec_action_tag tag = { IBV_FLOW_SPEC_ACTION_TAG, sizeof(tag), 7 };
	struct ibv_flow_spec_action_drop drop = { IBV_FLOW_SPEC_ACTION_DROP, sizeof(drop) };
	struct flow_attr attr;
	struct ibv_flow *flow;
	struct raw ud = {};
	struct tb_opts opts = tb_pair_defaults();
	struct raw b;

	raw_open(&b, link_owner);
	attr = new_flow(IBV_FLOW_ATTR_SNIFFER, 0);
	flow_refused(&b, &attr, EOPNOTSUPP, "a sniffer");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	attr.attr.port = 2;
	flow_refused(&b, &attr, EINVAL, "port 2");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	attr.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	flow_refused(&b, &attr, EOPNOTSUPP, "a flow that lets frames go on");
	attr.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS;
	flow_refused(&b, &attr, EOPNOTSUPP, "a flow of what is sent");
	attr = new_flow(IBV_FLOW_ATTR_ALL_DEFAULT, 0);
	add_eth(&attr, group_mac, 0, -1);
	flow_refused(&b, &attr, EINVAL, "everything, but not all of it");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	add_eth(&attr, group_mac, 0, -1);
	add_spec(&attr, &tag, sizeof(tag));
	flow_refused(&b, &attr, EOPNOTSUPP, "a tag");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	add_eth(&attr, group_mac, 0, -1);
	add_spec(&attr, &drop, sizeof(drop));
	flow_refused(&b, &attr, EOPNOTSUPP, "frames to be dropped");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	add_ports(&attr, IBV_FLOW_SPEC_UDP, 1, 2);
	add_ports(&attr, IBV_FLOW_SPEC_TCP, 1, 2);
	flow_refused(&b, &attr, EINVAL, "UDP and TCP");

	flow = own_flow(&b, 3, "a flow");
	attr = new_flow(IBV_FLOW_ATTR_NORMAL, 3);
	add_eth(&attr, owner_mac, TEST_TYPE, -1);
	flow_refused(&b, &attr, EEXIST, "the same flow again");
	link_errno(ibv_destroy_qp(b.q.qp), EBUSY, "a QP that has a flow");
	end_flow(flow, "the flow");

	tb_qp_create(&ud.q, link_owner, IBV_QPT_UD, &opts);
	flow_refused(&ud, &attr, EOPNOTSUPP, "a flow of a UD QP");
	tb_qp_destroy(&ud.q);
	tb_qp_create(&ud.q, link_owner, IBV_QPT_RC, &opts);
	flow_refused(&ud, &attr, EINVAL, "a flow of an RC QP");
	tb_qp_destroy(&ud.q);
	raw_close(&b);
}

/* Effective capabilities with or without CAP_NET_RAW. */
void set_net_raw(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		tb_die("capget");
	if (on)
		data[0].effective |= 1u << CAP_NET_RAW;
	else
		data[0].effective &= ~(1u << CAP_NET_RAW);
	if (syscall(SYS_capset, &header, data))
		tb_die("capset");
}

static void no_privilege(void)
{
	struct flow_attr flow = new_flow(IBV_FLOW_ATTR_NORMAL, 0);
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;
	struct raw b;

	raw_open(&b, link_owner);
	add_eth(&flow, group_mac, 0, -1);
	attr = raw_attr(link_owner, b.q.scq, b.q.rcq);
	set_net_raw(false);
	errno = 0;
	qp = ibv_create_qp_ex(link_owner->ctx, &attr);
	link_errno(qp ? 0 : errno, EPERM, "a raw packet QP without CAP_NET_RAW");
	flow_refused(&b, &flow, EPERM, "a flow without CAP_NET_RAW");
	set_net_raw(true);
	end_flow(make_flow(&b, &flow, "a flow with CAP_NET_RAW"), "a flow with CAP_NET_RAW");
	raw_close(&b);
}

static struct flow_attr masked_flow(uint8_t bits)
{
	struct ibv_flow_spec_eth spec = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(spec) };
	struct flow_attr attr = new_flow(IBV_FLOW_ATTR_NORMAL, 0);

	memcpy(spec.val.dst_mac, group_mac, 6);
	memset(spec.mask.dst_mac, 0xff, 6);
	spec.val.ether_type = htons(TEST_TYPE);
	spec.mask.ether_type = 0xffff;
	spec.mask.src_mac[5] = bits;
	add_spec(&attr, &spec, sizeof(spec));
	return attr;
}

/* All masks are used; the flows of a process are destroyed when it exits. */
static void gone_processes(void)
{
	struct ibv_flow *flows[MASKS] = {};
	struct packet p = usual_packet();
	struct flow_attr attr;
	struct raw a, b;
	int round, status, i;
	pid_t child;

	p.type = TEST_TYPE;
	memcpy(p.dmac, group_mac, 6);
	for (round = 0; round < 2; round++) {
		fflush(stdout);
		child = fork();
		if (!child) {
			struct tb_side side;

			link_open_owner_again(&side);
			raw_open(&b, &side);
			for (i = 0; i < MASKS; i++) {
				attr = masked_flow(i + 1);
				if (!try_flow(&b, &attr))
					_exit(1);
			}
			attr = masked_flow(MASKS + 1);
			_exit(try_flow(&b, &attr) || errno != ENOMEM ? 2 : 0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child)
			tb_die("a child");
		if (status)
			tb_fail("a process with all masks: status 0x%x", status);
	}
	/* All masks are free again, and a destroyed QP does not receive. */
	raw_open(&a, &link_asker);
	raw_open(&b, link_owner);
	for (i = 0; i < MASKS; i++) {
		attr = masked_flow(i + 1);
		flows[i] = make_flow(&b, &attr, "one of all masks");
	}
	for (i = 0; i < MASKS; i++)
		end_flow(flows[i], "one of all masks");
	attr = masked_flow(0);
	flows[0] = make_flow(&b, &attr, "a flow after all");
	send_packet(&a, &p, "a frame after all");
	received(&b, &a, &p, "a frame after all");
	end_flow(flows[0], "the flow after all");
	raw_close(&a);
	raw_close(&b);
}

static const struct tb_case cases[] = {
	{ "frames", frames },
	{ "specifications", specifications },
	{ "priorities", priorities },
	{ "multicast", multicast },
	{ "defaults", defaults },
	{ "the engine first", engine_first },
	{ "dropped, reset", dropped },
	{ "refused: sends", bad_sends },
	{ "refused: QPs", bad_qps },
	{ "refused: flows", bad_flows },
	{ "no privilege", no_privilege },
	{ "processes that are gone", gone_processes },
	{ "RSS: what there is", rss_capabilities },
	{ "RSS: frames", rss_frames },
	{ "RSS: fields", rss_fields },
	{ "RSS: QPs of one table", rss_shared_table },
	{ "RSS: states of a queue", rss_states },
	{ "RSS: a queue that fails", rss_failing_queue },
	{ "RSS: queues, tables refused", rss_bad_queues },
	{ "RSS: QPs refused", rss_bad_qps },
	{ "RSS: processes that are gone", rss_gone_processes },
};

int main(int argc, char **argv)
{
	return link_run(cases, ARRAY_SIZE(cases), argc, argv);
}
