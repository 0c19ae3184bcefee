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

// Vectors of ints, the index and the rank in each.
int number_of(int of_rank, std::size_t index) {
    return of_rank * 100 + static_cast<int>(index % 1000);
}

class Numbers {
  public:
    Numbers(int gpus, std::size_t count)
        : count_(count), memory_(Kind::device, count * sizeof(int), gpus > 0 ? rank() % gpus : 0) {}
    void* data() const { return memory_.data(); }
    void fill(int of_rank) {
        std::vector<int> host(count_);
        for (std::size_t i = 0; i < count_; ++i)
            host[i] = number_of(of_rank, i);
        memory_.write(host.data(), count_ * sizeof(int));
    }
    std::vector<int> read() const {
        std::vector<int> host(count_);
        memory_.read(host.data(), count_ * sizeof(int));
        return host;
    }

  private:
    std::size_t count_;
    Memory memory_;
};

void others_on(int gpus, std::size_t count) {
    const int me = rank(), ranks = size();
    use_device(me % gpus);
    const auto all = count * static_cast<std::size_t>(ranks);
    const int number = static_cast<int>(count);
    Numbers one(gpus, count), result(gpus, count), many(gpus, all);
    constexpr int kCalls = 6;
    // Short vectors may go through the host: a copy out of the GPU, and one into it.
    const bool is_short = count * sizeof(int) <= 4096;
    const auto each_launches = [&](const Costs& costs, std::uint64_t most) {
        CHECK(costs.copies == 0 || (is_short && costs.copies + costs.launches <= 2 * kCalls));
        CHECK(costs.launches <= most * kCalls);
    };
    one.fill(me);
    each_launches(costs_of(kCalls,
                           [&] {
                               OK(MPI_Allgather(one.data(), number, MPI_INT, many.data(), number,
                                                MPI_INT, MPI_COMM_WORLD));
                           }),
                  1);
    const std::vector<int> gathered = many.read();
    for (std::size_t i = 0; i < all; ++i)
        CHECK(gathered[i] == number_of(static_cast<int>(i / count), i % count));
    each_launches(costs_of(kCalls,
                           [&] {
                               OK(MPI_Allreduce(one.data(), result.data(), number, MPI_INT, MPI_SUM,
                                                MPI_COMM_WORLD));
                           }),
                  1);
    const std::vector<int> reduced = result.read();
    for (std::size_t i = 0; i < count; ++i) {
        int sum = 0;
        for (int of = 0; of < ranks; ++of)
            sum += number_of(of, i);
        CHECK(reduced[i] == sum);
    }
    if (me == 0) one.fill(7);
    const Costs telling =
        costs_of(kCalls, [&] { OK(MPI_Bcast(one.data(), number, MPI_INT, 0, MPI_COMM_WORLD)); });
    if (ranks > 2) {
        each_launches(telling, 1);
    } else {
        // A message is faster between two: one copy by one of them, straight between the GPUs.
        std::uint64_t copies = 0;
        OK(MPI_Allreduce(&telling.copies, &copies, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD));
        CHECK(copies + telling.of_all <= (is_short ? 2 : 1) * kCalls);
    }
    const std::vector<int> told = one.read();
    for (std::size_t i = 0; i < count; ++i)
        CHECK(told[i] == number_of(7, i));
}

}  // namespace

MPI_CASE(device_collectives_of_three, 3) {
    only_on_the_simulator();
    for (const std::size_t count : {std::size_t{1}, std::size_t{333}, std::size_t{65536}})
        for (const int gpus : {2, 1})
            others_on(gpus, count);
}

MPI_CASE(device_collectives_of_two, 2) {
    only_on_the_simulator();
    for (const std::size_t count : {std::size_t{1}, std::size_t{333}, std::size_t{65536}})
        others_on(2, count);
}

MPI_CASE(device_alltoall_launches_once, 2) {
    only_on_the_simulator();
    for (const int bytes : {4096, 5001, 65536})
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
