/*
 * library.h - libucp, opened at run time.
 *
 * The module is built with UCX's headers and links none of its libraries: where they are not installed
 * the engine is not available, with the loader's reason, and nothing else changes.
 */
#ifndef COHI_ENGINE_UCX_LIBRARY_H
#define COHI_ENGINE_UCX_LIBRARY_H

#include <cohort.h>
#include <stdbool.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

/* X(name): every function of UCX that is called. */
#define COHI_UCX_FUNCTIONS(X)         \
    X(ucp_am_data_release)            \
    X(ucp_am_recv_data_nbx)           \
    X(ucp_am_send_nbx)                \
    X(ucp_cleanup)                    \
    X(ucp_config_read)                \
    X(ucp_config_modify)              \
    X(ucp_config_release)             \
    X(ucp_ep_close_nbx)               \
    X(ucp_ep_create)                  \
    X(ucp_get_version)                \
    X(ucp_get_version_string)         \
    X(ucp_init_version)               \
    X(ucp_request_free)               \
    X(ucp_worker_arm)                 \
    X(ucp_worker_create)              \
    X(ucp_worker_destroy)             \
    X(ucp_worker_get_efd)             \
    X(ucp_worker_progress)            \
    X(ucp_worker_query)               \
    X(ucp_worker_release_address)     \
    X(ucp_worker_set_am_recv_handler) \
    X(ucs_log_push_handler)           \
    X(ucs_status_string)

typedef struct cohi_ucx_library {
#define COHI_UCX_MEMBER(name) __typeof__(name) *name;
    COHI_UCX_FUNCTIONS(COHI_UCX_MEMBER)
#undef COHI_UCX_MEMBER
} cohi_ucx_library;

/* Opens it, once a process; it stays open. COH_NOT_AVAILABLE with the reason. */
coh_status cohi_ucx_library_open(const cohi_ucx_library **library);

/* Whether this host has a port of InfiniBand or RoCE that is up, as the kernel says. */
bool cohi_ucx_has_fabric(void);

#endif
