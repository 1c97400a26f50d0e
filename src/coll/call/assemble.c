#include "coll/call/assemble.h"

#include "core/team/await.h"
#include "core/team/levels.h"
#include "core/team/posts.h"
#include "core/team/standing.h"
#include "core/team/terms.h"

#include <string.h>

cohi_opcode cohi_kind_op(const cohi_call *call)
{
    const cohi_call *asked = call->whole ? call->whole : call;
    return cohi_kind_opcode(asked->kind, asked->exclusive);
}

void cohi_call_beat(cohi_call *call)
{
    atomic_fetch_add_explicit(&call->team->world->slot->beat, 1, memory_order_relaxed);
}

/* ---- what members compare ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_counts(const cohi_call *call, const cohi_call_blocks *blocks, uint64_t hash)
{
    for (int i = 0; blocks->counts && i < call->team->size; i++)
        hash = mix(hash, blocks->counts[i] + 1);
    return hash;
}

/* The counts of all_to_all are each member's own; pairs compare theirs. */
static uint64_t cut_of(const cohi_call *call)
{
    if (call->own.function)
        return cohi_cut_of_element(call->element);
    if (call->group)
        return cohi_cut_of_hash(call->group);
    if (call->kind == COH_COLLECTIVE_ALL_TO_ALL && call->from.counts)
        return COHI_CUT_OWN;
    if (call->from.stride > 1 || call->to.stride > 1)
        return cohi_cut_of_strides(call->from.stride, call->to.stride);
    return cohi_cut_of_hash(hash_counts(call, &call->to, hash_counts(call, &call->from, 0)));
}

/* Of variable blocks, all of them. */
static size_t count_of_call(const cohi_call *call)
{
    size_t count = 0;
    for (int i = 0; call->from.counts && i < call->team->size; i++)
        count += call->from.counts[i];
    return call->variable && call->kind != COH_COLLECTIVE_ALL_TO_ALL ? count : call->count;
}

static cohi_terms terms_of(const cohi_call *call, coh_status refused)
{
    cohi_terms terms = {.op = cohi_kind_op(call), .status = (int32_t)refused};
    cohi_data_terms data = {.dtype = call->dtype,
                            .reduce = call->reduce,
                            .root = call->root,
                            .count = count_of_call(call),
                            .cut = cut_of(call)};
    data.algorithm = call->algorithm_number;
    cohi_terms_pack(&data, terms.argument);
    return terms;
}

static uint32_t print_of(const cohi_terms *terms)
{
    uint64_t hash = mix(terms->op, terms->argument[0]);
    hash = mix(mix(hash, terms->argument[1]), terms->argument[2]);
    uint32_t part = (uint32_t)(hash >> 32) & COHI_PRINT_HASH;
    return cohi_print(terms->op, part == COHI_PRINT_HASH ? part - 1 : part);
}

void cohi_call_sign(cohi_call *call)
{
    call->terms = terms_of(call, COH_OK);
    call->entry.print = print_of(&call->terms);
    call->serial = ++cohi_team_gear(call->team)->serial;
}

/* ---- posts ---- */

/* A call that is made again and again finds its terms in the post. */
static inline void show_terms(const cohi_call *call, uint32_t epoch)
{
    uint64_t *shown = &cohi_team_gear(call->team)->shown[epoch % COHI_POSTS];
    if (COHI_LIKELY(*shown == call->serial))
        return;
    *cohi_meet_terms(call->team->mine, epoch) = call->terms;
    *shown = call->serial;
}

void cohi_post_enter(cohi_call *call)
{
    show_terms(call, call->team->epoch + 1);
    (void)cohi_team_post(&call->entry);
    cohi_team_wake(call->team);
}

/* Enters with terms that have the refusal. */
static void post_refused(cohi_call *call, coh_status status)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team); /* NULL when there was no memory for it */
    uint32_t epoch = team->epoch + 1;
    *cohi_meet_terms(team->mine, epoch) = terms_of(call->whole ? call->whole : call, status);
    if (gear)
        gear->shown[epoch % COHI_POSTS] = 0;
    call->entry.print = cohi_print(call->entry.op, COHI_PRINT_HASH);
    (void)cohi_team_post(&call->entry);
}

void cohi_post_refusal(cohi_call *call, coh_status status)
{
    post_refused(call, status);
    cohi_team_wake(call->team);
}

/* How far a member's local level has come, beside its post in the whole team. */
struct progress {
    uint32_t epoch;
    uint64_t counts[2];
};

static void show_progress(const coh_team *team)
{
    const coh_team *local = team->levels->local;
    const cohi_coll_gear *gear = cohi_team_gear(local); /* NULL before the first part */
    struct progress mine = {.epoch = local->epoch};
    if (gear)
        memcpy(mine.counts, gear->counts, sizeof mine.counts);
    memcpy(cohi_meet_post(team->mine, team->epoch + 1)->data, &mine, sizeof mine);
}

/* A member that gave the call before up, which another was refused in, may be behind the others. */
static struct progress furthest(const coh_team *team)
{
    const coh_team *local = team->levels->local;
    struct progress most = {.epoch = local->epoch};
    for (int i = 0; i < local->size; i++) {
        struct progress one;
        cohi_meet *meet = team->meets[team->indices[local->ranks[i]]];
        memcpy(&one, cohi_meet_post(meet, team->epoch)->data, sizeof one);
        if ((int32_t)(one.epoch - most.epoch) > 0)
            most.epoch = one.epoch;
        for (int k = 0; k < 2; k++)
            most.counts[k] = one.counts[k] > most.counts[k] ? one.counts[k] : most.counts[k];
    }
    return most;
}

coh_status cohi_levels_enter(cohi_call *call)
{
    coh_team *team = call->team, *local = team->levels->local;
    cohi_coll_gear *gear;
    struct progress most = furthest(team);
    cohi_levels_begin(team, most.epoch);
    coh_status status = cohi_gear_of(local, call->name, &gear);
    if (status != COH_OK)
        return status;
    memcpy(gear->counts, most.counts, sizeof gear->counts);
    atomic_store_explicit(&local->mine->ready.value, most.counts[COHI_READY], memory_order_release);
    atomic_store_explicit(&local->mine->done.value, most.counts[COHI_DONE], memory_order_release);
    return COH_OK;
}

void cohi_post_apart(cohi_call *call, coh_status refused)
{
    show_progress(call->team);
    if (refused != COH_OK) {
        post_refused(call, refused);
        return;
    }
    show_terms(call, call->team->epoch + 1);
    (void)cohi_team_post(&call->entry);
}

void cohi_post_change(cohi_call *call, coh_status refused)
{
    coh_team *team = call->team;
    *cohi_meet_terms(team->mine, team->epoch) = terms_of(call, refused);
    cohi_team_gear(team)->shown[team->epoch % COHI_POSTS] = 0;
    call->entry.print = cohi_print(call->entry.op, COHI_PRINT_HASH);
    atomic_store_explicit(&cohi_meet_post(team->mine, team->epoch)->mark,
                          cohi_mark(team->epoch, call->entry.print), memory_order_release);
}

const void *cohi_post_data(const cohi_call *call, int index)
{
    return cohi_meet_post(call->team->meets[index], call->team->epoch)->data;
}

void cohi_post_break(cohi_call *call, int index)
{
    const coh_team *team = call->team;
    (void)cohi_team_break(&call->entry, index, cohi_meet_mark(team->meets[index], team->epoch));
}

/* ---- counts ---- */

static _Atomic uint64_t *count_of(const coh_team *team, int index, cohi_counter counter)
{
    cohi_meet *meet = team->meets[index];
    return counter == COHI_READY ? &meet->ready.value : &meet->done.value;
}

void cohi_count_up(cohi_call *call, cohi_counter counter)
{
    coh_team *team = call->team;
    uint64_t count = ++cohi_team_gear(team)->counts[counter];
    atomic_store_explicit(count_of(team, team->index, counter), count, memory_order_release);
    cohi_team_wake(team);
}

struct wanted {
    cohi_counter counter;
    uint64_t count;
};

static inline bool is_counted(const coh_team *team, int index, const struct wanted *wanted)
{
    uint64_t count =
        atomic_load_explicit(count_of(team, index, wanted->counter), memory_order_acquire);
    return (int64_t)(count - wanted->count) >= 0;
}

static bool has_counted(const cohi_entry *entry, int index, const void *wanted, bool asleep,
                        coh_status *status)
{
    if (is_counted(entry->team, index, wanted))
        return true;
    if (asleep && entry->team->whole)
        *status = cohi_team_compare(entry);
    return false;
}

/* Of `count` members from `index` on. Looks for as long as this rank would not yield its core. */
static coh_status await_counts(cohi_call *call, cohi_counter counter, uint64_t behind, int index,
                               int count)
{
    const coh_team *team = call->team;
    struct wanted wanted = {counter, cohi_team_gear(team)->counts[counter] - behind};
    unsigned pauses = cohi_world_spins(team->world);
    while (count > 0) {
        if (is_counted(team, index, &wanted)) {
            index++;
            count--;
        } else if (pauses > 0) {
            cohi_cpu_relax();
            pauses--;
        } else {
            return cohi_team_wait(&call->entry, index, count, has_counted, &wanted);
        }
    }
    return COH_OK;
}

coh_status cohi_count_await(cohi_call *call, cohi_counter counter, int index, uint64_t behind)
{
    return await_counts(call, counter, behind, index, 1);
}

coh_status cohi_count_await_all(cohi_call *call, cohi_counter counter, uint64_t behind)
{
    return await_counts(call, counter, behind, 0, call->team->size);
}

coh_status cohi_count_leave(cohi_call *call)
{
    cohi_count_up(call, COHI_DONE);
    return cohi_count_await_all(call, COHI_DONE, 0);
}

/* ---- all of them ---- */

coh_status cohi_assemble(cohi_call *call, coh_status refused)
{
    if (refused != COH_OK) {
        cohi_post_refusal(call, refused);
        return refused;
    }
    cohi_post_enter(call);
    return cohi_team_await_all(&call->entry);
}
