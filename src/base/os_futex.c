#include "base/os.h"

#include "base/cancel.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Where a sandbox refuses to sleep on a word, a waiter looks again every millisecond; it would keep
 * its core busy otherwise. */
static void nap(uint64_t timeout_ns)
{
    uint64_t most = timeout_ns < COHI_NS_PER_MS ? timeout_ns : COHI_NS_PER_MS;
    int held = cohi_cancel_hold();
    nanosleep(&(struct timespec){.tv_nsec = (long)most}, NULL);
    cohi_cancel_release(held);
}

/* Not FUTEX_PRIVATE_FLAG: the word may be shared between processes. */
void cohi_os_futex_wait(atomic_uint *word, unsigned expected, uint64_t timeout_ns)
{
    int kept = errno;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / COHI_NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % COHI_NS_PER_S)};
    if (syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0) != 0
        && cohi_os_refused(errno))
        nap(timeout_ns);
    errno = kept;
}

void cohi_os_futex_wake(atomic_uint *word)
{
    int kept = errno;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = kept;
}

int cohi_os_futex_refused(void)
{
    unsigned word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0 ? errno : 0;
}
