/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How to wait for a lock that is held for microseconds and taken again at once,
 * without that anyone waits for ever. Knows nothing of QEMU, so that it can be
 * tested alone.
 */
#ifndef HW_HGHCA_FAIR_H
#define HW_HGHCA_FAIR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The lock itself; `lock` is what hghca_fair_lock() was given. */
struct hghca_fair_ops {
    bool (*try_lock)(void *lock);
    void (*lock)(void *lock);       /* asleep until it has it */
    uint64_t (*now_ns)(void);
};

struct hghca_fair_sleeper {
    struct hghca_fair_sleeper *next;
    uint64_t number;                /* in the order of their coming */
    uint64_t since_ns;
};

struct hghca_fair {
    const struct hghca_fair_ops *ops;
    unsigned tries;                 /* before a thread sleeps */
    uint64_t bound_ns;              /* who has slept so long goes before all who come later */

    pthread_mutex_t mutex;          /* of what follows; the lock is never waited for with it */
    pthread_cond_t left;            /* a sleeper has the lock, while others stand back */
    struct hghca_fair_sleeper *oldest, **end;
    uint64_t next_number;
    unsigned sleeping;              /* read without the mutex too */
    unsigned standing_back;
};

void hghca_fair_init(struct hghca_fair *f, const struct hghca_fair_ops *ops, unsigned tries,
                     uint64_t bound_ns);

/* Does anyone sleep? Only a hint. */
bool hghca_fair_sleeping(struct hghca_fair *f);

/*
 * Takes the lock. Tries for a while; before that stands back while a sleeper that
 * came earlier has waited for longer than the bound. With `last`: until all that
 * sleep now have had the lock.
 */
void hghca_fair_lock(struct hghca_fair *f, void *lock, bool last);

#endif
