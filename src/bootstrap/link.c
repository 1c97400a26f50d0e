#include "bootstrap/link.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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

int cohi_link_send(int link, const cohi_frame *frame, const void *payload, const int *fds,
                   int fd_count, uint64_t deadline_ns)
{
    unsigned char small[sizeof *frame + SMALL_BYTES];
    bool is_small = frame->bytes <= SMALL_BYTES;
    memcpy(small, frame, sizeof *frame);
    if (is_small && frame->bytes > 0)
        memcpy(small + sizeof *frame, payload, frame->bytes);
    int error = cohi_os_send(link, small, sizeof *frame + (is_small ? frame->bytes : 0), fds,
                             fd_count, deadline_ns);
    if (!error && !is_small)
        error = cohi_os_send(link, payload, frame->bytes, NULL, 0, deadline_ns);
    return error;
}

int cohi_link_send_text(int link, cohi_frame frame, const char *text, uint64_t deadline_ns)
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

static int receive_payload(int link, size_t limit, cohi_incoming *incoming, uint64_t deadline_ns)
{
    const cohi_frame *frame = &incoming->frame;
    if (frame->magic != LINK_MAGIC || frame->kind < COHI_LINK_HELLO
        || frame->kind >= COHI_LINK_KINDS || frame->bytes > limit)
        return EPROTO;
    int error = make_room(incoming);
    if (!error && frame->bytes > 0)
        error = cohi_os_receive(link, incoming->payload, frame->bytes, NULL, 0, NULL, deadline_ns);
    return error;
}

int cohi_link_receive(int link, size_t limit, cohi_incoming *incoming, int *fds, int fd_room,
                      int *fd_count, uint64_t deadline_ns)
{
    *fd_count = 0;
    int error = cohi_os_receive(link, &incoming->frame, sizeof incoming->frame, fds, fd_room,
                                fd_count, deadline_ns);
    if (error)
        return error;
    error = receive_payload(link, limit, incoming, deadline_ns);
    while (error && *fd_count > 0)
        cohi_os_close(fds[--*fd_count]);
    return error;
}
