#include "device/device.h"

#include "device/handle.h"
#include "device/options.h"

#include <errno.h>
#include <stdlib.h>

static const struct kind_row {
    const char *name;
    const cohi_device_kind *kind;
} kind_rows[] = {
    [COH_DEVICE_CPU] = {"cpu", &cohi_device_kind_cpu},
    [COH_DEVICE_CUDA] = {"cuda", &cohi_device_kind_cuda},
};

static const struct kind_row *find_kind(coh_device_kind kind)
{
    size_t index = (size_t)kind;
    return index < sizeof kind_rows / sizeof *kind_rows ? &kind_rows[index] : NULL;
}

const char *coh_device_kind_name(coh_device_kind kind)
{
    const struct kind_row *row = find_kind(kind);
    return row ? row->name : NULL;
}

/* The row of a kind that can be used, or why it cannot. */
static coh_status find_available(const char *call, coh_device_kind kind,
                                 const struct kind_row **row)
{
    *row = find_kind(kind);
    if (!*row)
        return coh_fail(COH_INVALID_ARGUMENT, "%s: %d is not a kind of device", call, (int)kind);
    const char *why = (*row)->kind->probe();
    if (why)
        return coh_fail(COH_NOT_AVAILABLE, "%s: %s: not available: %s", call, (*row)->name, why);
    return COH_OK;
}

coh_status coh_device_available(coh_device_kind kind)
{
    const struct kind_row *row;
    return find_available("coh_device_available", kind, &row);
}

coh_status coh_device_count(coh_device_kind kind, int *count)
{
    const struct kind_row *row = find_kind(kind);
    coh_status status = cohi_not_null("coh_device_count", "count", count);
    if (status == COH_OK && !row)
        return coh_fail(COH_INVALID_ARGUMENT, "coh_device_count: %d is not a kind of device",
                        (int)kind);
    if (status == COH_OK)
        *count = row->kind->probe() ? 0 : row->kind->count();
    return status;
}

static coh_device *make_device(coh_device_kind value, const cohi_device_kind *kind, int index)
{
    coh_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    coh_device_info facts = {0};
    kind->describe(index, &facts);
    device->kind_value = value;
    device->kind = kind;
    device->index = index;
    device->alignment = facts.alignment;
    pthread_mutex_init(&device->lock, NULL);
    return device;
}

coh_status coh_device_open(coh_device_kind kind, int index, coh_device **device)
{
    const char *call = "coh_device_open";
    const struct kind_row *row;
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = find_available(call, kind, &row);
    if (status != COH_OK)
        return status;
    if (index < 0 || index >= row->kind->count())
        return coh_fail(COH_INVALID_ARGUMENT, "%s: there is no %s %d; there are %d of them", call,
                        row->name, index, row->kind->count());
    coh_device *made = make_device(kind, row->kind, index);
    if (!made)
        return cohi_fail_errno(ENOMEM, "%s", call);
    *device = made;
    return COH_OK;
}

coh_status coh_device_close(coh_device *device)
{
    const char *call = "coh_device_close";
    if (!device)
        return COH_OK;
    uint64_t others = atomic_load(&device->holders) - cohi_handles_held(device);
    if (others > 0)
        return coh_fail(COH_BUSY,
                        "%s: %llu buffers, streams, events or open handles of the device are left; "
                        "destroy them first",
                        call, (unsigned long long)others);
    coh_status status = cohi_handles_free(device, call);
    if (status != COH_OK)
        return status;
    pthread_mutex_destroy(&device->lock);
    free(device);
    return COH_OK;
}

coh_status coh_device_query(coh_device *device, coh_device_info *info)
{
    const char *call = "coh_device_query";
    coh_status status = cohi_not_null(call, "device", device);
    if (status == COH_OK)
        status = cohi_options_check(call, info, sizeof *info);
    if (status != COH_OK)
        return status;
    info->kind = device->kind_value;
    info->index = device->index;
    device->kind->describe(device->index, info);
    info->held = atomic_load(&device->held);
    info->moved = atomic_load(&device->moved);
    return COH_OK;
}

void cohi_device_hold(coh_device *device)
{
    atomic_fetch_add(&device->holders, 1);
}

void cohi_device_release(coh_device *device)
{
    atomic_fetch_sub(&device->holders, 1);
}

void cohi_device_count_moved(coh_device *device, uint64_t bytes)
{
    atomic_fetch_add_explicit(&device->moved, bytes, memory_order_relaxed);
}
