/*
 * sight.h - one rank as it is now, as `cohort ps` shows it; and the launcher's summary of a job on
 * several hosts, in which it finds the ranks of all of them.
 */
#ifndef COHI_TOOLS_SIGHT_H
#define COHI_TOOLS_SIGHT_H

#include "bootstrap/board.h"

/* What went between a rank and one of another host, or several of them. */
typedef struct cohi_sight_link {
    int32_t peer;   /* -1: those that are not listed */
    uint32_t peers; /* how many that is */
    uint64_t operations, sent, received, waits;
} cohi_sight_link;

/* Those of a rank: the ones that carried most, and the rest in one row. So a look at a job of 1,000
 * ranks stays short, and so does what agents tell. */
enum { COHI_SIGHT_LINKS = 8 };

typedef struct cohi_sight {
    int32_t pid;
    int32_t waits_for;   /* -1: for none in particular */
    uint64_t waiting_ns; /* 0: it does not wait */
    char state[16];
    char doing[160];
    char awaits[192]; /* what its waits are for; "": it has not waited long */
    uint32_t network; /* cohi_network, of its host */
    uint32_t link_count;
    cohi_sight_link links[COHI_SIGHT_LINKS + 1]; /* by the rank of the peer; the rest comes last */
} cohi_sight;

void cohi_sight_look(const cohi_board *board, int rank, uint64_t now, cohi_sight *sight);

/* All of a rank's links together; `peers` is how many there are. */
cohi_sight_link cohi_sight_total(const cohi_sight *sight);

/* Ends the texts of one that came from elsewhere. */
void cohi_sight_check(cohi_sight *sight);

/* ---- the summary ---- */

#define COHI_SUMMARY_NAME  "cohort-summary"
#define COHI_SUMMARY_MAGIC UINT64_C(0x3179726d6d755343)

typedef struct cohi_summary_row {
    char host[COHI_HOST_NAME_BYTES];
    uint64_t seen_ns;      /* when the sight came; 0: none has */
    _Atomic uint32_t turn; /* odd while it is written */
    cohi_sight sight;
} cohi_summary_row;

typedef struct cohi_summary {
    uint64_t magic;
    char version[16];
    uint64_t job; /* as the boards of the hosts have it */
    uint64_t created_ns;
    uint32_t size;
    int32_t launcher;
    char program[64];
    cohi_summary_row rows[];
} cohi_summary;

/* Makes one that `cohort ps` finds for as long as *fd is open. NULL with the reason in
 * coh_last_error(). */
cohi_summary *cohi_summary_create(int size, const char *program, uint64_t job, int *fd);

/* Maps one that was found, whose fd it takes over; NULL when it is none. */
cohi_summary *cohi_summary_view(int fd);

void cohi_summary_close(cohi_summary *summary);

void cohi_summary_write(cohi_summary *summary, int rank, const cohi_sight *sight, uint64_t now);

/* The rank as it was when its agent last told of it; how long it waits goes on since then. */
void cohi_summary_read(const cohi_summary *summary, int rank, uint64_t now, cohi_sight *sight);

#endif
