/* module.cpp - the Python module cohort_mlx. */
#include "group.h"

#include <mutex>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
namespace mx = mlx::core;
using namespace nb::literals;

namespace
{

std::mutex lock; /* of what follows */
std::shared_ptr<cohort_mlx::World> world;

mx::distributed::Group init(const std::optional<std::string> &engine)
{
    std::lock_guard<std::mutex> held(lock);
    if (!world)
        world = std::make_shared<cohort_mlx::World>(engine ? engine->c_str() : nullptr);
    return mx::distributed::Group(
        std::make_shared<cohort_mlx::Group>(world, coh_team_world(world->handle())));
}

void finalize()
{
    std::lock_guard<std::mutex> held(lock);
    auto ended = std::move(world);
    if (ended)
        ended->finalize();
}

std::string engine()
{
    std::lock_guard<std::mutex> held(lock);
    return world ? coh_engine(world->handle()) : "";
}

/* MLX's classes are known here if both were built with a nanobind of the same inner version. */
void check_nanobind()
{
    if (!nb::type<mx::distributed::Group>().is_valid())
        throw nb::import_error(
            "cohort_mlx was built with another nanobind than mlx: build it with the "
            "release that mlx was built with");
}

} // namespace

NB_MODULE(cohort_mlx, m)
{
    nb::module_::import_("mlx.core.distributed");
    check_nanobind();
    m.doc() = "Cohort as a back end of mlx.core.distributed.";
    m.def("init", init, "engine"_a = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
          "Joins the job that this process was started in, and returns the group of all its ranks, "
          "an "
          "mlx.core.distributed.Group. Later calls return the same.");
    m.def(
        "all_to_all", cohort_mlx::all_to_all, "x"_a, "group"_a,
        "Block i of the first axis goes to member i of the group; block i of the result came from "
        "it.");
    m.def("finalize", finalize, nb::call_guard<nb::gil_scoped_release>(),
          "Parts from the other ranks; by itself when Python ends. Collective.");
    m.def("engine", engine, "The engine that connects the ranks; '' without a world.");
    nb::module_::import_("atexit").attr("register")(m.attr("finalize"));
}
