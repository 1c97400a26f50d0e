/* page.h - the memory that the parent and all processes of a run share. */
#ifndef TEST_PAGE_H
#define TEST_PAGE_H

#include "harness.h"

#include <stdatomic.h>

enum { TEST_MESSAGES = 24, TEST_MESSAGE_BYTES = 1400 };

typedef struct test_page {
    atomic_int failures; /* may count more than there are messages */
    atomic_int skipped;
    atomic_int bodies_ended[TEST_RANKS_MAX];
    _Atomic uint64_t processes_ended[TEST_RANKS_MAX]; /* when that was seen, in ns; or 0 */
    char skip_reason[256];
    char messages[TEST_MESSAGES][TEST_MESSAGE_BYTES];
    coh_unique_id ids[TEST_IDS];
    _Alignas(4096) unsigned char scratch[TEST_SCRATCH_BYTES];
} test_page;

/* The page of the current run; mapped by the first call, cleared by test_page_reset. */
test_page *test_page_get(void);
void test_page_reset(void);

/* Runs one rank's part: join, body, finalize, as the row's mode says. */
void test_rank_run(test_rank *self);

/* ---- heap.c: --heap ---- */

/* How many heaps each world of a joined row gets beside its own; the last is what bodies allocate from. */
void test_heaps_choose(int count);

/* The heap is one of a card. */
void test_heaps_choose_card(void);

/* Whether there is a card and Cohort can use it; if not, says why on standard error. */
bool test_card_is_missing(void);

/* Makes them, for a world that was just joined. Collective. */
void test_heaps_make(test_rank *self);

/* ---- stacks.c ---- */

/* Makes the file that stacks are collected in; once, before any process is started. */
void test_stacks_open(void);

/* Makes a process able to print a thread's stack when it is asked to. */
void test_stacks_prepare(void);

/* Prints the stacks of all threads of a process to standard error. */
void test_stacks_print(pid_t pid);

/* ---- leftovers.c ---- */

typedef struct test_leftovers {
    int descriptors;
    char shm_names[8192]; /* of /dev/shm, each between newlines */
} test_leftovers;

void test_leftovers_note(test_leftovers *before);

/* Reports, by test_fail, what a run left behind, and ends the processes among it. */
void test_leftovers_check(const test_leftovers *before);

/* ---- places.c: ranks of an MPI job ---- */

/* Whether ranks of that engine need places in a job of MPI's launcher; which launcher it is. */
bool test_needs_places(const char *engine);
const char *test_places_launcher(const char *engine);

/* Where this process was started by MPI's launcher to keep a place: does so, and ends. */
void test_places_stub(void);

/* Around a run: makes the places, and gives them up. */
bool test_places_open(const char *engine, int ranks);
void test_places_close(void);

/* In the rank's process: takes its place. */
void test_places_take(int rank);

/* ---- run.c ---- */

/* Runs the row; findings are in the page afterwards. */
void test_run(test_job *job);

#endif
