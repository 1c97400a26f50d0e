/* peer.h - what another rank has published, read without asking it. */
#ifndef COHI_CORE_HEALTH_PEER_H
#define COHI_CORE_HEALTH_PEER_H

#include "core/world/world.h"

/* In place of a rank in a slot's `waits_for`: its wait may be ended by anybody. */
enum { COHI_WAITS_FOR_ANYBODY = -2 };

typedef struct cohi_sight {
    bool known; /* false: the peer is not mapped and the answer is still on its way */
    bool stopped;
    bool
        mute; /* it does not answer, though its host does; then it is only known what it was last in */
    bool busy; /* threads of it wait, but others do not */
    unsigned phase;
    unsigned op;
    int waits_for; /* a rank, -1 or COHI_WAITS_FOR_ANYBODY */
    uint64_t sequence;
} cohi_sight;

/* It has finalized; what it sent before is here by the time that this is seen. Of a peer that is
 * not mapped this is known when it left because it could not go on, which it says before. */
bool cohi_peer_has_left(coh_world *world, int rank);

cohi_sight cohi_peer_look(coh_world *world, int rank);

/* Whether its process is stopped, as by SIGSTOP or a debugger. */
bool cohi_peer_is_stopped(const coh_world *world, int rank);

/* Whether its host answers and it does not, since the engine said so: it may be stopped, where nobody
 * on its host can tell. *op: what it was last seen in. */
bool cohi_peer_is_mute(coh_world *world, int rank, unsigned *op);

/* The upcall of an engine, again and again as long as that lasts; it ends with the next answer too. */
void cohi_peer_mute(void *world, int rank);

/* Whether a thread of it has a core or waits for one: then it may go on, however long it takes.
 * `slot` is what it has published. */
bool cohi_peer_wants_core(const coh_world *world, int rank, cohi_slot *slot);

/* Asks a peer that is not mapped for what it publishes of itself. False: it has not answered yet.
 * Else its last answer is in `image`, of which the rest is left as it is. */
bool cohi_peer_inspect(coh_world *world, int rank, cohi_slot *image);

/* The endpoint is closed: nothing is under way. */
void cohi_peer_close_all(coh_world *world);

/* "in barrier #88", "outside Cohort", "stopped in get", "in receive #3, for anybody", "outside
 * Cohort, and a thread of it in receive" */
void cohi_sight_describe(const cohi_sight *sight, char *text, size_t room);

#endif
