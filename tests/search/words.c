#include "search.h"

/* ---- a word that another rank writes ---- */

bool search_await_word(search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step);
    uint64_t one = 1, *words = self->heap->words[index];
    int from = step->any ? COH_ANY_RANK : step->from;
    coh_watch watch = COH_WATCH_INIT;
    watch.words = words;
    watch.count = 1;
    watch.values = &one;
    watch.from = from;
    coh_status status = step->spins
                            ? coh_wait_all(self->world, &watch)
                            : coh_wait_until(self->world, COH_U64, words, COH_EQ, &one, from);
    if (!search_must(self, status, "wait for a word"))
        return false;
    return step->how != WORD_PUT_SIGNAL || step->kind != SEARCH_WORD
           || search_must_be(self, self->heap->data[index] == (uint64_t)index + 1,
                             "data before its signal");
}

bool search_write_word(search_rank *self, const search_step *step)
{
    int index = search_index_of(self, step);
    uint64_t one = 1, data = (uint64_t)index + 1, *word = self->heap->words[index];
    coh_world *world = self->world;
    if (search_is_fault(self, index, FAULT_NOT_WRITTEN))
        return true;
    switch (step->kind == SEARCH_WORD ? step->how : WORD_PUT) {
    case WORD_ADD:
        return search_must(self, coh_atomic(world, COH_ATOMIC_ADD, COH_U64, word, &one, step->to),
                           "atomic");
    case WORD_SIGNAL:
        return search_must(self, coh_signal(world, word, 1, COH_SIGNAL_SET, step->to), "signal");
    case WORD_PUT_SIGNAL:
        return search_must(self,
                           coh_put_signal(world, &self->heap->data[index], &data, sizeof data, word,
                                          1, COH_SIGNAL_ADD, step->to),
                           "put_signal");
    default:
        return search_must(self, coh_put(world, word, &one, sizeof one, step->to), "put");
    }
}

bool search_word(search_rank *self, const search_step *step)
{
    if (self->rank == step->from)
        return search_write_word(self, step);
    return self->rank != step->to || search_await_word(self, step);
}

/* A wait that ends by itself: nobody writes the word. */
bool search_timed(search_rank *self, const search_step *step)
{
    uint64_t one = 1;
    coh_watch watch = COH_WATCH_INIT;
    if (self->rank != step->to)
        return true;
    watch.words = self->heap->words[search_index_of(self, step)];
    watch.count = 2;
    watch.values = &one;
    watch.from = step->any ? COH_ANY_RANK : step->from;
    watch.timeout_ns = (uint64_t)(step->seconds * 1e9);
    size_t index;
    coh_status status = coh_wait_any(self->world, &watch, &index);
    if (status == COH_TIMED_OUT)
        return true;
    return status == COH_OK ? search_must_be(self, false, "a word came that nobody wrote")
                            : search_must(self, status, "wait with a time limit");
}
