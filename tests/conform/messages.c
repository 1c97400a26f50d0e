/* Messages: docs/semantics.md S43 to S45, and what the header promises of requests. */
#include "conform.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 8, MIDDLE = 5000, LONG = 100000, HUGE_BYTES = 3 << 20 };

/* What is in a message, so that any two differ. */
static uint64_t pattern(int source, int tag, int number)
{
    return (uint64_t)source << 40 | (uint64_t)tag << 20 | (uint64_t)number;
}

static bool send_pattern(coh_team *team, int to, int tag, int number, size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    test_fill(data, bytes, pattern(coh_team_index(team), tag, number));
    bool sent = CHECK_OK(coh_send(team, to, tag, data, bytes));
    memset(data, 0xee, bytes); /* it may be reused */
    free(data);
    return sent;
}

/* Receives from `from`, `tag` (or any) into just enough room, and checks what came. */
static bool receive_pattern(coh_team *team, int from, int tag, int number, size_t bytes,
                            coh_message *got)
{
    unsigned char *data = malloc(bytes + 1);
    data[bytes] = 0x5a;
    bool good =
        CHECK_OK(coh_receive(team, from, tag, data, bytes, got)) && CHECK_EQ(got->bytes, bytes)
        && CHECK_EQ(test_differs(data, bytes, pattern(got->source, got->tag, number)), bytes)
        && CHECK_EQ(data[bytes], 0x5a);
    free(data);
    return good;
}

static int right_of(const test_rank *self)
{
    return (self->rank + 1) % self->size;
}

static int left_of(const test_rank *self)
{
    return (self->rank + self->size - 1) % self->size;
}

/* ---- S43 ---- */

static void tags_out_of_order(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    static const size_t lengths[] = {SHORT, 0, 40, 41, MIDDLE, 1};
    enum { TAGS = 60 };
    coh_message got;
    for (int tag = 0; tag < TAGS; tag++)
        if (!send_pattern(team, right_of(self), tag, 0, lengths[tag % 6]))
            return;
    for (int tag = TAGS - 1; tag >= 0; tag--)
        if (!receive_pattern(team, left_of(self), tag, 0, lengths[tag % 6], &got)
            || !CHECK_EQ(got.tag, tag) || !CHECK_EQ(got.source, left_of(self)))
            return;
}

/* Long ones as well, though each send of one waits for somebody to take it. */
static void long_ones_out_of_order(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_message got;
    if (self->rank == 0)
        for (int tag = 0; tag < 4; tag++)
            for (int to = 1; to < self->size; to++)
                if (!send_pattern(team, to, tag, 0, LONG))
                    return;
    for (int tag = 3; self->rank > 0 && tag >= 0; tag--)
        if (!receive_pattern(team, 0, tag, 0, LONG, &got))
            return;
}

/* Whatever the receive asks for, those of one source come in the order of sending. */
static void any_source_and_any_tag(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    int each = test_scaled(self, 300);
    int next[TEST_RANKS_MAX] = {0};
    for (int i = 0; self->rank != 0 && i < each; i++)
        if (!send_pattern(team, 0, i % 7, i, i % 5 ? SHORT : MIDDLE))
            return;
    for (int i = 0; self->rank == 0 && i < each * (self->size - 1); i++) {
        unsigned char data[MIDDLE];
        coh_message got;
        if (!CHECK_OK(coh_receive(team, COH_ANY_RANK, COH_ANY_TAG, data, sizeof data, &got))
            || !CHECK(got.source > 0 && got.source < self->size))
            return;
        int number = next[got.source]++;
        if (!CHECK_EQ(got.tag, number % 7) || !CHECK_EQ(got.bytes, number % 5 ? SHORT : MIDDLE)
            || !CHECK_EQ(test_differs(data, got.bytes, pattern(got.source, got.tag, number)),
                         got.bytes))
            return;
    }
}

/* A receiver that asks for nothing holds its sender back; then nothing is missing. */
static void unexpected_messages_are_bounded(test_rank *self)
{
    enum { BYTES = 4096, MOST = 16 << 20 };
    coh_team *team = coh_team_world(self->world);
    _Atomic uint64_t *sent = self->shared;
    int count = MOST / BYTES;
    coh_message got;
    if (self->rank == 0) {
        for (int i = 0; i < count; i++, atomic_fetch_add(sent, 1))
            if (!send_pattern(team, 1, 3, i, BYTES))
                return;
    } else if (self->rank == 1) {
        uint64_t seen = 0;
        for (int still = 0; still < 10;) { /* until the sender does not get on */
            int there;
            test_sleep(0.01);
            CHECK_OK(coh_probe(team, 0, 4, &there, NULL));
            uint64_t now = atomic_load(sent);
            still = now > 0 && now == seen ? still + 1 : 0;
            seen = now;
        }
        CHECK(seen * BYTES <= MOST / 2);
        for (int i = 0; i < count; i++)
            if (!receive_pattern(team, 0, 3, i, BYTES, &got))
                return;
    }
}

/* ---- S44 ---- */

static void refuse_then_take(coh_team *team, int from, int number, size_t bytes)
{
    unsigned char small[4];
    coh_message got;
    if (CHECK_REFUSED(coh_receive(team, from, 9, small, sizeof small, NULL), COH_LENGTH_MISMATCH,
                      bytes == LONG ? "100000|4" : "5000|4"))
        receive_pattern(team, from, 9, number, bytes, &got);
}

static void longer_than_the_room(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    static const size_t lengths[] = {MIDDLE, LONG, MIDDLE, LONG};
    for (int i = 0; i < 4; i++) {
        coh_request *request;
        unsigned char *data = malloc(LONG);
        test_fill(data, lengths[i], pattern(self->rank, 9, i));
        if (!CHECK_OK(coh_send_start(team, right_of(self), 9, data, lengths[i], &request)))
            return;
        if (i >= 2)
            CHECK_OK(coh_barrier(self->world)); /* it is there before it is asked for */
        refuse_then_take(team, left_of(self), i, lengths[i]);
        CHECK_OK(coh_request_wait(&request, NULL));
        free(data);
    }
}

/* A receive that waits already is refused, and the message goes to the next that waits. */
static void longer_than_a_posted_room(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    unsigned char small[4], *data = malloc(LONG);
    coh_request *first, *second;
    coh_message got;
    CHECK_OK(coh_receive_start(team, left_of(self), 1, small, sizeof small, &first));
    CHECK_OK(coh_receive_start(team, left_of(self), 1, data, LONG, &second));
    CHECK_OK(coh_barrier(self->world));
    send_pattern(team, right_of(self), 1, 5, MIDDLE);
    CHECK_REFUSED(coh_request_wait(&first, NULL), COH_LENGTH_MISMATCH, "5000|4");
    CHECK(first == NULL);
    if (CHECK_OK(coh_request_wait(&second, &got)))
        CHECK_EQ(test_differs(data, got.bytes, pattern(left_of(self), 1, 5)), MIDDLE);
    free(data);
}

/* ---- S45 ---- */

static void zero_length(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_message got = {-5, -5, 5};
    CHECK_OK(coh_send(team, right_of(self), 2, NULL, 0));
    CHECK_OK(coh_receive(team, left_of(self), 2, NULL, 0, &got));
    CHECK(got.source == left_of(self) && got.tag == 2 && got.bytes == 0);
}

static void to_oneself(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    static const size_t lengths[] = {0, SHORT, MIDDLE, LONG, HUGE_BYTES};
    coh_message got;
    for (int i = 0; i < 5; i++)
        if (!send_pattern(team, self->rank, 4, i, lengths[i]))
            return;
    for (int i = 0; i < 5; i++)
        if (!receive_pattern(team, self->rank, 4, i, lengths[i], &got))
            return;
    unsigned char word[SHORT];
    coh_request *request;
    CHECK_OK(coh_receive_start(team, self->rank, 5, word, sizeof word, &request));
    send_pattern(team, self->rank, 5, 7, SHORT);
    CHECK_OK(coh_request_wait(&request, &got));
    CHECK_EQ(test_differs(word, SHORT, pattern(self->rank, 5, 7)), SHORT);
}

static void all_send_large_at_once(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_message got;
    for (int round = 0; round < 3; round++) {
        if (!send_pattern(team, right_of(self), 1, round, HUGE_BYTES)
            || !send_pattern(team, left_of(self), 2, round, HUGE_BYTES)
            || !receive_pattern(team, left_of(self), 1, round, HUGE_BYTES, &got)
            || !receive_pattern(team, right_of(self), 2, round, HUGE_BYTES, &got))
            return;
    }
}

/* From and into symmetric memory, and one of each: every way that the data can go. */
static void large_from_every_memory(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    unsigned char *heap, *own = malloc(2 * HUGE_BYTES + 3);
    if (!CHECK_OK(coh_malloc(self->world, 2 * HUGE_BYTES + 3, (void **)&heap)))
        return;
    static const size_t lengths[] = {8193, 16384, 65537, 1 << 20, HUGE_BYTES};
    for (int i = 0; i < 20; i++) {
        size_t bytes = lengths[i / 4];
        unsigned char *from = (i & 1 ? heap : own) + 3, *to = (i & 2 ? heap : own) + HUGE_BYTES + 3;
        coh_request *request;
        test_fill(from, bytes, pattern(self->rank, 6, i));
        memset(to, 0, bytes);
        CHECK_OK(coh_receive_start(team, left_of(self), 6, to, bytes, &request));
        CHECK_OK(coh_send(team, right_of(self), 6, from, bytes));
        CHECK_OK(coh_request_wait(&request, NULL));
        if (!CHECK_EQ(test_differs(to, bytes, pattern(left_of(self), 6, i)), bytes))
            return;
    }
    free(own);
    CHECK_OK(coh_free(self->world, heap));
}

/* ---- requests, probe, teams ---- */

enum { REQUESTS = 12 };

static bool take_any(const test_rank *self, coh_request **receives, const unsigned char *in)
{
    size_t at;
    coh_message got;
    if (!CHECK_OK(coh_request_wait_any(receives, REQUESTS + 1, &at, &got)) || !CHECK(at < REQUESTS))
        return false;
    uint64_t seed = pattern(left_of(self), (int)at, 0);
    return CHECK(receives[at] == NULL) && CHECK_EQ(got.tag, at)
           && CHECK_EQ(got.bytes, at % 2 ? LONG : SHORT)
           && CHECK_EQ(test_differs(in + at * LONG, got.bytes, seed), got.bytes);
}

static void requests_in_any_order(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    unsigned char *in = malloc(REQUESTS * LONG), *out = malloc(REQUESTS * LONG);
    coh_request *receives[REQUESTS + 1] = {NULL}, *sends[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        CHECK_OK(coh_receive_start(team, left_of(self), i, in + i * LONG, LONG, &receives[i]));
    for (int i = REQUESTS - 1; i >= 0; i--) {
        size_t bytes = i % 2 ? LONG : SHORT;
        test_fill(out + i * LONG, bytes, pattern(self->rank, i, 0));
        CHECK_OK(coh_send_start(team, right_of(self), i, out + i * LONG, bytes, &sends[i]));
    }
    for (int left = REQUESTS; left > 0; left--)
        if (!take_any(self, receives, in))
            return;
    size_t at = 0;
    CHECK_OK(coh_request_wait_any(receives, REQUESTS + 1, &at, NULL));
    CHECK_EQ(at, REQUESTS + 1);
    for (int i = 0; i < REQUESTS; i++)
        for (int done = 0; !done && !test_failed();)
            CHECK_OK(coh_request_test(&sends[i], &done, NULL));
    int done = 0;
    CHECK_OK(coh_request_test(&sends[0], &done, NULL));
    CHECK_EQ(done, 1);
    free(in);
    free(out);
}

/* Messages that nobody receives yet do not keep back those that the receiver waits for. */
static void unreceived_ones_keep_no_collective_back(test_rank *self)
{
    enum { SENDS = 80, BYTES = 60000, COUNT = 1 << 18 };
    coh_team *team = coh_team_world(self->world);
    char *out = calloc(1, BYTES), *in = calloc(1, BYTES);
    float *source = calloc(COUNT, sizeof *source), *target = calloc(COUNT, sizeof *target);
    coh_request *sends[SENDS];
    coh_message got;
    for (int i = 0; i < COUNT; i++)
        source[i] = 1;
    for (int i = 0; i < SENDS; i++)
        CHECK_OK(coh_send_start(team, right_of(self), i, out, BYTES, &sends[i]));
    CHECK_OK(coh_all_reduce(team, COH_F32, COH_SUM, source, target, COUNT));
    CHECK(target[0] == (float)self->size && target[COUNT - 1] == (float)self->size);
    for (int i = 0; i < SENDS; i++)
        CHECK_OK(coh_receive(team, left_of(self), i, in, BYTES, &got));
    CHECK_OK(coh_request_wait_all(sends, SENDS, NULL));
    free(out);
    free(in);
    free(source);
    free(target);
}

static void probe_sees_what_is_there(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    coh_message seen = {-1, -1, 0}, got;
    int there = 7;
    CHECK_OK(coh_probe(team, COH_ANY_RANK, COH_ANY_TAG, &there, &seen));
    CHECK_EQ(there, 0);
    CHECK_OK(coh_barrier(self->world));
    send_pattern(team, right_of(self), 11, 0, MIDDLE);
    for (there = 0; !there && !test_failed();)
        CHECK_OK(coh_probe(team, left_of(self), COH_ANY_TAG, &there, &seen));
    CHECK(seen.source == left_of(self) && seen.tag == 11 && seen.bytes == MIDDLE);
    CHECK_OK(coh_probe(team, left_of(self), 12, &there, &seen));
    CHECK_EQ(there, 0);
    receive_pattern(team, left_of(self), 11, 0, MIDDLE, &got);
}

/* The same tag in two teams, and in a team that has the number of a destroyed one. */
static void teams_do_not_mix(test_rank *self)
{
    coh_team *world = coh_team_world(self->world), *reverse;
    coh_message got;
    for (int round = 0; round < 3; round++) {
        if (!CHECK_OK(coh_team_split_strided(world, self->size - 1, -1, self->size, &reverse)))
            return;
        int index = coh_team_index(reverse), next = (index + 1) % self->size;
        int before = (index + self->size - 1) % self->size;
        send_pattern(world, right_of(self), 1, 100 + round, SHORT);
        send_pattern(reverse, next, 1, round, SHORT);
        if (!receive_pattern(reverse, before, 1, round, SHORT, &got)
            || !CHECK_EQ(got.source, before)
            || !receive_pattern(world, COH_ANY_RANK, COH_ANY_TAG, 100 + round, SHORT, &got)
            || !CHECK_EQ(got.source, left_of(self)))
            return;
        send_pattern(reverse, next, 1, 999, SHORT); /* never asked for */
        CHECK_OK(coh_team_destroy(reverse));
    }
}

/* Row 14: one thread waits in a receive, another's calls go on. */
static void *waits_in_receive(void *arg)
{
    unsigned char word[SHORT];
    coh_team *team = arg;
    coh_status status = coh_receive(team, coh_team_index(team), 77, word, sizeof word, NULL);
    return (void *)(uintptr_t)status;
}

static void a_blocked_receive_blocks_nobody(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    pthread_t thread;
    coh_message got;
    CHECK_OK(coh_sync(self->world)); /* a thread-rank's world is this thread's */
    if (!CHECK(pthread_create(&thread, NULL, waits_in_receive, team) == 0))
        return;
    for (int i = 0; i < test_scaled(self, 100); i++) {
        send_pattern(team, right_of(self), 1, i, i % 10 ? SHORT : LONG / 2);
        receive_pattern(team, left_of(self), 1, i, i % 10 ? SHORT : LONG / 2, &got);
    }
    send_pattern(team, self->rank, 77, 0, SHORT);
    void *status = NULL;
    CHECK(pthread_join(thread, &status) == 0);
    CHECK_EQ((uintptr_t)status, COH_OK);
}

static void abandoned_requests_are_freed(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    unsigned char word[SHORT] = {0};
    coh_request *request;
    CHECK_OK(coh_receive_start(team, left_of(self), 1, word, sizeof word, &request));
    CHECK_OK(coh_receive_start(team, COH_ANY_RANK, 4, word, sizeof word, &request));
    CHECK_OK(coh_send_start(team, self->rank, 2, word, sizeof word, &request));
    send_pattern(team, right_of(self), 3, 0, MIDDLE); /* never asked for */
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_finalize(self->world));
    self->world = NULL;
}

static void message_arguments(test_rank *self)
{
    coh_team *team = coh_team_world(self->world);
    char byte = 0;
    int there = 5;
    size_t index;
    coh_request *none = NULL, *made = NULL;
    CHECK_REFUSED(coh_send(NULL, 0, 0, &byte, 1), COH_INVALID_ARGUMENT, "coh_send|NULL");
    CHECK_REFUSED(coh_send(team, self->size, 0, &byte, 1), COH_UNKNOWN_RANK, "coh_send|member");
    CHECK_REFUSED(coh_send(team, COH_ANY_RANK, 0, &byte, 1), COH_UNKNOWN_RANK, "-1");
    CHECK_REFUSED(coh_receive(team, -2, 0, &byte, 1, NULL), COH_UNKNOWN_RANK, "-2");
    CHECK_REFUSED(coh_send(team, 0, -1, &byte, 1), COH_INVALID_ARGUMENT, "tag -1|1073741823");
    CHECK_REFUSED(coh_send(team, 0, COH_TAG_MAX + 1, &byte, 1), COH_INVALID_ARGUMENT,
                  "1073741824|1073741823");
    CHECK_REFUSED(coh_receive(team, 0, -2, &byte, 1, NULL), COH_INVALID_ARGUMENT, "tag -2");
    CHECK_REFUSED(coh_send(team, 0, 0, NULL, 3), COH_INVALID_ARGUMENT, "data is NULL|3 bytes");
    CHECK_REFUSED(coh_receive(team, 0, 0, NULL, 3, NULL), COH_INVALID_ARGUMENT, "data is NULL");
    CHECK_REFUSED(coh_send_start(team, 0, 0, &byte, 1, NULL), COH_INVALID_ARGUMENT, "request");
    CHECK_STATUS(coh_send_start(team, self->size, 0, &byte, 1, &made), COH_UNKNOWN_RANK);
    CHECK(made == NULL);
    CHECK_REFUSED(coh_probe(team, 0, 0, NULL, NULL), COH_INVALID_ARGUMENT, "there");
    CHECK_STATUS(coh_probe(team, 0, -7, &there, NULL), COH_INVALID_ARGUMENT);
    CHECK_EQ(there, 5);
    CHECK_REFUSED(coh_request_wait(NULL, NULL), COH_INVALID_ARGUMENT, "coh_request_wait");
    CHECK_OK(coh_request_wait(&none, NULL));
    CHECK_OK(coh_request_wait_all(&none, 1, NULL));
    CHECK_OK(coh_request_wait_all(NULL, 0, NULL));
    CHECK_STATUS(coh_request_wait_all(NULL, 1, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_request_test(&none, NULL, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_request_wait_any(NULL, 1, &index, NULL), COH_INVALID_ARGUMENT);
    CHECK_STATUS(coh_request_wait_any(&none, 1, NULL, NULL), COH_INVALID_ARGUMENT);
    CHECK_OK(coh_request_wait_any(NULL, 0, &index, NULL));
    CHECK_EQ(index, 0);
    CHECK_OK(coh_barrier(self->world));
}

const test_case conform_messages[] = {
    CASE(tags_out_of_order, "S43", ON_ALL, ANY_SIZE),
    CASE(long_ones_out_of_order, "S43", ON_ALL, ANY_SIZE),
    CASE(any_source_and_any_tag, "S43", ON_ALL, ANY_SIZE),
    CASE(unexpected_messages_are_bounded, "S43", ON_ALL, FROM_TWO, .limit_s = 120),
    CASE(longer_than_the_room, "S44", ON_ALL, ANY_SIZE),
    CASE(longer_than_a_posted_room, "S44", ON_ALL, ANY_SIZE),
    CASE(zero_length, "S45", ON_ALL, ANY_SIZE),
    CASE(to_oneself, "S45", ON_ALL, ANY_SIZE),
    CASE(all_send_large_at_once, "S45", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(large_from_every_memory, "S45", ON_MEMORY, ANY_SIZE, .limit_s = 60),
    CASE(requests_in_any_order, "S43", ON_ALL, ANY_SIZE),
    CASE(unreceived_ones_keep_no_collective_back, "S43", ON_ALL, FROM_TWO, .limit_s = 60),
    CASE(probe_sees_what_is_there, "S43", ON_ALL, ANY_SIZE),
    CASE(teams_do_not_mix, "S43 S35", ON_ALL, ANY_SIZE),
    CASE(a_blocked_receive_blocks_nobody, "S14", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(abandoned_requests_are_freed, "S46", ON_ALL, ANY_SIZE),
    CASE(message_arguments, "F17", ON_ALL, ANY_SIZE),
};
CONFORM_COUNT(messages);
