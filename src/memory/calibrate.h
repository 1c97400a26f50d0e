/*
 * calibrate.h - measures rows of the profile on this host, by the thread that calls.
 *
 * A measurement never fails a start: what could not be measured (an interrupted sample, a CPU
 * without the loops, no memory) is left as it is.
 */
#ifndef COHI_MEMORY_CALIBRATE_H
#define COHI_MEMORY_CALIBRATE_H

#include "memory/profile.h"

/* What one measurement of a row found: the values it could have, and what each costs, as a multiple
 * of the best. A row that is a quantity has one. */
typedef struct cohi_sample {
    int count;
    bool
        threshold; /* the values are sizes, ascending, of which the last is beyond all that was tried */
    double value[16];
    double cost[16]; /* 1 and more */
} cohi_sample;

/* The value that costs least, of one at least; where there is a choice, the described one if that
 * costs hardly more. (-1 is none.) A described threshold costs what the next size costs. */
double cohi_sample_best(const cohi_sample *sample, double described);

/*
 * Whether a value found at an earlier start is confirmed: it costs at most 15 % more than the best
 * found now; of a quantity, it differs by at most 15 %.
 */
bool cohi_sample_confirms(const cohi_sample *sample, double earlier);

/* Whether there is a choice, and the described value costs less now than the earlier one. */
bool cohi_sample_prefers(const cohi_sample *sample, double described, double earlier);

/* The memory and the patience of a calibration. */
typedef struct cohi_calibration {
    int rounds;           /* samples of each candidate, of short ones more; the least counts */
    bool thorough;        /* all candidates, also where a start has no time for them */
    uint64_t deadline_ns; /* of cohi_now_ns: what is not measured by then is given up */
    char *memory;         /* shared pages, as heaps have */
    size_t bytes;
} cohi_calibration;

/* Close it, to give the memory back. */
cohi_calibration cohi_calibration_open(int rounds, bool thorough, uint64_t deadline_ns);
void cohi_calibration_close(cohi_calibration *calibration);

/* Whether this build and this host can measure the row, and about how long that takes with one
 * round. 0: they cannot. */
uint64_t cohi_calibrate_cost_ns(cohi_row row);

/* Measures it; false: nothing was found. */
bool cohi_calibrate(cohi_calibration *calibration, cohi_row row, cohi_sample *sample);

#endif
