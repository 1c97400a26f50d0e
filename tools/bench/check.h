/*
 * bench/check.h - `cohort bench --check`: a short set of everything, held to floors.
 *
 *   bench/check.c          measures the set, and once more what is below a floor
 *   bench/check_report.c   the verdict, for programs and for people
 *   bench/floor.c          the floors
 */
#ifndef COHI_TOOLS_BENCH_CHECK_H
#define COHI_TOOLS_BENCH_CHECK_H

#include "bench/bench.h"
#include "bench/floor.h"

/* Measures what the options choose. A row that is below a floor is measured again once, alone; its
 * second figures then stand in its place, and what it first had in "first". The exit status of the
 * jobs, whatever the rows are. */
int cohi_bench_check(const cohi_bench_options *options, const cohi_bench_findings *found);

/* What a floor needs to know of a result; the peer that is the faster one in *peer, NULL without
 * any. */
cohi_floor_row cohi_bench_floor_row(const json_t *result, const char **peer);

/* The results that are below a floor; free(failures). NULL without memory. */
cohi_floor_failure *cohi_bench_check_failures(const json_t *results, size_t *count);

/* Adds "check" to a report: how many rows were checked and measured again, whether there are any
 * and all hold, and those that do not. 0, or -1 without memory. */
int cohi_bench_check_verdict(json_t *report);

/* Prints a report that has a verdict. 0, or -1 when it could not. */
int cohi_bench_check_print(const json_t *report);

#endif
