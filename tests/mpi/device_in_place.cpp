// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives between ranks of one node whose device memory cannot be used where it lies: in place,
// strided, and in pools that cannot be shared. Right bytes, on the simulated GPU and on a real one.
#include "gpu.hpp"
#include "test.hpp"

#include <numeric>
#include <vector>

using namespace mpi_tests;

namespace {

int word(int from, int to, int index) {
    return from * 1'000'000 + to * 10'000 + index % 10'000;
}

int my_device() {
    const int device = rank() % gpu().count;
    use_device(device);
    return device;
}

std::vector<int> read(const Memory& memory, std::size_t count) {
    std::vector<int> host(count);
    memory.read(host.data(), count * sizeof(int));
    return host;
}

void alltoall_in_place(Kind kind, int count) {
    const int me = rank(), ranks = size(), device = my_device();
    const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks);
    Memory memory(kind, all * sizeof(int), device);
    for (int round = 0; round < 3; ++round) {
        std::vector<int> host(all);
        for (std::size_t i = 0; i < all; ++i)
            host[i] = word(me, static_cast<int>(i) / count, static_cast<int>(i) % count) + round;
        memory.write(host.data(), all * sizeof(int));
        OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory.data(), count, MPI_INT,
                        MPI_COMM_WORLD));
        host = read(memory, all);
        for (std::size_t i = 0; i < all; ++i)
            CHECK(host[i] ==
                  word(static_cast<int>(i) / count, me, static_cast<int>(i) % count) + round);
    }
}

// Every second int of both sides.
void strided_alltoall(Kind kind, int count) {
    const int me = rank(), ranks = size(), device = my_device();
    const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks);
    MPI_Datatype two, wide;
    OK(MPI_Type_vector(count, 1, 2, MPI_INT, &two));
    OK(MPI_Type_create_resized(two, 0, static_cast<MPI_Aint>(2 * sizeof(int)) * count, &wide));
    OK(MPI_Type_commit(&wide));
    Memory out(kind, 2 * all * sizeof(int), device), in(kind, 2 * all * sizeof(int), device);
    std::vector<int> host(2 * all);
    for (std::size_t i = 0; i < all; ++i) {
        host[2 * i] = word(me, static_cast<int>(i) / count, static_cast<int>(i) % count);
        host[2 * i + 1] = -1;
    }
    out.write(host.data(), host.size() * sizeof(int));
    std::vector<int> clear(2 * all, -2);
    in.write(clear.data(), clear.size() * sizeof(int));
    for (int round = 0; round < 3; ++round)
        OK(MPI_Alltoall(out.data(), 1, wide, in.data(), 1, wide, MPI_COMM_WORLD));
    host = read(in, 2 * all);
    for (std::size_t i = 0; i < all; ++i) {
        CHECK(host[2 * i] == word(static_cast<int>(i) / count, me, static_cast<int>(i) % count));
        CHECK(host[2 * i + 1] == -2);
    }
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&wide));
}

void reductions_in_place(Kind kind, int count) {
    const int me = rank(), ranks = size(), device = my_device();
    const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks);
    Memory memory(kind, all * sizeof(int), device);
    std::vector<int> host(all);
    const auto fill = [&] {
        for (std::size_t i = 0; i < all; ++i)
            host[i] = me + static_cast<int>(i);
        memory.write(host.data(), all * sizeof(int));
    };
    const auto sum = [](int to, std::size_t i) {
        return to * (to - 1) / 2 + to * static_cast<int>(i);
    };
    fill();
    OK(MPI_Reduce_scatter_block(MPI_IN_PLACE, memory.data(), count, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD));
    host = read(memory, all);
    const auto first = static_cast<std::size_t>(me) * static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
        CHECK(host[i] == sum(ranks, first + i));
    fill();
    OK(MPI_Scan(MPI_IN_PLACE, memory.data(), static_cast<int>(all), MPI_INT, MPI_SUM,
                MPI_COMM_WORLD));
    host = read(memory, all);
    for (std::size_t i = 0; i < all; ++i)
        CHECK(host[i] == sum(me + 1, i));
    fill();
    OK(MPI_Allreduce(MPI_IN_PLACE, memory.data(), static_cast<int>(all), MPI_INT, MPI_SUM,
                     MPI_COMM_WORLD));
    host = read(memory, all);
    for (std::size_t i = 0; i < all; ++i)
        CHECK(host[i] == sum(ranks, i));
}

void everything() {
    if (gpu().count == 0) return;
    for (const Kind kind : {Kind::device, Kind::pool})
        for (const int count : {1, 333, 20'000}) {
            alltoall_in_place(kind, count);
            strided_alltoall(kind, count);
            reductions_in_place(kind, count);
        }
}

}  // namespace

MPI_CASE(device_collectives_out_of_place_of_two, 2) {
    everything();
}
MPI_CASE(device_collectives_out_of_place_of_three, 3) {
    everything();
}
