#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static _Thread_local char sentence[COHI_SENTENCE_BYTES];

static const struct status_row {
    coh_status status;
    const char *name;
    const char *text;
} status_rows[] = {
#define ROW(constant, value, text) {constant, #constant, text},
    COH_STATUS_TABLE(ROW)
#undef ROW
};

static const struct status_row *find_status(coh_status status)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++)
        if (status_rows[i].status == status)
            return &status_rows[i];
    return NULL;
}

const char *coh_status_name(coh_status status)
{
    const struct status_row *row = find_status(status);
    return row ? row->name + strlen("COH_") : "UNKNOWN";
}

const char *coh_status_text(coh_status status)
{
    const struct status_row *row = find_status(status);
    return row ? row->text : "not a status of this library";
}

const char *coh_last_error(void)
{
    return sentence;
}

coh_status cohi_fail_v(coh_status status, const char *format, va_list arguments)
{
    int kept = errno;
    char fresh[COHI_SENTENCE_BYTES]; /* the arguments may point into the old sentence */
    vsnprintf(fresh, sizeof fresh, format, arguments);
    memcpy(sentence, fresh, sizeof sentence);
    errno = kept;
    return status;
}

coh_status cohi_fail(coh_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cohi_fail_v(status, format, arguments);
    va_end(arguments);
    return status;
}

coh_status cohi_fail_add(coh_status status, const char *format, ...)
{
    if (status != COH_PEER_LOST && status != COH_STALLED && status != COH_TIMED_OUT)
        return status;
    char more[COHI_SENTENCE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(more, sizeof more, format, arguments);
    va_end(arguments);
    return cohi_fail(status, "%s; %s", sentence, more);
}

coh_status coh_fail(coh_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    cohi_fail_v(status, format, arguments);
    va_end(arguments);
    return status;
}

static coh_status status_of_errno(int error)
{
    switch (error) {
    case ENOMEM:
    case ENOSPC:
        return COH_NO_MEMORY;
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case EAGAIN:
        return COH_LIMIT;
    case ENOSYS:
    case EPERM:
    case EACCES:
        return COH_NOT_AVAILABLE;
    default:
        return COH_SYSTEM;
    }
}

static void describe_descriptor_limit(char *text, size_t room)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, room, "; this process may have %llu descriptors (RLIMIT_NOFILE, ulimit -n)",
                 (unsigned long long)limit.rlim_cur);
}

static void describe_file_limit(char *text, size_t room)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(text, room, "; a file may have %llu bytes (RLIMIT_FSIZE, ulimit -f)",
                 (unsigned long long)limit.rlim_cur);
}

coh_status cohi_fail_os(int error, const char *format, ...)
{
    char what[COHI_SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    char limit[96] = "";
    if (error == EMFILE)
        describe_descriptor_limit(limit, sizeof limit);
    else if (error == EFBIG)
        describe_file_limit(limit, sizeof limit);
    const char *why = strerrordesc_np(error);
    return cohi_fail(status_of_errno(error), "%s: %s%s", what, why ? why : "unknown error", limit);
}
