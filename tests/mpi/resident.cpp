// SPDX-License-Identifier: BSD-3-Clause
//
// Small messages between two processes by a persistent kernel (GANTRY_IDLE_TIMEOUT): right bytes
// in every order and size, with the program's own work between them.
#include "gpu.hpp"
#include "test.hpp"
#include "tests/sanitized.hpp"

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr std::size_t kBytes = 512 << 10;
constexpr int kWindow = 24;

// Who takes a copy follows from how long it is since the last one: under a sanitizer nearly nothing
// comes in time, and only the bytes are checked, as without kernels.
constexpr bool kInTime = !gantry::kSanitized;
bool counts_calls() {
    return gpu().simulated && kInTime && getenv("GANTRY_KERNELS") == nullptr;
}

// Other programs keep the processors: a message waits for milliseconds, and no kernel pays.
bool too_busy = false;

// The end of a case that says who took the copies: not run where nobody counts them, with right bytes.
void end_of_counts() {
    int mine = has_failed() ? 1 : 0, any = 0;
    OK(MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    if (any == 0 && too_busy) skip("other programs keep the processors, and no kernel pays");
    if (any == 0 && !counts_calls())
        skip(gpu().simulated ? "no kernel comes in time, or may run"
                             : "a real GPU does not count calls");
    MPI_Finalize();
}

enum class Gpus { one_under_mps, one_each };

// A kernel outlives what a busy machine does to both ranks, where copies are counted; where bytes are
// looked at again and again, each look waits for its end.
constexpr const char *kOutlivesAll = "200ms", *kEndsSoon = "10ms";

void start_with_a_persistent_kernel(Gpus gpus, const char* idle_timeout) {
    const char* simulated = getenv("SIMGPU");
    if (gpus == Gpus::one_under_mps)
        setenv("SIMGPU", (std::string(simulated != nullptr ? simulated : "") + ",mps=1").c_str(),
               1);
    setenv("GANTRY_IDLE_TIMEOUT", idle_timeout, 1);
    start_mpi();
    if (gpus == Gpus::one_each && gpu().count < 2) skip("one GPU only");
}

struct Message {
    std::size_t at, bytes;
};

// The same ones on both ranks, none over another.
std::vector<Message> draw(std::mt19937& dice, int messages) {
    std::vector<Message> drawn;
    const std::size_t share = kBytes / static_cast<std::size_t>(messages);
    for (int i = 0; i < messages; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * share + dice() % 64;
        drawn.push_back({at, 1 + dice() % (share - 64)});
    }
    return drawn;
}

void exchange(const std::vector<Message>& messages, Memory& out, Memory& in) {
    std::vector<MPI_Request> requests;
    for (const Message& each : messages) {
        const int bytes = static_cast<int>(each.bytes);
        requests.push_back(MPI_REQUEST_NULL);
        OK(MPI_Irecv(in.data() + each.at, bytes, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD,
                     &requests.back()));
    }
    for (const Message& each : messages) {
        requests.push_back(MPI_REQUEST_NULL);
        OK(MPI_Isend(out.data() + each.at, static_cast<int>(each.bytes), MPI_BYTE, 1 - rank(), 0,
                     MPI_COMM_WORLD, &requests.back()));
    }
    OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
}

// So many messages go to and fro.
void ping_pong(Memory& buffer, int bytes, std::uint64_t messages) {
    for (std::uint64_t i = 0; i < messages; ++i) {
        if (static_cast<int>(i % 2) == rank())
            OK(MPI_Send(buffer.data(), bytes, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(buffer.data(), bytes, MPI_BYTE, 1 - rank(), 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    }
}

// Of so many messages to and fro, a rank may make so many copies another way: it makes a half of all
// copies, or all where the other one has host memory.
struct Wanted {
    std::uint64_t messages;
    int untaken;
};
constexpr Wanted kNearlyAll{1000, 100}, kNearlyAllWithHost{1000, 200}, kMost{1000, 325},
    kSome{200, 95}, kSomeWithHost{200, 190};

// Messages of so many bytes go to and fro in one buffer of each rank. A kernel comes when enough was
// saved for it; and late messages go another way, as they are on a busy machine. So there are rounds
// until one is good. Rounds in which messages take a fifth of a millisecond say nothing about kernels.
void check_that_kernels_take(const Wanted& wanted, int device, std::size_t bytes = 64,
                             Kind kind = Kind::device) {
    Memory buffer(kind, bytes, device);
    if (rank() == 0) buffer.fill(7);
    constexpr int kRounds = 200, kLateRounds = 8;
    constexpr double kLate = 200e-6;
    int untaken = wanted.untaken + 1, late = 0;
    for (int round = 0; round < kRounds && untaken > wanted.untaken && late < kLateRounds;
         ++round) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (gpu().simulated) reset_calls();
        double since = MPI_Wtime();
        ping_pong(buffer, static_cast<int>(bytes), wanted.messages);
        since = MPI_Wtime() - since;
        OK(MPI_Bcast(&since, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD));
        if (since > kLate * static_cast<double>(wanted.messages)) ++late;
        int mine = counts_calls() ? static_cast<int>(calls().copies) : 0;
        OK(MPI_Allreduce(&mine, &untaken, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    too_busy = too_busy || (counts_calls() && untaken > wanted.untaken && late == kLateRounds);
    if (counts_calls() && !too_busy) CHECK(untaken <= wanted.untaken);
    std::vector<std::byte> got(bytes);
    buffer.read(got.data(), bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        if (got[i] != pattern(7, i)) CHECK_EQ(i, bytes);
}

// Rounds of messages of all small sizes.
void check_the_bytes(Kind from, Kind into, int device) {
    Memory out(from, kBytes, device), in(into, kBytes, device);
    std::mt19937 dice(5);
    std::vector<std::byte> got(kBytes);
    for (unsigned round = 0; round < 150; ++round) {
        out.fill(2 * round + static_cast<unsigned>(rank()));
        // Many of them between two looks at the bytes.
        std::vector<Message> last;
        for (int burst = 0; burst < 8; ++burst)
            exchange(last = draw(dice, burst % 3 == 0 ? 1 : kWindow), out, in);
        in.read(got.data(), kBytes);
        const unsigned seed = 2 * round + static_cast<unsigned>(1 - rank());
        for (const Message& each : last)
            for (std::size_t i = each.at; i < each.at + each.bytes; ++i)
                if (got[i] != pattern(seed, i)) {
                    CHECK_EQ(i, each.at + each.bytes);
                    break;
                }
        OK(MPI_Barrier(MPI_COMM_WORLD));  // `out` is written again
    }
}

}  // namespace

MPI_CASE_OWN_INIT(small_messages_by_a_persistent_kernel_carry_the_right_bytes, 2) {
    start_with_a_persistent_kernel(Gpus::one_under_mps, kEndsSoon);
    check_that_kernels_take(kSome, 0);
    check_the_bytes(Kind::device, Kind::device, 0);
    end_of_counts();
}

// As short as can be: endings_test.py looks at what is explained at its end.
MPI_CASE_OWN_INIT(a_persistent_kernel_takes_some_messages, 2) {
    start_with_a_persistent_kernel(Gpus::one_under_mps, kOutlivesAll);
    check_that_kernels_take(kSome, 0);
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_takes_nearly_all_small_messages_under_mps, 2) {
    start_with_a_persistent_kernel(Gpus::one_under_mps, kOutlivesAll);
    check_that_kernels_take(kNearlyAll, 0);
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_takes_nearly_all_small_messages_between_two_gpus, 2) {
    start_with_a_persistent_kernel(Gpus::one_each, kOutlivesAll);
    check_that_kernels_take(kNearlyAll, rank());
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_takes_larger_messages_between_two_gpus_that_come_alone, 2) {
    start_with_a_persistent_kernel(Gpus::one_each, kOutlivesAll);
    // Longer messages meet the ends of more kernels.
    check_that_kernels_take(kMost, rank(), 256 << 10);
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_copies_to_and_from_host_memory, 2) {
    start_with_a_persistent_kernel(Gpus::one_under_mps, kEndsSoon);
    for (const Kind host : {Kind::host, Kind::pinned})
        for (const int on_device : {0, 1}) {
            const Kind mine = rank() == on_device ? Kind::device : host;
            check_that_kernels_take(kSomeWithHost, 0, 64, mine);
            check_the_bytes(mine, mine, 0);
        }
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_takes_nearly_all_small_messages_of_host_memory, 2) {
    start_with_a_persistent_kernel(Gpus::one_under_mps, kOutlivesAll);
    for (const Kind host : {Kind::host, Kind::pinned})
        check_that_kernels_take(kNearlyAllWithHost, 0, 64, rank() == 0 ? Kind::device : host);
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_copies_for_messages_over_a_network, 2) {
    setenv("GANTRY_SHM", "off", 1);
    setenv("GANTRY_IPC", "off", 1);
    start_with_a_persistent_kernel(Gpus::one_under_mps, kEndsSoon);
    check_that_kernels_take(kSome, 0);
    check_the_bytes(Kind::device, Kind::device, 0);
    end_of_counts();
}

MPI_CASE_OWN_INIT(a_persistent_kernel_takes_nearly_all_small_messages_over_a_network, 2) {
    setenv("GANTRY_SHM", "off", 1);
    setenv("GANTRY_IPC", "off", 1);
    start_with_a_persistent_kernel(Gpus::one_under_mps, kOutlivesAll);
    check_that_kernels_take(kNearlyAll, 0);
    end_of_counts();
}
