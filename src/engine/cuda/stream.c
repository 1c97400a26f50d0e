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
static coh_status load_kernel(cohi_endpoint *endpoint, const char *name, CUfunction *kernel)
{
    int registers = 0;
    coh_status status = cohi_cuda_image_find(endpoint, name, kernel);
    if (status != COH_OK)
        return status;
    CUresult result =
        endpoint->library->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, *kernel);
    return result == CUDA_SUCCESS
               ? COH_OK
               : cohi_cuda_fail(endpoint->library, result, "the kernel %s cannot be loaded", name);
}

#define KERNEL(name) "cohi_cuda_" name "_kernel"

static coh_status load_kernels(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    const struct {
        const char *name;
        CUfunction *kernel;
    } rows[] = {{KERNEL("copy"), &streams->copy},
                {KERNEL("wait"), &streams->wait},
                {KERNEL("push"), &streams->push},
                {KERNEL("strided"), &streams->strided},
                {KERNEL("f32_sum"), &streams->sum[COH_F32]},
                {KERNEL("f16_sum"), &streams->sum[COH_F16]},
                {KERNEL("bf16_sum"), &streams->sum[COH_BF16]},
#define ROW(constant, value, name, bytes) {KERNEL(name), &streams->any[constant]},
                COH_DTYPE_TABLE(ROW)
#undef ROW
    };
    coh_status status = COH_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == COH_OK; i++)
        status = load_kernel(endpoint, rows[i].name, rows[i].kernel);
    return status;
}

coh_status cohi_cuda_launch(cohi_endpoint *endpoint, CUfunction kernel, unsigned blocks,
                            unsigned threads, CUstream stream, void *argument)
{
    void *arguments[] = {argument};
    CUresult result = endpoint->library->cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0,
                                                        stream, arguments, NULL);
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

/* ---- the layout of control segments ---- */

static uint64_t take(uint64_t *at, uint64_t bytes)
{
    enum { LINE = 128 };
    uint64_t begins = *at;
    *at += (bytes + LINE - 1) / LINE * LINE;
    return begins;
}

static int ranks_on_card_of(const cohi_endpoint *endpoint, int rank)
{
    int count = 0;
    for (int other = 0; other < endpoint->size; other++)
        count +=
            endpoint->host_of[other] == endpoint->host_of[rank]
            && memcmp(endpoint->addresses[other].uuid, endpoint->addresses[rank].uuid, 16) == 0;
    return count;
}

/*
 * Of the multiprocessors of its card: its part where MPS has divided them, but no more than an even one. Kernels
 * that fill their part are slow: all_reduce of 64 MiB on an H200, two ranks with 66 multiprocessors each, took
 * 95.7 us with 66 blocks and 79.5 us with 54.
 */
static int share_of(const cohi_endpoint *endpoint, int rank)
{
    const cohi_cuda_address *address = &endpoint->addresses[rank];
    bool divided = address->multiprocessors < address->of_card;
    int even = address->of_card / ranks_on_card_of(endpoint, rank);
    int own = divided ? address->multiprocessors * 9 / 11 : address->multiprocessors;
    return own < even ? own : even;
}

/* Blocks of a kernel: a multiprocessor each, of the share that each rank has of its card. The same on all
 * ranks of the host, so that each block has one to meet. */
static uint32_t least_share(const cohi_endpoint *endpoint)
{
    int least = endpoint->multiprocessors;
    for (int rank = 0; rank < endpoint->size; rank++) {
        int share = share_of(endpoint, rank);
        if (cohi_cuda_is_near(endpoint, rank) && share < least)
            least = share;
    }
    return least > 1 ? (uint32_t)least : 1;
}

/*
 * Kernels of different teams wait for different ranks, so all that a rank can have at a time must be on the card
 * together. A multiprocessor has room for two blocks (COHI_CUDA_RESIDENT): one of the world's kernels, and one
 * for all other teams', which have a quarter of that each, or later ones a sixteenth. Two are left over for
 * kernels that do not wait, such as puts.
 */
unsigned cohi_cuda_blocks_of(const cohi_endpoint *endpoint, unsigned team)
{
    enum { WORLD = 0, LARGE = 3, LEFT_OVER = 2 };
    unsigned whole = endpoint->streams->layout.blocks;
    unsigned rest = whole > LEFT_OVER ? whole - LEFT_OVER : 1;
    unsigned blocks = team == WORLD ? whole : team <= LARGE ? rest / 4 : rest / 16;
    return blocks > 0 ? blocks : 1;
}

/* Of what the control segment has: most for the teams that are there from the start, then for a few more. */
static uint64_t scratch_bytes(int team)
{
    return team < 2 ? 8 << 20 : team < 8 ? 4 << 20 : 256 << 10;
}

static void divide_scratch(struct cohi_cuda_streams *streams, uint64_t at)
{
    for (int team = 0; team < COHI_CUDA_TEAMS; team++) {
        streams->scratch[team] = take(&at, scratch_bytes(team));
        streams->scratch_each[team] =
            (uint32_t)(scratch_bytes(team) / 2 / streams->layout.blocks / 128 * 128);
    }
}

static coh_status lay_out(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    uint64_t at = 0, ranks = (uint64_t)endpoint->size, blocks = least_share(endpoint);
    cohi_cuda_layout *layout = &streams->layout;
    uint64_t words = COHI_CUDA_SEGMENTS * ranks;
    *layout = (cohi_cuda_layout){.ranks = (uint32_t)ranks, .blocks = (uint32_t)blocks};
    layout->bases = take(&at, words * sizeof(uint64_t));
    layout->marks = take(&at, COHI_CUDA_TEAMS * blocks * sizeof(cohi_cuda_mark));
    layout->broken = take(&at, COHI_CUDA_TEAMS * sizeof(uint64_t));
    layout->values = take(&at, COHI_CUDA_TEAMS * ranks * sizeof(uint64_t));
    layout->posts = take(&at, COHI_CUDA_TEAMS * blocks * ranks * sizeof(cohi_cuda_post));
    uint64_t scratch = at;
    for (int team = 0; team < COHI_CUDA_TEAMS; team++)
        (void)take(&at, scratch_bytes(team));
    if (at > COHI_CUDA_CONTROL_BYTES || ranks > COHI_CUDA_LOST_WORDS * 64)
        return cohi_fail(COH_LIMIT,
                         "cuda: %d ranks need %llu bytes of the card each to meet on streams; "
                         "there are %d",
                         endpoint->size, (unsigned long long)at, (int)COHI_CUDA_CONTROL_BYTES);
    divide_scratch(streams, scratch);
    streams->bases = calloc(words, sizeof *streams->bases);
    if (!streams->bases)
        return cohi_fail(COH_NO_MEMORY, "cuda: out of memory for %d ranks", endpoint->size);
    streams->laid_out = true;
    return COH_OK;
}

/* A copy that is over when it returns. Nothing that waits is before it on that stream. */
static CUresult write_now(cohi_endpoint *endpoint, CUdeviceptr target, const void *source,
                          size_t bytes)
{
    cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
    CUresult result =
        endpoint->library->cuMemcpyHtoDAsync(target, source, bytes, endpoint->streams->own);
    if (result == CUDA_SUCCESS)
        result = endpoint->library->cuStreamSynchronize(endpoint->streams->own);
    cohi_cuda_leave(endpoint, guard);
    return result;
}

static coh_status tell_bases(cohi_endpoint *endpoint)
{
    struct cohi_cuda_streams *streams = endpoint->streams;
    size_t ranks = (size_t)endpoint->size;
    pthread_mutex_lock(&endpoint->lock);
    unsigned known = endpoint->attached;
    for (int id = 0; id < COHI_SEGMENTS_MAX; id++)
        for (int rank = 0; rank < endpoint->size; rank++)
            streams->bases[(size_t)id * ranks + (size_t)rank] = cohi_cuda_base(endpoint, id, rank);
    pthread_mutex_unlock(&endpoint->lock);
    CUdeviceptr control = cohi_cuda_base(endpoint, COHI_SEGMENT_CONTROL, endpoint->rank);
    CUresult result = write_now(endpoint, control + streams->layout.bases, streams->bases,
                                COHI_SEGMENTS_MAX * ranks * sizeof *streams->bases);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(endpoint->library, result,
                              "the table of addresses cannot be written");
    streams->known = known;
    return COH_OK;
}

coh_status cohi_cuda_streams_ready(cohi_endpoint *endpoint)
{
    coh_status status = endpoint->streams->laid_out ? COH_OK : lay_out(endpoint);
    if (status == COH_OK && endpoint->streams->known != endpoint->attached)
        status = tell_bases(endpoint);
    return status;
}

/* ---- checks ---- */

coh_status cohi_cuda_check_buffer(cohi_endpoint *endpoint, const char *what, const void *pointer)
{
    switch (cohi_cuda_memory.place_of(endpoint, pointer)) {
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

static coh_status put(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                      const void *source, size_t bytes)
{
    CUdeviceptr target;
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = locate(endpoint, &to, &target);
    if (status == COH_OK)
        status = cohi_cuda_check_buffer(endpoint, "source", source);
    if (status == COH_OK)
        status = move(endpoint, lineup.stream, target, (CUdeviceptr)(uintptr_t)source, bytes);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

static coh_status get(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote from, void *target,
                      size_t bytes)
{
    CUdeviceptr source;
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = locate(endpoint, &from, &source);
    if (status == COH_OK)
        status = cohi_cuda_check_buffer(endpoint, "target", target);
    if (status == COH_OK)
        status = move(endpoint, lineup.stream, (CUdeviceptr)(uintptr_t)target, source, bytes);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

static coh_status put_signal(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote to,
                             const void *source, size_t bytes, cohi_remote at,
                             const cohi_remote_signal *signal)
{
    CUdeviceptr target = 0, word;
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    status = locate(endpoint, &at, &word);
    if (status == COH_OK && bytes > 0)
        status = locate(endpoint, &to, &target);
    if (status == COH_OK && bytes > 0)
        status = cohi_cuda_check_buffer(endpoint, "source", source);
    cohi_cuda_push both = {.target = target,
                           .source = (uintptr_t)source,
                           .bytes = bytes,
                           .signal = word,
                           .value = signal->value,
                           .add = signal->add};
    if (status == COH_OK && bytes > SMALL_PUT_BYTES) {
        status = cohi_cuda_move(endpoint, lineup.stream, target, both.source, bytes);
        both.bytes = 0;
    }
    if (status == COH_OK)
        status = push(endpoint, lineup.stream, both);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* A kernel: the copy engine is slow where blocks are short. */
static coh_status move_blocks(cohi_endpoint *endpoint, CUstream stream, cohi_cuda_blocks blocks)
{
    uint64_t most = (uint64_t)share_of(endpoint, endpoint->rank);
    unsigned grid = (unsigned)(blocks.count < most ? blocks.count : most > 0 ? most : 1);
    return cohi_cuda_launch(endpoint, endpoint->streams->strided, grid, COHI_CUDA_BLOCK_THREADS,
                            stream, &blocks);
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
    status = locate(endpoint, &remote, &there);
    if (status == COH_OK)
        status = cohi_cuda_check_buffer(endpoint, puts ? "source" : "target", local);
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

static coh_status apply_atomic(cohi_endpoint *endpoint, cohi_stream stream, cohi_remote at,
                               const cohi_remote_atomic *atomic, void *result)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    if (status != COH_OK)
        return status;
    if (result)
        status = cohi_cuda_check_buffer(endpoint, "result", result);
    if (status == COH_OK)
        status = cohi_cuda_launch_atomic(endpoint, lineup.stream, &at, atomic,
                                         (CUdeviceptr)(uintptr_t)result);
    return cohi_cuda_lineup_end(endpoint, &lineup, status);
}

/* What is on the stream before has been done, and is visible to all, when what is behind it begins. */
static coh_status quiet(cohi_endpoint *endpoint, cohi_stream stream)
{
    cohi_cuda_lineup lineup;
    coh_status status = cohi_cuda_lineup_begin(endpoint, stream, false, &lineup);
    return status == COH_OK ? cohi_cuda_lineup_end(endpoint, &lineup, status) : status;
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

/* Where ranks take turns a stream waits, not a kernel. It knows two comparisons. */
static coh_status wait_by_value(cohi_endpoint *endpoint, CUstream stream, CUdeviceptr word,
                                coh_compare compare, uint64_t value)
{
    bool above = compare == COH_GE || (compare == COH_GT && value < UINT64_MAX);
    if (!above && compare != COH_EQ)
        return cohi_fail(
            COH_UNSUPPORTED,
            "several processes share card %d, %s, without MPS: a stream can wait there "
            "for a word that is equal, greater or both, not otherwise; start "
            "nvidia-cuda-mps-control -d before them",
            endpoint->device, endpoint->name);
    CUresult result = endpoint->library->cuStreamWaitValue64(
        stream, word, value + (compare == COH_GT),
        above ? CU_STREAM_WAIT_VALUE_GEQ : CU_STREAM_WAIT_VALUE_EQ);
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
    if (cohi_cuda_takes_turns(endpoint)) {
        status = cohi_cuda_note_wait(endpoint, &lineup, word, value + (compare == COH_GT), at.rank);
        if (status == COH_OK)
            status = wait_by_value(endpoint, lineup.stream, word, compare, value);
    } else {
        status = wait_by_kernel(endpoint, lineup.stream, word, at.rank, compare, value);
    }
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
    *failure =
        (cohi_stream_failure){.status = trouble == COHI_CUDA_LOST ? COH_PEER_LOST : COH_MISMATCH,
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

static void find_failure(cohi_endpoint *endpoint, cohi_stream_failure *failure)
{
    const cohi_cuda_status *status = cohi_cuda_status_of(endpoint);
    *failure = (cohi_stream_failure){.status = COH_OK, .rank = -1};
    for (unsigned team = 0; team <= COHI_CUDA_TEAMS; team++)
        if (take_report(&status->reports[team], team, failure))
            return;
    ask_driver(endpoint, failure);
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
        (void)write_now(endpoint, control + streams->layout.values + word * sizeof value, &value,
                        sizeof value);
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
};
