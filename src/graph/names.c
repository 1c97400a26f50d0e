#include "graph/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* FNV-1a */
static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash;
}

static struct cohi_name *place_of(const cohi_names *names, const char *text, size_t length)
{
    size_t mask = names->room - 1;
    for (size_t i = (size_t)hash_of(text, length) & mask;; i = (i + 1) & mask) {
        struct cohi_name *place = &names->places[i];
        if (!place->text
            || (strncmp(place->text, text, length) == 0 && place->text[length] == '\0'))
            return place;
    }
}

static coh_status grow(cohi_names *names)
{
    cohi_names larger = {NULL, names->room ? 2 * names->room : FIRST_ROOM, names->count};
    larger.places = calloc(larger.room, sizeof *larger.places);
    if (!larger.places)
        return coh_fail(COH_NO_MEMORY, "no memory for %zu names", larger.room);
    for (size_t i = 0; i < names->room; i++)
        if (names->places[i].text)
            *place_of(&larger, names->places[i].text, strlen(names->places[i].text)) =
                names->places[i];
    free(names->places);
    *names = larger;
    return COH_OK;
}

coh_status cohi_names_add(cohi_names *names, const char *text, int number)
{
    if (2 * (names->count + 1) > names->room) {
        coh_status status = grow(names);
        if (status != COH_OK)
            return status;
    }
    struct cohi_name *place = place_of(names, text, strlen(text));
    place->text = text;
    place->number = number;
    names->count++;
    return COH_OK;
}

int cohi_names_find(const cohi_names *names, const char *text, size_t length)
{
    if (names->room == 0)
        return -1;
    const struct cohi_name *place = place_of(names, text, length);
    return place->text ? place->number : -1;
}

void cohi_names_free(cohi_names *names)
{
    free(names->places);
    *names = (cohi_names){NULL, 0, 0};
}

/* In the text of a graph a lone "-" is no inputs at all. */
int cohi_name_valid(const char *text, size_t length)
{
    if (length == 0 || length >= COH_NAME_BYTES || (length == 1 && *text == '-'))
        return 0;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !memchr("._/:-", text[i], 5))
            return 0;
    return 1;
}
