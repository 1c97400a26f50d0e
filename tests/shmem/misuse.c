/* One mistake, named by the argument. errors_test.sh looks at what comes of it. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long word;

static void bad_pe(void)
{
    shmem_long_p(&word, 1, shmem_n_pes());
}

static void not_symmetric(void)
{
    long local = 0;
    shmem_long_p(&local, 1, 0);
}

static void freed_twice(void)
{
    void *memory = shmem_malloc(100);
    shmem_free(memory);
    shmem_free(memory);
}

static void mismatch(void)
{
    static long to;
    if (shmem_my_pe() == 0)
        shmem_barrier_all();
    else
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &to, &word, 1);
    shmem_barrier_all();
}

static void bad_root(void)
{
    static long to;
    shmem_long_broadcast(SHMEM_TEAM_WORLD, &to, &word, 1, shmem_n_pes() + 3);
}

static void past_the_end(void)
{
    char *memory = shmem_malloc(100);
    shmem_putmem(memory, memory, (size_t)1 << 50, 0);
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"bad_pe", bad_pe},     {"not_symmetric", not_symmetric}, {"freed_twice", freed_twice},
    {"mismatch", mismatch}, {"bad_root", bad_root},           {"past_the_end", past_the_end},
};

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    if (strcmp(which, "before_init") == 0)
        shmem_long_p(&word, 1, 0);
    shmem_init();
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (strcmp(which, mistakes[i].name) == 0)
            mistakes[i].make();
    sleep(20); /* the others are busy: they must be ended all the same */
    shmem_finalize();
    return 0;
}
