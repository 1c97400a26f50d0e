#include "rendezvous/came.h"

#include "base/clock.h"
#include "base/os.h"
#include "bootstrap/unique_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (200 * COHI_NS_PER_MS) /* between two looks */

enum { MOST = 1024 /* ranks that are looked for */, NAMED = 8 /* and told */ };

struct cohi_came {
    char job[COHI_SOCKET_NAME_BYTES];
    int rank, size, listener;
    uint64_t next_ns; /* when to look again */
    bool seen[MOST];
};

static void name_of(const cohi_came *came, int rank, char name[COHI_SOCKET_NAME_BYTES])
{
    snprintf(name, COHI_SOCKET_NAME_BYTES, "%.48s-%d", came->job, rank);
}

void cohi_came_begin(const char *job, int rank, int size, cohi_came **came)
{
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_came *made = size <= MOST ? calloc(1, sizeof *made) : NULL;
    *came = made;
    if (!made)
        return;
    cohi_unique_id_meeting("came", job, made->job);
    made->rank = rank;
    made->size = size;
    made->next_ns = cohi_now_ns() + LOOK_NS;
    made->seen[rank] = true;
    name_of(made, rank, name);
    if (cohi_os_local_listen(name, &made->listener) != 0)
        made->listener = -1;
}

static void look(cohi_came *came)
{
    char name[COHI_SOCKET_NAME_BYTES];
    for (int rank = 0; rank < came->size; rank++) {
        int fd = -1;
        name_of(came, rank, name);
        int error = came->seen[rank] ? 0 : cohi_os_local_connect(name, &fd);
        came->seen[rank] = !error || error == EAGAIN; /* it takes no more calls, so it is there */
        cohi_os_close(fd);
    }
}

void cohi_came_look(cohi_came *came)
{
    uint64_t now = cohi_now_ns();
    if (!came || now < came->next_ns)
        return;
    look(came);
    came->next_ns = now + LOOK_NS;
}

void cohi_came_describe(cohi_came *came, char *text, size_t room)
{
    int missing = 0;
    char list[8 * NAMED] = "";
    *text = '\0';
    if (!came)
        return;
    look(came);
    for (int rank = 0; rank < came->size; rank++) {
        size_t used = strlen(list);
        if (came->seen[rank])
            continue;
        if (missing++ < NAMED)
            snprintf(list + used, sizeof list - used, "%s%d", used ? ", " : "", rank);
    }
    if (missing > 0)
        snprintf(text, room, ": rank%s %s%s %s not come, or %s on another host",
                 missing == 1 ? "" : "s", list, missing > NAMED ? ", ..." : "",
                 missing == 1 ? "has" : "have", missing == 1 ? "is" : "are");
    else
        snprintf(text, room, ", though all ranks were seen on this host");
}

void cohi_came_end(cohi_came *came)
{
    if (came)
        cohi_os_close(came->listener);
    free(came);
}
