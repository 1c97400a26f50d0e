/*
 * group.h - Cohort as a back end of MLX's distributed groups.
 *
 * A group is a team of Cohort's. Its operations run on one CPU stream of MLX's for all groups of a world, in the
 * order in which they are evaluated, straight from and into the arrays' memory. All that MLX's interface has is
 * there: sums, maxima, minima, gathers, sums scattered, messages to any rank, and splits of splits. all_to_all, which
 * it has not, is an operation of our own.
 *
 * A status other than COH_OK becomes an exception with Cohort's error message: of an operation when its result is
 * evaluated, of a split at once.
 */
#ifndef COHORT_MLX_GROUP_H
#define COHORT_MLX_GROUP_H

#include <cohort.h>

#include <memory>

#include <mlx/array.h>
#include <mlx/distributed/distributed.h>
#include <mlx/distributed/distributed_impl.h>

namespace cohort_mlx
{

/* A world, until `finalize`. Groups of it that are used after that throw. */
class World
{
  public:
    explicit World(const char *engine);
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    coh_world *handle() const
    {
        return handle_;
    }

    mlx::core::Stream stream() const
    {
        return stream_;
    }

    /* Waits for what is under way, and parts from the others. Collective. */
    void finalize();

  private:
    coh_world *handle_ = nullptr;
    mlx::core::Stream stream_;
};

class Group : public mlx::core::distributed::detail::GroupImpl
{
  public:
    Group(std::shared_ptr<World> world, coh_team *team);

    mlx::core::Stream communication_stream(mlx::core::StreamOrDevice s = {}) override;
    int rank() override;
    int size() override;
    std::shared_ptr<GroupImpl> split(int color, int key = -1) override;
    void all_sum(const mlx::core::array &input, mlx::core::array &output,
                 mlx::core::Stream stream) override;
    void all_max(const mlx::core::array &input, mlx::core::array &output,
                 mlx::core::Stream stream) override;
    void all_min(const mlx::core::array &input, mlx::core::array &output,
                 mlx::core::Stream stream) override;
    void all_gather(const mlx::core::array &input, mlx::core::array &output,
                    mlx::core::Stream stream) override;
    void send(const mlx::core::array &input, int to, mlx::core::Stream stream) override;
    void recv(mlx::core::array &output, int from, mlx::core::Stream stream) override;
    void sum_scatter(const mlx::core::array &input, mlx::core::array &output,
                     mlx::core::Stream stream) override;

    void all_to_all(const mlx::core::array &input, mlx::core::array &output,
                    mlx::core::Stream stream);

  private:
    void reduce(coh_reduce_op op, const mlx::core::array &input, mlx::core::array &output,
                mlx::core::Stream stream);

    std::shared_ptr<World> world_;
    coh_team *team_;
    int rank_, size_;
};

/* Block i of the first axis goes to member i; block i of the result came from it. The group must be one of Cohort's. */
mlx::core::array all_to_all(const mlx::core::array &x, const mlx::core::distributed::Group &group);

} // namespace cohort_mlx

#endif
