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

enum { HEAD_BYTES = 4096 }; /* the slots start on a page of their own */

_Static_assert(sizeof(cohi_board_head) <= HEAD_BYTES, "the head fits before them");

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

size_t cohi_slot_lane_offset(int size, int from)
{
    return round_up(cohi_slot_meet_offset(size, COHI_TEAMS), HEAD_BYTES)
           + (size_t)from * COHI_LANE_BYTES;
}

size_t cohi_slot_staging_offset(int size, int team)
{
    return cohi_slot_lane_offset(size, size) + (size_t)team * sizeof(cohi_staging);
}

size_t cohi_slot_log_offset(int size)
{
    return cohi_slot_staging_offset(size, COHI_TEAMS);
}

_Static_assert(sizeof(cohi_staging) % HEAD_BYTES == 0, "staging areas are whole pages");
_Static_assert(offsetof(cohi_staging, in) % HEAD_BYTES == 0, "and so are their scratches");
_Static_assert(COHI_LOG_BYTES % HEAD_BYTES == 0, "and so are logs");

/* A page multiple, so that no two ranks' words are ever prefetched together. */
size_t cohi_slot_stride(int size)
{
    return cohi_slot_log_offset(size) + COHI_LOG_BYTES;
}

static size_t board_bytes(size_t size, size_t stride)
{
    return HEAD_BYTES + size * stride;
}

cohi_slot *cohi_board_slot(const cohi_board *board, int rank)
{
    return (cohi_slot *)((char *)board->head + HEAD_BYTES + (size_t)rank * board->head->stride);
}

static void write_head(cohi_board_head *head, int size, pid_t launcher, const char *program,
                       const cohi_profile *profile)
{
    head->profile = *profile;
    head->size = (uint32_t)size;
    head->stride = cohi_slot_stride(size);
    head->launcher = (int32_t)launcher;
    head->created_ns = cohi_now_ns();
    snprintf(head->version, sizeof head->version, "%s", coh_version_string());
    snprintf(head->program, sizeof head->program, "%s", program);
    head->magic = COHI_BOARD_MAGIC;
}

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
    size_t slot = HEAD_BYTES + (size_t)rank * board->head->stride;
    return commit(board, slot + cohi_slot_meet_offset(size, team),
                  slot + cohi_slot_meet_offset(size, team + 1));
}

/* Where the rank's staging area of the team begins in the board. */
static size_t staging_at(const cohi_board *board, int rank, int team)
{
    size_t slot = HEAD_BYTES + (size_t)rank * board->head->stride;
    return slot + cohi_slot_staging_offset((int)board->head->size, team);
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
    size_t log = HEAD_BYTES + (size_t)rank * board->head->stride
                 + cohi_slot_log_offset((int)board->head->size);
    return commit(board, log, log + COHI_LOG_BYTES);
}

/* What every job needs of a slot is backed at once: all up to the area of the world's team.
 * Other teams, and lanes, come when they are used. */
static size_t needed_of_slot(int size)
{
    return cohi_slot_meet_offset(size, 1);
}

static coh_status prepare_slots(cohi_board *board, int size, pid_t launcher, const char *program,
                                const cohi_profile *profile)
{
    size_t stride = cohi_slot_stride(size);
    coh_status status = commit(board, 0, HEAD_BYTES);
    for (int rank = 0; rank < size && status == COH_OK; rank++) {
        size_t slot = HEAD_BYTES + (size_t)rank * stride;
        status = commit(board, slot, slot + needed_of_slot(size));
    }
    if (status != COH_OK)
        return status;
    write_head(board->head, size, launcher, program, profile);
    for (int rank = 0; rank < size; rank++)
        atomic_store(&cohi_board_slot(board, rank)->waits_for, -1);
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

coh_status cohi_board_create(int size, pid_t launcher, const char *program,
                             const cohi_profile *profile, cohi_board *board)
{
    size_t bytes = board_bytes((size_t)size, cohi_slot_stride(size));
    size_t needed = board_bytes((size_t)size, needed_of_slot(size));
    int fd;
    coh_status status = check_memory(size, needed);
    if (status != COH_OK)
        return status;
    int error = cohi_os_shared_create(COHI_BOARD_NAME, bytes, &fd);
    if (error)
        return cohi_fail_os(error, "cannot make the job's board of %zu bytes", bytes);
    void *base;
    error = cohi_os_map_shared(fd, bytes, HEAD_BYTES, &base);
    if (error) {
        cohi_os_close(fd);
        return cohi_fail_os(error, "cannot map the job's board of %zu bytes", bytes);
    }
    *board = (cohi_board){.head = base, .bytes = bytes, .fd = fd};
    status = prepare_slots(board, size, launcher, program, profile);
    if (status != COH_OK)
        cohi_board_close(board);
    return status;
}

static int layout_fits(const cohi_board_head *head, size_t bytes)
{
    return head->magic == COHI_BOARD_MAGIC && head->size > 0 && head->size <= COHI_RANKS_MAX
           && head->stride == cohi_slot_stride((int)head->size)
           && bytes == board_bytes(head->size, head->stride);
}

static coh_status map_board(int fd, int protection, cohi_board *board)
{
    size_t bytes;
    int error = cohi_os_file_bytes(fd, &bytes);
    if (error || bytes < HEAD_BYTES)
        return cohi_fail(COH_TRANSPORT, "the descriptor given for the job's board is not a board");
    void *base = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return cohi_fail_os(errno, "cannot map the job's board of %zu bytes", bytes);
    *board = (cohi_board){.head = base, .bytes = bytes, .fd = fd};
    return COH_OK;
}

static coh_status check_layout(const cohi_board *board)
{
    if (layout_fits(board->head, board->bytes))
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
