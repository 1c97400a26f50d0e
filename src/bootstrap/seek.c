#include "bootstrap/joining.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END_SHOWS_NS (200 * COHI_NS_PER_MS) /* from a closed socket to a process that is gone */
#define RETRY_NS     (2 * COHI_NS_PER_MS)   /* the one that is called may not be listening yet */

static void sleep_ns(uint64_t nanoseconds)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)nanoseconds};
    nanosleep(&pause, NULL);
}

/* ---- other leaders ---- */

/* A member waits for its leader, which where no launcher says so is none before rank 0 has come. */
static int awaited_rank(const cohi_joining *self)
{
    const cohi_group *group = self->group;
    int leader = self->launched ? cohi_board_ranks(&group->board)[0] : 0;
    return leader == group->rank ? 0 : leader;
}

/* What a rank does while it cannot ask yet. */
static coh_status keep_seeking(cohi_joining *self)
{
    cohi_group *group = self->group;
    char text[128], where[COHI_REACH_TEXT];
    double waited_s;
    bool warn = cohi_vigil_warns(&self->vigil, &waited_s);
    uint64_t now = cohi_now_ns();
    if (now >= self->vigil.deadline_ns && self->sent_away)
        return cohi_fail(
            COH_TIMED_OUT,
            "coh_init: rank %d heard nothing of rank %d when it called, and told it to "
            "call again, for %.1f s (COHORT_INIT_TIMEOUT)",
            awaited_rank(self), group->rank, waited_s);
    if (now >= self->vigil.deadline_ns)
        return cohi_fail(COH_TIMED_OUT,
                         "coh_init: rank %d of %d did not come within %.1f s "
                         "(COHORT_INIT_TIMEOUT), so rank %d could not ask who else is missing%s",
                         awaited_rank(self), group->size, waited_s, group->rank,
                         cohi_reach_describe(&self->reach, where));
    if (!warn && now < self->vigil.word_at_ns)
        return COH_OK;
    snprintf(text, sizeof text, "has waited %.1f s in init for rank %d, which %s", waited_s,
             awaited_rank(self), self->sent_away ? "has not heard it" : "has not come");
    if (warn)
        cohi_log(COH_LOG_WARN, "rank %d %s", group->rank, text);
    cohi_tree_word(group, group->rank, warn ? text : "");
    self->vigil.word_at_ns = now + group->patience.timeout_ns / 4;
    return COH_OK;
}

/* A process of another user could listen at a local name. */
static coh_status check_user(const cohi_group *group, pid_t *process)
{
    uid_t user;
    int error = cohi_os_peer_credentials(group->up.fd, &user, process);
    if (!error && user == geteuid())
        return COH_OK;
    return cohi_fail(COH_TRANSPORT,
                     "coh_init: the process that listens as rank %d belongs to another user",
                     group->up_rank);
}

/* Says who this is to the one above. The secret is shown on this host only: over the network it was
 * proved before. */
static coh_status greet(cohi_joining *self, bool leads)
{
    cohi_group *group = self->group;
    cohi_hello hello = cohi_link_hello(group->rank, group->size, self->host);
    hello.leads = leads;
    if (!group->up.far)
        memcpy(hello.secret, self->id.secret, sizeof hello.secret);
    group->heard_ns = cohi_now_ns();
    int error = cohi_link_send_hello(&group->up, &hello, cohi_tree_patience(group));
    /* What one that closed the connection has said before is still to be read. */
    return error && error != ECONNRESET ? cohi_tree_fail_link(error, group->up_rank) : COH_OK;
}

/*
 * The one above broke the connection before its welcome. It has ended, which shows in its process
 * within a moment; or it lives, and refused this one.
 */
static coh_status fail_refused(const cohi_group *group, pid_t above)
{
    uint64_t until = cohi_now_ns() + END_SHOWS_NS;
    while (above > 0 && !cohi_os_process_ended(above)) {
        if (cohi_now_ns() >= until)
            return cohi_fail(
                COH_TRANSPORT,
                "coh_init: process %d, which rank %d asked to join, closed the "
                "connection of rank %d: it is of another job, or its unique id or secret differs",
                (int)above, group->rank, group->rank);
        sleep_ns(RETRY_NS);
    }
    return cohi_tree_fail_link(ECONNRESET, group->up_rank);
}

/* The one above had no time to wait for the hello, as a rank that has no core sends none. */
static void call_again(cohi_joining *self)
{
    cohi_link_close(&self->group->up);
    self->root_process = 0;
    self->sent_away = true;
}

/* Whether the last thing from above was not its reason, but that it closed the connection. */
static bool is_broken(const cohi_group *group, coh_status status)
{
    return status == COH_PEER_LOST && group->incoming.frame.kind != COHI_LINK_FAILED;
}

/* The root refuses one that the leader let in. */
static void refuse_child(cohi_group *group, int rank)
{
    coh_status status = (coh_status)group->incoming.frame.status;
    (void)cohi_fail(status, "%s", (const char *)group->incoming.payload);
    for (int i = 0; i < group->child_count; i++) {
        if (group->children[i].rank != rank)
            continue;
        cohi_tree_send_failure(&group->children[i].link, -1, status);
        cohi_tree_drop_child(group, i);
        return;
    }
}

/* *welcome: all are here. */
static coh_status hear_root(cohi_joining *self, bool *welcome)
{
    cohi_group *group = self->group;
    bool came;
    size_t most = cohi_welcome_bytes(group->size, group->size);
    coh_status status = cohi_tree_hear(group, most, false, &came);
    if (self->root_process > 0 && is_broken(group, status))
        return fail_refused(group, self->root_process);
    if (status != COH_OK || !came)
        return status;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind == COHI_LINK_FAILED)
        refuse_child(group, frame->rank);
    else if (frame->kind == COHI_LINK_WELCOME && cohi_welcome_read(group))
        *welcome = true;
    else if (frame->kind == COHI_LINK_LATER)
        call_again(self);
    else
        return cohi_tree_fail_link(EPROTO, 0);
    return COH_OK;
}

/* Greets the root by `link` and tells it who has come already. */
static coh_status meet_root(cohi_joining *self, cohi_connection link)
{
    cohi_group *group = self->group;
    group->up = link;
    group->up_rank = 0;
    coh_status status = link.far ? COH_OK : check_user(group, &self->root_process);
    if (status == COH_OK)
        status = greet(self, true);
    for (int i = 0; i < group->child_count && status == COH_OK; i++)
        status = cohi_joining_tell(group, group->children[i].rank);
    return status;
}

/* One turn of a leader that is not the root. `link` is a connection to the root, or none. */
static coh_status lead_on(cohi_joining *self, cohi_connection link, bool *welcome)
{
    cohi_group *group = self->group;
    coh_status status = COH_OK;
    if (group->up.fd < 0 && link.fd < 0)
        status = cohi_reach_try(&self->reach, &link);
    bool reached = link.fd >= 0 || group->up.fd >= 0;
    self->sent_away = self->sent_away && reached;
    if (status == COH_OK && link.fd >= 0)
        status = meet_root(self, link);
    if (status == COH_OK && group->up.fd < 0)
        status = keep_seeking(self);
    if (status == COH_OK)
        status = cohi_joining_attend(self, group->up.fd < 0 ? RETRY_NS : COHI_TREE_TICK_NS);
    if (status == COH_OK && group->up.fd >= 0)
        status = hear_root(self, welcome);
    if (status == COH_OK && group->up.fd >= 0)
        return cohi_tree_check_silence(group);
    if (status == COH_OK && reached) { /* sent away */
        status = keep_seeking(self);
        sleep_ns(RETRY_NS);
    }
    return status;
}

/* Binds the host's name, and leads if it was free. Takes `link` over: a connection to the root, or
 * none. */
static coh_status join_as_leader(cohi_joining *self, cohi_connection link, bool *joined)
{
    cohi_group *group = self->group;
    coh_status status = cohi_door_open(&self->id, group->size, &self->door);
    int error = status == COH_OK ? cohi_door_listen(self->door, self->host_socket) : 0;
    if (status != COH_OK || error) {
        cohi_link_close(&link);
        cohi_door_close(self->door);
        self->door = NULL;
        return !error || error == EADDRINUSE
                   ? status
                   : cohi_fail_os(error,
                                  "coh_init: rank %d cannot listen for the ranks of its host",
                                  group->rank);
    }
    (void)cohi_joining_note(group, group->rank, 0);
    for (bool welcome = false; !welcome && status == COH_OK; link = COHI_NO_LINK)
        status = lead_on(self, link, &welcome);
    *joined = status == COH_OK;
    return *joined ? cohi_joining_complete(self) : status;
}

/* ---- members ---- */

/* A launcher's board is here already. */
static coh_status take_board(cohi_group *group)
{
    coh_status status = COH_OK;
    if (!group->board.head && group->fd_count != 1)
        status = cohi_link_fail_descriptors("the board could not be received");
    else if (!group->board.head)
        status = cohi_board_open(group->fds[0], &group->board);
    if (group->board.head && group->board.fd == group->fds[0])
        group->fd_count = 0;
    cohi_tree_drop_fds(group);
    return status;
}

/* *joined: welcomed, and not told to call again. */
static coh_status await_welcome(cohi_joining *self, pid_t leader, bool *joined)
{
    cohi_group *group = self->group;
    bool came;
    size_t most = cohi_welcome_bytes(group->size, group->size);
    coh_status status = cohi_tree_hear(group, most, true, &came);
    if (is_broken(group, status))
        return fail_refused(group, leader);
    if (status != COH_OK)
        return status;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind == COHI_LINK_LATER) {
        call_again(self);
        return COH_OK;
    }
    if (frame->kind != COHI_LINK_WELCOME || !cohi_welcome_read(group)) {
        cohi_tree_drop_fds(group);
        return cohi_tree_fail_link(EPROTO, group->up_rank);
    }
    group->up_rank = frame->rank;
    status = take_board(group);
    *joined = status == COH_OK;
    return status;
}

/* *joined: welcomed. Else the host has no leader yet, or it did not hear this rank. */
static coh_status join_as_member(cohi_joining *self, bool *joined)
{
    cohi_group *group = self->group;
    pid_t leader;
    int error = cohi_os_local_connect(self->host_socket, &group->up.fd);
    self->sent_away = self->sent_away && !error;
    if (error == ECONNREFUSED || error == EAGAIN)
        return COH_OK;
    if (error)
        return cohi_fail_os(error, "coh_init: rank %d cannot connect to the leader of its host",
                            group->rank);
    group->up_rank = awaited_rank(self);
    coh_status status = check_user(group, &leader);
    if (status == COH_OK)
        status = greet(self, false);
    if (status == COH_OK)
        status = await_welcome(self, leader, joined);
    return status;
}

/*
 * Without a launcher the first rank of a host leads it, but the root leads its own. Where rank 0 may
 * come to this host, nobody leads before it listens: it binds the name of its host first and its
 * own then, so that a rank that reaches it, and after that still no leader of its host, is on
 * another one. One that was sent away has a leader.
 */
static coh_status join_unlaunched(cohi_joining *self, bool *joined)
{
    cohi_connection link;
    coh_status status = join_as_member(self, joined);
    if (*joined || status != COH_OK || self->sent_away)
        return status;
    if (self->reach.is_far)
        return join_as_leader(self, COHI_NO_LINK, joined);
    status = cohi_reach_try(&self->reach, &link);
    if (status != COH_OK || link.fd < 0)
        return status;
    status = join_as_member(self, joined);
    if (!*joined && status == COH_OK && !self->sent_away)
        return join_as_leader(self, link, joined);
    cohi_link_close(&link);
    return status;
}

static coh_status join_launched(cohi_joining *self, bool *joined)
{
    cohi_group *group = self->group;
    return cohi_board_ranks(&group->board)[0] == group->rank
               ? join_as_leader(self, COHI_NO_LINK, joined)
               : join_as_member(self, joined);
}

coh_status cohi_joining_seek(cohi_joining *self)
{
    bool joined = false;
    coh_status status = COH_OK;
    while (!joined && status == COH_OK) {
        status = (self->launched ? join_launched : join_unlaunched)(self, &joined);
        if (!joined && status == COH_OK)
            status = keep_seeking(self);
        if (!joined && status == COH_OK)
            sleep_ns(RETRY_NS);
    }
    return status;
}
