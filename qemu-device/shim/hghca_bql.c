/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Waiting for the BQL.
 *
 * Who polls memory for a packet sees its data about a microsecond before the
 * doorbell that brought it returns, and rings a doorbell of its own at once. It
 * finds the BQL held. Asleep in the kernel it would be woken some 10 us after
 * the lock is free; ib_write_lat showed 15 to 25 us instead of 2.5. So who finds
 * the BQL held tries on for a few microseconds before it sleeps.
 *
 * The lock goes to whoever tries first, not to whoever waits longest. Between two
 * rounds of turns the main loop drops it for a microsecond or two; a CPU of the
 * guest that is only waking up then would go without it until the traffic ends.
 * So after a round that leaves work over, the main loop lets the waiting go first.
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/processor.h"
#include "qemu/thread.h"
#include "hghca_shim.h"

#define HGHCA_BQL_TRIES 400
#define HGHCA_BQL_NAP_US 50     /* enough to wake up in */

static unsigned hghca_bql_waiting;
static __thread bool hghca_bql_gives_way;

static void hghca_bql_wait(QemuMutex *mutex, const char *file, int line)
{
    for (unsigned i = 0; i < HGHCA_BQL_TRIES; i++) {
        if (!qemu_mutex_trylock_impl(mutex, file, line)) {
            return;
        }
        cpu_relax();
    }
    qemu_mutex_lock_impl(mutex, file, line);
}

static void hghca_bql_lock(QemuMutex *mutex, const char *file, int line)
{
    if (hghca_bql_gives_way) {
        hghca_bql_gives_way = false;
        if (qatomic_read(&hghca_bql_waiting)) {
            g_usleep(HGHCA_BQL_NAP_US);
        }
    }
    qatomic_inc(&hghca_bql_waiting);
    hghca_bql_wait(mutex, file, line);
    qatomic_dec(&hghca_bql_waiting);
}

/* The next time this thread wants the BQL, those that wait for it go first. */
void hghca_bql_give_way(void)
{
    hghca_bql_gives_way = true;
}

/* For the whole process. A lock profiler that is at work keeps its own way. */
void hghca_bql_open(void)
{
    if (g_get_num_processors() > 1 &&
        qatomic_read(&bql_mutex_lock_func) == qemu_mutex_lock_impl) {
        qatomic_set(&bql_mutex_lock_func, hghca_bql_lock);
    }
}
