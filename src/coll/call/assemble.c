#include "coll/call/assemble.h"

#include "core/team/agree.h"
#include "core/health/control.h"
#include "core/message/mailbox.h"
#include "core/team/team.h"
#include "core/team/terms.h"
#include "core/health/verdict.h"
#include "core/health/wait.h"

#include <string.h>

cohi_opcode cohi_kind_op(const cohi_call *call)
{
    return cohi_kind_opcode(call->kind, call->exclusive);
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
    if (call->kind == COHI_ALL_TO_ALL && call->from.counts)
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
    return call->variable && call->kind != COHI_ALL_TO_ALL ? count : call->count;
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
    call->print = print_of(&call->terms);
    call->serial = ++cohi_team_gear(call->team)->serial;
}

/* ---- posts ---- */

static inline void wake_all(const coh_team *team)
{
    for (int i = 0; i < team->size; i++)
        cohi_control_wake(team->world, team->slots[i]);
}

static void set_tag(cohi_call *call)
{
    call->tag = COHI_TAG_INTERNAL | (call->team->epoch & COH_TAG_MAX);
}

static inline void post(coh_team *team, uint32_t print)
{
    atomic_store_explicit(&cohi_meet_post(team->mine, team->epoch)->mark,
                          cohi_mark(team->epoch, print), memory_order_release);
    wake_all(team);
}

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
    coh_team *team = call->team;
    team->now = ++team->epoch;
    set_tag(call);
    show_terms(call, team->epoch);
    post(team, call->print);
}

void cohi_post_refusal(cohi_call *call, coh_status status)
{
    coh_team *team = call->team;
    cohi_coll_gear *gear = cohi_team_gear(team); /* NULL when there was no memory for it */
    team->now = ++team->epoch;
    *cohi_meet_terms(team->mine, team->epoch) = terms_of(call, status);
    if (gear)
        gear->shown[team->epoch % COHI_POSTS] = 0;
    post(team, cohi_print(cohi_kind_op(call), COHI_PRINT_HASH));
}

const void *cohi_post_data(const cohi_call *call, int index)
{
    return cohi_meet_post(call->team->meets[index], call->team->epoch)->data;
}

/* Its mark differs from this member's: it refused, or is in another call. */
static __attribute__((noinline)) coh_status explain(cohi_call *call, int index, uint64_t mark)
{
    coh_team *team = call->team;
    const cohi_terms *terms = cohi_meet_terms(team->meets[index], team->epoch);
    if (!cohi_mark_refused(mark) || cohi_mark_op(mark) != cohi_kind_op(call))
        return cohi_team_break(team, call->name, cohi_kind_op(call), index, mark);
    char what[128];
    cohi_terms_describe(terms->op, terms->argument, what, sizeof what);
    coh_status status = cohi_world_fail(team->world, call->name, (coh_status)terms->status,
                                        "rank %d was refused in %s: %s", team->ranks[index], what,
                                        coh_status_text((coh_status)terms->status));
    return cohi_fail_peer(status, team->ranks[index]);
}

static bool has_entered(const cohi_post *theirs, uint32_t epoch, uint64_t *mark)
{
    *mark = atomic_load_explicit(&((cohi_post *)theirs)->mark, memory_order_acquire);
    return cohi_mark_epoch(*mark) == epoch && cohi_mark_print(*mark) != COHI_OP_NONE;
}

/* Whether member `index` has entered, before this rank would yield its core. */
static inline bool enters_soon(const coh_team *team, int index, uint64_t *mark)
{
    const cohi_post *theirs = cohi_meet_post(team->meets[index], team->epoch);
    unsigned pauses = cohi_world_spins(team->world);
    bool entered;
    while (!(entered = has_entered(theirs, team->epoch, mark)) && pauses > 0) {
        cohi_cpu_relax();
        pauses--;
    }
    return entered;
}

static inline coh_status compare_mark(cohi_call *call, int index, uint64_t mark)
{
    uint64_t mine = cohi_mark(call->team->epoch, call->print);
    return COHI_LIKELY(mark == mine) ? COH_OK : explain(call, index, mark);
}

/* Waits for members from `index` up to, but not, `end`. One wait for all of them, so that the
 * patience is the call's. */
static __attribute__((noinline)) coh_status wait_for_entries(cohi_call *call, int index, int end)
{
    coh_team *team = call->team;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call->name, cohi_kind_op(call), &team->party,
                    team->ranks[index]);
    while (index < end && status == COH_OK) {
        uint64_t mark;
        if (has_entered(cohi_meet_post(team->meets[index], team->epoch), team->epoch, &mark)) {
            status = compare_mark(call, index, mark);
            index++;
            continue;
        }
        wait.rank = team->ranks[index];
        status = cohi_wait_step(&wait);
        if (status == COH_OK && wait.asleep)
            status = cohi_team_compare(team, call->name, cohi_kind_op(call));
    }
    cohi_wait_end(&wait);
    return status;
}

/* Of two members the other one is all. */
coh_status cohi_post_await(cohi_call *call, int index)
{
    uint64_t mark;
    if (call->team->size == 2 && index != call->team->index)
        return cohi_post_await_all(call);
    if (COHI_UNLIKELY(!enters_soon(call->team, index, &mark)))
        return wait_for_entries(call, index, index + 1);
    return compare_mark(call, index, mark);
}

static coh_status await_entries(cohi_call *call)
{
    coh_team *team = call->team;
    for (int i = 0; i < team->size; i++) {
        uint64_t mark;
        if (i == team->index)
            continue;
        if (COHI_UNLIKELY(!enters_soon(team, i, &mark)))
            return wait_for_entries(call, i, team->size);
        coh_status status = compare_mark(call, i, mark);
        if (COHI_UNLIKELY(status != COH_OK))
            return status;
    }
    return COH_OK;
}

coh_status cohi_post_await_all(cohi_call *call)
{
    coh_team *team = call->team;
    coh_status status = await_entries(call);
    if (COHI_UNLIKELY(status != COH_OK))
        return status;
    if (COHI_UNLIKELY(team->epoch - team->settled > 1))
        return cohi_team_compare_past(team, call->name);
    team->settled = team->epoch;
    return COH_OK;
}

void cohi_post_break(cohi_call *call, int index)
{
    coh_team *team = call->team;
    uint64_t mark = cohi_meet_post(team->meets[index], team->epoch)->mark;
    (void)cohi_team_break(team, call->name, cohi_kind_op(call), index, mark);
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
    wake_all(team);
}

static bool has_counted(_Atomic uint64_t *count, uint64_t wanted)
{
    return (int64_t)(atomic_load_explicit(count, memory_order_acquire) - wanted) >= 0;
}

/* Waits for the counts of members from `index` up to, but not, `end`. */
static __attribute__((noinline)) coh_status wait_for_counts(cohi_call *call, cohi_counter counter,
                                                            uint64_t wanted, int index, int end)
{
    coh_team *team = call->team;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, call->name, cohi_kind_op(call), &team->party,
                    team->ranks[index]);
    while (index < end && status == COH_OK) {
        if (has_counted(count_of(team, index, counter), wanted)) {
            index++;
            continue;
        }
        wait.rank = team->ranks[index];
        status = cohi_wait_step(&wait);
    }
    cohi_wait_end(&wait);
    return status;
}

/* The first of those members that has not counted so far by the time that this rank would yield its
 * core; `end`: all have. */
static int first_behind(const coh_team *team, cohi_counter counter, uint64_t wanted, int index,
                        int end)
{
    for (unsigned pauses = cohi_world_spins(team->world); index < end;) {
        if (has_counted(count_of(team, index, counter), wanted)) {
            index++;
            continue;
        }
        if (pauses-- == 0)
            break;
        cohi_cpu_relax();
    }
    return index;
}

static coh_status await_counts(cohi_call *call, cohi_counter counter, uint64_t behind, int index,
                               int end)
{
    uint64_t wanted = cohi_team_gear(call->team)->counts[counter] - behind;
    index = first_behind(call->team, counter, wanted, index, end);
    return COHI_LIKELY(index == end) ? COH_OK : wait_for_counts(call, counter, wanted, index, end);
}

coh_status cohi_count_await(cohi_call *call, cohi_counter counter, int index, uint64_t behind)
{
    return await_counts(call, counter, behind, index, index + 1);
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

/* ---- on any engine ---- */

static coh_status agree(cohi_call *call, coh_status refused)
{
    cohi_terms terms = terms_of(call, refused);
    cohi_record record = {.op = terms.op, .status = terms.status};
    memcpy(record.argument, terms.argument, sizeof record.argument);
    coh_status status = cohi_agree(call->team, call->name, &record);
    set_tag(call);
    return status;
}

coh_status cohi_assemble(cohi_call *call, coh_status refused)
{
    if (!call->team->mapped)
        return agree(call, refused);
    if (refused != COH_OK) {
        cohi_post_refusal(call, refused);
        return refused;
    }
    cohi_post_enter(call);
    return cohi_post_await_all(call);
}
