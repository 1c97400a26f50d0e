#include "core/world/company.h"

#include "base/os.h"

static uint64_t read_ns(_Atomic uint64_t *time_ns)
{
    return atomic_load_explicit(time_ns, memory_order_relaxed);
}

static void write_ns(_Atomic uint64_t *time_ns, uint64_t value)
{
    atomic_store_explicit(time_ns, value, memory_order_relaxed);
}

static unsigned read_count(atomic_uint *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void write_count(atomic_uint *count, unsigned value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

cohi_rung cohi_company_rung(cohi_company *company, const cohi_scene *scene)
{
    if (company->own_core && !scene->together)
        return scene->looked_ns < company->look_ns ? COHI_RUNG_LOOK : COHI_RUNG_SLEEP;
    bool strangers = scene->now_ns < read_ns(&company->avoid_ns);
    bool try_idle_core = company->own_core && scene->now_ns >= read_ns(&company->placed_ns);
    if (strangers || try_idle_core || scene->yields >= company->yields)
        return COHI_RUNG_SLEEP;
    return COHI_RUNG_YIELD;
}

bool cohi_company_times(cohi_company *company)
{
    unsigned yielded = read_count(&company->yielded);
    write_count(&company->yielded, yielded + 1);
    return yielded % 8 == 0 || read_count(&company->near) > 0;
}

static void note_long(cohi_company *company, uint64_t now_ns)
{
    unsigned long_ones = read_count(&company->long_ones);
    if (long_ones < COHI_LONG_YIELDS)
        write_count(&company->long_ones, ++long_ones);
    if (long_ones == COHI_LONG_YIELDS)
        write_ns(&company->avoid_ns, now_ns + COHI_AVOID_NS);
    write_count(&company->near, COHI_NEAR_YIELDS);
}

static void note_short(cohi_company *company)
{
    unsigned near = read_count(&company->near);
    if (near == 0)
        return;
    write_count(&company->near, near - 1);
    if (near == 1) {
        write_count(&company->long_ones, 0);
        write_ns(&company->avoid_ns, 0);
    }
}

void cohi_company_yielded(cohi_company *company, uint64_t begin_ns, uint64_t end_ns)
{
    if (end_ns - begin_ns >= COHI_LONG_YIELD_NS)
        note_long(company, end_ns);
    else
        note_short(company);
}

void cohi_company_placed(cohi_company *company, uint64_t now_ns)
{
    write_ns(&company->placed_ns, now_ns + COHI_PLACED_NS);
}

/* On the board: the number of the core and 1; 0 is not known. */
static unsigned show(cohi_slot *slot)
{
    unsigned core = (unsigned)(cohi_os_core_now() + 1);
    if (read_count(&slot->core) != core)
        write_count(&slot->core, core);
    return core;
}

void cohi_company_show(cohi_slot *slot)
{
    (void)show(slot);
}

bool cohi_company_together(cohi_slot *mine, cohi_slot *theirs)
{
    unsigned core = show(mine);
    return core != 0 && theirs && theirs != mine && read_count(&theirs->core) == core;
}
