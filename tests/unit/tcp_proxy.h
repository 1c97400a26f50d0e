/* tcp_proxy.h - a proxy between two ranks that passes bytes on late and in pieces, by a seed, resets,
 * cuts, corrupts or repeats them at a place, or falls silent; and a program for both ranks that
 * compares all that it did with a model. */
#ifndef TESTS_TCP_PROXY_H
#define TESTS_TCP_PROXY_H

#include "tcp_rig.h"

#include <netinet/tcp.h>

enum { PIPES_MAX = 64, RANKS = 2 };

/* One direction of a connection. */
struct pipe {
    int from, to;
    pthread_t thread;
    struct proxy *proxy;
    uint64_t dice;
};

/* What a proxy does to the bytes at `reset_at`. */
enum trouble {
    RESET = 0,
    CUT,     /* the connection is closed in order, in the middle of whatever it was in */
    CORRUPT, /* one bit is another */
    REPLAY   /* a piece comes twice */
};

struct proxy {
    int listener;
    cohi_tcp_place target;
    pthread_t thread;
    uint64_t seed;
    int piece;                /* most bytes of one; 0: all there are */
    int delay_us;             /* most before each */
    _Atomic int64_t reset_at; /* of all bytes; -1: never */
    enum trouble trouble;     /* what happens there: a reset by itself */
    bool once;                /* and not to the connections after it */
    atomic_llong moved;       /* in both directions */
    atomic_int silent;        /* nothing is passed on */
    atomic_int stopping;
    struct pipe pipes[PIPES_MAX];
    atomic_int pipe_count;
    /* Where it is set, what comes is cut into records, and this is called with each that is sealed,
     * of those of one pipe the number-th from 0; what it returns is whether the pipe goes on. */
    bool (*on_record)(struct pipe *pipe, unsigned char *record, size_t bytes, unsigned number);
    void *context; /* of that */
};

static inline unsigned roll(uint64_t *dice, unsigned bound)
{
    *dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound ? (unsigned)(*dice >> 33) % bound : 0;
}

static inline void reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    shutdown(fd, SHUT_RDWR);
}

/* Whether the connection goes on. */
static inline bool make_trouble(struct pipe *pipe, char *bytes, ssize_t count)
{
    struct proxy *proxy = pipe->proxy;
    enum trouble trouble = proxy->trouble;
    if (proxy->once)
        proxy->reset_at = -1;
    if (trouble == CORRUPT)
        bytes[roll(&pipe->dice, (unsigned)count)] ^= (char)(1 << roll(&pipe->dice, 8));
    if (trouble == REPLAY)
        return send(pipe->to, bytes, (size_t)count, MSG_NOSIGNAL) == count;
    if (trouble == RESET) {
        reset(pipe->from);
        reset(pipe->to);
    }
    return trouble == CORRUPT;
}

static inline bool pass_piece(struct pipe *pipe, char *bytes, ssize_t piece)
{
    struct proxy *proxy = pipe->proxy;
    int64_t moved = atomic_fetch_add(&proxy->moved, piece) + piece;
    if (proxy->delay_us)
        usleep(roll(&pipe->dice, (unsigned)proxy->delay_us));
    while (atomic_load(&proxy->silent) && !atomic_load(&proxy->stopping))
        usleep(1000);
    if (proxy->reset_at >= 0 && moved >= proxy->reset_at && !make_trouble(pipe, bytes, piece))
        return false;
    return !atomic_load(&proxy->stopping)
           && send(pipe->to, bytes, (size_t)piece, MSG_NOSIGNAL) == piece;
}

static inline bool pass(struct pipe *pipe, char *bytes, ssize_t count)
{
    struct proxy *proxy = pipe->proxy;
    while (count > 0) {
        unsigned most = proxy->piece ? 1 + roll(&pipe->dice, (unsigned)proxy->piece) : 65536;
        ssize_t piece = count < (ssize_t)most ? count : (ssize_t)most;
        if (!pass_piece(pipe, bytes, piece))
            return false;
        bytes += piece;
        count -= piece;
    }
    return true;
}

static inline bool receive_all(int fd, unsigned char *bytes, size_t count)
{
    for (size_t got = 0; got < count;) {
        ssize_t more = recv(fd, bytes + got, count - got, 0);
        if (more <= 0)
            return false;
        got += (size_t)more;
    }
    return true;
}

/* The handshake passes as it is: TLS has records of its own, of kinds from 20 on. */
static inline bool pass_record(struct pipe *pipe, unsigned char *bytes, unsigned *number)
{
    enum { TLS_HEAD = 5, TLS_FIRST = 20 };
    size_t head = COHI_SEAL_HEAD_BYTES, all;
    cohi_seal_kind kind;
    if (!receive_all(pipe->from, bytes, head))
        return false;
    bool handshake = bytes[0] >= TLS_FIRST;
    if (handshake && !receive_all(pipe->from, bytes + head, 1))
        return false;
    head += handshake;
    all = handshake ? TLS_HEAD + (size_t)(bytes[3] << 8 | bytes[4])
                    : cohi_seal_announced(bytes, &kind);
    if (all < head || !receive_all(pipe->from, bytes + head, all - head))
        return false;
    return handshake ? send(pipe->to, bytes, all, MSG_NOSIGNAL) == (ssize_t)all
                     : pipe->proxy->on_record(pipe, bytes, all, (*number)++);
}

static inline void *run_records(struct pipe *pipe)
{
    unsigned char *bytes = malloc(COHI_SEAL_RECORD_BYTES);
    unsigned number = 0;
    while (pass_record(pipe, bytes, &number))
        continue;
    shutdown(pipe->to, SHUT_WR);
    free(bytes);
    return NULL;
}

static inline void *run_pipe(void *arg)
{
    struct pipe *pipe = arg;
    if (pipe->proxy->on_record)
        return run_records(pipe);
    static _Thread_local char bytes[65536];
    ssize_t got;
    do
        got = recv(pipe->from, bytes, sizeof bytes, 0);
    while (got > 0 && pass(pipe, bytes, got));
    shutdown(pipe->to, SHUT_WR);
    if (got > 0) /* cut: both ways */
        shutdown(pipe->from, SHUT_RDWR);
    return NULL;
}

static inline void add_pipe(struct proxy *proxy, int from, int to)
{
    assert_true(proxy->pipe_count < PIPES_MAX);
    struct pipe *pipe = &proxy->pipes[proxy->pipe_count];
    int on = 1;
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *pipe = (struct pipe){
        .from = from, .to = to, .proxy = proxy, .dice = proxy->seed + (uint64_t)proxy->pipe_count};
    pthread_create(&pipe->thread, NULL, run_pipe, pipe);
    proxy->pipe_count++;
}

static inline void *run_proxy(void *arg)
{
    struct proxy *proxy = arg;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = proxy->target.port};
    memcpy(&to.sin_addr, proxy->target.host, sizeof to.sin_addr);
    for (int near; (near = accept(proxy->listener, NULL, NULL)) >= 0;) {
        int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(far, (struct sockaddr *)&to, sizeof to) != 0) {
            close(far);
            close(near);
            continue;
        }
        add_pipe(proxy, near, far);
        add_pipe(proxy, far, near);
    }
    return NULL;
}

/* The rank is from now on reached by the proxy. */
static inline void put_before(struct proxy *proxy, struct rig *rig, int rank)
{
    cohi_tcp_address address;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof here;
    memcpy(&address, rig->addresses[rank], sizeof address);
    proxy->target = address.places[0];
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(proxy->listener, 16), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&here, &length), 0);
    address.count = 1; /* the loopback's is the first */
    address.places[0].port = here.sin_port;
    memcpy(rig->addresses[rank], &address, sizeof address);
    pthread_create(&proxy->thread, NULL, run_proxy, proxy);
}

static inline void end_proxy(struct proxy *proxy)
{
    atomic_store(&proxy->stopping, 1);
    shutdown(proxy->listener, SHUT_RDWR);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    for (int i = 0; i < proxy->pipe_count; i++) {
        shutdown(proxy->pipes[i].from, SHUT_RDWR);
        pthread_join(proxy->pipes[i].thread, NULL);
    }
    for (int i = 0; i < proxy->pipe_count; i++)
        close(proxy->pipes[i].from);
}

struct route {
    struct rig *rig;
    struct proxy proxies[RANKS];
};

static inline struct route *open_route(const struct proxy *like, uint64_t link_timeout_ns)
{
    struct route *route = calloc(1, sizeof *route);
    route->rig = rig_make(RANKS, 0, link_timeout_ns);
    for (int rank = 0; rank < RANKS; rank++) {
        struct proxy *proxy = &route->proxies[rank];
        proxy->seed = like->seed * 977 + (uint64_t)rank;
        proxy->piece = like->piece;
        proxy->delay_us = like->delay_us;
        proxy->reset_at = like->reset_at;
        proxy->trouble = like->trouble;
        proxy->once = like->once;
        proxy->on_record = like->on_record;
        proxy->context = like->context;
        put_before(proxy, route->rig, rank);
    }
    rig_connect(route->rig);
    return route;
}

static inline void close_route(struct route *route)
{
    rig_close(route->rig);
    for (int rank = 0; rank < RANKS; rank++)
        end_proxy(&route->proxies[rank]);
    free(route);
}

/* ---- late and in pieces ---- */

struct program {
    struct rig *rig;
    int rank;
    uint64_t dice;
    pthread_t thread;
    pthread_barrier_t *end;
};

/* Puts to its half of the other's memory, gets back, adds, and sends; then all is compared. */
static inline void *run_program(void *arg)
{
    enum { STEPS = 60, ROOM = 30000 };
    struct program *program = arg;
    struct rig *rig = program->rig;
    int rank = program->rank, to = 1 - rank;
    unsigned char *model = calloc(1, ROOM), *back = malloc(ROOM);
    uint64_t one = 1, added = 0, old;
    for (int step = 0; step < STEPS; step++) {
        size_t bytes = 1 + roll(&program->dice, step % 3 ? 200 : 8000);
        size_t at = roll(&program->dice, (unsigned)(ROOM - bytes));
        cohi_op op = COHI_NEW_OP;
        rig_fill(model + at, bytes, (unsigned)step);
        assert_int_equal(rig_put(rig, rank, to, 1024 + at, model + at, bytes, &op), COH_OK);
        assert_int_equal(rig_wait(&op), COH_OK);
        assert_int_equal(cohi_engine_tcp.atomic->post(
                             rig->endpoint[rank], (cohi_remote){0, to, RIG_SEGMENT, 0},
                             &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U64, &one, NULL}),
                         COH_OK);
        added++;
        assert_int_equal(cohi_engine_tcp.channel->send(rig->endpoint[rank], to, &added,
                                                       sizeof added, NULL, 0, NULL),
                         COH_OK);
        if (step % 5 == 0) {
            op = (cohi_op)COHI_NEW_OP;
            assert_int_equal(rig_get(rig, rank, to, 1024, back, ROOM, &op), COH_OK);
            assert_int_equal(rig_wait(&op), COH_OK);
            assert_memory_equal(back, model, ROOM);
        }
    }
    assert_int_equal(rig_quiet(rig, rank), COH_OK);
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(cohi_engine_tcp.atomic->fetch(
                         rig->endpoint[rank], (cohi_remote){0, to, RIG_SEGMENT, 0},
                         &(cohi_remote_atomic){COH_ATOMIC_FETCH, COH_U64, NULL, NULL}, &old, &op),
                     COH_OK);
    assert_int_equal(rig_wait(&op), COH_OK);
    assert_int_equal(old, added);
    assert_true(rig_until(&rig->world[rank].messages, STEPS));
    pthread_barrier_wait(program->end);
    assert_int_equal(rig_leave(rig, rank), COH_OK);
    free(model);
    free(back);
    return NULL;
}

static inline void run_both(const struct proxy *like)
{
    struct route *route = open_route(like, 10 * COHI_NS_PER_S);
    struct program programs[RANKS];
    pthread_barrier_t end;
    pthread_barrier_init(&end, NULL, RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        programs[rank] = (struct program){
            .rig = route->rig, .rank = rank, .dice = like->seed + (uint64_t)rank, .end = &end};
        pthread_create(&programs[rank].thread, NULL, run_program, &programs[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(programs[rank].thread, NULL);
    for (int rank = 0; rank < RANKS; rank++)
        assert_int_equal(atomic_load(&route->rig->world[rank].lost[1 - rank]), 0);
    close_route(route);
    pthread_barrier_destroy(&end);
}

#endif
