#include "core/health/watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/world/exit.h"
#include "core/world/image.h"
#include "core/health/far.h"
#include "core/health/streams.h"
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
    int rank;  /* the world's own: the entry is for what concerns the world itself */
    int pidfd; /* -1: the process is looked for by its number */
    pid_t pid;
    int going; /* looks since it was seen to be ending, or another program */
};

/* The one watcher of a process. */
static struct {
    pthread_mutex_t life; /* of the thread: wake, thread, process; taken before `lock` */
    pthread_mutex_t lock; /* of the table, `attended` and `worlds` */
    struct watched *table;
    size_t count, room;
    coh_world *attended;     /* by the thread at the moment, outside the lock */
    pthread_cond_t released; /* it is attended no longer */
    size_t worlds;           /* watched; the thread ends with the last */
    int wake;                /* makes the thread read the table again; -1: none */
    pthread_t thread;
    pid_t process; /* a forked child inherits the table but not the thread */
} watcher = {.life = PTHREAD_MUTEX_INITIALIZER,
             .lock = PTHREAD_MUTEX_INITIALIZER,
             .released = PTHREAD_COND_INITIALIZER,
             .wake = -1};

/* How long to wait for the supervisor, which reaps the process, to say how it ended. It has to be
 * scheduled first, which takes its time on a busy host; and pending calls are to fail within a
 * second. Processes that are found to have ended together share this time. */
#define REAP_GRACE_NS (600 * COHI_NS_PER_MS)

/* How often to look whether a rank has called coh_global_exit; all are to be gone within a
 * second. */
enum { EXIT_LOOK_MS = 200 };

/* How many looks a rank may take that is in exit(3), or whose program is gone, until its process
 * has ended: after that it counts as lost, though the process is there. One that was killed is told
 * with its signal, however long its threads wait for a core to end on. */
enum { GOING_LOOKS = 3, DYING_LOOKS = 20 };

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

static bool is_own(const struct watched *entry)
{
    return entry->rank == entry->world->rank;
}

static bool has_ended(const struct watched *entry)
{
    if (is_own(entry))
        return false;
    return entry->pidfd >= 0 ? cohi_os_pidfd_ended(entry->pidfd)
                             : cohi_os_process_ended(entry->pid);
}

/* Takes an entry whose process has ended out of the table, and holds its world until it is
 * attended to. */
static bool take_ended(struct watched *ended)
{
    bool found = false;
    pthread_mutex_lock(&watcher.lock);
    for (size_t i = 0; i < watcher.count && !found; i++) {
        found = has_ended(&watcher.table[i]);
        if (found) {
            *ended = watcher.table[i];
            watcher.table[i] = watcher.table[--watcher.count];
            watcher.attended = ended->world;
        }
    }
    pthread_mutex_unlock(&watcher.lock);
    return found;
}

static void let_go(void)
{
    pthread_mutex_lock(&watcher.lock);
    watcher.attended = NULL;
    pthread_cond_broadcast(&watcher.released);
    pthread_mutex_unlock(&watcher.lock);
}

/* What else there is to do for each world now and then. The end of the last thread of the program
 * would be the end of the process if it were not for this one. */
static void check_worlds(void)
{
    pthread_mutex_lock(&watcher.lock);
    for (size_t i = 0; i < watcher.count; i++) {
        if (!is_own(&watcher.table[i]))
            continue;
        cohi_exit_if_asked(watcher.table[i].world);
        cohi_image_hold(watcher.table[i].world);
    }
    pthread_mutex_unlock(&watcher.lock);
    if (cohi_os_program_ended())
        exit(0);
}

/* An exit handler may never return, and exec leaves the process. */
static uint64_t verdict_on_going(struct watched *entry)
{
    cohi_slot *slot = cohi_board_slot(entry->world->board, entry->rank);
    if (is_own(entry))
        return COHI_VERDICT_NONE;
    unsigned phase = atomic_load(&slot->phase);
    bool exiting = phase == COHI_PHASE_EXITING;
    if (phase == COHI_PHASE_LEFT || (!exiting && !cohi_image_is_gone(slot))) {
        entry->going = 0;
        return COHI_VERDICT_NONE;
    }
    if (++entry->going < GOING_LOOKS)
        return COHI_VERDICT_NONE;
    if (!exiting && entry->going < DYING_LOOKS && cohi_os_process_ends(entry->pid))
        return COHI_VERDICT_NONE;
    return cohi_verdict(COHI_VERDICT_LOST, exiting ? COHI_LOSS_UNFINISHED : COHI_LOSS_REPLACED, 0);
}

/* Takes the first entry from `*from` on out of the table that is gone though its process is not, and
 * holds its world. */
static bool take_gone(size_t *from, struct watched *gone, uint64_t *verdict)
{
    bool found = false;
    pthread_mutex_lock(&watcher.lock);
    for (; *from < watcher.count && !found; ++*from) {
        struct watched *entry = &watcher.table[*from];
        *verdict = verdict_on_going(entry);
        found = *verdict != COHI_VERDICT_NONE;
        if (found) {
            *gone = *entry;
            *entry = watcher.table[--watcher.count];
            watcher.attended = gone->world;
            --*from;
        }
    }
    pthread_mutex_unlock(&watcher.lock);
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

/* Holds the world of the next own entry from `*from` on. */
static coh_world *hold_next(size_t *from)
{
    coh_world *held = NULL;
    pthread_mutex_lock(&watcher.lock);
    for (; *from < watcher.count && !held; ++*from)
        if (is_own(&watcher.table[*from]))
            held = watcher.table[*from].world;
    watcher.attended = held;
    pthread_mutex_unlock(&watcher.lock);
    return held;
}

/* Ranks of this host see that one is in an exit handler that does not return (verdict_on_going). Those
 * of other hosts see a process that lives and answers, and this one may be alone on its host. */
static void tell_own_exit(coh_world *world)
{
    bool exiting = world->remote && atomic_load(&world->slot->phase) == COHI_PHASE_EXITING;
    world->exiting_looks = exiting ? world->exiting_looks + 1 : 0;
    if (world->exiting_looks == GOING_LOOKS)
        cohi_verdict_pass(world, world->rank,
                          cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_UNFINISHED, 0));
}

/* What this host's board was told of ranks elsewhere, and what other ranks have told this one. A world that leaves the table meanwhile may put
 * one of the others off to the next look. */
static void check_far(void)
{
    coh_world *world;
    for (size_t at = 0; (world = hold_next(&at));) {
        uint64_t verdict;
        int rank;
        for (int from = 0; cohi_far_next(world, &from, &rank, &verdict);)
            cohi_verdict_note(world, rank, verdict);
        cohi_verdict_let_go(world);
        cohi_streams_look(world);
        tell_own_exit(world);
        let_go();
    }
}

/* What to poll: the wake descriptor, then one for each entry. */
static struct pollfd *copy_table(size_t *count)
{
    pthread_mutex_lock(&watcher.lock);
    struct pollfd *set = calloc(watcher.count + 1, sizeof *set);
    if (set) {
        set[0] = (struct pollfd){.fd = watcher.wake, .events = POLLIN};
        for (size_t i = 0; i < watcher.count; i++)
            set[i + 1] = (struct pollfd){.fd = watcher.table[i].pidfd,
                                         .events = is_own(&watcher.table[i]) ? 0 : POLLIN};
        *count = watcher.count + 1;
    }
    pthread_mutex_unlock(&watcher.lock);
    return set;
}

/* Whether a process of the set may have ended. */
static bool shows_end(const struct pollfd *set, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if ((set[i].fd < 0 && set[i].events) || set[i].revents)
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
        if (set[0].revents && read(watcher.wake, &ignored, sizeof ignored) < 0)
            errno = 0; /* somebody else's wake came first */
        look = shows_end(set, count);
    }
    free(set);
    return look;
}

static bool goes_on(void)
{
    pthread_mutex_lock(&watcher.lock);
    bool on = watcher.worlds > 0;
    pthread_mutex_unlock(&watcher.lock);
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
        check_far(); /* first: a rank of this host may have ended because of one elsewhere */
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
    if (watcher.count + more <= watcher.room)
        return COH_OK;
    size_t room = 2 * (watcher.count + more);
    struct watched *bigger = realloc(watcher.table, room * sizeof *bigger);
    if (!bigger)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the watcher");
    watcher.table = bigger;
    watcher.room = room;
    return COH_OK;
}

static void notify(void)
{
    uint64_t one = 1;
    if (write(watcher.wake, &one, sizeof one) < 0)
        return; /* the counter is full: the watcher is awake as it is */
}

/* Without a descriptor its number must be that of a process here: it is not where the rank is in a
 * pid namespace of its own. */
static bool can_watch(const coh_world *world, int rank)
{
    const cohi_peer *peer = &world->peers[rank];
    return rank != world->rank && !cohi_far(world, rank)
           && (peer->pidfd >= 0 || !cohi_os_process_ended((pid_t)peer->pid));
}

/* Outside the locks, since it calls the user's log hook. */
static void tell_unwatched(const coh_world *world)
{
    for (int rank = 0; rank < world->size; rank++)
        if (rank != world->rank && !cohi_far(world, rank) && !can_watch(world, rank))
            cohi_log(COH_LOG_WARN,
                     "rank %d: the end of rank %d cannot be noticed here: pidfd_open is refused, "
                     "and process %d is not visible; a wait for it ends with an error after "
                     "COHORT_STALL",
                     world->rank, rank, (int)world->peers[rank].pid);
}

static coh_status add_peers(coh_world *world)
{
    pthread_mutex_lock(&watcher.lock);
    coh_status status = make_room((size_t)world->size);
    for (int rank = 0; rank < world->size && status == COH_OK; rank++)
        if (can_watch(world, rank) || rank == world->rank)
            watcher.table[watcher.count++] =
                (struct watched){.world = world,
                                 .rank = rank,
                                 .pidfd = rank == world->rank ? -1 : world->peers[rank].pidfd,
                                 .pid = (pid_t)world->peers[rank].pid};
    if (status == COH_OK) {
        watcher.worlds++;
        world->watched = true;
        notify();
    }
    pthread_mutex_unlock(&watcher.lock);
    return status;
}

static void remove_peers(coh_world *world)
{
    pthread_mutex_lock(&watcher.lock);
    for (size_t i = watcher.count; i > 0; i--)
        if (watcher.table[i - 1].world == world)
            watcher.table[i - 1] = watcher.table[--watcher.count];
    watcher.worlds--;
    cohi_image_release(world);
    notify();
    while (watcher.attended == world)
        pthread_cond_wait(&watcher.released, &watcher.lock);
    pthread_mutex_unlock(&watcher.lock);
}

/* ---- the thread ---- */

static coh_status start_watcher(void)
{
    int error = 0;
    watcher.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watcher.wake < 0)
        error = errno;
    if (!error)
        error = cohi_os_fd_above_stdio(&watcher.wake);
    if (error)
        return cohi_fail_os(error, "coh_init: the watcher cannot be woken");
    watcher.process = getpid();
    return COH_OK;
}

static void clear_table(void)
{
    cohi_os_close(watcher.wake);
    watcher.wake = -1;
    free(watcher.table);
    watcher.table = NULL;
    watcher.count = watcher.room = 0;
}

/* A forked child starts from nothing: the thread, and what it watched, are the parent's. */
static void forget_parent(void)
{
    if (watcher.wake < 0 || watcher.process == getpid())
        return;
    clear_table();
    watcher.worlds = 0;
}

coh_status cohi_watch_add(coh_world *world)
{
    if (world->size == 1)
        return COH_OK;
    tell_unwatched(world);
    pthread_mutex_lock(&watcher.life);
    forget_parent();
    bool first = watcher.worlds == 0;
    coh_status status = first ? start_watcher() : COH_OK;
    if (status == COH_OK)
        status = add_peers(world);
    if (status == COH_OK && first) {
        int error = cohi_os_thread_start("cohort-watch", watch, NULL, &watcher.thread);
        if (error) {
            remove_peers(world);
            world->watched = false;
            status = cohi_fail_os(error, "coh_init: the watcher cannot be started");
        }
    }
    if (status != COH_OK && first)
        clear_table();
    pthread_mutex_unlock(&watcher.life);
    return status;
}

void cohi_watch_remove(coh_world *world)
{
    if (!world->watched)
        return;
    pthread_mutex_lock(&watcher.life);
    remove_peers(world);
    world->watched = false;
    if (watcher.worlds == 0) {
        pthread_join(watcher.thread, NULL);
        clear_table();
    }
    pthread_mutex_unlock(&watcher.life);
}

void cohi_watch_wake(void)
{
    pthread_mutex_lock(&watcher.lock);
    if (watcher.wake >= 0)
        notify();
    pthread_mutex_unlock(&watcher.lock);
}

void cohi_watch_hold(void)
{
    pthread_mutex_lock(&watcher.life);
    pthread_mutex_lock(&watcher.lock);
}

void cohi_watch_release(void)
{
    pthread_mutex_unlock(&watcher.lock);
    pthread_mutex_unlock(&watcher.life);
}
