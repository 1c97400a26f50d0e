/* ps.c - `cohort ps`: the boards of this user's jobs, and the summaries of those on several hosts, found
 * through /proc. */
#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/board.h"
#include "command.h"
#include "engine/engine.h"
#include "flags.h"
#include "json_text.h"
#include "sight.h"
#include "table.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOARD_LINK   "/memfd:" COHI_BOARD_NAME " (deleted)"
#define SUMMARY_LINK "/memfd:" COHI_SUMMARY_NAME " (deleted)"

/* A host's part of a job, or a summary, which has the ranks of all hosts. */
struct job {
    dev_t device;
    ino_t inode;
    cohi_board board;
    cohi_summary *summary; /* NULL: the board is what there is */
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

static int open_job(struct job *job, int fd, int is_summary)
{
    if (is_summary) {
        job->summary = cohi_summary_view(fd);
        return job->summary ? 0 : -1;
    }
    if (cohi_board_view(fd, &job->board) == COH_OK)
        return 0;
    cohi_os_close(fd);
    return -1;
}

static void add_job(struct jobs *jobs, const struct stat *info, int fd, int is_summary)
{
    struct job job = {.device = info->st_dev, .inode = info->st_ino, .board = {.fd = -1}};
    struct job *longer = realloc(jobs->list, (jobs->count + 1) * sizeof *longer);
    if (longer)
        jobs->list = longer;
    else
        cohi_os_close(fd);
    if (longer && open_job(&job, fd, is_summary) == 0)
        jobs->list[jobs->count++] = job;
}

/* What a link says can be made up by a file's name; what it leads to is checked when it is opened. */
static void look_at_link(struct jobs *jobs, int folder, const char *name)
{
    char target[sizeof SUMMARY_LINK + sizeof BOARD_LINK] = "";
    struct stat info;
    if (readlinkat(folder, name, target, sizeof target - 1) < 0)
        return;
    int is_summary = strcmp(target, SUMMARY_LINK) == 0;
    if (!is_summary && strcmp(target, BOARD_LINK) != 0)
        return;
    if (fstatat(folder, name, &info, 0) != 0 || info.st_uid != geteuid() || is_known(jobs, &info))
        return;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        add_job(jobs, &info, fd, is_summary);
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

static uint64_t born(const struct job *job)
{
    return job->summary ? job->summary->created_ns : job->board.head->created_ns;
}

static void close_job(struct job *job)
{
    cohi_board_close(&job->board);
    cohi_summary_close(job->summary);
}

/* Whether a summary shows the board's ranks too: the agent of that host is on this one. */
static int is_in_summary(const struct jobs *jobs, const struct job *job)
{
    for (size_t i = 0; i < jobs->count; i++) {
        const cohi_summary *summary = jobs->list[i].summary;
        if (summary && !job->summary && job->board.head->job
            && summary->job == job->board.head->job)
            return 1;
    }
    return 0;
}

static void drop_doubles(struct jobs *jobs)
{
    for (size_t i = jobs->count; i-- > 0;) {
        if (!is_in_summary(jobs, &jobs->list[i]))
            continue;
        close_job(&jobs->list[i]);
        memmove(&jobs->list[i], &jobs->list[i + 1], (--jobs->count - i) * sizeof *jobs->list);
    }
}

static int oldest_first(const void *a, const void *b)
{
    uint64_t one = born(a), other = born(b);
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
    drop_doubles(jobs);
    if (jobs->count > 0)
        qsort(jobs->list, jobs->count, sizeof *jobs->list, oldest_first);
    return 0;
}

/* ---- showing ---- */

/* A job, whichever way it was found. */
struct view {
    const char *program, *version; /* of limited length */
    int launcher, size, count;     /* pid or 0; ranks of the world; those that are shown */
    uint64_t created_ns;
    const char *host; /* of all that are shown; NULL: it differs, or is this one */
};

static struct view view_of(const struct job *job)
{
    const cohi_summary *summary = job->summary;
    const cohi_board_head *head = job->board.head;
    if (summary)
        return (struct view){.program = summary->program,
                             .version = summary->version,
                             .launcher = summary->launcher,
                             .size = (int)summary->size,
                             .count = (int)summary->size,
                             .created_ns = summary->created_ns};
    return (struct view){.program = head->program,
                         .version = head->version,
                         .launcher = head->launcher,
                         .size = (int)head->size,
                         .count = (int)head->locals,
                         .created_ns = head->created_ns,
                         .host = head->locals < head->size ? head->host : NULL};
}

/* The index-th rank that is shown; *host is NULL where all are of this one. */
static int look_at_rank(const struct job *job, int index, uint64_t now, const char **host,
                        cohi_sight *sight)
{
    if (job->summary) {
        cohi_summary_read(job->summary, index, now, sight);
        *host = job->summary->rows[index].host;
        return index;
    }
    int rank = cohi_board_ranks(&job->board)[index];
    cohi_sight_look(&job->board, rank, now, sight);
    *host = view_of(job).host;
    return rank;
}

enum { RANK, HOST, PID, STATE, OPERATION, WAITING, SENT, RECEIVED, FOR, COLUMNS };

static void fill_row(const cohi_sight *sight, int rank, const char *host, cohi_table_row *row)
{
    snprintf(row->cell[RANK], COHI_TABLE_CELL_BYTES, "%d", rank);
    snprintf(row->cell[HOST], COHI_TABLE_CELL_BYTES, "%.*s", COHI_HOST_NAME_BYTES,
             host ? host : "");
    if (sight->pid)
        snprintf(row->cell[PID], COHI_TABLE_CELL_BYTES, "%d", sight->pid);
    snprintf(row->cell[STATE], COHI_TABLE_CELL_BYTES, "%s", sight->state);
    snprintf(row->cell[OPERATION], COHI_TABLE_CELL_BYTES, "%s", sight->doing);
    cohi_duration_text(sight->waiting_ns, row->cell[WAITING], COHI_TABLE_CELL_BYTES);
    cohi_sight_link total = cohi_sight_total(sight);
    if (total.peers > 0) {
        cohi_bytes_text(total.sent, row->cell[SENT], COHI_TABLE_CELL_BYTES);
        cohi_bytes_text(total.received, row->cell[RECEIVED], COHI_TABLE_CELL_BYTES);
    }
    if (*sight->awaits)
        snprintf(row->cell[FOR], COHI_TABLE_CELL_BYTES, "%s", sight->awaits);
    else if (sight->waits_for >= 0)
        snprintf(row->cell[FOR], COHI_TABLE_CELL_BYTES, "rank %d", sight->waits_for);
}

/* A job may have begun since `now`. */
static uint64_t age_of(const struct view *view, uint64_t now)
{
    return now > view->created_ns ? now - view->created_ns : 0;
}

/* How what travels between hosts is protected, as the first rank that knows says; "": nobody does. */
static const char *network_of(const struct job *job, const struct view *view, uint64_t now)
{
    const char *text = "", *host;
    for (int i = 0; i < view->count && !*text; i++) {
        cohi_sight sight;
        (void)look_at_rank(job, i, now, &host, &sight);
        text = cohi_network_text(sight.network);
    }
    return text;
}

/* Whether ranks of it may be on other hosts. */
static int has_hosts(const struct job *job)
{
    return job->summary || view_of(job).host;
}

static int print_job(const struct job *job, uint64_t now)
{
    static const char *const titles[COLUMNS] = {"RANK",    "HOST", "PID",      "STATE", "OPERATION",
                                                "WAITING", "SENT", "RECEIVED", "FOR"};
    struct view view = view_of(job);
    char age[32], launcher[64] = "no launcher";
    cohi_table table;
    cohi_duration_text(age_of(&view, now), age, sizeof age);
    if (view.launcher)
        snprintf(launcher, sizeof launcher, "launcher %d", view.launcher);
    const char *network = network_of(job, &view, now);
    printf("%.64s: %s, ranks %d, age %s%s%s\n", view.program, launcher, view.size, age,
           *network ? ", between hosts " : "", network);
    if (cohi_table_make(&table, titles, COLUMNS, (size_t)view.count) != 0)
        return -1;
    if (!has_hosts(job)) {
        cohi_table_hide(&table, HOST);
        cohi_table_hide(&table, SENT);
        cohi_table_hide(&table, RECEIVED);
    }
    for (int i = 0; i < view.count; i++) {
        cohi_sight sight;
        const char *host;
        int rank = look_at_rank(job, i, now, &host, &sight);
        fill_row(&sight, rank, host, &table.rows[i]);
    }
    cohi_table_print(&table, "  ", stdout);
    cohi_table_free(&table);
    return 0;
}

/* ---- links ---- */

enum { L_RANK, L_PEER, L_OPERATIONS, L_SENT, L_RECEIVED, L_WAITS, L_COLUMNS };

static void fill_link(int rank, const cohi_sight_link *link, cohi_table_row *row)
{
    snprintf(row->cell[L_RANK], COHI_TABLE_CELL_BYTES, "%d", rank);
    if (link->peer >= 0)
        snprintf(row->cell[L_PEER], COHI_TABLE_CELL_BYTES, "%d", link->peer);
    else
        snprintf(row->cell[L_PEER], COHI_TABLE_CELL_BYTES, "%u others", link->peers);
    snprintf(row->cell[L_OPERATIONS], COHI_TABLE_CELL_BYTES, "%" PRIu64, link->operations);
    cohi_bytes_text(link->sent, row->cell[L_SENT], COHI_TABLE_CELL_BYTES);
    cohi_bytes_text(link->received, row->cell[L_RECEIVED], COHI_TABLE_CELL_BYTES);
    snprintf(row->cell[L_WAITS], COHI_TABLE_CELL_BYTES, "%" PRIu64, link->waits);
}

/* The job's links below its ranks; nothing where it has none. */
static int print_links(const struct job *job, uint64_t now)
{
    static const char *const titles[L_COLUMNS] = {"RANK", "PEER",     "OPERATIONS",
                                                  "SENT", "RECEIVED", "WAITS"};
    int count = view_of(job).count;
    cohi_table table;
    if (!has_hosts(job))
        return 0;
    if (cohi_table_make(&table, titles, L_COLUMNS, (size_t)count * (COHI_SIGHT_LINKS + 1)) != 0)
        return -1;
    table.count = 0;
    for (int i = 0; i < count; i++) {
        cohi_sight sight;
        const char *host;
        int rank = look_at_rank(job, i, now, &host, &sight);
        for (uint32_t link = 0; link < sight.link_count; link++)
            fill_link(rank, &sight.links[link], &table.rows[table.count++]);
    }
    if (table.count > 0) {
        printf("  links to other hosts:\n");
        cohi_table_print(&table, "  ", stdout);
    }
    cohi_table_free(&table);
    return 0;
}

static int print_jobs(const struct jobs *jobs, int links)
{
    if (jobs->count == 0)
        printf("no job of this user is running\n");
    for (size_t i = 0; i < jobs->count; i++) {
        if (i > 0)
            putchar('\n');
        if (print_job(&jobs->list[i], jobs->now) != 0
            || (links && print_links(&jobs->list[i], jobs->now) != 0))
            return 1;
    }
    return 0;
}

static double seconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / (double)COHI_NS_PER_S;
}

static json_t *links_json(const cohi_sight *sight)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < sight->link_count; i++) {
        const cohi_sight_link *link = &sight->links[i];
        json_t *peer = link->peer >= 0 ? json_integer(link->peer) : json_null();
        json_array_append_new(
            list, json_pack("{s:o, s:i, s:I, s:I, s:I, s:I}", "peer", peer, "peers",
                            (int)link->peers, "operations", (json_int_t)link->operations,
                            "sent_bytes", (json_int_t)link->sent, "received_bytes",
                            (json_int_t)link->received, "waits", (json_int_t)link->waits));
    }
    return list;
}

static json_t *rank_json(const struct job *job, int index, uint64_t now)
{
    cohi_sight sight;
    const char *host;
    char name[COHI_HOST_NAME_BYTES + 1] = "";
    int rank = look_at_rank(job, index, now, &host, &sight);
    json_t *row =
        json_pack("{s:i, s:s, s:s}", "rank", rank, "state", sight.state, "operation", sight.doing);
    if (host)
        memcpy(name, host, COHI_HOST_NAME_BYTES);
    json_object_set_new(row, "host", host ? cohi_json_text(name) : json_null());
    json_object_set_new(row, "pid", sight.pid ? json_integer(sight.pid) : json_null());
    json_object_set_new(row, "waiting_s",
                        sight.waiting_ns ? json_real(seconds(sight.waiting_ns)) : json_null());
    json_object_set_new(row, "waits_for",
                        sight.waits_for >= 0 ? json_integer(sight.waits_for) : json_null());
    json_object_set_new(row, "awaits", *sight.awaits ? json_string(sight.awaits) : json_null());
    json_object_set_new(row, "links", links_json(&sight));
    return row;
}

static json_t *job_json(const struct job *job, uint64_t now)
{
    struct view view = view_of(job);
    char program[64 + 1] = "", version[16 + 1] = "";
    memcpy(program, view.program, sizeof program - 1);
    memcpy(version, view.version, sizeof version - 1);
    json_t *ranks = json_array();
    for (int i = 0; i < view.count; i++)
        json_array_append_new(ranks, rank_json(job, i, now));
    const char *network = network_of(job, &view, now);
    json_t *protection = *network ? json_string(network) : json_null();
    json_t *launcher = view.launcher ? json_integer(view.launcher) : json_null();
    return json_pack("{s:o, s:o, s:o, s:i, s:f, s:o, s:o}", "program", cohi_json_text(program),
                     "version", cohi_json_text(version), "launcher", launcher, "size", view.size,
                     "age_s", seconds(age_of(&view, now)), "network", protection, "ranks", ranks);
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

struct wishes {
    int as_json, links;
};

static int take_json(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((struct wishes *)target)->as_json = 1;
    return 0;
}

static int take_links(void *target, const char *flag, const char *value)
{
    (void)flag;
    (void)value;
    ((struct wishes *)target)->links = 1;
    return 0;
}

static const cohi_flag_row flags[] = {
    {"json", 0, NULL, "print as JSON, links included", take_json},
    {"links", 0, NULL, "what went between each rank and those of other hosts", take_links},
    {NULL, 0, NULL, NULL, NULL},
};

static const cohi_usage usage = {
    .command = "cohort ps",
    .synopsis = "[--links] [--json]",
    .summary =
        "Shows the running jobs of this user and what each rank is doing, those on other hosts "
        "too\n"
        "where their launcher is on this one. It looks only; the ranks do not notice.",
    .flags = flags,
    .notes = NULL,
};

int cohi_tool_ps(int argc, char **argv)
{
    struct wishes wishes = {0};
    int status;
    if (cohi_flags_only(&usage, argc, argv, &wishes, &status) != 0)
        return status;
    struct jobs jobs = {.now = cohi_now_ns()};
    status = find_jobs(&jobs) != 0 ? 1
             : wishes.as_json      ? print_json(&jobs)
                                   : print_jobs(&jobs, wishes.links);
    for (size_t i = 0; i < jobs.count; i++)
        close_job(&jobs.list[i]);
    free(jobs.list);
    return status;
}
