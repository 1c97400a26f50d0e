#include "memory/host_region.h"

#include "base/error.h"
#include "base/os.h"
#include "memory/prepared.h"

enum { HUGE_PAGE_BYTES = 2 << 20 };

static coh_status fail_map(int error, uint64_t bytes)
{
    uint64_t left = cohi_os_address_space_left();
    if (left < bytes)
        return cohi_fail(COH_LIMIT,
                         "cannot map %llu bytes: the address-space limit (RLIMIT_AS, ulimit -v) "
                         "leaves %llu; lower COHORT_HEAP or raise the limit",
                         (unsigned long long)bytes, (unsigned long long)left);
    return cohi_fail_os(error, "cannot map %llu bytes", (unsigned long long)bytes);
}

static coh_status finish(cohi_host_region made, cohi_host_region *region)
{
    if (made.huge)
        cohi_os_advise_huge(made.base, made.bytes);
    *region = made;
    return COH_OK;
}

/* Maps the file that was to be had, or else `error`. */
static coh_status map_own(int error, cohi_host_region made, cohi_host_region *region)
{
    if (error)
        return cohi_fail_os(error, "cannot make a heap of %llu bytes",
                            (unsigned long long)made.bytes);
    error = cohi_os_map_shared(made.fd, made.bytes, COHI_REGION_ALIGNMENT, &made.base);
    if (error) {
        cohi_os_close(made.fd);
        return fail_map(error, made.bytes);
    }
    return finish(made, region);
}

coh_status cohi_host_region_shared(uint64_t bytes, int huge, cohi_host_region *region)
{
    cohi_host_region made = {.bytes = bytes, .fd = -1, .huge = huge};
    int error = cohi_os_shared_create("cohort-heap", bytes, &made.fd);
    return map_own(error, made, region);
}

coh_status cohi_host_region_prepared(uint64_t bytes, int huge, cohi_host_region *region)
{
    cohi_host_region made = {.bytes = bytes, .fd = -1, .huge = huge};
    int error = cohi_prepared_file(&made.fd);
    return map_own(error, made, region);
}

coh_status cohi_host_region_private(uint64_t bytes, int huge, cohi_host_region *region)
{
    cohi_host_region made = {.bytes = bytes, .fd = -1, .huge = huge};
    int error = cohi_os_map_private(bytes, COHI_REGION_ALIGNMENT, &made.base);
    if (error)
        return fail_map(error, bytes);
    return finish(made, region);
}

coh_status cohi_host_region_attach(int fd, uint64_t bytes, int huge, cohi_host_region *region)
{
    cohi_host_region made = {.bytes = bytes, .fd = -1, .huge = huge};
    size_t there;
    int error = cohi_os_file_bytes(fd, &there);
    if (!error && there >= bytes)
        error = cohi_os_map_shared(fd, bytes, HUGE_PAGE_BYTES, &made.base);
    cohi_os_close(fd);
    if (error)
        return fail_map(error, bytes);
    if (there < bytes)
        return cohi_fail(COH_TRANSPORT, "a peer's segment has %zu bytes where %llu were announced",
                         there, (unsigned long long)bytes);
    return finish(made, region);
}

coh_status cohi_host_region_commit(cohi_host_region *region, uint64_t from, uint64_t to)
{
    int error = region->fd >= 0 ? cohi_os_commit_shared(region->fd, from, to)
                                : cohi_os_commit_private(region->base, from, to);
    if (error)
        return cohi_fail_os(error, "cannot back %llu more bytes with memory",
                            (unsigned long long)(to - from));
    return COH_OK;
}

void cohi_host_region_decommit(cohi_host_region *region, uint64_t from, uint64_t to)
{
    if (region->fd >= 0)
        (void)cohi_os_decommit_shared(region->fd, from, to);
    else
        cohi_os_decommit_private(region->base, from, to);
}

void cohi_host_region_release(cohi_host_region *region)
{
    if (!region->base)
        return;
    cohi_os_unmap(region->base, region->bytes);
    cohi_os_close(region->fd);
    *region = (cohi_host_region){.fd = -1};
}
