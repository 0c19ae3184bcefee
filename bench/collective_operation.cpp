// SPDX-License-Identifier: BSD-3-Clause
#include "collective_operation.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::bench {
namespace {

constexpr std::array<std::pair<std::string_view, Operation>, 24> kNames = {{
    {"barrier", Operation::barrier},
    {"bcast", Operation::bcast},
    {"gather", Operation::gather},
    {"gatherv", Operation::gatherv},
    {"scatter", Operation::scatter},
    {"scatterv", Operation::scatterv},
    {"allgather", Operation::allgather},
    {"allgatherv", Operation::allgatherv},
    {"alltoall", Operation::alltoall},
    {"alltoallv", Operation::alltoallv},
    {"alltoallw", Operation::alltoallw},
    {"reduce", Operation::reduce},
    {"allreduce", Operation::allreduce},
    {"reduce_scatter", Operation::reduce_scatter},
    {"scan", Operation::scan},
    {"exscan", Operation::exscan},
    {"neighbor_allgather", Operation::neighbor_allgather},
    {"neighbor_allgatherv", Operation::neighbor_allgatherv},
    {"neighbor_alltoall", Operation::neighbor_alltoall},
    {"neighbor_alltoallv", Operation::neighbor_alltoallv},
    {"neighbor_alltoallw", Operation::neighbor_alltoallw},
    {"fan_in", Operation::fan_in},
    {"fan_out", Operation::fan_out},
    {"pairs", Operation::pairs},
}};

constexpr Number kOverwritten = -1;

// The number at `index` of what `from` has for `to`.
Number value(int from, int to, std::size_t index, int sample) {
    return static_cast<Number>(from * 1009 + to * 31 + static_cast<int>(index % 4093) * 7 + sample);
}

// Which ranks' vectors are summed in `call`'s result: the first `summed` ones.
int summed(const Collective& call) {
    if (call.operation == Operation::scan) return call.rank + 1;
    if (call.operation == Operation::exscan) return call.rank;
    return call.ranks;
}

Number expected(const Collective& call, int block, std::size_t index, int sample) {
    const int neighbor =
        is_with_neighbors(call.operation) ? call.neighbors[static_cast<std::size_t>(block)] : 0;
    switch (call.operation) {
        case Operation::bcast: return value(kCollectiveRoot, 0, index, sample);
        case Operation::gather:
        case Operation::gatherv:
        case Operation::fan_in:
        case Operation::allgather:
        case Operation::allgatherv: return value(block, 0, index, sample);
        case Operation::scatter:
        case Operation::fan_out:
        case Operation::scatterv: return value(kCollectiveRoot, call.rank, index, sample);
        case Operation::alltoall:
        case Operation::alltoallv:
        case Operation::alltoallw: return value(block, call.rank, index, sample);
        case Operation::neighbor_allgather:
        case Operation::neighbor_allgatherv: return value(neighbor, 0, index, sample);
        // What comes from one side left at the other one.
        case Operation::neighbor_alltoall:
        case Operation::neighbor_alltoallv:
        case Operation::neighbor_alltoallw: return value(neighbor, block ^ 1, index, sample);
        case Operation::pairs: return value(partner(call), 0, index, sample);
        default: break;
    }
    const int to = call.operation == Operation::reduce_scatter ? call.rank : 0;
    Number sum = 0;
    for (int from = 0; from < summed(call); ++from)
        sum += value(from, to, index, sample);
    return sum;
}

}  // namespace

bool is_with_neighbors(Operation operation) {
    return operation >= Operation::neighbor_allgather && operation <= Operation::neighbor_alltoallw;
}

bool is_of_messages(Operation operation) {
    return operation >= Operation::fan_in;
}

int partner(const Collective& call) {
    const int half = call.ranks / 2;
    if (call.rank >= 2 * half) return call.rank;
    return call.rank < half ? call.rank + half : call.rank - half;
}

std::optional<Operation> operation_named(std::string_view name) {
    for (const auto& [word, operation] : kNames)
        if (word == name) return operation;
    return std::nullopt;
}

std::string_view name(Operation operation) {
    return kNames[static_cast<std::size_t>(operation)].first;
}

int blocks_out(const Collective& call) {
    switch (call.operation) {
        case Operation::barrier:
        case Operation::bcast: return 0;
        case Operation::scatter:
        case Operation::fan_out:
        case Operation::scatterv: return call.rank == kCollectiveRoot ? call.ranks : 0;
        case Operation::alltoall:
        case Operation::alltoallv:
        case Operation::alltoallw:
        case Operation::reduce_scatter: return call.ranks;
        case Operation::neighbor_alltoall:
        case Operation::neighbor_alltoallv:
        case Operation::neighbor_alltoallw: return static_cast<int>(call.neighbors.size());
        default: return 1;
    }
}

int blocks_in(const Collective& call) {
    switch (call.operation) {
        case Operation::barrier: return 0;
        case Operation::gather:
        case Operation::fan_in:
        case Operation::gatherv: return call.rank == kCollectiveRoot ? call.ranks : 0;
        case Operation::reduce: return call.rank == kCollectiveRoot ? 1 : 0;
        case Operation::allgather:
        case Operation::allgatherv:
        case Operation::alltoall:
        case Operation::alltoallv:
        case Operation::alltoallw: return call.ranks;
        case Operation::exscan: return call.rank == 0 ? 0 : 1;
        case Operation::neighbor_allgather:
        case Operation::neighbor_allgatherv:
        case Operation::neighbor_alltoall:
        case Operation::neighbor_alltoallv:
        case Operation::neighbor_alltoallw: return static_cast<int>(call.neighbors.size());
        default: return 1;
    }
}

void write_outgoing(const Collective& call, int sample, std::vector<Number>& numbers) {
    for (int block = 0; block < blocks_out(call); ++block)
        for (std::size_t i = 0; i < call.count; ++i)
            numbers[static_cast<std::size_t>(block) * call.count + i] =
                value(call.rank, block, i, sample);
}

void write_incoming(const Collective& call, int sample, std::vector<Number>& numbers) {
    std::fill(numbers.begin(), numbers.end(), kOverwritten);
    if (call.operation != Operation::bcast || call.rank != kCollectiveRoot) return;
    for (std::size_t i = 0; i < call.count; ++i)
        numbers[i] = value(call.rank, 0, i, sample);
}

std::optional<WrongNumber> wrong_number(const Collective& call, int sample,
                                        const std::vector<Number>& numbers) {
    for (int block = 0; block < blocks_in(call); ++block)
        for (std::size_t i = 0; i < call.count; ++i) {
            const Number is = numbers[static_cast<std::size_t>(block) * call.count + i];
            const Number wanted = expected(call, block, i, sample);
            if (is != wanted) return WrongNumber{block, i, is, wanted};
        }
    return std::nullopt;
}

}  // namespace gantry::bench
