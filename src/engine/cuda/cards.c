#include "engine/cuda/cards.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Kernels use what cards of this capability and later have: ordered loads and stores of the whole system,
 * and sums of bf16. */
enum { LEAST_MAJOR = 8 };

coh_status cohi_cuda_cards_count(const cohi_cuda_library *library, int *count)
{
    CUresult result = library->cuDeviceGetCount(count);
    return result == CUDA_SUCCESS ? COH_OK
                                  : cohi_cuda_fail(library, result, "cards cannot be counted");
}

static int attribute(const cohi_cuda_library *library, CUdevice card, CUdevice_attribute which)
{
    int value = 0;
    return library->cuDeviceGetAttribute(&value, which, card) == CUDA_SUCCESS ? value : 0;
}

/* Of a card that is there. */
static coh_status look(const cohi_cuda_library *library, int device, CUdevice *card,
                       cohi_engine_card *facts)
{
    CUuuid uuid;
    size_t bytes = 0;
    CUresult result = library->cuDeviceGet(card, device);
    if (result == CUDA_SUCCESS)
        result = library->cuDeviceGetName(facts->name, (int)sizeof facts->name, *card);
    if (result == CUDA_SUCCESS)
        result = library->cuDeviceGetUuid(&uuid, *card);
    if (result == CUDA_SUCCESS)
        result = library->cuDeviceTotalMem(&bytes, *card);
    if (result != CUDA_SUCCESS)
        return cohi_cuda_fail(library, result, "card %d cannot be looked at", device);
    memcpy(facts->uuid, uuid.bytes, sizeof facts->uuid);
    facts->memory = bytes;
    facts->driver = library->version;
    facts->major = attribute(library, *card, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    facts->minor = attribute(library, *card, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    facts->multiprocessors = attribute(library, *card, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    facts->mps = attribute(library, *card, CU_DEVICE_ATTRIBUTE_MPS_ENABLED);
    return COH_OK;
}

static coh_status find_granule(cohi_endpoint *endpoint)
{
    size_t granule = 0;
    CUmemAllocationProp kind = cohi_cuda_allocation(endpoint);
    CUresult result = endpoint->library->cuMemGetAllocationGranularity(
        &granule, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    endpoint->granule = granule;
    return result == CUDA_SUCCESS ? COH_OK
                                  : cohi_cuda_fail(endpoint->library, result,
                                                   "card %d, %s, does not tell how it allocates",
                                                   endpoint->device, endpoint->name);
}

coh_status cohi_cuda_cards_look(cohi_endpoint *endpoint)
{
    const cohi_cuda_library *library = endpoint->library;
    cohi_engine_card facts = {.size = sizeof facts};
    coh_status status = look(library, endpoint->device, &endpoint->card, &facts);
    if (status != COH_OK)
        return status;
    memcpy(endpoint->name, facts.name, sizeof endpoint->name);
    memcpy(endpoint->uuid, facts.uuid, sizeof endpoint->uuid);
    endpoint->major = facts.major;
    endpoint->minor = facts.minor;
    endpoint->multiprocessors = facts.multiprocessors;
    endpoint->mps = facts.mps != 0;
    endpoint->memory_bytes = facts.memory;
    endpoint->writes_values =
        attribute(library, endpoint->card, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
    if (facts.major < LEAST_MAJOR)
        return cohi_fail(COH_NOT_AVAILABLE,
                         "cuda: card %d, %s, has compute capability %d.%d; %d.0 is the least",
                         endpoint->device, endpoint->name, facts.major, facts.minor, LEAST_MAJOR);
    if (!attribute(library, endpoint->card, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
        || !attribute(library, endpoint->card,
                      CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
        return cohi_fail(COH_NOT_AVAILABLE,
                         "cuda: card %d, %s, has no memory that processes can share by descriptors",
                         endpoint->device, endpoint->name);
    return find_granule(endpoint);
}

bool cohi_cuda_cards_describe(const cohi_cuda_library *library, char *text, size_t room)
{
    int count = 0;
    CUdevice card;
    char name[64] = "";
    if (library->cuDeviceGetCount(&count) != CUDA_SUCCESS
        || library->cuDeviceGet(&card, 0) != CUDA_SUCCESS
        || library->cuDeviceGetName(name, (int)sizeof name, card) != CUDA_SUCCESS)
        return false;
    snprintf(text, room, "CUDA %d.%d, %d card%s: %s%s", library->version / 1000,
             library->version % 1000 / 10, count, count == 1 ? "" : "s", name,
             count == 1 ? "" : " and others");
    return true;
}

/* ---- for who asks without an endpoint ---- */

static coh_status count_cards(int *count)
{
    const cohi_cuda_library *library;
    coh_status status = cohi_cuda_library_open(&library);
    return status == COH_OK ? cohi_cuda_cards_count(library, count) : status;
}

static coh_status look_at_card(int device, cohi_engine_card *facts)
{
    const cohi_cuda_library *library;
    CUdevice card;
    coh_status status = cohi_cuda_library_open(&library);
    return status == COH_OK ? look(library, device, &card, facts) : status;
}

const cohi_engine_cards cohi_cuda_cards = {
    .size = sizeof cohi_cuda_cards,
    .count = count_cards,
    .look = look_at_card,
};
