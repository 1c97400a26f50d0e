/* collective.h - a collective as a value: checked now, carried out later. */
#ifndef COHI_DEVICE_COLLECTIVE_H
#define COHI_DEVICE_COLLECTIVE_H

#include <cohort-ml.h>

/* COH_OK when it names a collective and a team; the rest is checked when it runs. */
coh_status cohi_collective_check(const char *call, const coh_collective *collective);

/* Carries out one that was checked. */
coh_status cohi_collective_run(const coh_collective *collective);

#endif
