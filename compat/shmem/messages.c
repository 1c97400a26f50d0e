/* messages.c - what Cohort says, in the words of OpenSHMEM. */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Longer phrases before the words in them. */
static const struct {
    const char *theirs, *ours;
} words[] = {
    {"COHORT_HEAP, cohort run --heap", "SHMEM_SYMMETRIC_SIZE"},
    {"COHORT_HEAP", "SHMEM_SYMMETRIC_SIZE"},
    {"nor in memory that was registered", "nor a global or static variable of the program"},
    {"outside Cohort", "outside the library"},
    {"ranks", "PEs"},
    {"rank", "PE"},
    {"members", "PEs"},
    {"member", "PE"},
    {"world", "job"},
};

static bool in_word(char character)
{
    return isalnum((unsigned char)character) || character == '_';
}

/* The row whose phrase stands at `at` as whole words; -1: none. */
static int find_phrase(const char *text, const char *at)
{
    if (at > text && in_word(at[-1]))
        return -1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].theirs);
        if (strncmp(at, words[i].theirs, length) == 0 && !in_word(at[length]))
            return (int)i;
    }
    return -1;
}

/* Behind "rank 0: coh_put: ", where it begins so: the PE and the routine are told before. */
static const char *skip_caller(const char *text)
{
    int length = 0;
    (void)sscanf(text, "rank %*d: coh_%*[a-z0-9_]: %n", &length);
    return text + length;
}

const char *shmemi_translate(const char *text, char *room, size_t bytes)
{
    size_t used = 0;
    const char *start = skip_caller(text);
    for (const char *at = start; *at && used + 1 < bytes;) {
        int row = find_phrase(start, at);
        if (row < 0) {
            room[used++] = *at++;
            continue;
        }
        int added = snprintf(room + used, bytes - used, "%s", words[row].ours);
        used = used + (size_t)added < bytes ? used + (size_t)added : bytes - 1;
        at += strlen(words[row].theirs);
    }
    room[used] = '\0';
    return room;
}
