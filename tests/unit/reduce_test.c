/* reduce_test.c - every type and operation, in every instruction set of the CPU, against a scalar
 * reference: counts, alignments, sources, targets, in place; nothing else is written. Reductions,
 * and scans. */
#include "kernel_reference.h"

#include "memory/reduce.h"

enum {
    MOST_COUNT = 1000,
    MOST_SOURCES = 8,
    MOST_TARGETS = 3,
    SHIFTS = 3,  /* elements by which an array may be off */
    GUARD = 128, /* bytes on each side of a target */
    ARRAY_BYTES = MOST_COUNT * 8 + 2 * GUARD + 64 * 8,
    RANKS_OF_MEAN = 3,
};

#ifndef KERNELS_WITHOUT_CMOCKA
static const size_t counts[] = {0, 1, 7, 15, 16, 17, 63, 64, 65, 300, MOST_COUNT};
static const int source_counts[] = {1, 2, 3, 5, 8};
#else /* an emulator takes a minute for all of them */
static const size_t counts[] = {1, 17, 64, 300, MOST_COUNT};
static const int source_counts[] = {1, 3};
#endif

enum {
    COUNTS = sizeof counts / sizeof *counts,
    SOURCE_COUNTS = sizeof source_counts / sizeof *source_counts
};

/* ---- the reference ---- */

static uint64_t integer_step(coh_dtype dtype, coh_reduce_op op, uint64_t first, uint64_t second)
{
    int64_t a = extend(dtype, first), b = extend(dtype, second);
    bool less = is_signed(dtype) ? a < b : (uint64_t)a < (uint64_t)b;
    switch (op) {
    case COH_SUM:
    case COH_MEAN:
        return first + second;
    case COH_PRODUCT:
        return first * second;
    case COH_MIN:
        return less ? first : second;
    case COH_MAX:
        return less ? second : first;
    case COH_AND:
        return first & second;
    case COH_OR:
        return first | second;
    case COH_XOR:
        return first ^ second;
    }
    return 0;
}

static uint64_t bool_step(coh_reduce_op op, uint64_t a, uint64_t b)
{
    if (op == COH_XOR)
        return a != b;
    return op == COH_PRODUCT || op == COH_MIN || op == COH_AND ? a && b : a || b;
}

static double ordered(double a, double b, bool want_less)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return (signbit(a) != 0) == want_less ? a : b;
    return (a < b) == want_less ? a : b;
}

/* f32 operations are those of double, rounded: a double holds more than twice the digits. */
static double float_step(coh_reduce_op op, double a, double b)
{
    switch (op) {
    case COH_PRODUCT:
        return a * b;
    case COH_MIN:
        return ordered(a, b, true);
    case COH_MAX:
        return ordered(a, b, false);
    default:
        return a + b;
    }
}

static double in_lane(coh_dtype dtype, double number)
{
    return dtype == COH_F64 ? number : as_double(COH_F32, from_double(COH_F32, number));
}

static uint64_t expect_float(coh_dtype dtype, coh_reduce_op op, const uint64_t *elements, int count)
{
    double result = as_double(dtype, elements[0]);
    for (int s = 1; s < count; s++)
        result = in_lane(dtype, float_step(op, result, as_double(dtype, elements[s])));
    if (op == COH_MEAN)
        result = in_lane(dtype, result / RANKS_OF_MEAN);
    return from_double(dtype, result);
}

static uint64_t expect_integer(coh_dtype dtype, coh_reduce_op op, const uint64_t *elements,
                               int count)
{
    uint64_t result = elements[0];
    for (int s = 1; s < count; s++)
        result = integer_step(dtype, op, result, elements[s]);
    if (op != COH_MEAN)
        return result;
    int64_t sum = extend(dtype, result);
    return is_signed(dtype) ? (uint64_t)(sum / RANKS_OF_MEAN) : (uint64_t)sum / RANKS_OF_MEAN;
}

static uint64_t expect_element(coh_dtype dtype, coh_reduce_op op, const uint64_t *elements,
                               int count)
{
    if (is_integer(dtype))
        return expect_integer(dtype, op, elements, count);
    if (dtype != COH_BOOL)
        return expect_float(dtype, op, elements, count);
    uint64_t result = elements[0] != 0;
    for (int s = 1; s < count; s++)
        result = bool_step(op, result, elements[s] != 0);
    return result;
}

/* ---- arrays ---- */

static uint64_t values[MOST_SOURCES][MOST_COUNT];
static uint64_t expected[MOST_SOURCES][MOST_COUNT]; /* of the sources up to each */
static _Alignas(64) char source_room[MOST_SOURCES][ARRAY_BYTES];
static _Alignas(64) char target_room[MOST_SOURCES][ARRAY_BYTES];

static const double special_numbers[] = {
    0.0,      -0.0,  NAN,     INFINITY,  -INFINITY, 1.0,    -1.0,   3.0,     0x1p-149, -0x1p-149,
    0x1p-126, 65504, 65520,   -65519,    448,       464,    0x1p-9, 0x1p-10, 0x1p-24,  0x1p-25,
    57344,    61440, 0x1p127, 0x1.fp127, 1e-40,     -1e-40, 0.1,    1 / 3.0, 0x1p-16,  0x1p-17,
};
static const uint64_t special_words[] = {
    0, 1, UINT64_MAX, 0x80, 0x7f, 0x8000, 0x7fff, 0x80000000, 0x7fffffff, 1ull << 63, INT64_MAX, 2,
};

/* Half of them special, half any bits at all. */
static uint64_t pick(coh_dtype dtype)
{
    uint64_t mask = UINT64_MAX >> (64 - 8 * coh_dtype_size(dtype)), random = random_bits();
    if (random & 1)
        return random >> 8 & mask;
    random >>= 32;
    if (is_integer(dtype) || dtype == COH_BOOL)
        return special_words[random % (sizeof special_words / sizeof *special_words)] & mask;
    double number = special_numbers[random % (sizeof special_numbers / sizeof *special_numbers)];
    return from_double(dtype, number);
}

static void pick_values(coh_dtype dtype)
{
    for (int s = 0; s < MOST_SOURCES; s++) {
        for (size_t i = 0; i < MOST_COUNT; i++)
            values[s][i] = pick(dtype);
    }
}

static void expect_all(coh_dtype dtype, coh_reduce_op op)
{
    for (size_t i = 0; i < MOST_COUNT; i++) {
        uint64_t elements[MOST_SOURCES];
        for (int s = 0; s < MOST_SOURCES; s++) {
            elements[s] = values[s][i];
            expected[s][i] = expect_element(dtype, op, elements, s + 1);
        }
    }
}

/* ---- one run ---- */

struct run {
    const cohi_kernels *kernels;
    cohi_reduction how;
    int source_count;
    int target_count;
    size_t count;
    size_t shift;    /* source s is off by shift * s elements, target t by shift * (t + 1) */
    bool same_shift; /* all targets are off by as much, as streaming wants it */
    bool in_place;   /* the last target is the last source */
};

static void complain(const struct run *run, const char *what, size_t index)
{
    fail_msg("%s: %s of %s, %d sources, %d targets, %zu elements, shift %zu%s%s: %s at %zu",
             run->kernels->name, op_name(run->how.op), coh_dtype_name(run->how.dtype),
             run->source_count, run->target_count, run->count, run->shift,
             run->how.stream ? ", streamed" : "", run->in_place ? ", in place" : "", what, index);
}

static char *source_at(const struct run *run, int s)
{
    return source_room[s] + GUARD + run->shift * (size_t)s * coh_dtype_size(run->how.dtype);
}

static char *target_at(const struct run *run, int t)
{
    size_t off = run->same_shift ? run->shift : run->shift * (size_t)(t + 1);
    if (run->in_place && t == run->target_count - 1)
        return source_at(run, run->source_count - 1);
    return target_room[t] + GUARD + off * coh_dtype_size(run->how.dtype);
}

static void lay_sources(const struct run *run)
{
    coh_dtype dtype = run->how.dtype;
    for (int s = 0; s < run->source_count; s++) {
        memset(source_room[s], 0x5a, ARRAY_BYTES);
        for (size_t i = 0; i < run->count; i++)
            set_element(source_at(run, s), dtype, i, values[s][i]);
    }
}

static void check_guards(const struct run *run, const char *target)
{
    const char *end = target + run->count * coh_dtype_size(run->how.dtype);
    for (size_t i = 0; i < GUARD; i++) {
        if (target[-1 - (ptrdiff_t)i] != 0x5a)
            complain(run, "written before the target", i);
        if (end[i] != 0x5a)
            complain(run, "written after the target", i);
    }
}

/* `target` is to hold the result of so many sources. */
static void check_target(const struct run *run, const void *target, int source_count)
{
    const uint64_t *results = expected[source_count - 1];
    coh_dtype dtype = run->how.dtype;
    uint64_t mask = UINT64_MAX >> (64 - 8 * coh_dtype_size(dtype));
    for (size_t i = 0; i < run->count; i++) {
        if (!same_element(dtype, element_bits(target, dtype, i), results[i] & mask))
            complain(run, "wrong result", i);
    }
    check_guards(run, target);
}

static void check_run(const struct run *run)
{
    void *targets[MOST_TARGETS];
    const void *sources[MOST_SOURCES];
    memset(target_room, 0x5a, sizeof *target_room * MOST_TARGETS);
    lay_sources(run);
    for (int s = 0; s < run->source_count; s++)
        sources[s] = source_at(run, s);
    for (int t = 0; t < run->target_count; t++)
        targets[t] = target_at(run, t);
    cohi_reduce_with(run->kernels, &run->how, targets, run->target_count, sources,
                     run->source_count, run->count);
    for (int t = 0; t < run->target_count; t++)
        check_target(run, targets[t], run->source_count);
}

/* Two sources into one target and a copy in the same pass: fewer bytes than are reduced, as many, more. */
static void check_pair_and_copy(const struct run *run)
{
    static _Alignas(64) char from[ARRAY_BYTES], to[ARRAY_BYTES];
    size_t bytes = run->count * coh_dtype_size(run->how.dtype);
    const size_t lengths[SHIFTS] = {bytes / 2 + 1, bytes, bytes + 100};
    size_t length = lengths[run->shift];
    const void *sources[] = {source_at(run, 0), source_at(run, 1)};
    char *target = target_at(run, 0), *copy = to + GUARD + run->shift;
    for (size_t i = 0; i < ARRAY_BYTES; i++)
        from[i] = (char)(i * 7 + i / 256);
    memset(target_room[0], 0x5a, sizeof target_room[0]);
    memset(to, 0x5a, sizeof to);
    lay_sources(run);
    cohi_reduce_pair_and_copy_with(run->kernels, &run->how, target, sources, run->count,
                                   (cohi_kernel_copy){copy, from + GUARD, length});
    check_target(run, target, 2);
    if (memcmp(copy, from + GUARD, length) != 0)
        complain(run, "wrong copy in the same pass", length);
    if (copy[-1] != 0x5a || copy[length] != 0x5a)
        complain(run, "written around the copy", length);
}

/* Which memory the targets of a scan are. */
enum scan_place { APART, OWN_SOURCE, NEXT_SOURCE, SCAN_PLACES };

static void *scan_target(const struct run *run, enum scan_place place, int t)
{
    int source = place == NEXT_SOURCE ? t + 1 : t;
    if (place != APART && source < run->source_count)
        return source_at(run, source);
    return target_at(run, t);
}

static void check_scan(const struct run *run, enum scan_place place)
{
    void *targets[MOST_SOURCES];
    const void *sources[MOST_SOURCES];
    memset(target_room, 0x5a, sizeof *target_room * (size_t)run->source_count);
    lay_sources(run);
    for (int i = 0; i < run->source_count; i++) {
        sources[i] = source_at(run, i);
        targets[i] = scan_target(run, place, i);
    }
    cohi_scan_with(run->kernels, &run->how, targets, sources, run->source_count, run->count);
    for (int i = 0; i < run->source_count; i++)
        check_target(run, targets[i], i + 1);
}

/* ---- all of them ---- */

static void each_scan(struct run *run)
{
    run->target_count = run->source_count;
    for (size_t c = 0; c < COUNTS; c++) {
        run->count = counts[c];
        for (run->shift = 0; run->shift < SHIFTS; run->shift++) {
            for (int form = 0; form < 2 * SCAN_PLACES; form++) {
                run->how.stream = form & 1;
                run->same_shift = form & 1;
                check_scan(run, (enum scan_place)(form / 2));
            }
        }
    }
}

static void each_shape(struct run *run)
{
    for (size_t c = 0; c < COUNTS; c++) {
        run->count = counts[c];
        for (run->target_count = 1; run->target_count <= MOST_TARGETS; run->target_count++) {
            for (run->shift = 0; run->shift < SHIFTS; run->shift++) {
                for (int form = 0; form < 4; form++) {
                    run->how.stream = form & 1;
                    run->same_shift = form & 1;
                    run->in_place = form & 2;
                    check_run(run);
                    if (run->how.stream && run->source_count == 2 && run->target_count == 1)
                        check_pair_and_copy(run);
                }
            }
        }
    }
}

static void each_set(coh_dtype dtype, coh_reduce_op op, int source_count)
{
    for (int i = 0; cohi_kernels_at(i); i++) {
        struct run run = {
            .kernels = cohi_kernels_at(i),
            .how = {.dtype = dtype, .op = op, .ranks = RANKS_OF_MEAN},
            .source_count = source_count,
        };
        each_shape(&run);
        run.in_place = false;
        if (op != COH_MEAN)
            each_scan(&run);
    }
}

static void every_type_and_operation(void **state)
{
    (void)state;
    for (int dtype = COH_I8; dtype <= COH_BOOL; dtype++) {
        pick_values((coh_dtype)dtype);
        for (int op = COH_SUM; op <= COH_XOR; op++) {
            if (!cohi_reduce_has((coh_dtype)dtype, (coh_reduce_op)op))
                continue;
            expect_all((coh_dtype)dtype, (coh_reduce_op)op);
            for (int s = 0; s < SOURCE_COUNTS; s++)
                each_set((coh_dtype)dtype, (coh_reduce_op)op, source_counts[s]);
        }
    }
}

/* Which type has which operation, said a second time. */
static void types_have_their_operations(void **state)
{
    (void)state;
    for (int dtype = -1; dtype <= COH_BOOL + 2; dtype++) {
        for (int op = -1; op <= COH_XOR + 2; op++) {
            bool valid = coh_dtype_name((coh_dtype)dtype) && op >= 0 && op <= COH_XOR;
            bool bitwise = op >= COH_AND;
            bool has =
                valid
                && (dtype == COH_BOOL ? op != COH_MEAN : is_integer((coh_dtype)dtype) || !bitwise);
            if (cohi_reduce_has((coh_dtype)dtype, (coh_reduce_op)op) != has)
                fail_msg("type %d has operation %d, or not, wrongly", dtype, op);
            if (has && !cohi_kernels_now()->scan[dtype][op] != (op == COH_MEAN))
                fail_msg("type %d has a scan of operation %d, or not, wrongly", dtype, op);
        }
    }
}

/* ---- all pairs of f8, all values of f16 and bf16 with one another ---- */

enum { ALL = 65536 };

static void check_pairs(const cohi_kernels *kernels, coh_dtype dtype, coh_reduce_op op,
                        const void *first, const void *second, const uint64_t *results)
{
    static uint16_t target[ALL];
    void *targets[] = {target};
    const void *sources[] = {first, second};
    const cohi_reduction how = {.dtype = dtype, .op = op, .ranks = RANKS_OF_MEAN};
    cohi_reduce_with(kernels, &how, targets, 1, sources, 2, ALL);
    for (size_t i = 0; i < ALL; i++) {
        if (!same_element(dtype, element_bits(target, dtype, i), results[i]))
            fail_msg("%s: %s of %s: elements %llx and %llx give %llx", kernels->name, op_name(op),
                     coh_dtype_name(dtype), (unsigned long long)element_bits(first, dtype, i),
                     (unsigned long long)element_bits(second, dtype, i),
                     (unsigned long long)element_bits(target, dtype, i));
    }
}

static void pair_up(coh_dtype dtype, coh_reduce_op op)
{
    static uint16_t first[ALL], second[ALL];
    static uint64_t results[ALL];
    for (size_t i = 0; i < ALL; i++) {
        bool is_byte = coh_dtype_size(dtype) == 1;
        uint64_t pair[] = {is_byte ? i & 0xff : i, is_byte ? i >> 8 : random_bits() & 0xffff};
        set_element(first, dtype, i, pair[0]);
        set_element(second, dtype, i, pair[1]);
        results[i] = expect_element(dtype, op, pair, 2);
    }
    for (int i = 0; cohi_kernels_at(i); i++)
        check_pairs(cohi_kernels_at(i), dtype, op, first, second, results);
}

static void small_floats_all_values(void **state)
{
    (void)state;
    for (size_t f = 0; f < SMALL_FORMATS; f++) {
        for (int op = COH_SUM; op <= COH_MAX; op++)
            pair_up(formats[f].dtype, (coh_reduce_op)op);
    }
}

static void partials_are_wide(void **state)
{
    (void)state;
    for (int dtype = COH_I8; dtype <= COH_BOOL; dtype++) {
        const struct format *format = format_of((coh_dtype)dtype);
        coh_dtype partial = format ? COH_F32 : (coh_dtype)dtype;
        if (cohi_reduce_partial((coh_dtype)dtype) != partial)
            fail_msg("the partial type of %s is wrong", coh_dtype_name((coh_dtype)dtype));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_have_their_operations),
        cmocka_unit_test(every_type_and_operation),
        cmocka_unit_test(small_floats_all_values),
        cmocka_unit_test(partials_are_wide),
    };
    return cmocka_run_group_tests_name("reduce", tests, NULL, NULL);
}
