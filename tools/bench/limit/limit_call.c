#include "bench/limit/limit.h"

#include "base/clock.h"

#include <string.h>

double cohi_limit_call(void *target, const void *source, uint64_t repeats)
{
    void *(*call)(void *, const void *, size_t) = memcpy;
    size_t bytes = 8;
    /* After this the compiler knows neither the function nor the length, so that each repeat is a
     * call of libc's memcpy, arguments and all. */
    __asm__("" : "+r"(call), "+r"(bytes));

    call(target, source, bytes);
    uint64_t start = cohi_now_ns();
    for (uint64_t i = 0; i < repeats; i++)
        call(target, source, bytes);
    return (double)(cohi_now_ns() - start) / (double)repeats;
}
