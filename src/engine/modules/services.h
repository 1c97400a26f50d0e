/* services.h - what a module is told when it is opened. */
#ifndef COHI_ENGINE_MODULES_SERVICES_H
#define COHI_ENGINE_MODULES_SERVICES_H

#include "engine/module.h"

/* Before anything else of the module is called. */
void cohi_services_set(const cohi_services *services);

#endif
