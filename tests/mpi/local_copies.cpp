// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that copy inside one process, with blocks of no pattern and structures in device memory: a
// handful of operations of the driver, however many blocks there are, and the right bytes. The
// simulated driver counts; a real GPU only shows the bytes.
#include "gpu.hpp"
#include "test.hpp"

#include <cstring>
#include <functional>
#include <vector>

namespace mpi_tests {
namespace {

constexpr int kBlocks = 4096;
// Launches, copies and flags of one call.
constexpr std::uint64_t kHandful = 12;

MPI_Datatype structures() {
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {4, 0};
    const MPI_Datatype types[] = {MPI_INT, MPI_SHORT};
    MPI_Datatype one, spaced, all;
    OK(MPI_Type_create_struct(2, lengths, places, types, &one));
    OK(MPI_Type_create_resized(one, 0, 8, &spaced));
    OK(MPI_Type_contiguous(kBlocks, spaced, &all));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_free(&spaced));
    return all;
}

MPI_Datatype no_pattern() {
    std::vector<int> places;
    for (int i = 0; i < kBlocks; ++i)
        places.push_back(2 * i + (i * 7 % 3 == 0 ? 1 : 0));
    MPI_Datatype all;
    OK(MPI_Type_create_indexed_block(kBlocks, 1, places.data(), MPI_INT, &all));
    return all;
}

// The packed bytes of what pattern(key, i) is, by the host's packing.
std::vector<std::byte> packed_pattern(MPI_Datatype type, std::size_t bytes, int size,
                                      unsigned key) {
    std::vector<std::byte> all(bytes), packed(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < bytes; ++i)
        all[i] = pattern(key, i);
    int at = 0;
    OK(MPI_Pack(all.data(), 1, type, packed.data(), size, &at, MPI_COMM_SELF));
    return packed;
}

// Buffers of one type in device memory, and what must be in the second after the call.
struct Scene {
    explicit Scene(MPI_Datatype of) : type(of) {
        OK(MPI_Type_commit(&type));
        OK(MPI_Type_size(type, &size));
        MPI_Aint lower = 0, extent = 0;
        OK(MPI_Type_get_extent(type, &lower, &extent));
        bytes = static_cast<std::size_t>(extent) + 64;
    }
    ~Scene() { OK(MPI_Type_free(&type)); }
    void check(const char* what, Memory& to, const std::function<void()>& call) const {
        call();  // sets up
        to.fill(2);
        if (gpu().simulated) clear_operations();
        call();
        const Operations done = gpu().simulated ? operations() : Operations{};
        const std::uint64_t all = done.copies + done.flags + done.others;
        if (all > kHandful) about(std::string(what) + ": " + std::to_string(all) + " operations");
        CHECK(all <= kHandful);
        std::vector<std::byte> right(bytes), found(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            right[i] = pattern(2, i);
        const std::vector<std::byte> packed = packed_pattern(type, bytes, size, 1);
        int at = 0;
        OK(MPI_Unpack(packed.data(), size, &at, right.data(), 1, type, MPI_COMM_SELF));
        to.read(found.data(), bytes);
        if (found != right) about(what);
        CHECK(found == right);
    }
    MPI_Datatype type;
    int size = 0;
    std::size_t bytes = 0;
};

void every_call(MPI_Datatype type) {
    const Scene scene(type);
    Memory from(Kind::device, scene.bytes, 0), to(Kind::device, scene.bytes, 0);
    Memory packed(Kind::device, scene.bytes, 0);
    from.fill(1);
    const int me = rank(), size = scene.size;
    scene.check("Pack and Unpack", to, [&] {
        int at = 0;
        OK(MPI_Pack(from.data(), 1, type, packed.data(), size, &at, MPI_COMM_SELF));
        at = 0;
        OK(MPI_Unpack(packed.data(), size, &at, to.data(), 1, type, MPI_COMM_SELF));
    });
    std::vector<std::byte> on_host(static_cast<std::size_t>(size));
    scene.check("Pack to the host and Unpack from there", to, [&] {
        int at = 0;
        OK(MPI_Pack(from.data(), 1, type, on_host.data(), size, &at, MPI_COMM_SELF));
        at = 0;
        OK(MPI_Unpack(on_host.data(), size, &at, to.data(), 1, type, MPI_COMM_SELF));
    });
    scene.check("a message to oneself", to, [&] {
        OK(MPI_Sendrecv(from.data(), 1, type, me, 0, to.data(), 1, type, me, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    });
    scene.check("Allgather", to, [&] {
        OK(MPI_Allgather(from.data(), 1, type, to.data(), 1, type, MPI_COMM_SELF));
    });
    scene.check("Alltoall", to,
                [&] { OK(MPI_Alltoall(from.data(), 1, type, to.data(), 1, type, MPI_COMM_SELF)); });
    scene.check("Gather", to, [&] {
        OK(MPI_Gather(from.data(), 1, type, to.data(), 1, type, 0, MPI_COMM_SELF));
    });
}

}  // namespace

MPI_CASE(copies_inside_a_process_of_structures, 1) {
    use_device(0);
    every_call(structures());
}

MPI_CASE(copies_inside_a_process_of_no_pattern, 1) {
    use_device(0);
    every_call(no_pattern());
}

// The program waits for it: its end is a word in host memory, not an event that the driver is asked for.
MPI_CASE(a_small_pack_costs_one_launch_and_no_query, 1) {
    if (!gpu().simulated) skip("needs the simulator's counters");
    use_device(0);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_vector(32, 8, 24, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    Memory from(Kind::device, 1024, 0), to(Kind::device, 1024, 0);
    Calls all;
    for (int call = 0; call < 2; ++call) {
        const Calls before = calls();
        int at = 0;
        OK(MPI_Pack(from.data(), 1, type, to.data(), 256, &at, MPI_COMM_SELF));
        at = 0;
        OK(MPI_Unpack(to.data(), 256, &at, from.data(), 1, type, MPI_COMM_SELF));
        all = calls();
        all.launches -= before.launches;
        all.queries -= before.queries;
        all.copies -= before.copies;
    }
    CHECK(all.launches == 2);
    CHECK(all.copies == 0);
    CHECK(all.queries == 0);
    OK(MPI_Type_free(&type));
}

// What comes from a neighbour is aside until the own data has left.
MPI_CASE(sendrecv_replace_of_structures, 2) {
    use_device(0);
    const Scene scene(structures());
    Memory memory(Kind::device, scene.bytes, 0);
    const auto exchange = [&] {
        OK(MPI_Sendrecv_replace(memory.data(), 1, scene.type, 1 - rank(), 0, 1 - rank(), 0,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    };
    exchange();
    memory.fill(rank() == 0 ? 1 : 2);
    if (gpu().simulated) clear_operations();
    exchange();
    if (gpu().simulated) {
        const Operations done = operations();
        CHECK(done.copies + done.flags + done.others <= 2 * kHandful);
    }
    std::vector<std::byte> right(scene.bytes), found(scene.bytes);
    for (std::size_t i = 0; i < right.size(); ++i)
        right[i] = pattern(rank() == 0 ? 1 : 2, i);
    const std::vector<std::byte> packed =
        packed_pattern(scene.type, scene.bytes, scene.size, rank() == 0 ? 2 : 1);
    int at = 0;
    OK(MPI_Unpack(packed.data(), scene.size, &at, right.data(), 1, scene.type, MPI_COMM_SELF));
    memory.read(found.data(), scene.bytes);
    CHECK(found == right);
}

}  // namespace mpi_tests
