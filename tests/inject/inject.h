/*
 * inject.h - each allocation and each system call of the library fails in turn.
 *
 *   interpose*.c makes one call fail; a shared object
 *   program.c    what a rank does: every group of public calls
 *   job.c        a job of such ranks, as processes or as threads; the launcher
 *   inject.c     the sweep: which call fails, and what must hold then
 */
#ifndef TEST_INJECT_H
#define TEST_INJECT_H

#include "interpose.h"

#include <cohort.h>

enum { RANKS = 3, TEXT_BYTES = 1200 };

#define HEAP_BYTES (UINT64_C(1) << 30) /* of each rank; more than anything else that is mapped */

/* What a rank tells about its run; in memory that all processes of the run share. */
typedef struct rank_report {
    bool ended; /* it came to the end of its program */
    coh_status status;
    char call[128]; /* the first that failed, as written */
    char sentence[TEXT_BYTES];
    char finding[TEXT_BYTES]; /* what must not be; empty: nothing */
} rank_report;

typedef struct rank {
    int rank, size;
    bool threads; /* ranks are threads of one process */
    bool heap;    /* the engine has one */
    coh_world *world;
    coh_team *all;
    rank_report *report;
} rank;

/* Notes what must not be, unless something was noted before. Returns false. */
bool rank_finds(rank_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes a call that failed. Returns whether it did not. */
bool rank_notes(rank_report *report, coh_status status, const char *call);

/* Everything between init and finalize; ends with the first call that fails. */
void program_run(rank *self);

/* What all processes of a run share; a file without a name, by its path in /proc. */
typedef struct run_page {
    inject_state state;
    rank_report reports[RANKS];
} run_page;

/* How a job is started; a row of a table. */
struct scenario {
    const char *name;
    const char *module; /* whose calls fail */
    const char *engine; /* of its ranks */
    void (*body)(const struct scenario *scenario, run_page *page);
    int victim;     /* where each rank is a process, the one whose calls fail */
    bool tool;      /* judged by its output and status; there are no reports */
    bool init_only; /* of a process that measures the host and saves what it found */
    bool blind;     /* ranks do not see what the others do: COHORT_TIMEOUT ends what cannot */
};

/* Paths of what is started by its name; set by the main function. */
extern char inject_folder[]; /* nothing of an earlier run is in it */
extern const char *inject_tool, *inject_ring, *inject_self, *inject_object;

/* Bodies of a job's process. */
void job_processes(const struct scenario *scenario, run_page *page);
void job_threads(const struct scenario *scenario, run_page *page);
void job_launched(const struct scenario *scenario, run_page *page);
void job_tool(const struct scenario *scenario, run_page *page);

/* The main function of a rank that `cohort run` has started. */
int job_member(int victim);

#endif
