/*
 * error.h - the status of a failed call and its error message.
 *
 * The function that decides on an error calls cohi_fail once; its callers only pass the status on.
 */
#ifndef COHI_BASE_ERROR_H
#define COHI_BASE_ERROR_H

#include <cohort.h>
#include <stdarg.h>

/* The longest error message, its final NUL included. Longer ones are cut. */
enum { COHI_ERROR_TEXT_BYTES = 1024 };

/* All that is kept of a failure. */
typedef struct cohi_error {
    char text[COHI_ERROR_TEXT_BYTES];
    coh_error facts;
} cohi_error;

/*
 * Sets the calling thread's error message and returns `status`. Keeps errno. The message begins with
 * "coh_call: " or "rank N: coh_call: ": the operation and the rank of its facts are taken from
 * there, so that they are stated once. The other facts are those of the calls below.
 */
coh_status cohi_fail(coh_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

coh_status cohi_fail_v(coh_status status, const char *format, va_list arguments)
    __attribute__((cold, format(printf, 2, 0)));

/* Adds the arguments of the call to the error message, where `status` tells of other ranks
 * (COH_PEER_LOST, COH_STALLED, COH_TIMED_OUT) and so was decided without them. Returns `status`. */
coh_status cohi_fail_add(coh_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* Replaces the message of the last failure and its status; its other facts stay. Returns `status`. */
coh_status cohi_fail_reworded(coh_status status, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

/*
 * Add to the facts of the last failure, which is `status`, and return it: the rank that it is about;
 * where, how long, and what the limit was, each COH_NO_FACT where there is none; the heap that the offset
 * is in.
 */
coh_status cohi_fail_peer(coh_status status, int peer) __attribute__((cold));
coh_status cohi_fail_range(coh_status status, uint64_t offset, uint64_t length, uint64_t limit)
    __attribute__((cold));
coh_status cohi_fail_heap(coh_status status, int heap) __attribute__((cold));

/* Keep the calling thread's last failure while something else may fail, and make a kept one the last
 * again, which returns its status. */
void cohi_error_keep(cohi_error *error);
coh_status cohi_fail_again(const cohi_error *error) __attribute__((cold));

/* Of failures that follow from each other the first is the one to tell: `before` if it is one, else `now`,
 * whose message is then kept in `first`. */
coh_status cohi_error_first(coh_status before, coh_status now, cohi_error *first);

/* As cohi_fail with COH_SYSTEM, or COH_LIMIT or COH_NO_MEMORY where `error` (an errno) says so, and
 * the errno's text at the end. */
coh_status cohi_fail_os(int error, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));

#endif
