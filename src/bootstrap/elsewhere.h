/*
 * elsewhere.h - what a board says of ranks on other hosts.
 *
 * One word a rank, and the names of the hosts. It is written by the host's agent (the launcher's
 * process on that host), which is told by the agents of the other hosts, and where there is no
 * agent the names are written by the leader of the host's ranks. Ranks read it to say why a rank
 * of another host does not answer.
 */
#ifndef COHI_BOOTSTRAP_ELSEWHERE_H
#define COHI_BOOTSTRAP_ELSEWHERE_H

#include "bootstrap/board.h"

/* The rank's process has ended, with this status of waitpid(2). A rank of this host, too: then it is
 * its slot that has it. Wakes all ranks of this host. The first end that is told stands. */
void cohi_board_tell_end(const cohi_board *board, int rank, int wait_status);

/* A signal has stopped the rank's process, in `op` (cohi_opcode), or it goes on. For ranks of this
 * host see cohi_board_tell_end. */
void cohi_board_tell_stopped(const cohi_board *board, int rank, bool stopped, unsigned op);

/* The rank of this host or another is lost or stalled, as `verdict` says (core/health/verdict.h): all
 * ranks of this host that know nothing of it yet learn it, as when another rank tells them. */
void cohi_board_tell_verdict(const cohi_board *board, int rank, uint64_t verdict);

/* The rank is on the host of that name, which is cut to COHI_HOST_NAME_BYTES. */
void cohi_board_tell_host(const cohi_board *board, int rank, const char *name);

/* Asks all ranks of this host to end with `code`, as coh_global_exit does; the first code stands. */
void cohi_board_tell_exit(const cohi_board *board, int code);

/* What was told of a rank of another host, or what the slot says of one of this host. */
typedef struct cohi_told {
    bool ended;
    int wait_status;
    bool stopped;
    unsigned op; /* that it was stopped in */
} cohi_told;

cohi_told cohi_board_read(const cohi_board *board, int rank);

/* The name of the rank's host; "" where it was not told. */
const char *cohi_board_host_of(const cohi_board *board, int rank);

#endif
