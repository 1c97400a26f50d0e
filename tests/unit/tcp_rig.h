/* tcp_rig.h - a few endpoints of engine tcp in one process, each a host of its own, over a core that
 * only notes what it is told; and a raw peer, which plays a rank by hand. */
#ifndef TESTS_TCP_RIG_H
#define TESTS_TCP_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/unique_id.h"
#include "engine/engine.h"
#include "engine/tcp/wire.h"
#include "engine/tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RIG_RANKS_MAX = 8, RIG_BYTES = 8 << 20, RIG_SEGMENT = 0, RIG_MESSAGES_MAX = 64 };

extern const cohi_engine cohi_engine_tcp;

/* What the fake core of one rank has been told. */
struct rig_world {
    atomic_int lost[RIG_RANKS_MAX]; /* cohi_loss */
    atomic_int left[RIG_RANKS_MAX];
    atomic_int silent[RIG_RANKS_MAX];
    atomic_int mute[RIG_RANKS_MAX];
    atomic_int messages;
    size_t counts[RIG_MESSAGES_MAX];
    unsigned char firsts[RIG_MESSAGES_MAX]; /* bytes */
    unsigned sums[RIG_MESSAGES_MAX];
};

struct rig {
    int size;
    coh_unique_id id;
    bool clear;                             /* no handshakes */
    cohi_endpoint *endpoint[RIG_RANKS_MAX]; /* NULL: played by hand, or closed */
    unsigned char addresses[RIG_RANKS_MAX][COHI_ADDRESS_BYTES];
    char *memory[RIG_RANKS_MAX];
    struct rig_world world[RIG_RANKS_MAX];
};

static inline void rig_lost(void *world, int rank, cohi_loss loss, int detail)
{
    (void)detail;
    atomic_store(&((struct rig_world *)world)->lost[rank], (int)loss);
}

static inline void rig_left(void *world, int rank)
{
    atomic_fetch_add(&((struct rig_world *)world)->left[rank], 1);
}

static inline void rig_silent(void *world, int rank, uint64_t silent_ns)
{
    (void)silent_ns;
    atomic_fetch_add(&((struct rig_world *)world)->silent[rank], 1);
}

static inline void rig_mute(void *world, int rank)
{
    atomic_fetch_add(&((struct rig_world *)world)->mute[rank], 1);
}

static inline void rig_nothing(void *world)
{
    (void)world;
}

static inline void rig_deliver(void *world, int from, const void *bytes, size_t count)
{
    struct rig_world *told = world;
    int index = atomic_load(&told->messages) % RIG_MESSAGES_MAX;
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++)
        sum = sum * 31 + ((const unsigned char *)bytes)[i];
    (void)from;
    told->counts[index] = count;
    told->sums[index] = sum;
    told->firsts[index] = count ? *(const unsigned char *)bytes : 0;
    atomic_fetch_add(&told->messages, 1);
}

static const cohi_upcalls rig_upcalls = {.lost = rig_lost,
                                         .left = rig_left,
                                         .silent = rig_silent,
                                         .mute = rig_mute,
                                         .attend = rig_nothing,
                                         .arrived = rig_nothing,
                                         .stored = rig_nothing,
                                         .deliver = rig_deliver};

static inline void rig_attach(struct rig *rig, int rank)
{
    cohi_region_key key = {.fd = -1};
    uint32_t generation = 1;
    memcpy(key.bytes, &generation, sizeof generation);
    for (int of = 0; of < rig->size; of++)
        assert_int_equal(cohi_engine_tcp.memory->region_attach(rig->endpoint[rank], RIG_SEGMENT, of,
                                                               RIG_BYTES, &key),
                         COH_OK);
}

/* Ranks of `by_hand` (a bit each) have no endpoint; their addresses are known to the others, with
 * keys that repeat their number and a port of nobody. Links are sealed as `net` says. */
static inline struct rig *rig_make_net(cohi_net net, bool clear, int size, unsigned by_hand,
                                       uint64_t link_timeout_ns)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_int_equal(coh_unique_id_create(&rig->id), COH_OK);
    rig->clear = clear;
    cohi_config config = {.link_timeout = link_timeout_ns, .host = "played", .net = net};
    rig->size = size;
    for (int rank = 0; rank < size; rank++) {
        cohi_engine_args args = {.rank = rank,
                                 .need = {.size = size},
                                 .config = &config,
                                 .upcalls = &rig_upcalls,
                                 .world = &rig->world[rank],
                                 .id = clear ? NULL : &rig->id};
        cohi_tcp_address address = {
            .network = cohi_os_network_id(),
            .secures = !clear && cohi_tls_available() == COH_OK,
            .clear = net == COHI_NET_CLEAR,
            .count = 1,
            .places = {{.family = 4, .prefix = 8, .port = htons(1), .host = {127, 0, 0, 1}}}};
        memset(address.first_key, rank, sizeof address.first_key);
        memset(address.second_key, rank, sizeof address.second_key);
        memcpy(rig->addresses[rank], &address, sizeof address);
        if (by_hand >> rank & 1)
            continue;
        assert_int_equal(cohi_engine_tcp.lifecycle->open(&args, &rig->endpoint[rank]), COH_OK);
        assert_int_equal(
            cohi_engine_tcp.lifecycle->address(rig->endpoint[rank], rig->addresses[rank]), COH_OK);
    }
    return rig;
}

/* Frames that are played by hand are not sealed; ranks among themselves seal. */
static inline struct rig *rig_make_as(bool clear, int size, unsigned by_hand,
                                      uint64_t link_timeout_ns)
{
    return rig_make_net(by_hand ? COHI_NET_CLEAR : COHI_NET_SEAL, clear, size, by_hand,
                        link_timeout_ns);
}

static inline struct rig *rig_make(int size, unsigned by_hand, uint64_t link_timeout_ns)
{
    return rig_make_as(false, size, by_hand, link_timeout_ns);
}

static inline void rig_connect(struct rig *rig)
{
    static const int hosts[RIG_RANKS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int rank = 0; rank < rig->size; rank++) {
        void *base;
        if (!rig->endpoint[rank])
            continue;
        rig->memory[rank] = calloc(1, RIG_BYTES);
        cohi_segment_spec spec = {
            .id = RIG_SEGMENT, .bytes = RIG_BYTES, .existing = rig->memory[rank]};
        assert_int_equal(cohi_engine_tcp.lifecycle->connect(
                             rig->endpoint[rank],
                             (const unsigned char(*)[COHI_ADDRESS_BYTES])rig->addresses, hosts),
                         COH_OK);
        assert_int_equal(cohi_engine_tcp.memory->segment_add(rig->endpoint[rank], &spec, &base),
                         COH_OK);
        rig_attach(rig, rank);
    }
}

static inline struct rig *rig_open(int size, unsigned by_hand, uint64_t link_timeout_ns)
{
    struct rig *rig = rig_make(size, by_hand, link_timeout_ns);
    rig_connect(rig);
    return rig;
}

static inline void rig_close_rank(struct rig *rig, int rank)
{
    if (rig->endpoint[rank])
        cohi_engine_tcp.lifecycle->close(rig->endpoint[rank]);
    rig->endpoint[rank] = NULL;
}

static inline void rig_close(struct rig *rig)
{
    for (int rank = 0; rank < rig->size; rank++) {
        rig_close_rank(rig, rank);
        free(rig->memory[rank]);
    }
    free(rig);
}

static inline bool rig_until(const atomic_int *word, int value)
{
    for (int i = 0; i < 5000 && atomic_load((atomic_int *)(uintptr_t)word) < value; i++)
        usleep(1000);
    return atomic_load((atomic_int *)(uintptr_t)word) >= value;
}

static inline coh_status rig_wait(cohi_op *op)
{
    assert_true(rig_until(&op->done, 1));
    return op->status;
}

static inline coh_status rig_put(struct rig *rig, int rank, int to, uint64_t offset,
                                 const void *source, size_t bytes, cohi_op *op)
{
    return cohi_engine_tcp.rma->put(rig->endpoint[rank],
                                    (cohi_remote){COHI_CONTEXT_DEFAULT, to, RIG_SEGMENT, offset},
                                    source, bytes, op);
}

static inline coh_status rig_get(struct rig *rig, int rank, int from, uint64_t offset, void *target,
                                 size_t bytes, cohi_op *op)
{
    return cohi_engine_tcp.rma->get(rig->endpoint[rank],
                                    (cohi_remote){COHI_CONTEXT_DEFAULT, from, RIG_SEGMENT, offset},
                                    target, bytes, op);
}

static inline coh_status rig_quiet(struct rig *rig, int rank)
{
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(cohi_engine_tcp.rma->quiet(rig->endpoint[rank], COHI_CONTEXT_DEFAULT, &op),
                     COH_OK);
    return rig_wait(&op);
}

static inline coh_status rig_leave(struct rig *rig, int rank)
{
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(cohi_engine_tcp.lifecycle->leave(rig->endpoint[rank], &op), COH_OK);
    return rig_wait(&op);
}

static inline void rig_fill(void *memory, size_t bytes, unsigned salt)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)memory)[i] = (unsigned char)(i * 7 + (i >> 9) + salt + 1);
}

/* ---- a peer by hand ---- */

/* Connects to the rank's port; a read waits for at most five seconds. */
static inline int raw_connect(const struct rig *rig, int rank)
{
    cohi_tcp_address address;
    struct timeval patience = {.tv_sec = 5};
    memcpy(&address, rig->addresses[rank], sizeof address);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = address.places[0].port};
    memcpy(&to.sin_addr, address.places[0].host, sizeof to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

/* The handshake of a rank that is played by hand, where there are handshakes. */
static inline void raw_prove(const struct rig *rig, int fd, int from, int to)
{
    cohi_id_layout layout;
    int peer = -1;
    cohi_tls_self self = {.purpose = COHI_TLS_LINK, .rank = from, .size = rig->size};
    if (rig->clear || cohi_tls_available() != COH_OK)
        return;
    assert_int_equal(cohi_unique_id_read(&rig->id, &layout), COH_OK);
    memcpy(self.secret, layout.secret, sizeof self.secret);
    memcpy(self.job, layout.name, sizeof self.job);
    assert_int_equal(
        cohi_tls_handshake("test", &self, fd, to, cohi_now_ns() + 5 * COHI_NS_PER_S, &peer),
        COH_OK);
    assert_int_equal(peer, to);
}

static inline cohi_tcp_hello raw_hello(const struct rig *rig, int from, int to)
{
    cohi_tcp_address there, here;
    cohi_tcp_hello hello = {.version = COHI_TCP_VERSION,
                            .order_mark = COHI_TCP_ORDER_MARK,
                            .from = from,
                            .to = to,
                            .size = rig->size};
    memcpy(&there, rig->addresses[to], sizeof there);
    memcpy(&here, rig->addresses[from], sizeof here);
    memcpy(hello.magic, cohi_tcp_magic, sizeof hello.magic);
    if (rig->clear) {
        memcpy(hello.to_key, there.first_key, sizeof hello.to_key);
        memcpy(hello.from_key, here.second_key, sizeof hello.from_key);
    }
    return hello;
}

static inline void raw_send(int fd, const void *bytes, size_t count)
{
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
}

/* All that was asked for, or up to the end of the connection. */
static inline size_t raw_receive(int fd, void *bytes, size_t count)
{
    size_t got = 0;
    while (got < count) {
        ssize_t more = recv(fd, (char *)bytes + got, count - got, 0);
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    return got;
}

static inline void raw_frame(int fd, const cohi_tcp_frame *frame, const void *payload, size_t bytes)
{
    unsigned char head[sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST];
    raw_send(fd, head, cohi_tcp_encode(frame, head));
    if (bytes > 0)
        raw_send(fd, payload, bytes);
}

/* An open link from a rank that is played by hand. */
static inline int raw_open(const struct rig *rig, int from, int to)
{
    cohi_tcp_welcome welcome;
    cohi_tcp_hello hello = raw_hello(rig, from, to);
    int fd = raw_connect(rig, to);
    raw_prove(rig, fd, from, to);
    raw_send(fd, &hello, sizeof hello);
    assert_int_equal(raw_receive(fd, &welcome, sizeof welcome), sizeof welcome);
    assert_null(cohi_tcp_check_welcome(&welcome, to));
    assert_int_equal(welcome.reply, COHI_TCP_REPLY_OPEN);
    raw_frame(fd, &(cohi_tcp_frame){.head = {.verb = COHI_TCP_KEEPALIVE}}, NULL, 0); /* confirms */
    return fd;
}

/* The next frame that is no keepalive, and its payload; false at the end of the connection. */
static inline bool raw_take(int fd, cohi_tcp_frame *frame, void *payload, size_t room)
{
    unsigned char bytes[sizeof(cohi_tcp_head) + COHI_TCP_EXTENSION_MOST];
    do {
        size_t taken;
        if (raw_receive(fd, bytes, sizeof(cohi_tcp_head)) < sizeof(cohi_tcp_head))
            return false;
        size_t all = cohi_tcp_head_bytes(bytes[0]);
        assert_int_equal(
            raw_receive(fd, bytes + sizeof(cohi_tcp_head), all - sizeof(cohi_tcp_head)),
            all - sizeof(cohi_tcp_head));
        assert_null(cohi_tcp_decode(bytes, all, frame, &taken));
        uint64_t count = cohi_tcp_payload_bytes(&frame->head);
        assert_true(count <= room);
        assert_int_equal(raw_receive(fd, payload, (size_t)count), count);
    } while (frame->head.verb == COHI_TCP_KEEPALIVE);
    return true;
}

/* Whether the other side has closed it, within five seconds. */
static inline bool raw_is_closed(int fd)
{
    char bytes[256];
    ssize_t got;
    do
        got = recv(fd, bytes, sizeof bytes, 0);
    while (got > 0);
    return got == 0 || errno == ECONNRESET;
}

#endif
