/*
 * broadcast.c - from one member of a team to all, by a binomial tree of messages.
 *
 * The members agree on root and length first, so that members that differ are told so, and none
 * waits for a message that nobody sends.
 */
#include "core/agree.h"
#include "core/message.h"

enum { CHILDREN_MOST = COHI_ROUNDS };

/* One broadcast, as a member sees it. */
struct tree {
    coh_team *team;
    const char *call;
    int root;
    uint32_t tag; /* of this broadcast alone */
    void *data;
    size_t bytes;
};

static void prepare(const struct tree *tree, coh_request *request, cohi_opcode op, int relative)
{
    int index = (relative + tree->root) % tree->team->size;
    cohi_message_prepare(request, tree->team, op, index, tree->tag, tree->data, tree->bytes);
    request->doing = COHI_OP_BROADCAST;
    cohi_message_start(request);
}

static coh_status from_parent(const struct tree *tree, int relative)
{
    coh_request request;
    prepare(tree, &request, COHI_OP_RECEIVE, relative & (relative - 1));
    return cohi_request_finish(&request, tree->call);
}

/* The children of a member are those that differ from it in one bit below its lowest; the farthest,
 * which has the most to do, first. */
static coh_status to_children(const struct tree *tree, int relative)
{
    coh_request requests[CHILDREN_MOST];
    int count = 0, bit = 1;
    while (bit < tree->team->size && !(relative & bit))
        bit *= 2;
    for (bit /= 2; bit > 0; bit /= 2)
        if (relative + bit < tree->team->size)
            prepare(tree, &requests[count++], COHI_OP_SEND, relative + bit);
    coh_status status = COH_OK;
    for (int i = 0; i < count; i++) {
        coh_status ended = cohi_request_finish(&requests[i], tree->call);
        status = status == COH_OK ? ended : status;
    }
    return status;
}

static coh_status spread(const struct tree *tree)
{
    int relative = (tree->team->index - tree->root + tree->team->size) % tree->team->size;
    coh_status status = relative == 0 ? COH_OK : from_parent(tree, relative);
    return status == COH_OK ? to_children(tree, relative) : status;
}

static coh_status check(const struct tree *tree)
{
    const coh_team *team = tree->team;
    if (tree->root < 0 || tree->root >= team->size)
        return cohi_world_fail(team->world, tree->call, COH_UNKNOWN_RANK,
                               "there is no member %d to be the root; this team has %d (0 to %d)",
                               tree->root, team->size, team->size - 1);
    if (!tree->data && tree->bytes > 0)
        return cohi_world_fail(team->world, tree->call, COH_INVALID_ARGUMENT,
                               "data is NULL, for %zu bytes", tree->bytes);
    return COH_OK;
}

coh_status coh_team_broadcast(coh_team *team, int root, void *data, size_t bytes)
{
    struct tree tree = {
        .team = team, .call = "coh_team_broadcast", .root = root, .data = data, .bytes = bytes};
    coh_status status = cohi_team_gate(team, tree.call);
    if (status == COH_OK)
        status = cohi_team_assemble(team, tree.call, COHI_OP_BROADCAST);
    if (status != COH_OK)
        return status;
    cohi_record record = {.op = COHI_OP_BROADCAST,
                          .status = (int32_t)check(&tree),
                          .argument = {(uint64_t)root, bytes}};
    status = cohi_agree(team, tree.call, &record);
    tree.tag = COHI_TAG_INTERNAL | (record.epoch & COH_TAG_MAX);
    if (status == COH_OK && bytes > 0)
        status = spread(&tree);
    return cohi_team_leave(team, status);
}
