/*
 * bench/floor.h - the floors that `cohort bench --check` holds rows to.
 *
 * A row must reach half of the limit from 64 KiB on, and three tenths below, where the cost of a
 * call shows; what has no size counts as below. And it must not be slower than the faster peer. Its
 * ratio is the median over the turns, and may be above 1 by what the turns differ by: the distance
 * to the lower quartile, but no more than a tenth.
 */
#ifndef COHI_TOOLS_BENCH_FLOOR_H
#define COHI_TOOLS_BENCH_FLOOR_H

#include <stddef.h>
#include <stdint.h>

enum { COHI_FLOOR_LONG_BYTES = 64 << 10 };

#define COHI_FLOOR_LONG   0.5
#define COHI_FLOOR_SHORT  0.3
#define COHI_FLOOR_SPREAD 0.1

/* What a floor needs to know of a row. */
typedef struct cohi_floor_row {
    uint64_t bytes;   /* 0 where it has no size */
    double fraction;  /* of the limit that Cohort reaches */
    double ratio;     /* Cohort's time / the faster peer's; 0: no peer has it */
    double ratio_low; /* the lower quartile of it over the turns */
} cohi_floor_row;

/* Bits: which floors a row is below. */
enum { COHI_FLOOR_BELOW_LIMIT = 1, COHI_FLOOR_SLOWER = 2 };

typedef struct cohi_floor_failure {
    size_t row; /* its index */
    unsigned why;
} cohi_floor_failure;

/* The fraction that so many bytes must reach. */
double cohi_floor_of(uint64_t bytes);

/* 0 for a row that holds. */
unsigned cohi_floor_judge(const cohi_floor_row *row);

/* Those that do not hold, in order, into `failures`, which has room for `count`; how many. */
size_t cohi_floor_failures(const cohi_floor_row *rows, size_t count, cohi_floor_failure *failures);

#endif
