/* Waits and tests: one word, any, all and some of several, with one value or one for each. */
#include "check.h"

#include <stdlib.h>

static int me, all;

/* Each PE sets its own word on all others; they come in any order. */
static void await_all_kinds(void)
{
    int *words = shmem_calloc((size_t)all, sizeof *words);
    int *status = calloc((size_t)all, sizeof *status);
    size_t *indices = calloc((size_t)all, sizeof *indices);
    for (int pe = 0; pe < all; pe++)
        shmem_int_atomic_set(&words[me], me + 1, pe);
    for (int left = all; left > 0; left--) {
        size_t which = shmem_int_wait_until_any(words, (size_t)all, status, SHMEM_CMP_NE, 0);
        CHECK(which < (size_t)all && !status[which] && words[which] == (int)which + 1);
        status[which] = 1;
    }
    CHECK(shmem_int_wait_until_any(words, (size_t)all, status, SHMEM_CMP_NE, 0) == SIZE_MAX);
    CHECK(shmem_int_wait_until_some(words, (size_t)all, indices, NULL, SHMEM_CMP_GT, 0)
          == (size_t)all);
    int *wanted = calloc((size_t)all, sizeof *wanted);
    for (int i = 0; i < all; i++)
        wanted[i] = i + 1;
    shmem_int_wait_until_all_vector(words, (size_t)all, NULL, SHMEM_CMP_EQ, wanted);
    CHECK(shmem_int_test_all_vector(words, (size_t)all, NULL, SHMEM_CMP_EQ, wanted) == 1);
    CHECK(shmem_int_test_all(words, (size_t)all, NULL, SHMEM_CMP_EQ, 0) == 0);
    CHECK(shmem_int_test_all(words, 0, NULL, SHMEM_CMP_EQ, 0) == 1);
    CHECK(shmem_int_test_any(words, (size_t)all, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX);
    CHECK(shmem_int_test_some(words, (size_t)all, indices, NULL, SHMEM_CMP_LE, 1) == 1);
    CHECK(indices[0] == 0);
    free(status);
    free(indices);
    free(wanted);
    shmem_free(words);
}

/* A PE that asks for any of several that hold gets each of them in time. */
static void pass_over_none(void)
{
    static int words[5] = {1, 1, 1, 1, 1};
    int seen[5] = {0}, different = 0;
    for (int asked = 0; different < 5; asked++) {
        size_t which = shmem_int_test_any(words, 5, NULL, SHMEM_CMP_EQ, 1);
        CHECK(which < 5 && asked < 1000);
        different += !seen[which];
        seen[which] = 1;
    }
}

/* A flag handed to the right and back from the left, in each type. */
#define PING(T, NAME)                                                                  \
    static void ping_##NAME(void)                                                      \
    {                                                                                  \
        static T flags[3];                                                             \
        T value = (T)(me + 3);                                                         \
        int right = (me + 1) % all, left = (me + all - 1) % all;                       \
        CHECK(shmem_##NAME##_test(&flags[1], SHMEM_CMP_NE, (T)0) == 0);                \
        shmem_barrier_all();                                                           \
        shmem_##NAME##_p(&flags[1], value, right);                                     \
        shmem_##NAME##_wait_until(&flags[1], SHMEM_CMP_GE, (T)3);                      \
        CHECK(flags[1] == (T)(left + 3));                                              \
        while (!shmem_##NAME##_test(&flags[1], SHMEM_CMP_EQ, (T)(left + 3)))           \
            ;                                                                          \
        CHECK(shmem_##NAME##_wait_until_any(flags, 3, NULL, SHMEM_CMP_GT, (T)0) == 1); \
        shmem_barrier_all();                                                           \
    }
SHMEMI_AMO_TYPES(PING)
SHMEMI_SHORT_TYPES(PING)
#define CALL_PING(T, NAME) ping_##NAME();

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    await_all_kinds();
    pass_over_none();
    SHMEMI_AMO_TYPES(CALL_PING)
    SHMEMI_SHORT_TYPES(CALL_PING)
    shmem_finalize();
    return 0;
}
