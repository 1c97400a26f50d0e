#include "bench/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* What its interface of version 1 (NVSHMEM 3.4 to 3.8) hands over at start; all of it is in its headers. */
typedef struct unique_id {
    int version;
    char internal[124];
} unique_id;

typedef struct init_attributes {
    int version;
    void *mpi_communicator;
    struct {
        int version;
        struct {
            int version;
            unique_id *id;
            int rank, ranks;
        } unique;
        char rest[96];
    } arguments;
} init_attributes;

_Static_assert(sizeof(unique_id) == 128, "as its headers have it");
_Static_assert(sizeof(init_attributes) == 144, "as its headers have it");

enum { FIRST = 1 << 16, WITH_UNIQUE_ID = 1 << 3 };

static struct {
    int (*unique_id)(unique_id *id);
    int (*join)(unsigned flags, init_attributes *attributes);
    void (*version)(int *major, int *minor, int *patch);
} start;

static cohi_gpu_nvshmem calls;
static int ours; /* to end */

static const struct symbol {
    const char *name;
    void *place;
} symbols[] = {
    {"nvshmemx_get_uniqueid", &start.unique_id},
    {"nvshmemx_hostlib_init_attr", &start.join},
    {"nvshmemx_vendor_get_version_info", &start.version},
    {"nvshmem_align", &calls.align},
    {"nvshmem_free", &calls.free},
    {"nvshmemx_putmem_on_stream", &calls.put},
    {"nvshmemx_getmem_on_stream", &calls.get},
    {"nvshmemx_signal_op_on_stream", &calls.signal},
    {"nvshmemx_signal_wait_until_on_stream", &calls.wait},
    {"nvshmemx_barrier_all_on_stream", &calls.barrier},
    {"nvshmemx_float_sum_reduce_on_stream", &calls.sum_f32},
    {"nvshmemx_bfloat16_sum_reduce_on_stream", &calls.sum_bf16},
    {"nvshmemx_float_sum_reducescatter_on_stream", &calls.reduce_scatter},
    {"nvshmemx_float_fcollect_on_stream", &calls.all_gather},
    {"nvshmemx_float_broadcast_on_stream", &calls.broadcast},
    {"nvshmemx_float_alltoall_on_stream", &calls.all_to_all},
    {"nvshmemx_hostlib_finalize", &calls.finalize},
};

/* By the loader's own ways, or where NVSHMEM_HOST_LIBRARY says. */
static int find_library(char *why, size_t room)
{
    const char *path = getenv("NVSHMEM_HOST_LIBRARY");
    void *library = dlopen(path && *path ? path : "libnvshmem_host.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, room, "%s", dlerror());
        return -1;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            snprintf(why, room, "it has no %s", symbols[i].name);
            return -1;
        }
        memcpy(symbols[i].place, &address, sizeof address);
    }
    return 0;
}

/* A share that the user set stays. */
int cohi_gpu_nvshmem_prepare(int ranks, char *why, size_t room)
{
    char share[16];
    if (find_library(why, room) != 0)
        return -1;
    snprintf(share, sizeof share, "%d", ranks > 0 && ranks <= 100 ? 100 / ranks : 1);
    return setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share, 0);
}

/* Whether `mine` holds on all ranks. */
static int on_all(coh_world *world, int mine)
{
    int32_t one = mine, all = 0;
    return coh_all_reduce(coh_team_world(world), COH_I32, COH_MIN, &one, &all, 1) == COH_OK && all;
}

static int join(coh_world *world, uint64_t heap)
{
    unique_id id = {.version = FIRST + (int)sizeof id};
    char bytes[32];
    int made = coh_rank(world) != 0 || start.unique_id(&id) == 0;
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)heap);
    setenv("NVSHMEM_SYMMETRIC_SIZE", bytes, 0);
    if (!on_all(world, made)
        || coh_broadcast(coh_team_world(world), COH_U8, &id, &id, sizeof id, 0) != COH_OK)
        return -1;
    init_attributes attributes = {.version = FIRST + (int)sizeof attributes};
    attributes.arguments.version = FIRST + (int)sizeof attributes.arguments;
    attributes.arguments.unique.version = FIRST + (int)sizeof attributes.arguments.unique;
    attributes.arguments.unique.id = &id;
    attributes.arguments.unique.rank = coh_rank(world);
    attributes.arguments.unique.ranks = coh_size(world);
    return start.join(WITH_UNIQUE_ID, &attributes);
}

cohi_gpu_nvshmem *cohi_gpu_nvshmem_open(coh_world *world, uint64_t heap, char *why, size_t room)
{
    int major = 0, minor = 0, patch = 0;
    snprintf(why, room, "another rank could not open it");
    int found = find_library(why, room) == 0;
    if (!on_all(world, found))
        return NULL;
    start.version(&major, &minor, &patch);
    int known = major == 3;
    if (!known)
        snprintf(why, room, "version %d.%d.%d; this tool knows version 3", major, minor, patch);
    if (!on_all(world, known))
        return NULL;
    ours = heap > 0;
    int joined = !ours || join(world, heap) == 0;
    if (!joined)
        snprintf(why, room, "nvshmemx_hostlib_init_attr failed; NVSHMEM_DEBUG=WARN tells more");
    if (!on_all(world, joined))
        return NULL;
    snprintf(calls.version, sizeof calls.version, "NVSHMEM %d.%d.%d", major, minor, patch);
    return &calls;
}

void cohi_gpu_nvshmem_close(cohi_gpu_nvshmem *nvshmem)
{
    if (nvshmem && ours)
        nvshmem->finalize();
}
