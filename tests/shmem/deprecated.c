/* What programs of twenty years use: start_pes, active sets with pSync and pWrk, the old names. */
#include <mpp/shmem.h>

#include "check.h"

enum { COUNT = 20000 };

static long sync_a[SHMEM_SYNC_SIZE], sync_b[SHMEM_SYNC_SIZE];
static int work[COUNT / 2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static int me, all;

/* The even PEs, and all of them: the same calls. */
static void exchange(int log_stride, int size)
{
    static int source[4], target[4 * 64], strided[8 * 64];
    int index = me >> log_stride;
    for (int i = 0; i < 4; i++)
        source[i] = 10 * index + i;
    target[0] = -1;
    shmem_barrier(0, log_stride, size, sync_a);
    shmem_broadcast32(target, source, 4, size - 1, 0, log_stride, size, sync_b);
    CHECK(index == size - 1 ? target[0] == -1 : target[3] == 10 * (size - 1) + 3);
    shmem_barrier(0, log_stride, size, sync_a);
    shmem_fcollect32(target, source, 4, 0, log_stride, size, sync_b);
    for (int i = 0; i < 4 * size; i++)
        CHECK(target[i] == 10 * (i / 4) + i % 4);
    shmem_barrier(0, log_stride, size, sync_a);
    shmem_collect32(target, source, (size_t)(index % 3), 0, log_stride, size, sync_b);
    for (int member = 0, at = 0; member < size; member++)
        for (int i = 0; i < member % 3; i++, at++)
            CHECK(target[at] == 10 * member + i);
    shmem_barrier(0, log_stride, size, sync_a);
    for (int i = 0; i < size; i++)
        target[i] = 100 * index + i;
    shmem_sync(0, log_stride, size, sync_a);
    shmem_alltoalls32(strided, target, 2, 1, 1, 0, log_stride, size, sync_b);
    for (int i = 0; i < size; i++)
        CHECK(strided[2 * i] == 100 * i + index);
    shmem_barrier(0, log_stride, size, sync_a);
}

static void reduce(int log_stride, int size)
{
    static int values[COUNT];
    int index = me >> log_stride;
    for (int i = 0; i < COUNT; i++)
        values[i] = index + i;
    shmem_int_sum_to_all(values, values, COUNT, 0, log_stride, size, work, sync_a);
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] == size * (size - 1) / 2 + size * i);
    shmem_barrier(0, log_stride, size, sync_b);
    values[0] = index + 1;
    shmem_int_max_to_all(values, values, 1, 0, log_stride, size, work, sync_a);
    CHECK(values[0] == size);
    shmem_barrier(0, log_stride, size, sync_b);
}

static void old_names(void)
{
    static long word;
    int right = (me + 1) % all;
    CHECK(_my_pe() == me && _num_pes() == all);
    shmem_long_add(&word, 5, right);
    shmem_long_wait_until(&word, _SHMEM_CMP_EQ, 5);
    CHECK(shmem_long_fadd(&word, 1, me) == 5 && shmem_long_finc(&word, me) == 6);
    CHECK(shmem_long_cswap(&word, 7, 9, me) == 7 && shmem_long_swap(&word, 1, me) == 9);
    shmem_wait(&word, 0);
    long *memory = shmalloc(100);
    memory = shrealloc(memory, 1000);
    CHECK(memory);
    shfree(memory);
    shfree(shmemalign(4096, 10));
}

int main(void)
{
    start_pes(0);
    me = shmem_my_pe();
    all = shmem_n_pes();
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        sync_a[i] = sync_b[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    exchange(0, all);
    reduce(0, all);
    if (me % 2 == 0)
        exchange(1, (all + 1) / 2);
    if (me % 2 == 0)
        reduce(1, (all + 1) / 2);
    shmem_barrier_all();
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        CHECK(sync_a[i] == SHMEM_SYNC_VALUE && sync_b[i] == SHMEM_SYNC_VALUE);
    old_names();
    return 0; /* and no finalize */
}
