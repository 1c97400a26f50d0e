/* info_scale.c - `cohort info --scale`: what a job of some size costs, from the structures as they are. */
#include "info.h"

#include "base/config.h"
#include "base/error.h"
#include "bootstrap/board.h"
#include "start/scale.h"

#include <stdio.h>
#include <string.h>

int cohi_info_take_scale(const char *flag, const char *value, int *ranks, int *hosts)
{
    char first[32];
    uint64_t rank_count, host_count;
    const char *comma = strchr(value, ',');
    snprintf(first, sizeof first, "%.*s", (int)strcspn(value, ","), value);
    if (!comma) {
        cohi_fail(COH_INVALID_ARGUMENT, "%s: '%s' is not RANKS,HOSTS, such as 1000,16", flag,
                  value);
        return -1;
    }
    if (cohi_parse_count(flag, first, 1, 1000000, &rank_count) != COH_OK
        || cohi_parse_count(flag, comma + 1, 1, rank_count, &host_count) != COH_OK)
        return -1;
    *ranks = (int)rank_count;
    *hosts = (int)host_count;
    return 0;
}

json_t *cohi_info_scale(int ranks, int hosts)
{
    cohi_scale scale = cohi_scale_of(ranks, hosts);
    return json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i}", "ranks",
        ranks, "ranks_at_most", COHI_WORLD_MAX, "ranks_on_a_host_at_most", COHI_RANKS_MAX, "hosts",
        hosts, "ranks_on_a_host", scale.locals, "board_bytes", (json_int_t)scale.board_bytes,
        "board_reserved_bytes", (json_int_t)scale.reserved_bytes, "rank_for_others_bytes",
        (json_int_t)scale.peers_bytes, "rank_while_joining_bytes", (json_int_t)scale.joining_bytes,
        "through_rank_0_bytes", (json_int_t)scale.root_bytes, "sockets_of_rank_0",
        scale.root_sockets, "sockets_of_a_leader", scale.leader_sockets, "sockets_of_a_rank",
        scale.member_sockets, "barrier_messages", scale.barrier_messages, "all_reduce_8_messages",
        scale.all_reduce_messages, "hint_messages_at_most", scale.hint_messages);
}

int cohi_info_print_scale(const json_t *info)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)info, name, value)
    {
        cohi_info_print_fact(name, value);
    }
    return 0;
}
