/* collectives.c - barriers, and the collectives of teams that move; those that compute are in
 * reduce.c. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- barriers ---- */

SHMEMI_DEFINE(void, shmem_barrier_all, (void))
{
    if (!SHMEMI_LIKELY(coh_barrier(shmemi.world) == COH_OK)) {
        shmemi_enter(SHMEMI_NAME);
        shmemi_fail(SHMEMI_NAME, "%s", "");
    }
}

SHMEMI_DEFINE(void, shmem_sync_all, (void))
{
    if (!SHMEMI_LIKELY(coh_sync(shmemi.world) == COH_OK)) {
        shmemi_enter(SHMEMI_NAME);
        shmemi_fail(SHMEMI_NAME, "%s", "");
    }
}

SHMEMI_DEFINE(int, shmem_team_sync, (shmem_team_t team))
{
    shmemi_enter(SHMEMI_NAME);
    if (coh_team_sync(shmemi_team(team)->team) != COH_OK)
        shmemi_fail(SHMEMI_NAME, "team=%p", (void *)team);
    return 0;
}

/* ---- moving ---- */

/* All but the strided ones move bytes. */
static int finish(const char *routine, coh_status status, const void *dest, const void *source,
                  size_t nelems)
{
    if (status != COH_OK)
        shmemi_fail(routine, "dest=%p, source=%p, nelems=%zu", dest, source, nelems);
    return 0;
}

static int broadcast(const char *routine, shmem_team_t team, void *dest, const void *source,
                     size_t nelems, size_t size, int root)
{
    shmemi_enter(routine);
    coh_status status = coh_broadcast(shmemi_team(team)->team, COH_U8, source, dest,
                                      shmemi_bytes(nelems, size), root);
    if (status != COH_OK)
        shmemi_fail(routine, "dest=%p, source=%p, nelems=%zu, PE_root=%d", dest, source, nelems,
                    root);
    return 0;
}

/*
 * Cohort refuses a source that overlaps its target in part, and so does the standard. There are
 * programs that do it nonetheless, by buffers that are too short: their source is copied. NULL
 * when there is no need; else to be freed.
 */
static void *copy_if_overlapping(const char *routine, const void *source, size_t bytes,
                                 const void *dest, size_t room)
{
    bool apart =
        (uintptr_t)source - (uintptr_t)dest >= room && (uintptr_t)dest - (uintptr_t)source >= bytes;
    if (apart || bytes == 0 || (source == dest && bytes == room))
        return NULL;
    void *copy = malloc(bytes);
    if (!copy)
        shmemi_refuse(routine, "out of memory for a copy of the source");
    return memcpy(copy, source, bytes);
}

static int fcollect(const char *routine, shmem_team_t handle, void *dest, const void *source,
                    size_t nelems, size_t size)
{
    shmemi_enter(routine);
    coh_team *team = shmemi_team(handle)->team;
    size_t bytes = shmemi_bytes(nelems, size);
    size_t room = shmemi_bytes(bytes, (size_t)coh_team_size(team));
    void *copy = copy_if_overlapping(routine, source, bytes, dest, room);
    coh_status status = coh_all_gather(team, COH_U8, copy ? copy : source, dest, bytes);
    free(copy);
    return finish(routine, status, dest, source, nelems);
}

static int alltoall(const char *routine, shmem_team_t handle, void *dest, const void *source,
                    size_t nelems, size_t size)
{
    shmemi_enter(routine);
    coh_team *team = shmemi_team(handle)->team;
    size_t bytes = shmemi_bytes(nelems, size);
    size_t room = shmemi_bytes(bytes, (size_t)coh_team_size(team));
    void *copy = copy_if_overlapping(routine, source, room, dest, room);
    coh_status status = coh_all_to_all(team, COH_U8, copy ? copy : source, dest, bytes);
    free(copy);
    return finish(routine, status, dest, source, nelems);
}

/* The counts first, which may differ, then the data. */
static int collect(const char *routine, shmem_team_t handle, void *dest, const void *source,
                   size_t nelems, size_t size)
{
    shmemi_enter(routine);
    coh_team *team = shmemi_team(handle)->team;
    int members = coh_team_size(team);
    size_t mine = shmemi_bytes(nelems, size);
    size_t *counts = malloc(sizeof *counts * (members > 0 ? (size_t)members : 1));
    if (!counts)
        shmemi_refuse(routine, "out of memory for the counts of the team's members");
    coh_status status = coh_all_gather(team, COH_U64, &mine, counts, 1);
    size_t room = 0;
    for (int i = 0; status == COH_OK && i < members; i++)
        room += counts[i];
    void *copy = copy_if_overlapping(routine, source, mine, dest, room);
    if (status == COH_OK)
        status = coh_all_gather_v(team, COH_U8, copy ? copy : source, dest, counts);
    free(copy);
    free(counts);
    return finish(routine, status, dest, source, nelems);
}

/* ---- moving with strides ---- */

/* Every `stride`-th of `count` elements, together at `packed`; and the other way. */
static void pack(char *packed, const char *spread, size_t stride, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        memcpy(packed + i * size, spread + i * stride * size, size);
}

static void unpack(char *spread, const char *packed, size_t stride, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        memcpy(spread + i * stride * size, packed + i * size, size);
}

/* Elements of a size that Cohort has no type for are packed. */
static coh_status alltoalls_packed(const char *routine, coh_team *team, char *dest,
                                   const char *source, size_t dst, size_t sst, size_t nelems,
                                   size_t size)
{
    size_t all = nelems * (size_t)coh_team_size(team);
    char *packed = malloc(2 * all * size + 1);
    if (!packed)
        shmemi_refuse(routine, "out of memory for the packed elements");
    pack(packed, source, sst, all, size);
    coh_status status = coh_all_to_all(team, COH_U8, packed, packed + all * size, nelems * size);
    if (status == COH_OK)
        unpack(dest, packed + all * size, dst, all, size);
    free(packed);
    return status;
}

static int alltoalls(const char *routine, shmem_team_t handle, void *dest, const void *source,
                     ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t size)
{
    shmemi_enter(routine);
    if (dst < 1 || sst < 1)
        shmemi_refuse(routine, "a stride is less than 1");
    if (dst == 1 && sst == 1)
        return alltoall(routine, handle, dest, source, nelems, size);
    coh_team *team = shmemi_team(handle)->team;
    coh_status status =
        size > sizeof(uint64_t)
            ? alltoalls_packed(routine, team, dest, source, (size_t)dst, (size_t)sst, nelems, size)
            : coh_all_to_all_strided(team, SHMEMI_DTYPE_OF_SIZE(size, 0), source, (size_t)sst, dest,
                                     (size_t)dst, nelems);
    return finish(routine, status, dest, source, nelems);
}

/* ---- the routines ---- */

#define DEFINE_EXCHANGE(T, size, broadcast_, collect_, fcollect_, alltoall_, alltoalls_)       \
    SHMEMI_DEFINE(int, shmem_##broadcast_,                                                     \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root))  \
    {                                                                                          \
        return broadcast(SHMEMI_NAME, team, dest, source, nelems, size, PE_root);              \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##collect_,                                                       \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    {                                                                                          \
        return collect(SHMEMI_NAME, team, dest, source, nelems, size);                         \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##fcollect_,                                                      \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    {                                                                                          \
        return fcollect(SHMEMI_NAME, team, dest, source, nelems, size);                        \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##alltoall_,                                                      \
                  (shmem_team_t team, T * dest, const T *source, size_t nelems))               \
    {                                                                                          \
        return alltoall(SHMEMI_NAME, team, dest, source, nelems, size);                        \
    }                                                                                          \
    SHMEMI_DEFINE(int, shmem_##alltoalls_,                                                     \
                  (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, \
                   size_t nelems))                                                             \
    {                                                                                          \
        return alltoalls(SHMEMI_NAME, team, dest, source, dst, sst, nelems, size);             \
    }
#define DEFINE_TYPED(T, NAME)                                                        \
    DEFINE_EXCHANGE(T, sizeof(T), NAME##_broadcast, NAME##_collect, NAME##_fcollect, \
                    NAME##_alltoall, NAME##_alltoalls)
SHMEMI_RMA_TYPES(DEFINE_TYPED)
DEFINE_EXCHANGE(void, 1, broadcastmem, collectmem, fcollectmem, alltoallmem, alltoallsmem)
