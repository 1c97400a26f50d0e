/*
 * under_way.h - operations that the card has: streams of the engine's own, one for each context, and the
 * events by which their end is found.
 */
#ifndef COHI_ENGINE_CUDA_UNDER_WAY_H
#define COHI_ENGINE_CUDA_UNDER_WAY_H

#include "engine/cuda/cuda.h"

coh_status cohi_cuda_under_way_open(cohi_endpoint *endpoint);
void cohi_cuda_under_way_close(cohi_endpoint *endpoint);

/* Slots of the lifecycle. */
coh_status cohi_cuda_under_way_leave(cohi_endpoint *endpoint, cohi_op *op);
void cohi_cuda_under_way_cancel(cohi_endpoint *endpoint, cohi_op *op);
void cohi_cuda_under_way_progress(cohi_endpoint *endpoint);

/* The rest with the context current. */

/* The stream of a context, made when it is first used. */
coh_status cohi_cuda_lane(cohi_endpoint *endpoint, unsigned context, CUstream *stream);
void cohi_cuda_lane_close(cohi_endpoint *endpoint, unsigned context);

/* The op is done when all that the stream has got so far is. With a NULL op it does nothing. */
coh_status cohi_cuda_follow(cohi_endpoint *endpoint, CUstream stream, cohi_op *op);

/* The same, and then a word of so many bytes goes from `word`, which cohi_cuda_word_take gave, to `result`.
 * The op may be NULL. Gives the word back. */
coh_status cohi_cuda_follow_word(cohi_endpoint *endpoint, CUstream stream, cohi_op *op, int word,
                                 void *result, size_t bytes);

/* A word of pinned memory, or -1: all are taken. */
int cohi_cuda_word_take(cohi_endpoint *endpoint);
void cohi_cuda_word_give(cohi_endpoint *endpoint, int word);

#endif
