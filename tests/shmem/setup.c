/* Setup, exit and query: who am I, what is this library, and starting again after the end. */
#include "check.h"

#include <string.h>

static void ask_who_is_there(void)
{
    int me = shmem_my_pe(), all = shmem_n_pes();
    CHECK(all >= 1 && me >= 0 && me < all);
    CHECK(shmem_pe_accessible(me) == 1);
    CHECK(shmem_pe_accessible(all) == 0 && shmem_pe_accessible(-1) == 0);
}

static void ask_the_library(void)
{
    int major, minor, level;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    CHECK(major == 1 && minor == 6);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    shmem_query_thread(&level);
    CHECK(level == SHMEM_THREAD_MULTIPLE);
    shmem_pcontrol(1);
}

int main(void)
{
    int initialized = -1, provided = -1;
    shmem_query_initialized(&initialized);
    if (initialized != 0)
        return 1;

    shmem_init();
    shmem_query_initialized(&initialized);
    CHECK(initialized != 0);
    ask_who_is_there();
    ask_the_library();

    /* Inits are counted: the library is there until the last finalize. */
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    CHECK(provided == SHMEM_THREAD_MULTIPLE);
    shmem_finalize();
    shmem_query_initialized(&initialized);
    CHECK(initialized != 0);
    shmem_barrier_all();
    shmem_finalize();
    shmem_query_initialized(&initialized);
    if (initialized != 0)
        return 1;

    /* And may be started again. */
    shmem_init();
    ask_who_is_there();
    shmem_finalize();
    return 0;
}
