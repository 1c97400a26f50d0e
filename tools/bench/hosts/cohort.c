/* cohort.c - the rows of scripts/bench-hosts by Cohort. */
#include "rows.h"

#include <cohort.h>
#include <stdlib.h>

static coh_world *world;
static coh_team *team;
static int rank, other;
static float *memory, *result; /* symmetric */

static void must(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "%s\n", coh_last_error());
    exit(1);
}

static void message(size_t bytes)
{
    if (rank == 0)
        must(coh_send(team, other, 1, memory, bytes));
    must(coh_receive(team, other, 1, memory, bytes, NULL));
    if (rank == 1)
        must(coh_send(team, other, 1, memory, bytes));
}

static void put(size_t bytes)
{
    if (rank == 1)
        return;
    must(coh_put(world, memory, result, bytes, other));
    must(coh_quiet(world));
}

static void all_reduce(size_t bytes)
{
    must(coh_all_reduce(team, COH_F32, COH_SUM, memory, result, bytes / sizeof(float)));
}

int main(void)
{
    must(coh_init(NULL, &world));
    rank = coh_rank(world);
    other = 1 - rank;
    team = coh_team_world(world);
    must(COH_CALLOC(world, ROWS_BYTES_MAX / sizeof(float), &memory));
    must(COH_CALLOC(world, ROWS_BYTES_MAX / sizeof(float), &result));
    rows_measure("message", message, 2, rank);
    rows_measure("put", put, 1, rank);
    must(coh_barrier(world));
    rows_measure("all_reduce", all_reduce, 1, rank);
    must(coh_finalize(world));
    return 0;
}
