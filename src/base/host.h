/*
 * host.h - what the kernel and the CPU tell about this host.
 *
 * Facts, not measurements: reading them takes some tens of microseconds. What is not told is 0, and
 * cohi_host_facts gives every cache a size, so that nobody has to ask whether it is known.
 */
#ifndef COHI_BASE_HOST_H
#define COHI_BASE_HOST_H

#include <stdbool.h>
#include <stdint.h>

enum { COHI_HOST_TEXT_BYTES = 128 };

typedef struct cohi_host_facts {
    char cpu[COHI_HOST_TEXT_BYTES];    /* "AuthenticAMD 25/17/1 AMD EPYC": vendor, numbers, name */
    char kernel[COHI_HOST_TEXT_BYTES]; /* "Linux 6.1.0" */
    int cores;                         /* online */
    uint64_t level1, level2, level3;   /* bytes of one data cache of that level */
    int level3_cores;                  /* cores that share one of level 3 */

    /*
     * Whether the last-level cache is slow compared with the second level: Intel's server CPUs since
     * Skylake, whose third level is a victim cache behind a mesh. There a copy that no longer fits
     * the second level gains from stores past the caches (Sapphire Rapids: 13 GB/s cached, 18
     * streamed at 2 MiB); elsewhere only one that no longer fits the third does (Zen 3: 32 and 22,
     * Zen 4: 47 and 28).
     */
    bool slow_level3;
} cohi_host_facts;

/* The facts of this host, read once a process. */
const cohi_host_facts *cohi_host(void);

#endif
