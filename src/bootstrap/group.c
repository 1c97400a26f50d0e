#include "bootstrap/group.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/door.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct cohi_group {
    int rank;
    int size;
    cohi_patience patience;
    cohi_board board;
    int *links;            /* root: [size], -1 for itself; others: [1], to the root */
    unsigned char *absent; /* root: [size], who is waited for */
    struct pollfd *set;    /* root: [size], scratch */
    bool out_of_step;      /* an exchange failed */
};

#define HELLO_DEADLINE_NS (COHI_NS_PER_S)        /* a connected peer sends its hello at once */
#define END_SHOWS_NS      (200 * COHI_NS_PER_MS) /* from a closed socket to a process that is gone */
#define TICK_NS           (20 * COHI_NS_PER_MS)
#define RETRY_NS          (2 * COHI_NS_PER_MS) /* rank 0 may not be listening yet */

/* ---- telling all that it is over ---- */

/* Sends the calling thread's last error, which is `status`. */
static void send_failure(int link, int rank, int size, coh_status status)
{
    cohi_link_message message = cohi_link_make(COHI_LINK_FAILED, rank, size);
    message.status = (int32_t)status;
    snprintf(message.text, sizeof message.text, "%s", coh_last_error());
    (void)cohi_link_send(link, &message, NULL, 0, cohi_now_ns() + HELLO_DEADLINE_NS);
}

static void broadcast_failure(cohi_group *group, coh_status status)
{
    for (int rank = 1; rank < group->size; rank++)
        if (group->links[rank] >= 0)
            send_failure(group->links[rank], group->rank, group->size, status);
}

/* "1, 3 and 2 more" of the ranks that `absent` marks. */
static void list_ranks(const unsigned char *absent, int size, char *text, size_t room)
{
    enum { NAMED = 16 };
    size_t used = 0;
    int named = 0, more = 0;
    for (int rank = 0; rank < size; rank++) {
        if (!absent[rank])
            continue;
        if (named == NAMED) {
            more++;
            continue;
        }
        used += (size_t)snprintf(text + used, room - used, "%s%d", named++ ? ", " : "", rank);
    }
    if (more)
        snprintf(text + used, room - used, " and %d more", more);
}

/* ---- waiting ---- */

/* One wait of the root for all others, or of another for the root. */
struct vigil {
    const char *reached; /* "have come": what those have done that are not waited for any more */
    uint64_t began_ns;
    uint64_t deadline_ns;
    uint64_t warn_at_ns; /* since the beginning */
    uint64_t word_at_ns; /* when those that wait for the root are told next that it is there */
};

static struct vigil begin_vigil(const cohi_group *group, const char *reached)
{
    uint64_t now = cohi_now_ns();
    return (struct vigil){.reached = reached,
                          .began_ns = now,
                          .deadline_ns = now + group->patience.timeout_ns,
                          .warn_at_ns = group->patience.warn_ns,
                          .word_at_ns = now + group->patience.timeout_ns / 4};
}

/* Another rank got as far. */
static void note_progress(const cohi_group *group, struct vigil *vigil)
{
    uint64_t timeout = group->patience.timeout_ns, until = cohi_now_ns() + timeout;
    uint64_t most = vigil->began_ns + COHI_PATIENCE_STRETCH * timeout;
    vigil->deadline_ns = until < most ? until : most;
}

/* Whether it is time for a warning; then the next comes when the wait is twice as long. */
static bool warn_now(struct vigil *vigil, double *waited_s)
{
    uint64_t waited = cohi_now_ns() - vigil->began_ns;
    *waited_s = (double)waited / 1e9;
    if (vigil->warn_at_ns == 0 || waited < vigil->warn_at_ns)
        return false;
    vigil->warn_at_ns = 2 * waited;
    return true;
}

static void describe_missing(const cohi_group *group, const struct vigil *vigil, char *text,
                             size_t room)
{
    char list[256] = "";
    int missing = 0;
    for (int rank = 0; rank < group->size; rank++)
        missing += group->absent[rank];
    list_ranks(group->absent, group->size, list, sizeof list);
    snprintf(text, room, "%d of %d ranks %s; missing: rank %s", group->size - missing, group->size,
             vigil->reached, list);
}

static coh_status fail_missing(const cohi_group *group, const struct vigil *vigil)
{
    char text[384];
    describe_missing(group, vigil, text, sizeof text);
    return cohi_fail(COH_TIMED_OUT,
                     "coh_init: %s (waited %.1f s, and %.1f s since the last one: "
                     "COHORT_INIT_TIMEOUT)",
                     text, (double)(cohi_now_ns() - vigil->began_ns) / 1e9,
                     (double)group->patience.timeout_ns / 1e9);
}

/* Tells the ranks that wait for the root that it is alive, so that they do not give up before it
 * does. A rank whose socket is full is skipped: the next such message makes up for this one. */
static void send_word(const cohi_group *group, struct vigil *vigil, const char *text)
{
    cohi_link_message message = cohi_link_make(COHI_LINK_WAIT, 0, group->size);
    snprintf(message.text, sizeof message.text, "%s", text);
    for (int rank = 1; rank < group->size; rank++)
        if (group->links[rank] >= 0)
            (void)cohi_link_send(group->links[rank], &message, NULL, 0, 0);
    vigil->word_at_ns = cohi_now_ns() + group->patience.timeout_ns / 4;
}

/* What the root does while it waits. */
static void keep_vigil(const cohi_group *group, struct vigil *vigil)
{
    char missing[384], text[480] = "";
    double waited_s;
    bool warn = warn_now(vigil, &waited_s);
    if (!warn && cohi_now_ns() < vigil->word_at_ns)
        return;
    if (warn) {
        describe_missing(group, vigil, missing, sizeof missing);
        snprintf(text, sizeof text, "has waited %.1f s in init: %s", waited_s, missing);
        cohi_log(COH_LOG_WARN, "rank 0 %s", text);
    }
    send_word(group, vigil, text);
}

/* What an errno on the link to `rank` means to a rank that is joining. */
static coh_status fail_link(int error, int rank)
{
    if (error == EMFILE || error == ENFILE)
        return cohi_link_fail_descriptors("descriptors were lost on the way");
    if (error == ECONNRESET)
        return cohi_fail(COH_PEER_LOST, "coh_init: rank %d ended during init", rank);
    if (error == ETIMEDOUT)
        return cohi_fail(COH_TIMED_OUT,
                         "coh_init: rank %d did not answer in time (COHORT_INIT_TIMEOUT)", rank);
    if (error == EPROTO)
        return cohi_fail(COH_TRANSPORT,
                         "coh_init: rank %d sent something that is not a message of Cohort", rank);
    return cohi_fail_os(error, "coh_init: the connection to rank %d failed", rank);
}

/* ---- the root's side of joining ---- */

static coh_status refuse(int link, coh_status status)
{
    send_failure(link, 0, 0, status);
    return status;
}

/* Whether a hello is one this job can take. What it cannot is an error to that caller alone, but
 * a version or a size that differs can never become right, so then the job fails too. */
static coh_status judge_hello(const cohi_group *group, const cohi_link_message *hello)
{
    if (strcmp(hello->version, coh_version_string()) != 0)
        return cohi_fail(COH_MISMATCH,
                         "coh_init: rank %d runs version %s of the library, rank 0 version %s",
                         hello->rank, hello->version, coh_version_string());
    if (hello->size != group->size)
        return cohi_fail(COH_MISMATCH, "coh_init: rank %d expects %d ranks, rank 0 expects %d",
                         hello->rank, hello->size, group->size);
    return COH_OK;
}

/* Takes the rank that proved by `hello` to be of this job. */
static coh_status admit(cohi_group *group, const cohi_link_message *hello, int link, int *arrived)
{
    coh_status status = judge_hello(group, hello);
    if (status != COH_OK) {
        refuse(link, status);
        cohi_os_close(link);
        return status;
    }
    if (hello->rank < 1 || hello->rank >= group->size || group->links[hello->rank] >= 0) {
        cohi_fail(COH_INVALID_ARGUMENT,
                  "coh_init: rank %d of %d is taken, or not a rank of this job", hello->rank,
                  group->size);
        refuse(link, COH_INVALID_ARGUMENT);
        cohi_os_close(link);
        return COH_OK;
    }
    group->links[hello->rank] = link;
    group->absent[hello->rank] = 0;
    (*arrived)++;
    return COH_OK;
}

/* After the greeting a rank says nothing until it is welcomed: what can be read is the end. */
static int find_closed_link(const cohi_group *group)
{
    int closed = -1;
    for (int rank = 0; rank < group->size; rank++)
        group->set[rank] = (struct pollfd){.fd = group->links[rank], .events = POLLIN};
    if (cohi_os_poll(group->set, (size_t)group->size, 0) > 0)
        for (int rank = 0; rank < group->size && closed < 0; rank++)
            closed = group->set[rank].revents ? rank : -1;
    return closed;
}

/* A rank that had come and is gone, or (when a launcher watches) that ended before it came. */
static coh_status check_departures(cohi_group *group)
{
    int closed = find_closed_link(group);
    if (closed >= 0) {
        cohi_os_close(group->links[closed]);
        group->links[closed] = -1;
        return cohi_fail(COH_PEER_LOST, "coh_init: rank %d ended during init", closed);
    }
    for (int rank = 1; rank < group->size; rank++) {
        uint64_t end = atomic_load(&cohi_board_slot(&group->board, rank)->end);
        if (group->links[rank] < 0 && (end & COHI_ENDED)) {
            char how[128];
            cohi_describe_end((int)end, how, sizeof how);
            return cohi_fail(COH_PEER_LOST, "coh_init: rank %d %s before it called coh_init", rank,
                             how);
        }
    }
    return COH_OK;
}

/* Marks all others as waited for. */
static void miss_all(cohi_group *group)
{
    for (int rank = 0; rank < group->size; rank++)
        group->absent[rank] = rank > 0;
}

static coh_status gather(cohi_group *group, cohi_door *door)
{
    int arrived = 1;
    coh_status status = COH_OK;
    struct vigil vigil = begin_vigil(group, "have come");
    miss_all(group);
    while (arrived < group->size && status == COH_OK) {
        cohi_link_message hello;
        int link, before = arrived;
        uint64_t now = cohi_now_ns();
        if (now >= vigil.deadline_ns)
            return fail_missing(group, &vigil);
        keep_vigil(group, &vigil);
        status = cohi_door_await(
            door, now + TICK_NS < vigil.deadline_ns ? now + TICK_NS : vigil.deadline_ns, &hello,
            &link);
        if (status == COH_OK)
            status = link < 0 ? check_departures(group) : admit(group, &hello, link, &arrived);
        if (arrived > before)
            note_progress(group, &vigil);
    }
    return status;
}

static uint64_t patient_until(const cohi_group *group)
{
    return cohi_now_ns() + group->patience.timeout_ns;
}

static coh_status welcome_all(cohi_group *group)
{
    cohi_link_message message = cohi_link_make(COHI_LINK_WELCOME, 0, group->size);
    for (int rank = 1; rank < group->size; rank++) {
        int error =
            cohi_link_send(group->links[rank], &message, &group->board.fd, 1, patient_until(group));
        if (error)
            return fail_link(error, rank);
    }
    return COH_OK;
}

static coh_status join_as_root(cohi_group *group, const cohi_id_layout *id)
{
    cohi_door *door;
    coh_status status = cohi_door_open(id, group->size, &door);
    if (status != COH_OK)
        return status;
    status = gather(group, door);
    cohi_door_close(door);
    if (status == COH_OK)
        status = welcome_all(group);
    if (status != COH_OK)
        broadcast_failure(group, status);
    return status;
}

/* ---- the others' side ---- */

static void sleep_ns(uint64_t nanoseconds)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)nanoseconds};
    nanosleep(&pause, NULL);
}

static coh_status reach_root(cohi_group *group, const cohi_id_layout *id)
{
    struct vigil vigil = begin_vigil(group, "");
    double waited_s;
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_unique_id_socket(id, name);
    for (;;) {
        int error = cohi_os_local_connect(name, &group->links[0]);
        if (!error)
            return COH_OK;
        if (error != ECONNREFUSED && error != EAGAIN)
            return cohi_fail_os(error, "coh_init: rank %d cannot connect to rank 0", group->rank);
        if (warn_now(&vigil, &waited_s))
            cohi_log(COH_LOG_WARN,
                     "rank %d has waited %.1f s in init for rank 0, which has not "
                     "come",
                     group->rank, waited_s);
        if (cohi_now_ns() >= vigil.deadline_ns)
            return cohi_fail(COH_TIMED_OUT,
                             "coh_init: rank 0 of %d did not come within %.1f s "
                             "(COHORT_INIT_TIMEOUT), so rank %d could not ask who else is missing",
                             group->size, waited_s, group->rank);
        sleep_ns(RETRY_NS);
    }
}

/*
 * Rank 0 broke the connection before its welcome. It has ended, which shows in its process within a
 * moment; or it lives, and refused this one.
 */
static coh_status fail_refused(const cohi_group *group, pid_t root)
{
    uint64_t until = cohi_now_ns() + END_SHOWS_NS;
    while (root > 0 && !cohi_os_process_ended(root)) {
        if (cohi_now_ns() >= until)
            return cohi_fail(COH_TRANSPORT,
                             "coh_init: rank 0 (process %d) closed the connection of rank %d: it "
                             "is of another job, or the unique id differs",
                             (int)root, group->rank);
        sleep_ns(RETRY_NS);
    }
    return fail_link(ECONNRESET, 0);
}

/* The next message of the root, apart from those that say that it still waits. The root's own time
 * limit ends first and says who is missing; this one is for a root that has fallen silent. */
static int hear_root(const cohi_group *group, cohi_link_message *message, int *fds, int fd_room,
                     int *fd_count)
{
    for (;;) {
        int error = cohi_link_receive(group->links[0], message, fds, fd_room, fd_count,
                                      patient_until(group) + 2 * HELLO_DEADLINE_NS);
        if (error || message->kind != COHI_LINK_WAIT)
            return error;
        for (int i = 0; i < *fd_count; i++)
            cohi_os_close(fds[i]);
        if (*message->text)
            cohi_log(COH_LOG_WARN, "rank %d: rank 0 %s", group->rank, message->text);
    }
}

static coh_status take_welcome(cohi_group *group, pid_t root)
{
    cohi_link_message message;
    int fd, count = 0;
    int error = hear_root(group, &message, &fd, 1, &count);
    if (error)
        return error == ECONNRESET ? fail_refused(group, root) : fail_link(error, 0);
    if (message.kind == COHI_LINK_FAILED)
        return cohi_fail((coh_status)message.status, "%s", message.text);
    if (message.kind != COHI_LINK_WELCOME)
        return fail_link(EPROTO, 0);
    if (count != 1)
        return cohi_link_fail_descriptors("the board could not be received");
    coh_status status = cohi_board_open(fd, &group->board);
    if (status != COH_OK)
        cohi_os_close(fd);
    return status;
}

static coh_status join_as_member(cohi_group *group, const cohi_id_layout *id)
{
    coh_status status = reach_root(group, id);
    if (status != COH_OK)
        return status;
    uid_t user;
    pid_t process;
    int error = cohi_os_peer_credentials(group->links[0], &user, &process);
    if (error || user != geteuid())
        return cohi_fail(COH_TRANSPORT,
                         "coh_init: the process that listens as rank 0 belongs to another user");
    cohi_link_message hello = cohi_link_make(COHI_LINK_HELLO, group->rank, group->size);
    memcpy(hello.secret, id->secret, sizeof hello.secret);
    error = cohi_link_send(group->links[0], &hello, NULL, 0, patient_until(group));
    if (error)
        return error == ECONNRESET ? fail_refused(group, process) : fail_link(error, 0);
    return take_welcome(group, process);
}

/* ---- joining and leaving ---- */

static coh_status make_group(int rank, int size, cohi_group **group)
{
    int links = rank == 0 ? size : 1;
    cohi_group *made = calloc(1, sizeof *made);
    int *ends = calloc((size_t)links, sizeof *ends);
    unsigned char *absent = calloc((size_t)links, sizeof *absent);
    struct pollfd *set = calloc((size_t)links, sizeof *set);
    if (!made || !ends || !absent || !set) {
        free(made);
        free(ends);
        free(absent);
        free(set);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory");
    }
    for (int i = 0; i < links; i++)
        ends[i] = -1;
    *made = (cohi_group){.rank = rank,
                         .size = size,
                         .board = {.fd = -1},
                         .links = ends,
                         .absent = absent,
                         .set = set};
    *group = made;
    return COH_OK;
}

coh_status cohi_group_join(const coh_unique_id *id, int rank, int size, cohi_board *board,
                           const cohi_patience *patience, cohi_group **group)
{
    cohi_id_layout layout;
    coh_status status = cohi_unique_id_read(id, &layout);
    if (status != COH_OK)
        return status;
    cohi_group *made = NULL;
    status = make_group(rank, size, &made);
    if (status != COH_OK)
        return status;
    made->patience = *patience;
    if (rank == 0) {
        made->board = *board;
        *board = (cohi_board){.fd = -1};
    }
    status = rank == 0 ? join_as_root(made, &layout) : join_as_member(made, &layout);
    if (status != COH_OK) {
        cohi_group_leave(made);
        return status;
    }
    *group = made;
    return COH_OK;
}

cohi_board *cohi_group_board(cohi_group *group)
{
    return &group->board;
}

void cohi_group_leave(cohi_group *group)
{
    if (!group)
        return;
    for (int i = 0; i < (group->rank == 0 ? group->size : 1); i++)
        cohi_os_close(group->links[i]);
    cohi_board_close(&group->board);
    free(group->links);
    free(group->absent);
    free(group->set);
    free(group);
}

/* ---- exchange ---- */

static void drop_cards(cohi_card *cards, int count, int keep)
{
    for (int rank = 0; rank < count; rank++)
        for (int i = 0; i < COHI_CARD_FDS; i++)
            if (rank != keep && cards[rank].fds[i] >= 0)
                cohi_os_close(cards[rank].fds[i]);
}

/* The card in a message, or the word that it is over. */
static coh_status take_card(cohi_link_message *message, const int *fds, int count, int from,
                            cohi_card *card)
{
    if (message->kind == COHI_LINK_FAILED)
        return cohi_fail((coh_status)message->status, "%s", message->text);
    if (message->kind != COHI_LINK_CARD)
        return fail_link(EPROTO, from);
    int error = cohi_link_take_card(message, fds, count);
    if (error)
        return fail_link(error, from);
    *card = message->card;
    return COH_OK;
}

static coh_status receive_card_of(cohi_group *group, int rank, cohi_card *card)
{
    cohi_link_message message;
    int fds[COHI_CARD_FDS], count = 0;
    int error = cohi_link_receive(group->links[rank], &message, fds, COHI_CARD_FDS, &count,
                                  cohi_now_ns() + HELLO_DEADLINE_NS);
    return error ? fail_link(error, rank) : take_card(&message, fds, count, rank, card);
}

static coh_status receive_card_from_root(const cohi_group *group, cohi_card *card)
{
    cohi_link_message message;
    int fds[COHI_CARD_FDS], count = 0;
    int error = hear_root(group, &message, fds, COHI_CARD_FDS, &count);
    return error ? fail_link(error, 0) : take_card(&message, fds, count, 0, card);
}

/* Waits a moment for cards of those that are absent, and takes those that have come. all[] may be
 * NULL where they say nothing. */
static coh_status collect_some(cohi_group *group, cohi_card *all, int *ready)
{
    cohi_card nothing;
    coh_status status = COH_OK;
    for (int rank = 0; rank < group->size; rank++)
        group->set[rank] =
            (struct pollfd){.fd = group->absent[rank] ? group->links[rank] : -1, .events = POLLIN};
    if (cohi_os_poll(group->set, (size_t)group->size, (int)(TICK_NS / COHI_NS_PER_MS)) <= 0)
        return COH_OK;
    for (int rank = 1; rank < group->size && status == COH_OK; rank++) {
        if (group->set[rank].revents == 0)
            continue;
        status = receive_card_of(group, rank, all ? &all[rank] : &nothing);
        if (status != COH_OK)
            break;
        group->absent[rank] = 0;
        (*ready)++;
    }
    return status;
}

static coh_status collect_cards(cohi_group *group, cohi_card *all)
{
    int ready = 1;
    coh_status status = COH_OK;
    struct vigil vigil = begin_vigil(group, "are ready");
    miss_all(group);
    while (ready < group->size && status == COH_OK) {
        int before = ready;
        if (cohi_now_ns() >= vigil.deadline_ns)
            return fail_missing(group, &vigil);
        keep_vigil(group, &vigil);
        status = collect_some(group, all, &ready);
        if (ready > before)
            note_progress(group, &vigil);
    }
    return status;
}

static coh_status hand_out_cards(cohi_group *group, cohi_card *all)
{
    struct vigil vigil = begin_vigil(group, "");
    for (int to = 1; to < group->size; to++) {
        if (cohi_now_ns() >= vigil.word_at_ns)
            send_word(group, &vigil, "");
        for (int rank = 0; rank < group->size; rank++) {
            int error = rank == to ? 0
                                   : cohi_link_send_card(group->links[to], &all[rank],
                                                         patient_until(group));
            if (error)
                return fail_link(error, to);
        }
    }
    return COH_OK;
}

static coh_status exchange_as_root(cohi_group *group, cohi_card *all)
{
    for (int rank = 1; rank < group->size; rank++)
        for (int i = 0; i < COHI_CARD_FDS; i++)
            all[rank].fds[i] = -1;
    coh_status status = collect_cards(group, all);
    if (status == COH_OK)
        status = hand_out_cards(group, all);
    if (status != COH_OK)
        drop_cards(all, group->size, 0);
    return status;
}

/* The root may have told why before it closed the link; that says more than the broken link. */
static coh_status explain_break(cohi_group *group, int error)
{
    cohi_card none;
    if (error != ECONNRESET)
        return fail_link(error, 0);
    coh_status status = receive_card_from_root(group, &none);
    return status == COH_OK ? fail_link(error, 0) : status;
}

static coh_status exchange_as_member(cohi_group *group, const cohi_card *mine, cohi_card *all)
{
    int error = cohi_link_send_card(group->links[0], mine, patient_until(group));
    if (error)
        return explain_break(group, error);
    for (int rank = 0; rank < group->size; rank++) {
        if (rank == group->rank)
            continue;
        coh_status status = receive_card_from_root(group, &all[rank]);
        if (status != COH_OK) {
            drop_cards(all, rank, group->rank);
            return status;
        }
    }
    return COH_OK;
}

/* Tells the root, which tells all. */
static coh_status report_failure(cohi_group *group, coh_status status)
{
    if (group->rank == 0) {
        broadcast_failure(group, status);
        return status;
    }
    send_failure(group->links[0], group->rank, group->size, status);
    return status;
}

static coh_status exchange(cohi_group *group, const cohi_card *mine, coh_status ready,
                           cohi_card *all)
{
    if (ready != COH_OK)
        return report_failure(group, ready);
    all[group->rank] = *mine;
    if (group->rank != 0)
        return exchange_as_member(group, mine, all);
    coh_status status = exchange_as_root(group, all);
    if (status != COH_OK)
        broadcast_failure(group, status);
    return status;
}

coh_status cohi_group_exchange(cohi_group *group, const cohi_card *mine, coh_status ready,
                               cohi_card *all)
{
    coh_status status = exchange(group, mine, ready, all);
    if (status != COH_OK)
        group->out_of_step = true;
    return status;
}

bool cohi_group_is_in_step(const cohi_group *group)
{
    return !group->out_of_step;
}

static coh_status meet_as_root(cohi_group *group)
{
    cohi_link_message go = cohi_link_make(COHI_LINK_GO, 0, group->size);
    coh_status status = collect_cards(group, NULL);
    for (int rank = 1; rank < group->size && status == COH_OK; rank++) {
        int error = cohi_link_send(group->links[rank], &go, NULL, 0, patient_until(group));
        if (error)
            status = fail_link(error, rank);
    }
    if (status != COH_OK)
        broadcast_failure(group, status);
    return status;
}

coh_status cohi_group_meet(cohi_group *group, coh_status ready)
{
    cohi_card nothing = {.rank = group->rank, .size = group->size, .fds = {-1, -1}};
    cohi_link_message message;
    int count = 0;
    if (ready != COH_OK)
        return report_failure(group, ready);
    if (group->rank == 0)
        return meet_as_root(group);
    int error = cohi_link_send_card(group->links[0], &nothing, patient_until(group));
    if (error)
        return explain_break(group, error);
    error = hear_root(group, &message, NULL, 0, &count);
    if (error)
        return fail_link(error, 0);
    if (message.kind == COHI_LINK_FAILED)
        return cohi_fail((coh_status)message.status, "%s", message.text);
    return message.kind == COHI_LINK_GO ? COH_OK : fail_link(EPROTO, 0);
}
