/* Ordering and locks: data before flag, and one holder at a time. */
#include "check.h"

static long data[100], flag, lock, guarded[2];

static void data_before_flag(int me, int all)
{
    int right = (me + 1) % all, left = (me + all - 1) % all;
    for (long round = 1; round <= 50; round++) {
        long mine[100];
        for (int i = 0; i < 100; i++)
            mine[i] = round * 1000 + me;
        shmem_long_put(data, mine, 100, right);
        shmem_fence();
        shmem_long_p(&flag, round, right);
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
        CHECK(data[0] == round * 1000 + left && data[99] == data[0]);
        shmem_pe_quiet(&right, 1);
        shmem_sync_all();
    }
}

static void one_holder(void)
{
    for (int i = 0; i < 100; i++) {
        if (i % 2)
            shmem_set_lock(&lock);
        else
            while (shmem_test_lock(&lock))
                ;
        long a = shmem_long_g(&guarded[0], 0), b = shmem_long_g(&guarded[1], 0);
        CHECK(a == b);
        shmem_long_p(&guarded[0], a + 1, 0);
        shmem_long_p(&guarded[1], b + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(&guarded[0], 0) == 100L * shmem_n_pes());
}

int main(void)
{
    shmem_init();
    data_before_flag(shmem_my_pe(), shmem_n_pes());
    one_holder();
    shmem_finalize();
    return 0;
}
