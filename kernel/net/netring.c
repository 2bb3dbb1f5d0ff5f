// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: rings of the net device: a raw Ethernet QP and its CQ.
 *
 * Every WQE generates a CQE, and both queues complete in order.  A CQE that does not
 * refer to the oldest WQE of its queue is a fault, and so is a CQE in error.
 */
#include <linux/etherdevice.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/netdev_queues.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

#define HGHCA_NET_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define HGHCA_NET_TX_UNITS	2	/* next, data */
#define HGHCA_NET_TX_STOP	1
#define HGHCA_NET_TX_WAKE	(HGHCA_NET_TX_SLOTS / 4)
#define HGHCA_NET_LOG_MSG_MAX	16
#define HGHCA_NET_REFILL_DELAY	(HZ / 10)

struct hghca_net_tx_wqe {
	struct hghca_next_unit next;
	struct hghca_data_unit data;
};

struct hghca_net_rx_wqe {
	struct hghca_next_unit next;
	struct hghca_data_unit data;
	struct hghca_data_unit end;
};

static_assert(sizeof(struct hghca_net_tx_wqe) == HGHCA_NET_TX_UNITS * HGHCA_WQE_UNIT);
static_assert(sizeof(struct hghca_net_rx_wqe) <= BIT(HGHCA_NET_STRIDE_LOG));

static u32 hghca_net_offset(u32 index, u32 num_slots)
{
	return (index & (num_slots - 1)) << HGHCA_NET_STRIDE_LOG;
}

static struct hghca_net_tx_wqe *hghca_net_tx_wqe(struct hghca_net_tx *tx, u32 index)
{
	return hghca_queue_at(&tx->queue, hghca_net_offset(index, HGHCA_NET_TX_SLOTS));
}

static struct hghca_net_rx_wqe *hghca_net_rx_wqe(struct hghca_net_rx *rx, u32 index)
{
	return hghca_queue_at(&rx->queue, hghca_net_offset(index, HGHCA_NET_RX_SLOTS));
}

static struct hghca_cqe *hghca_net_cqe(struct hghca_net_cq *cq, u32 index)
{
	return hghca_queue_at(&cq->queue,
			      (index & (BIT(HGHCA_NET_CQ_LOG) - 1)) * sizeof(struct hghca_cqe));
}

/* ------------------------------------------------------------------ */
/* Transmit                                                             */

static u32 hghca_net_tx_room(const struct hghca_net_tx *tx)
{
	/* One slot stays empty, so that the device sees at most one queue of WQEs. */
	u32 head = READ_ONCE(tx->head);

	/* Pairs with the release in hghca_net_tx_complete(). */
	return HGHCA_NET_TX_SLOTS - 1 - (head - smp_load_acquire(&tx->tail));
}

/* Document 5.1: write the WQE, then link it to its predecessor. */
static void hghca_net_tx_post(struct hghca_netdev *nd, dma_addr_t dma, u32 len)
{
	struct hghca_net_tx *tx = &nd->tx;
	struct hghca_net_tx_wqe *wqe = hghca_net_tx_wqe(tx, tx->head);
	struct hghca_next_unit *prev;

	wqe->next.nda_nop = 0;
	wqe->next.nee_nds = 0;
	wqe->next.flags = cpu_to_le32(HGHCA_WQE_CQ_UPDATE);
	wqe->next.imm_data = 0;
	wqe->data.byte_cnt = cpu_to_le32(len);
	wqe->data.lkey = cpu_to_le32(nd->mr.key);
	wqe->data.addr = cpu_to_le64(dma);

	if (tx->head) {
		prev = &hghca_net_tx_wqe(tx, tx->head - 1)->next;
		/* The WQE is complete before its predecessor links to it. */
		dma_wmb();
		prev->nda_nop = cpu_to_le32(hghca_net_offset(tx->head, HGHCA_NET_TX_SLOTS) |
					    FIELD_PREP(HGHCA_NEXT_NOP_MASK, HGHCA_OPCODE_SEND));
		/* The address becomes valid when the size is set. */
		dma_wmb();
		prev->nee_nds = cpu_to_le32(FIELD_PREP(HGHCA_NEXT_NDS_MASK, HGHCA_NET_TX_UNITS));
	}

	if (!tx->batch_count++)
		tx->batch_first = tx->head;
	/* Completions are accepted for slots below head.  This slot is filled in. */
	smp_store_release(&tx->head, tx->head + 1);
}

static void hghca_net_tx_ring(struct hghca_netdev *nd)
{
	struct hghca_net_tx *tx = &nd->tx;
	u32 count = tx->batch_count;

	if (!count)
		return;
	if (count > FIELD_MAX(HGHCA_SQ_DB_COUNT_MASK))
		count = 0;
	hghca_ring_sq(nd->hdev,
		      FIELD_PREP(HGHCA_SQ_DB_COUNT_MASK, count) |
		      FIELD_PREP(HGHCA_SQ_DB_HEAD_MASK, tx->batch_first & U16_MAX) |
		      FIELD_PREP(HGHCA_SQ_DB_OPCODE_MASK, HGHCA_OPCODE_SEND),
		      nd->hwqp.qpn, HGHCA_NET_TX_UNITS);
	tx->batch_count = 0;
}

/**
 * hghca_netring_xmit - send a frame
 * @skb: the frame
 * @netdev: the net device
 *
 * Return: NETDEV_TX_OK, or NETDEV_TX_BUSY for a full ring, which a stopped queue prevents.
 */
netdev_tx_t hghca_netring_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct hghca_netdev *nd = netdev_priv(netdev);
	struct netdev_queue *txq = netdev_get_tx_queue(netdev, 0);
	struct hghca_net_tx *tx = &nd->tx;
	struct hghca_net_tx_slot *slot;
	dma_addr_t dma;
	bool ring;

	/* Queued before the MTU was reduced. */
	if (unlikely(skb->len > nd->rx.buf_len)) {
		dev_kfree_skb_any(skb);
		goto out_drop;
	}

	if (unlikely(!hghca_net_tx_room(tx))) {
		netif_tx_stop_queue(txq);
		hghca_net_tx_ring(nd);
		return NETDEV_TX_BUSY;
	}

	/* skb_put_padto() frees the frame if there is no memory for the padding. */
	if (skb_put_padto(skb, ETH_ZLEN))
		goto out_drop;

	dma = dma_map_single(nd->hdev->bus.dev, skb->data, skb->len, DMA_TO_DEVICE);
	if (unlikely(dma_mapping_error(nd->hdev->bus.dev, dma))) {
		dev_kfree_skb_any(skb);
		goto out_drop;
	}

	slot = &tx->slots[tx->head & (HGHCA_NET_TX_SLOTS - 1)];
	slot->skb = skb;
	slot->dma = dma;
	slot->len = skb->len;
	skb_tx_timestamp(skb);
	hghca_net_tx_post(nd, dma, skb->len);

	ring = __netdev_tx_sent_queue(txq, slot->len, netdev_xmit_more());
	if (!netif_txq_maybe_stop(txq, hghca_net_tx_room(tx), HGHCA_NET_TX_STOP,
				  HGHCA_NET_TX_WAKE)) {
		tx->stops++;
		ring = true;
	}
	if (ring)
		hghca_net_tx_ring(nd);
	return NETDEV_TX_OK;

out_drop:
	DEV_STATS_INC(netdev, tx_dropped);
	if (!netdev_xmit_more())
		hghca_net_tx_ring(nd);
	return NETDEV_TX_OK;
}

static void hghca_net_tx_unmap(struct hghca_netdev *nd, struct hghca_net_tx_slot *slot)
{
	dma_unmap_single(nd->hdev->bus.dev, slot->dma, slot->len, DMA_TO_DEVICE);
	slot->skb = NULL;
}

/* ------------------------------------------------------------------ */
/* Receive                                                              */

static void hghca_net_rx_post(struct hghca_netdev *nd, struct page *page)
{
	struct hghca_net_rx *rx = &nd->rx;
	struct hghca_net_rx_wqe *wqe = hghca_net_rx_wqe(rx, rx->head);

	wqe->data.byte_cnt = cpu_to_le32(rx->buf_len);
	wqe->data.lkey = cpu_to_le32(nd->mr.key);
	wqe->data.addr = cpu_to_le64(page_pool_get_dma_addr(page) + HGHCA_NET_HEADROOM);
	wqe->end.byte_cnt = 0;
	wqe->end.lkey = cpu_to_le32(HGHCA_INVALID_LKEY);
	rx->pages[rx->head & (HGHCA_NET_RX_SLOTS - 1)] = page;
	rx->head++;
}

/*
 * Post as many WQEs as there is memory for; document 5.2.  An empty ring generates no
 * completions, which would call the poller.  Then a timer schedules it.
 */
static void hghca_net_rx_fill(struct hghca_netdev *nd)
{
	struct hghca_net_rx *rx = &nd->rx;
	u32 head = rx->head;

	while (rx->head - rx->tail < HGHCA_NET_RX_SLOTS) {
		struct page *page = page_pool_dev_alloc_pages(rx->pool);

		if (!page) {
			rx->no_memory++;
			mod_timer(&rx->refill_timer, jiffies + HGHCA_NET_REFILL_DELAY);
			break;
		}
		hghca_net_rx_post(nd, page);
	}
	if (rx->head == head)
		return;

	/* The WQEs are complete before the record counts them. */
	dma_wmb();
	WRITE_ONCE(*rx->dbr.record, cpu_to_le32(rx->head));
}

/**
 * hghca_netring_refill - retry the allocation of receive buffers
 * @timer: the refill_timer of a receive ring
 */
void hghca_netring_refill(struct timer_list *timer)
{
	struct hghca_netdev *nd = container_of(timer, struct hghca_netdev, rx.refill_timer);

	napi_schedule(&nd->napi);
}

static void hghca_net_rx_deliver(struct hghca_netdev *nd, struct page *page, u32 len)
{
	struct net_device *netdev = nd->netdev;
	struct hghca_net_rx *rx = &nd->rx;
	struct sk_buff *skb;

	page_pool_dma_sync_for_cpu(rx->pool, page, 0, len);
	skb = napi_build_skb(page_address(page), page_size(page));
	if (unlikely(!skb)) {
		page_pool_recycle_direct(rx->pool, page);
		DEV_STATS_INC(netdev, rx_dropped);
		return;
	}

	skb_mark_for_recycle(skb);
	skb_reserve(skb, HGHCA_NET_HEADROOM);
	skb_put(skb, len);
	skb->protocol = eth_type_trans(skb, netdev);
	dev_sw_netstats_rx_add(netdev, len);
	napi_gro_receive(&nd->napi, skb);
}

static int hghca_net_rx_alloc(struct hghca_netdev *nd)
{
	struct hghca_net_rx *rx = &nd->rx;
	u32 room = HGHCA_NET_HEADROOM + nd->netdev->mtu + HGHCA_NET_OVERHEAD;
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = get_order(SKB_DATA_ALIGN(room) +
				   SKB_DATA_ALIGN(sizeof(struct skb_shared_info))),
		.pool_size = HGHCA_NET_RX_SLOTS,
		.nid = dev_to_node(nd->hdev->bus.dev),
		.dev = nd->hdev->bus.dev,
		.napi = &nd->napi,
		.netdev = nd->netdev,
		.dma_dir = DMA_FROM_DEVICE,
		.offset = HGHCA_NET_HEADROOM,
		.max_len = nd->netdev->mtu + HGHCA_NET_OVERHEAD,
	};
	int err;

	rx->head = 0;
	rx->tail = 0;
	rx->buf_len = params.max_len;
	rx->pages = kvcalloc(HGHCA_NET_RX_SLOTS, sizeof(*rx->pages), GFP_KERNEL);
	if (!rx->pages)
		return -ENOMEM;

	rx->pool = page_pool_create(&params);
	if (IS_ERR(rx->pool)) {
		err = PTR_ERR(rx->pool);
		goto err_free_pages;
	}

	err = hghca_dbr_alloc(nd->hdev, &rx->dbr);
	if (err)
		goto err_destroy_pool;

	err = hghca_queue_alloc(nd->hdev, &rx->queue, nd->hdev->pdn,
				HGHCA_NET_RX_SLOTS << HGHCA_NET_STRIDE_LOG, false);
	if (err)
		goto err_free_dbr;
	return 0;

err_free_dbr:
	hghca_dbr_free(nd->hdev, &rx->dbr);
err_destroy_pool:
	page_pool_destroy(rx->pool);
err_free_pages:
	kvfree(rx->pages);
	return err;
}

static void hghca_net_rx_free(struct hghca_netdev *nd)
{
	struct hghca_net_rx *rx = &nd->rx;

	/* The poller, which starts the timer, is disabled. */
	timer_delete_sync(&rx->refill_timer);
	for (; rx->tail != rx->head; rx->tail++)
		page_pool_put_full_page(rx->pool,
					rx->pages[rx->tail & (HGHCA_NET_RX_SLOTS - 1)], false);
	hghca_queue_free(nd->hdev, &rx->queue);
	hghca_dbr_free(nd->hdev, &rx->dbr);
	page_pool_destroy(rx->pool);
	kvfree(rx->pages);
}

static int hghca_net_tx_alloc(struct hghca_netdev *nd)
{
	struct hghca_net_tx *tx = &nd->tx;
	int err;

	tx->head = 0;
	tx->tail = 0;
	tx->batch_count = 0;
	tx->slots = kvcalloc(HGHCA_NET_TX_SLOTS, sizeof(*tx->slots), GFP_KERNEL);
	if (!tx->slots)
		return -ENOMEM;

	err = hghca_queue_alloc(nd->hdev, &tx->queue, nd->hdev->pdn,
				HGHCA_NET_TX_SLOTS << HGHCA_NET_STRIDE_LOG, false);
	if (err)
		kvfree(tx->slots);
	return err;
}

static void hghca_net_tx_free(struct hghca_netdev *nd)
{
	struct hghca_net_tx *tx = &nd->tx;

	for (; tx->tail != tx->head; tx->tail++) {
		struct hghca_net_tx_slot *slot = &tx->slots[tx->tail & (HGHCA_NET_TX_SLOTS - 1)];
		struct sk_buff *skb = slot->skb;

		hghca_net_tx_unmap(nd, slot);
		dev_kfree_skb_any(skb);
	}
	netdev_tx_reset_queue(netdev_get_tx_queue(nd->netdev, 0));
	hghca_queue_free(nd->hdev, &tx->queue);
	kvfree(tx->slots);
}

/* ------------------------------------------------------------------ */
/* Completions                                                          */

/* Work of one call of the poll function. */
struct hghca_net_work {
	unsigned int rx_packets;
	unsigned int tx_packets;
	unsigned int tx_bytes;
};

static bool hghca_net_tx_complete(struct hghca_netdev *nd, const struct hghca_cqe *cqe,
				  struct hghca_net_work *work, int budget)
{
	struct hghca_net_tx *tx = &nd->tx;
	struct hghca_net_tx_slot *slot = &tx->slots[tx->tail & (HGHCA_NET_TX_SLOTS - 1)];
	struct sk_buff *skb;

	/* Pairs with the release in hghca_net_tx_post(). */
	if (tx->tail == smp_load_acquire(&tx->head) || cqe->opcode == HGHCA_OPCODE_INVALID ||
	    le32_to_cpu(cqe->wqe) != hghca_net_offset(tx->tail, HGHCA_NET_TX_SLOTS))
		return false;

	skb = slot->skb;
	work->tx_packets++;
	work->tx_bytes += slot->len;
	hghca_net_tx_unmap(nd, slot);
	napi_consume_skb(skb, budget);
	/* The transmit path may refill the slot after it sees the new tail. */
	smp_store_release(&tx->tail, tx->tail + 1);
	return true;
}

static bool hghca_net_rx_complete(struct hghca_netdev *nd, const struct hghca_cqe *cqe,
				  struct hghca_net_work *work)
{
	struct hghca_net_rx *rx = &nd->rx;
	u32 len = le32_to_cpu(cqe->byte_cnt);
	struct page **page = &rx->pages[rx->tail & (HGHCA_NET_RX_SLOTS - 1)];

	if (rx->tail == rx->head || cqe->opcode == HGHCA_OPCODE_INVALID ||
	    le32_to_cpu(cqe->wqe) != hghca_net_offset(rx->tail, HGHCA_NET_RX_SLOTS) ||
	    len < ETH_HLEN || len > rx->buf_len)
		return false;

	work->rx_packets++;
	rx->tail++;
	hghca_net_rx_deliver(nd, *page, len);
	*page = NULL;
	return true;
}

/* Returns false if the device owns the next entry. */
static bool hghca_net_cq_next(struct hghca_netdev *nd, struct hghca_cqe *copy)
{
	struct hghca_net_cq *cq = &nd->cq;
	struct hghca_cqe *cqe = hghca_net_cqe(cq, cq->cons_index);

	if (READ_ONCE(cqe->owner) & HGHCA_CQ_ENTRY_OWNER_HW)
		return false;
	/* Read the entry after its owner, which the device writes last. */
	dma_rmb();
	*copy = *cqe;
	/* The record returns the entry to the device; see hghca_net_cq_consume(). */
	WRITE_ONCE(cqe->owner, HGHCA_CQ_ENTRY_OWNER_HW);
	trace_hghca_cqe(nd->hdev, cq->hw.cqn, cq->cons_index, copy);
	cq->cons_index++;
	return true;
}

static void hghca_net_cqe_fault(struct hghca_netdev *nd, const struct hghca_cqe *cqe)
{
	const struct hghca_err_cqe *err_cqe = (const struct hghca_err_cqe *)cqe;

	/* The first error is the cause.  Flushed WQEs are only its result. */
	if (err_cqe->syndrome != HGHCA_SYNDROME_WR_FLUSH_ERR && net_ratelimit())
		netdev_err(nd->netdev,
			   "%s completion: QP %#x, WQE at %#x, opcode %#x, syndrome %#x\n",
			   cqe->is_send ? "send" : "receive", le32_to_cpu(cqe->my_qpn),
			   le32_to_cpu(cqe->wqe), cqe->opcode, err_cqe->syndrome);
	hghca_netdev_fault(nd);
}

static void hghca_net_cq_consume(struct hghca_netdev *nd, struct hghca_net_work *work, int budget)
{
	struct hghca_cqe cqe;
	unsigned int i;

	for (i = 0; i < BIT(HGHCA_NET_CQ_LOG) && work->rx_packets < budget; i++) {
		bool good = false;

		if (!hghca_net_cq_next(nd, &cqe))
			break;
		if (le32_to_cpu(cqe.my_qpn) == nd->hwqp.qpn)
			good = cqe.is_send ? hghca_net_tx_complete(nd, &cqe, work, budget) :
					     hghca_net_rx_complete(nd, &cqe, work);
		if (!good)
			hghca_net_cqe_fault(nd, &cqe);
	}
	if (!i)
		return;

	/* Read the entries and return their ownership before the record is written. */
	dma_mb();
	WRITE_ONCE(*nd->cq.dbr.record, cpu_to_le32(nd->cq.cons_index));
}

/**
 * hghca_netring_poll - NAPI's poll function
 * @napi: the instance
 * @budget: maximum number of frames to receive
 *
 * Return: number of frames received.
 */
int hghca_netring_poll(struct napi_struct *napi, int budget)
{
	struct hghca_netdev *nd = container_of(napi, struct hghca_netdev, napi);
	struct hghca_net_work work = {};

	/* The queues share a CQ: without a receive budget, nothing can be polled. */
	if (!budget)
		return 0;

	hghca_net_cq_consume(nd, &work, budget);
	if (work.tx_packets) {
		dev_sw_netstats_tx_add(nd->netdev, work.tx_packets, work.tx_bytes);
		netif_txq_completed_wake(netdev_get_tx_queue(nd->netdev, 0), work.tx_packets,
					 work.tx_bytes, hghca_net_tx_room(&nd->tx),
					 HGHCA_NET_TX_WAKE);
	}
	hghca_net_rx_fill(nd);

	if (work.rx_packets < budget && napi_complete_done(napi, work.rx_packets))
		hghca_ring_cq(nd->hdev, nd->cq.hw.cqn, nd->cq.cons_index, HGHCA_CQ_ARM_NEXT);
	return work.rx_packets;
}

static void hghca_net_cq_comp(struct hghca_hwcq *hwcq)
{
	struct hghca_netdev *nd = container_of(hwcq, struct hghca_netdev, cq.hw);

	napi_schedule(&nd->napi);
}

static void hghca_net_cq_event(struct hghca_hwcq *hwcq, u8 syndrome)
{
	struct hghca_netdev *nd = container_of(hwcq, struct hghca_netdev, cq.hw);

	if (net_ratelimit())
		netdev_err(nd->netdev, "CQ %#x failed: syndrome %#x\n", hwcq->cqn, syndrome);
	hghca_netdev_fault(nd);
}

static void hghca_net_qp_event(struct hghca_hwqp *hwqp, u8 type)
{
	struct hghca_netdev *nd = container_of(hwqp, struct hghca_netdev, hwqp);

	if (net_ratelimit())
		netdev_err(nd->netdev, "QP %#x: event %#x\n", hwqp->qpn, type);
	hghca_netdev_fault(nd);
}

/* ------------------------------------------------------------------ */
/* The QP and its CQ                                                    */

static int hghca_net_cq_create(struct hghca_netdev *nd)
{
	struct hghca_dev *hdev = nd->hdev;
	struct hghca_net_cq *cq = &nd->cq;
	struct hghca_cqc cqc = {};
	u32 i;
	int err;

	cq->cons_index = 0;
	cq->hw.comp = hghca_net_cq_comp;
	cq->hw.event = hghca_net_cq_event;

	err = hghca_dbr_alloc(hdev, &cq->dbr);
	if (err)
		return err;

	err = hghca_queue_alloc(hdev, &cq->queue, hdev->pdn,
				sizeof(struct hghca_cqe) << HGHCA_NET_CQ_LOG, true);
	if (err)
		goto err_free_dbr;
	for (i = 0; i < BIT(HGHCA_NET_CQ_LOG); i++)
		hghca_net_cqe(cq, i)->owner = HGHCA_CQ_ENTRY_OWNER_HW;

	err = hghca_hwcq_add(hdev, &cq->hw);
	if (err)
		goto err_free_queue;

	cqc.flags = cpu_to_be32(HGHCA_CQ_FLAG_TR);
	cqc.logsize_usrpage = cpu_to_be32(FIELD_PREP(HGHCA_CQC_LOGSIZE_MASK, HGHCA_NET_CQ_LOG));
	cqc.comp_eqn = cpu_to_be32(hghca_comp_eqn(hdev, 0));
	cqc.pd = cpu_to_be32(hdev->pdn);
	cqc.lkey = cpu_to_be32(cq->queue.mr.key);
	cqc.cqn = cpu_to_be32(cq->hw.cqn);
	cqc.dbr_addr = cpu_to_be64(cq->dbr.dma | HGHCA_DBR_VALID);
	err = hghca_cmd_sw2hw_cq(hdev, cq->hw.cqn, &cqc);
	if (err)
		goto err_del_hwcq;
	return 0;

err_del_hwcq:
	hghca_hwcq_del(hdev, &cq->hw);
err_free_queue:
	hghca_queue_free(hdev, &cq->queue);
err_free_dbr:
	hghca_dbr_free(hdev, &cq->dbr);
	return err;
}

static void hghca_net_cq_destroy(struct hghca_netdev *nd)
{
	struct hghca_dev *hdev = nd->hdev;
	int err;

	err = hghca_cmd_hw2sw_cq(hdev, nd->cq.hw.cqn);
	if (err)
		hghca_dev_fail(hdev, "failed to destroy the CQ of the net device");
	hghca_hwcq_del(hdev, &nd->cq.hw);
	hghca_queue_free(hdev, &nd->cq.queue);
	hghca_dbr_free(hdev, &nd->cq.dbr);
}

/* Move the QP from RST to RTS.  The rings exist. */
static int hghca_net_qp_start(struct hghca_netdev *nd)
{
	struct hghca_dev *hdev = nd->hdev;
	u32 qpn = nd->hwqp.qpn;
	const struct hghca_qpc_attr attr = {
		.service = HGHCA_QP_ST_RAW,
		.mtu = IB_MTU_4096,
		.log_max_msg = HGHCA_NET_LOG_MSG_MAX,
		.qpn = qpn,
		.pdn = hdev->pdn,
		.send = {
			.cqn = nd->cq.hw.cqn,
			.key = nd->tx.queue.mr.key,
			.bytes = HGHCA_NET_TX_SLOTS << HGHCA_NET_STRIDE_LOG,
			.log_stride = HGHCA_NET_STRIDE_LOG,
		},
		.recv = {
			.cqn = nd->cq.hw.cqn,
			.key = nd->rx.queue.mr.key,
			.bytes = HGHCA_NET_RX_SLOTS << HGHCA_NET_STRIDE_LOG,
			.log_stride = HGHCA_NET_STRIDE_LOG,
		},
		.dbr = nd->rx.dbr.dma,
	};
	static const struct hghca_qpc nothing;
	struct hghca_qpc qpc;
	int err;

	hghca_qpc_init(&qpc, &attr);
	qpc.opt_param_mask = cpu_to_be32(HGHCA_QP_ATTR_PORT);
	err = hghca_cmd_start_qp(hdev, qpn, &qpc, &nothing);
	if (!err)
		err = hghca_cmd_conf_special_qp(hdev, HGHCA_SPECIAL_QP_RAW_ETH, qpn);
	if (err && hghca_cmd_modify_qp(hdev, HGHCA_CMD_ERR2RST_QPEE, qpn, NULL))
		hghca_dev_fail(hdev, "failed to reset the QP of the net device");
	return err;
}

static void hghca_net_qp_stop(struct hghca_netdev *nd)
{
	struct hghca_dev *hdev = nd->hdev;

	if (hghca_cmd_conf_special_qp(hdev, HGHCA_SPECIAL_QP_RAW_ETH, 0) ||
	    hghca_cmd_modify_qp(hdev, HGHCA_CMD_ERR2RST_QPEE, nd->hwqp.qpn, NULL))
		hghca_dev_fail(hdev, "failed to reset the QP of the net device");
}

/**
 * hghca_netring_open - create the rings and start the QP
 * @nd: the net device; the stack sends as soon as the rings exist
 *
 * Return: 0 or a negative errno.
 */
int hghca_netring_open(struct hghca_netdev *nd)
{
	struct hghca_dev *hdev = nd->hdev;
	int err;

	err = hghca_net_cq_create(nd);
	if (err)
		return err;

	err = hghca_net_tx_alloc(nd);
	if (err)
		goto err_destroy_cq;

	err = hghca_net_rx_alloc(nd);
	if (err)
		goto err_free_tx;

	nd->hwqp.event = hghca_net_qp_event;
	err = hghca_hwqp_add(hdev, &nd->hwqp, HGHCA_QPN_RAW_ETH);
	if (err)
		goto err_free_rx;

	hghca_net_rx_fill(nd);
	if (nd->rx.head == nd->rx.tail) {
		err = -ENOMEM;
		goto err_del_hwqp;
	}

	err = hghca_net_qp_start(nd);
	if (err)
		goto err_del_hwqp;

	nd->open = true;
	netif_wake_queue(nd->netdev);
	napi_enable(&nd->napi);
	hghca_ring_cq(hdev, nd->cq.hw.cqn, nd->cq.cons_index, HGHCA_CQ_ARM_NEXT);
	return 0;

err_del_hwqp:
	hghca_hwqp_del(hdev, &nd->hwqp);
err_free_rx:
	hghca_net_rx_free(nd);
err_free_tx:
	hghca_net_tx_free(nd);
err_destroy_cq:
	hghca_net_cq_destroy(nd);
	return err;
}

/**
 * hghca_netring_close - undo hghca_netring_open()
 * @nd: the net device
 *
 * Does nothing if a failed restart has left no rings.
 */
void hghca_netring_close(struct hghca_netdev *nd)
{
	if (!nd->open)
		return;
	nd->open = false;
	/* Disable NAPI first, because it wakes the transmit queue. */
	napi_disable(&nd->napi);
	netif_tx_disable(nd->netdev);
	hghca_net_qp_stop(nd);
	hghca_hwqp_del(nd->hdev, &nd->hwqp);
	hghca_net_rx_free(nd);
	hghca_net_tx_free(nd);
	hghca_net_cq_destroy(nd);
}
