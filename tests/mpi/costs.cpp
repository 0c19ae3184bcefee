// SPDX-License-Identifier: BSD-3-Clause
//
// What a message costs in calls of the driver, copies and staged bytes: exact numbers, counted by
// the simulated driver on both sides after a few messages have set everything up. A real GPU counts
// nothing, so there these cases do not run.
//
//   protocol   sender                     receiver       both
//   eager      1 copy (D2H)               1 copy (H2D)   no set-up, nobody synchronises, one query
//   pipeline   n copies, n = chunks       n copies       per device buffer
//   ipc        one copy in all, by whichever side executes
#include "gpu.hpp"
#include "test.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

// Opening the peer's memory is put off until the messages have paid for it, and a small one saves
// little: so many are enough for that.
constexpr unsigned kMessages = 16;
// Its context is made current and left again, the program's capture of a stream is let be and taken
// up again, and the context must be the one that it was.
constexpr unsigned kCallsAroundAVisit = 5;
unsigned warm_up_messages(std::size_t bytes) {
    return bytes < 65536 ? 512 : 64;
}

// What a case before this one exported and freed is noticed by the regular look at exported memory
// (every 10 ms), and the peer then closes its mapping: a few of those periods must have gone.
constexpr double kSettleSeconds = 0.050;

// Counts of kMessages messages, on this rank and on both.
struct Cost {
    Calls calls;
    Operations done;
    std::uint64_t copies_of_both = 0, bytes_of_both = 0;
    // Memory that a peer has mapped is looked at every 10 ms, apart from messages (docs/design/
    // mappings.md).
    std::uint64_t looks_at_mapped = 0;
    std::uint64_t milliseconds = 0;  // begun and over
};

// Messages from rank 0 to rank 1, each received in time: the receive is posted before the send
// begins.
template <class Bytes>
void exchange(std::byte* buffer, Bytes bytes, unsigned messages) {
    for (unsigned i = 0; i < messages; ++i) {
        if (rank() == 0) {
            OK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Send(buffer, static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD));
        } else {
            MPI_Request request;
            OK(MPI_Irecv(buffer, static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                         &request));
            OK(MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
}

void warm_up(std::byte* buffer, std::size_t bytes) {
    const double begin = MPI_Wtime();
    int settling = 1;
    while (settling) {
        exchange(buffer, bytes, warm_up_messages(bytes));
        const int mine = MPI_Wtime() - begin < kSettleSeconds;
        OK(MPI_Allreduce(&mine, &settling, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
}

Cost cost_of(std::byte* buffer, std::size_t bytes) {
    warm_up(buffer, bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    reset_calls();
    clear_operations();
    const double begin = MPI_Wtime();
    exchange(buffer, bytes, kMessages);
    Cost cost;
    const double seconds = MPI_Wtime() - begin;
    cost.looks_at_mapped = 2 * (1 + static_cast<std::uint64_t>(seconds / 0.010));
    cost.milliseconds = static_cast<std::uint64_t>(seconds / 0.001);
    cost.calls = calls();
    cost.done = operations();
    cost.copies_of_both = sum_of_both(cost.done.copies);
    cost.bytes_of_both = sum_of_both(cost.done.bytes);
    return cost;
}

void check_steady_state(const Cost& cost) {
    CHECK_EQ(cost.calls.attributes, 0);
    CHECK(cost.calls.attribute <= kMessages + cost.looks_at_mapped);
    CHECK_EQ(cost.calls.synchronise, 0);
    CHECK_EQ(cost.calls.set_up, 0);
    CHECK(cost.done.flags <= cost.done.copies);  // one behind a copy that is alone
    CHECK_EQ(cost.done.others, 0);
    // Each copy has one end, which the driver is asked about unless it is a flag that comes within a
    // millisecond; and there is no other call.
    const Calls& calls = cost.calls;
    CHECK_EQ(calls.ends, calls.copies);
    if (cost.done.flags == cost.done.copies) CHECK(calls.queries <= cost.milliseconds);
    // Who only names its memory, for the peer to copy, looks whether its context lives.
    const std::uint64_t visits = calls.copies + calls.queries;
    CHECK_EQ(calls.around,
             visits == 0 && calls.around != 0 ? kMessages : kCallsAroundAVisit * visits);
    CHECK_EQ(calls.all, calls.attribute + calls.copies + calls.ends + calls.queries + calls.around);
}

void device_messages(std::size_t bytes, std::uint64_t copies_per_side) {
    about(std::to_string(bytes) + " bytes");
    Memory memory(Kind::device, bytes);
    const Cost cost = cost_of(memory.data(), bytes);
    check_steady_state(cost);
    CHECK(cost.calls.attribute >= kMessages);
    CHECK_EQ(cost.calls.copies, copies_per_side * kMessages);
    CHECK_EQ(cost.done.copies, copies_per_side * kMessages);
    CHECK_EQ(cost.done.bytes, bytes * kMessages);
    about("");
}

bool library_is_loaded(const char* name) {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    while (std::getline(maps, line))
        if (line.find(name) != std::string::npos) return true;
    return false;
}

std::byte static_data[100000];

}  // namespace

MPI_CASE_OWN_INIT(a_small_device_message_costs_one_copy_and_one_query_per_side, 2) {
    setenv("GANTRY_IPC", "off", 1);
    start_mpi();
    only_on_the_simulator();
    for (std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{1024}, std::size_t{4096}})
        device_messages(bytes, 1);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(a_staged_message_costs_one_copy_per_chunk_and_side, 2) {
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_CHUNK", "256K", 1);
    start_mpi();
    only_on_the_simulator();
    device_messages(std::size_t{256} << 10, 1);
    device_messages(std::size_t{1} << 20, 4);
    device_messages(std::size_t{4} << 20, 16);
    device_messages((std::size_t{1} << 20) + 1, 5);
    MPI_Finalize();
}

// Under MPS a copy inside a GPU waits for no turn of its compute queue; whether such a turn repays
// itself depends on measured times, and these tests have none.
MPI_CASE_OWN_INIT(a_message_on_one_gpu_costs_one_copy_in_all, 2) {
    const char* simulated = getenv("SIMGPU");
    setenv("SIMGPU", (std::string(simulated != nullptr ? simulated : "") + ",mps=1").c_str(), 1);
    start_mpi();
    only_on_the_simulator();
    for (std::size_t bytes : {std::size_t{8}, std::size_t{4096}, std::size_t{200000},
                              std::size_t{1} << 20, std::size_t{16} << 20}) {
        about(std::to_string(bytes) + " bytes");
        Memory memory(Kind::device, bytes);
        const Cost cost = cost_of(memory.data(), bytes);
        CHECK_EQ(cost.copies_of_both, kMessages);
        CHECK_EQ(cost.bytes_of_both, bytes * kMessages);  // not one byte was staged
        check_steady_state(cost);
        // There a flag shows sooner than an event.
        CHECK_EQ(cost.done.flags, rank() == 1 ? kMessages : 0);
        about("");
    }
    MPI_Finalize();
}

MPI_CASE(a_message_between_device_and_page_locked_memory_costs_one_copy_in_all, 2) {
    only_on_the_simulator();
    for (int device_side : {0, 1})
        for (std::size_t bytes : {std::size_t{16}, std::size_t{2} << 20}) {
            about(std::to_string(bytes) + " bytes, device memory on rank " +
                  std::to_string(device_side));
            Memory memory(rank() == device_side ? Kind::device : Kind::pinned, bytes);
            const Cost cost = cost_of(memory.data(), bytes);
            check_steady_state(cost);
            CHECK_EQ(cost.bytes_of_both, bytes * kMessages);
            CHECK_EQ(cost.copies_of_both, kMessages);
        }
}

// The word and the flag behind it, in one call.
MPI_CASE(a_word_from_the_host_is_written_by_the_stream_and_not_copied, 2) {
    only_on_the_simulator();
    Memory memory(rank() == 1 ? Kind::device : Kind::pinned, 8);
    const Cost cost = cost_of(memory.data(), 8);
    CHECK_EQ(cost.copies_of_both, 0);
    CHECK_EQ(cost.done.flags, rank() == 1 ? 2 * kMessages : 0);
    CHECK_EQ(cost.calls.synchronise, 0);
}

MPI_CASE_OWN_INIT(a_message_between_device_and_host_is_staged_by_the_device_side_alone, 2) {
    setenv("GANTRY_IPC", "off", 1);
    setenv("GANTRY_CHUNK", "512K", 1);
    start_mpi();
    only_on_the_simulator();
    constexpr std::size_t kBytes = std::size_t{2} << 20;
    std::vector<std::byte> host(kBytes);
    for (int device_side : {0, 1}) {
        about("device memory on rank " + std::to_string(device_side));
        Memory memory(Kind::device, kBytes);
        const Cost cost = cost_of(rank() == device_side ? memory.data() : host.data(), kBytes);
        CHECK_EQ(cost.bytes_of_both, kBytes * kMessages);
        // From a device: pieces of the wanted size. To a device: the sender fills slots before it
        // knows where the message goes, with pieces of its own choice.
        if (rank() != device_side) CHECK_EQ(cost.done.copies, 0);
        if (rank() == device_side && device_side == 0) CHECK_EQ(cost.done.copies, 4 * kMessages);
        if (rank() == device_side && device_side == 1) CHECK(cost.done.copies <= 16 * kMessages);
        CHECK_EQ(cost.calls.synchronise, 0);
        CHECK_EQ(cost.calls.set_up, 0);
    }
    MPI_Finalize();
}

MPI_CASE(host_memory_that_stays_host_memory_is_never_asked_about, 2) {
    only_on_the_simulator();
    use_device(0);
    std::byte on_the_stack[60000];
    // The C library serves small blocks from the brk heap; a sanitizer's allocator maps them.
#ifdef __SANITIZE_ADDRESS__
    std::byte* on_the_heap = nullptr;
#else
    std::byte* on_the_heap = static_cast<std::byte*>(std::malloc(60000));
#endif
    for (std::byte* buffer : {static_data, on_the_stack, on_the_heap}) {
        if (buffer == nullptr) continue;
        for (std::size_t bytes : {std::size_t{1}, std::size_t{60000}}) {
            about(std::string(buffer == static_data    ? "static data"
                              : buffer == on_the_stack ? "stack"
                                                       : "heap") +
                  ", " + std::to_string(bytes) + " bytes");
            CHECK_EQ(cost_of(buffer, bytes).calls.all, 0);
        }
    }
    std::free(on_the_heap);
}

MPI_CASE(mapped_host_memory_costs_one_query_at_most, 2) {
    only_on_the_simulator();
    use_device(0);
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    void* mapped =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (std::size_t bytes : {std::size_t{1}, std::size_t{60000}, kBytes}) {
        about(std::to_string(bytes) + " bytes");
        const Cost cost = cost_of(static_cast<std::byte*>(mapped), bytes);
        CHECK(cost.calls.attribute + cost.calls.attributes <= kMessages);
        CHECK_EQ(cost.calls.all, cost.calls.attribute + cost.calls.attributes);  // and nothing else
    }
    munmap(mapped, kBytes);
}

MPI_CASE(page_locked_host_memory_is_copied_by_nobody, 2) {
    only_on_the_simulator();
    for (Kind kind : {Kind::pinned, Kind::registered}) {
        about(name(kind));
        Memory memory(kind, std::size_t{1} << 20);
        const Cost cost = cost_of(memory.data(), memory.bytes());
        CHECK_EQ(cost.calls.copies, 0);
        check_steady_state(cost);
    }
}

// One copy between the devices for each rank, and one inside its own: nothing goes through the host.
MPI_CASE(what_replaces_device_memory_is_received_on_the_device, 2) {
    only_on_the_simulator();
    constexpr std::size_t kBytes = 256 * 1024;
    Memory memory(Kind::device, kBytes, rank() % gpu().count);
    const auto replace = [&](unsigned times) {
        for (unsigned i = 0; i < times; ++i)
            OK(MPI_Sendrecv_replace(memory.data(), kBytes, MPI_BYTE, 1 - rank(), 0, 1 - rank(), 0,
                                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    };
    memory.fill(static_cast<unsigned>(rank()));
    replace(513);
    CHECK_EQ(memory.differs(static_cast<unsigned>(1 - rank()), kBytes), -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    reset_calls();
    clear_operations();
    replace(kMessages);
    const Operations done = operations();
    const Calls made = calls();  // before the sums: behind them the peer may free its memory
    CHECK_EQ(sum_of_both(done.copies), 2 * 2 * kMessages);
    CHECK_EQ(sum_of_both(done.bytes), 2 * 2 * kMessages * kBytes);
    CHECK_EQ(calls("cuMemcpyDtoHAsync_v2"), 0);
    CHECK_EQ(calls("cuMemcpyHtoDAsync_v2"), 0);
    CHECK_EQ(made.set_up, 0);
    CHECK_EQ(memory.differs(static_cast<unsigned>(1 - rank()), kBytes), -1);
}

// While one of its messages is under way its allocation cannot have been freed.
MPI_CASE(a_window_asks_once_what_its_memory_is, 2) {
    only_on_the_simulator();
    constexpr int kWindow = 64, kBytes = 1024, kWindows = 8;
    Memory memory(Kind::device, std::size_t{kWindow} * kBytes);
    const auto windows = [&](int count) {
        std::vector<MPI_Request> requests(kWindow);
        for (int i = 0; i < count; ++i) {
            for (int message = 0; message < kWindow; ++message) {
                std::byte* const place = memory.data() + std::size_t{kBytes} * message;
                MPI_Request& request = requests[message];
                if (rank() == 0)
                    OK(MPI_Isend(place, kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
                else
                    OK(MPI_Irecv(place, kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request));
            }
            OK(MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE));
        }
    };
    windows(warm_up_messages(kBytes) / kWindow);
    warm_up(memory.data(), kBytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    reset_calls();
    const double begin = MPI_Wtime();
    windows(kWindows);
    // A sender's first messages may be read before the next ones are posted.
    const auto looks = 2 * (1 + static_cast<std::uint64_t>((MPI_Wtime() - begin) / 0.010));
    CHECK(calls().attribute + calls().attributes <= 4 * kWindows + looks);
    CHECK(calls().attribute >= 1);
}

// Who frees a request may hear of the message's end by another one, and then free the memory.
MPI_CASE(memory_of_a_freed_request_is_asked_about_again, 2) {
    only_on_the_simulator();
    constexpr int kBytes = 1024;
    Memory memory(Kind::device, 2 * kBytes);
    warm_up(memory.data(), kBytes);
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_BYTE, &pair));
    OK(MPI_Type_commit(&pair));
    for (const bool frees : {false, true})
        for (const bool derived : {false, true}) {
            about(std::string(frees ? "freed" : "kept") + (derived ? ", derived type" : ""));
            if (rank() == 0) {
                OK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                for (int i = 0; i < 2; ++i)
                    OK(MPI_Send(memory.data(), kBytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
                continue;
            }
            MPI_Request first, second;
            OK(MPI_Irecv(memory.data(), derived ? kBytes / 2 : kBytes, derived ? pair : MPI_BYTE, 0,
                         2, MPI_COMM_WORLD, &first));
            if (frees) OK(MPI_Request_free(&first));
            reset_calls();
            OK(MPI_Irecv(memory.data() + kBytes, kBytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &second));
            CHECK_EQ(calls().attribute, frees ? 1 : 0);
            OK(MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
            OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
            if (!frees) OK(MPI_Wait(&first, MPI_STATUS_IGNORE));
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&pair));
}

// Rank 0 looks for a message that does not come, and has exported its memory; nothing is in flight.
MPI_CASE_OWN_INIT(polling_an_idle_peer_asks_the_driver_only_about_exported_memory, 2) {
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    start_mpi();
    only_on_the_simulator();
    constexpr int kBytes = 1 << 20, kPolls = 20000;
    constexpr double kLook = 0.010;  // seconds
    constexpr int kLooks = 3, kMostPeriods = 1000;
    Memory memory(Kind::device, kBytes);
    exchange(memory.data(), memory.bytes(), 8);
    CHECK(sum_of_both(calls("cuIpcOpenMemHandle_v2")) == 1);
    if (rank() == 0) {
        MPI_Request request;
        OK(MPI_Irecv(memory.data(), kBytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request));
        reset_calls();
        const double begin = MPI_Wtime();
        int done = 0, found = 0;
        // Every look is due within a period of polling; a thousand of them only end what would hang.
        for (int poll = 0; poll < kPolls || (calls().attribute < kLooks &&
                                             MPI_Wtime() - begin < kMostPeriods * kLook);
             ++poll) {
            OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            OK(MPI_Iprobe(1, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
            CHECK(!done && !found);
        }
        const auto most = 1 + static_cast<std::uint64_t>((MPI_Wtime() - begin) / kLook);
        const Calls asked = calls();
        CHECK_EQ(calls("cuEventQuery") + calls("cuStreamQuery"), 0);
        CHECK(asked.attribute >= kLooks);
        CHECK(asked.attribute <= most);
        CHECK_EQ(asked.all, asked.attribute);
        OK(MPI_Send(nullptr, 0, MPI_BYTE, 1, 4, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        // Its memory is exported to nobody.
        reset_calls();
        OK(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(calls("*"), 0);
        OK(MPI_Send(memory.data(), kBytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD));
    }
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(a_program_without_a_gpu_never_loads_the_driver, 2) {
    start_mpi();
    std::vector<std::byte> large(std::size_t{3} << 20);
    std::byte small[8] = {};
    exchange(large.data(), large.size(), kMessages);
    exchange(small, sizeof small, kMessages);
    double mine = rank(), sum = 0;
    OK(MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    MPI_Comm copy;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
    OK(MPI_Comm_free(&copy));
    CHECK(!library_is_loaded("libcuda"));
    MPI_Finalize();
    CHECK(!library_is_loaded("libcuda"));
}

MPI_CASE(a_loaded_driver_that_nobody_initialised_is_left_alone, 2) {
    // Many programs link the CUDA runtime and never use it.
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) skip("there is no CUDA driver (libcuda.so.1)");
    auto* count = reinterpret_cast<CUresult (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    std::vector<std::byte> large(std::size_t{3} << 20);
    exchange(large.data(), large.size(), kMessages);
    int devices = 0;
    CHECK_EQ(count(&devices), CUDA_ERROR_NOT_INITIALIZED);
}

// Host memory at an address that the driver handed out before and got back; null when that cannot
// be had.
std::byte* host_memory_at(void* place, std::size_t bytes) {
    constexpr int kProtection = PROT_READ | PROT_WRITE, kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    void* mapped = mmap(place, bytes, kProtection, kFlags | MAP_FIXED_NOREPLACE, -1, 0);
    // The simulator keeps its address space reserved; what it does not use may be borrowed.
    if (mapped == MAP_FAILED && gpu().simulated)
        mapped = mmap(place, bytes, kProtection, kFlags | MAP_FIXED, -1, 0);
    if (mapped == place) return static_cast<std::byte*>(mapped);
    if (mapped != MAP_FAILED) munmap(mapped, bytes);
    return nullptr;
}

void free_host_memory(void* place, std::size_t bytes) {
    munmap(place, bytes);
    if (gpu().simulated)
        mmap(place, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0);
}

MPI_CASE(device_memory_at_the_address_of_freed_host_memory_is_recognised, 2) {
    constexpr std::size_t kBytes = std::size_t{4}
                                   << 20;  // two granules of virtual memory management
    void* place = nullptr;
    {
        Memory before(Kind::vmm, kBytes);
        place = before.data();
    }
    for (unsigned round = 0; round < 3; ++round) {
        std::byte* host = host_memory_at(place, kBytes);
        int here = host != nullptr ? 1 : 0, everywhere = 0;
        OK(MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        if (!everywhere) skip("the driver keeps the addresses of what was freed");
        std::memset(host, rank() == 0 ? 7 : 0, kBytes);
        exchange(host, kBytes, 2);
        CHECK(host[0] == std::byte{7} && host[kBytes - 1] == std::byte{7});
        free_host_memory(host, kBytes);

        Memory memory(Kind::vmm, kBytes, 0, place);
        here = memory.data() == place ? 1 : 0;
        OK(MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        if (!everywhere) skip("the driver does not give the address that was asked for");
        memory.fill(rank() == 0 ? 21 + round : 99);
        exchange(memory.data(), kBytes, 2);
        CHECK_EQ(memory.differs(21 + round, kBytes), -1);
    }
}
