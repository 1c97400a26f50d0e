#include "device/handle.h"

#include "device/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One named memory; all openings of it are this same object. */
struct coh_handle {
    coh_device *device;
    coh_handle *next;
    char name[COH_HANDLE_NAME_BYTES];
    coh_dtype dtype;
    uint64_t count;
    coh_world *world;
    coh_buffer *buffer;
    uint64_t openings; /* under the device's lock */
};

/* ---- the list; the caller has the device's lock ---- */

static coh_handle *find(const coh_device *device, const char *name)
{
    coh_handle *handle = device->handles;
    while (handle && strcmp(handle->name, name) != 0)
        handle = handle->next;
    return handle;
}

static void append(coh_device *device, coh_handle *handle)
{
    coh_handle **end = &device->handles;
    while (*end)
        end = &(*end)->next;
    *end = handle;
}

static void take_out(coh_device *device, const coh_handle *handle)
{
    coh_handle **link = &device->handles;
    while (*link != handle)
        link = &(*link)->next;
    *link = handle->next;
}

/* ---- making and opening ---- */

static coh_status check_name(const char *call, const char *name)
{
    coh_status status = cohi_not_null(call, "name", name);
    if (status != COH_OK)
        return status;
    size_t length = strnlen(name, COH_HANDLE_NAME_BYTES);
    if (length > 0 && length < COH_HANDLE_NAME_BYTES)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "%s: a name has 1 to %d bytes", call,
                    COH_HANDLE_NAME_BYTES - 1);
}

/* Whether what is there is what is asked for. */
static coh_status check_same(const char *call, const coh_handle *handle, coh_dtype dtype,
                             size_t count, const coh_world *world)
{
    if (handle->dtype != dtype)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' is of %s, and was asked for as %s", call,
                        handle->name, coh_dtype_name(handle->dtype), coh_dtype_name(dtype));
    if (handle->count != count)
        return coh_fail(COH_LENGTH_MISMATCH, "%s: '%s' has %llu elements, and was asked for as %zu",
                        call, handle->name, (unsigned long long)handle->count, count);
    if (handle->world != world)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s' lies in %s, and was asked for in %s", call,
                        handle->name, handle->world ? "a symmetric heap" : "the device's memory",
                        world ? "that of another world" : "the device's memory");
    return COH_OK;
}

static coh_status make(const char *call, coh_device *device, const char *name, coh_dtype dtype,
                       size_t count, coh_world *world, coh_handle **made)
{
    coh_buffer_options options = COH_BUFFER_OPTIONS_INIT;
    options.world = world;
    coh_handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return cohi_fail_errno(ENOMEM, "%s: '%s'", call, name);
    coh_status status =
        coh_buffer_create(device, count * coh_dtype_size(dtype), &options, &handle->buffer);
    if (status != COH_OK) {
        free(handle);
        return status;
    }
    handle->device = device;
    strcpy(handle->name, name);
    handle->dtype = dtype;
    handle->count = count;
    handle->world = world;
    *made = handle;
    return COH_OK;
}

static coh_status release(coh_handle *handle)
{
    coh_status status = coh_buffer_destroy(handle->buffer);
    free(handle);
    return status;
}

static coh_status check_named(const char *call, const coh_device *device, const char *name,
                              coh_handle **handle)
{
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = check_name(call, name);
    return status == COH_OK ? cohi_not_null(call, "handle", handle) : status;
}

static coh_status check_open(const char *call, coh_device *device, const char *name,
                             coh_dtype dtype, size_t count, coh_handle **handle)
{
    coh_status status = check_named(call, device, name, handle);
    if (status != COH_OK)
        return status;
    size_t each = coh_dtype_size(dtype);
    if (each == 0)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: '%s': %d is not a type of elements", call, name,
                        (int)dtype);
    if (count == 0 || count > SIZE_MAX / each)
        return coh_fail(COH_INVALID_ARGUMENT,
                        "%s: '%s': %zu elements of %zu bytes cannot be allocated", call, name,
                        count, each);
    return COH_OK;
}

/* An opening of what is there; NULL in *handle when nothing is. */
static coh_status open_known(const char *call, coh_device *device, const char *name,
                             coh_dtype dtype, size_t count, const coh_world *world,
                             coh_handle **handle)
{
    pthread_mutex_lock(&device->lock);
    *handle = find(device, name);
    coh_status status = *handle ? check_same(call, *handle, dtype, count, world) : COH_OK;
    if (*handle && status == COH_OK)
        (*handle)->openings++;
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* Puts what was made into the list, unless another thread was faster. */
static coh_status publish(const char *call, coh_handle *made)
{
    coh_device *device = made->device;
    pthread_mutex_lock(&device->lock);
    bool taken = find(device, made->name) != NULL;
    if (!taken) {
        made->openings = 1;
        append(device, made);
    }
    pthread_mutex_unlock(&device->lock);
    if (!taken)
        return COH_OK;
    return coh_fail(COH_BUSY, "%s: '%s' is being made by another thread", call, made->name);
}

coh_status coh_handle_open(coh_device *device, const char *name, coh_dtype dtype, size_t count,
                           coh_world *world, coh_handle **handle)
{
    const char *call = "coh_handle_open";
    coh_handle *found = NULL;
    coh_status status = check_open(call, device, name, dtype, count, handle);
    if (status == COH_OK)
        status = open_known(call, device, name, dtype, count, world, &found);
    if (status == COH_OK && !found) {
        /* Made without the lock, since a collective waits for others. */
        status = make(call, device, name, dtype, count, world, &found);
        if (status != COH_OK)
            return status;
        status = publish(call, found);
        if (status != COH_OK)
            release(found);
    }
    if (status == COH_OK)
        *handle = found;
    return status;
}

coh_status coh_handle_find(coh_device *device, const char *name, coh_handle **handle)
{
    const char *call = "coh_handle_find";
    coh_status status = check_named(call, device, name, handle);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    coh_handle *found = find(device, name);
    if (found)
        found->openings++;
    pthread_mutex_unlock(&device->lock);
    if (!found)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the device has no '%s'", call, name);
    *handle = found;
    return COH_OK;
}

coh_status coh_handle_close(coh_handle *handle)
{
    if (!handle)
        return COH_OK;
    coh_device *device = handle->device;
    pthread_mutex_lock(&device->lock);
    bool open = handle->openings > 0;
    if (open)
        handle->openings--;
    pthread_mutex_unlock(&device->lock);
    if (open)
        return COH_OK;
    return coh_fail(COH_INVALID_ARGUMENT, "coh_handle_close: '%s' is not open", handle->name);
}

/* ---- the end ---- */

coh_status coh_handle_drop(coh_device *device, const char *name)
{
    const char *call = "coh_handle_drop";
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = check_name(call, name);
    if (status != COH_OK)
        return status;
    pthread_mutex_lock(&device->lock);
    coh_handle *found = find(device, name);
    uint64_t openings = found ? found->openings : 0;
    if (found && openings == 0)
        take_out(device, found);
    pthread_mutex_unlock(&device->lock);
    if (!found)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: the device has no '%s'", call, name);
    if (openings > 0)
        return coh_fail(COH_BUSY, "%s: '%s' is open %llu times; close it first", call, name,
                        (unsigned long long)openings);
    return release(found);
}

uint64_t cohi_handles_held(coh_device *device)
{
    uint64_t idle = 0;
    pthread_mutex_lock(&device->lock);
    for (const coh_handle *handle = device->handles; handle; handle = handle->next)
        idle += handle->openings == 0;
    pthread_mutex_unlock(&device->lock);
    return idle;
}

coh_status cohi_handles_free(coh_device *device, const char *call)
{
    for (const coh_handle *handle = device->handles; handle; handle = handle->next)
        if (handle->world)
            return coh_fail(COH_BUSY,
                            "%s: '%s' lies in a symmetric heap, and is freed by all ranks "
                            "together; drop it first",
                            call, handle->name);
    coh_handle *handle;
    while ((handle = device->handles)) {
        device->handles = handle->next;
        release(handle);
    }
    return COH_OK;
}

/* ---- facts ---- */

coh_status coh_handle_query(const coh_handle *handle, coh_handle_info *info)
{
    const char *call = "coh_handle_query";
    coh_status status = cohi_not_null(call, "handle", handle);
    if (status == COH_OK)
        status = cohi_options_check(call, info, sizeof *info);
    if (status != COH_OK)
        return status;
    info->name = handle->name;
    info->dtype = handle->dtype;
    info->count = handle->count;
    info->buffer = handle->buffer;
    pthread_mutex_lock(&handle->device->lock);
    info->openings = handle->openings;
    pthread_mutex_unlock(&handle->device->lock);
    return COH_OK;
}

const char *coh_handle_name(coh_device *device, size_t index)
{
    if (!device)
        return NULL;
    pthread_mutex_lock(&device->lock);
    const coh_handle *handle = device->handles;
    while (handle && index-- > 0)
        handle = handle->next;
    pthread_mutex_unlock(&device->lock);
    return handle ? handle->name : NULL;
}
