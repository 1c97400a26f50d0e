#include "conform.h"

int main(int argc, char **argv)
{
#define ROWS(name)  conform_##name,
#define COUNT(name) conform_##name##_count,
    const test_case *const tables[] = {CONFORM_TABLES(ROWS)};
    const size_t counts[] = {CONFORM_TABLES(COUNT)};
#undef ROWS
#undef COUNT
    return test_suite(argc, argv, tables, counts, sizeof tables / sizeof *tables);
}
