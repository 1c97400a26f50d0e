#include "device/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ALIGNMENT = 2 << 20 }; /* the symmetric heap's */

static coh_status check_size(const char *call, const void *record, size_t bytes)
{
    size_t size;
    memcpy(&size, record, sizeof size);
    if (size == bytes)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT,
                    "%s: the struct's size is %zu where this library knows %zu; set it, or start "
                    "from its INIT value",
                    call, size, bytes);
}

coh_status cohi_options_take(const char *call, const void *given, void *options, size_t bytes)
{
    if (!given)
        return COH_OK;
    coh_status status = check_size(call, given, bytes);
    if (status == COH_OK)
        memcpy(options, given, bytes);
    return status;
}

coh_status cohi_options_check(const char *call, const void *info, size_t bytes)
{
    coh_status status = cohi_not_null(call, "info", info);
    return status == COH_OK ? check_size(call, info, bytes) : status;
}

coh_status cohi_fail_errno(int error, const char *format, ...)
{
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    coh_status status = error == ENOMEM                      ? COH_NO_MEMORY
                        : error == EMFILE || error == EAGAIN ? COH_LIMIT
                                                             : COH_SYSTEM;
    const char *why = strerrordesc_np(error);
    return coh_fail(status, "%s: %s", what, why ? why : "unknown error");
}

coh_status cohi_not_null(const char *call, const char *what, const void *pointer)
{
    if (pointer)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "%s: %s is NULL", call, what);
}

coh_status cohi_alignment_take(const char *call, uint64_t asked, uint64_t usual,
                               uint64_t *alignment)
{
    if ((asked & (asked - 1)) != 0 || asked > MOST_ALIGNMENT)
        return coh_fail(COH_BAD_ALIGNMENT,
                        "%s: an alignment of %llu cannot be given; give a power of two up to %d",
                        call, (unsigned long long)asked, MOST_ALIGNMENT);
    *alignment = asked ? asked : usual;
    return COH_OK;
}
