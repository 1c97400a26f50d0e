/*
 * limit.h - what the machine can do, measured by raw loops that know nothing of Cohort.
 *
 * Each function runs one loop `repeats` times on memory it is given, so that the caller can run it
 * on the very mappings that it measures Cohort on, in turns with it, and returns nanoseconds per
 * repeat. Nothing is checked, locked or counted in them: what they take is what the hardware takes.
 * Where several instructions could be the fastest there is a row for each in a table of forms; the
 * limit is the best of them, whichever that is on the machine and for the size at hand.
 */
#ifndef COHI_BENCH_LIMIT_H
#define COHI_BENCH_LIMIT_H

#include <stddef.h>
#include <stdint.h>

/* ---- copying (limit_copy.c) ---- */

typedef struct cohi_limit_copy_form {
    const char *name;
    int (*available)(void); /* whether this CPU has the instructions */
    void (*copy)(void *target, const void *source, size_t bytes);
} cohi_limit_copy_form;

/* The forms this CPU can run, by index from 0; NULL past the last. The first is libc's memcpy. */
const cohi_limit_copy_form *cohi_limit_copy_form_at(size_t index);

/* Copies between two ranges that do not overlap. */
double cohi_limit_copy(const cohi_limit_copy_form *form, void *target, const void *source,
                       size_t bytes, uint64_t repeats);

/* ---- calling (limit_call.c) ---- */

/* A call of memcpy for 8 bytes that the compiler could not inline: the cost of the call, a load and
 * a store. Source and target are 8 bytes each. */
double cohi_limit_call(void *target, const void *source, uint64_t repeats);

/* ---- meeting (limit_exchange.c) ---- */

/* One cache line that its owner alone writes; each has two, of which some forms use the first
 * alone. */
typedef struct cohi_limit_line {
    _Alignas(64) uint64_t count;
    char rest[64 - sizeof(uint64_t)];
} cohi_limit_line;

/* Who meets: everybody's two lines as this process maps them, and which of them are its own. */
typedef struct cohi_limit_meeting {
    cohi_limit_line *const *lines;
    int count;
    int mine;
} cohi_limit_meeting;

typedef struct cohi_limit_exchange_form {
    const char *name;
    int yields; /* gives its core to others while it waits */
    void (*exchange)(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last);
} cohi_limit_exchange_form;

/* By index from 0; NULL past the last. */
const cohi_limit_exchange_form *cohi_limit_exchange_form_at(size_t index);

/*
 * All that meet call it at the same time. A repeat writes one's own line and waits until all others
 * have caught up; with two it is the exchange of two cache lines, and no two that wait for each
 * other can do with less. The counts must be equal for all before, and are again afterwards.
 */
double cohi_limit_exchange(const cohi_limit_exchange_form *form, const cohi_limit_meeting *meeting,
                           uint64_t repeats);

#endif
