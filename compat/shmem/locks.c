/* locks.c - locks: a long that is zero on all PEs. */
#include "internal.h"

_Static_assert(sizeof(long) == sizeof(coh_lock), "a lock of the standard is one of Cohort's");

SHMEMI_DEFINE(void, shmem_set_lock, (long *lock))
{
    shmemi_enter(SHMEMI_NAME);
    if (coh_lock_set(shmemi.world, (coh_lock *)lock) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "lock=%p", (void *)lock);
}

SHMEMI_DEFINE(void, shmem_clear_lock, (long *lock))
{
    shmemi_enter(SHMEMI_NAME);
    if (coh_lock_clear(shmemi.world, (coh_lock *)lock) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "lock=%p", (void *)lock);
}

/* 0: it was free, and is the caller's now. */
SHMEMI_DEFINE(int, shmem_test_lock, (long *lock))
{
    int taken;
    shmemi_enter(SHMEMI_NAME);
    if (coh_lock_test(shmemi.world, (coh_lock *)lock, &taken) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "lock=%p", (void *)lock);
    return !taken;
}
