/* The simulator's script: kills, stalls, cancelled operations, bad words; and that a seed replays.
 * Its checks of what a peer asks for are those of docs/faults.md F15. */
#include "sim_rig.h"

#include <stdbool.h>

#include "base/clock.h"
#include "engine/sim/script.h"

#include <inttypes.h>

/* ---- the engine at large ---- */

static void test_probe(void **state)
{
    (void)state;
    const cohi_engine_lifecycle *lifecycle = cohi_engine_sim.lifecycle;
    assert_int_equal(lifecycle->probe(&(cohi_need){.size = 4, .in_process = 1}), COH_OK);
    assert_int_equal(lifecycle->probe(&(cohi_need){.size = 1}), COH_OK);
    assert_int_equal(lifecycle->probe(&(cohi_need){.size = 4}), COH_NOT_AVAILABLE);
    assert_non_null(strstr(coh_last_error(), "these 4 are processes"));
}

static void test_groups(void **state)
{
    (void)state;
    assert_string_equal(cohi_engine_sim.name, "sim");
    assert_string_equal(cohi_engine_sim_channel.name, "sim:channel");
    assert_non_null(cohi_engine_sim.memory);
    assert_non_null(cohi_engine_sim.rma);
    assert_non_null(cohi_engine_sim.atomic);
    assert_null(cohi_engine_sim_channel.memory);
    assert_null(cohi_engine_sim_channel.rma);
    assert_null(cohi_engine_sim_channel.atomic);
    assert_non_null(cohi_engine_sim_channel.channel);
}

static void test_nothing_is_mapped(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=1");
    cohi_engine_facts facts;
    rig->engine->lifecycle->query(rig->endpoint[0], &facts);
    assert_int_equal(facts.detects_loss, 1);
    assert_int_equal(facts.cpu_coherent_atomics, 0);
    for (int rank = 0; rank < 2; rank++)
        assert_null(rig->engine->memory->peer_pointer(rig->endpoint[0], RIG_SEGMENT, rank));
    rig_close(rig);
}

static void test_world_of_one_without_a_crew(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 1, "seed=1");
    cohi_config config = {.sim = "seed=2"};
    cohi_engine_args args = {
        .need = {.size = 1}, .config = &config, .upcalls = &rig_upcalls, .world = &rig->world[0]};
    cohi_endpoint *second;
    assert_int_equal(rig->engine->lifecycle->open(&args, &second), COH_OK);
    cohi_op op = {0};
    assert_int_equal(rig->engine->rma->quiet(second, 0, &op), COH_OK);
    while (!rig_done(&op))
        rig->engine->lifecycle->progress(second);
    rig->engine->lifecycle->close(second);
    rig_close(rig);
}

static void test_reach_is_checked(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=1,patience=1");
    char byte = 1;
    assert_int_equal(rig_put(rig, 0, 1, RIG_BYTES, &byte, 1, NULL), COH_OUT_OF_BOUNDS);
    assert_non_null(strstr(coh_last_error(), "65536 bytes are attached"));
    assert_int_equal(rig_get(rig, 0, 1, UINT64_MAX, &byte, 1, NULL), COH_OUT_OF_BOUNDS);
    assert_int_equal(rig_put(rig, 0, 0, 1, &byte, RIG_BYTES, NULL), COH_OUT_OF_BOUNDS);
    cohi_region_key key;
    assert_int_equal(rig->engine->memory->region_export(rig->endpoint[0], RIG_SEGMENT, &key),
                     COH_OK);
    assert_int_equal(
        rig->engine->memory->region_attach(rig->endpoint[0], RIG_SEGMENT, 1, RIG_BYTES, &key),
        COH_TRANSPORT);
    rig_close(rig);
}

static void test_removed_segment_fails_at_quiet(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=1,patience=1");
    char byte = 1;
    rig->engine->memory->segment_remove(rig->endpoint[1], RIG_SEGMENT);
    assert_int_equal(rig_put(rig, 0, 1, 0, &byte, 1, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_TRANSPORT);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    rig_close(rig);
}

/* ---- scripts ---- */

static void test_script_words(void **state)
{
    (void)state;
    cohi_script script;
    assert_int_equal(cohi_script_parse("seed=7,delay=3,split=2,order=keep,patience=5,kill=1@20,"
                                       "stall=2@4:0.5,stall=0@9",
                                       3, &script),
                     COH_OK);
    assert_int_equal(script.seed, 7);
    assert_int_equal(script.delay, 3);
    assert_int_equal(script.split, 2);
    assert_true(script.keep_order);
    assert_int_equal(script.patience_ns, 5 * COHI_NS_PER_MS);
    assert_int_equal(script.strike_count, 3);
    assert_true(script.strikes[0].blow == COHI_BLOW_KILL && script.strikes[0].rank == 1);
    assert_int_equal(script.strikes[0].step, 20);
    assert_int_equal(script.strikes[1].for_ns, COHI_NS_PER_S / 2);
    assert_int_equal(script.strikes[2].for_ns, 0);
}

static void test_bad_scripts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *names; /* what the error must say */
    } rows[] = {
        {"sead=1", "word 1, 'sead=1' is not a word of the simulator; it takes seed=N"},
        {"seed=1,kill", "word 2, 'kill'"},
        {"seed=1,,delay=2", "word 2, ''"},
        {"seed=1,", "behind the last comma"},
        {"seed=x", "'x' is not a whole number"},
        {"seed=", "word 1"},
        {"delay=1001", "from 0 to 1000"},
        {"split=0", "from 1 to 64"},
        {"order=random", "'random' is not keep or shuffle"},
        {"patience=0", "from 1 to 60000"},
        {"kill=3@1", "'3' is not a whole number from 0 to 2"},
        {"kill=1", "has no '@'"},
        {"kill=1@0", "'0' is not a whole number from 1"},
        {"stall=1@2:soon", "'soon' is not a time"},
        {"kill=0@1,kill=0@1,kill=0@1,kill=0@1,stall=0@1,stall=0@1,kill=0@1,kill=0@1,kill=0@1",
         "word 9, 'kill=0@1': more than 8"},
        {"seed=000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
         "0000000000000000",
         "word 1 has 105 characters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cohi_script script;
        assert_int_equal(cohi_script_parse(rows[i].text, 3, &script), COH_INVALID_ARGUMENT);
        if (!strstr(coh_last_error(), rows[i].names))
            fail_msg("%s: %s", rows[i].text, coh_last_error());
    }
}

static void test_bad_script_leaves_nothing(void **state)
{
    (void)state;
    struct rig rig = {.engine = &cohi_engine_sim, .size = 2};
    assert_int_equal(rig_open_rank(&rig, "kill=9@1", 0), COH_INVALID_ARGUMENT);
    assert_null(rig.crew.fabric);
    assert_int_equal(rig.crew.open, 0);
    assert_null(rig.endpoint[0]);
}

/* ---- kill ---- */

static void test_kill_strikes_at_its_step(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 3, "seed=4,patience=1,kill=1@3");
    char bytes[4096] = {0};
    cohi_op pending = {0};
    assert_int_equal(rig_put(rig, 1, 0, 0, bytes, 1, NULL), COH_OK);
    assert_int_equal(rig_get(rig, 1, 2, 0, bytes, sizeof bytes, &pending), COH_OK);
    int was_done = rig_done(&pending);
    assert_int_equal(rig_put(rig, 1, 0, 0, bytes, 1, NULL), COH_PEER_LOST);
    assert_string_equal(coh_last_error(), "rank 1 was killed by the simulator at step 3");
    assert_true(rig_done(&pending));
    assert_int_equal(pending.status, was_done ? COH_OK : COH_PEER_LOST);
    assert_int_equal(atomic_load(&rig->world[1].lost_rank), 1);
    assert_int_equal(atomic_load(&rig->world[1].lost_detail), 3);
    assert_int_equal(rig->engine->channel->send(rig->endpoint[1], 0, bytes, 1, NULL, 0, NULL),
                     COH_PEER_LOST);
    for (int rank = 0; rank < 3; rank += 2) {
        while (atomic_load(&rig->world[rank].lost_rank) != 1)
            rig->engine->lifecycle->idle(rig->endpoint[rank], 1000000);
        assert_int_equal(atomic_load(&rig->world[rank].lost_count), 1);
    }
    rig_close(rig);
}

static void test_operations_on_a_killed_rank_fail(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 3, "seed=4,patience=1,kill=1@1");
    char bytes[4096] = {0};
    uint32_t one = 1, old;
    assert_int_equal(rig_fence(rig, 1), COH_PEER_LOST);
    cohi_op put = {0}, get = {0}, fetch = {0}, send = {0};
    assert_int_equal(rig_put(rig, 0, 1, 0, bytes, sizeof bytes, &put), COH_OK);
    assert_int_equal(rig_wait(rig, 0, &put), COH_PEER_LOST);
    assert_int_equal(put.rank, 1);
    assert_int_equal(rig_get(rig, 0, 1, 0, bytes, sizeof bytes, &get), COH_OK);
    assert_int_equal(rig_wait(rig, 0, &get), COH_PEER_LOST);
    assert_int_equal(rig->engine->atomic->fetch(
                         rig->endpoint[0], (cohi_remote){0, 1, RIG_SEGMENT, 0},
                         &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U32, &one, NULL}, &old, &fetch),
                     COH_OK);
    assert_int_equal(rig_wait(rig, 0, &fetch), COH_PEER_LOST);
    assert_int_equal(
        rig->engine->channel->send(rig->endpoint[0], 1, "", 1, bytes, sizeof bytes, &send), COH_OK);
    assert_int_equal(rig_wait(rig, 0, &send), COH_PEER_LOST);
    assert_int_equal(rig_put(rig, 0, 1, 0, bytes, 1, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_PEER_LOST);
    assert_int_equal(rig_put(rig, 0, 2, 0, bytes, 1, NULL), COH_OK); /* other pairs go on */
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    rig_close(rig);
}

/* What a rank had sent when it was killed arrives or not, but in order. */
static void test_killed_ranks_last_messages(void **state)
{
    (void)state;
    int some = 0, all = 0;
    for (int seed = 0; seed < 40; seed++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%d,patience=1,kill=1@9", seed);
        struct rig *rig = rig_open(&cohi_engine_sim_channel, 2, script);
        for (uint32_t number = 0; number < 8; number++)
            assert_int_equal(rig->engine->channel->send(rig->endpoint[1], 0, &number, sizeof number,
                                                        NULL, 0, NULL),
                             COH_OK);
        assert_int_equal(rig->engine->channel->send(rig->endpoint[1], 0, "x", 1, NULL, 0, NULL),
                         COH_PEER_LOST);
        while (atomic_load(&rig->world[0].lost_rank) != 1)
            rig->engine->lifecycle->idle(rig->endpoint[0], 1000000);
        int messages = atomic_load(&rig->world[0].messages);
        for (int i = 0; i < messages; i++)
            assert_int_equal(rig->world[0].message[i].number, i);
        some += messages < 8;
        all += messages == 8;
        rig_close(rig);
    }
    assert_true(some > 0);
    assert_true(all > 0);
}

/* ---- stall ---- */

static _Atomic uint64_t stalled_ns;

static void stall_for_a_while(struct rig *rig, int rank)
{
    uint64_t value = 6, got = 0;
    if (rank == 1) {
        uint64_t begin = cohi_now_ns();
        assert_int_equal(rig_put(rig, 1, 1, 0, &value, sizeof value, NULL), COH_OK);
        atomic_store(&stalled_ns, cohi_now_ns() - begin);
        return;
    }
    uint64_t begin = cohi_now_ns();
    cohi_op op = {0};
    assert_int_equal(rig_put(rig, 0, 1, 64, &value, sizeof value, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    assert_int_equal(rig_get(rig, 0, 1, 64, &got, sizeof got, &op), COH_OK);
    assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
    assert_int_equal(got, 6);
    assert_true(cohi_now_ns() - begin < 5 * COHI_NS_PER_S); /* the stall is far longer */
    rig_close_rank(rig, 0);
}

static void test_stall_for_seconds(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=2,stall=1@1:0.3");
    rig_run(rig, stall_for_a_while);
    assert_true(atomic_load(&stalled_ns) >= 3 * COHI_NS_PER_S / 10);
    rig_close(rig);
}

/* Rank 1 stalls for good; the others access its memory, and leave, which lets it go. */
static void test_stall_until_others_left(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=2,stall=1@1");
    rig_run(rig, stall_for_a_while);
    rig_close(rig);
}

static void all_quiet(struct rig *rig, int rank)
{
    assert_int_equal(rig_quiet(rig, rank), COH_OK);
}

static void test_when_all_stall_all_go_on(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 3, "seed=2,stall=0@1,stall=1@1,stall=2@1");
    rig_run(rig, all_quiet);
    rig_close(rig);
}

static void test_killed_rank_frees_the_stalled(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=2,stall=0@1,kill=1@1");
    struct rig_thread stalled = {.rig = rig, .rank = 0, .body = all_quiet};
    assert_int_equal(pthread_create(&stalled.thread, NULL, rig_thread_entry, &stalled), 0);
    assert_int_equal(rig_fence(rig, 1), COH_PEER_LOST);
    pthread_join(stalled.thread, NULL);
    rig_close(rig);
}

/* ---- cancel ---- */

static void test_cancel_ends_an_op_for_good(void **state)
{
    (void)state;
    int cancelled = 0;
    for (int seed = 0; seed < 20; seed++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%d,delay=50," RIG_STEADY, seed);
        struct rig *rig = rig_open(&cohi_engine_sim, 1, script);
        char *target = malloc(4096), *source = calloc(1, 4096);
        cohi_op get = {0}, put = {0}, quiet = {0};
        assert_int_equal(rig_get(rig, 0, 0, 0, target, 4096, &get), COH_OK);
        assert_int_equal(rig_put(rig, 0, 0, 0, source, 4096, &put), COH_OK);
        assert_int_equal(rig->engine->rma->quiet(rig->endpoint[0], 0, &quiet), COH_OK);
        cohi_op *ops[] = {&get, &put, &quiet};
        for (int i = 0; i < 3; i++) {
            int was_done = rig_done(ops[i]);
            rig->engine->lifecycle->cancel(rig->endpoint[0], ops[i]);
            assert_true(rig_done(ops[i]));
            assert_int_equal(ops[i]->status, was_done ? COH_OK : COH_TRANSPORT);
            cancelled += !was_done;
        }
        free(target); /* an event that still knew it would be found by the sanitizer */
        free(source);
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        rig_close(rig);
    }
    assert_true(cancelled > 20);
}

/* ---- closing ---- */

/* Leaving completes what was issued and tells the others; closing alone does neither. */
static void test_a_rank_leaves_before_it_closes(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=2,patience=1,delay=1000");
    uint64_t one = 1;
    cohi_op left = COHI_NEW_OP;
    assert_int_equal(rig_put(rig, 0, 1, 0, &one, sizeof one, NULL), COH_OK);
    assert_int_equal(rig_word(rig, 1, 0), 0);
    assert_int_equal(rig->engine->lifecycle->leave(rig->endpoint[0], &left), COH_OK);
    while (!rig_done(&left))
        rig->engine->lifecycle->progress(rig->endpoint[0]);
    assert_int_equal(left.status, COH_OK);
    assert_int_equal(rig_word(rig, 1, 0), 1);
    assert_int_equal(atomic_load(&rig->world[1].left_count), 1);
    rig_close_rank(rig, 0);
    assert_int_equal(rig_put(rig, 1, 0, 0, &one, sizeof one, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 1), COH_PEER_LOST);
    rig_close(rig);
}

static void test_closing_alone_loses_what_is_under_way(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=2,patience=1,delay=1000");
    uint64_t one = 1;
    assert_int_equal(rig_put(rig, 0, 1, 0, &one, sizeof one, NULL), COH_OK);
    rig_close_rank(rig, 0);
    assert_int_equal(rig_word(rig, 1, 0), 0);
    rig_close(rig);
}

/* A quiet says for whom it waits until it is done. */
static void test_quiet_tells_for_whom_it_waits(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 3, "seed=4,patience=1,delay=1000");
    uint64_t one = 1;
    cohi_op none = COHI_NEW_OP, quiet = COHI_NEW_OP;
    assert_int_equal(rig->engine->rma->quiet(rig->endpoint[0], 0, &none), COH_OK);
    assert_int_equal(atomic_load(&none.waits_for), -1);
    assert_int_equal(rig_put(rig, 0, 2, 0, &one, sizeof one, NULL), COH_OK);
    assert_int_equal(rig->engine->rma->quiet(rig->endpoint[0], 0, &quiet), COH_OK);
    assert_int_equal(atomic_load(&quiet.waits_for), 2);
    while (!rig_done(&none) || !rig_done(&quiet))
        rig->engine->lifecycle->progress(rig->endpoint[0]);
    rig_close(rig);
}

/* A call that fails leaves nothing behind: the next one works. */
static void test_a_call_fails_once(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 2, "seed=1,patience=1,fail=0@1");
    uint64_t one = 1;
    assert_int_equal(rig_put(rig, 0, 1, 0, &one, sizeof one, NULL), COH_TRANSPORT);
    assert_int_equal(rig_put(rig, 0, 1, 0, &one, sizeof one, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    assert_int_equal(rig_word(rig, 1, 0), 1);
    rig_close(rig);
}

static void test_ranks_of_a_host_are_mapped(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 5, "seed=1,hosts=2");
    for (int rank = 0; rank < 5; rank++)
        for (int other = 0; other < 5; other++) {
            bool mapped =
                rig->engine->memory->peer_pointer(rig->endpoint[rank], RIG_SEGMENT, other) != NULL;
            assert_int_equal(mapped, (rank < 3) == (other < 3));
        }
    rig_close(rig);
}

static void leave_early(struct rig *rig, int rank)
{
    uint64_t one = 1;
    for (int i = 0; i < 10 * (rank + 1); i++) {
        assert_int_equal(rig_put(rig, rank, rank, 0, &one, sizeof one, NULL), COH_OK);
        assert_int_equal(rig_quiet(rig, rank), COH_OK);
    }
}

static void *leave_in_thread(void *arg)
{
    struct rig_thread *thread = arg;
    leave_early(thread->rig, thread->rank);
    return NULL;
}

/* Two threads a rank, and ranks whose threads end while others go on. */
static void test_several_threads_a_rank(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 3, "seed=2,patience=5");
    struct rig_thread threads[6];
    for (int i = 0; i < 6; i++) {
        threads[i] = (struct rig_thread){.rig = rig, .rank = i % 3};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, leave_in_thread, &threads[i]), 0);
    }
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i].thread, NULL);
    rig_close(rig);
}

/* ---- replay ---- */

static char trace_line[128];

static void keep_trace(void *arg, coh_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    if (strstr(message, "trace"))
        snprintf(trace_line, sizeof trace_line, "%s", message);
}

/* Rounds of puts of random size to everybody, each ended by a signal that all wait for: what core's
 * barriers do. */
static void exchange(struct rig *rig, int rank)
{
    enum { ROUNDS = 30, ROOM = 1024, SIGNALS = 60000 };
    char source[ROOM];
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        memset(source, (int)round, sizeof source);
        for (int to = 0; to < rig->size; to++) {
            size_t bytes = (size_t)((round * 131 + (uint64_t)rank * 17) % ROOM) + 1;
            cohi_op op = {0};
            assert_int_equal(rig_put(rig, rank, to, (uint64_t)rank * ROOM, source, bytes,
                                     round % 2 ? &op : NULL),
                             COH_OK);
            if (round % 2)
                assert_int_equal(rig_wait(rig, rank, &op), COH_OK);
            assert_int_equal(rig_fence(rig, rank), COH_OK);
            assert_int_equal(
                rig->engine->atomic->post(
                    rig->endpoint[rank], (cohi_remote){0, to, RIG_SEGMENT, SIGNALS},
                    &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U64, &(uint64_t){1}, NULL}),
                COH_OK);
        }
        assert_int_equal(rig_quiet(rig, rank), COH_OK);
        while (rig_word(rig, rank, SIGNALS) < round * (uint64_t)rig->size) {
            rig->engine->lifecycle->progress(rig->endpoint[rank]);
            rig->engine->lifecycle->idle(rig->endpoint[rank], 1000000);
        }
    }
    rig_close_rank(rig, rank);
}

static void run_exchange(int seed, const char *words)
{
    char script[128];
    snprintf(script, sizeof script, "seed=%d,patience=20000,%s", seed, words);
    struct rig *rig = rig_open(&cohi_engine_sim, 4, script);
    rig_run(rig, exchange);
    rig_close(rig);
}

static void test_seed_replays(void **state)
{
    (void)state;
    char first[128], other[128] = "";
    coh_log_to(keep_trace, NULL, COH_LOG_INFO);
    for (int seed = 1; seed <= 5; seed++) {
        run_exchange(seed, "delay=16");
        memcpy(first, trace_line, sizeof first);
        assert_non_null(strstr(first, "steps, trace "));
        run_exchange(seed, "delay=16");
        assert_string_equal(trace_line, first);
        const char *trace = strstr(first, "trace ");
        assert_string_not_equal(trace, other);
        snprintf(other, sizeof other, "%s", trace);
    }
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

/* The whole run, its end included: waits for the stalled or dead take simulated time. */
static void exchange_until_killed(struct rig *rig, int rank)
{
    uint64_t one = 1;
    for (int i = 0; i < 40; i++) {
        coh_status status = rig_put(rig, rank, (rank + 1) % rig->size, 0, &one, 8, NULL);
        if (status == COH_OK)
            status = rig_quiet(rig, rank);
        assert_true(status == COH_OK || status == COH_PEER_LOST);
    }
    rig_close_rank(rig, rank);
}

static void test_kill_replays(void **state)
{
    (void)state;
    char first[128] = "";
    coh_log_to(keep_trace, NULL, COH_LOG_INFO);
    for (int run = 0; run < 4; run++) {
        struct rig *rig = rig_open(&cohi_engine_sim, 4, "seed=5,patience=20000,kill=2@17");
        rig_run(rig, exchange_until_killed);
        rig_close(rig);
        if (run > 0)
            assert_string_equal(trace_line, first);
        memcpy(first, trace_line, sizeof first);
    }
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

static char seed_line[128];

static void keep_seed(void *arg, coh_log_level level, const char *message)
{
    (void)arg;
    (void)level;
    if (strstr(message, "replays)"))
        snprintf(seed_line, sizeof seed_line, "%s", message);
}

static void test_drawn_seed_is_told(void **state)
{
    (void)state;
    uint64_t seed, again;
    coh_log_to(keep_seed, NULL, COH_LOG_INFO);
    rig_close(rig_open(&cohi_engine_sim, 1, ""));
    assert_int_equal(sscanf(seed_line,
                            "sim: seed %" SCNu64 " (COHORT_SIM=seed=%" SCNu64 " replays)", &seed,
                            &again),
                     2);
    assert_int_equal(seed, again);
    rig_close(rig_open(&cohi_engine_sim, 1, "delay=3"));
    assert_non_null(strstr(seed_line, "(COHORT_SIM=delay=3,seed="));
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_nothing_is_mapped),
        cmocka_unit_test(test_world_of_one_without_a_crew),
        cmocka_unit_test(test_reach_is_checked),
        cmocka_unit_test(test_removed_segment_fails_at_quiet),
        cmocka_unit_test(test_script_words),
        cmocka_unit_test(test_bad_scripts),
        cmocka_unit_test(test_bad_script_leaves_nothing),
        cmocka_unit_test(test_kill_strikes_at_its_step),
        cmocka_unit_test(test_operations_on_a_killed_rank_fail),
        cmocka_unit_test(test_killed_ranks_last_messages),
        cmocka_unit_test(test_stall_for_seconds),
        cmocka_unit_test(test_stall_until_others_left),
        cmocka_unit_test(test_when_all_stall_all_go_on),
        cmocka_unit_test(test_killed_rank_frees_the_stalled),
        cmocka_unit_test(test_cancel_ends_an_op_for_good),
        cmocka_unit_test(test_a_rank_leaves_before_it_closes),
        cmocka_unit_test(test_closing_alone_loses_what_is_under_way),
        cmocka_unit_test(test_quiet_tells_for_whom_it_waits),
        cmocka_unit_test(test_a_call_fails_once),
        cmocka_unit_test(test_ranks_of_a_host_are_mapped),
        cmocka_unit_test(test_several_threads_a_rank),
        cmocka_unit_test(test_seed_replays),
        cmocka_unit_test(test_kill_replays),
        cmocka_unit_test(test_drawn_seed_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
