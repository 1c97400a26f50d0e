/*
 * assemble.h - how the members of a team come together for one collective on data.
 *
 * Members that are mapped read each other's posts. Here is what collectives add to them: terms,
 * data, refusals. They are posted and awaited as all calls are (core/team/posts.h), and each member
 * waits only for those whose contribution it needs. Where some are not mapped, those of a host wait for
 * each other and the rest is in the messages (core/team/apart.h). Either way nothing is taken from a
 * member before it is known to be in the same call.
 */
#ifndef COHI_COLL_CALL_ASSEMBLE_H
#define COHI_COLL_CALL_ASSEMBLE_H

#include "coll/call/call.h"
#include "coll/call/gear.h"
#include "core/team/entry.h"

/* The operation that is published while the call runs. */
cohi_opcode cohi_kind_op(const cohi_call *call);

/* Shows waiting members that a long call makes progress. */
void cohi_call_beat(cohi_call *call);

/* Sets the call's terms and fingerprint. */
void cohi_call_sign(cohi_call *call);

/* All wait for all, where all are mapped. `refused` is what this member's own call was refused with,
 * which the others then get as well. Between cohi_team_enter and leave. */
coh_status cohi_assemble(cohi_call *call, coh_status refused);

/* ---- mapped members ---- */

/* Where member `index` stages what is not in a heap. */
static inline cohi_staging *cohi_call_staging(const cohi_call *call, int index)
{
    return cohi_team_gear(call->team)->stagings[index];
}

/* Where `bytes` that member `index` gives in the call of `epoch` lie: beside the mark, behind it, or
 * in the member's scratch, which must be backed. */
static inline char *cohi_given_at(const cohi_call *call, int index, uint32_t epoch, size_t bytes)
{
    cohi_post *post = cohi_meet_post(call->team->meets[index], epoch);
    if (bytes <= COHI_POST_BYTES)
        return (char *)post->data;
    if (bytes <= COHI_POST_WIDE)
        return (char *)post->wide;
    return (char *)cohi_call_staging(call, index)->scratch[epoch % COHI_POSTS];
}

/* Enters, with what is at cohi_given_at of the next epoch for the others to read. */
void cohi_post_enter(cohi_call *call);

/* Enters with a refusal, of which the call has the fingerprint from then on. It waits for nobody. */
void cohi_post_refusal(cohi_call *call, coh_status status);

/* Enters, or enters with a refusal, in a team whose members are not all mapped, and wakes nobody. */
void cohi_post_apart(cohi_call *call, coh_status refused);

/* Once all members of this host have entered: they begin the call's parts on their level alike. */
coh_status cohi_levels_enter(cohi_call *call);

/* The call, which was entered so, is refused after all; for cohi_apart_tell_refusal. */
void cohi_post_change(cohi_call *call, coh_status refused);

/* What the member posted. After cohi_team_await, until this member enters its next call. */
const void *cohi_post_data(const cohi_call *call, int index);

/* Breaks the team over member `index`, which has entered: the others hear of it as of any call that
 * differs. */
void cohi_post_break(cohi_call *call, int index);

/* ---- parts ---- */

/* Which of a member's counts; both start at 0 with the team. */
typedef enum cohi_counter { COHI_READY, COHI_DONE } cohi_counter;

/* Adds one to this member's own, after which the others may see what was stored before. */
void cohi_count_up(cohi_call *call, cohi_counter counter);

/* Waits until the member's (or all members') count is as high as this member's own is now, less
 * `behind`. */
coh_status cohi_count_await(cohi_call *call, cohi_counter counter, int index, uint64_t behind);
coh_status cohi_count_await_all(cohi_call *call, cohi_counter counter, uint64_t behind);

/* Nobody leaves before all are done with its buffers. */
coh_status cohi_count_leave(cohi_call *call);

#endif
