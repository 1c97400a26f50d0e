#include "engine/sim/fabric.h"

#include "base/error.h"
#include "base/log.h"
#include "base/os.h"
#include "base/pretend.h"

#include <stdlib.h>

const void *cohi_thread_token(void)
{
    static _Thread_local char token;
    return &token;
}

static uint64_t dice_next(cohi_dice *dice)
{
    uint64_t mixed = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t cohi_dice_below(cohi_dice *dice, uint64_t bound)
{
    return dice_next(dice) % bound;
}

/* Streams of one seed that have nothing to do with each other. */
static cohi_dice make_dice(uint64_t seed, uint64_t stream)
{
    cohi_dice dice = {seed ^ (stream * UINT64_C(0xd1342543de82ef95))};
    dice.state = dice_next(&dice);
    return dice;
}

cohi_endpoint *cohi_fabric_alive(cohi_fabric *fabric, int rank)
{
    cohi_endpoint *endpoint = fabric->endpoints[rank];
    return endpoint && !endpoint->killed_at ? endpoint : NULL;
}

int cohi_fabric_host(const cohi_fabric *fabric, int rank)
{
    int hosts = fabric->script.hosts;
    return hosts == 0 ? rank : cohi_pretended_host(rank, fabric->size, hosts);
}

int cohi_fabric_neighbors(const cohi_fabric *fabric, int rank, int other)
{
    return cohi_fabric_host(fabric, rank) == cohi_fabric_host(fabric, other);
}

/* ---- upcalls ---- */

void cohi_fabric_ring(cohi_endpoint *endpoint)
{
    endpoint->arrivals++;
    if (endpoint->ring)
        return;
    endpoint->ring = 1;
    endpoint->fabric->rings++;
}

void cohi_fabric_tell_later(cohi_fabric *fabric, cohi_flight *flight)
{
    flight->told = 1;
    flight->next = NULL;
    *fabric->upcalls_end = flight;
    fabric->upcalls_end = &flight->next;
}

static void unring(cohi_endpoint *endpoint)
{
    if (!endpoint->ring)
        return;
    endpoint->ring = 0;
    endpoint->fabric->rings--;
}

static void make_upcall(const cohi_endpoint *endpoint, const cohi_flight *flight)
{
    if (!flight)
        endpoint->upcalls->arrived(endpoint->world);
    else if (flight->verb == COHI_VERB_MESSAGE)
        endpoint->upcalls->deliver(endpoint->world, flight->source, flight->copy, flight->bytes);
    else if (flight->verb == COHI_VERB_LEFT)
        endpoint->upcalls->left(endpoint->world, flight->source);
    else
        endpoint->upcalls->lost(endpoint->world, flight->source, COHI_LOSS_KILLED,
                                (int)flight->offset);
}

/* Without a flight it tells of arrivals. */
static void tell_one(cohi_fabric *fabric, cohi_endpoint *endpoint, const cohi_flight *flight)
{
    endpoint->telling++;
    pthread_mutex_unlock(&fabric->lock);
    make_upcall(endpoint, flight);
    pthread_mutex_lock(&fabric->lock);
    if (--endpoint->telling == 0)
        pthread_cond_broadcast(&endpoint->told);
}

static cohi_flight *take_upcall(cohi_fabric *fabric)
{
    cohi_flight *flight = fabric->upcalls;
    if (!flight)
        return NULL;
    fabric->upcalls = flight->next;
    if (!fabric->upcalls)
        fabric->upcalls_end = &fabric->upcalls;
    return flight;
}

static void tell_flight(cohi_fabric *fabric, cohi_flight *flight)
{
    cohi_endpoint *target = fabric->endpoints[flight->target];
    if (target) {
        target->arrivals++;
        tell_one(fabric, target, flight);
    }
    cohi_flight_free(flight);
}

static void tell_rings(cohi_fabric *fabric)
{
    for (int rank = 0; rank < fabric->size && fabric->rings > 0; rank++) {
        cohi_endpoint *endpoint = fabric->endpoints[rank];
        if (!endpoint || !endpoint->ring)
            continue;
        unring(endpoint);
        tell_one(fabric, endpoint, NULL);
    }
}

void cohi_fabric_tell(cohi_fabric *fabric)
{
    if (fabric->teller)
        return;
    fabric->teller = cohi_thread_token();
    while (fabric->upcalls || fabric->rings > 0) {
        cohi_flight *flight = take_upcall(fabric);
        if (flight)
            tell_flight(fabric, flight);
        else
            tell_rings(fabric);
    }
    fabric->teller = NULL;
    fabric->teller_since_ns = 0;
    fabric->teller_late = 0;
}

/* ---- death ---- */

/* One notice for each open rank, itself first, linked by `next`. */
static coh_status make_notices(cohi_endpoint *endpoint, cohi_flight **notices)
{
    cohi_fabric *fabric = endpoint->fabric;
    *notices = NULL;
    for (int rank = 0; rank < fabric->size; rank++) {
        if (!fabric->endpoints[rank])
            continue;
        cohi_flight *made = cohi_flight_new(endpoint, COHI_VERB_NOTICE, rank, 1);
        if (!made) {
            while ((made = *notices)) {
                *notices = made->next;
                cohi_flight_free(made);
            }
            return cohi_fail(COH_NO_MEMORY,
                             "the simulator has no memory to tell of the death of "
                             "rank %d",
                             endpoint->rank);
        }
        made->offset = endpoint->calls;
        made->next = *notices;
        *notices = made;
    }
    return COH_OK;
}

coh_status cohi_fabric_kill(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    cohi_flight *notices;
    coh_status status = make_notices(endpoint, &notices);
    if (status != COH_OK)
        return status;
    uint64_t last = fabric->step;
    last += cohi_dice_below(&endpoint->dice, (uint64_t)fabric->script.delay + 1);
    cohi_flight_sever(endpoint, last, COH_PEER_LOST);
    endpoint->killed_at = endpoint->calls;
    while (notices) {
        cohi_flight *notice = notices;
        notices = notice->next;
        if (notice->target == endpoint->rank)
            cohi_fabric_tell_later(fabric, notice);
        else
            cohi_flight_notice(fabric, notice);
    }
    cohi_turn_unstall(fabric);
    return COH_OK;
}

/* ---- joining and leaving ---- */

static void free_fabric(cohi_fabric *fabric)
{
    cohi_flight_clear(fabric);
    cohi_flight *flight;
    while ((flight = take_upcall(fabric)))
        cohi_flight_free(flight);
    pthread_mutex_destroy(&fabric->lock);
    free(fabric->endpoints);
    free(fabric);
}

static void log_seed(const char *text, const cohi_script *script)
{
    if (!script->seeded)
        cohi_log(COH_LOG_INFO, "sim: seed %llu (COHORT_SIM=%s%sseed=%llu replays)",
                 (unsigned long long)script->seed, text, *text ? "," : "",
                 (unsigned long long)script->seed);
}

static coh_status make_fabric(const cohi_engine_args *args, cohi_fabric **fabric)
{
    cohi_script script;
    const char *text = args->config->sim ? args->config->sim : "";
    coh_status status = cohi_script_parse(text, args->need.size, &script);
    if (status != COH_OK)
        return status;
    cohi_fabric *made = calloc(1, sizeof *made);
    if (made)
        made->endpoints = calloc((size_t)args->need.size, sizeof *made->endpoints);
    if (!made || !made->endpoints) {
        free(made);
        return cohi_fail(COH_NO_MEMORY, "the simulator has no memory for a fabric of %d ranks",
                         args->need.size);
    }
    made->script = script;
    made->size = args->need.size;
    made->upcalls_end = &made->upcalls;
    made->dice = make_dice(script.seed, 0);
    pthread_mutex_init(&made->lock, NULL);
    status = cohi_turn_start(made);
    if (status != COH_OK) {
        free_fabric(made);
        return status;
    }
    log_seed(text, &script);
    *fabric = made;
    return COH_OK;
}

static void end_fabric(cohi_fabric *fabric)
{
    cohi_turn_stop(fabric);
    cohi_log(COH_LOG_INFO, "sim: seed %llu: %llu steps, trace %016llx",
             (unsigned long long)fabric->script.seed, (unsigned long long)fabric->step,
             (unsigned long long)fabric->trace);
    const uint64_t *flights = fabric->traffic.flights;
    cohi_log(COH_LOG_INFO, "sim: %llu puts, %llu gets, %llu atomics, %llu messages",
             (unsigned long long)flights[COHI_VERB_PUT], (unsigned long long)flights[COHI_VERB_GET],
             (unsigned long long)flights[COHI_VERB_ATOMIC],
             (unsigned long long)flights[COHI_VERB_MESSAGE]);
    if (fabric->left_alone > 0 && fabric->thread_count > 1)
        cohi_log(COH_LOG_INFO,
                 "sim: %u times a thread that stayed outside of Cohort for %llu ms was not waited "
                 "for: the seed alone may not replay this run; patience=MS waits longer",
                 fabric->left_alone,
                 (unsigned long long)(fabric->script.patience_ns / UINT64_C(1000000)));
    free_fabric(fabric);
}

static void free_endpoint(cohi_endpoint *endpoint)
{
    for (int i = 0; i < COHI_CONTEXTS_MAX; i++)
        cohi_stream_free(endpoint->streams[i]);
    for (int i = 0; i < COHI_SEGMENTS_MAX; i++) {
        free(endpoint->segments[i].attached);
        if (endpoint->segments[i].owned)
            cohi_os_unmap(endpoint->segments[i].base, endpoint->segments[i].bytes);
    }
    pthread_cond_destroy(&endpoint->told);
    free(endpoint->pair_due);
    free(endpoint);
}

static cohi_endpoint *make_endpoint(const cohi_engine_args *args)
{
    size_t size = (size_t)args->need.size;
    cohi_endpoint *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->pair_due = calloc(2 * size, sizeof *made->pair_due);
    if (!made->pair_due) {
        free(made);
        return NULL;
    }
    made->channel_due = made->pair_due + size;
    made->crew = args->crew;
    made->rank = args->rank;
    made->upcalls = args->upcalls;
    made->world = args->world;
    pthread_cond_init(&made->told, NULL);
    return made;
}

coh_status cohi_fabric_join(const cohi_engine_args *args, cohi_endpoint **endpoint)
{
    cohi_endpoint *made = make_endpoint(args);
    if (!made)
        return cohi_fail(COH_NO_MEMORY, "the simulator has no memory for rank %d", args->rank);
    cohi_fabric *fabric = args->crew ? args->crew->fabric : NULL;
    if (!fabric) {
        coh_status status = make_fabric(args, &fabric);
        if (status != COH_OK) {
            free_endpoint(made);
            return status;
        }
    }
    made->fabric = fabric;
    made->dice = make_dice(fabric->script.seed, (uint64_t)args->rank + 1);
    if (args->crew) {
        args->crew->fabric = fabric;
        args->crew->open++;
    }
    pthread_mutex_lock(&fabric->lock);
    fabric->endpoints[args->rank] = made;
    fabric->open++;
    pthread_mutex_unlock(&fabric->lock);
    *endpoint = made;
    return COH_OK;
}

/* Upcalls under way are waited for; those to come find the rank closed. */
static void detach(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    cohi_flight_sever(endpoint, fabric->step, COH_OK);
    unring(endpoint);
    fabric->endpoints[endpoint->rank] = NULL;
    cohi_turn_forget(fabric, endpoint->rank);
    while (endpoint->telling > 0)
        pthread_cond_wait(&endpoint->told, &fabric->lock);
}

void cohi_fabric_leave(cohi_endpoint *endpoint)
{
    cohi_fabric *fabric = endpoint->fabric;
    pthread_mutex_lock(&fabric->lock);
    detach(endpoint);
    int last = --fabric->open == 0;
    if (!last)
        cohi_turn_next(fabric);
    pthread_mutex_unlock(&fabric->lock);
    if (endpoint->crew) {
        endpoint->crew->open--;
        if (last)
            endpoint->crew->fabric = NULL;
    }
    free_endpoint(endpoint);
    if (last)
        end_fabric(fabric);
}
