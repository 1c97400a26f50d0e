#include "collectives/oracle.h"

#include <math.h>
#include <string.h>

/* The layout of a float of at most 16 bits. */
static const struct layout {
    int exponent_bits, fraction_bits;
    bool finite; /* no infinity: the last exponent has numbers, and one NaN */
} layouts[] = {
    [COH_F16] = {5, 10, false},
    [COH_BF16] = {8, 7, false},
    [COH_F8E4M3] = {4, 3, true},
    [COH_F8E5M2] = {5, 2, false},
};

static unsigned load_bits(coh_dtype dtype, const void *element)
{
    uint16_t wide = 0;
    memcpy(&wide, element, coh_dtype_size(dtype)); /* little end first */
    return wide;
}

static void store_bits(coh_dtype dtype, unsigned bits, void *element)
{
    uint16_t wide = (uint16_t)bits;
    memcpy(element, &wide, coh_dtype_size(dtype));
}

static int bias_of(const struct layout *layout)
{
    return (1 << (layout->exponent_bits - 1)) - 1;
}

static double decode_small(coh_dtype dtype, const void *element)
{
    const struct layout *layout = &layouts[dtype];
    unsigned bits = load_bits(dtype, element);
    int fraction_bits = layout->fraction_bits, last = (1 << layout->exponent_bits) - 1;
    int fraction = (int)(bits & ((1u << fraction_bits) - 1));
    int exponent = (int)(bits >> fraction_bits) & last;
    double sign = bits >> (layout->exponent_bits + fraction_bits) & 1 ? -1 : 1;
    if (exponent == last && layout->finite && fraction == (1 << fraction_bits) - 1)
        return NAN;
    if (exponent == last && !layout->finite)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias_of(layout) - fraction_bits);
    return sign
           * ldexp((1 << fraction_bits) + fraction, exponent - bias_of(layout) - fraction_bits);
}

/* Exponent and fraction of what overflowed, or is NaN. */
static unsigned beyond(const struct layout *layout, bool is_nan)
{
    unsigned last = ((1u << layout->exponent_bits) - 1) << layout->fraction_bits;
    if (layout->finite)
        return last | ((1u << layout->fraction_bits) - 1);
    return is_nan ? last | 1u << (layout->fraction_bits - 1) : last;
}

static unsigned magnitude_bits(const struct layout *layout, double magnitude)
{
    int exponent, one = 1 << layout->fraction_bits, least = 1 - bias_of(layout);
    if (isnan(magnitude) || isinf(magnitude))
        return beyond(layout, isnan(magnitude));
    if (magnitude == 0)
        return 0;
    frexp(magnitude, &exponent); /* of [0.5, 1) */
    int power = exponent - 1 > least ? exponent - 1 : least;
    int steps = (int)nearbyint(ldexp(magnitude, layout->fraction_bits - power));
    unsigned bits = (unsigned)((power - least) * one + steps); /* a carry goes to the exponent */
    return bits >= beyond(layout, false) ? beyond(layout, false) : bits;
}

static void encode_small(coh_dtype dtype, double value, void *element)
{
    const struct layout *layout = &layouts[dtype];
    unsigned sign = signbit(value) ? 1u << (layout->exponent_bits + layout->fraction_bits) : 0;
    store_bits(dtype, sign | magnitude_bits(layout, fabs(value)), element);
}

double oracle_decode(coh_dtype dtype, const void *element)
{
    float single;
    double value;
    if (dtype == COH_F64) {
        memcpy(&value, element, sizeof value);
        return value;
    }
    if (dtype != COH_F32)
        return decode_small(dtype, element);
    memcpy(&single, element, sizeof single);
    return (double)single;
}

void oracle_encode(coh_dtype dtype, double value, void *element)
{
    float single = (float)value;
    if (dtype == COH_F64)
        memcpy(element, &value, sizeof value);
    else if (dtype == COH_F32)
        memcpy(element, &single, sizeof single);
    else
        encode_small(dtype, value, element);
}

bool oracle_is_nan(coh_dtype dtype, const void *element)
{
    return oracle_is_float(dtype) && isnan(oracle_decode(dtype, element));
}
