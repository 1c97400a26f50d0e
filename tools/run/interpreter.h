/* interpreter.h - the program that the kernel starts in place of a file that is to be run. */
#ifndef COHI_TOOLS_INTERPRETER_H
#define COHI_TOOLS_INTERPRETER_H

#include <stddef.h>

/*
 * For a program that exec found not to be there (ENOENT): whether its file is there and only its
 * interpreter is missing, that of a script's first line or the loader of an ELF file. If so its name
 * is in name[room], control characters as ^X. `program` is looked for in PATH as execvp(3) does.
 */
int cohi_interpreter_missing(const char *program, char *name, size_t room);

#endif
