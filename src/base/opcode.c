#include "base/opcode.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
#define ROW(constant, value, name) [value] = name,
    COHI_OPCODE_TABLE(ROW)
#undef ROW
};

enum { OPCODES = sizeof names / sizeof *names };

const char *cohi_opcode_name(unsigned opcode)
{
    return opcode < OPCODES ? names[opcode] : "an unknown operation";
}

cohi_opcode cohi_opcode_named(const char *name, unsigned long length)
{
    for (size_t i = 1; i < OPCODES; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return (cohi_opcode)i;
    return COHI_OP_NONE;
}
