/* json_text.h - text from outside as JSON, which takes nothing but UTF-8. */
#ifndef COHI_TOOLS_JSON_TEXT_H
#define COHI_TOOLS_JSON_TEXT_H

#include <jansson.h>

static inline json_t *cohi_json_text(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("(not UTF-8)");
}

#endif
