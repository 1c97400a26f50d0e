/*
 * services.c - in every module: the library's private functions, by the table of services.
 */
#include "base/error.h"
#include "base/log.h"
#include "engine/module.h"
#include "engine/modules/services.h"

#include <stdarg.h>
#include <stdio.h>

static const cohi_services *services;

void cohi_services_set(const cohi_services *given)
{
    services = given;
}

coh_status cohi_fail(coh_status status, const char *format, ...)
{
    char message[COHI_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return services->fail(status, message);
}

coh_status cohi_fail_os(int error, const char *format, ...)
{
    char message[COHI_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return services->fail_os(error, message);
}

int cohi_log_wants(coh_log_level level)
{
    return services->log_wants(level);
}

void cohi_log(coh_log_level level, const char *format, ...)
{
    char message[COHI_ERROR_TEXT_BYTES];
    if (!services->log_wants(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    services->log(level, message);
}

coh_status cohi_host_region_shared(uint64_t bytes, int huge, cohi_host_region *region)
{
    return services->region_shared(bytes, huge, region);
}

coh_status cohi_host_region_prepared(uint64_t bytes, int huge, cohi_host_region *region)
{
    return services->region_prepared(bytes, huge, region);
}

coh_status cohi_host_region_attach(int fd, uint64_t bytes, int huge, cohi_host_region *region)
{
    return services->region_attach(fd, bytes, huge, region);
}

coh_status cohi_host_region_commit(cohi_host_region *region, uint64_t from, uint64_t to)
{
    return services->region_commit(region, from, to);
}

void cohi_host_region_decommit(cohi_host_region *region, uint64_t from, uint64_t to)
{
    services->region_decommit(region, from, to);
}

void cohi_host_region_release(cohi_host_region *region)
{
    services->region_release(region);
}

void cohi_os_thread_serves(bool serves)
{
    services->thread_serves(serves);
}

void cohi_os_thread_serves_as(int thread, bool serves)
{
    services->thread_serves_as(thread, serves);
}
