#include "start/process.h"

#include "core/heap/register.h"
#include "core/health/verdict.h"
#include "core/health/watch.h"

#include <errno.h>
#include <stdlib.h>

static void let_go(coh_world *world)
{
    if (!(atomic_load(&world->state) & COHI_WORLD_FORKED))
        cohi_verdict_let_go(world);
}

/* Ranks that are threads have no watcher: their streams are told here. The list of worlds is held. */
static void rank_ended(coh_world *world)
{
    cohi_verdict_pass(world, world->rank, cohi_verdict(COHI_VERDICT_LOST, COHI_LOSS_THREAD, 0));
    cohi_world_each_held(let_go);
}

static void mark_exiting(coh_world *world, void *arg)
{
    (void)arg;
    bool here = !(atomic_load(&world->state) & COHI_WORLD_FORKED);
    if (here && world->group && world->slot)
        atomic_store(&world->slot->phase, COHI_PHASE_EXITING);
}

static void at_exit(void)
{
    cohi_world_each(mark_exiting, NULL);
}

static void before_fork(void)
{
    cohi_watch_hold();
    cohi_world_hold();
    cohi_world_each_held(cohi_register_before_fork);
}

static void after_fork_in_parent(void)
{
    cohi_world_each_held(cohi_register_in_parent);
    cohi_world_release();
    cohi_watch_release();
}

/* The worlds are the parent's; one that the child makes is its own. */
static void after_fork_in_child(void)
{
    cohi_world_each_held(cohi_register_in_child); /* first: their list may be registered memory */
    cohi_world_disown_held();
    cohi_world_release();
    cohi_watch_release();
}

static int watch_threads(void)
{
    return cohi_world_watch_threads(rank_ended);
}

static int watch_forks(void)
{
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static int watch_exit(void)
{
    return atexit(at_exit) == 0 ? 0 : ENOMEM;
}

coh_status cohi_process_set_up(void)
{
    static int (*const steps[])(void) = {watch_threads, watch_forks, watch_exit};
    static size_t done;
    int error = 0;
    cohi_world_hold(); /* a lock that a fork hands to the child in order */
    while (done < sizeof steps / sizeof *steps && (error = steps[done]()) == 0)
        done++;
    cohi_world_release();
    if (error)
        return cohi_fail_os(error, "coh_init: this process cannot be set up for ranks");
    return COH_OK;
}
