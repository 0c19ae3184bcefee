// SPDX-License-Identifier: BSD-3-Clause
//
// The home rail of a rank: it carries its small messages and puts. It is one of the rails whose cards
// are nearest to the rank: to its GPU, where one is known, else to the processors that it is bound to.
// The ranks of a node tell each other their distances, and each computes the same assignment, in
// which equally near rails are shared out evenly.
#pragma once

#include "transport/ucx/pci.hpp"
#include "transport/ucx/rail.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gantry::transport::ucx {

// The GPU that a rank works with, or is expected to before it has used one.
struct RankGpu {
    std::string pci_address;  // empty: none is known
    bool in_use = false;
};

// From a rank to each rail.
using Distances = std::vector<Distance>;

// Of each rank of a node, in their order, the home rail. All vectors have one length, that is not 0.
std::vector<int> assign_home_rails(std::span<const Distances> ranks);

// Where a rank is, and what that means, as words(distance, name) wants it.
struct Standpoint {
    Place place;
    std::string name;
};
Standpoint standpoint_of(const RankGpu& gpu, const std::string& sys);

Distances distances_to(const std::vector<Rail>& rails, const Place& from, const std::string& sys);

// As they lie in the job's store.
std::string to_bytes(const Distances& distances);
std::optional<Distances> distances_from(std::string_view bytes, std::size_t rails);

}  // namespace gantry::transport::ucx
