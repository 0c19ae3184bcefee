// SPDX-License-Identifier: BSD-3-Clause
//
// Each rank on a GPU of its own. What that costs in copies, mappings and staged bytes is the same numbers
// whether a rank sees all GPUs or only its own (TESTS_ONE_GPU_EACH): each case runs both ways. And once
// where the driver refuses memory on GPUs that a process does not see: then it is staged.
#include "gpu.hpp"
#include "test.hpp"
#include "tool.hpp"

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr std::size_t kRoom = 1 << 20;

// What is counted are ways, not when one of them begins to pay.
void start() {
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    setenv("GANTRY_CLAIM_WAIT", "10s", 1);
    setenv("GANTRY_IDLE_TIMEOUT", "0", 1);
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
    if (gpu().count < 2) skip("one GPU only");
}

// Both ways, a message at a time.
void send_both_ways(Memory& memory, std::size_t bytes, unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round)
        for (int from = 0; from < 2; ++from) {
            const unsigned seed = 2 * round + static_cast<unsigned>(from);
            const int count = static_cast<int>(bytes);
            memory.fill(rank() == from ? seed : 1000);
            if (rank() == from) {
                OK(MPI_Send(memory.data(), count, MPI_BYTE, 1 - from, 0, MPI_COMM_WORLD));
            } else {
                OK(MPI_Recv(memory.data(), count, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
                CHECK_EQ(memory.differs(seed, bytes), -1);
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));  // what the receiver answered has reached the sender
        }
}

std::uint64_t openings() {
    return sum_of_both(calls("cuIpcOpenMemHandle_v2") + calls("cuMemImportFromShareableHandle") +
                       calls("cuMemPoolImportPointer"));
}

// Puts into a window of the other rank's GPU, and gets.
void put_and_get(std::size_t bytes) {
    const int count = static_cast<int>(bytes);
    Memory window(Kind::device, bytes, rank()), mine(Kind::device, bytes, rank());
    MPI_Win win = MPI_WIN_NULL;
    OK(MPI_Win_create(window.data(), static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
    mine.fill(static_cast<unsigned>(rank()));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(mine.data(), count, MPI_BYTE, 1 - rank(), 0, count, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(window.differs(static_cast<unsigned>(1 - rank()), bytes), -1);
    mine.fill(1000);
    OK(MPI_Get(mine.data(), count, MPI_BYTE, 1 - rank(), 0, count, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQ(mine.differs(static_cast<unsigned>(rank()), bytes), -1);
    OK(MPI_Win_free(&win));
}

void sum_up(Memory& out, Memory& in, std::size_t count) {
    std::vector<double> ones(count, rank() + 1.0), sums(count);
    out.write(ones.data(), count * sizeof(double));
    OK(MPI_Allreduce(out.data(), in.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                     MPI_COMM_WORLD));
    in.read(sums.data(), count * sizeof(double));
    CHECK(sums.front() == 3.0 && sums.back() == 3.0);
}

}  // namespace

MPI_CASE_OWN_INIT(messages_between_two_gpus_are_one_copy_each, 2) {
    start();
    const Tool tool;
    Counted staged(tool, "bytes_staged"), direct(tool, "messages_received_ipc");
    Counted copies(tool, "device_copies");
    std::uint64_t by_anchors = 2;
    for (const Kind kind : {Kind::device, Kind::vmm, Kind::shared_pool})
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, kRoom}) {
            about(std::string(name(kind)) + ", " + std::to_string(bytes) + " bytes");
            Memory memory(kind, kRoom, rank());
            reset_calls();
            send_both_ways(memory, bytes, 4);  // opens what is needed
            tool.reset_all();
            tool.start_all();
            send_both_ways(memory, bytes, 4);
            CHECK_EQ(staged.read(), 0);
            CHECK_EQ(direct.read(), 4);
            CHECK_EQ(sum_of_both(copies.read()), 8);
            CHECK(openings() <= 4 + by_anchors);
            by_anchors = 0;
            tool.stop_all();
        }
    about("");
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(operations_at_a_window_of_another_gpu_are_one_copy_each, 2) {
    start();
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, kRoom}) {
        about(std::to_string(bytes) + " bytes");
        const Tool tool;
        Counted staged(tool, "bytes_staged"), copies(tool, "device_copies");
        Counted opened(tool, "mappings_opened");
        tool.start_all();
        put_and_get(bytes);
        CHECK_EQ(staged.read(), 0);
        CHECK_EQ(copies.read(), 2);
        CHECK_EQ(opened.read(), 1);
    }
    about("");
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(collectives_of_two_gpus_stage_nothing, 2) {
    start();
    Memory out(Kind::device, kRoom, rank()), in(Kind::device, kRoom, rank());
    sum_up(out, in, kRoom / sizeof(double));
    const Tool tool;
    Counted staged(tool, "bytes_staged"), opened(tool, "mappings_opened");
    reset_calls();
    tool.start_all();
    for (int i = 0; i < 4; ++i)
        sum_up(out, in, kRoom / sizeof(double));
    CHECK_EQ(staged.read(), 0);
    CHECK_EQ(opened.read(), 0);
    CHECK_EQ(calls().launches, 4);
    MPI_Finalize();
}

// The driver is asked once by each process. Everything is right, and goes through the host.
MPI_CASE_OWN_INIT(what_a_container_keeps_away_is_staged, 2) {
    start();
    const Tool tool;
    Counted staged(tool, "bytes_staged"), direct(tool, "messages_received_ipc");
    reset_calls();
    tool.start_all();
    for (const Kind kind : {Kind::device, Kind::vmm, Kind::shared_pool})
        for (int again = 0; again < 2; ++again) {
            Memory memory(kind, kRoom, rank());
            send_both_ways(memory, kRoom, 3);
        }
    CHECK_EQ(direct.read(), 0);
    CHECK(staged.read() >= 18 * kRoom);
    CHECK(calls("cuIpcOpenMemHandle_v2") + calls("cuMemImportFromShareableHandle") +
              calls("cuMemPoolImportFromShareableHandle") <=
          1);
    for (const std::size_t bytes : {std::size_t{8}, kRoom})
        put_and_get(bytes);
    Memory out(Kind::device, kRoom, rank()), in(Kind::device, kRoom, rank());
    for (const std::size_t count : {std::size_t{1}, kRoom / sizeof(double)})
        sum_up(out, in, count);
    CHECK(calls("cuIpcOpenMemHandle_v2") + calls("cuMemImportFromShareableHandle") +
              calls("cuMemPoolImportFromShareableHandle") <=
          1);
    MPI_Finalize();
}
