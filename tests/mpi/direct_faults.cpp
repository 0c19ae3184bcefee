// SPDX-License-Identifier: BSD-3-Clause
//
// What can go wrong while one process copies straight out of, or into, the other's device memory:
// openings and exports that are refused, copies that fail, memory and contexts that go away under an
// open mapping. Openings are decided at once, and counted: that the way was, or was not, a direct
// copy is part of each case. Shared memory only.
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <cstdlib>
#include <optional>
#include <string>

using namespace mpi_tests;

namespace {

constexpr int kBytes = (4 << 20) + 12;
constexpr const char* kFailedCopies =
    "cuMemcpyAsync:1:999,cuMemcpyDtoDAsync_v2:1:999,cuMemcpyPeerAsync:1:999";

// A rank that is to copy and comes late, on a busy machine, is waited for: else both ranks open.
void start_with_direct_copies() {
    setenv("GANTRY_IPC_THRESHOLD", "1", 1);
    setenv("GANTRY_CLAIM_WAIT", "10s", 1);
    start_mpi();
    only_on_the_simulator("faults are injected into the simulator only");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    use_device(0);
}

// Attempts of both ranks since the last reset_calls().
std::uint64_t openings() {
    return sum_of_both(calls("cuIpcOpenMemHandle_v2"));
}
std::uint64_t mapped() {
    return sum_of_both(census().imported_ranges);
}

int move(Memory& memory) {
    return rank() == 0
               ? MPI_Send(memory.data(), kBytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD)
               : MPI_Recv(memory.data(), kBytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void expect_right(Memory& memory, unsigned seed) {
    memory.fill(rank() == 0 ? seed : seed + 1000);
    OK(move(memory));
    if (rank() == 1) CHECK_EQ(memory.differs(seed, kBytes), -1);
}

// Copies that both ranks make for one message.
std::uint64_t copies_of_one(Memory& memory, unsigned seed) {
    memory.fill(rank() == 0 ? seed : seed + 1000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    clear_operations();
    OK(move(memory));
    const Operations done = operations();
    if (rank() == 1) CHECK_EQ(memory.differs(seed, kBytes), -1);
    return sum_of_both(done.copies);
}

// From here on a message in this memory is one direct copy.
void open_mapping(Memory& memory) {
    for (unsigned message = 0; message < 3; ++message) {
        expect_right(memory, message);
        OK(MPI_Barrier(MPI_COMM_WORLD));  // what the receiver answered has reached the sender
    }
    CHECK_EQ(copies_of_one(memory, 5), 1);
}

void expect_host_messages_work() {
    const int peer = 1 - rank();
    int mine = 70 + rank(), theirs = 0;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, peer, 9, &theirs, 1, MPI_INT, peer, 9, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK_EQ(theirs, 70 + peer);
}

// `fault` on the ranks that `faulty` names (-1: both); messages are staged, and are direct in fresh
// memory once it is gone.
void expect_staged(const char* fault, int faulty, bool tries) {
    {
        Memory memory(Kind::device, kBytes);
        const std::uint64_t before = mapped();
        reset_calls();
        if (faulty == -1 || faulty == rank()) inject(fault);
        for (unsigned message = 0; message < 4; ++message) {
            expect_right(memory, message);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        CHECK_EQ(openings() > 0, tries);
        CHECK_EQ(mapped(), before);
        CHECK(copies_of_one(memory, 8) > 1);
        inject(nullptr);
    }
    Memory memory(Kind::device, kBytes);
    reset_calls();
    open_mapping(memory);
    CHECK_EQ(openings(), 1);
}

}  // namespace

MPI_CASE_OWN_INIT(refused_opening_of_peer_memory_falls_back_to_staging, 2) {
    start_with_direct_copies();
    expect_staged("cuIpcOpenMemHandle_v2:*:201", -1, true);
    MPI_Finalize();
}

// Rank 1 reads; rank 0 may write instead.
MPI_CASE_OWN_INIT(one_rank_that_cannot_open_peer_memory_lets_the_other_one_copy, 2) {
    start_with_direct_copies();
    for (const int faulty : {0, 1}) {
        about("rank " + std::to_string(faulty) + " cannot open");
        Memory memory(Kind::device, kBytes);
        reset_calls();
        if (rank() == faulty) inject("cuIpcOpenMemHandle_v2:*:201");
        for (unsigned message = 0; message < 6; ++message) {
            expect_right(memory, message);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
        CHECK(openings() > 0);
        inject(nullptr);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    about("");
    MPI_Finalize();
}

MPI_CASE_OWN_INIT(refused_export_of_memory_falls_back_to_staging, 2) {
    start_with_direct_copies();
    expect_staged("cuIpcGetMemHandle:*:801", -1, false);
    MPI_Finalize();
}

// Nobody has the data, so nobody may be told that it arrived.
MPI_CASE_OWN_INIT(a_failed_direct_copy_is_an_error_on_both_ranks, 2) {
    start_with_direct_copies();
    Memory memory(Kind::device, kBytes);
    open_mapping(memory);
    for (unsigned round = 0; round < 3; ++round) {
        memory.fill(60 + static_cast<unsigned>(rank()));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        inject(kFailedCopies);
        const int code = move(memory);
        inject(nullptr);
        expect_failure(code, "cuMemcpy");
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK_EQ(copies_of_one(memory, 20 + round), 1);
    }
    expect_host_messages_work();
    MPI_Finalize();
}

// The driver's word for what it cannot do at all: here it comes when the memory is mapped and the
// sender told so. Either the bytes go another way, or both ranks hear of it.
MPI_CASE_OWN_INIT(a_direct_copy_that_is_not_supported_ends_its_message, 2) {
    start_with_direct_copies();
    if (gpu().count > 1) use_device(rank());
    Memory memory(Kind::device, kBytes);
    for (unsigned message = 0; message < 3; ++message)
        expect_right(memory, message);
    for (unsigned round = 0; round < 3; ++round) {
        memory.fill(rank() == 0 ? 50 + round : 99);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        inject("cuMemcpyAsync:1:801,cuMemcpyDtoDAsync_v2:1:801,cuMemcpyPeerAsync:1:801");
        const int code = move(memory);
        inject(nullptr);
        if (code != MPI_SUCCESS)
            expect_failure(code, "cuMemcpy");
        else if (rank() == 1)
            CHECK_EQ(memory.differs(50 + round, kBytes), -1);
        CHECK_EQ(sum_of_both(code == MPI_SUCCESS ? 1 : 0) % 2, 0);
        expect_right(memory, 70 + round);
    }
    expect_host_messages_work();
    MPI_Finalize();
}

// The mapping of the old memory is open when it is freed, and its address is used again.
MPI_CASE_OWN_INIT(memory_freed_and_reused_under_an_open_mapping_is_not_confused, 2) {
    constexpr int kRounds = 20;
    start_with_direct_copies();
    reset_calls();
    const std::byte* last = nullptr;
    long used_again = 0;
    for (unsigned round = 0; round < kRounds; ++round) {
        Memory memory(Kind::device, kBytes);
        if (memory.data() == last) ++used_again;
        last = memory.data();
        for (unsigned message = 0; message < 3; ++message) {
            const unsigned seed = 3 * round + message;
            memory.fill(rank() == 0 ? seed : seed + 1000);
            OK(move(memory));
            // The sender's memory is its own again, at once: it is overwritten, and then freed.
            if (rank() == 0) memory.fill(777);
            if (rank() == 1) CHECK_EQ(memory.differs(seed, kBytes), -1);
        }
    }
    CHECK_EQ(openings(), kRounds);
    CHECK(sum_of_both(static_cast<std::uint64_t>(used_again)) > kRounds / 2);
    MPI_Finalize();
}

// --- contexts ------------------------------------------------------------------------------------

MPI_CASE_OWN_INIT(a_direct_copy_that_kills_the_context_is_an_error_and_host_messages_go_on, 2) {
    start_with_direct_copies();
    Memory memory(Kind::device, kBytes);
    open_mapping(memory);
    memory.fill(9);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank() == 1) inject("operation:1:700");  // who copies
    OK(MPI_Barrier(MPI_COMM_WORLD));
    expect_failure(move(memory), "ILLEGAL_ADDRESS");
    inject(nullptr);
    for (int message = 0; message < 20; ++message)
        expect_host_messages_work();
    if (rank() == 1) memory.forget();
    memory.release();
    MPI_Finalize();
}

// What was mapped went with the context, and new memory may lie where it was.
MPI_CASE_OWN_INIT(a_context_reset_under_open_mappings_spoils_no_later_message, 2) {
    start_with_direct_copies();
    auto* reset = gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
    std::optional<Memory> memory;
    for (const int who : {0, 1, 1, 0, 1, 0}) {
        about("rank " + std::to_string(who) + " resets");
        if (!memory) memory.emplace(Kind::device, kBytes);
        open_mapping(*memory);
        if (rank() == who) {
            CHECK_EQ(reset(0), CUDA_SUCCESS);
            memory->forget();
            memory.reset();
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    about("");
    memory.reset();
    MPI_Finalize();
}

bool is_device_memory(const void* address) {
    auto* attribute =
        gpu().get<CUresult(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute");
    CUmemorytype kind{};
    return attribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                     reinterpret_cast<CUdeviceptr>(address)) == CUDA_SUCCESS;
}

// One side has begun when its context is reset, and its buffer goes with it; then the other one
// begins. (A send that is left to the progress thread may be looked at only after that, and then
// nobody knows that its buffer was in device memory.)
MPI_CASE_OWN_INIT(a_context_reset_inside_a_message_ends_it_and_new_memory_works, 2) {
    setenv("GANTRY_HAND_OVER", "off", 1);
    start_with_direct_copies();
    auto* reset = gpu().get<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
    std::optional<Memory> memory;
    for (const int who : {0, 1, 1, 0, 1, 0}) {
        about("rank " + std::to_string(who) + " resets");
        if (!memory) memory.emplace(Kind::device, kBytes);
        open_mapping(*memory);
        memory->fill(30 + static_cast<unsigned>(rank()));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const auto begin = [&memory](MPI_Request* request) {
            if (rank() == 0)
                OK(MPI_Isend(memory->data(), kBytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, request));
            else
                OK(MPI_Irecv(memory->data(), kBytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, request));
        };
        MPI_Request request;
        if (rank() == who) {
            begin(&request);
            CHECK_EQ(reset(0), CUDA_SUCCESS);
            OK(MPI_Send(nullptr, 0, MPI_BYTE, 1 - who, 2, MPI_COMM_WORLD));
        } else {
            OK(MPI_Recv(nullptr, 0, MPI_BYTE, who, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            begin(&request);
        }
        const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        // Nothing can be received without a buffer; but the sender's memory may have been mapped where
        // it was. What a receiver finds where the sender's was is the program's fault.
        const bool is_there_again = is_device_memory(memory->data());
        if (who == 1 && rank() == 1 && !is_there_again) CHECK(code != MPI_SUCCESS);
        expect_host_messages_work();
        if (rank() == who) {
            memory->forget();
            memory.reset();
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    about("");
    memory.reset();
    MPI_Finalize();
}
