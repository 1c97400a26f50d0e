#include "base/host.h"

#include "base/cancel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static cohi_host_facts facts;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- the CPU's name ---- */

#if defined(__x86_64__)

static void read_brand(char brand[49])
{
    unsigned words[12] = {0};
    unsigned a, b, c, d;
    if (__get_cpuid(0x80000000, &a, &b, &c, &d) && a >= 0x80000004)
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                        &words[4 * i + 3]);
    memcpy(brand, words, 48);
    brand[48] = '\0';
}

static void read_cpu(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    char vendor[13] = "", brand[49];
    if (__get_cpuid(0, &a, &b, &c, &d)) {
        memcpy(vendor, &b, 4);
        memcpy(vendor + 4, &d, 4);
        memcpy(vendor + 8, &c, 4);
    }
    vendor[12] = '\0';
    __get_cpuid(1, &a, &b, &c, &d);
    unsigned family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 15 || family == 6)
        model |= a >> 12 & 0xf0;
    if (family == 15)
        family += a >> 20 & 0xff;
    read_brand(brand);
    snprintf(facts.cpu, sizeof facts.cpu, "%s %u/%u/%u %s", vendor, family, model, a & 15, brand);
}

#else

/* The first lines of /proc/cpuinfo that tell one core's make from another's. */
static void read_cpu(void)
{
    char line[256], part[5] = "", implementer[16] = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file) && !*part) {
        sscanf(line, "CPU implementer : %15s", implementer);
        sscanf(line, "CPU part : %*2c%4s", part);
    }
    if (file)
        fclose(file);
    struct utsname name;
    snprintf(facts.cpu, sizeof facts.cpu, "%.32s %s/%s",
             uname(&name) == 0 ? name.machine : "unknown", implementer, part);
}

#endif

/* One space between words and none at the ends: the text is a line of a file. */
static void tidy(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        bool space = *from == ' ' || *from == '\t' || *from == '\n';
        if (!space)
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    while (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

/* ---- caches ---- */

static bool read_cache_file(int index, const char *name, char *text, size_t room)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(text, (int)room, file) != NULL;
    fclose(file);
    return read;
}

/* "0-3,8" is five. */
static int count_list(const char *list)
{
    int count = 0;
    for (const char *at = list; at && *at;) {
        int first, last;
        int fields = sscanf(at, "%d-%d", &first, &last);
        if (fields < 1)
            break;
        count += fields == 2 && last >= first ? last - first + 1 : 1;
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return count;
}

static void read_cache(int index)
{
    char level[16], type[32], size[32], shared[256];
    if (!read_cache_file(index, "level", level, sizeof level)
        || !read_cache_file(index, "type", type, sizeof type)
        || !read_cache_file(index, "size", size, sizeof size) || type[0] == 'I')
        return;
    char *unit;
    uint64_t bytes = strtoull(size, &unit, 10);
    bytes *= *unit == 'K' ? 1 << 10 : *unit == 'M' ? 1 << 20 : 1;
    if (level[0] == '1')
        facts.level1 = bytes;
    if (level[0] == '2')
        facts.level2 = bytes;
    if (level[0] != '3')
        return;
    facts.level3 = bytes;
    if (read_cache_file(index, "shared_cpu_list", shared, sizeof shared))
        facts.level3_cores = count_list(shared);
}

/* What sysconf is asked for where /sys does not tell; only glibc's knows it. */
#ifdef __GLIBC__
enum {
    ASK_LEVEL1 = _SC_LEVEL1_DCACHE_SIZE,
    ASK_LEVEL2 = _SC_LEVEL2_CACHE_SIZE,
    ASK_LEVEL3 = _SC_LEVEL3_CACHE_SIZE
};
#else
enum { ASK_LEVEL1 = -1, ASK_LEVEL2 = -1, ASK_LEVEL3 = -1 };
#endif

static uint64_t known_or(uint64_t bytes, int name, uint64_t fallback)
{
    long told = bytes == 0 ? sysconf(name) : 0;
    return bytes ? bytes : told > 0 ? (uint64_t)told : fallback;
}

/* What a host without /sys (a bare container) is taken for: the least of what is sold today. */
static void read_caches(void)
{
    enum { MOST = 8, LEVEL1 = 32 << 10, LEVEL2 = 512 << 10 };
    for (int index = 0; index < MOST; index++)
        read_cache(index);
    facts.level1 = known_or(facts.level1, ASK_LEVEL1, LEVEL1);
    facts.level2 = known_or(facts.level2, ASK_LEVEL2, LEVEL2);
    facts.level3 = known_or(facts.level3, ASK_LEVEL3, 4 * facts.level2);
    if (facts.level3_cores < 1)
        facts.level3_cores = facts.cores;
}

/* ---- */

static void read_facts(void)
{
    int held = cohi_cancel_hold();
    struct utsname name;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    facts.cores = online > 0 ? (int)online : 1;
    if (uname(&name) == 0)
        snprintf(facts.kernel, sizeof facts.kernel, "%.32s %.90s", name.sysname, name.release);
    read_cpu();
    tidy(facts.cpu);
    tidy(facts.kernel);
    read_caches();
    facts.slow_level3 =
        strncmp(facts.cpu, "GenuineIntel", 12) == 0 && facts.level2 >= UINT64_C(1) << 20;
    cohi_cancel_release(held);
}

const cohi_host_facts *cohi_host(void)
{
    pthread_once(&once, read_facts);
    return &facts;
}
