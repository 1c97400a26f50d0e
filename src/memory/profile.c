#include "memory/profile.h"

#include "memory/copy_forms.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM_MOST (COHI_COPY_FORMS - 1)

static const cohi_row_info rows[] = {
#define ROW(row, unit, least, most, way, described, what) {#row, unit, least, most, way, what},
    COHI_PROFILE_TABLE(ROW)
#undef ROW
};

const cohi_row_info *cohi_row_at(unsigned row)
{
    return row < COHI_ROWS ? &rows[row] : NULL;
}

bool cohi_row_is_form(unsigned row)
{
    return strcmp(rows[row].unit, "form") == 0;
}

bool cohi_row_could_be(unsigned row, double value)
{
    bool within = value >= rows[row].least && value <= rows[row].most; /* NaN is not */
    return within && (!cohi_row_is_form(row) || cohi_copy_form_available((unsigned)value));
}

void cohi_row_text(unsigned row, double value, char *text, size_t room)
{
    if (cohi_row_is_form(row))
        snprintf(text, room, "%s", cohi_copy_form_name((unsigned)value));
    else
        snprintf(text, room, "%.10g", value);
}

bool cohi_row_parse(unsigned row, const char *text, double *value)
{
    char *end;
    if (!cohi_row_is_form(row)) {
        *value = strtod(text, &end);
        return end != text && *end == '\0' && cohi_row_could_be(row, *value);
    }
    for (unsigned form = 0; cohi_copy_form_name(form); form++)
        if (strcmp(cohi_copy_form_name(form), text) == 0) {
            *value = form;
            return cohi_row_could_be(row, *value);
        }
    return false;
}

/* ---- describing ---- */

/* Bytes copied by one core from which on cached stores are slower than those past the caches. */
static double described_limit(const cohi_host_facts *host)
{
    return host->slow_level3 ? (double)host->level2 * 5 / 8 : (double)host->level3 / 2;
}

/* How one core copies 2^log bytes. */
static double described_copy(const cohi_host_facts *host, int log)
{
    bool fits = (double)(UINT64_C(1) << log) < described_limit(host);
    return fits ? COHI_COPY_LIBC : cohi_copy_form_streamed();
}

static double described_most(double value, double most)
{
    return value < most ? value : most;
}

static double within(unsigned row, double value)
{
    if (!(value >= rows[row].least))
        return rows[row].least;
    return value <= rows[row].most ? value : rows[row].most;
}

cohi_profile cohi_profile_describe(const cohi_host_facts *host)
{
    cohi_profile profile = {.value = {
#define VALUE(row, unit, least, most, way, described, what) [COHI_ROW_##row] = described,
                                COHI_PROFILE_TABLE(VALUE)
#undef VALUE
                            }};
    for (unsigned row = 0; row < COHI_ROWS; row++)
        profile.described[row] = profile.value[row] = within(row, profile.value[row]);
    return profile;
}

/* COHI_COPY_LIBC, the least form, is always there. */
static bool mend(unsigned row, double *value, double fallback)
{
    if (cohi_row_could_be(row, *value))
        return false;
    *value = fallback;
    return true;
}

bool cohi_profile_mend(cohi_profile *profile)
{
    bool mended = false;
    for (unsigned row = 0; row < COHI_ROWS; row++) {
        mended |= mend(row, &profile->described[row], rows[row].least);
        mended |= mend(row, &profile->value[row], profile->described[row]);
    }
    return mended;
}

/* ---- the values that this process uses ---- */

static _Atomic double in_force[COHI_ROWS];
static atomic_bool used;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void cohi_profile_use(const cohi_profile *profile)
{
    for (unsigned row = 0; row < COHI_ROWS; row++)
        atomic_store_explicit(&in_force[row], profile->value[row], memory_order_relaxed);
    atomic_store_explicit(&used, true, memory_order_release);
}

static void use_described(void)
{
    cohi_profile described = cohi_profile_describe(cohi_host());
    if (!atomic_load(&used))
        cohi_profile_use(&described);
}

double cohi_profile_now(cohi_row row)
{
    if (!atomic_load_explicit(&used, memory_order_acquire))
        pthread_once(&once, use_described);
    return atomic_load_explicit(&in_force[row], memory_order_relaxed);
}
