// SPDX-License-Identifier: BSD-3-Clause
//
// A step of the applications (apps/) as the world runs it: what a rank computes is time, what it
// exchanges is the applications' own pattern, message by message and piece by piece.
#pragma once

#include "awp/patterns.hpp"
#include "common/pattern.hpp"
#include "world/harness/cluster.hpp"

#include <array>
#include <string>
#include <vector>

namespace gantry::world {

enum class App : std::uint8_t { lbm, awp };

struct AppCase {
    App app = App::lbm;
    std::array<apps::Whole, 3> cells{};  // of all ranks
    std::array<int, 3> dims{1, 1, 1};    // ranks along each axis
    Bytes element() const { return app == App::lbm ? 8 : 4; }
    int ranks() const { return dims[0] * dims[1] * dims[2]; }
    apps::Whole cells_of_a_rank() const { return cells[0] * cells[1] * cells[2] / ranks(); }
    std::string words() const;
};

// Computing, and what is exchanged then; nothing at the end of a step of awp.
struct StepPhase {
    Nanoseconds compute = 0;
    std::vector<apps::Message> messages;
    apps::Extent extent;
};
std::vector<StepPhase> phases_of(const Cluster& cluster, const AppCase& step, int rank);
Nanoseconds compute_time(const Cluster& cluster, const AppCase& step);

// Ranks along the axes as MPI_Dims_create would lay them out, of as many as a power of two; the x axis gets
// the fewest.
std::array<int, 3> cube(int ranks);

}  // namespace gantry::world
