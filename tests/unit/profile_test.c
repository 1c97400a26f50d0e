/* profile_test.c - rows as hosts describe them, when a measurement counts, and what becomes of files
 * that are good, damaged, foreign or somebody else's: docs/faults.md F39. */
#include "unit.h"

#include "memory/calibrate.h"
#include "memory/copy_forms.h"
#include "memory/host_profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/cohort-profile-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/profile", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* ---- rows ---- */

static const cohi_host_facts hosts[] = {
    {.cpu = "sapphire rapids",
     .cores = 2,
     .level1 = 48 << 10,
     .level2 = 2 << 20,
     .level3 = 105 << 20,
     .level3_cores = 2,
     .slow_level3 = true},
    {.cpu = "zen 3",
     .cores = 2,
     .level1 = 32 << 10,
     .level2 = 512 << 10,
     .level3 = 32 << 20,
     .level3_cores = 2},
    {.cpu = "nothing is known", .cores = 1, .level3_cores = 1},
    {.cpu = "much",
     .cores = 4096,
     .level1 = 1 << 30,
     .level2 = UINT64_C(1) << 40,
     .level3 = UINT64_C(1) << 60,
     .level3_cores = 4096},
};

static void every_host_has_every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        cohi_profile profile = cohi_profile_describe(&hosts[i]);
        for (unsigned row = 0; row < COHI_ROWS; row++)
            if (!cohi_row_could_be(row, profile.value[row]))
                fail_msg("%s: %s is %g", hosts[i].cpu, cohi_row_at(row)->name, profile.value[row]);
        assert_false(cohi_profile_mend(&profile));
    }
    assert_null(cohi_row_at(COHI_ROWS));
}

/* Where the third-level cache is slow, what does not fit the second is stored past both. */
static void what_is_described_follows_the_caches(void **state)
{
    cohi_profile slow = cohi_profile_describe(&hosts[0]), fast = cohi_profile_describe(&hosts[1]);
    double streamed = cohi_copy_form_streamed();
    (void)state;
    assert_true(slow.value[COHI_ROW_copy_1M] == COHI_COPY_LIBC);
    assert_true(slow.value[COHI_ROW_copy_2M] == streamed);
    assert_true(fast.value[COHI_ROW_copy_8M] == COHI_COPY_LIBC);
    assert_true(fast.value[COHI_ROW_copy_16M] == streamed);
    assert_true(slow.value[COHI_ROW_reduce_stream_from] == 1 << 20);
    assert_true(fast.value[COHI_ROW_copy_shared] == 20 << 20);
}

static void texts_of_rows(void **state)
{
    char text[32];
    double value = -1;
    (void)state;
    cohi_row_text(COHI_ROW_copy_1M, COHI_COPY_LIBC, text, sizeof text);
    assert_string_equal(text, "libc");
    assert_true(cohi_row_parse(COHI_ROW_copy_1M, "libc", &value) && value == COHI_COPY_LIBC);
    assert_false(cohi_row_parse(COHI_ROW_copy_1M, "0", &value));
    assert_true(cohi_row_parse(COHI_ROW_line, "87.5", &value) && value == 87.5);
    static const char *const bad[] = {"", "nan", "inf", "-1", "0", "1e300", "12x", "x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (cohi_row_parse(COHI_ROW_line, bad[i], &value))
            fail_msg("a line of '%s' ns is taken", bad[i]);
}

static void values_that_cannot_be_are_mended(void **state)
{
    cohi_profile described = cohi_profile_describe(cohi_host()), profile = described;
    (void)state;
    profile.value[COHI_ROW_copy_4M] = COHI_COPY_FORMS;
    profile.value[COHI_ROW_line] = NAN;
    profile.value[COHI_ROW_message_chunk] = INFINITY;
    profile.value[COHI_ROW_fetch_chunk] = 1e9; /* more than a staging area has */
    assert_true(cohi_profile_mend(&profile));
    assert_memory_equal(&profile, &described, sizeof profile);
    memset(&profile, 0xff, sizeof profile); /* all of them NaN */
    assert_true(cohi_profile_mend(&profile));
    assert_false(cohi_profile_mend(&profile));
}

/* ---- samples ---- */

static void a_second_start_confirms(void **state)
{
    cohi_sample quantity = {.count = 1, .value = {100}, .cost = {1}};
    cohi_sample choice = {.count = 3, .value = {0, 4, 7}, .cost = {1.14, 1.16, 1}};
    (void)state;
    assert_true(cohi_sample_best(&choice, 4) == 7 && cohi_sample_best(&choice, 3) == 7);
    choice.cost[1] = 1.04;
    assert_true(cohi_sample_best(&choice, 4) == 4 && cohi_sample_best(&choice, 0) == 7);
    choice.cost[1] = 1.16;
    assert_true(cohi_sample_best(&quantity, 104) == 100);
    assert_true(cohi_sample_confirms(&quantity, 114) && cohi_sample_confirms(&quantity, 88));
    assert_false(cohi_sample_confirms(&quantity, 116) || cohi_sample_confirms(&quantity, 86));
    assert_true(cohi_sample_confirms(&choice, 7) && cohi_sample_confirms(&choice, 0));
    assert_false(cohi_sample_confirms(&choice, 4) || cohi_sample_confirms(&choice, 1));
}

static void a_described_threshold_is_a_choice_too(void **state)
{
    cohi_sample sizes = {
        .count = 3, .threshold = true, .value = {1000, 2000, 4000}, .cost = {1, 1.14, 1.16}};
    (void)state;
    assert_true(cohi_sample_best(&sizes, 1500) == 1500); /* as from 2000 on */
    /* Else the largest that costs at most 15 % more. */
    assert_true(cohi_sample_best(&sizes, 3000) == 2000 && cohi_sample_best(&sizes, 9000) == 2000);
    assert_true(cohi_sample_confirms(&sizes, 1500) && !cohi_sample_confirms(&sizes, 9000));
    assert_true(cohi_sample_prefers(&sizes, 1500, 4000)
                && !cohi_sample_prefers(&sizes, 4000, 1500));
}

/* ---- files ---- */

static cohi_host_profile host;

static void write_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* The file as saved, for tests to spoil. */
static char *saved(void)
{
    static char text[16384];
    cohi_host_profile_read(path, &host);
    cohi_host_profile_tune(&host, COHI_ROW_line, 77);
    cohi_host_profile_tune(&host, COHI_ROW_copy_1M, COHI_COPY_LIBC);
    assert_int_equal(cohi_host_profile_save(&host), 0);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void assert_described(const char *warning)
{
    cohi_profile described = cohi_profile_describe(cohi_host());
    cohi_host_profile_read(path, &host);
    assert_false(host.found);
    assert_memory_equal(&host.profile, &described, sizeof described);
    if (!strstr(host.warning, warning))
        fail_msg("the warning lacks '%s': %s", warning, host.warning);
}

static void what_is_saved_is_read(void **state)
{
    (void)state;
    unlink(path);
    saved();
    cohi_host_profile_read(path, &host);
    assert_true(host.found);
    assert_string_equal(host.warning, "");
    assert_true(host.profile.value[COHI_ROW_line] == 77);
    assert_int_equal(host.findings[COHI_ROW_line].origin, COHI_ORIGIN_TUNED);
    assert_int_equal(host.findings[COHI_ROW_copy_2M].origin, COHI_ORIGIN_DESCRIBED);
    cohi_host_profile_read("described", &host);
    assert_true(!host.found && !*host.path);
}

/* Wherever it is cut, but for its last line's end, it is not taken. */
static void files_that_are_cut_short(void **state)
{
    char whole[16384], cut[16384];
    (void)state;
    unlink(path);
    snprintf(whole, sizeof whole, "%s", saved());
    for (size_t length = 0; length < strlen(whole); length++) {
        memcpy(cut, whole, length);
        cut[length] = '\0';
        write_text(cut);
        assert_described("the descriptions are");
    }
}

/* The line that begins with `start` becomes `line`. */
static void spoil(const char *start, const char *line)
{
    char whole[16384], spoilt[16384 + 256];
    unlink(path);
    snprintf(whole, sizeof whole, "%s", saved());
    char *at = strstr(whole, start), *end = at ? strchr(at, '\n') : NULL;
    assert_non_null(end);
    *at = '\0';
    snprintf(spoilt, sizeof spoilt, "%s%s%s", whole, line, end);
    write_text(spoilt);
}

static void files_of_other_hosts(void **state)
{
    (void)state;
    spoil("cpu ", "cpu GenuineIntel 6/143/8 Another");
    assert_described("is of another host (cpu GenuineIntel 6/143/8 Another");
    spoil("cores ", "cores 4711");
    assert_described("is of another host");
    spoil("kernel ", "kernel Linux 1.0");
    assert_described("is of another host");
    spoil("cohort ", "cohort 0.0.1");
    assert_described("is of another host");
    spoil("cpu ", "cpu any"); /* made by hand, on purpose */
    cohi_host_profile_read(path, &host);
    assert_true(host.found && host.profile.value[COHI_ROW_line] == 77);
}

static void values_that_cannot_be(void **state)
{
    static const char *const lines[] = {
        "row line 1e99 tuned 1 1",
        "row line -5 tuned 1 1",
        "row line nan tuned 1 1",
        "row line 50 guessed 1 1",
        "row line 50 tuned",
        "row lines 50 tuned 1 1",
        "row line 50 tuned 1 -1",
        "row line fifty tuned 1 1",
        "nonsense",
        "row line 0x1p9999 tuned 1 1",
        "end 7",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        spoil("row line", lines[i]);
        assert_described("cannot be");
    }
    spoil("row copy_1M", "row copy_1M by-hand tuned 1 1");
    assert_described("cannot be");
    spoil("end ", "end 3");
    assert_described("cannot be");
}

static void files_that_others_can_write(void **state)
{
    (void)state;
    unlink(path);
    saved();
    assert_int_equal(chmod(path, 0666), 0);
    assert_described("can be written by others");
    assert_int_equal(chmod(path, 0620), 0);
    assert_described("can be written by others");
    assert_int_equal(chmod(path, 0644), 0);
    cohi_host_profile_read(path, &host);
    assert_true(host.found);
    snprintf(host.path, sizeof host.path, "%s", folder);
    cohi_host_profile_read(folder, &host);
    assert_non_null(strstr(host.warning, "no plain file"));
}

/* ---- what is no file, or no end of one ---- */

struct search {
    const char *words;
    int found;
};

static void look_for(void *arg, coh_log_level level, const char *message)
{
    struct search *search = arg;
    if (level == COH_LOG_WARN && strstr(message, path) && strstr(message, search->words))
        search->found++;
}

/* Worlds that only read the profile start all the same, and say what they did not take. */
static void assert_starts(const char *words)
{
    coh_world *worlds[2];
    coh_options options = COH_OPTIONS_INIT;
    struct search search = {words, 0};
    options.engine = "threads";
    assert_int_equal(setenv("COHORT_PROFILE", path, 1), 0);
    coh_log_to(look_for, &search, COH_LOG_WARN);
    for (int ranks = 1; ranks <= 2; ranks++) {
        options.driven = ranks == 2;
        assert_int_equal(coh_init_threads(ranks, &options, worlds), COH_OK);
        for (int rank = 0; rank < ranks; rank++)
            assert_int_equal(coh_finalize(worlds[rank]), COH_OK);
        assert_int_equal(search.found, ranks);
    }
    coh_log_to(NULL, NULL, COH_LOG_OFF);
    unsetenv("COHORT_PROFILE");
    assert_described(words);
}

static void what_is_no_plain_file(void **state)
{
    char plain[sizeof path];
    (void)state;
    snprintf(plain, sizeof plain, "%s", path);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_starts("no plain file");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_starts("no plain file");
    rmdir(path);
    snprintf(path, sizeof path, "/dev/zero");
    assert_starts("no plain file");
    snprintf(path, sizeof path, "%s", plain);
}

static void files_that_are_too_long(void **state)
{
    enum { BYTES = 100000 };
    static char lines[BYTES + 1];
    (void)state;
    memset(lines, '\n', BYTES);
    write_text(lines);
    assert_starts("more than 65536 bytes");
}

/* Seen at one start only: told, but not gone by. */
static void rows_seen_once_are_not_in_force(void **state)
{
    double described = cohi_profile_describe(cohi_host()).value[COHI_ROW_line];
    (void)state;
    spoil("row line", "row line 33 seen-once 1 1");
    cohi_host_profile_read(path, &host);
    assert_true(host.found && host.profile.value[COHI_ROW_line] == described);
    assert_true(host.findings[COHI_ROW_line].value == 33);
    spoil("row line", "row line 33 measured 1 2");
    cohi_host_profile_read(path, &host);
    assert_true(host.profile.value[COHI_ROW_line] == 33);
}

/* A busy neighbour is not remembered for ever: an old row is measured again. */
static void old_rows_are_looked_at_again(void **state)
{
    enum { LOOKS = 50, WRONG = 900 }; /* some looks are interrupted */
    const cohi_row row = COHI_ROW_copy;
    cohi_finding *finding = &host.findings[row];
    (void)state;
    if (cohi_calibrate_cost_ns(row) == 0)
        skip();
    cohi_host_profile_read("described", &host);
    for (cohi_row other = 0; other < COHI_ROWS; other++)
        host.findings[other].origin = COHI_ORIGIN_TUNED; /* for good */
    *finding = (cohi_finding){COHI_ORIGIN_MEASURED, WRONG, (int64_t)time(NULL), 2};
    host.profile.value[row] = WRONG;
    assert_false(cohi_host_profile_calibrate(&host, UINT64_MAX)); /* too new */
    assert_true(host.profile.value[row] == WRONG);
    for (int i = 0; i < LOOKS && finding->origin == COHI_ORIGIN_MEASURED; i++) {
        finding->when = 1;
        assert_true(cohi_host_profile_calibrate(&host, UINT64_MAX));
    }
    assert_int_equal(finding->origin, COHI_ORIGIN_SEEN);
    assert_int_equal(finding->tries, 1);
    assert_true(host.profile.value[row] == host.profile.described[row]);
    finding->origin = COHI_ORIGIN_UNSTEADY;
    finding->when = 1;
    host.findings[COHI_ROW_line].when = (int64_t)time(NULL);
    assert_false(cohi_host_profile_calibrate(&host, UINT64_MAX)); /* one a minute */
}

static void folders_that_cannot_be_written(void **state)
{
    (void)state;
    cohi_host_profile_read("/proc/nowhere/profile", &host);
    assert_string_equal(host.warning, "");
    assert_int_equal(cohi_host_profile_save(&host), -1);
    cohi_host_profile_obtain("/proc/nowhere/profile", &host);
    assert_int_equal(host.findings[COHI_ROW_copy_256K].tries, 0);
}

/* What is measured is one of the candidates, and could be. */
static void rows_that_are_measured_could_be(void **state)
{
    cohi_calibration calibration = cohi_calibration_open(1, false, UINT64_MAX);
    (void)state;
    for (cohi_row row = 0; row < COHI_ROWS; row++) {
        cohi_sample sample;
        if (row == COHI_ROW_copy_64M || !cohi_calibrate(&calibration, row, &sample))
            continue;
        assert_true(cohi_calibrate_cost_ns(row) > 0);
        for (int i = 0; i < sample.count; i++)
            assert_true(cohi_row_could_be(row, sample.value[i]) && sample.cost[i] >= 1);
    }
    cohi_calibration_close(&calibration);
    calibration = cohi_calibration_open(1, false, 0); /* no time at all */
    cohi_sample sample;
    assert_false(cohi_calibrate(&calibration, COHI_ROW_copy_256K, &sample));
    assert_false(cohi_calibrate(&calibration, COHI_ROW_reduce_stream_from, &sample));
    cohi_calibration_close(&calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_host_has_every_row),
        cmocka_unit_test(what_is_described_follows_the_caches),
        cmocka_unit_test(texts_of_rows),
        cmocka_unit_test(values_that_cannot_be_are_mended),
        cmocka_unit_test(a_second_start_confirms),
        cmocka_unit_test(a_described_threshold_is_a_choice_too),
        cmocka_unit_test(what_is_saved_is_read),
        cmocka_unit_test(files_that_are_cut_short),
        cmocka_unit_test(files_of_other_hosts),
        cmocka_unit_test(values_that_cannot_be),
        cmocka_unit_test(files_that_others_can_write),
        cmocka_unit_test(what_is_no_plain_file),
        cmocka_unit_test(files_that_are_too_long),
        cmocka_unit_test(rows_seen_once_are_not_in_force),
        cmocka_unit_test(old_rows_are_looked_at_again),
        cmocka_unit_test(folders_that_cannot_be_written),
        cmocka_unit_test(rows_that_are_measured_could_be),
    };
    return cmocka_run_group_tests_name("profile", tests, make_folder, remove_folder);
}
