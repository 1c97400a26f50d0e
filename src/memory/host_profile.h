/*
 * host_profile.h - which profile a job uses, and where it is kept between starts.
 *
 * Whoever makes a job's board on a host obtains the profile once: the launcher, else the first
 * rank. It reads the file of an earlier start, measures for at most COHI_CALIBRATION_NS what is not
 * known yet, saves what was found, and hands the values to all ranks on the board.
 *
 * The file lies in the user's cache folder, under a name made of CPU, cores, kernel and library
 * version, which are also written into it. Nothing about it can fail a start: a file that is not
 * there, cannot be written, is damaged, or belongs to another host means the descriptions, and a
 * warning where somebody should know.
 *
 * A row is in force once two starts have found the same, within 15 %. Rows on which the starts do
 * not agree are left as described. Two starts in the same minute may agree on what a busy neighbour
 * made of the caches; so rows are measured again when they are old, one a minute at most, and what
 * is not confirmed then is as described until two starts agree anew.
 */
#ifndef COHI_MEMORY_HOST_PROFILE_H
#define COHI_MEMORY_HOST_PROFILE_H

#include "base/clock.h"
#include "memory/profile.h"

/* What a start spends on measuring at most. */
#define COHI_CALIBRATION_NS (30 * COHI_NS_PER_MS)

/* X(origin, word): where a row's value in force comes from. */
#define COHI_ORIGIN_TABLE(X)  \
    X(DESCRIBED, "described") \
    X(SEEN, "seen-once")      \
    X(MEASURED, "measured")   \
    X(UNSTEADY, "unsteady")   \
    X(TUNED, "tuned")

typedef enum cohi_origin {
#define COHI_ORIGIN_ENUM(origin, word) COHI_ORIGIN_##origin,
    COHI_ORIGIN_TABLE(COHI_ORIGIN_ENUM)
#undef COHI_ORIGIN_ENUM
        COHI_ORIGINS
} cohi_origin;

/* "measured". */
const char *cohi_origin_word(cohi_origin origin);

/* What is known of one row. Of SEEN and UNSTEADY the described value is in force. */
typedef struct cohi_finding {
    cohi_origin origin;
    double value; /* as found last; not in force while SEEN or UNSTEADY */
    int64_t when; /* seconds since 1970; 0: never */
    int tries;    /* starts that measured it */
} cohi_finding;

typedef struct cohi_host_profile {
    cohi_profile profile; /* the values in force */
    cohi_finding findings[COHI_ROWS];
    char path[4096];   /* the file that it is kept in; "": none */
    bool found;        /* the file was there, and good */
    char warning[512]; /* a message, or "" */
} cohi_host_profile;

/*
 * `knob` is COHORT_PROFILE: "" for the file in the cache folder; a file; "described", for no file
 * and no measuring; "fresh", for everything measured again whatever the file says.
 */
void cohi_host_profile_read(const char *knob, cohi_host_profile *host);

/* Measures rows that are not known, each once, until `deadline_ns`, or when all are known an old
 * one; true: there is something to save. */
bool cohi_host_profile_calibrate(cohi_host_profile *host, uint64_t deadline_ns);

/* Measures as often as it takes for each of them to be confirmed, but for a few that are not, and
 * all old ones again. Some tenths of a second. */
bool cohi_host_profile_complete(cohi_host_profile *host);

/* Puts a value that was measured at length in force. */
void cohi_host_profile_tune(cohi_host_profile *host, cohi_row row, double value);

/* -1 with errno when the file cannot be written. */
int cohi_host_profile_save(const cohi_host_profile *host);

/* All of it, for a start: reads, measures, saves. The warning is the caller's to tell. */
void cohi_host_profile_obtain(const char *knob, cohi_host_profile *host);

/* cohi_host_profile_obtain without a limit of time, for a benchmark, whose figures should not depend on how many
 * starts there were before. */
void cohi_host_profile_prepare(const char *knob, cohi_host_profile *host);

#endif
