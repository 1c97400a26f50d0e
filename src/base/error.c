#include "base/error.h"

#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define NO_FACTS                                                                       \
    {                                                                                  \
        .size = sizeof(coh_error), .status = COH_OK, .rank = -1, .peer = -1,           \
        .offset = COH_NO_FACT, .length = COH_NO_FACT, .limit = COH_NO_FACT, .heap = -1 \
    }

static _Thread_local cohi_error last = {.facts = NO_FACTS};

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
    return last.text;
}

coh_status coh_last_error_facts(coh_error *facts)
{
    static const char call[] = "coh_last_error_facts";
    const size_t least = offsetof(coh_error, limit) + sizeof facts->limit;
    if (!facts)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: facts is NULL", call);
    size_t size = facts->size;
    if (size < least)
        return cohi_fail(COH_INVALID_ARGUMENT, "%s: facts->size is %zu; at least %zu", call, size,
                         least);
    memcpy(facts, &last.facts, size < sizeof *facts ? size : sizeof *facts);
    facts->size = size;
    return COH_OK;
}

/* ---- failing ---- */

/* The operation and the rank, as the head of the message has them. */
static void read_head(const char *text, coh_error *facts)
{
    int rank, head = 0;
    if (sscanf(text, "rank %d: %n", &rank, &head) == 1 && head > 0)
        facts->rank = rank;
    size_t length = strspn(text + head, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (text[head + (int)length] == ':' && length < sizeof facts->operation
        && strncmp(text + head, "coh_", 4) == 0)
        memcpy(facts->operation, text + head, length); /* the rest is zero */
}

/* The arguments may point into the old message. */
static void compose(const char *format, va_list arguments)
{
    int kept = errno;
    char fresh[COHI_ERROR_TEXT_BYTES];
    vsnprintf(fresh, sizeof fresh, format, arguments);
    memcpy(last.text, fresh, sizeof last.text);
    errno = kept;
}

coh_status cohi_fail_v(coh_status status, const char *format, va_list arguments)
{
    compose(format, arguments);
    last.facts = (coh_error)NO_FACTS;
    last.facts.status = status;
    read_head(last.text, &last.facts);
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

coh_status cohi_fail_reworded(coh_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    compose(format, arguments);
    va_end(arguments);
    last.facts.status = status;
    return status;
}

coh_status cohi_fail_add(coh_status status, const char *format, ...)
{
    if (status != COH_PEER_LOST && status != COH_STALLED && status != COH_TIMED_OUT)
        return status;
    char more[COHI_ERROR_TEXT_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(more, sizeof more, format, arguments);
    va_end(arguments);
    return cohi_fail_reworded(status, "%s; %s", last.text, more);
}

coh_status cohi_fail_peer(coh_status status, int peer)
{
    last.facts.peer = peer;
    return status;
}

coh_status cohi_fail_range(coh_status status, uint64_t offset, uint64_t length, uint64_t limit)
{
    last.facts.offset = offset;
    last.facts.length = length;
    last.facts.limit = limit;
    return status;
}

coh_status cohi_fail_heap(coh_status status, int heap)
{
    last.facts.heap = heap;
    return status;
}

void cohi_error_keep(cohi_error *error)
{
    *error = last;
}

coh_status cohi_fail_again(const cohi_error *error)
{
    last = *error;
    return error->facts.status;
}

coh_status cohi_error_first(coh_status before, coh_status now, cohi_error *first)
{
    if (before == COH_OK && now != COH_OK)
        cohi_error_keep(first);
    return before != COH_OK ? before : now;
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
    char what[COHI_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    char limit[96] = "";
    if (error == EMFILE)
        describe_descriptor_limit(limit, sizeof limit);
    else if (error == EFBIG)
        describe_file_limit(limit, sizeof limit);
    return cohi_fail(status_of_errno(error), "%s: %s%s", what, cohi_os_error_text(error), limit);
}
