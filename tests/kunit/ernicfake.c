// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* KUnit tests of the driver of ERNIC and ETRNIC: a device that is not there; see ernicfake.h. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "ernicfake.h"
#include "ernicseam.h"

/* A driver that is interrupted by what it does not clear ends somewhere. */
#define FAKE_INTERRUPTS_MAX	64

/* The seam has no other way to it. */
static struct ernic_fake *ernic_fake_current;
static DEFINE_SPINLOCK(ernic_fake_lock);

/* ------------------------------------------------------------------ */
/* Registers                                                           */

static u32 ernic_fake_size(const struct ernic_fake *fake)
{
	return fake->is_ernic ? 0x40000 : 0x10000;
}

static u32 ernic_fake_globals(const struct ernic_fake *fake)
{
	return fake->is_ernic ? 0x20000 : 0;
}

u32 ernic_fake_qp_offset(struct ernic_fake *fake, u32 qpn, u32 offset)
{
	return ernic_fake_globals(fake) + 0x200 + (qpn - 1) * 0x100 + offset;
}

static u32 *ernic_fake_word(struct ernic_fake *fake, u32 offset)
{
	return (u32 *)(fake->registers + offset);
}

u32 ernic_fake_get(struct ernic_fake *fake, u32 offset)
{
	return *ernic_fake_word(fake, ernic_fake_globals(fake) + offset);
}

void ernic_fake_set(struct ernic_fake *fake, u32 offset, u32 value)
{
	WRITE_ONCE(*ernic_fake_word(fake, ernic_fake_globals(fake) + offset), value);
}

u32 ernic_fake_qp_get(struct ernic_fake *fake, u32 qpn, u32 offset)
{
	return *ernic_fake_word(fake, ernic_fake_qp_offset(fake, qpn, offset));
}

void ernic_fake_qp_set(struct ernic_fake *fake, u32 qpn, u32 offset, u32 value)
{
	WRITE_ONCE(*ernic_fake_word(fake, ernic_fake_qp_offset(fake, qpn, offset)), value);
}

u32 ernic_fake_pd_get(struct ernic_fake *fake, u32 entry, u32 offset)
{
	return *ernic_fake_word(fake, entry * 0x100 + offset);
}

int ernic_fake_find_write(struct ernic_fake *fake, u32 from, u32 offset, u32 value)
{
	u32 i;

	for (i = from; i < fake->written; i++)
		if (fake->writes[i % FAKE_WRITES].offset == offset &&
		    fake->writes[i % FAKE_WRITES].value == value)
			return i;
	return -1;
}

static bool ernic_fake_bank(struct ernic_fake *fake, u32 first)
{
	u32 bank;

	for (bank = 0; bank < 8; bank++)
		if (ernic_fake_get(fake, first + 4 * bank))
			return true;
	return false;
}

/* COMPLETION and RECEIVE are the OR of their banks. */
static u32 ernic_fake_pending(struct ernic_fake *fake)
{
	return ernic_fake_get(fake, FAKE_INTSTS) | ernic_fake_bank(fake, FAKE_CQINTSTS1) << 4 |
	       ernic_fake_bank(fake, FAKE_RQINTSTS1) << 6;
}

static bool ernic_fake_is_there(struct ernic_fake *fake, const void *at, u32 *offset)
{
	if (!fake || (u8 *)at < fake->registers)
		return false;
	*offset = (u8 *)at - fake->registers;
	return *offset < ernic_fake_size(fake) && !(*offset % 4);
}

u32 ernic_fake_readl(const void __iomem *from)
{
	struct ernic_fake *fake = ernic_fake_current;
	u32 value, offset;

	if (!ernic_fake_is_there(fake, (const void __force *)from, &offset)) {
		if (fake)
			fake->strays++;
		return ~0U;
	}
	if (fake->gone)
		return ~0U;
	value = READ_ONCE(*ernic_fake_word(fake, offset));
	if (offset == ernic_fake_globals(fake) + FAKE_INTSTS)
		value = ernic_fake_pending(fake);
	return fake->on_read ? fake->on_read(fake, offset, value) : value;
}

/* Whether a write of a global register stores the value. */
static bool ernic_fake_write_global(struct ernic_fake *fake, u32 offset, u32 *value)
{
	u32 old = ernic_fake_get(fake, offset);

	switch (offset) {
	case FAKE_INTSTS:
	case FAKE_RQINTSTS1 ... FAKE_CQINTSTS1 + 0x1c:
		*value = old & ~*value;
		return true;
	case FAKE_EXTENSIONS:
		*value = (old & 0xffff0000) | (*value & (old >> 16));
		return true;
	case FAKE_RECORDBA:
		ernic_fake_set(fake, FAKE_RECORDWPTR, 0);
		fake->record = 0;
		fake->record_round = 0;
		return true;
	case 0x06c:
	case 0x084:
	case FAKE_IPKTERRQWPTR:
	case 0x100 ... 0x17c:
	case FAKE_RECORDWPTR:
		return false;
	default:
		return true;
	}
}

/* The same of a QP. */
static bool ernic_fake_write_qp(struct ernic_fake *fake, u32 qpn, u32 offset)
{
	u32 adconf = ernic_fake_get(fake, FAKE_XRNICADCONF);
	bool override = adconf & 1 && (!(adconf >> 24) || adconf >> 24 == qpn);

	if (qpn > fake->num_qps)
		return false;
	switch (offset) {
	case 0x30:
	case 0x8c:
	case 0x9c:
		return override;
	case 0x44:
	case 0x84:
		return override || !(ernic_fake_qp_get(fake, qpn, FAKE_QPCONF) & 1);
	case 0x80:
	case 0x88:
	case 0x90:
	case 0x94:
	case 0x98:
	case 0xd8:
		return false;
	default:
		return true;
	}
}

void ernic_fake_writel(u32 value, void __iomem *to)
{
	struct ernic_fake *fake = ernic_fake_current;
	unsigned long flags;
	bool stored = true;
	u32 offset, global;

	if (!ernic_fake_is_there(fake, (void __force *)to, &offset)) {
		if (fake)
			fake->strays++;
		return;
	}
	spin_lock_irqsave(&ernic_fake_lock, flags);
	fake->writes[fake->written % FAKE_WRITES].offset = offset;
	fake->writes[fake->written++ % FAKE_WRITES].value = value;
	global = offset - ernic_fake_globals(fake);
	if (offset >= ernic_fake_globals(fake) && global < 0x200)
		stored = ernic_fake_write_global(fake, global, &value);
	else if (offset >= ernic_fake_globals(fake))
		stored = ernic_fake_write_qp(fake, (global - 0x200) / 0x100 + 1, global % 0x100);
	if (stored)
		WRITE_ONCE(*ernic_fake_word(fake, offset), value);
	spin_unlock_irqrestore(&ernic_fake_lock, flags);
}

/* ------------------------------------------------------------------ */
/* What the driver asks the kernel for                                  */

bool ernic_fake_refuses(void)
{
	struct ernic_fake *fake = ernic_fake_current;

	return fake && ++fake->requests == fake->refuse;
}

void __iomem *ernic_fake_ioremap(struct platform_device *pdev, unsigned int index,
				 struct resource **res)
{
	*res = platform_get_resource(pdev, IORESOURCE_MEM, index);
	if (!*res || !ernic_fake_current || ernic_fake_refuses())
		return IOMEM_ERR_PTR(-ENOMEM);
	return (void __iomem *)ernic_fake_current->registers;
}

void *ernic_fake_alloc_coherent(struct device *dev, size_t bytes, dma_addr_t *dma, gfp_t gfp)
{
	void *cpu = ernic_fake_refuses() ? NULL : dma_alloc_coherent(dev, bytes, dma, gfp);

	if (cpu && ernic_fake_current)
		ernic_fake_current->coherent++;
	return cpu;
}

void ernic_fake_free_coherent(struct device *dev, size_t bytes, void *cpu, dma_addr_t dma)
{
	if (ernic_fake_current)
		ernic_fake_current->coherent--;
	dma_free_coherent(dev, bytes, cpu, dma);
}

/* The carrier is not tested here. */
int ernic_pci_register(void)
{
	return ernic_fake_refuses() ? -ENOMEM : 0;
}

void ernic_pci_unregister(void)
{
}

/* ------------------------------------------------------------------ */
/* Its life                                                            */

static void ernic_fake_destroy(void *data)
{
	struct ernic_fake *fake = data;

	ernic_fake_close(fake);
	ernic_fake_current = NULL;
	if (fake->irq > 0)
		irq_free_desc(fake->irq);
	vfree(fake->registers);
	kfree(fake);
}

/* Registers after a reset: 0, but for those that tell a level. */
static void ernic_fake_reset(struct ernic_fake *fake, u32 extensions)
{
	u32 qpn;

	ernic_fake_set(fake, 0x12c, 2);
	ernic_fake_set(fake, FAKE_EXTENSIONS, extensions);
	for (qpn = 1; qpn <= fake->num_qps; qpn++)
		ernic_fake_qp_set(fake, qpn, FAKE_STATQP, 0x600);
}

struct ernic_fake *ernic_fake_create(struct kunit *test, bool is_ernic, u32 num_qps,
				     u32 extensions)
{
	struct ernic_fake *fake = kzalloc(sizeof(*fake), GFP_KERNEL);

	if (!fake)
		return NULL;
	fake->test = test;
	fake->is_ernic = is_ernic;
	fake->num_qps = num_qps;
	ernic_fake_current = fake;
	if (kunit_add_action_or_reset(test, ernic_fake_destroy, fake))
		return NULL;
	fake->registers = vzalloc(FAKE_REGISTERS);
	fake->irq = irq_alloc_desc(NUMA_NO_NODE);
	if (!fake->registers || fake->irq < 0)
		return NULL;
	irq_set_chip_and_handler(fake->irq, &dummy_irq_chip, handle_simple_irq);
	irq_clear_status_flags(fake->irq, IRQ_NOREQUEST);
	ernic_fake_reset(fake, extensions);
	return fake;
}

int ernic_fake_open(struct ernic_fake *fake)
{
	static const u8 mac[] = FAKE_MAC;
	struct ernic_dev *edev;

	fake->pdev = platform_device_register_simple("hghca-kunit-ernic", PLATFORM_DEVID_AUTO,
						     NULL, 0);
	if (IS_ERR(fake->pdev)) {
		fake->pdev = NULL;
		return -ENOMEM;
	}
	if (dma_set_mask_and_coherent(&fake->pdev->dev, DMA_BIT_MASK(fake->is_ernic ? 64 : 32)))
		return -EIO;
	fake->func.dev = &fake->pdev->dev;
	fake->func.sysdev = &fake->pdev->dev;
	fake->func.registers = (void __iomem *)fake->registers;
	fake->func.irq = fake->irq;
	fake->func.is_ernic = fake->is_ernic;
	ether_addr_copy(fake->func.mac, mac);
	edev = ernic_dev_create(&fake->func);
	if (IS_ERR(edev))
		return PTR_ERR(edev);
	/* As in ernic_dev_register(): messages name it. */
	edev->ibdev.dev.parent = &fake->pdev->dev;
	fake->edev = edev;
	return 0;
}

void ernic_fake_close(struct ernic_fake *fake)
{
	if (fake->edev)
		ernic_dev_destroy(fake->edev);
	fake->edev = NULL;
	platform_device_unregister(fake->pdev);
	fake->pdev = NULL;
}

static void ernic_fake_check_action(void *data)
{
	struct ernic_fake *fake = data;

	ernic_fake_close(fake);
	KUNIT_EXPECT_EQ(fake->test, 0, fake->strays);
	KUNIT_EXPECT_EQ(fake->test, 0, fake->coherent);
}

void ernic_fake_check(struct kunit *test, struct ernic_fake *fake)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ernic_fake_check_action, fake));
}

int ernic_fake_init(struct kunit *test)
{
	struct ernic_fake *fake = ernic_fake_create(test, true, 255, FAKE_RECORDS | FAKE_PAGES);
	int err;

	if (!fake)
		return -ENOMEM;
	err = ernic_fake_open(fake);
	if (err)
		return err;
	ernic_fake_check(test, fake);
	test->priv = fake;
	return 0;
}

/* ------------------------------------------------------------------ */
/* Memory that the registers name                                       */

static void *ernic_fake_memory(struct ernic_fake *fake, u32 qpn, u32 low, u32 high)
{
	u64 dma = ernic_fake_qp_get(fake, qpn, low);

	if (fake->is_ernic)
		dma |= (u64)ernic_fake_qp_get(fake, qpn, high) << 32;
	return phys_to_virt(dma);
}

void *ernic_fake_wqe(struct ernic_fake *fake, u32 qpn, u32 slot)
{
	return ernic_fake_memory(fake, qpn, FAKE_SQBA, FAKE_SQBAMSB) + 64 * slot;
}

__le32 *ernic_fake_cqe(struct ernic_fake *fake, u32 qpn, u32 slot)
{
	return ernic_fake_memory(fake, qpn, FAKE_CQBA, FAKE_CQBAMSB) + 4 * slot;
}

__le32 *ernic_fake_cq_door(struct ernic_fake *fake, u32 qpn)
{
	return ernic_fake_memory(fake, qpn, FAKE_CQDBADD, FAKE_CQDBADDMSB);
}

__le32 *ernic_fake_rq_door(struct ernic_fake *fake, u32 qpn)
{
	return ernic_fake_memory(fake, qpn, FAKE_RQWPTRDBADD, FAKE_RQWPTRDBADDMSB);
}

u8 *ernic_fake_slot(struct ernic_fake *fake, u32 qpn, u32 slot)
{
	u32 units = ernic_fake_qp_get(fake, qpn, FAKE_QPCONF) >> 16;

	return ernic_fake_memory(fake, qpn, FAKE_RQBA, FAKE_RQBAMSB) + (size_t)slot * 256 * units;
}

static u8 *ernic_fake_global_memory(struct ernic_fake *fake, u32 low, u32 high)
{
	u64 dma = ernic_fake_get(fake, low);

	if (fake->is_ernic)
		dma |= (u64)ernic_fake_get(fake, high) << 32;
	return phys_to_virt(dma);
}

u8 *ernic_fake_record(struct ernic_fake *fake, u32 place)
{
	return ernic_fake_global_memory(fake, FAKE_RECORDBA, FAKE_RECORDBAMSB) + 16 * place;
}

u8 *ernic_fake_error(struct ernic_fake *fake, u32 place)
{
	return ernic_fake_global_memory(fake, FAKE_IPKTERRQBA, FAKE_IPKTERRQBAMSB) + 8 * place;
}

/* ------------------------------------------------------------------ */
/* What it does                                                         */

static void ernic_fake_set_bit(struct ernic_fake *fake, u32 bank, u32 qpn)
{
	bank += qpn / 32 * 4;
	ernic_fake_set(fake, bank, ernic_fake_get(fake, bank) | BIT(qpn % 32));
}

void ernic_fake_complete(struct ernic_fake *fake, u32 qpn, u32 index, bool error)
{
	u32 depth = ernic_fake_qp_get(fake, qpn, FAKE_QDEPTH) & 0xffff;
	u32 slot = ernic_fake_qp_get(fake, qpn, FAKE_CQHEAD) % depth;

	for (;; slot = (slot + 1) % depth) {
		const u8 *wqe = ernic_fake_wqe(fake, qpn, slot);
		bool last = slot == index - 1;

		/* WRID, opcode, error flag. */
		*ernic_fake_cqe(fake, qpn, slot) =
			cpu_to_le32(wqe[0] | wqe[1] << 8 | wqe[16] << 16 | (error && last) << 24);
		if (last)
			break;
	}
	ernic_fake_qp_set(fake, qpn, FAKE_CQHEAD, index);
	WRITE_ONCE(*ernic_fake_cq_door(fake, qpn), cpu_to_le32(index));
	ernic_fake_set_bit(fake, FAKE_CQINTSTS1, qpn);
}

void ernic_fake_write_record(struct ernic_fake *fake, u32 qpn, u32 index,
			     const struct ernic_fake_message *message)
{
	u32 places = ernic_fake_get(fake, FAKE_RECORDSZ);
	u8 *record = ernic_fake_record(fake, fake->record);

	put_unaligned_le16(qpn, record);
	put_unaligned_le16(index, record + 2);
	record[4] = message->opcode;
	record[6] = 0;
	record[7] = 0;
	put_unaligned_le32(message->bytes, record + 8);
	memcpy(record + 12, &message->imm, 4);
	record[5] = message->flags | (fake->record_round % 2 ? 0 : 0x80);
	fake->record = (fake->record + 1) % places;
	if (!fake->record)
		fake->record_round++;
	ernic_fake_set(fake, FAKE_RECORDWPTR, fake->record);
}

/* IBA 9.2.1: SEND and WRITE with immediate data, SEND with invalidate; the last packet, and the only one. */
static bool ernic_fake_has_imm(u8 opcode)
{
	return opcode == 0x03 || opcode == 0x05 || opcode == 0x09 || opcode == 0x0b ||
	       opcode == 0x16 || opcode == 0x17;
}

/* 31:0 data, 39:32 type, 47:40 QP, 63:48 RQ producer index. */
void ernic_fake_write_immdt(struct ernic_fake *fake, u32 qpn, u32 index,
			    const struct ernic_fake_message *message)
{
	u32 place = ernic_fake_get(fake, FAKE_RECORDWPTR);
	u8 *entry = ernic_fake_global_memory(fake, FAKE_RECORDBA, FAKE_RECORDBAMSB) + 8 * place;

	memcpy(entry, &message->imm, 4);
	entry[4] = message->opcode;
	entry[5] = qpn;
	put_unaligned_le16(index, entry + 6);
	ernic_fake_set(fake, FAKE_RECORDWPTR, (place + 1) % ernic_fake_get(fake, FAKE_RECORDSZ));
}

void ernic_fake_receive(struct ernic_fake *fake, u32 qpn, const struct ernic_fake_message *message)
{
	u32 depth = ernic_fake_qp_get(fake, qpn, FAKE_QDEPTH) >> 16;
	/* QP 1 has no register of it. */
	u32 last = qpn == 1 ? le32_to_cpu(*ernic_fake_rq_door(fake, qpn)) :
			      ernic_fake_qp_get(fake, qpn, FAKE_STATRQPIDB);
	u32 index = last % depth + 1;

	if (message->data)
		memcpy(ernic_fake_slot(fake, qpn, index - 1), message->data, message->bytes);
	if (ernic_fake_get(fake, FAKE_EXTENSIONS) & 1 && qpn != 1)
		ernic_fake_write_record(fake, qpn, index, message);
	else if (ernic_fake_has_imm(message->opcode))
		ernic_fake_write_immdt(fake, qpn, index, message);
	ernic_fake_qp_set(fake, qpn, FAKE_STATRQPIDB, index);
	WRITE_ONCE(*ernic_fake_rq_door(fake, qpn), cpu_to_le32(index));
	ernic_fake_set_bit(fake, FAKE_RQINTSTS1, qpn);
}

void ernic_fake_fatal(struct ernic_fake *fake, u32 qpn, u16 code)
{
	u32 place = ernic_fake_get(fake, FAKE_IPKTERRQWPTR);
	u8 *error = ernic_fake_error(fake, place);

	put_unaligned_le16(code, error);
	put_unaligned_le16(qpn, error + 2);
	put_unaligned_le32(0, error + 4);
	ernic_fake_set(fake, FAKE_IPKTERRQWPTR,
		       (place + 1) % ernic_fake_get(fake, FAKE_IPKTERRQSZ));
	ernic_fake_set(fake, FAKE_INTSTS, ernic_fake_get(fake, FAKE_INTSTS) | BIT(7));
}

void ernic_fake_bare_interrupt(struct ernic_fake *fake)
{
	generic_handle_irq_safe(fake->irq);
	synchronize_irq(fake->irq);
}

bool ernic_fake_interrupt(struct ernic_fake *fake)
{
	u32 i;

	for (i = 0; i < FAKE_INTERRUPTS_MAX; i++) {
		if (!(ernic_fake_pending(fake) & ernic_fake_get(fake, FAKE_INTEN)))
			return true;
		ernic_fake_bare_interrupt(fake);
	}
	return false;
}

/* ------------------------------------------------------------------ */
/* Objects                                                             */

static void ernic_fake_free_netdev(void *netdev)
{
	free_netdev(netdev);
}

struct net_device *ernic_fake_netdev(struct kunit *test)
{
	static const u8 mac[] = FAKE_MAC;
	struct net_device *netdev = alloc_etherdev(0);

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	eth_hw_addr_set(netdev, mac);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ernic_fake_free_netdev, netdev));
	return netdev;
}

struct ib_pd *ernic_fake_pd(struct kunit *test, struct ernic_fake *fake)
{
	struct ernic_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	pd->ibpd.device = &fake->edev->ibdev;
	/* The numbers are the device's, and go with it. */
	pd->pdn = 0x21;
	return &pd->ibpd;
}

static void ernic_fake_destroy_cq(void *data)
{
	ernic_destroy_cq(data, NULL);
}

struct ib_cq *ernic_fake_cq(struct kunit *test, struct ernic_fake *fake, int cqe)
{
	struct ernic_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);
	const struct ib_cq_init_attr attr = { .cqe = cqe };

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->ibcq.device = &fake->edev->ibdev;
	KUNIT_ASSERT_EQ(test, 0, ernic_create_cq(&cq->ibcq, &attr, NULL));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ernic_fake_destroy_cq, &cq->ibcq));
	return &cq->ibcq;
}

static void ernic_fake_destroy_qp_action(void *data)
{
	struct ernic_qp *qp = data;

	ernic_destroy_qp(&qp->ibqp, NULL);
}

struct ernic_qp *ernic_fake_new_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *send_cq,
				   struct ib_cq *recv_cq, const struct ernic_fake_qp *attr,
				   int *err)
{
	static struct ib_udata none;
	struct ernic_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	struct ib_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.cap = {
			.max_send_wr = attr->sends,
			.max_recv_wr = attr->receives,
			.max_send_sge = attr->sges,
			.max_recv_sge = attr->sges,
		},
		.sq_sig_type = attr->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = attr->gsi ? IB_QPT_GSI : IB_QPT_RC,
	};

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->ibqp.device = pd->device;
	qp->ibqp.pd = pd;
	qp->ibqp.send_cq = send_cq;
	qp->ibqp.recv_cq = recv_cq;
	qp->ibqp.qp_type = init.qp_type;
	*err = ernic_create_qp(&qp->ibqp, &init, attr->user ? &none : NULL);
	if (*err)
		return NULL;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ernic_fake_destroy_qp_action, qp));
	return qp;
}

struct ernic_qp *ernic_fake_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq,
			       const struct ernic_fake_qp *attr)
{
	int err;
	struct ernic_qp *qp = ernic_fake_new_qp(test, pd, cq, cq, attr, &err);

	KUNIT_ASSERT_EQ(test, 0, err);
	return qp;
}

void ernic_fake_destroy_qp(struct kunit *test, struct ernic_qp *qp)
{
	kunit_release_action(test, ernic_fake_destroy_qp_action, qp);
}

static void ernic_fake_make_sgid(struct ernic_fake *fake)
{
	if (rcu_access_pointer(fake->sgid.ndev))
		return;
	fake->sgid.device = &fake->edev->ibdev;
	fake->sgid.port_num = 1;
	fake->sgid.gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP;
	rcu_assign_pointer(fake->sgid.ndev, ernic_fake_netdev(fake->test));
}

void ernic_fake_attr(struct ernic_fake *fake, struct ib_qp_attr *attr, bool ipv6)
{
	static const u8 dmac[] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
	static const u8 v6[] = { 0xfe, 0x80, [5] = 0x12, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0xab,
				 0xcd, 0xef };
	static const u8 v4[] = { [10] = 0xff, 0xff, 192, 168, 0, 1 };
	static u8 peer_v6[] = { 0xfe, 0x80, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09,
				0x0a, 0x0b, 0x0c, 0x0d, 0x0e };
	static u8 peer_v4[] = { [10] = 0xff, 0xff, 10, 1, 2, 3 };

	ernic_fake_make_sgid(fake);
	memcpy(fake->sgid.gid.raw, ipv6 ? v6 : v4, 16);
	*attr = (struct ib_qp_attr) {
		.path_mtu = IB_MTU_1024,
		.rq_psn = 0xabcdef,
		.sq_psn = 0xfedcba,
		.dest_qp_num = 0xbadbad,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 9,
		.min_rnr_timer = 14,
		.port_num = 1,
		.timeout = 17,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr->ah_attr, 1);
	rdma_ah_set_grh(&attr->ah_attr, NULL, 0x12345, 0, 0x3f, 0x15);
	rdma_ah_set_dgid_raw(&attr->ah_attr, ipv6 ? peer_v6 : peer_v4);
	attr->ah_attr.grh.sgid_attr = &fake->sgid;
	memcpy(attr->ah_attr.roce.dmac, dmac, sizeof(dmac));
}

static int ernic_fake_mask(bool gsi, enum ib_qp_state to)
{
	switch (to) {
	case IB_QPS_INIT:
		return IB_QP_STATE | IB_QP_PKEY_INDEX |
		       (gsi ? IB_QP_QKEY : IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	case IB_QPS_RTR:
		return gsi ? IB_QP_STATE :
			     IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			     IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	case IB_QPS_RTS:
		return gsi ? IB_QP_STATE | IB_QP_SQ_PSN :
			     IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			     IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;
	default:
		return IB_QP_STATE;
	}
}

int ernic_fake_modify(struct ernic_fake *fake, struct ernic_qp *qp, enum ib_qp_state to)
{
	struct ib_qp_attr attr;

	ernic_fake_attr(fake, &attr, false);
	attr.qp_state = to;
	return ernic_modify_qp(&qp->ibqp, &attr,
			       ernic_fake_mask(qp->ibqp.qp_type == IB_QPT_GSI, to), NULL);
}

void ernic_fake_connect(struct kunit *test, struct ernic_fake *fake, struct ernic_qp *qp)
{
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_INIT));
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_RTR));
	KUNIT_ASSERT_EQ(test, 0, ernic_fake_modify(fake, qp, IB_QPS_RTS));
}
