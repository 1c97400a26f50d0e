/* memory.c - symmetric allocation. No memory is NULL; a mistake ends the job. */
#include "internal.h"

/* What the caller gets: NULL when the request cannot be met, on all PEs alike. */
static void *given(const char *routine, coh_status status, void *pointer, size_t a, size_t b)
{
    if (status == COH_OK)
        return pointer;
    if (status != COH_NO_MEMORY && status != COH_BAD_ALIGNMENT)
        shmemi_fail(routine, "%zu, %zu", a, b);
    return NULL;
}

static void *allocate(const char *routine, size_t size)
{
    void *pointer = NULL;
    shmemi_enter(routine);
    coh_status status = coh_malloc(shmemi.world, size, &pointer);
    return given(routine, status, pointer, size, 1);
}

/* An alignment that is no power of two, which programs ask for, is rounded up to one. */
static void *aligned(const char *routine, size_t alignment, size_t size)
{
    void *pointer = NULL;
    size_t power = 1;
    shmemi_enter(routine);
    while (power < alignment && power < SIZE_MAX / 2)
        power *= 2;
    coh_status status = coh_align(shmemi.world, alignment ? power : 0, size, &pointer);
    return given(routine, status, pointer, alignment, size);
}

static void *resized(const char *routine, void *old, size_t size)
{
    void *pointer = NULL;
    shmemi_enter(routine);
    coh_status status = coh_realloc(shmemi.world, old, size, &pointer);
    if (status != COH_OK && status != COH_NO_MEMORY)
        shmemi_fail(routine, "ptr=%p, size=%zu", old, size);
    return pointer;
}

static void release(const char *routine, void *pointer)
{
    shmemi_enter(routine);
    if (coh_free(shmemi.world, pointer) != COH_OK)
        shmemi_fail(routine, "ptr=%p", pointer);
}

SHMEMI_DEFINE(void *, shmem_malloc, (size_t size))
{
    return allocate(SHMEMI_NAME, size);
}

/* All memory is as good for atomics and signals as for the rest. */
SHMEMI_DEFINE(void *, shmem_malloc_with_hints, (size_t size, long hints))
{
    (void)hints;
    return allocate(SHMEMI_NAME, size);
}

SHMEMI_DEFINE(void *, shmem_calloc, (size_t count, size_t size))
{
    void *pointer = NULL;
    shmemi_enter(SHMEMI_NAME);
    coh_status status = coh_calloc(shmemi.world, count, size, &pointer);
    if (status == COH_INVALID_ARGUMENT)
        return NULL; /* the product overflows: on all PEs, which ask for the same */
    return given(SHMEMI_NAME, status, pointer, count, size);
}

SHMEMI_DEFINE(void *, shmem_align, (size_t alignment, size_t size))
{
    return aligned(SHMEMI_NAME, alignment, size);
}

SHMEMI_DEFINE(void *, shmem_realloc, (void *ptr, size_t size))
{
    return resized(SHMEMI_NAME, ptr, size);
}

SHMEMI_DEFINE(void, shmem_free, (void *ptr))
{
    release(SHMEMI_NAME, ptr);
}

/* ---- deprecated names ---- */

SHMEMI_DEFINE(void *, shmalloc, (size_t size))
{
    return allocate(SHMEMI_NAME, size);
}

SHMEMI_DEFINE(void *, shmemalign, (size_t alignment, size_t size))
{
    return aligned(SHMEMI_NAME, alignment, size);
}

SHMEMI_DEFINE(void *, shrealloc, (void *ptr, size_t size))
{
    return resized(SHMEMI_NAME, ptr, size);
}

SHMEMI_DEFINE(void, shfree, (void *ptr))
{
    release(SHMEMI_NAME, ptr);
}
