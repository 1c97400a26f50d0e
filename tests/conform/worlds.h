/*
 * worlds.h - one world after the other in a case, each with knobs of its own.
 *
 * Knobs are read when a world is made. On `shm` each rank's process sets them and joins by an id
 * that rank 0 has made; the engines that live in one process set them and make a crew. A case is
 * two rows, as their modes differ.
 */
#ifndef TEST_CONFORM_WORLDS_H
#define TEST_CONFORM_WORLDS_H

#include "conform.h"

enum { WORLDS_MOST = 160, WORLDS_SCRATCH = 24576 };

/* At the beginning of a run's shared memory. */
typedef struct conform_worlds {
    _Atomic uint64_t made;
    coh_unique_id ids[WORLDS_MOST];
    _Alignas(64) unsigned char scratch[WORLDS_SCRATCH]; /* for the case: worlds_scratch */
} conform_worlds;

/* Sets the knobs, "NAME=value NAME=value", joins a new world and runs `body` on every rank of it,
 * then finalizes it and takes the knobs back. The row's body makes the same calls on every rank. */
void worlds_run(test_rank *self, const char *knobs, void (*body)(test_rank *self));

/* Zero at first, the same on all ranks, kept from one world to the next. */
void *worlds_scratch(const test_rank *self);

#define IN_WORLDS(function, row_names, on_sizes, ...)                                      \
    CASE(function, row_names, ON_PROCESSES, on_sizes, .mode = TEST_UNJOINED, __VA_ARGS__), \
        CASE(function, row_names, ON_CREW, on_sizes, .mode = TEST_ALONE, __VA_ARGS__)

#endif
