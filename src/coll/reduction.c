/* reduction.c - the reductions that a coh_reduction describes: scaled, or by a function. */
#include "coll/run.h"

/* What is wrong with the description is found in the call's turn, so that the others hear of it. */
static const char *find_wrong(const coh_reduction *how)
{
    if (!how)
        return "the reduction is NULL";
    return how->size == sizeof *how ? NULL
                                    : "the reduction's size is not one that this library knows; "
                                      "start from COH_REDUCTION_INIT";
}

static cohi_call describe(const char *name, coh_team *team, cohi_kind kind,
                          const coh_reduction *how, const void *source, void *target, size_t count)
{
    cohi_call call = {.team = team,
                      .name = name,
                      .kind = kind,
                      .wrong = find_wrong(how),
                      .source = source,
                      .target = target,
                      .count = count,
                      .from = {.count = count, .stride = 1},
                      .to = {.count = count, .stride = 1}};
    if (call.wrong)
        return call;
    if (how->function) {
        call.own = (cohi_own){how->function, how->element, how->user};
    } else {
        call.dtype = how->dtype;
        call.reduce = how->op;
    }
    call.scaled = how->scale != 1;
    call.scale = how->scale;
    return call;
}

/* X(name, kind): those without a root. */
#define DEFINE_CALLS(name, kind)                                                                 \
    coh_status coh_##name##_with(coh_team *team, const coh_reduction *how, const void *source,   \
                                 void *target, size_t count)                                     \
    {                                                                                            \
        cohi_call call = describe("coh_" #name "_with", team, kind, how, source, target, count); \
        return cohi_run(&call);                                                                  \
    }                                                                                            \
    coh_status coh_##name##_with_start(coh_team *team, const coh_reduction *how,                 \
                                       const void *source, void *target, size_t count,           \
                                       coh_request **request)                                    \
    {                                                                                            \
        cohi_call call =                                                                         \
            describe("coh_" #name "_with_start", team, kind, how, source, target, count);        \
        return cohi_start(&call, request);                                                       \
    }
DEFINE_CALLS(all_reduce, COHI_ALL_REDUCE)
DEFINE_CALLS(reduce_scatter, COHI_REDUCE_SCATTER)
DEFINE_CALLS(scan, COHI_SCAN)

coh_status coh_reduce_with(coh_team *team, const coh_reduction *how, const void *source,
                           void *target, size_t count, int root)
{
    cohi_call call = describe("coh_reduce_with", team, COHI_REDUCE, how, source, target, count);
    call.root = root;
    return cohi_run(&call);
}

coh_status coh_reduce_with_start(coh_team *team, const coh_reduction *how, const void *source,
                                 void *target, size_t count, int root, coh_request **request)
{
    cohi_call call =
        describe("coh_reduce_with_start", team, COHI_REDUCE, how, source, target, count);
    call.root = root;
    return cohi_start(&call, request);
}
