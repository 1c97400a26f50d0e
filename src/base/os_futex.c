#include "base/os.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE_FLAG: the word may be shared between processes. */
void cohi_os_futex_wait(atomic_uint *word, unsigned expected, uint64_t timeout_ns)
{
    int kept = errno;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / COHI_NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % COHI_NS_PER_S)};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
    errno = kept;
}

void cohi_os_futex_wake(atomic_uint *word)
{
    int kept = errno;
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = kept;
}
