/* host_copy_test.c - memmove's meaning at every length and alignment, whole words, and their order.
 */
#include "memory/host_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

enum {
    GUARD = 64,
    SHIFTS = 9, /* misalignments tried: 0 to 8 */
    LARGEST = COHI_HOST_PLAIN_BYTES + 5 * 16384 + 100,
    ROOM = LARGEST + 3 * GUARD,
};

static const size_t lengths[] = {
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    15,
    16,
    17,
    63,
    64,
    65,
    4095,
    4096,
    4097,
    COHI_HOST_PLAIN_BYTES - 1,
    COHI_HOST_PLAIN_BYTES,
    COHI_HOST_PLAIN_BYTES + 1,
    COHI_HOST_PLAIN_BYTES + 16384 + 63,
    LARGEST,
};

enum { LENGTHS = sizeof lengths / sizeof *lengths };

struct buffers {
    unsigned char *source;
    unsigned char *target;
    unsigned char *expected;
};

/* No byte equals its neighbours for long, so that a shift shows. */
static void fill(unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (unsigned char)(i * 2654435761u >> 7);
}

static int make_buffers(void **state)
{
    static struct buffers buffers;
    buffers.source = aligned_alloc(64, (ROOM + 63) / 64 * 64);
    buffers.target = aligned_alloc(64, (ROOM + 63) / 64 * 64);
    buffers.expected = aligned_alloc(64, (ROOM + 63) / 64 * 64);
    *state = &buffers;
    if (!buffers.source || !buffers.target || !buffers.expected)
        return -1;
    fill(buffers.source, ROOM);
    return 0;
}

static int free_buffers(void **state)
{
    struct buffers *buffers = *state;
    free(buffers->source);
    free(buffers->target);
    free(buffers->expected);
    return 0;
}

typedef void copy_form(void *target, const void *source, size_t bytes);

/* The whole buffer is compared, so a byte outside the range that changed is seen as well. */
static void check_copy(struct buffers *b, copy_form *copy, size_t bytes, size_t to, size_t from)
{
    size_t room = bytes + 3 * GUARD;
    memset(b->target, 0x5a, room);
    memset(b->expected, 0x5a, room);
    memcpy(b->expected + GUARD + to, b->source + GUARD + from, bytes);
    copy(b->target + GUARD + to, b->source + GUARD + from, bytes);
    if (memcmp(b->target, b->expected, room) != 0)
        fail_msg("%zu bytes to alignment %zu from alignment %zu differ", bytes, to, from);
}

static void copies_every_length_and_alignment(void **state)
{
    struct buffers *b = *state;
    for (size_t i = 0; i < LENGTHS; i++) {
        int small = lengths[i] < 5000;
        for (size_t to = 0; to < SHIFTS; to += small ? 1 : 4) {
            for (size_t from = 0; from < SHIFTS; from += small ? 1 : 3)
                check_copy(b, cohi_host_copy, lengths[i], to, from);
        }
    }
}

/* Collectives decide once for all of their parts, and some of those are short. */
static void large_copies_may_be_short(void **state)
{
    struct buffers *b = *state;
    for (size_t bytes = 0; bytes < 40000; bytes += bytes < 300 ? 1 : 4099)
        for (size_t to = 0; to < GUARD; to += 4)
            check_copy(b, cohi_host_copy_large, bytes, to, to % SHIFTS);
}

static cohi_copy_form form_in_test;

static void copy_by_form(void *target, const void *source, size_t bytes)
{
    cohi_copy_by(form_in_test, target, source, bytes);
}

static void check_form_overlap(struct buffers *b, cohi_copy_form form)
{
    static const size_t distances[] = {1, 64, 4096, 100000};
    for (size_t i = 0; i < sizeof distances / sizeof *distances; i++) {
        size_t bytes = LARGEST - distances[i];
        memcpy(b->target, b->source, LARGEST);
        memcpy(b->expected, b->source, LARGEST);
        memmove(b->expected + distances[i], b->expected, bytes);
        cohi_copy_by(form, b->target + distances[i], b->target, bytes);
        assert_memory_equal(b->target, b->expected, LARGEST);
    }
}

/* Each loop that this CPU has, whatever the profile would choose. */
static void every_form_copies(void **state)
{
    struct buffers *b = *state;
    for (unsigned form = 0; form < COHI_COPY_FORMS; form++) {
        if (!cohi_copy_form_available(form))
            continue;
        for (size_t i = 0; i < LENGTHS; i++)
            for (size_t to = 0; to < GUARD; to += 9) {
                form_in_test = (cohi_copy_form)form;
                check_copy(b, copy_by_form, lengths[i], to, (to * 7) % SHIFTS);
            }
        check_form_overlap(b, (cohi_copy_form)form);
    }
    assert_true(cohi_copy_form_available(COHI_COPY_LIBC));
    assert_false(cohi_copy_form_available(COHI_COPY_FORMS));
    assert_null(cohi_copy_form_name(COHI_COPY_FORMS));
}

static void check_overlap(struct buffers *b, size_t bytes, size_t to, size_t from)
{
    size_t room = bytes + 3 * GUARD;
    memcpy(b->target, b->source, room);
    memcpy(b->expected, b->source, room);
    memmove(b->expected + to, b->expected + from, bytes);
    cohi_host_copy(b->target + to, b->target + from, bytes);
    if (memcmp(b->target, b->expected, room) != 0)
        fail_msg("%zu bytes from offset %zu to offset %zu differ", bytes, from, to);
}

static void overlapping_ranges_move(void **state)
{
    static const size_t distances[] = {0, 1, 4, 8, 60, 63};
    struct buffers *b = *state;
    for (size_t i = 0; i < LENGTHS; i++) {
        for (size_t j = 0; j < sizeof distances / sizeof *distances; j++) {
            check_overlap(b, lengths[i], GUARD, GUARD + distances[j]);
            check_overlap(b, lengths[i], GUARD + distances[j], GUARD);
        }
    }
}

/* ---- words are never torn ---- */

struct poll {
    uint64_t word; /* all bits equal, whenever it is looked at whole */
    atomic_int stop;
    atomic_int looking;
    int torn;
};

static void *poll_word(void *arg)
{
    struct poll *poll = arg;
    while (!atomic_load(&poll->stop)) {
        uint64_t seen = __atomic_load_n(&poll->word, __ATOMIC_ACQUIRE);
        poll->torn |= seen != 0 && seen != UINT64_MAX;
        atomic_store(&poll->looking, 1);
    }
    return NULL;
}

static void store_many(struct poll *poll, size_t shift)
{
    enum { STORES = 200000 };
    unsigned char values[2][16] = {{0}};
    memset(values[1], 0xff, sizeof values[1]);
    for (int i = 0; i < STORES; i++)
        cohi_host_copy(&poll->word, values[i & 1] + shift, sizeof poll->word);
}

static void words_are_stored_whole(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 8; shift += 3) {
        struct poll poll = {.word = 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, poll_word, &poll), 0);
        while (!atomic_load(&poll.looking))
            sched_yield();
        store_many(&poll, shift);
        atomic_store(&poll.stop, 1);
        pthread_join(thread, NULL);
        assert_int_equal(poll.torn, 0);
    }
}

/* ---- a flag copied after the data is seen after the data ---- */

enum { MESSAGES = 30 };

struct mail {
    unsigned char *box;
    uint64_t flag; /* the number of the message in the box */
    uint64_t read; /* the number of the last one read */
    int wrong;
};

static void await(const uint64_t *word, uint64_t value)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
        sched_yield();
}

static void *read_mail(void *arg)
{
    struct mail *mail = arg;
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        await(&mail->flag, i);
        for (size_t at = 0; at < LARGEST; at += 509)
            mail->wrong += mail->box[at] != (unsigned char)i;
        __atomic_store_n(&mail->read, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void data_is_seen_before_the_flag(void **state)
{
    struct buffers *b = *state;
    struct mail mail = {.box = b->target};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_mail, &mail), 0);
    for (uint64_t i = 1; i <= MESSAGES; i++) {
        memset(b->source, (int)i, LARGEST);
        cohi_host_copy(mail.box, b->source, LARGEST);
        cohi_host_copy(&mail.flag, &i, sizeof i);
        await(&mail.read, i);
    }
    pthread_join(thread, NULL);
    assert_int_equal(mail.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_every_length_and_alignment),
        cmocka_unit_test(large_copies_may_be_short),
        cmocka_unit_test(every_form_copies),
        cmocka_unit_test(overlapping_ranges_move),
        cmocka_unit_test(words_are_stored_whole),
        cmocka_unit_test(data_is_seen_before_the_flag),
    };
    return cmocka_run_group_tests_name("host_copy", tests, make_buffers, free_buffers);
}
