/*
 * bench/links.c - `cohort bench links`: what engine tcp makes of connections between two hosts, sealed
 * and in the clear, beside bare loops on the same cores (bench/limit/limit_link.h) and other libraries.
 *
 * The ranks of this machine play two hosts. For each way there is a job of its own; in it Cohort's calls
 * and the bare loop take turns, round by round, and rank 0 takes the time. Jobs and other libraries take
 * turns too.
 */
#include "bench/links.h"

#include "bench/bench.h"
#include "command.h"
#include "flags.h"

#include "base/config.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_BY_ITSELF = 31, ROUNDS_IN_A_TURN = 9, TURNS = 5 };

/* ---- jobs ---- */

/* How the ranks of a job talk, and by which algorithm they reduce. */
struct way {
    int sealed;
    const char *algorithm;
};

/* Those of several ranks on a host, and of one. "ring" and its kin know of no hosts. */
static const char *const by_levels[] = {
    "two-level", "two-level-ordered", "recursive-doubling", "halving-doubling", "ring", "pairwise",
    NULL};

static const char *const *algorithms(const cohi_links_options *chosen)
{
    enum { OF_LEVELS = 2 };
    return chosen->ranks > 1 ? by_levels : by_levels + OF_LEVELS;
}

static void take_line(void *arg, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    if (line)
        json_array_append_new(arg, line);
    else
        fprintf(stderr, "%s\n", text);
}

static int run_job(const cohi_links_options *chosen, const char *self, const struct way *way,
                   json_t *rows)
{
    char rounds[24], ranks[24], all[24], forced[64];
    snprintf(forced, sizeof forced, "COHORT_ALL_REDUCE=%s", way->algorithm);
    snprintf(rounds, sizeof rounds, "%llu", (unsigned long long)chosen->rounds);
    snprintf(ranks, sizeof ranks, "%llu", (unsigned long long)chosen->ranks);
    snprintf(all, sizeof all, "%llu", 2 * (unsigned long long)chosen->ranks);
    const char *arguments[] = {self,
                               "run",
                               "-n",
                               all,
                               "--pretend-hosts",
                               "2",
                               "--env",
                               way->sealed ? "COHORT_NET=seal" : "COHORT_NET=clear",
                               "--env",
                               forced,
                               self,
                               "bench",
                               "links",
                               way->sealed ? "--worker-sealed" : "--worker",
                               "--rounds",
                               rounds,
                               "--ranks",
                               ranks,
                               NULL};
    cohi_bench_child child = {
        .arguments = (char *const *)(uintptr_t)arguments, .take = take_line, .arg = rows};
    int status = cohi_bench_child_run(&child);
    if (cohi_bench_stopped())
        return 128 + cohi_bench_stopped();
    return status < 0 ? EXIT_FAILURE : status;
}

/* Times as a peer's are. */
static json_t *times_of(const json_t *rows)
{
    json_t *times = json_object();
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "benchmark"));
        char key[96];
        if (strcmp(name, "all_reduce") != 0)
            continue;
        snprintf(key, sizeof key, "%s %lld", name,
                 (long long)json_integer_value(json_object_get(row, "bytes")));
        json_object_set(times, key, json_object_get(row, "median_ns"));
    }
    return times;
}

static int run_choices(const cohi_links_options *chosen, const char *self, json_t *theirs)
{
    int status = 0;
    for (const char *const *name = algorithms(chosen); *name && status == 0; name++) {
        json_t *rows = json_array();
        status = run_job(chosen, self, &(struct way){0, *name}, rows);
        json_object_set_new(theirs, *name, times_of(rows));
        json_decref(rows);
    }
    return status;
}

static int run_turn(const cohi_links_options *chosen, const char *self, cohi_links_peers *peers,
                    json_t *turns)
{
    json_t *ours = json_array(), *theirs = json_object();
    int status = run_job(chosen, self, &(struct way){0, "auto"}, ours);
    if (status == 0 && !chosen->choices)
        status = run_job(chosen, self, &(struct way){1, "auto"}, ours);
    if (status == 0 && chosen->choices)
        status = run_choices(chosen, self, theirs);
    for (unsigned i = 0; cohi_links_peer_name(i) && peers && status == 0; i++) {
        json_t *times = cohi_links_peer_run(peers, i);
        if (times)
            json_object_set_new(theirs, cohi_links_peer_name(i), times);
        status = cohi_bench_stopped() ? 128 + cohi_bench_stopped() : 0;
    }
    json_array_append_new(turns, json_pack("{s:o, s:o}", "ours", ours, "peers", theirs));
    return status;
}

static json_t *list_peers(const cohi_links_options *chosen, const cohi_links_peers *peers)
{
    json_t *list = json_array();
    for (const char *const *name = algorithms(chosen); *name && chosen->choices; name++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s+}", "name", *name, "version",
                                              "algorithm that is asked for", "command",
                                              "COHORT_ALL_REDUCE=", *name));
    for (unsigned i = 0; cohi_links_peer_name(i) && peers; i++) {
        json_t *peer = cohi_links_peer_json(peers, i);
        if (peer)
            json_array_append_new(list, peer);
    }
    return list;
}

static int run_all(const cohi_links_options *chosen)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return EXIT_FAILURE;
    self[length] = '\0';
    cohi_bench_catch_signals();
    cohi_links_peers *peers = chosen->against ? cohi_links_peers_open(chosen, self) : NULL;
    if (chosen->against && !peers)
        return EXIT_FAILURE;
    json_t *turns = json_array();
    int status = cohi_bench_stopped() ? 128 + cohi_bench_stopped() : 0;
    for (uint64_t i = 0; i < chosen->turns && status == 0; i++)
        status = run_turn(chosen, self, peers, turns);
    json_t *list = list_peers(chosen, peers);
    if (status == 0 && cohi_links_report(chosen, turns, list) != 0)
        status = EXIT_FAILURE;
    json_decref(list);
    json_decref(turns);
    cohi_links_peers_close(peers);
    return status;
}

/* ---- the command ---- */

static int take_rounds(void *target, const char *flag, const char *value)
{
    return cohi_parse_count(flag, value, 1, COHI_LINKS_ROUNDS_MAX,
                            &((cohi_links_options *)target)->rounds)
                   == COH_OK
               ? 0
               : -1;
}

static int take_turns(void *target, const char *flag, const char *value)
{
    return cohi_parse_count(flag, value, 1, COHI_LINKS_ROUNDS_MAX,
                            &((cohi_links_options *)target)->turns)
                   == COH_OK
               ? 0
               : -1;
}

static int take_ranks(void *target, const char *flag, const char *value)
{
    return cohi_parse_count(flag, value, 1, COHI_LINKS_RANKS_MAX,
                            &((cohi_links_options *)target)->ranks)
                   == COH_OK
               ? 0
               : -1;
}

static int add_peer(cohi_links_options *chosen, const char *flag, const char *name, size_t length)
{
    for (unsigned i = 0; cohi_links_peer_name(i); i++)
        if (strlen(cohi_links_peer_name(i)) == length
            && strncmp(cohi_links_peer_name(i), name, length) == 0) {
            chosen->against |= 1u << i;
            return 0;
        }
    cohi_fail(COH_INVALID_ARGUMENT, "%s: there is no '%.*s'; there are openmpi, gloo, mlx", flag,
              (int)length, name);
    return -1;
}

static int take_against(void *target, const char *flag, const char *value)
{
    int status = 0;
    for (const char *at = value; status == 0 && *at;) {
        size_t length = strcspn(at, ",");
        status = add_peer(target, flag, at, length);
        at += length + (at[length] == ',');
    }
    return status;
}

static int take_choices(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((cohi_links_options *)target)->choices = 1;
    return 0;
}

static int take_html(void *target, const char *flag, const char *value)
{
    (void)flag;
    ((cohi_links_options *)target)->html = value;
    return 0;
}

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag, (void)value;
    ((cohi_links_options *)target)->json = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"rounds", 0, "COUNT", "how often each is measured in a job, 1 to 1000 (31; with --against 9)",
     take_rounds},
    {"ranks", 0, "COUNT", "ranks of each of the two hosts, 1 to 64 (1)", take_ranks},
    {"against", 0, "LIST", "other libraries over TCP, of openmpi, gloo, mlx", take_against},
    {"turns", 0, "COUNT", "how often jobs and libraries take turns (1; with --against 5)",
     take_turns},
    {"choices", 0, NULL, "every algorithm of all_reduce beside the one that is chosen",
     take_choices},
    {"html", 0, "FILE", "write a page, too", take_html},
    {"json", 0, NULL, "print one JSON object", take_json},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort bench links",
    .synopsis = "[FLAGS...]",
    .summary =
        "Measures messages, puts and all_reduces between two hosts that this machine plays, "
        "by engine tcp,\n"
        "sealed and in the clear, beside bare sockets, a bare loop that seals and opens, and "
        "other\n"
        "libraries: Open MPI (mpicc.openmpi), Gloo (its headers and c++), MLX (python3 that "
        "imports\n"
        "mlx.core). What is not there is told, and left out.",
    .flags = flags,
};

/* To be asked before a rank is bound to a core. */
static int is_crowded(uint64_t ranks)
{
    unsigned char cores[COHI_OS_CORE_BYTES] = {0};
    cohi_os_cores(cores);
    return 2 * ranks > (uint64_t)cohi_os_cores_in(cores);
}

int cohi_bench_links(int argc, char **argv)
{
    cohi_links_options chosen = {.ranks = 1};
    int status;
    chosen.sealed = argc > 1 && strcmp(argv[1], "--worker-sealed") == 0;
    chosen.worker = chosen.sealed || (argc > 1 && strcmp(argv[1], "--worker") == 0);
    if (cohi_flags_only(&usage, argc - chosen.worker, argv + chosen.worker, &chosen, &status) != 0)
        return status;
    int beside = chosen.against || chosen.choices;
    if (chosen.against && chosen.choices) {
        fprintf(stderr, "cohort bench links: --against and --choices are two reports\n");
        return 2;
    }
    if (!chosen.rounds)
        chosen.rounds = beside ? ROUNDS_IN_A_TURN : ROUNDS_BY_ITSELF;
    if (!chosen.turns)
        chosen.turns = beside ? TURNS : 1;
    chosen.crowded = is_crowded(chosen.ranks);
    return chosen.worker ? cohi_links_worker(&chosen) : run_all(&chosen);
}
