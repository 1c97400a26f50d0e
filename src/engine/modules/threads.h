/*
 * threads.h - threads that the library behind an engine starts.
 *
 * They are none of the program's, which could still do something for ranks that wait (core/health/watch.h).
 */
#ifndef COHI_ENGINE_MODULES_THREADS_H
#define COHI_ENGINE_MODULES_THREADS_H

enum { COHI_THREADS_MOST = 256 };

typedef struct cohi_threads {
    int count;
    int ids[COHI_THREADS_MOST];
} cohi_threads;

/* Those that there are. */
void cohi_threads_list(cohi_threads *found);

/* Those that came since are the library's. Not from several threads at a time, nor is the other. */
void cohi_threads_mark_new(const cohi_threads *before);

/* Takes the marks of those back that have ended: their ids may be the program's next. */
void cohi_threads_unmark_ended(void);

#endif
