#include "core/team/await.h"

#include "core/health/wait.h"

coh_status cohi_team_wait(const cohi_entry *entry, int index, int count, cohi_look *look,
                          const void *wanted)
{
    coh_team *team = entry->team;
    coh_status status = COH_OK;
    cohi_wait wait;
    cohi_wait_begin(&wait, team->world, entry->call, entry->op, &team->party, team->ranks[index]);
    while (count > 0) {
        if (look(entry, index, wanted, wait.asleep, &status)) {
            index = cohi_team_next(team, index);
            count--;
            continue;
        }
        wait.rank = team->ranks[index];
        if (status == COH_OK)
            status = cohi_wait_step(&wait);
        if (status != COH_OK)
            break;
    }
    cohi_wait_end(&wait);
    return status;
}
