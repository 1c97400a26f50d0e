/* memory.c - segments on the card: address space, backed in parts that the peers map by descriptors. */
#include "engine/cuda/cuda.h"
#include "engine/cuda/under_way.h"

#include "base/error.h"
#include "memory/host_region.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a peer is told of a segment: where it is, for threads of one process, and its last part. */
typedef struct cohi_cuda_key {
    uint64_t base;
    uint64_t bytes;
    uint64_t from, to; /* of the part that the descriptor is for; equal: none yet */
} cohi_cuda_key;

_Static_assert(sizeof(cohi_cuda_key) <= COHI_KEY_BYTES, "it fits a key");

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* ---- address space ---- */

static coh_status reserve(const cohi_endpoint *endpoint, cohi_cuda_region *region, uint64_t bytes)
{
    uint64_t whole = round_up(bytes, endpoint->granule);
    CUresult result =
        endpoint->library->cuMemAddressReserve(&region->base, whole, COHI_REGION_ALIGNMENT, 0, 0);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(endpoint->library, result,
                              "%llu bytes of address space cannot be reserved",
                              (unsigned long long)whole);
    region->bytes = whole;
    return COH_OK;
}

static coh_status make_room(cohi_cuda_region *region)
{
    size_t count = (size_t)region->part_count + 1;
    cohi_cuda_part *parts = realloc(region->parts, count * sizeof *parts);
    if (!parts)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for the parts of a segment");
    region->parts = parts;
    return COH_OK;
}

/* Who may use what is mapped: this rank's card, and of thread-ranks those of the others too. */
static int list_users(const cohi_endpoint *endpoint, CUmemAccessDesc *users, int most)
{
    int count = 0;
    for (int rank = -1; rank < (endpoint->in_process ? endpoint->size : 0) && count < most;
         rank++) {
        int device = rank < 0 ? endpoint->device : endpoint->addresses[rank].device, at = 0;
        while (at < count && users[at].location.id != device)
            at++;
        if (at < count)
            continue;
        users[count++] =
            (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return count;
}

/* Maps the part at its place, as the region's last. Its handle is the region's from then on. */
static coh_status map_part(const cohi_endpoint *endpoint, cohi_cuda_region *region,
                           const cohi_cuda_part *part)
{
    enum { CARDS_MAX = 64 };
    const cohi_cuda_library *library = endpoint->library;
    CUmemAccessDesc users[CARDS_MAX];
    int count = list_users(endpoint, users, CARDS_MAX);
    uint64_t bytes = part->to - part->from;
    coh_status status = make_room(region);
    if (status != COH_OK)
        return status;
    CUresult result = library->cuMemMap(region->base + part->from, bytes, 0, part->handle, 0);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(library, result, "%llu bytes of card %d cannot be mapped",
                              (unsigned long long)bytes, endpoint->device);
    result = library->cuMemSetAccess(region->base + part->from, bytes, users, (size_t)count);
    if (result != CUDA_SUCCESS) {
        (void)library->cuMemUnmap(region->base + part->from, bytes);
        return cohi_cuda_fail(library, result,
                              "%llu bytes cannot be reached by all cards that the ranks use "
                              "(%d; this rank's is card %d)",
                              (unsigned long long)bytes, count, endpoint->device);
    }
    region->parts[region->part_count++] = *part;
    region->backed = part->to;
    return COH_OK;
}

/* Gives up the parts that begin at `from` or later. */
static void unmap_from(const cohi_endpoint *endpoint, cohi_cuda_region *region, uint64_t from)
{
    const cohi_cuda_library *library = endpoint->library;
    while (region->part_count > 0 && region->parts[region->part_count - 1].from >= from) {
        const cohi_cuda_part *part = &region->parts[--region->part_count];
        (void)library->cuMemUnmap(region->base + part->from, part->to - part->from);
        (void)library->cuMemRelease(part->handle);
        region->backed = part->from;
    }
}

static void release(const cohi_endpoint *endpoint, cohi_cuda_region *region)
{
    unmap_from(endpoint, region, 0);
    if (region->bytes > 0)
        (void)endpoint->library->cuMemAddressFree(region->base, region->bytes);
    free(region->parts);
    *region = (cohi_cuda_region){0};
}

/* ---- this rank's own ---- */

static void close_descriptor(cohi_cuda_segment *segment)
{
    if (segment->fd >= 0)
        (void)close(segment->fd);
    segment->fd = -1;
}

static coh_status segment_add(cohi_endpoint *endpoint, const cohi_segment_spec *spec, void **base)
{
    if (spec->existing || spec->kind != COHI_MEMORY_CUDA)
        return cohi_fail(COH_UNSUPPORTED, "cuda: memory of the host cannot be a segment on a card");
    cohi_cuda_segment *segment = &endpoint->segments[spec->id];
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    *segment = (cohi_cuda_segment){.fd = -1};
    segment->peers = calloc((size_t)endpoint->size, sizeof *segment->peers);
    coh_status status =
        segment->peers
            ? reserve(endpoint, &segment->own, spec->bytes)
            : cohi_fail(COH_NO_MEMORY, "cuda: out of memory for %d ranks", endpoint->size);
    segment->there = status == COH_OK;
    if (segment->there) {
        *base = (void *)(uintptr_t)segment->own.base;
    } else {
        free(segment->peers);
        segment->peers = NULL;
    }
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static coh_status create_part(const cohi_endpoint *endpoint, cohi_cuda_part *part)
{
    CUmemAllocationProp kind = cohi_cuda_allocation(endpoint);
    CUresult result =
        endpoint->library->cuMemCreate(&part->handle, part->to - part->from, &kind, 0);
    if (result == CUDA_SUCCESS)
        return COH_OK;
    size_t available = 0, all = 0;
    (void)endpoint->library->cuMemGetInfo(&available, &all);
    return cohi_cuda_fail(endpoint->library, result,
                          "%llu bytes cannot be had of card %d, %s, which has %llu, of them %llu "
                          "free",
                          (unsigned long long)(part->to - part->from), endpoint->device,
                          endpoint->name, (unsigned long long)all, (unsigned long long)available);
}

/* One growth is one part, whose descriptor the next export gives out. */
static coh_status extend(cohi_endpoint *endpoint, cohi_cuda_segment *segment, uint64_t to)
{
    cohi_cuda_part part = {.from = segment->own.backed, .to = round_up(to, endpoint->granule)};
    coh_status status = create_part(endpoint, &part);
    if (status != COH_OK)
        return status;
    status = map_part(endpoint, &segment->own, &part);
    if (status != COH_OK)
        (void)endpoint->library->cuMemRelease(part.handle);
    else
        close_descriptor(segment);
    return status;
}

/* Before others write to it. Nothing runs on the card that could hold this up. */
static coh_status clear_control(const cohi_endpoint *endpoint, const cohi_cuda_segment *segment)
{
    CUstream stream = NULL;
    const cohi_cuda_library *library = endpoint->library;
    CUresult result = library->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS)
        result = library->cuMemsetD8Async(segment->own.base, 0, segment->own.backed, stream);
    if (result == CUDA_SUCCESS)
        result = library->cuStreamSynchronize(stream);
    if (stream)
        (void)library->cuStreamDestroy(stream);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(library, result, "%llu bytes cannot be set to zero",
                                (unsigned long long)segment->own.backed);
}

static coh_status segment_commit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_cuda_segment *segment = &endpoint->segments[id];
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    (void)from; /* core backs a segment from its start on, without gaps */
    pthread_mutex_lock(&endpoint->lock);
    coh_status status = to > segment->own.backed ? extend(endpoint, segment, to) : COH_OK;
    if (status == COH_OK && id == COHI_SEGMENT_CONTROL)
        status = clear_control(endpoint, segment);
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

/* A growth that did not come about: the others' parts of it go too. */
static void segment_decommit(cohi_endpoint *endpoint, int id, uint64_t from, uint64_t to)
{
    cohi_cuda_segment *segment = &endpoint->segments[id];
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    (void)to; /* it is the end */
    pthread_mutex_lock(&endpoint->lock);
    unmap_from(endpoint, &segment->own, from);
    for (int rank = 0; rank < endpoint->size; rank++)
        unmap_from(endpoint, &segment->peers[rank], from);
    close_descriptor(segment);
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
}

/* Under the lock, with the context current. */
static void remove_segment(cohi_endpoint *endpoint, cohi_cuda_segment *segment)
{
    for (int rank = 0; segment->there && rank < endpoint->size; rank++)
        release(endpoint, &segment->peers[rank]);
    if (segment->there) {
        release(endpoint, &segment->own);
        close_descriptor(segment);
    }
    free(segment->peers);
    *segment = (cohi_cuda_segment){.fd = -1};
}

static void segment_remove(cohi_endpoint *endpoint, int id)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    remove_segment(endpoint, &endpoint->segments[id]);
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
}

void cohi_cuda_segments_close(cohi_endpoint *endpoint)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        if (endpoint->segments[id].there)
            remove_segment(endpoint, &endpoint->segments[id]);
}

/* ---- the others' ---- */

/* The descriptor of the last part; threads of one process use each other's addresses. */
static coh_status export_part(const cohi_endpoint *endpoint, cohi_cuda_segment *segment)
{
    if (endpoint->in_process || segment->own.part_count == 0 || segment->fd >= 0)
        return COH_OK;
    const cohi_cuda_part *part = &segment->own.parts[segment->own.part_count - 1];
    CUresult result = endpoint->library->cuMemExportToShareableHandle(
        &segment->fd, part->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS)
        return COH_OK;
    segment->fd = -1;
    return cohi_cuda_fail(endpoint->library, result, "memory of card %d cannot be exported",
                          endpoint->device);
}

static coh_status region_export(cohi_endpoint *endpoint, int id, cohi_region_key *key)
{
    cohi_cuda_segment *segment = &endpoint->segments[id];
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    coh_status status = export_part(endpoint, segment);
    const cohi_cuda_region *own = &segment->own;
    cohi_cuda_key told = {.base = own->base, .bytes = own->bytes};
    if (own->part_count > 0) {
        told.from = own->parts[own->part_count - 1].from;
        told.to = own->parts[own->part_count - 1].to;
    }
    key->fd = segment->fd;
    memset(key->bytes, 0, sizeof key->bytes);
    memcpy(key->bytes, &told, sizeof told);
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

static coh_status import_part(const cohi_endpoint *endpoint, cohi_cuda_region *region,
                              const cohi_cuda_key *told, int rank, int fd)
{
    cohi_cuda_part part = {.from = told->from, .to = told->to};
    if (told->from != region->backed || told->to > region->bytes || told->from >= told->to)
        return cohi_fail(COH_TRANSPORT,
                         "cuda: rank %d tells of bytes %llu to %llu of a segment of %llu, of which "
                         "%llu are mapped",
                         rank, (unsigned long long)told->from, (unsigned long long)told->to,
                         (unsigned long long)region->bytes, (unsigned long long)region->backed);
    CUresult result = endpoint->library->cuMemImportFromShareableHandle(
        &part.handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(endpoint->library, result,
                              "memory of rank %d's card %d cannot be mapped by card %d", rank,
                              endpoint->addresses[rank].device, endpoint->device);
    coh_status status = map_part(endpoint, region, &part);
    if (status != COH_OK)
        (void)endpoint->library->cuMemRelease(part.handle);
    return status;
}

/* Of a rank of this host: the address space at first, then a part at a time. */
static coh_status attach_near(const cohi_endpoint *endpoint, cohi_cuda_region *region,
                              const cohi_cuda_key *told, int rank, cohi_region_key *key)
{
    if (endpoint->in_process) {
        region->base = (CUdeviceptr)told->base;
        return COH_OK;
    }
    coh_status status = region->bytes > 0 ? COH_OK : reserve(endpoint, region, told->bytes);
    if (status != COH_OK || key->fd < 0)
        return status;
    status = import_part(endpoint, region, told, rank, key->fd);
    (void)close(key->fd);
    key->fd = -1;
    return status;
}

static coh_status region_attach(cohi_endpoint *endpoint, int id, int rank, uint64_t bytes,
                                cohi_region_key *key)
{
    cohi_cuda_key told;
    cohi_cuda_segment *segment = &endpoint->segments[id];
    (void)bytes;
    if (rank == endpoint->rank || !cohi_cuda_is_near(endpoint, rank))
        return COH_OK;
    memcpy(&told, key->bytes, sizeof told);
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    coh_status status = attach_near(endpoint, &segment->peers[rank], &told, rank, key);
    endpoint->attached++;
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    return status;
}

const cohi_engine_memory cohi_cuda_memory = {
    .size = sizeof cohi_cuda_memory,
    .segment_add = segment_add,
    .segment_commit = segment_commit,
    .segment_decommit = segment_decommit,
    .segment_remove = segment_remove,
    .region_export = region_export,
    .region_attach = region_attach,
    .peer_pointer = cohi_cuda_peer_pointer,
    .peer_address = cohi_cuda_peer_address,
    .zero = cohi_cuda_zero,
    .copy = cohi_cuda_copy,
    .available = cohi_cuda_available,
    .place_of = cohi_cuda_place_of,
};
