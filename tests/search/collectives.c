#include "search.h"

#include <sched.h>
#include <stdlib.h>

/* ---- calls, and what they must bring ---- */

static int64_t value_of(int step, int member, size_t i)
{
    return (int64_t)(step + 1) * 1000 + (member + 1) * 10 + (int64_t)(i % 7);
}

static int64_t *source_of(search_rank *self, int step, int member, size_t count)
{
    if (!self->sources[step])
        self->sources[step] = malloc(count * sizeof(int64_t));
    for (size_t i = 0; i < count; i++)
        self->sources[step][i] = value_of(step, member, i);
    return self->sources[step];
}

static int64_t *target_of(search_rank *self, int step, size_t count)
{
    if (!self->targets[step])
        self->targets[step] = calloc(count * SEARCH_RANKS, sizeof(int64_t));
    return self->targets[step];
}

static int64_t sum_of(int step, int members, size_t i)
{
    int64_t sum = 0;
    for (int member = 0; member < members; member++)
        sum += value_of(step, member, i);
    return sum;
}

static bool is_right(const search_step *step, int index, coh_team *team, const int64_t *target)
{
    int size = coh_team_size(team), mine = coh_team_index(team);
    for (size_t i = 0; i < step->amount; i++) {
        if (step->how == CALL_REDUCE && target[i] != sum_of(index, size, i))
            return false;
        if (step->how == CALL_BROADCAST && target[i] != value_of(index, 0, i))
            return false;
        if (step->how == CALL_SCAN && target[i] != sum_of(index, mine + 1, i))
            return false;
        for (int of = 0; step->how == CALL_GATHER && of < size; of++)
            if (target[(size_t)of * step->amount + i] != value_of(index, of, i))
                return false;
    }
    return true;
}

/* The victim of FAULT_DIFFERENT makes another call, or the same with another argument. */
static coh_status call_another(coh_team *team, const search_step *step, const int64_t *source,
                               int64_t *target)
{
    if (step->how == CALL_REDUCE && step->any)
        return coh_all_reduce(team, COH_I64, COH_MAX, source, target, step->amount);
    if (step->how == CALL_BROADCAST && step->any)
        return coh_broadcast(team, COH_I64, source, target, step->amount, 1);
    if (step->how == CALL_REDUCE || step->how == CALL_GATHER)
        return coh_team_barrier(team);
    return coh_all_reduce(team, COH_I64, COH_SUM, source, target, step->amount);
}

static coh_status call(coh_team *team, const search_step *step, const int64_t *source,
                       int64_t *target)
{
    switch (step->how) {
    case CALL_BARRIER:
        return coh_team_barrier(team);
    case CALL_SYNC:
        return coh_team_sync(team);
    case CALL_REDUCE:
        return coh_all_reduce(team, COH_I64, COH_SUM, source, target, step->amount);
    case CALL_GATHER:
        return coh_all_gather(team, COH_I64, source, target, step->amount);
    case CALL_BROADCAST:
        return coh_broadcast(team, COH_I64, source, target, step->amount, 0);
    default:
        return coh_scan(team, COH_I64, COH_SUM, source, target, step->amount);
    }
}

static coh_status start(coh_team *team, const search_step *step, const int64_t *source,
                        int64_t *target, coh_request **request)
{
    switch (step->how) {
    case CALL_BARRIER:
    case CALL_SYNC:
        return coh_barrier_start(team, request);
    case CALL_REDUCE:
        return coh_all_reduce_start(team, COH_I64, COH_SUM, source, target, step->amount, request);
    case CALL_GATHER:
        return coh_all_gather_start(team, COH_I64, source, target, step->amount, request);
    case CALL_BROADCAST:
        return coh_broadcast_start(team, COH_I64, source, target, step->amount, 0, request);
    default:
        return coh_scan_start(team, COH_I64, COH_SUM, source, target, step->amount, request);
    }
}

/* ---- steps ---- */

bool search_barrier(search_rank *self, const search_step *step)
{
    if (search_is_fault(self, search_index_of(self, step), FAULT_LEFT_OUT))
        return true;
    return search_must(self, coh_barrier(self->world), "barrier");
}

bool search_collective(search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step);
    coh_team *team = self->teams[step->team];
    if (!team || search_is_fault(self, index, FAULT_LEFT_OUT))
        return true;
    int64_t *source = source_of(self, index, coh_team_index(team), step->amount);
    int64_t *target = target_of(self, index, step->amount);
    coh_status status = search_is_fault(self, index, FAULT_DIFFERENT)
                            ? call_another(team, step, source, target)
                            : call(team, step, source, target);
    return search_must(self, status, "collective")
           && (!search_checks_data(self)
               || search_must_be(self, is_right(step, index, team, target),
                                 "the data of a collective"));
}

static bool start_on(search_rank *self, const search_step *step, int team)
{
    int index = search_index_of(self, step);
    coh_team *on = self->teams[team];
    if (!on)
        return true;
    int64_t *source = source_of(self, index, coh_team_index(on), step->amount);
    int64_t *target = target_of(self, index, step->amount);
    return search_must(self, start(on, step, source, target, &self->requests[index]), "start");
}

static coh_status wait_by_test(coh_request **request)
{
    coh_status status = COH_OK;
    for (int done = 0; !done && status == COH_OK; sched_yield())
        status = coh_request_test(request, &done, NULL);
    return status;
}

static bool wait_on(search_rank *self, const search_step *step, int team)
{
    int index = search_index_of(self, step);
    size_t which;
    coh_request **request = &self->requests[index];
    if (!self->teams[team])
        return true;
    coh_status status = step->by_test ? wait_by_test(request)
                        : step->any   ? coh_request_wait_any(request, 1, &which, NULL)
                                      : coh_request_wait(request, NULL);
    return search_must(self, status, "wait for a started collective")
           && (!search_checks_data(self)
               || search_must_be(self,
                                 is_right(step, index, self->teams[team], self->targets[index]),
                                 "the data of a started collective"));
}

bool search_start(search_rank *self, const search_step *step)
{
    return start_on(self, step, step->team);
}

bool search_finish_start(search_rank *self, const search_step *begun)
{
    return wait_on(self, begun, begun->team);
}

/* One rank starts it long before the others do. */
bool search_late(search_rank *self, const search_step *step)
{
    return self->rank != step->to || start_on(self, step, SEARCH_EARLY);
}

bool search_finish_late(search_rank *self, const search_step *begun)
{
    return (self->rank == begun->to || start_on(self, begun, SEARCH_EARLY))
           && wait_on(self, begun, SEARCH_EARLY);
}
