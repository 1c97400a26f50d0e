/* Signals: a put that tells of its arrival, handed around a ring. */
#include "check.h"

enum { COUNT = 1000, ROUNDS = 20 };

static long data[COUNT];
static uint64_t arrived, acknowledged;

int main(void)
{
    static long mine[COUNT];
    shmem_init();
    int me = shmem_my_pe(), all = shmem_n_pes(), right = (me + 1) % all,
        left = (me + all - 1) % all;
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            mine[i] = 100000L * round + i + me;
        if (round % 2)
            shmem_long_put_signal(data, mine, COUNT, &arrived, (uint64_t)round, SHMEM_SIGNAL_SET,
                                  right);
        else
            shmem_putmem_signal_nbi(data, mine, sizeof mine, &arrived, 1, SHMEM_SIGNAL_ADD, right);
        uint64_t seen = shmem_signal_wait_until(&arrived, SHMEM_CMP_GE, (uint64_t)round);
        CHECK(seen == (uint64_t)round && shmem_signal_fetch(&arrived) == seen);
        for (int i = 0; i < COUNT; i++)
            CHECK(data[i] == 100000L * round + i + left);
        shmem_signal_add(&acknowledged, 1, left); /* it may be overwritten now */
        CHECK(shmem_signal_wait_until(&acknowledged, SHMEM_CMP_EQ, (uint64_t)round)
              == (uint64_t)round);
    }
    shmem_barrier_all();
    shmem_signal_set(&arrived, 7, right);
    CHECK(shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 7) == 7);
    shmem_finalize();
    return 0;
}
