/* Links of engine tcp through a proxy that is late, splits, resets, cuts, corrupts, repeats, or falls
 * silent: docs/faults.md F20, F21, F22 and F35. */
#include "tcp_proxy.h"

/* ---- late and in pieces ---- */

static void late_and_in_pieces_is_right(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_both(&(struct proxy){.seed = seed, .piece = 0, .delay_us = 2000, .reset_at = -1});
        run_both(&(struct proxy){.seed = seed, .piece = 1500, .delay_us = 100, .reset_at = -1});
        run_both(&(struct proxy){.seed = seed, .piece = 200, .delay_us = 0, .reset_at = -1});
    }
}

/* ---- by ranks that poll ---- */

struct poller {
    cohi_endpoint *endpoint;
    atomic_int *stopping;
    pthread_t thread;
    uint64_t dice;
};

/* As ranks do that wait, sleep and compute. */
static void *run_poller(void *arg)
{
    struct poller *poller = arg;
    while (!atomic_load(poller->stopping)) {
        for (unsigned i = roll(&poller->dice, 300); i > 0; i--)
            cohi_engine_tcp.lifecycle->progress(poller->endpoint);
        if (roll(&poller->dice, 2))
            cohi_engine_tcp.lifecycle->rest(poller->endpoint);
        usleep(roll(&poller->dice, 1000));
    }
    return NULL;
}

/* Whoever reads, what is read is the same. Two threads poll for each rank, in turns with the engine's. */
static void ranks_that_poll_get_the_same(void **state)
{
    (void)state;
    enum { POLLERS = 2 * RANKS };
    struct route *route =
        open_route(&(struct proxy){.seed = 8, .piece = 2000, .reset_at = -1}, 10 * COHI_NS_PER_S);
    struct program programs[RANKS];
    struct poller pollers[POLLERS];
    pthread_barrier_t end;
    atomic_int stopping = 0;
    pthread_barrier_init(&end, NULL, RANKS);
    for (int i = 0; i < POLLERS; i++) {
        pollers[i] = (struct poller){.endpoint = route->rig->endpoint[i % RANKS],
                                     .stopping = &stopping,
                                     .dice = (uint64_t)i};
        pthread_create(&pollers[i].thread, NULL, run_poller, &pollers[i]);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        programs[rank] = (struct program){
            .rig = route->rig, .rank = rank, .dice = 40 + (uint64_t)rank, .end = &end};
        pthread_create(&programs[rank].thread, NULL, run_program, &programs[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(programs[rank].thread, NULL);
    atomic_store(&stopping, 1);
    for (int i = 0; i < POLLERS; i++)
        pthread_join(pollers[i].thread, NULL);
    close_route(route);
    pthread_barrier_destroy(&end);
}

/* A rank that has polled and then computes is served all the same, though it says nothing. */
static void a_rank_that_polls_no_more_is_served(void **state)
{
    (void)state;
    struct rig *rig = rig_open(2, 0, 10 * COHI_NS_PER_S);
    for (uint64_t round = 1; round <= 20; round++) {
        uint64_t back = 0;
        cohi_op op = COHI_NEW_OP;
        for (int i = 0; i < 50; i++)
            for (int rank = 0; rank < 2; rank++)
                cohi_engine_tcp.lifecycle->progress(rig->endpoint[rank]);
        assert_int_equal(rig_put(rig, 0, 1, 0, &round, sizeof round, NULL), COH_OK);
        assert_int_equal(rig_get(rig, 0, 1, 0, &back, sizeof back, &op), COH_OK);
        uint64_t began_ns = cohi_now_ns();
        assert_int_equal(rig_wait(&op), COH_OK);
        assert_int_equal(back, round);
        assert_true(cohi_now_ns() - began_ns < COHI_NS_PER_S);
    }
    rig_close(rig);
}

/* One that nobody receives yet is put off by a rank that looks. Whether the rank looks again or not, it comes. */
static void a_message_that_is_put_off_comes(void **state)
{
    (void)state;
    enum { BYTES = 120 << 10, ROUNDS = 60, HEAD = 64 };
    struct rig *rig = rig_open(2, 0, 10 * COHI_NS_PER_S);
    unsigned char head[HEAD] = {0}, *body = malloc(BYTES);
    rig_fill(body, BYTES, 2);
    for (int round = 0; round < ROUNDS; round++) {
        cohi_op op = COHI_NEW_OP;
        head[0] = (unsigned char)round;
        cohi_engine_tcp.lifecycle->progress(rig->endpoint[0]);
        assert_int_equal(
            cohi_engine_tcp.channel->send(rig->endpoint[1], 0, head, HEAD, body, BYTES, &op),
            COH_OK);
        for (int look = 0; look < round % 6; look++) {
            cohi_engine_tcp.lifecycle->progress(rig->endpoint[0]);
            usleep((useconds_t)(round % 3 * 20));
        }
        assert_int_equal(rig_wait(&op), COH_OK);
        assert_true(rig_until(&rig->world[0].messages, round + 1));
        assert_int_equal(rig->world[0].firsts[round], round);
    }
    free(body);
    rig_close(rig);
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
        /* A called rank that has got nothing yet asks whether it is lost. */
        assert_in_range(route->proxies[0].pipe_count + route->proxies[1].pipe_count, 2, 4);
        close_route(route);
    }
    free(source);
}

/* ---- in the handshake ---- */

/* Whatever happens to a call before it is through, it is made again, and all comes right. */
static void trouble_in_the_handshake_is_overcome(void **state)
{
    (void)state;
    enum { HANDSHAKE = 500 }; /* bytes of both directions, at least */
    for (int trouble = RESET; trouble <= REPLAY; trouble++)
        for (int64_t at = 1; at < HANDSHAKE; at += 160)
            run_both(&(struct proxy){.seed = 5,
                                     .piece = 100,
                                     .reset_at = at,
                                     .trouble = (enum trouble)trouble,
                                     .once = true});
}

/* ---- behind it ---- */

static coh_status put_and_quiet(struct rig *rig, const char *source, size_t bytes)
{
    cohi_op put = COHI_NEW_OP, quiet = COHI_NEW_OP;
    if (rig_put(rig, 0, 1, 0, source, bytes, &put) != COH_OK)
        return COH_PEER_LOST;
    (void)rig_wait(&put);
    if (cohi_engine_tcp.rma->quiet(rig->endpoint[0], 0, &quiet) != COH_OK)
        return COH_PEER_LOST;
    return rig_wait(&quiet);
}

/* The links are sealed: both come to an end, with the loss of the other, and nothing was written but
 * what was to be. */
static void trouble_in_frames_ends_well(void **state)
{
    (void)state;
    enum { BYTES = 100000, ROUNDS = 20, SEEDS = 8 };
    char *source = malloc(BYTES);
    rig_fill(source, BYTES, 1);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int trouble = CUT; trouble <= REPLAY; trouble++) {
            uint64_t dice = seed;
            struct proxy like = {.seed = seed,
                                 .piece = 3000,
                                 .reset_at = 2000 + roll(&dice, BYTES),
                                 .trouble = (enum trouble)trouble,
                                 .once = true};
            struct route *route = open_route(&like, 10 * COHI_NS_PER_S);
            coh_status status = COH_OK;
            for (int i = 0; i < ROUNDS && status == COH_OK; i++)
                status = put_and_quiet(route->rig, source, BYTES);
            const char *memory = route->rig->memory[1];
            assert_int_equal(status, COH_PEER_LOST);
            assert_true(rig_until(&route->rig->world[1].lost[0], COHI_LOSS_LINK));
            for (size_t i = 0; i < RIG_BYTES; i++)
                assert_true(memory[i] == 0 || (i < BYTES && memory[i] == source[i]));
            close_route(route);
        }
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
    assert_int_equal(atomic_load(&rig->world[0].mute[1]), 0);
    assert_int_equal(atomic_load(&rig->world[1].mute[0]), 0);
    for (int i = 0; i < RANKS; i++)
        atomic_store(&route->proxies[i].silent, 1);
    assert_true(rig_until(&rig->world[0].mute[1], 2)); /* the proxy's kernel still answers */
    assert_true(rig_until(&rig->world[1].mute[0], 2));
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_get(rig, 0, 1, 0, &word, sizeof word, &op), COH_OK);
    cohi_engine_tcp.lifecycle->lose(rig->endpoint[0], 1);
    assert_int_equal(rig_wait(&op), COH_PEER_LOST);
    close_route(route);
}

/* For as long as is asked for, with seeds of its own: make soak-tcp. */
static void run_for(double seconds, uint64_t seed)
{
    uint64_t until_ns = cohi_now_ns() + (uint64_t)(seconds * 1e9);
    for (; cohi_now_ns() < until_ns; seed++) {
        uint64_t dice = seed;
        enum trouble trouble = (enum trouble)roll(&dice, REPLAY + 1);
        /* What is repeated behind the last flight is taken for what follows it, and ends the link. */
        unsigned handshake = trouble == REPLAY ? 200 : 500;
        struct proxy like = {.seed = seed, .reset_at = -1, .trouble = trouble, .once = true};
        /* With fewer bytes and that delay an operation takes longer than the rig waits for it. */
        like.piece = 100 + (int)roll(&dice, 2900);
        like.delay_us = (int)roll(&dice, 500);
        if (roll(&dice, 2))
            like.reset_at = roll(&dice, handshake);
        print_message("seed %llu\n", (unsigned long long)seed);
        run_both(&like);
    }
}

static void soaks(void **state)
{
    const char *seconds = getenv("SOAK_SECONDS"), *seed = getenv("SOAK_SEED");
    (void)state;
    if (seconds)
        run_for(atof(seconds), seed ? strtoull(seed, NULL, 10) : cohi_now_ns());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(soaks),
        cmocka_unit_test(late_and_in_pieces_is_right),
        cmocka_unit_test(ranks_that_poll_get_the_same),
        cmocka_unit_test(a_rank_that_polls_no_more_is_served),
        cmocka_unit_test(a_message_that_is_put_off_comes),
        cmocka_unit_test(a_reset_in_the_middle_is_a_loss),
        cmocka_unit_test(trouble_in_the_handshake_is_overcome),
        cmocka_unit_test(trouble_in_frames_ends_well),
        cmocka_unit_test(a_half_open_link_is_told_on_both_sides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
