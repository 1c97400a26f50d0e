#include "page.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Other programs of the host make names there too; ours would have ours in it. */
static void list_shm(char *names, size_t room)
{
    DIR *folder = opendir("/dev/shm");
    size_t used = (size_t)snprintf(names, room, "\n");
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) && used < room;)
        if (strstr(entry->d_name, "cohort"))
            used += (size_t)snprintf(names + used, room - used, "%s\n", entry->d_name);
    closedir(folder);
}

void test_leftovers_note(test_leftovers *before)
{
    before->descriptors = count_descriptors();
    list_shm(before->shm_names, sizeof before->shm_names);
}

static void check_shm(const test_leftovers *before)
{
    static char now[sizeof before->shm_names];
    list_shm(now, sizeof now);
    for (char *name = strtok(now, "\n"); name; name = strtok(NULL, "\n")) {
        char line[300];
        snprintf(line, sizeof line, "\n%s\n", name);
        if (!strstr(before->shm_names, line))
            test_fail("left behind: /dev/shm/%s", name);
    }
}

/* What a run's ranks left running is now this process's child, since it is their subreaper. */
static void check_children(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        test_fail("left behind: process %d, which has ended by itself since", (int)pid);
    if (pid < 0)
        return;
    FILE *file = fopen("/proc/thread-self/children", "re");
    int child;
    while (file && fscanf(file, "%d", &child) == 1) {
        test_fail("left behind: process %d, still running", child);
        kill(child, SIGKILL);
    }
    if (file)
        fclose(file);
    while (waitpid(-1, &status, 0) > 0)
        continue;
}

static bool own_descriptor(unsigned long inode)
{
    char wanted[64], path[300], target[128];
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *folder = opendir("/proc/self/fd");
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            found = strcmp(target, wanted) == 0;
        }
    }
    if (folder)
        closedir(folder);
    return found;
}

/* A socket lives as long as a process holds it. The run's processes are gone, so what is left
 * can be held only by this one; other sockets of that name are other jobs' on this host. */
static void check_sockets(void)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        unsigned long inode;
        if (strstr(line, "@cohort") && sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) == 1
            && own_descriptor(inode))
            test_fail("left behind: a socket of this process, %s", strchr(line, '@'));
    }
    if (file)
        fclose(file);
}

void test_leftovers_check(const test_leftovers *before)
{
    check_children();
    check_shm(before);
    check_sockets();
    int descriptors = count_descriptors();
    if (descriptors != before->descriptors)
        test_fail("left behind: %d descriptors more than before in the parent",
                  descriptors - before->descriptors);
}
