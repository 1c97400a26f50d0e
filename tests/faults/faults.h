/*
 * faults.h - docs/faults.md as a suite: each fault is injected for real, and what must come of it
 * is checked.
 *
 * Bodies join by themselves (TEST_UNJOINED), since a fault may strike while they do, and ranks
 * that are to be lost are the row's victims.
 */
#ifndef TEST_FAULTS_H
#define TEST_FAULTS_H

#include "harness/harness.h"

/* X(name of the table) */
#define FAULT_TABLES(X) \
    X(lost)             \
    X(start)            \
    X(stalled)          \
    X(mismatch)         \
    X(limits)           \
    X(sandbox)          \
    X(sweep)            \
    X(words)            \
    X(groups)           \
    X(locked)           \
    X(collectives)      \
    X(disagree)         \
    X(circles)          \
    X(conclude)         \
    X(cancel)           \
    X(hosts)            \
    X(apart)

#define FAULT_DECLARE(name)                \
    extern const test_case fault_##name[]; \
    extern const size_t fault_##name##_count;
FAULT_TABLES(FAULT_DECLARE)
#undef FAULT_DECLARE

#define FAULT_COUNT(name) \
    const size_t fault_##name##_count = sizeof fault_##name / sizeof *fault_##name

/* How long the survivors of a loss may take to learn of it. */
#define LOSS_LIMIT_S (TEST_SANITIZED ? 3.0 : 1.0)

/* A program that uses every operation; returns the first status that is not COH_OK, or COH_OK
 * after `rounds`. Stores the moment of each call to stamps[rank], in nanoseconds. */
coh_status fault_program(test_rank *self, _Atomic uint64_t *stamps, int rounds);

/* The same with atomics, signals, waits, locks, teams and messages. */
coh_status fault_vocabulary(test_rank *self, _Atomic uint64_t *stamps, int rounds);

/* The same with every collective, blocking and started. */
coh_status fault_collectives_program(test_rank *self, _Atomic uint64_t *stamps, int rounds);

/* Stores now. */
void fault_stamp(_Atomic uint64_t *stamp);

/* Seconds since a stamp. */
double fault_since(const _Atomic uint64_t *stamp);

/* Until the others are out of the call that this rank has returned from. */
void fault_let_others_out(void);

/* Whether it can be told that the rank is stopped, or runs another program: by a rank that shares its host, or by an
 * engine that asks the kernel there. Libraries keep their sockets to themselves. Else the run is skipped. */
bool fault_is_told(const test_rank *self, int rank);

/* Ends the rank's process, where it has one of its own; elsewhere the caller returns, and its
 * thread ends without finalize. */
void fault_die(const test_rank *self);

/* Checks that `status` is the loss of `rank`, learnt in time after its last stamp. */
bool fault_check_lost(coh_status status, int rank, const _Atomic uint64_t *stamp);

#endif
