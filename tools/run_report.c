#include "run.h"

#include "base/os.h"

#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { EXIT_TIMEOUT = 124, EXIT_NOT_RUNNABLE = 126, EXIT_NOT_FOUND = 127, EXIT_SIGNALLED = 128 };

void cohi_run_say(cohi_run *run, const char *format, ...)
{
    char text[1200] = "cohort run: ";
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - used - 1, format, arguments);
    va_end(arguments);
    cohi_output_say(&run->output, strcat(text, "\n"));
}

/* ---- the table ---- */

static const char *const titles[] = {"RANK", "PID", "STATE", "OPERATION", "WAITING", "END"};
enum { COLUMNS = sizeof titles / sizeof *titles };

static const char *unended(const cohi_run *run, const cohi_run_rank *state)
{
    if (!state->pid)
        return "was not started";
    return run->stage == COHI_STAGE_GONE ? "cannot be killed" : "not known";
}

static void describe_end(const cohi_run *run, int rank, char *text, size_t room)
{
    const cohi_run_rank *state = &run->ranks[rank];
    char how[96];
    cohi_describe_end(state->wait_status, how, sizeof how);
    if (!state->ended)
        snprintf(text, room, "%s", unended(run, state));
    else if (state->by_launcher)
        snprintf(text, room, "%s%s by cohort run", how,
                 WIFSIGNALED(state->wait_status) ? "," : "; ended");
    else if (cohi_run_unfinished(run, rank))
        snprintf(text, room, "exited without finalize");
    else
        snprintf(text, room, "%s", how);
}

static void fill_row(const cohi_run *run, int rank, cohi_table_row *row)
{
    const cohi_run_rank *state = &run->ranks[rank];
    const cohi_snapshot_row *snapshot = &run->charge.snapshot->rows[rank];
    int pid = atomic_load(&cohi_board_slot(&run->board, rank)->pid);
    snprintf(row->cell[0], COHI_CELL_BYTES, "%d", rank);
    if (pid || state->pid)
        snprintf(row->cell[1], COHI_CELL_BYTES, "%d", pid ? pid : (int)state->pid);
    int died = strcmp(snapshot->state, "gone") == 0 && cohi_run_failed(run, rank);
    snprintf(row->cell[2], COHI_CELL_BYTES, "%s", died ? "failed" : snapshot->state);
    snprintf(row->cell[3], COHI_CELL_BYTES, "%s", snapshot->operation);
    cohi_duration_text(snapshot->waiting_ns, row->cell[4], COHI_CELL_BYTES);
    describe_end(run, rank, row->cell[5], COHI_CELL_BYTES);
}

static void say_table(cohi_run *run)
{
    cohi_table table;
    char *text = NULL;
    size_t length;
    if (cohi_table_make(&table, titles, COLUMNS, (size_t)run->size) != 0)
        return;
    for (int rank = 0; rank < run->size; rank++)
        fill_row(run, rank, &table.rows[rank]);
    FILE *stream = open_memstream(&text, &length);
    if (stream) {
        cohi_table_print(&table, "  ", stream);
        fclose(stream);
        cohi_output_say(&run->output, text);
    }
    free(text);
    cohi_table_free(&table);
}

/* ---- the sentence and the status ---- */

/* The one that was found to be first, if it turned out to have failed; else the earliest that did.
 */
static int first_failed(const cohi_run *run)
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

static int status_of(const cohi_run *run, int rank)
{
    int wait_status = run->ranks[rank].wait_status;
    if (WIFSIGNALED(wait_status))
        return EXIT_SIGNALLED + WTERMSIG(wait_status);
    return cohi_run_unfinished(run, rank) ? 1 : WEXITSTATUS(wait_status);
}

/* A rank whose end nobody has told may have failed. */
static int report_unknown(cohi_run *run)
{
    for (int rank = 0; rank < run->size; rank++) {
        if (run->ranks[rank].ended)
            continue;
        cohi_run_say(run, "how rank %d of %d (process %d) ended is not known", rank, run->size,
                     (int)run->ranks[rank].pid);
        say_table(run);
        return 1;
    }
    return 0;
}

static int report_failure(cohi_run *run)
{
    int rank = first_failed(run);
    if (rank < 0)
        return report_unknown(run);
    char how[96];
    cohi_describe_end(run->ranks[rank].wait_status, how, sizeof how);
    cohi_run_say(run, "rank %d of %d (process %d) failed: it %s%s", rank, run->size,
                 (int)run->ranks[rank].pid,
                 cohi_run_unfinished(run, rank)              ? "exited without finalize"
                 : WIFSIGNALED(run->ranks[rank].wait_status) ? "was "
                                                             : "",
                 cohi_run_unfinished(run, rank) ? "" : how);
    say_table(run);
    return status_of(run, rank);
}

static int report_global_exit(cohi_run *run)
{
    if (run->why_value != 0) {
        cohi_run_say(run, "the program asked for the end of the job, with status %d",
                     run->why_value);
        say_table(run);
    }
    return run->why_value;
}

static int report_timeout(cohi_run *run)
{
    char limit[32];
    cohi_duration_text(run->options.timeout_ns, limit, sizeof limit);
    cohi_run_say(run, "the job was ended because it ran longer than --timeout, %s", limit);
    say_table(run);
    return EXIT_TIMEOUT;
}

/* A job that ended when it was asked to needs no table. */
static int report_signal(cohi_run *run)
{
    cohi_run_say(run, "interrupted by signal %d (%s)", run->why_value,
                 cohi_os_signal_text(run->why_value));
    if (run->stage > COHI_STAGE_ASKED)
        say_table(run);
    return EXIT_SIGNALLED + run->why_value;
}

static int report_output(cohi_run *run)
{
    if (run->why_value == EPIPE)
        return EXIT_SIGNALLED + SIGPIPE;
    cohi_run_say(run, "the job was ended because its output cannot be written: %s",
                 strerror(run->why_value));
    return 1;
}

static int report_no_start(cohi_run *run)
{
    return run->why_value == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

int cohi_run_report(cohi_run *run)
{
    static int (*const reports[])(cohi_run *) = {
        [COHI_WHY_NONE] = report_failure,
        [COHI_WHY_FAILED] = report_failure,
        [COHI_WHY_GLOBAL_EXIT] = report_global_exit,
        [COHI_WHY_NO_START] = report_no_start,
        [COHI_WHY_TIMEOUT] = report_timeout,
        [COHI_WHY_SIGNAL] = report_signal,
        [COHI_WHY_OUTPUT] = report_output,
    };
    if (run->why == COHI_WHY_NONE)
        cohi_snapshot_take(run->charge.snapshot, &run->board, 0);
    return reports[run->why](run);
}
