// SPDX-License-Identifier: BSD-3-Clause
//
// Small messages through BAR mappings, with a simulated GDRCopy that takes freed memory
// out of its mappings at once: whoever touches it then ends the process. Without a libgdrapi these
// cases do not run.
#include "gpu.hpp"
#include "test.hpp"

#include "simgpu/simgpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

// More than repay a mapping.
constexpr unsigned kRepaid = 40;

struct Library {
    decltype(&::simgpu_gdr_calls) calls = nullptr;
    decltype(&::simgpu_gdr_settings) settings = nullptr;
};
const Library& gdr() {
    static const Library the_library = [] {
        void* library = dlopen("libgdrapi.so.2", RTLD_NOW);
        Library found;
        if (library != nullptr) {
            found.calls =
                reinterpret_cast<decltype(found.calls)>(dlsym(library, "simgpu_gdr_calls"));
            found.settings =
                reinterpret_cast<decltype(found.settings)>(dlsym(library, "simgpu_gdr_settings"));
        }
        return found;
    }();
    if (!gpu().simulated || the_library.settings == nullptr) skip("there is no simulated GDRCopy");
    return the_library;
}

// One message from rank 0 to rank 1, answered, so that it is alone.
void message(std::byte* buffer, std::size_t bytes) {
    if (rank() == 0) {
        OK(MPI_Send(buffer, static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        OK(MPI_Recv(buffer, static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
        OK(MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    }
}

void checked_messages(Memory& memory, std::size_t bytes, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
        memory.fill(rank() == 0 ? round : round + 1);
        message(memory.data(), bytes);
        if (rank() == 1) CHECK_EQ(memory.differs(round, bytes), -1);
    }
}

Kind kind_of(bool device) {
    return device ? Kind::device : Kind::host;
}

}  // namespace

MPI_CASE(gdrcopy_makes_no_copies_of_small_messages, 2) {
    const Library& library = gdr();
    const int mine = rank() % gpu().count;
    for (const bool from : {true, false})
        for (const bool to : {true, false})
            for (const std::size_t bytes : {std::size_t{8}, std::size_t{100}, std::size_t{2000}}) {
                if (!from && !to) continue;
                about(std::string(from ? "device" : "host") + " to " + (to ? "device" : "host") +
                      ", " + std::to_string(bytes) + " bytes");
                const bool on_device = rank() == 0 ? from : to;
                Memory memory(kind_of(on_device), bytes, mine);
                checked_messages(memory, bytes, kRepaid);
                OK(MPI_Barrier(MPI_COMM_WORLD));
                reset_calls();
                const char* what = rank() == 0 ? "read" : "write";
                const std::uint64_t before = library.calls(what);
                for (int i = 0; i < 16; ++i)
                    message(memory.data(), bytes);
                CHECK_EQ(calls().copies, 0);
                CHECK_EQ(calls().synchronise, 0);
                CHECK_EQ(library.calls(what) - before, on_device ? 16 : 0);
                OK(MPI_Barrier(MPI_COMM_WORLD));
            }
}

MPI_CASE(gdrcopy_opens_nothing_for_a_few_messages, 2) {
    const Library& library = gdr();
    Memory memory(Kind::device, 64);
    checked_messages(memory, 64, 5);
    CHECK_EQ(library.calls("pin"), 0);
}

// Freed and allocated again, at the same address: the old mapping is gone, and a message to the new
// memory does not go there.
MPI_CASE(gdrcopy_freed_and_allocated_again, 2) {
    const Library& library = gdr();
    {  // slots are page-locked, which first messages are direct to spare
        Memory staged(Kind::pool, 4096, rank() % gpu().count);
        checked_messages(staged, 64, 3);
    }
    const std::byte* first = nullptr;
    for (int life = 0; life < 6; ++life) {
        Memory memory(Kind::device, 4096, rank() % gpu().count);
        if (first == nullptr) first = memory.data();
        CHECK(memory.data() == first);
        checked_messages(memory, 64, life % 2 == 0 ? kRepaid : 3);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(library.calls("map") >= 3);
}

// A mapping stays right while others come and go, and neighbours of a page are left alone.
MPI_CASE(gdrcopy_many_buffers, 2) {
    gdr();
    std::vector<std::unique_ptr<Memory>> all;
    for (int i = 0; i < 80; ++i)
        all.push_back(std::make_unique<Memory>(Kind::device, 256));
    for (auto& memory : all)
        checked_messages(*memory, 256, kRepaid);
    for (std::size_t i = 0; i < all.size(); i += 2)
        all[i].reset();
    for (auto& memory : all)
        if (memory != nullptr) checked_messages(*memory, 256, 4);
}

MPI_CASE(gdrcopy_refused, 2) {
    const Library& library = gdr();
    for (const char* refusal : {"refuse=pin", "refuse=map", "bar=1000"}) {
        about(refusal);
        library.settings(refusal);
        Memory memory(Kind::device, 512, rank() % gpu().count);
        const std::uint64_t before = library.calls("read") + library.calls("write");
        checked_messages(memory, 512, kRepaid);
        CHECK_EQ(library.calls("read") + library.calls("write"), before);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    library.settings(nullptr);
}

// Only one side has mappings, on one GPU and on two.
MPI_CASE(gdrcopy_on_one_side, 2) {
    const Library& library = gdr();
    for (const int without : {0, 1})
        for (const int gpus : {1, 2}) {
            about("rank " + std::to_string(without) + " without, GPUs " + std::to_string(gpus));
            library.settings(rank() == without ? "refuse=pin" : nullptr);
            Memory memory(Kind::device, 512, rank() % gpus % gpu().count);
            checked_messages(memory, 512, 2 * kRepaid);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    library.settings(nullptr);
}

MPI_CASE(gdrcopy_every_kind, 2) {
    gdr();
    for (Kind from : every_kind())
        for (Kind to : every_kind()) {
            about(std::string(name(from)) + " to " + name(to));
            Memory memory(rank() == 0 ? from : to, 300);
            checked_messages(memory, 300, kRepaid);
        }
}

// What is not a plain small message: too large, strided, synchronous, too long for its buffer, many
// at once, and found by a probe.
MPI_CASE(gdrcopy_other_shapes, 2) {
    gdr();
    Memory memory(Kind::device, 65536, rank() % gpu().count);
    checked_messages(memory, 64, kRepaid);
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{40000}, std::size_t{65536}})
        checked_messages(memory, bytes, 4);

    MPI_Datatype strided;
    OK(MPI_Type_vector(8, 4, 8, MPI_BYTE, &strided));
    OK(MPI_Type_commit(&strided));
    memory.fill(rank() == 0 ? 1 : 2);
    if (rank() == 0) {
        OK(MPI_Send(memory.data(), 1, strided, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Ssend(memory.data(), 64, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(memory.data(), 64, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(memory.data(), 1, strided, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(memory.differs(1, 4), -1);
        std::byte hole{};
        memory.read(&hole, 1, 5);
        CHECK(hole == pattern(2, 5));
        OK(MPI_Recv(memory.data(), 64, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(memory.differs(1, 64), -1);
        memory.fill(2);
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        CHECK_EQ(error_class(MPI_Recv(memory.data(), 16, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                                      MPI_STATUS_IGNORE)),
                 MPI_ERR_TRUNCATE);
        OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        CHECK_EQ(memory.differs(1, 16), -1);
        memory.read(&hole, 1, 16);
        CHECK(hole == pattern(2, 16));
    }
    OK(MPI_Type_free(&strided));

    constexpr int kMany = 64;
    memory.fill(rank() == 0 ? 3 : 4);
    std::vector<MPI_Request> requests(kMany);
    if (rank() == 1) {  // the first half is unexpected
        OK(MPI_Probe(0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < kMany; ++i) {
        std::byte* at = memory.data() + 64 * i;
        if (rank() == 0)
            OK(MPI_Isend(at, 64, MPI_BYTE, 1, i, MPI_COMM_WORLD,
                         &requests[static_cast<size_t>(i)]));
        else
            OK(MPI_Irecv(at, 64, MPI_BYTE, 0, i, MPI_COMM_WORLD,
                         &requests[static_cast<size_t>(i)]));
    }
    OK(MPI_Waitall(kMany, requests.data(), MPI_STATUSES_IGNORE));
    if (rank() == 1) CHECK_EQ(memory.differs(3, 64 * kMany), -1);
}

MPI_CASE_OWN_INIT(gdrcopy_off, 2) {
    setenv("GANTRY_GDRCOPY", "off", 1);
    start_mpi();
    const Library& library = gdr();
    Memory memory(Kind::device, 64);
    checked_messages(memory, 64, kRepaid);
    CHECK_EQ(library.calls("open"), 0);
    OK(MPI_Finalize());
}
