// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives in device memory between ranks of one node: right bytes, and what they cost, counted by
// the simulated driver: one launch a call and a rank, and no byte through host memory. Where several
// ranks share a GPU, one of them launches for all.
#include "gpu.hpp"
#include "test.hpp"

#include <numeric>
#include <vector>

using namespace mpi_tests;

namespace {

void only_on_the_simulator() {
    if (!gpu().simulated) skip("a real GPU does not count calls");
}

int patterns(int from, int to) {
    return 1 + from * 64 + to;
}

struct Costs {
    std::uint64_t launches = 0, of_all = 0, copies = 0;
};

// What `calls_made` calls of the operation cost, behind a few that set everything up.
template <class Operation>
Costs costs_of(int calls_made, Operation operation) {
    for (int i = 0; i < 4; ++i)
        operation();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    reset_calls();
    for (int i = 0; i < calls_made; ++i)
        operation();
    const Calls counted = calls();
    Costs costs{counted.launches, 0, counted.copies};
    OK(MPI_Allreduce(&costs.launches, &costs.of_all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
    return costs;
}

// Which GPU a rank uses: its own, or one for several.
void alltoalls_on(int gpus, int bytes) {
    const int me = rank(), ranks = size();
    const auto block = static_cast<std::size_t>(bytes);
    const int device = gpus > 0 ? me % gpus : 0;
    use_device(device);
    Memory out(Kind::device, block * static_cast<std::size_t>(ranks), device),
        in(Kind::device, block * static_cast<std::size_t>(ranks), device);
    std::vector<std::byte> host(block);
    for (int to = 0; to < ranks; ++to) {
        for (std::size_t at = 0; at < block; ++at)
            host[at] = pattern(static_cast<unsigned>(patterns(me, to)), at);
        out.write(host.data(), block, static_cast<std::size_t>(to) * block);
    }
    const auto exchange = [&] {
        OK(MPI_Alltoall(out.data(), bytes, MPI_BYTE, in.data(), bytes, MPI_BYTE, MPI_COMM_WORLD));
    };
    constexpr int kCalls = 10;
    const Costs costs = costs_of(kCalls, exchange);
    for (int from = 0; from < ranks; ++from) {
        in.read(host.data(), block, static_cast<std::size_t>(from) * block);
        for (std::size_t at = 0; at < block; ++at)
            CHECK(host[at] == pattern(static_cast<unsigned>(patterns(from, me)), at));
    }
    CHECK(costs.copies == 0);
    CHECK(costs.of_all == static_cast<std::uint64_t>(kCalls * std::min(gpus, ranks)));
}

}  // namespace

MPI_CASE(device_alltoall_launches_once, 2) {
    only_on_the_simulator();
    for (const int bytes : {8, 1001, 65536})
        alltoalls_on(2, bytes);
}

MPI_CASE(device_alltoall_of_ranks_on_one_gpu, 4) {
    only_on_the_simulator();
    for (const int bytes : {8, 1001, 65536})
        alltoalls_on(1, bytes);
}

MPI_CASE(device_alltoall_of_two_ranks_a_gpu, 3) {
    only_on_the_simulator();
    for (const int bytes : {8, 1001, 65536})
        alltoalls_on(2, bytes);
}
