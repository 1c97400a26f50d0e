#include "core/world/spot.h"

#include <stdio.h>

cohi_spot_text cohi_spot_describe(cohi_spot spot)
{
    cohi_spot_text described;
    size_t room = sizeof described.text;
    unsigned long long offset = cohi_spot_offset(spot);
    if (cohi_spot_heap(spot) == 0)
        snprintf(described.text, room, "offset %llu", offset);
    else
        snprintf(described.text, room, "offset %llu of heap %d", offset, cohi_spot_heap(spot));
    return described;
}
