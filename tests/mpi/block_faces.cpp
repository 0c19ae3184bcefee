// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of the 26 faces, edges and corners of a block in device memory inside a node: the right
// bytes, and few launches, counted by the simulated driver: two of a neighbor collective.
#include "gpu.hpp"
#include "test.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mpi_tests {
namespace {

constexpr int kInner = 16, kEdge = kInner + 2;  // doubles along a dimension, without and with halo
constexpr int kDirections = 26;

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

// What an exchange may ask of the driver, on each rank.
struct Most {
    std::uint64_t launches, copies;
    int before;  // exchanges that are not counted: messages are staged until a mapping pays
};
constexpr Most kFused{2, 0, 4};
// How many messages share a launch depends on when they come: five launches were
// usual. What is contiguous is copied. tests/world/row_batch_test.cpp has exact numbers.
constexpr Most kMessages{2 * kDirections, 2 * kDirections, 64};

struct Faces {
    std::vector<int> peers, counts;  // by direction
    std::vector<MPI_Aint> nowhere;
    std::vector<MPI_Datatype> sent, received;
    MPI_Comm comm = MPI_COMM_NULL;

    // Two ranks along x; along y and z each is its own neighbor.
    Faces() : counts(kDirections, 1), nowhere(kDirections, 0) {
        for (const Direction& way : directions()) {
            peers.push_back(way[0] == 0 ? rank() : 1 - rank());
            sent.push_back(part_of(way, Part::sent));
            received.push_back(part_of(way, Part::received));
        }
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, kDirections, peers.data(), MPI_UNWEIGHTED,
                                          kDirections, peers.data(), MPI_UNWEIGHTED, MPI_INFO_NULL,
                                          0, &comm));
    }
    ~Faces() {
        for (MPI_Datatype& type : sent)
            OK(MPI_Type_free(&type));
        for (MPI_Datatype& type : received)
            OK(MPI_Type_free(&type));
        OK(MPI_Comm_free(&comm));
    }
};

// `exchange(block)` many times, and once counted.
template <class Exchange>
void count(const char* what, const Most& most, Memory& memory, Exchange exchange) {
    std::vector<double> block(kEdge * kEdge * kEdge, rank());
    memory.write(block.data(), memory.bytes());
    for (int i = 0; i < most.before; ++i)
        exchange();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memory.write(block.data(), memory.bytes());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (gpu().simulated) {
        reset_calls();
        clear_operations();
    }
    exchange();
    if (gpu().simulated) {
        const Calls made = calls();
        const Operations done = operations();
        about(std::string(what) + ": " + std::to_string(made.launches) + " launches, " +
              std::to_string(made.copies) + " copies, " + std::to_string(done.bytes) + " bytes");
        CHECK(made.launches <= most.launches);
        CHECK(made.copies <= most.copies);
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
}

}  // namespace

MPI_CASE(faces_of_a_3d_block_in_device_memory, 2) {
    use_device(rank() % gpu().count);
    Faces faces;
    Memory memory(Kind::device, kEdge * kEdge * kEdge * sizeof(double));
    count("blocking", kFused, memory, [&] {
        OK(MPI_Neighbor_alltoallw(memory.data(), faces.counts.data(), faces.nowhere.data(),
                                  faces.sent.data(), memory.data(), faces.counts.data(),
                                  faces.nowhere.data(), faces.received.data(), faces.comm));
    });
    count("nonblocking", kFused, memory, [&] {
        MPI_Request request;
        OK(MPI_Ineighbor_alltoallw(memory.data(), faces.counts.data(), faces.nowhere.data(),
                                   faces.sent.data(), memory.data(), faces.counts.data(),
                                   faces.nowhere.data(), faces.received.data(), faces.comm,
                                   &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    });
    MPI_Request persistent;
    OK(MPI_Neighbor_alltoallw_init(memory.data(), faces.counts.data(), faces.nowhere.data(),
                                   faces.sent.data(), memory.data(), faces.counts.data(),
                                   faces.nowhere.data(), faces.received.data(), faces.comm,
                                   MPI_INFO_NULL, &persistent));
    count("persistent", kFused, memory, [&] {
        OK(MPI_Start(&persistent));
        OK(MPI_Wait(&persistent, MPI_STATUS_IGNORE));
    });
    OK(MPI_Request_free(&persistent));
}

// The same by messages: kernels of messages that are pending together share launches.
MPI_CASE(faces_of_a_3d_block_by_messages, 2) {
    use_device(rank() % gpu().count);
    Faces faces;
    Memory memory(Kind::device, kEdge * kEdge * kEdge * sizeof(double));
    std::vector<MPI_Request> requests(2 * kDirections);
    for (std::size_t way = 0; way < kDirections; ++way) {
        const int tag = static_cast<int>(way);
        OK(MPI_Recv_init(memory.data(), 1, faces.received[way], faces.peers[way], tag,
                         MPI_COMM_WORLD, &requests[way]));
        OK(MPI_Send_init(memory.data(), 1, faces.sent[way], faces.peers[way], tag, MPI_COMM_WORLD,
                         &requests[kDirections + way]));
    }
    count("messages", kMessages, memory, [&] {
        OK(MPI_Startall(2 * kDirections, requests.data()));
        OK(MPI_Waitall(2 * kDirections, requests.data(), MPI_STATUSES_IGNORE));
    });
    for (MPI_Request& request : requests)
        OK(MPI_Request_free(&request));
}

}  // namespace mpi_tests
