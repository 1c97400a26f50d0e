#include "start/dissolve.h"

#include "base/os.h"
#include "core/onesided/context.h"
#include "core/heap/device.h"
#include "core/heap/heap.h"
#include "start/init_threads.h"
#include "core/message/mailbox.h"
#include "core/health/peer.h"
#include "core/onesided/race.h"
#include "core/onesided/relay.h"
#include "core/heap/register.h"
#include "core/health/survey.h"
#include "core/team/team.h"
#include "core/health/watch.h"

/* What hangs on a tombstone: handles that programs may still hold. */
static void forget(coh_world *world)
{
    cohi_team_forget_all(world);
    cohi_context_forget_all(world);
    cohi_mailbox_forget(world);
    cohi_heap_forget_all(world);
}

void cohi_world_close_endpoint(coh_world *world)
{
    cohi_device_close(world);
    if (!world->endpoint)
        return;
    world->engine->lifecycle->close(world->endpoint);
    cohi_engine_dismiss(world->engine);
}

static void leave_job(coh_world *world)
{
    if (world->crew) {
        cohi_crew_leave(world);
    } else {
        cohi_world_close_endpoint(world);
        cohi_group_leave(world->group);
    }
}

void cohi_world_dissolve(coh_world *world)
{
    cohi_world_withdraw(world);
    cohi_mailbox_shut(world);
    cohi_watch_remove(world);
    for (int i = 0; i < world->size; i++)
        cohi_os_close(world->peers[i].pidfd);
    cohi_register_close(world);
    cohi_heap_close_all(world);
    cohi_team_close_all(world);
    cohi_context_close_all(world);
    leave_job(world);
    cohi_mailbox_close(world);
    cohi_relay_close(world);
    cohi_race_close(world);
    world->endpoint = NULL;
    world->group = NULL;
    world->slot = NULL;
    cohi_survey_close(world);
    cohi_peer_close_all(world);
    cohi_world_bury(world, forget);
}
