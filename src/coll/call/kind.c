#include "coll/call/kind.h"

const cohi_kind_row cohi_kind_rows[COHI_KIND_ROWS] = {
#define ROW(constant, value, name, reduces, root, source, target) \
    [constant] = {name, reduces, (cohi_root)root, source, target},
    COH_COLLECTIVE_TABLE(ROW)
#undef ROW
};

const char *coh_collective_name(coh_collective_kind kind)
{
    const cohi_kind_row *row = cohi_kind_row_of(kind);
    return row ? row->name : NULL;
}
