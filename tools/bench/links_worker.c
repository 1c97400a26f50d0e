#include "bench/links.h"

#include "bench/bench.h"
#include "bench/limit/limit_link.h"

#include "base/clock.h"
#include "secure/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 1, WORD_BYTES = 64 };

/* As often as peer_link_repeats has the other libraries repeat theirs. */
static const cohi_links_row rows[] = {
    {"message", 8, 100, 1, 0},          {"put", 64 << 10, 30, 0, 0},
    {"put", 1 << 20, 4, 0, 0},          {"put", 16 << 20, 1, 0, 0},
    {"all_reduce", 1 << 10, 100, 0, 1}, {"all_reduce", 64 << 10, 100, 0, 1},
    {"all_reduce", 1 << 20, 10, 0, 1},  {"all_reduce", 16 << 20, 2, 0, 1},
    {"all_reduce", 64 << 20, 2, 0, 1},
};

enum { ROWS = sizeof rows / sizeof *rows };

const cohi_links_row *cohi_links_row_at(int index)
{
    return index < ROWS ? &rows[index] : NULL;
}

/* Of sixteen ranks each would have two buffers. */
uint64_t cohi_links_most_bytes(uint64_t ranks)
{
    return ranks <= 2 ? 64 << 20 : 16 << 20;
}

/* One of the ranks, and the one on the other host that it has a bare link to. */
struct side {
    coh_world *world;
    int rank, size, other, leads;
    uint64_t most;
    char *shared, *other_shared, *private;
    cohi_limit_link link;
    double cohort[ROWS][COHI_LINKS_ROUNDS_MAX], limit[ROWS][COHI_LINKS_ROUNDS_MAX],
        fraction[ROWS][COHI_LINKS_ROUNDS_MAX];
};

/* ---- Cohort ---- */

static coh_status take_turns(struct side *side, const cohi_links_row *row)
{
    coh_team *team = coh_team_world(side->world);
    char word[WORD_BYTES] = "";
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < row->repeats && status == COH_OK; i++) {
        if (side->leads)
            status = coh_send(team, side->other, TAG, word, row->bytes);
        if (status == COH_OK)
            status = coh_receive(team, side->other, TAG, word, row->bytes, NULL);
        if (status == COH_OK && !side->leads)
            status = coh_send(team, side->other, TAG, word, row->bytes);
    }
    return status;
}

/* The other one waits in the barrier that follows. */
static coh_status put_all(struct side *side, const cohi_links_row *row)
{
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < row->repeats && status == COH_OK && side->leads; i++) {
        status = coh_put(side->world, side->shared, side->private, row->bytes, side->other);
        if (status == COH_OK)
            status = coh_quiet(side->world);
    }
    return status;
}

static coh_status reduce_all(struct side *side, const cohi_links_row *row)
{
    coh_team *team = coh_team_world(side->world);
    coh_status status = COH_OK;
    for (uint64_t i = 0; i < row->repeats && status == COH_OK; i++)
        status = coh_all_reduce(team, COH_F32, COH_SUM, side->shared, side->other_shared,
                                row->bytes / sizeof(float));
    return status;
}

static double each(uint64_t began_ns, const cohi_links_row *row)
{
    return (double)(cohi_now_ns() - began_ns) / (double)row->repeats / (row->turns ? 2 : 1);
}

/* One call is not timed, here and in the bare loops: what other rows have left in the caches is gone after it. */
static cohi_links_row once(const cohi_links_row *row)
{
    cohi_links_row single = *row;
    single.repeats = 1;
    return single;
}

static coh_status call_cohort(struct side *side, const cohi_links_row *row)
{
    return (row->turns ? take_turns : row->reduces ? reduce_all : put_all)(side, row);
}

static coh_status run_cohort(struct side *side, const cohi_links_row *row, double *nanoseconds)
{
    const cohi_links_row first = once(row);
    coh_status status = call_cohort(side, &first);
    if (status == COH_OK)
        status = coh_barrier(side->world);
    uint64_t began_ns = cohi_now_ns();
    if (status == COH_OK)
        status = call_cohort(side, row);
    *nanoseconds = each(began_ns, row);
    return status == COH_OK ? coh_barrier(side->world) : status;
}

/* ---- bare loops ---- */

/* Of an all_reduce each pair has its share, as if what is inside of a host took no time. */
static int reduce_bare(struct side *side, const cohi_links_row *row)
{
    uint64_t share = row->bytes / ((uint64_t)side->size / 2);
    int failed = 0;
    for (uint64_t i = 0; i < row->repeats && !failed; i++)
        failed = cohi_limit_link_reduce(&side->link, side->shared, side->other_shared,
                                        side->private, share);
    return failed;
}

static int move_bare(struct side *side, const cohi_links_row *row)
{
    char *memory = side->leads ? side->private : side->shared;
    int failed = 0;
    for (uint64_t i = 0; i < row->repeats && !failed; i++)
        failed = cohi_limit_link_move(&side->link, memory, row->bytes);
    return failed;
}

static int call_limit(struct side *side, const cohi_links_row *row)
{
    return row->turns     ? cohi_limit_link_turns(&side->link, row->bytes, row->repeats)
           : row->reduces ? reduce_bare(side, row)
                          : move_bare(side, row);
}

static coh_status run_limit(struct side *side, const cohi_links_row *row, double *nanoseconds)
{
    const cohi_links_row first = once(row);
    int failed = call_limit(side, &first);
    coh_status status = coh_barrier(side->world);
    uint64_t began_ns = cohi_now_ns();
    failed = failed || call_limit(side, row);
    *nanoseconds = each(began_ns, row);
    return status == COH_OK && failed ? COH_TRANSPORT : status;
}

/* ---- rounds ---- */

static coh_status run_row(struct side *side, int index, uint64_t round)
{
    double ours = 0, theirs = 0;
    coh_status status = run_cohort(side, &rows[index], &ours);
    if (status == COH_OK)
        status = run_limit(side, &rows[index], &theirs);
    if (round == 0) /* what is touched for the first time takes longer */
        return status;
    side->cohort[index][round - 1] = ours;
    side->limit[index][round - 1] = theirs;
    side->fraction[index][round - 1] = theirs / ours;
    return status;
}

/* One row after the other, as the other libraries' programs have them: 64 MiB of another row would leave nothing in the
 * caches of what a short message needs. */
static coh_status run_rounds(struct side *side, uint64_t rounds)
{
    coh_status status = COH_OK;
    for (int i = 0; i < ROWS && status == COH_OK; i++)
        for (uint64_t round = 0; round <= rounds && status == COH_OK; round++)
            if (rows[i].bytes <= side->most)
                status = run_row(side, i, round);
    return status;
}

static void print_results(struct side *side, const cohi_links_options *chosen)
{
    for (int i = 0; i < ROWS; i++) {
        cohi_bench_figure ours, theirs, fraction;
        if (rows[i].bytes > side->most)
            continue;
        cohi_bench_spread(side->cohort[i], chosen->rounds, &ours);
        cohi_bench_spread(side->limit[i], chosen->rounds, &theirs);
        cohi_bench_spread(side->fraction[i], chosen->rounds, &fraction);
        printf("{\"benchmark\": \"%s\", \"bytes\": %llu, \"sealed\": %s, \"median_ns\": %.1f, "
               "\"low_ns\": %.1f, \"high_ns\": %.1f, \"limit_ns\": %.1f, \"fraction\": %.4f, "
               "\"least_ns\": %.1f, \"limit_least_ns\": %.1f}\n",
               rows[i].name, (unsigned long long)rows[i].bytes, chosen->sealed ? "true" : "false",
               ours.median, ours.low, ours.high, theirs.median, fraction.median, side->cohort[i][0],
               side->limit[i][0]); /* they are sorted by now */
    }
    fflush(stdout);
}

/* ---- a rank ---- */

static coh_status meet(struct side *side, int sealed)
{
    uint16_t port = 0;
    int listener = -1, failed = side->leads ? cohi_limit_link_listen(&listener, &port) : 0;
    coh_team *team = coh_team_world(side->world);
    coh_status status = failed ? COH_TRANSPORT
                        : side->leads
                            ? coh_send(team, side->other, TAG, &port, sizeof port)
                            : coh_receive(team, side->other, TAG, &port, sizeof port, NULL);
    if (status == COH_OK && cohi_limit_link_open(&side->link, side->leads, listener, port, sealed))
        status = COH_TRANSPORT;
    if (listener >= 0)
        close(listener);
    return status;
}

static coh_status make_memory(struct side *side)
{
    coh_status status = coh_malloc(side->world, side->most, (void **)&side->shared);
    if (status == COH_OK)
        status = coh_malloc(side->world, side->most, (void **)&side->other_shared);
    side->private = malloc(side->most);
    if (status == COH_OK && !side->private)
        status = COH_NO_MEMORY;
    if (status != COH_OK)
        return status;
    memset(side->shared, COHI_BENCH_BYTE, side->most);
    memset(side->other_shared, COHI_BENCH_BYTE, side->most);
    memset(side->private, COHI_BENCH_BYTE, side->most);
    return COH_OK;
}

static coh_status run_side(struct side *side, const cohi_links_options *chosen)
{
    coh_options how = COH_OPTIONS_INIT;
    const char *rank = getenv("COHORT_RANK");
    how.engine = "tcp";
    if (!chosen->crowded)
        cohi_bench_move_to_core(rank ? atoi(rank) : 0); /* the engine's thread goes along */
    coh_status status = coh_init(&how, &side->world);
    if (status != COH_OK)
        return status;
    side->rank = coh_rank(side->world);
    side->size = coh_size(side->world);
    side->leads = side->rank < side->size / 2;
    side->other = (side->rank + side->size / 2) % side->size;
    side->most = cohi_links_most_bytes(chosen->ranks);
    status = make_memory(side);
    if (status == COH_OK)
        status = meet(side, chosen->sealed);
    side->link.yields = chosen->crowded;
    if (status == COH_OK)
        status = run_rounds(side, chosen->rounds);
    if (status == COH_OK && side->rank == 0)
        print_results(side, chosen);
    cohi_limit_link_close(&side->link);
    free(side->private);
    coh_status left = coh_finalize(side->world);
    return status == COH_OK ? left : status;
}

int cohi_links_worker(const cohi_links_options *options)
{
    static struct side side = {.link = {.fd = -1}};
    coh_status status = cohi_tls_available();
    if (status == COH_OK)
        status = run_side(&side, options);
    if (status == COH_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "cohort bench links: %s: %s\n", coh_status_name(status), coh_last_error());
    return EXIT_FAILURE;
}
