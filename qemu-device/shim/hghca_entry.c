/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries into the core, and the scheduling of turns.
 *
 * An entry is a call into the core. A turn is one slice of work of one HCA. The core
 * counts the work of a slice (work.h).
 *
 * HCA B receives a frame that HCA A sends within A's call. B does not send in that
 * call: it is marked as due. When the outermost entry of any HCA in this process
 * ends, the due HCAs take turns in the same context until no HCA has work or the time
 * is over. The time is HGHCA_TURNS_NS if a CPU waits for the BQL, otherwise
 * HGHCA_TURNS_ALONE_NS. It is checked here, between slices; the core does not read a
 * clock for this. The remaining work continues in a bottom half. All HCAs share it, so
 * that an iteration of the main loop has one round of turns. As a result, a response to
 * a doorbell needs no other thread, calls do not nest, and the time of every entry is
 * bounded.
 *
 * The work may be that of other queues. After a doorbell whose own send queue has no
 * work left, HGHCA_TURNS_AFTER turns follow at the most: the program that rang it has
 * its completion and waits for the doorbell alone. There are some such turns, because
 * most often nothing else is to do, and the QP only has to leave the line of those that
 * send. To wake the main loop for that would take longer.
 *
 * Between two rounds the main loop drops the BQL for one or two microseconds. A thread
 * needs longer to wake up. Therefore, after HGHCA_ROUNDS_MAX rounds that left work, the
 * main loop has no round for HGHCA_REST_NS. In that time virtual CPUs can take the BQL,
 * and so can threads that wake up from a wait for a condition.
 *
 * While a core is busy, it is not entered. A frame for it waits in the net layer. A
 * reset, a change of the link and a new memory map wait for the end of the entry. MSI-X
 * messages wait until no core is busy, because the guest may direct them at any
 * register, even at one that unplugs an HCA.
 */

#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "net/net.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "system/runstate.h"
#include "hghca_shim.h"
#include "trace.h"

#define HGHCA_TURNS_NS 30000
/* If it is not known whether a virtual CPU waits. */
#define HGHCA_TURNS_UNKNOWN_NS 100000
/*
 * If virtual CPUs that poll memory occupy all CPUs of the host, the main loop waits long
 * for a CPU. Therefore a virtual CPU that rings a doorbell does more of the work, as long
 * as no other virtual CPU waits for it.
 */
#define HGHCA_TURNS_ALONE_NS 1000000
/* Turns also end if the clock does not advance. */
#define HGHCA_TURNS_MAX 256
#define HGHCA_TURNS_AFTER 2
#define HGHCA_ROUNDS_MAX 16
#define HGHCA_REST_NS 50000     /* longer than a thread needs to wake up */

static struct {
    unsigned depth;         /* nested entries, of all HCAs */
    int64_t begin_ns;       /* start of the current turns, by get_clock() */
    uint64_t number;        /* hghca_entry_number() */
    int64_t now_ns;         /* virtual time of the current outermost entry or turn; 0: not read yet */
    QTAILQ_HEAD(, HghcaState) due;
    unsigned users;         /* open HCAs; bh and rest exist while this is not 0 */
    QEMUBH *bh;             /* runs a round of turns */
    QEMUTimer *rest;        /* while it is pending, there is no round */
    unsigned rounds;        /* rounds that left work, since the last rest */
    HghcaState *rung;       /* the outermost entry is its doorbell */
    unsigned turns_after;   /* since the work of that doorbell was done */
} hghca_all = { .due = QTAILQ_HEAD_INITIALIZER(hghca_all.due) };

static bool hghca_time_is_over(void)
{
    int64_t taken_ns = get_clock() - hghca_all.begin_ns;

    if (!hghca_bql_is_hooked()) {
        return taken_ns >= HGHCA_TURNS_UNKNOWN_NS;
    }
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

/* Messages that were raised before a reset are not sent any more. */
void hghca_forget_interrupts(HghcaState *s)
{
    s->vectors_due = 0;
    if (s->intx) {
        pci_set_irq(PCI_DEVICE(s), 0);
    }
}

static void hghca_reset_core(HghcaState *s)
{
    trace_hghca_reset(s->name);
    s->reset_due = false;
    hghca_forget_interrupts(s);
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
    return s->link_ready_due || (s->link && hghca_link_has_work(s->link)) || hghca_core_has_work(s->core);
}

static void hghca_renumber(void)
{
    hghca_all.number++;
    hghca_all.now_ns = 0;
}

/* Ends an entry into the core and does the work that had to wait for the end. */
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
    if (s->link) {
        hghca_link_settle(s->link);
    }
    if (s->link_change_due) {
        hghca_update_link(s);
    }
    if (s->rx_waiting) {
        s->rx_waiting = false;
        qemu_flush_queued_packets(qemu_get_queue(s->nic));
        hghca_renumber();    /* frames may also have gone to other devices */
    }
    if (s->vectors_due || hghca_has_work(s)) {
        hghca_set_due(s);
    }
}

/*
 * The guest can direct a message at any register. At a doorbell of this device, or of
 * one whose messages are directed at this device, the same message can become due again.
 * A message can also cause a reset, or even hghca_end(). Therefore this sends only the
 * messages that were due at the beginning, each once. Messages that become due meanwhile
 * wait for another turn, and so do the remaining ones when the time is over. Memory
 * regions keep the object alive until the BQL is dropped.
 */
static void hghca_signal(HghcaState *s)
{
    uint64_t turn = s->vectors_due;

    while (!s->closing && (turn & s->vectors_due)) {
        unsigned vector = ctz64(turn & s->vectors_due);

        turn &= ~BIT_ULL(vector);
        s->vectors_due &= ~BIT_ULL(vector);
        s->interrupts++;
        trace_hghca_signal(s->name, vector);
        if (s->intx && !msix_enabled(PCI_DEVICE(s))) {
            pci_set_irq(PCI_DEVICE(s), 1);
        } else {
            msix_notify(PCI_DEVICE(s), vector);
        }
        hghca_renumber();    /* whatever it has written to may have changed the link */
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
    hghca_all.now_ns = 0;
    hghca_clear_due(s);
    if (hghca_has_work(s)) {
        s->busy = true;
        if (s->link) {
            hghca_link_receive(s->link);
        }
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

/* Asked once, after turn number `turns` of an entry. */
static bool hghca_doorbell_is_done(unsigned turns)
{
    HghcaState *s = hghca_all.rung;

    if (!s || s->closing || s->vectors_due || hghca_core_rung_has_work(s->core) ||
        hghca_all.turns_after++ < HGHCA_TURNS_AFTER) {
        return false;
    }
    trace_hghca_doorbell_done(s->name, turns);
    return true;
}

static void hghca_take_turns(void)
{
    unsigned turns = 0;

    if (!runstate_is_running()) {
        return;     /* hghca_vm_state_changed() resumes the turns */
    }
    hghca_all.begin_ns = get_clock();
    do {
        hghca_take_turn(QTAILQ_FIRST(&hghca_all.due));
    } while (!QTAILQ_EMPTY(&hghca_all.due) && ++turns < HGHCA_TURNS_MAX &&
             !hghca_time_is_over() && !hghca_doorbell_is_done(turns));
    hghca_postpone_turns();
}

/* Begins an entry into the core. After false the caller must not call the core. */
bool hghca_enter(HghcaState *s)
{
    if (s->closing) {
        return false;       /* a CPU was waiting for the BQL when the device was unplugged */
    }
    if (s->busy) {
        trace_hghca_ub_reentered(s->name);
        qemu_log_mask(LOG_GUEST_ERROR, "%s: reentrant access ignored\n",
                      s->name);
        return false;
    }
    s->busy = true;
    if (!hghca_all.depth++) {
        hghca_renumber();
    }
    return true;
}

/*
 * Another number in each outermost entry with its turns, in each round of the main loop,
 * and after each MSI-X message and each flush of the net layer's queue. While it is the
 * same, no netdev, filter or device comes or goes. 0 outside of entries: a change of the
 * link calls the core there, and it may send a pause frame.
 */
uint64_t hghca_entry_number(void)
{
    return hghca_all.depth ? hghca_all.number : 0;
}

/*
 * The virtual time. It stands still during an outermost entry and during a turn: to
 * read the clock takes a tenth of the time of a packet, and all packets of a turn are
 * sent and received in it.
 */
uint64_t hghca_entry_time_ns(void *opaque)
{
    if (!hghca_all.depth) {
        return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    }
    if (!hghca_all.now_ns) {
        hghca_all.now_ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    }
    return hghca_all.now_ns;
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

/* Ends the entry of a doorbell; as hghca_leave(). */
void hghca_leave_doorbell(HghcaState *s)
{
    bool outermost = hghca_all.depth == 1;

    if (outermost) {
        hghca_all.rung = s;
        hghca_all.turns_after = 0;
    }
    hghca_leave(s);
    if (outermost) {
        hghca_all.rung = NULL;
    }
}

/* Ends an entry without turns, for a caller that must not receive a frame within its call. */
void hghca_leave_quietly(HghcaState *s)
{
    hghca_settle(s);
    if (hghca_all.depth == 1) {
        hghca_postpone_turns();
    }
    hghca_all.depth--;
}

/* Schedules a turn of the device: at the end of the current entry, or in the main loop. */
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
        hghca_poke(s);      /* the core may have raised an event */
    }
}

/* Lets other threads take the BQL before the next round. */
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
    /* Called from an event loop within an entry: the turns follow at the end of the entry. */
    if (QTAILQ_EMPTY(&hghca_all.due) || hghca_all.depth) {
        return;
    }
    hghca_all.depth++;
    hghca_renumber();
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
        /* It belongs to no device, so it has no device's reentrancy guard. `busy` guards a core. */
        hghca_all.bh = qemu_bh_new(hghca_bottom_half, NULL);
        hghca_all.rest = timer_new_ns(QEMU_CLOCK_REALTIME, hghca_rest_is_over, NULL);
    }
    s->vm_state = qemu_add_vm_change_state_handler(hghca_vm_state_changed, s);
}

/* From here on the device takes no turns and sends no frames or messages. */
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

/* The last step of unplugging. If the core is busy, hghca_settle() does it later. */
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
