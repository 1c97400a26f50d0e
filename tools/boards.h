/*
 * boards.h - the boards of one job whose hosts are all played by this machine.
 */
#ifndef COHI_TOOLS_BOARDS_H
#define COHI_TOOLS_BOARDS_H

#include "bootstrap/elsewhere.h"

typedef struct cohi_boards {
    cohi_board *list;
    int count;
} cohi_boards;

/* The board that has a slot for the rank, and that slot; NULL where none of them has. */
const cohi_board *cohi_boards_of(const cohi_boards *boards, int rank);
cohi_slot *cohi_boards_slot(const cohi_boards *boards, int rank);

/* Each board is told, the rank's own too. */
void cohi_boards_tell_end(const cohi_boards *boards, int rank, int wait_status);
void cohi_boards_tell_stopped(const cohi_boards *boards, int rank, bool stopped);

#endif
