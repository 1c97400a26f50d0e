/* worker.h - threads of this layer, which take no signals that are the program's. */
#ifndef COHI_DEVICE_WORKER_H
#define COHI_DEVICE_WORKER_H

#include <pthread.h>

/* Starts a thread with all signals blocked; 0 or an errno. `name` shows in ps and debuggers. */
int cohi_worker_start(const char *name, void *(*entry)(void *), void *arg, pthread_t *thread);

#endif
