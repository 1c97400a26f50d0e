/* calibrate_line.h - how long a cache line takes from one core to another. */
#ifndef COHI_MEMORY_CALIBRATE_LINE_H
#define COHI_MEMORY_CALIBRATE_LINE_H

#include <stdint.h>

/* Nanoseconds, one way, between two of the cores that this thread may use; 0: it has one, or
 * somebody else took one of them, or it was not found by `deadline_ns`. */
double cohi_calibrate_line(uint64_t deadline_ns);

#endif
