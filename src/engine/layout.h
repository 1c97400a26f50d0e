/*
 * layout.h - the structures that the library and a module both use, as numbers that can be compared: a
 * module that was built with others would read and write past theirs.
 */
#ifndef COHI_ENGINE_LAYOUT_H
#define COHI_ENGINE_LAYOUT_H

#include "engine/engine.h"
#include "memory/host_region.h"

/* X(structure): all that cross the border, in either direction. */
#define COHI_LAYOUT_TABLE(X)  \
    X(cohi_config)            \
    X(cohi_need)              \
    X(cohi_crew_space)        \
    X(cohi_upcalls)           \
    X(cohi_engine_args)       \
    X(cohi_engine_facts)      \
    X(cohi_op)                \
    X(cohi_segment_spec)      \
    X(cohi_region_key)        \
    X(cohi_remote)            \
    X(cohi_remote_signal)     \
    X(cohi_remote_atomic)     \
    X(cohi_host_region)       \
    X(cohi_engine_lifecycle)  \
    X(cohi_engine_memory)     \
    X(cohi_engine_rma)        \
    X(cohi_engine_atomic)     \
    X(cohi_engine_channel)    \
    X(cohi_engine_job)        \
    X(cohi_native_offer)      \
    X(cohi_native_team)       \
    X(cohi_native_call)       \
    X(cohi_engine_collective) \
    X(cohi_engine)

/* Numbers of the words of a layout: the bytes of each structure; and of the knobs, which change most
 * often, their order: a sum of places, each times the length of its name. */
enum {
#define COHI_LAYOUT_NUMBER(structure) COHI_LAYOUT_OF_##structure,
    COHI_LAYOUT_TABLE(COHI_LAYOUT_NUMBER)
#undef COHI_LAYOUT_NUMBER
        COHI_LAYOUT_OF_KNOBS,
    COHI_LAYOUT_WORDS
};

typedef struct cohi_layout {
    uint32_t words[COHI_LAYOUT_WORDS];
} cohi_layout;

#define COHI_LAYOUT_BYTES(structure) sizeof(structure),
#define COHI_LAYOUT_KNOB(field, type, variable, default_text, help) \
    +(1 + offsetof(cohi_config, field)) * sizeof(#field)

/* That of this build. */
#define COHI_LAYOUT                                                                  \
    {                                                                                \
        {                                                                            \
            COHI_LAYOUT_TABLE(COHI_LAYOUT_BYTES) 0 COHI_KNOB_TABLE(COHI_LAYOUT_KNOB) \
        }                                                                            \
    }

#endif
