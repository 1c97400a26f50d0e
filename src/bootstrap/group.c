#include "bootstrap/group.h"

#include "base/error.h"
#include "base/os.h"
#include "bootstrap/tree.h"

#include <stdlib.h>

static coh_status make_group(const cohi_group_spec *spec, cohi_group **group)
{
    size_t size = (size_t)spec->size;
    cohi_group *made = calloc(1, sizeof *made);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory");
    *made = (cohi_group){.rank = spec->rank,
                         .size = spec->size,
                         .patience = spec->patience,
                         .board = {.fd = -1},
                         .up = COHI_NO_LINK,
                         .children = calloc(size, sizeof *made->children),
                         .set = calloc(size + 1, sizeof *made->set),
                         .host_of = calloc(size, sizeof *made->host_of),
                         .names = calloc(size, sizeof *made->names),
                         .absent = calloc(size, sizeof *made->absent)};
    if (!made->children || !made->set || !made->host_of || !made->names || !made->absent) {
        cohi_group_leave(made);
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for %d ranks", spec->size);
    }
    *group = made;
    return COH_OK;
}

coh_status cohi_group_join(const cohi_group_spec *spec, cohi_group **group)
{
    cohi_group *made = NULL;
    coh_status status = make_group(spec, &made);
    if (status != COH_OK)
        return status;
    made->board = *spec->board;
    *spec->board = (cohi_board){.fd = -1};
    status = cohi_gather(made, spec);
    if (status != COH_OK) {
        cohi_group_leave(made);
        return status;
    }
    *group = made;
    return COH_OK;
}

cohi_board *cohi_group_board(cohi_group *group)
{
    return &group->board;
}

int cohi_group_hosts(const cohi_group *group)
{
    return group->hosts;
}

int cohi_group_host_of(const cohi_group *group, int rank)
{
    return group->host_of[rank];
}

bool cohi_group_is_in_step(const cohi_group *group)
{
    return !group->out_of_step;
}

void cohi_group_leave(cohi_group *group)
{
    if (!group)
        return;
    cohi_link_close(&group->up);
    while (group->child_count > 0)
        cohi_tree_drop_child(group, group->child_count - 1);
    cohi_board_close(&group->board);
    free(group->incoming.payload);
    free(group->children);
    free(group->set);
    free(group->host_of);
    free(group->names);
    free(group->absent);
    free(group);
}
