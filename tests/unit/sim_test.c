/* The simulator's network: what it may reorder, split and delay, and what it must not:
 * docs/faults.md F22. */
#include "sim_rig.h"

enum { SEEDS = 40, FAR = 4096 };

static struct rig *open_seeded(int size, const char *words, int seed)
{
    char script[128];
    snprintf(script, sizeof script, "seed=%d,%s", seed, words);
    return rig_open(&cohi_engine_sim, size, script);
}

static void fill(char *bytes, size_t count, unsigned salt)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)(i * 7 + salt + 1);
}

/* ---- put and get ---- */

static void test_bytes_arrive_and_no_others(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 3, 8, 15, 16, 17, 64, 65, 4095, 4097, 40000};
    static char source[RIG_BYTES], back[RIG_BYTES];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct rig *rig = open_seeded(2, "patience=1", (int)i);
        size_t bytes = lengths[i], offset = 101;
        fill(source, bytes, (unsigned)i);
        cohi_op sent = {0}, got = {0};
        assert_int_equal(rig_put(rig, 0, 1, offset, source, bytes, &sent), COH_OK);
        assert_int_equal(rig_wait(rig, 0, &sent), COH_OK);
        memset(source, 0, sizeof source); /* the op is done: it is ours again */
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        assert_int_equal(rig_get(rig, 1, 1, 0, back, RIG_BYTES, &got), COH_OK);
        assert_int_equal(rig_wait(rig, 1, &got), COH_OK);
        fill(source + offset, bytes, (unsigned)i);
        assert_memory_equal(back, source, RIG_BYTES);
        memset(source, 0, sizeof source);
        rig_close(rig);
    }
}

static void test_large_put_without_a_copy(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    struct rig *rig = rig_open(&cohi_engine_sim, 1, "seed=3," RIG_STEADY);
    char *memory = calloc(1, BYTES), *source = malloc(BYTES);
    void *base;
    cohi_segment_spec spec = {.id = 2, .bytes = BYTES, .existing = memory};
    assert_int_equal(rig->engine->memory->segment_add(rig->endpoint[0], &spec, &base), COH_OK);
    assert_ptr_equal(base, memory);
    fill(source, BYTES, 9);
    cohi_op op = {0};
    assert_int_equal(
        rig->engine->rma->put(rig->endpoint[0], (cohi_remote){0, 0, 2, 0}, source, BYTES, &op),
        COH_OK);
    assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
    assert_memory_equal(memory, source, BYTES); /* so large a source is free when it has arrived */
    rig_close(rig);
    free(memory);
    free(source);
}

static void test_put_to_itself_may_overlap(void **state)
{
    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        char expected[600];
        fill(rig->memory[0], 600, 5);
        memcpy(expected, rig->memory[0], 600);
        memmove(expected + 50, expected, 500);
        assert_int_equal(rig_put(rig, 0, 0, 50, rig->memory[0], 500, NULL), COH_OK);
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        assert_memory_equal(rig->memory[0], expected, 600);
        rig_close(rig);
    }
}

/* Bytes of a put that have arrived so far. */
static size_t count_arrived(const char *memory, const char *source, size_t bytes)
{
    size_t arrived = 0;
    for (size_t i = 0; i < bytes; i++)
        arrived += memory[i] == source[i];
    return arrived;
}

static void test_large_puts_arrive_in_parts(void **state)
{
    (void)state;
    int parted = 0, back_first = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        char source[FAR];
        memset(source, 1, sizeof source);
        assert_int_equal(rig_put(rig, 0, 0, 0, source, FAR, NULL), COH_OK);
        for (int step = 0; step < 20; step++) {
            size_t arrived = count_arrived(rig->memory[0], source, FAR);
            parted += arrived > 0 && arrived < FAR;
            back_first += rig->memory[0][FAR - 1] && !rig->memory[0][0];
            rig_pass(rig, 0);
        }
        assert_int_equal(count_arrived(rig->memory[0], source, FAR), FAR);
        rig_close(rig);
    }
    assert_true(parted > 0);
    assert_true(back_first > 0);
}

static void test_split_1_is_one_piece(void **state)
{
    (void)state;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY ",split=1", seed);
        char source[FAR];
        memset(source, 1, sizeof source);
        assert_int_equal(rig_put(rig, 0, 0, 0, source, FAR, NULL), COH_OK);
        for (int step = 0; step < 20; step++) {
            size_t arrived = count_arrived(rig->memory[0], source, FAR);
            assert_true(arrived == 0 || arrived == FAR);
            rig_pass(rig, 0);
        }
        rig_close(rig);
    }
}

static void test_source_is_read_late_until_quiet(void **state)
{
    (void)state;
    int late = 0, pending = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        char small[COHI_INLINE_BYTES], large[FAR], waited[FAR];
        cohi_op op = {0};
        memset(small, 1, sizeof small);
        memset(large, 1, sizeof large);
        memset(waited, 1, sizeof waited);
        assert_int_equal(rig_put(rig, 0, 0, 0, small, sizeof small, NULL), COH_OK);
        memset(small, 2, sizeof small);
        assert_int_equal(rig_put(rig, 0, 0, FAR, large, FAR, NULL), COH_OK);
        memset(large, 2, sizeof large);
        assert_int_equal(rig_put(rig, 0, 0, 2 * FAR, waited, FAR, &op), COH_OK);
        pending += !rig_done(&op);
        assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
        memset(waited, 2, sizeof waited);
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        memset(small, 1, sizeof small);
        memset(waited, 1, sizeof waited);
        assert_memory_equal(rig->memory[0], small, sizeof small);
        assert_memory_equal(rig->memory[0] + 2 * FAR, waited, FAR);
        late += memchr(rig->memory[0] + FAR, 2, FAR) != NULL;
        rig_close(rig);
    }
    assert_true(late > 0);
    assert_true(pending > 0);
}

static void test_delay_0_is_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim, 1, "seed=1,delay=0," RIG_STEADY);
    char source[FAR], back[FAR];
    cohi_op put = {0}, get = {0}, quiet = {0};
    fill(source, FAR, 3);
    assert_int_equal(rig_put(rig, 0, 0, 0, source, FAR, &put), COH_OK);
    assert_true(rig_done(&put));
    assert_memory_equal(rig->memory[0], source, FAR);
    assert_int_equal(rig_get(rig, 0, 0, 0, back, FAR, &get), COH_OK);
    assert_true(rig_done(&get));
    assert_memory_equal(back, source, FAR);
    assert_int_equal(rig->engine->rma->quiet(rig->endpoint[0], 0, &quiet), COH_OK);
    assert_true(rig_done(&quiet));
    rig_close(rig);
}

/* ---- order ---- */

enum { DATA = 0, FLAG = 64 };

/* Puts data, then flag; returns how often the flag was there without the data. */
static int flag_before_data(const char *words, int fence)
{
    int early = 0;
    uint64_t one = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, words, seed);
        assert_int_equal(rig_put(rig, 0, 0, DATA, &one, sizeof one, NULL), COH_OK);
        if (fence)
            assert_int_equal(rig_fence(rig, 0), COH_OK);
        assert_int_equal(rig_put(rig, 0, 0, FLAG, &one, sizeof one, NULL), COH_OK);
        while (!rig_word(rig, 0, FLAG))
            rig_pass(rig, 0);
        early += !rig_word(rig, 0, DATA);
        rig_close(rig);
    }
    return early;
}

static void test_puts_come_in_either_order_without_fence(void **state)
{
    (void)state;
    int early = flag_before_data(RIG_STEADY, 0);
    assert_in_range(early, 1, SEEDS - 1);
}

static void test_fence_keeps_order(void **state)
{
    (void)state;
    assert_int_equal(flag_before_data(RIG_STEADY, 1), 0);
}

static void test_order_keep_keeps_order(void **state)
{
    (void)state;
    assert_int_equal(flag_before_data(RIG_STEADY ",order=keep", 0), 0);
}

static void test_fence_is_per_target(void **state)
{
    (void)state;
    int passed = 0;
    uint64_t one = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(2, "patience=1", seed);
        assert_int_equal(rig_put(rig, 0, 1, DATA, &one, sizeof one, NULL), COH_OK);
        assert_int_equal(rig_fence(rig, 0), COH_OK);
        assert_int_equal(rig_put(rig, 0, 0, DATA, &one, sizeof one, NULL), COH_OK);
        uint64_t here = 0, there = 0;
        while (!here || !there) {
            here = rig_word(rig, 0, DATA);
            there = rig_word(rig, 1, DATA);
            passed += here && !there;
            rig_pass(rig, 0);
        }
        rig_close(rig);
    }
    assert_true(passed > 0);
}

static void test_contexts_are_opened_and_closed(void **state)
{
    (void)state;
    uint64_t one = 1;
    cohi_remote to = {COHI_CONTEXT_FIRST_FREE, 0, RIG_SEGMENT, DATA};
    struct rig *rig = open_seeded(1, RIG_STEADY, 0);
    const cohi_engine_rma *rma = rig->engine->rma;
    assert_int_equal(rma->put(rig->endpoint[0], to, &one, 8, NULL), COH_TRANSPORT);
    assert_non_null(strstr(coh_last_error(), "context 2, which is not open"));
    assert_int_equal(rma->context_open(rig->endpoint[0], to.context), COH_OK);
    assert_int_equal(rma->put(rig->endpoint[0], to, &one, 8, NULL), COH_OK);
    rma->context_close(rig->endpoint[0], to.context);
    assert_int_equal(rma->put(rig->endpoint[0], to, &one, 8, NULL), COH_TRANSPORT);
    rig_close(rig);
}

static void test_fence_orders_its_own_context_alone(void **state)
{
    (void)state;
    int passed = 0;
    uint64_t one = 1;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        const cohi_engine_rma *rma = rig->engine->rma;
        assert_int_equal(rma->context_open(rig->endpoint[0], 2), COH_OK);
        assert_int_equal(rma->context_open(rig->endpoint[0], 3), COH_OK);
        assert_int_equal(
            rma->put(rig->endpoint[0], (cohi_remote){2, 0, RIG_SEGMENT, DATA}, &one, 8, NULL),
            COH_OK);
        assert_int_equal(rma->fence(rig->endpoint[0], 3), COH_OK);
        assert_int_equal(
            rma->put(rig->endpoint[0], (cohi_remote){3, 0, RIG_SEGMENT, FLAG}, &one, 8, NULL),
            COH_OK);
        while (!rig_word(rig, 0, FLAG))
            rig_pass(rig, 0);
        passed += !rig_word(rig, 0, DATA);
        rig_close(rig);
    }
    assert_true(passed > 0);
}

static void test_quiet_completes_puts_gets_and_atomics(void **state)
{
    (void)state;
    int unfinished = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        uint64_t one = 1, fetched = 0;
        memset(rig->memory[0] + FAR, 5, FAR);
        char got[FAR] = {0}, expected[FAR];
        memset(expected, 5, FAR);
        assert_int_equal(rig_put(rig, 0, 0, DATA, &one, sizeof one, NULL), COH_OK);
        assert_int_equal(rig_get(rig, 0, 0, FAR, got, FAR, NULL), COH_OK);
        assert_int_equal(
            rig->engine->atomic->post(rig->endpoint[0], (cohi_remote){0, 0, RIG_SEGMENT, FLAG},
                                      &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U64, &one, NULL}),
            COH_OK);
        assert_int_equal(rig->engine->atomic->fetch(
                             rig->endpoint[0], (cohi_remote){0, 0, RIG_SEGMENT, FLAG + 64},
                             &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U64, &one, NULL}, &fetched,
                             NULL),
                         COH_OK);
        unfinished += !rig_word(rig, 0, DATA) || memcmp(got, expected, FAR) != 0;
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
        assert_int_equal(rig_word(rig, 0, DATA), 1);
        assert_int_equal(rig_word(rig, 0, FLAG), 1);
        assert_int_equal(rig_word(rig, 0, FLAG + 64), 1);
        assert_memory_equal(got, expected, FAR);
        rig_close(rig);
    }
    assert_true(unfinished > 0);
}

static void test_signal_follows_its_data_alone(void **state)
{
    (void)state;
    int before_earlier_put = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        struct rig *rig = open_seeded(1, RIG_STEADY, seed);
        uint64_t one = 1;
        char source[FAR];
        memset(source, 1, FAR);
        assert_int_equal(rig_put(rig, 0, 0, DATA, &one, sizeof one, NULL), COH_OK);
        assert_int_equal(rig->engine->rma->put_signal(rig->endpoint[0],
                                                      (cohi_remote){0, 0, RIG_SEGMENT, FAR}, source,
                                                      FAR, &(cohi_remote_signal){FLAG, 7, 1}, NULL),
                         COH_OK);
        while (!rig_word(rig, 0, FLAG))
            rig_pass(rig, 0);
        assert_int_equal(rig_word(rig, 0, FLAG), 7);
        assert_memory_equal(rig->memory[0] + FAR, source, FAR);
        before_earlier_put += !rig_word(rig, 0, DATA);
        rig_close(rig);
    }
    assert_true(before_earlier_put > 0);
}

static void test_signal_of_nothing_signals(void **state)
{
    (void)state;
    struct rig *rig = open_seeded(1, RIG_STEADY, 1);
    cohi_op op = {0};
    assert_int_equal(rig->engine->rma->put_signal(rig->endpoint[0],
                                                  (cohi_remote){0, 0, RIG_SEGMENT, 0}, NULL, 0,
                                                  &(cohi_remote_signal){FLAG, 9, 0}, &op),
                     COH_OK);
    assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    assert_int_equal(rig_word(rig, 0, FLAG), 9);
    rig_close(rig);
}

/* ---- progress ---- */

/* Rank 0 puts and computes, rank 1 looks at its memory: nobody calls in while it arrives. */
static void put_and_compute(struct rig *rig, int rank)
{
    uint64_t one = 1;
    if (rank == 0)
        assert_int_equal(rig_put(rig, 0, 1, FLAG, &one, sizeof one, NULL), COH_OK);
    while (!rig_word(rig, 1, FLAG))
        sched_yield();
}

static void test_arrives_while_nobody_calls(void **state)
{
    (void)state;
    for (int seed = 0; seed < 5; seed++) {
        struct rig *rig = open_seeded(2, "delay=1000", seed);
        rig_run(rig, put_and_compute);
        assert_int_equal(rig_word(rig, 1, FLAG), 1);
        rig_close(rig);
    }
}

static void get_from_a_busy_rank(struct rig *rig, int rank)
{
    uint64_t value = 42, got = 0, done = 1;
    cohi_op op = {0};
    if (rank == 1) {
        while (!rig_word(rig, 1, FLAG)) /* computes, and never calls */
            sched_yield();
        return;
    }
    assert_int_equal(rig_put(rig, 0, 1, DATA, &value, sizeof value, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
    assert_int_equal(rig_get(rig, 0, 1, DATA, &got, sizeof got, &op), COH_OK);
    assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
    assert_int_equal(got, 42);
    assert_int_equal(rig_put(rig, 0, 1, FLAG, &done, sizeof done, NULL), COH_OK);
    assert_int_equal(rig_quiet(rig, 0), COH_OK);
}

static void test_target_need_not_call(void **state)
{
    (void)state;
    struct rig *rig = open_seeded(2, "delay=16", 7);
    rig_run(rig, get_from_a_busy_rank);
    rig_close(rig);
}

/* ---- atomics ---- */

struct atomic_case {
    coh_atomic_op kind;
    coh_dtype dtype;
    double before, operand, compare, after;
};

#define ALL_TYPES(X) X(COH_I32) X(COH_U32) X(COH_I64) X(COH_U64) X(COH_F32) X(COH_F64)
#define INTEGERS(X)  X(COH_I32) X(COH_U32) X(COH_I64) X(COH_U64)

static const struct atomic_case atomic_cases[] = {
#define ROWS(type)                                                                         \
    {COH_ATOMIC_SET, type, 3, 9, 0, 9}, {COH_ATOMIC_ADD, type, 3, 9, 0, 12},               \
        {COH_ATOMIC_FETCH, type, 3, 9, 0, 3}, {COH_ATOMIC_COMPARE_SWAP, type, 3, 9, 3, 9}, \
        {COH_ATOMIC_COMPARE_SWAP, type, 3, 9, 4, 3},
    ALL_TYPES(ROWS)
#undef ROWS
#define ROWS(type)                                                              \
    {COH_ATOMIC_AND, type, 12, 10, 0, 8}, {COH_ATOMIC_OR, type, 12, 10, 0, 14}, \
        {COH_ATOMIC_XOR, type, 12, 10, 0, 6},
        INTEGERS(ROWS)
#undef ROWS
            {COH_ATOMIC_ADD, COH_I32, -3, 1, 0, -2},
    {COH_ATOMIC_ADD, COH_I64, 1, -5, 0, -4},
    {COH_ATOMIC_ADD, COH_I32, 2147483647.0, 1, 0, -2147483648.0}, /* wraps */
    {COH_ATOMIC_ADD, COH_F32, 0.5, 0.25, 0, 0.75},
    {COH_ATOMIC_ADD, COH_F64, 0.5, -0.75, 0, -0.25},
};

static void encode(coh_dtype dtype, double value, void *word)
{
    switch ((int)dtype) {
    case COH_I32:
        memcpy(word, &(int32_t){(int32_t)value}, 4);
        break;
    case COH_U32:
        memcpy(word, &(uint32_t){(uint32_t)value}, 4);
        break;
    case COH_I64:
        memcpy(word, &(int64_t){(int64_t)value}, 8);
        break;
    case COH_U64:
        memcpy(word, &(uint64_t){(uint64_t)value}, 8);
        break;
    case COH_F32:
        memcpy(word, &(float){(float)value}, 4);
        break;
    case COH_F64:
        memcpy(word, &value, 8);
        break;
    }
}

static void check_atomic(struct rig *rig, const struct atomic_case *row, int posted)
{
    unsigned char operand[8] = {0}, compare[8] = {0}, before[8] = {0}, after[8] = {0},
                  result[8] = {0};
    size_t bytes = coh_dtype_size(row->dtype);
    encode(row->dtype, row->operand, operand);
    encode(row->dtype, row->compare, compare);
    encode(row->dtype, row->before, before);
    encode(row->dtype, row->after, after);
    memset(rig->memory[0], 0x5a, 64);
    memcpy(rig->memory[0] + 16, before, bytes);
    cohi_op op = {0};
    if (posted) {
        assert_int_equal(
            rig->engine->atomic->post(rig->endpoint[0], (cohi_remote){0, 0, RIG_SEGMENT, 16},
                                      &(cohi_remote_atomic){row->kind, row->dtype, operand, NULL}),
            COH_OK);
        assert_int_equal(rig_quiet(rig, 0), COH_OK);
    } else {
        assert_int_equal(rig->engine->atomic->fetch(
                             rig->endpoint[0], (cohi_remote){0, 0, RIG_SEGMENT, 16},
                             &(cohi_remote_atomic){row->kind, row->dtype, operand, compare}, result,
                             &op),
                         COH_OK);
        assert_int_equal(rig_wait(rig, 0, &op), COH_OK);
        assert_memory_equal(result, before, bytes);
    }
    assert_memory_equal(rig->memory[0] + 16, after, bytes);
    assert_int_equal(rig->memory[0][15], 0x5a);
    assert_int_equal(rig->memory[0][16 + bytes], 0x5a);
}

static void test_every_atomic(void **state)
{
    (void)state;
    struct rig *rig = open_seeded(1, RIG_STEADY, 11);
    for (size_t i = 0; i < sizeof atomic_cases / sizeof *atomic_cases; i++) {
        const struct atomic_case *row = &atomic_cases[i];
        check_atomic(rig, row, 0);
        if (row->kind != COH_ATOMIC_FETCH && row->kind != COH_ATOMIC_COMPARE_SWAP)
            check_atomic(rig, row, 1);
    }
    rig_close(rig);
}

static void test_atomics_that_do_not_exist(void **state)
{
    (void)state;
    struct rig *rig = open_seeded(1, RIG_STEADY, 1);
    uint64_t value = 0;
    const cohi_engine_atomic *atomic = rig->engine->atomic;
    cohi_endpoint *endpoint = rig->endpoint[0];
    assert_int_equal(atomic->post(endpoint, (cohi_remote){0, 0, RIG_SEGMENT, 0},
                                  &(cohi_remote_atomic){COH_ATOMIC_XOR, COH_F32, &value, NULL}),
                     COH_UNSUPPORTED);
    assert_non_null(strstr(coh_last_error(), "f32"));
    assert_int_equal(atomic->post(endpoint, (cohi_remote){0, 0, RIG_SEGMENT, 0},
                                  &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_I16, &value, NULL}),
                     COH_UNSUPPORTED);
    assert_non_null(strstr(coh_last_error(), "i16"));
    assert_int_equal(atomic->post(endpoint, (cohi_remote){0, 0, RIG_SEGMENT, 0},
                                  &(cohi_remote_atomic){COH_ATOMIC_FETCH, COH_I32, &value, NULL}),
                     COH_INVALID_ARGUMENT);
    rig_close(rig);
}

enum { ADDS = 50 };
static atomic_int drawn[4 * ADDS];

static void add_often(struct rig *rig, int rank)
{
    for (int i = 0; i < ADDS; i++) {
        uint32_t one = 1, old = UINT32_MAX;
        cohi_op op = {0};
        assert_int_equal(rig->engine->atomic->fetch(
                             rig->endpoint[rank], (cohi_remote){0, 0, RIG_SEGMENT, 0},
                             &(cohi_remote_atomic){COH_ATOMIC_ADD, COH_U32, &one, NULL}, &old, &op),
                         COH_OK);
        assert_int_equal(rig_wait(rig, rank, &op), COH_OK);
        assert_in_range(old, 0, 4 * ADDS - 1);
        atomic_fetch_add(&drawn[old], 1);
    }
}

static void test_fetch_add_gives_a_permutation(void **state)
{
    (void)state;
    struct rig *rig = open_seeded(4, "delay=16", 5);
    rig_run(rig, add_often);
    for (int i = 0; i < 4 * ADDS; i++)
        assert_int_equal(atomic_load(&drawn[i]), 1);
    rig_close(rig);
}

/* ---- channel ---- */

enum { MESSAGES = 40 };

static void send_to_all(struct rig *rig, int rank)
{
    for (uint32_t number = 0; number < MESSAGES; number++) {
        for (int to = 0; to < rig->size; to++) {
            char bytes[300] = {0};
            size_t count = number % 3 ? sizeof bytes : sizeof number;
            memcpy(bytes, &number, sizeof number);
            cohi_op op = {0};
            assert_int_equal(rig->engine->channel->send(rig->endpoint[rank], to, bytes,
                                                        sizeof number, bytes + sizeof number,
                                                        count - sizeof number, &op),
                             COH_OK);
            assert_int_equal(rig_wait(rig, rank, &op), COH_OK);
        }
    }
    while (atomic_load(&rig->world[rank].messages) < MESSAGES * rig->size)
        rig->engine->lifecycle->idle(rig->endpoint[rank], 1000000);
}

/* Each pair's messages came in order; returns how often another sender's came between. */
static int check_messages(const struct rig_world *world, int senders)
{
    uint32_t next[RIG_RANKS_MAX] = {0};
    int turns = 0;
    for (int i = 0; i < MESSAGES * senders; i++) {
        const struct rig_message *message = &world->message[i];
        assert_int_equal(message->number, next[message->from]++);
        assert_int_equal(message->count, message->number % 3 ? 300 : 4);
        turns += i > 0 && message->from != message[-1].from;
    }
    return turns;
}

static void test_channel_is_first_in_first_out(void **state)
{
    (void)state;
    const cohi_engine *engines[] = {&cohi_engine_sim, &cohi_engine_sim_channel};
    for (int i = 0; i < 2; i++) {
        struct rig *rig = rig_open(engines[i], 3, "seed=8");
        rig_run(rig, send_to_all);
        for (int rank = 0; rank < 3; rank++)
            assert_true(check_messages(&rig->world[rank], 3) > 3);
        rig_close(rig);
    }
}

/* Calls the engine from within its upcall. */
static void echo(struct rig_world *world, int from, const void *bytes, size_t count)
{
    assert_int_equal(world->rig->engine->channel->send(world->rig->endpoint[world->rank], from,
                                                       bytes, count, NULL, 0, NULL),
                     COH_OK);
}

static void test_upcall_may_call_back(void **state)
{
    (void)state;
    struct rig *rig = rig_open(&cohi_engine_sim_channel, 2, "seed=8,patience=1");
    rig->world[1].on_message = echo;
    uint32_t number = 77;
    assert_int_equal(rig->engine->channel->send(rig->endpoint[0], 1, &number, 4, NULL, 0, NULL),
                     COH_OK);
    while (atomic_load(&rig->world[0].messages) == 0)
        rig->engine->lifecycle->progress(rig->endpoint[0]);
    assert_int_equal(rig->world[0].message[0].number, 77);
    assert_int_equal(rig->world[0].message[0].from, 1);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive_and_no_others),
        cmocka_unit_test(test_large_put_without_a_copy),
        cmocka_unit_test(test_put_to_itself_may_overlap),
        cmocka_unit_test(test_large_puts_arrive_in_parts),
        cmocka_unit_test(test_split_1_is_one_piece),
        cmocka_unit_test(test_source_is_read_late_until_quiet),
        cmocka_unit_test(test_delay_0_is_at_once),
        cmocka_unit_test(test_puts_come_in_either_order_without_fence),
        cmocka_unit_test(test_fence_keeps_order),
        cmocka_unit_test(test_order_keep_keeps_order),
        cmocka_unit_test(test_fence_is_per_target),
        cmocka_unit_test(test_contexts_are_opened_and_closed),
        cmocka_unit_test(test_fence_orders_its_own_context_alone),
        cmocka_unit_test(test_quiet_completes_puts_gets_and_atomics),
        cmocka_unit_test(test_signal_follows_its_data_alone),
        cmocka_unit_test(test_signal_of_nothing_signals),
        cmocka_unit_test(test_arrives_while_nobody_calls),
        cmocka_unit_test(test_target_need_not_call),
        cmocka_unit_test(test_every_atomic),
        cmocka_unit_test(test_atomics_that_do_not_exist),
        cmocka_unit_test(test_fetch_add_gives_a_permutation),
        cmocka_unit_test(test_channel_is_first_in_first_out),
        cmocka_unit_test(test_upcall_may_call_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
