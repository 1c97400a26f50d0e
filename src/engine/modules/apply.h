/*
 * apply.h - what a frame of another host does to a word of this rank's memory.
 *
 * Checked against the segment, and done with the CPU's own stores and atomics, so that it is atomic with
 * those of ranks that map the word.
 */
#ifndef COHI_ENGINE_MODULES_APPLY_H
#define COHI_ENGINE_MODULES_APPLY_H

#include "engine/modules/segments.h"

/* A word of this rank's: a segment of that generation, an offset. */
typedef struct cohi_word {
    int segment;
    uint32_t generation;
    uint64_t offset;
} cohi_word;

/* NULL, or what is wrong; then nothing has changed. The lock of the segments is held. */

const char *cohi_apply_signal(const cohi_segments *segments, cohi_word word, uint64_t value,
                              bool add);

/* `kind` and `dtype` as they came. The old value is in *before, and its width in *bytes. */
const char *cohi_apply_atomic(const cohi_segments *segments, cohi_word word,
                              const cohi_remote_atomic *atomic, uint64_t *before, size_t *bytes);

#endif
