/* A rank of another host that is stopped, in each operation that needs it: docs/faults.md F5. */
#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, STOPPED = 3, TAG = 5, LARGE_BYTES = 8 << 20 };

struct scene {
    _Atomic uint64_t stopped; /* when */
};

/* What a call needs: a symmetric area, and one of the rank's own. */
struct area {
    coh_world *world;
    uint64_t *words;
    char *large;
    char *own;
};

static coh_status in_put(const struct area *area)
{
    coh_status status = coh_put(area->world, area->large, area->own, LARGE_BYTES, STOPPED);
    return status == COH_OK ? coh_quiet(area->world) : status;
}

static coh_status in_quiet(const struct area *area)
{
    uint64_t word = 1;
    coh_status status = coh_put_nbi(area->world, area->words, &word, sizeof word, STOPPED);
    return status == COH_OK ? coh_quiet(area->world) : status;
}

static coh_status in_get(const struct area *area)
{
    return coh_get(area->world, area->own, area->words, sizeof *area->words, STOPPED);
}

static coh_status in_atomic(const struct area *area)
{
    uint64_t one = 1;
    coh_status status =
        coh_atomic(area->world, COH_ATOMIC_ADD, COH_U64, area->words, &one, STOPPED);
    return status == COH_OK ? coh_quiet(area->world) : status;
}

static coh_status in_fetch(const struct area *area)
{
    uint64_t one = 1, before;
    return coh_atomic_fetch(area->world, COH_ATOMIC_ADD, COH_U64, area->words, &one, &before,
                            STOPPED);
}

static coh_status in_signal(const struct area *area)
{
    coh_status status = coh_signal(area->world, area->words, 1, COH_SIGNAL_ADD, STOPPED);
    return status == COH_OK ? coh_quiet(area->world) : status;
}

static coh_status in_barrier(const struct area *area)
{
    return coh_barrier(area->world);
}

static coh_status in_sync(const struct area *area)
{
    return coh_sync(area->world);
}

static coh_status in_malloc(const struct area *area)
{
    void *memory;
    return coh_malloc(area->world, 1000, &memory);
}

static coh_status in_send(const struct area *area)
{
    return coh_send(coh_team_world(area->world), STOPPED, TAG, area->own, LARGE_BYTES);
}

static coh_status in_receive(const struct area *area)
{
    return coh_receive(coh_team_world(area->world), STOPPED, TAG, area->own, LARGE_BYTES, NULL);
}

static coh_status in_all_reduce(const struct area *area)
{
    int64_t word = 1;
    return coh_all_reduce(coh_team_world(area->world), COH_I64, COH_SUM, &word, &word, 1);
}

static coh_status in_broadcast(const struct area *area)
{
    return coh_broadcast(coh_team_world(area->world), COH_U8, area->own, area->own, 1000, STOPPED);
}

static coh_status in_finalize(const struct area *area)
{
    return coh_finalize(area->world);
}

static const struct {
    const char *name;
    coh_status (*call)(const struct area *area);
    bool together; /* all ranks make it */
} calls[] = {
    {"put", in_put, false},
    {"quiet", in_quiet, false},
    {"get", in_get, false},
    {"atomic", in_atomic, false},
    {"fetch", in_fetch, false},
    {"signal", in_signal, false},
    {"send", in_send, false},
    {"receive", in_receive, false},
    {"barrier", in_barrier, true},
    {"sync", in_sync, true},
    {"malloc", in_malloc, true},
    {"all_reduce", in_all_reduce, true},
    {"broadcast", in_broadcast, true},
    {"finalize", in_finalize, true},
};

/* The one that the row is named after, behind the last "in_". */
static size_t call_of(const test_rank *self)
{
    const char *name = strstr(self->row->name, "_in_") + 4;
    size_t i = 0;
    while (strcmp(calls[i].name, name) != 0)
        i++;
    return i;
}

static bool open_area(test_rank *self, struct area *area)
{
    *area = (struct area){.world = self->world, .own = calloc(1, LARGE_BYTES)};
    return CHECK_OK(coh_calloc(self->world, 1, sizeof *area->words, (void **)&area->words))
           && CHECK_OK(coh_malloc(self->world, LARGE_BYTES, (void **)&area->large))
           && CHECK_OK(coh_barrier(self->world));
}

/* Rank 0 needs the one that is stopped. The others make the same call, or meet: who is on the host of a
 * stopped rank, and waits, finds it. */
static void stopped_apart(test_rank *self)
{
    struct scene *scene = self->shared;
    struct area area;
    size_t call = call_of(self);
    if (!fault_is_told(self, STOPPED) || !CHECK_OK(test_join(self)) || !open_area(self, &area))
        return;
    if (self->rank == STOPPED) {
        fault_let_others_out();
        fault_stamp(&scene->stopped);
        raise(SIGSTOP);
    }
    while (!atomic_load(&scene->stopped))
        test_sleep(0.01);
    test_sleep(0.1);
    bool makes_it = self->rank == 0 || calls[call].together;
    CHECK_REFUSED(makes_it ? calls[call].call(&area) : coh_barrier(self->world), COH_STALLED,
                  "rank 3");
    double took = fault_since(&scene->stopped);
    if (took < 0.5 || took > 6)
        test_fail("STALLED came after %.2f s; the deadline is 1 s", took);
    free(area.own);
    if (calls[call].call != in_finalize)
        (void)coh_finalize(self->world);
}

#define STOPPED_IN(operation)                                                              \
    {                                                                                      \
        .name = "stopped_apart_in_" operation, .rows = "F5", .body = stopped_apart,        \
        .engines = ON_TCP, .sizes = SIZE(RANKS), .mode = TEST_UNJOINED,                    \
        .victims = VICTIM(STOPPED), .environment = "COHORT_STALL=1 COHORT_LINK_TIMEOUT=30" \
    }

const test_case fault_apart[] = {
    STOPPED_IN("put"),       STOPPED_IN("quiet"),    STOPPED_IN("get"),    STOPPED_IN("atomic"),
    STOPPED_IN("fetch"),     STOPPED_IN("signal"),   STOPPED_IN("send"),   STOPPED_IN("receive"),
    STOPPED_IN("barrier"),   STOPPED_IN("sync"),     STOPPED_IN("malloc"), STOPPED_IN("all_reduce"),
    STOPPED_IN("broadcast"), STOPPED_IN("finalize"),
};
FAULT_COUNT(apart);
