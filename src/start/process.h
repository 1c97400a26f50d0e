/* process.h - what a process sets up once, for all worlds that it makes: threads that end, forks,
 * exit. */
#ifndef COHI_START_PROCESS_H
#define COHI_START_PROCESS_H

#include <cohort.h>

/* Before the first world. A step that fails is tried again by the next call. */
coh_status cohi_process_set_up(void);

#endif
