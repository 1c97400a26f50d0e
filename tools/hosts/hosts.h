/*
 * Room: tools/hosts.
 *
 * What `cohort run` over several hosts reads and speaks: lists of hosts as users and other launchers
 * write them, and the frames between the launcher and its agents.
 * Uses base and jansson. Starts no process and opens no connection.
 * Hides formats: what comes out of here was checked.
 */
/*
 * hosts.h - the hosts of a job, in the order in which ranks fill them.
 *
 *   list.c      "a:4,b:4", and what is the same for all formats
 *   hostfile.c  files of lines, of Open MPI's form and of MPICH's
 *   json.c      files of MLX's form
 *   slurm.c     an allocation of Slurm
 *
 * Each of the parsers fails with COH_INVALID_ARGUMENT and a message that says where, and leaves
 * nothing to free then.
 */
#ifndef COHI_TOOLS_HOSTS_H
#define COHI_TOOLS_HOSTS_H

#include "bootstrap/board.h"

#include <cohort.h>
#include <stddef.h>

enum { COHI_HOSTS_MAX = COHI_RANKS_MAX, COHI_HOST_BYTES = COHI_HOST_NAME_BYTES };

typedef struct cohi_host_entry {
    char name[COHI_HOST_BYTES];    /* as the shell is told it: "b", "user@b" */
    char address[COHI_HOST_BYTES]; /* that other hosts reach it at; "": not given */
    int slots;
    int first, ranks; /* that cohi_hosts_place has put there */
} cohi_host_entry;

typedef struct cohi_hosts {
    cohi_host_entry *list;
    int count;
} cohi_hosts;

/* "a:4,b"; `what` is the flag. A host without a number has one slot. */
coh_status cohi_hosts_parse_list(const char *what, const char *text, cohi_hosts *hosts);

/* The text of a file, `name` in messages: "NAME:LINE:COLUMN: ...". The format is told by the first
 * character that is no blank: '[' is MLX's. */
coh_status cohi_hosts_parse_file(const char *name, const char *text, size_t length,
                                 cohi_hosts *hosts);

coh_status cohi_hosts_read_file(const char *path, cohi_hosts *hosts);

/* SLURM_JOB_NODELIST, "a[1-3,07],b", and SLURM_TASKS_PER_NODE, "4(x3),2"; without the second (NULL)
 * each host has one slot. */
coh_status cohi_hosts_parse_slurm(const char *nodes, const char *tasks, cohi_hosts *hosts);

void cohi_hosts_free(cohi_hosts *hosts);

int cohi_hosts_slots(const cohi_hosts *hosts);

/*
 * Puts ranks on the hosts, by slots, in order; hosts that none is put on are dropped.
 * COH_INVALID_ARGUMENT when there are more ranks than slots, unless `oversubscribe`: then each host
 * gets more, in proportion to its slots.
 */
coh_status cohi_hosts_place(cohi_hosts *hosts, int ranks, int oversubscribe);

/* The name without a user before it. */
const char *cohi_host_label(const cohi_host_entry *host);

/* ---- for the parsers alone ---- */

/* Where a parser is, for its messages. */
typedef struct cohi_place {
    const char *what;
    int line, column; /* line 0: they are not shown */
} cohi_place;

/* Fails with "WHAT:LINE:COLUMN: ...", or "WHAT: ..." without a line. */
coh_status cohi_hosts_refuse(const cohi_place *place, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a host whose name is name[length]; a bad name, or one that is there already, is refused. */
coh_status cohi_hosts_add(cohi_hosts *hosts, const cohi_place *place, const char *name,
                          size_t length, int slots);

/* The address of the host that was added last. */
coh_status cohi_hosts_set_address(cohi_hosts *hosts, const cohi_place *place, const char *address,
                                  size_t length);

/* A whole number from 1 to COHI_RANKS_MAX. */
coh_status cohi_hosts_parse_slots(const cohi_place *place, const char *text, size_t length,
                                  int *slots);

/* "NAME" or "NAME:SLOTS". */
coh_status cohi_hosts_parse_word(cohi_hosts *hosts, const cohi_place *place, const char *text,
                                 size_t length);

cohi_host_entry *cohi_hosts_find(const cohi_hosts *hosts, const char *name, size_t length);

coh_status cohi_hosts_parse_json(const char *name, const char *text, size_t length,
                                 cohi_hosts *hosts);

#endif
