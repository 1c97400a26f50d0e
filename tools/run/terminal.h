/*
 * run/terminal.h - what `cohort run` shows on a terminal alone: what it starts, for whom it waits
 * until all ranks have joined, and colours. Where standard error is no terminal, or TERM says that
 * it is a dumb one, nothing of it; NO_COLOR leaves out the colours.
 */
#ifndef COHI_TOOLS_RUN_TERMINAL_H
#define COHI_TOOLS_RUN_TERMINAL_H

#include <stdint.h>

struct cohi_job;

typedef enum cohi_colour { COHI_PLAIN = 0, COHI_RED, COHI_DIM } cohi_colour;

typedef struct cohi_terminal {
    int lively;
    int colours;
    uint64_t began_ns;
    uint64_t look_at_ns; /* for whom it waits; UINT64_MAX: all have joined */
} cohi_terminal;

/* Before the ranks are started: says what will be. */
void cohi_terminal_begin(struct cohi_job *run);

/* Writes, changes or wipes the line on who has not joined, when it is time to. */
void cohi_terminal_tick(struct cohi_job *run, uint64_t now);

/* Wipes it for good. */
void cohi_terminal_end(struct cohi_job *run);

/* The sequence that begins the colour; "" where there are none. COHI_PLAIN ends one. */
const char *cohi_terminal_colour(const cohi_terminal *terminal, cohi_colour colour);

#endif
