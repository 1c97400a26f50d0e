/* refuse.c - runs a program in a sandbox that refuses system calls: refuse ERROR CALL... -- COMMAND
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALLS_MAX = 16 };

struct named {
    const char *name;
    int number;
};

static const struct named errors[] = {{"EPERM", EPERM}, {"ENOSYS", ENOSYS}};

static const struct named calls[] = {
    {"accept4", SYS_accept4},
    {"close_range", SYS_close_range},
    {"eventfd", SYS_eventfd2},
    {"fallocate", SYS_fallocate},
    {"futex", SYS_futex},
    {"memfd_create", SYS_memfd_create},
    {"pidfd_open", SYS_pidfd_open},
#ifdef SYS_poll
    {"poll", SYS_poll},
#endif
    {"ppoll", SYS_ppoll},
    {"prctl", SYS_prctl},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"set_robust_list", SYS_set_robust_list},
    {"signalfd", SYS_signalfd4},
};

static int number_of(const struct named *table, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0)
            return table[i].number;
    }
    return -1;
}

static int install(const int *refused, int count, int error)
{
    struct sock_filter code[2 * CALLS_MAX + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short used = 1;
    for (int i = 0; i < count; i++) {
        code[used++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], 0, 1);
        code[used++] = (struct sock_filter)BPF_STMT(
            BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA));
    }
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = used, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Exits with 77 where the kernel has no filters, or the machine not the call. */
int main(int argc, char **argv)
{
    int refused[CALLS_MAX], count = 0, next = 2;
    int error = argc > 3 ? number_of(errors, sizeof errors / sizeof *errors, argv[1]) : -1;
    for (; next < argc && strcmp(argv[next], "--") != 0 && count < CALLS_MAX; next++) {
        int call = number_of(calls, sizeof calls / sizeof *calls, argv[next]);
        if (call < 0)
            return 77;
        refused[count++] = call;
    }
    if (error < 0 || next + 1 >= argc) {
        fprintf(stderr, "usage: refuse EPERM|ENOSYS CALL... -- COMMAND...\n");
        return 2;
    }
    if (install(refused, count, error) != 0)
        return 77;
    execvp(argv[next + 1], argv + next + 1);
    perror(argv[next + 1]);
    return 127;
}
