/* variables.h - a launcher's variables, read, and named in errors. */
#ifndef COHI_RENDEZVOUS_VARIABLES_H
#define COHI_RENDEZVOUS_VARIABLES_H

#include <cohort.h>
#include <stdbool.h>
#include <stdint.h>

/* The variables of one launcher. */
typedef struct cohi_variables {
    const char *launcher;     /* "PMI-1 (MPICH's mpiexec, srun --mpi=pmi2)" */
    const char *const *names; /* of all that it sets; NULL at the end */
} cohi_variables;

/* The value, or NULL where it is not set or empty. */
const char *cohi_variable(const char *name);

/* The value where it is a whole number of at most nine digits, else -1. */
long cohi_variable_number(const char *name);

/* As cohi_parse_count: COH_INVALID_ARGUMENT names the variable. It is set. */
coh_status cohi_variable_count(const char *name, uint64_t least, uint64_t most, int *value);

/* Writes "NAME=VALUE, ..." of those that are set, or "NAME, NAME and NAME are not set". */
void cohi_variables_tell(const cohi_variables *variables, char *text, size_t room);

/* COH_NOT_AVAILABLE, with those that are set and those that are missing, unless all are set. */
coh_status cohi_variables_check(const cohi_variables *variables);

/* COH_NOT_AVAILABLE: the launcher, what it has set, why its job cannot be joined, and what to do.
 * `ranks` is how many it started, or 0 where that is not known. */
coh_status cohi_variables_refuse(const cohi_variables *variables, long ranks, const char *why);

#endif
