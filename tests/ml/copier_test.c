/* Copies and their tokens, from memory and from files, with a worker and without:
 * docs/semantics.md S52. */
#include "ml.h"
#include "scratch.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BYTES = 100003, COPIES = 64 };

static coh_copier *make_copier(int synchronous, uint32_t workers, uint32_t depth)
{
    coh_copier *copier = NULL;
    coh_copier_options options = {sizeof options, synchronous, workers, depth};
    assert_ok(coh_copier_create(&options, &copier));
    return copier;
}

static void fill(unsigned char *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)random_next(&seed);
}

/* All copies at once, waited for in another order than they were issued in. */
static void copies_arrive(int synchronous, uint32_t workers)
{
    static unsigned char source[COPIES][BYTES / COPIES], target[COPIES][BYTES / COPIES];
    coh_token tokens[COPIES];
    coh_copier *copier = make_copier(synchronous, workers, COPIES);
    for (uint64_t round = 1; round <= 20; round++) {
        fill(source[0], sizeof source, round);
        for (int i = 0; i < COPIES; i++)
            assert_ok(coh_copier_issue(copier, target[i], source[i], sizeof source[i], &tokens[i]));
        for (int i = 0; i < COPIES; i++) {
            int other = (i * 37 + 11) % COPIES;
            assert_ok(coh_copier_wait(copier, tokens[other]));
            assert_memory_equal(target[other], source[other], sizeof source[other]);
        }
    }
    assert_ok(coh_copier_destroy(copier));
}

static void waits_may_come_out_of_order(void **state)
{
    (void)state;
    copies_arrive(1, 0);
    copies_arrive(0, 1);
    copies_arrive(0, 3);
}

static void tokens_are_waited_for_once(void **state)
{
    char from[8] = "abcdefg", to[8];
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        coh_copier *copier = make_copier(synchronous, 0, 2), *other = make_copier(0, 0, 2);
        coh_token token, later, never;
        int done = -1;
        assert_ok(coh_copier_issue(copier, to, from, sizeof from, &token));
        assert_fails(coh_copier_wait(other, token), COH_INVALID_ARGUMENT, "is copier");
        assert_fails(coh_copier_done(other, token, &done), COH_INVALID_ARGUMENT, "is copier");
        assert_ok(coh_copier_wait(copier, token)); /* the refusals did not spend it */
        assert_string_equal(to, from);
        assert_fails(coh_copier_wait(copier, token), COH_INVALID_ARGUMENT,
                     "was waited for already");
        assert_fails(coh_copier_done(copier, token, &done), COH_INVALID_ARGUMENT, "already");
        assert_int_equal(done, -1);
        assert_ok(coh_copier_issue(copier, to, from, 0, &later)); /* the same slot again */
        assert_fails(coh_copier_wait(copier, token), COH_INVALID_ARGUMENT, "already");
        never = later;
        never.copy += 2;
        assert_fails(coh_copier_wait(copier, never), COH_INVALID_ARGUMENT, "never issued");
        never.copy = 0;
        assert_fails(coh_copier_wait(copier, never), COH_INVALID_ARGUMENT, "never issued");
        assert_ok(coh_copier_wait(copier, later));
        assert_ok(coh_copier_destroy(other));
        assert_ok(coh_copier_destroy(copier));
    }
}

static void depth_bounds_what_is_not_waited_for(void **state)
{
    char from[4] = "abc", to[3][4];
    coh_token tokens[3] = {{0, 0}};
    coh_copier *copier = make_copier(0, 0, 2);
    (void)state;
    assert_ok(coh_copier_issue(copier, to[0], from, 4, &tokens[0]));
    assert_ok(coh_copier_issue(copier, to[1], from, 4, &tokens[1]));
    assert_fails(coh_copier_issue(copier, to[2], from, 4, &tokens[2]), COH_LIMIT, "2 copies");
    assert_int_equal(tokens[2].copier, 0);
    assert_ok(coh_copier_wait(copier, tokens[0]));
    assert_ok(coh_copier_issue(copier, to[2], from, 4, &tokens[2]));
    /* The end finishes what was issued. */
    assert_ok(coh_copier_destroy(copier));
    assert_string_equal(to[2], "abc");
}

static void done_never_waits(void **state)
{
    char from[4] = "abc", to[4];
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        coh_token token;
        int done = 0;
        coh_copier *copier = make_copier(synchronous, 0, 0);
        assert_ok(coh_copier_issue(copier, to, from, 4, &token));
        if (synchronous) {
            assert_ok(coh_copier_done(copier, token, &done));
            assert_int_equal(done, 1);
        }
        while (!done)
            assert_ok(coh_copier_done(copier, token, &done));
        assert_string_equal(to, "abc");
        assert_ok(coh_copier_wait(copier, token));
        assert_ok(coh_copier_destroy(copier));
    }
}

enum { LARGE_COPY = 16 << 20, MANY_COPIES = 8 };

/* How many of them are not done yet, once all are issued; waits for them, the last one first. */
static int copy_many(coh_copier *copier, char *to, const char *from)
{
    coh_token tokens[MANY_COPIES];
    int under_way = 0;
    for (int i = 0; i < MANY_COPIES; i++)
        assert_ok(
            coh_copier_issue(copier, to + (size_t)i * LARGE_COPY, from, LARGE_COPY, &tokens[i]));
    for (int i = 0; i < MANY_COPIES; i++) {
        int done;
        assert_ok(coh_copier_done(copier, tokens[i], &done));
        under_way += !done;
    }
    for (int i = MANY_COPIES - 1; i >= 0; i--)
        assert_ok(coh_copier_wait(copier, tokens[i]));
    return under_way;
}

/* Copies that take milliseconds each are issued in no time: some must be under way afterwards. */
static void a_worker_copies_beside_the_caller(void **state)
{
    enum { TRIES = 20 };
    char *from = malloc(LARGE_COPY), *to = malloc((size_t)MANY_COPIES * LARGE_COPY);
    int under_way = 0;
    coh_copier *copier = make_copier(0, 0, 0);
    (void)state;
    memset(from, 1, LARGE_COPY);
    for (int i = 0; i < TRIES && !under_way; i++) /* this thread may have to wait for a core */
        under_way = copy_many(copier, to, from);
    assert_true(under_way > 0);
    for (int i = 0; i < MANY_COPIES; i++)
        assert_memory_equal(to + (size_t)i * LARGE_COPY, from, LARGE_COPY);
    assert_ok(coh_copier_destroy(copier));
    free(to);
    free(from);
}

/* The worker is at a long copy when a short one is waited for: the caller does that itself. */
static void who_waits_copies(void **state)
{
    enum { LARGE = 128 << 20, TRIES = 20 };
    char *from = malloc(LARGE), *to = malloc(LARGE), small[8] = "";
    coh_copier *copier = make_copier(0, 1, 0);
    int before = 0;
    (void)state;
    memset(from, 1, LARGE);
    for (int i = 0; i < TRIES && !before; i++) { /* this thread, too, may have to wait for a core */
        coh_token large, short_one;
        int done;
        assert_ok(coh_copier_issue(copier, to, from, LARGE, &large));
        assert_ok(coh_copier_issue(copier, small, "abcdefg", sizeof small, &short_one));
        assert_ok(coh_copier_wait(copier, short_one));
        assert_string_equal(small, "abcdefg");
        assert_ok(coh_copier_done(copier, large, &done));
        before = !done;
        assert_ok(coh_copier_wait(copier, large));
        assert_memory_equal(to, from, LARGE);
    }
    assert_true(before);
    assert_ok(coh_copier_destroy(copier));
    free(to);
    free(from);
}

/* ---- copies of several pieces, and several threads ---- */

enum { LONG_BYTES = (5 << 20) + 77, THREADS = 3 };

typedef struct party {
    coh_copier *copier;
    const unsigned char *source;
    coh_token shared; /* that all of them wait for */
    atomic_int waited;
} party;

static void *copy_and_wait(void *arg)
{
    party *self = arg;
    unsigned char *own = malloc(LONG_BYTES);
    coh_status status = coh_copier_wait(self->copier, self->shared);
    atomic_fetch_add(&self->waited, status == COH_OK);
    assert_true(status == COH_OK || status == COH_INVALID_ARGUMENT);
    for (int i = 0; i < 10; i++) {
        coh_token token;
        memset(own, 0, LONG_BYTES);
        assert_ok(coh_copier_issue(self->copier, own, self->source, LONG_BYTES, &token));
        assert_ok(coh_copier_wait(self->copier, token));
        assert_memory_equal(own, self->source, LONG_BYTES);
    }
    free(own);
    return NULL;
}

static void threads_share_a_copier(void **state)
{
    unsigned char *source = malloc(LONG_BYTES), *target = malloc(LONG_BYTES);
    (void)state;
    fill(source, LONG_BYTES, 9);
    for (uint32_t workers = 1; workers <= 3; workers++) {
        party all = {.copier = make_copier(0, workers, 0), .source = source};
        pthread_t threads[THREADS];
        assert_ok(coh_copier_issue(all.copier, target, source, LONG_BYTES, &all.shared));
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, copy_and_wait, &all), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&all.waited), 1);
        assert_memory_equal(target, source, LONG_BYTES);
        assert_ok(coh_copier_destroy(all.copier));
    }
    free(target);
    free(source);
}

/* Cut within a piece, and before others: the first that fails is told, with the right bytes. */
static void the_first_piece_that_fails_is_told(void **state)
{
    enum { CUT = 1000003 };
    unsigned char *bytes = malloc(LONG_BYTES), *back = malloc(LONG_BYTES);
    (void)state;
    fill(bytes, LONG_BYTES, 3);
    scratch made = scratch_make(bytes, LONG_BYTES);
    for (uint32_t workers = 1; workers <= 3; workers++) {
        coh_file *file;
        coh_token whole, cut;
        coh_copier *copier = make_copier(0, workers, 0);
        assert_ok(coh_file_open(made.path, &file));
        assert_ok(coh_copier_issue_file(copier, back, file, 0, LONG_BYTES, &whole));
        assert_ok(coh_copier_wait(copier, whole));
        assert_memory_equal(back, bytes, LONG_BYTES);
        assert_int_equal(ftruncate(made.fd, CUT), 0);
        memset(back, 0, LONG_BYTES);
        assert_ok(coh_copier_issue_file(copier, back, file, 0, LONG_BYTES, &cut));
        assert_fails(coh_copier_wait(copier, cut), COH_LENGTH_MISMATCH, "it ends after");
        assert_true(strtoull(strstr(coh_last_error(), "at byte ") + 8, NULL, 10) <= CUT);
        assert_memory_equal(back, bytes, CUT);
        assert_int_equal(pwrite(made.fd, bytes, LONG_BYTES, 0), LONG_BYTES);
        assert_ok(coh_copier_destroy(copier));
        coh_file_close(file);
    }
    scratch_remove(&made);
    free(back);
    free(bytes);
}

static void arguments_are_checked(void **state)
{
    char byte = 1;
    coh_token token;
    coh_copier *copier = NULL;
    coh_copier_options options = COH_COPIER_OPTIONS_INIT;
    (void)state;
    options.workers = 100000;
    assert_fails(coh_copier_create(&options, &copier), COH_INVALID_ARGUMENT, "workers");
    options = (coh_copier_options)COH_COPIER_OPTIONS_INIT;
    options.depth = UINT32_MAX;
    assert_fails(coh_copier_create(&options, &copier), COH_INVALID_ARGUMENT, "depth");
    assert_null(copier);
    copier = make_copier(0, 0, 0);
    assert_fails(coh_copier_issue(copier, NULL, &byte, 1, &token), COH_INVALID_ARGUMENT, "target");
    assert_fails(coh_copier_issue(copier, &byte, NULL, 1, &token), COH_INVALID_ARGUMENT, "source");
    assert_fails(coh_copier_issue(copier, &byte, &byte, 1, NULL), COH_INVALID_ARGUMENT, "token");
    assert_fails(coh_copier_issue_file(copier, &byte, NULL, 0, 1, &token), COH_INVALID_ARGUMENT,
                 "file");
    assert_ok(coh_copier_destroy(copier));
    assert_ok(coh_copier_destroy(NULL));
}

/* ---- files ---- */

static void files_are_read(void **state)
{
    static unsigned char bytes[BYTES], back[BYTES];
    coh_file *file;
    (void)state;
    fill(bytes, sizeof bytes, 5);
    scratch made = scratch_make(bytes, sizeof bytes);
    assert_ok(coh_file_open(made.path, &file));
    assert_int_equal(coh_file_bytes(file), BYTES);
    assert_string_equal(coh_file_path(file), made.path);
    assert_ok(coh_file_read(file, 1000, back, 77));
    assert_memory_equal(back, bytes + 1000, 77);
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        coh_copier *copier = make_copier(synchronous, 2, 0);
        coh_token tokens[7];
        memset(back, 0, sizeof back);
        for (size_t i = 0; i < 7; i++)
            assert_ok(coh_copier_issue_file(copier, back + i * BYTES / 7, file, i * BYTES / 7,
                                            (i + 1) * BYTES / 7 - i * BYTES / 7, &tokens[i]));
        for (int i = 6; i >= 0; i--)
            assert_ok(coh_copier_wait(copier, tokens[i]));
        assert_memory_equal(back, bytes, sizeof bytes);
        assert_ok(coh_copier_destroy(copier));
    }
    coh_file_close(file);
    coh_file_close(NULL);
    scratch_remove(&made);
}

static void bad_files_are_named(void **state)
{
    coh_file *file = NULL;
    (void)state;
    assert_fails(coh_file_open("/nowhere/at-all", &file), COH_SYSTEM, "'/nowhere/at-all'");
    assert_fails(coh_file_open("/", &file), COH_INVALID_ARGUMENT, "'/' is not a regular file");
    assert_fails(coh_file_open("/dev/zero", &file), COH_INVALID_ARGUMENT, "not a regular file");
    assert_fails(coh_file_open(NULL, &file), COH_INVALID_ARGUMENT, "path");
    assert_null(file);
    assert_null(coh_file_path(NULL));
}

static void ranges_of_files_are_checked(void **state)
{
    const uint64_t bad[][2] = {{0, 11}, {10, 1}, {11, 0}, {UINT64_MAX, 2}, {1, UINT64_MAX}};
    char back[16] = "unchanged";
    coh_token token;
    coh_file *file;
    coh_copier *copier = make_copier(0, 0, 0);
    scratch made = scratch_make("0123456789", 10);
    (void)state;
    assert_ok(coh_file_open(made.path, &file));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_fails(coh_file_read(file, bad[i][0], back, bad[i][1]), COH_OUT_OF_BOUNDS, made.path);
        assert_fails(coh_copier_issue_file(copier, back, file, bad[i][0], bad[i][1], &token),
                     COH_OUT_OF_BOUNDS, "which has 10");
    }
    assert_string_equal(back, "unchanged");
    coh_file_close(file);
    scratch_remove(&made);
    assert_ok(coh_copier_destroy(copier));
}

/* It was cut after it was opened: the copy fails at its wait, and names what it found. */
static void a_file_that_shrank_is_told_at_wait(void **state)
{
    char back[16];
    scratch made = scratch_make("0123456789", 10);
    (void)state;
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        coh_token token, good;
        coh_file *file;
        coh_copier *copier = make_copier(synchronous, 0, 0);
        assert_int_equal(ftruncate(made.fd, 10), 0);
        assert_ok(coh_file_open(made.path, &file));
        assert_int_equal(ftruncate(made.fd, 4), 0);
        assert_ok(coh_copier_issue_file(copier, back, file, 2, 6, &token));
        assert_ok(coh_copier_issue_file(copier, back + 8, file, 0, 4, &good));
        assert_ok(coh_copier_wait(copier, good));
        assert_fails(coh_copier_wait(copier, token), COH_LENGTH_MISMATCH, "ends after 2 of them");
        assert_says(made.path);
        assert_ok(coh_copier_issue_file(copier, back, file, 2, 6, &token)); /* nobody waits */
        assert_ok(coh_copier_destroy(copier));
        coh_file_close(file);
    }
    scratch_remove(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_may_come_out_of_order),
        cmocka_unit_test(tokens_are_waited_for_once),
        cmocka_unit_test(depth_bounds_what_is_not_waited_for),
        cmocka_unit_test(done_never_waits),
        cmocka_unit_test(a_worker_copies_beside_the_caller),
        cmocka_unit_test(who_waits_copies),
        cmocka_unit_test(threads_share_a_copier),
        cmocka_unit_test(the_first_piece_that_fails_is_told),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(bad_files_are_named),
        cmocka_unit_test(ranges_of_files_are_checked),
        cmocka_unit_test(a_file_that_shrank_is_told_at_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
