/* A thread that stores to the program's variables all the time: no store is lost while they become
 * symmetric and when the library is left, however often; and a child made by fork, before, between
 * and after, has variables of its own. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 4 };

static volatile long zeroed;
static volatile long initialized = 1000;
static volatile long marks[1 << 16];
static int shared_with_child;
static atomic_int stop;

static void *count(void *arg)
{
    long *mine = arg;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        zeroed++;
        initialized++;
        marks[*mine % (1 << 16)]++;
        ++*mine;
    }
    return NULL;
}

static int child_has_its_own(void)
{
    int status = -1;
    shared_with_child = 1;
    pid_t child = fork();
    if (child == 0) {
        int kept = shared_with_child;
        shared_with_child = 2;
        _exit(kept == 1 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0
           && shared_with_child == 1;
}

static long sum_of_marks(void)
{
    long sum = 0;
    for (int i = 0; i < 1 << 16; i++)
        sum += marks[i];
    return sum;
}

int main(void)
{
    long mine = 0;
    int provided;
    pthread_t thread;
    if (!child_has_its_own() || pthread_create(&thread, NULL, count, &mine) != 0)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
        CHECK(child_has_its_own());
        shmem_barrier_all();
        shmem_finalize();
        if (!child_has_its_own())
            return 2;
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    printf("%ld, %ld, %ld of %ld stores are lost\n", mine - zeroed, mine - (initialized - 1000),
           mine - sum_of_marks(), mine);
    return zeroed == mine && initialized - 1000 == mine && sum_of_marks() == mine ? 0 : 3;
}
