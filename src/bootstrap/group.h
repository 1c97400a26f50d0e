/*
 * group.h - the ranks of a job, before they have memory in common.
 *
 * Ranks find each other by the job's unique id, in two levels. The ranks of a host reach its leader
 * by an abstract local socket whose name is derived from the id and COHORT_HOST; such names belong
 * to a network namespace, so that is what makes processes one host. The leaders reach rank 0, the
 * root, by another such name where they can, else by the addresses in the id. Inside a host both
 * ends check the other's user, and the secret in the id is shown only to a listener of the same
 * user.
 *
 * Where a launcher gave a board, the lowest rank on it leads. Else the first rank that binds the
 * name does, and the root always leads its own host.
 *
 * Exchanges go from the ranks to their leader, from the leaders to the root, and back. The links stay
 * open for the life of the group, so that ranks can exchange cards and descriptors again when a
 * segment is added.
 */
#ifndef COHI_BOOTSTRAP_GROUP_H
#define COHI_BOOTSTRAP_GROUP_H

#include "bootstrap/board.h"
#include "bootstrap/listeners.h"
#include "bootstrap/card.h"

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

typedef struct cohi_group_spec {
    const coh_unique_id *id;
    int rank;
    int size;
    const char *host;         /* COHORT_HOST, or "" */
    cohi_board *board;        /* of the launcher; head is NULL where there is none */
    cohi_listeners listeners; /* of rank 0, for leaders of other hosts (bootstrap/root.h) */
    cohi_patience patience;
    /* Makes the board of a host for its `count` ranks, in ascending order: on the leader of one that
     * has none. */
    coh_status (*make_board)(void *context, const int *ranks, int count, cohi_board *board);
    void *context;
} cohi_group_spec;

/*
 * Joins the job. Takes the board over, unless the group could not be made at all. When the patience
 * has run out, all that came get an error that lists the missing: COH_TIMED_OUT.
 */
coh_status cohi_group_join(const cohi_group_spec *spec, cohi_group **group);

/* The host's board; the group keeps it until it is left. */
cohi_board *cohi_group_board(cohi_group *group);

/* How many hosts there are, and which one a rank is on: from 0, in the order of their first ranks. */
int cohi_group_hosts(const cohi_group *group);
int cohi_group_host_of(const cohi_group *group, int rank);

/*
 * Gives every rank a part of every rank's card; collective. all[size] includes this rank's own (with
 * its own descriptors), and keeps what is not of the part. The caller closes the received
 * descriptors. A rank that cannot go on passes what failed as `ready`, with its error message set;
 * then all fail with that. Waits as joining does.
 */
coh_status cohi_group_exchange(cohi_group *group, const cohi_card *mine, cohi_card_part part,
                               coh_status ready, cohi_card *all);

/* False after an exchange that failed here: what the links carry is then not known, and the next one
 * would fail too. */
bool cohi_group_is_in_step(const cohi_group *group);

/* Returns when all ranks have called it, as an exchange of nothing: nobody goes on before all are
 * ready. */
coh_status cohi_group_meet(cohi_group *group, coh_status ready);

/* Closes the links and the board. Not collective. */
void cohi_group_leave(cohi_group *group);

#endif
