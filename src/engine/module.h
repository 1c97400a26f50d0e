/*
 * module.h - engines in files of their own, which are opened at run time.
 *
 * A module is a shared object "cohort-NAME.so" (a colon in the name is a hyphen there) that exports one
 * symbol, `cohort_module`. It is built from the same sources as the library, and refused when it was
 * built for another contract, another version, or with other structures. What it needs of the library
 * reaches it by a table of services, since the
 * library exports nothing but its public interface: modules/services.c turns that table into the
 * private functions of the same names, so that the code of an engine is the same
 * inside the library and outside.
 */
#ifndef COHI_ENGINE_MODULE_H
#define COHI_ENGINE_MODULE_H

#include "base/log.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "memory/host_region.h"

#include <stdbool.h>

/* What there is one of in a process, or what must be the library's own. */
typedef struct cohi_services {
    size_t size;
    coh_status (*fail)(coh_status status, const char *message);
    coh_status (*fail_os)(int error, const char *message);
    int (*log_wants)(coh_log_level level);
    void (*log)(coh_log_level level, const char *message);
    coh_status (*region_shared)(uint64_t bytes, int huge, cohi_host_region *region);
    coh_status (*region_prepared)(uint64_t bytes, int huge, cohi_host_region *region);
    coh_status (*region_attach)(int fd, uint64_t bytes, int huge, cohi_host_region *region);
    coh_status (*region_commit)(cohi_host_region *region, uint64_t from, uint64_t to);
    void (*region_decommit)(cohi_host_region *region, uint64_t from, uint64_t to);
    void (*region_release)(cohi_host_region *region);
    void (*thread_serves)(bool serves);
    void (*thread_serves_as)(int thread, bool serves);
} cohi_services;

/* What the symbol is. Its first three fields stay where they are, so that any library can say what is
 * wrong with any module. */
typedef struct cohi_module {
    size_t size;
    unsigned contract;   /* COHI_CONTRACT */
    const char *version; /* of Cohort */
    const cohi_engine *engine;
    void (*set_services)(const cohi_services *services);
    size_t services; /* bytes of cohi_services */
    cohi_layout layout;
} cohi_module;

/* The initializer of a module's symbol, but for `engine` and `set_services`. */
#define COHI_MODULE_STAMP                                                                   \
    .size = sizeof(cohi_module), .contract = COHI_CONTRACT, .version = COHI_MODULE_VERSION, \
    .services = sizeof(cohi_services), .layout = COHI_LAYOUT

#define COHI_MODULE_SYMBOL cohort_module

/* The version that a module is of, as coh_version_string writes it. */
#define COHI_MODULE_TEXT_OF(number) #number
#define COHI_MODULE_TEXT(major, minor, patch) \
    COHI_MODULE_TEXT_OF(major) "." COHI_MODULE_TEXT_OF(minor) "." COHI_MODULE_TEXT_OF(patch)
#define COHI_MODULE_VERSION \
    COHI_MODULE_TEXT(COH_VERSION_MAJOR, COH_VERSION_MINOR, COH_VERSION_PATCH)

/* Opens the module of engine `name`, once a process: looks in COHORT_MODULES, beside the library, and
 * where it was to be installed. COH_NOT_AVAILABLE with the loader's reason. */
coh_status cohi_module_open(const char *name, const cohi_engine **engine);

#endif
