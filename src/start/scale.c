#include "start/scale.h"

#include "bootstrap/door.h"
#include "bootstrap/tree.h"
#include "core/message/mailbox.h"
#include "core/team/team.h"
#include "core/world/world.h"
#include "engine/tcp/tcp.h"

/* Of one element of an array that a structure points to. */
#define EACH(type, array) sizeof(*((type *)0)->array)

/* What a rank has of each other in its own memory and in its slot: arrays of the world's size. */
static uint64_t each_peer(void)
{
    size_t world = sizeof(cohi_peer) + EACH(coh_world, left) + EACH(coh_world, host_of)
                   + EACH(coh_world, doubts) + EACH(coh_world, mute);
    size_t messages = sizeof(cohi_partner) + EACH(cohi_mailbox, active);
    size_t team = EACH(coh_team, ranks) + EACH(coh_team, indices) + EACH(coh_team, meets)
                  + EACH(coh_team, slots);
    size_t host_team = EACH(coh_team, indices);
    size_t slot = sizeof(uint64_t) + 2 * sizeof(cohi_record) /* verdict; records of the world */
                  + sizeof(cohi_traffic);
    size_t group = EACH(cohi_group, children) + EACH(cohi_group, set) + EACH(cohi_group, host_of)
                   + EACH(cohi_group, absent);
    size_t engine = EACH(cohi_endpoint, addresses) + EACH(cohi_endpoint, host_of)
                    + EACH(cohi_endpoint, fates) + EACH(cohi_endpoint, links)
                    + EACH(cohi_endpoint, made) + 2 * sizeof(uint32_t); /* of two segments */
    return world + messages + team + host_team + slot + group + engine;
}

/* Cards as they are kept and as they travel, addresses on their way to the engine, and names. */
static uint64_t each_card(void)
{
    return sizeof(cohi_card) + 2 * cohi_card_most() + COHI_ADDRESS_BYTES + EACH(cohi_group, names);
}

/* Hellos of those that come to rank 0, word of those that come to other leaders, a welcome and two
 * tables to each leader. The ranks of its own host share memory with long tables. In the two exchanges
 * together a card travels once, but for its head. */
static uint64_t through_root(int ranks, int hosts, int locals)
{
    size_t card =
        cohi_card_most() + 2 * sizeof(uint64_t) - COHI_TUNING_BYTES; /* of all but rank 0 */
    uint64_t cards = (uint64_t)ranks * card + COHI_TUNING_BYTES;
    uint64_t arrivals =
        (uint64_t)(locals + hosts) * sizeof(cohi_hello) + (uint64_t)ranks * sizeof(cohi_frame);
    uint64_t near = cards < 2 * COHI_TABLE_INLINE ? cards : 2 * COHI_TABLE_INLINE;
    uint64_t down = cohi_welcome_bytes(hosts, ranks) + 4 * sizeof(cohi_frame);
    uint64_t descriptors = 2 * (uint64_t)locals * (uint64_t)locals * sizeof(cohi_frame);
    return arrivals + cards + (uint64_t)(hosts - 1) * (down + cards)
           + (uint64_t)(locals - 1) * (down + near) + descriptors;
}

/* How many doublings it takes from one to all. */
static int doublings_to(int count)
{
    int steps = 0;
    while (1 << steps < count)
        steps++;
    return steps;
}

/* The leaders tell each other in rounds; the ranks of a host meet in its memory. */
static int barrier_messages(int hosts)
{
    return hosts * doublings_to(hosts);
}

/* The leaders by recursive doubling; those beyond a power of two give and get once. Where another row
 * is cheaper it has fewer messages. */
static int all_reduce_messages(int hosts)
{
    int steps = doublings_to(hosts), group = 1 << steps == hosts ? hosts : 1 << (steps - 1);
    return group * doublings_to(group) + 2 * (hosts - group);
}

cohi_scale cohi_scale_of(int ranks, int hosts)
{
    int locals = (ranks + hosts - 1) / hosts;
    return (cohi_scale){
        .locals = locals,
        .board_bytes = cohi_board_needed(ranks, locals),
        .reserved_bytes = cohi_board_bytes(ranks, locals),
        .peers_bytes = (uint64_t)ranks * each_peer(),
        .joining_bytes = (uint64_t)ranks * each_card(),
        .root_bytes = through_root(ranks, hosts, locals),
        .root_sockets = locals - 1 + hosts - 1,
        .leader_sockets = hosts > 1 ? locals : 0,
        .member_sockets = locals > 1 ? 1 : 0,
        .barrier_messages = barrier_messages(hosts),
        .all_reduce_messages = all_reduce_messages(hosts),
        .hint_messages = hosts > 1 ? 2 * hosts : 0,
    };
}
