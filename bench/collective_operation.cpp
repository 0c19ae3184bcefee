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

constexpr std::int64_t kOverwritten = -1;

// The number at `index` of what `from` has for `to`.
std::int64_t value(const Collective& call, int from, int to, std::size_t index, int sample) {
    const auto number =
        from * std::int64_t{1009} + to * 31 + static_cast<int>(index % 4093) * 7 + sample;
    const bool adds = reduces(call.operation) && call.op == Combination::sum;
    return number % limit_of(call.element, adds ? call.ranks : 1);
}

// Which ranks' vectors are combined in `call`'s result: the first ones.
int taking_part(const Collective& call) {
    if (call.operation == Operation::scan) return call.rank + 1;
    if (call.operation == Operation::exscan) return call.rank;
    return call.ranks;
}

std::int64_t expected(const Collective& call, int block, std::size_t index, int sample) {
    const int neighbor =
        is_with_neighbors(call.operation) ? call.neighbors[static_cast<std::size_t>(block)] : 0;
    switch (call.operation) {
        case Operation::bcast: return value(call, kCollectiveRoot, 0, index, sample);
        case Operation::gather:
        case Operation::gatherv:
        case Operation::fan_in:
        case Operation::allgather:
        case Operation::allgatherv: return value(call, block, 0, index, sample);
        case Operation::scatter:
        case Operation::fan_out:
        case Operation::scatterv: return value(call, kCollectiveRoot, call.rank, index, sample);
        case Operation::alltoall:
        case Operation::alltoallv:
        case Operation::alltoallw: return value(call, block, call.rank, index, sample);
        case Operation::neighbor_allgather:
        case Operation::neighbor_allgatherv: return value(call, neighbor, 0, index, sample);
        // What comes from one side left at the other one.
        case Operation::neighbor_alltoall:
        case Operation::neighbor_alltoallv:
        case Operation::neighbor_alltoallw: return value(call, neighbor, block ^ 1, index, sample);
        case Operation::pairs: return value(call, partner(call), 0, index, sample);
        default: break;
    }
    const int to = call.operation == Operation::reduce_scatter ? call.rank : 0;
    std::int64_t result = value(call, 0, to, index, sample);
    for (int from = 1; from < taking_part(call); ++from)
        result = combined(call.op, result, value(call, from, to, index, sample));
    return result;
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

bool reduces(Operation operation) {
    return operation >= Operation::reduce && operation <= Operation::exscan;
}

Bytes block_bytes(const Collective& call) {
    return call.count * size_of(call.element);
}

namespace {

std::size_t place(const Collective& call, int block, std::size_t index) {
    return (static_cast<std::size_t>(block) * call.count + index) * size_of(call.element);
}

}  // namespace

void write_outgoing(const Collective& call, int sample, std::vector<std::byte>& memory) {
    for (int block = 0; block < blocks_out(call); ++block)
        for (std::size_t i = 0; i < call.count; ++i)
            store(call.element, &memory[place(call, block, i)],
                  value(call, call.rank, block, i, sample));
}

void write_incoming(const Collective& call, int sample, std::vector<std::byte>& memory) {
    const bool has_it = call.operation == Operation::bcast && call.rank == kCollectiveRoot;
    for (int block = 0; block < blocks_in(call); ++block)
        for (std::size_t i = 0; i < call.count; ++i)
            store(call.element, &memory[place(call, block, i)],
                  has_it ? value(call, call.rank, 0, i, sample) : kOverwritten);
}

std::optional<WrongNumber> wrong_number(const Collective& call, int sample,
                                        const std::vector<std::byte>& memory) {
    for (int block = 0; block < blocks_in(call); ++block)
        for (std::size_t i = 0; i < call.count; ++i) {
            const double is = load(call.element, &memory[place(call, block, i)]);
            const auto wanted = static_cast<double>(expected(call, block, i, sample));
            if (is != wanted) return WrongNumber{block, i, is, wanted};
        }
    return std::nullopt;
}

}  // namespace gantry::bench
