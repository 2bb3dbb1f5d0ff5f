/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * KUnit tests of the driver: a device that is not there.
 *
 * The HCR is ordinary memory that a thread watches, as the device would; UAR
 * page 0 is ordinary memory that tests read doorbells from; interrupts are
 * raised by the test. Every command is kept with its input mailbox as it was. What
 * a command answers is up to the test; by default it succeeds.
 *
 * A test may give the device an initialization segment (the page of RSNIC, 2). It is
 * ordinary memory, too: what the driver writes to the queue's address reads as it was
 * written. The thread watches the doorbell vector, and clears it when it has taken it; a
 * second write before that would take the place of the first, so tests ring one at a time.
 */
#ifndef HGHCA_FAKE_H
#define HGHCA_FAKE_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/platform_device.h>

#include "../../kernel/verbs/verbs.h"
#include "kernels.h"

#define FAKE_LOG	64	/* commands kept */
#define FAKE_IRQS	3
#define FAKE_EQS	(FAKE_IRQS + 2)	/* commands, asynchronous events and faults share one */
#define FAKE_FAULT_EQ	(FAKE_EQS - 1)	/* of page faults, where they are turned on */

/* Short enough to wait for, long enough for a busy host. */
#define FAKE_TIMEOUT_MS	1000

#define FAKE_SEGMENT	0x2000	/* bytes of the initialization segment */
#define FAKE_HCR	(-1)	/* in the place of an entry of the command queue */

struct fake;

/**
 * struct fake_command - a command as the device found it
 * @words: the seven words of the HCR, or of the entry
 * @entry: of the command queue, or FAKE_HCR
 * @vector: what was written to the doorbell vector for the entry
 * @op: opcode, and so on
 * @mailbox: copy of the input mailbox, for a command that has one
 */
struct fake_command {
	u32 words[7];
	int entry;
	u32 vector;
	u16 op;
	u8 op_modifier;
	u16 token;
	bool by_event;
	u32 in_modifier;
	u64 in_param;
	u64 out_param;
	u8 mailbox[HGHCA_MAILBOX_SIZE];
};

/* What becomes of a command. */
enum fake_end {
	FAKE_ANSWERED,	/* it ends with status and out_param */
	FAKE_SILENT,	/* it is taken, and its end never told */
	FAKE_STUCK,	/* go stays 1, also by event */
	FAKE_NO_STATUS,	/* the HCR, or the entry, is as the answer left it */
	FAKE_GONE,	/* the device goes away: all reads give ones */
};

/**
 * struct fake_answer - how a command ends
 * @status: enum hghca_cmd_status
 * @out_param: immediate output
 * @no_interrupt: its EQE is written, but its interrupt gets lost
 */
struct fake_answer {
	u8 status;
	u64 out_param;
	bool no_interrupt;
};

/**
 * struct fake - the device
 * @hdev: the driver's side of it
 * @regs: BAR 0
 * @uar: UAR page 0
 * @answer: what a command answers, NULL for success; runs in the device's
 *	thread; has the output mailbox, if there is one, in @out
 * @priv: for @answer
 * @out: output mailbox of the command under way
 * @limits: answer of QUERY_DEV_LIM
 * @adapter: answer of QUERY_ADAPTER
 * @port: answer of QUERY_PORT
 * @log: the last commands, by number
 * @logged: how many there were
 * @rung: how often the doorbell vector was written
 * @ignored: bits of it without effect: no queue, not ready, or the entry is software's
 * @irqs: interrupts of the device
 * @dma: the bus lets it make DMA
 * @on_dma_begin: called when that begins; or NULL
 * @on_dma_end: called when that ends, while what the device had is still there; or NULL
 */
struct fake {
	struct hghca_dev *hdev;
	struct platform_device *pdev;
	void *regs;
	void *uar;
	enum fake_end (*answer)(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer);
	void *priv;
	void *out;
	struct hghca_dev_lim limits;
	struct hghca_adapter adapter;
	struct hghca_port port;
	struct fake_command *log;
	u32 logged;
	u32 rung;
	u32 ignored;
	int irqs[FAKE_IRQS];
	bool dma;
	void (*on_dma_begin)(struct fake *fake);
	void (*on_dma_end)(struct fake *fake);
	int opened;
	bool stuck;
	bool busy;	/* the thread is in a command */
	void (*set_up)(struct fake *fake);
	struct fake_start *start;	/* of one from fake_test_open() */
	struct kunit *test;
	struct task_struct *thread;
	spinlock_t eq_lock;	/* the producer side of the EQs */
	u32 eq_index[FAKE_EQS];
};

/*
 * create: the device and struct hghca_dev, nothing started; NULL without memory.
 * open: commands, polled, and all that objects need; as hghca_dev_start() has
 *	it, without EQs, net device and RDMA device.
 * events: the EQs; commands by event.
 * destroy: undoes all of it.
 */
struct fake *fake_create(void);
int fake_open(struct fake *fake);
int fake_events(struct fake *fake);
void fake_destroy(struct fake *fake);

/* A new device that goes with the test, or NULL. */
struct fake *fake_test_create(struct kunit *test);

/* The device is one of the RSNIC document, and its segment is as after a reset. */
void fake_rsnic(struct fake *fake);

/* An entry of the command queue; NULL while the queue is off. */
void *fake_entry(struct fake *fake, unsigned int index);

/*
 * For suites whose tests begin with an open device in test->priv. @set_up changes what
 * a new one answers before it is opened; or NULL. In a suite with fake_suite_init() and
 * fake_suite_exit() the next test gets the same device, put back to what a new one is
 * like, unless it has failed, is stuck or differs in what is not put back: then it goes
 * with the test, as it does in other suites. A test that leaves objects in a device that
 * works fails.
 */
int fake_test_open(struct kunit *test, void (*set_up)(struct fake *fake), bool events);
int fake_test_init(struct kunit *test);
int fake_test_init_events(struct kunit *test);
int fake_suite_init(struct kunit_suite *suite);
void fake_suite_exit(struct kunit_suite *suite);

/* This device goes with the test, which may leave anything in it. */
void fake_use_up(struct fake *fake);

/* The number of commands so far: what comes later is fake_nth(fake, mark), mark + 1, ... */
u32 fake_mark(struct fake *fake);
struct fake_command *fake_nth(struct fake *fake, u32 number);

u32 fake_icm_blocks(struct hghca_dev *hdev, enum hghca_icm_kind kind);
u32 fake_icm_users(struct hghca_dev *hdev, enum hghca_icm_kind kind);
void fake_trim(struct hghca_dev *hdev);
size_t fake_free_mtts(struct hghca_dev *hdev);
bool fake_has_keys(struct hghca_dev *hdev);

/* Wait until so many commands have come; false when they do not. */
bool fake_wait(struct fake *fake, u32 number);

/* The end of a command that was taken and not ended. */
void fake_finish(struct fake *fake, const struct fake_command *cmd,
		 const struct fake_answer *answer);
/* For &fake.answer: the command ends well, with 8899aabbccddeeffh as its output. */
enum fake_end fake_answer_param(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer);

/*
 * An EQE of 32 bytes, without owner, for the EQ of our number @eq (0 commands, 1
 * asynchronous, 2 completions, FAKE_FAULT_EQ); its interrupt is raised when @interrupt.
 */
void fake_event(struct fake *fake, unsigned int eq, const void *eqe, bool interrupt);
void fake_cmd_event(struct fake *fake, u16 token, u8 status, u64 out_param, bool interrupt);
void fake_interrupt(struct fake *fake, unsigned int eq);
struct hghca_eq *fake_eq(struct fake *fake, unsigned int eq);

/* The doorbell at @offset as it was last rung, and 0 from then on. */
u64 fake_doorbell(struct fake *fake, u32 offset);

/* Memory that the driver told the device of. */
static inline void *fake_memory(u64 dma)
{
	return phys_to_virt(dma);
}

/* A QP to make. */
struct fake_qp_attr {
	enum ib_qp_type type;
	struct ib_qp_cap cap;
	bool signal_all;
	struct hghca_srq *srq;
};

/*
 * Objects of the driver as ib_core would make them, of the kernel. new: NULL
 * when it cannot be made. Those without it assert that it is made, and it goes
 * with the test.
 */
struct hghca_pd *fake_new_pd(struct fake *fake);
struct hghca_cq *fake_new_cq(struct fake *fake, int cqe);
struct hghca_srq *fake_new_srq(struct hghca_pd *pd, u32 max_wr, u32 max_sge);
struct hghca_qp *fake_new_qp(struct hghca_pd *pd, struct hghca_cq *send_cq,
			     struct hghca_cq *recv_cq, const struct fake_qp_attr *attr);
struct ib_mr *fake_new_mr(struct hghca_pd *pd, u32 pages);
void fake_del_pd(struct hghca_pd *pd);
void fake_del_cq(struct hghca_cq *hcq);
void fake_del_srq(struct hghca_srq *hsrq);
void fake_del_qp(struct hghca_qp *hqp);
struct hghca_pd *fake_pd(struct kunit *test, struct fake *fake);
struct ib_mr *fake_mr(struct kunit *test, struct hghca_pd *pd, u32 pages);
struct hghca_cq *fake_cq(struct kunit *test, struct fake *fake, int cqe);
struct hghca_srq *fake_srq(struct kunit *test, struct hghca_pd *pd, u32 max_wr, u32 max_sge);
struct hghca_qp *fake_qp(struct kunit *test, struct hghca_pd *pd, struct hghca_cq *send_cq,
			 struct hghca_cq *recv_cq, const struct fake_qp_attr *attr);

/* Neither input nor output of a verb. */
static inline struct ib_udata *fake_no_udata(struct uverbs_attr_bundle *bundle)
{
	bundle->driver_udata.inlen = 0;
	bundle->driver_udata.outlen = 0;
	return &bundle->driver_udata;
}

/*
 * Memory of a user, in an address space that goes with the test: @size bytes of
 * zeros with PROT_*.
 */
unsigned long fake_user_memory(struct kunit *test, size_t size, int prot);

/* A big- or little-endian number at byte @offset of what the device was given. */
static inline u32 be32_at(const void *from, u32 offset)
{
	return be32_to_cpup(from + offset);
}

static inline u64 be64_at(const void *from, u32 offset)
{
	return be64_to_cpup(from + offset);
}

static inline u32 le32_at(const void *from, u32 offset)
{
	return le32_to_cpup(from + offset);
}

static inline u64 le64_at(const void *from, u32 offset)
{
	return le64_to_cpup(from + offset);
}

#endif /* HGHCA_FAKE_H */
