/* collective.c - the public calls: each describes itself by a coh_collective, and is run or started. */
#include "coll/call/assemble.h"
#include "coll/check.h"
#include "coll/describe.h"
#include "coll/run.h"
#include "core/team/enter.h"

/*
 * Programs call in loops, and most of the time of a short call would go into finding out again what
 * was found out before. So a call that differs from the team's last one of its kind at most in its
 * buffers is carried out with what the gear has of that one. False: it differs, or something is
 * special; nothing has happened. Into each of its callers: what they do not have is not compared.
 */
static inline __attribute__((always_inline)) bool repeat(const char *name, coh_team *team,
                                                         coh_collective_kind kind, bool exclusive,
                                                         coh_dtype dtype, coh_reduce_op reduce,
                                                         int root, const void *source, void *target,
                                                         size_t count, coh_status *status)
{
    __builtin_prefetch(source);
    __builtin_prefetch(target, 1);
    if (COHI_UNLIKELY(!team || !team->open || !cohi_world_plain(team->world)))
        return false;
    cohi_coll_gear *gear =
        (cohi_coll_gear *)atomic_load_explicit(&team->gear, memory_order_acquire);
    if (COHI_UNLIKELY(!gear))
        return false;
    cohi_call *call = &gear->last[kind];
    cohi_entry entry = cohi_entry_of(team, name, cohi_kind_opcode(kind, exclusive));
    *status = cohi_team_enter(&entry);
    if (COHI_UNLIKELY(*status != COH_OK))
        return true;
    bool same = COHI_LIKELY(call->team && call->count == count && call->dtype == dtype
                            && call->reduce == reduce && call->root == root
                            && call->exclusive == exclusive);
    if (same && COHI_UNLIKELY(call->source != source || call->target != target))
        same = cohi_check_exchange(call, source, target);
    if (COHI_UNLIKELY(!same)) {
        (void)cohi_team_leave(team, COH_OK);
        return false;
    }
    call->name = call->entry.call = name;
    *status = cohi_run_repeated(call);
    return true;
}

/* The description that all typed calls begin with. */
static coh_collective describe(coh_collective_kind kind, coh_team *team, coh_dtype dtype,
                               coh_reduce_op op, int root, const void *source, void *target,
                               size_t count)
{
    return (coh_collective){.size = sizeof(coh_collective),
                            .kind = kind,
                            .team = team,
                            .dtype = dtype,
                            .op = op,
                            .root = root,
                            .source = source,
                            .target = target,
                            .count = count,
                            .source_stride = 1,
                            .target_stride = 1};
}

static coh_status run(const char *name, coh_collective described)
{
    cohi_call call = cohi_describe(name, &described);
    return cohi_run(&call);
}

static coh_status start(const char *name, coh_collective described, coh_request **request)
{
    cohi_call call = cohi_describe(name, &described);
    return cohi_start(&call, request);
}

/* Of the variable forms counts that are NULL are refused, and not taken for another form. */
static cohi_call describe_variable(const char *name, coh_collective described, const size_t *counts)
{
    described.counts = counts;
    cohi_call call = cohi_describe(name, &described);
    call.variable = true;
    return call;
}

/* ---- all_reduce, reduce ---- */

coh_status coh_all_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                          void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_all_reduce", team, COH_COLLECTIVE_ALL_REDUCE, false, dtype, op, 0, source,
               target, count, &status))
        return status;
    return run("coh_all_reduce",
               describe(COH_COLLECTIVE_ALL_REDUCE, team, dtype, op, 0, source, target, count));
}

coh_status coh_all_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                const void *source, void *target, size_t count,
                                coh_request **request)
{
    return start("coh_all_reduce_start",
                 describe(COH_COLLECTIVE_ALL_REDUCE, team, dtype, op, 0, source, target, count),
                 request);
}

coh_status coh_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                      void *target, size_t count, int root)
{
    coh_status status;
    if (repeat("coh_reduce", team, COH_COLLECTIVE_REDUCE, false, dtype, op, root, source, target,
               count, &status))
        return status;
    return run("coh_reduce",
               describe(COH_COLLECTIVE_REDUCE, team, dtype, op, root, source, target, count));
}

coh_status coh_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                            void *target, size_t count, int root, coh_request **request)
{
    return start("coh_reduce_start",
                 describe(COH_COLLECTIVE_REDUCE, team, dtype, op, root, source, target, count),
                 request);
}

/* ---- reduce_scatter ---- */

coh_status coh_reduce_scatter(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                              void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_reduce_scatter", team, COH_COLLECTIVE_REDUCE_SCATTER, false, dtype, op, 0,
               source, target, count, &status))
        return status;
    return run("coh_reduce_scatter",
               describe(COH_COLLECTIVE_REDUCE_SCATTER, team, dtype, op, 0, source, target, count));
}

coh_status coh_reduce_scatter_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                    const void *source, void *target, size_t count,
                                    coh_request **request)
{
    return start("coh_reduce_scatter_start",
                 describe(COH_COLLECTIVE_REDUCE_SCATTER, team, dtype, op, 0, source, target, count),
                 request);
}

coh_status coh_reduce_scatter_v(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                const void *source, void *target, const size_t *counts)
{
    cohi_call call = describe_variable(
        "coh_reduce_scatter_v",
        describe(COH_COLLECTIVE_REDUCE_SCATTER, team, dtype, op, 0, source, target, 0), counts);
    return cohi_run(&call);
}

coh_status coh_reduce_scatter_v_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                      const void *source, void *target, const size_t *counts,
                                      coh_request **request)
{
    cohi_call call = describe_variable(
        "coh_reduce_scatter_v_start",
        describe(COH_COLLECTIVE_REDUCE_SCATTER, team, dtype, op, 0, source, target, 0), counts);
    return cohi_start(&call, request);
}

/* ---- gathers ---- */

coh_status coh_all_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                          size_t count)
{
    coh_status status;
    if (repeat("coh_all_gather", team, COH_COLLECTIVE_ALL_GATHER, false, dtype, (coh_reduce_op)0, 0,
               source, target, count, &status))
        return status;
    return run("coh_all_gather", describe(COH_COLLECTIVE_ALL_GATHER, team, dtype, (coh_reduce_op)0,
                                          0, source, target, count));
}

coh_status coh_all_gather_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                size_t count, coh_request **request)
{
    return start("coh_all_gather_start",
                 describe(COH_COLLECTIVE_ALL_GATHER, team, dtype, (coh_reduce_op)0, 0, source,
                          target, count),
                 request);
}

coh_status coh_all_gather_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                            const size_t *counts)
{
    cohi_call call = describe_variable(
        "coh_all_gather_v",
        describe(COH_COLLECTIVE_ALL_GATHER, team, dtype, (coh_reduce_op)0, 0, source, target, 0),
        counts);
    return cohi_run(&call);
}

coh_status coh_all_gather_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                  const size_t *counts, coh_request **request)
{
    cohi_call call = describe_variable(
        "coh_all_gather_v_start",
        describe(COH_COLLECTIVE_ALL_GATHER, team, dtype, (coh_reduce_op)0, 0, source, target, 0),
        counts);
    return cohi_start(&call, request);
}

coh_status coh_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                      size_t count, int root)
{
    coh_status status;
    if (repeat("coh_gather", team, COH_COLLECTIVE_GATHER, false, dtype, (coh_reduce_op)0, root,
               source, target, count, &status))
        return status;
    return run("coh_gather", describe(COH_COLLECTIVE_GATHER, team, dtype, (coh_reduce_op)0, root,
                                      source, target, count));
}

coh_status coh_gather_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                            size_t count, int root, coh_request **request)
{
    return start(
        "coh_gather_start",
        describe(COH_COLLECTIVE_GATHER, team, dtype, (coh_reduce_op)0, root, source, target, count),
        request);
}

coh_status coh_gather_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                        const size_t *counts, int root)
{
    cohi_call call = describe_variable(
        "coh_gather_v",
        describe(COH_COLLECTIVE_GATHER, team, dtype, (coh_reduce_op)0, root, source, target, 0),
        counts);
    return cohi_run(&call);
}

coh_status coh_gather_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                              const size_t *counts, int root, coh_request **request)
{
    cohi_call call = describe_variable(
        "coh_gather_v_start",
        describe(COH_COLLECTIVE_GATHER, team, dtype, (coh_reduce_op)0, root, source, target, 0),
        counts);
    return cohi_start(&call, request);
}

/* ---- scatter, broadcast ---- */

coh_status coh_scatter(coh_team *team, coh_dtype dtype, const void *source, void *target,
                       size_t count, int root)
{
    coh_status status;
    if (repeat("coh_scatter", team, COH_COLLECTIVE_SCATTER, false, dtype, (coh_reduce_op)0, root,
               source, target, count, &status))
        return status;
    return run("coh_scatter", describe(COH_COLLECTIVE_SCATTER, team, dtype, (coh_reduce_op)0, root,
                                       source, target, count));
}

coh_status coh_scatter_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                             size_t count, int root, coh_request **request)
{
    return start("coh_scatter_start",
                 describe(COH_COLLECTIVE_SCATTER, team, dtype, (coh_reduce_op)0, root, source,
                          target, count),
                 request);
}

coh_status coh_scatter_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                         const size_t *counts, int root)
{
    cohi_call call = describe_variable(
        "coh_scatter_v",
        describe(COH_COLLECTIVE_SCATTER, team, dtype, (coh_reduce_op)0, root, source, target, 0),
        counts);
    return cohi_run(&call);
}

coh_status coh_scatter_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               const size_t *counts, int root, coh_request **request)
{
    cohi_call call = describe_variable(
        "coh_scatter_v_start",
        describe(COH_COLLECTIVE_SCATTER, team, dtype, (coh_reduce_op)0, root, source, target, 0),
        counts);
    return cohi_start(&call, request);
}

coh_status coh_broadcast(coh_team *team, coh_dtype dtype, const void *source, void *target,
                         size_t count, int root)
{
    coh_status status;
    if (repeat("coh_broadcast", team, COH_COLLECTIVE_BROADCAST, false, dtype, (coh_reduce_op)0,
               root, source, target, count, &status))
        return status;
    return run("coh_broadcast", describe(COH_COLLECTIVE_BROADCAST, team, dtype, (coh_reduce_op)0,
                                         root, source, target, count));
}

coh_status coh_broadcast_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               size_t count, int root, coh_request **request)
{
    return start("coh_broadcast_start",
                 describe(COH_COLLECTIVE_BROADCAST, team, dtype, (coh_reduce_op)0, root, source,
                          target, count),
                 request);
}

/* ---- all_to_all ---- */

coh_status coh_all_to_all(coh_team *team, coh_dtype dtype, const void *source, void *target,
                          size_t count)
{
    coh_status status;
    if (repeat("coh_all_to_all", team, COH_COLLECTIVE_ALL_TO_ALL, false, dtype, (coh_reduce_op)0, 0,
               source, target, count, &status))
        return status;
    return run("coh_all_to_all", describe(COH_COLLECTIVE_ALL_TO_ALL, team, dtype, (coh_reduce_op)0,
                                          0, source, target, count));
}

coh_status coh_all_to_all_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                size_t count, coh_request **request)
{
    return start("coh_all_to_all_start",
                 describe(COH_COLLECTIVE_ALL_TO_ALL, team, dtype, (coh_reduce_op)0, 0, source,
                          target, count),
                 request);
}

/* Parts that are NULL are refused, both too. */
static cohi_call describe_parts(const char *name, coh_team *team, coh_dtype dtype,
                                const void *source, const coh_parts *source_parts, void *target,
                                const coh_parts *target_parts)
{
    coh_collective described =
        describe(COH_COLLECTIVE_ALL_TO_ALL, team, dtype, (coh_reduce_op)0, 0, source, target, 0);
    described.source_parts = source_parts;
    described.target_parts = target_parts;
    cohi_call call = cohi_describe(name, &described);
    call.variable = call.apart = true;
    return call;
}

coh_status coh_all_to_all_v(coh_team *team, coh_dtype dtype, const void *source,
                            const coh_parts *source_parts, void *target,
                            const coh_parts *target_parts)
{
    cohi_call call =
        describe_parts("coh_all_to_all_v", team, dtype, source, source_parts, target, target_parts);
    return cohi_run(&call);
}

coh_status coh_all_to_all_v_start(coh_team *team, coh_dtype dtype, const void *source,
                                  const coh_parts *source_parts, void *target,
                                  const coh_parts *target_parts, coh_request **request)
{
    cohi_call call = describe_parts("coh_all_to_all_v_start", team, dtype, source, source_parts,
                                    target, target_parts);
    return cohi_start(&call, request);
}

/* Not in place, with strides of 1 neither. */
static cohi_call describe_strided(const char *name, coh_team *team, coh_dtype dtype,
                                  const void *source, size_t source_stride, void *target,
                                  size_t target_stride, size_t count)
{
    coh_collective described = describe(COH_COLLECTIVE_ALL_TO_ALL, team, dtype, (coh_reduce_op)0, 0,
                                        source, target, count);
    described.source_stride = source_stride;
    described.target_stride = target_stride;
    cohi_call call = cohi_describe(name, &described);
    call.apart = true;
    return call;
}

coh_status coh_all_to_all_strided(coh_team *team, coh_dtype dtype, const void *source,
                                  size_t source_stride, void *target, size_t target_stride,
                                  size_t count)
{
    cohi_call call = describe_strided("coh_all_to_all_strided", team, dtype, source, source_stride,
                                      target, target_stride, count);
    return cohi_run(&call);
}

coh_status coh_all_to_all_strided_start(coh_team *team, coh_dtype dtype, const void *source,
                                        size_t source_stride, void *target, size_t target_stride,
                                        size_t count, coh_request **request)
{
    cohi_call call = describe_strided("coh_all_to_all_strided_start", team, dtype, source,
                                      source_stride, target, target_stride, count);
    return cohi_start(&call, request);
}

/* ---- scans ---- */

coh_status coh_scan(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                    void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_scan", team, COH_COLLECTIVE_SCAN, false, dtype, op, 0, source, target, count,
               &status))
        return status;
    return run("coh_scan",
               describe(COH_COLLECTIVE_SCAN, team, dtype, op, 0, source, target, count));
}

coh_status coh_scan_start(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                          void *target, size_t count, coh_request **request)
{
    return start("coh_scan_start",
                 describe(COH_COLLECTIVE_SCAN, team, dtype, op, 0, source, target, count), request);
}

coh_status coh_scan_exclusive(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                              void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_scan_exclusive", team, COH_COLLECTIVE_SCAN, true, dtype, op, 0, source, target,
               count, &status))
        return status;
    return run("coh_scan_exclusive",
               describe(COH_COLLECTIVE_SCAN_EXCLUSIVE, team, dtype, op, 0, source, target, count));
}

coh_status coh_scan_exclusive_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                    const void *source, void *target, size_t count,
                                    coh_request **request)
{
    return start("coh_scan_exclusive_start",
                 describe(COH_COLLECTIVE_SCAN_EXCLUSIVE, team, dtype, op, 0, source, target, count),
                 request);
}

/* ---- by description ---- */

/* "coh_collective_run(all_reduce)". */
static const char *const run_names[] = {
#define NAME(constant, value, name, reduces, root, source, target) \
    [constant] = "coh_collective_run(" name ")",
    COH_COLLECTIVE_TABLE(NAME)
#undef NAME
};
static const char *const start_names[] = {
#define NAME(constant, value, name, reduces, root, source, target) \
    [constant] = "coh_collective_start(" name ")",
    COH_COLLECTIVE_TABLE(NAME)
#undef NAME
};

/* As the typed calls have it: what the kind does not take is 0. */
static bool repeat_described(const coh_collective *c, coh_status *status)
{
    const cohi_kind_row *row = &cohi_kind_rows[c->kind];
    bool exclusive = c->kind == COH_COLLECTIVE_SCAN_EXCLUSIVE;
    return repeat(run_names[c->kind], c->team, exclusive ? COH_COLLECTIVE_SCAN : c->kind, exclusive,
                  c->dtype, row->reduces ? c->op : (coh_reduce_op)0, row->root ? c->root : 0,
                  c->source, c->target, c->count, status);
}

coh_status coh_collective_run(const coh_collective *collective)
{
    coh_status status = cohi_describe_check("coh_collective_run", collective);
    if (status != COH_OK)
        return status;
    if (collective->kind == COH_COLLECTIVE_BARRIER)
        return coh_team_barrier(collective->team);
    if (cohi_describes_uniform(collective) && repeat_described(collective, &status))
        return status;
    return run(run_names[collective->kind], *collective);
}

coh_status coh_collective_start(const coh_collective *collective, coh_request **request)
{
    coh_status status = cohi_describe_check("coh_collective_start", collective);
    if (status != COH_OK)
        return status;
    if (collective->kind == COH_COLLECTIVE_BARRIER)
        return coh_barrier_start(collective->team, request);
    return start(start_names[collective->kind], *collective, request);
}
