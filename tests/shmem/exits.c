/* Ways in which programs end: shmem_finalize in an exit handler that is older than shmem_init, in a
 * destructor, once more than shmem_init, and not at all. All of them end with status 0. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static const char *way = "";
static long *counter;

/* Whatever it calls must still work: nobody has left before all are here. */
static void finalize_late(void)
{
    shmem_long_atomic_inc(counter, 0);
    shmem_barrier_all();
    CHECK(shmem_long_g(counter, 0) == shmem_n_pes());
    shmem_finalize();
}

__attribute__((destructor)) static void destroy(void)
{
    if (strcmp(way, "destructor") == 0)
        finalize_late();
}

int main(int argc, char **argv)
{
    way = argc > 1 ? argv[1] : way;
    if (strcmp(way, "handler") == 0)
        atexit(finalize_late);
    if (strcmp(way, "without_init") == 0) {
        shmem_finalize();
        return 0;
    }
    shmem_init();
    counter = shmem_calloc(1, sizeof *counter);
    CHECK(counter);
    if (strcmp(way, "twice") == 0) {
        shmem_finalize();
        shmem_finalize();
        shmem_finalize();
    }
    return 0;
}
