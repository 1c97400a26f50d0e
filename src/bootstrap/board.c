#include "bootstrap/board.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE_BYTES = 4096 }; /* the tables behind the head start on one, and so do the slots */

_Static_assert(sizeof(cohi_board_head) <= PAGE_BYTES, "the head fits before them");

static size_t round_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

size_t cohi_slot_verdict_offset(int rank)
{
    return sizeof(cohi_slot) + (size_t)rank * sizeof(uint64_t);
}

static size_t area_bytes(int size)
{
    return sizeof(cohi_meet) + 2 * (size_t)size * sizeof(cohi_record);
}

size_t cohi_slot_meet_offset(int size, int team)
{
    return round_up(cohi_slot_verdict_offset(size), COHI_LINE_PAIR)
           + (size_t)team * area_bytes(size);
}

size_t cohi_slot_record_offset(int size, int team, uint32_t epoch, int index)
{
    size_t record = (size_t)(epoch & 1) * (size_t)size + (size_t)index;
    return cohi_slot_meet_offset(size, team) + sizeof(cohi_meet) + record * sizeof(cohi_record);
}

size_t cohi_slot_landing_offset(int size, int from)
{
    return cohi_slot_meet_offset(size, COHI_TEAMS) + (size_t)from * COHI_LANDING_BYTES;
}

size_t cohi_slot_control_bytes(int size)
{
    return round_up(cohi_slot_landing_offset(size, size), PAGE_BYTES);
}

size_t cohi_slot_staging_offset(int size, int team)
{
    return cohi_slot_control_bytes(size) + (size_t)team * sizeof(cohi_staging);
}

size_t cohi_slot_log_offset(int size)
{
    return cohi_slot_staging_offset(size, COHI_TEAMS);
}

size_t cohi_slot_traffic_offset(int size)
{
    return cohi_slot_log_offset(size) + COHI_LOG_BYTES;
}

static size_t traffic_bytes(int size)
{
    return round_up((size_t)size * sizeof(cohi_traffic), PAGE_BYTES);
}

size_t cohi_slot_lane_offset(int size, int from_index)
{
    return cohi_slot_traffic_offset(size) + traffic_bytes(size)
           + (size_t)from_index * COHI_LANE_BYTES;
}

_Static_assert(sizeof(cohi_staging) % PAGE_BYTES == 0, "staging areas are whole pages");
_Static_assert(offsetof(cohi_staging, in) % PAGE_BYTES == 0, "and so are their scratches");
_Static_assert(COHI_LOG_BYTES % PAGE_BYTES == 0, "and so are logs");
_Static_assert(COHI_LANE_BYTES % PAGE_BYTES == 0, "and so are lanes");

/* A page multiple, so that no two ranks' words are ever prefetched together. */
size_t cohi_slot_stride(int size, int locals)
{
    return cohi_slot_lane_offset(size, locals);
}

/* ---- the tables between the head and the slots ---- */

static size_t names_at(int size)
{
    return PAGE_BYTES + (size_t)size * sizeof(uint64_t);
}

static size_t indices_at(int size)
{
    return names_at(size) + (size_t)size * sizeof(cohi_host_name);
}

static size_t ranks_at(int size)
{
    return indices_at(size) + (size_t)size * sizeof(int32_t);
}

static size_t slots_at(int size, int locals)
{
    return round_up(ranks_at(size) + (size_t)locals * sizeof(int32_t), PAGE_BYTES);
}

static void *table(const cohi_board *board, size_t offset)
{
    return (char *)board->head + offset;
}

_Atomic uint64_t *cohi_board_told(const cohi_board *board, int rank)
{
    return (_Atomic uint64_t *)table(board, PAGE_BYTES) + rank;
}

cohi_host_name *cohi_board_host_name(const cohi_board *board, int host)
{
    return (cohi_host_name *)table(board, names_at((int)board->head->size)) + host;
}

const int32_t *cohi_board_ranks(const cohi_board *board)
{
    return table(board, ranks_at((int)board->head->size));
}

int cohi_board_index(const cohi_board *board, int rank)
{
    return ((const int32_t *)table(board, indices_at((int)board->head->size)))[rank];
}

/* Where the rank's slot begins in the board. */
static size_t slot_at(const cohi_board *board, int rank)
{
    const cohi_board_head *head = board->head;
    return slots_at((int)head->size, (int)head->locals)
           + (size_t)cohi_board_index(board, rank) * head->stride;
}

cohi_slot *cohi_board_slot(const cohi_board *board, int rank)
{
    return cohi_board_index(board, rank) < 0 ? NULL : table(board, slot_at(board, rank));
}

void cohi_board_ring(const cohi_board *board)
{
    for (uint32_t i = 0; i < board->head->locals; i++)
        cohi_slot_ring(cohi_board_slot(board, cohi_board_ranks(board)[i]));
}

/* What every job needs of a slot is backed at once: all up to the area of the world's team.
 * Other teams, landings and lanes come when they are used. */
static size_t needed_of_slot(int size)
{
    return cohi_slot_meet_offset(size, 1);
}

size_t cohi_board_bytes(int size, int locals)
{
    return slots_at(size, locals) + (size_t)locals * cohi_slot_stride(size, locals);
}

size_t cohi_board_needed(int size, int locals)
{
    return slots_at(size, locals) + (size_t)locals * needed_of_slot(size);
}

/* ---- backing with memory ---- */

static coh_status commit(cohi_board *board, size_t from, size_t to)
{
    int error = cohi_os_commit_shared(board->fd, from, to);
    if (error)
        return cohi_fail_os(error, "cannot back %zu bytes of the job's board with memory",
                            to - from);
    return COH_OK;
}

coh_status cohi_board_commit(cohi_board *board, int rank, int team)
{
    int size = (int)board->head->size;
    size_t slot = slot_at(board, rank);
    return commit(board, slot + cohi_slot_meet_offset(size, team),
                  slot + cohi_slot_meet_offset(size, team + 1));
}

/* Where the rank's staging area of the team begins in the board. */
static size_t staging_at(const cohi_board *board, int rank, int team)
{
    return slot_at(board, rank) + cohi_slot_staging_offset((int)board->head->size, team);
}

coh_status cohi_board_commit_scratch(cohi_board *board, int rank, int team)
{
    size_t at = staging_at(board, rank, team);
    return commit(board, at + offsetof(cohi_staging, scratch), at + offsetof(cohi_staging, in));
}

coh_status cohi_board_commit_stages(cohi_board *board, int rank, int team)
{
    size_t at = staging_at(board, rank, team);
    return commit(board, at + offsetof(cohi_staging, in), at + offsetof(cohi_staging, level));
}

coh_status cohi_board_commit_level(cohi_board *board, int rank, int team)
{
    size_t at = staging_at(board, rank, team);
    return commit(board, at + offsetof(cohi_staging, level), at + sizeof(cohi_staging));
}

coh_status cohi_board_commit_log(cohi_board *board, int rank)
{
    size_t log = slot_at(board, rank) + cohi_slot_log_offset((int)board->head->size);
    return commit(board, log, log + COHI_LOG_BYTES);
}

coh_status cohi_board_commit_traffic(cohi_board *board, int rank)
{
    int size = (int)board->head->size;
    size_t at = slot_at(board, rank) + cohi_slot_traffic_offset(size);
    return commit(board, at, at + traffic_bytes(size));
}

/* ---- making ---- */

static int locals_of(const cohi_board_spec *spec)
{
    return spec->ranks ? spec->count : spec->size;
}

static void write_head(const cohi_board_spec *spec, cohi_board_head *head)
{
    head->profile = *spec->profile;
    head->size = (uint32_t)spec->size;
    head->locals = (uint32_t)locals_of(spec);
    head->stride = cohi_slot_stride(spec->size, locals_of(spec));
    head->launcher = (int32_t)spec->launcher;
    head->created_ns = cohi_now_ns();
    head->job = spec->job;
    snprintf(head->version, sizeof head->version, "%s", coh_version_string());
    snprintf(head->host, sizeof head->host, "%s", spec->host);
    snprintf(head->program, sizeof head->program, "%s", spec->program);
    head->magic = COHI_BOARD_MAGIC;
}

static void list_ranks(const cohi_board_spec *spec, cohi_board *board)
{
    int32_t *indices = table(board, indices_at(spec->size));
    int32_t *ranks = table(board, ranks_at(spec->size));
    for (int rank = 0; rank < spec->size; rank++)
        indices[rank] = -1;
    for (int i = 0; i < locals_of(spec); i++) {
        ranks[i] = spec->ranks ? spec->ranks[i] : i;
        indices[ranks[i]] = i;
    }
}

static coh_status prepare_slots(const cohi_board_spec *spec, cohi_board *board)
{
    int size = spec->size, locals = locals_of(spec);
    coh_status status = commit(board, 0, slots_at(size, locals));
    for (int i = 0; i < locals && status == COH_OK; i++) {
        size_t slot = slots_at(size, locals) + (size_t)i * cohi_slot_stride(size, locals);
        status = commit(board, slot, slot + needed_of_slot(size));
    }
    if (status != COH_OK)
        return status;
    write_head(spec, board->head);
    list_ranks(spec, board);
    for (int i = 0; i < locals; i++) {
        cohi_slot *slot =
            table(board, slots_at(size, locals) + (size_t)i * cohi_slot_stride(size, locals));
        atomic_store(&slot->waits_for, -1);
    }
    return COH_OK;
}

static coh_status check_memory(int size, size_t needed)
{
    char text[COHI_OS_MEMORY_TEXT];
    cohi_os_memory memory = cohi_os_memory_look();
    if (needed <= memory.available)
        return COH_OK;
    cohi_os_memory_describe(&memory, text, sizeof text);
    return cohi_fail(COH_NO_MEMORY, "a job of %d ranks needs %zu bytes for its board; %s", size,
                     needed, text);
}

/* A caller's mistake would be memory overwritten. */
static coh_status check_spec(const cohi_board_spec *spec)
{
    int before = -1;
    bool sound = spec->size > 0 && spec->size <= COHI_WORLD_MAX && locals_of(spec) > 0
                 && locals_of(spec) <= spec->size && locals_of(spec) <= COHI_RANKS_MAX;
    for (int i = 0; sound && spec->ranks && i < spec->count; before = spec->ranks[i++])
        sound = spec->ranks[i] > before && spec->ranks[i] < spec->size;
    if (sound)
        return COH_OK;
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "a host has 1 to %d ranks, listed in ascending order, of a world of up to %d; "
                     "its board was asked for %d of %d",
                     COHI_RANKS_MAX, COHI_WORLD_MAX, locals_of(spec), spec->size);
}

static coh_status map_new(size_t bytes, cohi_board *board)
{
    int fd, error = cohi_os_shared_create(COHI_BOARD_NAME, bytes, &fd);
    if (error)
        return cohi_fail_os(error, "cannot make the job's board of %zu bytes", bytes);
    void *base;
    error = cohi_os_map_shared(fd, bytes, PAGE_BYTES, &base);
    if (error) {
        cohi_os_close(fd);
        return cohi_fail_os(error, "cannot map the job's board of %zu bytes", bytes);
    }
    *board = (cohi_board){.head = base, .bytes = bytes, .fd = fd};
    return COH_OK;
}

coh_status cohi_board_create(const cohi_board_spec *spec, cohi_board *board)
{
    coh_status status = check_spec(spec);
    if (status == COH_OK)
        status = check_memory(spec->size, cohi_board_needed(spec->size, locals_of(spec)));
    if (status == COH_OK)
        status = map_new(cohi_board_bytes(spec->size, locals_of(spec)), board);
    if (status != COH_OK)
        return status;
    status = prepare_slots(spec, board);
    if (status != COH_OK)
        cohi_board_close(board);
    return status;
}

/* ---- opening ---- */

static bool numbers_fit(const cohi_board_head *head, size_t bytes)
{
    if (head->magic != COHI_BOARD_MAGIC || head->size == 0 || head->size > COHI_WORLD_MAX
        || head->locals == 0 || head->locals > head->size || head->locals > COHI_RANKS_MAX)
        return false;
    int size = (int)head->size, locals = (int)head->locals;
    return head->stride == cohi_slot_stride(size, locals)
           && bytes == cohi_board_bytes(size, locals);
}

static bool layout_fits(const cohi_board *board)
{
    bool fits = numbers_fit(board->head, board->bytes);
    for (int rank = 0; fits && rank < (int)board->head->size; rank++)
        fits = cohi_board_index(board, rank) < (int)board->head->locals;
    return fits;
}

static coh_status map_board(int fd, int protection, cohi_board *board)
{
    size_t bytes;
    int error = cohi_os_file_bytes(fd, &bytes);
    if (error || bytes < PAGE_BYTES)
        return cohi_fail(COH_TRANSPORT, "the descriptor given for the job's board is not a board");
    void *base = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return cohi_fail_os(errno, "cannot map the job's board of %zu bytes", bytes);
    *board = (cohi_board){.head = base, .bytes = bytes, .fd = fd};
    return COH_OK;
}

static coh_status check_layout(const cohi_board *board)
{
    if (layout_fits(board))
        return COH_OK;
    if (board->head->magic == COHI_BOARD_MAGIC)
        return cohi_fail(COH_MISMATCH,
                         "the job's board was made by version %.16s of the library; this is %s",
                         board->head->version, coh_version_string());
    return cohi_fail(COH_TRANSPORT, "the descriptor given for the job's board is not a board");
}

coh_status cohi_board_view(int fd, cohi_board *board)
{
    coh_status status = map_board(fd, PROT_READ, board);
    if (status != COH_OK)
        return status;
    status = check_layout(board);
    if (status != COH_OK)
        cohi_os_unmap(board->head, board->bytes);
    return status;
}

coh_status cohi_board_open(int fd, cohi_board *board)
{
    coh_status status = map_board(fd, PROT_READ | PROT_WRITE, board);
    if (status != COH_OK)
        return status;
    status = check_layout(board);
    if (status == COH_OK
        && strncmp(board->head->version, coh_version_string(), sizeof board->head->version) != 0)
        status = cohi_fail(COH_MISMATCH,
                           "the job was started by version %.16s of the library; this is %s",
                           board->head->version, coh_version_string());
    if (status != COH_OK)
        cohi_os_unmap(board->head, board->bytes);
    return status;
}

void cohi_board_close(cohi_board *board)
{
    if (!board->head)
        return;
    cohi_os_unmap(board->head, board->bytes);
    cohi_os_close(board->fd);
    *board = (cohi_board){.fd = -1};
}

void cohi_slot_ring(cohi_slot *slot)
{
    atomic_fetch_add(&slot->bell, 1);
    if (atomic_load(&slot->sleepers) > 0)
        cohi_os_futex_wake(&slot->bell);
}

void cohi_describe_end(int wait_status, char *text, size_t room)
{
    if (WIFSIGNALED(wait_status))
        snprintf(text, room, "killed by signal %d (%s)", WTERMSIG(wait_status),
                 cohi_os_signal_text(WTERMSIG(wait_status)));
    else
        snprintf(text, room, "exited with status %d", WEXITSTATUS(wait_status));
}

static void describe_operation(const cohi_slot *slot, unsigned op, char *text, size_t room)
{
    uint64_t sequence = atomic_load(&((cohi_slot *)slot)->sequence);
    if (op == COHI_OP_NONE)
        snprintf(text, room, "%s", cohi_opcode_name(op));
    else if (sequence > 0)
        snprintf(text, room, "in %s #%llu", cohi_opcode_name(op), (unsigned long long)sequence);
    else
        snprintf(text, room, "in %s", cohi_opcode_name(op));
}

static const char *describe_ended(unsigned phase, uint64_t end, char *text, size_t room)
{
    cohi_describe_end((int)(end & UINT32_MAX), text, room);
    int clean = WIFEXITED((int)end) && WEXITSTATUS((int)end) == 0;
    if (clean && (phase == COHI_PHASE_EXITING || phase == COHI_PHASE_RUNNING)) {
        snprintf(text, room, "exited without finalize");
        return "failed";
    }
    return clean ? "done" : "failed";
}

void cohi_slot_publish_error(cohi_slot *slot, coh_status status, const char *call, const char *what)
{
    unsigned turn = atomic_load(&slot->error_turn);
    if (turn % 2 != 0 || !atomic_compare_exchange_strong(&slot->error_turn, &turn, turn + 1))
        return;
    snprintf(slot->error, sizeof slot->error, "%s: %s", call, what);
    atomic_store(&slot->error_status, (int)status);
    atomic_store(&slot->error_ns, cohi_now_ns());
    atomic_store(&slot->error_turn, turn + 2);
}

uint64_t cohi_slot_read_error(const cohi_slot *read_only, coh_status *status,
                              char text[COHI_ERROR_BYTES])
{
    cohi_slot *slot = (cohi_slot *)read_only; /* atomic_load takes no const in C11 */
    unsigned turn = atomic_load(&slot->error_turn);
    memcpy(text, slot->error, COHI_ERROR_BYTES);
    text[COHI_ERROR_BYTES - 1] = '\0';
    *status = (coh_status)atomic_load(&slot->error_status);
    uint64_t at_ns = atomic_load(&slot->error_ns);
    return turn != 0 && turn % 2 == 0 && atomic_load(&slot->error_turn) == turn ? at_ns : 0;
}

bool cohi_slot_is_stopped(const cohi_slot *slot, pid_t pid)
{
    char state = cohi_os_process_state(pid);
    if (state == 0)
        return atomic_load(&((cohi_slot *)slot)->stopped) != 0;
    return state == 'T' || state == 't';
}

const char *cohi_slot_describe(const cohi_slot *read_only, char *text, size_t room)
{
    cohi_slot *slot = (cohi_slot *)read_only; /* atomic_load takes no const in C11 */
    unsigned phase = atomic_load(&slot->phase), op = atomic_load(&slot->op);
    uint64_t end = atomic_load(&slot->end);
    if (end & COHI_ENDED)
        return describe_ended(phase, end, text, room);
    pid_t pid = atomic_load(&slot->pid);
    switch (phase) {
    case COHI_PHASE_ABSENT:
        snprintf(text, room, "has not called init");
        return "starting";
    case COHI_PHASE_LEFT:
        snprintf(text, room, "finalized");
        return "left";
    case COHI_PHASE_EXITING:
        snprintf(text, room, "exited without finalize");
        return "failed";
    default:
        break;
    }
    describe_operation(slot, op, text, room);
    if (pid && cohi_os_process_ended(pid))
        return "gone";
    if (pid && cohi_slot_is_stopped(slot, pid))
        return "stopped";
    return atomic_load(&slot->since_ns) ? "waiting" : "running";
}
