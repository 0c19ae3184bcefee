// SPDX-License-Identifier: BSD-3-Clause
//
// What tools see of messages in device memory: which way they came, what was staged, mapped and asked of
// the driver. Shared memory only.
#include "gpu.hpp"
#include "test.hpp"
#include "tool.hpp"

#include <cstdlib>

using namespace mpi_tests;

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kMessages = 4;

void send_and_receive(Memory& memory) {
    for (int i = 0; i < kMessages; ++i) {
        if (rank() == 0)
            OK(MPI_Send(memory.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(memory.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));  // what the receiver answered has reached the sender
    }
}

}  // namespace

MPI_CASE_OWN_INIT(tools_count_what_is_staged, 2) {
    setenv("GANTRY_IPC", "off", 1);
    start_mpi();
    const Tool tool;
    Memory memory(Kind::device, kBytes, rank() % gpu().count);
    Counted staged(tool, "bytes_staged"), pipeline(tool, "messages_received_pipeline");
    Counted bytes(tool, "bytes_received_pipeline"), mapped(tool, "mappings_opened");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    tool.start_all();
    send_and_receive(memory);
    CHECK_EQ(staged.read(), kMessages * kBytes);
    CHECK_EQ(pipeline.read(), rank() == 0 ? 0 : kMessages);
    CHECK_EQ(bytes.read(), rank() == 0 ? 0 : kMessages * kBytes);
    CHECK_EQ(mapped.read(), 0);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(tools_count_direct_copies_and_mappings, 2) {
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    setenv("GANTRY_CLAIM_WAIT", "10s", 1);
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
    const Tool tool;
    Memory memory(Kind::device, kBytes, rank() % gpu().count);
    Counted staged(tool, "bytes_staged"), direct(tool, "messages_received_ipc");
    Counted opened(tool, "mappings_opened"), open(tool, "mappings_open"),
        mapped(tool, "mapped_bytes");
    Counted driver(tool, "driver_calls"), copies(tool, "device_copies");
    opened.start();
    send_and_receive(memory);  // the first ones open the mapping
    tool.start_all();
    send_and_receive(memory);
    CHECK_EQ(direct.read(), rank() == 0 ? 0 : kMessages);
    CHECK_EQ(staged.read(), 0);
    unsigned long long mine[] = {opened.read(), copies.read()}, both[2] = {};
    OK(MPI_Allreduce(mine, both, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(both[0], 1);
    CHECK_EQ(both[1], kMessages);
    CHECK_EQ(open.read(), mine[0]);
    CHECK_EQ(mapped.read() >= kBytes, mine[0] == 1);
    CHECK_EQ(driver.read() > 0, true);
    MPI_Finalize();
}
