/* twice.c - a rank of whatever launcher: joins, joins once more beside that, and again when both are finalized. */
#include <cohort.h>
#include <stdio.h>

static int complain(void)
{
    fprintf(stderr, "twice: %s\n", coh_last_error());
    return 1;
}

static int meet(coh_world *world)
{
    return coh_barrier(world) == COH_OK ? 0 : complain();
}

int main(void)
{
    coh_world *first, *second, *third;
    if (coh_init(NULL, &first) != COH_OK || coh_init(NULL, &second) != COH_OK)
        return complain();
    if (meet(second) || meet(first))
        return 1;
    if (coh_finalize(first) != COH_OK || coh_finalize(second) != COH_OK)
        return complain();
    if (coh_init(NULL, &third) != COH_OK || meet(third))
        return complain();
    printf("rank %d of %d joined three times\n", coh_rank(third), coh_size(third));
    return coh_finalize(third) == COH_OK ? 0 : complain();
}
