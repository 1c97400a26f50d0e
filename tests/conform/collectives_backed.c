/* How much of the board collectives have backed with memory: what they use, and no more. */
#include "conform.h"

#include "bootstrap/board.h"
#include "core/world/world.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LONG = 1 << 20, ONE_SHOT = 2 << 10, SLACK = 64 << 10 };

static const size_t scratches = sizeof((cohi_staging *)0)->scratch;
static const size_t stages = offsetof(cohi_staging, level) - offsetof(cohi_staging, in);

/* Bytes of the board that are backed, while nobody is in a call. */
static size_t backed(test_rank *self)
{
    struct stat status = {0};
    CHECK_OK(coh_barrier(self->world));
    CHECK(fstat(self->world->board->fd, &status) == 0);
    CHECK_OK(coh_barrier(self->world));
    return (size_t)status.st_blocks * 512;
}

/* The call adds `expected` bytes on each rank, or a little more. An all_gather, which goes in one
 * shot, or an all_reduce. */
static void grows(test_rank *self, const char *what, bool gather, void *source, void *target,
                  size_t expected)
{
    coh_collective call = COH_COLLECTIVE_INIT;
    size_t before = backed(self), all = expected * (size_t)self->size;
    call.kind = gather ? COH_COLLECTIVE_ALL_GATHER : COH_COLLECTIVE_ALL_REDUCE;
    call.team = coh_team_world(self->world);
    call.dtype = COH_U8;
    call.source = source;
    call.target = target;
    call.count = gather ? ONE_SHOT : LONG;
    CHECK_OK(coh_collective_run(&call));
    size_t grown = backed(self) - before;
    if (grown < all || grown > all + SLACK)
        test_fail("%s: it took %zu bytes of the board, and not %zu", what, grown, all);
}

static void staging_as_it_is_used(test_rank *self)
{
    bool crew = self->world->crew != NULL; /* whose members reach each other's private memory */
    char *heap = NULL, *own = calloc(2, LONG);
    uint64_t one = 1, sum = 0;
    if (!CHECK(own) || !CHECK_OK(coh_malloc(self->world, (size_t)2 * LONG, (void **)&heap)))
        return;
    CHECK_OK(coh_all_reduce(coh_team_world(self->world), COH_U64, COH_SUM, &one, &sum, 1));
    grows(self, "in the heap", false, heap, heap + LONG, 0);
    grows(self, "in one shot", true, heap, heap + LONG, scratches);
    grows(self, "of one rank's private memory", false, self->rank == 0 ? own : heap, heap + LONG,
          crew ? 0 : stages);
    grows(self, "in private memory, once more", false, own, own + LONG, 0);
    grows(self, "in one shot, once more", true, own, own + LONG, 0);
    free(own);
    CHECK_OK(coh_free(self->world, heap));
}

const test_case conform_coll_backed[] = {
    CASE(staging_as_it_is_used, "S57", ON_MAPPED, FROM_TWO,
         .environment = "COHORT_ALL_GATHER=one-shot"),
};
CONFORM_COUNT(coll_backed);
