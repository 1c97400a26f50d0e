/* opcode.h - the operations that a rank can be in, by the names that errors and `cohort ps` use. */
#ifndef COHI_BASE_OPCODE_H
#define COHI_BASE_OPCODE_H

/* X(constant, value, name). The last ones are the collectives in the order of COH_COLLECTIVE_TABLE:
 * that of a kind is COHI_OP_COLLECTIVE plus the kind. */
#define COHI_OPCODE_TABLE(X)                        \
    X(COHI_OP_NONE, 0, "outside Cohort")            \
    X(COHI_OP_INIT, 1, "init")                      \
    X(COHI_OP_FINALIZE, 2, "finalize")              \
    X(COHI_OP_MALLOC, 3, "malloc")                  \
    X(COHI_OP_CALLOC, 4, "calloc")                  \
    X(COHI_OP_ALIGN, 5, "align")                    \
    X(COHI_OP_REALLOC, 6, "realloc")                \
    X(COHI_OP_FREE, 7, "free")                      \
    X(COHI_OP_PUT, 8, "put")                        \
    X(COHI_OP_GET, 9, "get")                        \
    X(COHI_OP_FENCE, 10, "fence")                   \
    X(COHI_OP_QUIET, 11, "quiet")                   \
    X(COHI_OP_SYNC, 12, "sync")                     \
    X(COHI_OP_BARRIER, 13, "barrier")               \
    X(COHI_OP_COMMIT, 14, "commit")                 \
    X(COHI_OP_ATOMIC, 15, "atomic")                 \
    X(COHI_OP_SIGNAL, 16, "signal")                 \
    X(COHI_OP_WAIT, 17, "wait")                     \
    X(COHI_OP_SPLIT, 18, "team_split")              \
    X(COHI_OP_SPLIT_COLOR, 19, "team_split_color")  \
    X(COHI_OP_FROM_LIST, 20, "team_from_list")      \
    X(COHI_OP_DESTROY, 21, "team_destroy")          \
    X(COHI_OP_TEAM_SYNC, 22, "team_sync")           \
    X(COHI_OP_SEND, 23, "send")                     \
    X(COHI_OP_RECEIVE, 24, "receive")               \
    X(COHI_OP_LOCK, 25, "lock")                     \
    X(COHI_OP_REGISTER, 26, "register")             \
    X(COHI_OP_UNREGISTER, 27, "unregister")         \
    X(COHI_OP_TEAM_BARRIER, 28, "team_barrier")     \
    X(COHI_OP_ALL_REDUCE, 29, "all_reduce")         \
    X(COHI_OP_REDUCE, 30, "reduce")                 \
    X(COHI_OP_REDUCE_SCATTER, 31, "reduce_scatter") \
    X(COHI_OP_ALL_GATHER, 32, "all_gather")         \
    X(COHI_OP_GATHER, 33, "gather")                 \
    X(COHI_OP_SCATTER, 34, "scatter")               \
    X(COHI_OP_BROADCAST, 35, "broadcast")           \
    X(COHI_OP_ALL_TO_ALL, 36, "all_to_all")         \
    X(COHI_OP_SCAN, 37, "scan")                     \
    X(COHI_OP_SCAN_EXCLUSIVE, 38, "scan_exclusive")

typedef enum cohi_opcode {
#define COHI_OPCODE_ENUM(constant, value, name) constant = value,
    COHI_OPCODE_TABLE(COHI_OPCODE_ENUM)
#undef COHI_OPCODE_ENUM
        COHI_OP_COLLECTIVE = COHI_OP_TEAM_BARRIER
} cohi_opcode;

/* "barrier"; "an unknown operation" for a value not in the table (another version's). */
const char *cohi_opcode_name(unsigned opcode);

/* The opcode of a name, or COHI_OP_NONE. */
cohi_opcode cohi_opcode_named(const char *name, unsigned long length);

#endif
