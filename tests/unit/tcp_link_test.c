/* Links of engine tcp between endpoints of one process: all slots, both sides calling at once,
 * leaving, losing, cancelling: docs/faults.md F34. */
#include "tcp_rig.h"

#include <signal.h>
#include <sys/wait.h>

#define TIMEOUT_NS (10 * COHI_NS_PER_S)

/* ---- moving bytes ---- */

static void bytes_arrive_and_no_others(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 8, 63, 64, 65, 4097, 70000, (1 << 20) + 1, 5 << 20};
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    char *source = malloc(RIG_BYTES), *back = malloc(RIG_BYTES);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t bytes = lengths[i], offset = 101;
        cohi_op sent = COHI_NEW_OP, got = COHI_NEW_OP;
        rig_fill(source, bytes, (unsigned)i);
        assert_int_equal(rig_put(rig, 0, 1, offset, source, bytes, &sent), COH_OK);
        assert_int_equal(rig_wait(&sent), COH_OK);
        memset(source, 0, bytes);
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        rig_fill(source, bytes, (unsigned)i);
        assert_memory_equal(rig->memory[1] + offset, source, bytes);
        assert_int_equal(rig->memory[1][offset - 1], 0); /* each is longer than those before */
        assert_int_equal(rig->memory[1][offset + bytes], 0);
        assert_int_equal(rig_get(rig, 0, 1, offset, back, bytes, &got), COH_OK);
        assert_int_equal(rig_wait(&got), COH_OK);
        assert_memory_equal(back, source, bytes);
    }
    free(source);
    free(back);
    rig_close(rig);
}

/* More than the sockets hold, and more requests than may wait for answers, in one go. */
static void many_at_once_complete_at_quiet(void **state)
{
    (void)state;
    enum { REQUESTS = 500, BYTES = 8000 };
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    char *source = malloc(REQUESTS * BYTES), *back = calloc(REQUESTS, BYTES);
    rig_fill(source, REQUESTS * BYTES, 5);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(rig_put(rig, 0, 1, (uint64_t)i * BYTES, source + i * BYTES, BYTES, NULL),
                         COH_OK);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(rig_get(rig, 0, 1, (uint64_t)i * BYTES, back + i * BYTES, BYTES, NULL),
                         COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    assert_memory_equal(rig->memory[1], source, REQUESTS * BYTES);
    assert_memory_equal(back, source, REQUESTS * BYTES);
    free(source);
    free(back);
    rig_close(rig);
}

static void signals_come_behind_their_data(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20, SIGNAL = 4 << 20 };
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    char *source = malloc(BYTES);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)(rig->memory[1] + SIGNAL);
    for (uint64_t round = 1; round <= 4; round++) {
        rig_fill(source, BYTES, (unsigned)round);
        cohi_op op = COHI_NEW_OP;
        assert_int_equal(cohi_engine_tcp.rma->put_signal(
                             rig->endpoint[0], (cohi_remote){0, 1, RIG_SEGMENT, 0}, source, BYTES,
                             &(cohi_remote_signal){SIGNAL, round % 2 ? round : 1, round % 2 == 0},
                             &op),
                         COH_OK);
        while (atomic_load(word) != round)
            usleep(100);
        assert_memory_equal(rig->memory[1], source, BYTES);
        assert_int_equal(rig_wait(&op), COH_OK);
    }
    free(source);
    rig_close(rig);
}

static void atomics_apply(void **state)
{
    (void)state;
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    const cohi_engine_atomic *atomic = cohi_engine_tcp.atomic;
    uint64_t five = 5, seven = 7, old = 0;
    uint32_t narrow = 9, old_narrow = 1;
    for (int i = 0; i < 100; i++)
        assert_int_equal(atomic->post(rig->endpoint[0], (cohi_remote){0, 1, RIG_SEGMENT, 8},
                                      &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U64, &five, NULL}),
                         COH_OK);
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(atomic->fetch(rig->endpoint[0], (cohi_remote){0, 1, RIG_SEGMENT, 8},
                                   &(cohi_remote_atomic){COH_ATOMIC_COMPARE_SWAP, COH_U64, &seven,
                                                         &(uint64_t){500}},
                                   &old, &op),
                     COH_OK);
    assert_int_equal(rig_wait(&op), COH_OK);
    assert_int_equal(old, 500);
    op = (cohi_op)COHI_NEW_OP;
    assert_int_equal(atomic->fetch(rig->endpoint[0], (cohi_remote){0, 1, RIG_SEGMENT, 4},
                                   &(cohi_remote_atomic){COH_ATOMIC_SET, COH_U32, &narrow, NULL},
                                   &old_narrow, &op),
                     COH_OK);
    assert_int_equal(rig_wait(&op), COH_OK);
    assert_int_equal(old_narrow, 0);
    assert_int_equal(*(uint32_t *)(void *)(rig->memory[1] + 4), 9);
    assert_int_equal(*(uint64_t *)(void *)(rig->memory[1] + 8), 7);
    rig_close(rig);
}

static void messages_are_whole_and_in_order(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 64, 65, 8000, 16384, 16500, 40000, 64 << 10, 127 << 10};
    enum { LENGTHS = sizeof lengths / sizeof *lengths, HEAD = 100 };
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    unsigned char head[HEAD], *body = malloc(127 << 10);
    unsigned sums[LENGTHS];
    cohi_op ops[LENGTHS];
    rig_fill(head, HEAD, 3);
    rig_fill(body, 127 << 10, 4);
    for (int i = 0; i < LENGTHS; i++) {
        ops[i] = (cohi_op)COHI_NEW_OP;
        head[0] = (unsigned char)i;
        assert_int_equal(cohi_engine_tcp.channel->send(rig->endpoint[1], 0, head, HEAD, body,
                                                       lengths[i], lengths[i] ? &ops[i] : NULL),
                         COH_OK);
        sums[i] = 0;
        for (size_t at = 0; at < HEAD + lengths[i]; at++)
            sums[i] = sums[i] * 31 + (at < HEAD ? head[at] : body[at - HEAD]);
        head[0] = 99;
    }
    assert_true(rig_until(&rig->world[0].messages, LENGTHS));
    for (int i = 0; i < LENGTHS; i++) {
        assert_int_equal(rig->world[0].firsts[i], i);
        assert_int_equal(rig->world[0].counts[i], HEAD + lengths[i]);
        assert_int_equal(rig->world[0].sums[i], sums[i]);
        if (lengths[i])
            assert_int_equal(rig_wait(&ops[i]), COH_OK);
    }
    free(body);
    rig_close(rig);
}

/* ---- both call at once ---- */

struct crossing {
    struct rig *rig;
    int rank;
    pthread_t thread;
    pthread_barrier_t *start;
};

static void *cross(void *arg)
{
    struct crossing *crossing = arg;
    struct rig *rig = crossing->rig;
    uint64_t values[RIG_RANKS_MAX];
    pthread_barrier_wait(crossing->start);
    for (uint64_t i = 1; i <= 20; i++)
        for (int to = 0; to < rig->size; to++) {
            values[to] = i;
            if (to != crossing->rank)
                assert_int_equal(rig_put(rig, crossing->rank, to, (uint64_t)crossing->rank * 8,
                                         &values[to], 8, NULL),
                                 COH_OK);
        }
    assert_int_equal(rig_quiet(rig, crossing->rank), COH_OK);
    return NULL;
}

static void calls_that_cross_lose_nothing(void **state)
{
    (void)state;
    enum { RANKS = 5, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        struct rig *rig = rig_open(RANKS, 0, TIMEOUT_NS);
        struct crossing crossings[RANKS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, RANKS);
        for (int rank = 0; rank < RANKS; rank++) {
            crossings[rank] = (struct crossing){.rig = rig, .rank = rank, .start = &start};
            pthread_create(&crossings[rank].thread, NULL, cross, &crossings[rank]);
        }
        for (int rank = 0; rank < RANKS; rank++)
            pthread_join(crossings[rank].thread, NULL);
        for (int rank = 0; rank < RANKS; rank++)
            for (int from = 0; from < RANKS; from++) {
                assert_int_equal(*(uint64_t *)(void *)(rig->memory[rank] + from * 8),
                                 from == rank ? 0 : 20);
                assert_int_equal(atomic_load(&rig->world[rank].lost[from]), 0);
            }
        pthread_barrier_destroy(&start);
        rig_close(rig);
    }
}

static bool send_now(struct rig *rig, int rank, int to, const char *body, size_t bytes)
{
    return cohi_engine_tcp.channel->send_now(rig->endpoint[rank], to, "sixteen bytes...", 16, body,
                                             bytes);
}

/* ---- leaving ---- */

static void who_leaves_is_not_lost(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 0, TIMEOUT_NS);
    uint64_t word = 42;
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_leave(rig, 0), COH_OK);
    assert_int_equal(*(uint64_t *)(void *)rig->memory[1], 42); /* it has arrived */
    assert_int_equal(atomic_load(&rig->world[1].left[0]), 1);
    assert_false(send_now(rig, 1, 0, "too late", 8));
    /* One that had no link to it is told when it calls. */
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_get(rig, 2, 0, 0, &word, sizeof word, &op), COH_OK);
    assert_int_equal(rig_wait(&op), COH_PEER_LOST);
    assert_int_equal(op.rank, 0);
    assert_int_equal(atomic_load(&rig->world[2].left[0]), 1);
    rig_close_rank(rig, 0);
    usleep(100000);
    for (int rank = 1; rank < 3; rank++) {
        assert_int_equal(atomic_load(&rig->world[rank].lost[0]), 0);
        assert_int_equal(rig_put(rig, rank, 0, 0, &word, sizeof word, NULL), COH_PEER_LOST);
    }
    rig_close(rig);
}

static void *leave_alone(void *arg)
{
    struct crossing *crossing = arg;
    pthread_barrier_wait(crossing->start);
    assert_int_equal(rig_leave(crossing->rig, crossing->rank), COH_OK);
    rig_close_rank(crossing->rig, crossing->rank);
    return NULL;
}

static void all_leave_at_once(void **state)
{
    (void)state;
    enum { RANKS = 4, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        struct rig *rig = rig_open(RANKS, 0, TIMEOUT_NS);
        struct crossing crossings[RANKS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, RANKS);
        for (int rank = 0; rank < RANKS; rank++)
            for (int to = 0; to < RANKS; to++)
                if (to != rank)
                    assert_int_equal(rig_put(rig, rank, to, 0, "abcd", 4, NULL), COH_OK);
        for (int rank = 0; rank < RANKS; rank++) {
            crossings[rank] = (struct crossing){.rig = rig, .rank = rank, .start = &start};
            pthread_create(&crossings[rank].thread, NULL, leave_alone, &crossings[rank]);
        }
        for (int rank = 0; rank < RANKS; rank++)
            pthread_join(crossings[rank].thread, NULL);
        for (int rank = 0; rank < RANKS; rank++)
            for (int of = 0; of < RANKS; of++)
                assert_int_equal(atomic_load(&rig->world[rank].lost[of]), 0);
        pthread_barrier_destroy(&start);
        rig_close(rig);
    }
}

/* ---- losing ---- */

static void a_rank_that_ends_is_lost(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 0, TIMEOUT_NS);
    uint64_t word = 1;
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    rig_close_rank(rig, 1);
    assert_true(rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK));
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_PEER_LOST);
    /* And where no link was made, it is found to be gone. */
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_get(rig, 2, 1, 0, &word, sizeof word, &op), COH_OK);
    assert_int_equal(rig_wait(&op), COH_PEER_LOST);
    assert_true(rig_until(&rig->world[2].lost[1], COHI_LOSS_ABSENT));
    rig_close(rig);
}

/* A child that lives on has no part in the connection. */
static void a_forked_child_keeps_no_link(void **state)
{
    (void)state;
    struct rig *rig = rig_open(2, 0, TIMEOUT_NS);
    uint64_t word = 1;
    assert_int_equal(rig_put(rig, 0, 1, 0, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    rig_close_rank(rig, 1);
    bool noticed = rig_until(&rig->world[0].lost[1], COHI_LOSS_LINK);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(noticed);
    rig_close(rig);
}

/* A peer that takes nothing: what is under way ends when core says that it is lost, and when it
 * is cancelled. */
static void what_waits_for_a_lost_rank_ends(void **state)
{
    (void)state;
    enum { BYTES = 6 << 20 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    char *memory = calloc(1, BYTES);
    int fd = raw_open(rig, 1, 0);
    cohi_op put = COHI_NEW_OP, get = COHI_NEW_OP, quiet = COHI_NEW_OP;
    for (int i = 0; i < 4; i++) /* until the sockets are full */
        assert_int_equal(rig_put(rig, 0, 1, 0, memory, BYTES, i < 3 ? NULL : &put), COH_OK);
    assert_int_equal(rig_get(rig, 0, 1, 0, memory, 100, &get), COH_OK);
    assert_int_equal(cohi_engine_tcp.rma->quiet(rig->endpoint[0], 0, &quiet), COH_OK);
    usleep(20000);
    assert_int_equal(atomic_load(&put.done) + atomic_load(&get.done) + atomic_load(&quiet.done), 0);
    assert_int_equal(atomic_load(&quiet.waits_for), 1);
    cohi_engine_tcp.lifecycle->cancel(rig->endpoint[0], &get); /* nothing of it is under way */
    assert_int_equal(atomic_load(&get.done), 1);
    assert_int_equal(get.status, COH_TRANSPORT);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), 0);
    cohi_engine_tcp.lifecycle->lose(rig->endpoint[0], 1);
    assert_int_equal(atomic_load(&put.done), 1);
    assert_int_equal(put.status, COH_PEER_LOST);
    assert_int_equal(atomic_load(&quiet.done), 1);
    assert_int_equal(quiet.rank, 1);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), 0); /* core knows */
    free(memory);
    close(fd);
    rig_close(rig);
}

/* The rest of a frame would be missing: the link cannot go on. */
static void cancelling_what_is_under_way_ends_the_link(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    char *memory = calloc(8, BYTES);
    int fd = raw_open(rig, 1, 0);
    cohi_op put = COHI_NEW_OP;
    assert_int_equal(rig_put(rig, 0, 1, 0, memory, 8 * BYTES, &put), COH_OK);
    usleep(20000);
    assert_int_equal(atomic_load(&put.done), 0);
    cohi_engine_tcp.lifecycle->cancel(rig->endpoint[0], &put);
    assert_int_equal(atomic_load(&put.done), 1);
    memset(memory, 1, 8 * BYTES);
    free(memory);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), COHI_LOSS_LINK);
    close(fd);
    rig_close(rig);
}

/* A message that has begun to go goes whole, as it was, and others behind it: a refused collective must not cost the
 * link. */
static void a_message_under_way_is_taken_over(void **state)
{
    (void)state;
    enum { BYTES = 60000, MOST = 2000 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    char *memory = malloc(BYTES), *as_sent = malloc(BYTES), *came = malloc(BYTES + 16);
    int fd = raw_open(rig, 1, 0), sent = 0;
    cohi_op ops[2] = {COHI_NEW_OP, COHI_NEW_OP};
    memset(memory, 5, BYTES);
    memset(as_sent, 5, BYTES);
    for (bool full = false; !full; sent++) { /* until the sockets are */
        assert_int_not_equal(sent, MOST);
        cohi_op *op = &ops[sent % 2];
        *op = (cohi_op)COHI_NEW_OP;
        assert_int_equal(cohi_engine_tcp.channel->send(rig->endpoint[0], 1, "sixteen bytes...", 16,
                                                       memory, BYTES, op),
                         COH_OK);
        full = !atomic_load(&op->done);
    }
    cohi_engine_tcp.lifecycle->cancel(rig->endpoint[0], &ops[(sent - 1) % 2]);
    assert_int_equal(atomic_load(&ops[(sent - 1) % 2].done), 1);
    memset(memory, 6, BYTES);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), 0);
    assert_int_equal(
        cohi_engine_tcp.channel->send(rig->endpoint[0], 1, "the last message", 16, NULL, 0, NULL),
        COH_OK);
    int whole = 0; /* the last but one does not come if nothing of it had gone */
    cohi_tcp_frame frame;
    while (raw_take(fd, &frame, came, BYTES + 16) && frame.head.bytes > 16) {
        assert_int_equal(frame.head.verb, COHI_TCP_MESSAGE);
        assert_memory_equal(came + 16, as_sent, BYTES);
        whole++;
    }
    assert_memory_equal(came, "the last message", 16);
    assert_in_range(whole, sent - 1, sent);
    free(memory);
    free(as_sent);
    free(came);
    close(fd);
    rig_close(rig);
}

/* Short messages are the caller's no more when they are taken. The last one that is goes in part: the rest of it comes as it
 * was, before what is sent behind it, and it is not taken twice. */
static void the_rest_of_a_short_message_is_kept(void **state)
{
    (void)state;
    enum { BYTES = COHI_SHORT_BYTES, MOST = 20000 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    char body[BYTES], came[BYTES + 16];
    int fd = raw_open(rig, 1, 0), sent = 0;
    cohi_tcp_frame frame;
    assert_int_equal(
        cohi_engine_tcp.channel->send(rig->endpoint[0], 1, "the link is open", 16, NULL, 0, NULL),
        COH_OK);
    assert_true(raw_take(fd, &frame, came, sizeof came));
    while (send_now(rig, 0, 1, memset(body, 3 + sent % 100, BYTES),
                    BYTES)) { /* until the socket is full */
        sent++;
        assert_int_not_equal(sent, MOST);
    }
    assert_int_not_equal(sent, 0);
    memset(body, 2, BYTES);
    assert_int_equal(
        cohi_engine_tcp.channel->send(rig->endpoint[0], 1, "the last message", 16, NULL, 0, NULL),
        COH_OK);
    int whole = 0;
    while (raw_take(fd, &frame, came, sizeof came) && frame.head.bytes > 16) {
        char as_sent[BYTES];
        memset(as_sent, 3 + whole % 100, BYTES);
        assert_memory_equal(came + 16, as_sent, BYTES);
        whole++;
    }
    assert_memory_equal(came, "the last message", 16);
    assert_int_equal(whole, sent);
    close(fd);
    rig_close(rig);
}

/* An answer that comes when nobody wants it any more is dropped, and the link goes on. */
static void answers_to_what_was_cancelled_are_dropped(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    struct rig *rig = rig_open(2, 1 << 1, TIMEOUT_NS);
    char *target = calloc(1, BYTES), *answer = malloc(BYTES);
    int fd = raw_open(rig, 1, 0);
    cohi_op first = COHI_NEW_OP, second = COHI_NEW_OP;
    cohi_tcp_frame frames[2];
    assert_int_equal(rig_get(rig, 0, 1, 0, target, BYTES, &first), COH_OK);
    assert_int_equal(rig_get(rig, 0, 1, 0, target, BYTES, &second), COH_OK);
    for (int i = 0; i < 2; i++)
        assert_true(raw_take(fd, &frames[i], NULL, 0));
    memset(answer, 7, BYTES);
    cohi_tcp_frame frame = {
        .head = {.verb = COHI_TCP_ANSWER, .bytes = BYTES, .number = frames[0].head.number}};
    raw_frame(fd, &frame, answer, BYTES / 2);
    usleep(20000);
    cohi_engine_tcp.lifecycle->cancel(rig->endpoint[0], &first);
    memset(target, 0, BYTES);
    raw_send(fd, answer, BYTES / 2);
    usleep(20000);
    for (int i = 0; i < BYTES; i++)
        assert_int_equal(target[i], 0);
    memset(answer, 9, BYTES);
    frame.head.number = frames[1].head.number;
    raw_frame(fd, &frame, answer, BYTES);
    assert_int_equal(rig_wait(&second), COH_OK);
    assert_memory_equal(target, answer, BYTES);
    free(target);
    free(answer);
    close(fd);
    rig_close(rig);
}

static void silence_is_told(void **state)
{
    (void)state;
    struct rig *rig = rig_open(3, 1 << 1, COHI_NS_PER_S);
    uint64_t word = 0;
    assert_int_equal(rig_put(rig, 0, 2, 0, &word, 8, NULL), COH_OK);
    int fd = raw_open(rig, 1, 0);
    assert_true(rig_until(&rig->world[0].mute[1], 3)); /* the kernel answers for it */
    assert_int_equal(atomic_load(&rig->world[0].silent[1]), 0);
    assert_int_equal(atomic_load(&rig->world[0].mute[2]), 0); /* keepalives come */
    assert_int_equal(atomic_load(&rig->world[2].mute[0]), 0);
    assert_int_equal(atomic_load(&rig->world[0].lost[1]), 0); /* that is for core to say */
    close(fd);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_and_no_others),
        cmocka_unit_test(many_at_once_complete_at_quiet),
        cmocka_unit_test(signals_come_behind_their_data),
        cmocka_unit_test(atomics_apply),
        cmocka_unit_test(messages_are_whole_and_in_order),
        cmocka_unit_test(calls_that_cross_lose_nothing),
        cmocka_unit_test(who_leaves_is_not_lost),
        cmocka_unit_test(all_leave_at_once),
        cmocka_unit_test(a_rank_that_ends_is_lost),
        cmocka_unit_test(a_forked_child_keeps_no_link),
        cmocka_unit_test(what_waits_for_a_lost_rank_ends),
        cmocka_unit_test(cancelling_what_is_under_way_ends_the_link),
        cmocka_unit_test(a_message_under_way_is_taken_over),
        cmocka_unit_test(the_rest_of_a_short_message_is_kept),
        cmocka_unit_test(answers_to_what_was_cancelled_are_dropped),
        cmocka_unit_test(silence_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
