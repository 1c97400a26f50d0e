#include "run/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel's highest process number, and one. */
enum { PID_END = 1 << 22 };

struct process {
    pid_t pid;
    pid_t parent;
    int below; /* a descendant of this process */
};

static pid_t parent_of(pid_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t got = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[got] = '\0';
    char *after_name = strrchr(line, ')'); /* the name itself may hold anything */
    int parent = 0;
    if (after_name && sscanf(after_name, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

/* All processes that /proc shows; the caller frees them. */
static size_t list_processes(struct process **list)
{
    DIR *folder = opendir("/proc");
    size_t count = 0, room = 0;
    *list = NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (count == room) {
            room = room ? room * 2 : 256;
            struct process *longer = realloc(*list, room * sizeof **list);
            if (!longer)
                break;
            *list = longer;
        }
        pid_t pid = (pid_t)atoi(entry->d_name);
        (*list)[count++] = (struct process){.pid = pid, .parent = parent_of(pid)};
    }
    if (folder)
        closedir(folder);
    return count;
}

static int is_below(const struct process *list, size_t count, pid_t parent)
{
    if (parent == getpid())
        return 1;
    for (size_t i = 0; i < count; i++) {
        if (list[i].pid == parent)
            return list[i].below;
    }
    return 0;
}

/* Marks until nothing changes: a child may be listed before its parent. */
static void mark_below(struct process *list, size_t count)
{
    int changed;
    do {
        changed = 0;
        for (size_t i = 0; i < count; i++) {
            if (list[i].below || !is_below(list, count, list[i].parent))
                continue;
            list[i].below = changed = 1;
        }
    } while (changed);
}

void cohi_descendants_signal(int signal)
{
    struct process *list;
    size_t count = list_processes(&list);
    if (count == 0)
        cohi_children_signal(signal, NULL, 0);
    mark_below(list, count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].below)
            kill(list[i].pid, signal);
    }
    free(list);
}

static int is_spared(pid_t pid, const pid_t *spared, int count)
{
    for (int i = 0; i < count; i++) {
        if (spared[i] == pid)
            return 1;
    }
    return 0;
}

static int add_child(pid_t **list, int *count, pid_t pid)
{
    enum { STEP = 64 };
    if (*count % STEP == 0) {
        pid_t *longer = realloc(*list, (size_t)(*count + STEP) * sizeof **list);
        if (!longer)
            return -1;
        *list = longer;
    }
    (*list)[(*count)++] = pid;
    return 0;
}

/* ---- without /proc ---- */

/* Whether `pid` is a child of this process, a zombie too; the kernel tells only parents. */
static int is_child(idtype_t kind, pid_t pid)
{
    siginfo_t info;
    return waitid(kind, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void try_numbers(pid_t from, pid_t to, pid_t **list, int *count)
{
    for (pid_t pid = from; pid < to; pid++) {
        if (is_child(P_PID, pid) && add_child(list, count, pid) != 0)
            return;
    }
}

/* The number that was given out last, or 0. */
static pid_t newest_number(void)
{
    pid_t probe = fork();
    if (probe == 0)
        _exit(0);
    while (probe > 0 && waitpid(probe, NULL, 0) < 0 && errno == EINTR)
        continue;
    return probe > 0 ? probe : 0;
}

/* Numbers are given out in a circle, and a child is younger than this process: its number lies
 * between this one's and the newest, unless they have gone round since. */
static int try_children(pid_t **list)
{
    int count = 0;
    pid_t self = getpid();
    *list = NULL;
    if (!is_child(P_ALL, 0))
        return 0;
    pid_t newest = newest_number();
    if (newest > self)
        try_numbers(self + 1, newest, list, &count);
    if (count == 0)
        try_numbers(1, PID_END, list, &count);
    return count;
}

/* ---- the children ---- */

/* The slow way, for kernels that keep no list of children. */
static int scan_children(pid_t **list)
{
    struct process *all;
    size_t processes = list_processes(&all);
    int count = 0;
    if (processes == 0)
        return try_children(list);
    *list = calloc(processes + 1, sizeof **list);
    for (size_t i = 0; *list && i < processes; i++) {
        if (all[i].parent == getpid())
            (*list)[count++] = all[i].pid;
    }
    free(all);
    return count;
}

static int read_children(FILE *file, pid_t **list)
{
    int count = 0, pid;
    *list = NULL;
    while (fscanf(file, "%d", &pid) == 1 && add_child(list, &count, pid) == 0)
        continue;
    return count;
}

int cohi_children_list(pid_t **list)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        return scan_children(list);
    int count = read_children(file, list);
    fclose(file);
    return count;
}

int cohi_children_has(pid_t pid)
{
    return is_child(P_PID, pid);
}

int cohi_children_signal(int signal, const pid_t *spared, int count)
{
    pid_t *list;
    int children = cohi_children_list(&list), signalled = 0;
    for (int i = 0; i < children; i++) {
        if (!is_spared(list[i], spared, count) && kill(list[i], signal) == 0)
            signalled++;
    }
    free(list);
    return signalled;
}
