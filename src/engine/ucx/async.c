#include "engine/ucx/ucx.h"

#include "base/os.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How UCX calls its thread, of which a process has one. */
static const char name[] = "async\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static cohi_ucx_threads marked;
static int workers;

static bool is_named_so(const char *thread)
{
    char path[300], text[sizeof name] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.200s/comm", thread);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(text, sizeof text, file);
    fclose(file);
    return read && strcmp(text, name) == 0;
}

void cohi_ucx_async_find(cohi_ucx_threads *found)
{
    found->count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (found->count < COHI_UCX_THREADS && is_named_so(entry->d_name))
            found->ids[found->count++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
}

static bool has(const cohi_ucx_threads *threads, int id)
{
    for (int i = 0; i < threads->count; i++)
        if (threads->ids[i] == id)
            return true;
    return false;
}

/* What was there before the first worker is the program's, whatever it is called. */
void cohi_ucx_async_begin(const cohi_ucx_threads *before)
{
    cohi_ucx_threads now;
    pthread_mutex_lock(&lock);
    cohi_ucx_async_find(&now);
    for (int i = 0; i < now.count && workers == 0; i++) {
        if (has(before, now.ids[i]))
            continue;
        marked.ids[marked.count++] = now.ids[i];
        cohi_os_thread_serves_as(now.ids[i], true);
    }
    workers++;
    pthread_mutex_unlock(&lock);
}

void cohi_ucx_async_end(void)
{
    pthread_mutex_lock(&lock);
    if (--workers == 0) {
        for (int i = 0; i < marked.count; i++)
            cohi_os_thread_serves_as(marked.ids[i], false);
        marked.count = 0;
    }
    pthread_mutex_unlock(&lock);
}
