/*
 * aside.h - for how long the thread of an engine stands aside while ranks look for what comes themselves.
 *
 * It wakes now and then to see whether they still do, which costs a rank that polls some 15 us of its core: with a
 * period of 250 us a message of 8 bytes takes 6.3 us, with one of 4 ms 5.6 (engine ucx, Zen 5). So periods double, up to a
 * limit, as long as ranks look in each of them. What comes for a rank that has ended its wait, and computes, is late by
 * no more than it has looked before, and by no more than the limit.
 */
#ifndef COHI_ENGINE_MODULES_ASIDE_H
#define COHI_ENGINE_MODULES_ASIDE_H

#include "base/clock.h"

#define COHI_ASIDE_FIRST_NS (250 * COHI_NS_PER_US)
#define COHI_ASIDE_LATE_NS  (2 * COHI_NS_PER_MS)

/* The period behind one in which ranks have looked. */
static inline uint64_t cohi_aside_next(uint64_t period_ns, uint64_t most_ns)
{
    return 2 * period_ns < most_ns ? 2 * period_ns : most_ns;
}

#endif
