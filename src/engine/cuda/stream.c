/* stream.c - operations on the caller's streams: the state of it, one-sided operations, failures. */
#include "engine/cuda/streams.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* Up to so many bytes a kernel that copies is done before the copy engine has begun. */
enum { SMALL_PUT_BYTES = 4096 };

/* ---- kernels ---- */

/* A kernel is loaded when it is first asked about, not when it is first launched: by then another may wait on
 * the card, and loading would wait for that. */
static coh_status load_kernel(cohi_endpoint *endpoint, const char *file, const char *name,
                              CUfunction *kernel)
{
    int registers = 0;
    coh_status status = cohi_cuda_image_find(endpoint, file, name, kernel);
    if (status != COH_OK)
        return status;
    CUresult result =
        endpoint->library->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, *kernel);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "the kernel %s cannot be loaded", name);
}

/* Where the reductions of a type are. */
static const char *file_of(coh_dtype dtype)
{
    if (dtype == COH_F32 || dtype == COH_F64)
        return "reduce_float";
    return dtype >= COH_F16 && dtype != COH_BOOL ? "reduce_small" : "reduce_integer";
}

#define KERNEL(name) "cohi_cuda_" name "_kernel"

static coh_status load_kernels(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    const struct {
        const char *file, *name;
        CUfunction *kernel;
    } rows[] = {{"words", KERNEL("wait"), &streams->wait},
                {"words", KERNEL("push"), &streams->push},
                {"words", KERNEL("strided"), &streams->strided},
#define FORMS(file, name, kernels)                                                             \
    {file, KERNEL(name), &(kernels).whole}, {file, KERNEL(name "_packed"), &(kernels).packed}, \
        {file, KERNEL(name "_direct"), &(kernels).direct},                                     \
        {file, KERNEL(name "_staged"), &(kernels).staged}
                FORMS("copies", "copy", streams->copy),
                FORMS("reduce_float", "f32_sum", streams->sum[COH_F32]),
                FORMS("reduce_small", "f16_sum", streams->sum[COH_F16]),
                FORMS("reduce_small", "bf16_sum", streams->sum[COH_BF16]),
#undef FORMS
#define ROW(constant, value, name, bytes) \
    {file_of(constant), KERNEL(name), &streams->any[constant].whole},
                COH_DTYPE_TABLE(ROW)
#undef ROW
    };
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == COH_OK; i++)
        status = load_kernel(endpoint, rows[i].file, rows[i].name, rows[i].kernel);
    return status;
}

/*
 * Whether a kernel may be started while the one before it on its stream still runs (kernels/early.cuh). Such a card runs
 * a kernel that waits for that one only where nvcc compiled one (COHI_CUDA_PTX). Captured ones are joined by edges of a
 * kind that graphs have since 12.3.
 */
static bool starts_early(const cohi_endpoint *endpoint)
{
    enum { FIRST_MAJOR = 9, FIRST_PTX = 90, FIRST_DRIVER = 12030 };
    return COHI_CUDA_PTX >= FIRST_PTX && endpoint->major >= FIRST_MAJOR
           && endpoint->library->version >= FIRST_DRIVER && !cohi_cuda_takes_turns(endpoint);
}

coh_status cohi_cuda_launch(cohi_endpoint *endpoint, CUfunction kernel, unsigned blocks,
                            unsigned threads, CUstream stream, void *argument)
{
    void *arguments[] = {argument};
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value.programmaticStreamSerializationAllowed = 1};
    CUlaunchConfig config = {.gridDimX = blocks,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = stream,
                             .attrs = &early,
                             .numAttrs = starts_early(endpoint)};
    CUresult result = endpoint->library->cuLaunchKernelEx(&config, kernel, arguments, NULL);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "a kernel cannot be started");
}

/* ---- opening ---- */

coh_status cohi_cuda_streams_open(cohi_endpoint *endpoint)
{
    const char *delay = getenv("COHORT_CUDA_DELAY");
    endpoint->streams = calloc(1, sizeof *endpoint->streams);
    if (!endpoint->streams)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for streams");
    pthread_mutex_init(&endpoint->streams->lock, NULL);
    endpoint->streams->delay = delay ? (uint32_t)strtoul(delay, NULL, 10) : 0;
    for (int i = 0; i < COHI_CUDA_TEAMS; i++)
        endpoint->streams->teams[i].tail = -1;
    CUresult result = endpoint->library->cuStreamCreateWithPriority(&endpoint->streams->own,
                                                                    CU_STREAM_NON_BLOCKING, 0);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(endpoint->library, result, "a stream cannot be made");
    return load_kernels(endpoint);
}

void cohi_cuda_streams_close(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    if (!streams)
        return;
    cohi_cuda_tails_close(endpoint);
    for (int i = 0; i < COHI_CUDA_TEAMS; i++)
        if (streams->calls[i])
            (void)endpoint->library->cuStreamDestroy(streams->calls[i]);
    if (streams->own)
        (void)endpoint->library->cuStreamDestroy(streams->own);
    pthread_mutex_destroy(&streams->lock);
    free(streams->awaited);
    free(streams->bases);
    free(streams);
    endpoint->streams = NULL;
}

/* ---- checks ---- */

/* The driver need not be asked about memory of this rank's own heaps. */
static bool is_own(const cohi_endpoint *endpoint, const void *pointer)
{
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++) {
        const cohi_cuda_segment *segment = &endpoint->segments[id];
        if (segment->there && (uintptr_t)pointer - segment->own.base < segment->own.backed)
            return true;
    }
    return false;
}

coh_status cohi_cuda_check_buffer(cohi_endpoint *endpoint, const char *what, const void *pointer)
{
    if (is_own(endpoint, pointer))
        return COH_OK;
    switch (cohi_cuda_place_of(endpoint, pointer)) {
    case COHI_PLACE_HOST:
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "the %s (%p) is memory of the host that is not pinned; operations on a "
                         "stream take memory of the card, or pinned memory",
                         what, pointer);
    case COHI_PLACE_OTHER:
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "the %s (%p) is memory of another card than card %d, %s", what, pointer,
                         endpoint->device, endpoint->name);
    default:
        return COH_OK;
    }
}

static coh_status locate(const cohi_endpoint *endpoint, const cohi_remote *at, CUdeviceptr *place)
{
    *place = cohi_cuda_reach(endpoint, at);
    return *place ? COH_OK
                  : cohi_fail(COH_UNSUPPORTED,
                              "the card of rank %d, on another host, cannot be reached by a stream",
                              at->rank);
}

static bool is_far(const cohi_endpoint *endpoint, const cohi_remote *at)
{
    return endpoint->far && !cohi_cuda_reach(endpoint, at);
}

/* ---- one-sided operations ---- */

static coh_status push(cohi_endpoint *endpoint, CUstream stream, cohi_cuda_push push)
{
    enum { WARP = 32, VECTOR = 16 };
    uint64_t threads = (push.bytes / VECTOR + WARP) / WARP * WARP;
    if (threads > COHI_CUDA_BLOCK_THREADS)
        threads = COHI_CUDA_BLOCK_THREADS;
    return cohi_cuda_launch(endpoint, endpoint->streams->push, 1, (unsigned)threads, stream, &push);
}

static coh_status move(cohi_endpoint *endpoint, CUstream stream, CUdeviceptr target,
                       CUdeviceptr source, size_t bytes)
{
    if (bytes > SMALL_PUT_BYTES)
        return cohi_cuda_move(endpoint, stream, target, source, bytes);
    return push(endpoint, stream,
                (cohi_cuda_push){.target = target, .source = source, .bytes = bytes});
}

static coh_status put_near(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                           const void *source, size_t bytes)
{
    CUdeviceptr target;
    coh_status status = locate(endpoint, to, &target);
    return status == COH_OK ? move(endpoint, stream, target, (CUdeviceptr)(uintptr_t)source, bytes)
                            : status;
}

static coh_status put(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                      const void *source, size_t bytes)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = cohi_cuda_check_buffer(endpoint, "source", source);
    if (status == COH_OK)
        status = (is_far(endpoint, &to) ? endpoint->far->put : put_near)(endpoint, lineup.stream,
                                                                         &to, source, bytes);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

static coh_status get_near(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *from,
                           void *target, size_t bytes)
{
    CUdeviceptr source;
    coh_status status = locate(endpoint, from, &source);
    return status == COH_OK ? move(endpoint, stream, (CUdeviceptr)(uintptr_t)target, source, bytes)
                            : status;
}

static coh_status get(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote from, void *target,
                      size_t bytes)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = cohi_cuda_check_buffer(endpoint, "target", target);
    if (status == COH_OK)
        status = (is_far(endpoint, &from) ? endpoint->far->get : get_near)(endpoint, lineup.stream,
                                                                           &from, target, bytes);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

static coh_status put_signal_near(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *to,
                                  const void *source, size_t bytes, const cohi_remote *at,
                                  const cohi_remote_signal *signal)
{
    CUdeviceptr target = 0, word;
    coh_status status = locate(endpoint, at, &word);
    if (status == COH_OK && bytes > 0)
        status = locate(endpoint, to, &target);
    cohi_cuda_push both = {.target = target,
                           .source = (uintptr_t)source,
                           .bytes = bytes,
                           .signal = word,
                           .value = signal->value,
                           .add = signal->add};
    if (status == COH_OK && bytes > SMALL_PUT_BYTES) {
        status = cohi_cuda_move(endpoint, stream, target, both.source, bytes);
        both.bytes = 0;
    }
    return status == COH_OK ? push(endpoint, stream, both) : status;
}

/* A value that is set: the front end of the card writes it sooner than a kernel is started. */
static coh_status set_near(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *at,
                           uint64_t value)
{
    CUdeviceptr word;
    coh_status status = locate(endpoint, at, &word);
    if (status != COH_OK)
        return status;
    CUresult result =
        endpoint->library->cuStreamWriteValue64(stream, word, value, CU_STREAM_WRITE_VALUE_DEFAULT);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "a stream cannot write a word");
}

static coh_status put_signal(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                             const void *source, size_t bytes, cohi_remote at,
                             const cohi_remote_signal *signal)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    if (bytes > 0)
        status = cohi_cuda_check_buffer(endpoint, "source", source);
    bool far = is_far(endpoint, &at);
    bool set =
        endpoint->far && bytes == 0 && !signal->add && !lineup.captured && endpoint->writes_values;
    if (status == COH_OK && set && !far)
        status = set_near(endpoint, lineup.stream, &at, signal->value);
    else if (status == COH_OK)
        status = (far ? endpoint->far->put_signal : put_signal_near)(endpoint, lineup.stream, &to,
                                                                     source, bytes, &at, signal);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* A kernel: the copy engine is slow where blocks are short. */
static coh_status move_blocks(cohi_endpoint *endpoint, CUstream stream, cohi_cuda_blocks blocks)
{
    uint64_t most = (uint64_t)cohi_cuda_share_of(endpoint, endpoint->rank);
    unsigned grid = (unsigned)(blocks.count < most ? blocks.count : most > 0 ? most : 1);
    return cohi_cuda_launch(endpoint, endpoint->streams->strided, grid, COHI_CUDA_BLOCK_THREADS,
                            stream, &blocks);
}

/* A call a block. by[0] is of the target, by[1] of the source. */
static coh_status move_blocks_far(cohi_endpoint *endpoint, CUstream stream, cohi_remote remote,
                                  const void *local, bool puts, const size_t by[2],
                                  const size_t blocks[2])
{
    coh_status status = COH_OK;
    const char *here = local;
    for (size_t i = 0; i < blocks[1] && status == COH_OK; i++) {
        status = puts ? endpoint->far->put(endpoint, stream, &remote, here, blocks[0])
                      : endpoint->far->get(endpoint, stream, &remote, (void *)(uintptr_t)here,
                                           blocks[0]);
        remote.offset += by[puts ? 0 : 1];
        here += by[puts ? 1 : 0];
    }
    return status;
}

static coh_status move_strided(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote remote,
                               const void *local, bool puts, const size_t by[2],
                               const size_t blocks[2])
{
    CUdeviceptr there;
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = cohi_cuda_check_buffer(endpoint, puts ? "source" : "target", local);
    if (status == COH_OK && is_far(endpoint, &remote))
        return cohi_cuda_lineup_end(
            endpoint, &lineup,
            move_blocks_far(endpoint, lineup.stream, remote, local, puts, by, blocks));
    if (status == COH_OK)
        status = locate(endpoint, &remote, &there);
    if (status != COH_OK)
        return cohi_cuda_lineup_end(endpoint, &lineup, status);
    cohi_cuda_blocks both = {.target = puts ? there : (uintptr_t)local,
                             .source = puts ? (uintptr_t)local : there,
                             .target_by = by[0],
                             .source_by = by[1],
                             .block = blocks[0],
                             .count = blocks[1]};
    if (status == COH_OK)
        status = move_blocks(endpoint, lineup.stream, both);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

static coh_status put_strided(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                              const void *source, const size_t by[2], const size_t blocks[2])
{
    return move_strided(endpoint, stream, to, source, true, by, blocks);
}

static coh_status get_strided(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote from,
                              void *target, const size_t by[2], const size_t blocks[2])
{
    return move_strided(endpoint, stream, from, target, false, by, blocks);
}

/* As a signal, which is all that there is on a stream. */
static coh_status apply_far(cohi_endpoint *endpoint, CUstream stream, const cohi_remote *at,
                            const cohi_remote_atomic *atomic, const void *result)
{
    bool add = atomic->kind == COH_ATOMIC_ADD;
    cohi_remote_signal signal = {.offset = at->offset, .add = add};
    if (result || coh_dtype_size(atomic->dtype) != sizeof signal.value || atomic->dtype == COH_F64
        || (!add && atomic->kind != COH_ATOMIC_SET))
        return cohi_fail(
            COH_UNSUPPORTED,
            "rank %d is not mapped by this card, and on a stream it has no atomics but "
            "set and add of 64-bit integers without a result; the call without a "
            "stream has all",
            at->rank);
    memcpy(&signal.value, atomic->operand, sizeof signal.value);
    return endpoint->far->put_signal(endpoint, stream, at, NULL, 0, at, &signal);
}

static coh_status apply_atomic(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote at,
                               const cohi_remote_atomic *atomic, void *result)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    if (result)
        status = cohi_cuda_check_buffer(endpoint, "result", result);
    if (status == COH_OK && is_far(endpoint, &at))
        status = apply_far(endpoint, lineup.stream, &at, atomic, result);
    else if (status == COH_OK)
        status = cohi_cuda_launch_atomic(endpoint, lineup.stream, &at, atomic,
                                         (CUdeviceptr)(uintptr_t)result);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* What is on the stream before has been done, and is visible to all, when what is behind it begins. */
static coh_status quiet(cohi_endpoint *endpoint, cohi_stream stream)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    if (endpoint->far)
        status = endpoint->far->quiet(endpoint, lineup.stream);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* ---- waiting for a word ---- */

static coh_status wait_by_kernel(cohi_endpoint *endpoint, CUstream stream, CUdeviceptr word,
                                 int rank, coh_compare compare, uint64_t value)
{
    cohi_cuda_word wait = {.word = word,
                           .value = value,
                           .status = endpoint->status_there,
                           .compare = (int32_t)compare,
                           .rank = rank,
                           .ranks = endpoint->size};
    return cohi_cuda_launch(endpoint, endpoint->streams->wait, 1, 1, stream, &wait);
}

/*
 * Where ranks take turns a stream waits, not a kernel. It knows two comparisons: equal, and whether the word less the value is
 * not negative as a signed number. That is what is asked for up to the middle of the range; beyond it small words
 * would do.
 */
static bool is_above(coh_compare compare, uint64_t value)
{
    const uint64_t middle = UINT64_C(1) << 63;
    return (compare == COH_GE && value <= middle) || (compare == COH_GT && value < middle);
}

static coh_status check_comparison(const cohi_endpoint *endpoint, coh_compare compare,
                                   uint64_t value)
{
    if (!is_above(compare, value) && compare != COH_EQ)
        return cohi_fail(
            COH_UNSUPPORTED,
            "several processes share card %d, %s, without MPS: a stream can wait there "
            "for a word that is equal to a value, or greater than one of less than 2^63, not "
            "otherwise; start nvidia-cuda-mps-control -d before them",
            endpoint->device, endpoint->name);
    return COH_OK;
}

static coh_status wait_by_value(cohi_endpoint *endpoint, const cohi_cuda_lineup *lineup,
                                CUdeviceptr word, int rank, coh_compare compare, uint64_t value)
{
    uint64_t least = value + (compare == COH_GT);
    coh_status status = check_comparison(endpoint, compare, value);
    if (status != COH_OK || (compare == COH_GE && value == 0)) /* which holds for every word */
        return status;
    status = cohi_cuda_note_wait(endpoint, lineup, word, least, rank);
    if (status != COH_OK)
        return status;
    CUresult result = endpoint->library->cuStreamWaitValue64(
        lineup->stream, word, least,
        compare == COH_EQ ? CU_STREAM_WAIT_VALUE_EQ : CU_STREAM_WAIT_VALUE_GEQ);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "a stream cannot wait for a word");
}

static coh_status wait_for_word(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote at,
                                coh_compare compare, uint64_t value)
{
    cohi_cuda_lineup lineup;
    cohi_remote own = at;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, true, &lineup);
    if (status != COH_OK)
        return status;
    own.rank = endpoint->rank;
    CUdeviceptr word = cohi_cuda_reach(endpoint, &own);
    status = cohi_cuda_takes_turns(endpoint)
                 ? wait_by_value(endpoint, &lineup, word, at.rank, compare, value)
                 : wait_by_kernel(endpoint, lineup.stream, word, at.rank, compare, value);
    if (status == COH_OK)
        status = cohi_cuda_chain_on(endpoint, &lineup, NULL);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* ---- failures ---- */

static bool take_report(const cohi_cuda_report *report, unsigned team, cohi_stream_failure *failure)
{
    uint32_t trouble = __atomic_load_n(&report->trouble, __ATOMIC_ACQUIRE);
    if (trouble == COHI_CUDA_FINE)
        return false;
    *failure = (cohi_stream_failure){.status = trouble == COHI_CUDA_LOST      ? COH_PEER_LOST
                                               : trouble == COHI_CUDA_REFUSED ? COH_TRANSPORT
                                                                              : COH_MISMATCH,
                                     .rank = report->rank,
                                     .team = team,
                                     .life = report->life,
                                     .epoch = report->tick,
                                     .mine = report->mine,
                                     .theirs = report->theirs};
    return true;
}

/* Whether a kernel of the program, or the card itself, has failed: then every call does. */
static void ask_driver(cohi_endpoint *endpoint, cohi_stream_failure *failure)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    CUresult result = endpoint->library->cuStreamQuery(endpoint->streams->own);
    cohi_cuda_leave(endpoint, guard);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        return;
    const char *words = NULL;
    (void)endpoint->library->cuGetErrorString(result, &words);
    failure->status = COH_TRANSPORT;
    failure->rank = -1;
    strncpy(failure->text, words ? words : "the driver does not say why", sizeof failure->text - 1);
}

static bool take_report_of(const cohi_cuda_status *status, const cohi_stream_team *team,
                           cohi_stream_failure *failure)
{
    const cohi_cuda_report *report = &status->reports[team->number];
    return report->life == team->life && take_report(report, team->number, failure);
}

static bool take_any_report(const cohi_cuda_status *status, cohi_stream_failure *failure)
{
    for (unsigned team = 0; team <= COHI_CUDA_TEAMS; team++)
        if (take_report(&status->reports[team], team, failure))
            return true;
    return false;
}

static void find_failure(cohi_endpoint *endpoint, const cohi_stream_team *team,
                         cohi_stream_failure *failure)
{
    const cohi_cuda_status *status = cohi_cuda_status_of(endpoint);
    *failure = (cohi_stream_failure){.status = COH_OK, .rank = -1};
    if (team ? !take_report_of(status, team, failure) : !take_any_report(status, failure))
        ask_driver(endpoint, failure);
}

/* ---- waits ---- */

_Static_assert(COHI_STREAM_WAITS == COHI_CUDA_TEAMS + 1,
               "a wait for each team, and one for a word");

static int find_waits(cohi_endpoint *endpoint, uint64_t now_ns,
                      cohi_stream_wait waits[COHI_STREAM_WAITS])
{
    cohi_cuda_status *status = cohi_cuda_status_of(endpoint);
    int count = 0;
    for (unsigned team = 0; team <= COHI_CUDA_TEAMS; team++) {
        cohi_cuda_seen *seen = &endpoint->streams->seen[team];
        uint64_t word;
        __atomic_load((uint64_t *)(void *)&status->waiting[team], &word, __ATOMIC_RELAXED);
        if (word != seen->word)
            *seen = (cohi_cuda_seen){word, now_ns};
        int rank = (int32_t)(word >> 32);
        if (word != 0 && rank >= 0 && rank < endpoint->size && rank != endpoint->rank)
            waits[count++] = (cohi_stream_wait){rank, seen->since_ns};
    }
    return count;
}

/* ---- lost ranks ---- */

/* Ends the waits of streams for values of that rank: they get some that are past all that are waited for. */
static void write_values(cohi_endpoint *endpoint, int rank)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    CUdeviceptr control = cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, endpoint->rank);
    for (unsigned team = 0; streams->laid_out && control && team < COHI_CUDA_TEAMS; team++) {
        uint64_t value = cohi_cuda_value(streams->teams[team].life, INT32_MAX);
        uint64_t word = (uint64_t)team * streams->layout.ranks + (uint64_t)rank;
        (void)cohi_cuda_write_now(endpoint, control + streams->layout.values + word * sizeof value,
                                  &value, sizeof value);
    }
    cohi_cuda_end_waits(endpoint, rank);
}

void cohi_cuda_streams_lose(cohi_endpoint *endpoint, int rank)
{
    cohi_cuda_status *status = cohi_cuda_status_of(endpoint);
    __atomic_fetch_or(&status->lost[rank / 64], UINT64_C(1) << (rank % 64), __ATOMIC_SEQ_CST);
    if (!cohi_cuda_takes_turns(endpoint))
        return;
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    pthread_mutex_lock(&endpoint->streams->lock);
    write_values(endpoint, rank);
    pthread_mutex_unlock(&endpoint->streams->lock);
    cohi_cuda_leave(endpoint, guard);
}

const cohi_engine_stream cohi_cuda_stream = {
    .size = sizeof cohi_cuda_stream,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .put_strided = put_strided,
    .get_strided = get_strided,
    .atomic = apply_atomic,
    .wait = wait_for_word,
    .quiet = quiet,
    .sync = cohi_cuda_sync,
    .collective = cohi_cuda_collective,
    .run = cohi_cuda_run,
    .failure = find_failure,
    .waits = find_waits,
};
