/* Sealed links of engine tcp whose records are changed, swapped, repeated, cut or inserted on the way,
 * and strangers at them: docs/faults.md F23, F24 and F36. */
#include "tcp_proxy.h"

#include <cohort.h>

/* ---- what the library says ---- */

enum { LINES_MAX = 64, LINE_BYTES = 400 };

static struct {
    pthread_mutex_t lock;
    int count;
    char lines[LINES_MAX][LINE_BYTES];
} heard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void hear(void *arg, coh_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    pthread_mutex_lock(&heard.lock);
    if (heard.count < LINES_MAX)
        snprintf(heard.lines[heard.count++], LINE_BYTES, "%s", line);
    pthread_mutex_unlock(&heard.lock);
}

static void forget_lines(void)
{
    pthread_mutex_lock(&heard.lock);
    heard.count = 0;
    pthread_mutex_unlock(&heard.lock);
}

/* How many lines hold both. */
static int count_lines(const char *one, const char *other)
{
    int found = 0;
    pthread_mutex_lock(&heard.lock);
    for (int i = 0; i < heard.count; i++)
        found += strstr(heard.lines[i], one) && strstr(heard.lines[i], other);
    pthread_mutex_unlock(&heard.lock);
    return found;
}

static void await_line(const char *one, const char *other)
{
    for (int i = 0; i < 3000 && count_lines(one, other) == 0; i++)
        usleep(1000);
    if (count_lines(one, other) == 0)
        fail_msg("no line has '%s' and '%s'", one, other);
}

/* ---- trouble with records ---- */

enum mischief {
    FLIP_HEAD = 0,
    FLIP_BODY,
    FLIP_TAG,
    SWAP,
    REPEAT,
    TAKE_OUT,
    INSERT,
    REFLECT, /* a record of the other direction */
    TRUNCATE,
    MISCHIEFS
};

struct plan {
    enum mischief mischief;
    bool from_caller; /* in which direction */
    unsigned at;      /* the record, of which the first is the hello or its answer */
    unsigned char held[COHI_SEAL_RECORD_BYTES];
    size_t held_bytes;
    atomic_int done;
};

static bool pass_on(struct pipe *pipe, const unsigned char *bytes, size_t count)
{
    return send(pipe->to, bytes, count, MSG_NOSIGNAL) == (ssize_t)count;
}

/* The pipes of a connection are made in turn, the caller's first. */
static bool is_from_caller(const struct pipe *pipe)
{
    return (pipe - pipe->proxy->pipes) % 2 == 0;
}

static bool flip(struct pipe *pipe, struct plan *plan, unsigned char *record, size_t bytes)
{
    size_t at = plan->mischief == FLIP_HEAD  ? plan->at % COHI_SEAL_HEAD_BYTES
                : plan->mischief == FLIP_TAG ? bytes - 1 - plan->at % COHI_SEAL_TAG_BYTES
                                             : COHI_SEAL_HEAD_BYTES;
    record[at] ^= (unsigned char)(1 << plan->at % 8);
    return pass_on(pipe, record, bytes);
}

/* Its own record comes back to who sent it. */
static bool reflect(struct pipe *pipe, unsigned char *record, size_t bytes)
{
    return send(pipe->from, record, bytes, MSG_NOSIGNAL) == (ssize_t)bytes
           && pass_on(pipe, record, bytes);
}

static bool do_mischief(struct pipe *pipe, struct plan *plan, unsigned char *record, size_t bytes)
{
    unsigned char forged[COHI_SEAL_EXTRA_BYTES + 8] = {COHI_SEAL_DATA, 8};
    switch (plan->mischief) {
    case SWAP:
        memcpy(plan->held, record, bytes);
        plan->held_bytes = bytes;
        return true;
    case REPEAT:
        return pass_on(pipe, record, bytes) && pass_on(pipe, record, bytes);
    case TAKE_OUT:
        return true;
    case INSERT:
        return pass_on(pipe, forged, sizeof forged) && pass_on(pipe, record, bytes);
    case REFLECT:
        return reflect(pipe, record, bytes);
    case TRUNCATE:
        (void)pass_on(pipe, record, bytes / 2);
        shutdown(pipe->from, SHUT_RDWR);
        return false;
    default:
        return flip(pipe, plan, record, bytes);
    }
}

static bool on_record(struct pipe *pipe, unsigned char *record, size_t bytes, unsigned number)
{
    struct plan *plan = pipe->proxy->context;
    if (is_from_caller(pipe) != plan->from_caller)
        return pass_on(pipe, record, bytes);
    if (number == plan->at) {
        atomic_store(&plan->done, 1);
        return do_mischief(pipe, plan, record, bytes);
    }
    if (!pass_on(pipe, record, bytes))
        return false;
    size_t held = plan->held_bytes;
    plan->held_bytes = 0;
    return held == 0 || pass_on(pipe, plan->held, held);
}

enum { BLOCK = 1000, BLOCKS = 400 };

/* Puts one block after another, each with bytes of its own, and gets them back, until it fails. */
static void put_blocks(struct rig *rig, const unsigned char *source)
{
    coh_status status = COH_OK;
    unsigned char back[BLOCK];
    for (int i = 0; i < BLOCKS && status == COH_OK; i++) {
        cohi_op op = COHI_NEW_OP;
        size_t at = (size_t)i * BLOCK;
        memset(back, 0, sizeof back);
        if (rig_put(rig, 0, 1, at, source + at, BLOCK, NULL) != COH_OK
            || rig_get(rig, 0, 1, at, back, BLOCK, &op) != COH_OK)
            break;
        status = rig_wait(&op);
        for (int j = 0; j < BLOCK; j++) /* all of it, or what was there before */
            assert_true(back[j] == source[at + (size_t)j] || (status != COH_OK && back[j] == 0));
    }
}

static bool is_zero(const char *memory, size_t bytes)
{
    return memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0;
}

static void check_mischief(enum mischief mischief, bool from_caller, unsigned at)
{
    static unsigned char source[BLOCKS * BLOCK];
    struct plan *plan = calloc(1, sizeof *plan);
    *plan = (struct plan){.mischief = mischief, .from_caller = from_caller, .at = at};
    struct route *route = open_route(
        &(struct proxy){.seed = 1, .reset_at = -1, .on_record = on_record, .context = plan},
        COHI_NS_PER_S);
    struct rig *rig = route->rig;
    rig_fill(source, sizeof source, 1);
    forget_lines();
    put_blocks(rig, source);
    assert_int_equal(atomic_load(&plan->done), 1);
    for (int rank = 0; rank < RANKS; rank++)
        assert_true(rig_until(&rig->world[rank].lost[1 - rank], 1));
    /* No byte but those that were sent, where they belong. */
    bool right = true;
    for (int i = 0; i < BLOCKS * BLOCK; i++) {
        unsigned char byte = (unsigned char)rig->memory[1][i];
        right = right && (byte == 0 || byte == source[i]);
    }
    assert_true(right);
    assert_true(is_zero(rig->memory[1] + BLOCKS * BLOCK, RIG_BYTES - BLOCKS * BLOCK));
    assert_true(is_zero(rig->memory[0], RIG_BYTES));
    if (mischief == TRUNCATE) {
        await_line("rank 0: the link to rank 1 broke", "");
        if (!from_caller
            || at > 1) /* a called rank that has heard nothing yet calls back instead */
            await_line("rank 1: the link to rank 0 broke", "");
    } else if (mischief != FLIP_HEAD) { /* a length that is longer now may first take long */
        await_line("ends the link", "does not verify");
        await_line("ended the link", "does not verify");
    }
    close_route(route);
    free(plan);
}

/* Of a call that fails before its hello is answered another is made, so the first records are left
 * alone here. */
static void mischief_ends_the_link_on_both_sides(void **state)
{
    (void)state;
    coh_log_to(hear, NULL, COH_LOG_INFO);
    for (int mischief = 0; mischief < MISCHIEFS; mischief++)
        for (int from_caller = 0; from_caller < 2; from_caller++)
            for (unsigned at = 1; at < 6; at += 3)
                check_mischief((enum mischief)mischief, from_caller, at);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

/* ---- keys that are renewed ---- */

static void *run_with_limits(const cohi_seal_limits *limits)
{
    struct route *route =
        open_route(&(struct proxy){.seed = 3, .piece = 5000, .reset_at = -1}, 10 * COHI_NS_PER_S);
    struct program programs[RANKS];
    pthread_barrier_t end;
    for (int rank = 0; rank < RANKS; rank++)
        route->rig->endpoint[rank]->limits = *limits;
    pthread_barrier_init(&end, NULL, RANKS);
    for (int rank = 0; rank < RANKS; rank++) {
        programs[rank] =
            (struct program){.rig = route->rig, .rank = rank, .dice = (uint64_t)rank, .end = &end};
        pthread_create(&programs[rank].thread, NULL, run_program, &programs[rank]);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(programs[rank].thread, NULL);
    close_route(route);
    pthread_barrier_destroy(&end);
    return NULL;
}

static void renewed_keys_go_unnoticed(void **state)
{
    (void)state;
    run_with_limits(&(cohi_seal_limits){.records = 1, .bytes = 1 << 30});
    run_with_limits(&(cohi_seal_limits){.records = 5, .bytes = 1 << 30});
    run_with_limits(&(cohi_seal_limits){.records = 1 << 30, .bytes = 3000});
}

/* ---- both ways ---- */

static void all_alike_or_not_at_all(void **state)
{
    (void)state;
    static const int hosts[] = {0, 1};
    struct rig *rig = rig_make(2, 0, COHI_NS_PER_S);
    cohi_tcp_address address;
    memcpy(&address, rig->addresses[1], sizeof address);
    address.clear = 1;
    memcpy(rig->addresses[1], &address, sizeof address);
    assert_int_equal(
        cohi_engine_tcp.lifecycle->connect(
            rig->endpoint[0], (const unsigned char(*)[COHI_ADDRESS_BYTES])rig->addresses, hosts),
        COH_MISMATCH);
    assert_non_null(strstr(coh_last_error(), "rank 1 COHORT_NET=clear"));
    rig_close(rig);
}

static cohi_network network_of(cohi_net net)
{
    struct rig *rig = rig_make_net(net, false, 2, 0, COHI_NS_PER_S);
    cohi_engine_facts facts = {.size = sizeof facts};
    rig_connect(rig);
    cohi_engine_tcp.lifecycle->query(rig->endpoint[0], &facts);
    rig_close(rig);
    return facts.network;
}

static void what_is_in_force_is_told(void **state)
{
    (void)state;
    assert_int_equal(network_of(COHI_NET_SEAL), COHI_NETWORK_SEALED);
    assert_int_equal(network_of(COHI_NET_CLEAR), COHI_NETWORK_CLEAR);
}

/* Whoever reads the network finds the text in the clear, and not where it is sealed. */
struct ear {
    atomic_int heard;
};

static bool listen_in(struct pipe *pipe, unsigned char *record, size_t bytes, unsigned number)
{
    struct ear *ear = pipe->proxy->context;
    (void)number;
    if (memmem(record, bytes, "a secret of forty", 17))
        atomic_store(&ear->heard, 1);
    return pass_on(pipe, record, bytes);
}

static void nothing_is_overheard(void **state)
{
    (void)state;
    struct ear ear = {0};
    char text[200];
    struct route *route = open_route(
        &(struct proxy){.seed = 1, .reset_at = -1, .on_record = listen_in, .context = &ear},
        10 * COHI_NS_PER_S);
    memset(text, 'x', sizeof text);
    memcpy(text + 50, "a secret of forty", 17);
    assert_int_equal(rig_put(route->rig, 0, 1, 0, text, sizeof text, NULL), COH_OK);
    assert_int_equal(rig_quiet(route->rig, 0), COH_OK);
    assert_memory_equal(route->rig->memory[1], text, sizeof text);
    assert_int_equal(atomic_load(&ear.heard), 0);
    close_route(route);
}

/* ---- strangers ---- */

/* A rig whose rank 1 is played by hand, on links that are sealed. */
static struct rig *open_sealed(void)
{
    struct rig *rig = rig_make_net(COHI_NET_SEAL, false, 3, 1 << 1, 10 * COHI_NS_PER_S);
    rig_connect(rig);
    return rig;
}

static void works(struct rig *rig)
{
    uint64_t word = 77, back = 0;
    cohi_op op = COHI_NEW_OP;
    assert_int_equal(rig_put(rig, 0, 2, 512, &word, sizeof word, NULL), COH_OK);
    assert_int_equal(rig_get(rig, 0, 2, 512, &back, sizeof back, &op), COH_OK);
    assert_int_equal(rig_wait(&op), COH_OK);
    assert_int_equal(back, 77);
}

static void expect_refusal(struct rig *rig, int fd, const char *words)
{
    assert_true(raw_is_closed(fd));
    close(fd);
    await_line("refused", words);
    works(rig);
    rig_close(rig);
    forget_lines();
}

/* Behind the handshake nothing is taken in the clear. */
static void a_hello_in_the_clear_is_refused(void **state)
{
    (void)state;
    struct rig *rig = open_sealed();
    cohi_tcp_hello hello[2] = {raw_hello(rig, 1, 2), raw_hello(rig, 1, 2)};
    int fd = raw_connect(rig, 2);
    coh_log_to(hear, NULL, COH_LOG_WARN);
    raw_prove(rig, fd, 1, 2);
    raw_send(fd, hello, sizeof hello);
    expect_refusal(rig, fd, "changed on the way");
    coh_log_to(NULL, NULL, COH_LOG_OFF);
}

/* What a rank said is recorded, and said again on a new connection: the handshake does not go on. */
static void half_a_handshake_is_refused(void **state)
{
    (void)state;
    struct rig *rig = open_sealed();
    static const unsigned char beginning[] = "\x16\x03\x01\x01\x27\x01\x00\x01\x23\x03\x03";
    int silent = raw_connect(rig, 2), cut = raw_connect(rig, 2);
    raw_send(silent, beginning, sizeof beginning - 1);
    raw_send(cut, beginning, sizeof beginning - 1);
    shutdown(cut, SHUT_WR);
    assert_true(raw_is_closed(cut));
    works(rig);
    close(cut);
    close(silent);
    rig_close(rig);
}

/* However many come, they are told in one line. */
static void strangers_fill_no_log(void **state)
{
    (void)state;
    struct rig *rig = open_sealed();
    unsigned char garbage[400];
    coh_log_to(hear, NULL, COH_LOG_WARN);
    forget_lines();
    for (unsigned i = 0; i < 50; i++) {
        int fd = raw_connect(rig, 2);
        rig_fill(garbage, sizeof garbage, i);
        raw_send(fd, garbage, sizeof garbage);
        assert_true(raw_is_closed(fd));
        close(fd);
    }
    assert_int_equal(count_lines("refused", "strangers") + count_lines("refused", "stranger;"), 1);
    works(rig);
    coh_log_to(NULL, NULL, COH_LOG_OFF);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mischief_ends_the_link_on_both_sides),
        cmocka_unit_test(renewed_keys_go_unnoticed),
        cmocka_unit_test(all_alike_or_not_at_all),
        cmocka_unit_test(what_is_in_force_is_told),
        cmocka_unit_test(nothing_is_overheard),
        cmocka_unit_test(a_hello_in_the_clear_is_refused),
        cmocka_unit_test(half_a_handshake_is_refused),
        cmocka_unit_test(strangers_fill_no_log),
    };
    if (cohi_tls_available() != COH_OK)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
