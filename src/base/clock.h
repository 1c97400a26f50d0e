/* clock.h - time that never jumps. All ranks of a host read the same clock. */
#ifndef COHI_BASE_CLOCK_H
#define COHI_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define COHI_NS_PER_US UINT64_C(1000)
#define COHI_NS_PER_MS UINT64_C(1000000)
#define COHI_NS_PER_S  UINT64_C(1000000000)

static inline uint64_t cohi_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * COHI_NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif
