#include "bootstrap/tree.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/door.h"
#include "bootstrap/elsewhere.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define END_SHOWS_NS (200 * COHI_NS_PER_MS) /* from a closed socket to a process that is gone */
#define RETRY_NS     (2 * COHI_NS_PER_MS)   /* the one that is called may not be listening yet */

/* What a rank knows while it joins. */
struct joining {
    cohi_group *group;
    const cohi_group_spec *spec;
    cohi_id_layout id;
    char host[COHI_HOST_NAME_BYTES];          /* its name, for people */
    char host_socket[COHI_SOCKET_NAME_BYTES]; /* where its leader listens */
    bool launched;                            /* by a launcher, which gave a board */
    bool root_is_far;                         /* its addresses are none of this host's */
    cohi_door *door;                          /* of a leader */
    cohi_vigil vigil;
};

static bool is_root(const struct joining *self)
{
    return self->group->rank == 0;
}

static void sleep_ns(uint64_t nanoseconds)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)nanoseconds};
    nanosleep(&pause, NULL);
}

/* ---- letting others in ---- */

/* Whether a hello is one this job can take. A version or a size that differs can never become right,
 * so then the job fails. */
static coh_status judge_hello(const cohi_group *group, const cohi_hello *hello)
{
    if (strcmp(hello->version, coh_version_string()) != 0)
        return cohi_fail(COH_MISMATCH,
                         "coh_init: rank %d runs version %s of the library, rank %d version %s",
                         (int)hello->frame.rank, hello->version, group->rank, coh_version_string());
    if (hello->size != group->size)
        return cohi_fail(COH_MISMATCH, "coh_init: rank %d expects %d ranks, rank %d expects %d",
                         (int)hello->frame.rank, (int)hello->size, group->rank, group->size);
    return COH_OK;
}

static coh_status fail_taken(const cohi_group *group, int rank)
{
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "coh_init: rank %d of %d is taken, or not a rank of this job", rank,
                     group->size);
}

/* Marks a rank as here. False where it cannot be. */
static bool note_arrival(cohi_group *group, int rank, int host)
{
    if (rank < 0 || rank >= group->size || group->host_of[rank] >= 0)
        return false;
    group->host_of[rank] = host;
    group->absent[rank] = 0;
    return true;
}

/* The root's number for the host of a leader that has come. */
static int add_host(cohi_group *group, const char *name)
{
    snprintf(group->names[group->hosts], sizeof group->names[0], "%s", name);
    return group->hosts++;
}

static coh_status tell_arrival(const cohi_group *group, int rank)
{
    cohi_frame here = cohi_link_frame(COHI_LINK_HERE, rank);
    int error = group->up < 0
                    ? 0
                    : cohi_link_send(group->up, &here, NULL, NULL, 0, cohi_tree_patience(group));
    return error ? cohi_tree_fail_link(error, group->up_rank) : COH_OK;
}

static coh_status turn_away(int link, coh_status status)
{
    cohi_tree_send_failure(link, -1, status);
    cohi_os_close(link);
    return status;
}

/* Takes the rank that proved by `hello` to be of this job. */
static coh_status admit(struct joining *self, const cohi_hello *hello, int link)
{
    cohi_group *group = self->group;
    int rank = hello->frame.rank;
    bool leads = hello->leads != 0;
    coh_status status = judge_hello(group, hello);
    if (status != COH_OK)
        return turn_away(link, status);
    if ((leads && (!is_root(self) || group->hosts == group->size))
        || !note_arrival(group, rank, leads ? group->hosts : 0)) {
        turn_away(link, fail_taken(group, rank)); /* the error of that caller alone */
        return COH_OK;
    }
    if (leads)
        add_host(group, hello->host);
    cohi_tree_add_child(group, link, rank, leads);
    cohi_vigil_progress(group, &self->vigil);
    return tell_arrival(group, rank);
}

/* A leader tells of a rank of its host. */
static coh_status take_here(struct joining *self, const cohi_child *child)
{
    cohi_group *group = self->group;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind != COHI_LINK_HERE)
        return cohi_tree_fail_link(EPROTO, child->rank);
    if (note_arrival(group, frame->rank, group->host_of[child->rank]))
        cohi_vigil_progress(group, &self->vigil);
    else
        cohi_tree_send_failure(child->fd, frame->rank, fail_taken(group, frame->rank));
    return COH_OK;
}

/* Until it is welcomed a member says nothing: what can be read is its end. */
static coh_status attend_children(struct joining *self)
{
    cohi_group *group = self->group;
    for (int i = 0; i < group->child_count; i++) {
        cohi_child child = group->children[i];
        if (!group->set[i].revents)
            continue;
        coh_status status = cohi_tree_receive(group, child.fd, child.rank, 0);
        cohi_tree_drop_fds(group);
        if (status == COH_OK)
            status = take_here(self, &child);
        if (status != COH_OK) {
            cohi_tree_drop_child(group, i);
            return status;
        }
    }
    return COH_OK;
}

/* Where a launcher watches: a rank that ended before it came. A leader looks at its own host, the
 * root at what was told of all. */
static coh_status check_ends(const struct joining *self)
{
    const cohi_group *group = self->group;
    for (int rank = 0; self->launched && rank < group->size; rank++) {
        bool counts = is_root(self) || cohi_board_index(&group->board, rank) >= 0;
        if (!counts || group->host_of[rank] >= 0)
            continue;
        cohi_told told = cohi_board_read(&group->board, rank);
        if (told.ended) {
            char how[128];
            cohi_describe_end(told.wait_status, how, sizeof how);
            return cohi_fail(COH_PEER_LOST, "coh_init: rank %d %s before it called coh_init", rank,
                             how);
        }
    }
    return COH_OK;
}

/* One turn of a leader: lets in who comes, hears who is in. */
static coh_status attend(struct joining *self, uint64_t for_ns)
{
    cohi_group *group = self->group;
    cohi_hello hello;
    int link, count = group->child_count;
    for (int i = 0; i < count; i++)
        group->set[i] = (struct pollfd){.fd = group->children[i].fd, .events = POLLIN};
    group->set[count] = (struct pollfd){.fd = group->up, .events = POLLIN};
    coh_status status =
        cohi_door_await(self->door, cohi_now_ns() + for_ns, group->set, count + 1, &hello, &link);
    if (status == COH_OK && link >= 0)
        return admit(self, &hello, link);
    if (status == COH_OK)
        status = attend_children(self);
    return status == COH_OK ? check_ends(self) : status;
}

/* ---- all are here ---- */

static coh_status make_board(struct joining *self)
{
    cohi_group *group = self->group;
    int count = 0, *ranks = calloc((size_t)group->size, sizeof *ranks);
    if (!ranks)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", group->size);
    for (int rank = 0; rank < group->size; rank++)
        if (group->host_of[rank] == group->host_of[group->rank])
            ranks[count++] = rank;
    coh_status status = self->spec->make_board(self->spec->context, ranks, count, &group->board);
    free(ranks);
    return status;
}

/* A launcher's board says which ranks are on this host, and so do the links. */
static coh_status check_board(const struct joining *self)
{
    const cohi_group *group = self->group;
    for (int rank = 0; rank < group->size; rank++) {
        bool here = group->host_of[rank] == group->host_of[group->rank];
        if (here != (cohi_board_index(&group->board, rank) >= 0))
            return cohi_fail(COH_MISMATCH,
                             "coh_init: the job's board and the connections of its ranks disagree "
                             "about whether rank %d is on the host of rank %d",
                             rank, group->rank);
    }
    return COH_OK;
}

static coh_status welcome_children(cohi_group *group)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_WELCOME, group->rank);
    unsigned char *bytes = malloc(cohi_welcome_bytes(group->hosts, group->size));
    coh_status status = COH_OK;
    if (!bytes)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", group->size);
    frame.bytes = (uint32_t)cohi_welcome_bytes(group->hosts, group->size);
    cohi_welcome_write(group, bytes);
    for (int i = 0; i < group->child_count && status == COH_OK; i++) {
        const cohi_child *child = &group->children[i];
        int error = cohi_link_send(child->fd, &frame, bytes, &group->board.fd, child->leads ? 0 : 1,
                                   cohi_tree_patience(group));
        status = error ? cohi_tree_fail_link(error, child->rank) : COH_OK;
    }
    free(bytes);
    return status;
}

/* The names are of use to who looks at the board. */
static coh_status complete_host(struct joining *self)
{
    cohi_group *group = self->group;
    coh_status status = self->launched ? check_board(self) : make_board(self);
    for (int rank = 0; rank < group->size && status == COH_OK; rank++)
        cohi_board_tell_host(&group->board, rank, group->names[group->host_of[rank]]);
    return status == COH_OK ? welcome_children(group) : status;
}

/* ---- the root ---- */

static int count_absent(const cohi_group *group)
{
    int count = 0;
    for (int rank = 0; rank < group->size; rank++)
        count += group->absent[rank];
    return count;
}

static coh_status gather_all(struct joining *self)
{
    cohi_group *group = self->group;
    coh_status status = COH_OK;
    while (count_absent(group) > 0 && status == COH_OK) {
        status = cohi_vigil_keep(group, &self->vigil);
        if (status == COH_OK)
            status = attend(self, COHI_TREE_TICK_NS);
    }
    if (status != COH_OK)
        return status;
    cohi_welcome_order(group);
    return complete_host(self);
}

static coh_status join_as_root(struct joining *self)
{
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_group *group = self->group;
    coh_status status = cohi_door_open(&self->id, group->size, &self->door);
    if (status != COH_OK)
        return status;
    cohi_unique_id_socket(&self->id, name);
    int error = cohi_door_listen(self->door, self->host_socket);
    if (!error) /* in this order: see seek_root */
        error = cohi_door_listen(self->door, name);
    if (error == EADDRINUSE)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: rank 0 of this unique id is taken by another process");
    if (error)
        return cohi_fail_os(error, "coh_init: rank 0 cannot listen for the others");
    (void)note_arrival(group, 0, add_host(group, self->host));
    return gather_all(self);
}

/* ---- other leaders ---- */

/* A member waits for its leader, which where no launcher says so is none before rank 0 has come. */
static int awaited_rank(const struct joining *self)
{
    const cohi_group *group = self->group;
    int leader = self->launched ? cohi_board_ranks(&group->board)[0] : 0;
    return leader == group->rank ? 0 : leader;
}

/* What a rank does while it cannot ask yet. */
static coh_status keep_seeking(struct joining *self)
{
    cohi_group *group = self->group;
    char text[128];
    double waited_s;
    bool warn = cohi_vigil_warns(&self->vigil, &waited_s);
    uint64_t now = cohi_now_ns();
    if (now >= self->vigil.deadline_ns)
        return cohi_fail(COH_TIMED_OUT,
                         "coh_init: rank %d of %d did not come within %.1f s "
                         "(COHORT_INIT_TIMEOUT), so rank %d could not ask who else is missing",
                         awaited_rank(self), group->size, waited_s, group->rank);
    if (!warn && now < self->vigil.word_at_ns)
        return COH_OK;
    snprintf(text, sizeof text, "has waited %.1f s in init for rank %d, which has not come",
             waited_s, awaited_rank(self));
    if (warn)
        cohi_log(COH_LOG_WARN, "rank %d %s", group->rank, text);
    cohi_tree_word(group, group->rank, warn ? text : "");
    self->vigil.word_at_ns = now + group->patience.timeout_ns / 4;
    return COH_OK;
}

/* Checks whose process listens at a local name, and says who this is. */
static coh_status greet(struct joining *self, int link, bool leads, pid_t *process)
{
    cohi_group *group = self->group;
    cohi_hello hello = cohi_link_hello(group->rank, group->size, self->host);
    uid_t user;
    group->up = link;
    group->up_rank = leads ? 0 : awaited_rank(self);
    group->heard_ns = cohi_now_ns();
    int error = cohi_os_peer_credentials(link, &user, process);
    if (error || user != geteuid())
        return cohi_fail(COH_TRANSPORT,
                         "coh_init: the process that listens as rank %d belongs to another user",
                         group->up_rank);
    hello.leads = leads;
    memcpy(hello.secret, self->id.secret, sizeof hello.secret);
    error = cohi_os_send(link, &hello, sizeof hello, NULL, 0, cohi_tree_patience(group));
    /* What one that closed the connection has said before is still to be read. */
    return error && error != ECONNRESET ? cohi_tree_fail_link(error, group->up_rank) : COH_OK;
}

/* *link stays -1 while rank 0 does not listen. */
static coh_status seek_root(const struct joining *self, int *link)
{
    char name[COHI_SOCKET_NAME_BYTES];
    *link = -1;
    cohi_unique_id_socket(&self->id, name);
    int error = cohi_os_local_connect(name, link);
    if (error && error != ECONNREFUSED && error != EAGAIN)
        return cohi_fail_os(error, "coh_init: rank %d cannot connect to rank 0", self->group->rank);
    return COH_OK;
}

/* The root refuses one that the leader let in. */
static void refuse_child(cohi_group *group, int rank)
{
    coh_status status = (coh_status)group->incoming.frame.status;
    (void)cohi_fail(status, "%s", (const char *)group->incoming.payload);
    for (int i = 0; i < group->child_count; i++) {
        if (group->children[i].rank != rank)
            continue;
        cohi_tree_send_failure(group->children[i].fd, -1, status);
        cohi_tree_drop_child(group, i);
        return;
    }
}

/* *welcome: all are here. */
static coh_status hear_root(cohi_group *group, bool *welcome)
{
    bool came;
    size_t most = cohi_welcome_bytes(group->size, group->size);
    coh_status status = cohi_tree_hear(group, most, false, &came);
    if (status != COH_OK || !came)
        return status;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind == COHI_LINK_FAILED)
        refuse_child(group, frame->rank);
    else if (frame->kind == COHI_LINK_WELCOME && cohi_welcome_read(group))
        *welcome = true;
    else
        return cohi_tree_fail_link(EPROTO, 0);
    return COH_OK;
}

/* Greets the root by `link` and tells it who has come already. */
static coh_status meet_root(struct joining *self, int link)
{
    cohi_group *group = self->group;
    pid_t process;
    coh_status status = greet(self, link, true, &process);
    for (int i = 0; i < group->child_count && status == COH_OK; i++)
        status = tell_arrival(group, group->children[i].rank);
    return status;
}

/* One turn of a leader that is not the root. `link` is a connection to the root, or -1. */
static coh_status lead_on(struct joining *self, int link, bool *welcome)
{
    cohi_group *group = self->group;
    coh_status status = COH_OK;
    if (group->up < 0 && link < 0)
        status = seek_root(self, &link);
    if (status == COH_OK && link >= 0)
        status = meet_root(self, link);
    if (status == COH_OK && group->up < 0)
        status = keep_seeking(self);
    if (status == COH_OK)
        status = attend(self, group->up < 0 ? RETRY_NS : COHI_TREE_TICK_NS);
    if (status == COH_OK && group->up >= 0)
        status = hear_root(group, welcome);
    if (status == COH_OK && group->up >= 0)
        status = cohi_tree_check_silence(group);
    return status;
}

/* Binds the host's name, and leads if it was free. Takes `link` over: a connection to the root, or
 * -1. */
static coh_status join_as_leader(struct joining *self, int link, bool *joined)
{
    cohi_group *group = self->group;
    coh_status status = cohi_door_open(&self->id, group->size, &self->door);
    int error = status == COH_OK ? cohi_door_listen(self->door, self->host_socket) : 0;
    if (status != COH_OK || error) {
        cohi_os_close(link);
        cohi_door_close(self->door);
        self->door = NULL;
        return !error || error == EADDRINUSE
                   ? status
                   : cohi_fail_os(error,
                                  "coh_init: rank %d cannot listen for the ranks of its host",
                                  group->rank);
    }
    (void)note_arrival(group, group->rank, 0);
    for (bool welcome = false; !welcome && status == COH_OK; link = -1)
        status = lead_on(self, link, &welcome);
    *joined = status == COH_OK;
    return *joined ? complete_host(self) : status;
}

/* ---- members ---- */

/*
 * The leader broke the connection before its welcome. It has ended, which shows in its process
 * within a moment; or it lives, and refused this one.
 */
static coh_status fail_refused(const cohi_group *group, pid_t leader)
{
    uint64_t until = cohi_now_ns() + END_SHOWS_NS;
    while (leader > 0 && !cohi_os_process_ended(leader)) {
        if (cohi_now_ns() >= until)
            return cohi_fail(COH_TRANSPORT,
                             "coh_init: the leader of this host (process %d) closed the connection "
                             "of rank %d: it is of another job, or the unique id differs",
                             (int)leader, group->rank);
        sleep_ns(RETRY_NS);
    }
    return cohi_tree_fail_link(ECONNRESET, group->up_rank);
}

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

static coh_status await_welcome(cohi_group *group, pid_t leader)
{
    bool came;
    size_t most = cohi_welcome_bytes(group->size, group->size);
    coh_status status = cohi_tree_hear(group, most, true, &came);
    if (status == COH_PEER_LOST && group->incoming.frame.kind != COHI_LINK_FAILED)
        return fail_refused(group, leader);
    if (status != COH_OK)
        return status;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind != COHI_LINK_WELCOME || !cohi_welcome_read(group)) {
        cohi_tree_drop_fds(group);
        return cohi_tree_fail_link(EPROTO, group->up_rank);
    }
    group->up_rank = frame->rank;
    return take_board(group);
}

/* *joined: welcomed. Else the host has no leader yet. */
static coh_status join_as_member(struct joining *self, bool *joined)
{
    pid_t leader;
    int link;
    int error = cohi_os_local_connect(self->host_socket, &link);
    if (error == ECONNREFUSED || error == EAGAIN)
        return COH_OK;
    if (error)
        return cohi_fail_os(error, "coh_init: rank %d cannot connect to the leader of its host",
                            self->group->rank);
    coh_status status = greet(self, link, false, &leader);
    if (status == COH_OK)
        status = await_welcome(self->group, leader);
    *joined = status == COH_OK;
    return status;
}

/* ---- all of them ---- */

/*
 * Without a launcher the first rank of a host leads it, but the root leads its own. Where rank 0 may
 * come to this host, nobody leads before it listens: it binds the name of its host first and its
 * own then, so that a rank that reaches it, and after that still no leader of its host, is on
 * another one.
 */
static coh_status join_unlaunched(struct joining *self, bool *joined)
{
    int link = -1;
    coh_status status = join_as_member(self, joined);
    if (*joined || status != COH_OK)
        return status;
    if (self->root_is_far)
        return join_as_leader(self, -1, joined);
    status = seek_root(self, &link);
    if (status != COH_OK || link < 0)
        return status;
    status = join_as_member(self, joined);
    if (!*joined && status == COH_OK)
        return join_as_leader(self, link, joined);
    cohi_os_close(link);
    return status;
}

static coh_status join_launched(struct joining *self, bool *joined)
{
    cohi_group *group = self->group;
    return cohi_board_ranks(&group->board)[0] == group->rank ? join_as_leader(self, -1, joined)
                                                             : join_as_member(self, joined);
}

static coh_status join_host(struct joining *self)
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

/* The hosts of a launcher are told apart by their boards. */
static void name_host(struct joining *self)
{
    const cohi_board *board = &self->group->board;
    char tag[COHI_HOST_NAME_BYTES + 1];
    if (self->launched)
        snprintf(tag, sizeof tag, "%d", (int)cohi_board_ranks(board)[0]);
    else
        snprintf(tag, sizeof tag, "=%s", self->spec->host);
    cohi_unique_id_host_socket(&self->id, tag, self->host_socket);
    if (self->launched)
        snprintf(self->host, sizeof self->host, "%s", board->head->host);
    else if (*self->spec->host)
        snprintf(self->host, sizeof self->host, "%s", self->spec->host);
    else
        cohi_os_host_name(self->host, sizeof self->host);
}

coh_status cohi_gather(cohi_group *group, const cohi_group_spec *spec)
{
    struct joining self = {.group = group, .spec = spec, .launched = group->board.head != NULL};
    coh_status status = cohi_unique_id_read(spec->id, &self.id);
    if (status != COH_OK)
        return status;
    name_host(&self);
    self.vigil = cohi_vigil_begin(group, "have come");
    for (int rank = 0; rank < group->size; rank++) {
        group->absent[rank] = 1;
        group->host_of[rank] = -1;
    }
    status = is_root(&self) ? join_as_root(&self) : join_host(&self);
    cohi_door_close(self.door);
    if (status != COH_OK)
        cohi_tree_pass_failure(group, status, -1);
    return status;
}
