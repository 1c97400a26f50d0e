#include "base/log.h"

#include "base/cancel.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* Hook and argument change together, so they are read under a lock; the level is read without. */
static pthread_mutex_t hook_lock = PTHREAD_MUTEX_INITIALIZER;
static coh_log_hook *hook;
static void *hook_argument;
static int hook_chosen;
static atomic_int hook_level;

static void write_to_stderr(void *arg, coh_log_level level, const char *message)
{
    static const char *const names[] = {"", "error", "warning", "info", "debug"};
    (void)arg;
    dprintf(STDERR_FILENO, "cohort: %s: %s\n", names[level], message);
}

static void set_hook(coh_log_hook *new_hook, void *arg, coh_log_level level, int chosen)
{
    pthread_mutex_lock(&hook_lock);
    if (chosen || !hook_chosen) {
        hook = new_hook;
        hook_argument = arg;
        hook_chosen = chosen;
        atomic_store(&hook_level, new_hook ? (int)level : COH_LOG_OFF);
    }
    pthread_mutex_unlock(&hook_lock);
}

void coh_log_to(coh_log_hook *new_hook, void *arg, coh_log_level level)
{
    set_hook(new_hook, arg, level, 1);
}

void cohi_log_default(coh_log_level level)
{
    set_hook(level == COH_LOG_OFF ? NULL : write_to_stderr, NULL, level, 0);
}

int cohi_log_wants(coh_log_level level)
{
    return (int)level <= atomic_load_explicit(&hook_level, memory_order_relaxed);
}

void cohi_log(coh_log_level level, const char *format, ...)
{
    if (!cohi_log_wants(level))
        return;
    int kept = errno;
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);

    pthread_mutex_lock(&hook_lock);
    coh_log_hook *call = hook;
    void *arg = hook_argument;
    pthread_mutex_unlock(&hook_lock);
    int held = cohi_cancel_hold();
    if (call)
        call(arg, level, message);
    cohi_cancel_release(held);
    errno = kept;
}
