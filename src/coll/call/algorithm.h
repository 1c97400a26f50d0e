/*
 * algorithm.h - what an algorithm is: one row of the table in
 * mapped/table.c, message/table.c, levels/table.c or native.c, and one file (or, where
 * several collectives are made the same way, one file for all of them).
 */
#ifndef COHI_COLL_CALL_ALGORITHM_H
#define COHI_COLL_CALL_ALGORITHM_H

#include "coll/call/call.h"
#include "coll/call/model.h"

enum {
    /* Reduces in the order of the members with one rounding, so that the bits do not depend on the
     * algorithm. Rows of kinds that reduce nothing have it too. */
    COHI_RANK_ORDER = 1,
    /* Loads and stores the others' memory: for teams whose members are all mapped. */
    COHI_MAPPED = 2,
    /* Mapped, and what fits a post goes by the post: no staging area is needed for it. */
    COHI_SHORT_IN_POST = 4,
    /* Mapped, and works on the buffers where they are: on the sources of all members, on the targets,
     * or on those of one side. Where they are private, the call is carried out as the staged row. */
    COHI_NEEDS_SOURCES = 8,
    COHI_NEEDS_TARGETS = 16,
    COHI_NEEDS_A_SIDE = 32,
    COHI_NEEDS_BUFFERS = COHI_NEEDS_SOURCES | COHI_NEEDS_TARGETS | COHI_NEEDS_A_SIDE,
    /* Mapped, by way of the staging areas. */
    COHI_STAGED = 64,
    /* For teams that span hosts: mapped rows inside, message rows between (coll/levels). */
    COHI_BY_LEVELS = 128,
    /* A collective of the library behind the engine. All members meet before it. */
    COHI_NATIVE = 256,
};

typedef struct cohi_algorithm {
    const char *name; /* "ring"; unique within its kind */
    coh_collective_kind kind;
    unsigned traits;

    /* Whether it can do this call at all; NULL: every one. The same answer on all members, so it
     * goes by what is the same on all: kind, type, counts, team. */
    bool (*applies)(const cohi_call *call);

    /* Private bytes that run needs in call->workspace; NULL: none. */
    size_t (*workspace)(const cohi_call *call);

    /* What it should take, in nanoseconds, for `bytes` from each of `ranks` members. */
    double (*cost)(const cohi_model *model, int ranks, double bytes);

    coh_status (*run)(cohi_call *call);
} cohi_algorithm;

/* All rows by number from 0, in the order in which equal costs are decided; NULL past the last. */
const cohi_algorithm *cohi_algorithm_at(unsigned number);

/* The number of a row. */
unsigned cohi_algorithm_number(const cohi_algorithm *algorithm);

/* Those that load and store other members' memory, and those made of messages; NULL name last. */
extern const cohi_algorithm cohi_mapped_algorithms[];
extern const cohi_algorithm cohi_message_algorithms[];

/* Those made of the others, on the levels of a team. */
extern const cohi_algorithm cohi_level_algorithms[];

/* Those of the library behind the engine. */
extern const cohi_algorithm cohi_native_algorithms[];

#endif
