/*
 * Room: start.
 *
 * Init, ranks as threads, the end of a world, and what a process sets up once.
 * Uses all rooms of libcohort, and none uses it: it is where tables are filled in.
 * Hides the order in which rooms are set up and torn down.
 */
/* init.h - the steps of making a world, in the order in which all ranks take them. */
#ifndef COHI_START_INIT_H
#define COHI_START_INIT_H

#include "core/world/world.h"

/* 0. The job's board on this host, with the profile that its ranks will use: made by their leader,
 *    where no launcher has. With `measure` the start may spend time on what is not known of the
 *    host; else the profile is taken as it is kept. `spec` has the ranks and the job. */
coh_status cohi_init_board(const cohi_board_spec *spec, bool measure, const cohi_config *config,
                           cohi_board *board);

/* 1. Opens the engine and starts the card that tells the others of this rank. world->board, group
 *    or crew, rank and size are set. */
coh_status cohi_init_open(coh_world *world, const cohi_engine *engine, const coh_options *options,
                          const cohi_config *config, uint64_t deadline_ns, cohi_card *card);

/* 2. Given all cards: connects the endpoints, adds this rank's segments and writes their keys on
 *    its card, whose descriptors stay the world's. */
coh_status cohi_init_connect(coh_world *world, const cohi_card *cards, cohi_card *card);

/* 3. Given all cards again: reaches the peers' segments, sets up heap and team. Closes the cards'
 *    descriptors that it does not keep. */
coh_status cohi_init_attach(coh_world *world, const cohi_config *config, cohi_card *cards);

/* Shows on the board that this rank has come to init. */
void cohi_init_announce(cohi_slot *slot);

/* What engines tell core. */
extern const cohi_upcalls cohi_core_upcalls;

/* The upcall `part` (finalize.c). */
void cohi_finalize_ahead(void *world);

#endif
