#include "bootstrap/door.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "secure/tls.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_DEADLINE_NS (COHI_NS_PER_S) /* a rank sends its hello at once when it has connected */
#define FAR_DEADLINE_NS   (5 * COHI_NS_PER_S) /* and one of another host when it has proved itself */
/* How long even a crowd may not push a caller out: a rank on a busy host may lose its core between
 * connecting and sending. */
#define GRACE_NS        (100 * COHI_NS_PER_MS)
#define REFUSAL_LINE_NS (COHI_NS_PER_S) /* between two lines of the log */
#define CROWDED_NS      (5 * COHI_NS_PER_MS)

/* Places beyond one for each rank; names and ports that one door is at. */
enum { SPARE_PLACES = 256, NAMES = 2, LISTENERS = NAMES + COHI_LISTENERS };

/* A connection whose hello is not complete. */
struct caller {
    int fd;
    bool ready;    /* there may be something to read */
    bool far;      /* it came over the network */
    bool spoke;    /* something has come from it */
    cohi_tls *tls; /* it proves itself; NULL: it need not, or has */
    int proved;    /* the rank that it has proved to be */
    short events;  /* to wait for */
    uint64_t since_ns;
    cohi_link_far *sealed; /* once it has proved itself; the hello comes in a record */
    size_t got;
    cohi_hello hello;
};

struct cohi_door {
    int listeners[LISTENERS];
    int listener_count;
    int names; /* the first of them, which are on this host; the others are not the door's to close */
    cohi_tls_self self;
    int count, room;
    struct caller *callers; /* [room]; the first `count` are in use */
    struct pollfd *set;     /* [room + LISTENERS + others] */
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
    cohi_tls_end(door->callers[index].tls);
    cohi_link_close(&(cohi_connection){.fd = -1, .far = door->callers[index].sealed});
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

/* It has had its time. Over the network nothing is said to one that has not proved itself. */
static void send_away(cohi_door *door, int index, uint64_t now)
{
    const struct caller *caller = &door->callers[index];
    const cohi_frame later = cohi_link_frame(COHI_LINK_LATER, -1);
    if (!caller->far && caller->got == 0)
        (void)cohi_os_send(caller->fd, &later, sizeof later, NULL, 0, now);
    refuse(door, index, now);
}

static void refuse_late(cohi_door *door, uint64_t now)
{
    for (int i = door->count - 1; i >= 0; i--)
        if (now >= door->callers[i].since_ns
                       + (door->callers[i].far ? FAR_DEADLINE_NS : HELLO_DEADLINE_NS))
            send_away(door, i, now);
}

/* Whether `a` gives its place before `b` does: first those that are silent, then the older one. */
static bool goes_first(const struct caller *a, const struct caller *b)
{
    return a->spoke != b->spoke ? !a->spoke : a->since_ns < b->since_ns;
}

/* One that is about to be read keeps its place. */
static bool push_out(cohi_door *door, uint64_t now)
{
    int first = -1;
    for (int i = 0; i < door->count; i++)
        if (!door->callers[i].ready && now >= door->callers[i].since_ns + GRACE_NS
            && (first < 0 || goes_first(&door->callers[i], &door->callers[first])))
            first = i;
    if (first < 0)
        return false;
    send_away(door, first, now);
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

static void take_caller(cohi_door *door, int fd, bool far, uint64_t now)
{
    struct caller *caller = &door->callers[door->count++];
    *caller = (struct caller){
        .fd = fd, .ready = true, .far = far, .proved = -1, .since_ns = now, .events = POLLIN};
    if (far)
        cohi_os_net_hurry(fd);
    coh_status status = far ? cohi_tls_answer(&door->self, fd, &caller->tls) : COH_OK;
    if (status != COH_OK)
        cohi_log(COH_LOG_WARN, "init: a rank of another host cannot be let in: %s",
                 coh_last_error());
    if (status != COH_OK || (!far && !same_user(fd)))
        refuse(door, door->count - 1, now);
}

/* The next that waits at a listener, as far as there are places and descriptors. EAGAIN: nobody
 * waits; ENOSPC, EMFILE, ENFILE: there were not enough. */
static int take_next(cohi_door *door, int index, uint64_t now)
{
    bool far = index >= door->names;
    int fd, error = ENOSPC;
    if (door->count < door->room || push_out(door, now))
        error = cohi_os_accept(door->listeners[index], &fd);
    if (!error)
        take_caller(door, fd, far, now);
    return error;
}

static bool is_crowd(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOSPC;
}

/* Takes all that wait outside; *crowded when that was not possible. */
static coh_status take_callers(cohi_door *door, bool *crowded)
{
    uint64_t now = cohi_now_ns();
    *crowded = false;
    for (int i = 0; i < door->listener_count; i++) {
        int error;
        while ((error = take_next(door, i, now)) == 0
               || ((error == EMFILE || error == ENFILE) && push_out(door, now)))
            continue;
        if ((error == EMFILE || error == ENFILE) && door->count == 0)
            return cohi_link_fail_descriptors("a rank could not be let in");
        *crowded = *crowded || is_crowd(error);
        if (error != EAGAIN && error != ECONNABORTED && !is_crowd(error))
            return cohi_fail_os(error, "coh_init: a leader cannot let the others in");
    }
    return COH_OK;
}

enum { WHOLE, PARTIAL, GONE, STRANGE }; /* what there is of a hello */

/* One of this host shows the secret; one of another is the rank that it has proved to be. */
static bool is_of_job(const cohi_door *door, const struct caller *caller)
{
    return caller->far ? caller->hello.frame.rank == caller->proved
                       : same_secret(caller->hello.secret, door->self.secret);
}

/* Goes on with the handshake. Nothing that a stranger says is looked at before it is through. */
static int prove(struct caller *caller)
{
    cohi_tls_turn turn = cohi_tls_step(caller->tls);
    caller->events = turn == COHI_TLS_WRITES ? POLLOUT : POLLIN;
    if (turn == COHI_TLS_FAILED)
        return STRANGE;
    if (turn != COHI_TLS_DONE)
        return PARTIAL;
    cohi_connection link;
    if (!cohi_link_seal(caller->tls, caller->fd, &link))
        return STRANGE;
    caller->proved = cohi_tls_peer(caller->tls);
    caller->sealed = link.far;
    cohi_tls_end(caller->tls);
    caller->tls = NULL;
    return WHOLE;
}

/* Where the bytes of a hello come to, and how many they are. */
static char *landing(struct caller *caller, size_t *bytes)
{
    *bytes = sizeof caller->hello + (caller->sealed ? COHI_SEAL_EXTRA_BYTES : 0);
    return caller->sealed ? (char *)caller->sealed->record : (char *)&caller->hello;
}

static bool open_hello(struct caller *caller, size_t bytes)
{
    return !caller->sealed
           || cohi_seal_open(caller->sealed->seals.in, caller->sealed->record, bytes,
                             (unsigned char *)&caller->hello);
}

/* Reads what there is. One that left without a word asked only whether somebody is here. */
static int read_hello(const cohi_door *door, struct caller *caller)
{
    size_t got = 0;
    caller->ready = false;
    if (caller->tls) {
        int proof = prove(caller);
        if (proof != WHOLE)
            return proof;
    }
    size_t bytes;
    char *place = landing(caller, &bytes);
    int error = cohi_os_receive_now(caller->fd, place + caller->got, bytes - caller->got, &got);
    if (error)
        return error == EAGAIN ? PARTIAL : caller->got == 0 && error == ECONNRESET ? GONE : STRANGE;
    caller->got += got;
    caller->spoke = true;
    if (caller->got < bytes)
        return PARTIAL;
    return open_hello(caller, bytes) && cohi_link_check_hello(&caller->hello) == 0
                   && is_of_job(door, caller)
               ? WHOLE
               : STRANGE;
}

/* From the last to the first: one that is refused gives its place to one that was looked at. */
static bool find_hello(cohi_door *door, cohi_hello *hello, cohi_connection *link)
{
    for (int i = door->count - 1; i >= 0; i--) {
        struct caller *caller = &door->callers[i];
        int read = caller->ready ? read_hello(door, caller) : PARTIAL;
        if (read == STRANGE)
            refuse(door, i, cohi_now_ns());
        if (read == GONE) {
            cohi_os_close(caller->fd);
            remove_caller(door, i);
        }
        if (read != WHOLE)
            continue;
        *hello = caller->hello;
        *link = (cohi_connection){.fd = caller->fd, .far = caller->sealed};
        caller->sealed = NULL;
        remove_caller(door, i);
        return true;
    }
    return false;
}

/* While the door is full the listeners are not polled: they would be readable all the time. */
static int fill_set(cohi_door *door, bool crowded, const struct pollfd *others, int count)
{
    int filled = 0;
    for (int i = 0; i < door->count; i++)
        door->set[filled++] =
            (struct pollfd){.fd = door->callers[i].fd, .events = door->callers[i].events};
    for (int i = 0; i < door->listener_count; i++)
        door->set[filled++] =
            (struct pollfd){.fd = crowded ? -1 : door->listeners[i], .events = POLLIN};
    for (int i = 0; i < count; i++)
        door->set[filled++] = others[i];
    return filled;
}

/* True when one of the others shows something. */
static bool sleep_at(cohi_door *door, bool crowded, uint64_t until_ns, struct pollfd *others,
                     int count)
{
    uint64_t now = cohi_now_ns();
    uint64_t most = crowded && now + CROWDED_NS < until_ns ? now + CROWDED_NS : until_ns;
    uint64_t left_ms = now < most ? (most - now) / COHI_NS_PER_MS + 1 : 0;
    int filled = fill_set(door, crowded, others, count), shown = 0;
    if (cohi_os_poll(door->set, (size_t)filled, left_ms > 1000 ? 1000 : (int)left_ms) <= 0)
        return false;
    for (int i = 0; i < door->count; i++) {
        door->callers[i].ready = door->set[i].revents != 0;
        door->callers[i].spoke |= door->callers[i].ready;
    }
    for (int i = 0; i < count; i++) {
        others[i].revents = door->set[filled - count + i].revents;
        shown += others[i].revents != 0;
    }
    return shown > 0;
}

coh_status cohi_door_await(cohi_door *door, uint64_t until_ns, struct pollfd *others, int count,
                           cohi_hello *hello, cohi_connection *link)
{
    *link = COHI_NO_LINK;
    for (;;) {
        bool crowded;
        coh_status status = take_callers(door, &crowded);
        if (status != COH_OK || find_hello(door, hello, link))
            return status;
        uint64_t now = cohi_now_ns();
        refuse_late(door, now);
        if (now >= until_ns || sleep_at(door, crowded, until_ns, others, count))
            return COH_OK;
    }
}

/* ---- opening and closing ---- */

int cohi_door_listen(cohi_door *door, const char *name)
{
    int error = cohi_os_local_listen(name, &door->listeners[door->listener_count]);
    door->listener_count += error == 0;
    door->names = door->listener_count;
    return error;
}

void cohi_door_listen_far(cohi_door *door, const cohi_listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++)
        door->listeners[door->listener_count++] = listeners->fds[i];
}

coh_status cohi_door_open(const cohi_id_layout *id, int size, cohi_door **door)
{
    int room = size + SPARE_PLACES;
    cohi_door *made = calloc(1, sizeof *made);
    if (made) {
        *made = (cohi_door){.room = room,
                            .self = {.purpose = COHI_TLS_RENDEZVOUS, .rank = 0, .size = size}};
        memcpy(made->self.secret, id->secret, sizeof made->self.secret);
        memcpy(made->self.job, id->name, sizeof made->self.job);
        made->callers = calloc((size_t)room, sizeof *made->callers);
        made->set = calloc((size_t)(room + LISTENERS + size + 1), sizeof *made->set);
    }
    if (!made || !made->callers || !made->set) {
        cohi_door_close(made);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", size);
    }
    *door = made;
    return COH_OK;
}

void cohi_door_close(cohi_door *door)
{
    if (!door)
        return;
    tell_refusals(door, cohi_now_ns());
    for (; door->count > 0; remove_caller(door, door->count - 1))
        cohi_os_close(door->callers[door->count - 1].fd);
    for (int i = 0; i < door->names; i++)
        cohi_os_close(door->listeners[i]);
    free(door->callers);
    free(door->set);
    free(door);
}
