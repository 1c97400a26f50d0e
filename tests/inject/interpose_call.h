/* interpose_call.h - what interpose.c tells the functions that stand before libc's. */
#ifndef TEST_INTERPOSE_CALL_H
#define TEST_INTERPOSE_CALL_H

#include "interpose.h"

#include <stddef.h>

enum { INJECT_VARIANTS = 2 };

/* The error that a call from `caller` is to fail with, or 0. `errors` ends with a 0, or is full. */
int inject_error(const void *caller, const char *function, const int errors[INJECT_VARIANTS]);

/* Notes a block that the module got, and returns it; forgets one that anybody frees. */
void *inject_note_block(void *block, const void *caller, const char *function);
void inject_forget_block(const void *block);

#endif
