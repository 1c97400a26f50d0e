#include "sight.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"
#include "core/world/doing.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- one rank ---- */

static int is_one_of(const char *word, const char *one, const char *other)
{
    return strcmp(word, one) == 0 || strcmp(word, other) == 0;
}

void cohi_sight_look(const cohi_board *board, int rank, uint64_t now, cohi_sight *sight)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    memset(sight, 0, sizeof *sight);
    sight->waits_for = -1;
    if (!slot)
        return;
    sight->pid = atomic_load(&slot->pid);
    sight->network = atomic_load(&board->head->network);
    snprintf(sight->state, sizeof sight->state, "%s",
             cohi_slot_describe(slot, sight->doing, sizeof sight->doing));
    if (!is_one_of(sight->state, "waiting", "stopped"))
        return;
    uint64_t since = atomic_load(&slot->since_ns);
    sight->waiting_ns = since && now > since ? now - since : 0;
    sight->waits_for = atomic_load(&slot->waits_for);
    cohi_doing_list(slot, sight->awaits, sizeof sight->awaits);
}

void cohi_sight_check(cohi_sight *sight)
{
    sight->state[sizeof sight->state - 1] = '\0';
    sight->doing[sizeof sight->doing - 1] = '\0';
    sight->awaits[sizeof sight->awaits - 1] = '\0';
    if (sight->waits_for >= COHI_RANKS_MAX)
        sight->waits_for = -1;
}

/* ---- the summary ---- */

static size_t summary_bytes(size_t size)
{
    return sizeof(cohi_summary) + size * sizeof(cohi_summary_row);
}

cohi_summary *cohi_summary_create(int size, const char *program, uint64_t job, int *fd)
{
    void *base;
    size_t bytes = summary_bytes((size_t)size);
    int error = cohi_os_shared_create(COHI_SUMMARY_NAME, bytes, fd);
    if (!error)
        error = cohi_os_map_shared(*fd, bytes, 1, &base);
    if (error) {
        cohi_fail_os(error, "cannot make the summary of %d ranks", size);
        return NULL;
    }
    cohi_summary *summary = base;
    summary->job = job;
    summary->created_ns = cohi_now_ns();
    summary->size = (uint32_t)size;
    summary->launcher = (int32_t)getpid();
    snprintf(summary->version, sizeof summary->version, "%s", coh_version_string());
    snprintf(summary->program, sizeof summary->program, "%s", program);
    summary->magic = COHI_SUMMARY_MAGIC;
    return summary;
}

static int is_summary(const cohi_summary *summary, size_t bytes)
{
    return summary->magic == COHI_SUMMARY_MAGIC && summary->size <= COHI_RANKS_MAX
           && strncmp(summary->version, coh_version_string(), sizeof summary->version) == 0
           && bytes >= summary_bytes(summary->size);
}

cohi_summary *cohi_summary_view(int fd)
{
    size_t bytes;
    void *base = MAP_FAILED;
    if (cohi_os_file_bytes(fd, &bytes) == 0 && bytes >= sizeof(cohi_summary))
        base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    cohi_os_close(fd);
    if (base == MAP_FAILED)
        return NULL;
    if (is_summary(base, bytes))
        return base;
    munmap(base, bytes);
    return NULL;
}

void cohi_summary_close(cohi_summary *summary)
{
    if (summary)
        munmap(summary, summary_bytes(summary->size));
}

void cohi_summary_write(cohi_summary *summary, int rank, const cohi_sight *sight, uint64_t now)
{
    cohi_summary_row *row = &summary->rows[rank];
    atomic_fetch_add(&row->turn, 1);
    row->sight = *sight;
    row->seen_ns = now;
    atomic_fetch_add(&row->turn, 1);
}

/* One that is being written is shown as it was caught: the texts end in any case. */
void cohi_summary_read(const cohi_summary *summary, int rank, uint64_t now, cohi_sight *sight)
{
    const cohi_summary_row *row = &summary->rows[rank];
    for (int tries = 0; tries < 100; tries++) {
        uint32_t turn = atomic_load(&row->turn);
        *sight = row->sight;
        if (turn % 2 == 0 && turn == atomic_load(&row->turn))
            break;
    }
    cohi_sight_check(sight);
    if (sight->waiting_ns && now > row->seen_ns)
        sight->waiting_ns += now - row->seen_ns;
    if (row->seen_ns == 0) {
        snprintf(sight->state, sizeof sight->state, "starting");
        sight->waits_for = -1;
    }
}
