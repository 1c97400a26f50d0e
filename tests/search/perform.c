#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

bool search_must(search_rank *self, coh_status status, const char *what)
{
    search_record *record = self->record;
    if (status == COH_OK)
        return true;
    if (atomic_fetch_add(&record->failures, 1) > 0)
        return false;
    record->status = status;
    record->failed_step = atomic_load(&record->step);
    record->at = test_now();
    snprintf(record->what, sizeof record->what, "%s", what);
    snprintf(record->sentence, sizeof record->sentence, "%s", coh_last_error());
    atomic_store(&record->written, true);
    return false;
}

bool search_must_be(search_rank *self, bool good, const char *what)
{
    return good
           || search_must(self, coh_fail(COH_SYSTEM, "the program found something wrong"), what);
}

void search_enter(search_rank *self)
{
    if (atomic_load(&self->record->failures) == 0)
        atomic_store(&self->record->entered_ns, (int64_t)(test_now() * 1e9));
}

/* ---- small things ---- */

void search_spend(double seconds, bool spins)
{
    volatile uint64_t work = 0;
    if (!spins)
        test_sleep(seconds);
    for (double until = test_now() + seconds; spins && test_now() < until;)
        work++;
}

bool search_is_fault(const search_rank *self, int step, search_fault fault)
{
    const search_program *program = self->program;
    return program->fault == fault && program->fault_step == step && program->victim == self->rank;
}

bool search_checks_data(const search_rank *self)
{
    return self->program->fault != FAULT_LEFT_OUT && self->program->fault != FAULT_DIFFERENT;
}

int search_index_of(const search_rank *self, const search_step *step)
{
    return (int)(step - self->program->steps);
}

int search_tag(int step)
{
    return 100 + step;
}

bool search_compute(search_rank *self, const search_step *step)
{
    if (self->rank == step->to || step->any)
        search_spend(step->seconds, step->spins);
    search_enter(self);
    return true;
}

/* ---- locks ---- */

static bool count_under_lock(search_rank *self, int index)
{
    uint64_t count, *counter = &self->heap->counters[index];
    coh_world *world = self->world;
    if (!search_must(self, coh_get(world, &count, counter, sizeof count, 0), "get under a lock"))
        return false;
    count++;
    search_spend(self->program->steps[index].seconds, self->program->steps[index].spins);
    search_enter(self);
    return search_must(self, coh_put(world, counter, &count, sizeof count, 0), "put under a lock");
}

bool search_lock(search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step);
    coh_lock *lock = self->heap->locks[index];
    if (!(step->takers >> self->rank & 1))
        return true;
    return search_must(self, coh_lock_set(self->world, lock), "lock_set")
           && (!step->any
               || search_must(self, coh_lock_set(self->world, lock + 1), "second lock_set"))
           && count_under_lock(self, index)
           && (!step->any
               || search_must(self, coh_lock_clear(self->world, lock + 1), "second lock_clear"))
           && search_must(self, coh_lock_clear(self->world, lock), "lock_clear");
}

static bool check_counts(search_rank *self)
{
    for (int i = 0; i < self->program->count; i++) {
        const search_step *step = &self->program->steps[i];
        uint64_t want = (uint64_t)__builtin_popcount(step->takers);
        if (self->rank == 0 && step->kind == SEARCH_LOCK && search_checks_data(self)
            && !search_must_be(self, self->heap->counters[i] == want, "the count under a lock"))
            return false;
    }
    return true;
}

/* Two ranks take two locks in opposite orders, and each has one before it asks for the other. */
bool search_crossed(search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step), mine = self->rank == step->to, other;
    coh_lock *locks = self->heap->locks[index];
    unsigned char token = 1;
    coh_team *team = self->teams[SEARCH_WORLD];
    if (self->rank != step->to && self->rank != step->from)
        return true;
    other = mine ? step->from : step->to;
    return search_must(self, coh_lock_set(self->world, &locks[mine]), "first lock_set")
           && search_must(self, coh_send(team, other, search_tag(index), &token, 1), "send")
           && search_must(self, coh_receive(team, other, search_tag(index), &token, 1, NULL),
                          "receive")
           && search_must(self, coh_lock_set(self->world, &locks[!mine]), "crossed lock_set")
           && search_must_be(self, false, "both locks were given");
}

/* ---- steps ---- */

bool search_make_step(search_rank *self, const search_step *step)
{
#define SEARCH_PERFORM(constant, name, perform) perform,
    static bool (*const performs[])(search_rank *,
                                    const search_step *) = {SEARCH_KINDS(SEARCH_PERFORM)};
#undef SEARCH_PERFORM
    return performs[step->kind](self, step);
}

bool search_finish(search_rank *self, const search_step *step)
{
    const search_step *begun = &self->program->steps[step->of];
    switch (begun->kind) {
    case SEARCH_START:
        return search_finish_start(self, begun);
    case SEARCH_LATE:
        return search_finish_late(self, begun);
    case SEARCH_HELPER:
        return search_finish_helper(self, begun);
    case SEARCH_DELAYED:
        return search_finish_delayed(self, begun);
    default:
        return search_finish_crowd(self, begun);
    }
}

static bool is_by_helper(const search_rank *self, const search_step *step)
{
    return step->kind != SEARCH_LOCK && step->kind != SEARCH_FINISH
           && (step->takers >> self->rank & 1);
}

static bool make_steps(search_rank *self)
{
    for (int i = 0; i < self->program->count; i++) {
        const search_step *step = &self->program->steps[i];
        atomic_store(&self->record->step, i);
        search_enter(self);
        if (!search_strike(self, i))
            return false;
        bool good =
            is_by_helper(self, step) ? search_by_helper(self, step) : search_make_step(self, step);
        if (!good || atomic_load(&self->record->failures) > 0)
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool open_teams(search_rank *self)
{
    const search_program *program = self->program;
    coh_team *world = self->teams[SEARCH_WORLD] = coh_team_world(self->world);
    return search_must(self,
                       coh_team_split_strided(world, program->part_start, program->part_stride,
                                              program->part_size, &self->teams[SEARCH_PART]),
                       "split")
           && search_must(
               self, coh_team_split_strided(world, 0, 1, program->size, &self->teams[SEARCH_EARLY]),
               "split")
           && search_must(
               self, coh_team_split_strided(world, 0, 1, program->size, &self->teams[SEARCH_TAGS]),
               "split");
}

static bool open_all(search_rank *self)
{
    return search_must(self, coh_calloc(self->world, 1, sizeof *self->heap, (void **)&self->heap),
                       "calloc")
           && open_teams(self);
}

static bool meet_at_the_end(search_rank *self)
{
    atomic_store(&self->record->step, self->program->count);
    search_await_strike(self);
    search_enter(self);
    return search_must(self, coh_barrier(self->world), "the last barrier") && check_counts(self);
}

static void free_buffers(search_rank *self)
{
    for (int i = 0; i < SEARCH_STEPS; i++) {
        free(self->sources[i]);
        free(self->targets[i]);
    }
}

void search_perform(search_rank *self)
{
    bool good = open_all(self) && make_steps(self) && meet_at_the_end(self);
    if (self->gone)
        return;
    search_join_all(self);
    coh_status left = coh_finalize(self->world);
    if (good)
        search_must(self, left, "finalize");
    if (good || left != COH_BUSY)
        free_buffers(self);
    atomic_store(&self->record->done, true);
}
