/*
 * gloo_links.cc RANK RANKS FOLDER SIZES - all_reduces of Gloo over TCP on the loopback, for `cohort bench links`. The ranks
 * find each other by files in FOLDER, which is new for each run. Rank 0 prints "cohort-peer all_reduce BYTES
 * NANOSECONDS", the median of the rounds.
 */
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace
{

constexpr int rounds = 5;

void sum(void *target, const void *left, const void *right, size_t count)
{
    auto *to = static_cast<float *>(target);
    const auto *a = static_cast<const float *>(left), *b = static_cast<const float *>(right);
    for (size_t i = 0; i < count; i++)
        to[i] = a[i] + b[i];
}

int repeats_of(size_t bytes)
{
    return bytes <= 64 << 10 ? 100 : bytes <= 1 << 20 ? 10 : 2;
}

double time_all_reduce(const std::shared_ptr<gloo::Context> &context, std::vector<float> &source,
                       std::vector<float> &target, size_t bytes)
{
    size_t count = bytes / sizeof(float);
    std::vector<double> times;
    for (int round = -1; round < rounds; round++) {
        int repeats = round < 0 ? 1 : repeats_of(bytes);
        gloo::BarrierOptions meet(context);
        gloo::barrier(meet);
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < repeats; i++) {
            gloo::AllreduceOptions options(context);
            options.setInput(source.data(), count);
            options.setOutput(target.data(), count);
            options.setReduceFunction(sum);
            gloo::allreduce(options);
        }
        std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        if (round >= 0)
            times.push_back(took.count() / repeats);
    }
    std::sort(times.begin(), times.end());
    return times[rounds / 2];
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    int rank = std::atoi(argv[1]), size = std::atoi(argv[2]);
    std::vector<size_t> sizes;
    for (char *at = argv[4]; *at; at += *at == ',')
        sizes.push_back(std::strtoull(at, &at, 10));
    gloo::transport::tcp::attr where("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore store(argv[3]);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    context->connectFullMesh(store, device);
    if (rank == 0)
        std::printf("cohort-peer version Gloo, its TCP transport\n");
    size_t largest = *std::max_element(sizes.begin(), sizes.end()) / sizeof(float);
    std::vector<float> source(largest), target(largest);
    for (size_t bytes : sizes) {
        double each = time_all_reduce(context, source, target, bytes);
        if (rank == 0)
            std::printf("cohort-peer all_reduce %zu %.3f\n", bytes, each);
        std::fflush(stdout);
    }
    return 0;
}
