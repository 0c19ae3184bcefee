// SPDX-License-Identifier: BSD-3-Clause
//
// The first steps of a program between two GPUs: when memory of the other process is opened. An anchor of
// the other GPU is opened once, behind the first message; then an opening is worth its price for every buffer
// that comes again, and never comes more than once for an allocation.
#include "gpu.hpp"
#include "test.hpp"

#include <cstdlib>
#include <memory>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr unsigned kSteps = 100;

// Three on a quiet machine, five for virtual memory, which needs a descriptor first. An opening waits for a
// turn without pending copies, and a process that is late makes it later; a pool costs more.
unsigned first_steps(Kind kind) {
    return kind == Kind::shared_pool ? 80 : 20;
}

void start() {
    setenv("GANTRY_IDLE_TIMEOUT", "0", 1);
    setenv("GANTRY_CLAIM_WAIT", "10s", 1);
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
    if (gpu().count < 2) skip("one GPU only");
}

std::uint64_t openings() {
    return sum_of_both(calls("cuIpcOpenMemHandle_v2") + calls("cuMemImportFromShareableHandle") +
                       calls("cuMemPoolImportPointer"));
}
std::uint64_t pinnings() {
    return sum_of_both(calls("cuMemHostRegister_v2") + calls("cuMemHostAlloc"));
}

// One step of a program: both ways at once.
void step(Memory& out, Memory& in, unsigned number) {
    const int bytes = static_cast<int>(out.bytes()), other = 1 - rank();
    MPI_Request requests[2];
    out.fill(2 * number + static_cast<unsigned>(rank()));
    OK(MPI_Irecv(in.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(out.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(in.differs(2 * number + static_cast<unsigned>(other), in.bytes()), -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

// The first one that a process opens is dear, and waits until it has repaid itself.
void open_first_pools() {
    Memory out(Kind::shared_pool, 1 << 20, rank()), in(Kind::shared_pool, 1 << 20, rank());
    reset_calls();
    unsigned steps = 0;
    while (openings() < 2 && ++steps < 1000)
        step(out, in, steps);
    CHECK(steps < 1000);
}

}  // namespace

MPI_CASE_OWN_INIT(kept_buffers_are_opened_in_the_first_steps_or_never, 2) {
    start();
    {  // slots are page-locked: a process that is late may stage a message in any step
        Memory out(Kind::pool, 1024, rank()), in(Kind::pool, 1024, rank());
        for (unsigned i = 0; i < 3; ++i)
            step(out, in, i);
    }
    std::uint64_t by_anchors = 2;  // one of each rank, unless those messages opened it
    for (const Kind kind : {Kind::device, Kind::vmm, Kind::shared_pool}) {
        if (kind == Kind::shared_pool) open_first_pools();
        for (const std::size_t bytes :
             {std::size_t{1024}, std::size_t{65536}, std::size_t{1} << 20}) {
            about(std::string(name(kind)) + ", " + std::to_string(bytes) + " bytes");
            Memory out(kind, bytes, rank()), in(kind, bytes, rank());
            reset_calls();
            for (unsigned i = 0; i < first_steps(kind); ++i)
                step(out, in, i);
            CHECK(openings() <= 4 + by_anchors);
            if (kind == Kind::device) CHECK(openings() >= 2);
            by_anchors = 0;
            reset_calls();
            for (unsigned i = first_steps(kind); i < kSteps; ++i)
                step(out, in, i);
            // A pool's price is repaid by steps, and a step of a late process counts less.
            if (kind != Kind::shared_pool) CHECK_EQ(openings(), 0);
            CHECK(openings() <= 4);
            CHECK_EQ(pinnings(), 0);
        }
    }
    about("");
    MPI_Finalize();
    CHECK_EQ(census().imported_ranges, std::size_t{0});
}

MPI_CASE_OWN_INIT(fresh_buffers_are_opened_once_at_most, 2) {
    start();
    constexpr std::size_t kBytes = std::size_t{16} << 20;
    constexpr unsigned kFresh = 6;
    for (const Kind kind : {Kind::device, Kind::vmm}) {
        about(name(kind));
        reset_calls();
        for (unsigned i = 0; i < kFresh; ++i) {
            Memory out(kind, kBytes, rank()), in(kind, kBytes, rank());
            step(out, in, i);
        }
        // Two messages in a step, and an anchor of each rank.
        CHECK(openings() <= 2 * kFresh + (kind == Kind::device ? 2 : 0));
        if (kind == Kind::device) CHECK(openings() >= 2 * (kFresh - 1));
    }
    about("");
    MPI_Finalize();
}
