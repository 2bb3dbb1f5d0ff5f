// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * JingZhao HCA: multicast groups.
 *
 * The device finds a group in a hash table.  A chain starts at a bucket and continues
 * through entries of the upper half (document 4.18).  The driver keeps a copy of each
 * entry and never reads entries from the device.
 *
 *	bucket 7        entry 4096      entry 4099
 *	[group A]  -->  [group C]  -->  [group B]
 *
 * Each step leaves a valid chain.  A new entry is written before it is linked after the
 * first entry.  One command removes an entry: it writes the predecessor or, for an entry
 * in a bucket, writes its successor there.
 */
#include <linux/slab.h>

#include "verbs/verbs.h"

/**
 * struct hghca_mcast_group - a group with at least one QP
 * @node: in the tree of groups, by GID
 * @index: index of its entry
 * @bucket: index of the bucket of its chain
 * @num_qps: QPs attached
 * @entry: copy of the entry in the device
 */
struct hghca_mcast_group {
	struct rb_node node;
	u32 index;
	u32 bucket;
	u32 num_qps;
	struct hghca_mgm entry;
};

static struct hghca_mcast_group *hghca_mcast_node(const struct rb_node *node)
{
	return rb_entry(node, struct hghca_mcast_group, node);
}

static int hghca_mcast_cmp_gid(const void *gid, const struct rb_node *node)
{
	return memcmp(gid, hghca_mcast_node(node)->entry.gid, sizeof(union ib_gid));
}

static bool hghca_mcast_less(struct rb_node *a, const struct rb_node *b)
{
	return hghca_mcast_cmp_gid(hghca_mcast_node(a)->entry.gid, b) < 0;
}

static struct hghca_mcast_group *hghca_mcast_find(const struct hghca_mcast *mcast,
						  const union ib_gid *gid)
{
	struct rb_node *node = rb_find(gid, &mcast->groups, hghca_mcast_cmp_gid);

	return node ? hghca_mcast_node(node) : NULL;
}

/* The entry after this one in its chain, or NULL. */
static struct hghca_mcast_group *hghca_mcast_next(struct hghca_mcast *mcast,
						  const struct hghca_mcast_group *group)
{
	u32 next = be32_to_cpu(group->entry.next);

	return next ? xa_load(&mcast->entries, next) : NULL;
}

static int hghca_mcast_write(struct hghca_dev *hdev, u32 index, const struct hghca_mgm *entry)
{
	memcpy(hdev->mcast.mailbox->buf, entry, sizeof(*entry));
	return hghca_cmd_write_mgm(hdev, index, hdev->mcast.mailbox, false);
}

/*
 * Write an entry from which a QP or a link is removed.  If the command fails, the device
 * is given up, because the number of the QP may be reused next.
 */
static void hghca_mcast_take(struct hghca_dev *hdev, u32 index, const struct hghca_mgm *entry)
{
	int err;

	memcpy(hdev->mcast.mailbox->buf, entry, sizeof(*entry));
	err = hghca_cmd_write_mgm(hdev, index, hdev->mcast.mailbox, true);
	if (!err)
		return;
	ibdev_err(&hdev->ibdev, "failed to write multicast entry %u: %d\n", index, err);
	hghca_dev_fail(hdev, "failed to detach a QP from its group");
}

/* ------------------------------------------------------------------ */
/* Entries of a chain                                                   */

/* Allocate an index, with ICM, for @group: that of the bucket, or one of the upper half. */
static int hghca_mcast_get_entry(struct hghca_dev *hdev, struct hghca_mcast_group *group,
				 bool in_bucket)
{
	struct hghca_mcast *mcast = &hdev->mcast;
	u32 num_mcgs = hdev->limits.num_mcgs;
	int err;

	if (in_bucket) {
		group->index = group->bucket;
		err = xa_insert(&mcast->entries, group->index, group, GFP_KERNEL);
	} else {
		err = xa_alloc(&mcast->entries, &group->index, group,
			       XA_LIMIT(num_mcgs / 2, num_mcgs - 1), GFP_KERNEL);
	}
	if (err)
		return err == -EBUSY ? -ENOMEM : err;

	err = hghca_icm_get(hdev, HGHCA_ICM_MCG, group->index, 1);
	if (err)
		xa_erase(&mcast->entries, group->index);
	return err;
}

static void hghca_mcast_put_entry(struct hghca_dev *hdev, u32 index)
{
	hghca_icm_put(hdev, HGHCA_ICM_MCG, index, 1);
	xa_erase(&hdev->mcast.entries, index);
}

/* Write @group, which has an index, and link it after @head, the first of its chain. */
static int hghca_mcast_link(struct hghca_dev *hdev, struct hghca_mcast_group *group,
			    struct hghca_mcast_group *head)
{
	struct hghca_mgm first;
	int err;

	if (head)
		group->entry.next = head->entry.next;
	err = hghca_mcast_write(hdev, group->index, &group->entry);
	if (err || !head)
		return err;

	first = head->entry;
	first.next = cpu_to_be32(group->index);
	err = hghca_mcast_write(hdev, head->index, &first);
	if (!err)
		head->entry.next = first.next;
	return err;
}

/* Remove @group from its chain. */
static void hghca_mcast_unlink(struct hghca_dev *hdev, struct hghca_mcast_group *group)
{
	struct hghca_mcast *mcast = &hdev->mcast;
	struct hghca_mcast_group *next = hghca_mcast_next(mcast, group);
	struct hghca_mcast_group *head = xa_load(&mcast->entries, group->bucket);
	static const struct hghca_mgm empty;
	u32 moved;

	if (group != head) {
		while (hghca_mcast_next(mcast, head) != group)
			head = hghca_mcast_next(mcast, head);
		head->entry.next = group->entry.next;
		hghca_mcast_take(hdev, head->index, &head->entry);
		hghca_mcast_put_entry(hdev, group->index);
	} else if (next) {
		hghca_mcast_take(hdev, group->index, &next->entry);
		moved = next->index;
		next->index = group->index;
		/* Replaces an entry, which needs no memory. */
		xa_store(&mcast->entries, next->index, next, GFP_KERNEL);
		hghca_mcast_put_entry(hdev, moved);
	} else {
		hghca_mcast_take(hdev, group->index, &empty);
		hghca_mcast_put_entry(hdev, group->index);
	}
}

/* ------------------------------------------------------------------ */
/* Groups                                                               */

/* Query the bucket of a GID; from the device, so it is checked. */
static int hghca_mcast_bucket(struct hghca_dev *hdev, const union ib_gid *gid, u32 *bucket)
{
	struct hghca_mgid mgid;
	u64 hash;
	int err;

	memcpy(mgid.gid, gid->raw, sizeof(mgid.gid));
	err = hghca_cmd_mgid_hash(hdev, &mgid, &hash);
	if (err)
		return err;
	if (hash >= hdev->limits.num_mcgs / 2) {
		ibdev_err_ratelimited(&hdev->ibdev, "MGID_HASH %#llx: beyond the table\n", hash);
		return -EIO;
	}
	*bucket = hash;
	return 0;
}

/* Returns whether the device would find one more entry of the chain. */
static bool hghca_mcast_chain_has_room(struct hghca_mcast *mcast,
				       const struct hghca_mcast_group *head)
{
	u32 length = 0;

	for (; head; head = hghca_mcast_next(mcast, head))
		length++;
	return length < HGHCA_MGM_CHAIN_MAX;
}

/* Create a group with @qpn as its first QP. */
static int hghca_mcast_create(struct hghca_dev *hdev, const union ib_gid *gid, u32 qpn)
{
	struct hghca_mcast *mcast = &hdev->mcast;
	struct hghca_mcast_group *group, *head;
	int err;

	group = kzalloc_obj(*group);
	if (!group)
		return -ENOMEM;
	memcpy(group->entry.gid, gid->raw, sizeof(group->entry.gid));
	group->entry.qp[0] = cpu_to_be32(HGHCA_MGM_QP_VALID | qpn);
	group->num_qps = 1;

	err = hghca_mcast_bucket(hdev, gid, &group->bucket);
	if (err)
		goto err_free;

	head = xa_load(&mcast->entries, group->bucket);
	if (!hghca_mcast_chain_has_room(mcast, head)) {
		err = -ENOMEM;
		goto err_free;
	}

	err = hghca_mcast_get_entry(hdev, group, !head);
	if (err)
		goto err_free;

	err = hghca_mcast_link(hdev, group, head);
	if (err)
		goto err_put_entry;
	rb_add(&group->node, &mcast->groups, hghca_mcast_less);
	return 0;

err_put_entry:
	hghca_mcast_put_entry(hdev, group->index);
err_free:
	kfree(group);
	return err;
}

/* Returns the index of @word in the entry of the group; HGHCA_MGM_QPS if it is absent. */
static u32 hghca_mcast_place(const struct hghca_mcast_group *group, __be32 word)
{
	u32 i;

	for (i = 0; i < HGHCA_MGM_QPS; i++)
		if (group->entry.qp[i] == word)
			break;
	return i;
}

static int hghca_mcast_add(struct hghca_dev *hdev, struct hghca_mcast_group *group, u32 qpn)
{
	__be32 word = cpu_to_be32(HGHCA_MGM_QP_VALID | qpn);
	struct hghca_mgm entry = group->entry;
	int err;

	/*
	 * ib_core distinguishes attachments by a LID, which Ethernet does not have.  Two
	 * attachments that differ only in the LID could be detached only once.
	 */
	if (hghca_mcast_place(group, word) < HGHCA_MGM_QPS)
		return -EINVAL;
	if (group->num_qps >= hdev->limits.max_mcg_qps)
		return -ENOMEM;

	entry.qp[hghca_mcast_place(group, 0)] = word;
	err = hghca_mcast_write(hdev, group->index, &entry);
	if (err)
		return err;
	group->entry = entry;
	group->num_qps++;
	return 0;
}

/**
 * hghca_attach_mcast - attach a QP to a multicast group
 * @ibqp: the QP; ib_core has checked that it is a UD QP
 * @gid: GID of the group; ib_core has checked that it is a multicast GID
 * @lid: not used
 *
 * Return: 0, -EINVAL if the QP is attached already, -ENOMEM if the group or the
 * table is full, or an error of an allocation or a command.
 */
int hghca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_mcast *mcast = &hdev->mcast;
	u32 qpn = to_hqp(ibqp)->hw.qpn;
	struct hghca_mcast_group *group;
	int err;

	mutex_lock(&mcast->lock);
	group = hghca_mcast_find(mcast, gid);
	if (group)
		err = hghca_mcast_add(hdev, group, qpn);
	else
		err = hghca_mcast_create(hdev, gid, qpn);
	mutex_unlock(&mcast->lock);

	if (err)
		ibdev_dbg(&hdev->ibdev, "QP 0x%x is not attached to %pI6: %d\n", qpn, gid->raw,
			  err);
	return err;
}

/**
 * hghca_detach_mcast - undo hghca_attach_mcast()
 * @ibqp: the QP
 * @gid: GID of the group
 * @lid: not used
 *
 * ib_core forgets the attachment regardless of the result.  Therefore this fails only
 * for a QP that is not attached.
 *
 * Return: 0, or -EINVAL if the QP is not attached.
 */
int hghca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	__be32 word = cpu_to_be32(HGHCA_MGM_QP_VALID | to_hqp(ibqp)->hw.qpn);
	struct hghca_dev *hdev = to_hdev(ibqp->device);
	struct hghca_mcast *mcast = &hdev->mcast;
	struct hghca_mcast_group *group;
	int err = -EINVAL;
	u32 place;

	mutex_lock(&mcast->lock);
	group = hghca_mcast_find(mcast, gid);
	if (!group)
		goto out_unlock;
	place = hghca_mcast_place(group, word);
	if (place == HGHCA_MGM_QPS)
		goto out_unlock;

	err = 0;
	if (--group->num_qps) {
		group->entry.qp[place] = 0;
		hghca_mcast_take(hdev, group->index, &group->entry);
		goto out_unlock;
	}
	hghca_mcast_unlink(hdev, group);
	rb_erase(&group->node, &mcast->groups);
	kfree(group);
out_unlock:
	mutex_unlock(&mcast->lock);
	return err;
}

/**
 * hghca_mcast_init - initialize multicast groups
 * @hdev: the device, with or without HGHCA_CAP_MULTICAST
 *
 * Return: 0 or -ENOMEM.
 */
int hghca_mcast_init(struct hghca_dev *hdev)
{
	struct hghca_mcast *mcast = &hdev->mcast;

	/* Allocated now, so that detaching cannot fail without memory. */
	mcast->mailbox = hghca_mailbox_alloc(hdev, HGHCA_MAILBOX_SIZE);
	if (IS_ERR(mcast->mailbox))
		return PTR_ERR(mcast->mailbox);
	mutex_init(&mcast->lock);
	mcast->groups = RB_ROOT;
	xa_init_flags(&mcast->entries, XA_FLAGS_ALLOC);
	return 0;
}

/**
 * hghca_mcast_cleanup - undo hghca_mcast_init()
 * @hdev: the device, without groups
 */
void hghca_mcast_cleanup(struct hghca_dev *hdev)
{
	struct hghca_mcast *mcast = &hdev->mcast;

	WARN_ON(!RB_EMPTY_ROOT(&mcast->groups));
	xa_destroy(&mcast->entries);
	mutex_destroy(&mcast->lock);
	hghca_mailbox_free(hdev, mcast->mailbox);
}
