/* queue.h - a doubly linked list whose links lie in what is listed, as the first member. */
#ifndef COHI_CORE_MESSAGE_QUEUE_H
#define COHI_CORE_MESSAGE_QUEUE_H

#include <stddef.h>

typedef struct cohi_link {
    struct cohi_link *next;
    struct cohi_link *prev;
} cohi_link;

/* The head is a link too, and points to itself when the queue is empty. */
typedef cohi_link cohi_queue;

static inline void cohi_queue_init(cohi_queue *queue)
{
    queue->next = queue->prev = queue;
}

static inline void cohi_queue_append(cohi_queue *queue, cohi_link *link)
{
    link->next = queue;
    link->prev = queue->prev;
    queue->prev->next = link;
    queue->prev = link;
}

static inline void cohi_queue_prepend(cohi_queue *queue, cohi_link *link)
{
    cohi_queue_append(queue->next, link);
}

static inline void cohi_queue_remove(cohi_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
}

static inline cohi_link *cohi_queue_first(const cohi_queue *queue)
{
    return queue->next == queue ? NULL : queue->next;
}

/* The one behind `link`, or NULL. */
static inline cohi_link *cohi_queue_next(const cohi_queue *queue, const cohi_link *link)
{
    return link->next == queue ? NULL : link->next;
}

#endif
