/*
 * group.h - the ranks of a job, before they have memory in common.
 *
 * Ranks find each other by the job's unique id. Rank 0 is the root: it listens on an abstract local
 * socket whose name is derived from the id, the others connect. Both ends check the other's user,
 * and the secret in the id is shown only to a listener of the same user. The links stay open for
 * the life of the group, so that ranks can exchange cards and descriptors again when a segment is
 * added.
 */
#ifndef COHI_BOOTSTRAP_GROUP_H
#define COHI_BOOTSTRAP_GROUP_H

#include "base/os.h"
#include "bootstrap/board.h"

enum {
    COHI_ENGINE_NAME_BYTES = 32,
    COHI_ADDRESS_BYTES = 256,
    COHI_KEY_BYTES = 128,
    COHI_TUNING_BYTES = 128,
    COHI_CARD_FDS = 2, /* COHI_CARD_FD_* */
    COHI_CARD_FD_PROCESS = 0,
    COHI_CARD_FD_HEAP = 1
};

/*
 * What a rank tells the others of itself when it joins. `fds` are valid in the process that holds
 * the card: on exchange they are passed on, and each receiver owns its copies. -1 where there is
 * none.
 */
typedef struct cohi_card {
    char version[16];
    int32_t rank;
    int32_t size;
    int32_t pid;
    uint32_t checks; /* cohi_check_level */
    uint64_t host;
    uint64_t heap_bytes;                     /* the most this rank can offer */
    uint64_t prepared;                       /* of them, memory of memory/prepared.h */
    unsigned char cores[COHI_OS_CORE_BYTES]; /* that it may run on */
    char engine[COHI_ENGINE_NAME_BYTES];
    unsigned char address[COHI_ADDRESS_BYTES]; /* the engine's, of its endpoint */
    unsigned char control_key[COHI_KEY_BYTES]; /* the engine's, for the control segment */
    unsigned char heap_key[COHI_KEY_BYTES];    /* and for the heap */
    unsigned char tuning[COHI_TUNING_BYTES];   /* of its collectives; rank 0's is used by all */
    int32_t fds[COHI_CARD_FDS];
} cohi_card;

typedef struct cohi_group cohi_group;

/*
 * How long ranks wait for each other. The time counts from the last rank that got as far: while
 * ranks keep coming nobody gives up, up to COHI_PATIENCE_STRETCH times as long in all.
 */
typedef struct cohi_patience {
    uint64_t timeout_ns;
    uint64_t
        warn_ns; /* after which a wait is logged, and again whenever it has doubled; 0: never */
} cohi_patience;

enum { COHI_PATIENCE_STRETCH = 10 };

/*
 * Joins the job. `board` is rank 0's, which hands it to the others and takes it over, unless the
 * group could not be made at all; of no use for other ranks. When the patience has run out, all
 * that came get an error that lists the missing: COH_TIMED_OUT.
 */
coh_status cohi_group_join(const coh_unique_id *id, int rank, int size, cohi_board *board,
                           const cohi_patience *patience, cohi_group **group);

/* The group's board; the group keeps it until it is left. */
cohi_board *cohi_group_board(cohi_group *group);

/*
 * Gives every rank every rank's card; collective. all[size] includes this rank's own (with its own
 * descriptors). The caller closes the received descriptors. A rank that cannot go on passes what
 * failed as `ready`, with its error message set; then all fail with that. Waits as joining does.
 */
coh_status cohi_group_exchange(cohi_group *group, const cohi_card *mine, coh_status ready,
                               cohi_card *all);

/* False after an exchange that failed here: what the links carry is then not known, and the next one
 * would fail too. */
bool cohi_group_is_in_step(const cohi_group *group);

/* Returns when all ranks have called it, as an exchange of nothing: nobody goes on before all are
 * ready. Two messages a rank, where an exchange takes one for each pair. */
coh_status cohi_group_meet(cohi_group *group, coh_status ready);

/* Closes the links and the board. Not collective. */
void cohi_group_leave(cohi_group *group);

#endif
