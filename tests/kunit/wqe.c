// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of work queue elements: what the encoders write, byte by byte, as
 * section 6 of the interface document and the units it names have it; and the
 * SQ doorbell of section 5.
 *
 * All words are little-endian; immediate data and GIDs are in wire order.
 */
#include <kunit/test.h>

#include "../../kernel/hghca.h"

#define WQE_SLOT	256
#define WQE_UNTOUCHED	0xcc

/* Room for three data units behind the longest head, or 44 bytes inline. */
static const struct hghca_wqe_room wqe_room = {
	.units = 7, .max_sge = 3, .max_inline = 44, .mem_mgt = true,
};

static const u8 wqe_text[64] = "The quick brown fox jumps over the lazy dog, again and again.";

#define WQE_SGE		{ .addr = 0x0102030405060708, .length = 0x1234, .lkey = 0x0badcafe }
#define WQE_SGE_2	{ .addr = 0xf0e0d0c0b0a09080, .length = 0x10, .lkey = 0x87654321 }
#define WQE_SGE_EMPTY	{ .addr = 0xffffffffffffffff, .length = 0, .lkey = 0xffffffff }
#define WQE_SGE_8	{ .addr = 0x1000, .length = 8, .lkey = 0x200 }
/* Of inline data, @addr is an offset in wqe_text. */
#define WQE_TEXT(at, bytes)	{ .addr = (at), .length = (bytes), .lkey = 0x77777777 }

/* The same as the device sees them: byte_cnt, lkey, addr. */
#define BYTES_SGE	0x34, 0x12, 0x00, 0x00, 0xfe, 0xca, 0xad, 0x0b, \
			0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01
#define BYTES_SGE_2	0x10, 0x00, 0x00, 0x00, 0x21, 0x43, 0x65, 0x87, \
			0x80, 0x90, 0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0
#define BYTES_SGE_8	0x08, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, \
			0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
/* nda_nop, nee_nds: 0 until the next WQE is linked; then flags. */
#define BYTES_NEXT(flags)	0, 0, 0, 0, 0, 0, 0, 0, (flags), 0, 0, 0, 0, 0, 0, 0
#define BYTES_NEXT_IMM(flags)	0, 0, 0, 0, 0, 0, 0, 0, (flags), 0, 0, 0, 0xde, 0xad, 0xbe, 0xef
/* raddr, rkey, reserved */
#define BYTES_RADDR	0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, \
			0xd4, 0xc3, 0xb2, 0xa1, 0, 0, 0, 0
/* port: GRH 31, hop limit 23:16, source GID index 15:8, port 7:0; DMAC 15:0 at 31:16;
 * SL 31:28, traffic class 27:20, flow label 19:0; DMAC 47:16; DGID; QPN; Q_Key; reserved
 */
#define BYTES_UD	0x01, 0x05, 0x40, 0x80, 0x00, 0x00, 0x56, 0x34, \
			0x45, 0x23, 0xa1, 0x35, 0x12, 0x00, 0x54, 0x52, \
			0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42, \
			0xef, 0xcd, 0xab, 0x00, 0x00, 0x00, 0x01, 0x80, \
			0, 0, 0, 0, 0, 0, 0, 0

/* flags: solicited 1, C 3 */
#define WQE_FLAG_S	0x02
#define WQE_FLAG_C	0x08

struct wqe_golden {
	const char *name;
	enum ib_wr_opcode opcode;
	int send_flags;
	int num_sge;
	struct ib_sge sge[4];
	bool signal_all;
	/* what is to come of it */
	u8 device_opcode;
	u32 length;
	bool fence;
	u8 units;
	u8 bytes[112];
};

static const struct wqe_golden wqe_rc[] = {
	{ "SEND, signaled", IB_WR_SEND, IB_SEND_SIGNALED, 1, { WQE_SGE },
	  .device_opcode = 0x0a, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), BYTES_SGE } },
	{ "SEND, not signaled", IB_WR_SEND, 0, 1, { WQE_SGE },
	  .device_opcode = 0x0a, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE } },
	{ "SEND, not signaled on a QP that signals all", IB_WR_SEND, 0, 1, { WQE_SGE },
	  .signal_all = true, .device_opcode = 0x0a, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), BYTES_SGE } },
	{ "SEND, solicited", IB_WR_SEND, IB_SEND_SOLICITED, 1, { WQE_SGE },
	  .device_opcode = 0x0a, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT(WQE_FLAG_S), BYTES_SGE } },
	{ "SEND, fenced", IB_WR_SEND, IB_SEND_FENCE, 1, { WQE_SGE },
	  .device_opcode = 0x0a, .length = 0x1234, .fence = true, .units = 2,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE } },
	{ "SEND of nothing", IB_WR_SEND, IB_SEND_SIGNALED, 0,
	  .device_opcode = 0x0a, .units = 1,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C) } },
	{ "SEND with as many SGEs as there may be", IB_WR_SEND, 0, 3,
	  { WQE_SGE, WQE_SGE_2, WQE_SGE_8 },
	  .device_opcode = 0x0a, .length = 0x124c, .units = 4,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE, BYTES_SGE_2, BYTES_SGE_8 } },
	{ "SEND, empty SGEs left out", IB_WR_SEND, 0, 3, { WQE_SGE_EMPTY, WQE_SGE, WQE_SGE_EMPTY },
	  .device_opcode = 0x0a, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE } },
	{ "SEND of 2^31 bytes", IB_WR_SEND, 0, 2,
	  { { .length = 0x40000000, .lkey = 1 }, { .length = 0x40000000, .lkey = 2 } },
	  .device_opcode = 0x0a, .length = 0x80000000, .units = 3,
	  .bytes = { BYTES_NEXT(0),
		     0, 0, 0, 0x40, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		     0, 0, 0, 0x40, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ "SEND_IMM", IB_WR_SEND_WITH_IMM, IB_SEND_SIGNALED | IB_SEND_SOLICITED, 1, { WQE_SGE },
	  .device_opcode = 0x0b, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT_IMM(WQE_FLAG_C | WQE_FLAG_S), BYTES_SGE } },
	{ "RDMA_WRITE", IB_WR_RDMA_WRITE, 0, 1, { WQE_SGE },
	  .device_opcode = 0x08, .length = 0x1234, .units = 3,
	  .bytes = { BYTES_NEXT(0), BYTES_RADDR, BYTES_SGE } },
	{ "RDMA_WRITE_IMM", IB_WR_RDMA_WRITE_WITH_IMM, IB_SEND_SIGNALED, 2, { WQE_SGE, WQE_SGE_2 },
	  .device_opcode = 0x09, .length = 0x1244, .units = 4,
	  .bytes = { BYTES_NEXT_IMM(WQE_FLAG_C), BYTES_RADDR, BYTES_SGE, BYTES_SGE_2 } },
	{ "RDMA_READ", IB_WR_RDMA_READ, IB_SEND_SIGNALED, 2, { WQE_SGE, WQE_SGE_2 },
	  .device_opcode = 0x10, .length = 0x1244, .units = 4,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), BYTES_RADDR, BYTES_SGE, BYTES_SGE_2 } },
	{ "ATOMIC_CS", IB_WR_ATOMIC_CMP_AND_SWP, IB_SEND_SIGNALED, 1, { WQE_SGE_8 },
	  .device_opcode = 0x11, .length = 8, .units = 4,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), BYTES_RADDR,
		     /* the value to put there, the value to compare with */
		     0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0x5a,
		     0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0xc0, BYTES_SGE_8 } },
	{ "ATOMIC_FA", IB_WR_ATOMIC_FETCH_AND_ADD, IB_SEND_FENCE, 1, { WQE_SGE_8 },
	  .device_opcode = 0x12, .length = 8, .fence = true, .units = 4,
	  .bytes = { BYTES_NEXT(0), BYTES_RADDR,
		     /* the value to add */
		     0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0xc0,
		     0, 0, 0, 0, 0, 0, 0, 0, BYTES_SGE_8 } },
	{ "ATOMIC_FA of 16 bytes, which the device judges", IB_WR_ATOMIC_FETCH_AND_ADD, 0, 1,
	  { WQE_SGE_2 },
	  .device_opcode = 0x12, .length = 16, .units = 4,
	  .bytes = { BYTES_NEXT(0), BYTES_RADDR,
		     0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0xc0,
		     0, 0, 0, 0, 0, 0, 0, 0, BYTES_SGE_2 } },
	/* The key stands where immediate data does, as it goes on the wire. */
	{ "SEND_INV", IB_WR_SEND_WITH_INV, IB_SEND_SIGNALED | IB_SEND_SOLICITED, 1, { WQE_SGE },
	  .device_opcode = 0x0c, .length = 0x1234, .units = 2,
	  .bytes = { BYTES_NEXT_IMM(WQE_FLAG_C | WQE_FLAG_S), BYTES_SGE } },
	{ "SEND_INV inline", IB_WR_SEND_WITH_INV, IB_SEND_INLINE, 1, { WQE_TEXT(0, 3) },
	  .device_opcode = 0x0c, .length = 3, .units = 2,
	  .bytes = { BYTES_NEXT_IMM(0), 0x03, 0, 0, 0x80, 'T', 'h', 'e' } },
	{ "LOCAL_INV", IB_WR_LOCAL_INV, IB_SEND_SIGNALED, 0,
	  .device_opcode = 0x1a, .units = 2,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), 0xef, 0xbe, 0xad, 0xde } },
	{ "LOCAL_INV, fenced, its list not looked at", IB_WR_LOCAL_INV, IB_SEND_FENCE, 99,
	  .device_opcode = 0x1a, .fence = true, .units = 2,
	  .bytes = { BYTES_NEXT(0), 0xef, 0xbe, 0xad, 0xde } },
	{ "SEND inline, 1 byte", IB_WR_SEND, IB_SEND_INLINE, 1, { WQE_TEXT(0, 1) },
	  .device_opcode = 0x0a, .length = 1, .units = 2,
	  .bytes = { BYTES_NEXT(0), 0x01, 0, 0, 0x80, 'T' } },
	{ "SEND inline, 12 bytes: a whole unit", IB_WR_SEND, IB_SEND_INLINE, 1,
	  { WQE_TEXT(4, 12) }, .device_opcode = 0x0a, .length = 12, .units = 2,
	  .bytes = { BYTES_NEXT(0), 0x0c, 0, 0, 0x80,
		     'q', 'u', 'i', 'c', 'k', ' ', 'b', 'r', 'o', 'w', 'n', ' ' } },
	{ "SEND inline, 13 bytes: a unit and padding", IB_WR_SEND, IB_SEND_INLINE, 1,
	  { WQE_TEXT(4, 13) }, .device_opcode = 0x0a, .length = 13, .units = 3,
	  .bytes = { BYTES_NEXT(0), 0x0d, 0, 0, 0x80,
		     'q', 'u', 'i', 'c', 'k', ' ', 'b', 'r', 'o', 'w', 'n', ' ', 'f' } },
	{ "SEND inline out of three places", IB_WR_SEND, IB_SEND_INLINE, 3,
	  { WQE_TEXT(4, 5), WQE_SGE_EMPTY, WQE_TEXT(16, 3) },
	  .device_opcode = 0x0a, .length = 8, .units = 2,
	  .bytes = { BYTES_NEXT(0), 0x08, 0, 0, 0x80, 'q', 'u', 'i', 'c', 'k', 'f', 'o', 'x' } },
	{ "SEND inline of nothing", IB_WR_SEND, IB_SEND_INLINE, 0,
	  .device_opcode = 0x0a, .units = 1, .bytes = { BYTES_NEXT(0) } },
	{ "RDMA_WRITE inline", IB_WR_RDMA_WRITE, IB_SEND_INLINE, 1, { WQE_TEXT(0, 3) },
	  .device_opcode = 0x08, .length = 3, .units = 3,
	  .bytes = { BYTES_NEXT(0), BYTES_RADDR, 0x03, 0, 0, 0x80, 'T', 'h', 'e' } },
	{ "SEND inline, as long as may be", IB_WR_SEND, IB_SEND_INLINE, 1, { WQE_TEXT(0, 44) },
	  .device_opcode = 0x0a, .length = 44, .units = 4,
	  .bytes = { BYTES_NEXT(0), 0x2c, 0, 0, 0x80,
		     'T', 'h', 'e', ' ', 'q', 'u', 'i', 'c', 'k', ' ', 'b', 'r', 'o', 'w', 'n',
		     ' ', 'f', 'o', 'x', ' ', 'j', 'u', 'm', 'p', 's', ' ', 'o', 'v', 'e', 'r',
		     ' ', 't', 'h', 'e', ' ', 'l', 'a', 'z', 'y', ' ', 'd', 'o', 'g', ',' } },
};

static const struct wqe_golden wqe_ud[] = {
	{ "SEND", IB_WR_SEND, IB_SEND_SIGNALED, 1, { WQE_SGE },
	  .device_opcode = 0x0a, .length = 0x1234, .units = 5,
	  .bytes = { BYTES_NEXT(WQE_FLAG_C), BYTES_UD, BYTES_SGE } },
	{ "SEND_IMM, solicited", IB_WR_SEND_WITH_IMM, IB_SEND_SOLICITED, 2,
	  { WQE_SGE_2, WQE_SGE_8 }, .device_opcode = 0x0b, .length = 0x18, .units = 6,
	  .bytes = { BYTES_NEXT_IMM(WQE_FLAG_S), BYTES_UD, BYTES_SGE_2, BYTES_SGE_8 } },
	{ "SEND inline", IB_WR_SEND, IB_SEND_INLINE, 1, { WQE_TEXT(0, 9) },
	  .device_opcode = 0x0a, .length = 9, .units = 5,
	  .bytes = { BYTES_NEXT(0), BYTES_UD,
		     0x09, 0, 0, 0x80, 'T', 'h', 'e', ' ', 'q', 'u', 'i', 'c', 'k' } },
	{ "SEND of nothing", IB_WR_SEND, 0, 0,
	  .device_opcode = 0x0a, .units = 4, .bytes = { BYTES_NEXT(0), BYTES_UD } },
};

static const struct wqe_golden wqe_recv[] = {
	{ "one SGE", .num_sge = 1, .sge = { WQE_SGE }, .length = 0x1234, .units = 3,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE, 0, 0, 0, 0, 0x00, 0x01 } },
	{ "as many SGEs as fill the slot", .num_sge = 3, .sge = { WQE_SGE, WQE_SGE_2, WQE_SGE_8 },
	  .length = 0x124c, .units = 4,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE, BYTES_SGE_2, BYTES_SGE_8 } },
	{ "empty SGEs left out", .num_sge = 3, .sge = { WQE_SGE_EMPTY, WQE_SGE_2, WQE_SGE_EMPTY },
	  .length = 0x10, .units = 3,
	  .bytes = { BYTES_NEXT(0), BYTES_SGE_2, 0, 0, 0, 0, 0x00, 0x01 } },
	{ "nothing", .num_sge = 0, .length = 0, .units = 2,
	  .bytes = { BYTES_NEXT(0), 0, 0, 0, 0, 0x00, 0x01 } },
};

static void wqe_golden_name(const struct wqe_golden *golden, char *desc)
{
	strscpy(desc, golden->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_rc, wqe_rc, wqe_golden_name);
KUNIT_ARRAY_PARAM(wqe_ud, wqe_ud, wqe_golden_name);
KUNIT_ARRAY_PARAM(wqe_recv, wqe_recv, wqe_golden_name);

/* A work request of any kind. */
union wqe_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_atomic_wr atomic;
	struct ib_ud_wr ud;
};

static void wqe_build(union wqe_wr *any, const struct wqe_golden *golden, struct ib_sge *sge)
{
	struct ib_send_wr *wr = &any->wr;
	int i;

	memset(any, 0, sizeof(*any));
	memcpy(sge, golden->sge, sizeof(golden->sge));
	if (golden->send_flags & IB_SEND_INLINE)
		for (i = 0; i < golden->num_sge; i++)
			sge[i].addr = (uintptr_t)wqe_text + (sge[i].length ? sge[i].addr : 0);
	wr->opcode = golden->opcode;
	wr->send_flags = golden->send_flags;
	wr->num_sge = golden->num_sge;
	wr->sg_list = sge;
	if (golden->opcode == IB_WR_SEND_WITH_INV || golden->opcode == IB_WR_LOCAL_INV)
		wr->ex.invalidate_rkey = 0xdeadbeef;
	else
		wr->ex.imm_data = cpu_to_be32(0xdeadbeef);
}

static void wqe_build_rc(union wqe_wr *any, const struct wqe_golden *golden, struct ib_sge *sge)
{
	wqe_build(any, golden, sge);
	if (golden->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	    golden->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		any->atomic.remote_addr = 0x1122334455667788;
		any->atomic.rkey = 0xa1b2c3d4;
		any->atomic.compare_add = 0xc011121314151617;
		any->atomic.swap = 0x5a01020304050607;
	} else {
		any->rdma.remote_addr = 0x1122334455667788;
		any->rdma.rkey = 0xa1b2c3d4;
	}
}

static void wqe_build_av(struct hghca_ud_gid_unit *av)
{
	static const u8 dmac[] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	static u8 dgid[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 0x42 };
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_sl(&attr, 3);
	rdma_ah_set_grh(&attr, NULL, 0x12345, 5, 0x40, 0x5a);
	rdma_ah_set_dgid_raw(&attr, dgid);
	memset(av, 0xff, sizeof(*av));
	hghca_wqe_encode_av(av, &attr, dmac);
}

static void wqe_build_ud(union wqe_wr *any, const struct wqe_golden *golden, struct ib_sge *sge)
{
	wqe_build(any, golden, sge);
	any->ud.remote_qpn = 0xabcdef;
	any->ud.remote_qkey = 0x80010000;
}

/* The WQE is what it shall be, and behind it nothing was touched. */
static void wqe_expect(struct kunit *test, const u8 *slot, const struct wqe_golden *golden)
{
	u32 bytes = golden->units * 16;

	KUNIT_EXPECT_MEMEQ(test, golden->bytes, slot, bytes);
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + bytes, WQE_UNTOUCHED, WQE_SLOT - bytes));
}

static void wqe_expect_info(struct kunit *test, const struct hghca_wqe_info *info,
			    const struct wqe_golden *golden)
{
	KUNIT_EXPECT_EQ(test, golden->device_opcode, info->opcode);
	KUNIT_EXPECT_EQ(test, golden->units, info->units);
	KUNIT_EXPECT_EQ(test, golden->length, info->length);
	KUNIT_EXPECT_EQ(test, golden->fence, info->fence);
}

static u8 *wqe_slot(struct kunit *test)
{
	u8 *slot = kunit_kmalloc(test, WQE_SLOT, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, slot);
	memset(slot, WQE_UNTOUCHED, WQE_SLOT);
	return slot;
}

static void wqe_rc_bytes(struct kunit *test)
{
	const struct wqe_golden *golden = test->param_value;
	struct hghca_wqe_room room = wqe_room;
	struct hghca_wqe_info info;
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	union wqe_wr any;

	room.signal_all = golden->signal_all;
	wqe_build_rc(&any, golden, sge);
	KUNIT_ASSERT_EQ(test, 0, hghca_wqe_encode_rc(slot, &room, &any.wr, &info));
	wqe_expect(test, slot, golden);
	wqe_expect_info(test, &info, golden);
}

static void wqe_ud_bytes(struct kunit *test)
{
	const struct wqe_golden *golden = test->param_value;
	struct hghca_wqe_info info;
	struct hghca_ud_gid_unit av;
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	union wqe_wr any;

	wqe_build_av(&av);
	wqe_build_ud(&any, golden, sge);
	KUNIT_ASSERT_EQ(test, 0, hghca_wqe_encode_ud(slot, &wqe_room, &av, &any.ud, &info));
	wqe_expect(test, slot, golden);
	wqe_expect_info(test, &info, golden);
}

static void wqe_recv_bytes(struct kunit *test)
{
	const struct wqe_golden *golden = test->param_value;
	static const struct hghca_wqe_room room = { .units = 4, .max_sge = 3 };
	struct ib_recv_wr wr = { .num_sge = golden->num_sge };
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	u32 length;

	memcpy(sge, golden->sge, sizeof(sge));
	wr.sg_list = sge;
	KUNIT_ASSERT_EQ(test, 0, hghca_wqe_encode_recv(slot, &room, &wr, &length));
	wqe_expect(test, slot, golden);
	KUNIT_EXPECT_EQ(test, golden->length, length);
}

/* ------------------------------------------------------------------ */
/* What the encoders refuse                                             */

static const struct wqe_golden wqe_rc_refused[] = {
	{ "one SGE too many", IB_WR_SEND, 0, 4, { WQE_SGE, WQE_SGE, WQE_SGE, WQE_SGE } },
	{ "fewer than no SGEs", IB_WR_SEND, 0, -1 },
	{ "2^31 + 1 bytes", IB_WR_SEND, 0, 2,
	  { { .length = 0x80000000 }, { .length = 1 } } },
	{ "2^32 bytes", IB_WR_RDMA_READ, 0, 2,
	  { { .length = 0x80000000 }, { .length = 0x80000000 } } },
	{ "one inline byte too many", IB_WR_SEND, IB_SEND_INLINE, 1, { WQE_TEXT(0, 45) } },
	{ "inline bytes too many in all", IB_WR_SEND, IB_SEND_INLINE, 2,
	  { WQE_TEXT(0, 44), WQE_TEXT(0, 1) } },
	{ "RDMA_READ inline", IB_WR_RDMA_READ, IB_SEND_INLINE, 1, { WQE_TEXT(0, 4) } },
	{ "ATOMIC_CS inline", IB_WR_ATOMIC_CMP_AND_SWP, IB_SEND_INLINE, 1, { WQE_TEXT(0, 8) } },
	{ "ATOMIC_FA in two parts", IB_WR_ATOMIC_FETCH_AND_ADD, 0, 2,
	  { { .length = 4 }, { .length = 4 } } },
	{ "ATOMIC_FA to nowhere", IB_WR_ATOMIC_FETCH_AND_ADD, 0, 0 },
	{ "LSO", IB_WR_LSO, 0, 1, { WQE_SGE } },
	{ "SEND_INV, one SGE too many", IB_WR_SEND_WITH_INV, 0, 4,
	  { WQE_SGE, WQE_SGE, WQE_SGE, WQE_SGE } },
	{ "REG_MR, which has an encoder of its own", IB_WR_REG_MR, 0, 0 },
	{ "masked ATOMIC_CS", IB_WR_MASKED_ATOMIC_CMP_AND_SWP, 0, 1, { WQE_SGE_8 } },
	{ "an opcode beyond all", (enum ib_wr_opcode)0x7fffffff, 0, 1, { WQE_SGE } },
	{ "an opcode below all", (enum ib_wr_opcode)-1, 0, 1, { WQE_SGE } },
};

static const struct wqe_golden wqe_ud_refused[] = {
	{ "one SGE too many", IB_WR_SEND, 0, 4, { WQE_SGE, WQE_SGE, WQE_SGE, WQE_SGE } },
	{ "one inline byte too many", IB_WR_SEND, IB_SEND_INLINE, 1, { WQE_TEXT(0, 45) } },
	{ "RDMA_WRITE", IB_WR_RDMA_WRITE, 0, 1, { WQE_SGE } },
	{ "RDMA_WRITE_IMM", IB_WR_RDMA_WRITE_WITH_IMM, 0, 1, { WQE_SGE } },
	{ "RDMA_READ", IB_WR_RDMA_READ, 0, 1, { WQE_SGE } },
	{ "ATOMIC_CS", IB_WR_ATOMIC_CMP_AND_SWP, 0, 1, { WQE_SGE_8 } },
	{ "ATOMIC_FA", IB_WR_ATOMIC_FETCH_AND_ADD, 0, 1, { WQE_SGE_8 } },
	{ "LSO", IB_WR_LSO, 0, 1, { WQE_SGE } },
	{ "SEND_INV", IB_WR_SEND_WITH_INV, 0, 1, { WQE_SGE } },
	{ "LOCAL_INV", IB_WR_LOCAL_INV, 0, 0 },
	{ "REG_MR", IB_WR_REG_MR, 0, 0 },
	{ "RDMA_READ_WITH_INV", IB_WR_RDMA_READ_WITH_INV, 0, 1, { WQE_SGE } },
};

static const struct wqe_golden wqe_recv_refused[] = {
	{ "one SGE too many", .num_sge = 4, .sge = { WQE_SGE, WQE_SGE, WQE_SGE, WQE_SGE } },
	{ "one SGE too many, though empty", .num_sge = 4,
	  .sge = { WQE_SGE_EMPTY, WQE_SGE_EMPTY, WQE_SGE_EMPTY, WQE_SGE_EMPTY } },
	{ "fewer than no SGEs", .num_sge = -1 },
	{ "2^31 + 1 bytes", .num_sge = 2, .sge = { { .length = 0x80000000 }, { .length = 1 } } },
};

KUNIT_ARRAY_PARAM(wqe_rc_refused, wqe_rc_refused, wqe_golden_name);
KUNIT_ARRAY_PARAM(wqe_ud_refused, wqe_ud_refused, wqe_golden_name);
KUNIT_ARRAY_PARAM(wqe_recv_refused, wqe_recv_refused, wqe_golden_name);

static void wqe_rc_is_refused(struct kunit *test)
{
	const struct wqe_golden *golden = test->param_value;
	struct hghca_wqe_info info;
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	union wqe_wr any;

	wqe_build_rc(&any, golden, sge);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_rc(slot, &wqe_room, &any.wr, &info));
	/* Whatever was written was written where it may. */
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + 112, WQE_UNTOUCHED, WQE_SLOT - 112));
}

static void wqe_ud_is_refused(struct kunit *test)
{
	const struct wqe_golden *golden = test->param_value;
	struct hghca_wqe_info info;
	struct hghca_ud_gid_unit av;
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	union wqe_wr any;

	wqe_build_av(&av);
	wqe_build_ud(&any, golden, sge);
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_ud(slot, &wqe_room, &av, &any.ud, &info));
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + 112, WQE_UNTOUCHED, WQE_SLOT - 112));
}

static void wqe_recv_is_refused(struct kunit *test)
{
	static const struct hghca_wqe_room room = { .units = 4, .max_sge = 3 };
	const struct wqe_golden *golden = test->param_value;
	struct ib_recv_wr wr = { .num_sge = golden->num_sge };
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	u32 length;

	memcpy(sge, golden->sge, sizeof(sge));
	wr.sg_list = sge;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_recv(slot, &room, &wr, &length));
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + 64, WQE_UNTOUCHED, WQE_SLOT - 64));
}

/* What the device may lack, and what it lacks always. */
static const struct wqe_missing {
	const char *name;
	enum ib_wr_opcode opcode;
	bool mem_mgt;
	int rc;
	int uc;
} wqe_missings[] = {
	{ "SEND_INV", IB_WR_SEND_WITH_INV, true, 0, -EINVAL },
	{ "LOCAL_INV", IB_WR_LOCAL_INV, true, 0, 0 },
	{ "RDMA_READ_WITH_INV", IB_WR_RDMA_READ_WITH_INV, true, -EOPNOTSUPP, -EOPNOTSUPP },
	{ "SEND", IB_WR_SEND, true, 0, 0 },
	{ "without MEM_MGT: SEND_INV", IB_WR_SEND_WITH_INV, false, -EOPNOTSUPP, -EOPNOTSUPP },
	{ "without MEM_MGT: LOCAL_INV", IB_WR_LOCAL_INV, false, -EOPNOTSUPP, -EOPNOTSUPP },
	{ "without MEM_MGT: RDMA_READ_WITH_INV", IB_WR_RDMA_READ_WITH_INV, false, -EOPNOTSUPP,
	  -EOPNOTSUPP },
	{ "without MEM_MGT: SEND", IB_WR_SEND, false, 0, 0 },
};

static void wqe_missing_name(const struct wqe_missing *missing, char *desc)
{
	strscpy(desc, missing->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_missing, wqe_missings, wqe_missing_name);

static void wqe_missing(struct kunit *test)
{
	const struct wqe_missing *missing = test->param_value;
	const struct ib_send_wr wr = { .opcode = missing->opcode };
	struct hghca_wqe_room room = wqe_room;
	struct hghca_wqe_info info;
	u8 *slot = wqe_slot(test);

	room.mem_mgt = missing->mem_mgt;
	KUNIT_EXPECT_EQ(test, missing->rc, hghca_wqe_encode_rc(slot, &room, &wr, &info));
	KUNIT_EXPECT_EQ(test, missing->uc, hghca_wqe_encode_uc(slot, &room, &wr, &info));
}

/* What a service lacks is announced by its opcode, with a next unit alone. */
static const struct wqe_lacking {
	const char *name;
	enum ib_wr_opcode opcode;
	int err;
	u8 device_opcode;
} wqe_lackings[] = {
	{ "RDMA_WRITE", IB_WR_RDMA_WRITE, 0, 0x08 },
	{ "RDMA_WRITE_IMM", IB_WR_RDMA_WRITE_WITH_IMM, 0, 0x09 },
	{ "RDMA_READ", IB_WR_RDMA_READ, 0, 0x10 },
	{ "ATOMIC_CS", IB_WR_ATOMIC_CMP_AND_SWP, 0, 0x11 },
	{ "ATOMIC_FA", IB_WR_ATOMIC_FETCH_AND_ADD, 0, 0x12 },
	{ "SEND_INV", IB_WR_SEND_WITH_INV, -EINVAL },
	{ "LOCAL_INV", IB_WR_LOCAL_INV, -EINVAL },
	{ "REG_MR", IB_WR_REG_MR, -EINVAL },
	{ "LSO", IB_WR_LSO, -EINVAL },
	{ "an opcode beyond all", (enum ib_wr_opcode)0x7fffffff, -EINVAL },
	{ "RDMA_READ_WITH_INV", IB_WR_RDMA_READ_WITH_INV, -EOPNOTSUPP },
};

static void wqe_lacking_name(const struct wqe_lacking *lacking, char *desc)
{
	strscpy(desc, lacking->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_lacking, wqe_lackings, wqe_lacking_name);

static void wqe_lacking(struct kunit *test)
{
	static const u8 next[] = { BYTES_NEXT(WQE_FLAG_C) };
	const struct wqe_lacking *lacking = test->param_value;
	const struct ib_send_wr wr = {
		.opcode = lacking->opcode, .send_flags = IB_SEND_SIGNALED, .num_sge = 4,
	};
	struct hghca_wqe_info info = {};
	u8 *slot = wqe_slot(test);

	KUNIT_ASSERT_EQ(test, lacking->err,
			hghca_wqe_encode_lacking(slot, &wqe_room, &wr, &info));
	if (lacking->err)
		return;
	KUNIT_EXPECT_EQ(test, lacking->device_opcode, info.opcode);
	KUNIT_EXPECT_EQ(test, 1, info.units);
	KUNIT_EXPECT_EQ(test, 0, info.length);
	KUNIT_EXPECT_MEMEQ(test, next, slot, sizeof(next));
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + 16, WQE_UNTOUCHED, WQE_SLOT - 16));
}

/* A UC QP has neither READ nor atomics. */
static void wqe_uc_lacks(struct kunit *test)
{
	struct ib_rdma_wr read = { .wr.opcode = IB_WR_RDMA_READ };
	struct hghca_wqe_info info = {};
	u8 *slot = wqe_slot(test);

	KUNIT_EXPECT_EQ(test, 0, hghca_wqe_encode_uc(slot, &wqe_room, &read.wr, &info));
	KUNIT_EXPECT_EQ(test, 0x10, info.opcode);
	KUNIT_EXPECT_EQ(test, 1, info.units);
}

/* next unit; key, access, start, length, list, pages, page size, reserved */
static void wqe_reg_bytes(struct kunit *test)
{
	static const struct wqe_golden golden = {
		.device_opcode = 0x19, .units = 4, .fence = true,
		.bytes = { BYTES_NEXT(WQE_FLAG_C),
			   0xd4, 0xc3, 0xb2, 0xa1, 0x0f, 0x00, 0x00, 0x00,
			   0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
			   0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
			   0x00, 0xf0, 0xde, 0xbc, 0x9a, 0x00, 0x00, 0x00,
			   0x00, 0x04, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00,
			   0, 0, 0, 0, 0, 0, 0, 0 },
	};
	static const struct hghca_wqe_reg reg = {
		.key = 0xa1b2c3d4, .access = 0x0f, .start = 0x1122334455667788,
		.length = 0x0102030405060708, .list = 0x9abcdef000, .pages = 1024,
		.page_shift = 21,
	};
	const struct ib_send_wr wr = {
		.opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED | IB_SEND_FENCE,
		.num_sge = 99,
	};
	struct hghca_wqe_room room = wqe_room;
	struct hghca_wqe_info info;
	u8 *slot = wqe_slot(test);

	room.mem_mgt = false;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, hghca_wqe_encode_reg(slot, &room, &reg, &wr, &info));
	KUNIT_EXPECT_NULL(test, memchr_inv(slot, WQE_UNTOUCHED, WQE_SLOT));
	KUNIT_ASSERT_EQ(test, 0, hghca_wqe_encode_reg(slot, &wqe_room, &reg, &wr, &info));
	wqe_expect(test, slot, &golden);
	wqe_expect_info(test, &info, &golden);
}

/* A QPN has 24 bits; the port has one P_Key. */
static void wqe_ud_bad_address(struct kunit *test)
{
	static const struct wqe_golden golden = { .opcode = IB_WR_SEND, .num_sge = 0 };
	struct hghca_wqe_info info;
	struct hghca_ud_gid_unit av;
	u8 *slot = wqe_slot(test);
	struct ib_sge sge[4];
	union wqe_wr any;

	wqe_build_av(&av);
	wqe_build_ud(&any, &golden, sge);
	any.ud.remote_qpn = 0x1000000;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_ud(slot, &wqe_room, &av, &any.ud, &info));
	any.ud.remote_qpn = 0xffffff;
	KUNIT_EXPECT_EQ(test, 0, hghca_wqe_encode_ud(slot, &wqe_room, &av, &any.ud, &info));
	any.ud.pkey_index = 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, hghca_wqe_encode_ud(slot, &wqe_room, &av, &any.ud, &info));
}

/* ------------------------------------------------------------------ */
/* Links and doorbells                                                  */

static const struct wqe_announcement {
	const char *name;
	struct hghca_wqe_info info;
	u32 offset;
	u8 bytes[8];	/* nda_nop, nee_nds */
} wqe_links[] = {
	{ "SEND at the start", { .opcode = 0x0a, .units = 2 }, 0,
	  { 0x0a, 0, 0, 0, 0x02, 0, 0, 0 } },
	{ "RDMA_READ at 1FC0h", { .opcode = 0x10, .units = 5 }, 0x1fc0,
	  { 0xd0, 0x1f, 0, 0, 0x05, 0, 0, 0 } },
	{ "ATOMIC_FA at the end of the longest queue, fenced",
	  { .opcode = 0x12, .units = 63, .fence = true }, 0xfffc00,
	  { 0x12, 0xfc, 0xff, 0, 0x7f, 0, 0, 0 } },
};

static void wqe_link_name(const struct wqe_announcement *link, char *desc)
{
	strscpy(desc, link->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_link, wqe_links, wqe_link_name);

static void wqe_link_bytes(struct kunit *test)
{
	const struct wqe_announcement *link = test->param_value;
	u8 *slot = wqe_slot(test);

	hghca_wqe_link((struct hghca_next_unit *)slot, link->offset, &link->info);
	KUNIT_EXPECT_MEMEQ(test, link->bytes, slot, sizeof(link->bytes));
	KUNIT_EXPECT_NULL(test, memchr_inv(slot + 8, WQE_UNTOUCHED, WQE_SLOT - 8));
}

static const struct wqe_doorbell {
	const char *name;
	u32 qpn;
	u16 index;
	unsigned int count;
	struct hghca_wqe_info first;
	u64 value;
} wqe_doorbells[] = {
	{ "one SEND", 0x000008, 0, 1, { .opcode = 0x0a, .units = 2 }, 0x000008020100000a },
	{ "all bits", 0xffffff, 0xffff, 255, { .opcode = 0x1f, .units = 63, .fence = true },
	  0xffffff3fffffff3f },
	{ "fence alone", 0x000001, 0, 1, { .opcode = 0x08, .units = 1, .fence = true },
	  0x0000010101000028 },
	{ "255 WQEs", 0x123456, 0x89ab, 255, { .opcode = 0x10, .units = 3 }, 0x12345603ff89ab10 },
	{ "256 WQEs: the count is not told", 0x123456, 0x89ab, 256,
	  { .opcode = 0x10, .units = 3 }, 0x123456030089ab10 },
	{ "16,384 WQEs", 0x123456, 0x89ab, 16384, { .opcode = 0x10, .units = 3 },
	  0x123456030089ab10 },
};

static void wqe_doorbell_name(const struct wqe_doorbell *doorbell, char *desc)
{
	strscpy(desc, doorbell->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_doorbell, wqe_doorbells, wqe_doorbell_name);

static void wqe_doorbell_value(struct kunit *test)
{
	const struct wqe_doorbell *doorbell = test->param_value;

	KUNIT_EXPECT_EQ(test, doorbell->value,
			hghca_wqe_sq_doorbell(doorbell->qpn, doorbell->index, doorbell->count,
					      &doorbell->first));
}

/* ------------------------------------------------------------------ */
/* Sizes                                                                */

static const struct wqe_size {
	const char *name;
	enum ib_qp_type type;
	unsigned int sges;
	unsigned int inline_bytes;
	u32 bytes;
} wqe_sizes[] = {
	/* next 16, raddr 16, atomic 16, data 16 */
	{ "RC, nothing but an atomic", IB_QPT_RC, 0, 0, 64 },
	{ "RC, 2 SGEs: an atomic is as long", IB_QPT_RC, 2, 0, 64 },
	{ "RC, 3 SGEs", IB_QPT_RC, 3, 0, 80 },
	/* next 16, reg 48 */
	{ "UC, nothing but REG_MR", IB_QPT_UC, 0, 0, 64 },
	{ "UC, 2 SGEs: REG_MR is as long", IB_QPT_UC, 2, 0, 64 },
	{ "UC, 3 SGEs", IB_QPT_UC, 3, 0, 80 },
	{ "RC, 32 SGEs", IB_QPT_RC, 32, 0, 544 },
	{ "RC, 28 bytes inline", IB_QPT_RC, 1, 28, 64 },
	{ "RC, 29 bytes inline", IB_QPT_RC, 1, 29, 80 },
	{ "RC, more SGEs than inline", IB_QPT_RC, 10, 29, 192 },
	/* next 16, ud 48 */
	{ "UD, nothing", IB_QPT_UD, 0, 0, 64 },
	{ "UD, 1 SGE", IB_QPT_UD, 1, 0, 96 },
	{ "UD, 60 bytes inline", IB_QPT_UD, 1, 60, 128 },
	{ "UD, 61 bytes inline", IB_QPT_UD, 1, 61, 144 },
	{ "GSI, 1 SGE", IB_QPT_GSI, 1, 0, 96 },
};

static void wqe_size_name(const struct wqe_size *size, char *desc)
{
	strscpy(desc, size->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wqe_size, wqe_sizes, wqe_size_name);

/* The size, and that what was asked for fits it. */
static void wqe_send_size(struct kunit *test)
{
	const struct wqe_size *size = test->param_value;
	u32 bytes = hghca_wqe_send_bytes(size->type, size->sges, size->inline_bytes);

	KUNIT_EXPECT_EQ(test, size->bytes, bytes);
	if (size->inline_bytes)
		KUNIT_EXPECT_GE(test, hghca_wqe_inline_room(size->type, bytes), size->inline_bytes);
}

static void wqe_other_sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 16, hghca_wqe_recv_bytes(0));
	KUNIT_EXPECT_EQ(test, 528, hghca_wqe_recv_bytes(32));
	KUNIT_EXPECT_EQ(test, 972, hghca_wqe_inline_room(IB_QPT_RC, 1008));
	KUNIT_EXPECT_EQ(test, 940, hghca_wqe_inline_room(IB_QPT_UD, 1008));
	KUNIT_EXPECT_EQ(test, 0, hghca_wqe_inline_grant(0, 0));
	KUNIT_EXPECT_EQ(test, 12, hghca_wqe_inline_grant(0, 1));
	KUNIT_EXPECT_EQ(test, 28, hghca_wqe_inline_grant(1, 0));
	KUNIT_EXPECT_EQ(test, 28, hghca_wqe_inline_grant(2, 12));
	KUNIT_EXPECT_EQ(test, 28, hghca_wqe_inline_grant(1, 13));
	KUNIT_EXPECT_EQ(test, 508, hghca_wqe_inline_grant(32, 13));
	KUNIT_EXPECT_EQ(test, 1, hghca_wqe_recv_sge_grant(0));
	KUNIT_EXPECT_EQ(test, 1, hghca_wqe_recv_sge_grant(1));
	KUNIT_EXPECT_EQ(test, 32, hghca_wqe_recv_sge_grant(32));
}

static struct kunit_case wqe_cases[] = {
	KUNIT_CASE_PARAM(wqe_rc_bytes, wqe_rc_gen_params),
	KUNIT_CASE_PARAM(wqe_ud_bytes, wqe_ud_gen_params),
	KUNIT_CASE_PARAM(wqe_recv_bytes, wqe_recv_gen_params),
	KUNIT_CASE_PARAM(wqe_rc_is_refused, wqe_rc_refused_gen_params),
	KUNIT_CASE_PARAM(wqe_ud_is_refused, wqe_ud_refused_gen_params),
	KUNIT_CASE_PARAM(wqe_recv_is_refused, wqe_recv_refused_gen_params),
	KUNIT_CASE_PARAM(wqe_missing, wqe_missing_gen_params),
	KUNIT_CASE_PARAM(wqe_lacking, wqe_lacking_gen_params),
	KUNIT_CASE(wqe_uc_lacks),
	KUNIT_CASE(wqe_reg_bytes),
	KUNIT_CASE(wqe_ud_bad_address),
	KUNIT_CASE_PARAM(wqe_link_bytes, wqe_link_gen_params),
	KUNIT_CASE_PARAM(wqe_doorbell_value, wqe_doorbell_gen_params),
	KUNIT_CASE_PARAM(wqe_send_size, wqe_size_gen_params),
	KUNIT_CASE(wqe_other_sizes),
	{}
};

static struct kunit_suite wqe_suite = {
	.name = "hghca_wqe",
	.test_cases = wqe_cases,
};

kunit_test_suite(wqe_suite);
