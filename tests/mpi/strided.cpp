// SPDX-License-Identifier: BSD-3-Clause
//
// Data of derived types in device memory between processes: what regular and irregular types name
// arrives, in long messages and short ones, and nothing between is touched.
#include "gpu.hpp"
#include "test.hpp"

#include <array>
#include <cstdlib>
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

// The last one is counted: memory has been mapped then.
void send_through_mapping(bool packed_source, bool packed_sink, std::uint64_t of_sender,
                          std::uint64_t of_receiver) {
    constexpr int kBlocks = 1 << 16, kMessages = 8;  // of 8 bytes
    const bool sends = rank() == 0, packed = sends ? packed_source : packed_sink;
    MPI_Datatype type = vector(kBlocks, 8, packed ? 8 : 24);
    OK(MPI_Type_commit(&type));
    const std::size_t pitch = packed ? 8 : 24, bytes = std::size_t{kBlocks} * pitch;
    Memory memory(Kind::device, bytes, rank() % gpu().count);
    memory.fill(sends ? 1 : 2);
    for (int message = 0; message < kMessages; ++message) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (gpu().simulated) reset_calls();
        if (sends)
            OK(MPI_Send(memory.data(), 1, type, 1, 0, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(memory.data(), 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (gpu().simulated) {
        const Calls made = calls();
        about(std::to_string(made.launches) + " launches, " + std::to_string(made.copies) +
              " copies");
        CHECK_EQ(made.launches, sends ? of_sender : of_receiver);
        CHECK_EQ(made.copies, 0u);
        about("");
    }
    std::vector<std::byte> found(bytes);
    memory.read(found.data(), bytes);
    const std::size_t theirs = packed_source ? 8 : 24;
    bool right = true;
    for (std::size_t i = 0; i < bytes && !sends; ++i) {
        const bool sent = i % pitch < 8;
        right = right &&
                found[i] == (sent ? pattern(1, i / pitch * theirs + i % pitch) : pattern(2, i));
    }
    CHECK(right);
    OK(MPI_Type_free(&type));
}

}  // namespace

MPI_CASE_OWN_INIT(strided_device_data_straight_between_two_gpus, 2) {
    if (getenv("GANTRY_SHM") != nullptr) skip("without shared memory nothing is mapped");
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);  // mappings are opened whether they pay or not
    start_mpi();
    if (gpu().count < 2) skip("there is one GPU only");
    use_device(rank());
    send_through_mapping(false, true, 1, 0);
    send_through_mapping(true, false, 0, 1);
    send_through_mapping(false, false, 1, 1);
    MPI_Finalize();
}

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
