/* blas_test.c - how OpenBLAS is opened: with which core type and how many threads. What is opened is
 * old_openblas.c; each case is a process of its own, since it is opened once in each. */
#include "ml.h"

#include "graph/cpu/blas.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the library should come to when it takes the CPU for one of those that it was made for. */
static const char *fitting(const char *guess)
{
#if defined(__x86_64__)
    bool avx2_only = strcmp(guess, "Haswell") == 0 || strcmp(guess, "Zen") == 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !avx2_only)
        return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
#endif
    return guess;
}

static int threads_of_library(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "openblas_get_num_threads") : NULL;
    int (*threads)(void);
    memcpy(&threads, &symbol, sizeof threads);
    return symbol ? threads() : -1;
}

static bool multiplies(void)
{
    const float left[] = {1, 2, 3, 4}, right[] = {5, 6, 7, 8};
    float out[4], row[2];
    cohi_matmul(2, 2, 2, 2.0f, (cohi_matrix){left, 2}, (cohi_matrix){right, 2}, true, out, 2);
    cohi_matmul(1, 2, 2, 1.0f, (cohi_matrix){left, 2}, (cohi_matrix){right, 2}, true, row, 2);
    return out[0] == 34 && out[1] == 46 && out[2] == 78 && out[3] == 106 && row[0] == 17
           && row[1] == 23;
}

struct outcome {
    const char *core;
    int threads;
};

/* NULL, or what is wrong. */
static const char *open_and_look(struct outcome expected)
{
    char **before = environ;
    const char *named = getenv("OPENBLAS_CORETYPE");
    if (cohi_matmul_open() != COH_OK)
        return coh_last_error();
    if (strcmp(cohi_matmul_core(), expected.core) != 0)
        return cohi_matmul_core();
    if (threads_of_library() != expected.threads)
        return "the number of threads";
    if (environ != before || getenv("OPENBLAS_CORETYPE") != named)
        return "the environment";
    return multiplies() ? NULL : "the product";
}

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* In a process with these variables, NULL being none. `loads`: it loads the library before. */
static void check(const char *guess, const char *named, const char *threads, bool loads,
                  struct outcome expected)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        set("OLD_OPENBLAS_CORE", guess);
        set("OPENBLAS_CORETYPE", named);
        set("OPENBLAS_NUM_THREADS", threads);
        bool loaded = loads && dlopen("libopenblas.so.0", RTLD_NOW);
        const char *wrong = loaded == loads ? open_and_look(expected) : dlerror();
        if (wrong)
            print_error("%s, opened where %s is found: wrong is %s\n", expected.core, guess, wrong);
        _exit(wrong ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void unknown_cpus_get_what_fits(void **state)
{
    (void)state;
    static const char *const guesses[] = {"Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen"};
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
        check(guesses[i], NULL, NULL, false, (struct outcome){fitting(guesses[i]), 1});
}

static void what_the_library_knows_is_left(void **state)
{
    (void)state;
    static const char *const guesses[] = {"SkylakeX", "Cooperlake", "NextYears", "armv8"};
    for (size_t i = 0; i < sizeof guesses / sizeof *guesses; i++)
        check(guesses[i], NULL, NULL, false, (struct outcome){guesses[i], 1});
}

static void the_users_variables_decide(void **state)
{
    (void)state;
    check("Prescott", "Nehalem", NULL, false, (struct outcome){"Nehalem", 1});
    check("Prescott", NULL, "3", false, (struct outcome){fitting("Prescott"), 3});
    check("Zen", "Prescott", "2", false, (struct outcome){"Prescott", 2});
}

/* It stays as it is, but for the threads. */
static void loaded_by_the_program(void **state)
{
    (void)state;
    check("Prescott", NULL, NULL, true, (struct outcome){"Prescott", 1});
    check("Prescott", NULL, "3", true, (struct outcome){"Prescott", 3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_cpus_get_what_fits),
        cmocka_unit_test(what_the_library_knows_is_left),
        cmocka_unit_test(the_users_variables_decide),
        cmocka_unit_test(loaded_by_the_program),
    };
    return cmocka_run_group_tests_name("blas", tests, NULL, NULL);
}
