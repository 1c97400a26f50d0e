#include "engine/mlx/shim.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <mlx/array.h>
#include <mlx/distributed/distributed.h>
#include <mlx/distributed/distributed_impl.h>
#include <mlx/stream.h>
#include <mlx/version.h>

namespace mx = mlx::core;

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

namespace
{

/* What one gather works on, on a stream of the thread that made it. */
struct exchange {
    mx::array mine;
    mx::array all;
};

constexpr size_t ERROR_BYTES = 64;
constexpr std::chrono::milliseconds TAKE_DOWN{500};

/* Never destroyed: a thread may be inside of MLX when the process ends. */
struct state {
    std::optional<mx::distributed::Group> group;
    std::optional<mx::Stream> stream;
    std::map<size_t, exchange> exchanges; /* by bytes: as many as there are lengths of frames */
    exchange *prepared = nullptr;
};

state &own = *new state;

/* Runs what may throw. */
template <typename F> bool guarded(char *error, size_t room, F &&f)
{
    try {
        f();
        return true;
    } catch (const std::exception &thrown) {
        std::snprintf(error, room, "%s", thrown.what());
    } catch (...) {
        std::snprintf(error, room, "an exception that is none of std's");
    }
    return false;
}

const char *shim_version()
{
    return mx::version();
}

bool shim_is_available(const char *backend)
{
    char ignored[ERROR_BYTES];
    bool available = false;
    return guarded(ignored, sizeof ignored,
                   [&] { available = mx::distributed::is_available(backend); })
           && available;
}

bool shim_join(const char *backend, int *rank, int *size, char *error, size_t room)
{
    return guarded(error, room, [&] {
        if (own.group)
            throw std::runtime_error("another engine of Cohort uses MLX in this process");
        if (!own.stream)
            own.stream = mx::new_stream(mx::Device::cpu);
        own.group = mx::distributed::init(true, backend);
        *rank = own.group->rank();
        *size = own.group->size();
    });
}

mx::array array_of(size_t bytes)
{
    std::vector<std::uint8_t> zeros(bytes);
    return mx::array(zeros.data(), mx::Shape{static_cast<mx::ShapeElem>(bytes)}, mx::uint8);
}

bool shim_prepare(size_t bytes, void **mine, void **all, char *error, size_t room)
{
    return guarded(error, room, [&] {
        auto found = own.exchanges.find(bytes);
        if (found == own.exchanges.end())
            found = own.exchanges
                        .emplace(bytes,
                                 exchange{array_of(bytes),
                                          array_of(bytes * static_cast<size_t>(own.group->size()))})
                        .first;
        own.prepared = &found->second;
        *mine = own.prepared->mine.data<void>();
        *all = own.prepared->all.data<void>();
    });
}

/* The group's own operation, without a graph around it. */
bool shim_gather(char *error, size_t room)
{
    return guarded(error, room, [&] {
        own.group->raw_group()->all_gather(own.prepared->mine, own.prepared->all, *own.stream);
        mx::synchronize(*own.stream);
    });
}

/*
 * Takes a group down on a thread of its own, waited for as long as that may take. The threads of MLX's ring are told to
 * stop without their lock, so that now and then one misses it and is waited for without end. MLX's own table must not be
 * in the middle of that, since the end of the process takes it down again.
 */
void take_down(mx::distributed::Group &&last)
{
    auto done = std::make_shared<std::promise<void>>();
    auto over = done->get_future();
    std::thread([group = std::optional<mx::distributed::Group>(std::move(last)), done]() mutable {
        group.reset();
        done->set_value();
    }).detach();
    over.wait_for(TAKE_DOWN);
}

void shim_part(bool forget, bool keep)
{
    char ignored[ERROR_BYTES];
    guarded(ignored, sizeof ignored, [&] {
        if (keep && own.group)
            new mx::distributed::Group(*own.group); /* never deleted: nothing waits for anybody */
        own.prepared = nullptr;
        own.exchanges.clear();
        if (forget)
            mx::distributed::clear_backends();
        if (forget && own.group)
            take_down(std::move(*own.group));
        own.group.reset();
    });
}

} // namespace

extern "C" {
__attribute__((visibility("default"))) extern const cohi_mlx_shim COHI_MLX_SHIM_SYMBOL;

const cohi_mlx_shim COHI_MLX_SHIM_SYMBOL = {
    sizeof(cohi_mlx_shim),
    TEXT(MLX_VERSION_MAJOR) "." TEXT(MLX_VERSION_MINOR) "." TEXT(MLX_VERSION_PATCH),
    shim_version,
    shim_is_available,
    shim_join,
    shim_prepare,
    shim_gather,
    shim_part,
};
}
