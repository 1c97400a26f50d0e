/* active_sets.c - the deprecated collectives, of PEs that are named by start, stride and size.
 *
 * A set of all PEs is the world's team. Any other has only its members' calls to stand on, so
 * there is no team for it: its members meet through pSync, put to each other, and read each
 * other's sources. Counters in pSync are added to and taken from, never set: a member that is
 * already in the next call does not disturb one that is still in this. They are zero when a call
 * is over, which is SHMEM_SYNC_VALUE.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { PASSED = SHMEM_SYNC_SIZE - 1, PIECE_BYTES = 64 << 10 }; /* PASSED: a word of pSync */

struct set {
    const char *routine;
    int start, stride, size;
    int index; /* this PE's; -1: it is not in the set */
    long *sync;
};

/* A PE that is not in the set has nothing to do, and its index is -1: the standard leaves such a
 * call undefined, and there are programs that make it on all PEs. */
static struct set set_of(const char *routine, int start, int log_stride, int size, long *sync)
{
    shmemi_enter(routine);
    long long last =
        log_stride >= 0 && log_stride < 31 ? start + ((long long)(size - 1) << log_stride) : -1;
    if (start < 0 || size < 1 || last < start || last >= shmemi.npes)
        shmemi_refuse(routine, "PE_start, logPE_stride and PE_size name PEs that are not there");
    int stride = 1 << log_stride, from_start = shmemi.pe - start;
    bool inside = from_start >= 0 && from_start % stride == 0 && from_start / stride < size;
    return (struct set){routine, start, stride, size, inside ? from_start / stride : -1, sync};
}

static bool is_world(const struct set *set)
{
    return set->size == shmemi.npes;
}

static int rank_of(const struct set *set, int index)
{
    return set->start + index * set->stride;
}

static void check(const struct set *set, coh_status status)
{
    if (status != COH_OK)
        shmemi_fail(set->routine, "PE_start=%d, stride=%d, PE_size=%d, pSync=%p", set->start,
                    set->stride, set->size, (void *)set->sync);
}

/* ---- meeting ---- */

static void add(const struct set *set, long *word, int64_t value, int rank)
{
    check(set, coh_atomic(shmemi.world, COH_ATOMIC_ADD, COH_I64, word, &value, rank));
}

/* In round k each tells the one 2^k further on that it, and all it heard of, have come. */
static void meet(const struct set *set)
{
    static const int64_t one = 1;
    long *word = set->sync;
    for (int distance = 1; distance < set->size; distance *= 2, word++) {
        add(set, word, 1, rank_of(set, (set->index + distance) % set->size));
        check(set, coh_wait_until(shmemi.world, COH_I64, word, COH_GE, &one, COH_ANY_RANK));
        add(set, word, -1, shmemi.pe);
    }
}

static void complete_and_meet(const struct set *set)
{
    check(set, coh_quiet(shmemi.world));
    meet(set);
}

SHMEMI_DEFINE(void, shmem_barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    struct set set = set_of(SHMEMI_NAME, PE_start, logPE_stride, PE_size, pSync);
    if (is_world(&set))
        check(&set, coh_barrier(shmemi.world));
    else if (set.index >= 0)
        complete_and_meet(&set);
}

SHMEMI_DEFINE(void, shmem_sync, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    struct set set = set_of(SHMEMI_NAME, PE_start, logPE_stride, PE_size, pSync);
    if (is_world(&set))
        check(&set, coh_sync(shmemi.world));
    else if (set.index >= 0)
        meet(&set);
}

/* ---- moving ---- */

static void put(const struct set *set, void *dest, const void *source, size_t bytes, int index)
{
    check(set, coh_put(shmemi.world, dest, source, bytes, rank_of(set, index)));
}

static void put_to_all(const struct set *set, void *dest, const void *source, size_t bytes)
{
    for (int i = 1; i <= set->size; i++) /* beginning behind oneself: not all at the same one */
        put(set, dest, source, bytes, (set->index + i) % set->size);
}

/* The root's own dest is not written: so it was before there were teams. */
static void broadcast(struct set set, void *dest, const void *source, size_t bytes, int root)
{
    bool mine = set.index == root;
    if (root < 0 || root >= set.size)
        shmemi_refuse(set.routine, "PE_root is not in the active set");
    if (set.index < 0)
        return;
    if (is_world(&set)) {
        void *target = mine ? (void *)(uintptr_t)source : dest;
        check(&set,
              coh_broadcast(coh_team_world(shmemi.world), COH_U8, source, target, bytes, root));
        return;
    }
    for (int i = 1; mine && i < set.size; i++)
        put(&set, dest, source, bytes, (set.index + i) % set.size);
    complete_and_meet(&set);
}

static void fcollect(struct set set, char *dest, const void *source, size_t bytes)
{
    if (set.index < 0)
        return;
    if (is_world(&set)) {
        check(&set, coh_all_gather(coh_team_world(shmemi.world), COH_U8, source, dest, bytes));
        return;
    }
    put_to_all(&set, dest + bytes * (size_t)set.index, source, bytes);
    complete_and_meet(&set);
}

/* Where this PE's part begins: what those before it have, told by the one before. One more than
 * that is passed, so that it is not zero. */
static size_t place_after(const struct set *set, size_t bytes)
{
    static const int64_t nothing = 0;
    long *passed = &set->sync[PASSED];
    int64_t begin = 0;
    if (set->index > 0) {
        check(set, coh_wait_until(shmemi.world, COH_I64, passed, COH_NE, &nothing, COH_ANY_RANK));
        begin = __atomic_exchange_n(passed, 0, __ATOMIC_ACQ_REL) - 1;
    }
    if (set->index + 1 < set->size)
        add(set, passed, begin + (int64_t)bytes + 1, rank_of(set, set->index + 1));
    return (size_t)begin;
}

static void collect(struct set set, char *dest, const void *source, size_t nelems, size_t size)
{
    size_t bytes = nelems * size;
    if (set.index < 0)
        return;
    if (is_world(&set)) {
        (void)pshmem_collectmem(SHMEM_TEAM_WORLD, dest, source, bytes);
        return;
    }
    put_to_all(&set, dest + place_after(&set, bytes), source, bytes);
    complete_and_meet(&set);
}

/* Element k of the block for member j is at (j * nelems + k) * sst, and goes to where dst says the
 * same for this PE's block. */
static void alltoalls(struct set set, char *dest, const char *source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t size)
{
    if (dst < 1 || sst < 1)
        shmemi_refuse(set.routine, "a stride is less than 1");
    if (set.index < 0)
        return;
    size_t to = (size_t)dst * size, from = (size_t)sst * size;
    for (int i = 1; nelems > 0 && i <= set.size; i++) {
        size_t member = (size_t)((set.index + i) % set.size);
        check(&set, coh_put_strided(shmemi.world, dest + (size_t)set.index * nelems * to, to,
                                    source + member * nelems * from, from, size, nelems,
                                    rank_of(&set, (int)member)));
    }
    complete_and_meet(&set);
}

static void alltoall(struct set set, char *dest, const char *source, size_t bytes)
{
    if (set.index < 0)
        return;
    if (is_world(&set)) {
        check(&set, coh_all_to_all(coh_team_world(shmemi.world), COH_U8, source, dest, bytes));
        return;
    }
    for (int i = 1; i <= set.size; i++) {
        int member = (set.index + i) % set.size;
        put(&set, dest + (size_t)set.index * bytes, source + (size_t)member * bytes, bytes, member);
    }
    complete_and_meet(&set);
}

#define SET set_of(SHMEMI_NAME, PE_start, logPE_stride, PE_size, pSync)

#define DEFINE_EXCHANGE(SIZE)                                                                     \
    SHMEMI_DEFINE(void, shmem_broadcast##SIZE,                                                    \
                  (void *dest, const void *source, size_t nelems, int PE_root, int PE_start,      \
                   int logPE_stride, int PE_size, long *pSync))                                   \
    {                                                                                             \
        broadcast(SET, dest, source, nelems *(SIZE / 8), PE_root);                                \
    }                                                                                             \
    SHMEMI_DEFINE(void, shmem_fcollect##SIZE,                                                     \
                  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
                   int PE_size, long *pSync))                                                     \
    {                                                                                             \
        fcollect(SET, dest, source, nelems *(SIZE / 8));                                          \
    }                                                                                             \
    SHMEMI_DEFINE(void, shmem_collect##SIZE,                                                      \
                  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
                   int PE_size, long *pSync))                                                     \
    {                                                                                             \
        collect(SET, dest, source, nelems, SIZE / 8);                                             \
    }                                                                                             \
    SHMEMI_DEFINE(void, shmem_alltoall##SIZE,                                                     \
                  (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, \
                   int PE_size, long *pSync))                                                     \
    {                                                                                             \
        alltoall(SET, dest, source, nelems *(SIZE / 8));                                          \
    }                                                                                             \
    SHMEMI_DEFINE(void, shmem_alltoalls##SIZE,                                                    \
                  (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,   \
                   int PE_start, int logPE_stride, int PE_size, long *pSync))                     \
    {                                                                                             \
        alltoalls(SET, dest, source, dst, sst, nelems, SIZE / 8);                                 \
    }
DEFINE_EXCHANGE(32)
DEFINE_EXCHANGE(64)

/* ---- reducing ---- */

/*
 * A piece at a time: each member reads the piece from all, in the same order, and combines; when
 * all have read it each writes its dest, which may be its source.
 */
static void reduce_pieces(const struct set *set, const struct shmemi_kind *kind, char *dest,
                          const char *source, size_t total)
{
    static const size_t room = PIECE_BYTES;
    char *all = malloc(2 * room);
    if (!all)
        shmemi_refuse(set->routine, "out of memory for a piece of the reduction");
    for (size_t done = 0; done < total; done += room) {
        size_t bytes = total - done < room ? total - done : room;
        for (int i = 0; i < set->size; i++) {
            check(set, coh_get(shmemi.world, i == 0 ? all : all + room, source + done, bytes,
                               rank_of(set, i)));
            if (i > 0)
                kind->combine(all, all + room, bytes / kind->size);
        }
        meet(set);
        memcpy(dest + done, all, bytes);
    }
    free(all);
}

static void reduce(struct set set, const struct shmemi_kind *kind, void *dest, const void *source,
                   int nreduce)
{
    if (nreduce < 0)
        shmemi_refuse(set.routine, "nreduce is negative");
    if (set.index < 0)
        return;
    if (is_world(&set)) {
        (void)shmemi_team_reduce(set.routine, SHMEM_TEAM_WORLD, kind, dest, source,
                                 (size_t)nreduce);
        return;
    }
    complete_and_meet(&set); /* all sources are ready */
    reduce_pieces(&set, kind, dest, source, (size_t)nreduce * kind->size);
}

/* Integers wrap, which their own types do not promise. */
#define DEFINE_COMBINE(T, NAME, name, expression)                                   \
    static void combine_##NAME##_##name(void *into, const void *from, size_t count) \
    {                                                                               \
        T *a = into;                                                                \
        const T *b = from;                                                          \
        for (size_t i = 0; i < count; i++)                                          \
            a[i] = (T)(expression);                                                 \
    }
#define WIDE(value) ((unsigned long long)(value))

#define DEFINE_REDUCE(T, NAME, name, cohort, expression)                                   \
    DEFINE_COMBINE(T, NAME, name, expression)                                              \
    SHMEMI_DEFINE(void, shmem_##NAME##_##name##_to_all,                                    \
                  (T * dest, const T *source, int nreduce, int PE_start, int logPE_stride, \
                   int PE_size, T *pWrk, long *pSync))                                     \
    {                                                                                      \
        static const struct shmemi_kind kind = {SHMEMI_DTYPE(T), cohort, sizeof(T),        \
                                                combine_##NAME##_##name};                  \
        (void)pWrk;                                                                        \
        reduce(SET, &kind, dest, source, nreduce);                                         \
    }

#define DEFINE_INTEGER(T, NAME)                                        \
    DEFINE_REDUCE(T, NAME, and, COH_AND, a[i] & b[i])                  \
    DEFINE_REDUCE(T, NAME, or, COH_OR, a[i] | b[i])                    \
    DEFINE_REDUCE(T, NAME, xor, COH_XOR, a[i] ^ b[i])                  \
    DEFINE_REDUCE(T, NAME, sum, COH_SUM, WIDE(a[i]) + WIDE(b[i]))      \
    DEFINE_REDUCE(T, NAME, prod, COH_PRODUCT, WIDE(a[i]) * WIDE(b[i])) \
    DEFINE_REDUCE(T, NAME, max, COH_MAX, b[i] > a[i] ? b[i] : a[i])    \
    DEFINE_REDUCE(T, NAME, min, COH_MIN, b[i] < a[i] ? b[i] : a[i])
SHMEMI_OLD_BITWISE_TYPES(DEFINE_INTEGER)

#define DEFINE_ARITHMETIC(T, NAME)                    \
    DEFINE_REDUCE(T, NAME, sum, COH_SUM, a[i] + b[i]) \
    DEFINE_REDUCE(T, NAME, prod, COH_PRODUCT, a[i] * b[i])
#define DEFINE_REAL(T, NAME)                                                        \
    DEFINE_ARITHMETIC(T, NAME)                                                      \
    DEFINE_REDUCE(T, NAME, max, COH_MAX, b[i] > a[i] || b[i] != b[i] ? b[i] : a[i]) \
    DEFINE_REDUCE(T, NAME, min, COH_MIN, b[i] < a[i] || b[i] != b[i] ? b[i] : a[i])
DEFINE_REAL(float, float)
DEFINE_REAL(double, double)
DEFINE_REAL(long double, longdouble)
SHMEMI_COMPLEX_TYPES(DEFINE_ARITHMETIC)
