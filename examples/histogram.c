/*
 * histogram.c - a distributed sort by histogram.
 *
 * Each rank has numbers of its own. The ranks count together how many there are of each range
 * (coh_all_reduce), cut the ranges so that each rank gets about as many, send every number to the
 * rank that keeps its range (coh_all_to_all_v), and sort what they got. At the end the numbers must
 * be in order within and between ranks, and none lost or made up.
 */
#include <cohort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 5000, RANGES = 256, RANKS = 64 };

static void check(coh_status status)
{
    if (status == COH_OK)
        return;
    fprintf(stderr, "histogram: %s\n", coh_last_error());
    exit(1);
}

/* More small ones than large ones, so that equal ranges would not be equal work. */
static void make_numbers(int rank, uint32_t *numbers)
{
    uint64_t state = 88172645463325252u + (uint64_t)rank * 7919;
    for (int i = 0; i < NUMBERS; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        uint64_t share = state >> 32;
        numbers[i] = (uint32_t)(share * share >> 32);
    }
}

static int range_of(uint32_t number)
{
    return (int)(number >> 24);
}

/* ---- who keeps which range ---- */

/* keeper[range] is the rank: it changes where the ranks before have got their share. */
static void cut(const uint64_t *histogram, int ranks, int *keeper)
{
    uint64_t total = (uint64_t)NUMBERS * (uint64_t)ranks, before = 0;
    for (int range = 0; range < RANGES; range++) {
        keeper[range] = (int)(before * (uint64_t)ranks / total);
        before += histogram[range];
    }
}

static void count_ranges(coh_team *team, const uint32_t *numbers, uint64_t *histogram)
{
    memset(histogram, 0, sizeof *histogram * RANGES);
    for (int i = 0; i < NUMBERS; i++)
        histogram[range_of(numbers[i])]++;
    check(coh_all_reduce(team, COH_U64, COH_SUM, histogram, histogram, RANGES));
}

/* ---- sending ---- */

/* In the order of their keepers; counts[rank] is how many go to it. */
static void sort_by_keeper(const uint32_t *numbers, const int *keeper, int ranks, uint32_t *sorted,
                           size_t *counts)
{
    size_t at = 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t first = at;
        for (int i = 0; i < NUMBERS; i++) {
            if (keeper[range_of(numbers[i])] == rank)
                sorted[at++] = numbers[i];
        }
        counts[rank] = at - first;
    }
}

/* What each rank will send here is told first, so that there is room for it. */
static uint32_t *exchange(coh_team *team, const uint32_t *sorted, const size_t *counts,
                          size_t *total)
{
    size_t expected[RANKS];
    check(coh_all_to_all(team, COH_U64, counts, expected, 1));
    *total = 0;
    for (int i = 0; i < coh_team_size(team); i++)
        *total += expected[i];
    uint32_t *got = malloc(sizeof *got * (*total + 1));
    if (!got)
        exit(1);
    coh_parts from = {counts, NULL}, to = {expected, NULL};
    check(coh_all_to_all_v(team, COH_U32, sorted, &from, got, &to));
    return got;
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* ---- checking ---- */

/* Everybody's smallest and largest, how many and their sum: in order, and none lost. */
static int is_wrong(coh_team *team, const uint32_t *numbers, const uint32_t *got, size_t total)
{
    enum { LEAST, MOST, FACTS };
    uint64_t facts[FACTS] = {total ? got[0] : UINT64_MAX, total ? got[total - 1] : 0};
    uint64_t all[RANKS * FACTS], sums[3] = {total, 0, 0}, last = 0;
    for (int i = 0; i < NUMBERS; i++)
        sums[1] += numbers[i];
    for (size_t i = 0; i < total; i++)
        sums[2] += got[i];
    check(coh_all_reduce(team, COH_U64, COH_SUM, sums, sums, 3));
    check(coh_all_gather(team, COH_U64, facts, all, FACTS));
    for (int rank = 0; rank < coh_team_size(team); rank++) {
        const uint64_t *of = &all[rank * FACTS];
        if (of[LEAST] == UINT64_MAX)
            continue;
        if (of[LEAST] < last)
            return 1;
        last = of[MOST];
    }
    return sums[0] != (uint64_t)NUMBERS * (uint64_t)coh_team_size(team) || sums[1] != sums[2];
}

int main(void)
{
    static uint32_t numbers[NUMBERS], sorted[NUMBERS];
    uint64_t histogram[RANGES];
    size_t counts[RANKS], total;
    int keeper[RANGES];
    coh_world *world;
    check(coh_init(NULL, &world));
    coh_team *team = coh_team_world(world);
    int rank = coh_rank(world), size = coh_size(world);
    if (size > RANKS) {
        fprintf(stderr, "histogram: at most %d ranks, not %d\n", RANKS, size);
        return 1;
    }
    make_numbers(rank, numbers);
    count_ranges(team, numbers, histogram);
    cut(histogram, size, keeper);
    sort_by_keeper(numbers, keeper, size, sorted, counts);
    uint32_t *got = exchange(team, sorted, counts, &total);
    qsort(got, total, sizeof *got, compare);
    int wrong = is_wrong(team, numbers, got, total);
    printf("rank %d keeps %zu of %d numbers%s\n", rank, total, NUMBERS * size,
           wrong ? ", and they are WRONG" : "");
    free(got);
    check(coh_finalize(world));
    return wrong;
}
