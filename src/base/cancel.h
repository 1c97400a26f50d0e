/*
 * cancel.h - holds back pthread_cancel(3).
 *
 * A thread that ended inside a call would leave locks taken, and others writing to its stack. So
 * nothing that a call does is a cancellation point: what would be one (files, sockets, condition
 * variables, a log hook) is done between these two. A request to cancel the thread stays pending
 * until the program comes to a cancellation point of its own. Sleeping on a word is none.
 */
#ifndef COHI_BASE_CANCEL_H
#define COHI_BASE_CANCEL_H

#include <pthread.h>

/* What is to be given to cohi_cancel_release; the two may be nested. */
static inline int cohi_cancel_hold(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void cohi_cancel_release(int before)
{
    pthread_setcancelstate(before, NULL);
}

#endif
