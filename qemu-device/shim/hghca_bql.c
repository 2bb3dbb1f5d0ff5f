/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hook for waiting for the BQL (hghca_fair.c). The property bql-hook disables it.
 *
 * A guest program that polls memory for a packet sees the data about a microsecond
 * before the doorbell that sent it returns. It rings a doorbell of its own at once
 * and finds the BQL held. If its thread slept in the kernel, it would wake up about
 * 10 us after the BQL is released. docs/explanation/testing.rst has the effect on
 * ib_write_lat. Therefore a thread that finds the BQL held retries for some tens of
 * microseconds before it sleeps. Turns that a virtual CPU waits for end sooner than that
 * (hghca_entry.c).
 *
 * After a round of turns that leaves work, the main loop takes the BQL only after
 * all threads that slept at that time have had it. Any other thread stands back when
 * an earlier one has slept for HGHCA_BQL_BOUND_NS. A thread that wakes up from a wait
 * for a condition takes the BQL without this hook. For such threads, and without the
 * hook, the main loop pauses its rounds now and then (hghca_entry.c).
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "hw/core/cpu.h"
#include "hghca_fair.h"
#include "hghca_shim.h"

#define HGHCA_BQL_TRIES 6000     /* longer than HGHCA_TURNS_NS and a turn */
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

/* The next time this thread takes the BQL, threads that already wait for it go first. */
void hghca_bql_give_way(void)
{
    hghca_bql_gives_way = hghca_bql_is_hooked();
}

/* Without the hook it is not known who waits for the BQL. */
bool hghca_bql_is_hooked(void)
{
    return qatomic_read(&bql_mutex_lock_func) == hghca_bql_lock;
}

/* Returns whether a virtual CPU waits for the BQL. A hint. */
bool hghca_bql_is_wanted(void)
{
    return qatomic_read(&hghca_bql_cpus);
}

/*
 * Installs the hook for the whole process, permanently; the first device that enables
 * it does so. An active lock profiler is not replaced.
 */
void hghca_bql_open(void)
{
    if (g_get_num_processors() > 1 &&
        qatomic_read(&bql_mutex_lock_func) == qemu_mutex_lock_impl) {
        hghca_fair_init(&hghca_bql_fair, &hghca_bql_ops, HGHCA_BQL_TRIES, HGHCA_BQL_BOUND_NS);
        qatomic_set(&bql_mutex_lock_func, hghca_bql_lock);
    }
}
