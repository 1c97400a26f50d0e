#include "engine/cuda/under_way.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* How long a caller who gives an operation up is made to wait for its end, so that memory which the card
 * still writes to is not used for something else. A copy that takes longer is stuck with its card. */
#define GIVE_UP_NS UINT64_C(2000000000)

/* ---- opening ---- */

coh_status cohi_cuda_under_way_open(cohi_endpoint *endpoint)
{
    const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    const cohi_cuda_library *library = endpoint->library;
    void *words = NULL;
    endpoint->last = &endpoint->pending;
    endpoint->free_words = ~UINT64_C(0);
    CUresult result = library->cuMemHostAlloc(&words, COHI_CUDA_WORDS * sizeof(uint64_t), flags);
    endpoint->words = words;
    if (result == CUDA_SUCCESS)
        result = library->cuMemHostGetDevicePointer(&endpoint->words_there, words, 0);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(library, result, "pinned memory cannot be had");
    return cohi_cuda_image_find(endpoint, "atomic", "cohi_cuda_atomic", &endpoint->atomic_kernel);
}

static void free_list(const cohi_endpoint *endpoint, cohi_cuda_pending *list)
{
    while (list) {
        cohi_cuda_pending *next = list->next;
        (void)endpoint->library->cuEventDestroy(list->event);
        free(list);
        list = next;
    }
}

void cohi_cuda_under_way_close(cohi_endpoint *endpoint)
{
    for (unsigned context = 0; context < COHI_CONTEXTS_MAX; context++)
        cohi_cuda_lane_close(endpoint, context);
    free_list(endpoint, endpoint->pending);
    free_list(endpoint, endpoint->spare);
    endpoint->pending = endpoint->spare = NULL;
    if (endpoint->words)
        (void)endpoint->library->cuMemFreeHost(endpoint->words);
    endpoint->words = NULL;
}

/* ---- streams ---- */

/* Streams of the engine's do not wait for the default stream of the program, nor it for them. */
coh_status cohi_cuda_lane(cohi_endpoint *endpoint, unsigned context, CUstream *stream)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&endpoint->lock);
    if (!endpoint->lanes[context])
        result = endpoint->library->cuStreamCreateWithPriority(&endpoint->lanes[context],
                                                               CU_STREAM_NON_BLOCKING, 0);
    *stream = endpoint->lanes[context];
    pthread_mutex_unlock(&endpoint->lock);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "a stream cannot be had");
}

void cohi_cuda_lane_close(cohi_endpoint *endpoint, unsigned context)
{
    pthread_mutex_lock(&endpoint->lock);
    CUstream stream = endpoint->lanes[context];
    endpoint->lanes[context] = NULL;
    pthread_mutex_unlock(&endpoint->lock);
    if (stream)
        (void)endpoint->library->cuStreamDestroy(stream);
}

/* ---- following ---- */

static coh_status new_pending(cohi_endpoint *endpoint, cohi_cuda_pending **made)
{
    pthread_mutex_lock(&endpoint->lock);
    cohi_cuda_pending *pending = endpoint->spare;
    if (pending)
        endpoint->spare = pending->next;
    pthread_mutex_unlock(&endpoint->lock);
    if (!pending) {
        pending = calloc(1, sizeof *pending);
        CUresult result =
            pending ? endpoint->library->cuEventCreate(&pending->event, CU_EVENT_DISABLE_TIMING)
                    : CUDA_ERROR_OUT_OF_MEMORY;
        if (result != CUDA_SUCCESS) {
            free(pending);
            return cohi_cuda_fail(endpoint->library, result, "an event cannot be had");
        }
    }
    *made = pending;
    return COH_OK;
}

static void give_pending(cohi_endpoint *endpoint, cohi_cuda_pending *pending)
{
    pthread_mutex_lock(&endpoint->lock);
    pending->next = endpoint->spare;
    endpoint->spare = pending;
    pthread_mutex_unlock(&endpoint->lock);
}

/* The event is recorded under the lock, so that the list is in the order of each stream. */
static coh_status follow(cohi_endpoint *endpoint, const cohi_cuda_pending *what)
{
    cohi_cuda_pending *pending = NULL;
    coh_status status = new_pending(endpoint, &pending);
    if (status != COH_OK)
        return status;
    CUevent event = pending->event;
    *pending = *what;
    pending->event = event;
    pthread_mutex_lock(&endpoint->lock);
    CUresult result = endpoint->library->cuEventRecord(event, what->stream);
    if (result == CUDA_SUCCESS) {
        pending->next = NULL;
        *endpoint->last = pending;
        endpoint->last = &pending->next;
    }
    pthread_mutex_unlock(&endpoint->lock);
    if (result == CUDA_SUCCESS)
        return COH_OK;
    give_pending(endpoint, pending);
    return cohi_cuda_fail(endpoint->library, result, "an event cannot be recorded");
}

coh_status cohi_cuda_follow(cohi_endpoint *endpoint, CUstream stream, cohi_op *op)
{
    cohi_cuda_pending what = {.op = op, .stream = stream, .word = -1};
    return op ? follow(endpoint, &what) : COH_OK;
}

coh_status cohi_cuda_follow_word(cohi_endpoint *endpoint, CUstream stream, cohi_op *op, int word,
                                 void *result, size_t bytes)
{
    cohi_cuda_pending what = {
        .op = op, .stream = stream, .word = word, .result = result, .result_bytes = bytes};
    return follow(endpoint, &what);
}

/* ---- words ---- */

/* The card takes some microseconds for an atomic, so that all are taken only by who issues many. */
int cohi_cuda_word_take(cohi_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->lock);
    int word = endpoint->free_words ? __builtin_ctzll(endpoint->free_words) : -1;
    if (word >= 0)
        endpoint->free_words &= ~(UINT64_C(1) << word);
    pthread_mutex_unlock(&endpoint->lock);
    return word;
}

void cohi_cuda_word_give(cohi_endpoint *endpoint, int word)
{
    pthread_mutex_lock(&endpoint->lock);
    endpoint->free_words |= UINT64_C(1) << word;
    pthread_mutex_unlock(&endpoint->lock);
}

/* ---- ends ---- */

/* Whether an earlier one of the same stream is still there: then this one is not over either. */
static bool is_behind(const cohi_endpoint *endpoint, const cohi_cuda_pending *pending)
{
    const cohi_cuda_pending *other = endpoint->pending;
    while (other != pending && other->stream != pending->stream)
        other = other->next;
    return other != pending;
}

/* Takes the first that is over out of the list. Under the lock. */
static cohi_cuda_pending *take_ended(cohi_endpoint *endpoint, CUresult *result)
{
    for (cohi_cuda_pending **at = &endpoint->pending; *at; at = &(*at)->next) {
        cohi_cuda_pending *pending = *at;
        if (is_behind(endpoint, pending))
            continue;
        *result = endpoint->library->cuEventQuery(pending->event);
        if (*result == CUDA_ERROR_NOT_READY)
            continue;
        *at = pending->next;
        if (endpoint->last == &pending->next)
            endpoint->last = at;
        return pending;
    }
    return NULL;
}

/* The word and the op, under the lock: whoever cancels it finds it done or not at all. */
static bool conclude(cohi_endpoint *endpoint, cohi_cuda_pending *pending, CUresult result)
{
    cohi_op *op = pending->op;
    if (pending->word >= 0) {
        if (pending->result && result == CUDA_SUCCESS)
            memcpy(pending->result, &endpoint->words[pending->word], pending->result_bytes);
        endpoint->free_words |= UINT64_C(1) << pending->word;
    }
    pending->next = endpoint->spare;
    endpoint->spare = pending;
    if (!op)
        return false;
    op->status = result == CUDA_SUCCESS ? COH_OK : COH_TRANSPORT;
    atomic_store_explicit(&op->done, 1, memory_order_release);
    return true;
}

static void tell_failure(const cohi_endpoint *endpoint, CUresult result)
{
    const char *words = NULL;
    endpoint->library->cuGetErrorString(result, &words);
    cohi_log(COH_LOG_ERROR, "cuda: card %d, %s: an operation failed: %s", endpoint->device,
             endpoint->name, words ? words : "the driver does not say why");
}

void cohi_cuda_under_way_progress(cohi_endpoint *endpoint)
{
    bool any = false;
    /* Looked at without the lock, as everyone who waits for anything comes by. */
    if (!__atomic_load_n(&endpoint->pending, __ATOMIC_RELAXED))
        return;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->lock);
    CUresult result, failure = CUDA_SUCCESS;
    for (cohi_cuda_pending *ended; (ended = take_ended(endpoint, &result));) {
        failure = result != CUDA_SUCCESS ? result : failure;
        any |= conclude(endpoint, ended, result);
    }
    pthread_mutex_unlock(&endpoint->lock);
    cohi_cuda_leave(endpoint, guard);
    if (failure != CUDA_SUCCESS)
        tell_failure(endpoint, failure);
    if (any)
        endpoint->upcalls->arrived(endpoint->world);
}

static bool forget(cohi_endpoint *endpoint, cohi_op *op)
{
    bool found = false;
    pthread_mutex_lock(&endpoint->lock);
    for (cohi_cuda_pending *pending = endpoint->pending; pending; pending = pending->next) {
        if (pending->op != op)
            continue;
        pending->op = NULL;
        pending->result = NULL;
        found = true;
    }
    pthread_mutex_unlock(&endpoint->lock);
    return found;
}

void cohi_cuda_under_way_cancel(cohi_endpoint *endpoint, cohi_op *op)
{
    uint64_t until = cohi_now_ns() + GIVE_UP_NS;
    do {
        cohi_cuda_under_way_progress(endpoint);
    } while (!atomic_load_explicit(&op->done, memory_order_acquire) && cohi_now_ns() < until);
    if (!forget(endpoint, op))
        return;
    op->status = COH_TRANSPORT;
    atomic_store_explicit(&op->done, 1, memory_order_release);
}

/* The first stream waits for all others. */
coh_status cohi_cuda_under_way_leave(cohi_endpoint *endpoint, cohi_op *op)
{
    CUstream first;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    coh_status status = cohi_cuda_lane(endpoint, COHI_CONTEXT_DEFAULT, &first);
    for (unsigned context = 1; context < COHI_CONTEXTS_MAX && status == COH_OK; context++) {
        CUstream stream = endpoint->lanes[context];
        cohi_cuda_pending *mark = NULL;
        if (!stream)
            continue;
        status = new_pending(endpoint, &mark);
        if (status != COH_OK)
            break;
        CUresult result = endpoint->library->cuEventRecord(mark->event, stream);
        if (result == CUDA_SUCCESS)
            result = endpoint->library->cuStreamWaitEvent(first, mark->event, 0);
        give_pending(endpoint, mark);
        if (result != CUDA_SUCCESS)
            status = cohi_cuda_fail(endpoint->library, result, "streams cannot be joined");
    }
    if (status == COH_OK)
        status = cohi_cuda_follow(endpoint, first, op);
    cohi_cuda_leave(endpoint, guard);
    return status;
}
