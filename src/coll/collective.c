/* collective.c - the public calls: each describes itself, and is run or started. */
#include "coll/call/assemble.h"
#include "coll/check.h"
#include "coll/run.h"
#include "core/team/enter.h"

/*
 * Programs call in loops, and most of the time of a short call would go into finding out again what
 * was found out before. So a call that differs from the team's last one of its kind at most in its
 * buffers is carried out with what the gear has of that one. False: it differs, or something is
 * special; nothing has happened. Into each of its callers: what they do not have is not compared.
 */
static inline __attribute__((always_inline)) bool repeat(const char *name, coh_team *team,
                                                         cohi_kind kind, bool exclusive,
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

/* What all have. */
static cohi_call describe(const char *name, coh_team *team, cohi_kind kind, coh_dtype dtype,
                          const void *source, void *target, size_t count)
{
    return (cohi_call){.team = team,
                       .name = name,
                       .kind = kind,
                       .dtype = dtype,
                       .source = source,
                       .target = target,
                       .count = count,
                       .from = {.count = count, .stride = 1},
                       .to = {.count = count, .stride = 1}};
}

static cohi_call describe_reduction(const char *name, coh_team *team, cohi_kind kind,
                                    coh_dtype dtype, coh_reduce_op op, const void *source,
                                    void *target, size_t count)
{
    cohi_call call = describe(name, team, kind, dtype, source, target, count);
    call.reduce = op;
    return call;
}

static cohi_call describe_rooted(const char *name, coh_team *team, cohi_kind kind, coh_dtype dtype,
                                 const void *source, void *target, size_t count, int root)
{
    cohi_call call = describe(name, team, kind, dtype, source, target, count);
    call.root = root;
    return call;
}

/* The counts of one side; the other has a block, or none. */
static cohi_call describe_variable(cohi_call call, const size_t *counts)
{
    call.variable = true;
    call.from.counts = call.to.counts = counts;
    return call;
}

/* ---- all_reduce, reduce ---- */

coh_status coh_all_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                          void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_all_reduce", team, COHI_ALL_REDUCE, false, dtype, op, 0, source, target, count,
               &status))
        return status;
    cohi_call call = describe_reduction("coh_all_reduce", team, COHI_ALL_REDUCE, dtype, op, source,
                                        target, count);
    return cohi_run(&call);
}

coh_status coh_all_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                const void *source, void *target, size_t count,
                                coh_request **request)
{
    cohi_call call = describe_reduction("coh_all_reduce_start", team, COHI_ALL_REDUCE, dtype, op,
                                        source, target, count);
    return cohi_start(&call, request);
}

static cohi_call describe_reduce(const char *name, coh_team *team, coh_dtype dtype,
                                 coh_reduce_op op, const void *source, void *target, size_t count,
                                 int root)
{
    cohi_call call = describe_rooted(name, team, COHI_REDUCE, dtype, source, target, count, root);
    call.reduce = op;
    return call;
}

coh_status coh_reduce(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                      void *target, size_t count, int root)
{
    coh_status status;
    if (repeat("coh_reduce", team, COHI_REDUCE, false, dtype, op, root, source, target, count,
               &status))
        return status;
    cohi_call call = describe_reduce("coh_reduce", team, dtype, op, source, target, count, root);
    return cohi_run(&call);
}

coh_status coh_reduce_start(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                            void *target, size_t count, int root, coh_request **request)
{
    cohi_call call =
        describe_reduce("coh_reduce_start", team, dtype, op, source, target, count, root);
    return cohi_start(&call, request);
}

/* ---- reduce_scatter ---- */

coh_status coh_reduce_scatter(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                              void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_reduce_scatter", team, COHI_REDUCE_SCATTER, false, dtype, op, 0, source, target,
               count, &status))
        return status;
    cohi_call call = describe_reduction("coh_reduce_scatter", team, COHI_REDUCE_SCATTER, dtype, op,
                                        source, target, count);
    return cohi_run(&call);
}

coh_status coh_reduce_scatter_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                    const void *source, void *target, size_t count,
                                    coh_request **request)
{
    cohi_call call = describe_reduction("coh_reduce_scatter_start", team, COHI_REDUCE_SCATTER,
                                        dtype, op, source, target, count);
    return cohi_start(&call, request);
}

coh_status coh_reduce_scatter_v(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                const void *source, void *target, const size_t *counts)
{
    cohi_call call =
        describe_variable(describe_reduction("coh_reduce_scatter_v", team, COHI_REDUCE_SCATTER,
                                             dtype, op, source, target, 0),
                          counts);
    return cohi_run(&call);
}

coh_status coh_reduce_scatter_v_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                      const void *source, void *target, const size_t *counts,
                                      coh_request **request)
{
    cohi_call call =
        describe_variable(describe_reduction("coh_reduce_scatter_v_start", team,
                                             COHI_REDUCE_SCATTER, dtype, op, source, target, 0),
                          counts);
    return cohi_start(&call, request);
}

/* ---- gathers ---- */

coh_status coh_all_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                          size_t count)
{
    coh_status status;
    if (repeat("coh_all_gather", team, COHI_ALL_GATHER, false, dtype, (coh_reduce_op)0, 0, source,
               target, count, &status))
        return status;
    cohi_call call =
        describe("coh_all_gather", team, COHI_ALL_GATHER, dtype, source, target, count);
    return cohi_run(&call);
}

coh_status coh_all_gather_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                size_t count, coh_request **request)
{
    cohi_call call =
        describe("coh_all_gather_start", team, COHI_ALL_GATHER, dtype, source, target, count);
    return cohi_start(&call, request);
}

coh_status coh_all_gather_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                            const size_t *counts)
{
    cohi_call call = describe_variable(
        describe("coh_all_gather_v", team, COHI_ALL_GATHER, dtype, source, target, 0), counts);
    return cohi_run(&call);
}

coh_status coh_all_gather_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                  const size_t *counts, coh_request **request)
{
    cohi_call call = describe_variable(
        describe("coh_all_gather_v_start", team, COHI_ALL_GATHER, dtype, source, target, 0),
        counts);
    return cohi_start(&call, request);
}

coh_status coh_gather(coh_team *team, coh_dtype dtype, const void *source, void *target,
                      size_t count, int root)
{
    coh_status status;
    if (repeat("coh_gather", team, COHI_GATHER, false, dtype, (coh_reduce_op)0, root, source,
               target, count, &status))
        return status;
    cohi_call call =
        describe_rooted("coh_gather", team, COHI_GATHER, dtype, source, target, count, root);
    return cohi_run(&call);
}

coh_status coh_gather_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                            size_t count, int root, coh_request **request)
{
    cohi_call call =
        describe_rooted("coh_gather_start", team, COHI_GATHER, dtype, source, target, count, root);
    return cohi_start(&call, request);
}

coh_status coh_gather_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                        const size_t *counts, int root)
{
    cohi_call call = describe_variable(
        describe_rooted("coh_gather_v", team, COHI_GATHER, dtype, source, target, 0, root), counts);
    return cohi_run(&call);
}

coh_status coh_gather_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                              const size_t *counts, int root, coh_request **request)
{
    cohi_call call = describe_variable(
        describe_rooted("coh_gather_v_start", team, COHI_GATHER, dtype, source, target, 0, root),
        counts);
    return cohi_start(&call, request);
}

/* ---- scatter, broadcast ---- */

coh_status coh_scatter(coh_team *team, coh_dtype dtype, const void *source, void *target,
                       size_t count, int root)
{
    coh_status status;
    if (repeat("coh_scatter", team, COHI_SCATTER, false, dtype, (coh_reduce_op)0, root, source,
               target, count, &status))
        return status;
    cohi_call call =
        describe_rooted("coh_scatter", team, COHI_SCATTER, dtype, source, target, count, root);
    return cohi_run(&call);
}

coh_status coh_scatter_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                             size_t count, int root, coh_request **request)
{
    cohi_call call = describe_rooted("coh_scatter_start", team, COHI_SCATTER, dtype, source, target,
                                     count, root);
    return cohi_start(&call, request);
}

coh_status coh_scatter_v(coh_team *team, coh_dtype dtype, const void *source, void *target,
                         const size_t *counts, int root)
{
    cohi_call call = describe_variable(
        describe_rooted("coh_scatter_v", team, COHI_SCATTER, dtype, source, target, 0, root),
        counts);
    return cohi_run(&call);
}

coh_status coh_scatter_v_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               const size_t *counts, int root, coh_request **request)
{
    cohi_call call = describe_variable(
        describe_rooted("coh_scatter_v_start", team, COHI_SCATTER, dtype, source, target, 0, root),
        counts);
    return cohi_start(&call, request);
}

coh_status coh_broadcast(coh_team *team, coh_dtype dtype, const void *source, void *target,
                         size_t count, int root)
{
    coh_status status;
    if (repeat("coh_broadcast", team, COHI_BROADCAST, false, dtype, (coh_reduce_op)0, root, source,
               target, count, &status))
        return status;
    cohi_call call =
        describe_rooted("coh_broadcast", team, COHI_BROADCAST, dtype, source, target, count, root);
    return cohi_run(&call);
}

coh_status coh_broadcast_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                               size_t count, int root, coh_request **request)
{
    cohi_call call = describe_rooted("coh_broadcast_start", team, COHI_BROADCAST, dtype, source,
                                     target, count, root);
    return cohi_start(&call, request);
}

/* ---- all_to_all ---- */

coh_status coh_all_to_all(coh_team *team, coh_dtype dtype, const void *source, void *target,
                          size_t count)
{
    coh_status status;
    if (repeat("coh_all_to_all", team, COHI_ALL_TO_ALL, false, dtype, (coh_reduce_op)0, 0, source,
               target, count, &status))
        return status;
    cohi_call call =
        describe("coh_all_to_all", team, COHI_ALL_TO_ALL, dtype, source, target, count);
    return cohi_run(&call);
}

coh_status coh_all_to_all_start(coh_team *team, coh_dtype dtype, const void *source, void *target,
                                size_t count, coh_request **request)
{
    cohi_call call =
        describe("coh_all_to_all_start", team, COHI_ALL_TO_ALL, dtype, source, target, count);
    return cohi_start(&call, request);
}

static cohi_call describe_parts(const char *name, coh_team *team, coh_dtype dtype,
                                const void *source, const coh_parts *source_parts, void *target,
                                const coh_parts *target_parts)
{
    cohi_call call = describe(name, team, COHI_ALL_TO_ALL, dtype, source, target, 0);
    call.variable = call.apart = true;
    if (source_parts) {
        call.from.counts = source_parts->counts;
        call.from.firsts = source_parts->offsets;
    }
    if (target_parts) {
        call.to.counts = target_parts->counts;
        call.to.firsts = target_parts->offsets;
    }
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

static cohi_call describe_strided(const char *name, coh_team *team, coh_dtype dtype,
                                  const void *source, size_t source_stride, void *target,
                                  size_t target_stride, size_t count)
{
    cohi_call call = describe(name, team, COHI_ALL_TO_ALL, dtype, source, target, count);
    call.apart = true;
    call.from.stride = source_stride;
    call.to.stride = target_stride;
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
    if (repeat("coh_scan", team, COHI_SCAN, false, dtype, op, 0, source, target, count, &status))
        return status;
    cohi_call call =
        describe_reduction("coh_scan", team, COHI_SCAN, dtype, op, source, target, count);
    return cohi_run(&call);
}

coh_status coh_scan_start(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                          void *target, size_t count, coh_request **request)
{
    cohi_call call =
        describe_reduction("coh_scan_start", team, COHI_SCAN, dtype, op, source, target, count);
    return cohi_start(&call, request);
}

static cohi_call describe_exclusive(const char *name, coh_team *team, coh_dtype dtype,
                                    coh_reduce_op op, const void *source, void *target,
                                    size_t count)
{
    cohi_call call = describe_reduction(name, team, COHI_SCAN, dtype, op, source, target, count);
    call.exclusive = true;
    return call;
}

coh_status coh_scan_exclusive(coh_team *team, coh_dtype dtype, coh_reduce_op op, const void *source,
                              void *target, size_t count)
{
    coh_status status;
    if (repeat("coh_scan_exclusive", team, COHI_SCAN, true, dtype, op, 0, source, target, count,
               &status))
        return status;
    cohi_call call =
        describe_exclusive("coh_scan_exclusive", team, dtype, op, source, target, count);
    return cohi_run(&call);
}

coh_status coh_scan_exclusive_start(coh_team *team, coh_dtype dtype, coh_reduce_op op,
                                    const void *source, void *target, size_t count,
                                    coh_request **request)
{
    cohi_call call =
        describe_exclusive("coh_scan_exclusive_start", team, dtype, op, source, target, count);
    return cohi_start(&call, request);
}
