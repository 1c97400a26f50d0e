/* info.h - `cohort info`, in two parts: info.c shows, info_host.c knows this host. */
#ifndef COHI_TOOLS_INFO_H
#define COHI_TOOLS_INFO_H

#include <jansson.h>

/* The facts of this host, in the order in which they are shown; the caller frees it. Strings and
 * numbers; sizes in bytes under a name that ends in "_bytes". */
json_t *cohi_info_host(void);

#endif
