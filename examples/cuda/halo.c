/*
 * halo.c - heat that spreads along a rod in the memory of cards, in the order of a stream.
 *
 * Each rank owns CELLS cells and the halo, a copy of the nearest cell of each neighbour. In every step it
 * puts its outermost cells into the neighbours' halos, with a signal; waits for theirs; and computes the next
 * state by a kernel. All of it is enqueued: the host waits once, after the last step (more often where processes take turns
 * on a card).
 *
 * There are two states. A neighbour that writes into the halo of state `step % 2` again has seen this rank's
 * signal of the step between, which follows the kernel that read it: nothing is overwritten too early.
 *
 * At the end each rank compares its cells with those that it gets by computing the whole rod itself.
 */
#include "driver.h"

#include <math.h>

enum { CELLS = 1000, STEPS = 300, THREADS = 128 };

/* next[i] = now[i] + (now[i - 1] - 2 now[i] + now[i + 1]) / 4 for i of 1 to cells. */
static const char spread_text[] =
    ".version 6.5\n.target sm_52\n.address_size 64\n"
    ".visible .entry spread(.param .u64 next, .param .u64 now, .param .u32 cells) {\n"
    "  .reg .pred %outside; .reg .u32 %cell, %block, %width, %cells;\n"
    "  .reg .u64 %to, %from, %at; .reg .f64 %left, %here, %right, %twice;\n"
    "  ld.param.u64 %to, [next]; ld.param.u64 %from, [now]; ld.param.u32 %cells, [cells];\n"
    "  mov.u32 %block, %ctaid.x; mov.u32 %width, %ntid.x; mov.u32 %cell, %tid.x;\n"
    "  mad.lo.u32 %cell, %block, %width, %cell;\n"
    "  add.u32 %cell, %cell, 1;\n"
    "  setp.gt.u32 %outside, %cell, %cells;\n"
    "  @%outside ret;\n"
    "  mul.wide.u32 %at, %cell, 8;\n"
    "  cvta.to.global.u64 %to, %to; cvta.to.global.u64 %from, %from;\n"
    "  add.u64 %to, %to, %at; add.u64 %from, %from, %at;\n"
    "  ld.global.f64 %left, [%from + -8]; ld.global.f64 %here, [%from];\n"
    "  ld.global.f64 %right, [%from + 8];\n"
    "  add.rn.f64 %twice, %here, %here;\n"
    "  sub.rn.f64 %left, %left, %twice; add.rn.f64 %left, %left, %right;\n"
    "  mul.rn.f64 %left, %left, 0d3FD0000000000000;\n"
    "  add.rn.f64 %here, %here, %left;\n"
    "  st.global.f64 [%to], %here; ret;\n"
    "}\n";

/* On each rank's card. Cells 1 to CELLS are its own; 0 and CELLS + 1 are the halo. */
typedef struct rod {
    double cell[2][CELLS + 2];
    uint64_t from_left, from_right; /* signals: how many steps of the neighbour's cells are here */
} rod;

/* The end of the rod is insulated: beyond it is a copy of the last cell. */
static void send_cell(coh_world *world, double *halo, const double *cell, uint64_t *signal,
                      uint64_t step, int neighbor)
{
    int inside = neighbor >= 0 && neighbor < coh_size(world);
    check(coh_cuda_put_signal(world, halo, cell, sizeof *cell, signal, step + 1, COH_SIGNAL_SET,
                              inside ? neighbor : coh_rank(world), cuda.stream));
}

static void enqueue_step(coh_world *world, rod *mine, uint64_t step, void *spread)
{
    int rank = coh_rank(world), last = coh_size(world) - 1, cells = CELLS;
    double *now = mine->cell[step % 2], *next = mine->cell[(step + 1) % 2];
    /* What goes to the left arrives in the right halo there; at the end of the rod in one's own left. */
    send_cell(world, rank > 0 ? &now[CELLS + 1] : &now[0], &now[1],
              rank > 0 ? &mine->from_right : &mine->from_left, step, rank - 1);
    send_cell(world, rank < last ? &now[0] : &now[CELLS + 1], &now[CELLS],
              rank < last ? &mine->from_left : &mine->from_right, step, rank + 1);
    check(coh_cuda_wait_until(world, &mine->from_left, COH_GE, step + 1, rank > 0 ? rank - 1 : rank,
                              cuda.stream));
    check(coh_cuda_wait_until(world, &mine->from_right, COH_GE, step + 1,
                              rank < last ? rank + 1 : rank, cuda.stream));
    cuda_launch(spread, (CELLS + THREADS - 1) / THREADS, THREADS, (void *[]){&next, &now, &cells});
}

/* The whole rod, computed by the host; this rank's part of it ends up in `mine`. */
static void compute_alone(int size, int rank, double mine[CELLS])
{
    size_t all = (size_t)size * CELLS;
    double *now = calloc(all + 2, sizeof *now), *next = calloc(all + 2, sizeof *next);
    if (!now || !next)
        exit(1);
    now[1] = 1000;
    for (int step = 0; step < STEPS; step++) {
        now[0] = now[1];
        now[all + 1] = now[all];
        for (size_t i = 1; i <= all; i++)
            next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        double *other = now;
        now = next;
        next = other;
    }
    for (size_t i = 0; i < CELLS; i++)
        mine[i] = now[1 + (size_t)rank * CELLS + i];
    free(now);
    free(next);
}

int main(void)
{
    coh_world *world;
    rod *mine;
    static double found[CELLS], expected[CELLS];
    double hot = 1000, furthest = 0;
    check(coh_init(NULL, &world));
    coh_heap *heap = cuda_open(world, 0);
    int rank = coh_rank(world), size = coh_size(world);
    check(coh_heap_calloc(heap, 1, sizeof *mine, (void **)&mine));
    void *spread = cuda_kernel(spread_text, "spread");
    if (rank == 0)
        check(coh_put(world, &mine->cell[0][1], &hot, sizeof hot, 0));
    check(coh_barrier(world));

    for (uint64_t step = 0; step < STEPS; step++)
        enqueue_step(world, mine, step, spread);
    cuda_finish(world);

    check(coh_get(world, found, &mine->cell[STEPS % 2][1], sizeof found, rank));
    compute_alone(size, rank, expected);
    for (int i = 0; i < CELLS; i++)
        furthest = fmax(furthest, fabs(found[i] - expected[i]));
    if (rank == 0)
        printf("%d ranks, %d steps on the card: %.3f of 1000 units of heat on the first cell, at "
               "most %.1e from the host's result\n",
               size, STEPS, found[0], furthest);

    cuda_close();
    check(coh_heap_destroy(heap));
    check(coh_finalize(world));
    return !(furthest < 1e-9);
}
