/* cuda.c - the descriptor of the engine over the driver alone. */
#include "engine/cuda/cuda.h"

#include "engine/cuda/cards.h"
#include "engine/cuda/under_way.h"

static coh_status probe(const cohi_need *need)
{
    const cohi_cuda_library *library;
    (void)need;
    return cohi_cuda_library_open(&library);
}

static coh_status open_endpoint(const cohi_engine_args *args, cohi_endpoint **made)
{
    return cohi_cuda_open(args, cohi_cuda_segments_close, made);
}

static void query(cohi_endpoint *endpoint, cohi_engine_facts *facts)
{
    *facts = (cohi_engine_facts){.size = sizeof *facts,
                                 .grows_by_keys = 1,
                                 .growth_bytes = COHI_CUDA_GROWTH_BYTES,
                                 .control_bytes = COHI_CUDA_CONTROL_BYTES};
    if (endpoint)
        cohi_cuda_query(endpoint, facts);
}

static bool describe_library(char *text, size_t room)
{
    const cohi_cuda_library *library;
    return cohi_cuda_library_open(&library) == COH_OK
           && cohi_cuda_cards_describe(library, text, room);
}

static const cohi_engine_lifecycle lifecycle = {
    .size = sizeof lifecycle,
    .probe = probe,
    .open = open_endpoint,
    .address = cohi_cuda_get_address,
    .connect = cohi_cuda_connect,
    .leave = cohi_cuda_under_way_leave,
    .close = cohi_cuda_close,
    .query = query,
    .lose = cohi_cuda_lose,
    .cancel = cohi_cuda_under_way_cancel,
    .progress = cohi_cuda_under_way_progress,
};

const cohi_engine cohi_engine_cuda = {
    .size = sizeof cohi_engine_cuda,
    .contract = COHI_CONTRACT,
    .name = "cuda",
    .lifecycle = &lifecycle,
    .memory = &cohi_cuda_memory,
    .rma = &cohi_cuda_rma,
    .atomic = &cohi_cuda_atomic,
    .stream = &cohi_cuda_stream,
    .cards = &cohi_cuda_cards,
    .library = describe_library,
};
