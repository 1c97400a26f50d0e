/*
 * launch.h - how the launcher tells a process which rank of which job it is.
 *
 * One inherited descriptor (COHORT_JOB_FD), a local socket in which one message already waits:
 * the job's unique id, this process's rank, the size, the descriptor of its host's board, and for
 * rank 0 of a job on several hosts the sockets on which it listens for the others. The id is a
 * secret, so it travels neither in the environment nor in an argument list. The first process
 * that reads it is the rank; another one finds nothing there and is told so.
 */
#ifndef COHI_BOOTSTRAP_LAUNCH_H
#define COHI_BOOTSTRAP_LAUNCH_H

#include "base/config.h"
#include "bootstrap/board.h"
#include "bootstrap/listeners.h"

typedef struct cohi_launch {
    coh_unique_id id;
    int rank;
    int size;
    cohi_board board;         /* the launcher's; when joining again, head is NULL */
    cohi_listeners listeners; /* of rank 0, for leaders on other hosts (bootstrap/root.h) */
    const char *brought_by;   /* the engine whose job it is, which tells who is who; or NULL */
    void *kept;               /* what must stay open until the rank has joined, or NULL */
    void (*let_go)(void *kept);
} cohi_launch;

#define COHI_NO_LAUNCH       \
    {                        \
        .board = {.fd = -1 } \
    }

/* Closes listeners and board, and lets go what was kept. */
void cohi_launch_end(cohi_launch *launch);

/* Makes the socket pair and leaves the message in it; *fd is to be inherited by the rank (it is
 * not close-on-exec). The caller closes *fd, and its own board_fd and listeners (NULL: none) when it
 * likes. */
coh_status cohi_launch_offer(const coh_unique_id *id, int rank, int size, int board_fd,
                             const cohi_listeners *listeners, int *fd);

/* Whether the environment says that a launcher started this process. */
int cohi_launch_present(const cohi_config *config);

/* Takes the message. COH_INVALID_ARGUMENT when the environment is contradictory,
 * COH_NOT_AVAILABLE when the descriptor is closed or was used up, with what to do about it. */
coh_status cohi_launch_accept(const cohi_config *config, cohi_launch *launch);

#endif
