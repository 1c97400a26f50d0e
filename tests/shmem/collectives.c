/* Collectives of a team: what moves, what computes, and scans. */
#include "check.h"

#include <complex.h>
#include <stdlib.h>

static int me, all;

static void move(void)
{
    static long source[4], broadcast[4];
    long *gathered = shmem_calloc((size_t)all * 4, sizeof *gathered);
    for (int i = 0; i < 4; i++)
        source[i] = 10L * me + i;
    int root = all - 1;
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, broadcast, source, 4, root) == 0);
    CHECK(broadcast[3] == 10L * root + 3);
    CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, gathered, source, 4) == 0);
    for (int i = 0; i < all * 4; i++)
        CHECK(gathered[i] == 10L * (i / 4) + i % 4);
    size_t mine = (size_t)(me % 4); /* as many as it likes, none among them */
    CHECK(shmem_collectmem(SHMEM_TEAM_WORLD, gathered, source, mine * sizeof(long)) == 0);
    for (int pe = 0, at = 0; pe < all; pe++)
        for (int i = 0; i < pe % 4; i++, at++)
            CHECK(gathered[at] == 10L * pe + i);
    shmem_free(gathered);
}

#define EXCHANGE(T, NAME)                                                                 \
    static void exchange_##NAME(void)                                                     \
    {                                                                                     \
        size_t room = (size_t)all * 2 * 3;                                                \
        T *from = shmem_calloc(room, sizeof *from), *to = shmem_calloc(room, sizeof *to); \
        for (int i = 0; i < all * 2; i++)                                                 \
            from[i * 3] = (T)(me * 5 + i);                                                \
        CHECK(shmem_##NAME##_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 3, 2) == 0);        \
        for (int i = 0; i < all * 2; i++)                                                 \
            CHECK(to[i * 2] == (T)(i / 2 * 5 + me * 2 + i % 2));                          \
        shmem_free(from);                                                                 \
        shmem_free(to);                                                                   \
    }
EXCHANGE(char, char)
EXCHANGE(short, short)
EXCHANGE(int, int)
EXCHANGE(double, double)
EXCHANGE(long double, longdouble)

/* Sums, products, extremes and scans of each type; values stay small enough for a char. */
#define NUMBERS(T, NAME)                                                             \
    static void numbers_##NAME(void)                                                 \
    {                                                                                \
        enum { COUNT = 100 };                                                        \
        static T from[COUNT], to[COUNT];                                             \
        for (int i = 0; i < COUNT; i++)                                              \
            from[i] = (T)(me + i % 3);                                               \
        CHECK(shmem_##NAME##_sum_reduce(SHMEM_TEAM_WORLD, to, from, COUNT) == 0);    \
        for (int i = 0; i < COUNT; i++)                                              \
            CHECK(to[i] == (T)(all * (all - 1) / 2 + all * (i % 3)));                \
        CHECK(shmem_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, to, from, COUNT) == 0);    \
        CHECK(to[4] == (T)(me * (me + 1) / 2 + me + 1));                             \
        CHECK(shmem_##NAME##_sum_exscan(SHMEM_TEAM_WORLD, to, from, COUNT) == 0);    \
        CHECK(to[4] == (T)(me * (me - 1) / 2 + me));                                 \
        for (int i = 0; i < COUNT; i++)                                              \
            from[i] = (T)(me == 0 ? 3 : 1);                                          \
        CHECK(shmem_##NAME##_prod_reduce(SHMEM_TEAM_WORLD, from, from, COUNT) == 0); \
        CHECK(from[0] == (T)3 && from[COUNT - 1] == (T)3);                           \
        shmem_barrier_all();                                                         \
    }
#define EXTREMES(T, NAME)                                                     \
    static void extremes_##NAME(void)                                         \
    {                                                                         \
        static T from[3], to[3];                                              \
        from[2] = (T)(me + 1);                                                \
        CHECK(shmem_##NAME##_max_reduce(SHMEM_TEAM_WORLD, to, from, 3) == 0); \
        CHECK(to[2] == (T)all && to[0] == (T)0);                              \
        CHECK(shmem_##NAME##_min_reduce(SHMEM_TEAM_WORLD, to, from, 3) == 0); \
        CHECK(to[2] == (T)1);                                                 \
    }
#define BITS(T, NAME)                                                         \
    static void bits_##NAME(void)                                             \
    {                                                                         \
        static T from[2], to[2];                                              \
        from[1] = (T)(me == 0 ? 0x35 : 0x31);                                 \
        CHECK(shmem_##NAME##_and_reduce(SHMEM_TEAM_WORLD, to, from, 2) == 0); \
        CHECK(to[1] == (T)(all == 1 ? 0x35 : 0x31));                          \
        CHECK(shmem_##NAME##_or_reduce(SHMEM_TEAM_WORLD, to, from, 2) == 0);  \
        CHECK(to[1] == (T)0x35);                                              \
        CHECK(shmem_##NAME##_xor_reduce(SHMEM_TEAM_WORLD, to, from, 2) == 0); \
        CHECK(to[1] == (T)(all % 2 ? 0x35 : 0x04));                           \
    }
SHMEMI_RMA_TYPES(NUMBERS)
SHMEMI_COMPLEX_TYPES(NUMBERS)
SHMEMI_RMA_TYPES(EXTREMES)
SHMEMI_BITWISE_TYPES(BITS)
#define CALL_NUMBERS(T, NAME)  numbers_##NAME();
#define CALL_EXTREMES(T, NAME) extremes_##NAME();
#define CALL_BITS(T, NAME)     bits_##NAME();

/* Larger than one piece, of a type that is combined piece by piece. */
static void many_complex(void)
{
    enum { COUNT = 20000 };
    double _Complex *values = shmem_malloc(COUNT * sizeof *values);
    for (int i = 0; i < COUNT; i++)
        values[i] = me + i * I;
    CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, values, values, COUNT) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] == all * (all - 1) / 2 + (double)i * all * I);
    shmem_free(values);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    move();
    exchange_char();
    exchange_short();
    exchange_int();
    exchange_double();
    exchange_longdouble();
    SHMEMI_RMA_TYPES(CALL_NUMBERS)
    SHMEMI_COMPLEX_TYPES(CALL_NUMBERS)
    SHMEMI_RMA_TYPES(CALL_EXTREMES)
    SHMEMI_BITWISE_TYPES(CALL_BITS)
    many_complex();
    shmem_finalize();
    return 0;
}
