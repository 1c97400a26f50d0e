#include "core/company.h"

#include "base/os.h"

/* The others are not timed: reading the clock twice costs a twentieth of a yield. */
enum { TIMED_YIELDS = 8 };

static uint64_t read_ns(_Atomic uint64_t *time_ns)
{
    return atomic_load_explicit(time_ns, memory_order_relaxed);
}

static void write_ns(_Atomic uint64_t *time_ns, uint64_t value)
{
    atomic_store_explicit(time_ns, value, memory_order_relaxed);
}

cohi_rung cohi_company_rung(cohi_company *company, const cohi_scene *scene)
{
    if (company->own_core && !scene->together)
        return scene->looked_ns < COHI_LOOK_NS ? COHI_RUNG_LOOK : COHI_RUNG_SLEEP;
    bool strangers = scene->now_ns < read_ns(&company->avoid_ns);
    bool try_idle_core = company->own_core && scene->now_ns >= read_ns(&company->placed_ns);
    if (strangers || try_idle_core || scene->yields >= company->yields)
        return COHI_RUNG_SLEEP;
    return COHI_RUNG_YIELD;
}

bool cohi_company_times(cohi_company *company)
{
    unsigned yielded = atomic_load_explicit(&company->yielded, memory_order_relaxed);
    atomic_store_explicit(&company->yielded, yielded + 1, memory_order_relaxed);
    return yielded % TIMED_YIELDS == 0 || read_ns(&company->long_ns) != 0;
}

void cohi_company_yielded(cohi_company *company, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t last_ns = read_ns(&company->long_ns);
    bool recent = last_ns != 0 && end_ns - last_ns < COHI_RECENT_NS;
    if (end_ns - begin_ns >= COHI_LONG_YIELD_NS) {
        write_ns(&company->long_ns, end_ns);
        write_ns(&company->avoid_ns, recent ? end_ns + COHI_AVOID_NS : 0);
    } else if (last_ns != 0 && !recent) {
        write_ns(&company->long_ns, 0);
        write_ns(&company->avoid_ns, 0);
    }
}

void cohi_company_placed(cohi_company *company, uint64_t now_ns)
{
    write_ns(&company->placed_ns, now_ns + COHI_PLACED_NS);
}

/* On the board: the number of the core and 1; 0 is not known. */
static unsigned show(cohi_slot *slot)
{
    unsigned core = (unsigned)(cohi_os_core_now() + 1);
    if (atomic_load_explicit(&slot->core, memory_order_relaxed) != core)
        atomic_store_explicit(&slot->core, core, memory_order_relaxed);
    return core;
}

void cohi_company_show(cohi_slot *slot)
{
    (void)show(slot);
}

bool cohi_company_together(cohi_slot *mine, cohi_slot *theirs)
{
    unsigned core = show(mine);
    return core != 0 && theirs && theirs != mine
           && atomic_load_explicit(&theirs->core, memory_order_relaxed) == core;
}
