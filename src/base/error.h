/*
 * error.h - the status of a failed call and its sentence.
 *
 * The function that decides on an error calls cohi_fail once; its callers only pass the status on.
 */
#ifndef COHI_BASE_ERROR_H
#define COHI_BASE_ERROR_H

#include <cohort.h>
#include <stdarg.h>

/* The longest sentence kept, its final NUL included. Longer ones are cut. */
enum { COHI_SENTENCE_BYTES = 1024 };

/* Sets the calling thread's sentence and returns `status`. Keeps errno. */
coh_status cohi_fail(coh_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

coh_status cohi_fail_v(coh_status status, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* Adds to the sentence what the call was to do, where `status` tells of other ranks (COH_PEER_LOST,
 * COH_STALLED, COH_TIMED_OUT) and so was decided on without the arguments. Returns `status`. */
coh_status cohi_fail_add(coh_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* As cohi_fail with COH_SYSTEM, or COH_LIMIT or COH_NO_MEMORY where `error` (an errno) says so, and
 * the errno's text at the end. */
coh_status cohi_fail_os(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
