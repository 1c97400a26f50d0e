/* memory.c - segments of NVSHMEM's symmetric heap: parts of areas that all ranks allocate together. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/nvshmem/nvshmem.h"
#include "memory/host_region.h"

#include <stdlib.h>
#include <string.h>

/* Areas are allocated by all ranks at once, and NVSHMEM may have to take memory of the card for it first. */
#define AREA_LIMIT_NS (60 * COHI_NS_PER_S)

/* What a peer is told of a segment: where it is, counted from the first area, which must be the same. */
typedef struct cohi_nvshmem_key {
    uint64_t place;
    uint64_t bytes;
} cohi_nvshmem_key;

_Static_assert(sizeof(cohi_nvshmem_key) <= COHI_KEY_BYTES, "it fits a key");

static uint64_t round_up(uint64_t value)
{
    return (value + COHI_REGION_ALIGNMENT - 1) / COHI_REGION_ALIGNMENT * COHI_REGION_ALIGNMENT;
}

/* ---- areas ---- */

struct allocation {
    size_t bytes;
    void *made;
};

static void allocate(const cohi_nvshmem_library *library, void *arg)
{
    struct allocation *allocation = arg;
    allocation->made = library->align(COHI_REGION_ALIGNMENT, allocation->bytes);
}

static coh_status add_area(cohi_endpoint *endpoint, uint64_t bytes)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    struct allocation allocation = {.bytes = (size_t)bytes};
    if (own->refused)
        return cohi_fail(COH_NO_MEMORY,
                         "nvshmem: NVSHMEM has failed to allocate before, and then allocates no "
                         "more; there is no free room of %llu bytes in what it gave until then",
                         (unsigned long long)bytes);
    if (own->area_count == COHI_NVSHMEM_AREAS)
        return cohi_fail(COH_LIMIT, "nvshmem: no more than %d areas can be allocated",
                         (int)COHI_NVSHMEM_AREAS);
    coh_status status = cohi_nvshmem_guard(endpoint, "nvshmem_align", allocate, &allocation,
                                           sizeof allocation, AREA_LIMIT_NS);
    if (status != COH_OK)
        return status;
    own->refused = !allocation.made;
    if (!allocation.made)
        return cohi_fail(COH_NO_MEMORY,
                         "nvshmem: NVSHMEM does not give %llu bytes; card %d, %s, has %llu, and "
                         "NVSHMEM takes no more of it than NVSHMEM_MAX_MEMORY_PER_GPU, or than "
                         "NVSHMEM_SYMMETRIC_SIZE where its heap cannot grow",
                         (unsigned long long)bytes, endpoint->device, endpoint->name,
                         (unsigned long long)endpoint->memory_bytes);
    if ((uintptr_t)allocation.made % COHI_REGION_ALIGNMENT != 0)
        return cohi_fail(COH_TRANSPORT,
                         "nvshmem: NVSHMEM gave %p, which is not aligned to %d bytes",
                         allocation.made, (int)COHI_REGION_ALIGNMENT);
    cohi_log(COH_LOG_DEBUG, "nvshmem: rank %d: area %d is %llu bytes at %p", endpoint->rank,
             own->area_count, (unsigned long long)bytes, allocation.made);
    own->areas[own->area_count++] = (cohi_nvshmem_area){allocation.made, bytes};
    return COH_OK;
}

coh_status cohi_nvshmem_memory_open(cohi_endpoint *endpoint)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        own->pieces[id].area = -1;
    return add_area(endpoint, round_up(COHI_CUDA_CONTROL_BYTES) + COHI_REGION_ALIGNMENT);
}

/* Areas stay: to free one takes all ranks. They go when NVSHMEM ends. */
void cohi_nvshmem_memory_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++) {
        free(endpoint->segments[id].peers);
        endpoint->segments[id] = (cohi_cuda_segment){.fd = -1};
    }
}

/* ---- pieces ---- */

static bool overlaps(const cohi_nvshmem_piece *a, const cohi_nvshmem_piece *b)
{
    return a->area == b->area && a->offset < b->offset + b->bytes
           && b->offset < a->offset + a->bytes;
}

/* Whether nothing is there; if not, *after is behind what is. */
static bool is_free(const cohi_nvshmem *own, const cohi_nvshmem_piece *wanted, uint64_t *after)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        if (overlaps(&own->pieces[id], wanted)) {
            *after = own->pieces[id].offset + own->pieces[id].bytes;
            return false;
        }
    return true;
}

/* The first place that is free. It depends on the history of segments alone, which is the same on all ranks. */
static bool find_place(const cohi_nvshmem *own, uint64_t bytes, cohi_nvshmem_piece *piece)
{
    for (int area = 0; area < own->area_count; area++) {
        uint64_t offset = 0;
        while (offset + bytes <= own->areas[area].bytes) {
            *piece = (cohi_nvshmem_piece){area, offset, bytes};
            if (is_free(own, piece, &offset))
                return true;
        }
    }
    return false;
}

static char *base_of(const cohi_nvshmem *own, const cohi_nvshmem_piece *piece)
{
    return own->areas[piece->area].base + piece->offset;
}

/* New memory of a heap reads as zero, and what was there may be an earlier segment's. */
static coh_status clear(const cohi_endpoint *endpoint, void *base, uint64_t bytes)
{
    CUstream stream = NULL;
    const cohi_cuda_library *driver = endpoint->library;
    CUresult result = driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemsetD8Async((CUdeviceptr)(uintptr_t)base, 0, bytes, stream);
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamSynchronize(stream);
    if (stream)
        (void)driver->cuStreamDestroy(stream);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(driver, result, "%llu bytes cannot be set to zero",
                                (unsigned long long)bytes);
}

/* The longest stretch that is free, of one area. */
static uint64_t longest_room(const cohi_nvshmem *own)
{
    cohi_nvshmem_piece piece;
    uint64_t least = 0, most = 0;
    for (int area = 0; area < own->area_count; area++)
        most = own->areas[area].bytes > most ? own->areas[area].bytes : most;
    while (least < most) { /* of multiples of the alignment */
        uint64_t half = round_up((least + most + 1) / 2);
        if (find_place(own, half, &piece))
            least = half;
        else
            most = half - COHI_REGION_ALIGNMENT;
    }
    return least;
}

/*
 * What a segment can have: room in what was allocated, or this rank's share of what the card has left, since all ranks
 * on it allocate at the same time. NVSHMEM takes memory in larger granules than it gives.
 */
static uint64_t available(cohi_endpoint *endpoint)
{
    const uint64_t granule = UINT64_C(512) << 20;
    const cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    uint64_t room = longest_room(own), left = cohi_cuda_available(endpoint);
    uint64_t share = left == COHI_UNKNOWN_BYTES ? 0 : left / (uint64_t)endpoint->on_card;
    if (left == COHI_UNKNOWN_BYTES)
        return left;
    share = share > granule && !own->refused ? share - granule : 0;
    return room > share ? room : share;
}

/* ---- slots ---- */

/* A place that is clear, in a new area if need be. Not under the endpoint's lock: it may take long, and who watches for
 * lost ranks needs that. Segments come and go by calls that the ranks make together, one at a time. */
static coh_status find_room(cohi_endpoint *endpoint, uint64_t bytes, cohi_nvshmem_piece *piece)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    coh_status status = COH_OK;
    if (!find_place(own, bytes, piece)) {
        status = add_area(endpoint, bytes);
        *piece = (cohi_nvshmem_piece){own->area_count - 1, 0, bytes};
    }
    if (status != COH_OK)
        return status;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    status = clear(endpoint, base_of(own, piece), bytes);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static coh_status segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec, void **base)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    cohi_nvshmem_piece piece;
    if (spec->existing || spec->kind != COHI_MEMORY_CUDA)
        return cohi_fail(COH_UNSUPPORTED,
                         "nvshmem: memory of the host cannot be a segment on a card");
    coh_status status = find_room(endpoint, round_up(spec->bytes), &piece);
    if (status != COH_OK)
        return status;
    cohi_cuda_region *peers = calloc((size_t)endpoint->size, sizeof *peers);
    if (!peers)
        return cohi_fail(COH_NO_MEMORY, "nvshmem: out of memory for %d ranks", endpoint->size);
    *base = base_of(own, &piece);
    pthread_mutex_lock(&endpoint->lock);
    own->pieces[spec->id] = piece;
    endpoint->segments[spec->id] = (cohi_cuda_segment){
        .there = true,
        .fd = -1,
        .own = {.base = (CUdeviceptr)(uintptr_t)*base, .bytes = piece.bytes, .backed = piece.bytes},
        .peers = peers};
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
    return COH_OK;
}

static void segment_remove(cohi_endpoint *endpoint, int id)
{
    pthread_mutex_lock(&endpoint->lock);
    free(endpoint->segments[id].peers);
    endpoint->segments[id] = (cohi_cuda_segment){.fd = -1};
    cohi_nvshmem_of(endpoint)->pieces[id].area = -1;
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
}

static cohi_nvshmem_key key_of(const cohi_endpoint *endpoint, int id)
{
    const cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    const cohi_nvshmem_piece *piece = &own->pieces[id];
    return (cohi_nvshmem_key){
        .place = (uint64_t)((intptr_t)base_of(own, piece) - (intptr_t)own->areas[0].base),
        .bytes = piece->bytes};
}

static coh_status region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    cohi_nvshmem_key told = key_of(endpoint, id);
    key->fd = -1;
    memset(key->bytes, 0, sizeof key->bytes);
    memcpy(key->bytes, &told, sizeof told);
    return COH_OK;
}

static coh_status region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                cohi_region_key *key)
{
    cohi_nvshmem_key told, mine = key_of(endpoint, id);
    cohi_cuda_segment *segment = &endpoint->segments[id];
    (void)bytes;
    memcpy(&told, key->bytes, sizeof told);
    if (rank == endpoint->rank)
        return COH_OK;
    if (told.place != mine.place || told.bytes != mine.bytes)
        return cohi_fail(COH_TRANSPORT,
                         "nvshmem: rank %d has %llu bytes at %lld of the symmetric heap where this "
                         "rank has %llu at %lld: NVSHMEM has not allocated alike",
                         rank, (unsigned long long)told.bytes, (long long)told.place,
                         (unsigned long long)mine.bytes, (long long)mine.place);
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    const void *own = (const void *)(uintptr_t)segment->own.base;
    cohi_nvshmem *state = cohi_nvshmem_of(endpoint);
    const void *there = state->calls_only ? NULL : state->library->ptr(own, rank);
    state->has_far |= !there;
    segment->peers[rank].base = (CUdeviceptr)(uintptr_t)there;
    cohi_log(COH_LOG_DEBUG, "nvshmem: rank %d: segment %d, at %p, is at %p of rank %d",
             endpoint->rank, id, own, there, rank);
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    return COH_OK;
}

coh_status cohi_nvshmem_segment_try(cohi_endpoint *endpoint, int id, uint64_t bytes)
{
    void *base;
    cohi_segment_spec spec = {.id = id, .kind = COHI_MEMORY_CUDA, .bytes = bytes};
    coh_status status = segment_add(endpoint, &spec, &base);
    for (int rank = 0; rank < endpoint->size && status == COH_OK; rank++) {
        cohi_region_key key;
        (void)region_export(endpoint, id, &key);
        status = region_attach(endpoint, id, rank, bytes, &key);
    }
    return status;
}

const cohi_engine_memory cohi_nvshmem_memory = {
    .size = sizeof cohi_nvshmem_memory,
    .segment_add = segment_add,
    .segment_remove = segment_remove,
    .region_export = region_export,
    .region_attach = region_attach,
    .peer_pointer = cohi_cuda_peer_pointer,
    .peer_address = cohi_cuda_peer_address,
    .zero = cohi_cuda_zero,
    .copy = cohi_cuda_copy,
    .available = available,
    .place_of = cohi_cuda_place_of,
};
