/* Profiling: a program, or a library before ours, takes a routine's name and calls its twin. */
#include "check.h"

#include <pshmem.h>

static int calls;

void shmem_barrier_all(void)
{
    calls++;
    pshmem_barrier_all();
}

int main(void)
{
    shmem_init();
    shmem_barrier_all();
    shmem_barrier_all();
    CHECK(calls == 2);
    CHECK(pshmem_my_pe() == shmem_my_pe());
    shmem_finalize();
    return 0;
}
