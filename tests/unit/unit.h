/* unit.h - what every unit test includes: cmocka needs these before it. */
#ifndef TEST_UNIT_H
#define TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

/* The last error holds the text. */
static inline void assert_says(const char *text)
{
    if (!strstr(coh_last_error(), text))
        fail_msg("the last error lacks '%s': %s", text, coh_last_error());
}

#endif
