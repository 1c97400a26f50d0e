/* Every type with every operation, of every reducing collective: docs/semantics.md S37 and S40. */
#include "conform.h"

#include "collectives/calls.h"
#include "collectives/oracle.h"

static const coh_dtype dtypes[] = {
#define DTYPE(constant, value, name, bytes) constant,
    COH_DTYPE_TABLE(DTYPE)
#undef DTYPE
};

static const coh_reduce_op ops[] = {
#define OP(constant, value, name) constant,
    COH_REDUCE_TABLE(OP)
#undef OP
};

enum { DTYPES = sizeof dtypes / sizeof *dtypes, OPS = sizeof ops / sizeof *ops };

/* Enough for whole vectors and what is left of one. */
static const size_t lengths[] = {3, 131};

static bool goes(call_kind kind, coh_dtype dtype, coh_reduce_op op)
{
    bool scans = kind == CALL_SCAN || kind == CALL_SCAN_EXCLUSIVE;
    return oracle_allows(dtype, op) && !(scans && op == COH_MEAN);
}

static test_call call_of(const test_rank *self, call_kind kind, int type, int op, size_t count)
{
    int way = type * OPS + op;
    return (test_call){.kind = kind,
                       .dtype = dtypes[type],
                       .op = ops[op],
                       .count = count,
                       .root = way % self->size,
                       .parts = PARTS_RAGGED,
                       .place = (call_place)(way % PLACE_COUNT),
                       .in_place = way % 4 == 3,
                       .shifted = way % 2,
                       .seed = self->seed + (uint64_t)way};
}

static void types(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    coh_team *team = coh_team_world(self->world);
    test_call largest = {.kind = kind, .dtype = COH_F64, .count = 131};
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (int type = 0; type < DTYPES; type++)
        for (int op = 0; op < OPS; op++) {
            if (!goes(kind, dtypes[type], ops[op]))
                continue;
            test_call call = call_of(self, kind, type, op, lengths[(type + op) % 2]);
            call_perform(&rig, team, &call);
            if (test_failed())
                return;
        }
    call_rig_close(&rig);
}

/* What only moves must not care what it is. */
static void moved_types(test_rank *self)
{
    call_kind kind = call_kind_in(self->row->name);
    coh_team *team = coh_team_world(self->world);
    test_call largest = {.kind = kind, .dtype = COH_F64, .count = 131};
    call_rig rig;
    if (!call_rig_open(&rig, self->world, call_bytes(&largest, self->size)))
        return;
    for (int type = 0; type < DTYPES; type++) {
        test_call call = call_of(self, kind, type, 0, lengths[type % 2]);
        if (!call_perform(&rig, team, &call))
            return;
    }
    call_rig_close(&rig);
}

static void names_of_operations(test_rank *self)
{
    (void)self;
    CHECK(test_holds(coh_reduce_op_name(COH_SUM), "sum"));
    CHECK(test_holds(coh_reduce_op_name(COH_XOR), "xor"));
    CHECK(coh_reduce_op_name((coh_reduce_op)8) == NULL);
    CHECK(coh_reduce_op_name((coh_reduce_op)-1) == NULL);
}

#define REDUCED(collective)                                               \
    {                                                                     \
        .name = "types_of_" collective, .rows = "S37 S40", .body = types, \
        .engines = ON_ALL | ON_CARD, .sizes = ANY_SIZE, .limit_s = 60     \
    }
#define MOVED(collective)                                                      \
    {                                                                          \
        .name = "types_of_" collective, .rows = "S38", .body = moved_types,    \
        .engines = ON_ALL | ON_CARD, .sizes = SIZE(1) | SIZE(3), .limit_s = 60 \
    }

const test_case conform_coll_types[] = {
    REDUCED("all_reduce"),
    REDUCED("reduce"),
    REDUCED("reduce_scatter"),
    REDUCED("reduce_scatter_v"),
    REDUCED("scan"),
    REDUCED("scan_exclusive"),
    MOVED("all_gather"),
    MOVED("all_gather_v"),
    MOVED("gather"),
    MOVED("scatter"),
    MOVED("broadcast"),
    MOVED("all_to_all"),
    MOVED("all_to_all_v"),
    MOVED("all_to_all_strided"),
    CASE(names_of_operations, "F17", ON_THREADS, SIZE(1), .mode = TEST_ALONE),
};
CONFORM_COUNT(coll_types);
