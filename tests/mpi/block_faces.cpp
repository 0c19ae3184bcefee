// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of the 26 faces, edges and corners of a block in device memory inside a node: the right
// bytes, and at most one launch a neighbor and rank, counted by the simulated driver.
#include "gpu.hpp"
#include "test.hpp"

#include <array>
#include <string>
#include <vector>

namespace mpi_tests {
namespace {

constexpr int kInner = 16, kEdge = kInner + 2;  // doubles along a dimension, without and with halo
constexpr int kDirections = 26;
constexpr int kWarmUp = 64;

using Direction = std::array<int, 3>;

std::vector<Direction> directions() {
    std::vector<Direction> all;
    for (int x = -1; x <= 1; ++x)
        for (int y = -1; y <= 1; ++y)
            for (int z = -1; z <= 1; ++z)
                if (x != 0 || y != 0 || z != 0) all.push_back({x, y, z});
    return all;
}

enum class Part { sent, received };

// The cells of the block that go that way, or the halo that what was sent that way arrives in.
MPI_Datatype part_of(const Direction& direction, Part part) {
    const int whole[] = {kEdge, kEdge, kEdge};
    int some[3], start[3];
    for (std::size_t d = 0; d < 3; ++d) {
        some[d] = direction[d] == 0 ? kInner : 1;
        start[d] = 1;
        if (part == Part::sent && direction[d] > 0) start[d] = kInner;
        if (part == Part::received && direction[d] > 0) start[d] = 0;
        if (part == Part::received && direction[d] < 0) start[d] = kInner + 1;
    }
    MPI_Datatype type;
    OK(MPI_Type_create_subarray(3, whole, some, start, MPI_ORDER_C, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

// Two ranks along x; along y and z each is its own neighbor.
void exchange_counted() {
    use_device(rank() % gpu().count);
    const std::vector<Direction> ways = directions();
    std::vector<int> to, from, counts(kDirections, 1);
    std::vector<MPI_Datatype> sent, received;
    for (const Direction& way : ways) {
        to.push_back(way[0] == 0 ? rank() : 1 - rank());
        from.push_back(to.back());
        sent.push_back(part_of(way, Part::sent));
        received.push_back(part_of(way, Part::received));
    }
    MPI_Comm comm;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, kDirections, from.data(), MPI_UNWEIGHTED,
                                      kDirections, to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm));
    std::vector<double> block(kEdge * kEdge * kEdge, rank());
    Memory memory(Kind::device, block.size() * sizeof(double));
    memory.write(block.data(), memory.bytes());
    const std::vector<MPI_Aint> nowhere(kDirections, 0);
    const auto exchange = [&] {
        OK(MPI_Neighbor_alltoallw(memory.data(), counts.data(), nowhere.data(), sent.data(),
                                  memory.data(), counts.data(), nowhere.data(), received.data(),
                                  comm));
    };
    for (int i = 0; i < kWarmUp; ++i)
        exchange();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (gpu().simulated) {
        reset_calls();
        clear_operations();
    }
    exchange();
    if (gpu().simulated) {
        const Calls made = calls();
        const Operations done = operations();
        about(std::to_string(made.launches) + " launches, " + std::to_string(done.copies) +
              " copies, " + std::to_string(done.bytes) + " bytes");
        CHECK(made.launches <= kDirections);  // strided copies, never more than one a neighbor
        CHECK_EQ(made.synchronise, 0);
        about("");
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memory.read(block.data(), memory.bytes());
    for (int x = 0; x < kEdge; ++x) {
        const bool halo = x == 0 || x == kEdge - 1;
        for (int i = 0; i < kEdge * kEdge; ++i)
            CHECK_EQ(block[static_cast<std::size_t>(x * kEdge * kEdge + i)],
                     halo ? 1 - rank() : rank());
    }
    for (MPI_Datatype& type : sent)
        OK(MPI_Type_free(&type));
    for (MPI_Datatype& type : received)
        OK(MPI_Type_free(&type));
    OK(MPI_Comm_free(&comm));
}

}  // namespace

MPI_CASE(faces_of_a_3d_block_in_device_memory, 2) {
    exchange_counted();
}

}  // namespace mpi_tests
