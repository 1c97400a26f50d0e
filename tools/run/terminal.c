#include "run/run.h"

#include "run/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first look at who is missing, and the time between two. */
#define FIRST_LOOK_NS (700 * COHI_NS_PER_MS)
#define LOOK_NS       (500 * COHI_NS_PER_MS)
/* A program of which no rank has joined by then may never: it may read what the user types, which the
 * note would wipe. */
#define HOPES_NS (10 * COHI_NS_PER_S)

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static int is_dumb(void)
{
    return !is_set("TERM") || strcmp(getenv("TERM"), "dumb") == 0;
}

static void say_start(cohi_job *run)
{
    const cohi_run_options *options = &run->options;
    char hosts[32] = "";
    if (options->hosts.count > 1)
        snprintf(hosts, sizeof hosts, " on %d hosts", options->hosts.count);
    cohi_run_say(run, "%s%d rank%s of %s%s%s%s%s%s%s%s",
                 cohi_terminal_colour(&run->terminal, COHI_DIM), run->size,
                 run->size == 1 ? "" : "s", options->command[0], hosts,
                 options->engine ? ", engine " : "", options->engine ? options->engine : "",
                 options->heap ? ", heap " : "", options->heap ? options->heap : "",
                 options->bind_core ? ", a core each" : "",
                 cohi_terminal_colour(&run->terminal, COHI_PLAIN));
}

void cohi_terminal_begin(cohi_job *run)
{
    cohi_terminal *terminal = &run->terminal;
    terminal->lively = run->output.error_sink->terminal && !is_dumb();
    terminal->colours = terminal->lively && !is_set("NO_COLOR");
    terminal->began_ns = cohi_now_ns();
    terminal->look_at_ns = terminal->lively ? terminal->began_ns + FIRST_LOOK_NS : UINT64_MAX;
    if (terminal->lively)
        say_start(run);
}

const char *cohi_terminal_colour(const cohi_terminal *terminal, cohi_colour colour)
{
    static const char *const sequences[] = {
        [COHI_PLAIN] = "\033[0m", [COHI_RED] = "\033[1;31m", [COHI_DIM] = "\033[2m"};
    return terminal->colours ? sequences[colour] : "";
}

/* How far the ranks have come. */
struct joining {
    cohi_ranks absent; /* that have not called coh_init, and have not ended */
    int absent_count;
    int inside; /* coh_init */
    int come;   /* to it, at any time */
};

static struct joining look_at_ranks(const cohi_job *run)
{
    struct joining seen = {.absent_count = 0};
    for (int rank = 0; rank < run->size; rank++) {
        unsigned phase = run->facts[rank].phase;
        seen.inside += phase == COHI_PHASE_JOINING;
        seen.come += phase != COHI_PHASE_ABSENT;
        if (phase != COHI_PHASE_ABSENT || run->ranks[rank].ended)
            continue;
        cohi_ranks_add(&seen.absent, rank);
        seen.absent_count++;
    }
    return seen;
}

/* "" where there is nothing to say. */
static void describe(const cohi_job *run, const struct joining *seen, uint64_t waited_ns,
                     char *text, size_t room)
{
    char names[48];
    unsigned seconds = (unsigned)(waited_ns / COHI_NS_PER_S);
    cohi_ranks_text(&seen->absent, run->size, names, sizeof names);
    *text = '\0';
    if (seen->come == 0 && waited_ns < HOPES_NS)
        snprintf(text, room, "no rank has called coh_init yet, %u s", seconds);
    else if (seen->come > 0 && seen->absent_count > 0)
        snprintf(text, room, "waiting for %s of %d to join, %u s", names, run->size, seconds);
    else if (seen->inside > 0)
        snprintf(text, room, "%d of %d ranks are joining, %u s", seen->inside, run->size, seconds);
}

/* "waiting for hosts b, c"; "" where there are none to wait for. */
static void describe_hosts(const cohi_job *run, unsigned seconds, char *text, size_t room)
{
    char names[64];
    int count = run->means->absent_hosts(run, names, sizeof names);
    *text = '\0';
    if (count > 0)
        snprintf(text, room, "waiting for host%s %s, %u s", count > 1 ? "s" : "", names, seconds);
}

/* A job that is ending waits for nobody to join. */
void cohi_terminal_tick(cohi_job *run, uint64_t now)
{
    cohi_terminal *terminal = &run->terminal;
    char text[128], note[192] = "";
    if (now < terminal->look_at_ns)
        return;
    run->means->look(run);
    struct joining seen = look_at_ranks(run);
    if (run->why != COHI_WHY_NONE || seen.absent_count + seen.inside == 0) {
        cohi_terminal_end(run);
        return;
    }
    describe_hosts(run, (unsigned)((now - terminal->began_ns) / COHI_NS_PER_S), text, sizeof text);
    if (!*text)
        describe(run, &seen, now - terminal->began_ns, text, sizeof text);
    if (*text)
        snprintf(note, sizeof note, "%scohort run: %s%s", cohi_terminal_colour(terminal, COHI_DIM),
                 text, cohi_terminal_colour(terminal, COHI_PLAIN));
    cohi_sink_note(run->output.error_sink, note);
    terminal->look_at_ns = now + LOOK_NS;
}

void cohi_terminal_end(cohi_job *run)
{
    run->terminal.look_at_ns = UINT64_MAX;
    cohi_sink_note(run->output.error_sink, "");
}
