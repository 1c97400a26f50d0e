#include "bootstrap/tree.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "bootstrap/elsewhere.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- telling all that it is over ---- */

void cohi_tree_send_failure(const cohi_connection *link, int rank, coh_status status)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_FAILED, rank);
    frame.status = (int32_t)status;
    (void)cohi_link_send_text(link, frame, coh_last_error(), cohi_now_ns() + COHI_TREE_ANSWER_NS);
}

void cohi_tree_pass_failure(cohi_group *group, coh_status status, int sender)
{
    if (group->up.fd >= 0 && group->up.fd != sender)
        cohi_tree_send_failure(&group->up, -1, status);
    for (int i = 0; i < group->child_count; i++)
        if (group->children[i].link.fd != sender)
            cohi_tree_send_failure(&group->children[i].link, -1, status);
}

coh_status cohi_tree_fail_link(int error, int rank)
{
    if (error == EMFILE || error == ENFILE)
        return cohi_link_fail_descriptors("descriptors were lost on the way");
    if (error == ECONNRESET)
        return cohi_fail(COH_PEER_LOST, "coh_init: rank %d ended during init", rank);
    if (error == ETIMEDOUT)
        return cohi_fail(COH_TIMED_OUT,
                         "coh_init: rank %d did not answer in time (COHORT_INIT_TIMEOUT)", rank);
    if (error == EBADMSG)
        return cohi_fail(COH_TRANSPORT,
                         "coh_init: what came from rank %d over the network was changed on the way",
                         rank);
    if (error == EPROTO)
        return cohi_fail(COH_TRANSPORT,
                         "coh_init: rank %d sent something that is not a message of Cohort", rank);
    return cohi_fail_os(error, "coh_init: the connection to rank %d failed", rank);
}

/* ---- who is missing ---- */

/* "1, 3 and 2 more" of the ranks that are absent, with their hosts where the board has those. */
static void list_absent(const cohi_group *group, char *text, size_t room)
{
    enum { NAMED = 16 };
    size_t used = 0;
    int named = 0, more = 0;
    for (int rank = 0; rank < group->size; rank++) {
        if (!group->absent[rank])
            continue;
        if (named == NAMED || used + COHI_HOST_NAME_BYTES + 32 > room) {
            more++;
            continue;
        }
        bool elsewhere = group->board.head && cohi_board_index(&group->board, rank) < 0;
        const char *host = elsewhere ? cohi_board_host_of(&group->board, rank) : "";
        used += (size_t)snprintf(text + used, room - used, "%s%d%s%s", named++ ? ", " : "", rank,
                                 *host ? " on host " : "", host);
    }
    if (more)
        snprintf(text + used, room - used, " and %d more", more);
}

static void describe_missing(const cohi_group *group, const cohi_vigil *vigil, char *text,
                             size_t room)
{
    char list[288] = "";
    int missing = 0;
    for (int rank = 0; rank < group->size; rank++)
        missing += group->absent[rank];
    list_absent(group, list, sizeof list);
    snprintf(text, room, "%d of %d ranks %s; missing: rank %s", group->size - missing, group->size,
             vigil->reached, list);
}

static coh_status fail_missing(const cohi_group *group, const cohi_vigil *vigil)
{
    char text[384];
    describe_missing(group, vigil, text, sizeof text);
    return cohi_fail(COH_TIMED_OUT,
                     "coh_init: %s (waited %.1f s, and %.1f s since the last one: "
                     "COHORT_INIT_TIMEOUT)",
                     text, (double)(cohi_now_ns() - vigil->began_ns) / 1e9,
                     (double)group->patience.timeout_ns / 1e9);
}

/* ---- waiting ---- */

cohi_vigil cohi_vigil_begin(const cohi_group *group, const char *reached)
{
    uint64_t now = cohi_now_ns(), timeout = group->patience.timeout_ns;
    return (cohi_vigil){.reached = reached,
                        .began_ns = now,
                        .deadline_ns = now + (group->up.fd < 0 ? timeout : timeout - timeout / 8),
                        .warn_at_ns = group->patience.warn_ns,
                        .word_at_ns = now + group->patience.timeout_ns / 4};
}

void cohi_vigil_progress(const cohi_group *group, cohi_vigil *vigil)
{
    uint64_t timeout = group->patience.timeout_ns, until = cohi_now_ns() + timeout;
    uint64_t most = vigil->began_ns + COHI_PATIENCE_STRETCH * timeout;
    vigil->deadline_ns = until < most ? until : most;
}

bool cohi_vigil_warns(cohi_vigil *vigil, double *waited_s)
{
    uint64_t waited = cohi_now_ns() - vigil->began_ns;
    *waited_s = (double)waited / 1e9;
    if (vigil->warn_at_ns == 0 || waited < vigil->warn_at_ns)
        return false;
    vigil->warn_at_ns = 2 * waited;
    return true;
}

coh_status cohi_vigil_keep(cohi_group *group, cohi_vigil *vigil)
{
    char missing[384], text[480] = "";
    double waited_s;
    uint64_t now = cohi_now_ns();
    if (now >= vigil->deadline_ns)
        return fail_missing(group, vigil);
    bool warn = cohi_vigil_warns(vigil, &waited_s);
    if (!warn && now < vigil->word_at_ns)
        return COH_OK;
    if (warn) {
        describe_missing(group, vigil, missing, sizeof missing);
        snprintf(text, sizeof text, "has waited %.1f s in init: %s", waited_s, missing);
        cohi_log(COH_LOG_WARN, "rank %d %s", group->rank, text);
    }
    cohi_tree_word(group, group->rank, text);
    vigil->word_at_ns = now + group->patience.timeout_ns / 4;
    return COH_OK;
}

static bool shows(int link, short events)
{
    struct pollfd look = {.fd = link, .events = events};
    return cohi_os_poll(&look, 1, 0) > 0;
}

/* A socket that can be written to has room for a whole text. */
void cohi_tree_word(cohi_group *group, int rank, const char *text)
{
    for (int i = 0; i < group->child_count; i++)
        if (shows(group->children[i].link.fd, POLLOUT))
            (void)cohi_link_send_text(&group->children[i].link,
                                      cohi_link_frame(COHI_LINK_WAIT, rank), text,
                                      cohi_now_ns() + COHI_TREE_ANSWER_NS);
}

uint64_t cohi_tree_patience(const cohi_group *group)
{
    return cohi_now_ns() + group->patience.timeout_ns;
}

/* ---- receiving ---- */

void cohi_tree_drop_fds(cohi_group *group)
{
    while (group->fd_count > 0)
        cohi_os_close(group->fds[--group->fd_count]);
}

/* `until_ns` is for the first byte; a frame that has begun comes soon. */
static coh_status receive_until(cohi_group *group, const cohi_connection *link, int rank,
                                size_t limit, uint64_t until_ns)
{
    cohi_incoming *incoming = &group->incoming;
    size_t most = limit > COHI_LINK_TEXT_BYTES ? limit : COHI_LINK_TEXT_BYTES;
    int error = cohi_link_receive(link, most, incoming, group->fds, COHI_CARD_FDS, &group->fd_count,
                                  until_ns);
    if (error)
        return cohi_tree_fail_link(error, rank);
    if (incoming->frame.kind != COHI_LINK_FAILED || incoming->frame.rank >= 0)
        return COH_OK;
    cohi_tree_drop_fds(group);
    coh_status status = (coh_status)incoming->frame.status;
    return cohi_fail(status == COH_OK ? COH_TRANSPORT : status, "%s",
                     (const char *)incoming->payload);
}

coh_status cohi_tree_receive(cohi_group *group, const cohi_connection *link, int rank, size_t limit)
{
    return receive_until(group, link, rank, limit, cohi_tree_patience(group));
}

static void pass_word(cohi_group *group)
{
    const cohi_incoming *incoming = &group->incoming;
    const char *text = (const char *)incoming->payload;
    if (*text)
        cohi_log(COH_LOG_WARN, "rank %d: rank %d %s", group->rank, (int)incoming->frame.rank, text);
    cohi_tree_word(group, incoming->frame.rank, text);
}

/* The time limit of the one above ends first and says who is missing; this one is for one that has
 * fallen silent. */
coh_status cohi_tree_check_silence(const cohi_group *group)
{
    uint64_t most = group->patience.timeout_ns + 2 * COHI_TREE_ANSWER_NS;
    return cohi_now_ns() < group->heard_ns + most ? COH_OK
                                                  : cohi_tree_fail_link(ETIMEDOUT, group->up_rank);
}

coh_status cohi_tree_hear(cohi_group *group, size_t limit, bool block, bool *came)
{
    *came = false;
    while (block || shows(group->up.fd, POLLIN)) {
        uint64_t until = cohi_tree_patience(group) + 2 * COHI_TREE_ANSWER_NS;
        coh_status status = receive_until(group, &group->up, group->up_rank, limit, until);
        group->heard_ns = cohi_now_ns();
        if (status != COH_OK)
            return status;
        if (group->incoming.frame.kind != COHI_LINK_WAIT) {
            *came = true;
            return COH_OK;
        }
        cohi_tree_drop_fds(group);
        pass_word(group);
    }
    return COH_OK;
}

/* ---- children ---- */

void cohi_tree_add_child(cohi_group *group, cohi_connection link, int rank, bool leads)
{
    group->children[group->child_count++] =
        (cohi_child){.link = link, .rank = rank, .leads = leads};
}

void cohi_tree_drop_child(cohi_group *group, int index)
{
    cohi_link_close(&group->children[index].link);
    group->children[index] = group->children[--group->child_count];
}
