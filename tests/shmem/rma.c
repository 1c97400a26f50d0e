/* Put and get: typed, by size, scalar, strided, in blocks, non-blocking. */
#include "check.h"

enum { COUNT = 64 };

static long from[COUNT], to[COUNT];
static int me, all, right, left;

static void reset(void)
{
    for (int i = 0; i < COUNT; i++) {
        from[i] = 1000L * me + i;
        to[i] = -1;
    }
    shmem_barrier_all();
}

static void whole(void)
{
    reset();
    shmem_long_put(to, from, COUNT, right);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++)
        CHECK(to[i] == 1000L * left + i);
    reset();
    shmem_long_get(to, from, COUNT, right);
    for (int i = 0; i < COUNT; i++)
        CHECK(to[i] == 1000L * right + i);
    reset();
    shmem_putmem_nbi(to, from, sizeof to, right);
    shmem_quiet();
    shmem_barrier_all();
    CHECK(to[COUNT - 1] == 1000L * left + COUNT - 1);
    reset();
    shmem_get128_nbi(to, from, COUNT / 2, right);
    shmem_quiet();
    CHECK(to[COUNT - 1] == 1000L * right + COUNT - 1);
    shmem_long_put(NULL, NULL, 0, right); /* nothing to move needs no memory */
}

static void strided(void)
{
    reset();
    shmem_long_iput(to, from, 3, 2, 10, right); /* every 2nd to every 3rd */
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++)
        CHECK(to[i] == (i % 3 == 0 && i < 30 ? 1000L * left + i / 3 * 2 : -1));
    reset();
    shmem_iget64(to, from, 1, 4, 10, right);
    for (int i = 0; i < 10; i++)
        CHECK(to[i] == 1000L * right + i * 4);
    reset();
    shmem_long_ibput(to, from, 8, 4, 3, 5, right); /* 5 blocks of 3 */
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++)
        CHECK(to[i] == (i % 8 < 3 && i < 40 ? 1000L * left + i / 8 * 4 + i % 8 : -1));
    reset();
    shmem_ibget64(to, from, 3, 8, 3, 5, right);
    for (int i = 0; i < 15; i++)
        CHECK(to[i] == 1000L * right + i / 3 * 8 + i % 3);
    shmem_barrier_all();
}

/* One of each type, there and back. */
#define SCALAR(T, NAME)                                          \
    static void scalar_##NAME(void)                              \
    {                                                            \
        static T word, words[3];                                 \
        word = (T)(me + 1);                                      \
        shmem_barrier_all();                                     \
        CHECK(shmem_##NAME##_g(&word, right) == (T)(right + 1)); \
        shmem_##NAME##_p(&words[1], (T)(me + 7), right);         \
        shmem_barrier_all();                                     \
        CHECK(words[1] == (T)(left + 7));                        \
        CHECK(words[0] == (T)0 && words[2] == (T)0);             \
        shmem_barrier_all();                                     \
    }
SHMEMI_RMA_TYPES(SCALAR)
#define CALL_SCALAR(T, NAME) scalar_##NAME();

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    right = (me + 1) % all;
    left = (me + all - 1) % all;
    whole();
    strided();
    SHMEMI_RMA_TYPES(CALL_SCALAR)
    shmem_finalize();
    return 0;
}
