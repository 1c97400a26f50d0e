#include "faults.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

void fault_stamp(_Atomic uint64_t *stamp)
{
    atomic_store(stamp, (uint64_t)(test_now() * 1e9));
}

void fault_let_others_out(void)
{
    usleep(100000);
}

bool fault_is_told(const test_rank *self, int rank)
{
    bool library = strcmp(self->engine, "ucx") == 0 || strncmp(self->engine, "mpi:", 4) == 0;
    bool alone = library && test_hosts > 0;
    for (int other = 0; other < self->size; other++)
        alone =
            alone
            && (other == rank || test_host_of(other, self->size) != test_host_of(rank, self->size));
    if (alone)
        test_skip("rank %d is alone on its host: nobody can tell it from a host that is silent",
                  rank);
    return !alone;
}

void fault_die(const test_rank *self)
{
    if (test_has_processes(self->engine))
        raise(SIGKILL);
}

double fault_since(const _Atomic uint64_t *stamp)
{
    return test_now() - (double)atomic_load(stamp) * 1e-9;
}

static coh_status transfer_to_all(test_rank *self, uint64_t *words)
{
    coh_world *world = self->world;
    uint64_t value = 1;
    for (int rank = 0; rank < self->size; rank++) {
        coh_status status = coh_put(world, &words[self->rank], &value, sizeof value, rank);
        if (status == COH_OK)
            status = coh_fence(world);
        if (status == COH_OK)
            status = coh_get(world, &value, &words[self->rank], sizeof value, rank);
        if (status == COH_OK)
            status = coh_quiet(world);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

static coh_status allocate_and_free(test_rank *self, _Atomic uint64_t *stamp)
{
    coh_world *world = self->world;
    void *one = NULL, *two = NULL, *three = NULL;
    coh_status status = coh_malloc(world, 1000, &one);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_calloc(world, 10, 10, &two);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_align(world, 4096, 100, &three);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_realloc(world, two, 5000, &two);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_free(world, one);
    if (status == COH_OK)
        status = coh_free(world, two);
    if (status == COH_OK)
        status = coh_free(world, three);
    return status;
}

static coh_status one_round(test_rank *self, uint64_t *words, _Atomic uint64_t *stamp)
{
    fault_stamp(stamp);
    coh_status status = transfer_to_all(self, words);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_sync(self->world);
    fault_stamp(stamp);
    if (status == COH_OK)
        status = coh_barrier(self->world);
    fault_stamp(stamp);
    return status == COH_OK ? allocate_and_free(self, stamp) : status;
}

coh_status fault_program(test_rank *self, _Atomic uint64_t *stamps, int rounds)
{
    uint64_t *words;
    fault_stamp(&stamps[self->rank]);
    coh_status status = coh_calloc(self->world, (size_t)self->size, sizeof *words, (void **)&words);
    for (int round = 0; status == COH_OK && round < rounds; round++)
        status = one_round(self, words, &stamps[self->rank]);
    if (status == COH_OK)
        status = coh_free(self->world, words);
    return status;
}

/* From the end of its process on, where it has one: a busy machine lets it wait for a core to die. The
 * parent may see that end later than this rank. */
static double time_to_learn(int rank, const _Atomic uint64_t *stamp)
{
    double now = test_now(), took = fault_since(stamp);
    while (test_end_of(rank) == 0 && took > LOSS_LIMIT_S && test_now() < now + 1)
        test_sleep(0.001);
    double ended = test_end_of(rank);
    return ended > now - took ? now - ended : took;
}

bool fault_check_lost(coh_status status, int rank, const _Atomic uint64_t *stamp)
{
    char words[32];
    double took = time_to_learn(rank, stamp);
    snprintf(words, sizeof words, "rank %d", rank);
    if (!CHECK_REFUSED(status, COH_PEER_LOST, words))
        return false;
    if (took > LOSS_LIMIT_S)
        test_fail("learnt of the loss of rank %d after %.2f s, the limit is %.0f", rank, took,
                  LOSS_LIMIT_S);
    return took <= LOSS_LIMIT_S;
}

int main(int argc, char **argv)
{
#define ROWS(name)  fault_##name,
#define COUNT(name) fault_##name##_count,
    const test_case *const tables[] = {FAULT_TABLES(ROWS)};
    const size_t counts[] = {FAULT_TABLES(COUNT)};
#undef ROWS
#undef COUNT
    return test_suite(argc, argv, tables, counts, sizeof tables / sizeof *tables);
}
