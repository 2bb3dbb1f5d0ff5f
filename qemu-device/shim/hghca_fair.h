/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fair wait for a lock that its owner holds for microseconds and takes again at
 * once. No thread starves. This file does not depend on QEMU and can be tested
 * alone.
 */
#ifndef HW_HGHCA_FAIR_H
#define HW_HGHCA_FAIR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Operations on the lock. `lock` is the argument of hghca_fair_lock(). */
struct hghca_fair_ops {
    bool (*try_lock)(void *lock);
    void (*lock)(void *lock);       /* sleeps until it has the lock */
    uint64_t (*now_ns)(void);
};

struct hghca_fair_sleeper {
    struct hghca_fair_sleeper *next;
    uint64_t number;                /* in the order of arrival */
    uint64_t since_ns;
};

struct hghca_fair {
    const struct hghca_fair_ops *ops;
    unsigned tries;                 /* attempts before a thread sleeps */
    uint64_t bound_ns;              /* a thread that slept longer precedes all later threads */

    pthread_mutex_t mutex;          /* protects the fields below; not held while waiting for the lock */
    pthread_cond_t left;            /* a sleeper has got the lock while other threads stand back */
    struct hghca_fair_sleeper *oldest, **end;
    uint64_t next_number;
    unsigned sleeping;              /* also read without the mutex */
    unsigned standing_back;
};

void hghca_fair_init(struct hghca_fair *f, const struct hghca_fair_ops *ops, unsigned tries,
                     uint64_t bound_ns);

/* Returns whether a thread sleeps. The result is a hint. */
bool hghca_fair_sleeping(struct hghca_fair *f);

/*
 * Takes the lock. First, the thread stands back while an earlier sleeper has waited
 * for longer than the bound; with `last`, until all present sleepers have had the
 * lock. Then it tries f->tries times. Then it sleeps.
 */
void hghca_fair_lock(struct hghca_fair *f, void *lock, bool last);

#endif
