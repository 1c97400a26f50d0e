/* other_module.c - a module of another build, in what OTHER_MODULE names. */
#include "engine/module.h"

#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) extern cohi_module cohort_module;

static void set_services(const cohi_services *services)
{
    (void)services;
    abort(); /* the library has taken it */
}

cohi_module cohort_module = {COHI_MODULE_STAMP, .set_services = set_services};

__attribute__((constructor)) static void differ(void)
{
    const char *in = getenv("OTHER_MODULE");
    if (!in)
        return;
    if (strcmp(in, "contract") == 0)
        cohort_module.contract++;
    if (strcmp(in, "version") == 0)
        cohort_module.version = "0.0.9";
    if (strcmp(in, "size") == 0) /* as before there was a layout */
        cohort_module.size -= sizeof cohort_module.layout;
    if (strcmp(in, "services") == 0)
        cohort_module.services += sizeof(void *);
    if (strcmp(in, "args") == 0)
        cohort_module.layout.words[COHI_LAYOUT_OF_cohi_engine_args] += 8;
    if (strcmp(in, "knobs") == 0)
        cohort_module.layout.words[COHI_LAYOUT_OF_KNOBS]++;
}
