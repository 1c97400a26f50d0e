/*
 * limit.h - what the machine can do, measured by raw loops that know nothing of Cohort.
 *
 * Each function runs one loop `repeats` times on memory it is given, so that the caller can run it
 * on the very mappings that it measures Cohort on, in turns with it, and returns nanoseconds per
 * repeat. Nothing is checked, locked or counted in them: what they take is what the hardware takes.
 * Where several instructions could be the fastest there is a row for each in a table of forms; the
 * limit is the best of them, whichever that is on the machine and for the size at hand.
 */
#ifndef COHI_BENCH_LIMIT_H
#define COHI_BENCH_LIMIT_H

#include <stddef.h>
#include <stdint.h>

/* ---- copying (limit_copy.c) ---- */

typedef struct cohi_limit_copy_form {
    const char *name;
    int (*available)(void); /* whether this CPU has the instructions */
    void (*copy)(void *target, const void *source, size_t bytes);
} cohi_limit_copy_form;

/* The forms this CPU can run, by index from 0; NULL past the last. The first is libc's memcpy. */
const cohi_limit_copy_form *cohi_limit_copy_form_at(size_t index);

/* Copies between two ranges that do not overlap. */
double cohi_limit_copy(const cohi_limit_copy_form *form, void *target, const void *source,
                       size_t bytes, uint64_t repeats);

/* ---- calling (limit_call.c) ---- */

/* A call of memcpy for 8 bytes that the compiler could not inline: the cost of the call, a load and
 * a store. Source and target are 8 bytes each. */
double cohi_limit_call(void *target, const void *source, uint64_t repeats);

/* ---- meeting (limit_exchange.c) ---- */

/* One cache line that its owner alone writes; each has two, of which some forms use the first
 * alone. */
typedef struct cohi_limit_line {
    _Alignas(64) uint64_t count;
    uint64_t told; /* see cohi_limit_one_way */
    char rest[64 - 2 * sizeof(uint64_t)];
} cohi_limit_line;

/* A meeting: everybody's two lines as this process maps them, and which of them are its own. */
typedef struct cohi_limit_meeting {
    cohi_limit_line *const *lines;
    int count;
    int mine;
} cohi_limit_meeting;

typedef struct cohi_limit_exchange_form {
    const char *name;
    int yields; /* gives its core to others while it waits */
    void (*exchange)(const cohi_limit_meeting *meeting, uint64_t first, uint64_t last);
} cohi_limit_exchange_form;

/* By index from 0; NULL past the last. */
const cohi_limit_exchange_form *cohi_limit_exchange_form_at(size_t index);

/*
 * All that meet call it at the same time. A repeat writes one's own line and waits until all others
 * have caught up; with two it is the exchange of two cache lines, and no two that wait for each
 * other can do with less. The counts must be equal for all before, and are again afterwards.
 */
double cohi_limit_exchange(const cohi_limit_exchange_form *form, const cohi_limit_meeting *meeting,
                           uint64_t repeats);

/* ---- words (limit_word.c) ---- */

typedef struct cohi_limit_word_form {
    const char *name;
    void (*apply)(uint64_t *word, uint64_t repeats);
} cohi_limit_word_form;

/* Ways to add 1 to a word, and to compare and swap it, by index from 0; NULL past the last. */
const cohi_limit_word_form *cohi_limit_add_form_at(size_t index);
const cohi_limit_word_form *cohi_limit_swap_form_at(size_t index);

double cohi_limit_word(const cohi_limit_word_form *form, uint64_t *word, uint64_t repeats);

/* Copies words of 8 bytes, which are that many bytes apart in the source and in the target. */
double cohi_limit_strided(void *target, size_t target_stride, const void *source,
                          size_t source_stride, size_t count, uint64_t repeats);

/* ---- taking turns (limit_turns.c) ---- */

/* Two that take turns. Each has a line that the other alone writes, with the turns given so far;
 * the counts are equal before, and again after, every call below, which both make together. */
typedef struct cohi_limit_pair {
    cohi_limit_line *mine;
    cohi_limit_line *theirs; /* as it is mapped here */
    int first;               /* 1 for the one that begins, 0 for the other */
    int yields;              /* gives its core to others while it waits */
} cohi_limit_pair;

typedef struct cohi_limit_turn_form {
    const char *name;
    int yields;
    void (*bounce)(const cohi_limit_pair *pair, uint64_t repeats);
} cohi_limit_turn_form;

/* By index from 0; NULL past the last. */
const cohi_limit_turn_form *cohi_limit_turn_form_at(size_t index);

/* A cache line goes there and back: the time of one way. */
double cohi_limit_turns(const cohi_limit_turn_form *form, const cohi_limit_pair *pair,
                        uint64_t repeats);

/* What goes with a turn. */
typedef struct cohi_limit_load {
    void (*write)(void *arg); /* by the giver of the turn: all bytes again, as a program would */
    void (*copy)(void *arg);  /* by the giver if `pushed`, else by the receiver */
    int pushed;
    void *arg;
} cohi_limit_load;

/* The same with a load: the time of one way with the copy, but without the writing. */
double cohi_limit_handover(const cohi_limit_pair *pair, const cohi_limit_load *load,
                           uint64_t repeats);

/* What one way took, where both wrote between the turns: both tell each other for how long, which
 * is taken off the nanoseconds that passed. */
double cohi_limit_one_way(const cohi_limit_pair *pair, uint64_t passed, uint64_t writing,
                          uint64_t repeats);

enum { COHI_LIMIT_WINDOW = 64 };

/* The first writes a line of `window` after the other, the second reads them in order and gives the
 * turn back after the last: the time of one. The window is in the second's memory. */
double cohi_limit_window(const cohi_limit_pair *pair, cohi_limit_line *window, uint64_t repeats);

/* ---- through a window in shared memory (limit_relay.c) ---- */

enum { COHI_LIMIT_RELAY_SLOTS = 4, COHI_LIMIT_RELAY_BYTES = 32 << 10 };

/* What two share that relay: `filled` and `drained` count pieces for all time. */
typedef struct cohi_limit_relay {
    cohi_limit_line filled;
    cohi_limit_line drained;
    _Alignas(64) char slots[COHI_LIMIT_RELAY_SLOTS][COHI_LIMIT_RELAY_BYTES];
} cohi_limit_relay;

/* One side copies in, the other out, pieces of a slot at a time. */
void cohi_limit_relay_in(cohi_limit_relay *relay, const void *source, size_t bytes, int yields);
void cohi_limit_relay_out(cohi_limit_relay *relay, void *target, size_t bytes, int yields);

/* ---- reducing and converting (limit_reduce.c, limit_avx2.c, limit_avx512.c) ---- */

/* What the loops can add: floats, both 16-bit floats by way of f32, and for all other types 32-bit
 * integers, since the same bytes are read and written. */
typedef enum cohi_limit_type {
    COHI_LIMIT_F32,
    COHI_LIMIT_BF16,
    COHI_LIMIT_F16,
    COHI_LIMIT_WORDS,
    COHI_LIMIT_TYPES
} cohi_limit_type;

/* Bytes that a loop handles at a time; ranges below begin at a multiple of it. */
enum { COHI_LIMIT_UNIT = 64, COHI_LIMIT_PARTIES = 64 };

/* Adds sources[0] ... in order; the sum of bytes `from` to `to` goes to all targets. */
typedef void cohi_limit_sum(char *const *targets, int target_count, char *const *sources,
                            int source_count, size_t from, size_t to);

/* targets[k] gets the sum of sources[0] to sources[k]. */
typedef void cohi_limit_prefix(char *const *targets, char *const *sources, int count, size_t from,
                               size_t to);

/* Reads `bytes` and writes a half or a quarter of them, or twice or four times as many: what a
 * conversion between f32 and 16 or 8 bits moves. Whole units on both sides. */
typedef void cohi_limit_resize(char *target, const char *source, size_t bytes);

typedef struct cohi_limit_reduce_form {
    const char *name;
    int (*available)(void);
    int streams; /* past the caches */
    cohi_limit_sum *sum[COHI_LIMIT_TYPES];
    cohi_limit_prefix *prefix[COHI_LIMIT_TYPES];
    cohi_limit_resize *halve, *quarter, *twice, *fourfold;
} cohi_limit_reduce_form;

/* The forms this CPU can run, by index from 0; NULL past the last. */
const cohi_limit_reduce_form *cohi_limit_reduce_form_at(size_t index);

/* ---- collectives (limit_collective.c) ---- */

enum { COHI_LIMIT_SLOT_BYTES = 16 << 10, COHI_LIMIT_INLINE_BYTES = 56 };

/* What a rank publishes: short data in the line of the count itself, longer behind it. */
typedef struct cohi_limit_slot {
    _Alignas(64) uint64_t count;
    char line[COHI_LIMIT_INLINE_BYTES];
    char data[COHI_LIMIT_SLOT_BYTES];
} cohi_limit_slot;

/* What to do between two looks at a line. */
typedef enum cohi_limit_wait {
    COHI_LIMIT_SPIN,
    COHI_LIMIT_PAUSE,
    COHI_LIMIT_LATE, /* a pause before the first look, too */
    COHI_LIMIT_YIELD /* gives its core to others */
} cohi_limit_wait;

/* One rank in a collective, and everybody's memory as it is mapped here. */
typedef struct cohi_limit_party {
    cohi_limit_meeting meeting;
    cohi_limit_wait wait;
    cohi_limit_slot *const *slots; /* [count][2] */
    char *const *sources;          /* [count] */
    char *const *targets;
    size_t bytes; /* that each contributes */
    size_t block; /* bytes of one block, where there are blocks */
    int root;
    cohi_limit_type type;
} cohi_limit_party;

/* What the loops of a collective are made with; one of the two is set. */
typedef struct cohi_limit_kernel {
    const cohi_limit_copy_form *copy;
    const cohi_limit_reduce_form *reduce;
} cohi_limit_kernel;

/* How the ranks share the work. */
typedef enum cohi_limit_shape {
    COHI_LIMIT_PULL,   /* meet; each fills its own target from all sources; meet */
    COHI_LIMIT_SHARED, /* meet; each does an equal share of all targets; meet */
    COHI_LIMIT_STAGED, /* each publishes its source in a slot and fills its target from the slots;
                          nobody waits at the end. In pieces of a slot where it is longer. */
} cohi_limit_shape;

typedef struct cohi_limit_collective cohi_limit_collective;

/* By the name of the collective, "all_reduce"; NULL when there is none. */
const cohi_limit_collective *cohi_limit_collective_of(const char *name);

int cohi_limit_reduces(const cohi_limit_collective *collective);

/* Whether the shape makes sense for it: not all can be shared, or cut into pieces. */
int cohi_limit_has_shape(const cohi_limit_collective *collective, const cohi_limit_party *party,
                         cohi_limit_shape shape);

/* All ranks call it together. */
void cohi_limit_collective_run(const cohi_limit_collective *collective, cohi_limit_shape shape,
                               const cohi_limit_kernel *kernel, const cohi_limit_party *party);

/* All ranks wait for each other. */
void cohi_limit_meet(const cohi_limit_meeting *meeting, cohi_limit_wait wait);

/* Takes the range out of all caches, so that the next reader reads the memory. 0, or -1 where
 * this CPU does not let a program do that. */
int cohi_limit_flush(const void *memory, size_t bytes);

#endif
