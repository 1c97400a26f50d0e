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

static uint64_t bytes_of(const cohi_sight_link *link)
{
    return link->sent + link->received;
}

static void add_link(cohi_sight_link *sum, const cohi_sight_link *link)
{
    sum->peers += link->peers;
    sum->operations += link->operations;
    sum->sent += link->sent;
    sum->received += link->received;
    sum->waits += link->waits;
}

cohi_sight_link cohi_sight_total(const cohi_sight *sight)
{
    cohi_sight_link total = {.peer = -1};
    for (uint32_t i = 0; i < sight->link_count; i++)
        add_link(&total, &sight->links[i]);
    return total;
}

/* Lists it, or adds it to the rest, or the one that carried least if that is less. */
static void note_link(cohi_sight *sight, cohi_sight_link *rest, const cohi_sight_link *link)
{
    if (sight->link_count < COHI_SIGHT_LINKS) {
        sight->links[sight->link_count++] = *link;
        return;
    }
    uint32_t least = 0;
    for (uint32_t i = 1; i < COHI_SIGHT_LINKS; i++) {
        if (bytes_of(&sight->links[i]) < bytes_of(&sight->links[least]))
            least = i;
    }
    if (bytes_of(link) <= bytes_of(&sight->links[least])) {
        add_link(rest, link);
        return;
    }
    add_link(rest, &sight->links[least]);
    memmove(&sight->links[least], &sight->links[least + 1],
            (COHI_SIGHT_LINKS - 1 - least) * sizeof *sight->links);
    sight->links[COHI_SIGHT_LINKS - 1] = *link;
}

/* A rank of the host has none with those of its host, whose counts stay 0. */
static void look_at_links(const cohi_board *board, cohi_slot *slot, cohi_sight *sight)
{
    int size = (int)board->head->size;
    const cohi_traffic *traffic = cohi_slot_traffic(slot, size);
    cohi_sight_link rest = {.peer = -1};
    if (board->head->locals == board->head->size)
        return;
    for (int peer = 0; peer < size; peer++) {
        cohi_sight_link link = {
            .peer = peer,
            .peers = 1,
            .operations = atomic_load(&traffic[peer].operations),
            .sent = atomic_load(&traffic[peer].sent),
            .received = atomic_load(&traffic[peer].received),
            .waits = atomic_load(&traffic[peer].waits),
        };
        if (bytes_of(&link) > 0)
            note_link(sight, &rest, &link);
    }
    if (rest.peers > 0)
        sight->links[sight->link_count++] = rest;
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
    look_at_links(board, slot, sight);
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
    if (sight->link_count > COHI_SIGHT_LINKS + 1)
        sight->link_count = 0;
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
