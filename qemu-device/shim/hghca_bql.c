/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for the BQL (hghca_fair.c), unless the property bql-hook turns it off.
 *
 * Who polls memory for a packet sees its data about a microsecond before the
 * doorbell that brought it returns, and rings a doorbell of its own at once. It
 * finds the BQL held. Asleep in the kernel it would be woken some 10 us after
 * the lock is free; docs/explanation/testing.rst has what that costs ib_write_lat. So who finds
 * the BQL held tries on for a few microseconds before it sleeps.
 *
 * After a round of turns that leaves work over the main loop takes the BQL only
 * when those that slept then have had it, and others do when one has slept for
 * HGHCA_BQL_BOUND_NS. Who wakes from the wait for a condition takes the BQL
 * without this hook; for those, and where there is no hook, the main loop goes
 * without rounds now and then (hghca_entry.c).
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"
#include "hghca_fair.h"
#include "hghca_shim.h"

#define HGHCA_BQL_TRIES 400
#define HGHCA_BQL_BOUND_NS 1000000

typedef struct HghcaBqlWaiter {
    QemuMutex *mutex;
    const char *file;
    int line;
} HghcaBqlWaiter;

static struct hghca_fair hghca_bql_fair;
static unsigned hghca_bql_cpus;     /* virtual CPUs that wait for the BQL */
static __thread bool hghca_bql_gives_way;

static bool hghca_bql_try(void *opaque)
{
    HghcaBqlWaiter *w = opaque;

    return !qemu_mutex_trylock_impl(w->mutex, w->file, w->line);
}

static void hghca_bql_sleep(void *opaque)
{
    HghcaBqlWaiter *w = opaque;

    qemu_mutex_lock_impl(w->mutex, w->file, w->line);
}

static uint64_t hghca_bql_now_ns(void)
{
    return get_clock();
}

static const struct hghca_fair_ops hghca_bql_ops = {
    .try_lock = hghca_bql_try,
    .lock = hghca_bql_sleep,
    .now_ns = hghca_bql_now_ns,
};

static void hghca_bql_lock(QemuMutex *mutex, const char *file, int line)
{
    HghcaBqlWaiter w = { .mutex = mutex, .file = file, .line = line };
    bool last = hghca_bql_gives_way;

    hghca_bql_gives_way = false;
    if (current_cpu) {
        qatomic_inc(&hghca_bql_cpus);
    }
    hghca_fair_lock(&hghca_bql_fair, &w, last);
    if (current_cpu) {
        qatomic_dec(&hghca_bql_cpus);
    }
}

/* The next time this thread wants the BQL, those that wait for it go first. */
void hghca_bql_give_way(void)
{
    hghca_bql_gives_way = qatomic_read(&bql_mutex_lock_func) == hghca_bql_lock;
}

/* Does a virtual CPU wait for the BQL? A hint; true where that is not known. */
bool hghca_bql_is_wanted(void)
{
    return qatomic_read(&bql_mutex_lock_func) != hghca_bql_lock || qatomic_read(&hghca_bql_cpus);
}

/*
 * For the whole process, by the first device that wants it, and for good. A lock
 * profiler that is at work keeps its own way.
 */
void hghca_bql_open(void)
{
    if (g_get_num_processors() > 1 &&
        qatomic_read(&bql_mutex_lock_func) == qemu_mutex_lock_impl) {
        hghca_fair_init(&hghca_bql_fair, &hghca_bql_ops, HGHCA_BQL_TRIES, HGHCA_BQL_BOUND_NS);
        qatomic_set(&bql_mutex_lock_func, hghca_bql_lock);
    }
}
