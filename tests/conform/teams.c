/* Meeting in teams: docs/semantics.md S6, S15, S16 and S18. */
#include "conform.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static const double PATIENCE_S = 20;

enum { PARTIES = 4 };

/* How often each rank has come to each party's meetings. */
struct attendance {
    _Atomic uint64_t counts[PARTIES][TEST_RANKS_MAX];
};

typedef coh_status meet_function(coh_team *team);

/* A third of the time a rank dawdles, so that others can run ahead of it. */
static void dawdle(uint64_t *random)
{
    if (test_random(random) % 3 == 0)
        test_sleep((double)(test_random(random) % 100) * 1e-6);
}

/* Between a member's n-th and n+1-st meeting, every other member has counted n or n + 1. */
static bool meet_in_step(test_rank *self, coh_team *team, int party, meet_function *meet,
                         uint64_t rounds)
{
    struct attendance *attendance = self->shared;
    _Atomic uint64_t *counts = attendance->counts[party];
    uint64_t random = self->seed + (uint64_t)(self->rank * PARTIES + party) * 77 + 1;
    uint64_t base = atomic_load(&counts[self->rank]);
    for (uint64_t round = base + 1; round <= base + rounds; round++) {
        dawdle(&random);
        atomic_store(&counts[self->rank], round);
        if (!CHECK_OK(meet(team)))
            return false;
        for (int i = 0; i < coh_team_size(team); i++) {
            uint64_t count = atomic_load(&counts[coh_team_rank(team, i)]);
            if (!CHECK(count == round || count == round + 1))
                return false;
        }
    }
    return true;
}

static bool split_world(test_rank *self, int start, int stride, int size, coh_team **team)
{
    *team = NULL;
    return CHECK_OK(coh_team_split_strided(coh_team_world(self->world), start, stride, size, team));
}

/* A new team crosses whatever its epochs wrap at, by one call and by the other. */
static void team_epochs_wrap(test_rank *self)
{
    coh_team *team;
    if (!split_world(self, self->size - 1, -1, self->size, &team)
        || !meet_in_step(self, team, 0, coh_team_sync, 90)
        || !meet_in_step(self, team, 0, coh_team_barrier, 90))
        return;
    CHECK_OK(coh_team_destroy(team));
    if (split_world(self, 0, 1, self->size, &team)
        && meet_in_step(self, team, 0, coh_team_sync, 90))
        CHECK_OK(coh_team_destroy(team));
}

/* Even and odd ranks meet among themselves, a different number of times, at the same time. */
static void disjoint_teams_meet(test_rank *self)
{
    coh_team *even, *odd;
    uint64_t rounds = (uint64_t)test_scaled(self, 300);
    if (!split_world(self, 0, 2, (self->size + 1) / 2, &even)
        || !split_world(self, 1, 2, self->size / 2, &odd))
        return;
    coh_team *mine = even ? even : odd;
    if (!CHECK(mine != NULL && !(even && odd))
        || !meet_in_step(self, mine, even ? 0 : 1, coh_team_sync, even ? rounds : 2 * rounds)
        || !meet_in_step(self, mine, even ? 0 : 1, coh_team_barrier, even ? 2 * rounds : rounds))
        return;
    CHECK_OK(coh_team_destroy(mine));
    CHECK_OK(coh_barrier(self->world));
}

/* ---- overlapping teams, a thread each ---- */

struct party {
    test_rank *self;
    coh_team *team;
    int number;
    meet_function *meet;
    pthread_t thread;
    bool started;
};

static void *attend(void *arg)
{
    struct party *party = arg;
    test_this_is_rank(party->self->rank);
    meet_in_step(party->self, party->team, party->number, party->meet,
                 (uint64_t)test_scaled(party->self, 200));
    return NULL;
}

/* All, all reversed, the first half and the second with one in common; each has a thread where
 * it is. */
static void overlapping_teams_meet(test_rank *self)
{
    struct party parties[PARTIES] = {{.self = NULL}};
    int n = self->size, half = n / 2 + 1;
    const int shapes[PARTIES][3] = {{0, 1, n}, {n - 1, -1, n}, {0, 1, half}, {n - half, 1, half}};
    for (int i = 0; i < PARTIES; i++) {
        parties[i].self = self;
        parties[i].number = i;
        parties[i].meet = i % 2 ? coh_team_barrier : coh_team_sync;
        if (!split_world(self, shapes[i][0], shapes[i][1], shapes[i][2], &parties[i].team))
            return;
    }
    for (int i = 0; i < PARTIES; i++)
        if (parties[i].team)
            parties[i].started =
                CHECK(pthread_create(&parties[i].thread, NULL, attend, &parties[i]) == 0);
    for (int i = 0; i < PARTIES; i++)
        if (parties[i].started)
            pthread_join(parties[i].thread, NULL);
    for (int i = 0; i < PARTIES && !test_failed(); i++)
        CHECK_OK(coh_team_destroy(parties[i].team));
}

/* ---- teams made by several threads at once, each of a parent of its own ---- */

static void *split_again_and_again(void *arg)
{
    struct party *party = arg;
    test_rank *self = party->self;
    int rounds = test_scaled(self, 100), n = self->size;
    test_this_is_rank(self->rank);
    for (int i = 0; i < rounds; i++) {
        coh_team *team = NULL;
        int size = 1 + (i + party->number) % n;
        if (!CHECK_OK(coh_team_split_strided(party->team, 0, 1, size, &team))
            || !CHECK((team != NULL) == (coh_team_index(party->team) < size)))
            return NULL;
        if (team && (!CHECK_OK(coh_team_sync(team)) || !CHECK_OK(coh_team_destroy(team))))
            return NULL;
    }
    return NULL;
}

static void threads_split_at_once(test_rank *self)
{
    struct party parties[PARTIES] = {{.self = NULL}};
    for (int i = 0; i < PARTIES; i++) {
        bool reversed = i % 2;
        parties[i].self = self;
        parties[i].number = i;
        if (!split_world(self, reversed ? self->size - 1 : 0, reversed ? -1 : 1, self->size,
                         &parties[i].team))
            return;
    }
    for (int i = 0; i < PARTIES; i++)
        parties[i].started = CHECK(
            pthread_create(&parties[i].thread, NULL, split_again_and_again, &parties[i]) == 0);
    for (int i = 0; i < PARTIES; i++)
        if (parties[i].started)
            pthread_join(parties[i].thread, NULL);
    for (int i = 0; i < PARTIES && !test_failed(); i++)
        CHECK_OK(coh_team_destroy(parties[i].team));
}

/* ---- a number that is taken again while a member is late ---- */

/* Rank 0 is held up inside a call, as a busy machine may do it, until the others have gone on. */
struct delay {
    _Atomic uint64_t inside; /* it is about to call */
    _Atomic uint64_t held;
    _Atomic uint64_t over;
};

static struct delay *the_delay;
static const double DELAY_S = 2; /* at most; if held before it came, it keeps the others waiting */

static void hold_up(int signal)
{
    (void)signal;
    int kept = errno;
    atomic_store(&the_delay->held, 1);
    test_await(&the_delay->over, 1, DELAY_S);
    errno = kept;
}

static void *hold_up_later(void *thread)
{
    test_await(&the_delay->inside, 1, PATIENCE_S);
    test_sleep(0.1); /* by now it waits for the others */
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void destroy_held_up(coh_team *team)
{
    pthread_t helper, self = pthread_self();
    struct sigaction before, action = {.sa_handler = hold_up, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, &before);
    if (CHECK(pthread_create(&helper, NULL, hold_up_later, &self) == 0)) {
        atomic_store(&the_delay->inside, 1);
        CHECK_OK(coh_team_destroy(team));
        pthread_join(helper, NULL);
    }
    sigaction(SIGUSR1, &before, NULL);
}

/* All but rank 0 destroy the team, and make one of the same number, before rank 0 looks again. Of the
 * reversed team rank 0 is not the first member on its host, unless it is there alone. */
static void number_is_taken_from_the_late(test_rank *self)
{
    coh_team *all, *others, *next = NULL;
    int n = self->size;
    the_delay = self->shared;
    if (!split_world(self, n - 1, -1, n - 1, &others) || !split_world(self, n - 1, -1, n, &all))
        return;
    if (self->rank == 0) {
        destroy_held_up(all);
    } else if (CHECK(test_await(&the_delay->held, 1, PATIENCE_S)) && CHECK_OK(coh_team_destroy(all))
               && CHECK_OK(coh_team_split_strided(others, 0, 1, n - 1, &next))) {
        atomic_store(&the_delay->over, 1);
        CHECK_OK(coh_team_sync(next));
    }
    CHECK_OK(coh_team_destroy(next));
    CHECK_OK(coh_team_destroy(others));
    CHECK_OK(coh_barrier(self->world));
}

/* ---- a number that was used since it was offered ---- */

enum { USERS = 2, LAST_CALLS = 2 };

struct meanwhile {
    _Atomic uint64_t used;
    _Atomic uint64_t came[LAST_CALLS]; /* the last rank is in that call */
};

static void *split_party(void *arg)
{
    struct party *party = arg;
    coh_team *parent = party->team;
    test_this_is_rank(party->self->rank);
    party->team = NULL;
    CHECK_OK(coh_team_split_strided(parent, 0, 1, coh_team_size(parent), &party->team));
    return NULL;
}

/* While one thread waits for the others in a split, makes a team, meets in it and destroys it. */
static void use_a_number_meanwhile(struct party *party, coh_team *users)
{
    struct meanwhile *meanwhile = party->self->shared;
    coh_team *between = NULL;
    if (!CHECK(pthread_create(&party->thread, NULL, split_party, party) == 0))
        return;
    test_sleep(0.1); /* it is inside by now */
    CHECK_OK(coh_team_split_strided(users, 0, 1, USERS, &between));
    CHECK_OK(coh_team_sync(between));
    CHECK_OK(coh_team_destroy(between));
    atomic_fetch_add(&meanwhile->used, 1);
    pthread_join(party->thread, NULL);
}

/* Nobody is through before the last rank has come. */
static void meet_with_the_last(test_rank *self, coh_team *team, int number, meet_function *meet)
{
    struct meanwhile *meanwhile = self->shared;
    if (self->rank == self->size - 1) {
        test_sleep(0.1);
        atomic_store(&meanwhile->came[number], 1);
    }
    CHECK_OK(meet(team));
    CHECK_EQ(atomic_load(&meanwhile->came[number]), 1);
}

static void number_is_used_meanwhile(test_rank *self)
{
    struct meanwhile *meanwhile = self->shared;
    struct party party = {.self = self};
    coh_team *users;
    if (!split_world(self, 0, 1, self->size, &party.team)
        || !split_world(self, 0, 1, USERS, &users))
        return;
    coh_team *parent = party.team;
    if (users)
        use_a_number_meanwhile(&party, users);
    else if (CHECK(test_await(&meanwhile->used, USERS, PATIENCE_S)))
        split_party(&party);
    if (test_failed() || !CHECK(party.team != NULL && party.team != parent))
        return;
    meet_with_the_last(self, party.team, 0, coh_team_sync);
    meet_with_the_last(self, party.team, 1, coh_team_destroy);
    CHECK_OK(coh_team_destroy(users));
    CHECK_OK(coh_team_destroy(parent));
}

/* ---- two threads in one team ---- */

struct pair {
    _Atomic uint64_t entered;
    _Atomic uint64_t refused;
};

static void *wait_in_team(void *arg)
{
    struct party *party = arg;
    struct pair *pair = party->self->shared;
    test_this_is_rank(party->self->rank);
    atomic_fetch_add(&pair->entered, 1);
    CHECK_OK(coh_team_sync(party->team));
    return NULL;
}

/* Rank 1's second thread is refused while its first waits for rank 0; other teams are free. */
static void second_thread_is_refused(test_rank *self)
{
    struct pair *pair = self->shared;
    struct party party = {.self = self};
    coh_team *single;
    if (!split_world(self, 0, 1, self->size, &party.team) || !split_world(self, 1, 0, 1, &single))
        return;
    if (self->rank == 1) {
        if (!CHECK(pthread_create(&party.thread, NULL, wait_in_team, &party) == 0))
            return;
        CHECK(test_await(&pair->entered, 1, PATIENCE_S));
        test_sleep(0.05); /* it is inside by now */
        CHECK_REFUSED(coh_team_sync(party.team), COH_BUSY, "coh_team_sync");
        CHECK_REFUSED(coh_team_destroy(party.team), COH_BUSY, "coh_team_destroy");
        CHECK_OK(coh_team_sync(single));
        atomic_store(&pair->refused, 1);
        pthread_join(party.thread, NULL);
    } else {
        CHECK(self->rank != 0 || test_await(&pair->refused, 1, PATIENCE_S));
        CHECK_OK(coh_team_sync(party.team));
    }
    CHECK_OK(coh_team_destroy(party.team));
    CHECK_OK(coh_team_destroy(single));
}

/* ---- what a meeting completes ---- */

/* Each member puts to all others of its team; after the barrier all is there. */
static void team_barrier_completes(test_rank *self)
{
    coh_team *even, *odd;
    uint64_t *words, rounds = (uint64_t)test_scaled(self, 100);
    if (!CHECK_OK(coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words))
        || !split_world(self, 0, 2, (self->size + 1) / 2, &even)
        || !split_world(self, 1, 2, self->size / 2, &odd))
        return;
    coh_team *mine = even ? even : odd;
    for (uint64_t round = 1; round <= rounds; round++) {
        for (int i = 0; i < coh_team_size(mine); i++)
            CHECK_OK(coh_put(self->world, &words[self->rank], &round, sizeof round,
                             coh_team_rank(mine, i)));
        CHECK_OK(coh_team_barrier(mine));
        for (int i = 0; i < coh_team_size(mine); i++)
            if (!CHECK_EQ(words[coh_team_rank(mine, i)], round))
                return;
        CHECK_OK(coh_team_barrier(mine));
    }
    CHECK_OK(coh_team_destroy(mine));
    CHECK_OK(coh_free(self->world, words));
}

enum { ATTEMPTS = 48 };

static void team_sync_body(test_rank *self)
{
    coh_team *team;
    uint64_t *words, one = 1;
    if (!CHECK_OK(coh_calloc(self->world, ATTEMPTS, sizeof *words, (void **)&words))
        || !split_world(self, 1, -1, 2, &team))
        return;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (self->rank == 0)
            CHECK_OK(coh_put(self->world, &words[i], &one, sizeof one, 1));
        CHECK_OK(coh_team_sync(team));
        if (self->rank == 1)
            conform_note(self->shared, __atomic_load_n(&words[i], __ATOMIC_ACQUIRE) == 1);
    }
    CHECK_OK(coh_free(self->world, words));
    CHECK_OK(coh_finalize(self->world)); /* the team is left to it */
}

static void team_sync_completes_nothing(test_rank *self)
{
    conform_until_both_seen(self, 2, team_sync_body);
}

/* ---- driven by one thread ---- */

static void driven_teams_refuse_to_wait(test_rank *self)
{
    enum { DRIVEN = 3 };
    coh_options options = COH_OPTIONS_INIT;
    coh_world *worlds[DRIVEN];
    coh_team *team = NULL;
    options.engine = self->engine;
    options.driven = 1;
    if (!CHECK_OK(coh_init_threads(DRIVEN, &options, worlds)))
        return;
    coh_team *world = coh_team_world(worlds[1]);
    CHECK_EQ(coh_team_index(world), 1);
    CHECK_REFUSED(coh_team_sync(world), COH_UNSUPPORTED, "driven");
    CHECK_REFUSED(coh_team_barrier(world), COH_UNSUPPORTED, "driven");
    CHECK_REFUSED(coh_team_split_strided(world, 0, 1, 2, &team), COH_UNSUPPORTED, "driven");
    CHECK(team == NULL);
    for (int rank = 0; rank < DRIVEN; rank++)
        CHECK_OK(coh_finalize(worlds[rank]));
}

const test_case conform_teams[] = {
    CASE(team_epochs_wrap, "S15 S16", ON_ALL | ON_CARD, ANY_SIZE, .limit_s = 60),
    CASE(disjoint_teams_meet, "S15 S18", ON_ALL | ON_CARD, FROM_TWO, .limit_s = 60),
    CASE(overlapping_teams_meet, "S18", ON_ALL, FROM_TWO, .limit_s = 60),
    CASE(threads_split_at_once, "S18 S35", ON_ALL, ANY_SIZE, .limit_s = 60),
    CASE(number_is_taken_from_the_late, "S35", ON_TCP, FROM_TWO, .limit_s = 60),
    CASE(number_is_used_meanwhile, "S18 S35", ON_ALL, FROM_THREE),
    CASE(second_thread_is_refused, "F17", ON_ALL, FROM_TWO),
    CASE(team_barrier_completes, "S6", ON_MEMORY, FROM_TWO, .limit_s = 60),
    CASE(team_sync_completes_nothing, "S6", ON_SIM, SIZE(2), .mode = TEST_ALONE, .limit_s = 60),
    CASE(driven_teams_refuse_to_wait, "S19", ON_THREADS | ON_SIM, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(teams);
