#include "info.h"

#include "base/os.h"
#include "graph/cpu/blas.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

static void add_text(json_t *facts, const char *name, const char *text)
{
    json_object_set_new(facts, name, *text ? json_string(text) : json_null());
}

static void add_number(json_t *facts, const char *name, uint64_t number)
{
    json_object_set_new(facts, name, json_integer((json_int_t)number));
}

/* UINT64_MAX stands for no limit, or not known. */
static void add_limit(json_t *facts, const char *name, uint64_t number, const char *fallback)
{
    if (number == UINT64_MAX)
        add_text(facts, name, fallback);
    else
        add_number(facts, name, number);
}

static void read_line(const char *path, char *text, size_t room)
{
    *text = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(text, (int)room, file))
        *text = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

static void add_kernel(json_t *facts)
{
    struct utsname name;
    char kernel[256] = "";
    if (uname(&name) == 0)
        snprintf(kernel, sizeof kernel, "%.60s %.90s %.60s", name.sysname, name.release,
                 name.machine);
    add_text(facts, "kernel", kernel);
}

static void add_host_id(json_t *facts)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)cohi_os_host_id());
    add_text(facts, "host_id", text);
}

/* Huge pages under a memfd are the business of shmem_enabled, those under private memory of
 * enabled. */
static void add_huge_pages(json_t *facts)
{
    static const char *const files[][2] = {
        {"huge_pages_private", "/sys/kernel/mm/transparent_hugepage/enabled"},
        {"huge_pages_shared", "/sys/kernel/mm/transparent_hugepage/shmem_enabled"},
    };
    char text[128];
    for (size_t i = 0; i < 2; i++) {
        read_line(files[i][1], text, sizeof text);
        add_text(facts, files[i][0], *text ? text : "not in this kernel");
    }
}

static uint64_t soft_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

/* The core type of OpenBLAS, which decides how fast products are. */
static void add_products(json_t *facts)
{
    char text[64] = "no OpenBLAS";
    if (cohi_matmul_open() == COH_OK)
        snprintf(text, sizeof text, "OpenBLAS, %.40s", cohi_matmul_core());
    add_text(facts, "matrix_products", text);
}

json_t *cohi_info_host(void)
{
    json_t *facts = json_object();
    add_kernel(facts);
    add_host_id(facts);
    add_number(facts, "cores_usable", (uint64_t)cohi_os_core_count());
    add_number(facts, "cores_online", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    add_limit(facts, "memory_total_bytes", cohi_os_memory_total(), "unknown");
    add_limit(facts, "memory_available_bytes", cohi_os_memory_look().available, "unknown");
    add_products(facts);
    add_number(facts, "page_bytes", cohi_os_page_bytes());
    add_huge_pages(facts);
    add_limit(facts, "address_space_left_bytes", cohi_os_address_space_left(), "unlimited");
    add_limit(facts, "descriptor_limit", soft_limit(RLIMIT_NOFILE), "unlimited");
    add_limit(facts, "locked_memory_limit_bytes", soft_limit(RLIMIT_MEMLOCK), "unlimited");
    add_limit(facts, "process_limit", soft_limit(RLIMIT_NPROC), "unlimited");
    return facts;
}
