// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of every kind mapped by the other process: opened once, when it repays itself,
// never stale, staged when it is refused, and nothing left open. Shared memory only.
#include "gpu.hpp"
#include "test.hpp"

#include <dirent.h>

#include <cstdlib>
#include <optional>
#include <vector>

using namespace mpi_tests;

namespace {

const std::vector<Kind> kDeviceKinds = {Kind::device, Kind::pool, Kind::vmm, Kind::shared_pool};

bool exportable(Kind kind) {
    return kind == Kind::device || kind == Kind::vmm || kind == Kind::shared_pool;
}

// Their descriptor travels beside the messages. As long as it has not come the other rank may open, and on a
// busy machine that is a while.
bool needs_descriptor(Kind kind) {
    return kind == Kind::vmm || kind == Kind::shared_pool;
}

// Openings are decided at once, not when they repay themselves: what is left is how. A rank that is to
// copy and comes late, on a busy machine, is waited for: else both ranks open.
void start_opening_at_once() {
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    setenv("GANTRY_CLAIM_WAIT", "10s", 1);
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
}

int open_descriptors() {
    DIR* folder = opendir("/proc/self/fd");
    int count = -1;  // its own
    while (readdir(folder) != nullptr)
        ++count;
    closedir(folder);
    return count;
}

// Mappings that both processes opened since the last reset_calls().
std::uint64_t openings() {
    return sum_of_both(calls("cuIpcOpenMemHandle_v2") + calls("cuMemImportFromShareableHandle") +
                       calls("cuMemPoolImportPointer"));
}

void exchange(Memory& memory, unsigned seed) {
    const int count = static_cast<int>(memory.bytes());
    memory.fill(rank() == 0 ? seed : seed + 1000);
    if (rank() == 0) {
        OK(MPI_Send(memory.data(), count, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(memory.data(), count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(memory.differs(seed, memory.bytes()), -1);
    }
}

void repeat(Kind from, Kind to, int from_device, int to_device, int messages) {
    Memory memory(rank() == 0 ? from : to, 300000, rank() == 0 ? from_device : to_device);
    for (int message = 0; message < messages; ++message) {
        exchange(memory, static_cast<unsigned>(message));
        OK(MPI_Barrier(MPI_COMM_WORLD));  // what the receiver answered has reached the sender
    }
}

// One process resets its context between messages, and the other keeps its buffer: what the first had
// mapped went with its context.
void reset_and_go_on(int who, Kind kind, std::size_t bytes) {
    constexpr int kWindow = 8;
    const int device = rank() % std::min(gpu().count, 2);
    auto* reset = gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
    std::optional<Memory> memory;
    for (unsigned round = 0; round < 4; ++round) {
        if (!memory) memory.emplace(kind, bytes * kWindow, device);
        for (unsigned message = 0; message < 4; ++message)
            exchange(*memory, 10 * round + message);
        memory->fill(rank() == 0 ? round : 1000);
        MPI_Request requests[kWindow];
        for (int i = 0; i < kWindow; ++i) {
            std::byte* const at = memory->data() + static_cast<std::size_t>(i) * bytes;
            if (rank() == 0)
                OK(MPI_Isend(at, static_cast<int>(bytes), MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                             &requests[i]));
            else
                OK(MPI_Irecv(at, static_cast<int>(bytes), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                             &requests[i]));
        }
        OK(MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE));
        if (rank() == 1) CHECK_EQ(memory->differs(round, bytes * kWindow), -1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank() == who) {
            memory.reset();
            CHECK_EQ(reset(device), CUDA_SUCCESS);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

}  // namespace

// A source that cannot be named lies in slots before the receiver is known, and comes out of them.
MPI_CASE_OWN_INIT(memory_of_every_kind_is_opened_once, 2) {
    start_opening_at_once();
    for (int to_device = 0; to_device < std::min(gpu().count, 2); ++to_device) {
        repeat(Kind::device, Kind::device, 0, to_device, 5);  // anchors are opened
        for (Kind from : kDeviceKinds)
            for (Kind to : kDeviceKinds) {
                about(std::string(name(from)) + " to " + name(to) + " of GPU " +
                      std::to_string(to_device));
                reset_calls();
                repeat(from, to, 0, to_device, 5);
                const std::uint64_t opened = openings(), due = exportable(from) ? 1 : 0;
                const bool both = needs_descriptor(from) && exportable(to);
                if (!both || opened != due + 1) CHECK_EQ(opened, due);
            }
    }
    for (Kind kind : kDeviceKinds)
        for (Kind host : {Kind::host, Kind::pinned}) {
            about(std::string(name(kind)) + " and " + name(host) + " memory");
            reset_calls();
            repeat(kind, host, 0, 0, 5);
            CHECK_EQ(openings(), exportable(kind) ? 1 : 0);
            reset_calls();
            repeat(host, kind, 0, 0, 5);
            CHECK_EQ(openings(), exportable(kind) && host == Kind::pinned ? 1 : 0);
        }
    about("");
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(freed_memory_of_every_kind_is_not_read_through_an_old_mapping, 2) {
    start_opening_at_once();
    for (unsigned round = 0; round < 20; ++round)
        for (Kind kind : kDeviceKinds) {
            Memory memory(kind, 200000 + round % 2 * 100000);
            for (unsigned message = 0; message < 3; ++message)
                exchange(memory, 10 * round + message);
        }
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(a_thousand_fresh_buffers_of_every_kind_through_a_small_cache, 2) {
    setenv("GANTRY_IPC_CACHE_ENTRIES", "4", 1);
    start_opening_at_once();
    int before = 0;
    for (unsigned i = 0; i < 1000; ++i) {
        Memory memory(kDeviceKinds[i % kDeviceKinds.size()], 40000);
        exchange(memory, i);
        exchange(memory, i + 1);
        if (i == 10) before = open_descriptors();
    }
    CHECK(open_descriptors() <= before + 8);
    CHECK(census().imported_ranges <= 4);
    // All that was mapped is closed in the end.
    MPI_Finalize();
    CHECK_EQ(census().imported_ranges, std::size_t{0});
}

MPI_CASE_OWN_INIT(many_buffers_in_turn_through_a_small_cache, 2) {
    setenv("GANTRY_IPC_CACHE_ENTRIES", "3", 1);
    start_opening_at_once();
    std::vector<std::unique_ptr<Memory>> buffers;
    for (std::size_t i = 0; i < 12; ++i)
        buffers.push_back(std::make_unique<Memory>(kDeviceKinds[i % kDeviceKinds.size()], 70000));
    for (unsigned round = 0; round < 6; ++round)
        for (std::size_t i = 0; i < buffers.size(); ++i)
            exchange(*buffers[i], 100 * round + static_cast<unsigned>(i));
    CHECK(census().imported_ranges <= 3);
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(a_refused_export_or_import_is_staged, 2) {
    start_opening_at_once();
    int before = 0;
    const std::vector<const char*> calls_of_ipc = {"cuMemExportToShareableHandle:*:801",
                                                   "cuMemRetainAllocationHandle:*:1",
                                                   "cuMemImportFromShareableHandle:*:801",
                                                   "cuMemAddressReserve:*:2",
                                                   "cuMemMap:*:999",
                                                   "cuMemSetAccess:*:801",
                                                   "cuMemPoolExportToShareableHandle:*:801",
                                                   "cuMemPoolExportPointer:*:801",
                                                   "cuMemPoolImportFromShareableHandle:*:801",
                                                   "cuMemPoolImportPointer:*:1",
                                                   "cuMemPoolSetAccess:*:217",
                                                   "cuIpcGetMemHandle:*:801",
                                                   "cuIpcOpenMemHandle_v2:*:801"};
    for (std::size_t i = 0; i < 2 * calls_of_ipc.size(); ++i) {
        const char* refused = calls_of_ipc[i % calls_of_ipc.size()];
        about(refused);
        if (i == calls_of_ipc.size()) before = open_descriptors();
        std::vector<std::unique_ptr<Memory>> buffers;
        for (Kind kind : kDeviceKinds)
            buffers.push_back(std::make_unique<Memory>(kind, 100000));
        inject(refused);
        for (unsigned message = 0; message < 4; ++message)
            for (const auto& memory : buffers)
                exchange(*memory, message);
        inject(nullptr);
    }
    about("");
    CHECK(open_descriptors() <= before + 8);  // mappings of freed buffers are closed after a while
    MPI_Finalize();
}

// Slots are page-locked and anchors open, as behind the first messages of a program.
void warm_up() {
    const int device = gpu().count > 1 ? rank() : 0;
    repeat(Kind::device, Kind::device, device, device, 5);
    repeat(Kind::pool, Kind::pool, device, device, 3);
}

MPI_CASE(a_first_message_to_a_new_buffer_opens_nothing, 2) {
    if (!gpu().simulated) skip("needs the simulator's counters");
    warm_up();
    for (Kind from : kDeviceKinds)
        for (Kind to : kDeviceKinds)
            for (int to_device = 0; to_device < std::min(gpu().count, 2); ++to_device) {
                about(std::string(name(from)) + " to " + name(to));
                reset_calls();
                repeat(from, to, 0, to_device, 1);
                CHECK_EQ(openings(), 0);
            }
    about("");
}

MPI_CASE(fresh_buffers_are_never_opened, 2) {
    if (!gpu().simulated) skip("needs the simulator's counters");
    warm_up();
    reset_calls();
    for (unsigned i = 0; i < 1000; ++i) {
        Memory memory(kDeviceKinds[i % kDeviceKinds.size()], 70000, rank() % gpu().count);
        exchange(memory, i);
    }
    CHECK_EQ(openings(), 0);
}

// As many as cost what page-locking slots does, and an anchor of each rank.
MPI_CASE_OWN_INIT(few_fresh_buffers_are_opened_before_slots_are_page_locked, 2) {
    setenv("GANTRY_MECHANISMS", "all", 1);
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
    reset_calls();
    const auto some = [] {
        for (unsigned i = 0; i < 700; ++i) {
            Memory memory(Kind::device, 70000, rank() % gpu().count);
            exchange(memory, i);
        }
    };
    some();
    const std::uint64_t opened = openings();
    CHECK(opened > 0);
    CHECK(opened <= 2 * 512 + 2);
    some();
    CHECK_EQ(openings(), opened);
    MPI_Finalize();
}

MPI_CASE(an_opening_comes_when_it_has_repaid_itself, 2) {
    // 1 MiB between two GPUs: staging it costs 30 us more than a copy, opening virtual memory 150
    // us, once there are anchors.
    if (!gpu().simulated || gpu().count < 2) skip("needs two simulated GPUs");
    warm_up();
    Memory memory(Kind::vmm, 1 << 20, rank());
    reset_calls();
    int opened_at = -1;
    for (int message = 0; message < 40 && opened_at < 0; ++message) {
        exchange(memory, static_cast<unsigned>(message));
        if (openings() > 0) opened_at = message;
    }
    CHECK(opened_at >= 1);
    CHECK(opened_at <= 20);
    for (unsigned message = 0; message < 10; ++message)
        exchange(memory, message);
    CHECK_EQ(openings(), 1);
}

MPI_CASE_OWN_INIT(who_resets_its_context_maps_the_other_ones_memory_again, 2) {
    start_opening_at_once();
    for (const int who : {1, 0})
        for (const std::size_t bytes : {std::size_t{8}, std::size_t{100000}})
            reset_and_go_on(who, Kind::device, bytes);
    MPI_Finalize();
}

// What names memory to a peer costs the driver microseconds: most buffers of a program that allocates
// one for every message go without.
MPI_CASE_OWN_INIT(buffers_are_not_named_before_a_peer_may_map_them, 2) {
    start_mpi();
    if (!gpu().simulated) skip("needs the simulator's counters");
    constexpr std::size_t kBytes = 64 << 10;
    repeat(Kind::pool, Kind::pool, 0, 0, 3);  // slots are page-locked
    const auto named = [] { return sum_of_both(calls("cuIpcGetMemHandle")); };
    reset_calls();
    for (unsigned buffer = 0; buffer < 100; ++buffer) {
        Memory memory(Kind::device, kBytes);
        exchange(memory, buffer);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK_EQ(named(), 0);
    CHECK_EQ(openings(), 0);
    // Not all of it lies in slots when its receiver sees it.
    Memory large(Kind::device, 64 << 20);
    exchange(large, 7);
    CHECK_EQ(named(), 1);
    // Used until the receiver asks for it.
    Memory kept(Kind::device, kBytes);
    for (unsigned message = 0; message < 100; ++message) {
        exchange(kept, message);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK_EQ(named(), 2);
    MPI_Finalize();
}
