/* Sealed records that were made by the other side and then edited on the way, and bytes that never
 * were records: what opens is what was sealed, in its order, and nothing else: docs/faults.md F36. */
#include "base/clock.h"
#include "bootstrap/card.h"
#include "bootstrap/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 8, ROOM = 8192 };

static const cohi_seal_limits limits = {.records = 3, .bytes = 400};

static cohi_seal *make(cohi_seal_use use)
{
    static const unsigned char secret[COHI_SEAL_SECRET_BYTES] = {4, 2};
    cohi_seal *seal = cohi_seal_new(secret, use, &limits);
    if (!seal)
        abort();
    return seal;
}

/* A stream of records, and what is in them. */
struct stream {
    unsigned char plain[ROOM], sealed[ROOM];
    size_t plain_bytes, sealed_bytes;
};

/* Each byte of the input is a length, and so many bytes follow it. */
static size_t seal_some(const uint8_t *data, size_t size, struct stream *stream)
{
    cohi_seal *seal = make(COHI_SEAL_SEALS);
    size_t used = 0;
    for (int i = 0; i < RECORDS && used < size; i++) {
        size_t bytes = data[used++];
        bytes = bytes < size - used ? bytes : size - used;
        struct iovec part = {.iov_base = (void *)(uintptr_t)(data + used), .iov_len = bytes};
        memcpy(stream->plain + stream->plain_bytes, data + used, bytes);
        stream->plain_bytes += bytes;
        stream->sealed_bytes +=
            cohi_seal_close(seal, COHI_SEAL_DATA, &part, 1, stream->sealed + stream->sealed_bytes);
        used += bytes;
    }
    cohi_seal_end(seal);
    return used;
}

/* Three bytes are an edit: a bit that is another, or a byte that is gone. */
static void edit(const uint8_t *data, size_t size, struct stream *stream)
{
    for (; size >= 3 && stream->sealed_bytes > 0; data += 3, size -= 3) {
        size_t at = ((size_t)data[0] << 8 | data[1]) % stream->sealed_bytes;
        if (data[2] & 1) {
            stream->sealed[at] ^= (unsigned char)(1 << (data[2] >> 1 & 7));
        } else {
            stream->sealed_bytes--;
            memmove(stream->sealed + at, stream->sealed + at + 1, stream->sealed_bytes - at);
        }
    }
}

static void open_all(const struct stream *stream)
{
    static unsigned char plain[COHI_SEAL_RECORD_BYTES];
    cohi_seal *seal = make(COHI_SEAL_OPENS);
    size_t at = 0, seen = 0;
    while (stream->sealed_bytes - at >= COHI_SEAL_HEAD_BYTES) {
        cohi_seal_kind kind;
        size_t bytes = cohi_seal_announced(stream->sealed + at, &kind);
        if (bytes == 0 || bytes > stream->sealed_bytes - at
            || !cohi_seal_open(seal, stream->sealed + at, bytes, plain))
            break;
        size_t inside = bytes - COHI_SEAL_EXTRA_BYTES;
        if (seen + inside > stream->plain_bytes || memcmp(plain, stream->plain + seen, inside) != 0)
            abort();
        seen += inside;
        at += bytes;
    }
    cohi_seal_end(seal);
}

/* The same bytes on a link by which ranks find each other. */
static void receive(const unsigned char *bytes, size_t count)
{
    int ends[2], fds[COHI_CARD_FDS], fd_count;
    cohi_incoming incoming = {.payload = NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0
        || write(ends[0], bytes, count) < 0)
        abort();
    close(ends[0]);
    cohi_link_far *far = calloc(1, sizeof *far);
    if (!far)
        abort();
    far->seals.in = make(COHI_SEAL_OPENS);
    cohi_connection link = {.fd = ends[1], .far = far};
    while (cohi_link_receive(&link, COHI_LINK_TEXT_BYTES, &incoming, fds, COHI_CARD_FDS, &fd_count,
                             cohi_now_ns() + COHI_NS_PER_S)
           == 0)
        if (fd_count != 0)
            abort();
    cohi_link_close(&link);
    free(incoming.payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stream stream;
    if (cohi_tls_available() != COH_OK)
        abort();
    if (size > ROOM / 2)
        return 0;
    stream.plain_bytes = stream.sealed_bytes = 0;
    receive(data, size);
    size_t used = seal_some(data, size, &stream);
    receive(stream.sealed, stream.sealed_bytes);
    edit(data + used, size - used, &stream);
    open_all(&stream);
    receive(stream.sealed, stream.sealed_bytes);
    return 0;
}
