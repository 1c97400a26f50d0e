#include "engine/modules/threads.h"

#include "base/os.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static cohi_threads marked;

void cohi_threads_list(cohi_threads *found)
{
    DIR *folder = opendir("/proc/self/task");
    found->count = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (found->count < COHI_THREADS_MOST && entry->d_name[0] != '.')
            found->ids[found->count++] = atoi(entry->d_name);
    if (folder)
        closedir(folder);
}

static bool has_thread(const cohi_threads *threads, int id)
{
    for (int i = 0; i < threads->count; i++)
        if (threads->ids[i] == id)
            return true;
    return false;
}

static bool has_ended(int id)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", id);
    return access(path, F_OK) != 0;
}

void cohi_threads_unmark_ended(void)
{
    int kept = 0;
    for (int i = 0; i < marked.count; i++) {
        if (has_ended(marked.ids[i]))
            cohi_os_thread_serves_as(marked.ids[i], false);
        else
            marked.ids[kept++] = marked.ids[i];
    }
    marked.count = kept;
}

static void mark(int id)
{
    if (marked.count == COHI_THREADS_MOST || has_thread(&marked, id))
        return;
    marked.ids[marked.count++] = id;
    cohi_os_thread_serves_as(id, true);
}

void cohi_threads_mark_new(const cohi_threads *before)
{
    cohi_threads now;
    cohi_threads_unmark_ended();
    cohi_threads_list(&now);
    for (int i = 0; i < now.count; i++)
        if (!has_thread(before, now.ids[i]))
            mark(now.ids[i]);
}
