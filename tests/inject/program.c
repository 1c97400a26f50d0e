#include "inject.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 3 << 20, MANY = 1 << 18, FEW = 8, PAGES = 1 << 16, TAG = 7 };

bool rank_finds(rank_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*report->finding)
        vsnprintf(report->finding, sizeof report->finding, format, arguments);
    va_end(arguments);
    return false;
}

bool rank_notes(rank_report *report, coh_status status, const char *call)
{
    const char *sentence = coh_last_error();
    if (status == COH_OK)
        return true;
    if (strlen(sentence) < 10)
        rank_finds(report, "%s: status %s, and the sentence is '%s'", call, coh_status_name(status),
                   sentence);
    if (!strstr(sentence, "coh_") && !strstr(sentence, "simulator"))
        rank_finds(report, "%s: the sentence names no call: %s", call, sentence);
    if (status == COH_MISMATCH && !strstr(sentence, "finalize"))
        rank_finds(report, "%s: all ranks make the same calls until one gives up: %s", call,
                   sentence);
    if (report->status == COH_OK) {
        report->status = status;
        snprintf(report->call, sizeof report->call, "%s", call);
        snprintf(report->sentence, sizeof report->sentence, "%s", sentence);
    }
    return false;
}

/* A call that may fail, with an error message; and what must hold after one that did not. */
#define TRY(call)       (coh_fail(COH_OK, "%s", ""), rank_notes(self->report, (call), #call))
#define MUST(condition) ((condition) || rank_finds(self->report, "wrong: %s", #condition))

static bool all_are(const unsigned char *bytes, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != (unsigned char)value)
            return false;
    return true;
}

static bool words_are(const int64_t *words, size_t count, int64_t value)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] != value)
            return false;
    return true;
}

/* ---- the heap ---- */

static bool allocates(rank *self)
{
    void *small = NULL, *large = NULL, *zero = NULL, *moved = NULL;
    if (!TRY(coh_malloc(self->world, 100, &small)) || !TRY(coh_malloc(self->world, LARGE, &large))
        || !TRY(coh_calloc(self->world, 100, 100, &zero)) || !MUST(all_are(zero, 10000, 0)))
        return false;
    memset(small, 5, 100);
    memset(large, 6, LARGE);
    return TRY(coh_realloc(self->world, small, 2 * LARGE, &moved)) && MUST(all_are(moved, 100, 5))
           && MUST(all_are(large, LARGE, 6)) && TRY(coh_free(self->world, large))
           && TRY(coh_free(self->world, moved)) && TRY(coh_free(self->world, zero));
}

static bool makes_heap(rank *self)
{
    coh_heap *heap = NULL;
    coh_heap_options options = COH_HEAP_OPTIONS_INIT;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    unsigned char *memory = NULL, mine = (unsigned char)(1 + self->rank);
    options.bytes = 4 * LARGE;
    return TRY(coh_heap_create(self->world, &options, &heap))
           && TRY(coh_heap_calloc(heap, LARGE, 1, (void **)&memory))
           && TRY(coh_put(self->world, memory, &mine, 1, right)) && TRY(coh_barrier(self->world))
           && MUST(memory[0] == 1 + left) && TRY(coh_heap_destroy(heap));
}

/* ---- one-sided ---- */

static bool puts_and_gets(rank *self)
{
    int64_t mine[FEW] = {0}, got[FEW] = {0}, one = 1, *box = NULL;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    uint64_t *signal;
    for (int i = 0; i < FEW; i++)
        mine[i] = 100 + self->rank;
    if (!TRY(coh_calloc(self->world, 3, sizeof mine, (void **)&box)))
        return false;
    signal = (uint64_t *)(box + 2 * FEW);
    if (!TRY(coh_put(self->world, box, mine, sizeof mine, right)) || !TRY(coh_barrier(self->world))
        || !MUST(words_are(box, FEW, 100 + left))
        || !TRY(coh_get(self->world, got, box, sizeof got, right))
        || !MUST(words_are(got, FEW, 100 + self->rank)))
        return false;
    uint64_t told = 1;
    return TRY(coh_put_signal(self->world, box + FEW, mine, sizeof mine, signal, 1, COH_SIGNAL_SET,
                              right))
           && TRY(coh_wait_until(self->world, COH_U64, signal, COH_EQ, &told, left))
           && MUST(words_are(box + FEW, FEW, 100 + left))
           && TRY(coh_atomic(self->world, COH_ATOMIC_ADD, COH_I64, signal + 1, &one, 0))
           && TRY(coh_put_strided(self->world, box, 16, mine, 8, 8, 4, right))
           && TRY(coh_barrier(self->world))
           && MUST(self->rank != 0 || signal[1] == (uint64_t)self->size)
           && TRY(coh_free(self->world, box));
}

static bool uses_context(rank *self)
{
    coh_context *context = NULL;
    int64_t *box = NULL, mine = 40 + self->rank;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    if (!TRY(coh_calloc(self->world, 1, sizeof *box, (void **)&box))
        || !TRY(coh_context_create(self->world, &context)))
        return false;
    return TRY(coh_context_put_nbi(context, box, &mine, sizeof mine, right))
           && TRY(coh_context_quiet(context)) && TRY(coh_context_destroy(context))
           && TRY(coh_sync(self->world)) && MUST(*box == 40 + left)
           && TRY(coh_free(self->world, box));
}

static bool locks(rank *self)
{
    coh_lock *lock = NULL;
    return TRY(coh_calloc(self->world, 1, sizeof *lock, (void **)&lock))
           && TRY(coh_lock_set(self->world, lock)) && TRY(coh_lock_clear(self->world, lock))
           && TRY(coh_free(self->world, lock));
}

/* ---- teams ---- */

static bool splits(rank *self)
{
    coh_team *strided = NULL, *colour = NULL, *row = NULL, *column = NULL, *list = NULL;
    const int both[] = {1, 0};
    return TRY(coh_team_split_strided(self->all, 0, 1, self->size, &strided))
           && MUST(coh_team_size(strided) == self->size) && TRY(coh_team_barrier(strided))
           && TRY(coh_team_split_color(strided, self->rank % 2, 0, &colour))
           && MUST(coh_team_rank(colour, coh_team_index(colour)) == self->rank)
           && TRY(coh_team_split_2d(self->all, 2, &row, &column)) && TRY(coh_team_sync(column))
           && TRY(coh_team_from_list(self->all, both, 2, &list))
           && MUST(self->rank > 1 || coh_team_index(list) == 1 - self->rank)
           && TRY(coh_team_destroy(list)) && TRY(coh_team_destroy(column))
           && TRY(coh_team_destroy(row)) && TRY(coh_team_destroy(colour))
           && TRY(coh_team_destroy(strided));
}

/* ---- messages ---- */

/* Started calls are always waited for: forgetting a request would be a leak of the test. */
static bool waits_for(rank *self, coh_request **first, coh_request **second)
{
    bool one = !*first || TRY(coh_request_wait(first, NULL));
    bool other = !*second || TRY(coh_request_wait(second, NULL));
    return one && other;
}

static bool exchanges(rank *self, unsigned char *sent, unsigned char *got, size_t bytes)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    coh_request *out = NULL, *in = NULL;
    memset(sent, 1 + self->rank, bytes);
    bool started = TRY(coh_receive_start(self->all, left, TAG, got, bytes, &in))
                   && TRY(coh_send_start(self->all, right, TAG, sent, bytes, &out));
    return waits_for(self, &in, &out) && started && MUST(all_are(got, bytes, 1 + left));
}

/* The second comes before the first is taken, so that it has to be kept. */
static bool takes_in_other_order(rank *self, unsigned char *sent, unsigned char *got)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    coh_message message;
    memset(sent, 1 + self->rank, 64);
    return TRY(coh_send(self->all, right, 1, sent, 64))
           && TRY(coh_send(self->all, right, 2, sent, 8))
           && TRY(coh_receive(self->all, left, 2, got, 64, &message)) && MUST(message.bytes == 8)
           && TRY(coh_receive(self->all, left, 1, got, 64, &message)) && MUST(message.bytes == 64)
           && MUST(all_are(got, 64, 1 + left));
}

/* A long one that is kept, since nobody asked for it yet. */
static bool keeps_large(rank *self, unsigned char *sent, unsigned char *got)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    coh_request *out = NULL, *none = NULL;
    bool good = TRY(coh_send_start(self->all, right, 3, sent, LARGE, &out))
                && TRY(coh_send(self->all, right, 4, sent, 8))
                && TRY(coh_receive(self->all, left, 4, got, 8, NULL))
                && TRY(coh_receive(self->all, left, 3, got, LARGE, NULL));
    return waits_for(self, &out, &none) && good && MUST(all_are(got, LARGE, 1 + left));
}

static bool sends(rank *self)
{
    unsigned char *sent = malloc(LARGE), *got = malloc(LARGE);
    if (sent && got)
        memset(sent, 1 + self->rank, LARGE);
    bool good = sent && got && takes_in_other_order(self, sent, got)
                && exchanges(self, sent, got, 100) && exchanges(self, sent, got, LARGE)
                && keeps_large(self, sent, got);
    /* A message that failed may still be read by its peer. */
    good = good && TRY(coh_barrier(self->world));
    free(sent);
    free(got);
    return good;
}

/* ---- collectives ---- */

static bool reduces(rank *self, int64_t *source, int64_t *target, size_t count)
{
    int64_t sum = 0;
    for (int i = 0; i < self->size; i++)
        sum += i + 1;
    for (size_t i = 0; i < count; i++)
        source[i] = self->rank + 1;
    coh_request *started = NULL, *none = NULL;
    if (!TRY(coh_all_reduce(self->all, COH_I64, COH_SUM, source, target, count))
        || !MUST(words_are(target, count, sum))
        || !TRY(coh_reduce(self->all, COH_I64, COH_MAX, source, target, count, 0))
        || !MUST(self->rank != 0 || words_are(target, count, self->size))
        || !TRY(coh_scan(self->all, COH_I64, COH_SUM, source, target, count))
        || !MUST(words_are(target, count, (self->rank + 1) * (self->rank + 2) / 2)))
        return false;
    bool good =
        TRY(coh_all_reduce_start(self->all, COH_I64, COH_SUM, source, target, count, &started));
    return waits_for(self, &started, &none) && good && MUST(words_are(target, count, sum));
}

static bool moves(rank *self, int64_t *source, int64_t *target, size_t count)
{
    size_t block = count / (size_t)self->size;
    for (size_t i = 0; i < count; i++)
        source[i] = self->rank + 1;
    return TRY(coh_broadcast(self->all, COH_I64, source, target, count, 1))
           && MUST(words_are(target, count, 2))
           && TRY(coh_all_gather(self->all, COH_I64, source, target, block))
           && MUST(words_are(target + (size_t)(self->size - 1) * block, block, self->size))
           && TRY(coh_all_to_all(self->all, COH_I64, source, target, block))
           && MUST(words_are(target, block, 1))
           && TRY(coh_reduce_scatter(self->all, COH_I64, COH_MIN, source, target, block))
           && MUST(words_are(target, block, 1))
           && TRY(coh_gather(self->all, COH_I64, source, target, block, 0))
           && TRY(coh_scatter(self->all, COH_I64, source, target, block, 0))
           && MUST(words_are(target, block, 1));
}

static bool works_on(rank *self, int64_t *source, int64_t *target)
{
    return reduces(self, source, target, FEW) && moves(self, source, target, FEW)
           && reduces(self, source, target, MANY) && moves(self, source, target, MANY);
}

static bool collects_own(rank *self)
{
    int64_t *own = malloc(2 * MANY * sizeof *own);
    bool good = own && works_on(self, own, own + MANY);
    free(own);
    return good;
}

static bool collects_symmetric(rank *self)
{
    int64_t *shared = NULL;
    return TRY(coh_malloc(self->world, 2 * MANY * sizeof *shared, (void **)&shared))
           && works_on(self, shared, shared + MANY) && TRY(coh_free(self->world, shared));
}

/* ---- memory that was there before ---- */

static bool half_is_kept(const unsigned char *pages)
{
    return all_are(pages + 1, PAGES / 2 - 1, 9) && all_are(pages + PAGES / 2, PAGES / 2, 0);
}

static bool registers(rank *self)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    unsigned char mine = (unsigned char)(1 + self->rank);
    if (self->threads)
        return true;
    unsigned char *pages =
        mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return rank_finds(self->report, "no memory for the test itself");
    memset(pages, 9, PAGES / 2); /* the rest is not there yet */
    bool good = TRY(coh_register(self->world, pages, PAGES)) && MUST(half_is_kept(pages))
                && TRY(coh_put(self->world, pages, &mine, 1, right))
                && TRY(coh_barrier(self->world)) && MUST(pages[0] == 1 + left)
                && TRY(coh_unregister(self->world, pages)) && MUST(pages[0] == 1 + left)
                && MUST(half_is_kept(pages));
    return good; /* the pages stay: a call that failed may have left them to finalize */
}

static const struct step {
    bool (*work)(rank *self);
    bool needs_heap;
} steps[] = {
    {allocates, true}, {puts_and_gets, true}, {uses_context, true},  {locks, true},
    {splits, false},   {sends, false},        {collects_own, false}, {collects_symmetric, true},
    {registers, true}, {makes_heap, true},
};

void program_run(rank *self)
{
    bool good = true;
    self->all = coh_team_world(self->world);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && good; i++)
        good = (steps[i].needs_heap && !self->heap) || steps[i].work(self);
}
