/* cards.c - the public calls that tell of cards. */
#include "core/heap/device.h"

#include <cohort-cuda.h>
#include <stdio.h>
#include <string.h>

static coh_status count_cards(const cohi_engine **engine, int *count)
{
    coh_status status = cohi_engine_for_cards("cuda", engine);
    return status == COH_OK ? (*engine)->cards->count(count) : status;
}

static coh_status fail_with(const char *call, coh_status status)
{
    char reason[COHI_ERROR_TEXT_BYTES];
    snprintf(reason, sizeof reason, "%s", coh_last_error());
    return cohi_fail(status, "%s: %s", call, reason);
}

coh_status coh_cuda_count(int *count)
{
    static const char call[] = "coh_cuda_count";
    const cohi_engine *engine;
    if (!count)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: the place for the count is NULL", call);
    coh_status status = count_cards(&engine, count);
    return status == COH_OK ? status : fail_with(call, status);
}

coh_status coh_cuda_query(int device, coh_cuda_card *card)
{
    static const char call[] = "coh_cuda_query";
    const cohi_engine *engine;
    cohi_engine_card facts = {.size = sizeof facts};
    int count = 0;
    if (!card)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: card is NULL", call);
    if (card->size != sizeof *card)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: card->size is %zu; set it to sizeof(coh_cuda_card), %zu", call,
                         card->size, sizeof *card);
    coh_status status = count_cards(&engine, &count);
    if (status != COH_OK)
        return fail_with(call, status);
    if (device < 0 || device >= count)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "%s: there is no card %d; this host has %d (0 to %d)", call, device, count,
                         count - 1);
    status = engine->cards->look(device, &facts);
    if (status != COH_OK)
        return fail_with(call, status);
    *card = (coh_cuda_card){.size = sizeof *card,
                            .major = facts.major,
                            .minor = facts.minor,
                            .multiprocessors = facts.multiprocessors,
                            .memory = facts.memory,
                            .driver = facts.driver,
                            .mps = facts.mps};
    snprintf(card->name, sizeof card->name, "%s", facts.name);
    return COH_OK;
}

coh_status coh_cuda_device(coh_world *world, int *device, coh_cuda_sharing *sharing)
{
    static const char call[] = "coh_cuda_device";
    coh_status status = cohi_world_enter(world, call);
    if (status == COH_OK && !device)
        status = cohi_world_fail(world, call, COH_INVALID_ARGUMENT,
                                 "the place for the card's number is NULL");
    if (status != COH_OK)
        return status;
    const cohi_device *open = cohi_world_device(world);
    *device = open ? open->facts.device : -1;
    if (sharing)
        *sharing = open ? (coh_cuda_sharing)open->facts.sharing : COH_CUDA_ALONE;
    return COH_OK;
}
