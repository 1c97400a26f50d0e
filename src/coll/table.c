/* table.c - all algorithms by number: first those of mapped/, then those of message/. */
#include "coll/call/algorithm.h"

static unsigned count_mapped(void)
{
    unsigned count = 0;
    while (cohi_mapped_algorithms[count].name)
        count++;
    return count;
}

const cohi_algorithm *cohi_algorithm_at(unsigned number)
{
    if (number < count_mapped())
        return &cohi_mapped_algorithms[number];
    const cohi_algorithm *row = cohi_message_algorithms;
    for (number -= count_mapped(); row->name && number > 0; number--)
        row++;
    return row->name ? row : NULL;
}

unsigned cohi_algorithm_number(const cohi_algorithm *algorithm)
{
    if (algorithm->traits & COHI_MAPPED)
        return (unsigned)(algorithm - cohi_mapped_algorithms);
    return count_mapped() + (unsigned)(algorithm - cohi_message_algorithms);
}
