/* nvshmem.c - the descriptor, and NVSHMEM's start and end. */
#include "engine/nvshmem/nvshmem.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/cuda/cards.h"
#include "engine/cuda/under_way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* It starts within seconds, and reads its transports' libraries from disk; all ranks come at the same time. */
#define START_LIMIT_NS (60 * COHI_NS_PER_S)

/* All ranks have parted before. */
#define END_LIMIT_NS (10 * COHI_NS_PER_S)

/* ---- probing ---- */

static coh_status probe(const cohi_need *need)
{
    const cohi_nvshmem_library *library;
    const cohi_cuda_library *driver;
    coh_status status = cohi_nvshmem_library_open(&library);
    if (status == COH_OK)
        status = cohi_cuda_library_open(&driver);
    if (status == COH_OK && need->in_process)
        status = cohi_fail(COH_NOT_AVAILABLE,
                           "nvshmem: NVSHMEM has one rank a process, and these ranks are threads "
                           "of one");
    return status;
}

static bool describe_library(char *text, size_t room)
{
    const cohi_nvshmem_library *library;
    const cohi_cuda_library *driver;
    char cards[160];
    if (cohi_nvshmem_library_open(&library) != COH_OK || cohi_cuda_library_open(&driver) != COH_OK
        || !cohi_cuda_cards_describe(driver, cards, sizeof cards))
        return false;
    snprintf(text, room, "NVSHMEM %d.%d.%d (%s), %s", library->major, library->minor,
             library->patch, library->path, cards);
    return true;
}

/* ---- opening ---- */

static void forget(cohi_endpoint *endpoint)
{
    free(endpoint->beneath);
    cohi_cuda_close(endpoint);
}

/* Rank 0's id is where the others will find it: a thread of NVSHMEM's listens there, for whoever comes. Ranks of one
 * host need no other network than their own. */
static coh_status make_id(const cohi_endpoint *endpoint, int hosts, cohi_nvshmem *own)
{
    if (hosts == 1)
        (void)setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
    own->id.form = COHI_NVSHMEM_FORM_1(cohi_nvshmem_id);
    if (endpoint->rank != 0)
        return COH_OK;
    int error = own->library->get_id(&own->id);
    return error == 0 ? COH_OK
                      : cohi_fail(COH_NOT_AVAILABLE,
                                  "nvshmem: NVSHMEM makes no unique id (error %d); "
                                  "NVSHMEM_DEBUG=WARN tells more",
                                  error);
}

static cohi_nvshmem_wanted read_wanted(const char *text)
{
    if (text && strcmp(text, "auto") == 0)
        return COHI_NVSHMEM_FASTER;
    return text && strcmp(text, "nvshmem") == 0 ? COHI_NVSHMEM_THEIRS : COHI_NVSHMEM_OURS;
}

static coh_status open_endpoint(const cohi_engine_args *args, cohi_endpoint **made)
{
    const cohi_nvshmem_library *library;
    cohi_endpoint *endpoint;
    coh_status status = cohi_nvshmem_library_open(&library);
    if (status == COH_OK)
        status = cohi_cuda_open(args, cohi_nvshmem_memory_close, &endpoint);
    if (status != COH_OK)
        return status;
    cohi_nvshmem *own = calloc(1, sizeof *own);
    endpoint->beneath = own;
    endpoint->far = &cohi_nvshmem_far;
    if (own) {
        const char *reach = getenv("COHORT_TEST_NVSHMEM_REACH");
        own->library = library;
        own->calls_only = reach && strcmp(reach, "calls") == 0;
        own->wanted = read_wanted(getenv("COHORT_NVSHMEM_COLLECTIVES"));
        cohi_cuda_guard guard = cohi_cuda_enter(endpoint);
        status = make_id(endpoint, args->need.hosts, own);
        cohi_cuda_leave(endpoint, guard);
    } else {
        status = cohi_fail(COH_NO_MEMORY, "nvshmem: out of memory for an endpoint");
    }
    if (status == COH_OK)
        *made = endpoint;
    else
        forget(endpoint);
    return status;
}

static coh_status get_address(cohi_endpoint *endpoint, unsigned char *address)
{
    const cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    cohi_nvshmem_address mine = {.id = own->id,
                                 .major = own->library->major,
                                 .minor = own->library->minor,
                                 .patch = own->library->patch,
                                 .wanted = (int32_t)own->wanted};
    coh_status status = cohi_cuda_get_address(endpoint, address);
    memcpy(address + COHI_NVSHMEM_ADDRESS_AT, &mine, sizeof mine);
    return status;
}

/* ---- starting NVSHMEM ---- */

struct start {
    cohi_nvshmem_id id;
    int rank, size;
    int error, pe, pes;
};

static void start_library(const cohi_nvshmem_library *library, void *arg)
{
    struct start *start = arg;
    cohi_nvshmem_attributes attributes = {.form = COHI_NVSHMEM_FORM_1(cohi_nvshmem_attributes)};
    attributes.arguments.form = COHI_NVSHMEM_FORM_1(cohi_nvshmem_arguments);
    attributes.arguments.joining =
        (cohi_nvshmem_joining){.form = COHI_NVSHMEM_FORM_1(cohi_nvshmem_joining),
                               .id = &start->id,
                               .rank = start->rank,
                               .ranks = start->size};
    start->error = library->join(COHI_NVSHMEM_WITH_ID, &attributes);
    start->pe = start->error == 0 ? library->my_pe() : -1;
    start->pes = start->error == 0 ? library->n_pes() : -1;
}

static coh_status check_versions(const cohi_endpoint *endpoint,
                                 const unsigned char (*addresses)[COHI_ADDRESS_BYTES])
{
    const cohi_nvshmem_library *library = cohi_nvshmem_of(endpoint)->library;
    for (int rank = 0; rank < endpoint->size; rank++) {
        cohi_nvshmem_address told;
        memcpy(&told, addresses[rank] + COHI_NVSHMEM_ADDRESS_AT, sizeof told);
        if (told.major != library->major || told.minor != library->minor
            || told.patch != library->patch)
            return cohi_fail(COH_MISMATCH,
                             "nvshmem: rank %d has NVSHMEM %d.%d.%d, rank %d has %d.%d.%d", rank,
                             told.major, told.minor, told.patch, endpoint->rank, library->major,
                             library->minor, library->patch);
    }
    return COH_OK;
}

static coh_status join(cohi_endpoint *endpoint, const unsigned char *address_of_root)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    cohi_nvshmem_address root;
    memcpy(&root, address_of_root + COHI_NVSHMEM_ADDRESS_AT, sizeof root);
    own->wanted = (cohi_nvshmem_wanted)root.wanted;
    struct start start = {.id = root.id, .rank = endpoint->rank, .size = endpoint->size};
    uint64_t before = cohi_now_ns();
    coh_status status = cohi_nvshmem_guard(endpoint, "nvshmemx_hostlib_init_attr", start_library,
                                           &start, sizeof start, START_LIMIT_NS);
    if (status != COH_OK)
        return status;
    if (start.error != 0)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "nvshmem: NVSHMEM %d.%d.%d does not start (nvshmemx_hostlib_init_attr "
                         "returned %d); NVSHMEM_DEBUG=WARN tells more",
                         own->library->major, own->library->minor, own->library->patch,
                         start.error);
    own->joined = true;
    if (start.pe != endpoint->rank || start.pes != endpoint->size)
        return cohi_fail(COH_TRANSPORT,
                         "nvshmem: NVSHMEM has this process as rank %d of %d, where it is %d of %d",
                         start.pe, start.pes, endpoint->rank, endpoint->size);
    cohi_log(COH_LOG_INFO, "nvshmem: rank %d: NVSHMEM %d.%d.%d started in %.1f ms", endpoint->rank,
             own->library->major, own->library->minor, own->library->patch,
             (double)(cohi_now_ns() - before) / 1e6);
    return COH_OK;
}

/*
 * NVSHMEM's own collectives wait on the card for the other ranks. Where several share one it ends the process
 * that calls them, unless MPS is there and has given the ranks parts (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE) that
 * add up to the whole or less.
 */
static bool can_run_together(const cohi_endpoint *endpoint)
{
    bool together = true;
    for (int rank = 0; rank < endpoint->size; rank++) {
        const cohi_cuda_address *one = &endpoint->addresses[rank];
        int parts = 0, sharers = 0;
        for (int other = 0; other < endpoint->size; other++) {
            const cohi_cuda_address *two = &endpoint->addresses[other];
            bool shared = endpoint->host_of[rank] == endpoint->host_of[other]
                          && memcmp(one->uuid, two->uuid, sizeof one->uuid) == 0;
            sharers += shared;
            parts += shared ? two->multiprocessors : 0;
        }
        together &= sharers == 1 || (one->mps && parts <= one->of_card);
    }
    return together;
}

static coh_status connect_endpoint(cohi_endpoint *endpoint,
                                   const unsigned char (*addresses)[COHI_ADDRESS_BYTES],
                                   const int *host_of)
{
    coh_status status = cohi_cuda_connect(endpoint, addresses, host_of);
    if (status == COH_OK)
        status = check_versions(endpoint, addresses);
    if (status == COH_OK)
        status = join(endpoint, addresses[0]);
    cohi_nvshmem_of(endpoint)->collectives = can_run_together(endpoint);
    return status == COH_OK ? cohi_nvshmem_memory_open(endpoint) : status;
}

/* ---- ending it ---- */

static void end_library(const cohi_nvshmem_library *library, void *arg)
{
    (void)arg;
    library->finalize();
}

static void abandon(cohi_endpoint *endpoint)
{
    cohi_nvshmem_of(endpoint)->abandoned = true;
}

static bool has_lost_any(cohi_endpoint *endpoint)
{
    bool any = false;
    pthread_mutex_lock(&endpoint->lock);
    for (int rank = 0; rank < endpoint->size; rank++)
        any |= endpoint->lost[rank];
    pthread_mutex_unlock(&endpoint->lock);
    return any;
}

/* Its end waits for all ranks. Where one will not come it is left as it is until the process ends. */
static void close_endpoint(cohi_endpoint *endpoint)
{
    cohi_nvshmem *own = cohi_nvshmem_of(endpoint);
    char none = 0;
    if (own->joined && !own->abandoned && !own->refused && !has_lost_any(endpoint)
        && cohi_nvshmem_guard(endpoint, "nvshmemx_hostlib_finalize", end_library, &none,
                              sizeof none, END_LIMIT_NS)
               != COH_OK)
        cohi_log(COH_LOG_WARN,
                 "nvshmem: rank %d: NVSHMEM's end waits for a rank that does not come; it is left "
                 "until the process ends",
                 endpoint->rank);
    forget(endpoint);
}

/* ---- facts ---- */

static void query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .worlds_at_once = 1,
                                 .closes_for_good = 1,
                                 .commits_whole = 1,
                                 .reaches_far = 1,
                                 .control_bytes = COHI_CUDA_CONTROL_BYTES};
    if (endpoint)
        cohi_cuda_query(endpoint, facts);
}

static const cohi_engine_lifecycle lifecycle = {
    .size = sizeof lifecycle,
    .probe = probe,
    .open = open_endpoint,
    .address = get_address,
    .connect = connect_endpoint,
    .leave = cohi_cuda_under_way_leave,
    .close = close_endpoint,
    .query = query,
    .lose = cohi_cuda_lose,
    .cancel = cohi_cuda_under_way_cancel,
    .progress = cohi_cuda_under_way_progress,
    .abandon = abandon,
    .settle = cohi_nvshmem_tune,
};

const cohi_engine cohi_engine_nvshmem = {
    .size = sizeof cohi_engine_nvshmem,
    .contract = COHI_CONTRACT,
    .name = "nvshmem",
    .lifecycle = &lifecycle,
    .memory = &cohi_nvshmem_memory,
    .rma = &cohi_cuda_rma,
    .atomic = &cohi_cuda_atomic,
    .stream = &cohi_cuda_stream,
    .cards = &cohi_cuda_cards,
    .library = describe_library,
};
