#include "group.h"

#include <stdexcept>
#include <string>
#include <utility>

#include <mlx/allocator.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/distributed/primitives.h>
#include <mlx/ops.h>
#include <mlx/stream.h>

namespace mx = mlx::core;

namespace cohort_mlx
{

namespace
{

/* All messages of MLX's sends have this tag. */
constexpr int TAG = 0;

void check(coh_status status)
{
    if (status != COH_OK)
        throw std::runtime_error(std::string("[cohort] ") + coh_last_error());
}

coh_dtype dtype_of(const mx::array &array)
{
    switch (array.dtype().val()) {
    case mx::Dtype::Val::bool_:
        return COH_BOOL;
    case mx::Dtype::Val::uint8:
        return COH_U8;
    case mx::Dtype::Val::uint16:
        return COH_U16;
    case mx::Dtype::Val::uint32:
        return COH_U32;
    case mx::Dtype::Val::uint64:
        return COH_U64;
    case mx::Dtype::Val::int8:
        return COH_I8;
    case mx::Dtype::Val::int16:
        return COH_I16;
    case mx::Dtype::Val::int32:
        return COH_I32;
    case mx::Dtype::Val::int64:
        return COH_I64;
    case mx::Dtype::Val::float16:
        return COH_F16;
    case mx::Dtype::Val::bfloat16:
        return COH_BF16;
    case mx::Dtype::Val::float32:
        return COH_F32;
    case mx::Dtype::Val::float64:
        return COH_F64;
    case mx::Dtype::Val::complex64:
        return COH_F32; /* two each */
    }
    throw std::invalid_argument("[cohort] this type of MLX's is none of Cohort's");
}

bool is_complex(const mx::array &array)
{
    return array.dtype() == mx::complex64;
}

size_t elements(const mx::array &array)
{
    return is_complex(array) ? 2 * array.size() : array.size();
}

} // namespace

/* ---- worlds ---- */

World::World(const char *engine) : stream_(mx::new_thread_unsafe_stream(mx::Device::cpu))
{
    coh_options options = COH_OPTIONS_INIT;
    options.engine = engine;
    check(coh_init(&options, &handle_));
}

void World::finalize()
{
    if (!handle_)
        return;
    mx::synchronize(stream_);
    check(coh_finalize(std::exchange(handle_, nullptr)));
}

/* Not finalized in order: the others learn that it is gone when the process ends. */
World::~World() = default;

/* ---- groups ---- */

Group::Group(std::shared_ptr<World> world, coh_team *team)
    : world_(std::move(world)), team_(team), rank_(coh_team_index(team)), size_(coh_team_size(team))
{
}

mx::Stream Group::communication_stream(mx::StreamOrDevice)
{
    return world_->stream();
}

int Group::rank()
{
    return rank_;
}

int Group::size()
{
    return size_;
}

/* Behind what is under way on the stream, where another thread is in collectives of the same team. */
std::shared_ptr<mx::distributed::detail::GroupImpl> Group::split(int color, int key)
{
    coh_team *team = nullptr;
    if (!world_->handle())
        throw std::runtime_error("[cohort] the world of this group is finalized");
    mx::synchronize(world_->stream());
    check(coh_team_split_color(team_, color, key < 0 ? rank_ : key, &team));
    if (!team)
        throw std::invalid_argument("[cohort] a negative color joins no group");
    return std::make_shared<Group>(world_, team);
}

/* ---- operations ---- */

void Group::reduce(coh_reduce_op op, const mx::array &input, mx::array &output, mx::Stream stream)
{
    if (is_complex(input) && op != COH_SUM)
        throw std::invalid_argument("[cohort] complex numbers have no greatest or least");
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_input_array(input);
    encoder.set_output_array(output);
    encoder.dispatch([team = team_, type = dtype_of(input), op, source = input.data<void>(),
                      target = output.data<void>(), count = elements(input)] {
        check(coh_all_reduce(team, type, op, source, target, count));
    });
}

void Group::all_sum(const mx::array &input, mx::array &output, mx::Stream stream)
{
    reduce(COH_SUM, input, output, stream);
}

void Group::all_max(const mx::array &input, mx::array &output, mx::Stream stream)
{
    reduce(COH_MAX, input, output, stream);
}

void Group::all_min(const mx::array &input, mx::array &output, mx::Stream stream)
{
    reduce(COH_MIN, input, output, stream);
}

void Group::all_gather(const mx::array &input, mx::array &output, mx::Stream stream)
{
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_input_array(input);
    encoder.set_output_array(output);
    encoder.dispatch(
        [team = team_, source = input.data<void>(), target = output.data<void>(),
         bytes = input.nbytes()] { check(coh_all_gather(team, COH_U8, source, target, bytes)); });
}

void Group::sum_scatter(const mx::array &input, mx::array &output, mx::Stream stream)
{
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_input_array(input);
    encoder.set_output_array(output);
    encoder.dispatch([team = team_, type = dtype_of(input), source = input.data<void>(),
                      target = output.data<void>(), count = elements(output)] {
        check(coh_reduce_scatter(team, type, COH_SUM, source, target, count));
    });
}

void Group::send(const mx::array &input, int to, mx::Stream stream)
{
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_input_array(input);
    encoder.dispatch([team = team_, to, source = input.data<void>(), bytes = input.nbytes()] {
        check(coh_send(team, to, TAG, source, bytes));
    });
}

void Group::recv(mx::array &output, int from, mx::Stream stream)
{
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_output_array(output);
    encoder.dispatch([team = team_, from, target = output.data<void>(), bytes = output.nbytes()] {
        coh_message got;
        check(coh_receive(team, from, TAG, target, bytes, &got));
        if (got.bytes != bytes)
            throw std::runtime_error("[cohort] " + std::to_string(got.bytes)
                                     + " bytes came of rank " + std::to_string(from)
                                     + " of the group, and " + std::to_string(bytes)
                                     + " were to be received");
    });
}

void Group::all_to_all(const mx::array &input, mx::array &output, mx::Stream stream)
{
    auto &encoder = mx::cpu::get_command_encoder(stream);
    encoder.set_input_array(input);
    encoder.set_output_array(output);
    encoder.dispatch([team = team_, source = input.data<void>(), target = output.data<void>(),
                      bytes = input.nbytes() / static_cast<size_t>(size_)] {
        check(coh_all_to_all(team, COH_U8, source, target, bytes));
    });
}

/* ---- all_to_all as an operation of a graph ---- */

namespace
{

class AllToAll : public mx::distributed::DistPrimitive
{
  public:
    using DistPrimitive::DistPrimitive;

    void eval_cpu(const std::vector<mx::array> &inputs, std::vector<mx::array> &outputs) override
    {
        auto &own = static_cast<Group &>(*group().raw_group());
        outputs[0].set_data(mx::allocator::malloc(outputs[0].nbytes()));
        own.all_to_all(inputs[0], outputs[0], stream());
    }

    void eval_gpu(const std::vector<mx::array> &, std::vector<mx::array> &) override
    {
        throw std::runtime_error("[cohort] all_to_all runs on the CPU's stream of its group");
    }

    /* Blocks go back to where they came from. */
    std::vector<mx::array> vjp(const std::vector<mx::array> &,
                               const std::vector<mx::array> &cotangents, const std::vector<int> &,
                               const std::vector<mx::array> &) override
    {
        return {cohort_mlx::all_to_all(cotangents[0], group())};
    }

    const char *name() const override
    {
        return "Cohort AllToAll";
    }
};

} // namespace

mx::array all_to_all(const mx::array &x, const mx::distributed::Group &group)
{
    auto own = std::dynamic_pointer_cast<Group>(group.raw_group());
    if (!own)
        throw std::invalid_argument("[cohort] all_to_all takes a group of cohort_mlx's");
    if (x.ndim() == 0 || x.shape(0) % own->size() != 0)
        throw std::invalid_argument("[cohort] the first axis of all_to_all must be a multiple of "
                                    + std::to_string(own->size()) + ", the size of the group");
    if (own->size() == 1)
        return x;
    auto stream = own->communication_stream();
    auto whole = mx::contiguous(x, false, stream);
    return mx::array(x.shape(), x.dtype(), std::make_shared<AllToAll>(stream, group), {whole});
}

} // namespace cohort_mlx
