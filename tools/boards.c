#include "boards.h"

const cohi_board *cohi_boards_of(const cohi_boards *boards, int rank)
{
    for (int i = 0; i < boards->count; i++)
        if (cohi_board_index(&boards->list[i], rank) >= 0)
            return &boards->list[i];
    return NULL;
}

cohi_slot *cohi_boards_slot(const cohi_boards *boards, int rank)
{
    const cohi_board *board = cohi_boards_of(boards, rank);
    return board ? cohi_board_slot(board, rank) : NULL;
}

void cohi_boards_tell_end(const cohi_boards *boards, int rank, int wait_status)
{
    for (int i = 0; i < boards->count; i++)
        cohi_board_tell_end(&boards->list[i], rank, wait_status);
}

void cohi_boards_tell_stopped(const cohi_boards *boards, int rank, bool stopped)
{
    unsigned op = atomic_load(&cohi_boards_slot(boards, rank)->op);
    for (int i = 0; i < boards->count; i++)
        cohi_board_tell_stopped(&boards->list[i], rank, stopped, op);
}
