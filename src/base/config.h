/*
 * config.h - every environment knob, as a row of one table.
 *
 * A knob is read when a world is made, so that two worlds of a process may differ. An unset or
 * empty variable means the default.
 */
#ifndef COHI_BASE_CONFIG_H
#define COHI_BASE_CONFIG_H

#include <cohort.h>
#include <stdint.h>

typedef enum cohi_knob_type {
    COHI_KNOB_TEXT,    /* const char *, as given */
    COHI_KNOB_SECRET,  /* the same, and never shown */
    COHI_KNOB_SIZE,    /* uint64_t bytes: 64K, 2G; "auto" is 0 */
    COHI_KNOB_SECONDS, /* uint64_t nanoseconds: 30, 0.5, 500ms, 2m; "off" is 0 */
    COHI_KNOB_FLAG,    /* uint64_t 0 or 1: 0/1, no/yes, off/on */
    COHI_KNOB_LEVEL,   /* uint64_t, a coh_log_level by name */
    COHI_KNOB_CHECK,   /* uint64_t, a cohi_check_level: as a flag, or "order" */
    COHI_KNOB_NET      /* uint64_t, a cohi_net: "seal" or "clear" */
} cohi_knob_type;

/* What COHORT_CHECK asks for. */
typedef enum cohi_check_level {
    COHI_CHECK_OFF = 0,
    COHI_CHECK_BOUNDS = 1, /* put and get against the allocation */
    COHI_CHECK_ORDER = 2   /* the race check: core/onesided/race.h */
} cohi_check_level;

/* What COHORT_NET asks for: how bytes travel between hosts, behind a handshake in any case. */
typedef enum cohi_net { COHI_NET_SEAL = 0, COHI_NET_CLEAR = 1 } cohi_net;

/* The row of a collective whose algorithm can be forced by name. */
#define COHI_ALGORITHM_KNOB(X, field, variable)                                             \
    X(field, COHI_KNOB_TEXT, variable, "auto",                                              \
      "the algorithm of " #field ", by name, on rank 0 (cohort info --collectives); auto: " \
      "the one that the model expects to be fastest")

/* Those of all collectives: X as below. */
#define COHI_ALGORITHM_KNOBS(X)                                     \
    COHI_ALGORITHM_KNOB(X, all_reduce, "COHORT_ALL_REDUCE")         \
    COHI_ALGORITHM_KNOB(X, reduce, "COHORT_REDUCE")                 \
    COHI_ALGORITHM_KNOB(X, reduce_scatter, "COHORT_REDUCE_SCATTER") \
    COHI_ALGORITHM_KNOB(X, all_gather, "COHORT_ALL_GATHER")         \
    COHI_ALGORITHM_KNOB(X, gather, "COHORT_GATHER")                 \
    COHI_ALGORITHM_KNOB(X, scatter, "COHORT_SCATTER")               \
    COHI_ALGORITHM_KNOB(X, broadcast, "COHORT_BROADCAST")           \
    COHI_ALGORITHM_KNOB(X, all_to_all, "COHORT_ALL_TO_ALL")         \
    COHI_ALGORITHM_KNOB(X, scan, "COHORT_SCAN")

/* X(field of cohi_config, type, variable, default, help) */
#define COHI_KNOB_TABLE(X)                                                                         \
    X(engine, COHI_KNOB_TEXT, "COHORT_ENGINE", "any",                                              \
      "engine that connects the ranks: any, shm, threads, tcp, ucx, mpi, mlx:ring, sim, "          \
      "sim:channel; nvshmem, or behind a plus as in tcp+nvshmem: also for heaps on a card")        \
    X(heap, COHI_KNOB_SIZE, "COHORT_HEAP", "auto",                                                 \
      "most bytes that each rank's heap can grow to; auto: the host's memory, as far as the "      \
      "address space allows; in steps of 2M")                                                      \
    X(card_heap, COHI_KNOB_SIZE, "COHORT_CARD_HEAP", "auto",                                       \
      "bytes of a heap on a card that nobody gave a size, with an engine that takes them all "     \
      "at once (nvshmem); auto: 1G, or a quarter of the card where its ranks have less")           \
    X(nvshmem, COHI_KNOB_TEXT, "COHORT_NVSHMEM", "",                                               \
      "NVSHMEM's library (libnvshmem_host.so.3), or its folder, for engine nvshmem; by itself "    \
      "where the loader and Python look")                                                          \
    X(nvshmem_collectives, COHI_KNOB_TEXT, "COHORT_NVSHMEM_COLLECTIVES", "ours",                   \
      "whose collectives engine nvshmem takes on a stream, by rank 0: ours, nvshmem; auto: the "   \
      "faster ones, by measurement at start")                                                      \
    X(huge_pages, COHI_KNOB_FLAG, "COHORT_HUGE_PAGES", "on",                                       \
      "ask the kernel for huge pages under the heap")                                              \
    X(check, COHI_KNOB_CHECK, "COHORT_CHECK", "off",                                               \
      "on: check put and get against the allocation, not only the heap; order: show what a "       \
      "forgotten barrier, wait, quiet or fence does (docs/race-check.md)")                         \
    X(log, COHI_KNOB_LEVEL, "COHORT_LOG", "off",                                                   \
      "messages on standard error: off, error, warn, info, debug")                                 \
    X(warn, COHI_KNOB_SECONDS, "COHORT_WARN", "5",                                                 \
      "warn when a call has waited this long for another rank")                                    \
    X(stall, COHI_KNOB_SECONDS, "COHORT_STALL", "30",                                              \
      "a rank stopped, or stuck inside Cohort, for this long while others wait is STALLED")        \
    X(timeout, COHI_KNOB_SECONDS, "COHORT_TIMEOUT", "off",                                         \
      "fail any call that waits this long, even for a rank that is only busy")                     \
    X(link_timeout, COHI_KNOB_SECONDS, "COHORT_LINK_TIMEOUT", "10",                                \
      "how long a rank on another host may be silent before it counts as lost")                    \
    X(net_interface, COHI_KNOB_TEXT, "COHORT_NET_INTERFACE", "",                                   \
      "the network between hosts: an interface (eth0) or a subnet (10.0.0.0/8, fd00::/8); by "     \
      "itself all that are up")                                                                    \
    X(ports, COHI_KNOB_TEXT, "COHORT_PORTS", "",                                                   \
      "ports at which ranks listen for those of other hosts, first-last; by itself any")           \
    X(congestion, COHI_KNOB_TEXT, "COHORT_CONGESTION", "auto",                                     \
      "congestion control of links between hosts: auto, the system's, but none that paces (bbr) "  \
      "where the round trip is below a millisecond; system; or a name, such as cubic")             \
    X(net, COHI_KNOB_NET, "COHORT_NET", "seal",                                                    \
      "what travels between hosts: seal, encrypted and authenticated; clear, as it is, on a "      \
      "network that is trusted (docs/security.md)")                                                \
    X(port, COHI_KNOB_TEXT, "COHORT_PORT", "",                                                     \
      "the port at which rank 0 waits for other hosts under torchrun and the like; by itself the " \
      "one after MASTER_PORT")                                                                     \
    X(secret, COHI_KNOB_SECRET, "COHORT_SECRET", "",                                               \
      "what ranks of several hosts prove themselves by under torchrun and the like: 64 "           \
      "hexadecimal digits, the same on all (openssl rand -hex 32)")                                \
    X(secret_file, COHI_KNOB_TEXT, "COHORT_SECRET_FILE", "",                                       \
      "the file that has it, which nobody else may read")                                          \
    X(init_timeout, COHI_KNOB_SECONDS, "COHORT_INIT_TIMEOUT", "30",                                \
      "how long to wait at init since the last rank that came, up to ten times that in all")       \
    X(spin, COHI_KNOB_TEXT, "COHORT_SPIN", "auto",                                                 \
      "how often to look again before yielding the core; auto: by what else wants it")             \
    X(kernels, COHI_KNOB_TEXT, "COHORT_KERNELS", "auto",                                           \
      "instructions to reduce and convert with: auto, avx512bf16, avx512, avx2, neon or portable") \
    X(host, COHI_KNOB_TEXT, "COHORT_HOST", "",                                                     \
      "the host that this process plays: processes of one machine with different ones do not map " \
      "each other's memory")                                                                       \
    X(modules, COHI_KNOB_TEXT, "COHORT_MODULES", "",                                               \
      "the folder to look for engines in first, such as cohort-tcp.so")                            \
    X(mlx, COHI_KNOB_TEXT, "COHORT_MLX", "",                                                       \
      "the file libmlx.so for the engines mlx:...; by itself the loader's, or that of a Python")   \
    X(sim, COHI_KNOB_TEXT, "COHORT_SIM", "",                                                       \
      "the simulator's script: seed=N, kill=RANK@STEP, stall=RANK@STEP, ... (docs/sim.md)")        \
    X(fault, COHI_KNOB_TEXT, "COHORT_FAULT", "",                                                   \
      "break this job on purpose: ACTION@OPERATION[:NTH][,rank=R]; actions kill, stop, exit, "     \
      "crash, fail (at commit only)")                                                              \
    X(deterministic, COHI_KNOB_FLAG, "COHORT_DETERMINISTIC", "off",                                \
      "reduce in rank order only: the same bits whatever the algorithm, size and placement")       \
    X(profile, COHI_KNOB_TEXT, "COHORT_PROFILE", "",                                               \
      "the file of what was measured on this host; by itself cohort/profile-... in the user's "    \
      "cache folder; described: none of it, and no measuring; fresh: all measured anew "           \
      "(cohort info --host)")                                                                      \
    COHI_ALGORITHM_KNOBS(X)                                                                        \
    X(rank, COHI_KNOB_TEXT, "COHORT_RANK", "", "set by cohort run: this process's rank")           \
    X(size, COHI_KNOB_TEXT, "COHORT_SIZE", "", "set by cohort run: how many ranks there are")      \
    X(job_fd, COHI_KNOB_TEXT, "COHORT_JOB_FD", "",                                                 \
      "set by cohort run: the descriptor on which the job is described")

#define COHI_KNOB_FIELD_COHI_KNOB_TEXT    const char *
#define COHI_KNOB_FIELD_COHI_KNOB_SECRET  const char *
#define COHI_KNOB_FIELD_COHI_KNOB_SIZE    uint64_t
#define COHI_KNOB_FIELD_COHI_KNOB_SECONDS uint64_t
#define COHI_KNOB_FIELD_COHI_KNOB_FLAG    uint64_t
#define COHI_KNOB_FIELD_COHI_KNOB_LEVEL   uint64_t
#define COHI_KNOB_FIELD_COHI_KNOB_CHECK   uint64_t
#define COHI_KNOB_FIELD_COHI_KNOB_NET     uint64_t

/* Texts point into the environment or the table: copy what must outlive a setenv. */
typedef struct cohi_config {
#define COHI_KNOB_DECLARE(field, type, variable, default_text, help) COHI_KNOB_FIELD_##type field;
    COHI_KNOB_TABLE(COHI_KNOB_DECLARE)
#undef COHI_KNOB_DECLARE
} cohi_config;

/* Reads all knobs. COH_INVALID_ARGUMENT names the variable, its value and what it may be. */
coh_status cohi_config_load(cohi_config *config);

/* One row of the table, for printing. */
typedef struct cohi_knob {
    cohi_knob_type type;
    const char *variable;
    const char *default_text;
    const char *help;
} cohi_knob;

/* The rows by index from 0; NULL past the last. */
const cohi_knob *cohi_knob_at(size_t index);

/* The parsers, for command-line flags of the same types. `what` names the flag in the error. */
coh_status cohi_parse_size(const char *what, const char *text, uint64_t *bytes);
coh_status cohi_parse_seconds(const char *what, const char *text, uint64_t *nanoseconds);
coh_status cohi_parse_count(const char *what, const char *text, uint64_t least, uint64_t most,
                            uint64_t *count);

#endif
