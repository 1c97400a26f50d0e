/*
 * gear.h - what collectives on data keep with a team: counts, pointers that would else be on the
 * stack, the choices made so far, and the worker of started calls. Made at the first one; used by
 * the thread that is in a collective of the team, one at a time.
 */
#ifndef COHI_COLL_CALL_GEAR_H
#define COHI_COLL_CALL_GEAR_H

#include "coll/call/algorithm.h"
#include "core/team/team.h"

/* How the blocks of a call are cut, as far as the choice depends on it. */
typedef enum cohi_form {
    COHI_UNIFORM,
    COHI_VARIABLE,
    COHI_STRIDED,
    COHI_BY_FUNCTION, /* in the order of the members alone */
    COHI_UNSERVED, /* uniform, of a type or reduction that the engine's library does not reduce */
    COHI_FORMS
} cohi_form;

/* What a member knows of reading the others through the kernel; see mapped/fetch.h. */
typedef enum cohi_fetching { COHI_FETCH_UNKNOWN, COHI_FETCH_CAN, COHI_FETCH_CANNOT } cohi_fetching;

enum { COHI_SIZE_CLASSES = 48 }; /* one for each power of two */

/* A row that was chosen, and its number. */
typedef struct cohi_choice {
    const cohi_algorithm *row; /* NULL: none so far */
    unsigned number;
} cohi_choice;

struct cohi_worker;

typedef struct cohi_coll_gear {
    cohi_gear base;
    uint64_t counts[2]; /* this member's own, by cohi_counter */
    cohi_fetching fetching;
    bool scratch, stages; /* which of this member's staging area is backed with memory */
    const void **sources; /* [size] */
    void **targets;       /* [size + 1] */
    size_t *firsts[2];    /* [size] each: of the source's and the target's blocks */
    char *workspace;
    size_t workspace_bytes;
    cohi_choice choices[COHI_KINDS][COHI_FORMS][COHI_SIZE_CLASSES];
    cohi_call last[COHI_KINDS]; /* of each kind the last that can be repeated; team: NULL */
    uint64_t serial;            /* of the last terms */
    uint64_t shown[COHI_POSTS]; /* the serial of the terms that a post has; 0: none */
    void *native;               /* what the engine's library has of the team; or NULL */
    bool native_failed;         /* a call of it did, here or on another member */
    void (*close_native)(cohi_endpoint *endpoint, void *native);
    cohi_endpoint *endpoint;
    cohi_staging **stagings;    /* [size]: the members' staging areas; NULL where not mapped */
    struct cohi_worker *worker; /* of started calls, or NULL; see start.c */
    void (*stop)(struct cohi_worker *worker);
} cohi_coll_gear;

/* The team's, made if there is none. COH_NO_MEMORY. */
coh_status cohi_gear_of(coh_team *team, const char *call, cohi_coll_gear **gear);

/* The team's, which is there. */
static inline cohi_coll_gear *cohi_team_gear(const coh_team *team)
{
    return (cohi_coll_gear *)atomic_load_explicit(&((coh_team *)team)->gear, memory_order_relaxed);
}

/* Makes call->workspace `bytes` long; the contents of the last call's are lost. */
coh_status cohi_gear_workspace(cohi_call *call, size_t bytes);

/* Back the scratches of this member's staging area, and its stages, unless they are. */
coh_status cohi_gear_scratch(cohi_call *call);
coh_status cohi_gear_stages(cohi_call *call);

#endif
