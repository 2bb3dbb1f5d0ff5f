/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * KUnit tests of the driver of ERNIC and ETRNIC: a device that is not there.
 *
 * Its registers are ordinary memory, which behaves as the documents say: bits that are
 * cleared by a 1, registers that are read-only, or so without the software override.  A test
 * moves it on: it completes WQEs, receives messages, makes QPs fatal and interrupts.  It may
 * also have it do what no device does.
 *
 * The offsets are those of the tables of registers (docs/reference/ernic.rst, 2), and not those
 * of the driver's header.
 */
#ifndef ERNIC_FAKE_H
#define ERNIC_FAKE_H

#include <kunit/test.h>
#include <linux/platform_device.h>

#include "../../kernel/ernic/ernic.h"
#include "kernels.h"

#define FAKE_REGISTERS		0x40000
#define FAKE_WRITES		512
#define FAKE_RECORDS		0x10000	/* EXTENSIONS: those that the device has */
#define FAKE_PAGES		0x20000

/* Offsets from the first global register. */
enum {
	FAKE_XRNICCONF = 0x00, FAKE_XRNICADCONF = 0x04, FAKE_MACXADDLSB = 0x10,
	FAKE_MACXADDMSB = 0x14, FAKE_IPKTERRQBA = 0x88, FAKE_IPKTERRQBAMSB = 0x8c,
	FAKE_IPKTERRQSZ = 0x90, FAKE_IPKTERRQWPTR = 0x94, FAKE_INTEN = 0x180, FAKE_INTSTS = 0x184,
	FAKE_RQINTSTS1 = 0x190, FAKE_CQINTSTS1 = 0x1b0, FAKE_EXTENSIONS = 0x1e0,
	FAKE_RECORDBA = 0x1e4, FAKE_RECORDBAMSB = 0x1e8, FAKE_RECORDSZ = 0x1ec,
	FAKE_RECORDWPTR = 0x1f0,
};

/* Offsets in the registers of a QP. */
enum {
	FAKE_QPCONF = 0x00, FAKE_QPADVCONF = 0x04, FAKE_RQBA = 0x08, FAKE_SQBA = 0x10,
	FAKE_CQBA = 0x18, FAKE_RQWPTRDBADD = 0x20, FAKE_RQWPTRDBADDMSB = 0x24,
	FAKE_CQDBADD = 0x28, FAKE_CQDBADDMSB = 0x2c, FAKE_CQHEAD = 0x30, FAKE_RQCI = 0x34,
	FAKE_SQPI = 0x38, FAKE_QDEPTH = 0x3c, FAKE_SQPSN = 0x40, FAKE_LSTRQREQ = 0x44,
	FAKE_DESTQPCONF = 0x48, FAKE_TIMEOUTCONF = 0x4c, FAKE_MACDESADDLSB = 0x50,
	FAKE_MACDESADDMSB = 0x54, FAKE_IPDESADDR1 = 0x60, FAKE_IPDESADDR2 = 0x64,
	FAKE_IPDESADDR3 = 0x68, FAKE_IPDESADDR4 = 0x6c, FAKE_STATMSN = 0x84, FAKE_STATQP = 0x88,
	FAKE_STATRQPIDB = 0x9c, FAKE_PD = 0xb0, FAKE_RQBAMSB = 0xc0, FAKE_SQBAMSB = 0xc8,
	FAKE_CQBAMSB = 0xd0,
};

/**
 * struct ernic_fake - the device
 * @test: the test that it goes with
 * @pdev: the platform device, of ernic_fake_open()
 * @func: the driver's side, of ernic_fake_open()
 * @edev: the same
 * @is_ernic: the personality
 * @num_qps: C_NUM_QP
 * @registers: all of them
 * @irq: its interrupt
 * @gone: all registers read as all ones
 * @on_read: what a register reads instead of its value; or NULL
 * @priv: for @on_read
 * @writes: the writes of the driver, and their number; the last FAKE_WRITES are kept
 * @strays: accesses outside of the registers
 * @refuse: the number of the driver's request that is refused, from 1 on; 0: none
 * @requests: the requests so far
 * @coherent: pieces of coherent memory that the driver has
 * @record: the place of the next record
 * @record_round: rounds of the ring so far
 * @sgid: the address of the port, for ernic_fake_attr()
 */
struct ernic_fake {
	struct kunit *test;
	struct platform_device *pdev;
	struct ernic_func func;
	struct ernic_dev *edev;
	bool is_ernic;
	u32 num_qps;
	u8 *registers;
	int irq;
	bool gone;
	u32 (*on_read)(struct ernic_fake *fake, u32 offset, u32 value);
	void *priv;
	struct {
		u32 offset;
		u32 value;
	} writes[FAKE_WRITES];
	u32 written;
	u32 strays;
	u32 refuse;
	u32 requests;
	u32 coherent;
	u32 record;
	u32 record_round;
	struct ib_gid_attr sgid;
};

/* A QP to make: RC, of the kernel, with CQs that go with the test. */
struct ernic_fake_qp {
	u32 sends;
	u32 receives;
	u32 sges;
	u32 cqes;		/* of both CQs */
	bool signal_all;
	bool user;
	bool gsi;
};

/*
 * create: a device with its registers as after a reset, which goes with the test; NULL
 *	without memory.  One at a time.
 * open: a platform device, and the driver's RDMA device, which is not registered.
 * init: both, an ERNIC with all extensions, in test->priv.
 */
struct ernic_fake *ernic_fake_create(struct kunit *test, bool is_ernic, u32 num_qps,
				     u32 extensions);
int ernic_fake_open(struct ernic_fake *fake);
void ernic_fake_close(struct ernic_fake *fake);
int ernic_fake_init(struct kunit *test);
/* A test fails if the driver has left the registers, or has kept coherent memory. */
void ernic_fake_check(struct kunit *test, struct ernic_fake *fake);

/* Registers as the device has them: global ones, of QPs, of the protection domain table. */
u32 ernic_fake_get(struct ernic_fake *fake, u32 offset);
void ernic_fake_set(struct ernic_fake *fake, u32 offset, u32 value);
u32 ernic_fake_qp_get(struct ernic_fake *fake, u32 qpn, u32 offset);
void ernic_fake_qp_set(struct ernic_fake *fake, u32 qpn, u32 offset, u32 value);
u32 ernic_fake_pd_get(struct ernic_fake *fake, u32 entry, u32 offset);
/* The number of a write of the driver after @from, or -1. */
int ernic_fake_find_write(struct ernic_fake *fake, u32 from, u32 offset, u32 value);
u32 ernic_fake_qp_offset(struct ernic_fake *fake, u32 qpn, u32 offset);

/* Memory that the registers name. */
void *ernic_fake_wqe(struct ernic_fake *fake, u32 qpn, u32 slot);
__le32 *ernic_fake_cqe(struct ernic_fake *fake, u32 qpn, u32 slot);
__le32 *ernic_fake_cq_door(struct ernic_fake *fake, u32 qpn);
__le32 *ernic_fake_rq_door(struct ernic_fake *fake, u32 qpn);
u8 *ernic_fake_slot(struct ernic_fake *fake, u32 qpn, u32 slot);
u8 *ernic_fake_record(struct ernic_fake *fake, u32 place);
u8 *ernic_fake_error(struct ernic_fake *fake, u32 place);

/* The WQEs up to an index, 1 to the depth, are complete; @error: the last one has failed. */
void ernic_fake_complete(struct ernic_fake *fake, u32 qpn, u32 index, bool error);

/**
 * struct ernic_fake_message - a message that is received
 * @data: of a SEND; or NULL
 * @bytes: its length
 * @opcode: of the BTH of its last packet
 * @flags: bit 0: solicited
 * @imm: immediate data or R_Key, as in the packet
 */
struct ernic_fake_message {
	const void *data;
	u32 bytes;
	u8 opcode;
	u8 flags;
	__be32 imm;
};

void ernic_fake_receive(struct ernic_fake *fake, u32 qpn, const struct ernic_fake_message *message);
/* The record alone. */
void ernic_fake_write_record(struct ernic_fake *fake, u32 qpn, u32 index,
			     const struct ernic_fake_message *message);
/* The same, without RECORDS: an invalidate/immediate data entry. */
void ernic_fake_write_immdt(struct ernic_fake *fake, u32 qpn, u32 index,
			    const struct ernic_fake_message *message);
/* The QP is fatal. */
void ernic_fake_fatal(struct ernic_fake *fake, u32 qpn, u16 code);
/* Interrupts while there is a cause; when it returns false, there is still one. */
bool ernic_fake_interrupt(struct ernic_fake *fake);
/* One without a cause. */
void ernic_fake_bare_interrupt(struct ernic_fake *fake);

/* Objects as ib_core would make them, which go with the test. */
struct ib_pd *ernic_fake_pd(struct kunit *test, struct ernic_fake *fake);
struct ib_cq *ernic_fake_cq(struct kunit *test, struct ernic_fake *fake, int cqe);
struct ernic_qp *ernic_fake_new_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *send_cq,
				   struct ib_cq *recv_cq, const struct ernic_fake_qp *attr,
				   int *err);
struct ernic_qp *ernic_fake_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq,
			       const struct ernic_fake_qp *attr);
/* RESET to RTS by the attributes of ernic_fake_attr(). */
void ernic_fake_attr(struct ernic_fake *fake, struct ib_qp_attr *attr, bool ipv6);
int ernic_fake_modify(struct ernic_fake *fake, struct ernic_qp *qp, enum ib_qp_state to);
void ernic_fake_connect(struct kunit *test, struct ernic_fake *fake, struct ernic_qp *qp);
void ernic_fake_destroy_qp(struct kunit *test, struct ernic_qp *qp);
/* A net device with the MAC address, which is not registered and goes with the test. */
struct net_device *ernic_fake_netdev(struct kunit *test);

#define FAKE_MAC	{ 0x52, 0x54, 0x00, 0xab, 0xcd, 0xef }

#endif /* ERNIC_FAKE_H */
