/*
 * conform.h - the conformance suite: what every engine must do, one table a concept.
 *
 * A table ends up in conform.c. Bodies are written from include/cohort.h and SEMANTICS.md, whose
 * rows they name, never from what an engine happens to do.
 */
#ifndef TEST_CONFORM_H
#define TEST_CONFORM_H

#include "harness/harness.h"

/* X(name of the table) */
#define CONFORM_TABLES(X) \
    X(order)              \
    X(progress)           \
    X(epochs)             \
    X(crew)               \
    X(heap)               \
    X(rma)                \
    X(bounds)             \
    X(views)              \
    X(arguments)          \
    X(life)               \
    X(channel)            \
    X(again)

#define CONFORM_DECLARE(name)                \
    extern const test_case conform_##name[]; \
    extern const size_t conform_##name##_count;
CONFORM_TABLES(CONFORM_DECLARE)
#undef CONFORM_DECLARE

/* Ends a table's file: how many rows it has. */
#define CONFORM_COUNT(name) \
    const size_t conform_##name##_count = sizeof conform_##name / sizeof *conform_##name

#endif
