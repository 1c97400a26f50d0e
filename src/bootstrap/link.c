#include "bootstrap/link.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

#define LINK_MAGIC UINT32_C(0x6c686f44)

/* Up to this length a frame is sent in one piece. */
enum { SMALL_BYTES = 1024 };

cohi_frame cohi_link_frame(cohi_link_kind kind, int rank)
{
    return (cohi_frame){.magic = LINK_MAGIC, .kind = kind, .rank = rank};
}

cohi_hello cohi_link_hello(int rank, int size, const char *host)
{
    cohi_hello hello = {.frame = cohi_link_frame(COHI_LINK_HELLO, rank), .size = size};
    hello.frame.bytes = sizeof hello - sizeof hello.frame;
    snprintf(hello.version, sizeof hello.version, "%s", coh_version_string());
    snprintf(hello.host, sizeof hello.host, "%s", host);
    return hello;
}

int cohi_link_check_hello(cohi_hello *hello)
{
    hello->version[sizeof hello->version - 1] = '\0';
    hello->host[sizeof hello->host - 1] = '\0';
    bool is_one = hello->frame.magic == LINK_MAGIC && hello->frame.kind == COHI_LINK_HELLO
                  && hello->frame.bytes == sizeof *hello - sizeof hello->frame;
    return is_one ? 0 : EPROTO;
}

coh_status cohi_link_fail_descriptors(const char *what)
{
    struct rlimit limit = {.rlim_cur = 0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return cohi_fail(COH_LIMIT,
                     "coh_init: %s: this process may have %llu open descriptors (RLIMIT_NOFILE, "
                     "ulimit -n), which is not enough",
                     what, (unsigned long long)limit.rlim_cur);
}

/* ---- links ---- */

bool cohi_link_seal(const cohi_tls *tls, int fd, cohi_connection *link)
{
    cohi_link_far *far = malloc(sizeof *far);
    if (!far || !cohi_tls_seals(tls, &cohi_seal_limits_usual, &far->seals)) {
        free(far);
        return false;
    }
    far->from = far->to = 0;
    *link = (cohi_connection){.fd = fd, .far = far};
    return true;
}

void cohi_link_close(cohi_connection *link)
{
    cohi_os_close(link->fd);
    if (link->far) {
        cohi_seals_end(&link->far->seals);
        free(link->far);
    }
    *link = COHI_NO_LINK;
}

/* ---- between hosts ---- */

static int send_record(const cohi_connection *link, struct iovec *parts, int count,
                       uint64_t deadline_ns)
{
    cohi_link_far *far = link->far;
    size_t bytes = cohi_seal_close(far->seals.out, COHI_SEAL_DATA, parts, count, far->record);
    return bytes > 0 ? cohi_os_send(link->fd, far->record, bytes, NULL, 0, deadline_ns) : EIO;
}

/* A frame begins and ends with a record, so that none waits where poll(2) cannot see it. */
static int send_far(const cohi_connection *link, const void *head, size_t head_bytes,
                    const char *payload, size_t bytes, uint64_t deadline_ns)
{
    int error = 0;
    do {
        size_t most = COHI_SEAL_PLAIN_BYTES - head_bytes, now = bytes < most ? bytes : most;
        struct iovec parts[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = head_bytes},
                                 {.iov_base = (void *)(uintptr_t)payload, .iov_len = now}};
        error = send_record(link, parts, now > 0 ? 2 : 1, deadline_ns);
        payload = now > 0 ? payload + now : payload;
        bytes -= now;
        head_bytes = 0;
    } while (bytes > 0 && !error);
    return error;
}

static int receive_record(const cohi_connection *link, uint64_t deadline_ns)
{
    cohi_link_far *far = link->far;
    cohi_seal_kind kind;
    int error =
        cohi_os_receive(link->fd, far->record, COHI_SEAL_HEAD_BYTES, NULL, 0, NULL, deadline_ns);
    if (error)
        return error;
    size_t bytes = cohi_seal_announced(far->record, &kind);
    if (bytes <= COHI_SEAL_EXTRA_BYTES || kind != COHI_SEAL_DATA)
        return EBADMSG;
    error = cohi_os_receive(link->fd, far->record + COHI_SEAL_HEAD_BYTES,
                            bytes - COHI_SEAL_HEAD_BYTES, NULL, 0, NULL, deadline_ns);
    if (error)
        return error;
    far->from = COHI_SEAL_HEAD_BYTES;
    far->to = bytes - COHI_SEAL_TAG_BYTES;
    return cohi_seal_open(far->seals.in, far->record, bytes, far->record + far->from) ? 0 : EBADMSG;
}

static int receive_far(const cohi_connection *link, void *data, size_t bytes, uint64_t deadline_ns)
{
    cohi_link_far *far = link->far;
    char *at = data;
    while (bytes > 0) {
        int error = far->from == far->to ? receive_record(link, deadline_ns) : 0;
        if (error)
            return error;
        size_t here = far->to - far->from, now = bytes < here ? bytes : here;
        memcpy(at, far->record + far->from, now);
        far->from += now;
        at += now;
        bytes -= now;
    }
    return 0;
}

/* ---- frames ---- */

int cohi_link_send_hello(const cohi_connection *link, const cohi_hello *hello, uint64_t deadline_ns)
{
    return link->far ? send_far(link, hello, sizeof *hello, NULL, 0, deadline_ns)
                     : cohi_os_send(link->fd, hello, sizeof *hello, NULL, 0, deadline_ns);
}

int cohi_link_send(const cohi_connection *link, const cohi_frame *frame, const void *payload,
                   const int *fds, int fd_count, uint64_t deadline_ns)
{
    unsigned char small[sizeof *frame + SMALL_BYTES];
    bool is_small = frame->bytes <= SMALL_BYTES;
    if (link->far)
        return send_far(link, frame, sizeof *frame, payload, frame->bytes, deadline_ns);
    memcpy(small, frame, sizeof *frame);
    if (is_small && frame->bytes > 0)
        memcpy(small + sizeof *frame, payload, frame->bytes);
    int error = cohi_os_send(link->fd, small, sizeof *frame + (is_small ? frame->bytes : 0), fds,
                             fd_count, deadline_ns);
    if (!error && !is_small)
        error = cohi_os_send(link->fd, payload, frame->bytes, NULL, 0, deadline_ns);
    return error;
}

int cohi_link_send_text(const cohi_connection *link, cohi_frame frame, const char *text,
                        uint64_t deadline_ns)
{
    size_t length = strlen(text);
    frame.bytes = (uint32_t)(length < COHI_LINK_TEXT_BYTES ? length : COHI_LINK_TEXT_BYTES);
    return cohi_link_send(link, &frame, text, NULL, 0, deadline_ns);
}

/* One byte more, for the zero behind a text. */
static int make_room(cohi_incoming *incoming)
{
    size_t need = (size_t)incoming->frame.bytes + 1;
    if (incoming->room < need) {
        unsigned char *longer = realloc(incoming->payload, need);
        if (!longer)
            return ENOMEM;
        incoming->payload = longer;
        incoming->room = need;
    }
    incoming->payload[incoming->frame.bytes] = '\0';
    return 0;
}

static int receive_bytes(const cohi_connection *link, void *data, size_t bytes,
                         uint64_t deadline_ns)
{
    return link->far ? receive_far(link, data, bytes, deadline_ns)
                     : cohi_os_receive(link->fd, data, bytes, NULL, 0, NULL, deadline_ns);
}

static int receive_payload(const cohi_connection *link, size_t limit, cohi_incoming *incoming,
                           uint64_t deadline_ns)
{
    const cohi_frame *frame = &incoming->frame;
    if (frame->magic != LINK_MAGIC || frame->kind < COHI_LINK_HELLO
        || frame->kind >= COHI_LINK_KINDS || frame->bytes > limit)
        return EPROTO;
    int error = make_room(incoming);
    if (!error && frame->bytes > 0)
        error = receive_bytes(link, incoming->payload, frame->bytes, deadline_ns);
    bool over = link->far && link->far->from < link->far->to;
    return error ? error : over ? EPROTO : 0;
}

int cohi_link_receive(const cohi_connection *link, size_t limit, cohi_incoming *incoming, int *fds,
                      int fd_room, int *fd_count, uint64_t deadline_ns)
{
    *fd_count = 0;
    int error = link->far ? receive_far(link, &incoming->frame, sizeof incoming->frame, deadline_ns)
                          : cohi_os_receive(link->fd, &incoming->frame, sizeof incoming->frame, fds,
                                            fd_room, fd_count, deadline_ns);
    if (error)
        return error;
    error = receive_payload(link, limit, incoming, deadline_ns);
    while (error && *fd_count > 0)
        cohi_os_close(fds[--*fd_count]);
    return error;
}
