#include "engine/modules/threads.h"

#include "base/os.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>

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

void cohi_threads_mark_new(const cohi_threads *before)
{
    cohi_threads now;
    cohi_threads_list(&now);
    for (int i = 0; i < now.count; i++)
        if (!has_thread(before, now.ids[i]))
            cohi_os_thread_serves_as(now.ids[i], true);
}
