/*
 * limit_link.h - what a link between two hosts could do at best: a bare TCP connection whose ends poll,
 * and the same with records that are sealed and opened as secure/seal.h does.
 *
 * Both ranks call each function at the same time, `leads` on one of them. They return 0, or -1 where
 * the connection ended.
 */
#ifndef COHI_TOOLS_BENCH_LIMIT_LINK_H
#define COHI_TOOLS_BENCH_LIMIT_LINK_H

#include "secure/seal.h"

#include <stdint.h>

typedef struct cohi_limit_link {
    int fd;
    int leads;
    int yields; /* the other side may need this very core: it is given up where nothing can be moved */
    cohi_seals seals; /* none: in the clear */
    unsigned char *record;
    unsigned char *plain; /* where records are opened, before they are copied on */
} cohi_limit_link;

/* The one that leads listens at a port of the loopback, which the other is then told by other means. */
int cohi_limit_link_listen(int *listener, uint16_t *port);
int cohi_limit_link_open(cohi_limit_link *link, int leads, int listener, uint16_t port, int sealed);
void cohi_limit_link_close(cohi_limit_link *link);

/* `bytes`, at most 64, there and back again, `repeats` times. */
int cohi_limit_link_turns(cohi_limit_link *link, uint64_t bytes, uint64_t repeats);

/* All of `memory` to the other side's, in pieces of a megabyte, or records; then a byte comes back. */
int cohi_limit_link_move(cohi_limit_link *link, char *memory, uint64_t bytes);

/* An all_reduce of floats between the two, half each: the other half goes, this one comes and is added
 * into `target`, and both halves of that are exchanged. `scratch` has room for half. */
int cohi_limit_link_reduce(cohi_limit_link *link, const char *source, char *target, char *scratch,
                           uint64_t bytes);

#endif
