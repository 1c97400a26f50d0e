#include "collectives/calls.h"

#include <stdio.h>
#include <string.h>

const call_traits call_table[CALL_KIND_COUNT] = {
#define ROW(constant, name, reduces, rooted, in_place) \
    [constant] = {#name, reduces, rooted, in_place},
    CALL_KINDS(ROW)
#undef ROW
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

call_kind call_kind_in(const char *text)
{
    call_kind found = CALL_KIND_COUNT;
    for (call_kind kind = 0; kind < CALL_KIND_COUNT; kind++)
        if (ends_with(text, call_table[kind].name)
            && (found == CALL_KIND_COUNT
                || strlen(call_table[kind].name) > strlen(call_table[found].name)))
            found = kind;
    return found;
}

const char *call_text(const test_call *call, char text[256])
{
    static const char *const places[] = {"heap", "private", "heap to private", "private to heap",
                                         "by member"};
    static const char *const parts[] = {"even", "ragged", "one", "slivers"};
    const char *op = coh_reduce_op_name(call->op);
    snprintf(text, 256, "%s%s of %zu %s, %s, root %d, %s parts, %s%s%s%s, seed %llu",
             call_table[call->kind].name, call->started ? "_start" : "", call->count,
             coh_dtype_name(call->dtype), op ? op : "?", call->root, parts[call->parts],
             places[call->place], call->in_place ? ", in place" : "",
             call->shifted ? ", shifted" : "", call->described ? ", described" : "",
             (unsigned long long)call->seed);
    return text;
}

/* ---- the public functions, behind one face ---- */

typedef struct arguments {
    coh_team *team;
    const test_call *call;
    const void *source;
    void *target;
    const size_t *counts;
    coh_parts parts[2];
    const size_t *stride;
    coh_request **request; /* NULL: blocking */
    const call_card *card;
} arguments;

typedef coh_status make_function(const arguments *a);

#define REDUCING(name)                                                                            \
    static coh_status make_##name(const arguments *a)                                             \
    {                                                                                             \
        const test_call *c = a->call;                                                             \
        return a->request ? coh_##name##_start(a->team, c->dtype, c->op, a->source, a->target,    \
                                               c->count, a->request)                              \
                          : coh_##name(a->team, c->dtype, c->op, a->source, a->target, c->count); \
    }
REDUCING(all_reduce)
REDUCING(reduce_scatter)
REDUCING(scan)
REDUCING(scan_exclusive)

#define MOVING(name)                                                                              \
    static coh_status make_##name(const arguments *a)                                             \
    {                                                                                             \
        const test_call *c = a->call;                                                             \
        return a->request ? coh_##name##_start(a->team, c->dtype, a->source, a->target, c->count, \
                                               a->request)                                        \
                          : coh_##name(a->team, c->dtype, a->source, a->target, c->count);        \
    }
MOVING(all_gather)
MOVING(all_to_all)

#define ROOTED(name)                                                                         \
    static coh_status make_##name(const arguments *a)                                        \
    {                                                                                        \
        const test_call *c = a->call;                                                        \
        return a->request                                                                    \
                   ? coh_##name##_start(a->team, c->dtype, a->source, a->target, c->count,   \
                                        c->root, a->request)                                 \
                   : coh_##name(a->team, c->dtype, a->source, a->target, c->count, c->root); \
    }
ROOTED(gather)
ROOTED(scatter)
ROOTED(broadcast)

static coh_status make_reduce(const arguments *a)
{
    const test_call *c = a->call;
    return a->request
               ? coh_reduce_start(a->team, c->dtype, c->op, a->source, a->target, c->count, c->root,
                                  a->request)
               : coh_reduce(a->team, c->dtype, c->op, a->source, a->target, c->count, c->root);
}

static coh_status make_reduce_scatter_v(const arguments *a)
{
    const test_call *c = a->call;
    return a->request
               ? coh_reduce_scatter_v_start(a->team, c->dtype, c->op, a->source, a->target,
                                            a->counts, a->request)
               : coh_reduce_scatter_v(a->team, c->dtype, c->op, a->source, a->target, a->counts);
}

static coh_status make_all_gather_v(const arguments *a)
{
    const test_call *c = a->call;
    return a->request ? coh_all_gather_v_start(a->team, c->dtype, a->source, a->target, a->counts,
                                               a->request)
                      : coh_all_gather_v(a->team, c->dtype, a->source, a->target, a->counts);
}

#define ROOTED_PARTS(name)                                                                    \
    static coh_status make_##name(const arguments *a)                                         \
    {                                                                                         \
        const test_call *c = a->call;                                                         \
        return a->request                                                                     \
                   ? coh_##name##_start(a->team, c->dtype, a->source, a->target, a->counts,   \
                                        c->root, a->request)                                  \
                   : coh_##name(a->team, c->dtype, a->source, a->target, a->counts, c->root); \
    }
ROOTED_PARTS(gather_v)
ROOTED_PARTS(scatter_v)

static coh_status make_all_to_all_v(const arguments *a)
{
    const test_call *c = a->call;
    return a->request ? coh_all_to_all_v_start(a->team, c->dtype, a->source, &a->parts[0],
                                               a->target, &a->parts[1], a->request)
                      : coh_all_to_all_v(a->team, c->dtype, a->source, &a->parts[0], a->target,
                                         &a->parts[1]);
}

static coh_status make_all_to_all_strided(const arguments *a)
{
    const test_call *c = a->call;
    return a->request ? coh_all_to_all_strided_start(a->team, c->dtype, a->source, a->stride[0],
                                                     a->target, a->stride[1], c->count, a->request)
                      : coh_all_to_all_strided(a->team, c->dtype, a->source, a->stride[0],
                                               a->target, a->stride[1], c->count);
}

static make_function *const makers[CALL_KIND_COUNT] = {
#define MAKER(constant, name, reduces, rooted, in_place) [constant] = make_##name,
    CALL_KINDS(MAKER)
#undef MAKER
};

/* ---- the same by description ---- */

static coh_collective_kind kind_of(call_kind kind)
{
    switch (kind) {
    case CALL_REDUCE_SCATTER_V:
        return COH_COLLECTIVE_REDUCE_SCATTER;
    case CALL_ALL_GATHER_V:
        return COH_COLLECTIVE_ALL_GATHER;
    case CALL_GATHER_V:
        return COH_COLLECTIVE_GATHER;
    case CALL_SCATTER_V:
        return COH_COLLECTIVE_SCATTER;
    case CALL_ALL_TO_ALL_V:
    case CALL_ALL_TO_ALL_STRIDED:
        return COH_COLLECTIVE_ALL_TO_ALL;
    default:
        break;
    }
    coh_collective_kind found = COH_COLLECTIVE_BARRIER;
    while (strcmp(coh_collective_name(found), call_table[kind].name) != 0)
        found++;
    return found;
}

static coh_status make_described(const arguments *a)
{
    const test_call *c = a->call;
    coh_collective described = COH_COLLECTIVE_INIT;
    described.kind = kind_of(c->kind);
    described.team = a->team;
    described.dtype = c->dtype;
    described.op = c->op;
    described.source = a->source;
    described.target = a->target;
    described.count = c->count;
    described.root = c->root;
    if (c->kind == CALL_ALL_TO_ALL_V) {
        described.source_parts = &a->parts[0];
        described.target_parts = &a->parts[1];
    } else if (c->kind == CALL_ALL_TO_ALL_STRIDED) {
        described.source_stride = a->stride[0];
        described.target_stride = a->stride[1];
    } else if (ends_with(call_table[c->kind].name, "_v")) {
        described.counts = a->counts;
    }
    coh_status status = a->card      ? a->card->run(&described, a->card->arg)
                        : a->request ? coh_collective_start(&described, a->request)
                                     : coh_collective_run(&described);
    memset(&described, 0xee, sizeof described);
    return status;
}

/* With strides of 1 the strided form is described as the plain one, which may be in place. */
static bool is_described(const test_call *call, const size_t stride[2])
{
    bool strided = call->kind == CALL_ALL_TO_ALL_STRIDED;
    return call->described && !(strided && stride[0] == 1 && stride[1] == 1);
}

coh_status call_make(call_rig *rig, coh_team *team, const test_call *call)
{
    bool placed = call_is_placed(call);
    size_t counts[2][CALL_MEMBERS], offsets[2][CALL_MEMBERS];
    memcpy(counts, rig->counts, sizeof counts);
    memcpy(offsets, rig->offsets, sizeof offsets);
    arguments a = {
        .team = team,
        .call = call,
        .source = rig->source,
        .target = rig->target,
        .counts = counts[0],
        .parts = {{counts[0], placed ? offsets[0] : NULL}, {counts[1], placed ? offsets[1] : NULL}},
        .stride = rig->stride,
        .request = call->started ? &rig->request : NULL,
        .card = rig->card,
    };
    rig->request = NULL;
    coh_status status =
        rig->card || is_described(call, rig->stride) ? make_described(&a) : makers[call->kind](&a);
    memset(counts, 0xee, sizeof counts); /* a started call has copies */
    memset(offsets, 0xee, sizeof offsets);
    return status;
}
