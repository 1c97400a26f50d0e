#include "core/onesided/race_log.h"

#include "base/clock.h"
#include "core/heap/locate.h"
#include "memory/host_copy.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* ---- blocks ---- */

static void free_all_blocks(cohi_race_log *log)
{
    for (uint32_t i = 0; i < COHI_RACE_BLOCKS; i++)
        log->next_block[i] = i + 1 < COHI_RACE_BLOCKS ? i + 2 : 0;
    log->free_block = 1;
    log->free_blocks = COHI_RACE_BLOCKS;
}

static uint32_t take_block(cohi_race_log *log)
{
    uint32_t block = log->free_block;
    log->free_block = log->next_block[block - 1];
    log->next_block[block - 1] = 0;
    log->free_blocks--;
    return block;
}

static void free_blocks(cohi_race_log *log, cohi_race_entry *entry)
{
    while (entry->block) {
        uint32_t next = log->next_block[entry->block - 1];
        log->next_block[entry->block - 1] = log->free_block;
        log->free_block = entry->block;
        log->free_blocks++;
        entry->block = next;
    }
}

static uint32_t blocks_for(uint64_t held)
{
    return held <= COHI_RACE_INLINE_BYTES
               ? 0
               : (uint32_t)((held + COHI_RACE_BLOCK_BYTES - 1) / COHI_RACE_BLOCK_BYTES);
}

/* ---- taking and giving ---- */

static void reset(cohi_race_log *log)
{
    atomic_store(&log->count, 0);
    free_all_blocks(log);
}

void cohi_race_log_open(cohi_race_log *log)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&log->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    log->issued = log->quiets = 0;
    reset(log);
}

/* Tries, since a rank that is stopped while it has the log would be waited for in silence. */
bool cohi_race_log_take(cohi_race_log *log, int rank, uint64_t patience_ns)
{
    enum { YIELDS = 1000 };
    uint64_t until = 0;
    for (unsigned tries = 0;; tries++) {
        int error = pthread_mutex_trylock(&log->lock);
        if (error == EOWNERDEAD) {
            pthread_mutex_consistent(&log->lock);
            reset(log);
        }
        if (error != EBUSY) {
            atomic_store_explicit(&log->holder, rank, memory_order_relaxed);
            return true;
        }
        if (tries < YIELDS) {
            sched_yield();
            continue;
        }
        uint64_t now = cohi_now_ns();
        until = until ? until : now + patience_ns;
        if (now > until && patience_ns > 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void drop_gone(cohi_race_log *log)
{
    unsigned kept = 0, count = atomic_load_explicit(&log->count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++) {
        if (log->entries[i].gone)
            continue;
        if (kept != i)
            log->entries[kept] = log->entries[i];
        kept++;
    }
    atomic_store_explicit(&log->count, kept, memory_order_release);
}

void cohi_race_log_give(cohi_race_log *log)
{
    drop_gone(log);
    pthread_mutex_unlock(&log->lock);
}

/* ---- finding ---- */

static cohi_race_entry *end_of(cohi_race_log *log)
{
    return log->entries + atomic_load_explicit(&log->count, memory_order_relaxed);
}

static bool touches(const cohi_race_entry *entry, cohi_spot spot, uint64_t bytes)
{
    return entry->spot < spot + bytes && spot < entry->spot + entry->bytes;
}

cohi_race_entry *cohi_race_log_next(cohi_race_log *log, const cohi_race_entry *entry,
                                    cohi_spot spot, uint64_t bytes)
{
    cohi_race_entry *at = entry ? log->entries + (entry - log->entries) + 1 : log->entries;
    while (at < end_of(log) && (at->gone || !touches(at, spot, bytes)))
        at++;
    return at < end_of(log) ? at : NULL;
}

cohi_race_entry *cohi_race_log_find(cohi_race_log *log, uint64_t number)
{
    cohi_race_entry *from = log->entries, *to = end_of(log);
    while (from < to) {
        cohi_race_entry *middle = from + (to - from) / 2;
        if (middle->number == number)
            return middle->gone ? NULL : middle;
        if (middle->number < number)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* ---- writing ---- */

static void write_signal(const cohi_race_entry *entry, char *there)
{
    uint64_t *word = (uint64_t *)(void *)there;
    if (entry->kind == COHI_RACE_SIGNAL_SET)
        __atomic_store_n(word, entry->value, __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(word, entry->value, __ATOMIC_RELEASE);
}

static void write_blocks(cohi_race_log *log, const cohi_race_entry *entry, char *there)
{
    uint64_t left = entry->held;
    for (uint32_t block = entry->block; block; block = log->next_block[block - 1]) {
        size_t bytes = left < COHI_RACE_BLOCK_BYTES ? left : COHI_RACE_BLOCK_BYTES;
        memcpy(there, log->blocks[block - 1], bytes);
        there += bytes;
        left -= bytes;
    }
}

static void write_payload(cohi_race_log *log, const cohi_race_entry *entry, char *there)
{
    if (cohi_race_is_signal(entry))
        write_signal(entry, there);
    else if (entry->block)
        write_blocks(log, entry, there);
    else
        cohi_host_copy(there, entry->bytes_here, entry->held);
}

static void write_entry(cohi_race_log *log, const cohi_race_view *view, cohi_race_entry *entry)
{
    char *there = cohi_heap_reach(view->world, view->rank, entry->spot);
    if (entry->written)
        return;
    if (there) /* its heap may be destroyed by now */
        write_payload(log, entry, there);
    entry->written = true;
    free_blocks(log, entry);
}

static void settle(cohi_race_log *log, const cohi_race_view *view, cohi_race_entry *entry)
{
    write_entry(log, view, entry);
    entry->gone = true;
}

/* ---- the order of many ---- */

enum { WORD, BULK, SIGNAL };

static int class_of(const cohi_race_entry *entry)
{
    if (cohi_race_is_signal(entry))
        return SIGNAL;
    return cohi_race_is_word(entry->spot, entry->bytes) ? WORD : BULK;
}

static int three_way(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/*
 * By quiet, then by fence. What no fence keeps apart may come in any order, and comes in the one
 * that a program expects least: the last long put first. Words that are put again and again keep
 * their order, and signals come behind their data.
 */
static int compare(const void *left, const void *right)
{
    const cohi_race_entry *a = *(cohi_race_entry *const *)left;
    const cohi_race_entry *b = *(cohi_race_entry *const *)right;
    int order = three_way(a->completed, b->completed);
    if (order == 0)
        order = three_way(a->epoch, b->epoch);
    if (order == 0)
        order = class_of(a) - class_of(b);
    if (order == 0)
        order =
            class_of(a) == BULK ? three_way(b->number, a->number) : three_way(a->number, b->number);
    return order;
}

static void settle_all(cohi_race_log *log, const cohi_race_view *view, cohi_race_entry **list,
                       size_t count)
{
    qsort(list, count, sizeof *list, compare);
    for (size_t i = 0; i < count; i++)
        settle(log, view, list[i]);
}

bool cohi_race_log_bring_complete(cohi_race_log *log, const cohi_race_view *view)
{
    cohi_race_entry *list[COHI_RACE_ENTRIES];
    size_t count = 0;
    for (cohi_race_entry *entry = log->entries; entry < end_of(log); entry++)
        if (!entry->gone && cohi_race_is_complete(entry, view))
            list[count++] = entry;
    settle_all(log, view, list, count);
    return count > 0;
}

void cohi_race_log_bring_fenced(cohi_race_log *log, const cohi_race_view *view, int source,
                                unsigned context, uint64_t epoch)
{
    cohi_race_entry *list[COHI_RACE_ENTRIES];
    size_t count = 0;
    for (cohi_race_entry *entry = log->entries; entry < end_of(log); entry++)
        if (entry->source == source && entry->context == context && entry->epoch < epoch
            && !entry->gone)
            list[count++] = entry;
    settle_all(log, view, list, count);
}

/* Earlier words of the same source in the same place. */
static void settle_older_words(cohi_race_log *log, const cohi_race_view *view,
                               const cohi_race_entry *entry)
{
    for (cohi_race_entry *older = log->entries; older < entry; older++)
        if (older->source == entry->source && older->context == entry->context && !older->gone
            && class_of(older) != BULK && touches(older, entry->spot, entry->bytes))
            settle(log, view, older);
}

void cohi_race_log_bring(cohi_race_log *log, const cohi_race_view *view, cohi_race_entry *entry,
                         bool ordered)
{
    cohi_race_log_bring_complete(log, view);
    if (entry->gone)
        return;
    cohi_race_log_bring_fenced(log, view, entry->source, entry->context, entry->epoch);
    cohi_race_entry *data = cohi_race_log_find(log, entry->data);
    if (data)
        settle(log, view, data);
    if (class_of(entry) != BULK)
        settle_older_words(log, view, entry);
    write_entry(log, view, entry);
    entry->gone = ordered || class_of(entry) != BULK;
}

/* ---- adding ---- */

static void make_room(cohi_race_log *log, const cohi_race_view *view)
{
    drop_gone(log);
    if (end_of(log) < log->entries + COHI_RACE_ENTRIES)
        return;
    for (cohi_race_entry *entry = log->entries; entry < end_of(log); entry++)
        entry->gone = entry->written;
    drop_gone(log);
    if (end_of(log) < log->entries + COHI_RACE_ENTRIES)
        return;
    for (int i = 0; i < COHI_RACE_ENTRIES / 4; i++)
        cohi_race_log_bring(log, view, &log->entries[i], true);
    drop_gone(log);
}

static void make_room_for_blocks(cohi_race_log *log, const cohi_race_view *view, uint32_t needed)
{
    for (cohi_race_entry *entry = log->entries; log->free_blocks < needed; entry++)
        if (entry->block)
            cohi_race_log_bring(log, view, entry, false);
}

static void keep_payload(cohi_race_log *log, cohi_race_entry *entry, const void *payload)
{
    if (entry->held <= COHI_RACE_INLINE_BYTES) {
        memcpy(entry->bytes_here, payload, entry->held);
        return;
    }
    uint32_t *link = &entry->block;
    for (uint64_t at = 0; at < entry->held; at += COHI_RACE_BLOCK_BYTES) {
        uint64_t left = entry->held - at;
        *link = take_block(log);
        memcpy(log->blocks[*link - 1], (const char *)payload + at,
               left < COHI_RACE_BLOCK_BYTES ? left : COHI_RACE_BLOCK_BYTES);
        link = &log->next_block[*link - 1];
    }
}

static void write_rest(cohi_race_log *log, const cohi_race_view *view, const cohi_race_entry *entry,
                       const void *payload)
{
    if (entry->held == entry->bytes)
        return;
    cohi_race_log_bring_complete(log, view);
    cohi_race_log_bring_fenced(log, view, entry->source, entry->context, entry->epoch);
    char *there = cohi_heap_reach(view->world, view->rank, entry->spot);
    cohi_host_copy(there + entry->held, (const char *)payload + entry->held,
                   entry->bytes - entry->held);
}

uint64_t cohi_race_log_add(cohi_race_log *log, const cohi_race_view *view,
                           const cohi_race_entry *entry, const void *payload)
{
    make_room(log, view);
    cohi_race_entry *added = end_of(log);
    *added = *entry;
    added->number = ++log->issued;
    if (!cohi_race_is_signal(entry)) {
        added->held = entry->bytes < COHI_RACE_HELD_BYTES ? entry->bytes : COHI_RACE_HELD_BYTES;
        make_room_for_blocks(log, view, blocks_for(added->held));
        keep_payload(log, added, payload);
        write_rest(log, view, added, payload);
    }
    atomic_fetch_add_explicit(&log->count, 1, memory_order_release);
    return added->number;
}

/* ---- completing ---- */

bool cohi_race_log_complete(cohi_race_log *log, int source, int context, const uint32_t *barrier)
{
    bool left = false;
    uint64_t number = ++log->quiets;
    for (cohi_race_entry *entry = log->entries; entry < end_of(log); entry++) {
        if (entry->source != source || entry->gone)
            continue;
        bool ends = context < 0 || entry->context == (unsigned)context;
        if (ends && entry->written)
            entry->gone = true;
        else if (ends && !entry->completed) {
            entry->completed = number;
            entry->in_barrier = barrier != NULL;
            entry->barrier = barrier ? *barrier : 0;
        }
        left = left || !entry->gone;
    }
    return left;
}
