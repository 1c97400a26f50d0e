/* cards.h - the cards of this host, as the driver shows them to this process. */
#ifndef COHI_ENGINE_CUDA_CARDS_H
#define COHI_ENGINE_CUDA_CARDS_H

#include "engine/cuda/cuda.h"

coh_status cohi_cuda_cards_count(const cohi_cuda_library *library, int *count);

/* Fills in what the endpoint knows of card endpoint->device. COH_NOT_AVAILABLE for one that cannot serve. */
coh_status cohi_cuda_cards_look(cohi_endpoint *endpoint);

/* "CUDA 13.0, 1 card: NVIDIA H200"; false: it cannot be told. */
bool cohi_cuda_cards_describe(const cohi_cuda_library *library, char *text, size_t room);

#endif
