/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that finds the lock held retries for some time, because a wakeup
 * by the kernel takes longer than the lock is held. Then the thread sleeps. A free
 * lock goes to the first thread that tries. A thread that repeatedly drops the lock
 * for one microsecond gets it back each time before a sleeper has woken up.
 *
 * Therefore sleepers are queued in the order of arrival, each with its time. When the
 * oldest has slept for longer than the bound, later threads do not try to take the
 * lock before it has the lock. Then the next sleeper is the oldest. A thread that
 * stands back waits only for threads that already slept, so it waits no longer than
 * they do.
 */

#include <stddef.h>
#include "hghca_fair.h"

void hghca_fair_init(struct hghca_fair *f, const struct hghca_fair_ops *ops, unsigned tries,
                     uint64_t bound_ns)
{
    f->ops = ops;
    f->tries = tries;
    f->bound_ns = bound_ns;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_cond_init(&f->left, NULL);
    f->oldest = NULL;
    f->end = &f->oldest;
    f->next_number = 0;
    f->sleeping = 0;
    f->standing_back = 0;
}

bool hghca_fair_sleeping(struct hghca_fair *f)
{
    return __atomic_load_n(&f->sleeping, __ATOMIC_RELAXED);
}

static bool hghca_fair_goes_first(struct hghca_fair *f, uint64_t number, bool last)
{
    const struct hghca_fair_sleeper *oldest = f->oldest;

    return oldest && oldest->number < number &&
           (last || f->ops->now_ns() - oldest->since_ns > f->bound_ns);
}

/* Waits until the threads that have precedence have had the lock. The caller does not hold it. */
static void hghca_fair_stand_back(struct hghca_fair *f, bool last)
{
    uint64_t number;

    pthread_mutex_lock(&f->mutex);
    number = f->next_number;
    f->standing_back++;
    while (hghca_fair_goes_first(f, number, last)) {
        pthread_cond_wait(&f->left, &f->mutex);
    }
    f->standing_back--;
    pthread_mutex_unlock(&f->mutex);
}

static void hghca_fair_lie_down(struct hghca_fair *f, struct hghca_fair_sleeper *me)
{
    pthread_mutex_lock(&f->mutex);
    me->next = NULL;
    me->number = f->next_number++;
    me->since_ns = f->ops->now_ns();
    *f->end = me;
    f->end = &me->next;
    __atomic_store_n(&f->sleeping, f->sleeping + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&f->mutex);
}

static void hghca_fair_get_up(struct hghca_fair *f, struct hghca_fair_sleeper *me)
{
    struct hghca_fair_sleeper **place = &f->oldest;

    pthread_mutex_lock(&f->mutex);
    while (*place != me) {
        place = &(*place)->next;
    }
    *place = me->next;
    if (f->end == &me->next) {
        f->end = place;
    }
    __atomic_store_n(&f->sleeping, f->sleeping - 1, __ATOMIC_RELAXED);
    if (f->standing_back) {
        pthread_cond_broadcast(&f->left);
    }
    pthread_mutex_unlock(&f->mutex);
}

void hghca_fair_lock(struct hghca_fair *f, void *lock, bool last)
{
    struct hghca_fair_sleeper me;

    if (hghca_fair_sleeping(f)) {
        hghca_fair_stand_back(f, last);
    }
    for (unsigned i = 0; i < f->tries; i++) {
        if (f->ops->try_lock(lock)) {
            return;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    hghca_fair_lie_down(f, &me);
    f->ops->lock(lock);
    hghca_fair_get_up(f, &me);
}
