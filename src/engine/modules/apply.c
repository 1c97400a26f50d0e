#include "engine/modules/apply.h"

#include "engine/modules/words.h"
#include "memory/host_atomic.h"

static char *locate(const cohi_segments *segments, cohi_word word, uint64_t bytes,
                    const char **wrong)
{
    cohi_remote at = {.segment = word.segment, .offset = word.offset};
    return cohi_segments_locate(segments, &at, word.generation, bytes, wrong);
}

const char *cohi_apply_signal(const cohi_segments *segments, cohi_word word, uint64_t value,
                              bool add)
{
    const char *wrong = NULL;
    char *place = locate(segments, word, sizeof value, &wrong);
    if (place && !cohi_words_is_one(place, sizeof value)) {
        wrong = "its signal is not aligned";
    } else if (place && add) {
        uint64_t before;
        cohi_host_atomic_find(COH_ATOMIC_ADD, COH_U64)(place, &value, NULL, &before);
    } else if (place) {
        cohi_words_copy(place, &value, sizeof value);
    }
    return wrong;
}

const char *cohi_apply_atomic(const cohi_segments *segments, cohi_word word,
                              const cohi_remote_atomic *atomic, uint64_t *before, size_t *bytes)
{
    const char *wrong = NULL;
    cohi_host_atomic *apply = cohi_host_atomic_find(atomic->kind, atomic->dtype);
    if (!apply)
        return "there is no such atomic operation";
    *bytes = coh_dtype_size(atomic->dtype);
    char *place = locate(segments, word, *bytes, &wrong);
    if (place && !cohi_host_aligned(place, *bytes))
        wrong = "its word is not aligned";
    else if (place)
        apply(place, atomic->operand, atomic->compare, before);
    return wrong;
}
