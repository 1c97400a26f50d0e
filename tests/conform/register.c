/* Registered memory: the public header, and docs/semantics.md S47 for a forked child. */
#include "conform.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 32 };

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Pages of this rank's own, at another address on each, with its number in every byte. */
static char *make_memory(test_rank *self)
{
    char *memory =
        mmap(NULL, PAGES * page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!CHECK(memory != MAP_FAILED))
        return NULL;
    memset(memory, self->rank + 1, PAGES * page());
    return memory;
}

static void drop_memory(char *memory)
{
    munmap(memory, PAGES * page());
}

static bool can_register(const test_rank *self)
{
    return test_has_processes(coh_engine(self->world));
}

/* True where it is registered; elsewhere it was refused with a reason. */
static bool is_registered(test_rank *self, char *memory)
{
    if (can_register(self))
        return CHECK_OK(coh_register(self->world, memory, PAGES * page()));
    CHECK_REFUSED(coh_register(self->world, memory, PAGES * page()), COH_UNSUPPORTED, "register");
    return false;
}

static void registered_memory_is_symmetric(test_rank *self)
{
    char *memory = make_memory(self), *direct = NULL;
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    if (!memory || !is_registered(self, memory))
        return;
    size_t last = PAGES * page() - sizeof(uint64_t);
    uint64_t *word = (uint64_t *)(void *)(memory + last), value = (uint64_t)self->rank + 100, old;
    CHECK_EQ(memory[0], self->rank + 1); /* the contents stay */
    CHECK_EQ(memory[last], self->rank + 1);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_put(self->world, word, &value, sizeof value, right));
    CHECK_OK(coh_barrier(self->world));
    CHECK_EQ(*word, (uint64_t)left + 100);
    CHECK_OK(coh_get(self->world, &old, word, sizeof old, right));
    CHECK_EQ(old, (uint64_t)self->rank + 100);
    bool mapped = !test_looks_for_races() && (test_hosts == 0 || test_same_host(self, right));
    if (mapped && CHECK_OK(coh_ptr(self->world, memory, right, (void **)&direct)))
        CHECK_EQ(direct[0], right + 1);
    CHECK_OK(coh_barrier(self->world)); /* all have looked */
    value = 1;
    CHECK_OK(coh_atomic_fetch(self->world, COH_ATOMIC_ADD, COH_U64, word, &value, &old, right));
    CHECK_EQ(old, (uint64_t)self->rank + 100);
    value = (uint64_t)left + 101;
    CHECK_OK(coh_wait_until(self->world, COH_U64, word, COH_EQ, &value, COH_ANY_RANK));
    CHECK_OK(coh_unregister(self->world, memory));
    CHECK_EQ(*word, (uint64_t)left + 101); /* and stay again */
    CHECK_STATUS(coh_put(self->world, memory, &value, sizeof value, right), COH_NOT_SYMMETRIC);
    drop_memory(memory);
}

/* Long enough that a message is announced and copied between the views, not carried. */
static void messages_of_registered_memory(test_rank *self)
{
    char *memory = make_memory(self);
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    size_t half = PAGES * page() / 2;
    coh_request *sending = NULL;
    if (!memory || !is_registered(self, memory))
        return;
    coh_team *world = coh_team_world(self->world);
    CHECK_OK(coh_send_start(world, right, 1, memory, half, &sending));
    CHECK_OK(coh_receive(world, left, 1, memory + half, half, NULL));
    CHECK_OK(coh_request_wait(&sending, NULL));
    for (size_t i = 0; i < half; i++)
        if (!CHECK_EQ(memory[i], self->rank + 1) || !CHECK_EQ(memory[half + i], left + 1))
            break;
    CHECK_OK(coh_unregister(self->world, memory));
    drop_memory(memory);
}

static void bad_registrations(test_rank *self)
{
    void *heap;
    char *memory = make_memory(self);
    if (!memory || !is_registered(self, memory))
        return;
    CHECK_REFUSED(coh_register(self->world, memory + 1, page()), COH_INVALID_ARGUMENT, "pages");
    CHECK_REFUSED(coh_register(self->world, memory, 0), COH_INVALID_ARGUMENT, "pages");
    CHECK_REFUSED(coh_prepare(memory + 1, page()), COH_INVALID_ARGUMENT, "pages");
    CHECK_REFUSED(coh_prepare(memory, page()), COH_BUSY, "world");
    CHECK_REFUSED(coh_register(self->world, memory + page(), page()), COH_INVALID_ARGUMENT,
                  "overlap");
    if (CHECK_OK(coh_align(self->world, page(), page(), &heap))) {
        CHECK_REFUSED(coh_register(self->world, heap, page()), COH_INVALID_ARGUMENT,
                      "symmetric heap");
        CHECK_OK(coh_free(self->world, heap));
    }
    CHECK_REFUSED(coh_free(self->world, memory), COH_INVALID_ARGUMENT, "registered");
    CHECK_REFUSED(coh_unregister(self->world, memory + page()), COH_INVALID_ARGUMENT, "start");
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_unregister(self->world, memory));
    CHECK_OK(coh_register(self->world, memory, page())); /* finalize takes care of it */
    CHECK_EQ(memory[0], self->rank + 1);
}

static void a_child_has_its_own(test_rank *self)
{
    char *memory = make_memory(self);
    int status = -1;
    if (!memory || !is_registered(self, memory))
        return;
    pid_t child = fork();
    if (child == 0) {
        bool same = memory[5] == self->rank + 1;
        memset(memory, 77, PAGES * page());
        _exit(same ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(memory[5], self->rank + 1);
    CHECK_OK(coh_barrier(self->world));
    CHECK_OK(coh_unregister(self->world, memory));
    drop_memory(memory);
}

const test_case conform_register[] = {
    CASE(registered_memory_is_symmetric, "S24", ON_MEMORY, ANY_SIZE),
    CASE(messages_of_registered_memory, "S24", ON_MEMORY, ANY_SIZE),
    CASE(bad_registrations, "F17", ON_MEMORY, SIZE(1) | SIZE(2)),
    CASE(a_child_has_its_own, "S47", ON_MEMORY, SIZE(1) | SIZE(3)),
};
CONFORM_COUNT(register);
