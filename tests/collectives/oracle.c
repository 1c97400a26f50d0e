#include "collectives/oracle.h"

#include <math.h>
#include <string.h>

bool oracle_is_float(coh_dtype dtype)
{
    return dtype == COH_F64 || dtype == COH_F32 || dtype == COH_F16 || dtype == COH_BF16
           || dtype == COH_F8E4M3 || dtype == COH_F8E5M2;
}

bool oracle_is_signed(coh_dtype dtype)
{
    return dtype >= COH_I8 && dtype <= COH_I64;
}

bool oracle_allows(coh_dtype dtype, coh_reduce_op op)
{
    if (op == COH_MEAN)
        return dtype != COH_BOOL;
    bool bitwise = op == COH_AND || op == COH_OR || op == COH_XOR;
    return !bitwise || !oracle_is_float(dtype);
}

/* ---- integers and bool: in 64 bits, which wrap as shorter ones do ---- */

static uint64_t load_integer(coh_dtype dtype, const void *element)
{
    uint64_t value = 0;
    size_t bytes = coh_dtype_size(dtype);
    memcpy(&value, element, bytes); /* little end first */
    unsigned unused = (unsigned)(64 - 8 * bytes);
    if (oracle_is_signed(dtype)) /* the sign goes all the way up */
        return (uint64_t)((int64_t)(value << unused) >> unused);
    return value;
}

static uint64_t divide(coh_dtype dtype, uint64_t sum, int count)
{
    if (oracle_is_signed(dtype))
        return (uint64_t)((int64_t)sum / count);
    return sum / (uint64_t)count;
}

static uint64_t fold_integer(coh_dtype dtype, coh_reduce_op op, uint64_t left, uint64_t right)
{
    bool less = oracle_is_signed(dtype) ? (int64_t)right < (int64_t)left : right < left;
    switch (op) {
    case COH_SUM:
    case COH_MEAN:
        return left + right;
    case COH_PRODUCT:
        return left * right;
    case COH_MIN:
        return less ? right : left;
    case COH_MAX:
        return less ? left : right;
    case COH_AND:
        return left & right;
    case COH_OR:
        return left | right;
    default:
        return left ^ right;
    }
}

static void reduce_integers(coh_dtype dtype, coh_reduce_op op, const unsigned char *elements,
                            int count, void *result)
{
    size_t bytes = coh_dtype_size(dtype);
    uint64_t value = load_integer(dtype, elements);
    for (int i = 1; i < count; i++)
        value = fold_integer(dtype, op, value, load_integer(dtype, elements + (size_t)i * bytes));
    if (dtype == COH_BOOL && op == COH_SUM)
        value = value != 0;
    memcpy(result, &value, bytes);
    if (op == COH_MEAN) {
        value = divide(dtype, load_integer(dtype, result), count); /* of the sum as it wrapped */
        memcpy(result, &value, bytes);
    }
}

/* ---- floats ---- */

static bool comes_first(double left, double right)
{
    return left < right || (left == right && signbit(left) && !signbit(right));
}

static double fold_float(coh_reduce_op op, double left, double right)
{
    switch (op) {
    case COH_SUM:
    case COH_MEAN:
        return left + right;
    case COH_PRODUCT:
        return left * right;
    default:
        break;
    }
    if (isnan(left) || isnan(right))
        return NAN;
    return comes_first(left, right) == (op == COH_MIN) ? left : right;
}

/* A sum, product or quotient of two f32 in f64, rounded to f32, is what f32 arithmetic gives. */
static double round_step(coh_dtype dtype, double value)
{
    return dtype == COH_F64 ? value : (double)(float)value;
}

static void reduce_floats(coh_dtype dtype, coh_reduce_op op, const unsigned char *elements,
                          int count, void *result)
{
    size_t bytes = coh_dtype_size(dtype);
    double value = oracle_decode(dtype, elements);
    for (int i = 1; i < count; i++) {
        double next = oracle_decode(dtype, elements + (size_t)i * bytes);
        value = round_step(dtype, fold_float(op, value, next));
    }
    if (op == COH_MEAN)
        value = round_step(dtype, value / count);
    oracle_encode(dtype, value, result);
}

void oracle_reduce(coh_dtype dtype, coh_reduce_op op, const void *elements, int count, void *result)
{
    if (oracle_is_float(dtype))
        reduce_floats(dtype, op, elements, count, result);
    else
        reduce_integers(dtype, op, elements, count, result);
}

/* ---- what changes nothing ---- */

static uint64_t integer_identity(coh_dtype dtype, coh_reduce_op op)
{
    unsigned bits = 8 * (unsigned)coh_dtype_size(dtype);
    if (dtype == COH_BOOL)
        return op == COH_PRODUCT || op == COH_MIN || op == COH_AND;
    uint64_t top = UINT64_C(1) << (bits - 1);
    switch (op) {
    case COH_PRODUCT:
        return 1;
    case COH_MIN:
        return oracle_is_signed(dtype) ? top - 1 : UINT64_MAX;
    case COH_MAX:
        return oracle_is_signed(dtype) ? top : 0;
    case COH_AND:
        return UINT64_MAX;
    default:
        return 0;
    }
}

static double float_identity(coh_dtype dtype, coh_reduce_op op)
{
    double most = dtype == COH_F8E4M3 ? 448 : INFINITY;
    if (op == COH_MIN)
        return most;
    if (op == COH_MAX)
        return -most;
    return op == COH_PRODUCT ? 1 : 0;
}

void oracle_identity(coh_dtype dtype, coh_reduce_op op, void *element)
{
    uint64_t value = integer_identity(dtype, op);
    if (oracle_is_float(dtype))
        oracle_encode(dtype, float_identity(dtype, op), element);
    else
        memcpy(element, &value, coh_dtype_size(dtype));
}

/* ---- values ---- */

static void draw_float(coh_dtype dtype, coh_reduce_op op, uint64_t number, void *element)
{
    static const double factors[] = {1, -1, 2, 0.5, 1.5, -0.5, 1, -2};
    if (op == COH_SUM || op == COH_MEAN) {
        oracle_encode(dtype, (double)((int)(number % 33) - 16) * 0.25, element);
    } else if (op == COH_PRODUCT) {
        oracle_encode(dtype, factors[number % 8], element);
    } else {
        memcpy(element, &number, coh_dtype_size(dtype));
        if (oracle_is_nan(dtype, element))
            oracle_encode(dtype, 1, element);
    }
}

void oracle_draw(coh_dtype dtype, coh_reduce_op op, uint64_t number, void *element)
{
    number ^= number >> 29;
    if (oracle_is_float(dtype)) {
        draw_float(dtype, op, number, element);
        return;
    }
    if (dtype == COH_BOOL)
        number &= 1;
    memcpy(element, &number, coh_dtype_size(dtype));
}
