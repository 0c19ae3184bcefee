// SPDX-License-Identifier: BSD-3-Clause
//
// What a program uses for the first time is set up in its first steps: from the fourth one on no kernel
// is loaded and no memory page-locked, whatever way its messages take then.
#include "gpu.hpp"
#include "test.hpp"

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

std::uint64_t loads_and_pins() {
    return calls("cuModuleLoadData") + calls("cuMemHostRegister_v2") + calls("cuMemHostAlloc") +
           calls("cuMemAllocHost_v2");
}

constexpr int kWindow = 16, kSingles = 20;

// Exchanges with the neighbor: one message at a time, and from some step on several, which share launches.
void steps(Kind kind, int bytes, int count) {
    const int other = 1 - rank(), device = gpu().count > 1 ? rank() : 0;
    const auto all = static_cast<std::size_t>(bytes) * kWindow;
    use_device(device);
    Memory out(kind, all, device), in(kind, all, device);
    out.fill(static_cast<unsigned>(rank()));
    for (int step = 0; step < count; ++step) {
        if (step == 3) reset_calls();
        const int messages = step < kSingles ? 1 : kWindow;
        std::vector<MPI_Request> requests;
        for (int i = 0; i < messages; ++i) {
            const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(bytes) * i;
            requests.resize(requests.size() + 2, MPI_REQUEST_NULL);
            OK(MPI_Irecv(in.data() + at, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD,
                         &requests[requests.size() - 2]));
            OK(MPI_Isend(out.data() + at, bytes, MPI_BYTE, other, i, MPI_COMM_WORLD,
                         &requests.back()));
        }
        OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    }
    CHECK_EQ(loads_and_pins(), 0);
    CHECK_EQ(in.differs(static_cast<unsigned>(other), all), -1);
}

// The persistent kernel comes in the middle, if at all.
void steps_of_a_fresh_process(Kind kind, int bytes) {
    setenv("GANTRY_IDLE_TIMEOUT", "1ms", 1);
    start_mpi();
    only_on_the_simulator();
    steps(kind, bytes, 60);
    MPI_Finalize();
}

}  // namespace

MPI_CASE_OWN_INIT(first_uses_small_device, 2) {
    steps_of_a_fresh_process(Kind::device, 8);
}

MPI_CASE_OWN_INIT(first_uses_medium_device, 2) {
    steps_of_a_fresh_process(Kind::device, 64 << 10);
}

MPI_CASE_OWN_INIT(first_uses_large_device, 2) {
    steps_of_a_fresh_process(Kind::device, 1 << 20);
}

MPI_CASE_OWN_INIT(first_uses_virtual_memory, 2) {
    steps_of_a_fresh_process(Kind::vmm, 256 << 10);
}

MPI_CASE_OWN_INIT(first_uses_pool_memory, 2) {
    steps_of_a_fresh_process(Kind::shared_pool, 256 << 10);
}

MPI_CASE_OWN_INIT(first_uses_memory_that_cannot_be_shared, 2) {
    steps_of_a_fresh_process(Kind::pool, 64 << 10);
}

MPI_CASE_OWN_INIT(first_uses_managed_memory, 2) {
    steps_of_a_fresh_process(Kind::managed, 64 << 10);
}
