/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The properties pcap, pcap-snaplen and pcap-size: a capture of all frames between
 * the port and its link.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "hghca_shim.h"
#include "trace.h"

/* Time from 1970 to 0 of the virtual clock. The timestamps of frames use that clock. */
static uint64_t hghca_capture_epoch_ns(void)
{
    return g_get_real_time() * SCALE_US - qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* Does not wait for the reader of a FIFO. */
static int hghca_capture_open_file(const char *file, Error **errp)
{
    Error *error = NULL;
    struct stat status;
    int fd = qemu_create(file, O_WRONLY | O_NONBLOCK, 0644, &error);

    if (fd < 0 && errno == ENXIO && !stat(file, &status) && S_ISFIFO(status.st_mode)) {
        error_free(error);
        error_setg(errp, "property 'pcap': the FIFO '%s' has no reader; start the reader first", file);
    } else {
        error_propagate(errp, error);
    }
    return fd;
}

static struct hghca_capture *hghca_capture_begin_file(HghcaState *s, const char *file,
                                                      Error **errp)
{
    struct hghca_capture_config config = {
        .name = s->name,
        .snap_bytes = s->capture_snap_bytes,
        .max_bytes = s->capture_max_bytes,
        .epoch_ns = hghca_capture_epoch_ns(),
    };
    struct hghca_capture *capture;
    int error;
    int fd = hghca_capture_open_file(file, errp);

    if (fd < 0) {
        return NULL;
    }
    capture = hghca_capture_begin(fd, &config, &error);
    if (!capture) {
        error_setg(errp, "property 'pcap': cannot capture frames in '%s': %s", file,
                   error == EWOULDBLOCK ? "another capture has it" : strerror(error));
        return NULL;
    }
    trace_hghca_capture(s->name, file);
    return capture;
}

void hghca_capture_close(HghcaState *s)
{
    if (s->capture) {
        hghca_capture_end(s->capture);
        s->capture = NULL;
    }
    if (s->capture_dropped) {
        warn_report("%s: the capture of frames in '%s' lacks %" PRIu64 " frames", s->name,
                    s->capture_file, s->capture_dropped);
        s->capture_dropped = 0;
    }
    g_free(s->capture_file);
    s->capture_file = NULL;
}

bool hghca_capture_open(HghcaState *s, Error **errp)
{
    if (s->capture_file && !s->capture) {
        s->capture = hghca_capture_begin_file(s, s->capture_file, errp);
        return s->capture;
    }
    return true;
}

void hghca_capture_add(HghcaState *s, bool sent, const struct iovec *parts, int count)
{
    uint64_t now_ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    int error = hghca_capture_frame(s->capture, sent, now_ns, parts, count);

    if (error == EAGAIN) {
        if (!s->capture_dropped++) {
            warn_report("%s: the FIFO '%s' is not read fast enough: its capture lacks frames",
                        s->name, s->capture_file);
        }
    } else if (error) {
        warn_report("%s: the capture of frames in '%s' ends: %s", s->name, s->capture_file,
                    error == EPIPE ? "its reader is gone" : strerror(error));
        hghca_capture_close(s);
    }
}

/* Returns "" without a capture, also after a capture that has ended by itself. */
char *hghca_capture_get(Object *object, Error **errp)
{
    HghcaState *s = HGHCA(object);

    return g_strdup(s->capture_file ?: "");
}

/* If the new file cannot be created, the old capture continues. Setting the same name restarts its file. */
void hghca_capture_set(Object *object, const char *file, Error **errp)
{
    HghcaState *s = HGHCA(object);
    struct hghca_capture *capture = NULL;

    if (!g_strcmp0(file, s->capture_file)) {
        hghca_capture_close(s);
    }
    /* Before the device is realized, only the name is kept. */
    if (*file && s->core) {
        capture = hghca_capture_begin_file(s, file, errp);
        if (!capture) {
            return;
        }
    }
    hghca_capture_close(s);
    s->capture = capture;
    s->capture_file = *file ? g_strdup(file) : NULL;
}
