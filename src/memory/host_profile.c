#include "memory/host_profile.h"

#include "base/log.h"
#include "base/whole_file.h"
#include "memory/calibrate.h"
#include "memory/copy_forms.h"

#include <cohort.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Starts after which a row on which they do not agree is left alone. */
enum { MOST_TRIES = 12, LINE_ROOM = 512 };

/* Seconds: how long a measured row is taken for granted, and how often a start pays for looking at
 * an old one. */
enum { OLD_S = 600, CHECK_EACH_S = 60 };

/* Bytes of a file that are read; a profile has some 3,000. */
enum { MOST_BYTES = 65536 };

static const char *const origin_words[] = {
#define WORD(origin, word) word,
    COHI_ORIGIN_TABLE(WORD)
#undef WORD
};

const char *cohi_origin_word(cohi_origin origin)
{
    return origin_words[origin];
}

static bool find_origin(const char *word, cohi_origin *origin)
{
    for (int i = 0; i < COHI_ORIGINS; i++)
        if (strcmp(origin_words[i], word) == 0) {
            *origin = (cohi_origin)i;
            return true;
        }
    return false;
}

static bool in_force(cohi_origin origin)
{
    return origin == COHI_ORIGIN_MEASURED || origin == COHI_ORIGIN_TUNED;
}

/* Measured no further, but for a look now and then whether it still holds. */
static bool is_settled(cohi_origin origin)
{
    return origin == COHI_ORIGIN_MEASURED || origin == COHI_ORIGIN_UNSTEADY;
}

__attribute__((format(printf, 2, 3))) static void warn(cohi_host_profile *host, const char *format,
                                                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(host->warning, sizeof host->warning, format, arguments);
    va_end(arguments);
}

static void describe(cohi_host_profile *host)
{
    host->profile = cohi_profile_describe(cohi_host());
    for (unsigned row = 0; row < COHI_ROWS; row++)
        host->findings[row] = (cohi_finding){COHI_ORIGIN_DESCRIBED, host->profile.value[row], 0, 0};
    host->found = false;
}

/* ---- whose it is ---- */

/* X(word, format, value): the lines that say for which host a file is. */
#define KEY_TABLE(X)                        \
    X("cohort", "%s", coh_version_string()) \
    X("cpu", "%s", cohi_host()->cpu)        \
    X("cores", "%d", cohi_host()->cores)    \
    X("kernel", "%s", cohi_host()->kernel)

struct key {
    const char *word;
    char value[COHI_HOST_TEXT_BYTES];
};

enum { KEYS = 4 };

static void make_keys(struct key keys[KEYS])
{
    int count = 0;
#define KEY(name, format, text) \
    keys[count].word = name;    \
    snprintf(keys[count].value, sizeof keys[count].value, format, text), count++;
    KEY_TABLE(KEY)
#undef KEY
}

/* Tells hosts apart that share a home folder. */
static uint64_t hash_keys(const struct key keys[KEYS])
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < KEYS; i++)
        for (const char *at = keys[i].value; *at || (hash ^= 0xff, 0); at++)
            hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return hash;
}

static void find_path(cohi_host_profile *host)
{
    const char *folder = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    struct key keys[KEYS];
    make_keys(keys);
    unsigned long long hash = hash_keys(keys);
    if (folder && *folder == '/')
        snprintf(host->path, sizeof host->path, "%s/cohort/profile-%016llx", folder, hash);
    else if (home && *home == '/')
        snprintf(host->path, sizeof host->path, "%s/.cache/cohort/profile-%016llx", home, hash);
}

/* ---- reading ---- */

/* "cpu any" is for files made by hand on purpose: they are taken on every host. */
static bool check_key(cohi_host_profile *host, const struct key *key, const char *value)
{
    if (strcmp(value, key->value) == 0 || strcmp(value, "any") == 0)
        return true;
    warn(host,
         "the profile %s is of another host (%s %s; here it is %s) and is not used: the "
         "descriptions are; delete it, or run cohort tune",
         host->path, key->word, value, key->value);
    return false;
}

/* A loop that another build of this version has, and this one has not: the row is as described. */
static bool is_elsewhere(unsigned row, const char *text)
{
    for (unsigned form = 0; cohi_row_is_form(row) && cohi_copy_form_name(form); form++)
        if (strcmp(cohi_copy_form_name(form), text) == 0)
            return !cohi_copy_form_available(form);
    return false;
}

static bool read_row(cohi_host_profile *host, const char *line)
{
    char name[32], text[32], word[16];
    long long when;
    int tries;
    double value;
    cohi_origin origin;
    if (sscanf(line, "row %31s %31s %15s %lld %d", name, text, word, &when, &tries) != 5)
        return false;
    for (unsigned row = 0; row < COHI_ROWS; row++) {
        if (strcmp(cohi_row_at(row)->name, name) != 0)
            continue;
        if (is_elsewhere(row, text))
            return true;
        if (!cohi_row_parse(row, text, &value) || !find_origin(word, &origin) || tries < 0)
            return false;
        host->findings[row] = (cohi_finding){origin, value, when, tries};
        if (in_force(origin))
            host->profile.value[row] = value;
        return true;
    }
    return false;
}

struct reader {
    struct key keys[KEYS];
    int keys_seen, rows, number;
    size_t bytes;
    bool ended;
};

/* Whether the file may be read on; a line that cannot be is warned of. */
static bool read_line(cohi_host_profile *host, struct reader *reader, char *line)
{
    const struct key *key = reader->keys_seen < KEYS ? &reader->keys[reader->keys_seen] : NULL;
    size_t length = strcspn(line, "\n"), word = key ? strlen(key->word) : 0;
    bool whole = line[length] == '\n';
    int count;
    line[length] = '\0';
    reader->number++;
    if (whole && !reader->ended && (line[0] == '#' || line[0] == '\0'))
        return true;
    if (whole && key && strncmp(line, key->word, word) == 0 && line[word] == ' ') {
        reader->keys_seen++;
        return check_key(host, key, line + word + 1);
    }
    if (whole && !key && !reader->ended && read_row(host, line)) {
        reader->rows++;
        return true;
    }
    if (whole && !key && sscanf(line, "end %d", &count) == 1 && count == reader->rows) {
        reader->ended = true;
        return true;
    }
    warn(host,
         "line %d of the profile %s is not one of a profile, or has a value that cannot be: the "
         "descriptions are used; delete it, or run cohort tune",
         reader->number, host->path);
    return false;
}

static bool is_ours(cohi_host_profile *host, FILE *file)
{
    struct stat about;
    if (fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode)) {
        warn(host, "the profile %s is no plain file: the descriptions are used", host->path);
        return false;
    }
    bool owned = about.st_uid == geteuid() || about.st_uid == 0;
    if (owned && !(about.st_mode & (S_IWGRP | S_IWOTH)))
        return true;
    warn(host,
         "the profile %s can be written by others and is not used: the descriptions are; take "
         "their permission away (chmod go-w), or delete it",
         host->path);
    return false;
}

/* A file may grow as fast as it is read. */
static bool is_short(cohi_host_profile *host, struct reader *reader, const char *line)
{
    reader->bytes += strlen(line);
    if (reader->bytes <= MOST_BYTES)
        return true;
    warn(host,
         "the profile %s has more than %d bytes, which no profile has: the descriptions are used; "
         "delete it, or run cohort tune",
         host->path, MOST_BYTES);
    return false;
}

static bool read_lines(cohi_host_profile *host, FILE *file)
{
    struct reader reader = {.number = 0};
    char line[LINE_ROOM];
    make_keys(reader.keys);
    while (fgets(line, sizeof line, file))
        if (!is_short(host, &reader, line) || !read_line(host, &reader, line))
            return false;
    if (!reader.ended)
        warn(
            host,
            "the profile %s is cut short: the descriptions are used; delete it, or run cohort tune",
            host->path);
    return reader.ended;
}

static void read_file(cohi_host_profile *host)
{
    /* Opening a FIFO would wait for its writer. */
    int fd = *host->path ? open(host->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!file && fd >= 0)
        close(fd);
    if (!file) {
        if (*host->path && errno != ENOENT && errno != ENOTDIR)
            warn(host, "the profile %s cannot be read: %s: the descriptions are used", host->path,
                 strerror(errno));
        return;
    }
    host->found = is_ours(host, file) && read_lines(host, file);
    fclose(file);
    if (!host->found)
        describe(host);
}

void cohi_host_profile_read(const char *knob, cohi_host_profile *host)
{
    *host = (cohi_host_profile){.path = ""};
    describe(host);
    if (strcmp(knob, "described") == 0)
        return;
    if (*knob && strcmp(knob, "fresh") != 0)
        snprintf(host->path, sizeof host->path, "%s", knob);
    else
        find_path(host);
    if (strcmp(knob, "fresh") != 0)
        read_file(host);
}

/* ---- writing ---- */

static int write_file(FILE *stream, const void *argument)
{
    const cohi_host_profile *host = argument;
    struct key keys[KEYS];
    make_keys(keys);
    fprintf(stream, "# Cohort's profile of this host: see cohort-tune(1). May be deleted.\n");
    for (int i = 0; i < KEYS; i++)
        fprintf(stream, "%s %s\n", keys[i].word, keys[i].value);
    int rows = 0;
    for (unsigned row = 0; row < COHI_ROWS; row++) {
        const cohi_finding *finding = &host->findings[row];
        char text[32];
        if (finding->tries == 0)
            continue;
        cohi_row_text(row, finding->value, text, sizeof text);
        fprintf(stream, "row %s %s %s %lld %d\n", cohi_row_at(row)->name, text,
                cohi_origin_word(finding->origin), (long long)finding->when, finding->tries);
        rows++;
    }
    fprintf(stream, "end %d\n", rows);
    return ferror(stream) ? -1 : 0;
}

int cohi_host_profile_save(const cohi_host_profile *host)
{
    if (!*host->path) {
        errno = ENOENT;
        return -1;
    }
    if (cohi_whole_file_folders(host->path) != 0)
        return -1;
    return cohi_whole_file_write(host->path, write_file, host);
}

/* ---- measuring ---- */

static void take_sample(cohi_host_profile *host, cohi_row row, const cohi_sample *sample)
{
    cohi_finding *finding = &host->findings[row];
    bool again = finding->origin == COHI_ORIGIN_MEASURED || finding->origin == COHI_ORIGIN_SEEN;
    bool confirmed = again && cohi_sample_confirms(sample, finding->value);
    if (finding->origin == COHI_ORIGIN_MEASURED
        && cohi_sample_prefers(sample, host->profile.described[row], finding->value))
        confirmed = false;
    if (is_settled(finding->origin))
        finding->tries = 0; /* of this look at it */
    finding->tries++;
    finding->when = (int64_t)time(NULL);
    if (confirmed) {
        finding->origin = COHI_ORIGIN_MEASURED;
        host->profile.value[row] = finding->value;
    } else {
        finding->origin = finding->tries < MOST_TRIES ? COHI_ORIGIN_SEEN : COHI_ORIGIN_UNSTEADY;
        finding->value = cohi_sample_best(sample, host->profile.described[row]);
        host->profile.value[row] = host->profile.described[row];
    }
}

/* An interrupted sample, or one that this host has no time for, is not tried for ever. */
static void take_failure(cohi_finding *finding)
{
    finding->when = (int64_t)time(NULL);
    if (!is_settled(finding->origin) && ++finding->tries >= MOST_TRIES)
        finding->origin = COHI_ORIGIN_UNSTEADY;
}

static bool can_measure(cohi_row row)
{
    return cohi_row_at(row)->way == COHI_ROW_CALIBRATED && cohi_calibrate_cost_ns(row) > 0;
}

static bool is_wanted(const cohi_host_profile *host, cohi_row row)
{
    cohi_origin origin = host->findings[row].origin;
    return can_measure(row) && (origin == COHI_ORIGIN_DESCRIBED || origin == COHI_ORIGIN_SEEN);
}

/* A clock that was set back makes a row old, too. */
static bool is_older(const cohi_finding *finding, int64_t seconds)
{
    int64_t now = (int64_t)time(NULL);
    return finding->when > now || now - finding->when >= seconds;
}

/* One that was settled long ago. */
static bool is_old(const cohi_host_profile *host, cohi_row row)
{
    const cohi_finding *finding = &host->findings[row];
    return can_measure(row) && is_settled(finding->origin) && is_older(finding, OLD_S);
}

/* The row that was looked at the longest ago; COHI_ROWS: none is old, or one was looked at just
 * now. */
static cohi_row oldest(const cohi_host_profile *host)
{
    cohi_row found = COHI_ROWS;
    for (cohi_row row = 0; row < COHI_ROWS; row++) {
        const cohi_finding *finding = &host->findings[row];
        if (finding->when != 0 && !is_older(finding, CHECK_EACH_S))
            return COHI_ROWS;
        if (is_old(host, row) && (found == COHI_ROWS || finding->when < host->findings[found].when))
            found = row;
    }
    return found;
}

/* Whether there was time for it. */
static bool measure(cohi_host_profile *host, cohi_calibration *calibration, cohi_row row)
{
    cohi_sample sample;
    uint64_t now = cohi_now_ns();
    if (now >= calibration->deadline_ns
        || calibration->deadline_ns - now < cohi_calibrate_cost_ns(row))
        return false;
    if (cohi_calibrate(calibration, row, &sample))
        take_sample(host, row, &sample);
    else
        take_failure(&host->findings[row]);
    return true;
}

bool cohi_host_profile_calibrate(cohi_host_profile *host, uint64_t deadline_ns)
{
    cohi_calibration calibration = cohi_calibration_open(1, false, deadline_ns);
    bool found = false;
    for (cohi_row row = 0; row < COHI_ROWS; row++)
        if (is_wanted(host, row))
            found = measure(host, &calibration, row) || found;
    cohi_row old = oldest(host);
    if (old != COHI_ROWS)
        found = measure(host, &calibration, old) || found;
    cohi_calibration_close(&calibration);
    return found;
}

static bool measure_old(cohi_host_profile *host)
{
    cohi_calibration calibration = cohi_calibration_open(1, false, UINT64_MAX);
    bool found = false;
    for (cohi_row row = 0; row < COHI_ROWS; row++)
        if (is_old(host, row))
            found = measure(host, &calibration, row) || found;
    cohi_calibration_close(&calibration);
    return found;
}

bool cohi_host_profile_complete(cohi_host_profile *host)
{
    enum { PASSES = 4 };
    bool found = measure_old(host);
    for (int pass = 0; pass < PASSES; pass++)
        found = cohi_host_profile_calibrate(host, UINT64_MAX) || found;
    return found;
}

void cohi_host_profile_tune(cohi_host_profile *host, cohi_row row, double value)
{
    cohi_finding *finding = &host->findings[row];
    *finding = (cohi_finding){COHI_ORIGIN_TUNED, value, (int64_t)time(NULL), finding->tries + 1};
    host->profile.value[row] = value;
}

/* ---- a start ---- */

static bool can_write_next_to(const char *path)
{
    char *folder = strdup(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (slash)
        *slash = '\0';
    bool can = folder && access(slash ? folder : ".", W_OK) == 0;
    free(folder);
    return can;
}

/* What cannot be kept would be measured at every start, and never be confirmed. A file that its
 * owner may not write is meant to stay as it is. */
static bool can_keep(const cohi_host_profile *host)
{
    struct stat about;
    if (!*host->path || cohi_whole_file_folders(host->path) != 0)
        return false;
    if (stat(host->path, &about) == 0)
        return (about.st_mode & S_IWUSR) != 0;
    return can_write_next_to(host->path);
}

/* A file that was named and is not good is somebody's to look at; one in the cache folder is made
 * anew. */
static bool may_measure(const char *knob, const cohi_host_profile *host)
{
    bool named = *knob && strcmp(knob, "fresh") != 0;
    return strcmp(knob, "described") != 0 && !(named && *host->warning) && can_keep(host);
}

static void obtain(const char *knob, bool complete, cohi_host_profile *host)
{
    cohi_host_profile_read(knob, host);
    static atomic_bool spent; /* once a process, however many worlds it makes */
    bool fresh = strcmp(knob, "fresh") == 0, found = false;
    if (atomic_exchange(&spent, true))
        return;
    if (fresh || (complete && may_measure(knob, host)))
        found = cohi_host_profile_complete(host);
    else if (may_measure(knob, host))
        found = cohi_host_profile_calibrate(host, cohi_now_ns() + COHI_CALIBRATION_NS);
    if (found && cohi_host_profile_save(host) != 0)
        cohi_log(COH_LOG_DEBUG, "the profile %s cannot be saved: %s", host->path, strerror(errno));
}

void cohi_host_profile_obtain(const char *knob, cohi_host_profile *host)
{
    obtain(knob, false, host);
}

void cohi_host_profile_prepare(const char *knob, cohi_host_profile *host)
{
    obtain(knob, true, host);
}
