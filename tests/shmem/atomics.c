/* Atomics: counters, elections, bits; every type by every operation that it has. */
#include "check.h"

static int me, all;

/* All PEs draw numbers from PE 0: together they are 0, 1, 2, ... */
static void draw_numbers(void)
{
    enum { EACH = 100 };
    static long counter;
    static int seen[EACH * 64];
    for (int i = 0; i < EACH; i++) {
        long drawn = shmem_long_atomic_fetch_inc(&counter, 0);
        CHECK(drawn >= 0 && drawn < (long)EACH * all);
        shmem_int_atomic_inc(&seen[drawn], 0);
    }
    shmem_barrier_all();
    for (int i = 0; me == 0 && i < EACH * all; i++)
        CHECK(seen[i] == 1);
}

/* One of them finds nobody there. */
static void elect(void)
{
    static int leader = -1, elected;
    if (shmem_int_atomic_compare_swap(&leader, -1, me, 0) == -1)
        shmem_int_atomic_add(&elected, 1, 0);
    shmem_barrier_all();
    CHECK(shmem_int_atomic_fetch(&elected, 0) == 1);
    int who = shmem_int_atomic_fetch(&leader, 0);
    CHECK(who >= 0 && who < all);
}

#define ACCESS(T, NAME)                                             \
    static void access_##NAME(void)                                 \
    {                                                               \
        static T word;                                              \
        T old = (T)-1;                                              \
        shmem_##NAME##_atomic_set(&word, (T)5, me);                 \
        CHECK(shmem_##NAME##_atomic_fetch(&word, me) == (T)5);      \
        CHECK(shmem_##NAME##_atomic_swap(&word, (T)6, me) == (T)5); \
        shmem_##NAME##_atomic_swap_nbi(&old, &word, (T)7, me);      \
        shmem_quiet();                                              \
        CHECK(old == (T)6);                                         \
        shmem_##NAME##_atomic_fetch_nbi(&old, &word, me);           \
        shmem_quiet();                                              \
        CHECK(old == (T)7);                                         \
    }
#define ADD(T, NAME)                                                                \
    static void add_##NAME(void)                                                    \
    {                                                                               \
        static T word;                                                              \
        T old = (T)-1;                                                              \
        shmem_##NAME##_atomic_inc(&word, me);                                       \
        shmem_##NAME##_atomic_add(&word, (T)10, me);                                \
        CHECK(shmem_##NAME##_atomic_fetch_add(&word, (T)2, me) == (T)11);           \
        CHECK(shmem_##NAME##_atomic_fetch_inc(&word, me) == (T)13);                 \
        CHECK(shmem_##NAME##_atomic_compare_swap(&word, (T)14, (T)3, me) == (T)14); \
        CHECK(shmem_##NAME##_atomic_compare_swap(&word, (T)9, (T)4, me) == (T)3);   \
        shmem_##NAME##_atomic_fetch_add_nbi(&old, &word, (T)1, me);                 \
        shmem_quiet();                                                              \
        CHECK(old == (T)3);                                                         \
        shmem_##NAME##_atomic_fetch_inc_nbi(&old, &word, me);                       \
        shmem_quiet();                                                              \
        CHECK(old == (T)4);                                                         \
        shmem_##NAME##_atomic_compare_swap_nbi(&old, &word, (T)5, (T)8, me);        \
        shmem_quiet();                                                              \
        CHECK(old == (T)5 && word == (T)8);                                         \
    }
#define BITS(T, NAME)                                                          \
    static void bits_##NAME(void)                                              \
    {                                                                          \
        static T word;                                                         \
        T old = (T)-1;                                                         \
        shmem_##NAME##_atomic_or(&word, (T)0xf0, me);                          \
        shmem_##NAME##_atomic_and(&word, (T)0x3c, me);                         \
        shmem_##NAME##_atomic_xor(&word, (T)0x11, me);                         \
        CHECK(word == (T)0x21);                                                \
        CHECK(shmem_##NAME##_atomic_fetch_or(&word, (T)0x02, me) == (T)0x21);  \
        CHECK(shmem_##NAME##_atomic_fetch_and(&word, (T)0x22, me) == (T)0x23); \
        CHECK(shmem_##NAME##_atomic_fetch_xor(&word, (T)0x44, me) == (T)0x22); \
        shmem_##NAME##_atomic_fetch_xor_nbi(&old, &word, (T)0, me);            \
        shmem_quiet();                                                         \
        CHECK(old == (T)0x66);                                                 \
    }
SHMEMI_AMO_TYPES(ACCESS)
SHMEMI_REAL_TYPES(ACCESS)
SHMEMI_AMO_TYPES(ADD)
SHMEMI_BITWISE_AMO_TYPES(BITS)
#define CALL_ACCESS(T, NAME) access_##NAME();
#define CALL_ADD(T, NAME)    add_##NAME();
#define CALL_BITS(T, NAME)   bits_##NAME();

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    draw_numbers();
    elect();
    SHMEMI_AMO_TYPES(CALL_ACCESS)
    SHMEMI_REAL_TYPES(CALL_ACCESS)
    SHMEMI_AMO_TYPES(CALL_ADD)
    SHMEMI_BITWISE_AMO_TYPES(CALL_BITS)
    shmem_finalize();
    return 0;
}
