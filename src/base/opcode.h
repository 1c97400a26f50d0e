/* opcode.h - the operations that a rank can be in, by the names that errors and `cohort ps` use. */
#ifndef COHI_BASE_OPCODE_H
#define COHI_BASE_OPCODE_H

/* X(constant, value, name) */
#define COHI_OPCODE_TABLE(X)             \
    X(COHI_OP_NONE, 0, "outside Cohort") \
    X(COHI_OP_INIT, 1, "init")           \
    X(COHI_OP_FINALIZE, 2, "finalize")   \
    X(COHI_OP_MALLOC, 3, "malloc")       \
    X(COHI_OP_CALLOC, 4, "calloc")       \
    X(COHI_OP_ALIGN, 5, "align")         \
    X(COHI_OP_REALLOC, 6, "realloc")     \
    X(COHI_OP_FREE, 7, "free")           \
    X(COHI_OP_PUT, 8, "put")             \
    X(COHI_OP_GET, 9, "get")             \
    X(COHI_OP_FENCE, 10, "fence")        \
    X(COHI_OP_QUIET, 11, "quiet")        \
    X(COHI_OP_SYNC, 12, "sync")          \
    X(COHI_OP_BARRIER, 13, "barrier")    \
    X(COHI_OP_COMMIT, 14, "commit")

typedef enum cohi_opcode {
#define COHI_OPCODE_ENUM(constant, value, name) constant = value,
    COHI_OPCODE_TABLE(COHI_OPCODE_ENUM)
#undef COHI_OPCODE_ENUM
} cohi_opcode;

/* "barrier"; "an unknown operation" for a value not in the table (another version's). */
const char *cohi_opcode_name(unsigned opcode);

/* The opcode of a name, or COHI_OP_NONE. */
cohi_opcode cohi_opcode_named(const char *name, unsigned long length);

#endif
