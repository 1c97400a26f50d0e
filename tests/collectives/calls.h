/*
 * calls.h - collective calls as data: what each member brings, what each must find afterwards.
 *
 * A test_call says all that the members of a team must say alike, and where the buffers lie. What a
 * member brings follows from it and the member's index alone, so each member knows what all others
 * bring and works out by itself (oracle.h) what it must find.
 *
 * A rig is the memory of one call: a source area and a target area in the heap, and in private
 * memory, with guard bytes around. After the call both areas are compared byte by byte with what
 * they must hold: the target, the source as it was, the guards, the gaps.
 */
#ifndef TEST_COLLECTIVES_CALLS_H
#define TEST_COLLECTIVES_CALLS_H

#include "harness/harness.h"

/* X(constant, name, reduces, has a root, can be in place) */
#define CALL_KINDS(X)                                                   \
    X(CALL_ALL_REDUCE, all_reduce, true, false, true)                   \
    X(CALL_REDUCE, reduce, true, true, true)                            \
    X(CALL_REDUCE_SCATTER, reduce_scatter, true, false, true)           \
    X(CALL_REDUCE_SCATTER_V, reduce_scatter_v, true, false, true)       \
    X(CALL_ALL_GATHER, all_gather, false, false, true)                  \
    X(CALL_ALL_GATHER_V, all_gather_v, false, false, true)              \
    X(CALL_GATHER, gather, false, true, true)                           \
    X(CALL_GATHER_V, gather_v, false, true, true)                       \
    X(CALL_SCATTER, scatter, false, true, true)                         \
    X(CALL_SCATTER_V, scatter_v, false, true, true)                     \
    X(CALL_BROADCAST, broadcast, false, true, true)                     \
    X(CALL_ALL_TO_ALL, all_to_all, false, false, true)                  \
    X(CALL_ALL_TO_ALL_V, all_to_all_v, false, false, false)             \
    X(CALL_ALL_TO_ALL_STRIDED, all_to_all_strided, false, false, false) \
    X(CALL_SCAN, scan, true, false, true)                               \
    X(CALL_SCAN_EXCLUSIVE, scan_exclusive, true, false, true)

typedef enum call_kind {
#define CALL_ENUM(constant, name, reduces, rooted, in_place) constant,
    CALL_KINDS(CALL_ENUM)
#undef CALL_ENUM
        CALL_KIND_COUNT
} call_kind;

typedef struct call_traits {
    const char *name;
    bool reduces, rooted, in_place;
} call_traits;

extern const call_traits call_table[CALL_KIND_COUNT];

/* The kind whose name `text` ends with ("sizes_of_scan"), the longest; CALL_KIND_COUNT: none. */
call_kind call_kind_in(const char *text);

/* Where source and target lie. */
typedef enum call_place {
    PLACE_HEAP,
    PLACE_PRIVATE,
    PLACE_HEAP_TO_PRIVATE,
    PLACE_PRIVATE_TO_HEAP,
    PLACE_BY_MEMBER, /* each member another way */
    PLACE_COUNT
} call_place;

/* How the variable forms are cut. */
typedef enum call_parts {
    PARTS_EVEN,
    PARTS_RAGGED,  /* all lengths, zero among them */
    PARTS_ONE,     /* all at the middle member */
    PARTS_SLIVERS, /* every second one has only a few elements */
    PARTS_COUNT
} call_parts;

typedef struct test_call {
    call_kind kind;
    coh_dtype dtype;
    coh_reduce_op op;
    size_t count; /* elements, or of a block */
    int root;
    call_parts parts;
    call_place place;
    bool in_place;  /* where the kind can be */
    bool started;   /* by a request */
    bool described; /* by coh_collective_run or coh_collective_start */
    bool shifted;   /* aligned to the element only */
    uint64_t seed;
} test_call;

enum { CALL_MEMBERS = 16, CALL_GUARD = 64 };

/* How calls are made on memory of a card in the order of a stream: set in a rig that is open. */
typedef struct call_card {
    coh_status (*run)(const coh_collective *described, void *arg); /* and waits for it */
    bool (*copy)(void *target, const void *source, size_t bytes);  /* to and from the card */
    unsigned char *own; /* two areas of memory of the card that is not symmetric */
    void *arg;
} call_card;

typedef struct call_rig {
    coh_world *world;
    const call_card *card;     /* NULL: by calls of the host */
    size_t room;               /* bytes of an area */
    unsigned char *heap, *own; /* two areas each; heap is NULL where there is none */
    unsigned char *image[2];   /* what the areas must hold afterwards */
    unsigned char *mirror;     /* of what is on a card; else NULL */
    unsigned char *area[2];  /* of the call under way: source's, target's, where they can be seen */
    unsigned char *place[2]; /* and where they are: the same but for a card's */
    size_t used[2];          /* bytes of them */
    unsigned char *source, *target; /* as passed; NULL where the member has none */
    size_t counts[2][CALL_MEMBERS]; /* of the variable forms: source's or all's, target's */
    size_t offsets[2][CALL_MEMBERS];
    size_t stride[2];
    coh_request *request;
} call_rig;

/* Room for calls whose larger buffer has up to `bytes` on each member. Collective. */
bool call_rig_open(call_rig *rig, coh_world *world, size_t bytes);
bool call_rig_close(call_rig *rig);

/* Whether the blocks of all_to_all_v are told by offsets, with gaps, last block first. */
bool call_is_placed(const test_call *call);

/* Bytes of the larger buffer of the call, for call_rig_open. */
size_t call_bytes(const test_call *call, int members);

/* Fills the areas and works out what they must hold. */
void call_prepare(call_rig *rig, coh_team *team, const test_call *call);

/* Makes the call as prepared; a started one is left with rig->request. */
coh_status call_make(call_rig *rig, coh_team *team, const test_call *call);

/* Whether the areas hold what they must; tells the first byte that does not. What is on a card is fetched
 * first. */
bool call_check(const call_rig *rig, const test_call *call);

/* From now on the areas must stay as they are. */
void call_expect_nothing(call_rig *rig);

/* All of it, with the wait for a request. */
bool call_perform(call_rig *rig, coh_team *team, const test_call *call);

/* A number that stands for the target's bytes. */
uint64_t call_digest(const call_rig *rig);

/* One line that says what the call is. */
const char *call_text(const test_call *call, char text[256]);

#endif
