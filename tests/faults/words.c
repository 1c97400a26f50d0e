/* A rank that dies in each of the one-sided and team operations: docs/faults.md F1 and F26. */
#include "faults.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VICTIM_RANK = 1 };

struct scene {
    _Atomic uint64_t stamps[TEST_RANKS_MAX];
    _Atomic uint64_t ready;
    _Atomic uint64_t finished;
};

/* ---- a program that uses the whole vocabulary ---- */

struct words {
    uint64_t count;
    uint64_t signal;
    uint64_t data;
    coh_lock lock;
};

/* The state of one rank's run: the first status that is not COH_OK stays. */
struct run {
    test_rank *self;
    struct words *words;
    _Atomic uint64_t *stamp;
    coh_status status;
};

/* Whether to go on; the moment before each call is noted. */
static bool going(struct run *run, coh_status status)
{
    run->status = status;
    fault_stamp(run->stamp);
    return status == COH_OK;
}

static bool count_everywhere(struct run *run)
{
    coh_world *world = run->self->world;
    uint64_t one = 1, before;
    for (int rank = 0; rank < run->self->size; rank++)
        if (!going(run, coh_atomic(world, COH_ATOMIC_ADD, COH_U64, &run->words->count, &one, rank))
            || !going(run, coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, &run->words->count,
                                            &one, &before, rank)))
            return false;
    return going(run, coh_quiet(world));
}

/* Where a rank may die, its peers leave one after the other, and a wait for one that left says
 * nothing of the dead; where one may only stall, a wait for nobody in particular does not say
 * for whom. */
static int writer_of(const test_rank *self)
{
    bool stalls = self->row->environment && strstr(self->row->environment, "COHORT_STALL");
    return stalls ? (self->rank + self->size - 1) % self->size : COH_ANY_RANK;
}

static bool signal_around(struct run *run, uint64_t round)
{
    coh_world *world = run->self->world;
    int right = (run->self->rank + 1) % run->self->size;
    return going(run, coh_put_signal(world, &run->words->data, &round, sizeof round,
                                     &run->words->signal, round, COH_SIGNAL_SET, right))
           && going(run, coh_wait_until(world, COH_U64, &run->words->signal, COH_GE, &round,
                                        writer_of(run->self)));
}

static bool take_turns(struct run *run)
{
    coh_world *world = run->self->world;
    return going(run, coh_lock_set(world, &run->words->lock))
           && going(run, coh_lock_clear(world, &run->words->lock));
}

static bool meet_in_teams(struct run *run)
{
    coh_team *world = coh_team_world(run->self->world), *teams[3] = {NULL};
    int n = run->self->size, list[TEST_RANKS_MAX];
    for (int i = 0; i < n; i++)
        list[i] = (i + 1) % n;
    if (!going(run, coh_team_split_strided(world, n - 1, -1, n, &teams[0]))
        || !going(run, coh_team_split_color(world, 0, -run->self->rank, &teams[1]))
        || !going(run, coh_team_from_list(world, list, n, &teams[2])))
        return false;
    for (int i = 0; i < 3; i++)
        if (!going(run, coh_team_sync(teams[i])) || !going(run, coh_team_barrier(teams[i]))
            || !going(run, coh_team_destroy(teams[i])))
            return false;
    return true;
}

static bool use_a_heap(struct run *run)
{
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    coh_heap *heap;
    void *memory;
    options.bytes = 1 << 21;
    return going(run, coh_heap_create(run->self->world, &options, &heap))
           && going(run, coh_heap_malloc(heap, 100, &memory)) && going(run, coh_heap_destroy(heap));
}

static bool pass_messages(struct run *run, int round)
{
    coh_team *world = coh_team_world(run->self->world);
    int n = run->self->size;
    uint64_t data = (uint64_t)round;
    return going(run, coh_send(world, (run->self->rank + 1) % n, 7, &data, sizeof data))
           && going(run, coh_receive(world, writer_of(run->self), 7, &data, sizeof data, NULL))
           && going(run, coh_broadcast(world, COH_U64, &data, &data, 1, round % n));
}

coh_status fault_vocabulary(test_rank *self, _Atomic uint64_t *stamps, int rounds)
{
    struct run run = {.self = self, .stamp = &stamps[self->rank]};
    fault_stamp(run.stamp);
    if (!going(&run, coh_calloc(self->world, 1, sizeof *run.words, (void **)&run.words)))
        return run.status;
    for (int round = 1; round <= rounds; round++)
        if (!count_everywhere(&run) || !signal_around(&run, (uint64_t)round) || !take_turns(&run)
            || !meet_in_teams(&run) || !pass_messages(&run, round) || !use_a_heap(&run))
            return run.status;
    return coh_barrier(self->world);
}

/* The hook of COHORT_FAULT strikes rank 1 somewhere in it. Nobody leaves before all know. */
static void lost_in_vocabulary(test_rank *self)
{
    struct scene *scene = self->shared;
    if (!CHECK_OK(test_join(self)))
        return;
    coh_status status = fault_vocabulary(self, scene->stamps, 20);
    fault_check_lost(status, VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)self->size - 1, 5));
    CHECK_STATUS(coh_barrier(self->world), COH_PEER_LOST);
    (void)coh_finalize(self->world); /* it may report the loss; it must come back */
}

/* ---- lost, on every engine ---- */

/* Dies as a process does, or as a thread that ends without finalize. */
static void die(test_rank *self, struct scene *scene)
{
    test_sleep(0.05); /* the others wait by then, most likely */
    fault_stamp(&scene->stamps[self->rank]);
    fault_die(self);
}

/* A wait for rank 1 ends, and one for anybody; one for another rank goes on, and is satisfied. */
static void waits_end_with_their_writer(test_rank *self)
{
    struct scene *scene = self->shared;
    uint64_t *word, one = 1;
    const _Atomic uint64_t *stamp = &scene->stamps[VICTIM_RANK];
    coh_watch watch = COH_WATCH_INIT;
    if (!CHECK_OK(test_join(self))
        || !CHECK_OK(coh_calloc(self->world, 1, sizeof *word, (void **)&word)))
        return;
    atomic_fetch_add(&scene->ready, 1); /* all are out of the allocation before one is struck */
    CHECK(test_await(&scene->ready, (uint64_t)self->size, 10));
    watch.words = word;
    watch.count = 1;
    watch.values = &one;
    size_t index = 5;
    switch (self->rank) {
    case VICTIM_RANK:
        die(self, scene);
        return;
    case 0:
        watch.from = VICTIM_RANK;
        fault_check_lost(coh_wait_any(self->world, &watch, &index), VICTIM_RANK, stamp);
        CHECK_EQ(index, 5);
        test_sleep(0.05);
        CHECK_OK(coh_signal(self->world, word, 1, COH_SIGNAL_SET, 3));
        CHECK_OK(coh_quiet(self->world));
        break;
    case 2:
        fault_check_lost(coh_wait_until(self->world, COH_U64, word, COH_EQ, &one, COH_ANY_RANK),
                         VICTIM_RANK, stamp);
        break;
    default:
        CHECK_OK(coh_wait_until(self->world, COH_U64, word, COH_EQ, &one, 0));
    }
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, 3, 10)); /* nobody leaves before */
    (void)coh_finalize(self->world);
}

/* The error message has the arguments. */
static void check_told(coh_world *world, uint64_t *word)
{
    uint64_t got, nine = 9;
    coh_team *team = coh_team_world(world);
    CHECK_REFUSED(coh_send(team, VICTIM_RANK, 5, &nine, 8), COH_PEER_LOST,
                  "rank 1|send 8 bytes to rank 1 with tag 5");
    CHECK_REFUSED(coh_receive(team, VICTIM_RANK, COH_ANY_TAG, &got, 8, NULL), COH_PEER_LOST,
                  "rank 1|receive up to 8 bytes from rank 1 with any tag");
    CHECK_REFUSED(coh_wait_until(world, COH_U64, word, COH_GE, &nine, VICTIM_RANK), COH_PEER_LOST,
                  "rank 1|waited for u64 >= 9 at offset|which is 0");
    CHECK_REFUSED(coh_all_reduce(team, COH_U64, COH_SUM, &got, &got, 1), COH_PEER_LOST,
                  "rank 1|it was call #|all_reduce");
}

/* What names the lost rank is refused; what does not, works. */
static void words_of_the_lost(test_rank *self)
{
    struct scene *scene = self->shared;
    uint64_t *word, one = 1, got = 0;
    if (!CHECK_OK(test_join(self))
        || !CHECK_OK(coh_calloc(self->world, 4, sizeof *word, (void **)&word)))
        return;
    atomic_fetch_add(&scene->ready, 1); /* all are out of the allocation before one is struck */
    CHECK(test_await(&scene->ready, (uint64_t)self->size, 10));
    if (self->rank == VICTIM_RANK) {
        die(self, scene);
        return;
    }
    coh_world *world = self->world;
    fault_check_lost(coh_barrier(world), VICTIM_RANK, &scene->stamps[VICTIM_RANK]);
    CHECK_SAYS("it was call #|of the world, barrier");
    check_told(world, word);
    int gone = VICTIM_RANK, other = self->rank == 0 ? 2 : 0;
    CHECK_REFUSED(coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, word, &one, &got, gone),
                  COH_PEER_LOST, "rank 1");
    CHECK_REFUSED(coh_atomic_compare_swap(world, COH_U64, word, &one, &one, &got, gone),
                  COH_PEER_LOST, "rank 1");
    CHECK_EQ(got, 0);
    CHECK_REFUSED(coh_atomic(world, COH_ATOMIC_ADD, COH_U64, word, &one, gone), COH_PEER_LOST,
                  "rank 1|atomic add of u64 at offset");
    CHECK_REFUSED(coh_signal(world, word, 1, COH_SIGNAL_ADD, gone), COH_PEER_LOST, "rank 1");
    CHECK_REFUSED(coh_put_signal(world, &word[1], &one, 8, word, 1, COH_SIGNAL_ADD, gone),
                  COH_PEER_LOST, "rank 1|put 8 bytes at offset|signal at offset");
    CHECK_REFUSED(coh_put_strided(world, word, 8, &one, 8, 8, 1, gone), COH_PEER_LOST, "rank 1");
    CHECK_OK(coh_atomic_fetch(world, COH_ATOMIC_ADD, COH_U64, &word[2], &one, &got, other));
    CHECK_OK(coh_put_signal(world, &word[1], &one, 8, &word[3], 1, COH_SIGNAL_ADD, other));
    CHECK_OK(coh_wait_until(world, COH_U64, &word[3], COH_GE, &one, self->rank == 0 ? 2 : 0));
    atomic_fetch_add(&scene->finished, 1);
    CHECK(test_await(&scene->finished, (uint64_t)self->size - 1, 10));
    (void)coh_finalize(world);
}

#define STRUCK(operation, nth)                                                            \
    {                                                                                     \
        .name = "killed_in_" operation "_" nth, .rows = "F1", .body = lost_in_vocabulary, \
        .engines = ON_PROCESSES, .sizes = SIZE(4), .mode = TEST_UNJOINED,                 \
        .environment = "COHORT_FAULT=kill@" operation ":" nth ",rank=1",                  \
        .victims = VICTIM(VICTIM_RANK)                                                    \
    }

const test_case fault_words[] = {
    STRUCK("atomic", "5"),
    STRUCK("atomic", "21"),
    STRUCK("signal", "3"),
    STRUCK("wait", "3"),
    STRUCK("lock", "5"), /* asking */
    STRUCK("lock", "6"), /* clearing what it holds */
    STRUCK("team_split", "2"),
    STRUCK("team_split_color", "2"),
    STRUCK("team_from_list", "2"),
    STRUCK("team_sync", "5"),
    STRUCK("team_barrier", "5"),
    STRUCK("team_destroy", "5"),
    STRUCK("send", "3"),
    STRUCK("receive", "3"),
    STRUCK("broadcast", "3"),
    STRUCK("heap_create", "3"),
    STRUCK("heap_destroy", "3"),
    CASE(waits_end_with_their_writer, "F1 F26", ON_MEMORY, SIZE(4), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
    CASE(words_of_the_lost, "F1 F26", ON_MEMORY, SIZE(3), .mode = TEST_UNJOINED,
         .victims = VICTIM(VICTIM_RANK)),
};
FAULT_COUNT(words);
