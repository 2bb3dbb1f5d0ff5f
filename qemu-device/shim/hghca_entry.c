/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ways into the core, and whose turn it is.
 *
 * A frame that HCA A sends is received by HCA B inside A's call. B's receive
 * never sends: B is noted as due, and when the outermost entry of any HCA in
 * this process ends, the due ones take turns in that same context until none
 * has work or the time is over: after HGHCA_TURNS_NS if a CPU waits for the
 * BQL, after HGHCA_TURNS_ALONE_NS if none does. The rest goes on in a bottom half,
 * one for all HCAs, so a pass of the main loop has one such round. So
 * the answer to a doorbell needs no other thread, the stack stays flat and every
 * entry is bounded. A turn is one slice of work, which the core counts (work.h);
 * the time is looked at here, between slices: the core reads no clock for this.
 *
 * Between two rounds the main loop drops the BQL for a microsecond or two, which
 * is too short for a thread to wake up in. After HGHCA_ROUNDS_MAX rounds that
 * left work over, the main loop therefore goes without a round for HGHCA_REST_NS:
 * then a virtual CPU has the BQL, and who wakes from the wait for a condition.
 *
 * While a core is busy nothing else reaches it: a frame for it waits in the net
 * layer; a reset, a change of the link and a new memory map wait for the end of
 * the entry. MSI-X messages are held until no core at all is busy, since the
 * guest may aim them at any register, even at one that unplugs an HCA.
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "net/net.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "system/runstate.h"
#include "hghca_shim.h"
#include "trace.h"

#define HGHCA_TURNS_NS 100000
/*
 * Where virtual CPUs poll memory on all of the host's, the main loop waits long
 * for one of these. So a CPU that rings a doorbell does more by itself, as long as
 * it keeps no other CPU waiting.
 */
#define HGHCA_TURNS_ALONE_NS 1000000
/* Where the clock stands still, turns end too. */
#define HGHCA_TURNS_MAX 256
#define HGHCA_ROUNDS_MAX 16
#define HGHCA_REST_NS 50000     /* enough to wake up in */

static struct {
    unsigned depth;         /* entries under way, of all HCAs */
    int64_t begin_ns;       /* of the turns under way, on get_clock() */
    QTAILQ_HEAD(, HghcaState) due;
    unsigned users;         /* HCAs that are open */
    QEMUBH *bh;             /* a round of turns; there while there are users, and so is: */
    QEMUTimer *rest;        /* pending: until it ends there is no round */
    unsigned rounds;        /* that left work over, since the last rest */
} hghca_all = { .due = QTAILQ_HEAD_INITIALIZER(hghca_all.due) };

static bool hghca_time_is_over(void)
{
    int64_t taken_ns = get_clock() - hghca_all.begin_ns;

    return taken_ns >= HGHCA_TURNS_ALONE_NS ||
           (taken_ns >= HGHCA_TURNS_NS && hghca_bql_is_wanted());
}

static void hghca_set_due(HghcaState *s)
{
    if (!s->due && !s->closing) {
        s->due = true;
        QTAILQ_INSERT_TAIL(&hghca_all.due, s, next_due);
    }
}

static void hghca_clear_due(HghcaState *s)
{
    if (s->due) {
        s->due = false;
        QTAILQ_REMOVE(&hghca_all.due, s, next_due);
    }
}

static void hghca_reset_core(HghcaState *s)
{
    trace_hghca_reset(s->name);
    s->reset_due = false;
    s->vectors_due = 0;
    s->busy = true;
    hghca_core_reset(s->core);
    hghca_core_set_link(s->core, hghca_net_link_up(s));
    s->busy = false;
}

static void hghca_update_link(HghcaState *s)
{
    bool up = hghca_net_link_up(s);

    trace_hghca_link(s->name, up);
    s->link_change_due = false;
    s->busy = true;
    hghca_core_set_link(s->core, up);
    s->busy = false;
}

static bool hghca_has_work(HghcaState *s)
{
    return s->link_ready_due || hghca_core_has_work(s->core);
}

/* Ends an entry into the core: does what had to wait for it. */
static void hghca_settle(HghcaState *s)
{
    s->busy = false;
    if (s->closing) {
        hghca_end(s);
        return;
    }
    if (s->dma.stale) {
        hghca_dma_rebuild(s);
    }
    if (s->reset_due) {
        hghca_reset_core(s);
    }
    if (s->link_change_due) {
        hghca_update_link(s);
    }
    if (s->rx_waiting) {
        s->rx_waiting = false;
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
    }
    if (s->vectors_due || hghca_has_work(s)) {
        hghca_set_due(s);
    }
}

/*
 * A message can lead to anything: to a message of this very device that is due
 * again, when the guest aims it at a doorbell of this device or of one whose
 * messages lead back here; to a reset; up to hghca_end(). So only those are sent
 * that were due at the beginning, each once. What they make due waits for
 * another turn, and so does the rest when the time is over. Memory regions keep
 * the object itself until the BQL is dropped.
 */
static void hghca_signal(HghcaState *s)
{
    uint64_t turn = s->vectors_due;

    while (!s->closing && (turn & s->vectors_due)) {
        unsigned vector = ctz64(turn & s->vectors_due);

        turn &= ~BIT_ULL(vector);
        s->vectors_due &= ~BIT_ULL(vector);
        trace_hghca_signal(s->name, vector);
        msix_notify(PCI_DEVICE(s), vector);
        if (hghca_time_is_over()) {
            break;
        }
    }
    if (s->vectors_due) {
        hghca_set_due(s);
    }
}

static void hghca_take_turn(HghcaState *s)
{
    hghca_clear_due(s);
    if (hghca_has_work(s)) {
        s->busy = true;
        if (s->link_ready_due) {
            s->link_ready_due = false;
            hghca_core_link_ready(s->core);
        }
        hghca_core_run(s->core);
        hghca_settle(s);
    }
    hghca_signal(s);
}

static void hghca_postpone_turns(void)
{
    if (!QTAILQ_EMPTY(&hghca_all.due) && !timer_pending(hghca_all.rest)) {
        qemu_bh_schedule(hghca_all.bh);
    }
}

static void hghca_take_turns(void)
{
    unsigned turns = 0;

    if (!runstate_is_running()) {
        return;     /* hghca_vm_state_changed() goes on */
    }
    hghca_all.begin_ns = get_clock();
    do {
        hghca_take_turn(QTAILQ_FIRST(&hghca_all.due));
    } while (!QTAILQ_EMPTY(&hghca_all.due) && ++turns < HGHCA_TURNS_MAX &&
             !hghca_time_is_over());
    hghca_postpone_turns();
}

/* Begins an entry into the core. False: it must not be called. */
bool hghca_enter(HghcaState *s)
{
    if (s->closing) {
        return false;       /* a CPU was on its way here when the device was unplugged */
    }
    if (s->busy) {
        trace_hghca_ub_reentered(s->name);
        qemu_log_mask(LOG_GUEST_ERROR, "%s: entered by its own doing, ignored\n",
                      s->name);
        return false;
    }
    s->busy = true;
    hghca_all.depth++;
    return true;
}

/* Ends an entry. The device may be gone when this returns. */
void hghca_leave(HghcaState *s)
{
    hghca_settle(s);
    if (hghca_all.depth == 1 && !QTAILQ_EMPTY(&hghca_all.due)) {
        hghca_take_turns();
    }
    hghca_all.depth--;
}

/* Ends an entry whose caller bears no answer within its call: turns come later. */
void hghca_leave_quietly(HghcaState *s)
{
    hghca_settle(s);
    if (hghca_all.depth == 1) {
        hghca_postpone_turns();
    }
    hghca_all.depth--;
}

/* Gives the device a turn, when the entry under way ends or from the main loop. */
void hghca_poke(void *opaque)
{
    HghcaState *s = opaque;

    hghca_set_due(s);
    if (!hghca_all.depth) {
        hghca_postpone_turns();
    }
}

void hghca_reset(HghcaState *s)
{
    if (s->busy) {
        s->reset_due = true;
    } else {
        hghca_reset_core(s);
    }
}

void hghca_link_changed(HghcaState *s)
{
    if (s->busy) {
        s->link_change_due = true;
    } else {
        hghca_update_link(s);
        hghca_poke(s);      /* there may be an event to tell */
    }
}

/* Others have their turn of the BQL before the next round. */
static void hghca_give_way(void)
{
    hghca_bql_give_way();
    if (++hghca_all.rounds >= HGHCA_ROUNDS_MAX) {
        trace_hghca_rest(hghca_all.rounds);
        hghca_all.rounds = 0;
        qemu_bh_cancel(hghca_all.bh);
        timer_mod_ns(hghca_all.rest, get_clock() + HGHCA_REST_NS);
    }
}

static void hghca_rest_is_over(void *opaque)
{
    hghca_postpone_turns();
}

static void hghca_bottom_half(void *opaque)
{
    /* An event loop inside an entry must not get here: turns come at the entry's end. */
    if (QTAILQ_EMPTY(&hghca_all.due) || hghca_all.depth) {
        return;
    }
    hghca_all.depth++;
    hghca_take_turns();
    hghca_all.depth--;
    trace_hghca_round(!QTAILQ_EMPTY(&hghca_all.due));
    if (!QTAILQ_EMPTY(&hghca_all.due)) {
        hghca_give_way();
    }
}

static void hghca_vm_state_changed(void *opaque, bool running, RunState state)
{
    if (running) {
        hghca_postpone_turns();
    }
}

void hghca_entry_open(HghcaState *s)
{
    if (!hghca_all.users++) {
        /* It belongs to no device, so no device's guard is its own: a core is guarded by `busy`. */
        hghca_all.bh = qemu_bh_new(hghca_bottom_half, NULL);
        hghca_all.rest = timer_new_ns(QEMU_CLOCK_REALTIME, hghca_rest_is_over, NULL);
    }
    s->vm_state = qemu_add_vm_change_state_handler(hghca_vm_state_changed, s);
}

/* From here on the device takes no turn, sends no frame and no message. */
void hghca_entry_close(HghcaState *s)
{
    s->closing = true;
    hghca_clear_due(s);
    s->vectors_due = 0;
    qemu_del_vm_change_state_handler(s->vm_state);
    if (!--hghca_all.users) {
        qemu_bh_delete(hghca_all.bh);
        timer_free(hghca_all.rest);
        hghca_all.bh = NULL;
        hghca_all.rest = NULL;
    }
}

/* The last step of unplugging; when the core is busy, hghca_settle() takes it. */
void hghca_end(HghcaState *s)
{
    if (s->busy) {
        return;
    }
    hghca_dma_rebuild(s);
    g_free(s->dma.ram);
    s->dma.ram = NULL;
    hghca_core_free(s->core);
    s->core = NULL;
}
