#include "bootstrap/joining.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/elsewhere.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_root(const cohi_joining *self)
{
    return self->group->rank == 0;
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

bool cohi_joining_note(cohi_group *group, int rank, int host)
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

coh_status cohi_joining_tell(const cohi_group *group, int rank)
{
    cohi_frame here = cohi_link_frame(COHI_LINK_HERE, rank);
    int error = group->up.fd < 0
                    ? 0
                    : cohi_link_send(&group->up, &here, NULL, NULL, 0, cohi_tree_patience(group));
    /* What a root that closed the connection has said before is still to be read. */
    return error && error != ECONNRESET ? cohi_tree_fail_link(error, group->up_rank) : COH_OK;
}

static coh_status turn_away(cohi_connection *link, coh_status status)
{
    cohi_tree_send_failure(link, -1, status);
    cohi_link_close(link);
    return status;
}

/* Takes the rank that proved by `hello` to be of this job. */
static coh_status admit(cohi_joining *self, const cohi_hello *hello, cohi_connection *link)
{
    cohi_group *group = self->group;
    int rank = hello->frame.rank;
    bool leads = hello->leads != 0;
    coh_status status = judge_hello(group, hello);
    if (status != COH_OK)
        return turn_away(link, status);
    if ((leads && (!is_root(self) || group->hosts == group->size))
        || !cohi_joining_note(group, rank, leads ? group->hosts : 0)) {
        turn_away(link, fail_taken(group, rank)); /* the error of that caller alone */
        return COH_OK;
    }
    if (leads)
        add_host(group, hello->host);
    cohi_tree_add_child(group, *link, rank, leads);
    cohi_vigil_progress(group, &self->vigil);
    return cohi_joining_tell(group, rank);
}

/* A leader tells of a rank of its host. */
static coh_status take_here(cohi_joining *self, const cohi_child *child)
{
    cohi_group *group = self->group;
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind != COHI_LINK_HERE)
        return cohi_tree_fail_link(EPROTO, child->rank);
    if (cohi_joining_note(group, frame->rank, group->host_of[child->rank]))
        cohi_vigil_progress(group, &self->vigil);
    else
        cohi_tree_send_failure(&child->link, frame->rank, fail_taken(group, frame->rank));
    return COH_OK;
}

/* Until it is welcomed a member says nothing: what can be read is its end. */
static coh_status attend_children(cohi_joining *self)
{
    cohi_group *group = self->group;
    for (int i = 0; i < group->child_count; i++) {
        const cohi_child child = group->children[i];
        if (!group->set[i].revents)
            continue;
        coh_status status = cohi_tree_receive(group, &child.link, child.rank, 0);
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
static coh_status check_ends(const cohi_joining *self)
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

coh_status cohi_joining_attend(cohi_joining *self, uint64_t for_ns)
{
    cohi_group *group = self->group;
    cohi_hello hello;
    cohi_connection link;
    int count = group->child_count;
    for (int i = 0; i < count; i++)
        group->set[i] = (struct pollfd){.fd = group->children[i].link.fd, .events = POLLIN};
    group->set[count] = (struct pollfd){.fd = group->up.fd, .events = POLLIN};
    coh_status status =
        cohi_door_await(self->door, cohi_now_ns() + for_ns, group->set, count + 1, &hello, &link);
    if (status == COH_OK && link.fd >= 0)
        return admit(self, &hello, &link);
    if (status == COH_OK)
        status = attend_children(self);
    return status == COH_OK ? check_ends(self) : status;
}

/* ---- all are here ---- */

static coh_status make_board(cohi_joining *self)
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
static coh_status check_board(const cohi_joining *self)
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
        int error = cohi_link_send(&child->link, &frame, bytes, &group->board.fd,
                                   child->leads ? 0 : 1, cohi_tree_patience(group));
        status = error ? cohi_tree_fail_link(error, child->rank) : COH_OK;
    }
    free(bytes);
    return status;
}

/* The names are of use to who looks at the board. */
coh_status cohi_joining_complete(cohi_joining *self)
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

static coh_status gather_all(cohi_joining *self)
{
    cohi_group *group = self->group;
    coh_status status = COH_OK;
    while (count_absent(group) > 0 && status == COH_OK) {
        status = cohi_vigil_keep(group, &self->vigil);
        if (status == COH_OK)
            status = cohi_joining_attend(self, COHI_TREE_TICK_NS);
    }
    if (status != COH_OK)
        return status;
    cohi_welcome_order(group);
    return cohi_joining_complete(self);
}

static coh_status join_as_root(cohi_joining *self)
{
    char name[COHI_SOCKET_NAME_BYTES];
    cohi_group *group = self->group;
    coh_status status = cohi_door_open(&self->id, group->size, &self->door);
    if (status != COH_OK)
        return status;
    cohi_unique_id_socket(&self->id, name);
    int error = cohi_door_listen(self->door, self->host_socket);
    if (!error) /* in this order: see join_unlaunched */
        error = cohi_door_listen(self->door, name);
    if (error == EADDRINUSE)
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "coh_init: rank 0 of this unique id is taken by another process");
    if (error)
        return cohi_fail_os(error, "coh_init: rank 0 cannot listen for the others");
    cohi_door_listen_far(self->door, &self->spec->listeners);
    (void)cohi_joining_note(group, 0, add_host(group, self->host));
    return gather_all(self);
}

/* ---- all of them ---- */

/* The hosts of a launcher are told apart by their boards. */
static void name_host(cohi_joining *self)
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
    cohi_joining self = {.group = group, .spec = spec, .launched = group->board.head != NULL};
    coh_status status = cohi_unique_id_read(spec->id, &self.id);
    if (status != COH_OK)
        return status;
    name_host(&self);
    cohi_reach_begin(&self.reach, &self.id, group->rank, group->size);
    self.vigil = cohi_vigil_begin(group, "have come");
    for (int rank = 0; rank < group->size; rank++) {
        group->absent[rank] = 1;
        group->host_of[rank] = -1;
    }
    status = is_root(&self) ? join_as_root(&self) : cohi_joining_seek(&self);
    cohi_door_close(self.door);
    cohi_reach_end(&self.reach);
    if (status != COH_OK)
        cohi_tree_pass_failure(group, status, -1);
    return status;
}
