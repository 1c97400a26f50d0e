#include "bootstrap/tree.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One exchange. */
struct exchange {
    cohi_card_part part;
    cohi_card *all;       /* [size]; NULL: a meeting, of which nothing is kept */
    unsigned char *table; /* cards as they travel; first those of this host, in the end all */
    size_t bytes, room;
    int sender; /* the link that said that it is over, or -1 */
};

/* ---- cards ---- */

static size_t most_of_table(const cohi_group *group)
{
    return (size_t)group->size * cohi_card_most();
}

static coh_status append(struct exchange *exchange, const void *cards, size_t bytes)
{
    if (exchange->bytes + bytes > exchange->room) {
        size_t room = 2 * (exchange->bytes + bytes);
        unsigned char *longer = realloc(exchange->table, room);
        if (!longer)
            return cohi_fail(COH_NO_MEMORY, "out of memory for %zu bytes of cards", room);
        exchange->table = longer;
        exchange->room = room;
    }
    if (bytes > 0)
        memcpy(exchange->table + exchange->bytes, cards, bytes);
    exchange->bytes += bytes;
    return COH_OK;
}

static coh_status append_own(struct exchange *exchange, const cohi_card *mine)
{
    unsigned char *bytes = malloc(cohi_card_most());
    if (!bytes)
        return cohi_fail(COH_NO_MEMORY, "out of memory for a card");
    coh_status status = append(exchange, bytes, cohi_card_write(mine, exchange->part, bytes));
    free(bytes);
    return status;
}

/* Takes all cards out of the table. This rank's own stays as it is. */
static coh_status read_table(cohi_group *group, struct exchange *exchange)
{
    cohi_card mine = exchange->all[group->rank];
    memset(group->absent, 0, (size_t)group->size);
    unsigned char *seen = group->absent;
    bool whole = cohi_card_read(exchange->table, exchange->bytes, exchange->part, group->size,
                                exchange->all, seen);
    for (int rank = 0; rank < group->size && whole; rank++)
        whole = seen[rank];
    exchange->all[group->rank] = mine;
    return whole ? COH_OK : cohi_tree_fail_link(EPROTO, 0);
}

/* ---- descriptors ---- */

static void drop_descriptors(const cohi_group *group, cohi_card *all)
{
    for (int rank = 0; all && rank < group->size; rank++)
        for (int i = 0; i < COHI_CARD_FDS && rank != group->rank; i++) {
            cohi_os_close(all[rank].fds[i]);
            all[rank].fds[i] = -1;
        }
}

static int collect_fds(const cohi_card *card, int *fds, uint32_t *set)
{
    int count = 0;
    *set = 0;
    for (int i = 0; i < COHI_CARD_FDS; i++)
        if (card->fds[i] >= 0) {
            *set |= 1u << i;
            fds[count++] = card->fds[i];
        }
    return count;
}

/* Those that came with the last frame become the card's. EMFILE when the kernel could not give them
 * all: the descriptor limit is reached. */
static int take_fds(cohi_group *group, cohi_card *card)
{
    int taken = 0, error = 0;
    for (int i = 0; i < COHI_CARD_FDS; i++) {
        bool expected = group->incoming.frame.fd_set >> i & 1;
        card->fds[i] = expected && taken < group->fd_count ? group->fds[taken++] : -1;
        error = expected && card->fds[i] < 0 ? EMFILE : error;
    }
    for (int i = taken; i < group->fd_count; i++)
        cohi_os_close(group->fds[i]);
    group->fd_count = 0;
    return error;
}

/* ---- up ---- */

/* What a child has sent: its card and its descriptors, or the cards of its host. */
static coh_status take_cards(cohi_group *group, struct exchange *exchange, const cohi_child *child)
{
    const cohi_frame *frame = &group->incoming.frame;
    if (frame->kind != COHI_LINK_CARD) {
        cohi_tree_drop_fds(group);
        return cohi_tree_fail_link(EPROTO, child->rank);
    }
    int error = child->leads || !exchange->all ? 0 : take_fds(group, &exchange->all[child->rank]);
    cohi_tree_drop_fds(group);
    if (error)
        return cohi_tree_fail_link(error, child->rank);
    return append(exchange, group->incoming.payload, frame->bytes);
}

/* One that has done its part can only have ended, or say that it is over. */
static coh_status hear_child(cohi_group *group, struct exchange *exchange, int index)
{
    cohi_child *child = &group->children[index];
    size_t limit = child->leads ? most_of_table(group) : cohi_card_most();
    coh_status status = cohi_tree_receive(group, &child->link, child->rank, limit);
    if (status != COH_OK) {
        exchange->sender = child->link.fd;
        return status;
    }
    if (!child->awaited) {
        cohi_tree_drop_fds(group);
        return cohi_tree_fail_link(EPROTO, child->rank);
    }
    child->awaited = false;
    return take_cards(group, exchange, child);
}

/* Marks whom the rest of the tree waits for: on the root, all ranks behind the links that have not
 * said anything. */
static int mark_absent(cohi_group *group)
{
    int awaited = 0;
    memset(group->absent, 0, (size_t)group->size);
    for (int i = 0; i < group->child_count; i++) {
        const cohi_child *child = &group->children[i];
        awaited += child->awaited;
        for (int rank = 0; child->awaited && rank < group->size; rank++)
            group->absent[rank] |=
                rank == child->rank
                || (child->leads && group->host_of[rank] == group->host_of[child->rank]);
    }
    return awaited;
}

/* Sleeps until a link shows something, and hears it. *heard: something came from above. */
static coh_status turn(cohi_group *group, struct exchange *exchange, size_t limit, bool *heard)
{
    coh_status status = COH_OK;
    int count = group->child_count;
    for (int i = 0; i < count; i++)
        group->set[i] = (struct pollfd){.fd = group->children[i].link.fd, .events = POLLIN};
    group->set[count] = (struct pollfd){.fd = group->up.fd, .events = POLLIN};
    if (cohi_os_poll(group->set, (size_t)count + 1, (int)(COHI_TREE_TICK_NS / COHI_NS_PER_MS)) <= 0)
        return COH_OK;
    for (int i = 0; i < count && status == COH_OK; i++)
        if (group->set[i].revents)
            status = hear_child(group, exchange, i);
    if (status == COH_OK && group->set[count].revents) {
        status = cohi_tree_hear(group, limit, false, heard);
        exchange->sender = status == COH_OK ? -1 : group->up.fd;
    }
    return status;
}

static coh_status collect(cohi_group *group, struct exchange *exchange)
{
    coh_status status = COH_OK;
    bool heard = false;
    cohi_vigil vigil = cohi_vigil_begin(group, "are ready");
    for (int i = 0; i < group->child_count; i++)
        group->children[i].awaited = true;
    for (int left = mark_absent(group), before; left > 0 && status == COH_OK;) {
        status = cohi_vigil_keep(group, &vigil);
        if (status == COH_OK)
            status = turn(group, exchange, 0, &heard);
        if (status == COH_OK && heard) /* nothing is due from above before this host is ready */
            status = cohi_tree_fail_link(EPROTO, group->up_rank);
        before = left;
        left = mark_absent(group);
        if (left < before)
            cohi_vigil_progress(group, &vigil);
    }
    return status;
}

/* The one above may have told why before it closed the link; that says more than the broken link. */
static coh_status explain_break(cohi_group *group, struct exchange *exchange, int error)
{
    bool came = false;
    exchange->sender = group->up.fd;
    if (error == ECONNRESET) {
        coh_status status = cohi_tree_hear(group, most_of_table(group), true, &came);
        cohi_tree_drop_fds(group);
        if (status != COH_OK)
            return status;
    }
    return cohi_tree_fail_link(error, group->up_rank);
}

static coh_status send_up(cohi_group *group, struct exchange *exchange, const cohi_card *mine)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_CARD, group->rank);
    int fds[COHI_CARD_FDS], count = 0;
    bool near = group->child_count == 0 && group->up_rank != group->rank
                && group->host_of[group->up_rank] == group->host_of[group->rank];
    if (near && mine)
        count = collect_fds(mine, fds, &frame.fd_set);
    frame.bytes = (uint32_t)exchange->bytes;
    int error =
        cohi_link_send(&group->up, &frame, exchange->table, fds, count, cohi_tree_patience(group));
    return error ? explain_break(group, exchange, error) : COH_OK;
}

/* Waits for what comes from above in answer, watching those below meanwhile. */
static coh_status await_answer(cohi_group *group, struct exchange *exchange, cohi_link_kind kind)
{
    bool came = false;
    coh_status status = COH_OK;
    group->heard_ns = cohi_now_ns();
    while (status == COH_OK && !came) {
        if (group->child_count > 0) {
            status = turn(group, exchange, most_of_table(group), &came);
            if (status == COH_OK && !came)
                status = cohi_tree_check_silence(group);
        } else {
            status = cohi_tree_hear(group, most_of_table(group), true, &came);
            exchange->sender = status == COH_OK ? -1 : group->up.fd;
        }
    }
    if (status == COH_OK && group->incoming.frame.kind != (uint32_t)kind) {
        cohi_tree_drop_fds(group);
        return cohi_tree_fail_link(EPROTO, group->up_rank);
    }
    return status;
}

/* ---- down ---- */

static int give(cohi_group *group, const cohi_connection *link, const cohi_card *card)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_GIVE, card->rank);
    int fds[COHI_CARD_FDS], count = collect_fds(card, fds, &frame.fd_set);
    return cohi_link_send(link, &frame, NULL, fds, count, cohi_tree_patience(group));
}

static bool is_near(const cohi_group *group, int rank)
{
    return group->host_of[rank] == group->host_of[group->rank];
}

/* The table in memory that the ranks of this host share. */
static coh_status share_table(const struct exchange *exchange, int *fd)
{
    void *base;
    int error = cohi_os_shared_create("cohort-cards", exchange->bytes, fd);
    if (!error)
        error = cohi_os_commit_shared(*fd, 0, exchange->bytes);
    if (!error)
        error = cohi_os_map_shared(*fd, exchange->bytes, cohi_os_page_bytes(), &base);
    if (error)
        return cohi_fail_os(error, "cannot share %zu bytes of cards", exchange->bytes);
    memcpy(base, exchange->table, exchange->bytes);
    cohi_os_unmap(base, exchange->bytes);
    return COH_OK;
}

/* By the link, or to those of this host by `shared` where that is one. */
static int send_table(cohi_group *group, const struct exchange *exchange, const cohi_child *child,
                      int shared)
{
    cohi_frame frame = cohi_link_frame(COHI_LINK_TABLE, group->rank);
    bool by_memory = shared >= 0 && !child->leads;
    frame.bytes = by_memory ? 0 : (uint32_t)exchange->bytes;
    return cohi_link_send(&child->link, &frame, exchange->table, &shared, by_memory,
                          cohi_tree_patience(group));
}

/* The table to all; to those of this host the others' descriptors too. */
static coh_status hand_to_children(cohi_group *group, const struct exchange *exchange, int shared)
{
    cohi_vigil vigil = cohi_vigil_begin(group, "");
    for (int i = 0; i < group->child_count; i++) {
        const cohi_child *child = &group->children[i];
        int error = send_table(group, exchange, child, shared);
        for (int rank = 0; rank < group->size && !error && !child->leads; rank++)
            if (rank != child->rank && is_near(group, rank))
                error = give(group, &child->link, &exchange->all[rank]);
        if (error)
            return cohi_tree_fail_link(error, child->rank);
        if (cohi_now_ns() >= vigil.word_at_ns) {
            cohi_tree_word(group, group->rank, "");
            vigil = cohi_vigil_begin(group, "");
        }
    }
    return COH_OK;
}

static coh_status hand_down(cohi_group *group, const struct exchange *exchange)
{
    int shared = -1;
    coh_status status =
        exchange->bytes > COHI_TABLE_INLINE ? share_table(exchange, &shared) : COH_OK;
    if (status == COH_OK)
        status = hand_to_children(group, exchange, shared);
    cohi_os_close(shared);
    return status;
}

static coh_status take_given(cohi_group *group, struct exchange *exchange)
{
    for (int rank = 0; rank < group->size; rank++) {
        if (rank == group->rank || !is_near(group, rank))
            continue;
        coh_status status = await_answer(group, exchange, COHI_LINK_GIVE);
        if (status != COH_OK)
            return status;
        if (group->incoming.frame.rank != rank) {
            cohi_tree_drop_fds(group);
            return cohi_tree_fail_link(EPROTO, group->up_rank);
        }
        int error = take_fds(group, &exchange->all[rank]);
        if (error)
            return cohi_tree_fail_link(error, group->up_rank);
    }
    return COH_OK;
}

/* ---- exchanges ---- */

static bool is_leader(const cohi_group *group)
{
    return group->up.fd < 0 || !is_near(group, group->up_rank);
}

/* Takes the table out of the memory that the leader shares. */
static coh_status take_shared(cohi_group *group, struct exchange *exchange)
{
    void *base;
    size_t bytes = 0;
    int error = cohi_os_file_bytes(group->fds[0], &bytes);
    if (!error && (bytes == 0 || bytes > most_of_table(group)))
        error = EPROTO;
    if (!error)
        error = cohi_os_map_shared(group->fds[0], bytes, cohi_os_page_bytes(), &base);
    cohi_tree_drop_fds(group);
    if (error)
        return cohi_tree_fail_link(error, group->up_rank);
    coh_status status = append(exchange, base, bytes);
    cohi_os_unmap(base, bytes);
    return status;
}

/* The table comes from above; where this is the root, it is complete already. */
static coh_status obtain_table(cohi_group *group, struct exchange *exchange, const cohi_card *mine)
{
    if (group->up.fd < 0)
        return COH_OK;
    coh_status status = send_up(group, exchange, mine);
    if (status == COH_OK)
        status = await_answer(group, exchange, COHI_LINK_TABLE);
    if (status != COH_OK)
        return status;
    exchange->bytes = 0;
    if (group->fd_count > 0)
        return take_shared(group, exchange);
    return append(exchange, group->incoming.payload, group->incoming.frame.bytes);
}

static coh_status exchange_cards(cohi_group *group, struct exchange *exchange,
                                 const cohi_card *mine)
{
    for (int rank = 0; rank < group->size; rank++)
        for (int i = 0; i < COHI_CARD_FDS; i++)
            exchange->all[rank].fds[i] = -1;
    exchange->all[group->rank] = *mine;
    coh_status status = append_own(exchange, mine);
    if (status == COH_OK)
        status = collect(group, exchange);
    if (status == COH_OK)
        status = obtain_table(group, exchange, mine);
    if (status == COH_OK)
        status = read_table(group, exchange);
    if (status == COH_OK)
        status = is_leader(group) ? hand_down(group, exchange) : take_given(group, exchange);
    if (status != COH_OK)
        drop_descriptors(group, exchange->all);
    return status;
}

static coh_status conclude(cohi_group *group, struct exchange *exchange, coh_status status)
{
    free(exchange->table);
    if (status == COH_OK)
        return COH_OK;
    group->out_of_step = true;
    cohi_tree_pass_failure(group, status, exchange->sender);
    return status;
}

coh_status cohi_group_exchange(cohi_group *group, const cohi_card *mine, cohi_card_part part,
                               coh_status ready, cohi_card *all)
{
    struct exchange exchange = {.part = part, .all = all, .sender = -1};
    coh_status status = ready == COH_OK ? exchange_cards(group, &exchange, mine) : ready;
    return conclude(group, &exchange, status);
}

static coh_status meet(cohi_group *group, struct exchange *exchange)
{
    cohi_frame go = cohi_link_frame(COHI_LINK_GO, group->rank);
    coh_status status = collect(group, exchange);
    if (status == COH_OK && group->up.fd >= 0)
        status = send_up(group, exchange, NULL);
    if (status == COH_OK && group->up.fd >= 0)
        status = await_answer(group, exchange, COHI_LINK_GO);
    for (int i = 0; i < group->child_count && status == COH_OK; i++) {
        const cohi_child *child = &group->children[i];
        int error = cohi_link_send(&child->link, &go, NULL, NULL, 0, cohi_tree_patience(group));
        status = error ? cohi_tree_fail_link(error, child->rank) : COH_OK;
    }
    return status;
}

coh_status cohi_group_meet(cohi_group *group, coh_status ready)
{
    struct exchange exchange = {.sender = -1};
    return conclude(group, &exchange, ready == COH_OK ? meet(group, &exchange) : ready);
}
