#include "core/world/spot.h"

#include <stdio.h>

cohi_spot_text cohi_spot_describe_in(int heap, uint64_t offset)
{
    cohi_spot_text described;
    int used =
        snprintf(described.text, sizeof described.text, "offset %llu", (unsigned long long)offset);
    if (heap != 0)
        snprintf(described.text + used, sizeof described.text - (size_t)used, " of heap %d", heap);
    return described;
}

cohi_spot_text cohi_spot_describe(cohi_spot spot)
{
    return cohi_spot_describe_in(cohi_spot_heap(spot), cohi_spot_offset(spot));
}
