#include "core/world/fault.h"

#include "base/os.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cohi_fault {
    coh_status (*act)(void);
    cohi_opcode op;
    uint64_t nth;
    atomic_uint_fast64_t seen;
};

static coh_status act_kill(void)
{
    kill(getpid(), SIGKILL);
    return COH_OK;
}

static coh_status act_stop(void)
{
    kill(getpid(), SIGSTOP);
    return COH_OK;
}

static coh_status act_exit(void)
{
    exit(0);
}

static coh_status act_crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return COH_OK;
}

static coh_status act_fail(void)
{
    return cohi_fail(COH_NO_MEMORY, "COHORT_FAULT made this step fail");
}

static const struct action {
    const char *name;
    coh_status (*act)(void);
} actions[] = {
    {"kill", act_kill},   {"stop", act_stop}, {"exit", act_exit},
    {"crash", act_crash}, {"fail", act_fail},
};

static coh_status (*find_action(const char *name, size_t length))(void)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strlen(actions[i].name) == length && memcmp(actions[i].name, name, length) == 0)
            return actions[i].act;
    return NULL;
}

static coh_status refuse(const char *script, const char *what)
{
    return cohi_fail(COH_INVALID_ARGUMENT,
                     "COHORT_FAULT: '%s': %s; give ACTION@OPERATION[:NTH][,rank=R] with an action "
                     "of kill, stop, exit, crash, fail (fail at commit only) and an operation such "
                     "as init, malloc, put, get, barrier, finalize",
                     script, what);
}

/* Decimal digits up to `end`; 0 when there are none, or anything else. */
static uint64_t number(const char *text, const char *end)
{
    uint64_t value = 0;
    if (text == end || end - text > 9)
        return 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return 0;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    return value;
}

static coh_status parse_rank(const char *script, const char *comma, int rank, int size, bool *ours)
{
    static const char prefix[] = ",rank=";
    *ours = true;
    if (*comma == '\0')
        return COH_OK;
    const char *digits = comma + strlen(prefix);
    if (strncmp(comma, prefix, strlen(prefix)) != 0 || strspn(digits, "0123456789") == 0
        || digits[strspn(digits, "0123456789")] != '\0')
        return refuse(script, "what follows the comma is not rank=R");
    long named = strtol(digits, NULL, 10);
    if (named >= size)
        return refuse(script, "there is no such rank");
    *ours = named == rank;
    return COH_OK;
}

coh_status cohi_fault_parse(const char *script, int rank, int size, cohi_fault **fault)
{
    *fault = NULL;
    if (!*script)
        return COH_OK;
    const char *at = strchr(script, '@'), *comma = strchrnul(script, ',');
    if (!at || at > comma)
        return refuse(script, "there is no '@'");
    const char *colon = memchr(at, ':', (size_t)(comma - at));
    const char *end = colon ? colon : comma;
    cohi_fault found = {
        .act = find_action(script, (size_t)(at - script)),
        .op = cohi_opcode_named(at + 1, (unsigned long)(end - at - 1)),
        .nth = colon ? number(colon + 1, comma) : 1,
    };
    if (!found.act)
        return refuse(script, "there is no such action");
    if (found.op == COHI_OP_NONE)
        return refuse(script, "there is no such operation");
    if (found.nth == 0)
        return refuse(script, "NTH is not a number from 1 to 999999999");
    if ((found.act == act_fail) != (found.op == COHI_OP_COMMIT))
        return refuse(script, "action fail is for operation commit, which takes no other action");
    bool ours;
    coh_status status = parse_rank(script, comma, rank, size, &ours);
    if (status != COH_OK || !ours)
        return status;
    *fault = malloc(sizeof **fault);
    if (!*fault)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory");
    **fault = found;
    return COH_OK;
}

coh_status cohi_fault_strike(cohi_fault *fault, cohi_opcode op)
{
    if (!fault || fault->op != op || atomic_fetch_add(&fault->seen, 1) + 1 != fault->nth)
        return COH_OK;
    return fault->act();
}
