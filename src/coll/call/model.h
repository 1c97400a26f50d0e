/*
 * model.h - the constants by which the costs of algorithms are compared.
 *
 * They are rows of the profile of a host (memory/profile.h). Members that map each other take those
 * of their host. Others take rank 0's, and of those nothing that a start has measured by itself:
 * algorithms that send messages combine in different orders, and the choice among them, and with it
 * the bits of a result, must not change from one start to the next.
 */
#ifndef COHI_COLL_CALL_MODEL_H
#define COHI_COLL_CALL_MODEL_H

#include "memory/profile.h"

/* X(field): the rows of the profile that are constants of the model. */
#define COHI_MODEL_TABLE(X) \
    X(line)                 \
    X(call)                 \
    X(take)                 \
    X(copy)                 \
    X(stream)               \
    X(reduce)               \
    X(reduce_stream)        \
    X(cache)                \
    X(stage_part)           \
    X(message)              \
    X(message_further)      \
    X(message_byte)

typedef struct cohi_model {
#define COHI_MODEL_FIELD(field) double field;
    COHI_MODEL_TABLE(COHI_MODEL_FIELD)
#undef COHI_MODEL_FIELD
    double native_call, native_byte; /* of collectives of the engine's library: engine.h */
    double frame;                    /* bytes that go between hosts as one message; 0: not known */
} cohi_model;

static inline cohi_model cohi_model_of(const cohi_profile *profile)
{
    return (cohi_model){
#define COHI_MODEL_TAKE(field) .field = profile->value[COHI_ROW_##field],
        COHI_MODEL_TABLE(COHI_MODEL_TAKE)
#undef COHI_MODEL_TAKE
    };
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
