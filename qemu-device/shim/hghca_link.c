/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The property link=shm:PATH: a link to an HCA of another process, by shared memory.
 *
 * PATH is a UNIX stream socket. The process that locks PATH.lock listens there, the other
 * one connects. The listener makes the memory and sends it with a hello. The connector
 * checks both and says that it is ready. From then on the link is up, and a byte on the
 * socket is a kick: there are frames in the ring, or there is room in it. A kick is no
 * eventfd: a peer that fills its counter and clears O_NONBLOCK could stop this process,
 * while send() and recv() take MSG_DONTWAIT.
 *
 * The peer is not trusted (shared_ring.h). Its memory is sealed against shrinking, so that
 * an access cannot fail. If the peer sends what cannot be, the connection ends and is made
 * again. It also ends when the peer's process does.
 *
 * Frames are received in turns (hghca_entry.c), so their number is bounded as that of all
 * other work, and none is received while the virtual machine is stopped. A kick only makes
 * a turn due. A timer is pending only while this side has to connect and cannot.
 */

#include "qemu/osdep.h"
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/sockets.h"
#include "hghca_shim.h"
#include "trace.h"

#define HGHCA_LINK_PREFIX       "shm:"
#define HGHCA_LINK_MAGIC        0x4b4e494c41434847ULL   /* "GHCALINK" in memory */
#define HGHCA_LINK_VERSION      1
#define HGHCA_LINK_RING_BYTES   (1024 * 1024)
#define HGHCA_LINK_READY        'r'
#define HGHCA_LINK_KICK         'k'
/* Frames of a turn. */
#define HGHCA_LINK_BATCH        64
/* Between two attempts to connect; doubled after each one that fails. */
#define HGHCA_LINK_RETRY_MS     50
#define HGHCA_LINK_RETRY_MAX_MS 1600

/* What the listener sends first, with the descriptor of the memory. */
typedef struct HghcaLinkHello {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;      /* 0 */
    uint64_t ring_bytes;
} HghcaLinkHello;
QEMU_BUILD_BUG_ON(sizeof(HghcaLinkHello) != 24);

/* A hello with one descriptor, as sendmsg() and recvmsg() take it. */
typedef struct HghcaLinkMessage {
    struct iovec part;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header;
} HghcaLinkMessage;

struct HghcaLink {
    HghcaState *s;
    const char *path;       /* in the property */
    int lock;               /* PATH.lock; locked by the listener */
    int listener;           /* -1: this side connects */
    int peer;               /* the connection; -1: none */
    void *memory;           /* NULL: none yet */
    uint64_t memory_bytes;
    struct hghca_rings *rings;      /* exists while the link is up */
    struct hghca_rings *prepared;   /* of a listener whose peer is not ready */
    QEMUTimer *retry;
    unsigned retry_ms;
    const char *over;       /* why the connection ends, when the core is not busy any more; NULL: it does not */
    bool complained;        /* of a peer, since the link was up last */
};

static void hghca_link_try(void *opaque);

bool hghca_link_is_up(const HghcaLink *l)
{
    return l->rings;
}

/* ------------------------------------------------------------------ */
/* The connection                                                      */

static void hghca_link_close_fd(int *fd)
{
    if (*fd >= 0) {
        qemu_set_fd_handler(*fd, NULL, NULL, NULL);
        close(*fd);
        *fd = -1;
    }
}

/* Forgets the peer. The core is not called. */
static void hghca_link_forget_peer(HghcaLink *l)
{
    hghca_link_close_fd(&l->peer);
    hghca_rings_free(l->rings);
    hghca_rings_free(l->prepared);
    l->rings = NULL;
    l->prepared = NULL;
    l->over = NULL;
    if (l->memory) {
        munmap(l->memory, l->memory_bytes);
        l->memory = NULL;
    }
}

/* Who connects tries again later. A listener waits for a connection, without a timer. */
static void hghca_link_try_later(HghcaLink *l)
{
    timer_mod(l->retry, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + l->retry_ms);
    l->retry_ms = MIN(2 * l->retry_ms, HGHCA_LINK_RETRY_MAX_MS);
}

/* Ends the connection, or lets hghca_link_settle() end it: a core that is busy may be reading a frame of the rings. */
static void hghca_link_end(HghcaLink *l, const char *why)
{
    HghcaState *s = l->s;
    bool up = hghca_link_is_up(l);

    if (s->busy) {
        l->over = why;
        qemu_set_fd_handler(l->peer, NULL, NULL, NULL);
        return;
    }

    trace_hghca_link_end(s->name, why);
    hghca_link_forget_peer(l);
    if (l->listener < 0) {
        hghca_link_try_later(l);
    }
    if (up && !s->closing) {
        /* A frame that waits for room is lost, as each one while the link is down. */
        s->tx_pending = false;
        s->link_ready_due = true;
        hghca_link_changed(s);
    }
}

/* The peer has sent what cannot be. */
static void hghca_link_refuse(HghcaLink *l, const char *why)
{
    if (!l->complained) {
        warn_report("%s: link=shm:%s: %s: the connection ends", l->s->name, l->path, why);
        l->complained = true;
    }
    hghca_link_end(l, why);
}

static void hghca_link_begin(HghcaLink *l, struct hghca_rings *rings)
{
    l->prepared = NULL;
    l->rings = rings;
    l->complained = false;
    l->retry_ms = HGHCA_LINK_RETRY_MS;
    trace_hghca_link_begin(l->s->name, l->listener >= 0);
    hghca_link_changed(l->s);
}

static void hghca_link_say(HghcaLink *l, char what)
{
    /* If the socket is full, kicks are waiting there. If it is closed, hghca_link_readable() finds out. */
    ssize_t ignored G_GNUC_UNUSED = send(l->peer, &what, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Takes what the peer has said. False: the connection has ended. */
static bool hghca_link_listen_to(HghcaLink *l, char *first)
{
    char bytes[256];
    ssize_t got = recv(l->peer, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got > 0) {
        *first = bytes[0];
        return true;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        *first = 0;
        return true;
    }
    hghca_link_end(l, "the peer has gone");
    return false;
}

/* A kick: frames are received in the turn that follows. */
static void hghca_link_readable(void *opaque)
{
    HghcaLink *l = opaque;
    HghcaState *s = l->s;
    char said;

    if (!hghca_link_listen_to(l, &said)) {
        return;
    }
    if (!l->rings) {
        if (said == HGHCA_LINK_READY) {
            hghca_link_begin(l, l->prepared);
        } else if (said) {
            hghca_link_refuse(l, "the peer does not say that it is ready");
            return;
        }
    }
    if (s->tx_pending) {
        trace_hghca_link_ready(s->name);
        s->tx_pending = false;
        s->link_ready_due = true;
    }
    if (s->busy || !hghca_enter(s)) {
        return;     /* hghca_settle() finds the frames */
    }
    hghca_leave(s);
}

/* ------------------------------------------------------------------ */
/* The listener                                                        */

static bool hghca_link_map(HghcaLink *l, int fd)
{
    void *memory = mmap(NULL, l->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

    if (memory == MAP_FAILED) {
        return false;
    }
    l->memory = memory;
    return true;
}

static int hghca_link_new_memory(HghcaLink *l)
{
    int fd = memfd_create("hghca-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    l->memory_bytes = hghca_rings_memory_bytes(HGHCA_LINK_RING_BYTES);
    if (fd >= 0 && (ftruncate(fd, l->memory_bytes) ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ||
                    !hghca_link_map(l, fd))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* CMSG_SPACE() may hold two descriptors. With CMSG_LEN(), the kernel passes one and closes the others. */
static struct msghdr *hghca_link_message(HghcaLinkMessage *m, HghcaLinkHello *hello)
{
    memset(m, 0, sizeof(*m));
    m->part.iov_base = hello;
    m->part.iov_len = sizeof(*hello);
    m->header.msg_iov = &m->part;
    m->header.msg_iovlen = 1;
    m->header.msg_control = &m->control;
    m->header.msg_controllen = CMSG_LEN(sizeof(int));
    return &m->header;
}

static bool hghca_link_send_hello(int peer, int memory)
{
    HghcaLinkHello hello = {
        .magic = HGHCA_LINK_MAGIC,
        .version = HGHCA_LINK_VERSION,
        .ring_bytes = HGHCA_LINK_RING_BYTES,
    };
    HghcaLinkMessage m;
    struct msghdr *message = hghca_link_message(&m, &hello);
    struct cmsghdr *descriptor = CMSG_FIRSTHDR(message);

    descriptor->cmsg_level = SOL_SOCKET;
    descriptor->cmsg_type = SCM_RIGHTS;
    descriptor->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(descriptor), &memory, sizeof(int));
    return sendmsg(peer, message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(hello);
}

/* Makes new memory for a new peer, so that nothing of an earlier one is left in it. */
static void hghca_link_accept(void *opaque)
{
    HghcaLink *l = opaque;
    int memory, peer = qemu_accept(l->listener, NULL, NULL);

    if (peer < 0) {
        return;
    }
    if (hghca_link_is_up(l)) {
        trace_hghca_link_third(l->s->name);
        close(peer);
        return;
    }
    /* A process that has connected and has not said that it is ready makes way for another one. */
    hghca_link_forget_peer(l);
    memory = hghca_link_new_memory(l);
    if (memory >= 0) {
        l->prepared = hghca_rings_new(l->memory, HGHCA_LINK_RING_BYTES, true);
    }
    l->peer = peer;
    qemu_set_fd_handler(peer, hghca_link_readable, NULL, l);
    if (!l->prepared) {
        hghca_link_refuse(l, "there is no memory for the rings");
    } else if (!hghca_link_send_hello(peer, memory)) {
        hghca_link_end(l, "the hello could not be sent");
    }
    if (memory >= 0) {
        close(memory);
    }
}

/* ------------------------------------------------------------------ */
/* The connector                                                       */

/* Receives the hello and its descriptor; -1: not exactly one descriptor came with it. */
static ssize_t hghca_link_receive_hello(int peer, HghcaLinkHello *hello, int *memory)
{
    HghcaLinkMessage m;
    struct msghdr *message = hghca_link_message(&m, hello);
    ssize_t got = recvmsg(peer, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *descriptor = got > 0 ? CMSG_FIRSTHDR(message) : NULL;

    *memory = -1;
    if (descriptor && descriptor->cmsg_level == SOL_SOCKET && descriptor->cmsg_type == SCM_RIGHTS &&
        descriptor->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(memory, CMSG_DATA(descriptor), sizeof(int));
    }
    if (*memory >= 0 && message->msg_flags & MSG_CTRUNC) {
        close(*memory);
        *memory = -1;
    }
    return got;
}

/*
 * What is wrong with the memory; NULL: nothing. Shared memory that cannot shrink can be
 * read and written at any time: huge pages could be taken away, and so they are refused.
 */
static const char *hghca_link_check_memory(int fd, uint64_t bytes)
{
    struct stat status;
    struct statfs system;
    int seals;

    if (fd < 0) {
        return "the hello has no memory";
    }
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || fstatfs(fd, &system) || system.f_type != TMPFS_MAGIC) {
        return "the hello's memory is no shared memory";
    }
    seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
        return "the hello's memory is not sealed";
    }
    return status.st_size == bytes ? NULL : "the hello's memory has another size";
}

static const char *hghca_link_check_hello(const HghcaLinkHello *hello, ssize_t got)
{
    if (got != sizeof(*hello) || hello->magic != HGHCA_LINK_MAGIC) {
        return "there is no hello";
    }
    if (hello->version != HGHCA_LINK_VERSION || hello->reserved) {
        return "the hello is of another version";
    }
    return hghca_rings_memory_bytes(hello->ring_bytes) ? NULL : "the hello's rings have a size that cannot be";
}

/* What is wrong; NULL: nothing, and the rings are there. */
static const char *hghca_link_take_hello(HghcaLink *l, const HghcaLinkHello *hello, ssize_t got, int memory)
{
    const char *why = hghca_link_check_hello(hello, got);

    if (!why) {
        l->memory_bytes = hghca_rings_memory_bytes(hello->ring_bytes);
        why = hghca_link_check_memory(memory, l->memory_bytes);
    }
    if (!why && !hghca_link_map(l, memory)) {
        why = "the hello's memory cannot be mapped";
    }
    if (!why) {
        l->prepared = hghca_rings_new(l->memory, hello->ring_bytes, false);
        why = l->prepared ? NULL : "out of memory";
    }
    return why;
}

static void hghca_link_hello(void *opaque)
{
    HghcaLink *l = opaque;
    HghcaLinkHello hello;
    const char *why;
    int memory;
    ssize_t got = hghca_link_receive_hello(l->peer, &hello, &memory);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (!got) {
        hghca_link_end(l, "refused");       /* the listener has a peer, or has ended */
        return;
    }
    why = hghca_link_take_hello(l, &hello, got, memory);
    if (memory >= 0) {
        close(memory);
    }
    if (why) {
        hghca_link_refuse(l, why);
        return;
    }
    qemu_set_fd_handler(l->peer, hghca_link_readable, NULL, l);
    hghca_link_say(l, HGHCA_LINK_READY);
    hghca_link_begin(l, l->prepared);
}

/* ------------------------------------------------------------------ */
/* Who listens                                                         */

static void hghca_link_address(const HghcaLink *l, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX;
    pstrcpy(address->sun_path, sizeof(address->sun_path), l->path);
}

static int hghca_link_new_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* With the lock: what is at PATH is of a process that has ended. Returns 0 or an errno. */
static int hghca_link_listen(HghcaLink *l)
{
    struct sockaddr_un address;
    struct stat status;
    int fd;

    hghca_link_address(l, &address);
    if (!lstat(l->path, &status) && (!S_ISSOCK(status.st_mode) || unlink(l->path))) {
        return EEXIST;
    }
    fd = hghca_link_new_socket();
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1)) {
        int error = errno;

        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    l->listener = fd;
    qemu_set_fd_handler(fd, hghca_link_accept, NULL, l);
    trace_hghca_link_role(l->s->name, true);
    return 0;
}

static void hghca_link_connect(HghcaLink *l)
{
    struct sockaddr_un address;
    int fd = hghca_link_new_socket();

    hghca_link_address(l, &address);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        /* The listener has the lock and not yet the socket, or has too many connections to accept. */
        if (fd >= 0) {
            close(fd);
        }
        hghca_link_try_later(l);
        return;
    }
    trace_hghca_link_role(l->s->name, false);
    l->peer = fd;
    qemu_set_fd_handler(fd, hghca_link_hello, NULL, l);
}

/*
 * The kernel gives the lock to one process and takes it back when that ends, by whatever
 * cause. Therefore the file of the lock stays: if it were removed, two processes could
 * have locks on two files of one name. Returns 0 or an errno.
 */
static int hghca_link_start(HghcaLink *l)
{
    if (!flock(l->lock, LOCK_EX | LOCK_NB)) {
        return hghca_link_listen(l);
    }
    if (errno != EWOULDBLOCK) {
        return errno;
    }
    hghca_link_connect(l);
    return 0;
}

static void hghca_link_try(void *opaque)
{
    HghcaLink *l = opaque;
    int error = hghca_link_start(l);

    if (error) {
        if (!l->complained) {
            warn_report("%s: link=shm:%s: %s", l->s->name, l->path, strerror(error));
            l->complained = true;
        }
        flock(l->lock, LOCK_UN);
        hghca_link_try_later(l);
    }
}

/* ------------------------------------------------------------------ */
/* Frames                                                              */

bool hghca_link_has_work(const HghcaLink *l)
{
    return l->over || (l->rings && hghca_rings_pending(l->rings));
}

/* Receives the frames of one turn. The core is busy. */
void hghca_link_receive(HghcaLink *l)
{
    HghcaState *s = l->s;
    struct iovec frame;

    for (unsigned i = 0; l->rings && !l->over && i < HGHCA_LINK_BATCH; i++) {
        switch (hghca_rings_receive(l->rings, &frame)) {
        case HGHCA_RINGS_DONE:
            if (hghca_net_link_up(s)) {     /* QMP set_link may have taken it down */
                hghca_net_receive_frame(s, &frame, 1, false);
            }
            break;
        case HGHCA_RINGS_NONE:
            return;
        case HGHCA_RINGS_BROKEN:
            hghca_link_refuse(l, "the peer's ring says what cannot be");
            return;
        }
    }
}

/* Returns false if there is no room for the frame. The core is busy, as a rule. */
bool hghca_link_send(HghcaLink *l, const struct iovec *parts, int count)
{
    switch (l->rings && !l->over ? hghca_rings_send(l->rings, parts, count) : HGHCA_RINGS_DONE) {
    case HGHCA_RINGS_NONE:
        trace_hghca_link_full(l->s->name);
        return false;
    case HGHCA_RINGS_BROKEN:
        hghca_link_refuse(l, "the peer's ring says what cannot be");
        break;      /* the frame is lost */
    case HGHCA_RINGS_DONE:
        break;
    }
    return true;
}

/* At the end of an entry or turn: one kick for all of its frames. The core is not busy. */
void hghca_link_settle(HghcaLink *l)
{
    if (l->over) {
        hghca_link_end(l, l->over);
    } else if (l->rings && hghca_rings_end_burst(l->rings)) {
        trace_hghca_link_kick(l->s->name);
        hghca_link_say(l, HGHCA_LINK_KICK);
    }
}

/* ------------------------------------------------------------------ */
/* The property                                                        */

bool hghca_link_check(HghcaState *s, Error **errp)
{
    const char *path;

    if (!s->link_name) {
        return true;
    }
    if (!strstart(s->link_name, HGHCA_LINK_PREFIX, &path) || !*path) {
        error_setg(errp, "property 'link' must be 'shm:PATH', not '%s'", s->link_name);
        return false;
    }
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
        error_setg(errp, "property 'link': the path '%s' is too long for a socket", path);
        return false;
    }
    if (s->nic_conf.peers.ncs[0]) {
        error_setg(errp, "properties 'link' and 'netdev' exclude each other");
        return false;
    }
    return true;
}

bool hghca_link_open(HghcaState *s, Error **errp)
{
    g_autofree char *lock = NULL;
    HghcaLink *l;
    int error;

    if (!s->link_name) {
        return true;
    }
    l = g_new0(HghcaLink, 1);
    l->s = s;
    l->path = s->link_name + strlen(HGHCA_LINK_PREFIX);
    l->listener = l->peer = -1;
    l->retry_ms = HGHCA_LINK_RETRY_MS;
    l->retry = timer_new_ms(QEMU_CLOCK_REALTIME, hghca_link_try, l);
    lock = g_strdup_printf("%s.lock", l->path);
    l->lock = qemu_create(lock, O_RDWR, 0600, errp);
    s->link = l;
    if (l->lock < 0) {
        hghca_link_close(s);
        return false;
    }
    error = hghca_link_start(l);
    if (error) {
        error_setg(errp, "property 'link': cannot listen at '%s': %s", l->path, strerror(error));
        hghca_link_close(s);
        return false;
    }
    return true;
}

void hghca_link_close(HghcaState *s)
{
    HghcaLink *l = s->link;

    if (!l) {
        return;
    }
    s->link = NULL;
    hghca_link_forget_peer(l);
    if (l->listener >= 0) {
        unlink(l->path);
    }
    hghca_link_close_fd(&l->listener);
    if (l->lock >= 0) {
        close(l->lock);
    }
    timer_free(l->retry);
    g_free(l);
}
