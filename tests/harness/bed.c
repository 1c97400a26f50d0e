/* bed.c - ranks on the hosts of a test bed (scripts/testbed), each a network namespace. */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *test_bed;

/* Hosts count from 1 there. */
static int open_host(int host)
{
    char path[128];
    snprintf(path, sizeof path, "/run/netns/%s%d", test_bed, host + 1);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A name of its own too: else all hosts would have this machine's. */
bool test_bed_enter(int host)
{
    char name[32];
    int fd = open_host(host);
    int length = snprintf(name, sizeof name, "h%d", host);
    bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && unshare(CLONE_NEWUTS) == 0
                   && sethostname(name, (size_t)length) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return entered;
}

/* The unique ids are made here and name rank 0's address, so this process goes where rank 0 will be. An
 * id names one only if a network was chosen. */
bool test_bed_choose(const char *name)
{
    test_bed = name;
    setenv("COHORT_NET_INTERFACE", "eth0", 1);
    if (test_hosts == 0)
        test_hosts = 2;
    for (int host = 0; host < test_hosts; host++) {
        int fd = open_host(host);
        if (fd < 0)
            return false;
        close(fd);
    }
    return test_bed_enter(0);
}
