#include "conform.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 40 };

void conform_note(conform_sightings *seen, bool usual)
{
    atomic_fetch_add(usual ? &seen->usual : &seen->unusual, 1);
}

void conform_until_both_seen(test_rank *self, int ranks, void (*body)(test_rank *self))
{
    conform_sightings *seen = self->shared;
    for (int i = 0; i < SEEDS && !test_failed(); i++) {
        char script[64];
        snprintf(script, sizeof script, "seed=%llu", (unsigned long long)self->seed + (unsigned)i);
        setenv("COHORT_SIM", script, 1);
        test_crew(self, ranks, body);
        if (seen->usual && seen->unusual)
            return;
    }
    test_fail("in %d seeds from %llu on, %llu as usual and %llu not: both should occur", SEEDS,
              (unsigned long long)self->seed, (unsigned long long)seen->usual,
              (unsigned long long)seen->unusual);
}
