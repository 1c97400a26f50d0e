#include "bootstrap/unique_id.h"

#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <string.h>

static const char id_magic[8] = {'C', 'O', 'H', 'O', 'R', 'T', 'I', '1'};

_Static_assert(sizeof(cohi_id_layout) == sizeof(coh_unique_id), "the layout fills the id");

/* FNV-1a */
static uint64_t hash_of(uint64_t hash, const void *data, size_t count)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t check_of(const cohi_id_layout *layout)
{
    uint64_t hash = hash_of(UINT64_C(0xcbf29ce484222325), layout, offsetof(cohi_id_layout, check));
    return hash_of(hash, layout->root, sizeof layout->root);
}

void cohi_unique_id_write(cohi_id_layout *layout, coh_unique_id *id)
{
    layout->check = check_of(layout);
    memcpy(id->bytes, layout, sizeof *layout);
}

coh_status cohi_unique_id_make(coh_unique_id *id)
{
    cohi_id_layout layout = {.check = 0};
    memcpy(layout.magic, id_magic, sizeof layout.magic);
    int error = cohi_os_random(layout.name, sizeof layout.name);
    if (!error)
        error = cohi_os_random(layout.secret, sizeof layout.secret);
    if (error)
        return cohi_fail_os(error, "coh_unique_id_create: no random bytes");
    cohi_unique_id_write(&layout, id);
    return COH_OK;
}

/* Two hashes of the job: they tell jobs apart and keep no secret. */
static void hash_job(const char *job, uint64_t hashes[2])
{
    static const uint64_t seeds[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x9e3779b97f4a7c15)};
    for (int i = 0; i < 2; i++)
        hashes[i] = hash_of(seeds[i], job, strlen(job));
}

void cohi_unique_id_name(const char *job, const unsigned char secret[COHI_SECRET_BYTES],
                         coh_unique_id *id)
{
    uint64_t hashes[2];
    cohi_id_layout layout = {.check = 0};
    hash_job(job, hashes);
    memcpy(layout.magic, id_magic, sizeof layout.magic);
    memcpy(layout.name, hashes, sizeof layout.name);
    memcpy(layout.secret, secret, sizeof layout.secret);
    cohi_unique_id_write(&layout, id);
}

void cohi_unique_id_meeting(const char *purpose, const char *job, char name[COHI_SOCKET_NAME_BYTES])
{
    uint64_t hashes[2];
    hash_job(job, hashes);
    snprintf(name, COHI_SOCKET_NAME_BYTES, "cohort-%.8s-%016llx%016llx", purpose,
             (unsigned long long)hashes[0], (unsigned long long)hashes[1]);
}

coh_status cohi_unique_id_read(const coh_unique_id *id, cohi_id_layout *layout)
{
    cohi_id_layout read;
    memcpy(&read, id->bytes, sizeof read);
    if (memcmp(read.magic, id_magic, sizeof id_magic) != 0 || read.check != check_of(&read))
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init_unique_id: the unique id is not one that coh_unique_id_create "
                         "made, or not all of "
                         "its %zu bytes were passed on",
                         sizeof *id);
    *layout = read;
    return COH_OK;
}

coh_status cohi_unique_id_derive(const coh_unique_id *id, uint32_t nth, coh_unique_id *derived)
{
    cohi_id_layout layout;
    coh_status status = cohi_unique_id_read(id, &layout);
    if (status != COH_OK)
        return status;
    uint32_t part;
    memcpy(&part, layout.name, sizeof part);
    part += nth;
    memcpy(layout.name, &part, sizeof part);
    cohi_unique_id_write(&layout, derived);
    return COH_OK;
}

uint64_t cohi_unique_id_job(const coh_unique_id *id)
{
    uint64_t job;
    memcpy(&job, id->bytes + offsetof(cohi_id_layout, name), sizeof job);
    return job;
}

void cohi_unique_id_socket(const cohi_id_layout *layout, char name[COHI_SOCKET_NAME_BYTES])
{
    int used = snprintf(name, COHI_SOCKET_NAME_BYTES, "cohort-");
    for (size_t i = 0; i < sizeof layout->name; i++)
        used +=
            snprintf(name + used, COHI_SOCKET_NAME_BYTES - (size_t)used, "%02x", layout->name[i]);
}

void cohi_unique_id_host_socket(const cohi_id_layout *layout, const char *host,
                                char name[COHI_SOCKET_NAME_BYTES])
{
    uint64_t hash = hash_of(UINT64_C(0xcbf29ce484222325), host, strlen(host));
    cohi_unique_id_socket(layout, name);
    size_t used = strlen(name);
    snprintf(name + used, COHI_SOCKET_NAME_BYTES - used, "-%016llx", (unsigned long long)hash);
}
