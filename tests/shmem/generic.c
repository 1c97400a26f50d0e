/* The forms that choose by type. The same text is compiled as C11, where they are macros, and as
 * C++, where they are overloads. */
#include "check.h"

static int me, all, right, left;

/* With and without a context, for a type that has a name of its own and one that has not. */
#define MOVE(T, name)                                                       \
    static void move_##name(shmem_ctx_t ctx)                                \
    {                                                                       \
        static T from[8], to[8], word;                                      \
        static uint64_t signal;                                             \
        for (int i = 0; i < 8; i++)                                         \
            from[i] = (T)(me + i);                                          \
        shmem_barrier_all();                                                \
        shmem_put(to, from, 8, right);                                      \
        shmem_put(ctx, to, from, 8, right);                                 \
        shmem_put_nbi(ctx, to, from, 8, right);                             \
        shmem_ctx_quiet(ctx);                                               \
        shmem_barrier_all();                                                \
        CHECK(to[7] == (T)(left + 7));                                      \
        shmem_get(to, from, 8, right);                                      \
        CHECK(to[1] == (T)(right + 1));                                     \
        CHECK(shmem_g(from, right) == (T)right);                            \
        CHECK(shmem_g(ctx, &from[2], right) == (T)(right + 2));             \
        shmem_p(&word, (T)(me + 1), right);                                 \
        shmem_barrier_all();                                                \
        CHECK(word == (T)(left + 1));                                       \
        shmem_iput(to, from, 2, 2, 4, right);                               \
        shmem_iget(ctx, to, from, 1, 2, 4, right);                          \
        shmem_ibput(to, from, 4, 4, 2, 2, right);                           \
        shmem_barrier_all();                                                \
        shmem_put_signal(to, from, 8, &signal, 1, SHMEM_SIGNAL_ADD, right); \
        CHECK(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1) == 1);      \
        CHECK(to[3] == (T)(left + 3));                                      \
        shmem_barrier_all();                                                \
    }
MOVE(char, char)
MOVE(int64_t, int64)
MOVE(float, float)
MOVE(long double, longdouble)

static void count(shmem_ctx_t ctx)
{
    static size_t word;
    static unsigned bits;
    static double real;
    size_t old = 99;
    shmem_atomic_inc(&word, me);
    shmem_atomic_add(ctx, &word, (size_t)4, me);
    CHECK(shmem_atomic_fetch_add(&word, (size_t)1, me) == 5);
    CHECK(shmem_atomic_fetch_inc(ctx, &word, me) == 6);
    CHECK(shmem_atomic_compare_swap(&word, (size_t)7, (size_t)1, me) == 7);
    CHECK(shmem_atomic_swap(&word, (size_t)2, me) == 1);
    shmem_atomic_fetch_nbi(&old, &word, me);
    shmem_quiet();
    CHECK(old == 2 && shmem_atomic_fetch(ctx, &word, me) == 2);
    shmem_atomic_or(&bits, 6u, me);
    shmem_atomic_and(ctx, &bits, 3u, me);
    CHECK(shmem_atomic_fetch_xor(&bits, 1u, me) == 2u);
    shmem_atomic_set(&real, 0.5, me);
    CHECK(shmem_atomic_swap(ctx, &real, 1.5, me) == 0.5);
}

static void meet(void)
{
    static long from[4], to[4 * 64];
    static unsigned char bits, all_bits;
    static uint64_t signal;
    static short half;
    static int words[2], seen[2];
    from[3] = me;
    CHECK(shmem_sync(SHMEM_TEAM_WORLD) == 0);
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, to, from, 4, all - 1) == 0 && to[3] == all - 1);
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, to, from, 4) == 0 && to[4 * me + 3] == me);
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, to, from, 4) == 0 && to[3] == all * (all - 1) / 2);
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, to, from, 4) == 0 && to[3] == all - 1);
    bits = (unsigned char)(1 << (me % 8));
    CHECK(shmem_or_reduce(SHMEM_TEAM_WORLD, &all_bits, &bits, 1) == 0 && (all_bits & 1));
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, to, from, 4) == 0 && to[3] == me * (me + 1) / 2);
    shmem_signal_set(&signal, 3, right);
    shmem_signal_add(SHMEM_CTX_DEFAULT, &signal, 1, right);
    shmem_wait_until(&signal, SHMEM_CMP_EQ, (uint64_t)4);
    shmem_p(&half, (short)1, right);
    shmem_wait_until(&half, SHMEM_CMP_NE, (short)0);
    CHECK(shmem_test(&half, SHMEM_CMP_EQ, (short)1) == 1);
    shmem_p(&words[1], 1, right);
    CHECK(shmem_wait_until_any(words, 2, NULL, SHMEM_CMP_EQ, 1) == 1);
    seen[1] = 1;
    CHECK(shmem_test_all_vector(words, 2, NULL, SHMEM_CMP_EQ, seen) == 1);
    shmem_barrier_all();
    static long counter;
    shmem_add(&counter, 2L, right);
    shmem_barrier_all();
    CHECK(shmem_fadd(&counter, 1L, me) == 2);
}

int main(void)
{
    shmem_ctx_t ctx;
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    right = (me + 1) % all;
    left = (me + all - 1) % all;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    move_char(ctx);
    move_int64(ctx);
    move_float(ctx);
    move_longdouble(ctx);
    count(ctx);
    meet();
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
