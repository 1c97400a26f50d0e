/*
 * cohort.hpp - Cohort in C++17: objects that clean up after themselves, spans, and exceptions.
 *
 * A thin layer over cohort.h, all of it in this header: an object holds the handle of the same name
 * (get() gives it, for every call that has no method here), a call that fails throws coh::error.
 * docs/cpp.md shows it in use.
 *
 *   world       joins in its constructor, finalizes in its destructor
 *   memory<T>   an allocation of the symmetric heap, or of a further one
 *   heap        a further heap; its destructor destroys it
 *   team        some ranks, with collectives and messages
 *   request     something started; its destructor waits for it
 *
 * Making and destroying a world, heaps, memory and teams is collective, as the calls are: all ranks do it
 * in the same order, which scopes see to. While an exception unwinds the stack, heaps, memory and teams
 * are left to the world's destructor, since the other ranks do not destroy theirs then.
 *
 * Buffers are anything that std::data and std::size go with (vectors, arrays, spans, memory<T>);
 * their elements' type is the coh_dtype. Buffers whose lengths do not go together throw
 * COH_LENGTH_MISMATCH before the members meet.
 */
#ifndef COHORT_HPP
#define COHORT_HPP

#include <cohort.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__has_include)
#if __cplusplus >= 202002L && __has_include(<span>)
#include <span>
#define COHORT_HAS_STD_SPAN 1
#endif
#endif

namespace coh
{

/* ---- errors ---- */

/* A call that failed: what() is its error message, the rest are its facts. */
class error : public std::runtime_error
{
  public:
    /* Of the calling thread's last failure. */
    explicit error(coh_status status) : std::runtime_error(coh_last_error()), status_(status)
    {
        facts_.size = sizeof facts_;
        if (coh_last_error_facts(&facts_) != COH_OK)
            facts_ = coh_error{};
    }
    coh_status status() const noexcept
    {
        return status_;
    }
    const coh_error &facts() const noexcept
    {
        return facts_;
    }

  private:
    coh_status status_;
    coh_error facts_{};
};

/* Throws unless the status is COH_OK: for calls of cohort.h. */
inline void check(coh_status status)
{
    if (status != COH_OK)
        throw error(status);
}

/* ---- element types ---- */

/* The upper half of a float. Arithmetic is a float's. */
struct bf16 {
    std::uint16_t bits = 0;

    bf16() = default;
    /* To the nearest, ties to even; NaN stays one. */
    bf16(float value) noexcept
    {
        std::uint32_t word;
        std::memcpy(&word, &value, sizeof word);
        const std::uint32_t magnitude = word & 0x7fffffffu;
        if (magnitude > 0x7f800000u)
            bits = static_cast<std::uint16_t>(word >> 16 | 0x40u);
        else
            bits = static_cast<std::uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
    }
    operator float() const noexcept
    {
        const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
        float value;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }
};
static_assert(sizeof(bf16) == 2, "as memory has it");

namespace detail
{

template <class T> constexpr coh_dtype integer()
{
    constexpr bool sign = std::is_signed<T>::value;
    return sizeof(T) == 1   ? (sign ? COH_I8 : COH_U8)
           : sizeof(T) == 2 ? (sign ? COH_I16 : COH_U16)
           : sizeof(T) == 4 ? (sign ? COH_I32 : COH_U32)
                            : (sign ? COH_I64 : COH_U64);
}

template <class T> constexpr coh_dtype dtype()
{
    static_assert(std::is_integral<T>::value || std::is_same<T, float>::value
                      || std::is_same<T, double>::value || std::is_same<T, bf16>::value,
                  "a type with a coh_dtype: an integer, bool, float, double or coh::bf16");
    if constexpr (std::is_same<T, bool>::value)
        return COH_BOOL;
    else if constexpr (std::is_same<T, float>::value)
        return COH_F32;
    else if constexpr (std::is_same<T, double>::value)
        return COH_F64;
    else if constexpr (std::is_same<T, bf16>::value)
        return COH_BF16;
    else
        return integer<T>();
}

} // namespace detail

/* The coh_dtype of a C++ type. */
template <class T> constexpr coh_dtype dtype_of = detail::dtype<std::remove_cv_t<T>>();

/* ---- spans ---- */

#ifdef COHORT_HAS_STD_SPAN
template <class T> using span = std::span<T>;
#else
/* A pointer and a length: as much of std::span as is used here. */
template <class T> class span
{
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    template <class Range,
              class = std::enable_if_t<std::is_convertible<
                  std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))> (*)[],
                  T (*)[]>::value>>
    constexpr span(Range &&range) : data_(std::data(range)), size_(std::size(range))
    {
    }
    constexpr T *data() const noexcept
    {
        return data_;
    }
    constexpr std::size_t size() const noexcept
    {
        return size_;
    }
    constexpr std::size_t size_bytes() const noexcept
    {
        return size_ * sizeof(T);
    }
    constexpr bool empty() const noexcept
    {
        return size_ == 0;
    }
    constexpr T &operator[](std::size_t index) const
    {
        return data_[index];
    }
    constexpr T *begin() const noexcept
    {
        return data_;
    }
    constexpr T *end() const noexcept
    {
        return data_ + size_;
    }
    constexpr span subspan(std::size_t first, std::size_t count) const
    {
        return {data_ + first, count};
    }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

namespace detail
{

/* The element type of a buffer, const where it cannot be written. */
template <class Range>
using element = std::remove_pointer_t<decltype(std::data(std::declval<Range &>()))>;

template <class Range> span<element<Range>> view(Range &&range)
{
    return {std::data(range), std::size(range)};
}

inline void expect(const char *call, std::size_t wanted, std::size_t got)
{
    if (wanted != got)
        throw error(coh_fail(COH_LENGTH_MISMATCH,
                             "%s: a buffer has %zu elements where %zu go with the others", call,
                             got, wanted));
}

/* Whether the stack is being unwound past an object that was made outside of that. */
class unwinding
{
  public:
    bool now() const noexcept
    {
        return std::uncaught_exceptions() > before_;
    }

  private:
    int before_ = std::uncaught_exceptions();
};

} // namespace detail

/* ---- requests ---- */

/* Something started. Its buffers belong to it until it is done. */
class [[nodiscard]] request
{
  public:
    request() = default;
    explicit request(coh_request *handle) noexcept : handle_(handle)
    {
    }
    request(request &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    request &operator=(request &&other)
    {
        if (this != &other) {
            finish();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~request()
    {
        finish();
    }

    /* Waits for it; what came, if it is a receive. Done already: nothing. */
    coh_message wait()
    {
        coh_message got{};
        check(coh_request_wait(&handle_, &got));
        return got;
    }
    /* Whether it is done. */
    [[nodiscard]] bool test(coh_message *got = nullptr)
    {
        int done = 0;
        check(coh_request_test(&handle_, &done, got));
        return done != 0;
    }
    coh_request *get() const noexcept
    {
        return handle_;
    }

  private:
    /* How it ended nobody asked. */
    void finish() noexcept
    {
        if (handle_)
            (void)coh_request_wait(&handle_, nullptr);
    }
    coh_request *handle_ = nullptr;
};

/* ---- memory ---- */

/* An allocation of the symmetric heap: `size` objects on every rank, zero at first. The pointers are
 * symmetric. Made by world::allocate and heap::allocate. */
template <class T> class memory
{
    static_assert(std::is_trivially_copyable<T>::value, "what is put must be copied by its bytes");

  public:
    using value_type = T;

    memory() = default;
    memory(coh_world *world, std::size_t count) : world_(world), size_(count)
    {
        check(COH_CALLOC(world, count, &data_));
    }
    memory(coh_world *world, coh_heap *heap, std::size_t count) : world_(world), size_(count)
    {
        void *data = nullptr;
        check(coh_heap_calloc(heap, count, sizeof(T), &data));
        data_ = static_cast<T *>(data);
    }
    memory(memory &&other) noexcept
        : world_(other.world_), data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)), unwinding_(other.unwinding_)
    {
    }
    memory &operator=(memory &&other)
    {
        if (this != &other) {
            free();
            world_ = other.world_;
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            unwinding_ = other.unwinding_;
        }
        return *this;
    }
    ~memory()
    {
        if (data_ && !unwinding_.now())
            (void)coh_free(world_, data_);
    }

    /* Frees it now, and throws where the destructor would be silent. Collective. */
    void free()
    {
        T *data = std::exchange(data_, nullptr);
        size_ = 0;
        if (data)
            check(coh_free(world_, data));
    }

    T *data() const noexcept
    {
        return data_;
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    T &operator[](std::size_t index) const
    {
        return data_[index];
    }
    T &operator*() const
    {
        return *data_;
    }
    T *operator->() const
    {
        return data_;
    }
    T *begin() const noexcept
    {
        return data_;
    }
    T *end() const noexcept
    {
        return data_ + size_;
    }

  private:
    coh_world *world_ = nullptr;
    T *data_ = nullptr;
    std::size_t size_ = 0;
    detail::unwinding unwinding_;
};

/* A further heap of a world. Made by world::make_heap. */
class heap
{
  public:
    heap() = default;
    heap(coh_world *world, const coh_heap_options &options) : world_(world)
    {
        check(coh_heap_create(world, &options, &handle_));
    }
    heap(heap &&other) noexcept
        : world_(other.world_), handle_(std::exchange(other.handle_, nullptr)),
          unwinding_(other.unwinding_)
    {
    }
    heap &operator=(heap &&other)
    {
        if (this != &other) {
            destroy();
            world_ = other.world_;
            handle_ = std::exchange(other.handle_, nullptr);
            unwinding_ = other.unwinding_;
        }
        return *this;
    }
    ~heap()
    {
        if (handle_ && !unwinding_.now())
            (void)coh_heap_destroy(handle_);
    }

    /* Destroys it now, with all that is in it, and throws where the destructor would be silent.
     * Collective. Memory that is left may only be destroyed. */
    void destroy()
    {
        check(coh_heap_destroy(std::exchange(handle_, nullptr)));
    }

    /* Collective. */
    template <class T> memory<T> allocate(std::size_t count = 1) const
    {
        return memory<T>(world_, handle_, count);
    }

    int number() const noexcept
    {
        return coh_heap_number(handle_);
    }
    coh_heap *get() const noexcept
    {
        return handle_;
    }

  private:
    coh_world *world_ = nullptr;
    coh_heap *handle_ = nullptr;
    detail::unwinding unwinding_;
};

/* ---- teams ---- */

/* Some ranks, which collectives and messages are made among. */
class team
{
  public:
    team() = default;
    /* `owned`: the destructor destroys it. */
    team(coh_team *handle, bool owned) noexcept : handle_(handle), owned_(owned)
    {
    }
    team(team &&other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), owned_(other.owned_),
          unwinding_(other.unwinding_)
    {
    }
    team &operator=(team &&other)
    {
        if (this != &other) {
            destroy();
            handle_ = std::exchange(other.handle_, nullptr);
            owned_ = other.owned_;
            unwinding_ = other.unwinding_;
        }
        return *this;
    }
    ~team()
    {
        if (handle_ && owned_ && !unwinding_.now())
            (void)coh_team_destroy(handle_);
    }

    /* Destroys it now, and throws where the destructor would be silent. Collective. */
    void destroy()
    {
        coh_team *handle = std::exchange(handle_, nullptr);
        if (handle && owned_)
            check(coh_team_destroy(handle));
    }

    /* False of the team that a rank got which is in none. */
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }
    coh_team *get() const noexcept
    {
        return handle_;
    }
    int index() const noexcept
    {
        return coh_team_index(handle_);
    }
    int size() const noexcept
    {
        return coh_team_size(handle_);
    }
    /* The rank in the world of a member. */
    int rank(int member) const noexcept
    {
        return coh_team_rank(handle_, member);
    }

    team split(int color, int key = 0) const
    {
        coh_team *made = nullptr;
        check(coh_team_split_color(handle_, color, key, &made));
        return {made, true};
    }
    team split_strided(int start, int stride, int size) const
    {
        coh_team *made = nullptr;
        check(coh_team_split_strided(handle_, start, stride, size, &made));
        return {made, true};
    }

    void sync() const
    {
        check(coh_team_sync(handle_));
    }
    void barrier() const
    {
        check(coh_team_barrier(handle_));
    }

    /* ---- collectives; see cohort-collectives.h ---- */

    template <class Source, class Target>
    void all_reduce(const Source &source, Target &&target, coh_reduce_op op = COH_SUM) const
    {
        auto to = detail::view(target);
        check(coh_all_reduce(handle_, type(source, to), op, std::data(source), to.data(),
                             same("all_reduce", source, to)));
    }
    /* In place; and of one value, which every member gets. */
    template <class Buffer, class = decltype(std::data(std::declval<Buffer &>()))>
    void all_reduce(Buffer &&buffer, coh_reduce_op op = COH_SUM) const
    {
        all_reduce(buffer, buffer, op);
    }
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    [[nodiscard]] T all_reduce_value(T value, coh_reduce_op op = COH_SUM) const
    {
        all_reduce(span<T>(&value, 1), op);
        return value;
    }
    template <class Buffer>
    request all_reduce_start(Buffer &&buffer, coh_reduce_op op = COH_SUM) const
    {
        auto all = detail::view(buffer);
        coh_request *made = nullptr;
        check(coh_all_reduce_start(handle_, type(all, all), op, all.data(), all.data(), all.size(),
                                   &made));
        return request(made);
    }
    template <class Source, class Target>
    void reduce(const Source &source, Target &&target, int root, coh_reduce_op op = COH_SUM) const
    {
        auto to = detail::view(target);
        if (index() == root)
            same("reduce", source, to);
        check(coh_reduce(handle_, type(source, to), op, std::data(source), to.data(),
                         std::size(source), root));
    }
    /* `source` has size() times as many elements as `target`. */
    template <class Source, class Target>
    void reduce_scatter(const Source &source, Target &&target, coh_reduce_op op = COH_SUM) const
    {
        auto to = detail::view(target);
        detail::expect("reduce_scatter", to.size() * count(), std::size(source));
        check(coh_reduce_scatter(handle_, type(source, to), op, std::data(source), to.data(),
                                 to.size()));
    }
    template <class Source, class Target>
    void scan(const Source &source, Target &&target, coh_reduce_op op = COH_SUM) const
    {
        auto to = detail::view(target);
        check(coh_scan(handle_, type(source, to), op, std::data(source), to.data(),
                       same("scan", source, to)));
    }
    /* `target` has size() times as many elements as `source`. */
    template <class Source, class Target>
    void all_gather(const Source &source, Target &&target) const
    {
        auto to = detail::view(target);
        detail::expect("all_gather", std::size(source) * count(), to.size());
        check(coh_all_gather(handle_, type(source, to), std::data(source), to.data(),
                             std::size(source)));
    }
    /* The same at the root; the others' target is not used. */
    template <class Source, class Target>
    void gather(const Source &source, Target &&target, int root) const
    {
        auto to = detail::view(target);
        if (index() == root)
            detail::expect("gather", std::size(source) * count(), to.size());
        check(coh_gather(handle_, type(source, to), std::data(source), to.data(), std::size(source),
                         root));
    }
    /* counts[i] elements of member i, the same counts on all. */
    template <class Source, class Target, class Counts>
    void gather_v(const Source &source, Target &&target, const Counts &counts, int root) const
    {
        auto to = detail::view(target);
        detail::expect("gather_v", count(), std::size(counts));
        check(coh_gather_v(handle_, type(source, to), std::data(source), to.data(),
                           std::data(counts), root));
    }
    /* At the root `source` has size() times as many elements as `target`; the others' is not used. */
    template <class Source, class Target>
    void scatter(const Source &source, Target &&target, int root) const
    {
        auto to = detail::view(target);
        if (index() == root)
            detail::expect("scatter", to.size() * count(), std::size(source));
        check(
            coh_scatter(handle_, type(source, to), std::data(source), to.data(), to.size(), root));
    }
    template <class Source, class Target, class Counts>
    void scatter_v(const Source &source, Target &&target, const Counts &counts, int root) const
    {
        auto to = detail::view(target);
        detail::expect("scatter_v", count(), std::size(counts));
        check(coh_scatter_v(handle_, type(source, to), std::data(source), to.data(),
                            std::data(counts), root));
    }
    /* The root's buffer into all members'. */
    template <class Buffer> void broadcast(Buffer &&buffer, int root) const
    {
        auto all = detail::view(buffer);
        check(coh_broadcast(handle_, type(all, all), all.data(), all.data(), all.size(), root));
    }
    /* A block for each member, and one of each. */
    template <class Source, class Target>
    void all_to_all(const Source &source, Target &&target) const
    {
        auto to = detail::view(target);
        std::size_t block = same("all_to_all", source, to) / count();
        detail::expect("all_to_all", block * count(), to.size());
        check(coh_all_to_all(handle_, type(source, to), std::data(source), to.data(), block));
    }

    /* What is described, on this team; see coh_collective. */
    void run(coh_collective described) const
    {
        described.team = handle_;
        check(coh_collective_run(&described));
    }
    request start(coh_collective described) const
    {
        coh_request *made = nullptr;
        described.team = handle_;
        check(coh_collective_start(&described, &made));
        return request(made);
    }

    /* ---- messages; lengths are those of the buffers ---- */

    template <class Source> void send(int to, int tag, const Source &source) const
    {
        check(coh_send(handle_, to, tag, std::data(source), bytes(source)));
    }
    template <class Source> request send_start(int to, int tag, const Source &source) const
    {
        coh_request *made = nullptr;
        check(coh_send_start(handle_, to, tag, std::data(source), bytes(source), &made));
        return request(made);
    }
    template <class Target> coh_message receive(int from, int tag, Target &&target) const
    {
        auto to = detail::view(target);
        coh_message got{};
        check(coh_receive(handle_, from, tag, to.data(), bytes(to), &got));
        return got;
    }
    template <class Target> request receive_start(int from, int tag, Target &&target) const
    {
        auto to = detail::view(target);
        coh_request *made = nullptr;
        check(coh_receive_start(handle_, from, tag, to.data(), bytes(to), &made));
        return request(made);
    }
    /* A message of any length; a length that is no multiple of T's is COH_LENGTH_MISMATCH. */
    template <class T> std::vector<T> receive_all(int from, int tag) const
    {
        coh_message next{};
        check(coh_probe_wait(handle_, from, tag, &next));
        detail::expect("receive_all", next.bytes / sizeof(T) * sizeof(T), next.bytes);
        std::vector<T> got(next.bytes / sizeof(T));
        receive(next.source, next.tag, got);
        return got;
    }

  private:
    std::size_t count() const noexcept
    {
        return static_cast<std::size_t>(size());
    }
    template <class Source, class Target> static constexpr coh_dtype type(const Source &, Target &)
    {
        using from = std::remove_cv_t<detail::element<const Source>>;
        using to = detail::element<Target>;
        static_assert(!std::is_const<to>::value, "the target can be written");
        static_assert(std::is_same<from, to>::value, "source and target have one element type");
        return dtype_of<to>;
    }
    template <class Source, class Target>
    static std::size_t same(const char *call, const Source &source, const Target &target)
    {
        detail::expect(call, std::size(source), std::size(target));
        return std::size(source);
    }
    template <class Range> static std::size_t bytes(const Range &range)
    {
        using item = detail::element<const Range>;
        static_assert(std::is_trivially_copyable<item>::value, "what is sent is copied as bytes");
        return std::size(range) * sizeof(item);
    }

    coh_team *handle_ = nullptr;
    bool owned_ = false;
    detail::unwinding unwinding_;
};

/* ---- worlds ---- */

/* The options, with the defaults set. */
inline coh_options options()
{
    return COH_OPTIONS_INIT;
}

/* One rank's handle on a job. */
class world
{
  public:
    /* Joins the job that the process was started in. */
    explicit world(const coh_options &how = options())
    {
        check(coh_init(&how, &handle_));
    }
    /* Joins the job of an id. */
    world(const coh_unique_id &id, int rank, int size, const coh_options &how = options())
    {
        check(coh_init_unique_id(&id, rank, size, &how, &handle_));
    }
    /* Takes an open world over. */
    explicit world(coh_world *handle) noexcept : handle_(handle)
    {
    }
    /* Ranks inside this process. */
    static std::vector<world> threads(int ranks, const coh_options &how = options())
    {
        std::vector<coh_world *> handles(ranks > 0 ? static_cast<std::size_t>(ranks) : 1);
        check(coh_init_threads(ranks, &how, handles.data()));
        return std::vector<world>(handles.begin(), handles.end());
    }
    world(world &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
    {
    }
    world &operator=(world &&other)
    {
        if (this != &other) {
            finalize();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~world()
    {
        (void)coh_finalize(handle_);
    }

    /* Leaves the job now, and throws where the destructor would be silent. */
    void finalize()
    {
        const coh_status status = coh_finalize(handle_);
        const bool refused =
            status == COH_BUSY || status == COH_WRONG_THREAD || status == COH_FORKED;
        if (!refused)
            handle_ = nullptr;
        check(status);
    }

    coh_world *get() const noexcept
    {
        return handle_;
    }
    int rank() const noexcept
    {
        return coh_rank(handle_);
    }
    int size() const noexcept
    {
        return coh_size(handle_);
    }
    const char *engine() const noexcept
    {
        return coh_engine(handle_);
    }
    /* All ranks, and those on this host. */
    coh::team team() const noexcept
    {
        return {coh_team_world(handle_), false};
    }
    coh::team host() const noexcept
    {
        return {coh_team_host(handle_), false};
    }

    /* Collective. */
    template <class T> memory<T> allocate(std::size_t count = 1) const
    {
        return memory<T>(handle_, count);
    }

    /* A further heap, of up to `bytes` on each rank; 0: as the world's own. Collective. */
    heap make_heap(std::uint64_t bytes = 0) const
    {
        coh_heap_options options = COH_HEAP_OPTIONS_INIT;
        options.bytes = bytes;
        return heap(handle_, options);
    }

    void barrier() const
    {
        check(coh_barrier(handle_));
    }
    void sync() const
    {
        check(coh_sync(handle_));
    }
    void fence() const
    {
        check(coh_fence(handle_));
    }
    void quiet() const
    {
        check(coh_quiet(handle_));
    }

    /* To and from rank `rank`'s copy of what the symmetric pointer points to. */
    template <class T, class Source> void put(T *target, const Source &source, int rank) const
    {
        auto from = source_of<T>(source);
        check(coh_put(handle_, target, from.data(), from.size() * sizeof(T), rank));
    }
    template <class T, class Target> void get(Target &&target, const T *source, int rank) const
    {
        auto to = detail::view(target);
        static_assert(std::is_same<decltype(to), span<T>>::value, "one element type");
        check(coh_get(handle_, to.data(), source, to.size() * sizeof(T), rank));
    }
    template <class T> void put_value(T *target, const T &value, int rank) const
    {
        static_assert(std::is_trivially_copyable<T>::value, "what is put is copied as bytes");
        check(coh_put(handle_, target, &value, sizeof value, rank));
    }
    template <class T> [[nodiscard]] T get_value(const T *source, int rank) const
    {
        static_assert(std::is_trivially_copyable<T>::value, "what is got is copied as bytes");
        T value;
        check(coh_get(handle_, &value, source, sizeof value, rank));
        return value;
    }
    template <class T, class Source>
    void put_signal(T *target, const Source &source, std::uint64_t *signal, std::uint64_t value,
                    int rank, coh_signal_op op = COH_SIGNAL_SET) const
    {
        auto from = source_of<T>(source);
        check(coh_put_signal(handle_, target, from.data(), from.size() * sizeof(T), signal, value,
                             op, rank));
    }
    void signal(std::uint64_t *signal, std::uint64_t value, int rank,
                coh_signal_op op = COH_SIGNAL_SET) const
    {
        check(coh_signal(handle_, signal, value, op, rank));
    }
    template <class T>
    void wait_until(const T *word, coh_compare compare, T value, int from = COH_ANY_RANK) const
    {
        check(coh_wait_until(handle_, dtype_of<T>, word, compare, &value, from));
    }

  private:
    template <class T, class Source> static span<const T> source_of(const Source &source)
    {
        using from = std::remove_cv_t<detail::element<const Source>>;
        static_assert(std::is_same<from, T>::value, "source and target have one element type");
        static_assert(std::is_trivially_copyable<T>::value, "what is put is copied as bytes");
        return {std::data(source), std::size(source)};
    }

    coh_world *handle_ = nullptr;
};

} // namespace coh

#undef COHORT_HAS_STD_SPAN

#endif /* COHORT_HPP */
