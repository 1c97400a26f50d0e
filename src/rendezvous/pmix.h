/*
 * pmix.h - what is called of libpmix.so.2, by a table that is filled at run time.
 *
 * It is declared here, so that Cohort is built without PMIx's headers and runs without PMIx. The interface
 * is a published standard and stable by the library's name; tests/unit/pmix_types_test.c compares these
 * declarations with PMIx's own, where its headers are installed.
 */
#ifndef COHI_RENDEZVOUS_PMIX_H
#define COHI_RENDEZVOUS_PMIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Constants of its headers. */
enum {
    COHI_PMIX_SPACE_BYTES = 256, /* PMIX_MAX_NSLEN + 1 */
    COHI_PMIX_KEY_BYTES = 512,   /* PMIX_MAX_KEYLEN + 1 */
    COHI_PMIX_SUCCESS = 0,
    COHI_PMIX_ERR_TIMEOUT = -24,
    COHI_PMIX_ERR_NOT_FOUND = -46,
    COHI_PMIX_STRING = 3,
    COHI_PMIX_INT = 6,
    COHI_PMIX_UINT32 = 14,
    COHI_PMIX_GLOBAL = 3 /* for ranks of this host and of others */
};
#define COHI_PMIX_ALL_RANKS  (UINT32_MAX - 1) /* PMIX_RANK_WILDCARD */
#define COHI_PMIX_JOB_SIZE   "pmix.job.size"
#define COHI_PMIX_LOCAL_SIZE "pmix.local.size"
#define COHI_PMIX_TIMEOUT    "pmix.timeout"

/* pmix_proc_t */
typedef struct cohi_pmix_rank {
    char space[COHI_PMIX_SPACE_BYTES];
    uint32_t rank;
} cohi_pmix_rank;

/* pmix_value_t */
typedef struct cohi_pmix_value {
    uint16_t type;
    union {
        char *string;
        int integer;
        uint32_t uint32;
        void *most[3]; /* it has larger ones */
    } data;
} cohi_pmix_value;

/* pmix_info_t */
typedef struct cohi_pmix_info {
    char key[COHI_PMIX_KEY_BYTES];
    uint32_t flags;
    cohi_pmix_value value;
} cohi_pmix_info;

/* X(what it returns, name, parameters), in the types of the caller's names for rank, value and info. */
#define COHI_PMIX_TABLE(X, RANK, VALUE, INFO)                                             \
    X(int, PMIx_Init, (RANK * self, INFO * info, size_t count))                           \
    X(int, PMIx_Finalize, (const INFO *info, size_t count))                               \
    X(int, PMIx_Put, (uint8_t scope, const char *key, VALUE *value))                      \
    X(int, PMIx_Commit, (void))                                                           \
    X(int, PMIx_Get,                                                                      \
      (const RANK *rank, const char *key, const INFO *info, size_t count, VALUE **value)) \
    X(const char *, PMIx_Error_string, (int status))

typedef struct cohi_pmix {
#define COHI_PMIX_DECLARE(returns, name, parameters) returns(*name) parameters;
    COHI_PMIX_TABLE(COHI_PMIX_DECLARE, cohi_pmix_rank, cohi_pmix_value, cohi_pmix_info)
#undef COHI_PMIX_DECLARE
} cohi_pmix;

/* Opens the library, which stays open; false, and `reason` says why. */
bool cohi_pmix_open(cohi_pmix *pmix, char *reason, size_t room);

#endif
