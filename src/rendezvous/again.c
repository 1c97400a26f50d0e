#include "rendezvous/again.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/unique_id.h"

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;
static struct told {
    pid_t process; /* that was told; a forked child was not */
    const cohi_provider *provider;
    coh_unique_id id;
    int rank;
    int size;
    uint32_t joins;
    cohi_listeners listeners; /* of rank 0 */
} told;

static coh_status copy_listeners(const cohi_listeners *listeners, cohi_listeners *copy)
{
    int error = cohi_listeners_copy(listeners, copy);
    return error ? cohi_fail_os(error, "coh_init: cannot keep the socket for other hosts") : COH_OK;
}

/* The launcher's board serves the first job alone; leaders make one for each of the others. */
static coh_status recall(cohi_launch *launch)
{
    *launch = (cohi_launch)COHI_NO_LAUNCH;
    launch->rank = told.rank;
    launch->size = told.size;
    if (told.size == 1)
        return COH_OK;
    coh_status status = copy_listeners(&told.listeners, &launch->listeners);
    return status == COH_OK ? cohi_unique_id_derive(&told.id, told.joins, &launch->id) : status;
}

coh_status cohi_ask_again(const cohi_provider *provider, const cohi_config *config,
                          cohi_launch *launch)
{
    pthread_mutex_lock(&told_lock);
    bool again = told.process == getpid() && told.provider == provider;
    coh_status status = again ? recall(launch) : provider->ask(config, launch);
    if (status == COH_OK && !again)
        told = (struct told){getpid(),     provider, launch->id,  launch->rank,
                             launch->size, 0,        {.count = 0}};
    if (status == COH_OK && !again)
        (void)copy_listeners(&launch->listeners, &told.listeners);
    if (status == COH_OK)
        told.joins++;
    pthread_mutex_unlock(&told_lock);
    return status;
}
