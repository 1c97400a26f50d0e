#include "run/interpreter.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the kernel has it: of a first line, and of scripts that are interpreters of scripts. */
enum { LINE_BYTES = 256, DEPTH_MAX = 4 };

/* The file that `program` is, in path[PATH_MAX]. 0, or -1 when there is none. */
static int find(const char *program, char *path)
{
    const char *folder = getenv("PATH");
    if (strchr(program, '/') || !folder) {
        snprintf(path, PATH_MAX, "%s", program);
        return access(path, F_OK);
    }
    for (;;) {
        int length = (int)strcspn(folder, ":");
        snprintf(path, PATH_MAX, "%.*s%s%s", length, folder, length ? "/" : "", program);
        if (access(path, X_OK) == 0)
            return 0;
        if (!folder[length])
            return -1;
        folder += length + 1;
    }
}

/* `line` is the first of the script, without "#!", and ends where the read ended. */
static int name_of_script(const char *line, char *name)
{
    line += strspn(line, " \t");
    snprintf(name, PATH_MAX, "%.*s", (int)strcspn(line, " \t\n"), line);
    return *name ? 0 : -1;
}

static int name_of_elf(int file, const ElfW(Ehdr) * header, char *name)
{
    for (int i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) part;
        off_t at = (off_t)header->e_phoff + i * (off_t)sizeof part;
        if (pread(file, &part, sizeof part, at) != (ssize_t)sizeof part)
            return -1;
        if (part.p_type != PT_INTERP || part.p_filesz == 0 || part.p_filesz >= PATH_MAX)
            continue;
        if (pread(file, name, part.p_filesz, (off_t)part.p_offset) != (ssize_t)part.p_filesz)
            return -1;
        name[part.p_filesz] = '\0';
        return 0;
    }
    return -1;
}

/* The interpreter of the file in name[PATH_MAX]. 0, or -1 when it has none. */
static int interpreter_of(const char *path, char *name)
{
    union {
        ElfW(Ehdr) header;
        char line[LINE_BYTES + 1];
    } start = {.line = ""};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), found = -1;
    if (file < 0)
        return -1;
    ssize_t got = read(file, start.line, LINE_BYTES);
    if (got >= 2 && memcmp(start.line, "#!", 2) == 0)
        found = name_of_script(start.line + 2, name);
    else if (got >= (ssize_t)sizeof start.header && memcmp(start.line, ELFMAG, SELFMAG) == 0
             && start.header.e_phentsize == sizeof(ElfW(Phdr)))
        found = name_of_elf(file, &start.header, name);
    close(file);
    return found;
}

static void copy_visible(const char *from, char *name, size_t room)
{
    size_t used = 0;
    for (; *from && used + 3 <= room; from++) {
        if (iscntrl((unsigned char)*from))
            name[used++] = '^';
        name[used++] = iscntrl((unsigned char)*from) ? (char)(*from ^ 64) : *from;
    }
    name[used] = '\0';
}

int cohi_interpreter_missing(const char *program, char *name, size_t room)
{
    char path[PATH_MAX], next[PATH_MAX];
    if (find(program, path) != 0)
        return 0;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        if (interpreter_of(path, next) != 0)
            return 0;
        if (access(next, F_OK) != 0) {
            copy_visible(next, name, room);
            return 1;
        }
        memcpy(path, next, sizeof path);
    }
    return 0;
}
