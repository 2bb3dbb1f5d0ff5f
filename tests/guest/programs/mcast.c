// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Multicast groups: which QPs receive a datagram and which do not, with each byte
 * compared, and requests that must be refused.
 *
 * mcast DEVICE GID-INDEX [DEVICE GID-INDEX NETNS] [-- CASE...]
 *
 * With one device, senders and members are on it; with two, senders are on the
 * first and members on both. `mcast hold DEVICE GID-INDEX` fills a group, reports it
 * and waits until it is killed.
 *
 * To show that a QP received no datagram of a group, the test then sends a datagram
 * only to this QP, on the same path. It must be the next one that the QP receives.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "testbed.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define GROUP_MAX	56	/* QPs of a group */
#define GROUPS		100
#define GROUP_QPN	0xffffff
#define QKEY		0x2345
#define GRH_BYTES	40
#define RECEIVES	8
#define SLOT_BYTES	4608	/* a header and the longest datagram */
#define SEND_AT		(RECEIVES * SLOT_BYTES)

extern char **environ;

static struct tb_side side_a, side_b;
static struct tb_side *far_side;
static const char *device_a, *gid_index_a;
static uint8_t next_seed;

/* ------------------------------------------------------------------ */
/* Groups and members                                                   */

/* 239.9.n or ff0e::9:n, of the family of side a's address. */
static union ibv_gid group_in(bool ipv4, unsigned int number)
{
	union ibv_gid gid = { .raw = { [14] = number >> 8, [15] = number } };

	if (ipv4) {
		memset(&gid.raw[10], 0xff, 2);
		gid.raw[12] = 239;
		gid.raw[13] = 9;
	} else {
		gid.raw[0] = 0xff;
		gid.raw[1] = 0x0e;
		gid.raw[13] = 9;
	}
	return gid;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static union ibv_gid group(unsigned int number)
{
	return group_in(is_ipv4(&side_a.gid), number);
}

struct member {
	struct tb_qp q;
	unsigned int taken;	/* receives that have completed */
};

static void post_receive(struct member *m, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)m->q.buf + slot * SLOT_BYTES, SLOT_BYTES, m->q.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(m->q.qp, &wr, &bad))
		tb_die("ibv_post_recv");
}

static void post_receives(struct member *m)
{
	unsigned int slot;

	for (slot = 0; slot < RECEIVES; slot++)
		post_receive(m, slot);
}

static void open_with(struct member *m, struct tb_side *side, uint32_t qkey, bool receives)
{
	struct tb_opts opts = tb_pair_defaults();

	m->taken = 0;
	tb_qp_create(&m->q, side, IBV_QPT_UD, &opts);
	tb_ud_start(&m->q, qkey);
	if (receives)
		post_receives(m);
}

static void open_member(struct member *m, struct tb_side *side)
{
	open_with(m, side, QKEY, true);
}

static void close_member(struct member *m)
{
	tb_qp_destroy(&m->q);
}

static bool expect_errno(int got, int expected, const char *what)
{
	if (got == expected)
		return true;
	tb_fail("%s: %s, expected %s", what, strerror(got), strerror(expected));
	return false;
}

static int try_attach(struct member *m, union ibv_gid gid)
{
	return ibv_attach_mcast(m->q.qp, &gid, 0);
}

static int try_detach(struct member *m, union ibv_gid gid)
{
	return ibv_detach_mcast(m->q.qp, &gid, 0);
}

static void attach(struct member *m, union ibv_gid gid)
{
	expect_errno(try_attach(m, gid), 0, "attach");
}

static void detach(struct member *m, union ibv_gid gid)
{
	expect_errno(try_detach(m, gid), 0, "detach");
}

/* ------------------------------------------------------------------ */
/* Datagrams                                                            */

/* A datagram that was sent. */
struct datagram {
	uint8_t seed;
	uint32_t length;
	uint32_t src_qpn;
	union ibv_gid dgid;
};

static uint8_t pattern(uint8_t seed, uint32_t at)
{
	return seed + at * 7 + (at >> 8);
}

static uint32_t longest(void)
{
	return 128U << (side_a.mtu < far_side->mtu ? side_a.mtu : far_side->mtu);
}

static struct datagram send_to(struct member *from, union ibv_gid dgid, uint32_t qpn, uint32_t length)
{
	struct datagram sent = { next_seed++, length, from->q.qp->qp_num, dgid };
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = dgid, .sgid_index = from->q.side->gid_index, .hop_limit = 64 },
	};
	struct ibv_sge sge = { (uintptr_t)from->q.buf + SEND_AT, length, from->q.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = sent.seed,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = sent.seed,
	}, *bad;
	struct ibv_ah *ah = ibv_create_ah(from->q.side->pd, &to);
	uint32_t i;

	if (!ah)
		tb_die("ibv_create_ah");
	for (i = 0; i < length; i++)
		from->q.buf[SEND_AT + i] = pattern(sent.seed, i);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	if (ibv_post_send(from->q.qp, &wr, &bad))
		tb_die("ibv_post_send");
	tb_expect(from->q.scq, sent.seed, IBV_WC_SUCCESS, "sending a datagram");
	if (ibv_destroy_ah(ah))
		tb_die("ibv_destroy_ah");
	return sent;
}

static struct datagram send_to_group(struct member *from, union ibv_gid gid, uint32_t length)
{
	return send_to(from, gid, GROUP_QPN, length);
}

/* Annex A17.4.5.1: an IPv4 header is in the last 20 of the 40 bytes. */
static bool header_is_right(const uint8_t *grh, const struct datagram *d)
{
	if (grh[0] >> 4 == 6)
		return !memcmp(grh + 24, d->dgid.raw, 16);
	return grh[20] == 0x45 && is_ipv4(&d->dgid) && !memcmp(grh + 36, d->dgid.raw + 12, 4);
}

/* The next datagram that `m` receives is this one, complete; its receive is posted again. */
static bool gets(struct member *m, const struct datagram *d, const char *who)
{
	const uint8_t *data;
	struct ibv_wc wc;
	uint32_t i;

	if (!tb_poll(m->q.rcq, &wc, who))
		return false;
	data = m->q.buf + wc.wr_id * SLOT_BYTES;
	m->taken++;
	if (wc.status || wc.opcode != IBV_WC_RECV || wc.qp_num != m->q.qp->qp_num) {
		tb_fail("%s: status \"%s\", opcode %d, QP 0x%x", who, ibv_wc_status_str(wc.status), wc.opcode,
			wc.qp_num);
		return false;
	}
	if (wc.byte_len != GRH_BYTES + d->length || wc.src_qp != d->src_qpn || wc.imm_data != d->seed ||
	    (wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM)) != (IBV_WC_GRH | IBV_WC_WITH_IMM)) {
		tb_fail("%s: datagram %u of %u bytes from QP 0x%x, flags 0x%x; expected %u of %u from QP 0x%x", who,
			wc.imm_data, wc.byte_len, wc.src_qp, wc.wc_flags, d->seed, GRH_BYTES + d->length, d->src_qpn);
		return false;
	}
	if (!header_is_right(data, d)) {
		tb_fail("%s: not to the address it was sent to", who);
		return false;
	}
	/* The network header and UDP, as UCX expects them. */
	if (wc.sl != (data[0] >> 4 == 6 ? 9 : 10)) {
		tb_fail("%s: SL %u", who, wc.sl);
		return false;
	}
	for (i = 0; i < d->length; i++) {
		if (data[GRH_BYTES + i] == pattern(d->seed, i))
			continue;
		tb_fail("%s: byte %u of %u is wrong", who, i, d->length);
		return false;
	}
	post_receive(m, wc.wr_id);
	return true;
}

/* The next datagram is one that is sent only to `m`, after all others. */
static bool got_no_more(struct member *m, struct member *from, const char *who)
{
	struct datagram last = send_to(from, m->q.side->gid, m->q.qp->qp_num, 8);

	return gets(m, &last, who) && tb_expect_none(m->q.rcq, who);
}

/* ------------------------------------------------------------------ */
/* Delivery                                                             */

static void members_of_both(void)
{
	uint32_t lengths[] = { 0, 1, 3, 100, 255, 256, 1000, 1024, longest() - 1, longest() };
	struct member sender, near, far_one, far_two, stranger;
	union ibv_gid gid = group(1);
	unsigned int round;
	uint32_t i;

	open_member(&sender, &side_a);
	open_member(&near, &side_a);
	open_member(&far_one, far_side);
	open_member(&far_two, far_side);
	open_member(&stranger, far_side);
	attach(&near, gid);
	attach(&far_one, gid);
	attach(&far_two, gid);
	for (round = 0; round < 3 && !tb_failed(); round++) {
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			struct datagram d = send_to_group(&sender, gid, lengths[i]);

			gets(&near, &d, "the member beside the sender");
			gets(&far_one, &d, "the first member on the far side");
			gets(&far_two, &d, "the second member on the far side");
		}
		got_no_more(&near, &sender, "the member beside the sender");
		got_no_more(&far_one, &sender, "the first member on the far side");
		got_no_more(&far_two, &sender, "the second member on the far side");
		got_no_more(&stranger, &sender, "who is no member");
		got_no_more(&sender, &near, "the sender");
	}
	detach(&near, gid);
	detach(&far_one, gid);
	detach(&far_two, gid);
	close_member(&sender);
	close_member(&near);
	close_member(&far_one);
	close_member(&far_two);
	close_member(&stranger);
}

/* IBA vol 1, 10.5: to all other attached QPs. */
static void sender_is_member(void)
{
	struct member one, two, far;
	union ibv_gid gid = group(2);
	unsigned int i;

	open_member(&one, &side_a);
	open_member(&two, &side_a);
	open_member(&far, far_side);
	attach(&one, gid);
	attach(&two, gid);
	attach(&far, gid);
	for (i = 0; i < 10 && !tb_failed(); i++) {
		struct datagram d = send_to_group(&one, gid, 500 + i);

		gets(&two, &d, "the second");
		gets(&far, &d, "the far one");
		got_no_more(&one, &two, "the first, which has sent it");
		d = send_to_group(&two, gid, 400 + i);
		gets(&one, &d, "the first");
		gets(&far, &d, "the far one");
		got_no_more(&two, &one, "the second, which has sent it");
		d = send_to_group(&far, gid, 300 + i);
		gets(&one, &d, "the first");
		gets(&two, &d, "the second");
		got_no_more(&far, &one, "the far one, which has sent it");
	}
	detach(&one, gid);
	detach(&two, gid);
	detach(&far, gid);
	close_member(&one);
	close_member(&two);
	close_member(&far);
}

static void detached(void)
{
	struct member sender, stays, goes;
	union ibv_gid gid = group(3);
	struct datagram d;
	unsigned int i;

	open_member(&sender, &side_a);
	open_member(&stays, far_side);
	open_member(&goes, far_side);
	attach(&stays, gid);
	for (i = 0; i < 20 && !tb_failed(); i++) {
		attach(&goes, gid);
		d = send_to_group(&sender, gid, 64);
		gets(&stays, &d, "who stays");
		gets(&goes, &d, "who has come");
		detach(&goes, gid);
		d = send_to_group(&sender, gid, 65);
		gets(&stays, &d, "who stays");
		got_no_more(&goes, &sender, "who has gone");
	}
	detach(&stays, gid);
	d = send_to_group(&sender, gid, 66);
	got_no_more(&stays, &sender, "who has stayed, and gone");
	close_member(&sender);
	close_member(&stays);
	close_member(&goes);
}

static void wrong_qkey(void)
{
	struct member sender, right, wrong;
	union ibv_gid gid = group(4);
	unsigned int i;

	open_member(&sender, &side_a);
	open_member(&right, far_side);
	open_with(&wrong, far_side, QKEY + 1, true);
	attach(&wrong, gid);
	attach(&right, gid);
	for (i = 0; i < 5; i++) {
		struct datagram d = send_to_group(&sender, gid, 100);

		gets(&right, &d, "who has the Q_Key");
	}
	got_no_more(&right, &sender, "who has the Q_Key");
	tb_expect_none(wrong.q.rcq, "who has another Q_Key");
	detach(&wrong, gid);
	detach(&right, gid);
	close_member(&sender);
	close_member(&right);
	close_member(&wrong);
}

static void without_receives(void)
{
	struct member sender, empty, other;
	union ibv_gid gid = group(5);
	struct datagram d;
	unsigned int i;

	open_member(&sender, &side_a);
	open_with(&empty, far_side, QKEY, false);
	open_member(&other, far_side);
	attach(&empty, gid);
	attach(&other, gid);
	for (i = 0; i < 5; i++) {
		d = send_to_group(&sender, gid, 100);
		gets(&other, &d, "who has receives");
	}
	got_no_more(&other, &sender, "who has receives");
	tb_expect_none(empty.q.rcq, "who has no receives");
	/* It works as before, and the datagrams that it missed are lost. */
	post_receives(&empty);
	d = send_to_group(&sender, gid, 200);
	gets(&other, &d, "who has receives");
	gets(&empty, &d, "who has receives now");
	tb_expect_state(&empty.q, IBV_QPS_RTS, "who had no receives");
	detach(&empty, gid);
	detach(&other, gid);
	close_member(&sender);
	close_member(&empty);
	close_member(&other);
}

/* Its number stays in the group, and it receives again when it is ready. */
static void reset_member(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct member sender, m, other;
	union ibv_gid gid = group(6);
	struct datagram d;

	open_member(&sender, &side_a);
	open_member(&m, far_side);
	open_member(&other, far_side);
	attach(&m, gid);
	attach(&other, gid);
	if (ibv_modify_qp(m.q.qp, &attr, IBV_QP_STATE))
		tb_die("QP to RESET");
	d = send_to_group(&sender, gid, 100);
	gets(&other, &d, "the other");
	tb_ud_start(&m.q, QKEY);
	post_receives(&m);
	d = send_to_group(&sender, gid, 101);
	gets(&other, &d, "the other");
	gets(&m, &d, "who was reset");
	detach(&m, gid);
	detach(&other, gid);
	close_member(&sender);
	close_member(&m);
	close_member(&other);
}

static void attached_in_reset(void)
{
	struct tb_opts opts = tb_pair_defaults();
	struct member sender, m = { .taken = 0 };
	union ibv_gid gid = group(7);
	struct datagram d;

	open_member(&sender, &side_a);
	tb_qp_create(&m.q, far_side, IBV_QPT_UD, &opts);
	attach(&m, gid);
	send_to_group(&sender, gid, 100);
	tb_ud_start(&m.q, QKEY);
	post_receives(&m);
	d = send_to_group(&sender, gid, 101);
	gets(&m, &d, "who was attached in RESET");
	detach(&m, gid);
	close_member(&sender);
	close_member(&m);
}

static void share_an_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct tb_opts opts = tb_pair_defaults();
	struct member sender, one = { .taken = 0 }, two = { .taken = 0 };
	union ibv_gid gid = group(8);
	uint64_t slots = 0;
	unsigned int i;

	open_member(&sender, &side_a);
	opts.srq = ibv_create_srq(far_side->pd, &init);
	if (!opts.srq)
		tb_die("ibv_create_srq");
	tb_qp_create(&one.q, far_side, IBV_QPT_UD, &opts);
	tb_qp_create(&two.q, far_side, IBV_QPT_UD, &opts);
	tb_ud_start(&one.q, QKEY);
	tb_ud_start(&two.q, QKEY);
	for (i = 0; i < 3; i++) {
		struct ibv_sge sge = { (uintptr_t)one.q.buf + i * SLOT_BYTES, SLOT_BYTES, one.q.mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (ibv_post_srq_recv(opts.srq, &wr, &bad))
			tb_die("ibv_post_srq_recv");
	}
	attach(&one, gid);
	attach(&two, gid);
	send_to_group(&sender, gid, 300);
	for (i = 0; i < 2; i++) {
		struct ibv_cq *cq = i ? two.q.rcq : one.q.rcq;
		struct ibv_wc wc;
		uint32_t at;

		if (!tb_poll(cq, &wc, "a member with the SRQ"))
			break;
		if (wc.status || wc.byte_len != GRH_BYTES + 300 || slots & 1ULL << wc.wr_id)
			tb_fail("member %u: status \"%s\", %u bytes, receive %llu", i, ibv_wc_status_str(wc.status),
				wc.byte_len, (unsigned long long)wc.wr_id);
		slots |= 1ULL << wc.wr_id;
		for (at = 0; at < 300; at++)
			if (one.q.buf[wc.wr_id * SLOT_BYTES + GRH_BYTES + at] != pattern(next_seed - 1, at))
				break;
		if (at < 300)
			tb_fail("member %u: byte %u is wrong", i, at);
	}
	detach(&one, gid);
	detach(&two, gid);
	close_member(&one);
	close_member(&two);
	if (ibv_destroy_srq(opts.srq))
		tb_die("ibv_destroy_srq");
	close_member(&sender);
}

/* The address of the sender and that of the group may be of different families. */
static void other_family(void)
{
	union ibv_gid gid = group_in(!is_ipv4(&side_a.gid), 9);
	struct member sender, near, far;
	struct datagram d;

	open_member(&sender, &side_a);
	open_member(&near, &side_a);
	open_member(&far, far_side);
	attach(&near, gid);
	attach(&far, gid);
	d = send_to_group(&sender, gid, 1000);
	gets(&near, &d, "the member beside the sender");
	gets(&far, &d, "the member on the far side");
	got_no_more(&near, &sender, "the member beside the sender");
	got_no_more(&far, &sender, "the member on the far side");
	detach(&near, gid);
	detach(&far, gid);
	close_member(&sender);
	close_member(&near);
	close_member(&far);
}

/* ------------------------------------------------------------------ */
/* Many                                                                 */

static void full_group(void)
{
	static struct member members[GROUP_MAX + 1];
	union ibv_gid gid = group(10);
	struct member sender;
	struct datagram d;
	unsigned int i;

	open_member(&sender, &side_a);
	for (i = 0; i <= GROUP_MAX; i++)
		open_member(&members[i], far_side);
	for (i = 0; i < GROUP_MAX; i++)
		attach(&members[i], gid);
	expect_errno(try_attach(&members[GROUP_MAX], gid), ENOMEM, "one QP more than a group takes");
	d = send_to_group(&sender, gid, 777);
	for (i = 0; i < GROUP_MAX && !tb_failed(); i++)
		gets(&members[i], &d, "one of 56");
	got_no_more(&members[GROUP_MAX], &sender, "who was refused");
	/* There is room after one is detached. */
	detach(&members[20], gid);
	attach(&members[GROUP_MAX], gid);
	expect_errno(try_attach(&members[20], gid), ENOMEM, "who has gone");
	d = send_to_group(&sender, gid, 778);
	for (i = 0; i <= GROUP_MAX && !tb_failed(); i++)
		if (i != 20)
			gets(&members[i], &d, "one of 56");
	got_no_more(&members[20], &sender, "who has gone");
	for (i = 0; i <= GROUP_MAX; i++)
		if (i != 20)
			detach(&members[i], gid);
	for (i = 0; i <= GROUP_MAX; i++)
		close_member(&members[i]);
	close_member(&sender);
}

static void many_groups(void)
{
	struct member sender, all, odd;
	unsigned int i;

	open_member(&sender, &side_a);
	open_member(&all, far_side);
	open_member(&odd, far_side);
	for (i = 0; i < GROUPS; i++) {
		attach(&all, group_in(i & 2, 1000 + i));
		if (i & 1)
			attach(&odd, group_in(i & 2, 1000 + i));
	}
	for (i = 0; i < GROUPS && !tb_failed(); i++) {
		struct datagram d = send_to_group(&sender, group_in(i & 2, 1000 + i), i);

		gets(&all, &d, "who is in all groups");
		if (i & 1)
			gets(&odd, &d, "who is in every other group");
	}
	/* In another order than they were attached. */
	for (i = 0; i < GROUPS; i++) {
		unsigned int gone = i * 37 % GROUPS;

		detach(&all, group_in(gone & 2, 1000 + gone));
	}
	for (i = 1; i < GROUPS && !tb_failed(); i += 2) {
		struct datagram d = send_to_group(&sender, group_in(i & 2, 1000 + i), i);

		gets(&odd, &d, "who stays in every other group");
		detach(&odd, group_in(i & 2, 1000 + i));
	}
	got_no_more(&all, &sender, "who was in all groups");
	got_no_more(&odd, &sender, "who was in every other group");
	close_member(&sender);
	close_member(&all);
	close_member(&odd);
}

/* ------------------------------------------------------------------ */
/* Refused requests                                                     */

static void refused(void)
{
	static const union ibv_gid bad_gids[] = {
		{ .raw = { 0 } },
		{ .raw = { [15] = 1 } },
		{ .raw = { 0xfe, 0x80, [15] = 1 } },
		{ .raw = { [10] = 0xff, [11] = 0xff, 223, 255, 255, 255 } },
		{ .raw = { [10] = 0xff, [11] = 0xff, 240, 0, 0, 1 } },
		{ .raw = { [10] = 0xff, [11] = 0xff, 255, 255, 255, 255 } },
		{ .raw = { [12] = 239, 1, 2, 3 } },
	};
	struct tb_opts opts = tb_pair_defaults();
	struct tb_qp rc, uc;
	struct member m;
	unsigned int i;

	open_member(&m, &side_a);
	for (i = 0; i < ARRAY_SIZE(bad_gids); i++) {
		expect_errno(try_attach(&m, bad_gids[i]), EINVAL, "attach to what is no group");
		expect_errno(try_detach(&m, bad_gids[i]), EINVAL, "detach from what is no group");
	}
	expect_errno(try_attach(&m, side_a.gid), EINVAL, "attach to the own address");
	expect_errno(try_detach(&m, group(11)), EINVAL, "detach what is not attached");
	attach(&m, group(11));
	expect_errno(try_detach(&m, group(12)), EINVAL, "detach from another group");
	detach(&m, group(11));
	expect_errno(try_detach(&m, group(11)), EINVAL, "detach twice");
	tb_qp_create(&rc, &side_a, IBV_QPT_RC, &opts);
	tb_qp_create(&uc, &side_a, IBV_QPT_UC, &opts);
	for (i = 0; i < 2; i++) {
		struct member connected = { .q = i ? uc : rc };

		expect_errno(try_attach(&connected, group(11)), EINVAL, "attach a connected QP");
		expect_errno(try_detach(&connected, group(11)), EINVAL, "detach a connected QP");
	}
	tb_qp_destroy(&rc);
	tb_qp_destroy(&uc);
	close_member(&m);
}

/*
 * A second attachment has no effect. With another LID, which has no meaning on Ethernet,
 * ib_core treats it as another attachment, which the driver refuses.
 */
static void attached_again(void)
{
	struct member sender, m;
	union ibv_gid gid = group(13);
	struct datagram d;

	open_member(&sender, &side_a);
	open_member(&m, far_side);
	attach(&m, gid);
	attach(&m, gid);
	expect_errno(ibv_attach_mcast(m.q.qp, &gid, 0xc001), EINVAL, "attach with another LID");
	expect_errno(ibv_detach_mcast(m.q.qp, &gid, 0xc001), EINVAL, "detach with another LID");
	d = send_to_group(&sender, gid, 50);
	gets(&m, &d, "who is attached");
	got_no_more(&m, &sender, "who was attached twice");
	detach(&m, gid);
	d = send_to_group(&sender, gid, 50);
	got_no_more(&m, &sender, "who was detached");
	expect_errno(try_detach(&m, gid), EINVAL, "detach twice");
	close_member(&sender);
	close_member(&m);
}

static void destroy_attached(void)
{
	struct member sender, m;
	union ibv_gid gid = group(14);
	struct datagram d;

	open_member(&sender, &side_a);
	open_member(&m, far_side);
	attach(&m, gid);
	expect_errno(ibv_destroy_qp(m.q.qp), EBUSY, "destroy what is attached");
	d = send_to_group(&sender, gid, 60);
	gets(&m, &d, "who could not be destroyed");
	detach(&m, gid);
	close_member(&sender);
	close_member(&m);
}

/* A QP never receives its own datagrams, so the flag that requests this is accepted. */
static void blocked_loopback(void)
{
	static const struct {
		enum ibv_qp_type type;
		uint32_t flags;
		int error;
	} asked[] = {
		{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, 0 },
		{ IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP },
		{ IBV_QPT_UD, IBV_QP_CREATE_SCATTER_FCS, EOPNOTSUPP },
		{ IBV_QPT_RC, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, EOPNOTSUPP },
	};
	struct ibv_cq *cq = ibv_create_cq(side_a.ctx, 4, NULL, NULL, 0);
	unsigned int i;

	if (!cq)
		tb_die("ibv_create_cq");
	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		struct ibv_qp_init_attr_ex init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
			.qp_type = asked[i].type,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
			.pd = side_a.pd,
			.create_flags = asked[i].flags,
		};
		struct ibv_qp *qp = ibv_create_qp_ex(side_a.ctx, &init);

		expect_errno(qp ? 0 : errno, asked[i].error, "create a QP with flags");
		if (qp && ibv_destroy_qp(qp))
			tb_die("ibv_destroy_qp");
	}
	if (ibv_destroy_cq(cq))
		tb_die("ibv_destroy_cq");
}

/* ------------------------------------------------------------------ */
/* A process that dies                                                  */

static void __attribute__((noreturn)) hold(const char *device, int gid_index)
{
	static struct member members[GROUP_MAX];
	unsigned int i;

	tb_side_open(&side_a, device, gid_index, NULL);
	for (i = 0; i < GROUP_MAX; i++) {
		open_member(&members[i], &side_a);
		attach(&members[i], group(15));
	}
	printf("%s\n", tb_failed() ? "failed" : "full");
	fflush(stdout);
	for (;;)
		pause();
}

/* Starts a process that fills the group; returns its process id. */
static pid_t start_holder(void)
{
	char *argv[] = { "mcast", "hold", (char *)device_a, (char *)gid_index_a, NULL };
	posix_spawn_file_actions_t actions;
	char said[64] = "";
	int pipe_fds[2];
	FILE *from;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) || posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], 1) ||
	    posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ))
		tb_die("starting a process");
	posix_spawn_file_actions_destroy(&actions);
	close(pipe_fds[1]);
	from = fdopen(pipe_fds[0], "r");
	if (!from || !fgets(said, sizeof(said), from) || strcmp(said, "full\n"))
		tb_fail("the other process said \"%s\"", said);
	if (from)
		fclose(from);
	return pid;
}

static void killed_while_attached(void)
{
	union ibv_gid gid = group(15);
	struct member m, sender;
	struct datagram d;
	unsigned int i;
	int status;

	open_member(&m, &side_a);
	open_member(&sender, &side_a);
	for (i = 0; i < 3 && !tb_failed(); i++) {
		pid_t pid = start_holder();

		expect_errno(try_attach(&m, gid), ENOMEM, "attach to a group that is full");
		send_to_group(&sender, gid, 100);
		if (kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
			tb_die("killing the other process");
		/* After the process is reaped, its resources are free. */
		attach(&m, gid);
		d = send_to_group(&sender, gid, 100);
		gets(&m, &d, "who took the place of the dead");
		got_no_more(&m, &sender, "who took the place of the dead");
		detach(&m, gid);
	}
	close_member(&m);
	close_member(&sender);
}

static const struct tb_case cases[] = {
	{ "members on both sides, every length", members_of_both },
	{ "a sender that is a member has none of its own", sender_is_member },
	{ "detached", detached },
	{ "wrong Q_Key", wrong_qkey },
	{ "a QP without receives", without_receives },
	{ "a member that is reset", reset_member },
	{ "attached in RESET", attached_in_reset },
	{ "members that share an SRQ", share_an_srq },
	{ "a group of the other address family", other_family },
	{ "full group", full_group },
	{ "100 groups", many_groups },
	{ "what is refused", refused },
	{ "attached again", attached_again },
	{ "destroyed while attached", destroy_attached },
	{ "loopback that is blocked anyway", blocked_loopback },
	{ "a process killed while attached", killed_while_attached },
};

int main(int argc, char **argv)
{
	int first;

	if (argc == 4 && !strcmp(argv[1], "hold"))
		hold(argv[2], atoi(argv[3]));
	first = tb_open_sides(&side_a, &side_b, &far_side, argc, argv);
	device_a = argv[1];
	gid_index_a = argv[2];
	return tb_run(cases, ARRAY_SIZE(cases), argc - first, argv + first, NULL);
}
