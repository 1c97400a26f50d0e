#include "card.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static cohi_card_driver driver;
static bool is_open;
static char refusal[512];
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static const struct symbol {
    const char *name;
    size_t at;
} symbols[] = {
#define SYMBOL(name, symbol, arguments) {symbol, offsetof(cohi_card_driver, name)},
    COHI_CARD_CALLS(SYMBOL)
#undef SYMBOL
};

static bool find_symbols(void *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            snprintf(refusal, sizeof refusal, "libcuda.so.1 has no %s: the driver is too old",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)&driver + symbols[i].at, &address, sizeof address);
    }
    return true;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(refusal, sizeof refusal, "%s", dlerror());
        return;
    }
    if (!find_symbols(library))
        return;
    int error = driver.init(0);
    const char *text = NULL;
    (void)driver.describe(error, &text);
    if (error)
        snprintf(refusal, sizeof refusal, "cuInit: %s (error %d)", text ? text : "?", error);
    is_open = error == 0;
}

const cohi_card_driver *cohi_card_open(void)
{
    pthread_once(&opened, open_driver);
    if (!is_open)
        coh_fail(COH_NOT_AVAILABLE, "CUDA cannot be used: %s", refusal);
    return is_open ? &driver : NULL;
}

coh_status cohi_card_status(int error, const char *what)
{
    const char *text = NULL;
    if (error == 0)
        return COH_OK;
    (void)driver.describe(error, &text);
    return coh_fail(COH_TRANSPORT, "%s: %s (error %d of CUDA)", what, text ? text : "?", error);
}

coh_status cohi_card_use(int device)
{
    void *context;
    coh_status status =
        cohi_card_status(driver.retain(&context, device), "cuDevicePrimaryCtxRetain");
    return status == COH_OK ? cohi_card_status(driver.use(context), "cuCtxSetCurrent") : status;
}

coh_status cohi_card_captured(coh_cuda_stream stream, void **program)
{
    void *graph;
    coh_status status = cohi_card_status(driver.capture_end(stream, &graph), "cuStreamEndCapture");
    if (status != COH_OK)
        return status;
    status = cohi_card_status(driver.instantiate(program, graph, 0), "cuGraphInstantiate");
    (void)driver.graph_free(graph);
    return status;
}
