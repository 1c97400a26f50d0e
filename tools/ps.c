/* ps.c - `cohort ps`: the boards of this user's jobs, found through /proc. */
#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/board.h"
#include "command.h"
#include "core/world/doing.h"
#include "flags.h"
#include "json_text.h"
#include "table.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOARD_LINK "/memfd:" COHI_BOARD_NAME " (deleted)"

struct job {
    dev_t device;
    ino_t inode;
    cohi_board board;
};

struct jobs {
    struct job *list;
    size_t count;
    uint64_t now;
};

/* ---- finding ---- */

static int is_known(const struct jobs *jobs, const struct stat *info)
{
    for (size_t i = 0; i < jobs->count; i++) {
        if (jobs->list[i].device == info->st_dev && jobs->list[i].inode == info->st_ino)
            return 1;
    }
    return 0;
}

static void add_job(struct jobs *jobs, const struct stat *info, int fd)
{
    struct job job = {.device = info->st_dev, .inode = info->st_ino};
    struct job *longer = realloc(jobs->list, (jobs->count + 1) * sizeof *longer);
    if (longer)
        jobs->list = longer;
    if (!longer || cohi_board_view(fd, &job.board) != COH_OK) {
        cohi_os_close(fd);
        return;
    }
    jobs->list[jobs->count++] = job;
}

/* What a link says can be made up by a file's name; the board itself is checked when it is opened.
 */
static void look_at_link(struct jobs *jobs, int folder, const char *name)
{
    char target[sizeof BOARD_LINK + 1] = "";
    struct stat info;
    if (readlinkat(folder, name, target, sizeof target - 1) < 0 || strcmp(target, BOARD_LINK) != 0)
        return;
    if (fstatat(folder, name, &info, 0) != 0 || info.st_uid != geteuid() || is_known(jobs, &info))
        return;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        add_job(jobs, &info, fd);
}

static void look_at_process(struct jobs *jobs, const char *pid)
{
    char path[280];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (isdigit((unsigned char)entry->d_name[0]))
            look_at_link(jobs, dirfd(folder), entry->d_name);
    }
    if (folder)
        closedir(folder);
}

static int oldest_first(const void *a, const void *b)
{
    uint64_t one = ((const struct job *)a)->board.head->created_ns;
    uint64_t other = ((const struct job *)b)->board.head->created_ns;
    return (one > other) - (one < other);
}

static int find_jobs(struct jobs *jobs)
{
    DIR *folder = opendir("/proc");
    if (!folder) {
        perror("cohort ps: cannot read /proc");
        return -1;
    }
    int seen = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        look_at_process(jobs, entry->d_name);
        seen = 1;
    }
    closedir(folder);
    if (!seen) {
        fprintf(stderr, "cohort ps: /proc shows no process: it is not mounted here\n");
        return -1;
    }
    if (jobs->count > 0)
        qsort(jobs->list, jobs->count, sizeof *jobs->list, oldest_first);
    return 0;
}

/* ---- showing ---- */

/* One rank as it is now. */
struct sight {
    int pid;
    const char *state;
    char doing[COHI_TABLE_CELL_BYTES];
    uint64_t waiting_ns;                /* 0: it does not wait */
    int waits_for;                      /* -1: for none in particular */
    char awaits[COHI_TABLE_CELL_BYTES]; /* what its waits are for; "": it has not waited long */
};

static struct sight look_at_rank(const cohi_board *board, int rank, uint64_t now)
{
    cohi_slot *slot = cohi_board_slot(board, rank);
    struct sight sight = {.pid = atomic_load(&slot->pid), .waits_for = -1};
    sight.state = cohi_slot_describe(slot, sight.doing, sizeof sight.doing);
    uint64_t since = atomic_load(&slot->since_ns);
    if (strcmp(sight.state, "waiting") == 0 || strcmp(sight.state, "stopped") == 0) {
        sight.waiting_ns = since && now > since ? now - since : 0;
        sight.waits_for = atomic_load(&slot->waits_for);
        cohi_doing_list(slot, sight.awaits, sizeof sight.awaits);
    }
    return sight;
}

static void fill_row(const struct sight *sight, int rank, cohi_table_row *row)
{
    snprintf(row->cell[0], COHI_TABLE_CELL_BYTES, "%d", rank);
    if (sight->pid)
        snprintf(row->cell[1], COHI_TABLE_CELL_BYTES, "%d", sight->pid);
    snprintf(row->cell[2], COHI_TABLE_CELL_BYTES, "%s", sight->state);
    snprintf(row->cell[3], COHI_TABLE_CELL_BYTES, "%s", sight->doing);
    cohi_duration_text(sight->waiting_ns, row->cell[4], COHI_TABLE_CELL_BYTES);
    if (*sight->awaits)
        snprintf(row->cell[5], COHI_TABLE_CELL_BYTES, "%s", sight->awaits);
    else if (sight->waits_for >= 0)
        snprintf(row->cell[5], COHI_TABLE_CELL_BYTES, "rank %d", sight->waits_for);
}

/* A job may have begun since `now`. */
static uint64_t age_of(const cohi_board_head *head, uint64_t now)
{
    return now > head->created_ns ? now - head->created_ns : 0;
}

static int print_job(const struct job *job, uint64_t now)
{
    static const char *const titles[] = {"RANK", "PID", "STATE", "OPERATION", "WAITING", "FOR"};
    const cohi_board_head *head = job->board.head;
    char age[32], launcher[64] = "no launcher";
    cohi_table table;
    cohi_duration_text(age_of(head, now), age, sizeof age);
    if (head->launcher)
        snprintf(launcher, sizeof launcher, "launcher %d", (int)head->launcher);
    printf("%.64s: %s, ranks %u, age %s\n", head->program, launcher, head->size, age);
    if (cohi_table_make(&table, titles, 6, head->size) != 0)
        return -1;
    for (int rank = 0; rank < (int)head->size; rank++) {
        struct sight sight = look_at_rank(&job->board, rank, now);
        fill_row(&sight, rank, &table.rows[rank]);
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

static int print_jobs(const struct jobs *jobs)
{
    if (jobs->count == 0)
        printf("no job of this user is running\n");
    for (size_t i = 0; i < jobs->count; i++) {
        if (i > 0)
            putchar('\n');
        if (print_job(&jobs->list[i], jobs->now) != 0)
            return 1;
    }
    return 0;
}

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / (double)COHI_NS_PER_S;
}

static json_t *rank_json(const cohi_board *board, int rank, uint64_t now)
{
    struct sight sight = look_at_rank(board, rank, now);
    json_t *row =
        json_pack("{s:i, s:s, s:s}", "rank", rank, "state", sight.state, "operation", sight.doing);
    json_object_set_new(row, "pid", sight.pid ? json_integer(sight.pid) : json_null());
    json_object_set_new(row, "waiting_s",
                        sight.waiting_ns ? json_real(seconds(sight.waiting_ns)) : json_null());
    json_object_set_new(row, "waits_for",
                        sight.waits_for >= 0 ? json_integer(sight.waits_for) : json_null());
    json_object_set_new(row, "awaits", *sight.awaits ? json_string(sight.awaits) : json_null());
    return row;
}

static json_t *job_json(const struct job *job, uint64_t now)
{
    const cohi_board_head *head = job->board.head;
    char program[sizeof head->program + 1] = "", version[sizeof head->version + 1] = "";
    memcpy(program, head->program, sizeof head->program);
    memcpy(version, head->version, sizeof head->version);
    json_t *ranks = json_array();
    for (int rank = 0; rank < (int)head->size; rank++)
        json_array_append_new(ranks, rank_json(&job->board, rank, now));
    json_t *launcher = head->launcher ? json_integer(head->launcher) : json_null();
    return json_pack("{s:o, s:o, s:o, s:i, s:f, s:o}", "program", cohi_json_text(program),
                     "version", cohi_json_text(version), "launcher", launcher, "size",
                     (int)head->size, "age_s", seconds(age_of(head, now)), "ranks", ranks);
}

static int print_json(const struct jobs *jobs)
{
    json_t *list = json_array();
    for (size_t i = 0; i < jobs->count; i++)
        json_array_append_new(list, job_json(&jobs->list[i], jobs->now));
    json_t *root = json_pack("{s:o}", "jobs", list);
    int failed = json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
    return failed ? 1 : 0;
}

/* ---- the command ---- */

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    *(int *)target = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"json", 0, NULL, "print as JSON", take_json},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort ps",
    .synopsis = "[--json]",
    .summary = "Shows the running jobs of this user and what each rank is doing. It looks only; "
               "the ranks\n"
               "do not notice.",
    .flags = flags,
    .notes = NULL,
};

int cohi_tool_ps(int argc, char **argv)
{
    int as_json = 0, status;
    if (cohi_flags_only(&usage, argc, argv, &as_json, &status) != 0)
        return status;
    struct jobs jobs = {.now = cohi_now_ns()};
    status = find_jobs(&jobs) != 0 ? 1 : as_json ? print_json(&jobs) : print_jobs(&jobs);
    for (size_t i = 0; i < jobs.count; i++)
        cohi_board_close(&jobs.list[i].board);
    free(jobs.list);
    return status;
}
