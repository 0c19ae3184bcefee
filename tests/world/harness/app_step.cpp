// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/app_step.hpp"

#include "lbm/patterns.hpp"

#include <fmt/format.h>

namespace gantry::world {
namespace {

apps::Grid grid_of(const AppCase& step, int rank) {
    apps::Grid grid;
    grid.rank = rank;
    grid.ranks = step.ranks();
    grid.periodic = step.app == App::lbm;
    int rest = rank;
    for (int axis = 2; axis >= 0; --axis) {
        const auto a = static_cast<std::size_t>(axis);
        grid.dims[axis] = step.dims[a];
        grid.coords[axis] = rest % step.dims[a];
        rest /= step.dims[a];
        grid.global[axis] = step.cells[a];
        grid.local[axis] = step.cells[a] / step.dims[a];
    }
    return grid;
}

Nanoseconds part(Nanoseconds all, int values, int of) {
    return all * values / of;
}

}  // namespace

std::string AppCase::words() const {
    return fmt::format("{} of {} x {} x {} cells on {} x {} x {} ranks",
                       app == App::lbm ? "LBM" : "AWP", cells[0], cells[1], cells[2], dims[0],
                       dims[1], dims[2]);
}

Nanoseconds compute_time(const Cluster& cluster, const AppCase& step) {
    const double cell = step.app == App::lbm ? cluster.lbm_cell : cluster.awp_cell;
    return static_cast<Nanoseconds>(cell * static_cast<double>(step.cells_of_a_rank()));
}

std::vector<StepPhase> phases_of(const Cluster& cluster, const AppCase& step, int rank) {
    const apps::Grid grid = grid_of(step, rank);
    const Nanoseconds all = compute_time(cluster, step);
    const Nanoseconds launch = machine_of(cluster).gpu.kernel.latency;
    std::vector<StepPhase> phases;
    if (step.app == App::lbm) {
        namespace lbm = apps::lbm;
        const apps::Extent extent(grid.local, lbm::kHalo);
        const auto add = [&](int values, const std::vector<apps::Crossing>& crossings) {
            apps::Pattern pattern = apps::pattern_of(grid, extent, crossings);
            // Axes of one rank are wrapped inside it, a launch each.
            const Nanoseconds wraps = static_cast<Nanoseconds>(pattern.local.size()) * launch;
            phases.push_back(
                {part(all, values, 73) + launch + wraps, std::move(pattern.messages), extent});
        };
        add(53, lbm::relax_crossings(0));
        add(12, lbm::move_crossings(1));
        add(8, lbm::settle_crossings(1));
        return phases;
    }
    const apps::Extent extent(grid.local, apps::awp::kHalo);
    Nanoseconds before = part(all, 13, 30) + launch;  // the velocities
    for (apps::Pattern& pattern : apps::awp::patterns_along_axes(grid, extent, {0, 1, 2})) {
        phases.push_back({before, std::move(pattern.messages), extent});
        before = 0;
    }
    phases.push_back({before + part(all, 17, 30) + launch, {}, extent});
    return phases;
}

std::array<int, 3> cube(int ranks) {
    std::array<int, 3> dims{1, 1, 1};
    for (int axis = 2; ranks > 1; ranks /= 2, axis = (axis + 2) % 3)
        dims[static_cast<std::size_t>(axis)] *= 2;
    return dims;
}

}  // namespace gantry::world
