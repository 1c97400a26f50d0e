/* old_driver.c - as much of a driver that is too old as is asked for before it is refused. */

int cuDriverGetVersion(int *version);

__attribute__((visibility("default"))) int cuDriverGetVersion(int *version)
{
    *version = 11040;
    return 0;
}
