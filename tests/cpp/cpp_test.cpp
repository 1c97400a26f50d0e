/* cohort.hpp: three ranks as threads of one process, or those of a launcher. */
#include <cohort.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace
{

std::atomic<int> failures{0};

void expect(bool good, const char *what, int line)
{
    if (good)
        return;
    std::fprintf(stderr, "cpp_test.cpp:%d: %s\n", line, what);
    failures++;
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

template <class Body> void expect_error(coh_status status, Body body, int line)
{
    try {
        body();
        expect(false, "nothing was thrown", line);
    } catch (const coh::error &error) {
        expect(error.status() == status && error.facts().status == status, error.what(), line);
    }
}
#define EXPECT_ERROR(status, ...) \
    expect_error(                 \
        status, [&] { __VA_ARGS__; }, __LINE__)

/* ---- types ---- */

static_assert(coh::dtype_of<bool> == COH_BOOL, "");
static_assert(coh::dtype_of<const int> == COH_I32, "");
static_assert(coh::dtype_of<unsigned char> == COH_U8, "");
static_assert(coh::dtype_of<long long> == COH_I64, "");
static_assert(coh::dtype_of<coh::bf16> == COH_BF16, "");
static_assert(!std::is_copy_constructible<coh::world>::value, "");
static_assert(!std::is_copy_constructible<coh::memory<int>>::value, "");
static_assert(std::is_nothrow_move_constructible<coh::team>::value, "");

/* Every pattern of a float's upper bits, with rests around the half. */
void bf16_rounds()
{
    for (std::uint32_t high = 0; high < 0x10000; high += 7)
        for (std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
            std::uint32_t bits = high << 16 | low;
            float value, back;
            std::uint16_t wanted;
            std::memcpy(&value, &bits, sizeof value);
            coh::check(coh_convert(&wanted, COH_BF16, &value, COH_F32, 1));
            coh::bf16 made = value;
            bool as_convert_rounds =
                std::isnan(value) ? std::isnan(static_cast<float>(made)) : made.bits == wanted;
            EXPECT(as_convert_rounds);
            if (!as_convert_rounds)
                return;
            coh::check(coh_convert(&back, COH_F32, &made.bits, COH_BF16, 1));
            if (!std::isnan(value))
                EXPECT(back == static_cast<float>(made));
        }
}

/* ---- a rank ---- */

void puts_and_gets(const coh::world &world)
{
    int right = (world.rank() + 1) % world.size(),
        left = (world.rank() + world.size() - 1) % world.size();
    auto box = world.allocate<double>(4);
    EXPECT(box.size() == 4 && box[0] == 0 && box[3] == 0);
    world.sync(); /* the left one puts */
    std::array<double, 4> mine{1.0 * world.rank(), 2, 3, 4};
    world.put(box.data(), mine, right);
    world.barrier();
    EXPECT(box[0] == left && box[3] == 4);
    std::vector<double> got(2);
    world.get(got, box.data() + 2, right);
    EXPECT(got[0] == 3 && got[1] == 4 && world.get_value(box.data(), right) == world.rank());

    auto signals = world.allocate<std::uint64_t>(1);
    world.put_signal(box.data(), std::vector<double>{7, 8}, signals.data(), 5, right);
    world.wait_until(signals.data(), COH_GE, std::uint64_t{5}, left);
    EXPECT(box[0] == 7 && box[1] == 8 && box[2] == 3);
    EXPECT_ERROR(COH_UNKNOWN_RANK, world.put(box.data(), mine, world.size()));
    try {
        world.put_value(box.data(), 1.0, -4);
    } catch (const coh::error &error) {
        EXPECT(error.facts().peer == -4 && error.facts().rank == world.rank()
               && std::string(error.facts().operation) == "coh_put");
    }
}

void collectives(const coh::world &world)
{
    auto team = world.team();
    int n = world.size(), me = world.rank();
    const auto triangle = static_cast<float>(n * (n + 1) / 2);
    std::vector<float> numbers(100, static_cast<float>(me + 1)), sum(100);
    team.all_reduce(numbers, sum);
    EXPECT(sum[0] == triangle && sum[99] == triangle);
    team.all_reduce(numbers, COH_MAX);
    EXPECT(numbers[50] == static_cast<float>(n));
    EXPECT(team.all_reduce_value(me, COH_MIN) == 0);
    auto request = team.all_reduce_start(sum, COH_MAX);
    while (!request.test())
        std::this_thread::yield();
    request.wait(); /* done already */
    EXPECT(sum[7] == triangle);

    coh_collective described = COH_COLLECTIVE_INIT;
    described.kind = COH_COLLECTIVE_SCAN;
    described.dtype = COH_F32;
    std::vector<float> ones(3, 1.0F), upto(3);
    described.source = ones.data();
    described.target = upto.data();
    described.count = ones.size();
    team.run(described);
    EXPECT(upto[2] == static_cast<float>(me + 1));
    upto[2] = 0;
    team.start(described).wait();
    EXPECT(upto[2] == static_cast<float>(me + 1));
    described.root = n;
    described.kind = COH_COLLECTIVE_BROADCAST;
    EXPECT_ERROR(COH_UNKNOWN_RANK, team.run(described));

    std::vector<int> one{me}, all(static_cast<std::size_t>(n), -1), back(1, -1);
    team.all_gather(one, all);
    for (int i = 0; i < n; i++)
        EXPECT(all[static_cast<std::size_t>(i)] == i);
    team.scatter(all, back, n - 1);
    EXPECT(back[0] == me);
    team.gather(back, all, 0);
    team.broadcast(all, 0);
    EXPECT(all[static_cast<std::size_t>(n - 1)] == n - 1);
    team.scan(one, back);
    EXPECT(back[0] == me * (me + 1) / 2);
    std::vector<int> out(static_cast<std::size_t>(n), me), in(static_cast<std::size_t>(n));
    team.all_to_all(out, in);
    EXPECT(std::accumulate(in.begin(), in.end(), 0) == n * (n - 1) / 2);
    team.reduce_scatter(out, back);
    EXPECT(back[0] == n * (n - 1) / 2);
    team.reduce(one, back, n - 1);
    EXPECT(back[0] == n * (n - 1) / 2);

    std::vector<std::size_t> counts(static_cast<std::size_t>(n));
    std::iota(counts.begin(), counts.end(), 1);
    std::vector<int> band(static_cast<std::size_t>(me) + 1, me);
    std::vector<int> bands(static_cast<std::size_t>(n * (n + 1) / 2), -1);
    team.gather_v(band, bands, counts, 0);
    if (me == 0)
        EXPECT(bands.front() == 0 && bands.back() == n - 1);
    std::fill(band.begin(), band.end(), -1);
    team.scatter_v(bands, band, counts, 0);
    EXPECT(band.back() == me);

    std::vector<coh::bf16> small(3, coh::bf16(0.5f));
    team.all_reduce(small);
    EXPECT(small[1] == 0.5f * static_cast<float>(n));
    EXPECT_ERROR(COH_LENGTH_MISMATCH, team.all_reduce(std::vector<int>(3), std::vector<int>(4)));
}

void messages(const coh::world &world)
{
    auto team = world.team();
    int n = world.size(), right = (world.rank() + 1) % n, left = (world.rank() + n - 1) % n;
    std::vector<int> out(static_cast<std::size_t>(world.rank()) + 2, world.rank());
    auto sent = team.send_start(right, 3, out);
    auto got = team.receive_all<int>(left, 3);
    EXPECT(got.size() == static_cast<std::size_t>(left) + 2 && got.back() == left);
    sent.wait();
    int number = -1;
    {
        auto coming = team.receive_start(left, 4, coh::span<int>(&number, 1));
        team.send(right, 4, std::array<int, 1>{world.rank()});
    } /* the destructor waits */
    EXPECT(number == left);
    std::array<int, 4> four{};
    team.send(right, 5, std::array<int, 2>{1, 2});
    EXPECT(team.receive(left, 5, four).bytes == 2 * sizeof(int) && four[1] == 2);
}

void teams(const coh::world &world)
{
    auto odd = world.team().split(world.rank() % 2, 0);
    EXPECT(odd && odd.size() == (world.size() + (world.rank() % 2 == 0)) / 2);
    EXPECT(odd.rank(odd.index()) == world.rank());
    EXPECT(odd.all_reduce_value(1) == odd.size());
    auto first = world.team().split_strided(0, 1, 1);
    EXPECT(static_cast<bool>(first) == (world.rank() == 0));
    coh::team moved = std::move(odd);
    EXPECT(!odd && moved.size() > 0);
    moved.destroy();
    EXPECT(!moved);
}

std::uint64_t live(const coh::world &world)
{
    coh_heap_stats stats{};
    stats.size = sizeof stats;
    coh::check(coh_heap_query(world.get(), &stats));
    return stats.count;
}

/* Memory is given back at the end of its scope, by move too, but not while the stack unwinds. */
void scopes(const coh::world &world)
{
    std::uint64_t before = live(world);
    {
        auto one = world.allocate<char>(10);
        coh::memory<char> two = std::move(one);
        EXPECT(one.data() == nullptr && two.size() == 10 && live(world) == before + 1);
        two = world.allocate<char>(20);
        EXPECT(live(world) == before + 1);
    }
    EXPECT(live(world) == before);
    try {
        auto lost = world.allocate<char>(10);
        throw std::runtime_error("on purpose");
    } catch (const std::runtime_error &) {
    }
    EXPECT(live(world) == before + 1);
}

void heaps(const coh::world &world)
{
    std::uint64_t before = live(world);
    coh::heap heap = world.make_heap(1 << 22);
    EXPECT(heap.number() == 1);
    auto box = heap.allocate<int>(4);
    const int mine[] = {world.rank() + 1};
    world.put(box.data(), mine, (world.rank() + 1) % world.size());
    world.barrier();
    EXPECT(box[0] == (world.rank() + world.size() - 1) % world.size() + 1 && box[3] == 0);
    EXPECT(live(world) == before);
    coh::heap moved = std::move(heap);
    EXPECT(heap.get() == nullptr && heap.number() == -1);
    box.free();
    auto left = moved.allocate<char>(10);
    moved.destroy();
    bool refused = false;
    try {
        left.free();
    } catch (const coh::error &error) {
        refused = error.status() == COH_NOT_SYMMETRIC;
    }
    EXPECT(refused);
}

void rank(coh::world &world)
{
    puts_and_gets(world);
    collectives(world);
    messages(world);
    teams(world);
    scopes(world);
    heaps(world);
    coh::world moved = std::move(world);
    moved.finalize();
    EXPECT(moved.get() == nullptr);
}

void in_threads()
{
    auto worlds = coh::world::threads(3);
    std::vector<std::thread> ranks;
    for (auto &world : worlds)
        ranks.emplace_back([&world] {
            try {
                rank(world);
            } catch (const coh::error &error) {
                expect(false, error.what(), __LINE__);
            }
        });
    for (auto &thread : ranks)
        thread.join();
}

} // namespace

int main(int argc, char **)
{
    try {
        bf16_rounds();
        if (argc > 1) {
            coh::world world;
            rank(world);
        } else {
            in_threads();
            EXPECT_ERROR(COH_INVALID_ARGUMENT, coh::world::threads(-1));
        }
    } catch (const coh::error &error) {
        expect(false, error.what(), __LINE__);
    }
    return failures != 0;
}
