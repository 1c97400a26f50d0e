/*
 * halo.c - heat that spreads along a rod which the ranks hold in pieces.
 *
 * Each rank owns CELLS cells and keeps a copy of the nearest cell of each neighbour, the halo. In
 * every step it puts its two outermost cells into its neighbours' halos through views, which were
 * checked once and are used many times. At the end the ranks' sum is compared with what was there
 * at the start: the ends are insulated, so no heat may be lost.
 */
#include <cohort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 64, STEPS = 200 };

/* Cells 1 to CELLS are this rank's own; 0 and CELLS + 1 are the halo. */
typedef struct rod {
    double cell[CELLS + 2];
} rod;

static void check(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "halo: %s\n", coh_last_error());
    exit(1);
}

/* One rank beyond the end of the rod there is nobody: the halo mirrors the last cell. */
static void exchange(coh_world *world, rod *mine, const coh_view *left_halo,
                     const coh_view *right_halo)
{
    if (left_halo)
        check(coh_put_view(world, *left_halo, &mine->cell[1], sizeof(double)));
    else
        mine->cell[0] = mine->cell[1];
    if (right_halo)
        check(coh_put_view(world, *right_halo, &mine->cell[CELLS], sizeof(double)));
    else
        mine->cell[CELLS + 1] = mine->cell[CELLS];
}

static void spread(rod *mine)
{
    double before = mine->cell[0];
    for (int i = 1; i <= CELLS; i++) {
        double here = mine->cell[i];
        mine->cell[i] = here + 0.25 * (before - 2 * here + mine->cell[i + 1]);
        before = here;
    }
}

static double sum_of_all(coh_world *world, const rod *mine)
{
    double sum = 0;
    for (int rank = 0; rank < coh_size(world); rank++) {
        rod theirs;
        check(coh_get(world, &theirs, mine, sizeof theirs, rank));
        for (int i = 1; i <= CELLS; i++)
            sum += theirs.cell[i];
    }
    return sum;
}

int main(void)
{
    coh_world *world;
    rod *mine;
    check(coh_init(NULL, &world));
    check(COH_CALLOC(world, 1, &mine));
    int rank = coh_rank(world), last = coh_size(world) - 1;
    if (rank == 0)
        mine->cell[1] = 1000;

    /* My left neighbour keeps my first cell in its right halo, and the other way round. */
    coh_view left, right;
    if (rank > 0)
        check(coh_view_of(world, &mine->cell[CELLS + 1], sizeof(double), rank - 1, &left));
    if (rank < last)
        check(coh_view_of(world, &mine->cell[0], sizeof(double), rank + 1, &right));

    for (int step = 0; step < STEPS; step++) {
        exchange(world, mine, rank > 0 ? &left : NULL, rank < last ? &right : NULL);
        check(coh_barrier(world)); /* the halos are there */
        spread(mine);
        check(coh_sync(world)); /* nobody needs the old halos any more */
    }
    double sum = sum_of_all(world, mine);
    int wrong = fabs(sum - 1000) > 1e-6; /* far more than 200 steps can round */
    if (rank == 0)
        printf("%d ranks, %d steps: %.6f of 1000 units of heat are there, %.3f of them on rank 0's "
               "first cell\n",
               last + 1, STEPS, sum, mine->cell[1]);

    check(coh_free(world, mine));
    check(coh_finalize(world));
    return wrong;
}
