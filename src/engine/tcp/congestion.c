#include "engine/tcp/congestion.h"

#include "base/error.h"
#include "base/os.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The hosts of one room answer within a tenth of this; a city is farther. */
enum { FAR_US = 1000 };

static bool set(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

static bool get(int fd, char name[COHI_TCP_CONGESTION_NAME])
{
    socklen_t length = COHI_TCP_CONGESTION_NAME - 1;
    memset(name, 0, COHI_TCP_CONGESTION_NAME);
    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0;
}

/* BBR and its later versions. */
static bool paces(const char *name)
{
    return strncmp(name, "bbr", 3) == 0;
}

/*
 * Reno, which is always there, before cubic: where round trips are short both grow as fast as each other, and what reno does at
 * each acknowledgement is less. An exchange of 1 KiB by bare sockets takes 4.5 us with it, 4.7 with cubic (Zen 5).
 */
static void choose_near(int fd, cohi_tcp_congestion *chosen)
{
    static const char *const unpaced[] = {"reno", "cubic"};
    char usual[COHI_TCP_CONGESTION_NAME];
    if (!get(fd, usual) || !paces(usual))
        return;
    for (size_t i = 0; i < sizeof unpaced / sizeof *unpaced && !*chosen->near; i++)
        if (set(fd, unpaced[i]))
            strcpy(chosen->near, unpaced[i]);
    if (*chosen->near)
        memcpy(chosen->far, usual, sizeof usual);
}

static coh_status choose_named(int fd, const char *name, cohi_tcp_congestion *chosen)
{
    if (strlen(name) >= sizeof chosen->near || !set(fd, name))
        return cohi_fail(COH_INVALID_ARGUMENT,
                         "COHORT_CONGESTION: '%s' cannot be had here; give auto, system, or a name "
                         "from /proc/sys/net/ipv4/tcp_allowed_congestion_control",
                         name);
    strcpy(chosen->near, name);
    return COH_OK;
}

coh_status cohi_tcp_congestion_choose(const char *wish, cohi_tcp_congestion *chosen)
{
    coh_status status = COH_OK;
    *chosen = (cohi_tcp_congestion){.near = ""};
    if (!wish || strcmp(wish, "system") == 0)
        return COH_OK;
    bool automatic = strcmp(wish, "auto") == 0;
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return automatic ? COH_OK : cohi_fail_os(errno, "COHORT_CONGESTION: no socket can be had");
    if (automatic)
        choose_near(probe, chosen);
    else
        status = choose_named(probe, wish, chosen);
    cohi_os_close(probe);
    return status;
}

void cohi_tcp_congestion_begin(const cohi_tcp_congestion *chosen, int fd)
{
    if (*chosen->near)
        (void)set(fd, chosen->near);
}

void cohi_tcp_congestion_settle(const cohi_tcp_congestion *chosen, int fd, uint32_t round_trip_us)
{
    if (*chosen->far && round_trip_us >= FAR_US)
        (void)set(fd, chosen->far);
}
