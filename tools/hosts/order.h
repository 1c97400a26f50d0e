/*
 * order.h - what the launcher asks of an agent: which ranks of which program to run.
 *
 * On the way it is a list of texts "KEY=VALUE", each with a 0 behind it.
 */
#ifndef COHI_TOOLS_ORDER_H
#define COHI_TOOLS_ORDER_H

#include "bootstrap/board.h"

#include <cohort.h>
#include <stddef.h>
#include <stdint.h>

/* Which core a rank may run on. */
typedef enum cohi_bind {
    COHI_BIND_NONE = 0, /* any */
    COHI_BIND_HOST,     /* the r-th of its host, for the r-th rank there */
    COHI_BIND_MACHINE   /* the r-th, for rank r: of hosts that one machine plays */
} cohi_bind;

/* A host of the job, and the first of its ranks; they have all up to the next host's. */
typedef struct cohi_order_host {
    int first;
    char name[COHI_HOST_NAME_BYTES];
} cohi_order_host;

typedef struct cohi_order {
    uint64_t job;       /* the same on all hosts */
    int size;           /* ranks of the world */
    int here;           /* which of `hosts` the agent is of */
    int bind;           /* cohi_bind */
    int input_fd;       /* for rank 0, of an agent that inherits it; -1: none */
    const char *folder; /* where to run; "": where the agent is */
    cohi_order_host *hosts;
    int host_count;
    char **command; /* NULL-terminated, as is the next */
    char **environment;
    int argument_count, variable_count;
    char *text; /* what the pointers above point into, where it was read */
} cohi_order;

/* The ranks of the agent's host. */
int cohi_order_first(const cohi_order *order);
int cohi_order_count(const cohi_order *order);

/* Writes the list; the caller frees *text. */
coh_status cohi_order_write(const cohi_order *order, char **text, size_t *length);

/* Reads a list and checks it: COH_INVALID_ARGUMENT says what is wrong. */
coh_status cohi_order_read(const char *text, size_t length, cohi_order *order);

/* Of one that was read. */
void cohi_order_free(cohi_order *order);

#endif
