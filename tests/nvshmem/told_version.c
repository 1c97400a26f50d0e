/*
 * told_version.c - a library that has NVSHMEM's name and tells the version in TEST_NVSHMEM_VERSION, and nothing
 * else: what engine nvshmem asks before it asks for more.
 */
#include <stdio.h>
#include <stdlib.h>

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch);

__attribute__((visibility("default"))) void nvshmemx_vendor_get_version_info(int *major, int *minor,
                                                                             int *patch)
{
    const char *told = getenv("TEST_NVSHMEM_VERSION");
    if (!told || sscanf(told, "%d.%d.%d", major, minor, patch) != 3)
        abort();
}
