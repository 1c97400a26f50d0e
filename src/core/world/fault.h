/*
 * fault.h - breaking a job on purpose: COHORT_FAULT=ACTION@OPERATION[:NTH][,rank=R].
 */
#ifndef COHI_CORE_WORLD_FAULT_H
#define COHI_CORE_WORLD_FAULT_H

#include "core/world/world.h"

typedef struct cohi_fault cohi_fault;

/* NULL for an empty script, or when it names another rank. COH_INVALID_ARGUMENT says what is wrong.
 */
coh_status cohi_fault_parse(const char *script, int rank, int size, cohi_fault **fault);

/* Does what is armed for this operation, if its time has come. COH_OK, or the failure to report. */
coh_status cohi_fault_strike(cohi_fault *fault, cohi_opcode op);

#endif
