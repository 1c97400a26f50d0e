/* collective.c - NVSHMEM's own collectives on a stream, for those of Cohort's that it has. */
#include "base/error.h"
#include "engine/nvshmem/nvshmem.h"

#include <dlfcn.h>
#include <stdio.h>

/* How NVSHMEM calls a type; NULL: it does not know it. */
static const char *name_of_type(coh_dtype dtype)
{
    static const char *const names[] = {
        [COH_I8] = "int8",  [COH_I16] = "int16",  [COH_I32] = "int32",     [COH_I64] = "int64",
        [COH_U8] = "uint8", [COH_U16] = "uint16", [COH_U32] = "uint32",    [COH_U64] = "uint64",
        [COH_F16] = "half", [COH_F32] = "float",  [COH_BF16] = "bfloat16", [COH_F64] = "double",
    };
    size_t count = sizeof names / sizeof *names;
    return (size_t)dtype < count ? names[dtype] : NULL;
}

/* How it calls a reduction; NULL: it has none. A mean is not among them. */
static const char *name_of_op(coh_reduce_op op)
{
    switch (op) {
    case COH_SUM:
        return "sum";
    case COH_PRODUCT:
        return "prod";
    case COH_MIN:
        return "min";
    case COH_MAX:
        return "max";
    case COH_AND:
        return "and";
    case COH_OR:
        return "or";
    case COH_XOR:
        return "xor";
    default:
        return NULL;
    }
}

typedef int reduction(int32_t team, void *target, const void *source, size_t count,
                      CUstream stream);

/* nvshmemx_float_sum_reduce_on_stream and its kin; NULL: there is none. */
static reduction *find_reduction(const cohi_endpoint *endpoint, const cohi_stream_call *call)
{
    char symbol[96];
    reduction *found = NULL;
    bool scatters = call->kind == COH_COLLECTIVE_REDUCE_SCATTER;
    const char *type = name_of_type(call->dtype), *op = name_of_op(call->op);
    if (!type || !op || call->scale != 1)
        return NULL;
    snprintf(symbol, sizeof symbol, "nvshmemx_%s_%s_%s_on_stream", type, op,
             scatters ? "reducescatter" : "reduce");
    *(void **)&found = dlsym(cohi_nvshmem_of(endpoint)->library->handle, symbol);
    return found;
}

static bool is_symmetric(const cohi_stream_buffer *buffer)
{
    return buffer->local && buffer->segment >= 0;
}

/* Where one side has a block for each member, the other is this member's own block of it: only the first member's
 * begins where the longer side does, and all have to come to the same answer. */
static bool is_in_place(const cohi_stream_team *team, const cohi_stream_call *call)
{
    uintptr_t source = (uintptr_t)call->source.local, target = (uintptr_t)call->target.local;
    uint64_t block = (uint64_t)team->index * call->count * coh_dtype_size(call->dtype);
    switch (call->kind) {
    case COH_COLLECTIVE_ALL_GATHER:
        return source == target + block;
    case COH_COLLECTIVE_REDUCE_SCATTER:
        return target == source + block;
    default:
        return source == target;
    }
}

/* The kinds that it has, of equal counts, on memory that it knows, by all ranks in their order. A broadcast is not
 * among them: its root alone would know that its source is private, and the others would wait for it. Nor is what is
 * in place: sums of 280 KB were wrong with four ranks (NVSHMEM 3.4.5). */
bool cohi_nvshmem_has(const cohi_endpoint *endpoint, const cohi_stream_team *team,
                      const cohi_stream_call *call)
{
    bool reduces =
        call->kind == COH_COLLECTIVE_ALL_REDUCE || call->kind == COH_COLLECTIVE_REDUCE_SCATTER;
    bool moves = call->kind == COH_COLLECTIVE_ALL_GATHER || call->kind == COH_COLLECTIVE_ALL_TO_ALL;
    if (team->size != endpoint->size || !cohi_nvshmem_of(endpoint)->collectives)
        return false;
    for (int i = 0; i < team->size; i++)
        if (team->ranks[i] != i)
            return false;
    if (call->kind == COH_COLLECTIVE_BARRIER)
        return true;
    if ((!reduces && !moves) || call->counts)
        return false;
    if (call->count == 0)
        return true;
    if (!is_symmetric(&call->source) || !is_symmetric(&call->target) || is_in_place(team, call))
        return false;
    return moves || find_reduction(endpoint, call);
}

static int start(const cohi_endpoint *endpoint, CUstream stream, const cohi_stream_call *call)
{
    const cohi_nvshmem_library *library = cohi_nvshmem_of(endpoint)->library;
    const int32_t team = COHI_NVSHMEM_TEAM_WORLD;
    void *target = call->target.local;
    const void *source = call->source.local;
    size_t bytes = call->count * coh_dtype_size(call->dtype);
    if (call->count == 0 && call->kind != COH_COLLECTIVE_BARRIER)
        return 0;
    /* A target may be written by a member that is ahead, and is free when its own rank has come: NVSHMEM leaves that
     * to the caller. */
    if (call->kind != COH_COLLECTIVE_BARRIER)
        library->sync_all(stream);
    switch (call->kind) {
    case COH_COLLECTIVE_BARRIER:
        library->sync_all(stream);
        return 0;
    case COH_COLLECTIVE_ALL_GATHER:
        return library->all_gather(team, target, source, bytes, stream);
    case COH_COLLECTIVE_ALL_TO_ALL:
        return library->all_to_all(team, target, source, bytes, stream);
    default:
        return find_reduction(endpoint, call)(team, target, source, call->count, stream);
    }
}

coh_status cohi_nvshmem_collective(cohi_endpoint *endpoint, CUstream stream,
                                   const cohi_stream_team *team, const cohi_stream_call *call)
{
    if (!cohi_nvshmem_has(endpoint, team, call))
        return cohi_fail(COH_UNSUPPORTED,
                         "a member is not mapped by this card, and NVSHMEM has no such collective "
                         "on a stream: there are barrier, all_reduce, reduce_scatter, all_gather "
                         "and all_to_all, of all ranks, with equal counts, between different "
                         "buffers in heaps on cards; the call without a stream has all");
    cohi_nvshmem_enter();
    int error = start(endpoint, stream, call);
    cohi_nvshmem_leave();
    return error == 0 ? COH_OK
                      : cohi_fail(COH_TRANSPORT,
                                  "nvshmem: a collective of NVSHMEM's returned %d; "
                                  "NVSHMEM_DEBUG=WARN tells more",
                                  error);
}
