#include "core/world/exit.h"

#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/elsewhere.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Time for stdio to be flushed; then the process ends without. */
#define FLUSH_NS (500 * COHI_NS_PER_MS)

static void *flush(void *done)
{
    cohi_os_thread_serves(true);
    fflush(NULL);
    atomic_store((atomic_uint *)done, 1);
    cohi_os_futex_wake(done);
    return NULL;
}

/* In a thread of its own: a thread of the program may hold a stream's lock for ever, as one
 * does that waits for input. */
static void flush_within_time(void)
{
    static atomic_uint done;
    pthread_t flusher;
    uint64_t until = cohi_now_ns() + FLUSH_NS;
    if (cohi_os_thread_start("cohort-flush", flush, &done, &flusher) != 0)
        return;
    pthread_detach(flusher);
    while (atomic_load(&done) == 0 && cohi_now_ns() < until)
        cohi_os_futex_wait(&done, 0, COHI_NS_PER_MS);
}

void cohi_exit_if_asked(coh_world *world)
{
    uint64_t asked = atomic_load(&world->board->head->global_exit);
    bool from_afar = !asked && world->slot; /* by a rank of another host */
    if (from_afar)
        asked = atomic_load(&world->slot->global_exit);
    if (!(asked & COHI_ENDED))
        return;
    if (from_afar) /* which may not come to telling the others of this host */
        cohi_board_tell_exit(world->board, (int)(asked & 0xff));
    flush_within_time();
    _exit((int)(asked & 0xff));
}
