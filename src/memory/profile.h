/*
 * profile.h - the profile of a host: every number that was tuned by measuring, as rows of one
 * table.
 *
 * A number that belongs to a CPU is not a constant of the program. A row is *described*, from what
 * the kernel and CPUID tell (base/host.h), or *measured*: by the calibration that a job's start has
 * time for (calibrate.h), or at length by `cohort tune`. host_profile.h says which values a process
 * uses and where they are kept between starts.
 *
 * Rows change how fast something is done, never what comes out.
 */
#ifndef COHI_MEMORY_PROFILE_H
#define COHI_MEMORY_PROFILE_H

#include "base/host.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a row can be found. */
typedef enum cohi_row_way {
    COHI_ROW_DESCRIBED,  /* from the facts of the host alone */
    COHI_ROW_CALIBRATED, /* by the calibration at a start, too */
    COHI_ROW_TUNED       /* by `cohort tune`, too: it takes longer than a start has */
} cohi_row_way;

/*
 * X(row, unit, least, most, way, value described from `host`, what it is)
 *
 * The unit "form" is a row of COHI_COPY_FORM_TABLE. A described value without a fact in it is the
 * middle of the CPUs seen so far: Ice Lake, Sapphire Rapids, Zen 3 and Zen 4 (docs/performance.md).
 */
#define COHI_PROFILE_TABLE(X)                                                                      \
    X(copy_256K, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 18),              \
      "the loop that copies 256 KiB, give or take a third")                                        \
    X(copy_512K, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 19),              \
      "the loop that copies 512 KiB")                                                              \
    X(copy_1M, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 20),                \
      "the loop that copies 1 MiB")                                                                \
    X(copy_2M, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 21),                \
      "the loop that copies 2 MiB")                                                                \
    X(copy_4M, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 22),                \
      "the loop that copies 4 MiB")                                                                \
    X(copy_8M, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 23),                \
      "the loop that copies 8 MiB")                                                                \
    X(copy_16M, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 24),               \
      "the loop that copies 16 MiB")                                                               \
    X(copy_64M, "form", 0, FORM_MOST, COHI_ROW_TUNED, described_copy(host, 26),                    \
      "the loop that copies 32 MiB and more, or what all ranks together copy past copy_shared")    \
    X(copy_far, "form", 0, FORM_MOST, COHI_ROW_CALIBRATED, described_copy(host, 63),               \
      "the loop that copies from memory that is in no cache")                                      \
    X(copy_shared, "bytes", 65536, 1e12, COHI_ROW_DESCRIBED, (double)host->level3 * 5 / 8,         \
      "bytes copied by the ranks of a last-level cache together from which on it is too small")    \
    X(copy_sharers, "ranks", 1, 1e6, COHI_ROW_DESCRIBED, host->level3_cores,                       \
      "cores that share a last-level cache")                                                       \
    X(far_ns, "ns", 10, 1e5, COHI_ROW_CALIBRATED, 180,                                             \
      "time of 16 lines of two pages from which on they are taken to come from memory")            \
    X(far_from, "bytes", 16384, 1e12, COHI_ROW_DESCRIBED, 256 << 10,                               \
      "bytes from which on it is worth a look whether a source is in a cache")                     \
    X(reduce_stream_from, "bytes", 65536, 1e12, COHI_ROW_CALIBRATED,                               \
      described_limit(host) * (host->slow_level3 ? 0.8 : 0.5),                                     \
      "bytes from each rank from which on results for all are stored past the caches")             \
    X(reduce_one_stream_from, "bytes", 65536, 1e12, COHI_ROW_CALIBRATED,                           \
      described_limit(host) * (host->slow_level3 ? 1.6 : 0.5),                                     \
      "bytes from each rank from which on results for one are stored past the caches")             \
    X(convert_stream_from, "bytes", 65536, 1e12, COHI_ROW_CALIBRATED,                              \
      described_limit(host) * (host->slow_level3 ? 1.6 : 0.8),                                     \
      "bytes of f32 from which on a conversion stores past the caches")                            \
    X(convert_pages, "pages", 1, 4, COHI_ROW_CALIBRATED, host->slow_level3 ? 4 : 1,                \
      "pages that a conversion past the caches has side by side: 1 or 4")                          \
    X(gather_pull_from, "bytes", 1024, 1e12, COHI_ROW_DESCRIBED,                                   \
      host->slow_level3 ? (double)host->level2 : 1e12,                                             \
      "bytes from each rank from which on all_gather reads instead of writing")                    \
    X(broadcast_share_from, "bytes", 1024, 1e12, COHI_ROW_DESCRIBED, 64 << 10,                     \
      "bytes from which on more than two ranks share the work of a broadcast")                     \
    X(broadcast_chunk, "bytes", 4096, 1e9, COHI_ROW_DESCRIBED, (double)host->level2 / 8,           \
      "bytes of a broadcast that a rank hands to all before the next")                             \
    X(private_stream_from, "bytes", 65536, 1e12, COHI_ROW_DESCRIBED, (double)host->level2 * 2,     \
      "bytes from which on an all_reduce of private memory stores past the caches")                \
    X(private_fetch_from, "bytes", 1024, 1e12, COHI_ROW_DESCRIBED, 32 << 10,                       \
      "bytes from which on an all_reduce of private memory is read through the kernel")            \
    X(private_stage_from, "bytes", 65536, 1e12, COHI_ROW_DESCRIBED,                                \
      (double)host->level2 *(host->slow_level3 ? 6 : 0.25),                                        \
      "bytes from which on it goes by parts through the staging areas again")                      \
    X(fetch_chunk, "bytes", 4096, 262144, COHI_ROW_DESCRIBED,                                      \
      described_most((double)host->level2 / 8, 262144),                                            \
      "bytes that are read through the kernel at a time")                                          \
    X(stage_part, "bytes", 16384, 524288, COHI_ROW_DESCRIBED,                                      \
      described_most((double)host->level2 / 2, 524288),                                            \
      "bytes of private memory that a collective brings to its staging area at a time")            \
    X(message_stream_from, "bytes", 65536, 1e12, COHI_ROW_DESCRIBED, (double)host->level2 * 4,     \
      "bytes of a message from which on its chunks are long and copied as a whole would be")       \
    X(message_chunk, "bytes", 8192, 1 << 30, COHI_ROW_DESCRIBED, 128 << 10,                        \
      "most bytes of a chunk of a shorter one")                                                    \
    X(wait_spins, "looks", 0, 1e9, COHI_ROW_DESCRIBED, 2000,                                       \
      "how often a rank with a core of its own looks before it asks whom it shares it with")       \
    X(wait_look, "ns", 1000, 1e9, COHI_ROW_DESCRIBED, 500000,                                      \
      "how long such a rank looks before it sleeps: longer than a wake takes, short beside a "     \
      "slice")                                                                                     \
    X(wait_yields, "yields", 0, 1e9, COHI_ROW_DESCRIBED, 200,                                      \
      "how often a rank that shares its core yields before it sleeps")                             \
    X(line, "ns", 1, 1e6, COHI_ROW_CALIBRATED, 100,                                                \
      "a cache line from one mapped rank to another")                                              \
    X(call, "ns", 1, 1e6, COHI_ROW_TUNED, 60, "what each collective call costs by itself")         \
    X(take, "ns/byte", 1e-6, 1e3, COHI_ROW_TUNED, 0.2,                                             \
      "reading what another rank has written since it was last read")                              \
    X(copy, "ns/byte", 1e-6, 1e3, COHI_ROW_CALIBRATED, 0.035,                                      \
      "copying between mapped memory, cached")                                                     \
    X(stream, "ns/byte", 1e-6, 1e3, COHI_ROW_CALIBRATED, 0.12,                                     \
      "copying between mapped memory, in no cache")                                                \
    X(reduce, "ns/byte", 1e-6, 1e3, COHI_ROW_CALIBRATED, 0.045,                                    \
      "reducing one source in mapped memory, cached")                                              \
    X(reduce_stream, "ns/byte", 1e-6, 1e3, COHI_ROW_CALIBRATED, 0.15,                              \
      "reducing one source in mapped memory, in no cache")                                         \
    X(cache, "bytes", 4096, 1e12, COHI_ROW_DESCRIBED, described_limit(host), "how much is cached") \
    X(message, "ns", 1, 1e9, COHI_ROW_TUNED, 12000, "a short message between hosts, one way")      \
    X(message_further, "ns", 1, 1e9, COHI_ROW_TUNED, 1000,                                         \
      "each further message between hosts while others are under way")                             \
    X(message_byte, "ns/byte", 1e-6, 1e3, COHI_ROW_TUNED, 0.25,                                    \
      "each further byte of a long message between hosts")                                         \
    X(card_packets_to, "bytes", 0, 1 << 30, COHI_ROW_TUNED, 1 << 20,                               \
      "bytes times ranks up to which a collective on a card goes by packets")                      \
    X(card_direct_from, "bytes", 0, 1 << 30, COHI_ROW_TUNED, 4 << 20,                              \
      "bytes of a member from which on a longer one reads the members' buffers in place")

typedef enum cohi_row {
#define COHI_ROW_ENUM(row, unit, least, most, way, described, what) COHI_ROW_##row,
    COHI_PROFILE_TABLE(COHI_ROW_ENUM)
#undef COHI_ROW_ENUM
        COHI_ROWS
} cohi_row;

/* The rows of copies by size: sizes from 2^COHI_COPY_LEAST_LOG on, one for each power of two. */
enum { COHI_COPY_LEAST_LOG = 18, COHI_COPY_MOST_LOG = 24 };

/* The values that a rank uses, and next to them those described, so that ranks need not read the
 * facts of the host again. Copied to ranks as bytes: it holds no pointers. */
typedef struct cohi_profile {
    double value[COHI_ROWS];
    double described[COHI_ROWS];
} cohi_profile;

static inline size_t cohi_profile_bytes(const cohi_profile *profile, cohi_row row)
{
    return (size_t)profile->value[row];
}

/* What stands in the table. */
typedef struct cohi_row_info {
    const char *name;
    const char *unit;
    double least, most;
    cohi_row_way way;
    const char *what;
} cohi_row_info;

/* NULL past the last. */
const cohi_row_info *cohi_row_at(unsigned row);

/* Whether a row is a form of copying. */
bool cohi_row_is_form(unsigned row);

/* Whether the row could have this value here: in bounds, and a form that this CPU has. */
bool cohi_row_could_be(unsigned row, double value);

/* "stream-256", "1048576", "0.035". */
void cohi_row_text(unsigned row, double value, char *text, size_t room);

/* Reads such a text; false: it is no value of the row. */
bool cohi_row_parse(unsigned row, const char *text, double *value);

/* All rows as the facts of the host describe them. */
cohi_profile cohi_profile_describe(const cohi_host_facts *host);

/* ---- the values that this process uses ---- */

/*
 * The values in force for what one rank does by itself, whichever world it is for: those described,
 * until a world that is joined brings its host's. What several ranks must decide alike is read from
 * the profile of their world instead.
 */
double cohi_profile_now(cohi_row row);

void cohi_profile_use(const cohi_profile *profile);

/* Replaces values that could not be by those described, and those by what could be. Whether there
 * were any. */
bool cohi_profile_mend(cohi_profile *profile);

#endif
