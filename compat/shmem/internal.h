/*
 * internal.h - what the chapters of the library share. Everything below stands on cohort.h alone.
 *
 * Private names begin with shmemi_, as in the public header.
 */
#ifndef SHMEMI_INTERNAL_H
#define SHMEMI_INTERNAL_H

#define SHMEM_GENERIC_C11_H /* the names of routines must stay names here */
#include <cohort.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdint.h>

/* Begins the definition of a routine: its twin is the strong one, its own name a weak alias. */
#define SHMEMI_DEFINE(result, name, arguments)                            \
    extern result name arguments __attribute__((weak, alias("p" #name))); \
    result p##name arguments

/* Defines a routine without and with a context: `statement` finds it in `ctx`. */
#define SHMEMI_ALL(...) __VA_ARGS__
#define SHMEMI_DEFINE_PAIR(result, name, parameters, statement)                       \
    SHMEMI_DEFINE(result, shmem_##name, (SHMEMI_ALL parameters))                      \
    {                                                                                 \
        const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                                    \
        statement                                                                     \
    }                                                                                 \
    SHMEMI_DEFINE(result, shmem_ctx_##name, (shmem_ctx_t ctx, SHMEMI_ALL parameters)) \
    {                                                                                 \
        statement                                                                     \
    }

/* The routine's own name, inside its definition: the function is the twin. */
#define SHMEMI_NAME (__func__ + 1)

#define SHMEMI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define SHMEMI_INLINE            static inline __attribute__((always_inline))

/* What the calls of this process stand on; world is NULL when the library is not initialized. */
struct shmemi_state {
    coh_world *world;
    int pe;
    int npes;
};
extern struct shmemi_state shmemi;

/*
 * The one way out of a misuse or a failure: a message on standard error that names the PE, the
 * routine, its arguments (`format`) and what Cohort found, and the end of the whole job.
 */
_Noreturn void shmemi_fail(const char *routine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the job with a reason of our own, in place of Cohort's last error. */
_Noreturn void shmemi_refuse(const char *routine, const char *reason);

/* Cohort's error message in terms of PEs, without the call that it names at its start. Returns
 * `room`; what does not fit is cut off. (messages.c) */
enum { SHMEMI_TEXT_BYTES = 1024 };
const char *shmemi_translate(const char *text, char *room, size_t bytes);

/* Not initialized: refused. */
SHMEMI_INLINE void shmemi_enter(const char *routine)
{
    if (!SHMEMI_LIKELY(shmemi.world))
        shmemi_refuse(routine, "the library is not initialized; shmem_init comes first");
}

/* Bytes of `count` elements; SIZE_MAX, which no memory has, where the product overflows. */
SHMEMI_INLINE size_t shmemi_bytes(size_t count, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

/* ---- types ---- */

#define SHMEMI_DTYPE_OF_SIZE(bytes, is_signed)          \
    ((bytes) == 1   ? ((is_signed) ? COH_I8 : COH_U8)   \
     : (bytes) == 2 ? ((is_signed) ? COH_I16 : COH_U16) \
     : (bytes) == 4 ? ((is_signed) ? COH_I32 : COH_U32) \
                    : ((is_signed) ? COH_I64 : COH_U64))

/* Cohort's name of a C type; 0 for those that it has none for. */
/* clang-format off: it takes an association for a label */
#define SHMEMI_DTYPE(T)                                             \
    _Generic((T)0, float                                            \
             : COH_F32, double                                      \
             : COH_F64, long double                                 \
             : (coh_dtype)0, float _Complex                         \
             : (coh_dtype)0, double _Complex                        \
             : (coh_dtype)0, char                                   \
             : SHMEMI_DTYPE_OF_SIZE(1, (char)-1 < 0), signed char   \
             : COH_I8, unsigned char                                \
             : COH_U8, short                                        \
             : COH_I16, unsigned short                              \
             : COH_U16, int                                         \
             : COH_I32, unsigned int                                \
             : COH_U32, long                                        \
             : SHMEMI_DTYPE_OF_SIZE(sizeof(long), 1), unsigned long \
             : SHMEMI_DTYPE_OF_SIZE(sizeof(long), 0), long long     \
             : COH_I64, unsigned long long                          \
             : COH_U64)
/* clang-format on */

/* ---- teams (teams.c) ---- */

struct shmemi_team {
    coh_team *team; /* NULL: destroyed, or there is none */
    shmem_team_config_t config;
    struct shmemi_team *next;
};

extern struct shmemi_team shmemi_predefined[3]; /* by handle: invalid, world, shared */

/* What a handle stands for. */
SHMEMI_INLINE struct shmemi_team *shmemi_team(shmem_team_t handle)
{
    uintptr_t small = (uintptr_t)handle;
    return small < 3 ? &shmemi_predefined[small] : handle;
}

void shmemi_open_teams(void);
void shmemi_close_teams(void);

/* ---- contexts (contexts.c) ---- */

struct shmemi_ctx {
    coh_context *context; /* NULL: on the world's own stream */
    coh_team *team;       /* whose indices PEs are given in; NULL: the world's */
    shmem_team_t handle;  /* of that team */
    struct shmemi_ctx *next;
};

/* The contexts of a team that is destroyed; of all, when `team` is SHMEM_TEAM_WORLD. */
void shmemi_close_contexts(shmem_team_t team);

/* Invalid ones are refused. */
SHMEMI_INLINE void shmemi_check_ctx(const char *routine, shmem_ctx_t ctx)
{
    shmemi_enter(routine);
    if (!SHMEMI_LIKELY(ctx != SHMEM_CTX_INVALID))
        shmemi_refuse(routine, "the context is SHMEM_CTX_INVALID");
}

/* The stream of a context that is not the default one, or NULL: the world's. */
SHMEMI_INLINE coh_context *shmemi_stream(shmem_ctx_t ctx)
{
    return ctx == SHMEM_CTX_DEFAULT ? NULL : ctx->context;
}

/* The rank of a context's PE, -1 when there is none. */
SHMEMI_INLINE int shmemi_rank(shmem_ctx_t ctx, int pe)
{
    return ctx == SHMEM_CTX_DEFAULT || !ctx->team ? pe : coh_team_rank(ctx->team, pe);
}

/* ---- waits (sync.c) ---- */

/* Counts this thread's calls that find any of several words. */
extern _Thread_local size_t shmemi_turn;

/* ---- the program's variables (globals.c) ---- */

/* Bytes that they take of the heap. */
size_t shmemi_globals_bytes(void);

/* Makes them symmetric; false, with Cohort's error message, where that is not possible. */
bool shmemi_open_globals(void);

/* ---- collectives (reduce.c) ---- */

/* The operations, as Cohort has them, on an array of a type that Cohort has or not. */
typedef void shmemi_combine(void *into, const void *from, size_t count);

struct shmemi_kind {
    coh_dtype dtype; /* 0: none of Cohort's */
    coh_reduce_op op;
    size_t size;
    shmemi_combine *combine; /* into[i] = into[i] op from[i] */
};

int shmemi_team_reduce(const char *routine, shmem_team_t team, const struct shmemi_kind *kind,
                       void *dest, const void *source, size_t count);

#endif
