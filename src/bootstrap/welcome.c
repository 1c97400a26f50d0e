/* welcome.c - what all ranks are told once they have come: the hosts, and who is on which. */
#include "bootstrap/tree.h"

#include <string.h>

/* Renumbers them in the order of their first ranks. */
void cohi_welcome_order(cohi_group *group)
{
    char(*names)[COHI_HOST_NAME_BYTES] = group->names;
    int next = 0;
    for (int rank = 0; rank < group->size; rank++) {
        int old = group->host_of[rank];
        if (old < next)
            continue;
        char name[COHI_HOST_NAME_BYTES];
        memcpy(name, names[old], sizeof name);
        memcpy(names[old], names[next], sizeof name);
        memcpy(names[next], name, sizeof name);
        for (int of = 0; of < group->size; of++)
            if (group->host_of[of] == old || group->host_of[of] == next)
                group->host_of[of] = group->host_of[of] == old ? next : old;
        next++;
    }
}

size_t cohi_welcome_bytes(int hosts, int size)
{
    return sizeof(int32_t) * (size_t)(1 + size) + (size_t)hosts * COHI_HOST_NAME_BYTES;
}

/* The number of hosts, the host of each rank, the names. */
void cohi_welcome_write(const cohi_group *group, unsigned char *bytes)
{
    int32_t hosts = group->hosts;
    size_t numbers = sizeof hosts * (size_t)group->size;
    memcpy(bytes, &hosts, sizeof hosts);
    memcpy(bytes + sizeof hosts, group->host_of, numbers);
    memcpy(bytes + sizeof hosts + numbers, group->names, (size_t)hosts * COHI_HOST_NAME_BYTES);
}

bool cohi_welcome_read(cohi_group *group)
{
    const unsigned char *bytes = group->incoming.payload;
    size_t count = group->incoming.frame.bytes, numbers = sizeof(int32_t) * (size_t)group->size;
    int32_t hosts;
    if (count < sizeof hosts)
        return false;
    memcpy(&hosts, bytes, sizeof hosts);
    if (hosts < 1 || hosts > group->size || count != cohi_welcome_bytes(hosts, group->size))
        return false;
    memcpy(group->host_of, bytes + sizeof hosts, numbers);
    memcpy(group->names, bytes + sizeof hosts + numbers, (size_t)hosts * COHI_HOST_NAME_BYTES);
    group->hosts = hosts;
    for (int rank = 0; rank < group->size; rank++)
        if (group->host_of[rank] < 0 || group->host_of[rank] >= hosts)
            return false;
    for (int host = 0; host < hosts; host++)
        group->names[host][COHI_HOST_NAME_BYTES - 1] = '\0';
    return true;
}
