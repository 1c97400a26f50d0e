/*
 * race_log.h - what was put to a rank and is not in its memory yet, while races are looked for.
 *
 * A log belongs to the rank that the puts are for. It lies behind that rank's slot, where all ranks
 * of the host reach it: who puts adds an entry, who needs the data brings it (race.c says when). Of
 * an entry whose bytes have been written the log keeps the range until its put is ordered, so that
 * an access that races with it can still be named.
 *
 * All functions but open and take are for who has taken the log. An entry stays where it is until
 * the log is given back.
 */
#ifndef COHI_CORE_ONESIDED_RACE_LOG_H
#define COHI_CORE_ONESIDED_RACE_LOG_H

#include "core/world/world.h"

#include <pthread.h>

enum {
    COHI_RACE_ENTRIES = 1024,
    COHI_RACE_BLOCK_BYTES = 4096, /* payloads are chains of these */
    COHI_RACE_BLOCKS = 1024,
    COHI_RACE_INLINE_BYTES = 64,   /* payloads up to this are in the entry */
    COHI_RACE_HELD_BYTES = 1 << 20 /* of one put; what is behind is written at once */
};

typedef enum cohi_race_kind {
    COHI_RACE_PUT = 0,
    COHI_RACE_SIGNAL_SET = 1,
    COHI_RACE_SIGNAL_ADD = 2,
} cohi_race_kind;

typedef struct cohi_race_entry {
    uint64_t number;    /* counts what was issued to this rank, from 1 */
    cohi_spot spot;     /* where the range begins */
    uint64_t bytes;     /* and its length */
    uint64_t held;      /* bytes of it, from its start on, that are in the log */
    uint64_t epoch;     /* fences of its source on its context before it */
    uint64_t completed; /* 0, or the number of the quiet that it was issued before */
    uint32_t barrier;   /* the epoch of the world's team whose meeting that quiet begins */
    bool in_barrier;    /* whether there is one */
    uint64_t data;      /* of a signal: the number of the put that it tells of; 0: none */
    uint64_t value;     /* of a signal */
    uint64_t seen_ns;   /* when a call could have brought it and left it; 0: not yet */
    uint64_t delay_ns;  /* for which it is left then */
    int32_t source;
    uint32_t context;
    uint32_t kind;  /* cohi_race_kind */
    uint32_t block; /* the first of its payload, and 1; 0: none */
    bool written;   /* to the heap */
    bool gone;      /* to be forgotten */
    char call[32];
    unsigned char bytes_here[COHI_RACE_INLINE_BYTES];
} cohi_race_entry;

typedef struct cohi_race_log {
    pthread_mutex_t lock; /* robust: a rank may die that holds it */
    atomic_uint count;    /* of entries; written by the holder of the lock */
    atomic_int holder;    /* the rank that has the lock */
    uint64_t issued;
    uint64_t quiets;
    uint32_t free_blocks;
    uint32_t free_block; /* the first of them, and 1 */
    uint32_t next_block[COHI_RACE_BLOCKS];
    cohi_race_entry entries[COHI_RACE_ENTRIES]; /* in order of issue */
    _Alignas(COHI_CACHE_LINE) unsigned char blocks[COHI_RACE_BLOCKS][COHI_RACE_BLOCK_BYTES];
} cohi_race_log;

_Static_assert(sizeof(cohi_race_log) <= COHI_LOG_BYTES, "a log fits behind its slot");

/* The log's owner and the caller. */
typedef struct cohi_race_view {
    coh_world *world; /* the caller's */
    int rank;         /* the owner */
    uint32_t entered; /* the last meeting of the world's team that the caller has come to */
} cohi_race_view;

/* By its owner, before others reach it. */
void cohi_race_log_open(cohi_race_log *log);

/* False: it was not to be had for `patience_ns`; `holder` is who has it. What a rank left that died
 * while it had the log is dropped. */
bool cohi_race_log_take(cohi_race_log *log, int rank, uint64_t patience_ns);
void cohi_race_log_give(cohi_race_log *log);

static inline bool cohi_race_log_is_empty(cohi_race_log *log)
{
    return atomic_load_explicit(&log->count, memory_order_acquire) == 0;
}

/* A word: a put of it is one store, so that ranks may poll it. */
static inline bool cohi_race_is_word(cohi_spot spot, uint64_t bytes)
{
    return bytes <= sizeof(uint64_t) && (bytes & (bytes - 1)) == 0 && (spot & (bytes - 1)) == 0;
}

static inline bool cohi_race_is_signal(const cohi_race_entry *entry)
{
    return entry->kind != COHI_RACE_PUT;
}

/*
 * Whether its source has completed it as far as the caller can know. It cannot while the quiet is
 * that of a barrier which the caller has not come to, so that nobody has left it.
 */
static inline bool cohi_race_is_complete(const cohi_race_entry *entry, const cohi_race_view *view)
{
    return entry->completed
           && !(entry->in_barrier && (int32_t)(entry->barrier - view->entered) > 0);
}

/* The entry after `entry` that is not gone, or the first after NULL, that touches the range; NULL
 * after the last. */
cohi_race_entry *cohi_race_log_next(cohi_race_log *log, const cohi_race_entry *entry,
                                    cohi_spot spot, uint64_t bytes);

/* The entry with that number, or NULL when it is forgotten. */
cohi_race_entry *cohi_race_log_find(cohi_race_log *log, uint64_t number);

/*
 * Adds a copy of `entry` with its payload. Where the log is full the oldest entries are written and
 * forgotten. Of a put of more than COHI_RACE_HELD_BYTES the rest is written at once, after what is
 * fenced off before it. Returns the entry's number.
 */
uint64_t cohi_race_log_add(cohi_race_log *log, const cohi_race_view *view,
                           const cohi_race_entry *entry, const void *payload);

/* Writes what is complete, and forgets it; false: there was nothing. Before anything else is written:
 * who made the one visible may have known of the other. */
bool cohi_race_log_bring_complete(cohi_race_log *log, const cohi_race_view *view);

/* Writes and forgets what `source` issued on `context` before its fence number `epoch`. */
void cohi_race_log_bring_fenced(cohi_race_log *log, const cohi_race_view *view, int source,
                                unsigned context, uint64_t epoch);

/* Writes one entry, with all that comes before it by the above, and a signal's data. Words and
 * signals are forgotten; of others the range is kept, unless `ordered`. */
void cohi_race_log_bring(cohi_race_log *log, const cohi_race_view *view, cohi_race_entry *entry,
                         bool ordered);

/* What `source` has issued on `context` (-1: all) is complete, by the quiet with which its call of
 * the meeting `*barrier` begins, if not NULL. Returns whether the log still has something of that
 * source. */
bool cohi_race_log_complete(cohi_race_log *log, int source, int context, const uint32_t *barrier);

#endif
