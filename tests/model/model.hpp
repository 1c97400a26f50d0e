/*
 * model.hpp - the library's own C functions under a model checker for C11's memory model.
 *
 * The checker is Relacy (Debian: relacy-dev). It runs the threads of a model as fibers and decides at each
 * atomic access which thread goes on and, within what the memory orders allow, which of the last
 * stores a load sees. Accesses to plain memory that no happens-before orders are data races, which
 * end the run, as do failed assertions, deadlocks and livelocks. It searches at random, from a fixed
 * seed: what it refutes is wrong, what holds was not refuted. It leaves out what C11 allows beyond that: loads that see stores which come
 * later in program order, and stores of several threads whose order in memory is not that of
 * execution.
 *
 * The functions come by way of `expand`, unchanged. This file gives them their atomics, and runs a
 * model: first as it is, then once for each memory order that it uses with that one weakened to
 * relaxed, then once for each mutant. The first must hold, all others must be refuted, but for the
 * orders that the model lists as spare, which must hold too.
 */
#ifndef MODEL_HPP
#define MODEL_HPP

#include <relacy/relacy.hpp>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace model
{

/* ---- what is weakened ---- */

struct site {
    const char *function, *order;
};

/* No memory is allocated while a model runs: the checker takes such memory for the model's. */
enum { SITES = 64 };
inline site sites[SITES]; /* the orders that were seen in use */
inline int site_count;
inline int weakened = -1;       /* of them the one that this run relaxes; -1: none */
inline const char *mutant = ""; /* the mutant in force */

inline int site_of(const char *function, const char *order)
{
    int i = 0;
    while (i < site_count
           && (strcmp(sites[i].function, function) != 0 || strcmp(sites[i].order, order) != 0))
        i++;
    if (i == site_count && i < SITES)
        sites[site_count++] = {function, order};
    RL_VERIFY(i < SITES);
    return i;
}

/* The order that an access uses: the given one, unless this run weakens it. */
inline rl::memory_order order(const char *function, const char *name, rl::memory_order given)
{
    return site_of(function, name) == weakened ? rl::mo_relaxed : given;
}

inline bool is(const char *name)
{
    return strcmp(mutant, name) == 0;
}

/* ---- plain memory that threads share ---- */

/* A plain variable of a shared struct: 0 at first, as fresh memory is. */
template <typename T> struct plain {
    mutable rl::var<T> value{T(0)};

    operator T() const
    {
        return value($);
    }
    T operator=(T next)
    {
        value($) = next;
        return next;
    }
    T operator->() const
    {
        return value($);
    }
    plain()
    {
    }
    plain(T first)
    {
        value($) = first;
    }
    plain(const plain &other)
    {
        value($) = T(other);
    }
    plain &operator=(const plain &other)
    {
        value($) = T(other);
        return *this;
    }
};

/* Bytes that are copied with memcpy and nothing else. A race is looked for line by line. */
enum { LINE = 64 };

struct line {
    rl::var<unsigned> stored{0u};
};

struct range {
    const unsigned char *begin, *end;
    line *lines;
};
enum { RANGES = 128 };
inline range ranges[RANGES]; /* of this execution */
inline int range_count;

template <size_t count> struct bytes {
    unsigned char at[count];
    line lines[(count + LINE - 1) / LINE];

    bytes()
    {
        memset(at, 0, sizeof at);
        RL_VERIFY(range_count < RANGES);
        ranges[range_count++] = {at, at + count, lines};
    }
    ~bytes()
    {
        range_count--;
    }
    template <typename P> operator P *() const
    {
        return (P *)at;
    }
    unsigned char &operator[](size_t i)
    {
        return at[i];
    }
};

inline void touch(const void *memory, size_t count, bool store)
{
    const unsigned char *from = (const unsigned char *)memory;
    for (int n = 0; n < range_count; n++) {
        const range &r = ranges[n];
        if (from < r.begin || from >= r.end)
            continue;
        RL_ASSERT(from + count <= r.end);
        for (size_t i = (from - r.begin) / LINE; i <= (from - r.begin + count - 1) / LINE; i++)
            if (store)
                r.lines[i].stored($) = 1;
            else
                (void)(unsigned)r.lines[i].stored($);
    }
}

inline void copy(void *target, const void *source, size_t count)
{
    if (count == 0)
        return;
    touch(source, count, false);
    touch(target, count, true);
    memcpy(target, source, count);
}

/* ---- running ---- */

/* A model: `threads` run thread(index) each. */
template <typename derived, unsigned threads> struct suite : rl::test_suite<derived, threads> {
    suite()
    {
        range_count = 0; /* an execution that fails does not end what it has */
    }
};

struct plan {
    const char *name;
    unsigned long executions;          /* that are tried */
    std::vector<const char *> mutants; /* each must be refuted */
    std::vector<const char *> spare;   /* orders that this model could do without */
};

/* From an execution of so many accesses on it is a livelock; those of the models have some
 * hundreds. */
enum { DEPTH = 8000 };

inline unsigned long factor = 1; /* as many times the executions of a plan */

inline void times(int argc, char **argv)
{
    factor = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
}

template <typename suite>
rl::test_result_e run(const plan &plan, std::ostream &out, unsigned long &executions)
{
    rl::test_params params;
    params.iteration_count = plan.executions * factor;
    params.search_type = rl::sched_random;
    params.execution_depth_limit = DEPTH;
    params.output_stream = &out;
    params.progress_stream = &out;
    params.progress_output_period = 1 << 30;
    rl::simulate<suite>(params);
    executions = (unsigned long)params.stop_iteration;
    return params.test_result;
}

/* Prints a line for each run, and the trace of one that did not come out as it should. */
template <typename suite> bool tell(const plan &plan, const std::string &what, bool refute)
{
    std::ostream nowhere(NULL);
    unsigned long executions = 0;
    rl::test_result_e result = run<suite>(plan, nowhere, executions);
    bool good = (result != rl::test_result_success) == refute;
    printf("%s%s: %s%s: %s after %lu executions\n", good ? "" : "FAILED: ", plan.name, what.c_str(),
           refute ? " must be refuted" : "",
           result == rl::test_result_success ? "holds" : rl::test_result_str(result), executions);
    fflush(stdout);
    if (!good && !refute)
        run<suite>(plan, std::cout, executions); /* again, with the trace */
    return good;
}

template <typename suite> bool check(const plan &plan)
{
    weakened = -1;
    mutant = "";
    site_count = 0;
    bool good = tell<suite>(plan, "as it is", false);
    std::set<std::string> spare(plan.spare.begin(), plan.spare.end());
    for (int i = 0, count = site_count; i < count; i++) {
        std::string name = std::string(sites[i].order) + " in " + sites[i].function;
        weakened = i;
        good &= tell<suite>(plan, "without " + name, !spare.erase(name));
    }
    weakened = -1;
    for (const char *name : plan.mutants) {
        mutant = name;
        good &= tell<suite>(plan, std::string("mutant \"") + name + "\"", true);
    }
    for (const std::string &name : spare)
        printf("FAILED: %s: nothing uses %s, which is listed as spare\n", plan.name, name.c_str());
    return good && spare.empty();
}

} // namespace model

/* ---- the words of C11 ---- */

/* Zero at first, as fresh memory is. By a store, since Relacy's own first values are not seen by loads
 * once there is another. */
template <typename T> struct word : rl::generic_atomic<T, false> {
    word()
    {
        this->store(T(), rl::mo_relaxed, $);
    }
    void operator=(T value)
    {
        this->store(value, rl::mo_relaxed, $);
    }
};

#define MODEL_ORDER(name)    model::order(__func__, #name, rl::mo_##name)
#define memory_order_relaxed rl::mo_relaxed
#define memory_order_acquire MODEL_ORDER(acquire)
#define memory_order_release MODEL_ORDER(release)
#define memory_order_seq_cst MODEL_ORDER(seq_cst)

#define atomic_load_explicit(word, order)             (word)->load(order, $)
#define atomic_store_explicit(word, value, order)     (word)->store(value, order, $)
#define atomic_fetch_add_explicit(word, value, order) (word)->fetch_add(value, order, $)
#define atomic_exchange_explicit(word, value, order)  (word)->exchange(value, order, $)
#define atomic_load(word)                             (word)->load(memory_order_seq_cst, $)
#define atomic_store(word, value)                     (word)->store(value, memory_order_seq_cst, $)
#define atomic_fetch_add(word, value)                 (word)->fetch_add(value, memory_order_seq_cst, $)
#define atomic_fetch_sub(word, value)                 (word)->fetch_sub(value, memory_order_seq_cst, $)
#define atomic_fetch_or(word, value)                  (word)->fetch_or(value, memory_order_seq_cst, $)
#define atomic_signal_fence(order)                    ((void)0) /* holds back the compiler only */

#define memcpy                   model::copy
#define COHI_CACHE_LINE          64
#define COHI_LIKELY(condition)   (condition)
#define COHI_UNLIKELY(condition) (condition)
#define cohi_cpu_relax()         rl::yield(1, $)

typedef int coh_status;
enum { COH_OK = 0, COH_MISMATCH = 1, COH_INVALID_ARGUMENT = 2 };

#endif
