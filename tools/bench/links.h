/*
 * links.h - the parts of `cohort bench links`.
 *
 *   links.c         the command line, jobs and peers in turns
 *   links_worker.c  is one of the ranks: Cohort's calls and bare loops, round by round
 *   links_peers.c   other libraries over TCP, by programs that are built when they are needed
 *   links_report.c  what came of all turns: a table, JSON, a page
 */
#ifndef COHI_TOOLS_BENCH_LINKS_H
#define COHI_TOOLS_BENCH_LINKS_H

#include <jansson.h>
#include <stdint.h>

/* The most ranks that a pretended host has. */
enum { COHI_LINKS_RANKS_MAX = 64, COHI_LINKS_ROUNDS_MAX = 1000 };

/* What is measured. */
typedef struct cohi_links_row {
    const char *name;
    uint64_t bytes;
    uint64_t repeats; /* in a round */
    int turns;        /* there and back; half of that is the time */
    int reduces;      /* all ranks take part, and a peer has it too */
} cohi_links_row;

/* By index from 0; NULL past the last. */
const cohi_links_row *cohi_links_row_at(int index);

/* `bytes` of the longest all_reduce that so many ranks of a host have memory for. */
uint64_t cohi_links_most_bytes(uint64_t ranks);

typedef struct cohi_links_options {
    uint64_t rounds; /* in a turn */
    uint64_t turns;
    uint64_t ranks;   /* of each host */
    unsigned against; /* a bit for each peer */
    int choices;      /* measure every algorithm of all_reduce beside the one that is chosen */
    const char *html; /* a file, or NULL */
    int json;
    int crowded; /* the ranks of both hosts are more than the cores: whoever waits gives up its core */
    int worker; /* 0, or is a rank */
    int sealed; /* of a rank */
} cohi_links_options;

/* `cohort bench links`: the exit status. */
int cohi_bench_links(int argc, char **argv);

/* Is one rank. Rank 0 writes a line of JSON for each row. The exit status. */
int cohi_links_worker(const cohi_links_options *options);

/* ---- peers ---- */

/* By index from 0; NULL past the last. */
const char *cohi_links_peer_name(unsigned index);

typedef struct cohi_links_peers cohi_links_peers;

/* Builds those that were chosen; one that cannot be had is told on standard error and is out. NULL: no
 * folder could be made. */
cohi_links_peers *cohi_links_peers_open(const cohi_links_options *options, const char *self);
void cohi_links_peers_close(cohi_links_peers *peers);

/* Runs one: an object of times, "all_reduce 1024" and so on; NULL: it is out. */
json_t *cohi_links_peer_run(cohi_links_peers *peers, unsigned index);

/* What it says it is, and how it was started. */
json_t *cohi_links_peer_json(const cohi_links_peers *peers, unsigned index);

/* ---- the report ---- */

/* `turns` is an array of {"ours": [rows], "peers": {name: times}}, `peers` what they are. Writes it as
 * asked for; 0, or -1. */
int cohi_links_report(const cohi_links_options *options, const json_t *turns, json_t *peers);

#endif
