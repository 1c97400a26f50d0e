/*
 * tune_hosts.c - measures the rows of the profile that take two hosts: what messages between them cost.
 *
 * Each is the median of some samples, by rank 0. Messages are sent as the program's are, sealed or in the
 * clear, whatever COHORT_NET says.
 */
#include "tune.h"

#include "bench/bench.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>

enum {
    SHORT_BYTES = 8,
    LONG_BYTES = 4 << 20,
    SAMPLES = 15,
    TURNS = 100,
    FEW = 4,
    BURST = 64, /* short messages one behind the other; they fit the credit of a peer many times */
    TAG = 1,
};

struct side {
    coh_team *team;
    int rank;
    char *memory; /* LONG_BYTES of the heap */
};

static coh_status give(const struct side *side, size_t bytes)
{
    return coh_send(side->team, !side->rank, TAG, side->memory, bytes);
}

static coh_status take(const struct side *side, size_t bytes)
{
    return coh_receive(side->team, !side->rank, TAG, side->memory, bytes, NULL);
}

/* So many messages there, and as many back. */
static coh_status bounce(const struct side *side, size_t bytes, int count)
{
    coh_status status = COH_OK;
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < count && status == COH_OK; i++)
            status = (way == side->rank ? give : take)(side, bytes);
    return status;
}

/* Nanoseconds one way, for `count` messages one behind the other. */
static coh_status time_messages(const struct side *side, size_t bytes, int count, int turns,
                                double *each)
{
    double samples[SAMPLES];
    cohi_bench_figure figure;
    coh_status status = bounce(side, bytes, count);
    for (int i = 0; i < SAMPLES && status == COH_OK; i++) {
        uint64_t start = cohi_now_ns();
        for (int turn = 0; turn < turns && status == COH_OK; turn++)
            status = bounce(side, bytes, count);
        samples[i] = cohi_bench_each(status, start, 2 * (uint64_t)turns);
    }
    if (status != COH_OK)
        return status;
    cohi_bench_spread(samples, SAMPLES, &figure);
    *each = figure.median;
    return COH_OK;
}

static coh_status measure(const struct side *side)
{
    double one = 0, many = 0, long_one = 0;
    coh_status status = time_messages(side, SHORT_BYTES, 1, TURNS, &one);
    if (status == COH_OK)
        status = time_messages(side, SHORT_BYTES, BURST, FEW, &many);
    if (status == COH_OK)
        status = time_messages(side, LONG_BYTES, 1, FEW, &long_one);
    if (status == COH_OK && side->rank == 0)
        printf("message %.6g\nmessage_further %.6g\nmessage_byte %.6g\n", one,
               fmax((many - one) / (BURST - 1), 1), fmax(long_one - one, 1) / LONG_BYTES);
    fflush(stdout);
    return status;
}

/* Ranks that map each other would measure something else. */
static int are_apart(coh_world *world, const void *memory)
{
    void *direct = NULL;
    return coh_size(world) == 2
           && (coh_ptr(world, memory, !coh_rank(world), &direct) != COH_OK || !direct);
}

static coh_status run(coh_world *world)
{
    struct side side = {.team = coh_team_world(world), .rank = coh_rank(world)};
    coh_status status = coh_calloc(world, 1, LONG_BYTES, (void **)&side.memory);
    bool apart = status == COH_OK && are_apart(world, side.memory);
    if (apart)
        status = measure(&side);
    coh_status left = coh_finalize(world);
    if (status == COH_OK && !apart) {
        fprintf(stderr, "cohort tune: it takes two ranks, each on a host of its own\n");
        exit(EXIT_FAILURE);
    }
    return status == COH_OK ? left : status;
}

int cohi_tune_hosts_worker(void)
{
    coh_world *world;
    cohi_tune_forget_choices();
    coh_status status = coh_init(NULL, &world);
    if (status == COH_OK)
        status = run(world);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort tune: %s\n", coh_last_error());
    return EXIT_FAILURE;
}
