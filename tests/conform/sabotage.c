#include "sabotage.h"

#include <string.h>

enum { COUNT = 10 };

test_call sabotage_call(call_kind kind, uint64_t seed)
{
    return (test_call){.kind = kind,
                       .dtype = COH_F32,
                       .op = COH_SUM,
                       .count = COUNT,
                       .parts = PARTS_EVEN,
                       .place = PLACE_PRIVATE,
                       .started = seed % 4 == 2,
                       .described = seed / 2 % 2 == 1,
                       .seed = seed * 6}; /* even, and not placed: every pointer is passed */
}

coh_status sabotage_outcome(call_rig *rig, coh_team *team, const test_call *call)
{
    coh_status status = call_make(rig, team, call);
    if (status == COH_OK && call->started)
        status = coh_request_wait(&rig->request, NULL);
    return status;
}

bool sabotage_check(const sabotage *row, const test_call *call, coh_status status)
{
    char text[256];
    bool good = (row->statuses >> status & 1) && test_holds(coh_last_error(), row->words);
    if (!good)
        test_fail("%s: %s ended with %s and \"%s\", which should hold %s", row->name,
                  call_text(call, text), coh_status_name(status), coh_last_error(), row->words);
    return good;
}

/* ---- what to spoil ---- */

static bool unknown_type(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->dtype = (coh_dtype)99;
    return true;
}

static bool type_zero(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->dtype = (coh_dtype)0;
    return true;
}

static bool unknown_operation(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->op = (coh_reduce_op)77;
    return call_table[call->kind].reduces;
}

static bool xor_of_floats(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->op = COH_XOR;
    return call_table[call->kind].reduces;
}

static bool mean_of_bool(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->dtype = COH_BOOL;
    call->op = COH_MEAN;
    return call_table[call->kind].reduces;
}

static bool mean_of_scan(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->op = COH_MEAN;
    return call->kind == CALL_SCAN || call->kind == CALL_SCAN_EXCLUSIVE;
}

static bool has_count(const test_call *call)
{
    return call->kind != CALL_REDUCE_SCATTER_V && call->kind != CALL_ALL_GATHER_V
           && call->kind != CALL_GATHER_V && call->kind != CALL_SCATTER_V
           && call->kind != CALL_ALL_TO_ALL_V;
}

/* Times four it is 8 modulo 2^64. */
static bool count_that_wraps(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->count = (SIZE_MAX >> 2) + 3;
    return has_count(call);
}

static bool most_of_all_counts(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->count = SIZE_MAX;
    return has_count(call);
}

static bool counts_that_wrap(call_rig *rig, test_call *call, coh_team *team)
{
    (void)team;
    rig->counts[0][0] = (SIZE_MAX >> 2) + 3;
    return !has_count(call);
}

static bool is_root(const test_call *call, coh_team *team)
{
    return coh_team_index(team) == call->root;
}

static bool no_source(call_rig *rig, test_call *call, coh_team *team)
{
    bool sends =
        call->kind != CALL_SCATTER && call->kind != CALL_SCATTER_V && call->kind != CALL_BROADCAST;
    rig->source = NULL;
    return sends || is_root(call, team);
}

static bool no_target(call_rig *rig, test_call *call, coh_team *team)
{
    bool gets =
        call->kind != CALL_REDUCE && call->kind != CALL_GATHER && call->kind != CALL_GATHER_V;
    rig->target = NULL;
    return gets || is_root(call, team);
}

/* One element further than in place would be. */
static bool overlap_in_part(call_rig *rig, test_call *call, coh_team *team)
{
    size_t element = coh_dtype_size(call->dtype), mine = (size_t)coh_team_index(team) * COUNT;
    if (call_table[call->kind].rooted && !is_root(call, team))
        return false;
    bool gathers = call->kind == CALL_ALL_GATHER || call->kind == CALL_ALL_GATHER_V
                   || call->kind == CALL_GATHER || call->kind == CALL_GATHER_V;
    bool scatters = call->kind == CALL_REDUCE_SCATTER || call->kind == CALL_REDUCE_SCATTER_V
                    || call->kind == CALL_SCATTER || call->kind == CALL_SCATTER_V;
    if (gathers)
        rig->source = rig->target + (mine + 1) * element;
    else
        rig->target = rig->source + (scatters ? mine + 1 : 1) * element;
    return true;
}

static bool in_place_where_it_is_not(call_rig *rig, test_call *call, coh_team *team)
{
    (void)team;
    rig->target = rig->source;
    return !call_table[call->kind].in_place;
}

static bool negative_root(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->root = -1;
    return call_table[call->kind].rooted;
}

static bool root_outside(call_rig *rig, test_call *call, coh_team *team)
{
    (void)rig, (void)team;
    call->root = 1234;
    return call_table[call->kind].rooted;
}

static bool stride_of_zero(call_rig *rig, test_call *call, coh_team *team)
{
    (void)team;
    rig->stride[call->seed % 4 < 2] = 0;
    return call->kind == CALL_ALL_TO_ALL_STRIDED;
}

#define STATUS(status) (1u << (status))
#define ARGUMENT       STATUS(COH_INVALID_ARGUMENT)
#define TOO_MUCH       (ARGUMENT | STATUS(COH_OUT_OF_BOUNDS) | STATUS(COH_LIMIT))
#define ROOT           (ARGUMENT | STATUS(COH_UNKNOWN_RANK))

const sabotage sabotages[] = {
    {"unknown type", unknown_type, ARGUMENT, "99"},
    {"type zero", type_zero, ARGUMENT, "0"},
    {"unknown operation", unknown_operation, ARGUMENT, "77"},
    {"xor of f32", xor_of_floats, ARGUMENT, "xor|f32"},
    {"mean of bool", mean_of_bool, ARGUMENT, "mean|bool"},
    {"mean of a scan", mean_of_scan, ARGUMENT, "mean"},
    {"count that wraps", count_that_wraps, TOO_MUCH, "4611686018427387906"},
    {"most of all counts", most_of_all_counts, TOO_MUCH, "18446744073709551615"},
    {"counts that wrap", counts_that_wrap, TOO_MUCH, "4611686018427387906"},
    {"no source", no_source, ARGUMENT, "source|NULL"},
    {"no target", no_target, ARGUMENT, "target|NULL"},
    {"overlap in part", overlap_in_part, ARGUMENT, "overlap"},
    {"in place", in_place_where_it_is_not, ARGUMENT, ""},
    {"negative root", negative_root, ROOT, "root|-1"},
    {"root outside the team", root_outside, ROOT, "root|1234"},
    {"stride of zero", stride_of_zero, ARGUMENT, "stride|0"},
    {NULL, NULL, 0, NULL},
};
