/*
 * failure.h - a failure and its error message, kept for a thread that reports it later or while
 * cleaning up calls what may fail as well. Made of libcohort's public interface, for all of
 * libcohort-ml.
 */
#ifndef COHI_DEVICE_FAILURE_H
#define COHI_DEVICE_FAILURE_H

#include <cohort.h>
#include <stdio.h>

typedef struct cohi_failure {
    coh_status status;
    char text[1024]; /* as long as libcohort's messages are */
} cohi_failure;

/* The calling thread's last error, as the failure `status`; where that is empty, the status's
 * text. */
static inline void cohi_failure_keep(cohi_failure *failure, coh_status status)
{
    const char *why = coh_last_error();
    failure->status = status;
    snprintf(failure->text, sizeof failure->text, "%s", *why ? why : coh_status_text(status));
}

/* Makes it the calling thread's last error, and returns its status. COH_OK leaves the last error as
 * it is. */
static inline coh_status cohi_failure_again(const cohi_failure *failure)
{
    return failure->status == COH_OK ? COH_OK : coh_fail(failure->status, "%s", failure->text);
}

#endif
