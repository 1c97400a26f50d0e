#include "bootstrap/door.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_DEADLINE_NS (COHI_NS_PER_S) /* a rank sends its hello at once when it has connected */
/* How long even a crowd may not push a caller out: a rank on a busy host may lose its core between
 * connecting and sending. */
#define GRACE_NS        (100 * COHI_NS_PER_MS)
#define REFUSAL_LINE_NS (COHI_NS_PER_S) /* between two lines of the log */
#define CROWDED_NS      (5 * COHI_NS_PER_MS)

/* Places beyond one for each rank. */
enum { SPARE_PLACES = 256 };

/* A connection whose hello is not complete. */
struct caller {
    int fd;
    bool ready; /* there may be something to read */
    uint64_t since_ns;
    size_t got;
    cohi_link_message hello;
};

struct cohi_door {
    int listener;
    unsigned char secret[COHI_SECRET_BYTES];
    int count, room;
    struct caller *callers; /* [room]; the first `count` are in use */
    struct pollfd *set;     /* [room + 1]; the listener comes last */
    unsigned long long refused;
    uint64_t told_ns; /* when refusals were last logged; 0: never */
};

/* ---- refusing ---- */

static void tell_refusals(cohi_door *door, uint64_t now)
{
    if (door->refused == 0)
        return;
    cohi_log(COH_LOG_WARN, "init: refused %llu connection%s that did not prove to be of this job",
             door->refused, door->refused == 1 ? "" : "s");
    door->refused = 0;
    door->told_ns = now;
}

static void remove_caller(cohi_door *door, int index)
{
    door->callers[index] = door->callers[--door->count];
}

static void refuse(cohi_door *door, int index, uint64_t now)
{
    cohi_os_close(door->callers[index].fd);
    remove_caller(door, index);
    door->refused++;
    if (door->told_ns == 0 || now >= door->told_ns + REFUSAL_LINE_NS)
        tell_refusals(door, now);
}

static void refuse_late(cohi_door *door, uint64_t now)
{
    for (int i = door->count - 1; i >= 0; i--)
        if (now >= door->callers[i].since_ns + HELLO_DEADLINE_NS)
            refuse(door, i, now);
}

/* Makes a place by the one that has been silent for longest. */
static bool push_out(cohi_door *door, uint64_t now)
{
    int oldest = 0;
    for (int i = 1; i < door->count; i++)
        if (door->callers[i].since_ns < door->callers[oldest].since_ns)
            oldest = i;
    if (door->count == 0 || now < door->callers[oldest].since_ns + GRACE_NS)
        return false;
    refuse(door, oldest, now);
    return true;
}

/* ---- letting in ---- */

/* Secrets are compared in constant time. */
static bool same_secret(const unsigned char *a, const unsigned char *b)
{
    unsigned char difference = 0;
    for (int i = 0; i < COHI_SECRET_BYTES; i++)
        difference = (unsigned char)(difference | (a[i] ^ b[i]));
    return difference == 0;
}

static bool same_user(int fd)
{
    uid_t user;
    pid_t process;
    return cohi_os_peer_credentials(fd, &user, &process) == 0 && user == geteuid();
}

static void take_caller(cohi_door *door, int fd, uint64_t now)
{
    door->callers[door->count] = (struct caller){.fd = fd, .ready = true, .since_ns = now};
    door->count++;
    if (!same_user(fd))
        refuse(door, door->count - 1, now);
}

/* Takes all that wait outside, as far as there are places and descriptors; *crowded when there were
 * not enough. */
static coh_status take_callers(cohi_door *door, bool *crowded)
{
    uint64_t now = cohi_now_ns();
    *crowded = false;
    for (;;) {
        int fd, error = ENOSPC;
        if (door->count < door->room || push_out(door, now))
            error = cohi_os_accept(door->listener, &fd);
        if (error == EAGAIN || error == ECONNABORTED)
            return COH_OK;
        if (error == EMFILE || error == ENFILE) {
            if (door->count == 0)
                return cohi_link_fail_descriptors("a rank could not be let in");
            if (push_out(door, now))
                continue;
        }
        *crowded = error == EMFILE || error == ENFILE || error == ENOSPC;
        if (*crowded)
            return COH_OK;
        if (error)
            return cohi_fail_os(error, "coh_init: rank 0 cannot let the others in");
        take_caller(door, fd, now);
    }
}

/* Reads what there is. 1: the hello is complete; 0: more must come; -1: this is not a rank. */
static int read_hello(const cohi_door *door, struct caller *caller)
{
    size_t got = 0;
    int error = cohi_os_receive_now(caller->fd, (char *)&caller->hello + caller->got,
                                    sizeof caller->hello - caller->got, &got);
    caller->ready = false;
    if (error)
        return error == EAGAIN ? 0 : -1;
    caller->got += got;
    if (caller->got < sizeof caller->hello)
        return 0;
    return cohi_link_check(&caller->hello) == 0 && caller->hello.kind == COHI_LINK_HELLO
                   && same_secret(caller->hello.secret, door->secret)
               ? 1
               : -1;
}

/* From the last to the first: one that is refused gives its place to one that was looked at. */
static bool find_hello(cohi_door *door, cohi_link_message *hello, int *link)
{
    for (int i = door->count - 1; i >= 0; i--) {
        struct caller *caller = &door->callers[i];
        int read = caller->ready ? read_hello(door, caller) : 0;
        if (read < 0)
            refuse(door, i, cohi_now_ns());
        if (read <= 0)
            continue;
        *hello = caller->hello;
        *link = caller->fd;
        remove_caller(door, i);
        return true;
    }
    return false;
}

/* While the door is full the listener is not polled: it would be readable all the time. */
static void sleep_at(cohi_door *door, bool crowded, uint64_t until_ns)
{
    uint64_t now = cohi_now_ns();
    uint64_t most = crowded && now + CROWDED_NS < until_ns ? now + CROWDED_NS : until_ns;
    uint64_t left_ms = now < most ? (most - now) / COHI_NS_PER_MS + 1 : 0;
    for (int i = 0; i < door->count; i++)
        door->set[i] = (struct pollfd){.fd = door->callers[i].fd, .events = POLLIN};
    door->set[door->count] = (struct pollfd){.fd = crowded ? -1 : door->listener, .events = POLLIN};
    if (cohi_os_poll(door->set, (size_t)door->count + 1, left_ms > 1000 ? 1000 : (int)left_ms) <= 0)
        return;
    for (int i = 0; i < door->count; i++)
        door->callers[i].ready = door->set[i].revents != 0;
}

coh_status cohi_door_await(cohi_door *door, uint64_t until_ns, cohi_link_message *hello, int *link)
{
    *link = -1;
    for (;;) {
        bool crowded;
        coh_status status = take_callers(door, &crowded);
        if (status != COH_OK || find_hello(door, hello, link))
            return status;
        uint64_t now = cohi_now_ns();
        refuse_late(door, now);
        if (now >= until_ns)
            return COH_OK;
        sleep_at(door, crowded, until_ns);
    }
}

/* ---- opening and closing ---- */

static coh_status listen_at(cohi_door *door, const cohi_id_layout *id)
{
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_unique_id_socket(id, name);
    int error = cohi_os_local_listen(name, &door->listener);
    if (error == EADDRINUSE)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: rank 0 of this unique id is taken by another process");
    if (error)
        return cohi_fail_os(error, "coh_init: rank 0 cannot listen for the others");
    return COH_OK;
}

coh_status cohi_door_open(const cohi_id_layout *id, int size, cohi_door **door)
{
    int room = size + SPARE_PLACES;
    cohi_door *made = calloc(1, sizeof *made);
    coh_status status = COH_OK;
    if (made) {
        *made = (cohi_door){.listener = -1, .room = room};
        memcpy(made->secret, id->secret, sizeof made->secret);
        made->callers = calloc((size_t)room, sizeof *made->callers);
        made->set = calloc((size_t)room + 1, sizeof *made->set);
    }
    if (!made || !made->callers || !made->set)
        status = cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", size);
    if (status == COH_OK)
        status = listen_at(made, id);
    if (status == COH_OK)
        *door = made;
    else
        cohi_door_close(made);
    return status;
}

void cohi_door_close(cohi_door *door)
{
    if (!door)
        return;
    tell_refusals(door, cohi_now_ns());
    for (int i = 0; i < door->count; i++)
        cohi_os_close(door->callers[i].fd);
    cohi_os_close(door->listener);
    free(door->callers);
    free(door->set);
    free(door);
}
