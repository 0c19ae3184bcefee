// SPDX-License-Identifier: BSD-3-Clause
//
// Which node each rank is on, from what launchers say. Node numbers are dense, in order of first
// appearance by rank.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::job {

// PMI_process_mapping: "(vector,(first node,nodes,ranks per node),...)", blocks that repeat
// cyclically until every rank has a node. Hydra 5 says (vector,(0,1,2)) where Hydra 4 says
// (vector,(0,1,1)) for the same two ranks of one host. Nothing when the text does not parse.
std::optional<std::vector<int>> parse_process_mapping(std::string_view text, int size);

// Ranks with the same host name (or any other mark) share a node.
std::vector<int> number_nodes(const std::vector<std::string>& host_of_rank);

// A mark that is equal for two processes when they can share memory: the boot and the process
// namespace, not the host name, which containers copy.
std::string host_mark();

}  // namespace gantry::job
