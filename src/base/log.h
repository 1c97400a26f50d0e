/* log.h - leveled messages to the hook that the user set; see coh_log_to. */
#ifndef COHI_BASE_LOG_H
#define COHI_BASE_LOG_H

#include <cohort.h>

/* Sends one message when somebody listens at that level. Keeps errno and the last error. */
void cohi_log(coh_log_level level, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* Whether a message of that level would go anywhere; saves the work of composing it. */
int cohi_log_wants(coh_log_level level);

/* Listens on standard error up to `level`, unless the program set a hook. From COHORT_LOG. */
void cohi_log_default(coh_log_level level);

#endif
