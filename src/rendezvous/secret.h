/* secret.h - the secret that a user gives to all ranks of a job. */
#ifndef COHI_RENDEZVOUS_SECRET_H
#define COHI_RENDEZVOUS_SECRET_H

#include "base/config.h"
#include "bootstrap/unique_id.h"

#include <stdbool.h>

/*
 * Reads COHORT_SECRET, or the file that COHORT_SECRET_FILE names. *given is false where neither is set.
 * COH_INVALID_ARGUMENT, and nothing of it in the message, for a secret that is none, and for a file that others
 * can read or that belongs to another user than this one and root.
 */
coh_status cohi_secret_read(const cohi_config *config, unsigned char secret[COHI_SECRET_BYTES],
                            bool *given);

#endif
