/* Teams and contexts: PEs are counted from 0 again in each team, and in a context made from it. */
#include "check.h"

static int me, all;

static void look_at_the_predefined(void)
{
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == all);
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
}

static void split_even(void)
{
    static int box;
    shmem_team_t even;
    shmem_team_config_t config = {.num_contexts = 1};
    int members = (all + 1) / 2;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, members, &config,
                                   SHMEM_TEAM_NUM_CONTEXTS, &even)
          == 0);
    CHECK((even == SHMEM_TEAM_INVALID) == (me % 2 == 1));
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, even) == (me % 2 ? -1 : me / 2));
    if (even == SHMEM_TEAM_INVALID)
        return;
    int index = shmem_team_my_pe(even), next = (index + 1) % members;
    CHECK(shmem_team_n_pes(even) == members);
    CHECK(shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 1);

    shmem_ctx_t ctx;
    shmem_team_t of_ctx;
    CHECK(shmem_team_create_ctx(even, SHMEM_CTX_SERIALIZED, &ctx) == 0);
    CHECK(shmem_ctx_get_team(ctx, &of_ctx) == 0 && of_ctx == even);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_int_p(ctx, &box, index + 1, next); /* next in the team, not in the world */
    shmem_ctx_session_stop(ctx);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_team_sync(even) == 0);
    CHECK(box == (index + members - 1) % members + 1);
    CHECK(shmem_team_ptr(even, &box, index) == &box
          || *(int *)shmem_team_ptr(even, &box, index) == box);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(even);
}

static void split_in_rows(void)
{
    shmem_team_t row, column;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column) == 0);
    CHECK(shmem_team_my_pe(row) == me % 2 || all == 1);
    CHECK(shmem_team_my_pe(column) == (all == 1 ? 0 : me / 2));
    int sum = 0;
    static int one = 1, total;
    CHECK(shmem_int_sum_reduce(column, &total, &one, 1) == 0);
    sum = total;
    CHECK(sum == shmem_team_n_pes(column));
    shmem_team_destroy(row);
    shmem_team_destroy(column);
}

/* What cannot be is told by the return code, to all alike. */
static void split_the_impossible(void)
{
    shmem_team_t none = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, all + 1, NULL, 0, &none) != 0);
    CHECK(none == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &none) != 0);
}

static void use_contexts(void)
{
    enum { MANY = 100 };
    static long words[MANY];
    shmem_ctx_t ctx[MANY], none = SHMEM_CTX_INVALID;
    int right = (me + 1) % all;
    for (int i = 0; i < MANY; i++)
        CHECK(shmem_ctx_create(0, &ctx[i]) == 0);
    for (int i = 0; i < MANY; i++) {
        shmem_ctx_long_atomic_add(ctx[i], &words[i], i + 1, right);
        long got;
        shmem_ctx_long_get_nbi(ctx[i], &got, &words[i], 1, me);
        shmem_ctx_fence(ctx[i]);
        shmem_ctx_quiet(ctx[i]);
    }
    shmem_ctx_pe_quiet(ctx[0], &right, 1);
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++) {
        CHECK(words[i] == i + 1);
        shmem_ctx_destroy(ctx[i]);
    }
    shmem_ctx_destroy(none);
    shmem_ctx_quiet(none);
}

int main(void)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    look_at_the_predefined();
    split_even();
    split_in_rows();
    split_the_impossible();
    use_contexts();
    shmem_finalize();
    return 0;
}
