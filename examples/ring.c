/* ring.c - the first program: each rank writes its number into its right neighbour's memory. */
#include <cohort.h>
#include <stdio.h>

static int complain(void)
{
    fprintf(stderr, "ring: %s\n", coh_last_error());
    return 1;
}

int main(void)
{
    coh_world *world;
    int *box; /* one on every rank, reachable by every rank */
    if (coh_init(NULL, &world) != COH_OK || COH_MALLOC(world, 1, &box) != COH_OK)
        return complain();
    int rank = coh_rank(world), size = coh_size(world);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;

    if (coh_put(world, box, &rank, sizeof rank, right) != COH_OK
        || coh_barrier(world) != COH_OK) /* all puts of all ranks have arrived */
        return complain();
    printf("rank %d of %d was sent %d\n", rank, size, *box);
    int wrong = *box != left;

    return coh_free(world, box) != COH_OK || coh_finalize(world) != COH_OK || wrong;
}
