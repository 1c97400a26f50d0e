/* convert_call.c - coh_convert: the kernels of convert.c behind checked arguments. */
#include "base/error.h"
#include "memory/convert.h"

static coh_status check_side(const char *side, const void *memory, coh_dtype dtype, size_t count)
{
    size_t each = coh_dtype_size(dtype);
    if (each == 0)
        return cohi_fail(COH_INVALID_ARGUMENT, "coh_convert: %s: %d is not a type of elements",
                         side, (int)dtype);
    if (!memory && count > 0)
        return cohi_fail(COH_INVALID_ARGUMENT, "coh_convert: the %s is NULL", side);
    if ((uintptr_t)memory % each != 0)
        return cohi_fail(COH_BAD_ALIGNMENT,
                         "coh_convert: the %s is not aligned to the %zu bytes of an element of %s",
                         side, each, coh_dtype_name(dtype));
    if (count > SIZE_MAX / each)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_convert: %s: %zu elements of %zu bytes are more than memory can have",
                         side, count, each);
    return COH_OK;
}

coh_status coh_convert(void *target, coh_dtype to, const void *source, coh_dtype from, size_t count)
{
    coh_status status = check_side("target", target, to, count);
    if (status == COH_OK)
        status = check_side("source", source, from, count);
    if (status != COH_OK || count == 0)
        return status;
    if (cohi_convert(target, to, source, from, count))
        return COH_OK;
    return cohi_fail(COH_UNSUPPORTED, "coh_convert: from %s to %s; one of them must be f32",
                     coh_dtype_name(from), coh_dtype_name(to));
}
