#include "omissions.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS = 64 };

/* Returns from a body at the first call that fails. */
static bool fails(coh_status *kept, coh_status status)
{
    *kept = status;
    return status != COH_OK;
}

static int right_of(coh_world *world)
{
    return (coh_rank(world) + 1) % coh_size(world);
}

static int left_of(coh_world *world)
{
    return (coh_rank(world) + coh_size(world) - 1) % coh_size(world);
}

static void fill(double *cells, double first)
{
    for (int i = 0; i < CELLS; i++)
        cells[i] = first + i;
}

static bool holds(const double *cells, double first)
{
    bool same = true;
    for (int i = 0; i < CELLS; i++)
        same = same && cells[i] == first + i;
    return same;
}

/* Symmetric memory that is zero on all ranks. */
static coh_status zeroed(coh_world *world, size_t bytes, void *out)
{
    return coh_calloc(world, 1, bytes, (void **)out);
}

/* Everybody tells its right neighbour its number {barrier} and reads its own box. */
static coh_status ring(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    int *box, rank = coh_rank(world) + 100;
    if (fails(&status, zeroed(world, sizeof *box, &box))
        || fails(&status, coh_put(world, box, &rank, sizeof rank, right_of(world)))
        || (mended && fails(&status, coh_barrier(world))))
        return status;
    *right = *box == left_of(world) + 100;
    return COH_OK;
}

/* A sync in place of a barrier: it completes nothing. */
static coh_status sync_for_barrier(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    double *cells, mine[CELLS];
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, zeroed(world, sizeof mine, &cells))
        || fails(&status, coh_put(world, cells, mine, sizeof mine, right_of(world)))
        || fails(&status, mended ? coh_barrier(world) : coh_sync(world)))
        return status;
    *right = holds(cells, left_of(world) + 1);
    return COH_OK;
}

struct halo {
    double from_left[CELLS], from_right[CELLS];
    uint64_t left_came, right_came;
};

static coh_status send_halos(coh_world *world, struct halo *halo)
{
    coh_status status;
    double mine[CELLS];
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, coh_put_signal(world, halo->from_left, mine, sizeof mine, &halo->left_came,
                                      1, COH_SIGNAL_SET, right_of(world)))
        || fails(&status, coh_put_signal(world, halo->from_right, mine, sizeof mine,
                                         &halo->right_came, 1, COH_SIGNAL_SET, left_of(world))))
        return status;
    return COH_OK;
}

static coh_status await(coh_world *world, const uint64_t *word, uint64_t value, int from)
{
    return coh_wait_until(world, COH_U64, word, COH_GE, &value, from);
}

static bool halos_are_right(coh_world *world, const struct halo *halo)
{
    return holds(halo->from_left, left_of(world) + 1)
           && holds(halo->from_right, right_of(world) + 1);
}

/* Edges to both neighbours, with signals {wait for the two} and the sum. */
static coh_status halo_without_wait(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    struct halo *halo;
    if (fails(&status, zeroed(world, sizeof *halo, &halo))
        || fails(&status, send_halos(world, halo))
        || (mended && fails(&status, await(world, &halo->left_came, 1, left_of(world))))
        || (mended && fails(&status, await(world, &halo->right_came, 1, right_of(world)))))
        return status;
    *right = halos_are_right(world, halo);
    return COH_OK;
}

/* The same, and both waits are for the left one's word. */
static coh_status wrong_word(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    struct halo *halo;
    if (fails(&status, zeroed(world, sizeof *halo, &halo))
        || fails(&status, send_halos(world, halo))
        || fails(&status, await(world, &halo->left_came, 1, left_of(world)))
        || fails(&status,
                 await(world, mended ? &halo->right_came : &halo->left_came, 1, right_of(world))))
        return status;
    *right = halos_are_right(world, halo);
    return COH_OK;
}

/* All give rank 0 a part, and count it there; rank 0 adds them up {wait for the count}. */
static coh_status sum_before_signal(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    int size = coh_size(world), rank = coh_rank(world);
    struct sum {
        uint64_t came;
        double parts[64];
    } * sum;
    double part = rank + 1, all = 0;
    if (fails(&status, zeroed(world, sizeof *sum, &sum))
        || fails(&status, coh_put_signal(world, &sum->parts[rank], &part, sizeof part, &sum->came,
                                         1, COH_SIGNAL_ADD, 0)))
        return status;
    if (rank > 0)
        return COH_OK;
    if (mended && fails(&status, await(world, &sum->came, (uint64_t)size, COH_ANY_RANK)))
        return status;
    for (int i = 0; i < size; i++)
        all += sum->parts[i];
    *right = all == size * (size + 1) / 2;
    return COH_OK;
}

/* A put {quiet} and a get of the same range. */
static coh_status get_without_quiet(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    double *cells, mine[CELLS], back[CELLS];
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, zeroed(world, sizeof mine, &cells))
        || fails(&status, coh_put(world, cells, mine, sizeof mine, right_of(world)))
        || (mended && fails(&status, coh_quiet(world)))
        || fails(&status, coh_get(world, back, cells, sizeof back, right_of(world))))
        return status;
    *right = holds(back, coh_rank(world) + 1);
    return COH_OK;
}

/* Two ranks write one range, the second after {the first's put is complete and} a sync. */
static coh_status two_puts(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    int rank = coh_rank(world), last = coh_size(world) - 1;
    double *cells, mine[CELLS];
    fill(mine, rank + 1);
    if (fails(&status, zeroed(world, sizeof mine, &cells))
        || (rank == 1 && fails(&status, coh_put(world, cells, mine, sizeof mine, 0)))
        || fails(&status, mended ? coh_barrier(world) : coh_sync(world))
        || (rank == last && fails(&status, coh_put(world, cells, mine, sizeof mine, 0)))
        || fails(&status, coh_barrier(world)))
        return status;
    *right = rank > 0 || holds(cells, last + 1);
    return COH_OK;
}

/* A counter is set {and complete}; all count on it. */
static coh_status count_on_put(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    int rank = coh_rank(world);
    uint64_t *counter, start = 1000, one = 1;
    if (fails(&status, zeroed(world, sizeof *counter, &counter))
        || (rank == 0 && fails(&status, coh_put(world, counter, &start, sizeof start, 1)))
        || fails(&status, mended ? coh_barrier(world) : coh_sync(world))
        || fails(&status, coh_atomic(world, COH_ATOMIC_ADD, COH_U64, counter, &one, 1))
        || fails(&status, coh_barrier(world)))
        return status;
    *right = rank != 1 || *counter == start + (uint64_t)coh_size(world);
    return COH_OK;
}

/* Each gets its source from its neighbour {complete} and all reduce it. */
static coh_status reduce_over_put(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    int size = coh_size(world);
    double *cells, *sums, mine[CELLS];
    for (int i = 0; i < CELLS; i++)
        mine[i] = coh_rank(world) + 1;
    if (fails(&status, zeroed(world, sizeof mine, &cells))
        || fails(&status, zeroed(world, sizeof mine, &sums))
        || fails(&status, coh_put(world, cells, mine, sizeof mine, right_of(world)))
        || fails(&status, mended ? coh_barrier(world) : coh_sync(world))
        || fails(&status,
                 coh_all_reduce(coh_team_world(world), COH_F64, COH_SUM, cells, sums, CELLS)))
        return status;
    *right = sums[0] == size * (size + 1) / 2 && sums[CELLS - 1] == sums[0];
    return COH_OK;
}

struct mail {
    double cells[CELLS];
    uint64_t flag;
};

/* Data {fence} and a flag, which the receiver waits for. */
static coh_status flag_without_fence(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    struct mail *mail;
    double mine[CELLS];
    uint64_t one = 1;
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, zeroed(world, sizeof *mail, &mail))
        || fails(&status, coh_put(world, mail->cells, mine, sizeof mine, right_of(world)))
        || (mended && fails(&status, coh_fence(world)))
        || fails(&status, coh_put(world, &mail->flag, &one, sizeof one, right_of(world)))
        || fails(&status, await(world, &mail->flag, 1, left_of(world))))
        return status;
    *right = holds(mail->cells, left_of(world) + 1);
    return COH_OK;
}

/* The same with the data on a context, and a fence {of that context} of the world. */
static coh_status fence_of_another_context(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    struct mail *mail;
    double mine[CELLS];
    coh_context *context;
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, zeroed(world, sizeof *mail, &mail))
        || fails(&status, coh_context_create(world, &context))
        || fails(&status, coh_context_put(context, mail->cells, mine, sizeof mine, right_of(world)))
        || fails(&status, mended ? coh_context_quiet(context) : coh_fence(world))
        || fails(&status, coh_signal(world, &mail->flag, 1, COH_SIGNAL_SET, right_of(world)))
        || fails(&status, await(world, &mail->flag, 1, left_of(world))))
        return status;
    *right = holds(mail->cells, left_of(world) + 1);
    return COH_OK;
}

/* A non-blocking put {quiet}, then its source is used for something else. */
static coh_status source_reused(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    double *cells, mine[CELLS];
    fill(mine, coh_rank(world) + 1);
    if (fails(&status, zeroed(world, sizeof mine, &cells))
        || fails(&status, coh_put_nbi(world, cells, mine, sizeof mine, right_of(world)))
        || (mended && fails(&status, coh_quiet(world))))
        return status;
    fill(mine, -1);
    if (fails(&status, coh_barrier(world)))
        return status;
    *right = holds(cells, left_of(world) + 1);
    return COH_OK;
}

/* A non-blocking get {quiet}, then its target is read. */
static coh_status get_read_early(coh_world *world, bool mended, bool *right)
{
    coh_status status;
    double *cells, got[CELLS];
    if (fails(&status, zeroed(world, sizeof got, &cells)))
        return status;
    fill(cells, coh_rank(world) + 1);
    if (fails(&status, coh_barrier(world))
        || fails(&status, coh_get_nbi(world, got, cells, sizeof got, right_of(world)))
        || (mended && fails(&status, coh_quiet(world))))
        return status;
    *right = holds(got, right_of(world) + 1);
    return coh_quiet(world);
}

const omission omissions[] = {
    {"ring", PART_WRONG_DATA, ring},
    {"sync_for_barrier", PART_WRONG_DATA, sync_for_barrier},
    {"halo_without_wait", PART_WRONG_DATA, halo_without_wait},
    {"wrong_word", PART_WRONG_DATA, wrong_word},
    {"sum_before_signal", PART_WRONG_DATA, sum_before_signal},
    {"get_without_quiet", PART_RACE, get_without_quiet},
    {"two_puts", PART_RACE, two_puts},
    {"count_on_put", PART_RACE, count_on_put},
    {"reduce_over_put", PART_RACE, reduce_over_put},
    {"flag_without_fence", PART_WRONG_DATA, flag_without_fence},
    {"fence_of_another_context", PART_WRONG_DATA, fence_of_another_context},
    {"source_reused", PART_RACE, source_reused},
    {"get_read_early", PART_WRONG_DATA, get_read_early},
    {NULL, 0, NULL},
};
