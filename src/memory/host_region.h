/*
 * Room: memory.
 *
 * Memory of this host as bytes: regions that are backed as needed, copies, atomics, reductions,
 * conversions, and the measured profile of the host that chooses among loops.
 * Uses base and memory/kernels. Knows no rank, no heap and no peer.
 * Hides which loop runs for a size and a CPU.
 */
/*
 * host_region.h - a long range of host memory, reserved at once and backed as it is needed.
 *
 * A shared region is a sealed memfd, which other processes map by its descriptor; a private one is
 * anonymous memory. One's own starts on a boundary of COHI_REGION_ALIGNMENT, which is the most that
 * a block in it can be aligned to; a peer's on that of a huge page.
 */
#ifndef COHI_MEMORY_HOST_REGION_H
#define COHI_MEMORY_HOST_REGION_H

#include <cohort.h>
#include <stdint.h>

enum { COHI_REGION_ALIGNMENT = 16 << 20 };

typedef struct cohi_host_region {
    void *base;
    uint64_t bytes;
    int fd;   /* -1: private, or a peer's */
    int huge; /* huge pages were asked for */
} cohi_host_region;

/* Reserves. COH_LIMIT names the address-space limit where that is the reason. */
coh_status cohi_host_region_shared(uint64_t bytes, int huge, cohi_host_region *region);
coh_status cohi_host_region_private(uint64_t bytes, int huge, cohi_host_region *region);

/* Reserves a region over the file that begins with prepared memory (prepared.h). The file outlives
 * the region. */
coh_status cohi_host_region_prepared(uint64_t bytes, int huge, cohi_host_region *region);

/* Maps the first `bytes` of a peer's shared region; closes `fd`. */
coh_status cohi_host_region_attach(int fd, uint64_t bytes, int huge, cohi_host_region *region);

/* Backs [from, to), which are page multiples. COH_NO_MEMORY and no effect when there is none. */
coh_status cohi_host_region_commit(cohi_host_region *region, uint64_t from, uint64_t to);

/* Gives [from, to) back. */
void cohi_host_region_decommit(cohi_host_region *region, uint64_t from, uint64_t to);

/* Unmaps and closes; a zeroed region is ignored. */
void cohi_host_region_release(cohi_host_region *region);

#endif
