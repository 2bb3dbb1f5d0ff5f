// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Faults on purpose, one for each of the kernel's checkers.  Writing a fault's
 * name to /sys/kernel/debug/hghca-provoke commits it, so that a test sees the
 * checker tell it, in the kernel's own words.  The module stays until the end
 * of the guest.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#define PROVOKE_BYTES		40
#define PROVOKE_VENDOR		0x1af4
#define PROVOKE_DEVICE		0x10f1
#define PROVOKE_LEAKS		100
#define PROVOKE_HANG_S		12
#define PROVOKE_RACE_S		3

static u64 provoke_sink;

static void provoke_warning(void)
{
	WARN(1, "a warning on purpose\n");
}

/* KASAN */
static void provoke_past_end(void)
{
	u8 *bytes = kmalloc(PROVOKE_BYTES, GFP_KERNEL);

	if (!bytes)
		return;
	OPTIMIZER_HIDE_VAR(bytes);
	WRITE_ONCE(provoke_sink, READ_ONCE(bytes[PROVOKE_BYTES]));
	kfree(bytes);
}

static void provoke_after_free(void)
{
	u8 *bytes = kmalloc(PROVOKE_BYTES, GFP_KERNEL);
	u8 *stale = bytes;

	OPTIMIZER_HIDE_VAR(stale);
	kfree(bytes);
	WRITE_ONCE(provoke_sink, READ_ONCE(stale[8]));
}

static void provoke_past_vmalloc(void)
{
	u8 *bytes = vmalloc(PAGE_SIZE - 8);

	if (!bytes)
		return;
	OPTIMIZER_HIDE_VAR(bytes);
	WRITE_ONCE(provoke_sink, READ_ONCE(bytes[PAGE_SIZE - 8]));
	vfree(bytes);
}

static void provoke_past_stack(void)
{
	u8 bytes[16] = {};
	unsigned int i = sizeof(bytes);
	u8 *first = bytes;

	OPTIMIZER_HIDE_VAR(first);
	OPTIMIZER_HIDE_VAR(i);
	WRITE_ONCE(provoke_sink, READ_ONCE(first[i]));
}

/* UBSAN */
static void provoke_shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	WRITE_ONCE(provoke_sink, 1 << by);
}

static u8 provoke_table[4];

static void provoke_index(void)
{
	unsigned int i = ARRAY_SIZE(provoke_table);

	OPTIMIZER_HIDE_VAR(i);
	WRITE_ONCE(provoke_sink, provoke_table[i]);
}

/* DEBUG_LIST, refcount_t */
static void provoke_list(void)
{
	struct list_head head, first, second;

	INIT_LIST_HEAD(&head);
	INIT_LIST_HEAD(&second);
	list_add(&first, &head);
	first.prev = &second;
	list_add(&second, &head);
}

static void provoke_refcount(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	refcount_inc(&count);
}

/* DEBUG_OBJECTS */
static void provoke_no_timer(struct timer_list *timer)
{
}

static void provoke_timer(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, provoke_no_timer, 0);
	mod_timer(timer, jiffies + 600 * HZ);
	kfree(timer);
}

static void provoke_wait(struct work_struct *work)
{
	msleep(1000);
}

static void provoke_no_work(struct work_struct *work)
{
}

static DECLARE_WORK(provoke_waiting, provoke_wait);

static void provoke_work(void)
{
	struct workqueue_struct *queue = alloc_ordered_workqueue("hghca-provoke", 0);
	struct work_struct *work = kmalloc(sizeof(*work), GFP_KERNEL);

	if (queue && work) {
		INIT_WORK(work, provoke_no_work);
		queue_work(queue, &provoke_waiting);
		queue_work(queue, work);
	}
	kfree(work);
	if (queue)
		destroy_workqueue(queue);
}

/* DMA_API_DEBUG */
static void provoke_dma(void)
{
	struct pci_dev *pdev = pci_get_device(PROVOKE_VENDOR, PROVOKE_DEVICE, NULL);

	if (!pdev)
		return;
	dma_unmap_single(&pdev->dev, 0x12345000, PROVOKE_BYTES, DMA_TO_DEVICE);
	pci_dev_put(pdev);
}

/* DEBUG_ATOMIC_SLEEP, PROVE_LOCKING */
static DEFINE_SPINLOCK(provoke_spinlock);
static DEFINE_MUTEX(provoke_one);
static DEFINE_MUTEX(provoke_other);

static void provoke_sleep(void)
{
	spin_lock(&provoke_spinlock);
	might_sleep();
	spin_unlock(&provoke_spinlock);
}

static void provoke_locks(void)
{
	mutex_lock(&provoke_one);
	mutex_lock(&provoke_other);
	mutex_unlock(&provoke_other);
	mutex_unlock(&provoke_one);

	mutex_lock(&provoke_other);
	mutex_lock(&provoke_one);
	mutex_unlock(&provoke_one);
	mutex_unlock(&provoke_other);
}

/* DETECT_HUNG_TASK */
static int provoke_hanging(void *data)
{
	schedule_timeout_uninterruptible(PROVOKE_HANG_S * HZ);
	return 0;
}

static void provoke_hang(void)
{
	kthread_run(provoke_hanging, NULL, "hghca-hanging");
}

/*
 * KMEMLEAK: more than one, as a word somewhere may look like the address of the last.  Each is zeroed: what KASAN's
 * quarantine left in it is the address of the next, and one that is taken for referenced would hide all that follow.
 */
static void provoke_leak(void)
{
	unsigned int i;

	for (i = 0; i < PROVOKE_LEAKS; i++) {
		void *lost = kzalloc(PROVOKE_BYTES, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(lost);
	}
}

/* KCSAN */
static u64 provoke_shared;

static int provoke_racing(void *data)
{
	unsigned long end = jiffies + PROVOKE_RACE_S * HZ;

	while (time_before(jiffies, end)) {
		provoke_shared++;
		barrier();
		cond_resched();
	}
	return 0;
}

static void provoke_race(void)
{
	kthread_run(provoke_racing, NULL, "hghca-racing");
	kthread_run(provoke_racing, NULL, "hghca-racing");
}

static const struct provoke_fault {
	const char *name;
	void (*commit)(void);
} provoke_faults[] = {
	{ "warning", provoke_warning },
	{ "past-end", provoke_past_end },
	{ "after-free", provoke_after_free },
	{ "past-vmalloc", provoke_past_vmalloc },
	{ "past-stack", provoke_past_stack },
	{ "shift", provoke_shift },
	{ "index", provoke_index },
	{ "list", provoke_list },
	{ "refcount", provoke_refcount },
	{ "timer", provoke_timer },
	{ "work", provoke_work },
	{ "dma", provoke_dma },
	{ "sleep", provoke_sleep },
	{ "locks", provoke_locks },
	{ "hang", provoke_hang },
	{ "leak", provoke_leak },
	{ "race", provoke_race },
};

static ssize_t provoke_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char name[32] = "";
	unsigned int i;
	ssize_t copied;

	copied = simple_write_to_buffer(name, sizeof(name) - 1, pos, from, size);
	if (copied < 0)
		return copied;
	for (i = 0; i < ARRAY_SIZE(provoke_faults); i++) {
		if (sysfs_streq(name, provoke_faults[i].name)) {
			provoke_faults[i].commit();
			return copied;
		}
	}
	return -EINVAL;
}

static const struct file_operations provoke_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = provoke_write,
};

static int __init provoke_init(void)
{
	debugfs_create_file("hghca-provoke", 0200, NULL, NULL, &provoke_operations);
	return 0;
}
module_init(provoke_init);

MODULE_DESCRIPTION("Faults on purpose, for tests of the kernel's checkers");
MODULE_LICENSE("Dual BSD/GPL");
