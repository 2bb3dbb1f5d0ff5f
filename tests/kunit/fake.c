// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* KUnit tests of the driver: a device that is not there; see fake.h. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/genalloc.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "fake.h"

/* One command comes soon after another, or not for long: to look for it costs time, too. */
#define FAKE_POLL_US	20
#define FAKE_IDLE_US	500
#define FAKE_WAIT_MS	10000

#define FAKE_TAGS	256	/* of the keys that are given out first */

/* What opened is after fake_open(), and after fake_events(). */
#define FAKE_OPEN	5
#define FAKE_OPEN_EVENTS	6

/* The numbers of the interface document, 4.1. */
static const struct hghca_dev_lim fake_limits = {
	.log_reserved_qps = 3,
	.log_reserved_cqs = 0,
	.log_reserved_eqs = 0,
	.log_reserved_mtts = 0,
	.log_reserved_pds = 0,
	.log_reserved_lkeys = 0,
	.log_max_qp_sz = cpu_to_be16(14),
	.log_max_cq_sz = cpu_to_be16(22),
	.log_max_qps = 16,
	.log_max_cqs = 17,
	.log_max_eqs = 6,
	.log_max_mpts = 19,
	.log_max_pds = 20,
	.log_max_gids = 7,
	.mtt_entry_sz = 8,
	.qpc_entry_sz = cpu_to_be16(2048),
	.cqc_entry_sz = cpu_to_be16(128),
	.eqc_entry_sz = cpu_to_be16(64),
	.mpt_entry_sz = cpu_to_be16(64),
	.ack_delay = 15,
	.mtu_width = 0x52,
	.vl_ports = 0x11,
	.log_min_page_sz = 12,
	.max_sg = 32,
	.max_desc_sz = cpu_to_be16(1008),
	.max_sg_rq = 32,
	.max_desc_sz_rq = cpu_to_be16(1008),
	.max_icm_sz = cpu_to_be64(1ULL << 32),
	.revision = cpu_to_be32(1),
	.caps = cpu_to_be32(0x1dfff),
	.log_max_mtts = 20,	/* fewer than the document's: less to set up */
	.max_rd_atomic = 16,
	.max_dest_rd_atomic = 16,
	.log_max_uars = 11,
	.log_max_msg = 31,
	.log_max_page_sz = 30,
	.num_vectors = cpu_to_be16(64),
	.log_max_srqs = 16,
	.log_max_xrcds = 24,
	.log_max_srq_sz = 14,
	.max_sg_srq = 32,
	.srqc_entry_sz = cpu_to_be16(128),
	.num_counter_sets = cpu_to_be16(256),
	.clock_khz = cpu_to_be32(1000000),
	.log_max_mcgs = 13,
	.qps_per_mcg = 56,
	.mcg_entry_sz = cpu_to_be16(256),
};

/* ------------------------------------------------------------------ */
/* The device's side                                                    */

static void *fake_hcr(struct fake *fake, u32 offset)
{
	return fake->regs + 0x80000 + offset;
}

static u32 fake_segment_read(struct fake *fake, u32 offset)
{
	return readl((void __iomem *)fake->regs + offset);
}

void fake_rsnic(struct fake *fake)
{
	static const struct {
		u32 offset, value;
	} words[] = {
		{ 0x0000, 0x00000001 }, { 0x0004, 0x00010000 },	/* versions */
		{ 0x0014, 0x56 },		/* 32 entries of 64 bytes */
		{ 0x01fc, 0x03000000 },		/* ready */
	};
	int i;

	fake->hdev->bus.rsnic = true;
	memset(fake->regs, 0, FAKE_SEGMENT);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		writel(words[i].value, (void __iomem *)fake->regs + words[i].offset);
}

void *fake_entry(struct fake *fake, unsigned int index)
{
	u32 low = fake_segment_read(fake, 0x14);
	u64 queue = (u64)fake_segment_read(fake, 0x10) << 32 | (low & 0xfffff000);

	/* nic_interface 9:8: full_driver is 0. */
	return low & 0x300 || !queue ? NULL : fake_memory(queue + 64 * index);
}

/* What in_param and out_param of each command are. */
static const struct fake_params {
	u16 op;
	enum hghca_cmd_param in, out;
} fake_params[] = {
#define FAKE_PARAMS(name, function, op, in, out, ...) \
	{ op, HGHCA_CMD_PARAM_##in, HGHCA_CMD_PARAM_##out },
	HGHCA_COMMANDS(FAKE_PARAMS)
#undef FAKE_PARAMS
};

static struct fake_params fake_params_of(u16 op)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(fake_params); i++)
		if (fake_params[i].op == op)
			return fake_params[i];
	return (struct fake_params){};
}

static bool fake_has_input(u16 op, u8 op_modifier)
{
	enum hghca_cmd_param in = fake_params_of(op).in;

	return in == HGHCA_CMD_PARAM_MBOX || (in == HGHCA_CMD_PARAM_OPT && !op_modifier);
}

static bool fake_has_output(u16 op)
{
	return fake_params_of(op).out == HGHCA_CMD_PARAM_MBOX;
}

static void fake_default_output(struct fake *fake, const struct fake_command *cmd)
{
	switch (cmd->op) {
	case 0x003:
		memcpy(fake->out, &fake->limits, sizeof(fake->limits));
		break;
	case 0x006:
		memcpy(fake->out, &fake->adapter, sizeof(fake->adapter));
		break;
	case 0xe01:
		memcpy(fake->out, &fake->port, sizeof(fake->port));
		break;
	}
}

static void fake_read_command(struct fake_command *cmd, void *words)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cmd->words); i++)
		cmd->words[i] = readl((void __iomem *)words + 4 * i);
	cmd->in_param = (u64)cmd->words[0] << 32 | cmd->words[1];
	cmd->in_modifier = cmd->words[2];
	cmd->out_param = (u64)cmd->words[3] << 32 | cmd->words[4];
	cmd->token = cmd->words[5] >> 16;
	cmd->by_event = cmd->words[6] >> 22 & 1;
	cmd->op_modifier = cmd->words[6] >> 12 & 0xff;
	cmd->op = cmd->words[6] & 0xfff;
	if (fake_has_input(cmd->op, cmd->op_modifier))
		memcpy(cmd->mailbox, fake_memory(cmd->in_param), sizeof(cmd->mailbox));
	else
		memset(cmd->mailbox, 0, sizeof(cmd->mailbox));
}

static void fake_end_in_hcr(struct fake *fake, const struct fake_command *cmd,
			    const struct fake_answer *answer)
{
	void __iomem *hcr = (void __iomem *)fake_hcr(fake, 0);

	if (cmd->by_event) {
		writel(0, hcr + 0x18);
		return;
	}
	writel(answer->out_param >> 32, hcr + 0x0c);
	writel(answer->out_param, hcr + 0x10);
	/* Document 3.1: op and op_modifier stay. */
	writel((u32)answer->status << 24 | (cmd->words[6] & 0xfffff), hcr + 0x18);
}

/* The page of RSNIC, 3: the status is 31:24 of word 18h, and the rest of it stays. */
static void fake_end_in_entry(struct fake *fake, const struct fake_command *cmd,
			      const struct fake_answer *answer)
{
	void *entry = fake_entry(fake, cmd->entry);

	if (!entry)
		return;
	writel(answer->out_param >> 32, (void __iomem *)entry + 0x0c);
	writel(answer->out_param, (void __iomem *)entry + 0x10);
	writel((u32)answer->status << 24 | (cmd->words[6] & 0xffffff),
	       (void __iomem *)entry + 0x18);
	/* The owner is written last. */
	smp_store_release((u32 *)(entry + 0x1c), 0);
}

enum fake_end fake_answer_param(struct fake *fake, const struct fake_command *cmd,
				struct fake_answer *answer)
{
	answer->out_param = 0x8899aabbccddeeff;
	return FAKE_ANSWERED;
}

void fake_finish(struct fake *fake, const struct fake_command *cmd,
		 const struct fake_answer *answer)
{
	if (cmd->entry == FAKE_HCR)
		fake_end_in_hcr(fake, cmd, answer);
	else
		fake_end_in_entry(fake, cmd, answer);
	if (cmd->by_event)
		fake_cmd_event(fake, cmd->token, answer->status, answer->out_param,
			       !answer->no_interrupt);
}

static void fake_take(struct fake *fake, void *words, int entry, u32 vector)
{
	struct fake_command *cmd = &fake->log[fake->logged % FAKE_LOG];
	enum fake_end end = FAKE_ANSWERED;
	struct fake_answer answer = {};

	fake_read_command(cmd, words);
	cmd->entry = entry;
	cmd->vector = vector;
	fake->out = fake_has_output(cmd->op) ? fake_memory(cmd->out_param) : NULL;
	fake_default_output(fake, cmd);
	/* A new EQ starts at its start; the driver's first has number 1. */
	if (cmd->op == 0x13 && cmd->in_modifier - 1 < FAKE_EQS)
		fake->eq_index[cmd->in_modifier - 1] = 0;
	if (fake->answer)
		end = fake->answer(fake, cmd, &answer);

	/* Whoever sees the command's end sees it in the log, too. */
	smp_store_release(&fake->logged, fake->logged + 1);
	if (end == FAKE_GONE) {
		memset(fake->regs, 0xff, FAKE_SEGMENT);
		memset(fake_hcr(fake, 0), 0xff, 0x1c);
	} else if (end == FAKE_ANSWERED) {
		fake_finish(fake, cmd, &answer);
	} else if (end == FAKE_NO_STATUS || entry != FAKE_HCR) {
		return;
	} else if (end == FAKE_STUCK || !cmd->by_event) {
		fake->stuck = true;
	} else {
		writel(0, (void __iomem *)words + 0x18);
	}
}

/* One write of the doorbell vector: its entries start in ascending order. */
static void fake_take_entries(struct fake *fake)
{
	u32 vector = le32_to_cpu(xchg((__le32 *)(fake->regs + 0x18), 0));
	bool ready = !(fake_segment_read(fake, 0x1fc) & BIT(31));
	unsigned int i;

	fake->rung++;
	for (i = 0; i < 32; i++) {
		void *entry = ready ? fake_entry(fake, i) : NULL;

		if (!(vector & BIT(i)))
			continue;
		if (entry && le32_at(entry, 0x1c) & 1)
			fake_take(fake, entry, i, vector);
		else
			fake->ignored++;
	}
}

static bool fake_is_written(struct fake *fake)
{
	u32 ctrl = readl((void __iomem *)fake_hcr(fake, 0x18));

	return ctrl & BIT(23) && ctrl != U32_MAX && !READ_ONCE(fake->stuck);
}

static bool fake_is_rung(struct fake *fake)
{
	u32 vector = fake_segment_read(fake, 0x18);

	return vector && vector != U32_MAX;
}

static int fake_thread(void *data)
{
	unsigned int pause = FAKE_POLL_US;
	struct fake *fake = data;

	while (!kthread_should_stop()) {
		bool written = fake_is_written(fake);
		bool rung = fake_is_rung(fake);

		if (written || rung) {
			/* Before the end of a command, for fake_settle(). */
			WRITE_ONCE(fake->busy, true);
			if (written)
				fake_take(fake, fake_hcr(fake, 0), FAKE_HCR, 0);
			if (rung)
				fake_take_entries(fake);
			/* Pairs with the acquire in fake_settle(). */
			smp_store_release(&fake->busy, false);
			pause = FAKE_POLL_US;
		} else {
			usleep_range(pause, 2 * pause);
			pause = min(pause + pause / 4, FAKE_IDLE_US);
		}
	}
	return 0;
}

struct hghca_eq *fake_eq(struct fake *fake, unsigned int eq)
{
	switch (eq) {
	case 0:
		return &fake->hdev->cmd_eq;
	case 1:
		return &fake->hdev->async_eq;
	case FAKE_FAULT_EQ:
		return &fake->hdev->fault_eq;
	default:
		return &fake->hdev->comp_eqs[eq - 2];
	}
}

void fake_event(struct fake *fake, unsigned int eq, const void *eqe, bool interrupt)
{
	struct hghca_eq *heq = fake_eq(fake, eq);
	u8 *slot;
	u32 index;

	spin_lock(&fake->eq_lock);
	index = fake->eq_index[eq]++ & (BIT(heq->log_size) - 1);
	slot = hghca_queue_at(&heq->queue, index * 32);
	memcpy(slot, eqe, 31);
	/* The owner is written last. */
	smp_store_release(&slot[31], 0);
	spin_unlock(&fake->eq_lock);
	if (interrupt)
		fake_interrupt(fake, eq);
}

void fake_interrupt(struct fake *fake, unsigned int eq)
{
	int irq = fake->irqs[fake_eq(fake, eq)->vector];

	/*
	 * A simple interrupt is lost while it is handled on another CPU. The handler wakes
	 * whoever waits for a command, and is not at its end then.
	 */
	synchronize_hardirq(irq);
	generic_handle_irq_safe(irq);
}

/* Document 10: type at 01h, token at 06h, status at 0Fh, out_param from 10h on. */
void fake_cmd_event(struct fake *fake, u16 token, u8 status, u64 out_param, bool interrupt)
{
	u8 eqe[32] = { [0x01] = 0x0a, [0x06] = token >> 8, [0x07] = token, [0x0f] = status };
	int i;

	for (i = 0; i < 8; i++)
		eqe[0x10 + i] = out_param >> (56 - 8 * i);
	fake_event(fake, 0, eqe, interrupt);
}

u64 fake_doorbell(struct fake *fake, u32 offset)
{
	u64 *doorbell = fake->uar + offset;

	return xchg(doorbell, 0);
}

u32 fake_mark(struct fake *fake)
{
	/* Pairs with the device's release: the command was read. */
	return smp_load_acquire(&fake->logged);
}

struct fake_command *fake_nth(struct fake *fake, u32 number)
{
	if (fake_mark(fake) - number > FAKE_LOG || number >= fake_mark(fake))
		return NULL;
	return &fake->log[number % FAKE_LOG];
}

bool fake_wait(struct fake *fake, u32 number)
{
	unsigned long end = jiffies + msecs_to_jiffies(FAKE_WAIT_MS);

	while ((s32)(fake_mark(fake) - number) < 0) {
		if (time_after(jiffies, end))
			return false;
		usleep_range(100, 200);
	}
	return true;
}

/* ------------------------------------------------------------------ */
/* Its life                                                             */

static void fake_free_irqs(struct fake *fake)
{
	int i;

	for (i = 0; i < FAKE_IRQS && fake->irqs[i] > 0; i++)
		irq_free_desc(fake->irqs[i]);
}

static int fake_alloc_irqs(struct fake *fake)
{
	int i;

	for (i = 0; i < FAKE_IRQS; i++) {
		fake->irqs[i] = irq_alloc_desc(NUMA_NO_NODE);
		if (fake->irqs[i] < 0)
			return fake->irqs[i];
		irq_set_chip_and_handler(fake->irqs[i], &dummy_irq_chip, handle_simple_irq);
		irq_clear_status_flags(fake->irqs[i], IRQ_NOREQUEST);
	}
	return 0;
}

static void fake_enable_dma(struct device *dev, bool enable)
{
	struct fake *fake = dev_get_drvdata(dev);

	if (!fake->dma && enable && fake->on_dma_begin)
		fake->on_dma_begin(fake);
	if (fake->dma && !enable && fake->on_dma_end)
		fake->on_dma_end(fake);
	fake->dma = enable;
}

static void fake_fill_bus(struct fake *fake)
{
	struct hghca_bus *bus = &fake->hdev->bus;
	int i;

	bus->dev = &fake->pdev->dev;
	bus->enable_dma = fake_enable_dma;
	platform_set_drvdata(fake->pdev, fake);
	fake->dma = true;
	bus->regs = (void __iomem *)fake->regs;
	bus->uar_size = HGHCA_BAR_UAR_SIZE;
	bus->num_irqs = FAKE_IRQS;
	for (i = 0; i < FAKE_IRQS; i++)
		bus->irqs[i] = fake->irqs[i];
	bus->name = dev_name(bus->dev);
	fake->hdev->uar = (void __iomem *)fake->uar;
	fake->hdev->ibdev.dev.parent = bus->dev;
	fake->hdev->ibdev.dma_device = bus->dev;
	fake->hdev->ibdev.phys_port_cnt = 1;
	dev_set_name(&fake->hdev->ibdev.dev, "fake");
}

struct fake *fake_create(void)
{
	struct fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);

	if (!fake)
		return NULL;
	spin_lock_init(&fake->eq_lock);
	fake->limits = fake_limits;
	fake->regs = vzalloc(HGHCA_BAR_HCR_SIZE);
	fake->uar = kzalloc(HGHCA_UAR_PAGE_SIZE, GFP_KERNEL);
	fake->log = vzalloc(array_size(FAKE_LOG, sizeof(*fake->log)));
	if (!fake->regs || !fake->uar || !fake->log || fake_alloc_irqs(fake))
		goto err_destroy;

	fake->pdev = platform_device_register_simple("hghca-kunit", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(fake->pdev)) {
		fake->pdev = NULL;
		goto err_destroy;
	}
	if (dma_set_mask_and_coherent(&fake->pdev->dev, DMA_BIT_MASK(64)))
		goto err_destroy;

	fake->hdev = hghca_dev_alloc();
	if (!fake->hdev)
		goto err_destroy;
	fake_fill_bus(fake);

	fake->thread = kthread_run(fake_thread, fake, "hghca-kunit");
	if (IS_ERR(fake->thread)) {
		fake->thread = NULL;
		goto err_destroy;
	}
	return fake;

err_destroy:
	fake_destroy(fake);
	return NULL;
}

static int fake_open_tables(struct fake *fake)
{
	struct hghca_dev *hdev = fake->hdev;
	int err;

	err = hghca_profile_init(hdev);
	if (err)
		return err;
	err = hghca_icm_init(hdev);
	if (err)
		return err;
	hghca_res_init(hdev);
	fake->opened = 2;

	err = hghca_mr_init(hdev);
	if (err)
		return err;
	fake->opened = 3;

	err = hghca_dbr_init(hdev);
	if (err)
		return err;
	fake->opened = 4;

	err = hghca_mcast_init(hdev);
	if (err)
		return err;
	fake->opened = 5;
	err = hghca_odp_init(hdev);
	if (err)
		return err;
	return hghca_pdn_alloc(hdev, &hdev->pdn);
}

int fake_open(struct fake *fake)
{
	int err;

	err = hghca_cmd_init(fake->hdev);
	if (err)
		return err;
	fake->opened = 1;
	err = hghca_cmdq_open(fake->hdev);
	if (err)
		return err;
	return fake_open_tables(fake);
}

int fake_events(struct fake *fake)
{
	int err;

	err = hghca_eqs_init(fake->hdev);
	if (!err)
		fake->opened = 6;
	return err;
}

static void fake_close(struct fake *fake)
{
	struct hghca_dev *hdev = fake->hdev;

	fake->answer = NULL;
	/* A device that is stuck or gone is so for the driver, too. */
	memset(fake_hcr(fake, 0), 0, 0x1c);
	WRITE_ONCE(fake->stuck, false);
	cancel_work_sync(&hdev->fail_work);
	if (fake->opened >= 6)
		hghca_eqs_cleanup(hdev);
	if (fake->opened >= 5) {
		hghca_odp_cleanup(hdev);
		hghca_pdn_free(hdev, hdev->pdn);
		hghca_mcast_cleanup(hdev);
	}
	if (fake->opened >= 4)
		hghca_dbr_cleanup(hdev);
	if (fake->opened >= 3)
		hghca_mr_cleanup(hdev);
	if (fake->opened >= 2) {
		hghca_res_cleanup(hdev);
		hghca_icm_cleanup(hdev);
	}
	if (fake->opened >= 1)
		hghca_cmd_cleanup(hdev);
	cancel_work_sync(&hdev->fail_work);
	cancel_work_sync(&hdev->link_work);
	cancel_work_sync(&hdev->flush_work);
}

void fake_destroy(struct fake *fake)
{
	if (fake->hdev && fake->thread)
		fake_close(fake);
	if (fake->thread)
		kthread_stop(fake->thread);
	if (fake->hdev)
		hghca_dev_free(fake->hdev);
	platform_device_unregister(fake->pdev);
	fake_free_irqs(fake);
	vfree(fake->log);
	kfree(fake->uar);
	vfree(fake->regs);
	kfree(fake->start);
	kfree(fake);
}

KUNIT_DEFINE_ACTION_WRAPPER(fake_destroy_action, fake_destroy, struct fake *);

struct fake *fake_test_create(struct kunit *test)
{
	struct fake *fake = fake_create();

	if (!fake || kunit_add_action_or_reset(test, fake_destroy_action, fake))
		return NULL;
	return fake;
}

/* ------------------------------------------------------------------ */
/* Devices that are used again                                          */

/*
 * What a device is like when its fixture has opened it. To open one takes longer than
 * most tests do, so it serves the next test, too, if that finds it as this one did.
 */
struct fake_start {
	/* A test may change these, and they are put back. */
	struct hghca_dev_lim dev_lim;
	struct hghca_adapter adapter;
	struct hghca_port port;
	struct hghca_limits limits;
	struct device *dma_device;
	unsigned int timeout_ms, look_ms, hcr_timeout_us;
	unsigned int num_comp_eqs;
	hghca_event_handler event_handlers[HGHCA_EVENT_TYPES];
	u32 port_mbps;
	u8 uar[HGHCA_UAR_PAGE_SIZE];
	/* So that numbers are those of a new device. */
	u16 tags[FAKE_TAGS];
	u32 next_qpn;
	u16 next_gen;
	u32 logged;
	u32 cons_index[FAKE_EQS];
	/* With these changed it is another device. */
	int opened;
	struct hghca_bus bus;
	work_func_t link_work;
	size_t mtts;
	u32 mpts, pds;
	u32 icm_blocks, icm_users;
};

/* Between tests: the device of the suite, or NULL. */
static struct fake *fake_kept;
static bool fake_keeps;

/* The thread is done with the last command, which ends before its interrupt has been handled. */
static void fake_settle(struct fake *fake)
{
	/* Pairs with the release in fake_thread(): all that the command did is seen. */
	while (smp_load_acquire(&fake->busy))
		usleep_range(20, 40);
}

static u32 fake_count_numbers(struct ida *ida)
{
	unsigned long index;
	u32 count = 0;
	void *entry;

	xa_for_each(&ida->xa, index, entry) {
		if (xa_is_value(entry))
			count += hweight_long(xa_to_value(entry));
		else
			count += bitmap_weight(((struct ida_bitmap *)entry)->bitmap,
					       IDA_BITMAP_BITS);
	}
	return count;
}

/* Blocks of a table in ICM that are mapped. */
u32 fake_icm_blocks(struct hghca_dev *hdev, enum hghca_icm_kind kind)
{
	struct hghca_icm_table *table = &hdev->icm[kind];
	u32 i, blocks = 0;

	for (i = 0; i < table->num_slots; i++)
		blocks += !!table->slots[i].block;
	return blocks;
}

/* The users of the blocks of a table. */
u32 fake_icm_users(struct hghca_dev *hdev, enum hghca_icm_kind kind)
{
	struct hghca_icm_table *table = &hdev->icm[kind];
	u32 i, users = 0;

	for (i = 0; i < table->num_slots; i++)
		users += refcount_read(&table->slots[i].users);
	return users;
}

/* Free the idle keys and blocks. */
void fake_trim(struct hghca_dev *hdev)
{
	hghca_idle_keys_trim(hdev);
	hghca_icm_trim(hdev);
}

/* MTTs that no region has. */
size_t fake_free_mtts(struct hghca_dev *hdev)
{
	hghca_idle_keys_trim(hdev);
	return gen_pool_avail(hdev->mtt_pool);
}

/* Whether a region or window has a key. */
bool fake_has_keys(struct hghca_dev *hdev)
{
	hghca_idle_keys_trim(hdev);
	return !ida_is_empty(&hdev->mpt_ida);
}

static void fake_count_icm(struct hghca_dev *hdev, u32 *blocks, u32 *users)
{
	int kind;

	*blocks = 0;
	*users = 0;
	for (kind = 0; kind < HGHCA_ICM_KINDS; kind++) {
		*blocks += fake_icm_blocks(hdev, kind);
		*users += fake_icm_users(hdev, kind);
	}
}

static unsigned int fake_num_eqs(struct fake *fake)
{
	return fake->opened >= FAKE_OPEN_EVENTS ? FAKE_EQS : 0;
}

static struct fake_start *fake_note_start(struct fake *fake)
{
	struct fake_start *start = kzalloc(sizeof(*start), GFP_KERNEL);
	struct hghca_dev *hdev = fake->hdev;
	unsigned int i;

	if (!start)
		return NULL;
	fake_settle(fake);
	start->dev_lim = fake->limits;
	start->adapter = fake->adapter;
	start->port = fake->port;
	start->limits = hdev->limits;
	start->dma_device = hdev->ibdev.dma_device;
	start->timeout_ms = hdev->cmd.timeout_ms;
	start->look_ms = hdev->cmd.look_ms;
	start->hcr_timeout_us = hdev->cmd.hcr_timeout_us;
	start->num_comp_eqs = hdev->num_comp_eqs;
	memcpy(start->event_handlers, hdev->event_handlers, sizeof(start->event_handlers));
	start->port_mbps = hdev->port_mbps;
	memcpy(start->uar, fake->uar, sizeof(start->uar));
	memcpy(start->tags, hdev->mpt_tags, sizeof(start->tags));
	start->next_qpn = hdev->qps.next;
	start->next_gen = hdev->cmd.next_gen;
	start->logged = fake->logged;
	for (i = 0; i < fake_num_eqs(fake); i++)
		start->cons_index[i] = fake_eq(fake, i)->cons_index;
	start->opened = fake->opened;
	start->bus = hdev->bus;
	start->link_work = hdev->link_work.func;
	start->mtts = fake_free_mtts(hdev);
	start->mpts = fake_count_numbers(&hdev->mpt_ida);
	start->pds = fake_count_numbers(&hdev->pd_ida);
	fake_count_icm(hdev, &start->icm_blocks, &start->icm_users);
	return start;
}

/* It goes on, with no command and no event under way. */
static bool fake_works(struct fake *fake)
{
	struct hghca_dev *hdev = fake->hdev;
	unsigned int i;

	if (hghca_dev_has_failed(hdev) || !fake->dma || fake->stuck ||
	    readl((void __iomem *)fake_hcr(fake, 0x18)) & BIT(23) || fake_is_rung(fake) ||
	    readl(hdev->bus.regs + HGHCA_RESET))
		return false;
	if (!list_empty(&hdev->cmd.lost) || hdev->cmd.event_sem.count != HGHCA_CMD_SLOTS)
		return false;
	for (i = 0; i < HGHCA_CMD_SLOTS; i++)
		if (hdev->cmd.slots[i].state != HGHCA_CMD_SLOT_FREE)
			return false;
	/* All events were taken, so that all entries are the device's, wherever it goes on. */
	for (i = 0; i < fake_num_eqs(fake); i++)
		if (fake_eq(fake, i)->cons_index != fake->eq_index[i])
			return false;
	return true;
}

/* What is not put back is as it was. */
static bool fake_is_same(struct fake *fake)
{
	const struct fake_start *start = fake->start;
	struct hghca_dev *hdev = fake->hdev;
	u32 blocks, users;

	/* A block that could not be unmapped is kept, with no users. */
	fake_count_icm(hdev, &blocks, &users);
	return fake->opened == start->opened && !hdev->netdev && !hdev->registered &&
	       !memcmp(&hdev->bus, &start->bus, sizeof(start->bus)) &&
	       hdev->link_work.func == start->link_work &&
	       hdev->mpt_tags[FAKE_TAGS] == 0 && blocks == start->icm_blocks;
}

/* What the driver still has that it did not have at the start, or NULL. */
static const char *fake_left_behind(struct fake *fake)
{
	const struct fake_start *start = fake->start;
	struct hghca_dev *hdev = fake->hdev;
	u32 blocks, users;

	fake_count_icm(hdev, &blocks, &users);
	if (!xa_empty(&hdev->cqs.objs))
		return "a CQ";
	if (!xa_empty(&hdev->qps.objs))
		return "a QP";
	if (!xa_empty(&hdev->srqs.objs))
		return "an SRQ";
	if (!RB_EMPTY_ROOT(&hdev->mcast.groups) || !xa_empty(&hdev->mcast.entries))
		return "a multicast group";
	if (!xa_empty(&hdev->odp_mrs))
		return "an on-demand region";
	if (fake_count_numbers(&hdev->mpt_ida) != start->mpts)
		return "a key";
	if (fake_free_mtts(hdev) != start->mtts)
		return "MTTs";
	if (fake_count_numbers(&hdev->pd_ida) != start->pds)
		return "a PD";
	if (!ida_is_empty(&hdev->xrcd_ida))
		return "an XRC domain";
	if (!ida_is_empty(&hdev->uar_ida))
		return "a UAR page";
	if (!ida_is_empty(&hdev->counter_ida))
		return "a counter set";
	if (!ida_is_empty(&hdev->flow_ida))
		return "a flow rule";
	if (!ida_is_empty(&hdev->rss_ida) || !ida_is_empty(&hdev->rwq_table_ida))
		return "an RSS group";
	if (!ida_is_empty(&hdev->partition_ida))
		return "a partition";
	return users != start->icm_users ? "memory of a table" : NULL;
}

static void fake_put_back(struct fake *fake)
{
	const struct fake_start *start = fake->start;
	struct hghca_dev *hdev = fake->hdev;
	unsigned int i;

	fake->answer = NULL;
	fake->priv = NULL;
	fake->on_dma_begin = NULL;
	fake->on_dma_end = NULL;
	fake->limits = start->dev_lim;
	fake->adapter = start->adapter;
	fake->port = start->port;
	hdev->limits = start->limits;
	hdev->ibdev.dma_device = start->dma_device;
	hdev->cmd.timeout_ms = start->timeout_ms;
	hdev->cmd.look_ms = start->look_ms;
	hdev->cmd.hcr_timeout_us = start->hcr_timeout_us;
	hdev->num_comp_eqs = start->num_comp_eqs;
	memcpy(hdev->event_handlers, start->event_handlers, sizeof(start->event_handlers));
	hdev->port_mbps = start->port_mbps;
	memcpy(fake->uar, start->uar, sizeof(start->uar));
	memcpy(hdev->mpt_tags, start->tags, sizeof(start->tags));
	memset(hdev->partition_tags, 0, sizeof(hdev->partition_tags));
	hdev->qps.next = start->next_qpn;
	hdev->cmd.next_gen = start->next_gen;
	fake->logged = start->logged;
	for (i = 0; i < fake_num_eqs(fake); i++) {
		fake_eq(fake, i)->cons_index = start->cons_index[i];
		fake->eq_index[i] = start->cons_index[i];
	}
}

/* Whether the device, after @test, is as it was before. One that has lost something fails it. */
static bool fake_renew(struct kunit *test, struct fake *fake)
{
	struct hghca_dev *hdev = fake->hdev;
	const char *left;

	if (!fake->start || test->status == KUNIT_FAILURE)
		return false;
	fake->answer = NULL;
	cancel_work_sync(&hdev->fail_work);
	cancel_work_sync(&hdev->link_work);
	cancel_work_sync(&hdev->flush_work);
	fake_settle(fake);
	if (!fake_works(fake))
		return false;

	if (fake->opened == FAKE_OPEN_EVENTS && fake->start->opened == FAKE_OPEN) {
		hghca_eqs_cleanup(hdev);
		fake->opened = FAKE_OPEN;
	}
	fake_trim(hdev);
	fake_settle(fake);
	left = fake_left_behind(fake);
	if (left)
		KUNIT_FAIL(test, "%s is left behind", left);
	if (left || !fake_is_same(fake))
		return false;
	fake_put_back(fake);
	return true;
}

static void fake_give_back(struct fake *fake)
{
	struct kunit *test = fake->test;

	fake->test = NULL;
	if (!fake_kept && fake_renew(test, fake))
		fake_kept = fake;
	else
		fake_destroy(fake);
}

KUNIT_DEFINE_ACTION_WRAPPER(fake_give_back_action, fake_give_back, struct fake *);

/* The one that is kept, if the fixture would make the same. */
static struct fake *fake_take_kept(void (*set_up)(struct fake *fake), bool events)
{
	const int opened = events ? FAKE_OPEN_EVENTS : FAKE_OPEN;
	struct fake *fake = fake_kept;

	fake_kept = NULL;
	if (!fake || (fake->set_up == set_up && fake->start->opened == opened))
		return fake;
	fake_destroy(fake);
	return NULL;
}

int fake_test_open(struct kunit *test, void (*set_up)(struct fake *fake), bool events)
{
	struct fake *fake = fake_take_kept(set_up, events);
	int err;

	if (!fake)
		fake = fake_create();
	if (!fake)
		return -ENOMEM;
	fake->test = test;
	err = kunit_add_action_or_reset(test, fake_give_back_action, fake);
	if (err)
		return err;
	test->priv = fake;
	if (fake->start)
		return 0;

	fake->set_up = set_up;
	if (set_up)
		set_up(fake);
	err = fake_open(fake);
	if (!err && events)
		err = fake_events(fake);
	if (err || !fake_keeps)
		return err;
	fake->start = fake_note_start(fake);
	return fake->start ? 0 : -ENOMEM;
}

void fake_use_up(struct fake *fake)
{
	kfree(fake->start);
	fake->start = NULL;
}

int fake_test_init(struct kunit *test)
{
	return fake_test_open(test, NULL, false);
}

int fake_test_init_events(struct kunit *test)
{
	return fake_test_open(test, NULL, true);
}

int fake_suite_init(struct kunit_suite *suite)
{
	fake_keeps = true;
	return 0;
}

void fake_suite_exit(struct kunit_suite *suite)
{
	fake_keeps = false;
	if (fake_kept)
		fake_destroy(fake_kept);
	fake_kept = NULL;
}

/* ------------------------------------------------------------------ */
/* Objects                                                              */

struct hghca_pd *fake_new_pd(struct fake *fake)
{
	struct hghca_pd *pd = kzalloc(sizeof(*pd), GFP_KERNEL);

	if (!pd)
		return NULL;
	pd->ibpd.device = &fake->hdev->ibdev;
	if (!hghca_alloc_pd(&pd->ibpd, NULL))
		return pd;
	kfree(pd);
	return NULL;
}

void fake_del_pd(struct hghca_pd *pd)
{
	hghca_dealloc_pd(&pd->ibpd, NULL);
	kfree(pd);
}

struct hghca_cq *fake_new_cq(struct fake *fake, int cqe)
{
	struct hghca_cq *hcq = kzalloc(sizeof(*hcq), GFP_KERNEL);
	struct ib_cq_init_attr attr = { .cqe = cqe };

	if (!hcq)
		return NULL;
	hcq->ibcq.device = &fake->hdev->ibdev;
	if (!hghca_create_cq(&hcq->ibcq, &attr, NULL))
		return hcq;
	kfree(hcq);
	return NULL;
}

void fake_del_cq(struct hghca_cq *hcq)
{
	hghca_destroy_cq(&hcq->ibcq, NULL);
	kfree(hcq);
}

struct hghca_srq *fake_new_srq(struct hghca_pd *pd, u32 max_wr, u32 max_sge)
{
	struct hghca_srq *hsrq = kzalloc(sizeof(*hsrq), GFP_KERNEL);
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = max_wr, .max_sge = max_sge },
		.srq_type = IB_SRQT_BASIC,
	};

	if (!hsrq)
		return NULL;
	hsrq->ibsrq.device = pd->ibpd.device;
	hsrq->ibsrq.pd = &pd->ibpd;
	if (!hghca_create_srq(&hsrq->ibsrq, &init, NULL))
		return hsrq;
	kfree(hsrq);
	return NULL;
}

void fake_del_srq(struct hghca_srq *hsrq)
{
	hghca_destroy_srq(&hsrq->ibsrq, NULL);
	kfree(hsrq);
}

struct hghca_qp *fake_new_qp(struct hghca_pd *pd, struct hghca_cq *send_cq,
			     struct hghca_cq *recv_cq, const struct fake_qp_attr *attr)
{
	struct hghca_qp *hqp = kzalloc(sizeof(*hqp), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.send_cq = &send_cq->ibcq,
		.recv_cq = &recv_cq->ibcq,
		.srq = attr->srq ? &attr->srq->ibsrq : NULL,
		.cap = attr->cap,
		.sq_sig_type = attr->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = attr->type,
		.port_num = 1,
	};

	if (!hqp)
		return NULL;
	hqp->ibqp.device = pd->ibpd.device;
	hqp->ibqp.pd = &pd->ibpd;
	hqp->ibqp.send_cq = &send_cq->ibcq;
	hqp->ibqp.recv_cq = &recv_cq->ibcq;
	hqp->ibqp.srq = init.srq;
	hqp->ibqp.qp_type = attr->type;
	if (!hghca_create_qp(&hqp->ibqp, &init, NULL))
		return hqp;
	kfree(hqp);
	return NULL;
}

void fake_del_qp(struct hghca_qp *hqp)
{
	hghca_destroy_qp(&hqp->ibqp, NULL);
	kfree(hqp);
}

/* A region for fast registration. */
struct ib_mr *fake_new_mr(struct hghca_pd *pd, u32 pages)
{
	struct ib_mr *ibmr = hghca_alloc_mr(&pd->ibpd, IB_MR_TYPE_MEM_REG, pages);

	if (IS_ERR(ibmr))
		return NULL;
	ibmr->device = pd->ibpd.device;
	ibmr->pd = &pd->ibpd;
	return ibmr;
}

static void fake_del_mr(struct ib_mr *ibmr)
{
	hghca_dereg_mr(ibmr, NULL);
}

unsigned long fake_user_memory(struct kunit *test, size_t size, int prot)
{
	unsigned long start = kunit_vm_mmap(test, NULL, 0, size, prot,
					    MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, 0, start);
	KUNIT_ASSERT_LT(test, start, TASK_SIZE);
	return start;
}

KUNIT_DEFINE_ACTION_WRAPPER(fake_del_mr_action, fake_del_mr, struct ib_mr *);
KUNIT_DEFINE_ACTION_WRAPPER(fake_del_pd_action, fake_del_pd, struct hghca_pd *);
KUNIT_DEFINE_ACTION_WRAPPER(fake_del_cq_action, fake_del_cq, struct hghca_cq *);
KUNIT_DEFINE_ACTION_WRAPPER(fake_del_srq_action, fake_del_srq, struct hghca_srq *);
KUNIT_DEFINE_ACTION_WRAPPER(fake_del_qp_action, fake_del_qp, struct hghca_qp *);

struct hghca_pd *fake_pd(struct kunit *test, struct fake *fake)
{
	struct hghca_pd *pd = fake_new_pd(fake);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_del_pd_action, pd));
	return pd;
}

struct ib_mr *fake_mr(struct kunit *test, struct hghca_pd *pd, u32 pages)
{
	struct ib_mr *ibmr = fake_new_mr(pd, pages);

	KUNIT_ASSERT_NOT_NULL(test, ibmr);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_del_mr_action, ibmr));
	return ibmr;
}

struct hghca_cq *fake_cq(struct kunit *test, struct fake *fake, int cqe)
{
	struct hghca_cq *hcq = fake_new_cq(fake, cqe);

	KUNIT_ASSERT_NOT_NULL(test, hcq);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_del_cq_action, hcq));
	return hcq;
}

struct hghca_srq *fake_srq(struct kunit *test, struct hghca_pd *pd, u32 max_wr, u32 max_sge)
{
	struct hghca_srq *hsrq = fake_new_srq(pd, max_wr, max_sge);

	KUNIT_ASSERT_NOT_NULL(test, hsrq);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_del_srq_action, hsrq));
	return hsrq;
}

struct hghca_qp *fake_qp(struct kunit *test, struct hghca_pd *pd, struct hghca_cq *send_cq,
			 struct hghca_cq *recv_cq, const struct fake_qp_attr *attr)
{
	struct hghca_qp *hqp = fake_new_qp(pd, send_cq, recv_cq, attr);

	KUNIT_ASSERT_NOT_NULL(test, hqp);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fake_del_qp_action, hqp));
	return hqp;
}
