/*
 * conform.h - the conformance suite: what every engine must do, one table a concept.
 *
 * A table ends up in conform.c. Bodies are written from include/cohort.h and docs/semantics.md,
 * whose cases they name, never from what an engine happens to do.
 */
#ifndef TEST_CONFORM_H
#define TEST_CONFORM_H

#include "harness/harness.h"

#include <stdatomic.h>

/* X(name of the table) */
#define CONFORM_TABLES(X) \
    X(order)              \
    X(progress)           \
    X(epochs)             \
    X(crew)               \
    X(heap)               \
    X(heaps)              \
    X(rma)                \
    X(bounds)             \
    X(views)              \
    X(arguments)          \
    X(life)               \
    X(channel)            \
    X(again)              \
    X(stale)              \
    X(atomics)            \
    X(races)              \
    X(strided)            \
    X(signals)            \
    X(waits)              \
    X(contexts)           \
    X(teams)              \
    X(splits)             \
    X(locks)              \
    X(messages)           \
    X(probes)             \
    X(facts)              \
    X(grid)               \
    X(storm)              \
    X(register)           \
    X(unordered)          \
    X(calls_only)         \
    X(coll_sizes)         \
    X(coll_types)         \
    X(coll_values)        \
    X(coll_bits)          \
    X(coll_teams)         \
    X(coll_storms)        \
    X(coll_started)       \
    X(coll_outstanding)   \
    X(coll_arguments)     \
    X(coll_hosts)         \
    X(coll_wrong)         \
    X(coll_forced)        \
    X(coll_described)     \
    X(coll_backed)        \
    X(coll_functions)     \
    X(coll_scaled)        \
    X(coll_grouped)

#define CONFORM_DECLARE(name)                \
    extern const test_case conform_##name[]; \
    extern const size_t conform_##name##_count;
CONFORM_TABLES(CONFORM_DECLARE)
#undef CONFORM_DECLARE

/* ---- seeds.c: what is not promised does happen, on the simulator ---- */

/* At the beginning of a run's shared memory; the body notes what it saw. */
typedef struct conform_sightings {
    _Atomic uint64_t usual;
    _Atomic uint64_t unusual;
} conform_sightings;

void conform_note(conform_sightings *seen, bool usual);

/* Runs `body` on `ranks` ranks with seed after seed until both were seen; fails when they were
 * not. */
void conform_until_both_seen(test_rank *self, int ranks, void (*body)(test_rank *self));

/* Ends a table's file: how many rows it has. */
#define CONFORM_COUNT(name) \
    const size_t conform_##name##_count = sizeof conform_##name / sizeof *conform_##name

#endif
