/*
 * mlx_hosts.h - the file that mlx.launch gives to its processes: a list of lists of "address:port" in JSON,
 * one a rank: [["10.0.0.1:5000", "10.0.1.1:5000"], ["10.0.0.2:5000"]].
 */
#ifndef COHI_RENDEZVOUS_MLX_HOSTS_H
#define COHI_RENDEZVOUS_MLX_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cohi_mlx_hosts {
    int ranks;
    char address[256]; /* rank 0's first */
    int port;          /* the highest of all ranks that have the same address */
} cohi_mlx_hosts;

/* Reads it; false where it is not such a list, or has nothing for rank 0. */
bool cohi_mlx_hosts_parse(const char *text, cohi_mlx_hosts *hosts);

#endif
