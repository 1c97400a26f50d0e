#include <cohort.h>

#define TEXT_OF(number)           #number
#define TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

void coh_version(int *major, int *minor, int *patch)
{
    if (major)
        *major = COH_VERSION_MAJOR;
    if (minor)
        *minor = COH_VERSION_MINOR;
    if (patch)
        *patch = COH_VERSION_PATCH;
}

const char *coh_version_string(void)
{
    return TEXT(COH_VERSION_MAJOR, COH_VERSION_MINOR, COH_VERSION_PATCH);
}
