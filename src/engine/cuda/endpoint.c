/* endpoint.c - endpoints on a card, opened, connected and closed: what engines for memory of a card share. */
#include "engine/cuda/cuda.h"

#include "base/error.h"
#include "engine/cuda/cards.h"
#include "engine/cuda/under_way.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- entering ---- */

cohi_cuda_guard cohi_cuda_enter(const cohi_endpoint *endpoint)
{
    cohi_cuda_guard guard = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
    guard.entered = endpoint->library->cuCtxPushCurrent(endpoint->context) == CUDA_SUCCESS;
    (void)endpoint->library->cuThreadExchangeStreamCaptureMode(&guard.mode);
    return guard;
}

void cohi_cuda_leave(const cohi_endpoint *endpoint, cohi_cuda_guard guard)
{
    CUcontext context;
    (void)endpoint->library->cuThreadExchangeStreamCaptureMode(&guard.mode);
    if (guard.entered)
        (void)endpoint->library->cuCtxPopCurrent(&context);
}

/* ---- opening ---- */

/* Which card; it is not looked at before it is known to be there. */
static coh_status choose_card(cohi_endpoint *endpoint, const cohi_engine_args *args)
{
    int count = 0;
    coh_status status = cohi_cuda_cards_count(endpoint->library, &count);
    if (status != COH_OK)
        return status;
    if (args->device >= count)
        return cohi_fail(COH_INVALID_ARGUMENT, "there is no card %d; this host has %d (0 to %d)",
                         args->device, count, count - 1);
    endpoint->device = args->device >= 0 ? args->device : args->local_rank % count;
    return cohi_cuda_cards_look(endpoint);
}

static coh_status take_context(cohi_endpoint *endpoint)
{
    CUresult result =
        endpoint->library->cuDevicePrimaryCtxRetain(&endpoint->context, endpoint->card);
    if (result == CUDA_SUCCESS)
        return COH_OK;
    endpoint->context = NULL;
    return cohi_cuda_fail(endpoint->library, result, "card %d, %s, cannot be used",
                          endpoint->device, endpoint->name);
}

static coh_status take_status_page(cohi_endpoint *endpoint)
{
    const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    const cohi_cuda_library *library = endpoint->library;
    CUresult result = library->cuMemHostAlloc(&endpoint->status, COHI_CUDA_STATUS_BYTES, flags);
    if (result == CUDA_SUCCESS)
        result = library->cuMemHostGetDevicePointer(&endpoint->status_there, endpoint->status, 0);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(library, result, "%d bytes of pinned memory cannot be had",
                              (int)COHI_CUDA_STATUS_BYTES);
    memset(endpoint->status, 0, COHI_CUDA_STATUS_BYTES);
    return COH_OK;
}

/* With the context current. */
static coh_status furnish(cohi_endpoint *endpoint)
{
    coh_status status = take_status_page(endpoint);
    if (status == COH_OK)
        status = cohi_cuda_image_open(endpoint);
    if (status == COH_OK)
        status = cohi_cuda_under_way_open(endpoint);
    if (status == COH_OK)
        status = cohi_cuda_streams_open(endpoint);
    return status;
}

static void strip(cohi_endpoint *endpoint)
{
    cohi_cuda_streams_close(endpoint);
    cohi_cuda_under_way_close(endpoint);
    endpoint->close_segments(endpoint);
    cohi_cuda_image_close(endpoint);
    if (endpoint->status)
        (void)endpoint->library->cuMemFreeHost(endpoint->status);
}

void cohi_cuda_close(cohi_endpoint *endpoint)
{
    if (endpoint->context) {
        cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
        strip(endpoint);
        cohi_cuda_leave(endpoint, guard);
        (void)endpoint->library->cuDevicePrimaryCtxRelease(endpoint->card);
    }
    pthread_mutex_destroy(&endpoint->lock);
    free(endpoint->addresses);
    free(endpoint->host_of);
    free(endpoint->lost);
    free(endpoint);
}

static coh_status allocate(const cohi_engine_args *args, cohi_cuda_closer *close_segments,
                           cohi_endpoint **made)
{
    size_t size = (size_t)args->need.size;
    cohi_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for an endpoint");
    *endpoint = (cohi_endpoint){.upcalls = args->upcalls,
                                .world = args->world,
                                .rank = args->rank,
                                .size = args->need.size,
                                .in_process = args->need.in_process != 0,
                                .close_segments = close_segments};
    pthread_mutex_init(&endpoint->lock, NULL);
    endpoint->addresses = calloc(size, sizeof *endpoint->addresses);
    endpoint->host_of = calloc(size, sizeof *endpoint->host_of);
    endpoint->lost = calloc(size, sizeof *endpoint->lost);
    if (endpoint->addresses && endpoint->host_of && endpoint->lost) {
        *made = endpoint;
        return COH_OK;
    }
    cohi_cuda_close(endpoint);
    return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for %d ranks", args->need.size);
}

coh_status cohi_cuda_open(const cohi_engine_args *args, cohi_cuda_closer *close_segments,
                          cohi_endpoint **made)
{
    const cohi_cuda_library *library;
    cohi_endpoint *endpoint = NULL;
    coh_status status = cohi_cuda_library_open(&library);
    if (status == COH_OK)
        status = allocate(args, close_segments, &endpoint);
    if (status != COH_OK)
        return status;
    endpoint->library = library;
    status = choose_card(endpoint, args);
    if (status == COH_OK)
        status = take_context(endpoint);
    if (status == COH_OK) {
        cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
        status = furnish(endpoint);
        cohi_cuda_leave(endpoint, guard);
    }
    if (status == COH_OK)
        *made = endpoint;
    else
        cohi_cuda_close(endpoint);
    return status;
}

/* ---- connecting ---- */

/* MPS may give a process a part of the card (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE), and the driver then tells of
 * that part alone. */
static int multiprocessors_of_card(const cohi_endpoint *endpoint)
{
    const char *text = endpoint->mps ? getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") : NULL;
    double percent = text ? strtod(text, NULL) : 100;
    bool part = percent > 0 && percent < 100;
    return part ? (int)(endpoint->multiprocessors * 100 / percent) : endpoint->multiprocessors;
}

coh_status cohi_cuda_get_address(cohi_endpoint *endpoint, unsigned char *address)
{
    cohi_cuda_address mine = {.pid = (int32_t)getpid(),
                              .device = endpoint->device,
                              .mps = endpoint->mps,
                              .multiprocessors = endpoint->multiprocessors,
                              .of_card = multiprocessors_of_card(endpoint)};
    memcpy(mine.uuid, endpoint->uuid, sizeof mine.uuid);
    memset(address, 0, COHI_ADDRESS_BYTES);
    memcpy(address, &mine, sizeof mine);
    return COH_OK;
}

static bool is_on_card(const cohi_endpoint *endpoint, int rank)
{
    return cohi_cuda_is_near(endpoint, rank)
           && memcmp(endpoint->addresses[rank].uuid, endpoint->uuid, sizeof endpoint->uuid) == 0;
}

/* How the ranks of this card share it: the worst that any two of them have to live with. */
static void judge_sharing(cohi_endpoint *endpoint)
{
    bool processes = false, mps = true;
    endpoint->on_card = 0;
    endpoint->card_index = 0;
    for (int rank = 0; rank < endpoint->size; rank++) {
        if (!is_on_card(endpoint, rank))
            continue;
        endpoint->card_index += rank < endpoint->rank;
        endpoint->on_card++;
        processes |= !endpoint->in_process && rank != endpoint->rank;
        mps &= endpoint->addresses[rank].mps != 0;
    }
    if (endpoint->on_card == 1)
        endpoint->sharing = COHI_CUDA_ALONE;
    else if (!processes)
        endpoint->sharing = COHI_CUDA_THREADS;
    else
        endpoint->sharing = mps ? COHI_CUDA_MPS : COHI_CUDA_TURNS;
}

coh_status cohi_cuda_connect(cohi_endpoint *endpoint,
                             const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                             const int *host_of)
{
    for (int rank = 0; rank < endpoint->size; rank++)
        memcpy(&endpoint->addresses[rank], addresses[rank], sizeof endpoint->addresses[rank]);
    memcpy(endpoint->host_of, host_of, (size_t)endpoint->size * sizeof *host_of);
    judge_sharing(endpoint);
    return COH_OK;
}

/* ---- the rest of its life ---- */

void cohi_cuda_query(const cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    facts->device = endpoint->device;
    facts->sharing = (int)endpoint->sharing;
    facts->memory_bytes = endpoint->memory_bytes;
}

void cohi_cuda_lose(cohi_endpoint *endpoint, int rank)
{
    pthread_mutex_lock(&endpoint->lock);
    bool known = endpoint->lost[rank];
    endpoint->lost[rank] = true;
    pthread_mutex_unlock(&endpoint->lock);
    if (!known)
        cohi_cuda_streams_lose(endpoint, rank);
}
