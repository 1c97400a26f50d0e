/* mlx.c - jobs of mlx.launch, whose ring it describes by a file. */
#include "base/error.h"
#include "base/os.h"
#include "bootstrap/board.h"
#include "rendezvous/mlx_hosts.h"
#include "rendezvous/plain.h"
#include "rendezvous/provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 1 << 20 }; /* 1,024 ranks with some addresses each take a tenth */

static const char *const names[] = {"MLX_RANK", "MLX_HOSTFILE", NULL};
static const cohi_variables variables = {"mlx.launch", names};

cohi_presence cohi_mlx_look(const cohi_config *config, char why[COHI_WHY_BYTES])
{
    (void)config;
    cohi_variables_tell(&variables, why, COHI_WHY_BYTES);
    return cohi_variable("MLX_RANK") || cohi_variable("MLX_HOSTFILE") ? COHI_PRESENT : COHI_ABSENT;
}

static coh_status fail_file(const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "the file of MLX_HOSTFILE %s", why);
    return cohi_variables_refuse(&variables, 0, text);
}

static coh_status read_hosts(cohi_mlx_hosts *hosts)
{
    char *text = malloc(FILE_BYTES);
    if (!text)
        return cohi_fail(COH_NO_MEMORY, "coh_init: out of memory for the file of MLX_HOSTFILE");
    ssize_t length = cohi_os_read_start(cohi_variable("MLX_HOSTFILE"), text, FILE_BYTES);
    coh_status status = COH_OK;
    if (length < 0)
        status = fail_file("cannot be read");
    else if (!cohi_mlx_hosts_parse(text, hosts))
        status = fail_file("is not a list such as [[\"10.0.0.1:5000\"], [\"10.0.0.2:5000\"]]");
    free(text);
    return status;
}

/* Rank 0 listens above the ports of its host that MLX may use itself. */
coh_status cohi_mlx_ask(const cohi_config *config, cohi_launch *launch)
{
    cohi_mlx_hosts hosts;
    cohi_plain plain = {.variables = &variables,
                        .address_from = "MLX_HOSTFILE's first address",
                        .one_host = COHI_PLAIN_UNKNOWN,
                        .near_root = COHI_PLAIN_UNKNOWN};
    coh_status status = cohi_variables_check(&variables);
    if (status == COH_OK)
        status = read_hosts(&hosts);
    if (status == COH_OK && hosts.ranks > COHI_WORLD_MAX)
        status = cohi_fail(COH_LIMIT, "coh_init: MLX_HOSTFILE has %d ranks; there can be %d",
                           hosts.ranks, COHI_WORLD_MAX);
    if (status == COH_OK)
        status = cohi_variable_count("MLX_RANK", 0, (uint64_t)hosts.ranks - 1, &plain.rank);
    if (status != COH_OK)
        return status;
    plain.size = hosts.ranks;
    plain.port = (unsigned)hosts.port + 1;
    snprintf(plain.address, sizeof plain.address, "%s", hosts.address);
    snprintf(plain.job, sizeof plain.job, "mlx %d %d %.200s", hosts.ranks, hosts.port,
             hosts.address);
    return cohi_plain_ask(&plain, config, launch);
}
