/* Everything that a user writes and the library reads: settings, fault scripts, the simulator's. */
#include "base/config.h"
#include "core/world/fault.h"
#include "engine/sim/script.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 512, RANKS = 4 };

static void parse_numbers(const char *text)
{
    uint64_t value;
    (void)cohi_parse_size("fuzz", text, &value);
    (void)cohi_parse_seconds("fuzz", text, &value);
    (void)cohi_parse_count("fuzz", text, 1, 100, &value);
}

static void parse_scripts(const char *text)
{
    cohi_fault *fault;
    cohi_script script;
    if (cohi_fault_parse(text, 1, RANKS, &fault) == COH_OK)
        free(fault);
    if (cohi_script_parse(text, RANKS, &script) == COH_OK && script.strike_count > 0
        && script.strikes[0].rank >= RANKS)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[LONGEST + 1];
    size_t length = size < LONGEST ? size : LONGEST;
    memcpy(text, data, length);
    text[length] = '\0';
    parse_numbers(text);
    parse_scripts(text);
    return 0;
}
