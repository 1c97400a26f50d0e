/*
 * os_threads.c - what the other threads of this process do, as /proc tells.
 *
 * A thread that sleeps in a futex without a time limit wakes only when another thread wakes it: an
 * idle pool, a main thread in pthread_join. Whatever else a thread does, it may come to something
 * by itself.
 */
#include "base/atomics.h"
#include "base/os.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int cohi_os_thread_id(void)
{
    static _Thread_local int id;
    static _Thread_local pid_t of; /* a forked child's first thread has another one */
    if (id == 0 || of != getpid()) {
        of = getpid();
        id = (int)syscall(SYS_gettid);
    }
    return id;
}

/* ---- threads of ours that do nothing of the program's ---- */

enum { SERVANTS = 64 };

static atomic_int servants[SERVANTS];

void cohi_os_thread_serves_as(int thread, bool serves)
{
    for (int i = 0; i < SERVANTS; i++) {
        int expected = serves ? 0 : thread;
        if (atomic_compare_exchange_strong(&servants[i], &expected, serves ? thread : 0))
            return;
    }
}

void cohi_os_thread_serves(bool serves)
{
    cohi_os_thread_serves_as(cohi_os_thread_id(), serves);
}

static bool is_servant(int id)
{
    for (int i = 0; i < SERVANTS; i++)
        if (atomic_load_explicit(&servants[i], memory_order_relaxed) == id)
            return true;
    return false;
}

/* ---- looking ---- */

/* Reads `name` of the thread's folder, as a string; false when it cannot be read. */
static bool read_file(int id, const char *name, char *text, size_t room)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", id, name);
    return cohi_os_read_start(path, text, room) > 0;
}

static char state_of(int id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    return cohi_os_state_in(path);
}

/* One that is listed and cannot be read has ended meanwhile. */
static bool has_ended(int id)
{
    char state = state_of(id);
    return state == 0 || state == 'Z' || state == 'X';
}

enum { ARGUMENTS = 4 };

/* "202 0x7f.. 0x189 0x0 0x0 ...": the number of the system call that it is in, and its arguments;
 * -1 when it is in none, or that is not told. */
static long call_of(int id, unsigned long arguments[ARGUMENTS])
{
    char text[256], *at;
    if (!read_file(id, "syscall", text, sizeof text))
        return -1;
    long number = strtol(text, &at, 10);
    if (at == text)
        return -1;
    for (int i = 0; i < ARGUMENTS; i++)
        arguments[i] = strtoul(at, &at, 16);
    return number;
}

/* The fourth argument is the time limit. */
static bool sleeps_until_woken(int id)
{
    unsigned long arguments[ARGUMENTS];
    return call_of(id, arguments) == SYS_futex && arguments[3] == 0;
}

/* ThreadSanitizer has a thread in every process, which sleeps and looks in turn. */
static bool is_sanitizers(int id)
{
#ifdef COHI_TSAN
    unsigned long arguments[ARGUMENTS];
    long number = call_of(id, arguments);
    return number == SYS_nanosleep || number == SYS_clock_nanosleep;
#else
    (void)id;
    return false;
#endif
}

/* How often it ran, and for how long: differs if it has run since. */
static uint64_t runs_of(int id)
{
    char text[128], *at;
    if (!read_file(id, "schedstat", text, sizeof text))
        return 0;
    uint64_t ran_ns = strtoull(text, &at, 10);
    (void)strtoull(at, &at, 10); /* waited for a core */
    return ran_ns + strtoull(at, NULL, 10);
}

void cohi_os_thread_look(int id, cohi_os_threads *seen)
{
    if (has_ended(id) || is_sanitizers(id))
        return;
    seen->others++;
    seen->busy = seen->busy || !sleeps_until_woken(id);
    seen->runs += runs_of(id);
}

/* By the names that cohi_os_thread_start gives; others that serve are those of an engine's library. */
static bool is_ours(int id)
{
    static const char start[] = "cohort-";
    char text[64];
    return is_servant(id)
           || (read_file(id, "comm", text, sizeof text)
               && strncmp(text, start, sizeof start - 1) == 0);
}

bool cohi_os_program_ended(void)
{
    if (state_of((int)getpid()) != 'Z')
        return false;
    DIR *folder = opendir("/proc/self/task");
    bool ended = folder != NULL;
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry && ended;
         entry = readdir(folder)) {
        int id = atoi(entry->d_name);
        ended = id <= 0 || is_ours(id) || has_ended(id);
    }
    if (folder)
        closedir(folder);
    return ended;
}

bool cohi_os_threads_look(bool (*is_known)(int id, void *arg), void *arg, cohi_os_threads *seen)
{
    *seen = (cohi_os_threads){0};
    DIR *folder = opendir("/proc/self/task");
    if (!folder)
        return false;
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        int id = atoi(entry->d_name);
        if (id > 0 && id != cohi_os_thread_id() && !is_servant(id) && !is_known(id, arg))
            cohi_os_thread_look(id, seen);
        if (seen->busy)
            break;
    }
    closedir(folder);
    return true;
}
