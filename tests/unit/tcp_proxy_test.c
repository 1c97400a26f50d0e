/* Links of engine tcp through a proxy that passes bytes on late and in pieces, by a seed, resets a
 * connection in the middle, or falls silent: docs/faults.md F20, F21, F22 and F35. */
#include "tcp_rig.h"

#include <netinet/tcp.h>

enum { PIPES_MAX = 16, RANKS = 2 };

/* One direction of a connection. */
struct pipe {
    int from, to;
    pthread_t thread;
    struct proxy *proxy;
    uint64_t dice;
};

struct proxy {
    int listener;
    cohi_tcp_place target;
    pthread_t thread;
    uint64_t seed;
    int piece;          /* most bytes of one; 0: all there are */
    int delay_us;       /* most before each */
    int64_t reset_at;   /* of all bytes; -1: never */
    atomic_llong moved; /* in both directions */
    atomic_int silent;  /* nothing is passed on */
    atomic_int stopping;
    struct pipe pipes[PIPES_MAX];
    atomic_int pipe_count;
};

static unsigned roll(uint64_t *dice, unsigned bound)
{
    *dice = *dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return bound ? (unsigned)(*dice >> 33) % bound : 0;
}

static void reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    shutdown(fd, SHUT_RDWR);
}

static bool pass(struct pipe *pipe, const char *bytes, ssize_t count)
{
    struct proxy *proxy = pipe->proxy;
    while (count > 0) {
        unsigned most = proxy->piece ? 1 + roll(&pipe->dice, (unsigned)proxy->piece) : 65536;
        ssize_t piece = count < (ssize_t)most ? count : (ssize_t)most;
        if (proxy->delay_us)
            usleep(roll(&pipe->dice, (unsigned)proxy->delay_us));
        while (atomic_load(&proxy->silent) && !atomic_load(&proxy->stopping))
            usleep(1000);
        if (atomic_load(&proxy->stopping)
            || send(pipe->to, bytes, (size_t)piece, MSG_NOSIGNAL) != piece)
            return false;
        int64_t moved = atomic_fetch_add(&proxy->moved, piece) + piece;
        if (proxy->reset_at >= 0 && moved >= proxy->reset_at) {
            reset(pipe->from);
            reset(pipe->to);
            return false;
        }
        bytes += piece;
        count -= piece;
    }
    return true;
}

static void *run_pipe(void *arg)
{
    struct pipe *pipe = arg;
    static _Thread_local char bytes[65536];
    ssize_t got;
    do
        got = recv(pipe->from, bytes, sizeof bytes, 0);
    while (got > 0 && pass(pipe, bytes, got));
    shutdown(pipe->to, SHUT_WR);
    return NULL;
}

static void add_pipe(struct proxy *proxy, int from, int to)
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

static void *run_proxy(void *arg)
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
static void put_before(struct proxy *proxy, struct rig *rig, int rank)
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

static void end_proxy(struct proxy *proxy)
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

static struct route *open_route(const struct proxy *like, uint64_t link_timeout_ns)
{
    struct route *route = calloc(1, sizeof *route);
    route->rig = rig_make(RANKS, 0, link_timeout_ns);
    for (int rank = 0; rank < RANKS; rank++) {
        struct proxy *proxy = &route->proxies[rank];
        proxy->seed = like->seed * 977 + (uint64_t)rank;
        proxy->piece = like->piece;
        proxy->delay_us = like->delay_us;
        proxy->reset_at = like->reset_at;
        put_before(proxy, route->rig, rank);
    }
    rig_connect(route->rig);
    return route;
}

static void close_route(struct route *route)
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
static void *run_program(void *arg)
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

static void run_both(const struct proxy *like)
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

static void late_and_in_pieces_is_right(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_both(&(struct proxy){.seed = seed, .piece = 0, .delay_us = 2000, .reset_at = -1});
        run_both(&(struct proxy){.seed = seed, .piece = 1500, .delay_us = 100, .reset_at = -1});
        run_both(&(struct proxy){.seed = seed, .piece = 200, .delay_us = 0, .reset_at = -1});
    }
}

/* ---- reset ---- */

static void a_reset_in_the_middle_is_a_loss(void **state)
{
    (void)state;
    enum { BYTES = 2 << 20, HANDSHAKE = 2000 }; /* before it is through, a call is made again */
    char *source = malloc(BYTES);
    rig_fill(source, BYTES, 1);
    for (int64_t at = HANDSHAKE; at < BYTES; at = at * 3 + 1) {
        struct route *route =
            open_route(&(struct proxy){.seed = 1, .reset_at = at}, 10 * COHI_NS_PER_S);
        struct rig *rig = route->rig;
        cohi_op put = COHI_NEW_OP, quiet = COHI_NEW_OP;
        assert_int_equal(rig_put(rig, 0, 1, 0, source, BYTES, &put), COH_OK);
        assert_int_equal(cohi_engine_tcp.rma->quiet(rig->endpoint[0], 0, &quiet), COH_OK);
        (void)rig_wait(&put); /* the kernel may have had all of it */
        assert_int_equal(rig_wait(&quiet), COH_PEER_LOST);
        assert_true(rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK));
        assert_true(rig_until(&rig->world[1].lost[0], COHI_LOSS_LINK));
        assert_int_equal(route->proxies[0].pipe_count + route->proxies[1].pipe_count, 2);
        close_route(route);
    }
    free(source);
}

/* ---- silence ---- */

static void a_half_open_link_is_told_on_both_sides(void **state)
{
    (void)state;
    struct route *route = open_route(&(struct proxy){.seed = 1, .reset_at = -1}, COHI_NS_PER_S);
    struct rig *rig = route->rig;
    uint64_t word = 3;
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    usleep(1500000); /* idle: keepalives */
    assert_int_equal(atomic_load(&rig->world[0].silent[1]), 0);
    assert_int_equal(atomic_load(&rig->world[1].silent[0]), 0);
    for (int i = 0; i < RANKS; i++)
        atomic_store(&route->proxies[i].silent, 1);
    assert_true(rig_until(&rig->world[0].silent[1], 2));
    assert_true(rig_until(&rig->world[1].silent[0], 2));
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_get(rig, 0, 1, 0, &word, sizeof word, &op), COH_OK);
    cohi_engine_tcp.lifecycle->lose(rig->endpoint[0], 1);
    assert_int_equal(rig_wait(&op), COH_PEER_LOST);
    close_route(route);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_in_pieces_is_right),
        cmocka_unit_test(a_reset_in_the_middle_is_a_loss),
        cmocka_unit_test(a_half_open_link_is_told_on_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
