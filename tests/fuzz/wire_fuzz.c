/* What comes on a link of engine tcp from a member that is faulty or hostile, and the hello of a
 * stranger: docs/faults.md F15, F19 and F23. */
#include "engine/tcp/tcp.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 2, PEER = 1, SEGMENT_BYTES = 1000, ASKED = 100 };

static void on_lost(void *world, int rank, cohi_loss loss, int detail)
{
    (void)world;
    (void)loss;
    (void)detail;
    if (rank != PEER)
        abort();
}

static void on_left(void *world, int rank)
{
    (void)world;
    if (rank != PEER)
        abort();
}

static void on_silent(void *world, int rank, uint64_t silent_ns)
{
    (void)world;
    (void)rank;
    (void)silent_ns;
}

static void on_mute(void *world, int rank)
{
    (void)world;
    (void)rank;
}

static void on_arrived(void *world)
{
    (void)world;
}

/* All bytes can be read. */
static void on_message(void *world, int from, const void *bytes, size_t count)
{
    unsigned char sum = 0;
    for (size_t i = 0; i < count; i++)
        sum ^= ((const unsigned char *)bytes)[i];
    *(unsigned char *)world = sum;
    if (from != PEER || count > COHI_TCP_MESSAGE_BYTES)
        abort();
}

static const cohi_upcalls upcalls = {.lost = on_lost,
                                     .left = on_left,
                                     .silent = on_silent,
                                     .mute = on_mute,
                                     .attend = on_arrived,
                                     .arrived = on_arrived,
                                     .stored = on_arrived,
                                     .deliver = on_message};

/* A rank that has asked for something of the peer, on a link that is open. */
struct scene {
    unsigned char world;
    cohi_endpoint endpoint;
    cohi_tcp_address addresses[RANKS];
    int host_of[RANKS];
    atomic_uchar fates[RANKS];
    _Atomic(cohi_tcp_link *) links[RANKS];
    cohi_tcp_link *made[RANKS];
    uint32_t generations[RANKS];
    char target[ASKED];
    cohi_op get, fetch, quiet;
};

static void ask(struct scene *scene, cohi_tcp_link *link, cohi_tcp_verb verb, size_t bytes,
                cohi_op *op)
{
    cohi_tcp_request *request = cohi_tcp_request_new(link, verb);
    if (!request)
        abort();
    *op = (cohi_op)COHI_NEW_OP;
    request->target = scene->target;
    request->expected = request->frame.head.bytes = bytes;
    if (verb == COHI_TCP_FETCH)
        request->frame.head.bytes = 0;
    cohi_tcp_request_submit(link, request, op);
}

static cohi_tcp_link *set_up(struct scene *scene, int fd)
{
    cohi_endpoint *endpoint = &scene->endpoint;
    cohi_tcp_link *link;
    *endpoint = (cohi_endpoint){.size = RANKS,
                                .upcalls = &upcalls,
                                .world = &scene->world,
                                .tick_ns = 1000000,
                                .addresses = scene->addresses,
                                .host_of = scene->host_of,
                                .fates = scene->fates,
                                .links = scene->links,
                                .made = scene->made,
                                .epoll = -1,
                                .links_epoll = -1,
                                .wake = -1};
    scene->host_of[PEER] = 1;
    endpoint->segments.host_of = scene->host_of;
    pthread_mutex_init(&endpoint->segments_lock, NULL);
    pthread_mutex_init(&endpoint->links_lock, NULL);
    pthread_mutex_init(&endpoint->ops_lock, NULL);
    endpoint->segments.rows[0] = (cohi_segment){.base = aligned_alloc(8, SEGMENT_BYTES),
                                                .bytes = SEGMENT_BYTES,
                                                .generation = 1,
                                                .existing = true,
                                                .peers = scene->generations};
    memset(endpoint->segments.rows[0].base, 0, SEGMENT_BYTES);
    if (cohi_tcp_link_to(endpoint, PEER, &link) != COH_OK)
        abort();
    link->fd = fd;
    link->state = COHI_TCP_OPEN;
    ask(scene, link, COHI_TCP_GET, ASKED, &scene->get);
    ask(scene, link, COHI_TCP_FETCH, 8, &scene->fetch);
    ask(scene, link, COHI_TCP_QUIET, 0, &scene->quiet);
    return link;
}

/* The other side of a sealed link. */
static cohi_seals seal_link(cohi_tcp_link *link)
{
    static const unsigned char secrets[2][COHI_SEAL_SECRET_BYTES] = {{1}, {2}};
    const cohi_seal_limits limits = {.records = 5, .bytes = 1 << 20};
    cohi_tcp_stream *stream = &link->stream;
    cohi_seals other = {.out = cohi_seal_new(secrets[0], COHI_SEAL_SEALS, &limits)};
    stream->seals = (cohi_seals){.out = cohi_seal_new(secrets[1], COHI_SEAL_SEALS, &limits),
                                 .in = cohi_seal_new(secrets[0], COHI_SEAL_OPENS, &limits)};
    if (!other.out || !stream->seals.out || !stream->seals.in
        || !cohi_tcp_stream_make(stream, true))
        abort();
    return other;
}

/* A member that seals well what it should not send, in records as long as the input's first byte says. */
static size_t seal_piece(cohi_seal *seal, const uint8_t *data, size_t size, size_t most,
                         unsigned char *record, size_t *taken)
{
    size_t bytes = size < most ? size : most;
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    *taken = bytes;
    return cohi_seal_close(seal, most % 7 == 6 ? COHI_SEAL_GOODBYE : COHI_SEAL_DATA, &part, 1,
                           record);
}

static void feed_sealed(cohi_tcp_link *link, int fd, cohi_seal *seal, const uint8_t *data,
                        size_t size)
{
    static unsigned char record[COHI_SEAL_RECORD_BYTES];
    char answers[4096];
    size_t most = size > 0 ? (size_t)data[0] + 1 : 1, taken;
    for (; size > 0 && link->state == COHI_TCP_OPEN; data += taken, size -= taken) {
        size_t bytes = seal_piece(seal, data, size, most, record, &taken);
        if (send(fd, record, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)bytes)
            break;
        cohi_tcp_receive(link, false);
        while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0)
            ;
    }
}

static void feed(cohi_tcp_link *link, int fd, const uint8_t *data, size_t size)
{
    char answers[4096];
    while (size > 0 && link->state == COHI_TCP_OPEN) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0)
            break;
        data += sent;
        size -= (size_t)sent;
        cohi_tcp_receive(link, size % 2 == 0);
        while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0)
            ;
        pthread_mutex_lock(&link->lock);
        cohi_tcp_flush(link, NULL);
        pthread_mutex_unlock(&link->lock);
    }
}

/* Whatever came, all ends with the link. */
static void tear_down(struct scene *scene, cohi_tcp_link *link, int fd)
{
    close(fd);
    while (link->state == COHI_TCP_OPEN)
        cohi_tcp_receive(link, false);
    if (!atomic_load(&scene->get.done) || !atomic_load(&scene->fetch.done)
        || !atomic_load(&scene->quiet.done))
        abort();
    cohi_tcp_link_free(link);
    free(scene->endpoint.segments.rows[0].base);
}

/* The same once more, in records; what is left is no record. */
static void play_sealed(struct scene *scene, const uint8_t *data, size_t size)
{
    int ends[2];
    if (cohi_tls_available() != COH_OK
        || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        abort();
    memset((void *)scene, 0, sizeof *scene);
    cohi_tcp_link *link = set_up(scene, ends[0]);
    cohi_seals other = seal_link(link);
    feed_sealed(link, ends[1], other.out, data, size);
    feed(link, ends[1], data, size);
    tear_down(scene, link, ends[1]);
    cohi_seals_end(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct scene scene;
    int ends[2];
    cohi_tcp_hello hello = {.version = 0};
    cohi_tcp_welcome welcome = {.reply = 0};
    memcpy(&hello, data, size < sizeof hello ? size : sizeof hello);
    memcpy(&welcome, data, size < sizeof welcome ? size : sizeof welcome);
    (void)cohi_tcp_check_hello(&hello, 0, RANKS);
    (void)cohi_tcp_check_welcome(&welcome, 0);
    memset((void *)&scene, 0, sizeof scene);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        abort();
    cohi_tcp_link *link = set_up(&scene, ends[0]);
    feed(link, ends[1], data, size);
    tear_down(&scene, link, ends[1]);
    play_sealed(&scene, data, size);
    return 0;
}
