#include "core/health/watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/world/exit.h"
#include "core/world/image.h"
#include "core/health/verdict.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct watched {
    coh_world *world;
    int rank;
    int pidfd; /* -1: the process is looked for by its number */
    pid_t pid;
    int going; /* looks since it was seen to be ending, or another program */
};

/* The table of who is watched; `wake` makes the watcher read it again. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;  /* starting and ending the thread */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* the rest; taken second */
static struct watched *table;
static size_t table_count;
static size_t table_room;
static coh_world *attended; /* by the watcher at the moment, outside the lock */
static pthread_cond_t let_go_of = PTHREAD_COND_INITIALIZER;
static size_t worlds; /* watched; the thread ends with the last */
static int wake = -1;
static pthread_t watcher;
static pid_t watcher_process; /* a forked child inherits the table but not the thread */

/* How long to wait for the supervisor, which reaps the process, to say how it ended. It has to be
 * scheduled first, which takes its time on a busy host; and pending calls are to fail within a
 * second. Processes that are found to have ended together share this time. */
#define REAP_GRACE_NS (600 * COHI_NS_PER_MS)

/* How often to look whether a rank has called coh_global_exit; all are to be gone within a
 * second. */
enum { EXIT_LOOK_MS = 200 };

/* How many looks a rank may take that is in exit(3), or whose program is gone, until its process
 * has ended: after that it counts as lost, though the process is there. */
enum { GOING_LOOKS = 3 };

static uint64_t reaped(cohi_slot *slot, bool supervised, uint64_t until)
{
    uint64_t end;
    while (!((end = atomic_load(&slot->end)) & COHI_ENDED) && supervised && cohi_now_ns() < until) {
        struct timespec pause = {.tv_nsec = (long)COHI_NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    return end;
}

/* None when the rank had left as it should. */
static uint64_t verdict_on_end(coh_world *world, int rank, uint64_t until)
{
    cohi_slot *slot = cohi_board_slot(world->board, rank);
    if (atomic_load(&slot->phase) == COHI_PHASE_LEFT)
        return COHI_VERDICT_NONE;
    uint64_t end = reaped(slot, world->board->head->launcher != 0, until);
    bool unfinished = atomic_load(&slot->phase) == COHI_PHASE_EXITING;
    int status = (int)(end & UINT32_MAX);
    if ((end & COHI_ENDED) && WIFSIGNALED(status))
        return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_SIGNALED, WTERMSIG(status));
    if ((end & COHI_ENDED) && WEXITSTATUS(status) != 0)
        return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_EXITED, WEXITSTATUS(status));
    if (unfinished || (end & COHI_ENDED))
        return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_UNFINISHED, 0);
    return cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_ENDED, 0);
}

/* Outside the lock: it may wait for the supervisor, and calls the user's log hook. */
static void attend_end(const struct watched *entry, uint64_t until)
{
    uint64_t verdict = verdict_on_end(entry->world, entry->rank, until);
    if (verdict != COHI_VERDICT_NONE)
        cohi_verdict_note(entry->world, entry->rank, verdict);
}

static bool has_ended(const struct watched *entry)
{
    return entry->pidfd >= 0 ? cohi_os_pidfd_ended(entry->pidfd)
                             : cohi_os_process_ended(entry->pid);
}

/* Takes an entry whose process has ended out of the table, and holds its world until it is
 * attended to. */
static bool take_ended(struct watched *ended)
{
    bool found = false;
    pthread_mutex_lock(&watch_lock);
    for (size_t i = 0; i < table_count && !found; i++) {
        found = has_ended(&table[i]);
        if (found) {
            *ended = table[i];
            table[i] = table[--table_count];
            attended = ended->world;
        }
    }
    pthread_mutex_unlock(&watch_lock);
    return found;
}

static void let_go(void)
{
    pthread_mutex_lock(&watch_lock);
    attended = NULL;
    pthread_cond_broadcast(&let_go_of);
    pthread_mutex_unlock(&watch_lock);
}

/* What else there is to do for each world now and then. The end of the last thread of the program
 * would be the end of the process if it were not for this one. */
static void check_worlds(void)
{
    pthread_mutex_lock(&watch_lock);
    for (size_t i = 0; i < table_count; i++) {
        cohi_exit_if_asked(table[i].world);
        cohi_image_hold(table[i].world);
    }
    pthread_mutex_unlock(&watch_lock);
    if (cohi_os_program_ended())
        exit(0);
}

/* An exit handler may never return, and exec leaves the process. */
static uint64_t verdict_on_going(struct watched *entry)
{
    cohi_slot *slot = cohi_board_slot(entry->world->board, entry->rank);
    unsigned phase = atomic_load(&slot->phase);
    bool exiting = phase == COHI_PHASE_EXITING;
    if (phase == COHI_PHASE_LEFT || (!exiting && !cohi_image_is_gone(slot))) {
        entry->going = 0;
        return COHI_VERDICT_NONE;
    }
    if (++entry->going < GOING_LOOKS)
        return COHI_VERDICT_NONE;
    return cohi_verdict(COHI_VERDICT_LOST, exiting ? COHI_LOSS_UNFINISHED : COHI_LOSS_REPLACED, 0);
}

/* Takes the first entry from `*from` on out of the table that is gone though its process is not, and
 * holds its world. */
static bool take_gone(size_t *from, struct watched *gone, uint64_t *verdict)
{
    bool found = false;
    pthread_mutex_lock(&watch_lock);
    for (; *from < table_count && !found; ++*from) {
        struct watched *entry = &table[*from];
        *verdict = verdict_on_going(entry);
        found = *verdict != COHI_VERDICT_NONE;
        if (found) {
            *gone = *entry;
            *entry = table[--table_count];
            attended = gone->world;
            --*from;
        }
    }
    pthread_mutex_unlock(&watch_lock);
    return found;
}

static void check_going(void)
{
    struct watched gone;
    uint64_t verdict;
    for (size_t from = 0; take_gone(&from, &gone, &verdict);) {
        cohi_verdict_note(gone.world, gone.rank, verdict);
        let_go();
    }
}

/* What to poll: the wake descriptor, then one for each entry. */
static struct pollfd *copy_table(size_t *count)
{
    pthread_mutex_lock(&watch_lock);
    struct pollfd *set = calloc(table_count + 1, sizeof *set);
    if (set) {
        set[0] = (struct pollfd){.fd = wake, .events = POLLIN};
        for (size_t i = 0; i < table_count; i++)
            set[i + 1] = (struct pollfd){.fd = table[i].pidfd, .events = POLLIN};
        *count = table_count + 1;
    }
    pthread_mutex_unlock(&watch_lock);
    return set;
}

/* Whether a process of the set may have ended. */
static bool shows_end(const struct pollfd *set, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (set[i].fd < 0 || set[i].revents)
            return true;
    return false;
}

/* Until a process ends, the table changes, or it is time to look whether the job is asked to
 * end. A poll that is refused (the descriptor limit was lowered below the table's size) only
 * means to look that often. Tells whether a process may have ended: to ask for each of hundreds
 * at every look would keep a core busy. */
static bool sleep_on_table(void)
{
    size_t count = 0;
    struct pollfd *set = copy_table(&count);
    uint64_t ignored;
    bool look = true;
    if (!set || (cohi_os_poll(set, count, EXIT_LOOK_MS) < 0 && errno != EINTR)) {
        nanosleep(&(struct timespec){.tv_nsec = EXIT_LOOK_MS * 1000000L}, NULL);
    } else {
        if (set[0].revents && read(wake, &ignored, sizeof ignored) < 0)
            errno = 0; /* somebody else's wake came first */
        look = shows_end(set, count);
    }
    free(set);
    return look;
}

static bool goes_on(void)
{
    pthread_mutex_lock(&watch_lock);
    bool on = worlds > 0;
    pthread_mutex_unlock(&watch_lock);
    return on;
}

static void *watch(void *arg)
{
    (void)arg;
    cohi_os_thread_serves(true);
    cohi_image_begin();
    while (goes_on()) {
        struct watched ended;
        bool look = sleep_on_table();
        check_worlds();
        uint64_t until = cohi_now_ns() + REAP_GRACE_NS;
        while (look && take_ended(&ended)) {
            attend_end(&ended, until);
            let_go();
        }
        check_going();
    }
    cohi_os_thread_serves(false);
    return NULL;
}

/* ---- the table ---- */

static coh_status make_room(size_t more)
{
    if (table_count + more <= table_room)
        return COH_OK;
    size_t room = 2 * (table_count + more);
    struct watched *bigger = realloc(table, room * sizeof *bigger);
    if (!bigger)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the watcher");
    table = bigger;
    table_room = room;
    return COH_OK;
}

static void notify(void)
{
    uint64_t one = 1;
    if (write(wake, &one, sizeof one) < 0)
        return; /* the counter is full: the watcher is awake as it is */
}

/* Without a descriptor its number must be that of a process here: it is not where the rank is in a
 * pid namespace of its own. */
static bool can_watch(const coh_world *world, int rank)
{
    const cohi_peer *peer = &world->peers[rank];
    return rank != world->rank && (peer->pidfd >= 0 || !cohi_os_process_ended((pid_t)peer->pid));
}

/* Outside the locks, since it calls the user's log hook. */
static void tell_unwatched(const coh_world *world)
{
    for (int rank = 0; rank < world->size; rank++)
        if (rank != world->rank && !can_watch(world, rank))
            cohi_log(COH_LOG_WARN,
                     "rank %d: the end of rank %d cannot be noticed here: pidfd_open is refused, "
                     "and process %d is not visible; a wait for it ends with an error after "
                     "COHORT_STALL",
                     world->rank, rank, (int)world->peers[rank].pid);
}

static coh_status add_peers(coh_world *world)
{
    pthread_mutex_lock(&watch_lock);
    coh_status status = make_room((size_t)world->size);
    for (int rank = 0; rank < world->size && status == COH_OK; rank++)
        if (can_watch(world, rank))
            table[table_count++] = (struct watched){.world = world,
                                                    .rank = rank,
                                                    .pidfd = world->peers[rank].pidfd,
                                                    .pid = (pid_t)world->peers[rank].pid};
    if (status == COH_OK) {
        worlds++;
        world->watched = true;
        notify();
    }
    pthread_mutex_unlock(&watch_lock);
    return status;
}

static void remove_peers(coh_world *world)
{
    pthread_mutex_lock(&watch_lock);
    for (size_t i = table_count; i > 0; i--)
        if (table[i - 1].world == world)
            table[i - 1] = table[--table_count];
    worlds--;
    cohi_image_release(world);
    notify();
    while (attended == world)
        pthread_cond_wait(&let_go_of, &watch_lock);
    pthread_mutex_unlock(&watch_lock);
}

/* ---- the thread ---- */

static coh_status start_watcher(void)
{
    int error = 0;
    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0)
        error = errno;
    if (!error)
        error = cohi_os_fd_above_stdio(&wake);
    if (error)
        return cohi_fail_os(error, "coh_init: the watcher cannot be woken");
    watcher_process = getpid();
    return COH_OK;
}

static void clear_table(void)
{
    cohi_os_close(wake);
    wake = -1;
    free(table);
    table = NULL;
    table_count = table_room = 0;
}

/* A forked child starts from nothing: the thread, and what it watched, are the parent's. */
static void forget_parent(void)
{
    if (wake < 0 || watcher_process == getpid())
        return;
    clear_table();
    worlds = 0;
}

coh_status cohi_watch_add(coh_world *world)
{
    if (world->size == 1)
        return COH_OK;
    tell_unwatched(world);
    pthread_mutex_lock(&life_lock);
    forget_parent();
    bool first = worlds == 0;
    coh_status status = first ? start_watcher() : COH_OK;
    if (status == COH_OK)
        status = add_peers(world);
    if (status == COH_OK && first) {
        int error = cohi_os_thread_start("cohort-watch", watch, NULL, &watcher);
        if (error) {
            remove_peers(world);
            world->watched = false;
            status = cohi_fail_os(error, "coh_init: the watcher cannot be started");
        }
    }
    if (status != COH_OK && first)
        clear_table();
    pthread_mutex_unlock(&life_lock);
    return status;
}

void cohi_watch_remove(coh_world *world)
{
    if (!world->watched)
        return;
    pthread_mutex_lock(&life_lock);
    remove_peers(world);
    world->watched = false;
    if (worlds == 0) {
        pthread_join(watcher, NULL);
        clear_table();
    }
    pthread_mutex_unlock(&life_lock);
}

void cohi_watch_hold(void)
{
    pthread_mutex_lock(&life_lock);
    pthread_mutex_lock(&watch_lock);
}

void cohi_watch_release(void)
{
    pthread_mutex_unlock(&watch_lock);
    pthread_mutex_unlock(&life_lock);
}
