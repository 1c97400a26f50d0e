/*
 * Room: core/stream.
 *
 * Calls on a CUDA stream: one-sided operations, signals, waits and barriers, and what became of what was
 * enqueued.
 * Uses base, engine (the contract of streams) and the core rooms world, health, team, heap and onesided.
 * Hides how a team and a call are named to the engine.
 */
/* stream.h - what calls with a stream have in common. */
#ifndef COHI_CORE_STREAM_STREAM_H
#define COHI_CORE_STREAM_STREAM_H

#include "core/heap/device.h"
#include "core/team/team.h"
#include "engine/stream.h"

#include <cohort-cuda.h>

/* The engine that has streams, and this rank's endpoint of it. */
typedef struct cohi_stream_server {
    const cohi_engine_stream *stream;
    cohi_endpoint *endpoint;
} cohi_stream_server;

/* The gate of every call with a stream: the world's, and COH_INVALID_ARGUMENT where no heap is on a card. */
coh_status cohi_stream_enter(coh_world *world, const char *call, cohi_stream_server *server);

/* The same for a call on a team, with what stands against its members. */
coh_status cohi_stream_enter_team(const coh_team *team, const char *call,
                                  cohi_stream_server *server);

/* How the engine is told of a team. */
cohi_stream_team cohi_stream_team_of(const coh_team *team);

/* A buffer at `pointer`, of `bytes`, which may be NULL for none. COH_INVALID_ARGUMENT for memory of a heap that
 * is not on a card. */
coh_status cohi_stream_buffer_of(coh_world *world, const char *call, const char *what,
                                 const void *pointer, size_t bytes, cohi_stream_buffer *buffer);

/* What members of a team compare of a call, in one word. */
typedef struct cohi_stream_terms {
    coh_collective_kind kind;
    coh_dtype dtype;
    coh_reduce_op op;
    int root;
    bool variable;
    bool private_source, private_target;
    uint64_t count; /* or a hash of the counts */
} cohi_stream_terms;

uint64_t cohi_stream_fingerprint(const cohi_stream_terms *terms);

/* Fails with what an engine's slot returned and said; COH_OK passes. */
coh_status cohi_stream_pass(const coh_world *world, const char *call, coh_status status);

/* The status and the error of a failure that became known later. */
coh_status cohi_stream_tell(coh_world *world, const char *call, const cohi_stream_failure *failure);

#endif
