// SPDX-License-Identifier: BSD-3-Clause
//
// The collective operations that are measured, and what their buffers hold before and behind a call.
// A buffer is blocks of `count` numbers: one for each rank where the operation has a block for each.
#pragma once

#include "element.hpp"
#include "options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gantry::bench {

enum class Operation {
    barrier,
    bcast,
    gather,
    gatherv,
    scatter,
    scatterv,
    allgather,
    allgatherv,
    alltoall,
    alltoallv,
    alltoallw,
    reduce,
    allreduce,
    reduce_scatter,
    scan,
    exscan,
    // With the six neighbours of a periodic 3D grid of all ranks.
    neighbor_allgather,
    neighbor_allgatherv,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw,
    // Messages of all ranks at once: to rank 0, from rank 0, between two halves of the ranks.
    fan_in,
    fan_out,
    pairs
};
bool is_with_neighbors(Operation operation);
bool is_of_messages(Operation operation);
std::optional<Operation> operation_named(std::string_view name);
std::string_view name(Operation operation);

inline constexpr int kCollectiveRoot = 0;

// One call: `count` numbers a block. In a broadcast's buffers the vector lies in `in`, also the root's.
struct Collective {
    Operation operation = Operation::barrier;
    int rank = 0, ranks = 1;
    std::size_t count = 0;
    Element element = Element::int32;
    Combination op = Combination::sum;
    std::vector<int>
        neighbors;  // ranks, in the order of a Cartesian grid's: low, high of each dimension
};
// Of `pairs`: the other one of this rank's pair; the rank itself where its half is one larger.
int partner(const Collective& call);

// Blocks of the buffers of this rank; 0: the rank has no such buffer.
int blocks_out(const Collective& call);
int blocks_in(const Collective& call);

bool reduces(Operation operation);
Bytes block_bytes(const Collective& call);

// Before sample `sample`: what is sent, and what must be overwritten.
void write_outgoing(const Collective& call, int sample, std::vector<std::byte>& memory);
void write_incoming(const Collective& call, int sample, std::vector<std::byte>& memory);

struct WrongNumber {
    int block = 0;
    std::size_t index = 0;
    double is = 0, wanted = 0;
};
// The first number that is not what the operation gives.
std::optional<WrongNumber> wrong_number(const Collective& call, int sample,
                                        const std::vector<std::byte>& memory);

}  // namespace gantry::bench
