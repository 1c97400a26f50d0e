#include "page.h"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_SIGNAL = SIGUSR2, FRAMES = 64 };

static const double SECONDS_TO_PRINT =
    0.05; /* one stack after the other, so that lines don't mix */

static int stack_file = -1; /* where the handlers of all processes write */

static void print_own_stack(int signal_number)
{
    void *frames[FRAMES];
    (void)signal_number;
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES), stack_file);
}

void test_stacks_open(void)
{
    stack_file = memfd_create("stacks", MFD_CLOEXEC);
    fcntl(stack_file, F_SETFL, O_APPEND);
}

void test_stacks_prepare(void)
{
    void *frame;
    struct sigaction action = {.sa_handler = print_own_stack, .sa_flags = SA_RESTART};
    backtrace(&frame, 1); /* loads the unwinder now: a signal handler must not */
    sigaction(STACK_SIGNAL, &action, NULL);
}

/* "program(+0x1234)[0x...]" says nothing by itself; addr2line, where there is one, knows
 * function and line. */
static void print_frame(const char *line)
{
    char command[256], path[128];
    const char *offset = strstr(line, "(+0x");
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0)
        path[length] = '\0';
    FILE *resolver = NULL;
    if (offset && length > 0 && !strstr(line, ".so")) {
        snprintf(command, sizeof command, "addr2line -fps -e '%s' %.18s 2>/dev/null", path,
                 offset + 2);
        command[strcspn(command, ")")] = '\0';
        resolver = popen(command, "re");
    }
    char resolved[256];
    bool known = resolver && fgets(resolved, sizeof resolved, resolver);
    fprintf(stderr, "    %s", known ? resolved : line);
    if (resolver)
        pclose(resolver);
}

/* Prints what the handlers have written since the last time. */
static void print_frames(void)
{
    static off_t shown;
    static char text[65536];
    ssize_t length = pread(stack_file, text, sizeof text - 1, shown);
    if (length <= 0)
        return;
    shown += length;
    text[length] = '\0';
    for (char *next, *line = strtok_r(text, "\n", &next); line;
         line = strtok_r(NULL, "\n", &next)) {
        char whole[512];
        snprintf(whole, sizeof whole, "%s\n", line);
        print_frame(whole);
    }
}

static void read_line(const char *path, char *line, size_t room)
{
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (!file)
        return;
    if (fgets(line, (int)room, file))
        line[strcspn(line, "\n")] = '\0';
    fclose(file);
}

static bool blocks_signals(pid_t pid, const char *task)
{
    char path[320], line[256];
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, task);
    FILE *file = fopen(path, "re");
    unsigned long long mask = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "SigBlk:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return mask >> (STACK_SIGNAL - 1) & 1;
}

static void print_task(pid_t pid, const char *task)
{
    char path[320], name[64], wait[128];
    snprintf(path, sizeof path, "/proc/%d/task/%s/comm", (int)pid, task);
    read_line(path, name, sizeof name);
    snprintf(path, sizeof path, "/proc/%d/task/%s/wchan", (int)pid, task);
    read_line(path, wait, sizeof wait);
    bool blocked = blocks_signals(pid, task);
    fprintf(stderr, "--- process %d thread %s (%s), in kernel: %s%s\n", (int)pid, task, name, wait,
            blocked ? "; it blocks signals, so it has no stack to show" : "");
    fflush(stderr);
    if (blocked)
        return;
    syscall(SYS_tgkill, pid, atoi(task), STACK_SIGNAL);
    test_sleep(SECONDS_TO_PRINT);
    print_frames();
}

void test_stacks_print(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    kill(pid, SIGCONT); /* a stopped process could not answer */
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            print_task(pid, entry->d_name);
    closedir(folder);
}
