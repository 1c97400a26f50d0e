#include <cohort.h>

static const struct dtype_row {
    const char *name;
    size_t bytes;
} dtype_rows[] = {
#define ROW(constant, value, name, bytes) [value] = {name, bytes},
    COH_DTYPE_TABLE(ROW)
#undef ROW
};

static const struct dtype_row *find_dtype(coh_dtype dtype)
{
    size_t index = (size_t)dtype;
    if (index >= sizeof dtype_rows / sizeof *dtype_rows || !dtype_rows[index].name)
        return NULL;
    return &dtype_rows[index];
}

const char *coh_dtype_name(coh_dtype dtype)
{
    const struct dtype_row *row = find_dtype(dtype);
    return row ? row->name : NULL;
}

size_t coh_dtype_size(coh_dtype dtype)
{
    const struct dtype_row *row = find_dtype(dtype);
    return row ? row->bytes : 0;
}

static const char *const reduce_names[] = {
#define ROW(constant, value, name) [value] = name,
    COH_REDUCE_TABLE(ROW)
#undef ROW
};

const char *coh_reduce_op_name(coh_reduce_op op)
{
    size_t index = (size_t)op;
    return index < sizeof reduce_names / sizeof *reduce_names ? reduce_names[index] : NULL;
}
