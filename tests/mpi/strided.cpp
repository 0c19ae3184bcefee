// SPDX-License-Identifier: BSD-3-Clause
//
// Data of derived types in device memory between processes: what regular and irregular types name
// arrives, in long messages and short ones, and nothing between is touched.
#include "gpu.hpp"
#include "test.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace mpi_tests {
namespace {

struct Shape {
    const char* name;
    MPI_Datatype (*make)();
};

MPI_Datatype vector(int count, int width, int pitch) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_vector(count, width, pitch, MPI_BYTE, &type));
    return type;
}

// A face of a grid of doubles with a rim.
MPI_Datatype face(std::array<int, 3> sizes) {
    constexpr std::array<int, 3> kGrid = {34, 34, 34}, kFirst = {1, 1, 1};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_subarray(3, kGrid.data(), sizes.data(), kFirst.data(), MPI_ORDER_C,
                                MPI_DOUBLE, &type));
    return type;
}

// Distances of no pattern.
MPI_Datatype list(int blocks, MPI_Datatype of) {
    std::vector<int> places;
    unsigned dice = 1;
    for (int i = 0, place = 0; i < blocks; ++i) {
        dice = dice * 1664525 + 1013904223;
        place += 1 + static_cast<int>(dice >> 24) % 5;
        places.push_back(place);
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_indexed_block(blocks, 1, places.data(), of, &type));
    return type;
}

constexpr Shape kShapes[] = {
    {"a short column", [] { return vector(16, 8, 64); }},
    {"a column", [] { return vector(4096, 8, 512); }},
    {"odd rows", [] { return vector(30000, 3, 7); }},
    {"wide rows", [] { return vector(700, 4096, 5000); }},
    {"the face across rows",
     [] {
         return face({32, 32, 1});
     }},
    {"the inside",
     [] {
         return face({32, 32, 32});
     }},
    {"a list of doubles", [] { return list(6000, MPI_DOUBLE); }},
    {"a long list of bytes", [] { return list(70000, MPI_BYTE); }},
};

// What rank 1 must have where the type is, from rank 0's bytes.
std::vector<std::byte> expected(MPI_Datatype type, std::size_t bytes, int packed_bytes) {
    std::vector<std::byte> mine(bytes), theirs(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        mine[i] = pattern(2, i);
        theirs[i] = pattern(1, i);
    }
    std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes));
    int at = 0;
    OK(MPI_Pack(theirs.data(), 1, type, packed.data(), packed_bytes, &at, MPI_COMM_SELF));
    at = 0;
    OK(MPI_Unpack(packed.data(), packed_bytes, &at, mine.data(), 1, type, MPI_COMM_SELF));
    return mine;
}

// Twice: the second message finds what the first has taught.
void send_both_ways(const Shape& shape, Kind kind, int device) {
    MPI_Datatype type = shape.make();
    OK(MPI_Type_commit(&type));
    MPI_Count lower = 0, extent = 0;
    OK(MPI_Type_get_true_extent_c(type, &lower, &extent));
    int packed = 0;
    OK(MPI_Type_size(type, &packed));
    const auto bytes = static_cast<std::size_t>(lower + extent) + 13;
    Memory memory(kind, bytes, device);
    const std::vector<std::byte> right = expected(type, bytes, packed);
    std::vector<std::byte> found(bytes);
    for (int round = 0; round < 2; ++round) {
        memory.fill(rank() == 0 ? 1 : 2);
        if (rank() == 0) {
            OK(MPI_Send(memory.data(), 1, type, 1, 0, MPI_COMM_WORLD));
            memory.fill(2);
            OK(MPI_Recv(memory.data(), 1, type, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Send(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD));
        }
        memory.read(found.data(), bytes);
        if (found != right)
            about(std::string(shape.name) + ", round " + std::to_string(round) + ", " + name(kind));
        CHECK(found == right);
    }
    OK(MPI_Type_free(&type));
}

}  // namespace

MPI_CASE(strided_device_data_between_two_gpus, 2) {
    const int device = rank() % gpu().count;
    use_device(device);
    for (const Shape& shape : kShapes)
        send_both_ways(shape, Kind::device, device);
}

MPI_CASE(strided_device_data_inside_a_shared_gpu, 2) {
    use_device(0);
    for (const Shape& shape : kShapes)
        send_both_ways(shape, Kind::device, 0);
}

MPI_CASE(strided_data_between_a_device_and_host_memory, 2) {
    use_device(0);
    for (const Kind kind : {Kind::host, Kind::pinned})
        for (const Shape& shape : kShapes)
            send_both_ways(shape, rank() == 0 ? Kind::device : kind, 0);
}

}  // namespace mpi_tests
