/* reduction.c - the reductions that a coh_reduction describes: scaled, or by a function. */
#include "coll/describe.h"
#include "coll/run.h"

static cohi_call describe(const char *name, coh_team *team, coh_collective_kind kind,
                          const coh_reduction *how, const void *source, void *target, size_t count,
                          int root)
{
    coh_collective described = COH_COLLECTIVE_INIT;
    described.kind = kind;
    described.team = team;
    described.source = source;
    described.target = target;
    described.count = count;
    described.root = root;
    described.how = how;
    cohi_call call = cohi_describe(name, &described);
    if (!how)
        call.wrong = "the reduction is NULL";
    return call;
}

coh_status coh_all_reduce_with(coh_team *team, const coh_reduction *how, const void *source,
                               void *target, size_t count)
{
    cohi_call call = describe("coh_all_reduce_with", team, COH_COLLECTIVE_ALL_REDUCE, how, source,
                              target, count, 0);
    return cohi_run(&call);
}

coh_status coh_all_reduce_with_start(coh_team *team, const coh_reduction *how, const void *source,
                                     void *target, size_t count, coh_request **request)
{
    cohi_call call = describe("coh_all_reduce_with_start", team, COH_COLLECTIVE_ALL_REDUCE, how,
                              source, target, count, 0);
    return cohi_start(&call, request);
}

coh_status coh_reduce_with(coh_team *team, const coh_reduction *how, const void *source,
                           void *target, size_t count, int root)
{
    cohi_call call =
        describe("coh_reduce_with", team, COH_COLLECTIVE_REDUCE, how, source, target, count, root);
    return cohi_run(&call);
}

coh_status coh_reduce_with_start(coh_team *team, const coh_reduction *how, const void *source,
                                 void *target, size_t count, int root, coh_request **request)
{
    cohi_call call = describe("coh_reduce_with_start", team, COH_COLLECTIVE_REDUCE, how, source,
                              target, count, root);
    return cohi_start(&call, request);
}

coh_status coh_reduce_scatter_with(coh_team *team, const coh_reduction *how, const void *source,
                                   void *target, size_t count)
{
    cohi_call call = describe("coh_reduce_scatter_with", team, COH_COLLECTIVE_REDUCE_SCATTER, how,
                              source, target, count, 0);
    return cohi_run(&call);
}

coh_status coh_reduce_scatter_with_start(coh_team *team, const coh_reduction *how,
                                         const void *source, void *target, size_t count,
                                         coh_request **request)
{
    cohi_call call = describe("coh_reduce_scatter_with_start", team, COH_COLLECTIVE_REDUCE_SCATTER,
                              how, source, target, count, 0);
    return cohi_start(&call, request);
}

coh_status coh_scan_with(coh_team *team, const coh_reduction *how, const void *source, void *target,
                         size_t count)
{
    cohi_call call =
        describe("coh_scan_with", team, COH_COLLECTIVE_SCAN, how, source, target, count, 0);
    return cohi_run(&call);
}

coh_status coh_scan_with_start(coh_team *team, const coh_reduction *how, const void *source,
                               void *target, size_t count, coh_request **request)
{
    cohi_call call =
        describe("coh_scan_with_start", team, COH_COLLECTIVE_SCAN, how, source, target, count, 0);
    return cohi_start(&call, request);
}
