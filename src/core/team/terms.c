#include "core/team/terms.h"

#include <stdio.h>

/* ---- collectives on data ---- */

enum { REDUCE_AT = 8, ALGORITHM_AT = 16, ROOT_AT = 32 };

void cohi_terms_pack(const cohi_data_terms *data, uint64_t argument[4])
{
    argument[0] = (uint64_t)data->dtype | (uint64_t)data->reduce << REDUCE_AT
                  | (uint64_t)data->algorithm << ALGORITHM_AT | (uint64_t)data->root << ROOT_AT;
    argument[1] = data->count;
    argument[2] = data->cut;
    argument[3] = 0;
}

/* The low bits of a cut say what the others are. */
enum { CUT_KIND = 3, CUT_STRIDES = 2, CUT_HASH = 3, CUT_BITS = 2, STRIDE_BITS = 31 };

uint64_t cohi_cut_of_hash(uint64_t hash)
{
    return hash ? hash << CUT_BITS | CUT_HASH : 0;
}

uint64_t cohi_cut_of_strides(size_t source, size_t target)
{
    const uint64_t most = (UINT64_C(1) << STRIDE_BITS) - 1;
    if (source > most || target > most)
        return cohi_cut_of_hash(source * UINT64_C(0x9e3779b97f4a7c15) + target);
    return (uint64_t)source << (STRIDE_BITS + CUT_BITS) | (uint64_t)target << CUT_BITS
           | CUT_STRIDES;
}

uint64_t cohi_cut_of_element(size_t bytes)
{
    return (uint64_t)bytes << CUT_BITS;
}

static void describe_cut(uint64_t cut, char *text, size_t room)
{
    const uint64_t most = (UINT64_C(1) << STRIDE_BITS) - 1;
    text[0] = '\0';
    switch (cut & CUT_KIND) {
    case COHI_CUT_OWN:
        snprintf(text, room, ", each its own counts");
        break;
    case CUT_STRIDES:
        snprintf(text, room, ", strides %llu and %llu",
                 (unsigned long long)(cut >> (STRIDE_BITS + CUT_BITS)),
                 (unsigned long long)(cut >> CUT_BITS & most));
        break;
    case CUT_HASH:
        snprintf(text, room, ", counts of hash %llx", (unsigned long long)(cut >> CUT_BITS));
        break;
    }
}

/* What there is to say of a collective. */
static const struct data_row {
    bool reduces, rooted;
} data_rows[] = {
#define ROW(constant, value, name, reduces, root, source, target) [constant] = {reduces, root},
    COH_COLLECTIVE_TABLE(ROW)
#undef ROW
};

bool cohi_terms_on_data(unsigned op)
{
    return op > COHI_OP_COLLECTIVE
           && op < COHI_OP_COLLECTIVE + sizeof data_rows / sizeof *data_rows;
}

static const char *or_unknown(const char *name)
{
    return name ? name : "unknown";
}

static void describe_data(unsigned op, const uint64_t argument[4], char *text, size_t room)
{
    char cut[64];
    const struct data_row *row = &data_rows[op - COHI_OP_COLLECTIVE];
    coh_dtype dtype = (coh_dtype)(argument[0] & 0xff);
    coh_reduce_op reduce = (coh_reduce_op)(argument[0] >> REDUCE_AT & 0xff);
    size_t used;
    if (dtype == 0)
        used = (size_t)snprintf(text, room, "%s(by a function, of %llu elements of %llu bytes",
                                cohi_opcode_name(op), (unsigned long long)argument[1],
                                (unsigned long long)(argument[2] >> CUT_BITS));
    else
        used = (size_t)snprintf(text, room, "%s(%s%s%llu %s", cohi_opcode_name(op),
                                row->reduces ? or_unknown(coh_reduce_op_name(reduce)) : "",
                                row->reduces ? " of " : "", (unsigned long long)argument[1],
                                or_unknown(coh_dtype_name(dtype)));
    if (row->rooted && used < room)
        used +=
            (size_t)snprintf(text + used, room - used, ", root %d", (int)(argument[0] >> ROOT_AT));
    describe_cut(argument[2], cut, sizeof cut);
    if (used < room)
        snprintf(text + used, room - used, "%s)", cut);
}

/* ---- the others ---- */

static const char *const argument_names[][4] = {
    [COHI_OP_MALLOC] = {"bytes"},
    [COHI_OP_CALLOC] = {"bytes"},
    [COHI_OP_ALIGN] = {"bytes", "alignment"},
    [COHI_OP_REALLOC] = {"bytes", NULL, "offset"},
    [COHI_OP_FREE] = {NULL, NULL, "offset"},
    [COHI_OP_SPLIT] = {"start", "stride", "size"},
    [COHI_OP_SPLIT_COLOR] = {NULL, NULL, "width"},
    [COHI_OP_FROM_LIST] = {"count", "hash of the list"},
};

static void describe_named(unsigned op, const uint64_t argument[4], char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s(", cohi_opcode_name(op));
    const char *separator = "";
    bool named = op < sizeof argument_names / sizeof *argument_names;
    for (int i = 0; named && i < 4 && used < room; i++) {
        const char *name = argument_names[op][i];
        if (!name)
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s%s %lld", separator, name,
                                 (long long)argument[i]);
        separator = ", ";
    }
    if (used < room)
        snprintf(text + used, room - used, ")");
}

void cohi_terms_describe(unsigned op, const uint64_t argument[4], char *text, size_t room)
{
    if (cohi_terms_on_data(op))
        describe_data(op, argument, text, room);
    else
        describe_named(op, argument, text, room);
}
