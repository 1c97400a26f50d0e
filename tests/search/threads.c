#include "search.h"

#include <stdlib.h>
#include <time.h>

/* Threads of one step: a single helper, or a crowd that all do the same. */
struct search_helper {
    search_rank *self;
    const search_step *step;
    bool (*act)(search_rank *self, const search_step *step);
    int started;
    pthread_t threads[SEARCH_CROWD + 1];
    pthread_mutex_t lock; /* of an idle pool */
    pthread_cond_t more;
    bool over;
};

static void *help(void *arg)
{
    struct search_helper *helper = arg;
    test_this_is_rank(helper->self->rank);
    helper->act(helper->self, helper->step);
    return NULL;
}

/* They may outlive the rank's own thread where that is a victim, so nothing is on its stack. */
static struct search_helper *start(search_rank *self, const search_step *step, int count,
                                   bool (*act)(search_rank *, const search_step *),
                                   void *(*body)(void *))
{
    struct search_helper *helper = calloc(1, sizeof *helper);
    *helper = (struct search_helper){.self = self, .step = step, .act = act};
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->more, NULL);
    for (; helper->started < count; helper->started++)
        if (pthread_create(&helper->threads[helper->started], NULL, body, helper) != 0)
            break;
    search_must_be(self, helper->started == count, "threads were started");
    return helper;
}

static void join(struct search_helper *helper)
{
    for (int i = 0; i < helper->started; i++)
        pthread_join(helper->threads[i], NULL);
    free(helper);
}

static bool join_of(search_rank *self, const search_step *step)
{
    struct search_helper **helper = &self->helpers[search_index_of(self, step)];
    search_enter(self);
    if (*helper)
        join(*helper);
    *helper = NULL;
    return atomic_load(&self->record->failures) == 0;
}

/* ---- a step on another thread ---- */

bool search_by_helper(search_rank *self, const search_step *step)
{
    join(start(self, step, 1, search_make_step, help));
    return atomic_load(&self->record->failures) == 0;
}

/* ---- a helper that waits while its rank goes on ---- */

static coh_lock *lock_of(search_rank *self, const search_step *step)
{
    return self->heap->locks[search_index_of(self, step)];
}

static bool await(search_rank *self, const search_step *step)
{
    switch (step->how) {
    case AWAIT_MESSAGE:
        return search_receive_one(self, step, step->any ? COH_ANY_RANK : step->from);
    case AWAIT_WORD:
        return search_await_word(self, step);
    default:
        return search_must(self, coh_lock_set(self->world, lock_of(self, step)),
                           "lock_set of a helper")
               && search_must(self, coh_lock_clear(self->world, lock_of(self, step)),
                              "lock_clear of a helper");
    }
}

static bool bring(search_rank *self, const search_step *step)
{
    if (step->how == AWAIT_MESSAGE)
        return search_send_one(self, step);
    if (step->how == AWAIT_WORD)
        return search_write_word(self, step);
    return search_must(self, coh_lock_clear(self->world, lock_of(self, step)), "lock_clear");
}

/* The lock is taken before the helper asks for it: a token tells. */
static bool take_first(search_rank *self, const search_step *step)
{
    unsigned char token = 1;
    int tag = search_tag(search_index_of(self, step)) + 500;
    coh_team *team = self->teams[SEARCH_WORLD];
    if (step->how != AWAIT_LOCK)
        return true;
    if (self->rank == step->from)
        return search_must(self, coh_lock_set(self->world, lock_of(self, step)), "lock_set")
               && search_must(self, coh_send(team, step->to, tag, &token, 1), "send a token");
    return self->rank != step->to
           || search_must(self, coh_receive(team, step->from, tag, &token, 1, NULL),
                          "receive a token");
}

bool search_helper(search_rank *self, const search_step *step)
{
    if (!take_first(self, step))
        return false;
    if (self->rank == step->to)
        self->helpers[search_index_of(self, step)] = start(self, step, 1, await, help);
    return true;
}

bool search_finish_helper(search_rank *self, const search_step *begun)
{
    int finish = atomic_load(&self->record->step);
    bool brings = self->rank == begun->from && !search_is_fault(self, finish, FAULT_NOT_BROUGHT);
    return (!brings || bring(self, begun)) && (self->rank != begun->to || join_of(self, begun));
}

/* ---- a helper that brings something later, by itself ---- */

static bool sleep_and_bring(search_rank *self, const search_step *step)
{
    search_spend(step->seconds, step->spins);
    search_enter(self);
    return bring(self, step);
}

bool search_delayed(search_rank *self, const search_step *step)
{
    if (!take_first(self, step))
        return false;
    if (self->rank == step->from)
        self->helpers[search_index_of(self, step)] = start(self, step, 1, sleep_and_bring, help);
    return self->rank != step->to || await(self, step);
}

bool search_finish_delayed(search_rank *self, const search_step *begun)
{
    return self->rank != begun->from || join_of(self, begun);
}

/* ---- many that wait ---- */

bool search_crowd(search_rank *self, const search_step *step)
{
    if (self->rank == step->to)
        self->helpers[search_index_of(self, step)] =
            start(self, step, (int)step->amount, search_await_word, help);
    return true;
}

bool search_finish_crowd(search_rank *self, const search_step *begun)
{
    if (self->rank == begun->to)
        return join_of(self, begun);
    return self->rank != begun->from || search_write_word(self, begun);
}

/* ---- idle threads ---- */

static void *idle(void *arg)
{
    struct search_helper *pool = arg;
    pthread_mutex_lock(&pool->lock);
    while (!pool->over) {
        if (!pool->step->ticks) {
            pthread_cond_wait(&pool->more, &pool->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&pool->more, &pool->lock, &until);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

bool search_pool(search_rank *self, const search_step *step)
{
    if ((self->rank == step->to || step->any) && !self->pool)
        self->pool = start(self, step, (int)step->amount, NULL, idle);
    return true;
}

static void dismiss(struct search_helper *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->over = true;
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    join(pool);
}

void search_join_all(search_rank *self)
{
    for (int i = 0; i < SEARCH_STEPS; i++)
        if (self->helpers[i]) {
            join(self->helpers[i]);
            self->helpers[i] = NULL;
        }
    if (self->pool)
        dismiss(self->pool);
    self->pool = NULL;
}
