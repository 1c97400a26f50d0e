/*
 * model.h - the constants by which the costs of algorithms are compared.
 *
 * They are facts of a host. `cohort tune` measures and saves them; rank 0's are used by all ranks
 * of a job, so that all choose alike.
 */
#ifndef COHI_COLL_MODEL_H
#define COHI_COLL_MODEL_H

#include <stdbool.h>

/* X(field, default, unit, what it is) */
#define COHI_MODEL_TABLE(X)                                                                 \
    X(line, 100, "ns", "a cache line from one mapped rank to another")                      \
    X(call, 60, "ns", "what each collective call costs by itself")                          \
    X(take, 0.2, "ns/byte", "reading what another rank has written since it was last read") \
    X(copy, 0.035, "ns/byte", "copying between mapped memory, cached")                      \
    X(stream, 0.12, "ns/byte", "the same out of the memory")                                \
    X(reduce, 0.045, "ns/byte", "reducing one source in mapped memory, cached")             \
    X(reduce_stream, 0.15, "ns/byte", "the same out of the memory")                         \
    X(cache, 1048576, "bytes", "how much is cached")                                        \
    X(message, 250, "ns", "a short message one way")                                        \
    X(message_byte, 0.13, "ns/byte", "each further byte of a long message")

/* A constant is above 0 and at most this, so that costs are finite and can be compared. */
#define COHI_MODEL_MOST 1e12

typedef struct cohi_model {
#define COHI_MODEL_FIELD(field, otherwise, unit, what) double field;
    COHI_MODEL_TABLE(COHI_MODEL_FIELD)
#undef COHI_MODEL_FIELD
} cohi_model;

/* Whether a constant could have this value; NaN is none. */
static inline bool cohi_model_could_be(double value)
{
    return value > 0 && value <= COHI_MODEL_MOST;
}

/* Nanoseconds for copying, or reducing one source of, `bytes` bytes. */
static inline double cohi_model_copy(const cohi_model *model, double bytes)
{
    return bytes * (bytes < model->cache ? model->copy : model->stream);
}

static inline double cohi_model_reduce(const cohi_model *model, double bytes)
{
    return bytes * (bytes < model->cache ? model->reduce : model->reduce_stream);
}

static inline double cohi_model_message(const cohi_model *model, double bytes)
{
    return model->message + bytes * model->message_byte;
}

#endif
