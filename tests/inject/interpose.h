/*
 * interpose.h - a shared object that makes one call of one module fail.
 *
 * It stands before libc in the order of lookup: linked ahead of it, or preloaded. A call counts when
 * it comes from the module that the plan names, by its return address; calls of libc itself, of the
 * program and of the tests pass. A call is known by its site, an offset in the module, and by how
 * often that site was reached, so that the order in which threads run does not matter.
 */
#ifndef TEST_INTERPOSE_H
#define TEST_INTERPOSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { INJECT_SITES = 1024, INJECT_CALLS = 8192, INJECT_NAME_BYTES = 32 };

typedef struct inject_site {
    uintptr_t offset;
    char function[INJECT_NAME_BYTES];
    int calls;    /* in this run */
    int kept;     /* blocks from here that a run without failure leaves */
    int variants; /* how many errors the function can fail with */
} inject_site;

typedef struct inject_call {
    int site;
    int nth; /* from 1 */
} inject_call;

/* Shared by all processes of a run. A program that is started takes it from the file that
 * INJECT_STATE names. */
typedef struct inject_state {
    atomic_flag lock;
    char module[INJECT_NAME_BYTES]; /* "libcohort.so": how the file's name begins */
    int cap;                        /* calls of one site that count */
    bool logging;                   /* the counted calls go to calls[] */
    inject_call target;             /* site -1: nothing fails */
    int variant;                    /* which of the function's errors */
    bool lasting;                   /* every later call of the same function fails too */
    bool struck;
    int error;
    int site_count;
    inject_site sites[INJECT_SITES];
    int call_count;
    inject_call calls[INJECT_CALLS];
} inject_state;

/* Takes `state`, whose module is set, for this process and those that it forks. */
void inject_begin(inject_state *state);

/* Whether calls of this process count. Off until it is called, unless INJECT_STATE is set. */
void inject_enable(bool on);

/* Forgets the blocks that the module holds, and begins to note new ones. */
void inject_blocks_begin(void);

/* For each site, how many blocks from it are live: counts[INJECT_SITES]. */
void inject_blocks_count(int counts[INJECT_SITES]);

#endif
