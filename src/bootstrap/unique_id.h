/*
 * unique_id.h - what the 128 bytes of a unique id hold.
 *
 * `name` is where to meet and may be seen by anybody who lists sockets; `secret` is shown only to a
 * peer whose user the kernel vouched for. The rest is where rank 0 can be reached from other hosts.
 */
#ifndef COHI_BOOTSTRAP_UNIQUE_ID_H
#define COHI_BOOTSTRAP_UNIQUE_ID_H

#include <cohort.h>

enum { COHI_SECRET_BYTES = 32, COHI_SOCKET_NAME_BYTES = 64 };

typedef struct cohi_id_layout {
    char magic[8];
    unsigned char name[16];
    unsigned char secret[COHI_SECRET_BYTES];
    uint64_t check;         /* of all other bytes */
    unsigned char root[64]; /* where rank 0 listens for other hosts (bootstrap/root.h), or zeros */
} cohi_id_layout;

/* Makes an id that is like no other, of a job on one host. */
coh_status cohi_unique_id_make(coh_unique_id *id);

/* Makes the id that all make who name the same job and have the same secret, of a job on one host. */
void cohi_unique_id_name(const char *job, const unsigned char secret[COHI_SECRET_BYTES],
                         coh_unique_id *id);

/* The abstract socket name for `purpose` of those who name the same job, before they have an id. */
void cohi_unique_id_meeting(const char *purpose, const char *job,
                            char name[COHI_SOCKET_NAME_BYTES]);

/* Reads an id. COH_INVALID_ARGUMENT when it was not made by coh_unique_id_create, or was cut. */
coh_status cohi_unique_id_read(const coh_unique_id *id, cohi_id_layout *layout);

/* Makes an id of a layout, whose check it sets. */
void cohi_unique_id_write(cohi_id_layout *layout, coh_unique_id *id);

/* A number that boards of the job have in common; of its public half. */
uint64_t cohi_unique_id_job(const coh_unique_id *id);

/* The abstract socket name at which rank 0 of the job listens for leaders, and that at which the
 * leader of a host listens for its ranks: `host` tells hosts of one network namespace apart. */
void cohi_unique_id_socket(const cohi_id_layout *layout, char name[COHI_SOCKET_NAME_BYTES]);
void cohi_unique_id_host_socket(const cohi_id_layout *layout, const char *host,
                                char name[COHI_SOCKET_NAME_BYTES]);

/* The id of the n-th job after that of `id`, for ranks that finalize and join again: all of them
 * derive the same. */
coh_status cohi_unique_id_derive(const coh_unique_id *id, uint32_t nth, coh_unique_id *derived);

#endif
