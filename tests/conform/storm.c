/* Random messages against a sequential oracle; broadcast; messages of driven ranks. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>

/* ---- storm ---- */

/* One message of the storm. All ranks draw the same list, so each knows what is to come. */
struct letter {
    int from;
    int to;
    int tag;
    size_t bytes;
    bool received;
};

enum { TAGS = 5, LONGEST = 200000 };

static size_t draw_length(uint64_t *dice)
{
    static const size_t below[] = {9, 9, 9, 65, 65, 9000, 9000, 60000, LONGEST};
    size_t most = below[test_random(dice) % (sizeof below / sizeof *below)];
    return (size_t)(test_random(dice) % most);
}

static struct letter *draw_letters(const test_rank *self, uint64_t seed, int count)
{
    struct letter *letters = calloc((size_t)count, sizeof *letters);
    uint64_t dice = seed | 1;
    for (int i = 0; i < count; i++) {
        letters[i].from = (int)(test_random(&dice) % (uint64_t)self->size);
        letters[i].to = (int)(test_random(&dice) % (uint64_t)self->size);
        letters[i].tag = (int)(test_random(&dice) % TAGS);
        letters[i].bytes = draw_length(&dice);
    }
    return letters;
}

/* The oracle: the first letter to this rank, not yet received, that such a receive may get; NULL
 * when none is to come. */
static struct letter *first_letter(struct letter *letters, int count, int to, int from, int tag)
{
    for (int i = 0; i < count; i++)
        if (!letters[i].received && letters[i].to == to
            && (from == COH_ANY_RANK || letters[i].from == from)
            && (tag == COH_ANY_TAG || letters[i].tag == tag))
            return &letters[i];
    return NULL;
}

static bool receive_one(const test_rank *self, struct letter *letters, int count, uint64_t *dice,
                        unsigned char *data)
{
    const struct letter *some = first_letter(letters, count, self->rank, COH_ANY_RANK, COH_ANY_TAG);
    int from = test_random(dice) % 2 ? some->from : COH_ANY_RANK;
    int tag = test_random(dice) % 2 ? some->tag : COH_ANY_TAG;
    coh_message got;
    if (!CHECK_OK(coh_receive(coh_team_world(self->world), from, tag, data, LONGEST, &got)))
        return false;
    struct letter *expected = first_letter(letters, count, self->rank, got.source, tag);
    if (!CHECK(expected != NULL))
        return false;
    expected->received = true;
    return CHECK_EQ(got.tag, expected->tag) && CHECK_EQ(got.bytes, expected->bytes)
           && CHECK_EQ(test_differs(data, got.bytes, (uint64_t)(expected - letters)), got.bytes);
}

static bool start_sends(const test_rank *self, const struct letter *letters, int count,
                        unsigned char **data, coh_request **requests)
{
    coh_team *team = coh_team_world(self->world);
    for (int i = 0; i < count; i++) {
        if (letters[i].from != self->rank)
            continue;
        data[i] = malloc(letters[i].bytes + 1);
        test_fill(data[i], letters[i].bytes, (uint64_t)i);
        if (!CHECK_OK(coh_send_start(team, letters[i].to, letters[i].tag, data[i], letters[i].bytes,
                                     &requests[i])))
            return false;
    }
    return true;
}

static void blow(test_rank *self, uint64_t dice, int count)
{
    struct letter *letters = draw_letters(self, dice, count);
    unsigned char **data = calloc((size_t)count, sizeof *data), *room = malloc(LONGEST);
    coh_request **requests = calloc((size_t)count, sizeof *requests);
    bool good = start_sends(self, letters, count, data, requests);
    dice += (uint64_t)self->rank * 31;
    while (good && first_letter(letters, count, self->rank, COH_ANY_RANK, COH_ANY_TAG))
        good = receive_one(self, letters, count, &dice, room);
    if (!good)
        test_fail("seed %llu", (unsigned long long)self->seed);
    for (int i = 0; good && i < count; i++) {
        if (requests[i])
            CHECK_OK(coh_request_wait(&requests[i], NULL));
        free(data[i]);
    }
    free(room);
    free(requests);
    free(data);
    free(letters);
}

static void storm(test_rank *self)
{
    int count = 4 + test_scaled(self, 60) * self->size;
    for (uint64_t round = 1; round <= 3 && !test_failed(); round++) {
        blow(self, self->seed * 977 + round, count);
        CHECK_OK(coh_sync(self->world)); /* a receive from anybody must not get the next round's */
    }
}

/* ---- broadcast ---- */

static void broadcast_reaches_all(test_rank *self)
{
    static const size_t lengths[] = {0, 1, 8, 1000, 8192, 8193, 100000, 1 << 20};
    coh_team *team = coh_team_world(self->world);
    unsigned char *data = malloc(1 << 20);
    for (int i = 0; i < 8; i++) {
        for (int root = 0; root < self->size; root++) {
            uint64_t seed = (uint64_t)(i * 100 + root);
            test_fill(data, lengths[i], self->rank == root ? seed : seed + 7777);
            if (!CHECK_OK(coh_broadcast(team, COH_U8, data, data, lengths[i], root))
                || !CHECK_EQ(test_differs(data, lengths[i], seed), lengths[i]))
                return;
        }
    }
    free(data);
}

/* ---- ranks that a single thread drives ---- */

enum { LARGE = 100000 };

static void drive_large(coh_team *zero, coh_team *one)
{
    unsigned char *large = malloc(LARGE), *room = malloc(LARGE);
    coh_request *request;
    test_fill(large, LARGE, 3);
    CHECK_REFUSED(coh_send(zero, 1, 2, large, LARGE), COH_UNSUPPORTED, "100000|driven");
    CHECK_OK(coh_send_start(zero, 1, 2, large, LARGE, &request));
    CHECK_REFUSED(coh_request_wait(&request, NULL), COH_UNSUPPORTED, "driven");
    CHECK_OK(coh_receive(one, 0, 2, room, LARGE, NULL));
    CHECK_EQ(test_differs(room, LARGE, 3), LARGE);
    CHECK_OK(coh_request_wait(&request, NULL));
    free(large);
    free(room);
}

static void driven_ranks_exchange_messages(test_rank *self)
{
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = self->engine;
    options.driven = 1;
    if (!CHECK_OK(coh_init_threads(2, &options, worlds)))
        return;
    coh_team *zero = coh_team_world(worlds[0]), *one = coh_team_world(worlds[1]);
    uint64_t came = 0;
    CHECK_REFUSED(coh_receive(one, 0, 1, &came, sizeof came, NULL), COH_UNSUPPORTED, "driven");
    for (uint64_t i = 0; i < 20; i++)
        CHECK_OK(coh_send(zero, 1, 1, &i, sizeof i));
    for (uint64_t i = 0; i < 20; i++) {
        CHECK_OK(coh_receive(one, 0, 1, &came, sizeof came, NULL));
        CHECK_EQ(came, i);
    }
    drive_large(zero, one);
    CHECK_OK(coh_finalize(worlds[0]));
    CHECK_OK(coh_finalize(worlds[1]));
}

const test_case conform_storm[] = {
    CASE(storm, "S43", ON_ALL, ANY_SIZE, .limit_s = 120),
    CASE(broadcast_reaches_all, "S41", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(driven_ranks_exchange_messages, "S19", ON_THREADS, SIZE(2), .mode = TEST_ALONE),
};
CONFORM_COUNT(storm);
