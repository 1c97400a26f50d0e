/* layout.c - how control segments are divided, and how many blocks kernels have. */
#include "engine/cuda/streams.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static uint64_t take(uint64_t *at, uint64_t bytes)
{
    enum { LINE = 128 };
    uint64_t begins = *at;
    *at += (bytes + LINE - 1) / LINE * LINE;
    return begins;
}

static bool is_beside(const cohi_endpoint *endpoint, int rank, int other)
{
    return endpoint->host_of[other] == endpoint->host_of[rank]
           && memcmp(endpoint->addresses[other].uuid, endpoint->addresses[rank].uuid, 16) == 0;
}

static int ranks_on_card_of(const cohi_endpoint *endpoint, int rank)
{
    int count = 0;
    for (int other = 0; other < endpoint->size; other++)
        count += is_beside(endpoint, rank, other);
    return count;
}

/* Whether processes take turns on the card of that rank; the same answer on all ranks. */
static bool has_turns(const cohi_endpoint *endpoint, int rank)
{
    bool mps = true;
    for (int other = 0; other < endpoint->size; other++)
        if (is_beside(endpoint, rank, other))
            mps &= endpoint->addresses[other].mps != 0;
    return !endpoint->in_process && !mps && ranks_on_card_of(endpoint, rank) > 1;
}

/*
 * Of the multiprocessors of its card: its part where MPS has divided them, but no more than an even one. Kernels that
 * fill their part are slow: all_reduce of 64 MiB on an H200, two ranks with 66 multiprocessors each, took 95.7 us with
 * 66 blocks and 79.5 us with 54. Threads share what their process has: kernels that wait for each other have to be on
 * the card together.
 *
 * Where the card switches between processes each kernel has it alone, and every block costs: all_reduce of 1 MiB took
 * 420, 297 and 226 us with 132, 66 and 33 blocks, of 64 MiB 611, 491 and 458 us.
 */
int cohi_cuda_share_of(const cohi_endpoint *endpoint, int rank)
{
    enum { PART_IN_TURNS = 4, RANKS_WITH_THAT = 32 }; /* each has a post of each for a block */
    const cohi_cuda_address *address = &endpoint->addresses[rank];
    bool divided = address->multiprocessors < address->of_card;
    int ranks = ranks_on_card_of(endpoint, rank), even = address->of_card / ranks;
    int own = divided ? address->multiprocessors * 9 / 11 : address->multiprocessors;
    if (endpoint->in_process)
        own /= ranks;
    else if (has_turns(endpoint, rank))
        even = address->of_card / PART_IN_TURNS * RANKS_WITH_THAT
               / (ranks > RANKS_WITH_THAT ? ranks : RANKS_WITH_THAT);
    return own < even ? own : even;
}

/* Blocks of a kernel: a multiprocessor each, of the share that each rank has of its card. The same on all
 * ranks of the host, so that each block has one to meet. */
static uint32_t least_share(const cohi_endpoint *endpoint)
{
    int least = endpoint->multiprocessors;
    for (int rank = 0; rank < endpoint->size; rank++) {
        int share = cohi_cuda_share_of(endpoint, rank);
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

static uint64_t packets_bytes(int team)
{
    return team < 2 ? 10 << 20 : team < 8 ? 1 << 20 : 64 << 10;
}

/* Bytes of a block and half. */
static uint32_t part_of(const struct cohi_cuda_streams *streams, uint64_t bytes)
{
    return (uint32_t)(bytes / 2 / streams->layout.blocks / 128 * 128);
}

static void divide_scratch(struct cohi_cuda_streams *streams, uint64_t at)
{
    for (int team = 0; team < COHI_CUDA_TEAMS; team++) {
        streams->scratch[team] = take(&at, scratch_bytes(team));
        streams->scratch_each[team] = part_of(streams, scratch_bytes(team));
        streams->packets[team] = take(&at, packets_bytes(team));
        streams->packets_each[team] = part_of(streams, packets_bytes(team));
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
        (void)take(&at, scratch_bytes(team) + packets_bytes(team));
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

CUresult cohi_cuda_write_now(cohi_endpoint *endpoint, CUdeviceptr target, const void *source,
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
    CUresult result = cohi_cuda_write_now(endpoint, control + streams->layout.bases, streams->bases,
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
