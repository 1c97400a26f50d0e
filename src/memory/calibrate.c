#include "memory/calibrate.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "memory/calibrate_line.h"
#include "memory/copy_forms.h"
#include "memory/host_copy.h"
#include "memory/reduce.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Streamed stores and flushes are what there is to choose; other CPUs, and the sanitizers, which do
 * not see them, keep to what is described. */
#if defined(__x86_64__) && !defined(COHI_TSAN) && !defined(COHI_ASAN)
#define MEASURES 1
#else
#define MEASURES 0
#endif

enum { LINE_BYTES = 64, MOST_CANDIDATES = 16 };

/* How far two starts may differ. */
#define ALLOWANCE 1.15
/* By how much more the described choice may cost than the best and be kept. Chance moves a copy by
 * a tenth: once `rep movsb` won at 4 MiB by that, where streaming is faster by a fifth. */
#define HARDLY_MORE 1.05

/* libcohort does without libm. */
static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/* ---- samples ---- */

/*
 * Of thresholds the largest that costs hardly more. A calibration runs on one core; ranks share what
 * memory can take, and have caches of their own, so that storing past them is dearer than it seems:
 * sums of 4 MiB on Zen 4 cost the same either way alone, and 149 us against 75 with two ranks.
 */
static int best_of(const cohi_sample *sample)
{
    int best = 0;
    for (int i = 1; i < sample->count; i++)
        if (sample->threshold ? sample->cost[i] <= ALLOWANCE : sample->cost[i] < sample->cost[best])
            best = i;
    return best;
}

/* The candidate that behaves as `value` does; -1: none. */
static int find_value(const cohi_sample *sample, double value)
{
    for (int i = 0; i < sample->count; i++)
        if (sample->threshold ? sample->value[i] >= value : sample->value[i] == value)
            return i;
    return sample->threshold ? sample->count - 1 : -1;
}

double cohi_sample_best(const cohi_sample *sample, double described)
{
    int stands_for_it = sample->count > 1 ? find_value(sample, described) : -1;
    if (stands_for_it >= 0
        && sample->cost[stands_for_it] <= (sample->threshold ? ALLOWANCE : HARDLY_MORE))
        return described;
    return sample->value[best_of(sample)];
}

bool cohi_sample_prefers(const cohi_sample *sample, double described, double earlier)
{
    int of_described = find_value(sample, described), of_earlier = find_value(sample, earlier);
    return sample->count > 1 && of_described >= 0 && of_earlier >= 0
           && sample->cost[of_described] < sample->cost[of_earlier];
}

bool cohi_sample_confirms(const cohi_sample *sample, double earlier)
{
    if (sample->count == 1)
        return earlier <= sample->value[0] * ALLOWANCE && sample->value[0] <= earlier * ALLOWANCE;
    int stands_for_it = find_value(sample, earlier);
    return stands_for_it >= 0 && sample->cost[stands_for_it] <= ALLOWANCE;
}

/* ---- memory ---- */

cohi_calibration cohi_calibration_open(int rounds, bool thorough, uint64_t deadline_ns)
{
    return (cohi_calibration){.rounds = rounds, .thorough = thorough, .deadline_ns = deadline_ns};
}

void cohi_calibration_close(cohi_calibration *calibration)
{
    if (calibration->memory)
        munmap(calibration->memory, calibration->bytes);
    calibration->memory = NULL;
    calibration->bytes = 0;
}

/* At least `bytes`, written to, and not with zeros: Zen 4 streams those at twice the speed of data
 * (55 GB/s against 28). As floats the bytes are 0.747. */
static char *need(cohi_calibration *calibration, size_t bytes)
{
    if (calibration->bytes >= bytes)
        return calibration->memory;
    cohi_calibration_close(calibration);
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    calibration->memory = memset(memory, 0x3f, bytes);
    calibration->bytes = bytes;
    return memory;
}

/* Takes memory out of all caches. */
static void flush(const char *memory, size_t bytes)
{
#if MEASURES
    for (size_t at = 0; at < bytes; at += LINE_BYTES)
        __builtin_ia32_clflush(memory + at);
    __builtin_ia32_mfence();
#else
    (void)memory, (void)bytes;
#endif
}

/* ---- timing ---- */

static long interruptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* One piece of work in one of several ways. */
struct work {
    void (*run)(const struct work *work, double way);
    char *source, *target;
    size_t bytes;
    bool far; /* both are taken out of the caches before */
};

/* Nanoseconds of one run; DBL_MAX if somebody else took the core on the way. */
static double time_once(const struct work *work, double way)
{
    if (work->far) {
        flush(work->source, work->bytes);
        flush(work->target, work->bytes);
    } else {
        work->run(work, way); /* leaves the caches as this way leaves them */
    }
    long before = interruptions();
    uint64_t start = cohi_now_ns();
    work->run(work, way);
    double passed = (double)(cohi_now_ns() - start);
    return interruptions() == before ? passed : DBL_MAX;
}

/* Short work is done more often: it costs little, and an interruption that the kernel does not tell
 * of (by the host of a virtual machine, say) is a larger part of it. */
static int rounds_for(const cohi_calibration *calibration, size_t bytes)
{
    enum { LONG = 4 << 20, MOST = 5 };
    size_t more = LONG / bytes;
    return calibration->rounds * (int)(more < 1 ? 1 : more > MOST ? MOST : more);
}

/* The least of some rounds, in which the ways take turns. */
static void time_ways(const cohi_calibration *calibration, const struct work *work,
                      const double *ways, int count, double *least)
{
    int rounds = rounds_for(calibration, work->bytes);
    for (int i = 0; i < count; i++)
        least[i] = DBL_MAX;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            if (cohi_now_ns() < calibration->deadline_ns)
                least[i] = lesser(least[i], time_once(work, ways[i]));
}

/* A way without a sample could have been the best: then nothing is known. */
static bool keep_costs(cohi_sample *sample, const double *ways, const double *times, int count)
{
    double best = DBL_MAX, worst = 0;
    for (int i = 0; i < count; i++) {
        best = lesser(best, times[i]);
        worst = greater(worst, times[i]);
    }
    sample->count = count;
    sample->threshold = false;
    for (int i = 0; i < count; i++) {
        sample->value[i] = ways[i];
        sample->cost[i] = times[i] / best;
    }
    return worst < DBL_MAX;
}

/* ---- copies ---- */

static void run_copy(const struct work *work, double form)
{
    cohi_copy_by((cohi_copy_form)form, work->target, work->source, work->bytes);
}

static size_t copied_bytes(cohi_row row)
{
    if (row == COHI_ROW_copy_far)
        return 1 << 19;
    return row == COHI_ROW_copy_64M ? (size_t)64 << 20
                                    : (size_t)1 << (COHI_COPY_LEAST_LOG + row - COHI_ROW_copy_256K);
}

/* Whether a form is left to `cohort tune` where copies are long: the widths hardly differ there,
 * and two pages side by side were the fastest on no CPU. */
static bool is_spared(unsigned form)
{
    bool wide = cohi_copy_form_streamed() >= COHI_COPY_STREAM_512;
    bool is_512 = form >= COHI_COPY_STREAM_512 || form == COHI_COPY_PLAIN_512;
    bool is_256 = !is_512 && form >= COHI_COPY_PLAIN_256;
    return (wide ? is_256 : is_512) || form == COHI_COPY_STREAM_256_2
           || form == COHI_COPY_STREAM_512_2;
}

/* The forms to compare. */
static int list_forms(const cohi_calibration *calibration, size_t bytes, double *forms)
{
    enum { LONG = 8 << 20 };
    bool spare = bytes >= LONG && !calibration->thorough;
    int count = 0;
    for (unsigned form = 0; form < COHI_COPY_FORMS; form++)
        if (cohi_copy_form_available(form) && !(spare && is_spared(form)))
            forms[count++] = form;
    return count;
}

static bool measure_form(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    size_t bytes = copied_bytes(row);
    double forms[MOST_CANDIDATES], times[MOST_CANDIDATES];
    char *memory = need(calibration, 2 * bytes);
    if (!memory)
        return false;
    struct work work = {run_copy, memory, memory + bytes, bytes, row == COHI_ROW_copy_far};
    int count = list_forms(calibration, bytes, forms);
    time_ways(calibration, &work, forms, count, times);
    return keep_costs(sample, forms, times, count);
}

_Static_assert(MOST_CANDIDATES >= (int)COHI_COPY_FORMS, "all can be compared");

/* ---- reductions and conversions: from which size on to store past the caches ---- */

/* Half of the memory is two sources, half two targets: what one of two ranks works on. */
static void run_reduce(const struct work *work, double stream)
{
    size_t half = work->bytes / 2;
    const void *sources[] = {work->source, work->source + half};
    void *targets[] = {work->target, work->target + half};
    cohi_reduction how = {.dtype = COH_F32, .op = COH_SUM, .ranks = 2, .stream = stream != 0};
    cohi_reduce(&how, targets, 2, sources, 2, half / sizeof(float));
}

static void run_reduce_one(const struct work *work, double stream)
{
    size_t half = work->bytes / 2;
    const void *sources[] = {work->source, work->source + half};
    void *target = work->target;
    cohi_reduction how = {.dtype = COH_F32, .op = COH_SUM, .ranks = 2, .stream = stream != 0};
    cohi_reduce(&how, &target, 1, sources, 2, half / sizeof(float));
}

/* There and back: stores are half of what is loaded one way, and twice that the other. */
static void run_convert(const struct work *work, double pages)
{
    const void *sources[] = {work->source, work->target};
    void *targets[] = {work->target, work->source};
    cohi_kernel *const kernels[] = {cohi_kernels_now()->from_f32[COH_BF16],
                                    cohi_kernels_now()->to_f32[COH_BF16]};
    for (int i = 0; i < 2; i++) {
        cohi_kernel_job job = {.targets = &targets[i],
                               .sources = &sources[i],
                               .target_count = 1,
                               .source_count = 1,
                               .stream = pages != 0,
                               .pages = (int)pages,
                               .count = work->bytes / sizeof(float)};
        kernels[i](&job);
    }
}

enum { SIZES = 6, LEAST_SIZE = 512 << 10, THRESHOLDS = SIZES + 1 };

static size_t size_at(int index)
{
    return (size_t)LEAST_SIZE << index;
}

/*
 * The candidates are "from this size on", for each size, and "never within what was tried", which
 * stands for the next size. A candidate costs what it costs where it is worst.
 */
static bool measure_threshold(cohi_calibration *calibration, cohi_sample *sample,
                              void (*run)(const struct work *work, double way), double streamed)
{
    const double ways[] = {0, streamed};
    double times[SIZES][2];
    char *memory = need(calibration, 2 * size_at(SIZES - 1));
    if (!memory)
        return false;
    for (int i = 0; i < SIZES; i++) {
        struct work work = {run, memory, memory + size_at(i), size_at(i), false};
        time_ways(calibration, &work, ways, 2, times[i]);
        if (times[i][0] == DBL_MAX || times[i][1] == DBL_MAX)
            return false;
    }
    sample->count = THRESHOLDS;
    sample->threshold = true;
    for (int from = 0; from < THRESHOLDS; from++) {
        sample->value[from] = (double)size_at(from);
        sample->cost[from] = 1;
        for (int i = 0; i < SIZES; i++)
            sample->cost[from] =
                greater(sample->cost[from], times[i][i >= from] / lesser(times[i][0], times[i][1]));
    }
    return true;
}

static bool measure_pages(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    enum { BYTES = 8 << 20 };
    const double ways[] = {1, 4};
    double times[2];
    (void)row;
    char *memory = need(calibration, 2 * BYTES);
    if (!memory)
        return false;
    struct work work = {run_convert, memory, memory + BYTES, BYTES, false};
    time_ways(calibration, &work, ways, 2, times);
    return keep_costs(sample, ways, times, 2);
}

/* ---- quantities ---- */

static bool keep_quantity(cohi_row row, cohi_sample *sample, double value)
{
    sample->count = 1;
    sample->threshold = false;
    sample->value[0] = value;
    sample->cost[0] = 1;
    return cohi_row_could_be(row, value);
}

/* Nanoseconds for a byte in the best of the ways. */
static bool measure_rate(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    enum { CACHED_BYTES = 256 << 10, FAR_BYTES = 1 << 20 };
    bool reduces = row == COHI_ROW_reduce || row == COHI_ROW_reduce_stream;
    bool far = row == COHI_ROW_stream || row == COHI_ROW_reduce_stream;
    size_t bytes = far ? FAR_BYTES : CACHED_BYTES;
    const double copies[] = {COHI_COPY_LIBC, cohi_copy_form_streamed()}, reductions[] = {0, 1};
    double times[2];
    char *memory = need(calibration, 2 * bytes);
    if (!memory)
        return false;
    struct work work = {reduces ? run_reduce_one : run_copy, memory, memory + bytes, bytes, far};
    time_ways(calibration, &work, reduces ? reductions : copies, 2, times);
    double least = lesser(times[0], times[1]);
    return least < DBL_MAX && keep_quantity(row, sample, least / (double)bytes);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/*
 * Midway from the usual time of lines in the third-level cache to the least of lines in memory,
 * which varies more. Zen 4: 60 ns (60 to 80, also when another core wrote them) and 230 (180 to
 * 400); Sapphire Rapids 135 (112 to 176) and 280 (180 to 430).
 */
static bool measure_far(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    enum { LOOKS = 15 };
    const cohi_host_facts *host = cohi_host();
    size_t bytes = (size_t)lesser((double)host->level3 / 2, 4 * (double)host->level2);
    char *memory = need(calibration, bytes);
    double near[LOOKS], far = DBL_MAX;
    volatile char sink;
    if (!memory || bytes < 16 * LINE_BYTES * LINE_BYTES)
        return false;
    for (int i = 0; i < LOOKS; i++) {
        for (size_t at = 0; at < bytes; at += LINE_BYTES)
            sink = memory[at];
        near[i] = (double)cohi_host_look_ns(memory, bytes / 16);
        flush(memory, bytes / 16);
        far = lesser(far, (double)cohi_host_look_ns(memory, bytes / 16));
    }
    (void)sink;
    qsort(near, LOOKS, sizeof *near, compare);
    return far > near[LOOKS / 2] * ALLOWANCE
           && keep_quantity(row, sample, (near[LOOKS / 2] + far) / 2);
}

/* ---- which is measured how ---- */

static bool measure_reduce_from(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    return measure_threshold(calibration, sample,
                             row == COHI_ROW_reduce_stream_from ? run_reduce : run_reduce_one, 1);
}

static bool measure_convert_from(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    (void)row;
    return measure_threshold(calibration, sample, run_convert,
                             cohi_profile_now(COHI_ROW_convert_pages));
}

static bool measure_line(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    double line = cohi_calibrate_line(calibration->deadline_ns);
    return line > 0 && keep_quantity(row, sample, line);
}

/* Microseconds that one round takes on the slowest of the hosts seen, its memory included. */
static const struct method {
    bool (*measure)(cohi_calibration *calibration, cohi_row row, cohi_sample *sample);
    unsigned cost_us;
} methods[COHI_ROWS] = {
    [COHI_ROW_copy_256K] = {measure_form, 1000},
    [COHI_ROW_copy_512K] = {measure_form, 2000},
    [COHI_ROW_copy_1M] = {measure_form, 3000},
    [COHI_ROW_copy_2M] = {measure_form, 6000},
    [COHI_ROW_copy_4M] = {measure_form, 12000},
    [COHI_ROW_copy_8M] = {measure_form, 15000},
    [COHI_ROW_copy_16M] = {measure_form, 25000},
    [COHI_ROW_copy_64M] = {measure_form, 300000},
    [COHI_ROW_copy_far] = {measure_form, 8000},
    [COHI_ROW_far_ns] = {measure_far, 5000},
    [COHI_ROW_reduce_stream_from] = {measure_reduce_from, 25000},
    [COHI_ROW_reduce_one_stream_from] = {measure_reduce_from, 20000},
    [COHI_ROW_convert_stream_from] = {measure_convert_from, 20000},
    [COHI_ROW_convert_pages] = {measure_pages, 10000},
    [COHI_ROW_line] = {measure_line, 1000},
    [COHI_ROW_copy] = {measure_rate, 500},
    [COHI_ROW_stream] = {measure_rate, 3000},
    [COHI_ROW_reduce] = {measure_rate, 500},
    [COHI_ROW_reduce_stream] = {measure_rate, 3000},
};

uint64_t cohi_calibrate_cost_ns(cohi_row row)
{
    return MEASURES ? methods[row].cost_us * COHI_NS_PER_US : 0;
}

bool cohi_calibrate(cohi_calibration *calibration, cohi_row row, cohi_sample *sample)
{
    return MEASURES && methods[row].measure && methods[row].measure(calibration, row, sample);
}
