#include "memory/prepared.h"

#include "base/error.h"
#include "base/os.h"

#include <pthread.h>
#include <string.h>

/* The file is as long as any heap can be (coh_options.heap), and has memory only where it is used.
 */
#define FILE_BYTES (UINT64_C(1) << 47)

struct range {
    char *base;
    size_t bytes;
    uint64_t offset;
    void *spare; /* during a fork: the copy that the child gets */
};

struct state {
    int fd;
    uint64_t file; /* what `fd` was, which the program may have closed */
    int count;
    bool claimed;
    uint64_t bytes; /* of all ranges, which follow each other in the file */
    struct range ranges[COHI_PREPARED_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct state state = {.fd = -1};

/* Programs that become daemons close all descriptors. Then nothing is prepared any more. */
static void check_file(void)
{
    if (state.count > 0 && cohi_os_file_id(state.fd) != state.file)
        state = (struct state){.fd = -1};
}

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    check_file();
    for (int i = 0; i < state.count; i++) {
        struct range *range = &state.ranges[i];
        range->spare = NULL;
        (void)cohi_os_window_copy(state.fd, range->offset, range->bytes, &range->spare);
    }
}

static void in_parent(void)
{
    for (int i = 0; i < state.count; i++)
        cohi_os_unmap(state.ranges[i].spare, state.ranges[i].bytes);
    pthread_mutex_unlock(&lock);
}

/* Nothing is stored before the pages are the child's own: in a program that is linked statically
 * the state itself lies in them, and a copy of it is worked with. */
static void in_child(void)
{
    struct state copy = state;
    for (int i = 0; i < copy.count; i++) {
        struct range *range = &copy.ranges[i];
        if (!range->spare || cohi_os_window_replace(range->spare, range->base, range->bytes))
            (void)cohi_os_window_detach(copy.fd, range->offset, range->base, range->bytes);
    }
    cohi_os_close(copy.fd);
    state = (struct state){.fd = -1};
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- preparing ---- */

static coh_status check_state(const char *call, size_t bytes)
{
    if (state.claimed)
        return cohi_fail(COH_BUSY,
                         "%s: this process has a world, which uses what was prepared before", call);
    if (state.count == COHI_PREPARED_MAX || bytes > FILE_BYTES - state.bytes)
        return cohi_fail(COH_LIMIT, "%s: %d ranges of %llu bytes are prepared; no more fits", call,
                         state.count, (unsigned long long)state.bytes);
    if (cohi_os_thread_count() > 1)
        return cohi_fail(COH_BUSY,
                         "%s: the process has %d threads; what the others store during the call "
                         "would be lost",
                         call, cohi_os_thread_count());
    return COH_OK;
}

static coh_status open_file(const char *call)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int error = state.fd >= 0 ? 0 : cohi_os_shared_create("cohort-heap", FILE_BYTES, &state.fd);
    if (error)
        return cohi_fail_os(error, "%s: no file can be made for the memory", call);
    state.file = cohi_os_file_id(state.fd);
    pthread_once(&once, watch_forks);
    return COH_OK;
}

static coh_status add(const char *call, void *base, size_t bytes)
{
    coh_status status = check_state(call, bytes);
    if (status == COH_OK)
        status = open_file(call);
    if (status != COH_OK)
        return status;
    int error = cohi_os_window_open(state.fd, state.bytes, base, bytes);
    if (error)
        return cohi_fail_os(error, "%s: the pages at %p cannot be replaced", call, base);
    state.ranges[state.count++] = (struct range){base, bytes, state.bytes, NULL};
    state.bytes += bytes;
    return COH_OK;
}

coh_status cohi_prepared_add(const char *call, void *base, size_t bytes)
{
    pthread_mutex_lock(&lock);
    coh_status status = add(call, base, bytes);
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- using ---- */

uint64_t cohi_prepared_claim(void)
{
    pthread_mutex_lock(&lock);
    check_file();
    bool mine = state.count > 0 && !state.claimed;
    uint64_t bytes = mine ? state.bytes : 0;
    state.claimed = state.claimed || mine;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void cohi_prepared_release(void)
{
    pthread_mutex_lock(&lock);
    check_file();
    cohi_os_decommit_shared(state.fd, state.bytes, FILE_BYTES);
    state.claimed = false;
    pthread_mutex_unlock(&lock);
}

void cohi_prepared_forget(void)
{
    pthread_mutex_lock(&lock);
    check_file();
    for (int i = 0; i < state.count; i++)
        (void)cohi_os_window_detach(state.fd, state.ranges[i].offset, state.ranges[i].base,
                                    state.ranges[i].bytes);
    cohi_os_close(state.fd);
    state = (struct state){.fd = -1};
    pthread_mutex_unlock(&lock);
}

int cohi_prepared_file(int *fd)
{
    pthread_mutex_lock(&lock);
    int error = cohi_os_fd_copy(state.fd, fd);
    pthread_mutex_unlock(&lock);
    return error;
}

bool cohi_prepared_find(const void *base, size_t bytes, uint64_t *offset)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < state.count && !found; i++) {
        found = state.ranges[i].base == base && state.ranges[i].bytes == bytes;
        if (found)
            *offset = state.ranges[i].offset;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
