/*
 * in_process.c - several ranks inside one process: how code for many ranks is tested without a
 * launcher.
 *
 * What is tested is `offset_of_mine`: where a rank's items begin when all ranks' items are laid end
 * to end. It is first run by four ranks with a thread each. Then one thread drives four ranks in
 * turn, which is how a debugger, a fuzzer or a plain unit test likes it: no other thread, every
 * step in a known order.
 */
#include <cohort.h>
#include <pthread.h>
#include <stdio.h>

enum { RANKS = 4 };

static const int items[RANKS] = {3, 0, 5, 2};
static const int expected[RANKS] = {0, 3, 3, 8};

/* Tells every rank how many items this one has; counts[r] is to become rank r's number. */
static coh_status tell_all(coh_world *world, int *counts, int mine)
{
    int rank = coh_rank(world);
    coh_status status = COH_OK;
    for (int to = 0; to < coh_size(world) && status == COH_OK; to++)
        status = coh_put(world, &counts[rank], &mine, sizeof mine, to);
    return status;
}

static int sum_before(const int *counts, int rank)
{
    int sum = 0;
    for (int i = 0; i < rank; i++)
        sum += counts[i];
    return sum;
}

static coh_status offset_of_mine(coh_world *world, int mine, int *offset)
{
    int *counts;
    coh_status status = COH_MALLOC(world, RANKS, &counts);
    if (status != COH_OK)
        return status;
    status = tell_all(world, counts, mine);
    if (status == COH_OK)
        status = coh_barrier(world);
    if (status == COH_OK)
        *offset = sum_before(counts, coh_rank(world));
    coh_status freed = coh_free(world, counts);
    return status == COH_OK ? freed : status;
}

static int verdict(const char *how, int rank, int got)
{
    printf("%s: rank %d begins at %d%s\n", how, rank, got, got == expected[rank] ? "" : ", WRONG");
    return got != expected[rank];
}

static int complain(const char *how)
{
    fprintf(stderr, "in_process: %s: %s\n", how, coh_last_error());
    return 1;
}

/* ---- a thread each ---- */

static void *one_rank(void *arg)
{
    coh_world *world = arg;
    int rank = coh_rank(world), offset;
    int wrong = offset_of_mine(world, items[rank], &offset) == COH_OK
                    ? verdict("threads", rank, offset)
                    : complain("threads");
    wrong |= coh_finalize(world) != COH_OK;
    return wrong ? arg : NULL;
}

static int with_threads(void)
{
    coh_world *worlds[RANKS];
    pthread_t threads[RANKS];
    if (coh_init_threads(RANKS, NULL, worlds) != COH_OK)
        return complain("coh_init_threads");
    for (int r = 0; r < RANKS; r++)
        pthread_create(&threads[r], NULL, one_rank, worlds[r]);
    int wrong = 0;
    for (int r = 0; r < RANKS; r++) {
        void *failed;
        pthread_join(threads[r], &failed);
        wrong |= failed != NULL;
    }
    return wrong;
}

/* ---- one thread for all ---- */

static int driven(void)
{
    coh_options options = COH_OPTIONS_INIT;
    options.driven = 1;
    coh_world *worlds[RANKS];
    int *counts[RANKS], wrong = 0;
    if (coh_init_threads(RANKS, &options, worlds) != COH_OK)
        return complain("coh_init_threads");
    for (int r = 0; r < RANKS; r++)
        if (COH_MALLOC(worlds[r], RANKS, &counts[r]) != COH_OK)
            return complain("coh_malloc");
    for (int r = 0; r < RANKS; r++)
        if (tell_all(worlds[r], counts[r], items[r]) != COH_OK)
            return complain("coh_put");
    for (int r = 0; r < RANKS; r++) /* what a barrier does, but for the waiting */
        if (coh_quiet(worlds[r]) != COH_OK)
            return complain("coh_quiet");
    for (int r = 0; r < RANKS; r++)
        wrong |= verdict("driven", r, sum_before(counts[r], r));
    for (int r = 0; r < RANKS; r++)
        wrong |= coh_finalize(worlds[r]) != COH_OK;
    return wrong;
}

int main(void)
{
    return with_threads() || driven();
}
