/*
 * profile_bits_test.c - the same bits whatever the profile: copies, conversions and collectives of
 * lengths around every threshold, under the profiles of hosts that differ in everything.
 */
#include "unit.h"

#include "core/world/world.h"
#include "memory/copy_forms.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RANKS = 2, KINDS = 6, MOST_BYTES = 5 << 20 };

static const size_t sizes[] = {4, 4096, 65536, 200000, 300000, 1 << 20, 3 << 20, MOST_BYTES - 12};

enum { SIZES = sizeof sizes / sizeof *sizes };

struct hashes {
    uint64_t of[SIZES][KINDS][RANKS];
};

/* Of whole words, of which all the buffers are made. */
static uint64_t hash(const void *memory, size_t bytes)
{
    const uint64_t *at = memory;
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < bytes / sizeof *at; i++)
        sum = (sum ^ at[i]) * 1099511628211u;
    return sum;
}

/* Sums of these depend on the order in which they are added. */
static void fill(float *values, size_t count, int rank)
{
    uint32_t random = 2463534242u + (uint32_t)rank;
    for (size_t i = 0; i < count; i++) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        values[i] = (float)((double)(int32_t)random / 3e4) * (i % 7 ? 1 : 1e-4f);
    }
}

struct rank {
    coh_world *world;
    struct hashes *hashes;
    coh_status status;
};

static coh_status call(coh_team *team, int kind, float *source, float *target, size_t count)
{
    switch (kind) {
    case 0:
        return coh_all_reduce(team, COH_F32, COH_SUM, source, target, count);
    case 1:
        return coh_reduce_scatter(team, COH_F32, COH_SUM, source, target, count / RANKS);
    case 2:
        return coh_all_gather(team, COH_F32, source, target, count);
    case 3:
        return coh_all_to_all(team, COH_F32, source, target, count / RANKS);
    case 4:
        return coh_scan(team, COH_F32, COH_SUM, source, target, count);
    default:
        return coh_broadcast(team, COH_F32, source, target, count, 1);
    }
}

static void *run_rank(void *arg)
{
    struct rank *self = arg;
    int rank = coh_rank(self->world);
    float *source, *target;
    self->status = coh_malloc(self->world, MOST_BYTES, (void **)&source);
    if (self->status == COH_OK)
        self->status = coh_malloc(self->world, RANKS * MOST_BYTES, (void **)&target);
    for (size_t i = 0; i < SIZES && self->status == COH_OK; i++)
        for (int kind = 0; kind < KINDS && self->status == COH_OK; kind++) {
            fill(source, MOST_BYTES / sizeof(float), rank);
            memset(target, 0, RANKS * MOST_BYTES);
            self->status =
                call(coh_team_world(self->world), kind, source, target, sizes[i] / sizeof(float));
            self->hashes->of[i][kind][rank] = hash(target, RANKS * MOST_BYTES);
            if (self->status == COH_OK) /* nobody's source changes while it is read */
                self->status = coh_barrier(self->world);
        }
    coh_status left = coh_finalize(self->world);
    self->status = self->status == COH_OK ? left : self->status;
    return NULL;
}

/* ---- profiles ---- */

static char path[] = "/tmp/cohort-profile-XXXXXX";

/* A file made by hand on purpose, which is taken on every host. */
static void write_profile(const cohi_profile *profile)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "cohort any\ncpu any\ncores any\nkernel any\n");
    for (unsigned row = 0; row < COHI_ROWS; row++) {
        char text[32];
        cohi_row_text(row, profile->value[row], text, sizeof text);
        fprintf(file, "row %s %s tuned 1 1\n", cohi_row_at(row)->name, text);
    }
    fprintf(file, "end %d\n", (int)COHI_ROWS);
    assert_int_equal(fclose(file), 0);
}

/* Every row at its least, or at its most; all copies by one form. */
static cohi_profile extreme(bool most, cohi_copy_form form)
{
    cohi_profile profile = cohi_profile_describe(cohi_host());
    for (unsigned row = 0; row < COHI_ROWS; row++) {
        const cohi_row_info *info = cohi_row_at(row);
        profile.value[row] = cohi_row_is_form(row) ? (double)form : most ? info->most : info->least;
    }
    return profile;
}

static void run_under(const cohi_profile *profile, struct hashes *hashes)
{
    coh_world *worlds[RANKS];
    struct rank ranks[RANKS];
    pthread_t threads[RANKS];
    coh_options options = COH_OPTIONS_INIT;
    options.engine = "threads";
    write_profile(profile);
    setenv("COHORT_PROFILE", path, 1);
    assert_int_equal(coh_init_threads(RANKS, &options, worlds), COH_OK);
    assert_true(worlds[1]->profile.value[COHI_ROW_copy_8M] == profile->value[COHI_ROW_copy_8M]);
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){worlds[i], hashes, COH_OK};
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(ranks[i].status, COH_OK);
    }
}

static void compare(const struct hashes *wanted, const struct hashes *got, const char *what)
{
    for (size_t i = 0; i < SIZES; i++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int rank = 0; rank < RANKS; rank++)
                if (wanted->of[i][kind][rank] != got->of[i][kind][rank])
                    fail_msg("%zu bytes, kind %d, rank %d differ under %s", sizes[i], kind, rank,
                             what);
}

static void collectives_have_the_same_bits(void **state)
{
    static struct hashes wanted, got;
    cohi_profile described = cohi_profile_describe(cohi_host());
    (void)state;
    run_under(&described, &wanted);
    for (unsigned form = 0; form < COHI_COPY_FORMS; form += COHI_COPY_PLAIN_256) {
        if (!cohi_copy_form_available(form))
            continue;
        cohi_profile least = extreme(false, (cohi_copy_form)form);
        cohi_profile most = extreme(true, (cohi_copy_form)form);
        run_under(&least, &got);
        compare(&wanted, &got, "every row at its least");
        run_under(&most, &got);
        compare(&wanted, &got, "every row at its most");
    }
}

static void conversions_have_the_same_bits(void **state)
{
    enum { COUNT = 1 << 20 };
    float *source = malloc(COUNT * sizeof *source);
    uint16_t *plain = malloc(COUNT * sizeof *plain), *streamed = malloc(COUNT * sizeof *streamed);
    (void)state;
    assert_true(source && plain && streamed);
    fill(source, COUNT, 0);
    cohi_profile most = extreme(true, COHI_COPY_LIBC), least = extreme(false, COHI_COPY_LIBC);
    cohi_profile_use(&most);
    assert_int_equal(coh_convert(plain, COH_BF16, source, COH_F32, COUNT), COH_OK);
    for (int pages = 1; pages <= 4; pages += 3) {
        least.value[COHI_ROW_convert_pages] = pages;
        cohi_profile_use(&least);
        assert_int_equal(coh_convert(streamed, COH_BF16, source, COH_F32, COUNT), COH_OK);
        assert_memory_equal(plain, streamed, COUNT * sizeof *plain);
    }
    free(source);
    free(plain);
    free(streamed);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collectives_have_the_same_bits),
        cmocka_unit_test(conversions_have_the_same_bits),
    };
    return cmocka_run_group_tests_name("profile_bits", tests, make_file, remove_file);
}
