/* chain.c - the caller's streams: which have work of this engine, and in which order a team's operations are. */
#include "engine/cuda/streams.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* What the driver has where CUDA_DEVICE_MAX_CONNECTIONS does not say. */
enum { USUAL_QUEUES = 8, QUEUES_MAX = 32, OWN_STREAMS = 3 };

/*
 * A thread-rank that has twice so many operations that wait under way on a stream is held back. Where the card's queue is
 * full, cuLaunchKernel waits inside the driver, and keeps the other ranks of the process from starting what it waits for:
 * four threads under MPS with 60 collectives each stood still for ever in one of some twenty runs. But not for ever: ranks
 * may have begun with different teams, or a rank may end its own waits later.
 */
enum { MARK_EVERY = 4 };
#define HOLD_NS (100 * COHI_NS_PER_MS)

/* Streams of all thread-ranks of this process that may have a kernel which waits. */
static atomic_int waiting_streams;

/*
 * Streams of one process share the card's queues. Behind a kernel that waits, the queue stands still: so that
 * no kernel waits for one behind it, each stream needs a queue to itself. Three of each rank are left to the engine's own: what
 * calls of the host copy, what they run, and what ends the waits of others.
 */
static int most_waiting_streams(const cohi_endpoint *endpoint)
{
    const char *set = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    int queues = set ? atoi(set) : USUAL_QUEUES;
    if (queues < 1 || queues > QUEUES_MAX)
        queues = USUAL_QUEUES;
    int left = queues - OWN_STREAMS * endpoint->on_card;
    return left > endpoint->on_card ? left : endpoint->on_card;
}

/* ---- tails ---- */

/* All on it is over, and so are the waits. */
static void free_tail(cohi_endpoint *endpoint, int index)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    size_t kept = 0;
    streams->tails[index].id = 0;
    atomic_fetch_sub(&waiting_streams, 1);
    for (size_t i = 0; i < streams->awaited_count; i++)
        if (streams->awaited[i].tail != index)
            streams->awaited[kept++] = streams->awaited[i];
    streams->awaited_count = kept;
    for (int i = 0; i < COHI_CUDA_TEAMS; i++)
        if (endpoint->streams->teams[i].tail == index)
            endpoint->streams->teams[i].tail = -1;
}

/* Streams on which all has been done need not be remembered. */
static void prune(cohi_endpoint *endpoint)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    for (int i = 0; i < COHI_CUDA_STREAMS_MAX; i++) {
        const cohi_cuda_tail *tail = &endpoint->streams->tails[i];
        if (tail->id && endpoint->library->cuEventQuery(tail->event) == CUDA_SUCCESS)
            free_tail(endpoint, i);
    }
    cohi_cuda_leave(endpoint, guard);
}

static int find_tail(const cohi_endpoint *endpoint, uint64_t id)
{
    for (int i = 0; i < COHI_CUDA_STREAMS_MAX; i++)
        if (endpoint->streams->tails[i].id == id)
            return i;
    return -1;
}

static bool is_crowded(const cohi_endpoint *endpoint)
{
    return endpoint->sharing == COHI_CUDA_THREADS
           && atomic_load(&waiting_streams) >= most_waiting_streams(endpoint);
}

static CUresult make_event(const cohi_endpoint *endpoint, CUevent *event)
{
    return *event ? CUDA_SUCCESS : endpoint->library->cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

static coh_status make_events(cohi_endpoint *endpoint, cohi_cuda_tail *tail)
{
    CUresult result = make_event(endpoint, &tail->event);
    for (int i = 0; i < 2 && result == CUDA_SUCCESS; i++)
        result = make_event(endpoint, &tail->marks[i]);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "an event cannot be made");
}

static coh_status take_tail(cohi_endpoint *endpoint, cohi_cuda_lineup *lineup)
{
    lineup->tail = find_tail(endpoint, lineup->id);
    if (lineup->tail >= 0)
        return COH_OK;
    lineup->tail = find_tail(endpoint, 0);
    if (lineup->tail < 0 || is_crowded(endpoint)) {
        prune(endpoint);
        lineup->tail = find_tail(endpoint, 0);
    }
    if (lineup->tail < 0 || is_crowded(endpoint))
        return cohi_fail(COH_LIMIT,
                         "operations that wait are under way on %d streams of this process, and no "
                         "more can be told from each other by card %d; CUDA_DEVICE_MAX_CONNECTIONS "
                         "may be up to %d",
                         atomic_load(&waiting_streams), endpoint->device, (int)QUEUES_MAX);
    cohi_cuda_tail *tail = &endpoint->streams->tails[lineup->tail];
    coh_status status = make_events(endpoint, tail);
    if (status != COH_OK)
        return status;
    tail->id = lineup->id;
    tail->since = 0;
    atomic_fetch_add(&waiting_streams, 1);
    return COH_OK;
}

/* What was recorded as the next mark last time is not over: then another cannot be set yet. */
static bool is_far_ahead(const cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup)
{
    const cohi_cuda_tail *tail = &endpoint->streams->tails[lineup->tail];
    if (endpoint->sharing != COHI_CUDA_THREADS || tail->since != MARK_EVERY - 1)
        return false;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint); /* another rank may be capturing */
    CUresult result = endpoint->library->cuEventQuery(tail->marks[tail->next]);
    cohi_cuda_leave(endpoint, guard);
    return result == CUDA_ERROR_NOT_READY;
}

/* The lock is not held meanwhile: the others may wait for an operation of another thread of this rank. */
static coh_status hold_back(cohi_endpoint *endpoint, cohi_cuda_lineup *lineup)
{
    enum { LOOK_US = 20 };
    coh_status status = COH_OK;
    uint64_t until_ns = cohi_now_ns() + HOLD_NS;
    int held = cohi_cancel_hold(); /* the context is current, and is taken back at the end */
    while (status == COH_OK && is_far_ahead(endpoint, lineup) && cohi_now_ns() < until_ns) {
        pthread_mutex_unlock(&endpoint->streams->lock);
        usleep(LOOK_US);
        pthread_mutex_lock(&endpoint->streams->lock);
        status = take_tail(endpoint, lineup);
    }
    cohi_cancel_release(held);
    return status;
}

/* The operation that was enqueued last is the last one. */
static CUresult record(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup)
{
    cohi_cuda_tail *tail = &endpoint->streams->tails[lineup->tail];
    const cohi_cuda_library *library = endpoint->library;
    CUresult result = CUDA_SUCCESS;
    if (endpoint->sharing == COHI_CUDA_THREADS && ++tail->since >= MARK_EVERY) {
        result = library->cuEventRecord(tail->marks[tail->next], lineup->stream);
        tail->since = 0;
        tail->next ^= 1;
    }
    /* The last one: where it is over, so are the marks. */
    return result == CUDA_SUCCESS ? library->cuEventRecord(tail->event, lineup->stream) : result;
}

/* ---- streams ---- */

static coh_status check_context(const cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup)
{
    CUcontext context = NULL;
    CUresult result = endpoint->library->cuStreamGetCtx(lineup->stream, &context);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(endpoint->library, result, "the stream %p cannot be used",
                              (void *)lineup->stream);
    if (context == endpoint->context)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "the stream %p is of another context than the primary one of card %d, %s, "
                     "where the rank's heaps are",
                     (void *)lineup->stream, endpoint->device, endpoint->name);
}

static coh_status check_capture(const cohi_endpoint *endpoint, cohi_cuda_lineup *lineup)
{
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = endpoint->library->cuStreamIsCapturing(lineup->stream, &state);
    if (result != CUDA_SUCCESS || state == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        return cohi_cuda_fail(endpoint->library,
                              result != CUDA_SUCCESS ? result
                                                     : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                              "the stream %p cannot be used", (void *)lineup->stream);
    lineup->captured = state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (lineup->captured && cohi_cuda_takes_turns(endpoint))
        return cohi_fail(COH_UNSUPPORTED,
                         "the stream is being captured, but several processes share card %d, %s, "
                         "without MPS: what they wait for is counted when it is enqueued; start "
                         "nvidia-cuda-mps-control -d before them",
                         endpoint->device, endpoint->name);
    return COH_OK;
}

/* The legacy default stream waits for all others of the process, also for those of other thread-ranks that wait
 * for this one. */
static coh_status check_default(const cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                bool waits)
{
    bool legacy = lineup->stream == NULL || lineup->stream == CU_STREAM_LEGACY;
    if (!waits || !legacy || endpoint->sharing != COHI_CUDA_THREADS)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "the default stream of card %d waits for the streams of all threads, and %d "
                     "ranks are threads of this process: each needs a stream of its own",
                     endpoint->device, endpoint->on_card);
}

/* Handles are used again for other streams, numbers are not. */
static coh_status find_number(const cohi_endpoint *endpoint, cohi_cuda_lineup *lineup)
{
    unsigned long long id = 0;
    CUresult result = endpoint->library->cuStreamGetId(lineup->stream, &id);
    lineup->id = (uint64_t)id + 1; /* 0 is for none */
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "the stream %p has no number",
                                (void *)lineup->stream);
}

/* Less than cohi_cuda_enter: nothing that is called here disturbs a capture. */
static void enter(const cohi_endpoint *endpoint, cohi_cuda_lineup *lineup)
{
    CUcontext current = NULL;
    bool there = endpoint->library->cuCtxGetCurrent(&current) == CUDA_SUCCESS
                 && current == endpoint->context;
    lineup->entered =
        !there && endpoint->library->cuCtxPushCurrent(endpoint->context) == CUDA_SUCCESS;
}

coh_status cohi_cuda_lineup_begin(cohi_endpoint *endpoint, cohi_stream stream, bool waits,
                                  cohi_cuda_lineup *lineup)
{
    *lineup = (cohi_cuda_lineup){.stream = stream};
    enter(endpoint, lineup);
    pthread_mutex_lock(&endpoint->streams->lock);
    coh_status status = check_context(endpoint, lineup);
    if (status == COH_OK)
        status = check_default(endpoint, lineup, waits);
    if (status == COH_OK && waits) /* it is all the same to the others */
        status = check_capture(endpoint, lineup);
    if (status == COH_OK && waits && !lineup->captured)
        status = find_number(endpoint, lineup);
    if (status == COH_OK && lineup->id && cohi_cuda_keeps_tails(endpoint))
        status = take_tail(endpoint, lineup);
    if (status == COH_OK && lineup->id && cohi_cuda_keeps_tails(endpoint))
        status = hold_back(endpoint, lineup);
    if (status == COH_OK)
        status = cohi_cuda_streams_ready(endpoint);
    if (status != COH_OK)
        (void)cohi_cuda_lineup_end(endpoint, lineup, status);
    return status;
}

coh_status cohi_cuda_lineup_end(cohi_endpoint *endpoint, cohi_cuda_lineup *lineup,
                                coh_status status)
{
    CUcontext context;
    pthread_mutex_unlock(&endpoint->streams->lock);
    if (lineup->entered)
        (void)endpoint->library->cuCtxPopCurrent(&context);
    return status;
}

/* ---- teams ---- */

/* The event behind the team's last operation; NULL: the next needs to wait for none. */
static CUresult find_last(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                          cohi_cuda_team *team, CUevent *event)
{
    const cohi_cuda_library *library = endpoint->library;
    CUresult result = CUDA_SUCCESS;
    *event = NULL;
    if (cohi_cuda_keeps_tails(endpoint)) {
        bool other = team->tail >= 0 && endpoint->streams->tails[team->tail].id != lineup->id;
        *event = other ? endpoint->streams->tails[team->tail].event : NULL;
        return result;
    }
    if (!team->last_id || !lineup->id || team->last_id == lineup->id)
        return result;
    if (!team->event)
        result = library->cuEventCreate(&team->event, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = library->cuEventRecord(team->event, team->last);
    *event = team->event;
    return result;
}

static coh_status wait_for_last(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                cohi_cuda_team *team)
{
    CUevent event;
    CUresult result = find_last(endpoint, lineup, team, &event);
    if (result == CUDA_SUCCESS && event)
        result = endpoint->library->cuStreamWaitEvent(lineup->stream, event, CU_EVENT_WAIT_DEFAULT);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result,
                                "the stream %p cannot wait for the team's last operation, which "
                                "is on another stream",
                                (void *)lineup->stream);
}

/* What is captured has no place in the order of the calls until it is replayed, so that an operation on another
 * stream would be before or behind it by chance. */
static coh_status check_other_capture(const cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                      cohi_cuda_team *team)
{
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!team->captured || (team->capture == lineup->stream && lineup->captured))
        return COH_OK;
    if (team->capture != lineup->stream
        && endpoint->library->cuStreamIsCapturing(team->capture, &state) == CUDA_SUCCESS
        && state == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return cohi_fail(COH_UNSUPPORTED,
                         "the stream %p is being captured with operations of this team, which "
                         "cannot be on another stream, %p, until the capture ends",
                         (void *)team->capture, (void *)lineup->stream);
    team->captured = false;
    return COH_OK;
}

coh_status cohi_cuda_chain(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                           const cohi_stream_team *team, cohi_cuda_team **mine)
{
    cohi_cuda_team *found = &endpoint->streams->teams[team->number];
    if (found->life != team->life) {
        found->life = team->life;
        found->ticks = 0;
        found->captured = false;
    }
    *mine = found;
    coh_status status = check_other_capture(endpoint, lineup, found);
    if (status != COH_OK || lineup->captured)
        return status;
    return wait_for_last(endpoint, lineup, found);
}

coh_status cohi_cuda_chain_on(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                              cohi_cuda_team *team)
{
    if (team && lineup->captured) {
        team->captured = true;
        team->capture = lineup->stream;
    }
    if (lineup->captured || !lineup->id)
        return COH_OK;
    if (!cohi_cuda_keeps_tails(endpoint)) {
        if (team) {
            team->last = lineup->stream;
            team->last_id = lineup->id;
        }
        return COH_OK;
    }
    CUresult result = record(endpoint, lineup);
    if (team)
        team->tail = lineup->tail;
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "an event cannot be recorded");
}

void cohi_cuda_tails_close(cohi_endpoint *endpoint)
{
    for (int i = 0; i < COHI_CUDA_TEAMS; i++)
        if (endpoint->streams->teams[i].event)
            (void)endpoint->library->cuEventDestroy(endpoint->streams->teams[i].event);
    for (int i = 0; i < COHI_CUDA_STREAMS_MAX; i++) {
        cohi_cuda_tail *tail = &endpoint->streams->tails[i];
        if (tail->id)
            free_tail(endpoint, i);
        CUevent events[] = {tail->event, tail->marks[0], tail->marks[1]};
        for (int e = 0; e < 3; e++)
            if (events[e])
                (void)endpoint->library->cuEventDestroy(events[e]);
    }
}

/* ---- words that streams wait for ---- */

/* Whether what waits is over: the stream has gone past it, or was forgotten since it had. */
static bool is_over(const cohi_endpoint *endpoint, int tail)
{
    const cohi_cuda_tail *kept = &endpoint->streams->tails[tail];
    return kept->id == 0 || endpoint->library->cuEventQuery(kept->event) == CUDA_SUCCESS;
}

/* Forgets waits that are over. Each stream is asked about once. */
static void drop_ended(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    bool over[COHI_CUDA_STREAMS_MAX];
    size_t kept = 0;
    for (int tail = 0; tail < COHI_CUDA_STREAMS_MAX; tail++)
        over[tail] = is_over(endpoint, tail);
    for (size_t i = 0; i < streams->awaited_count; i++)
        if (!over[streams->awaited[i].tail])
            streams->awaited[kept++] = streams->awaited[i];
    streams->awaited_count = kept;
}

/* At least half of it is free afterwards, so that streams are not asked about at each wait. */
static coh_status make_room(cohi_endpoint *endpoint)
{
    enum { FIRST_ROOM = 64 };
    struct cohi_cuda_streams *streams = endpoint->streams;
    drop_ended(endpoint);
    if (streams->awaited_count < streams->awaited_room / 2)
        return COH_OK;
    size_t room = streams->awaited_room > 0 ? 2 * streams->awaited_room : FIRST_ROOM;
    cohi_cuda_awaited *more = realloc(streams->awaited, room * sizeof *more);
    if (!more)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for %zu waits on streams", room);
    streams->awaited = more;
    streams->awaited_room = room;
    return COH_OK;
}

coh_status cohi_cuda_note_wait(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                               CUdeviceptr word, uint64_t value, int rank)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    coh_status status =
        streams->awaited_count < streams->awaited_room ? COH_OK : make_room(endpoint);
    if (status == COH_OK)
        streams->awaited[streams->awaited_count++] =
            (cohi_cuda_awaited){word, value, rank, lineup->tail};
    return status;
}

static void end_wait(cohi_endpoint *endpoint, const cohi_cuda_awaited *awaited, int rank)
{
    cohi_cuda_report *report = &cohi_cuda_status_of(endpoint)->reports[COHI_CUDA_TEAMS];
    report->rank = rank;
    __atomic_store_n(&report->trouble, (uint32_t)COHI_CUDA_LOST, __ATOMIC_RELEASE);
    (void)endpoint->library->cuMemcpyHtoDAsync(awaited->word, &awaited->value,
                                               sizeof awaited->value, endpoint->streams->own);
    (void)endpoint->library->cuStreamSynchronize(endpoint->streams->own);
}

void cohi_cuda_end_waits(cohi_endpoint *endpoint, int rank)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    size_t kept = 0;
    drop_ended(endpoint);
    for (size_t i = 0; i < streams->awaited_count; i++) {
        if (streams->awaited[i].rank < 0 || streams->awaited[i].rank == rank)
            end_wait(endpoint, &streams->awaited[i], rank);
        else
            streams->awaited[kept++] = streams->awaited[i];
    }
    streams->awaited_count = kept;
}
