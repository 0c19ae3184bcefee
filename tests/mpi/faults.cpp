// SPDX-License-Identifier: BSD-3-Clause
//
// What can go wrong around a program: a driver that refuses or fails, a context that goes away, too
// little memory, fork and system, switches turned off (direct copies: direct_faults.cpp). Either the
// data arrives all the same or both ranks get an error that names the call, in finite time; then the
// library works on, and leaves the driver as it found it.
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr int kLarge = (4 << 20) + 12;

constexpr const char* kInjected = "faults are injected into the simulator only";

void return_errors() {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

// Device memory of both ranks, this way and back.
void expect_device_messages_work(int bytes, unsigned seed = 1) {
    about(std::to_string(bytes) + " bytes between devices");
    Memory out(Kind::device, static_cast<std::size_t>(bytes)),
        in(Kind::device, static_cast<std::size_t>(bytes));
    out.fill(seed + static_cast<unsigned>(rank()));
    const int peer = 1 - rank();
    OK(MPI_Sendrecv(out.data(), bytes, MPI_BYTE, peer, 8, in.data(), bytes, MPI_BYTE, peer, 8,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(in.differs(seed + static_cast<unsigned>(peer), static_cast<std::size_t>(bytes)), -1);
    about("");
}

void expect_host_messages_work(int bytes) {
    about(std::to_string(bytes) + " bytes between hosts");
    std::vector<char> out(static_cast<std::size_t>(bytes), static_cast<char>('a' + rank())),
        in(out.size());
    const int peer = 1 - rank();
    OK(MPI_Sendrecv(out.data(), bytes, MPI_BYTE, peer, 9, in.data(), bytes, MPI_BYTE, peer, 9,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in == std::vector<char>(in.size(), static_cast<char>('a' + peer)));
    about("");
}

void expect_all_works() {
    for (int bytes : {8, 100000, kLarge}) {
        expect_host_messages_work(bytes);
        expect_device_messages_work(bytes);
    }
}

// One message, `fault` on one rank; both ranks must hear of it. Host messages order the ranks
// around it.
void expect_a_failed_message(int bytes, int faulty, const char* fault, const char* function) {
    about(std::string(fault) + " on rank " + std::to_string(faulty) + ", " + std::to_string(bytes) +
          " bytes");
    Memory memory(Kind::device, static_cast<std::size_t>(bytes));
    memory.fill(5);
    if (rank() == faulty) inject(fault);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int code = rank() == 0 ? MPI_Send(memory.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD)
                                 : MPI_Recv(memory.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                                            MPI_STATUS_IGNORE);
    // A sender whose bytes had all left may be done before the receiver fails.
    if (rank() == 1 || faulty == 0) expect_failure(code, function);
    if (rank() == faulty) inject(nullptr);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    about("");
}

}  // namespace

// --- a driver that refuses -----------------------------------------------------------------------

MPI_CASE_OWN_INIT(refused_page_locking_is_slower_and_right, 2) {
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_LOG", "error", 1);
    start_mpi();
    only_on_the_simulator(kInjected);
    use_device(0);
    inject("cuMemHostRegister_v2:*:2");
    expect_all_works();
    inject(nullptr);
    MPI_Finalize();
}

MPI_CASE(a_failed_classification_is_an_error_once, 2) {
    only_on_the_simulator(kInjected);
    return_errors();
    Memory memory(Kind::device, 64);
    inject("cuPointerGetAttributes:1:999");
    expect_failure(MPI_Send(memory.data(), 64, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD),
                   "cuPointerGetAttributes");
    inject(nullptr);
    expect_all_works();
}

// Only a receive that starts takes a matched message.
MPI_CASE(a_matched_message_outlives_a_receive_that_is_refused, 2) {
    only_on_the_simulator(kInjected);
    return_errors();
    Memory memory(Kind::device, kLarge);
    memory.fill(rank() == 0 ? 3 : 4);
    if (rank() == 0) {
        OK(MPI_Ssend(memory.data(), kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        return;
    }
    MPI_Message message;
    OK(MPI_Mprobe(0, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    constexpr int kTooLarge = 1 << 30;  // it leaves its allocation
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(MPI_Mrecv(memory.data(), kTooLarge, MPI_BYTE, &message, MPI_STATUS_IGNORE) !=
          MPI_SUCCESS);
    CHECK(MPI_Imrecv(memory.data(), kTooLarge, MPI_BYTE, &message, &request) != MPI_SUCCESS);
    CHECK(message != MPI_MESSAGE_NULL);
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Mrecv(memory.data(), kLarge, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK_EQ(memory.differs(3, kLarge), -1);
}

MPI_CASE_OWN_INIT(a_failed_copy_is_an_error_on_both_ranks, 2) {
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_CHUNK", "256K", 1);
    start_mpi();
    only_on_the_simulator(kInjected);
    return_errors();
    expect_all_works();
    const Census before = census();
    for (int bytes : {8, 200000, kLarge}) {
        expect_a_failed_message(bytes, 0, "cuMemcpyDtoHAsync_v2:1:999", "cuMemcpyDtoHAsync");
        expect_a_failed_message(bytes, 1,
                                "cuMemcpyHtoDAsync_v2:1:999,cuMemcpy2DAsync_v2:1:999,"
                                "cuStreamBatchMemOp_v2:1:999",
                                "cuMemcpy");
    }
    // In the middle of a message.
    expect_a_failed_message(kLarge, 0, "cuMemcpyDtoHAsync_v2:9:999", "cuMemcpyDtoHAsync");
    expect_a_failed_message(kLarge, 1, "cuMemcpyHtoDAsync_v2:9:999", "cuMemcpyHtoDAsync");
    expect_all_works();
    // Events are pooled: how many there are depends on how many copies overlapped.
    Census after = census();
    CHECK(after.events <= before.events + 64);
    after.events = before.events;
    CHECK(after == before);
    MPI_Finalize();
}

// It frees nothing; the leak checker sees where the object went.
Memory* memory_of_a_dead_context = nullptr;

MPI_CASE_OWN_INIT(an_operation_that_kills_the_context_is_an_error_and_host_messages_go_on, 2) {
    setenv("GANTRY_IPC", "off", 1);
    start_mpi();
    only_on_the_simulator(kInjected);
    return_errors();
    expect_all_works();
    auto memory = std::make_unique<Memory>(Kind::device, kLarge);
    if (rank() == 0) inject("operation:1:700");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int code = rank() == 0 ? MPI_Send(memory->data(), kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD)
                                 : MPI_Recv(memory->data(), kLarge, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                                            MPI_STATUS_IGNORE);
    expect_failure(code, rank() == 0 ? "ILLEGAL_ADDRESS" : "");
    if (rank() == 0) inject(nullptr);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int bytes : {8, 100000, kLarge})
        expect_host_messages_work(bytes);
    if (rank() == 0) memory_of_a_dead_context = memory.release();
    memory.reset();
    MPI_Finalize();
}

// --- things that go away -------------------------------------------------------------------------

MPI_CASE(a_context_reset_between_messages_gets_new_streams, 2) {
    expect_all_works();
    auto* reset = gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
    for (int round = 0; round < 3; ++round) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK_EQ(reset(0), CUDA_SUCCESS);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        expect_all_works();
    }
}

MPI_CASE(a_context_destroyed_before_finalize_is_dropped_quietly, 2) {
    expect_all_works();
    CHECK_EQ(gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2")(0), CUDA_SUCCESS);
}

MPI_CASE(a_programs_own_context_works_and_may_be_destroyed, 2) {
    gpu();
    for (int round = 0; round < 3; ++round) {
        CUcontext context = nullptr;
        CHECK_EQ(
            (gpu().get<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, 0)),
            CUDA_SUCCESS);
        CUdeviceptr memory = 0;
        CHECK_EQ((gpu().get<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&memory, kLarge)),
                 CUDA_SUCCESS);
        std::vector<unsigned char> host(kLarge,
                                        static_cast<unsigned char>(rank() == 0 ? 100 + round : 0));
        CHECK_EQ((gpu().get<CUresult(CUdeviceptr, const void*, std::size_t)>("cuMemcpyHtoD_v2")(
                     memory, host.data(), kLarge)),
                 CUDA_SUCCESS);
        for (int bytes : {8, kLarge}) {
            if (rank() == 0)
                OK(MPI_Send(reinterpret_cast<void*>(memory), bytes, MPI_BYTE, 1, 0,
                            MPI_COMM_WORLD));
            else
                OK(MPI_Recv(reinterpret_cast<void*>(memory), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        }
        CHECK_EQ((gpu().get<CUresult(void*, CUdeviceptr, std::size_t)>("cuMemcpyDtoH_v2")(
                     host.data(), memory, kLarge)),
                 CUDA_SUCCESS);
        CHECK_EQ(host[kLarge - 1], 100 + round);
        // Who opened the other's memory must have let go of it before the owner's context ends:
        // that is what the barrier is for.
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK_EQ(gpu().get<CUresult(CUcontext)>("cuCtxDestroy_v2")(context), CUDA_SUCCESS);
    }
}

// --- no GPU, or late -----------------------------------------------------------------------------

MPI_CASE_OWN_INIT(a_driver_without_a_device_is_a_host_only_job, 2) {
    setenv("SIMGPU_FAULT", "no_device", 1);
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr || dlsym(library, "simgpu_calls") == nullptr)
        skip("needs the simulated driver");
    CHECK_EQ(reinterpret_cast<CUresult (*)(unsigned)>(dlsym(library, "cuInit"))(0),
             CUDA_ERROR_NO_DEVICE);
    start_mpi();
    for (int bytes : {0, 8, 100000, kLarge})
        expect_host_messages_work(bytes);
    MPI_Finalize();
}

MPI_CASE(the_gpu_is_first_used_long_after_init, 2) {
    for (int bytes : {8, 100000, kLarge})
        expect_host_messages_work(bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    use_device(gpu().count > 1 ? rank() % gpu().count : 0);  // chosen late, too
    expect_all_works();
}

MPI_CASE_OWN_INIT(recognition_switched_off_asks_the_driver_nothing, 2) {
    setenv("GANTRY_CUDA", "off", 1);
    start_mpi();
    only_on_the_simulator(kInjected);
    use_device(0);
    reset_calls();
    for (int bytes : {8, 100000, kLarge})
        expect_host_messages_work(bytes);
    CHECK_EQ(calls("*"), 0);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(direct_copies_switched_off_map_nothing, 2) {
    setenv("GANTRY_IPC", "off", 1);
    start_mpi();
    expect_all_works();
    if (gpu().simulated) {
        CHECK_EQ(calls("cuIpcOpenMemHandle_v2"), 0);
        CHECK_EQ(calls("cuIpcGetMemHandle"), 0);
    }
    MPI_Finalize();
}

// --- too little ----------------------------------------------------------------------------------

MPI_CASE_OWN_INIT(a_pool_smaller_than_what_is_in_flight_only_waits, 2) {
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_DEVICE_POOL", "1M", 1);
    setenv("GANTRY_HOST_POOL", "256K", 1);
    start_mpi();
    constexpr int kMessages = 24, kBytes = (1 << 20) + 5;
    std::vector<std::unique_ptr<Memory>> out, in;
    std::vector<MPI_Request> requests(2 * kMessages);
    const int peer = 1 - rank();
    for (int i = 0; i < kMessages; ++i) {
        // Every combination of host and device at the two ends, received in the opposite order.
        out.push_back(std::make_unique<Memory>(i % 2 == 0 ? Kind::device : Kind::host, kBytes));
        in.push_back(std::make_unique<Memory>(i % 4 < 2 ? Kind::device : Kind::host, kBytes));
        out.back()->fill(static_cast<unsigned>(100 * rank() + i));
    }
    for (int i = 0; i < kMessages; ++i) {
        const auto at = static_cast<std::size_t>(i);
        OK(MPI_Isend(out[at]->data(), kBytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[at]));
    }
    for (int i = kMessages - 1; i >= 0; --i) {
        const auto at = static_cast<std::size_t>(i);
        OK(MPI_Irecv(in[at]->data(), kBytes, MPI_BYTE, peer, i, MPI_COMM_WORLD,
                     &requests[kMessages + at]));
    }
    OK(MPI_Waitall(2 * kMessages, requests.data(), MPI_STATUSES_IGNORE));
    for (int i = 0; i < kMessages; ++i)
        CHECK_EQ(
            in[static_cast<std::size_t>(i)]->differs(static_cast<unsigned>(100 * peer + i), kBytes),
            -1);
    out.clear();
    in.clear();
    MPI_Finalize();
}

// --- other processes -----------------------------------------------------------------------------

MPI_CASE(fork_and_system_do_not_disturb_the_job, 2) {
    expect_all_works();
    int value = -1;
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD, &request));
    CHECK_EQ(std::system("exit 3"), 3 << 8);
    // A child that ends like any program, through exit and every destructor.
    pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    // A child that calls MPI gets an error, which ends it and nobody else.
    child = fork();
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
        int mine = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &mine);
        MPI_Send(&mine, 1, MPI_INT, 1 - mine, 0, MPI_COMM_WORLD);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    const int mine = 70 + rank();
    OK(MPI_Send(&mine, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQ(value, 71 - rank());
    expect_all_works();
}

// --- nothing stays behind ------------------------------------------------------------------------

MPI_CASE_OWN_INIT(the_driver_is_left_as_it_was_found, 2) {
    only_on_the_simulator(kInjected);
    use_device(0);
    const Census before = census();
    start_mpi();
    expect_all_works();
    {
        Memory own(Kind::device, kLarge);
        MPI_Request request;
        OK(MPI_Irecv(own.data(), kLarge, MPI_BYTE, 1 - rank(), 77, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Finalize();
    const Census after = census();
    CHECK_EQ(after.device_ranges, before.device_ranges);
    CHECK_EQ(after.host_ranges, before.host_ranges);
    CHECK_EQ(after.imported_ranges, before.imported_ranges);
    CHECK_EQ(after.streams, before.streams);
    CHECK_EQ(after.events, before.events);
}
