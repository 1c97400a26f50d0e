#include "run/run.h"

#include "base/os.h"

#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_TIMEOUT = 124, EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNALLED = 128 };

void cohi_run_say(cohi_job *run, const char *format, ...)
{
    char text[1200] = "cohort run: ";
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used - 1, format, arguments);
    va_end(arguments);
    cohi_output_say(&run->output, strcat(text, "\n"));
}

/* The last line of a report: why the job ended. */
static void say_cause(cohi_job *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say_cause(cohi_job *run, const char *format, ...)
{
    char text[1100];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cohi_run_say(run, "%scause:%s %s", cohi_terminal_colour(&run->terminal, COHI_RED),
                 cohi_terminal_colour(&run->terminal, COHI_PLAIN), text);
}

/* ---- the table ---- */

enum { RANK, HOST, PID, STATE, OPERATION, WAITING, FOR, END, COLUMNS };
static const char *const titles[COLUMNS] = {"RANK",      "HOST",    "PID", "STATE",
                                            "OPERATION", "WAITING", "FOR", "END"};

static const char *unended(const cohi_job *run, const cohi_run_rank *state)
{
    if (!state->pid)
        return "was not started";
    return run->stage == COHI_STAGE_GONE ? "cannot be killed" : "not known";
}

static void describe_end(const cohi_job *run, int rank, char *text, size_t room)
{
    const cohi_run_rank *state = &run->ranks[rank];
    char how[96];
    cohi_describe_end(state->wait_status, how, sizeof how);
    if (!state->ended)
        snprintf(text, room, "%s", unended(run, state));
    else if (state->lost)
        snprintf(text, room, "lost with its host");
    else if (state->by_launcher)
        snprintf(text, room, "%s%s by cohort run", how,
                 WIFSIGNALED(state->wait_status) ? "," : "; ended");
    else if (cohi_run_unfinished(run, rank))
        snprintf(text, room, "exited without finalize");
    else
        snprintf(text, room, "%s", how);
}

/* It failed, and not because of another. */
static int is_culprit(const cohi_job *run, int rank)
{
    return cohi_run_failed(run, rank) && (rank == run->first || !cohi_run_followed(run, rank));
}

/* As it is now; what it did when the job began to fail is in the other columns. */
static const char *state_of(const cohi_job *run, int rank)
{
    const cohi_run_rank *state = &run->ranks[rank];
    if (!state->ended)
        return state->pid ? "unknown" : "-";
    if (is_culprit(run, rank))
        return "failed";
    if (state->lost)
        return "lost";
    return cohi_run_failed(run, rank) || state->by_launcher ? "ended" : "done";
}

static void fill_row(const cohi_job *run, int rank, cohi_table_row *row)
{
    const cohi_run_rank *state = &run->ranks[rank];
    const cohi_snapshot_row *snapshot = &run->snapshot->rows[rank];
    int pid = run->facts[rank].pid;
    snprintf(row->cell[RANK], COHI_TABLE_CELL_BYTES, "%d", rank);
    snprintf(row->cell[HOST], COHI_TABLE_CELL_BYTES, "%s", state->host ? state->host : "");
    if (pid || state->pid)
        snprintf(row->cell[PID], COHI_TABLE_CELL_BYTES, "%d", pid ? pid : (int)state->pid);
    int stopped = strcmp(snapshot->state, "stopped") == 0;
    snprintf(row->cell[STATE], COHI_TABLE_CELL_BYTES, "%s", state_of(run, rank));
    snprintf(row->cell[OPERATION], COHI_TABLE_CELL_BYTES, "%s%s", snapshot->operation,
             stopped ? ", stopped" : "");
    cohi_duration_text(snapshot->waiting_ns, row->cell[WAITING], COHI_TABLE_CELL_BYTES);
    snprintf(row->cell[FOR], COHI_TABLE_CELL_BYTES, "%s", snapshot->awaits);
    describe_end(run, rank, row->cell[END], COHI_TABLE_CELL_BYTES);
}

/* Line by line, those of ranks that failed in red. The first line has the titles. */
static void say_rows(cohi_job *run, char *text)
{
    int rank = -1;
    for (char *line = text, *feed; (feed = strchr(line, '\n')); line = feed + 1, rank++) {
        int red = rank >= 0 && run->terminal.colours && is_culprit(run, rank);
        *feed = '\0';
        if (red)
            cohi_output_say(&run->output, cohi_terminal_colour(&run->terminal, COHI_RED));
        cohi_output_say(&run->output, line);
        cohi_output_say(&run->output, red ? cohi_terminal_colour(&run->terminal, COHI_PLAIN) : "");
        cohi_output_say(&run->output, "\n");
    }
}

static void say_table(cohi_job *run)
{
    cohi_table table;
    char *text = NULL;
    size_t length;
    if (cohi_table_make(&table, titles, COLUMNS, (size_t)run->size) != 0)
        return;
    if (!run->ranks[0].host)
        cohi_table_hide(&table, HOST);
    for (int rank = 0; rank < run->size; rank++)
        fill_row(run, rank, &table.rows[rank]);
    FILE *stream = open_memstream(&text, &length);
    if (stream) {
        cohi_table_print(&table, "  ", stream);
        fclose(stream);
        say_rows(run, text);
    }
    free(text);
    cohi_table_free(&table);
}

/* ---- the cause and the status ---- */

/* An error that the rank met longer ago than this was not why it ended. */
#define ERROR_COUNTS_NS (5 * COHI_NS_PER_S)

/* The one that was found to be first, if it turned out to have failed; else the earliest that did.
 */
static int first_failed(const cohi_job *run)
{
    if (run->first >= 0 && cohi_run_failed(run, run->first))
        return run->first;
    int first = -1;
    for (int rank = 0; rank < run->size; rank++) {
        if (cohi_run_failed(run, rank)
            && (first < 0 || run->ranks[rank].ended_ns < run->ranks[first].ended_ns))
            first = rank;
    }
    return first;
}

static int status_of(const cohi_job *run, int rank)
{
    int wait_status = run->ranks[rank].wait_status;
    if (WIFSIGNALED(wait_status))
        return EXIT_SIGNALLED + WTERMSIG(wait_status);
    return cohi_run_unfinished(run, rank) ? 1 : WEXITSTATUS(wait_status);
}

/* A rank whose end nobody has told may have failed. */
static int report_unknown(cohi_job *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].ended)
            continue;
        say_table(run);
        say_cause(run, "how rank %d of %d (process %d) ended is not known", rank, run->size,
                  (int)run->ranks[rank].pid);
        return 1;
    }
    return 0;
}

/* "; coh_put: there is no rank 9; ..." where the rank ended by itself after a call that failed, else
 * ", in barrier #3" where it was in a call. */
static void describe_call(const cohi_job *run, int rank, char *text, size_t room)
{
    const cohi_run_rank *state = &run->ranks[rank];
    const char *operation = run->snapshot->rows[rank].operation;
    const cohi_facts *facts = &run->facts[rank];
    int by_itself = !WIFSIGNALED(state->wait_status) || WTERMSIG(state->wait_status) == SIGABRT;
    *text = '\0';
    if (by_itself && facts->error_ns > 0 && facts->error_ns + ERROR_COUNTS_NS > state->ended_ns)
        snprintf(text, room, "; %s: %s", coh_status_name((coh_status)facts->error_status),
                 facts->error);
    else if (facts->phase == COHI_PHASE_RUNNING && facts->in_call)
        snprintf(text, room, ", in %s", operation);
}

/* Ranks may go on after a race was named to them, and end well. */
static int report_race(cohi_job *run)
{
    if (!*run->race)
        return 0;
    cohi_run_say(run, "race: %s", run->race);
    return 1;
}

static int report_failure(cohi_job *run)
{
    int rank = first_failed(run), race = report_race(run);
    if (rank < 0)
        return race ? race : report_unknown(run);
    char how[96], host[64] = "this host", call[COHI_ERROR_BYTES + 64];
    int wait_status = run->ranks[rank].wait_status, unfinished = cohi_run_unfinished(run, rank);
    cohi_describe_end(wait_status, how, sizeof how);
    describe_call(run, rank, call, sizeof call);
    if (run->ranks[rank].host)
        snprintf(host, sizeof host, "host %s", run->ranks[rank].host);
    else
        (void)gethostname(host, sizeof host - 1);
    say_table(run);
    say_cause(run, "rank %d of %d on %s (process %d) %s%s%s", rank, run->size, host,
              (int)run->ranks[rank].pid, WIFSIGNALED(wait_status) ? "was " : "",
              unfinished ? "exited without finalize" : how, call);
    return status_of(run, rank);
}

static int report_global_exit(cohi_job *run)
{
    if (run->why_value != 0) {
        say_table(run);
        say_cause(run, "the program asked for the end of the job, with status %d", run->why_value);
    }
    return run->why_value;
}

static int waiters_of(const cohi_job *run, int rank)
{
    int count = 0;
    for (int other = 0; other < run->size; other++)
        count += other != rank && run->snapshot->rows[other].waits_for == rank;
    return count;
}

/* "; 2 of 3 ranks waited for rank 1, outside Cohort", of the rank that most waited for. */
static void describe_awaited(const cohi_job *run, char *text, size_t room)
{
    int awaited = 0;
    for (int rank = 1; rank < run->size; rank++) {
        if (waiters_of(run, rank) > waiters_of(run, awaited))
            awaited = rank;
    }
    *text = '\0';
    if (waiters_of(run, awaited) > 0)
        snprintf(text, room, "; %d of %d ranks waited for rank %d, %s", waiters_of(run, awaited),
                 run->size, awaited, run->snapshot->rows[awaited].operation);
}

static int report_timeout(cohi_job *run)
{
    char limit[32], awaited[128];
    cohi_duration_text(run->options.timeout_ns, limit, sizeof limit);
    describe_awaited(run, awaited, sizeof awaited);
    say_table(run);
    say_cause(run, "the job ran longer than --timeout, %s%s", limit, awaited);
    return EXIT_TIMEOUT;
}

/* A job that ended when it was asked to needs no table. */
static int report_signal(cohi_job *run)
{
    if (run->stage > COHI_STAGE_ASKED)
        say_table(run);
    say_cause(run, "interrupted by signal %d (%s)", run->why_value,
              cohi_os_signal_text(run->why_value));
    return EXIT_SIGNALLED + run->why_value;
}

static int report_output(cohi_job *run)
{
    if (run->why_value == EPIPE)
        return EXIT_SIGNALLED + SIGPIPE;
    say_cause(run, "the output of the job cannot be written: %s", strerror(run->why_value));
    return 1;
}

/* What was said when the host was given up is the cause. */
static int report_no_host(cohi_job *run)
{
    (void)run;
    return 1;
}

static int report_host_lost(cohi_job *run)
{
    say_table(run);
    say_cause(run, "%s", run->lost_host);
    return 1;
}

static int report_no_start(cohi_job *run)
{
    return run->why_value == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

int cohi_run_report(cohi_job *run)
{
    static int (*const reports[])(cohi_job *) = {
        [COHI_WHY_NONE] = report_failure,
        [COHI_WHY_FAILED] = report_failure,
        [COHI_WHY_GLOBAL_EXIT] = report_global_exit,
        [COHI_WHY_NO_START] = report_no_start,
        [COHI_WHY_NO_HOST] = report_no_host,
        [COHI_WHY_HOST_LOST] = report_host_lost,
        [COHI_WHY_TIMEOUT] = report_timeout,
        [COHI_WHY_SIGNAL] = report_signal,
        [COHI_WHY_OUTPUT] = report_output,
    };
    run->means->look(run);
    if (run->why == COHI_WHY_NONE)
        run->means->snapshot(run, 0);
    return reports[run->why](run);
}
